"""Write an archive with everything that a Spark executor needs: Python, packages, kfbench and its datasets.

    bin/python          a script that starts the interpreter in the same folder
    lib/pythonX.Y       the standard library; lib/ also has libpython where the interpreter is built that way
    packages/           the packages that kfbench needs on an executor
    code/kfbench        kfbench itself, datasets included

PySpark is not in the archive, because the cluster's Spark provides it. Shared libraries of the system are not in the
archive either. So the cluster's hosts need the same processor architecture as this machine. Their C library and OpenSSL
must not be older than ours.

Numba stores compiled kernels under the path of their source, but each executor unpacks the archive into a new folder.
So `bin/python` first copies kfbench to a permanent folder. Otherwise every executor would compile for minutes.

Not pex: it ships an interpreter only by downloading one from GitHub, of another version than the driver's, but
executors whose Python differs are refused. The copy, the digest, the data and the plug-ins would be left to us.
"""

import hashlib
import io
import os
import re
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

import kfbench
from kfbench.errors import KfbenchError, require_extra
from kfbench.plugins import files_of, plugins
from kfbench.shipped import DATASETS

DRIVER_ONLY: Final = frozenset({"jinja2", "typer"})
SHIPPED: Final = ("golden", "sweeps", "workloads")
_NO_RESULT: Final = (  # no result depends on these files; sweeps are here because a run stores the text of its sweep
    "code/kfbench/present/",
    "code/kfbench/report/",
    "code/kfbench/cli/",
    "code/kfbench/doctor.py",
    "code/kfbench/datasets/golden/",
    "code/kfbench/datasets/sweeps/",
)
LEFT_OUT: Final = ("ensurepip", "idlelib", "lib2to3", "test", "tkinter", "turtledemo", "site-packages", "dist-packages")
_CACHE: Final = "__pycache__"
ENDING: Final = ".tar.gz"
_LEVEL: Final = 1  # gzip level 1 takes a third of the time of level 6 and makes the archive a tenth larger

# mv -T fails if another executor was faster, so its copy stays. The test -O makes sure that this user owns the code.
_START: Final = """\
#!/bin/sh
# Written by kfbench pack.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd -P) || exit 1
code=$here/code
for cache in "$KFBENCH_CACHE_DIR" "$XDG_CACHE_HOME" "${{HOME:+$HOME/.cache}}" "${{TMPDIR:-/tmp}}/kfbench-$(id -u)"; do
    [ -n "$cache" ] || continue
    kept=$cache/kfbench/code-{digest}
    if ! [ -O "$kept" ]; then
        mkdir -p "$cache/kfbench" 2>/dev/null || continue
        copy=$(mktemp -d "$cache/kfbench/code.XXXXXX" 2>/dev/null) || continue
        cp -Rp "$here/code/." "$copy" && mv -T "$copy" "$kept" 2>/dev/null
        rm -rf "$copy"
    fi
    if [ -O "$kept" ]; then
        code=$kept
        break
    fi
done
export PYTHONPATH="$code:${{PYTHONPATH:+$PYTHONPATH:}}$here/packages" PYTHONNOUSERSITE=1
export LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$here/bin/{interpreter}" "$@"
"""


class CannotPack(KfbenchError):
    """The archive cannot be written: a file of Python or of a package is missing, or the archive's name is invalid."""


@dataclass(frozen=True, kw_only=True)
class PackedArchive:
    path: Path
    size_bytes: int
    files: int

    def to_text(self) -> str:
        return f"{self.path}: {self.files:,} files, {self.size_bytes / 1e6:,.0f} MB"


Tracked = Callable[[Sequence[Any], str], Iterable[Any]]


