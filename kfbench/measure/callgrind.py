"""Count the instructions of calls with callgrind, a tool of valgrind. The counts repeat on a busy machine.

The process that counts runs under valgrind (`command`), which always gives the same addresses. What else would move a
count is fixed (`ENVIRONMENT`), such as the processor that kernels are compiled for. `count_calls` warms the arms up,
then switches the counting on and off around each call. Callgrind writes one file per arm, which `read_counts` adds up
by the library that the instructions belong to.

Source: the client requests of valgrind.h and callgrind.h, and "Callgrind Format Specification", in valgrind's manual.
"""

import ctypes
import mmap
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from kfbench.kernels.jit import no_garbage_collection
from kfbench.measure.cpu import Arm

WARM_UP_CALLS: Final = 5  # of each arm; Python rewrites the bytecode of all arms during the first eight
COUNTED_CALLS: Final = 5  # their mean counts; with a file per call, for a median, counts repeated worse (1.6 %)
OLDEST_VALGRIND: Final = (3, 19)
PROCESSOR: Final = "haswell"  # AVX2 without AVX-512, which valgrind cannot run
FEATURES: Final = (
    "+64bit,+adx,+aes,+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fsgsbase,+fxsr,+lzcnt,+mmx,+movbe,"
    "+pclmul,+popcnt,+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave"
)
KERNELS: Final = {
    "NUMBA_CPU_NAME": PROCESSOR,
    "NUMBA_CPU_FEATURES": FEATURES,
    "NUMBA_DISABLE_JIT": "0",
    "KFBENCH_PORTABLE": "0",
}
ENVIRONMENT: Final = KERNELS | {
    "PYTHONHASHSEED": "0",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    # libc copies in one way, whatever the processor's caches hold. An array begins on a page of its own, because its
    # place moves what NumPy does with it.
    "GLIBC_TUNABLES": (
        "glibc.cpu.x86_rep_movsb_threshold=100000000:glibc.cpu.x86_non_temporal_threshold=1000000000:"
        "glibc.malloc.mmap_threshold=4096:glibc.malloc.trim_threshold=1073741824"
    ),
}
# Size, ways and line size in bytes of the simulated caches: those of the processor that kernels are compiled for.
_CACHES: Final = {"I1": "32768,8,64", "D1": "32768,8,64", "LL": "8388608,16,64"}
# Lines of callgrind's file: an object (of a called function: "cob"), a call with the cost of what it called, own costs.
_LINES: Final = re.compile(
    r"^(?:(c?ob)=\((\d+)\)(?: (.+))?|calls=.*\n.*|[-+*\d]\S* (.+))$",
    re.MULTILINE,
)
_MISSES: Final = (("I1mr", "D1mr", "D1mw"), ("ILmr", "DLmr", "DLmw"))
_PARTS: Final = re.compile(
    r"(?P<library>-packages/(?:cramjam|lz4|xxhash|zstandard)/|/(?:libz|zlib)\.)"
    r"|(?P<python>/(?:libpython|python|_ctypes\.|libffi|libc[.-]|libm[.-]|libpthread|ld-)[^/]*$)"
)

# `rol` four times and `xchg rbx, rbx`: the machine code in which valgrind finds a request. Without valgrind it does
# nothing. rdi: the address of the request, a number and five arguments.
_REQUEST_CODE: Final = bytes.fromhex("4889f831d248c1c70348c1c70d48c1c73d48c1c7334887db4889d0c3")
_RUNNING: Final = 0x1001
_ZERO, _TOGGLE, _DUMP, _START, _STOP = (0x43540000 + number for number in range(1, 6))

L1_CYCLES, LAST_LEVEL_CYCLES = 10, 100


class CallCounts(NamedTuple):
    """The counts of one call.

    Args:
        kernel_instructions: the instructions of kernels and NumPy. They repeat.
        library_instructions: those of the codec's library. They repeat, too.
        python_instructions: those of Python and libc, around the kernels. They vary by up to some percent, because
            Python rewrites bytecode in some calls.
        l1_misses: simulated misses of the first-level caches, for instructions and data.
        last_level_misses: simulated misses of the last-level cache.
    """

    kernel_instructions: int
    library_instructions: int
    python_instructions: int
    l1_misses: int
    last_level_misses: int


def estimated_cycles(instructions: float, l1_misses: float, last_level_misses: float) -> float:
    """Return callgrind's estimate of the cost. It knows neither branches nor instructions that run side by side."""
    return instructions + L1_CYCLES * l1_misses + LAST_LEVEL_CYCLES * last_level_misses


