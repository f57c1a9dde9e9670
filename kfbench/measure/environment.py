"""The environment of a measurement: host, interpreter, libraries, codecs, git revision, load.

A run's manifest is published. So names of hosts and home folders are removed from command lines and Spark URLs.
"""

import hashlib
import os
import platform
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import psutil

from kfbench.codecs import CODECS
from kfbench.kernels import FAST_CRC, WIDE_CRC
from kfbench.kernels.jit import host_vectors, kernel_vectors
from kfbench.measure.callgrind import valgrind_version
from kfbench.measure.container import cores

PACKAGES: Final = (
    "kfbench", "numpy", "numba", "llvmlite", "pyarrow", "pandas", "pyspark", "cramjam", "lz4", "zstandard", "crc32c",
)  # fmt: skip
LIBRARIES: Final = ("numpy", "numba", "llvmlite", "cramjam")  # results depend on these
HARDWARE: Final = ("machine", "cpu", "cpu_model", "cores", "cache")  # tell two machines with the same name apart
_FILE: Final = "file:"
_SYSTEM: Final = Path("/sys/devices/system/cpu/cpu0")


def host(name: str | None = None) -> str:
    """Return a hash that replaces the host name in published reports. name: None: the name of this host."""
    name = socket.gethostname() if name is None else name
    return f"host-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"


def published_command(words: Iterable[str]) -> str:
    """Join the words of a command line. Remove names of hosts and folders outside the working folder from each word."""
    return shlex.join(map(published, words))


def published(argument: str) -> str:
    """Return an argument of a command line without private parts.

    A path that leaves the working folder (absolute, `~` or `..`) is replaced by its last part. In a URL, the names of
    hosts are replaced by hashes.
    """
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    path = Path(value.removeprefix(_FILE))
    leaves = path.is_absolute() or ".." in path.parts or (path.parts[:1] and path.parts[0].startswith("~"))
    last = path.name if path.name not in ("", "..") else "."
    return option + equals + (last if leaves else without_hosts(value))


def without_hosts(url: str) -> str:
    """Replace each host in a URL, such as spark://HOST:PORT,HOST:PORT, by its hash (`environment.host`).

    Text without `://` is returned unchanged.
    """
    before, mark, rest = url.rpartition("://")
    hosts, slash, path = rest.partition("/")
    if not mark:
        return url
    hidden = ",".join(_without_host(each) for each in hosts.split(","))
    return f"{before}{mark}{hidden}{slash}{path}"


def _without_host(address: str) -> str:
    name, colon, port = address.rpartition(":")
    return f"{host(name)}:{port}" if colon and port.isdecimal() else host(address)


def kernel() -> str:
    """Return the name and version of the operating system's kernel, such as "Linux 6.18".

    Only the first two version numbers are included. The rest may identify the person who built the kernel.
    """
    return f"{platform.system()} {'.'.join(re.findall(r'[0-9]+', platform.release())[:2])}".strip()


def environment() -> dict[str, Any]:
    """Return the properties of this host and its software, ready for JSON. An unknown property is None."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    flags = _first_processor().get("flags")  # systems such as ARM have none
    return {
        "host": host(),
        "system": ", ".join(filter(None, (kernel(), " ".join(platform.libc_ver()).strip()))),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
        "cpu_model": cpu_model(),
        "cores": cores(),
        "physical_cores": psutil.cpu_count(logical=False),
        "logical_cores": psutil.cpu_count(),
        "virtual": None if flags is None else "hypervisor" in flags.split(),
        "cache": _caches(),
        "governor": _text(_SYSTEM / "cpufreq" / "scaling_governor"),
        "load_1_min": load,
        "kernel_features": kernel_features(),
        "valgrind": valgrind_version() or None,
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
        "codecs": {name: codec.version for name, codec in CODECS.items()},
        "git_revision": git_revision(),
    }


def kernel_features() -> dict[str, Any]:
    """Return the instructions that the kernels of this process use, and the widest vectors that this host has."""
    return {
        "fast_crc": FAST_CRC,
        "wide_crc": WIDE_CRC,
        "vectors": kernel_vectors(),
        "host_vectors": host_vectors(),
    }


def libraries(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of Python and of the LIBRARIES, on which results depend. Codecs are not included.

    facts: the result of `environment`.
    """
    return {"python": facts["python"]} | {name: facts["packages"].get(name) for name in LIBRARIES}


def git_revision() -> str | None:
    """Return the git commit of this code; None outside a git checkout.

    The suffix `-dirty` shows that tracked files have uncommitted changes.
    """
    folder = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--dirty", "--match="],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _caches() -> dict[str, str]:
    found = {}
    for index in sorted((_SYSTEM / "cache").glob("index*")):
        level, kind, size = (_text(index / name) for name in ("level", "type", "size"))
        if level and kind and size:
            found[f"L{level} {kind.lower()}"] = size
    return found


def last_level_cache_bytes() -> int | None:
    """Return the size in bytes of the largest cache of the first core; None if the system does not report it.

    Other cores may share this cache.
    """
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    sizes = [size for size in _caches().values() if size[:-1].isdigit() and size[-1] in units]
    return max((int(size[:-1]) * units[size[-1]] for size in sizes), default=None)


def cpu_model() -> str | None:
    """Return the processor's family and model number; None if unknown.

    The processor's name is not enough to identify it. On virtual machines, several generations of processors may have
    the same name.
    """
    processor = _first_processor()
    numbers = [f"{name.split()[-1]} {processor[name]}" for name in ("cpu family", "model") if name in processor]
    return ", ".join(numbers) or None


def _first_processor() -> dict[str, str]:
    text = (_text(Path("/proc/cpuinfo")) or "").partition("\n\n")[0]
    lines = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


@lru_cache(maxsize=1)
def _cpu_name() -> str | None:
    if name := _first_processor().get("model name"):
        return name
    from cpuinfo import get_cpu_info  # takes a second and a subprocess, so only where there is no /proc

    name = get_cpu_info().get("brand_raw")
    return str(name) if name else None