def pack(path: Path, tracked: Tracked | None = None) -> PackedArchive:
    """Write the archive to `path`, which must end in .tar.gz. The file appears when it is complete.

    tracked: a function of items and a caption that yields the items and shows the progress.

    Raises MissingExtra without the extra `sweep` (Spark), CannotPack, OSError.
    """
    require_extra("sweep")
    if not path.name.endswith(ENDING):
        raise CannotPack(f"{path}: the name must end in {ENDING}, because Spark unpacks by the name")
    files = sorted({**_python(), **_packages(), **_code()}.items())
    listed = tracked(files, "pack") if tracked else files
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        unfinished = Path(folder, path.name)
        with tarfile.open(unfinished, "w:gz", compresslevel=_LEVEL) as archive:
            start = _START.format(digest=code_digest(), interpreter=_interpreter().name).encode()
            entry = tarfile.TarInfo("bin/python")
            entry.size, entry.mode = len(start), 0o755
            archive.addfile(entry, io.BytesIO(start))
            for name, file in listed:
                archive.add(file.resolve(), name, recursive=False, filter=_without_owner)
        unfinished.replace(path)
    return PackedArchive(path=path, size_bytes=path.stat().st_size, files=len(files) + 1)


def code_digest() -> str:
    """Return a hash of the code and data that results depend on, those of plug-ins, too.

    It does not depend on the folders of the packages.
    """
    digest = hashlib.blake2b(digest_size=8)
    for name, file in sorted(_code().items()):
        if file.suffix in (".py", ".toml") and not name.startswith(_NO_RESULT):
            digest.update(f"{name}\0{file.stat().st_size}\0".encode())
            digest.update(file.read_bytes())
    for plugin in plugins():
        digest.update(f"{plugin.name}\0{plugin.version}\0{plugin.digest}\0".encode())
    return digest.hexdigest()


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _interpreter() -> Path:
    """Return the path of the interpreter itself, not of a link in a virtual environment."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))


def _python() -> dict[str, Path]:
    """Return the files of the interpreter, its shared library and the standard library, by name in the archive."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sysconfig.get_path("stdlib"))
    if not (library / "os.py").is_file():
        raise CannotPack(f"{library}: no standard library in this folder: use a Python that is installed as files")
    found = {f"bin/{_interpreter().name}": _interpreter()}
    for file in _files(library, (*LEFT_OUT, _CACHE)):
        name = file.relative_to(library)
        if not name.parts[0].startswith("config-"):
            found[f"lib/{version}/{name}"] = file
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        shared = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
        found[f"lib/{shared.name}"] = shared
    return found


def _packages() -> dict[str, Path]:
    """Return the files of plug-ins, and of all that these and kfbench need, by name in the archive.

    Raises CannotPack for a package without a list of its files.
    """
    names = [plugin.name for plugin in plugins()]
    found = {f"packages/{name}": path for plugin in names for name, path in files_of(plugin).items()}
    for each in _needed("kfbench", *names):
        if each.files is None:
            raise CannotPack(f"{each.name}: no list of its files: install it with pip")
        if each.name == "kfbench":
            continue
        for file in each.files:
            place = Path(str(each.locate_file(file)))
            if ".." not in file.parts and _CACHE not in file.parts and place.is_file():
                found[f"packages/{file}"] = place
    return found


def _needed(*roots: str) -> Iterator[Distribution]:
    """Yield packages and all their direct and indirect dependencies.

    Extras, DRIVER_ONLY packages and packages that are not installed (such as those for other platforms) are left out.
    """
    wanted, seen = [*roots], set(DRIVER_ONLY)
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            each = distribution(name)
        except PackageNotFoundError:
            continue
        yield each
        needs = [need for need in each.requires or () if "extra ==" not in need]
        wanted += [re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", need)[0]).lower() for need in needs]


def _code() -> dict[str, Path]:
    """Return kfbench's code, datasets and package metadata (its version), by name in the archive."""
    package = Path(kfbench.__file__).parent
    found = {f"code/kfbench/{file.relative_to(package)}": file for file in _files(package, (_CACHE,))}
    for part in SHIPPED:
        files = _files(DATASETS / part, (_CACHE,))
        found |= {f"code/kfbench/datasets/{file.relative_to(DATASETS)}": file for file in files}
    about = distribution("kfbench")
    for file in about.files or ():
        # These have the version and the research. direct_url.json is left out: it may name a folder of this machine.
        if file.name in ("METADATA", "WHEEL", "entry_points.txt"):
            found[f"packages/{file}"] = Path(str(about.locate_file(file)))
    return found


def _files(folder: Path, left_out: Iterable[str]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - set(left_out))
        yield from (Path(place, name) for name in names)