@lru_cache
def why_not_counted() -> str | None:
    """Return the reason why instructions cannot be counted here; None if they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "instructions are counted on Linux x86-64 only"
    if not shutil.which("valgrind"):
        return "instructions are counted by valgrind, which is not installed (Debian's package valgrind)"
    wanted = ".".join(map(str, OLDEST_VALGRIND))
    found = re.search(r"(\d+)\.(\d+)", valgrind_version())
    if not found:
        return f"instructions are counted by valgrind {wanted} or newer, but `valgrind --version` names none"
    if tuple(map(int, found.groups())) < OLDEST_VALGRIND:
        return f"instructions are counted by valgrind {wanted} or newer, but {found[0]} is installed"
    return None


@lru_cache
def valgrind_version() -> str:
    """Return what `valgrind --version` prints, such as "valgrind-3.19.0"; empty if it fails."""
    try:
        done = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def command(folder: Path) -> tuple[str, ...]:
    """Return the words that run a program under callgrind, which writes its files into `folder`."""
    caches = (f"--{name}={sizes}" for name, sizes in _CACHES.items())
    return (
        "valgrind", "--command-line-only=yes", "--quiet", "--log-file=/dev/null", "--tool=callgrind",
        "--instr-atstart=no", "--collect-atstart=no",
        "--dump-line=no", "--cache-sim=yes", *caches, "--vgdb=no", f"--callgrind-out-file={folder / 'counts'}",
    )  # fmt: skip


def count_calls(arms: Sequence[Arm]) -> None:
    """Count COUNTED_CALLS calls of each arm, in a process that callgrind runs. It writes one file per arm.

    Callgrind is on only during the calls, because Python would be 50 times slower otherwise. The first call of each arm
    does not count. The first arm runs once more before all, else it would fill the simulated caches for the others.
    """
    if not _ask(_RUNNING):
        raise RuntimeError("this process does not run under valgrind")
    for arm in arms:
        for _ in range(WARM_UP_CALLS):
            arm.before()
            arm.call()
        arm.verify()
    with no_garbage_collection():
        _ask(_START)
        for i, arm in enumerate((arms[0], *arms)):
            for call in range(1 + COUNTED_CALLS):
                arm.before()
                if call == 1:
                    _ask(_ZERO)
                _ask(_TOGGLE)
                arm.call()
                _ask(_TOGGLE)
            if i:
                _ask(_DUMP, f"arm {i - 1}")
        _ask(_STOP)


def read_counts(folder: Path, arms: int) -> list[CallCounts]:
    """Return the mean counts of a call of each arm, from the files that callgrind wrote into the folder.

    Raises OSError if a file is missing or was cut short.
    """
    found = {}
    for file in folder.glob("counts.*"):
        text = file.read_text(encoding="utf-8", errors="replace")
        if arm := re.search(r"^desc: Trigger: Client Request: arm (\d+)$", text, re.MULTILINE):
            found[int(arm[1])] = CallCounts(*(round(total / COUNTED_CALLS) for total in _totals(text)))
    if sorted(found) != list(range(arms)):
        raise OSError(f"callgrind wrote the counts of {len(found)} calls instead of {arms}")
    return [found[arm] for arm in range(arms)]


def _totals(text: str) -> CallCounts:
    """Add up one file of callgrind. A line of costs has a position and a number per event, without zeros at the end."""
    events = " ".join(re.findall(r"^events: (.*)$", text, re.MULTILINE)).split()
    sums = defaultdict[str, Counter[str]](Counter)  # part of the program -> event -> count
    parts = dict[str, str]()
    totals = sums[""]
    for line in _LINES.finditer(text):
        key, number, path, costs = line.groups()
        if costs:
            for event, count in zip(events, costs.split(), strict=False):
                totals[event] += int(count)
        elif key:  # the first line of an object has its path and number, the others only its number
            if path:
                found = _PARTS.search(path)
                parts[number] = found.lastgroup or "" if found else ""
            if key == "ob":
                totals = sums[parts[number]]
    if not re.search(rf"^totals: {sum(part['Ir'] for part in sums.values())}\b", text, re.MULTILINE):
        raise OSError("a file of callgrind was cut short: its total is not the sum of its lines")
    l1, last = (sum(part[event] for part in sums.values() for event in misses) for misses in _MISSES)
    return CallCounts(sums[""]["Ir"], sums["library"]["Ir"], sums["python"]["Ir"], l1, last)


def _ask(number: int, text: str = "") -> int:
    """Send a client request to valgrind. Return its answer; 0 without valgrind."""
    encoded = ctypes.create_string_buffer(text.encode())
    request = (ctypes.c_ulong * 6)(number, ctypes.addressof(encoded))
    return int(_requester()(ctypes.addressof(request)))


@lru_cache
def _requester() -> "ctypes._FuncPointer":
    code = mmap.mmap(-1, len(_REQUEST_CODE), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_REQUEST_CODE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    function = ctypes.PYFUNCTYPE(ctypes.c_ulong, ctypes.c_void_p)(address)
    function.code = code  # type: ignore[attr-defined]  # it must live as long as the function
    return function
