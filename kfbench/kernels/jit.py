"""Compile kernels with Numba: decorators, the CPU features in use, and a cache of compiled code.

Numba's own cache does not notice an edit in an imported kernel, or a switch to the portable fallbacks. Here the name
of the cache folder is a hash of all kernel sources, of the processor that Numba compiles for (NUMBA_CPU_NAME and
NUMBA_CPU_FEATURES, or the host's), and of the fallbacks in use. So a stale kernel cannot be loaded. With
Numba's NUMBA_DISABLE_JIT=1 nothing is compiled: every kernel runs as plain Python (`interpreted`).
"""

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from pickle import UnpicklingError
from types import FunctionType
from typing import Any, Final

import llvmlite
import numba
import numpy as np
from numba import njit
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary, get_host_cpu_features
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher

from kfbench.kernels import interpreted
from kfbench.plugins import plugins

if sys.byteorder != "little":  # the intrinsics always swap bytes
    raise ImportError("kfbench's kernels need a little-endian host")


COMPILED = not numba.config.DISABLE_JIT
# The processor that Numba compiles for: the host, unless NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say otherwise.
CPU_NAME = llvmlite.binding.get_host_cpu_name() if numba.config.CPU_NAME is None else numba.config.CPU_NAME
CPU_FEATURES = get_host_cpu_features() if numba.config.CPU_FEATURES is None else numba.config.CPU_FEATURES


def _has(*features: str) -> bool:
    """Return whether Numba compiles for all these CPU features, and KFBENCH_PORTABLE does not forbid it.

    Numba may use fewer features than the host has: its settings can exclude some, and it disables AVX on some hosts.
    LLVM aborts the process on an instruction whose feature is missing.
    """
    if not COMPILED or os.environ.get("KFBENCH_PORTABLE", "") not in ("", "0"):
        return False
    found = CPU_FEATURES.split(",")
    return all(f"+{feature}" in found for feature in features)


FAST_CRC = _has("sse4.2", "pclmul")
WIDE_CRC = FAST_CRC and _has("avx512f", "vpclmulqdq")


# Names of vector instructions.
INTERPRETED: Final = "none"  # the kernels run as plain Python
UNKNOWN: Final = "unknown"
_EIGHT_SUMS: Final = """
define void @sums(ptr %values) {
  %before = load <8 x i64>, ptr %values, align 8
  %after = add <8 x i64> %before, %before
  store <8 x i64> %after, ptr %values, align 8
  ret void
}
"""
_SIGNS: Final = (  # the first that is in the machine code
    ("AVX-512", r"%zmm"),
    ("AVX2", r"%ymm"),
    ("AVX", r"\bv\w+\s[^\n]*%xmm"),
    ("SSE2", r"%xmm"),
    ("SVE", r"\bz\d+\.d\b"),
    ("NEON", r"\.2d\b"),
)
VECTORS: Final = (*(name for name, _ in _SIGNS), UNKNOWN)


def kernel_vectors() -> str:
    """Return the widest vector instructions that kernels are compiled to, such as "AVX2"."""
    return vectors_for(CPU_NAME, CPU_FEATURES) if COMPILED else INTERPRETED


def host_vectors() -> str:
    """Return the widest vector instructions that this host has, whatever Numba is told to use."""
    return vectors_for(llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten())


@lru_cache(maxsize=8)
def vectors_for(cpu_name: str, cpu_features: str) -> str:
    """Return the widest vector instructions that LLVM uses for a processor (LLVM's name, LLVM's list of features).

    A name implies features that are in no list, so the answer is read from the machine code of a small function.
    """
    llvmlite.binding.initialize_native_target()
    llvmlite.binding.initialize_native_asmprinter()
    target = llvmlite.binding.Target.from_triple(llvmlite.binding.get_process_triple())
    machine = target.create_target_machine(cpu=cpu_name, features=cpu_features, opt=3)
    code = machine.emit_assembly(llvmlite.binding.parse_assembly(_EIGHT_SUMS))
    return next((name for name, sign in _SIGNS if re.search(sign, code)), UNKNOWN)


