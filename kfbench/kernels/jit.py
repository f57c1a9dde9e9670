"""Compile kernels with Numba: decorators, the CPU features in use, and a cache of compiled code.

Numba's own cache does not notice an edit in an imported kernel, or a switch to the portable fallbacks. Here the name
of the cache folder is a hash of all kernel sources, of the processor that Numba compiles for (NUMBA_CPU_NAME and
NUMBA_CPU_FEATURES, or the host's), and of the fallbacks in use. So a stale kernel cannot be loaded.

To compile a kernel takes .1 to 3 seconds. So a kernel that is in no cache first runs as plain Python (`interpreted`),
until compiling would have been quicker. What is timed is always compiled (`compiled_only`), as is everything with
KFBENCH_COMPILE=1. With Numba's NUMBA_DISABLE_JIT=1 nothing is compiled.
"""

import gc
import hashlib
import os
import re
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path
from pickle import UnpicklingError
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final

import llvmlite
import numba
import numpy as np
from numba import njit
from numba.core import event
from numba.core.caching import IndexDataCacheFile, NullCache
from numba.core.codegen import JITCodeLibrary, get_host_cpu_features
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher, cpu_target

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


# Whether a kernel is compiled or first runs as plain Python. A kernel has 100 to 30,000 bytes of bytecode.
COMPILE_S_PER_BYTE: Final = 1e-4  # of bytecode
PLAIN_S_PER_BYTE: Final = 1e-6  # of arrays

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


WARNED: Final = "KFBENCH_CACHE_WARNED"  # an environment variable, for the processes that this one starts


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
    name, failures = Path("kfbench", f"kernels-{digest.hexdigest()[:16]}"), []
    for root in roots:
        folder = root / name
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Compiled code is loaded from this folder, so nobody else may write to it.
            if hasattr(os, "getuid") and (folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022):
                failures.append(f"{root}: others can write to {folder}")
                continue
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            failures.append(f"{root}: {error.strerror}")
            continue
        if failures:
            _warn_once(f"compiled kernels are stored in {root}, because of {'; '.join(failures)}")
        return folder
    _warn_once(f"compiled kernels are not stored, so each call takes longer ({'; '.join(failures) or 'no folder'})")
    return Path(os.devnull) / name


_has_failed = False  # to store a kernel


def are_stored() -> bool:
    """Return False if compiled kernels cannot be stored, so that each process compiles its own."""
    return not _has_failed and os.access(CACHE_FOLDER, os.W_OK)


class CacheWarning(UserWarning):
    """Compiled kernels cannot be stored in the folder that was chosen for them."""


def _warn_once(message: str) -> None:
    """Warn, unless this process or the one that started it has."""
    if not os.environ.get(WARNED):
        os.environ[WARNED] = "1"
        with suppress(CacheWarning):  # also where warnings are errors: the answer is right
            warnings.warn(message, CacheWarning, stacklevel=2)


CACHE_FOLDER = _cache_folder()


@contextmanager
def _cached_in_our_folder() -> Iterator[None]:
    """Let Numba cache in CACHE_FOLDER while this context is active. Other packages that use Numba are unaffected."""
    before = numba.config.CACHE_DIR, numba.config.CACHE_LOCATOR_CLASSES
    numba.config.CACHE_DIR = str(CACHE_FOLDER)
    numba.config.CACHE_LOCATOR_CLASSES = "UserProvidedCacheLocator"  # no other folder, such as that of the sources
    try:
        yield
    finally:
        numba.config.CACHE_DIR, numba.config.CACHE_LOCATOR_CLASSES = before


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
        global _has_failed
        try:
            Path(self._cache_path).mkdir(parents=True, exist_ok=True, mode=0o700)  # somebody may have deleted it
            self._save_data(self._file_of(key), data)
        except OSError as error:
            _has_failed = True
            _warn_once(f"compiled kernels are not stored, so each call takes longer ({CACHE_FOLDER}: {error.strerror})")

    def load(self, key: object) -> Any:
        try:
            return self._load_data(self._file_of(key))
        except (OSError, EOFError, ValueError, AttributeError, ImportError, UnpicklingError):
            return None  # not compiled yet, or the file is damaged and will be written again

    def has(self, key: object) -> bool:
        return Path(self._cache_path, self._file_of(key)).exists()

    def _file_of(self, key: object) -> str:
        return f"{self._index_name.removesuffix('.nbi')}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python code may call. Output arrays come last, and it allocates no memory."""
    if not COMPILED:
        return interpreted.kernel(function)
    try:
        with _cached_in_our_folder():
            compiled = njit(**_OPTIONS, cache=True)(function)
        compiled._cache._cache_file.__class__ = _CacheFiles
    except RuntimeError:  # the folder cannot be written
        compiled = njit(**_OPTIONS)(function)
    compiled.__class__ = _Kernel
    return compiled


def skimming(compiled: Any) -> Any:
    """Mark a kernel that reads little of its arrays of bytes, such as the headers of batches."""
    compiled.is_skimming = True
    return compiled


