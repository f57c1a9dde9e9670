"""How kernels are compiled: two decorators, the host's features, and a cache that knows every source line.

Numba's own cache does not see an edit in an imported kernel, nor a switch to the portable fallbacks. Here the cache
folder is named after all of that, so a stale kernel cannot be loaded. With Numba's own NUMBA_DISABLE_JIT=1 nothing is
compiled: every kernel is its plain-Python twin (`_twins`).
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import njit
from numba.core.codegen import get_host_cpu_features
from numba.core.dispatcher import Dispatcher

from kfbench.kernels import _twins

if sys.byteorder != "little":  # the intrinsics swap bytes without asking
    raise ImportError("kfbench's kernels need a little-endian host")


COMPILED = not numba.config.DISABLE_JIT


def _has(*features: str) -> bool:
    """Whether Numba compiles for all of them, and KFBENCH_PORTABLE asks for no fallbacks; LLVM aborts without one.

    What Numba compiles for may be less than what the host has: by its settings, or as it mistrusts AVX on some.
    """
    if not COMPILED or os.environ.get("KFBENCH_PORTABLE", "") not in ("", "0"):
        return False
    asked = numba.config.CPU_FEATURES
    found = (get_host_cpu_features() if asked is None else asked).split(",")
    return all(f"+{each}" in found for each in features)


FAST_CRC = _has("sse4.2", "pclmul")
WIDE_CRC = FAST_CRC and _has("avx512f", "vpclmulqdq")
FAST_DEPOSIT = WIDE_CRC and _has("bmi2")  # what has that and no AVX-512 may take hundreds of cycles for it


def _cache_folder() -> Path:
    features = FAST_CRC, WIDE_CRC, FAST_DEPOSIT
    digest = hashlib.sha256(
        f"{numba.__version__} {llvmlite.__version__} {np.__version__} {sys.version} {features}".encode()
    )
    here = Path(__file__).parent
    for source in [*sorted(here.rglob("*.py")), here.parent / "layouts.py"]:
        digest.update(source.read_bytes())
    asked = os.environ.get("KFBENCH_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    roots = [Path(asked)] if asked else []
    with suppress(RuntimeError):  # no home
        roots.append(Path.home() / ".cache")
    roots.append(Path(tempfile.gettempdir(), f"kfbench-{os.getuid() if hasattr(os, 'getuid') else 'user'}"))
    for root in roots:
        folder = root / "kfbench" / f"kernels-{digest.hexdigest()[:16]}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Compiled code is loaded from there: nobody else may be able to put any.
            if hasattr(os, "getuid") and (folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022):
                continue
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    raise ImportError(f"no writable folder for compiled kernels (tried {', '.join(map(str, roots))})")


CACHE_FOLDER = _cache_folder()


@contextmanager
def cached_in_our_folder() -> Iterator[None]:
    """Kernels defined in this block are cached in CACHE_FOLDER; other users of Numba keep their setting."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_FOLDER)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


# Without _nrt=False Numba leaves atomic reference counts inside the loops (5-10 % on v2 encode, 25x on a bit-packing
# helper). It is a private option, so a test counts NRT_incref in the assembly.
_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "_nrt": False, "no_cfunc_wrapper": True}


def kernel(function: Callable[..., Any]) -> Any:
    """A function called from Python: arrays in, out last, no allocation."""
    return njit(**_OPTIONS)(function) if COMPILED else _twins.kernel(function)


def variant(function: Callable[..., Any], name: str, **constants: bool) -> Any:
    """The kernel `function` under another name, its module's constants replaced by these.

    Numba drops what they rule out before it compiles. The same by a leaf with literal arguments compiled twice as long:
    each level of leaves is optimised by itself and once more inside its caller.
    """
    made = FunctionType(function.__code__, function.__globals__ | constants, name)
    made.__qualname__, made.__module__, made.__doc__ = name, function.__module__, function.__doc__
    return kernel(made)


def leaf(function: Callable[..., Any]) -> Any:
    """A helper that costs nothing inside a kernel: LLVM's alwaysinline (inline="always" measured up to 10x slower).

    Kernels alone can call it: an entry from Python is a fifth of what it takes to compile, and few are ever used.
    """
    if not COMPILED:
        return function
    made = njit(**_OPTIONS, forceinline=True, no_cpython_wrapper=True)(function)
    made.__class__ = _Leaf
    return made


def part(function: Callable[..., Any]) -> Any:
    """A helper of kernels that stays a call: what is long and used in many places would be compiled in each of them."""
    if not COMPILED:
        return function
    made = njit(**_OPTIONS, no_cpython_wrapper=True)(function)
    made.__class__ = _Leaf
    return made


class _Leaf(Dispatcher):
    """Without an entry from Python a call is a jump to address 0."""

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} has no entry from Python: call it from a kernel")