def _cache_folder() -> Path:
    features = FAST_CRC, WIDE_CRC
    here = Path(__file__).parent  # each checkout and each processor has its own compiled kernels
    digest = hashlib.sha256(
        f"{numba.__version__} {llvmlite.__version__} {np.__version__} {sys.version} {features} {here} "
        f"{CPU_NAME} {CPU_FEATURES}".encode()
    )
    ours = here.parent
    kernels = (path for path in ours.rglob("*.py") if here.name in path.relative_to(ours).parts)
    for source in (*sorted(kernels), ours / "layouts.py"):
        digest.update(source.read_bytes())
    for plugin in plugins():
        if {"formats", "codecs", "kinds"} & {*plugin.groups}:
            digest.update(plugin.digest.encode())
    chosen = os.environ.get("KFBENCH_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    roots = [Path(chosen)] if chosen else []
    with suppress(RuntimeError):  # the user has no home directory
        roots.append(Path.home() / ".cache")
    with suppress(FileNotFoundError):  # there is no temporary folder
        roots.append(Path(tempfile.gettempdir(), f"kfbench-{os.getuid() if hasattr(os, 'getuid') else 'user'}"))
    for root in roots:
        folder = root / "kfbench" / f"kernels-{digest.hexdigest()[:16]}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Compiled code is loaded from this folder, so nobody else may write to it.
            if hasattr(os, "getuid") and (folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022):
                continue
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    raise ImportError(f"no writable folder for compiled kernels (tried {', '.join(map(str, roots))})")


CACHE_FOLDER = _cache_folder()


@contextmanager
def _cached_in_our_folder() -> Iterator[None]:
    """Let Numba cache in CACHE_FOLDER while this context is active. Other packages that use Numba are unaffected."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_FOLDER)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def on_start(self, event: event.Event) -> None:
        call, self._call = self._call, None
        if call is not None:
            call()

    def on_end(self, event: event.Event) -> None:
        pass


@contextmanager
def before_compiling(call: Callable[[], None]) -> Iterator[None]:
    """Call `call` once, before a kernel is compiled while this context is active. To load one does not count."""
    with event.install_listener("numba:compile", _FirstCompilation(call)):
        yield


# Without _nrt=False Numba leaves atomic reference counts inside loops. They cost 5-10 % of v2 encode, and made a
# bit-packing helper 25 times slower. The option is private, so a test counts NRT_incref in the assembly.
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cfunc_wrapper": True}


class _CacheFiles(IndexDataCacheFile):
    """A cache with one file per compiled signature, named after the signature, without an index.

    Several processes compile at the same time. With Numba's index, two processes that compile one function for two
    signatures can both choose the file name `.1.nbc`. The index then gives one signature the other's machine code.
    """

    def save(self, key: object, data: Any) -> None:
        self._save_data(self._file_of(key), data)

    def load(self, key: object) -> Any:
        try:
            return self._load_data(self._file_of(key))
        except (OSError, EOFError, ValueError, AttributeError, ImportError, UnpicklingError):
            return None  # not compiled yet, or the file is damaged and will be written again

    def _file_of(self, key: object) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python code may call. Output arrays come last, and it allocates no memory."""
    if not COMPILED:
        return interpreted.kernel(function)
    with _cached_in_our_folder():
        compiled = njit(**_OPTIONS, cache=True)(function)
    compiled._cache._cache_file.__class__ = _CacheFiles
    return compiled


def variant(function: Callable[..., Any], name: str, module: str | None = None, **replaced: Any) -> Any:
    """Compile a copy of `function` as a kernel called `name`.

    Numba removes the branches that a constant global rules out before it compiles. A `leaf` with a literal argument
    would take twice as long to compile, because it is optimised by itself and again inside its caller.

    Args:
        module: the full name of the module that uses the kernel, if it is not the module of `function`.
        replaced: new values of globals in the copy.
    """
    copy = FunctionType(function.__code__, function.__globals__ | replaced, name)
    copy.__module__, copy.__doc__ = module or function.__module__, function.__doc__
    copy.__qualname__ = (
        f"{copy.__module__.rpartition('.')[2]}.{name}"  # Numba names cache files after source file and __qualname__
    )
    return kernel(copy)


def leaf(function: Callable[..., Any]) -> Any:
    """Compile a helper of kernels that is always inlined, so that it costs no call.

    It uses LLVM's alwaysinline. Kernels with Numba's inline="always" measured up to 10 times slower.
    """
    return _helper(function, forceinline=True) if COMPILED else function


def part(function: Callable[..., Any]) -> Any:
    """Compile a helper of kernels that is called, not inlined. It is for long helpers with many callers."""
    return _helper(function) if COMPILED else function


def _helper(function: Callable[..., Any], **options: bool) -> Any:
    compiled = njit(**_OPTIONS, **options, no_cpython_wrapper=True, pipeline_class=_HelperCompiler)(function)
    compiled.__class__ = _Helper
    return compiled


class _HelperLibrary(JITCodeLibrary):
    """The LLVM code of a helper of kernels (a `leaf` or `part`). Only kernels link it.

    LLVM optimises a kernel together with its helpers. For the helper alone, only Numba's first passes run. They reduce
    the work for each kernel that links it. Further passes and machine code would be wasted.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True


class _HelperCompiler(Compiler):
    def compile_extra(self, func: Any) -> Any:
        self.state.library = _HelperLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.flags.no_compile = True
        return super().compile_extra(func)


class _Helper(Dispatcher):
    """A `leaf` or `part`: a function without machine code of its own. Only kernels can call it, Python cannot."""

    def add_overload(self, cres: Any) -> None:
        # Numba identifies a compiled function by its entry point. A helper has none, but its description is unique.
        self.overloads[tuple(cres.signature.args)] = cres._replace(entry_point=cres.fndesc)
        self.targetctx.insert_user_function(cres.fndesc, cres.fndesc, [cres.library])

    def __call__(self, *_args: Any, **_kwargs: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} has no entry from Python: call it from a kernel")
