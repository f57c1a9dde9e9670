"""Check that a machine has what kfbench needs. Name the command that installs a missing part."""

import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from shutil import which
from typing import Any, Final, Literal, NamedTuple

from kfbench.errors import has_extra

MOST_CACHED_BYTES: Final = 1 << 30  # for compiled kernels of other kfbench versions; each takes about 40 MiB
LEAST_MEMORY_BYTES: Final = 2 << 30  # Spark's JVM takes 1 GiB, each of its Python workers about 200 MiB
USES: Final = {
    "sweep": "run, sweep, pack, and what-if of topics and on clusters",
    "peers": "make peers",
}
"""The uses of extras by name. The others are for research."""
INSTALL: Final = f"{shlex.quote(sys.executable)} -m pip install"


class Check(NamedTuple):
    """The result of one check.

    state: "ok", "warning" (kfbench works, but less well) or "missing". found: the text about what was found. mend: the
    text about how to fix it; "" if ok. name: `checks` sets it.
    """

    state: Literal["ok", "warning", "missing"]
    found: str
    mend: str = ""
    name: str = ""

    def to_text(self) -> str:
        lines = [f"{self.state:8} {self.name}: {self.found}"]
        if self.mend:
            lines.append(f"         mend it: {self.mend}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name} | self._asdict()


def checks() -> list[Check]:
    """Run all checks and return their results in a fixed order."""
    results: list[Check] = []
    for name, check in _CHECKS.items():
        try:
            result = check()
        except ImportError as error:  # one missing package must not hide the others
            result = Check("missing", str(error), "make setup")
        except (OSError, RuntimeError) as error:
            result = Check("missing", f"cannot be checked: {error}", "see the other lines")
        results.append(result._replace(name=name))
    return results


def _python() -> Check:
    return Check("ok", f"{platform.python_version()} ({sys.executable})")


def _packages(extra: str = "") -> Check:
    """Check the packages that an extra requires. extra "": the packages that kfbench itself requires."""
    needed, use = _requirements(extra), f", for {USES.get(extra, 'research')}" if extra else ""
    if missing := [name for name in needed if not _installed(name)]:
        wanted = f"'kfbench[{extra}]'" if extra else " ".join(missing)
        return Check("warning" if extra else "missing", f"without {', '.join(missing)}{use}", f"{INSTALL} {wanted}")
    return Check("ok", f"all {len(needed)} installed{use}")


def _requirements(extra: str) -> list[str]:
    """Return the names of the packages that an extra requires. extra "": the packages that kfbench itself requires."""
    found = []
    for line in requires("kfbench") or ():
        of_extra = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if (of_extra[1] if of_extra else "") == extra:
            found.append(re.split(r"[^\w.-]", line)[0])
    return found


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _state_without_spark_need() -> Literal["missing", "warning"]:
    """Return the state for a missing program that only Spark needs: "missing" if Spark is installed, else "warning"."""
    return "missing" if has_extra("sweep") else "warning"


def _java() -> Check:
    from kfbench.sweep.host.java import LEAST_JAVA, find_java

    java = find_java()
    if java is None:
        found = f"no Java {LEAST_JAVA} or newer in JAVA_HOME, on PATH, or packaged"
        return Check(_state_without_spark_need(), found, f"{INSTALL} 'kfbench[sweep]'")
    return Check("ok", f"{java.version} from {java.source}: {java.home}")


def _shell() -> Check:
    bash = which("bash")
    if bash is None:
        found, mend = "none on PATH; Spark starts through it", "install bash with the system's package manager"
        return Check(_state_without_spark_need(), found, mend)
    return Check("ok", bash)


def _valgrind() -> Check:
    from kfbench.measure.callgrind import valgrind_version, why_not_counted

    if reason := why_not_counted():
        return Check(
            "warning",
            reason,
            "only `kfbench run instructions` and `make ledger` need it: on Linux x86-64, install valgrind with the "
            "system's package manager",
        )
    return Check("ok", f"{valgrind_version()}, for counts of instructions")


NAME_A_FOLDER: Final = "name a writable folder: export KFBENCH_CACHE_DIR=/some/folder"


def _kernels() -> Check:
    try:
        from kfbench.kernels import CACHE_FOLDER, FAST_CRC, WIDE_CRC
        from kfbench.kernels.jit import are_stored
    except ImportError as error:
        # Numba raises this too if it can write neither to its own folder nor to the home folder.
        return Check("missing", str(error), f"make setup, or {NAME_A_FOLDER}")
    by = "AVX-512" if WIDE_CRC else "SSE4.2"
    crc = f"CRC-32C by {by}, CRC-32 by PCLMUL" if FAST_CRC else "portable CRC tables, slower"
    if not are_stored():
        return Check("warning", f"{crc}; compiled code cannot be stored, so each call takes longer", NAME_A_FOLDER)
    return Check("ok", f"{crc}; compiled code in {CACHE_FOLDER}")


def _cached_code() -> Check:
    """Measure the compiled kernels and unpacked code that other versions of kfbench left in the cache.

    Each version has its own folder. More than MOST_CACHED_BYTES is a warning.
    """
    from kfbench.kernels import CACHE_FOLDER
    from kfbench.sweep.host.packing import code_digest

    root, size_bytes = CACHE_FOLDER.parent, 0
    # Executors on this host may run from an unpacked copy of the same code.
    ours = {CACHE_FOLDER, root / f"code-{code_digest()}", Path(__file__).parents[1]}
    for folder in {*root.glob("kernels-*"), *root.glob("code-*")} - ours:
        for file in folder.rglob("*"):
            with suppress(OSError):  # another process may delete the file
                size_bytes += file.lstat().st_size if file.is_file() else 0
    found = f"{size_bytes / 2**20:,.0f} MiB of other versions of the code in {root}"
    if size_bytes > MOST_CACHED_BYTES:
        mend = f"stop all runs of kfbench, then: cd {shlex.quote(str(root))} && rm -r kernels-* code-*"
        return Check("warning", found, mend)
    return Check("ok", found)


def _codecs() -> Check:
    from kfbench.codecs import CODECS, Gzip

    found = ", ".join(f"{n} {c.version}" for n, c in CODECS.items() if n != "none")
    if not (gzip := Gzip()).is_classic:
        found += f"; gzip sizes differ from Kafka's, because {gzip.version} is not the classic zlib"
        mend = "none needed; for Kafka's gzip sizes use a Python that is built with the classic zlib"
        return Check("warning", found, mend)
    return Check("ok", found)


def _cores() -> Check:
    from kfbench.measure.container import core_limit, cores

    found, limit = str(cores()), core_limit()
    if limit < cores() or limit < 2:
        found += f" (the container's limit is {limit:g})"
    if cores() < 2:
        return Check("warning", found, "none needed; CPU figures will be noisy")
    return Check("ok", found)


def _memory() -> Check:
    from kfbench.measure.container import available_bytes, memory_limit_bytes

    available = available_bytes()
    found = f"{available / 2**30:.1f} GiB available"
    if limit_bytes := memory_limit_bytes():
        found += f" of the container's {limit_bytes / 2**30:.1f} GiB"
    if available < LEAST_MEMORY_BYTES:
        mend = f"free some memory: a sweep needs {LEAST_MEMORY_BYTES / 2**30:.0f} GiB"
        return Check("warning", found, mend)
    return Check("ok", found)


def _temporary() -> Check:
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        return Check("missing", str(error), "export TMPDIR=/some/folder")
    return Check("ok", str(folder))


_EXTRAS: Final = dict.fromkeys((*USES, *(metadata("kfbench").get_all("Provides-Extra") or ())))
_CHECKS: Final[dict[str, Callable[[], Check]]] = {
    "python": _python,
    "packages": _packages,
    **{f"extra {extra}": partial(_packages, extra) for extra in _EXTRAS},
    "java": _java,
    "bash": _shell,
    "valgrind": _valgrind,
    "kernels": _kernels,
    "cached code": _cached_code,
    "codecs": _codecs,
    "cores": _cores,
    "memory": _memory,
    "temporary files": _temporary,
}
