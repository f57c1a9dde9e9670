"""Checks of the things that kfbench needs on a machine, and the command that installs a missing one."""

import os
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from shutil import which
from typing import Any, Final, Literal

from kfbench.extras import has_extra

MOST_CACHED_BYTES: Final = 1 << 30  # of kernels of other versions of the code; a version takes about 40 MiB
LEAST_MEMORY_BYTES: Final = 2 << 30  # Spark's JVM takes 1 GiB, each of its Python workers about 200 MiB
INSTALL: Final = f"{shlex.quote(sys.executable)} -m pip install"


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of one check.

    state: "ok", "warning" (kfbench works, but less well) or "missing". mend: the fix; "" if ok.
    """

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str
    mend: str = ""

    def to_text(self) -> str:
        lines = [f"{self.state:8} {self.name}: {self.found}"]
        if self.mend:
            lines.append(f"         mend it: {self.mend}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def checks() -> list[Check]:
    """Run all checks, in a fixed order."""
    return [_run_check(name, need) for name, need in _NEEDS.items()]


def _run_check(name: str, need: Callable[[], Check]) -> Check:
    try:
        return need()
    except ImportError as error:  # one missing package must not hide the others
        return Check(name=name, state="missing", found=str(error), mend="make setup")


def _python() -> Check:
    return Check(name="python", state="ok", found=f"{platform.python_version()} ({sys.executable})")


def _packages() -> Check:
    needed = _requirements("")
    if missing := [name for name in needed if not _installed(name)]:
        mend = f"{INSTALL} {' '.join(missing)}"
        return Check(name="packages", state="missing", found=f"without {', '.join(missing)}", mend=mend)
    return Check(name="packages", state="ok", found=f"all {len(needed)} installed")


def _extra(extra: str, use: str) -> Check:
    name, needed = f"extra {extra}", _requirements(extra)
    if missing := [package for package in needed if not _installed(package)]:
        found = f"without {', '.join(missing)}, for {use}"
        return Check(name=name, state="warning", found=found, mend=f"{INSTALL} 'kfbench[{extra}]'")
    return Check(name=name, state="ok", found=f"all {len(needed)} installed, for {use}")


def _requirements(extra: str) -> list[str]:
    """Return the packages that an extra requires, or kfbench without an extra if `extra` is ""."""
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
    """Return the state of a missing program that only Spark needs: a warning if Spark is not installed."""
    return "missing" if has_extra("sweep") else "warning"


def _java() -> Check:
    from kfbench.sweep.host.java import LEAST_JAVA, find_java

    java = find_java()
    if java is None:
        found = f"no Java {LEAST_JAVA} or newer in JAVA_HOME, on PATH, or packaged"
        return Check(name="java", state=_state_without_spark_need(), found=found, mend=f"{INSTALL} 'kfbench[sweep]'")
    return Check(name="java", state="ok", found=f"{java.version} from {java.source}: {java.home}")


def _shell() -> Check:
    bash = which("bash")
    if bash is None:
        found, mend = "none on PATH; Spark starts through it", "install bash with the system's package manager"
        return Check(name="bash", state=_state_without_spark_need(), found=found, mend=mend)
    return Check(name="bash", state="ok", found=bash)


def _kernels() -> Check:
    try:
        from kfbench.kernels import CACHE_FOLDER, FAST_CRC, WIDE_CRC
    except ImportError as error:
        # Numba raises this too if it can write neither to its own folder nor to the home folder.
        mend = "make setup, or name a writable folder: export KFBENCH_CACHE_DIR=/some/folder"
        return Check(name="kernels", state="missing", found=str(error), mend=mend)
    by = "AVX-512" if WIDE_CRC else "SSE4.2"
    crc = f"CRC-32C by {by}, CRC-32 by PCLMUL" if FAST_CRC else "portable CRC tables, slower"
    return Check(name="kernels", state="ok", found=f"{crc}; compiled code in {CACHE_FOLDER}")


def _cached_code() -> Check:
    """Check the size of compiled kernels and unpacked code of other versions of the code.

    Each version has its own folder. A sweep deletes folders that were not used for a month.
    """
    from kfbench.kernels import CACHE_FOLDER
    from kfbench.sweep.host.prune_cache import others

    root, size_bytes = CACHE_FOLDER.parent, 0
    for folder in others():
        for file in folder.rglob("*"):
            with suppress(OSError):  # another process may delete the file
                size_bytes += file.lstat().st_size if file.is_file() else 0
    found = f"{size_bytes / 2**20:,.0f} MiB of other versions of the code in {root}"
    if size_bytes > MOST_CACHED_BYTES:
        mend = f"stop all runs of kfbench, then: cd {shlex.quote(str(root))} && rm -r kernels-* code-*"
        return Check(name="cached code", state="warning", found=found, mend=mend)
    return Check(name="cached code", state="ok", found=found)


def _codecs() -> Check:
    from kfbench.codecs import CODECS, Gzip

    found = ", ".join(f"{n} {c.version}" for n, c in CODECS.items() if n != "none")
    if not (gzip := Gzip()).is_classic:
        found += f"; gzip sizes differ from Kafka's, because {gzip.version} is not the classic zlib"
        mend = "none needed; for Kafka's gzip sizes use a Python that is built with the classic zlib"
        return Check(name="codecs", state="warning", found=found, mend=mend)
    return Check(name="codecs", state="ok", found=found)


def _cores() -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if cores < 2:
        return Check(name="cores", state="warning", found="1", mend="none needed; CPU figures will be noisy")
    return Check(name="cores", state="ok", found=str(cores))


def _memory() -> Check:
    import psutil

    available = psutil.virtual_memory().available
    found = f"{available / 2**30:.1f} GiB available"
    if available < LEAST_MEMORY_BYTES:
        mend = f"free some memory: a sweep needs {LEAST_MEMORY_BYTES / 2**30:.0f} GiB"
        return Check(name="memory", state="warning", found=found, mend=mend)
    return Check(name="memory", state="ok", found=found)


def _temporary() -> Check:
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        return Check(name="temporary files", state="missing", found=str(error), mend="export TMPDIR=/some/folder")
    return Check(name="temporary files", state="ok", found=str(folder))


_NEEDS: Final[dict[str, Callable[[], Check]]] = {
    "python": _python,
    "packages": _packages,
    "extra sweep": partial(_extra, "sweep", "run, sweep, pack, and what-if of topics and on clusters"),
    "extra peers": partial(_extra, "peers", "make peers"),
    "java": _java,
    "bash": _shell,
    "kernels": _kernels,
    "cached code": _cached_code,
    "codecs": _codecs,
    "cores": _cores,
    "memory": _memory,
    "temporary files": _temporary,
}