class _Kernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel: compiled code, or plain Python for its first calls."""

    plain_s = 0.0  # the CPU time of calls that ran as plain Python
    is_skimming = False  # see `skimming`

    def _compile_for_args(self, *arguments: Any, **named: Any) -> Any:
        """Return what Numba calls with these arguments. Numba asks if it has no compiled code for their types."""
        is_wanted = _compiled_only or os.environ.get("KFBENCH_COMPILE", "") not in ("", "0")
        is_ours = self.py_func.__module__.startswith("kfbench.")  # other kernels may do what `interpreted` does not
        if is_ours and not is_wanted and not named and not self._is_stored(arguments):
            copy = _plain_copy(self)
            expected_s = PLAIN_S_PER_BYTE * _bytes_of(arguments, self.is_skimming)
            if self.plain_s + expected_s <= COMPILE_S_PER_BYTE * copy.bytecode_bytes:
                return partial(self._run_plain, interpreted.kernel(copy.function))
        with no_garbage_collection():  # Numba makes many objects that stay: collecting would take 15 % of the time
            return super()._compile_for_args(*arguments, **named)

    def _run_plain(self, function: Callable[..., Any], *arguments: Any) -> Any:
        since_s = time.thread_time()
        try:
            return function(*arguments)
        finally:
            self.plain_s += time.thread_time() - since_s

    def _is_stored(self, arguments: tuple[Any, ...]) -> bool:
        if isinstance(self._cache, NullCache):
            return False
        types = tuple(map(self.typeof_pyval, arguments))
        return self._cache._cache_file.has(self._cache._index_key(types, self.targetctx.codegen()))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn Python's garbage collection off inside the `with` block.

    No collection is forced at the start: it would take longer than what is timed.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _bytes_of(value: Any, is_skimming: bool) -> int:
    """Return the size of arrays, which tells how long plain Python takes. A skimming kernel's bytes do not count."""
    if isinstance(value, tuple):
        return sum(_bytes_of(each, is_skimming) for each in value)
    return 0 if not isinstance(value, np.ndarray) or (is_skimming and value.dtype == np.uint8) else value.nbytes


def load_compiler() -> None:
    """Load what Numba loads when it first compiles or loads a kernel. Forks then need not: it takes half a second."""
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


_compiled_only = 0  # how many `compiled_only` are active


@contextmanager
def compiled_only() -> Iterator[None]:
    """Compile each kernel at its first call while this context is active, in all threads. What is timed needs it."""
    global _compiled_only
    _compiled_only += 1
    try:
        yield
    finally:
        _compiled_only -= 1


class _PlainCopy:
    """A copy of a kernel or helper that runs as plain Python, and calls only such copies.

    Attributes:
        bytecode_bytes: the size of its bytecode, and of that of the copies that it calls.
    """

    def __init__(self, compiled: Any) -> None:
        self.original = compiled.portable if isinstance(compiled, _Helper) else compiled.py_func
        self.function = FunctionType(self.original.__code__, {}, self.original.__name__, self.original.__defaults__)
        self._called: list[_PlainCopy] = []

    def bind(self) -> None:
        names = {name for code in _codes(self.original.__code__) for name in code.co_names}
        for name in names & self.original.__globals__.keys():
            self.function.__globals__[name] = self._plain(self.original.__globals__[name], name, names)

    def _plain(self, value: Any, name: str, names: set[str]) -> Any:
        """Return what stands in plain Python for a global. names: the names of globals and fields that are used."""
        if isinstance(value, ModuleType) and value.__name__.startswith("kfbench."):
            used = names & vars(value).keys()
            return SimpleNamespace(**{each: self._plain(vars(value)[each], each, names) for each in used})
        if isinstance(value, _Intrinsic):
            return getattr(interpreted, name, value)
        if not isinstance(value, Dispatcher):
            return value
        self._called.append(_plain_copy(value))
        return self._called[-1].function

    @cached_property
    def bytecode_bytes(self) -> int:
        found, waiting = set[_PlainCopy](), [self]
        while waiting:
            copy = waiting.pop()
            if copy not in found:
                found.add(copy)
                waiting += copy._called
        return sum(len(code.co_code) for copy in found for code in _codes(copy.original.__code__))


_plain_copies: dict[Any, _PlainCopy] = {}
_copying = threading.RLock()


def _plain_copy(compiled: Any) -> _PlainCopy:
    with _copying:
        if compiled not in _plain_copies:
            copy = _plain_copies[compiled] = _PlainCopy(compiled)
            copy.bind()  # not before, because a field that it uses may have its own name
        return _plain_copies[compiled]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the bytecode of a function, then that of the functions within it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


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


def leaf(function: Callable[..., Any], portable: Callable[..., Any] | None = None) -> Any:
    """Compile a helper of kernels that is always inlined, so that it costs no call.

    It uses LLVM's alwaysinline. Kernels with Numba's inline="always" measured up to 10 times slower.

    Args:
        portable: what stands for the function in plain Python, if the function has instructions without a twin.
    """
    return _helper(function, portable, forceinline=True) if COMPILED else function


def part(function: Callable[..., Any], portable: Callable[..., Any] | None = None) -> Any:
    """Compile a helper of kernels that is called, not inlined. It is for long helpers with many callers."""
    return _helper(function, portable) if COMPILED else function


def _helper(function: Callable[..., Any], portable: Callable[..., Any] | None, **options: bool) -> Any:
    compiled = njit(**_OPTIONS, **options, no_cpython_wrapper=True, pipeline_class=_HelperCompiler)(function)
    compiled.__class__ = _Helper
    compiled.portable = portable or function
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
