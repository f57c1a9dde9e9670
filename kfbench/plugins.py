"""Formats, codecs, kinds, commands, what-if tables and pages of other packages, by entry points (docs/plugins.md).

An entry point of the group `kfbench.formats` names a module with FORMATS, as those in `kfbench/formats/` have. The
other groups are alike. kfbench finds its own research in the same way.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

from kfbench.errors import KfbenchError

GROUPS: Final = ("formats", "codecs", "kinds", "commands", "whatif_tables", "views")
OURS: Final = "kfbench"
_TOLD: Final = "KFBENCH_TOLD"  # the warnings so far, one per line: processes that this one starts do not repeat them

T = TypeVar("T")


class PluginClash(KfbenchError):
    """Two packages register the same name, or a plug-in registers a name of kfbench's own."""


class PluginWarning(UserWarning):
    """A plug-in is left out: it cannot be imported, or does not have what its entry point promises."""


class Plugin(NamedTuple):
    """A package with entry points of kfbench.

    Args:
        groups: the groups, without "kfbench.".
        digest: a hash of its files (`files_of`).
    """

    name: str
    version: str
    groups: tuple[str, ...]
    digest: str


class Command(NamedTuple):
    """A command of `kfbench`: a function or a typer.Typer with commands of its own."""

    name: str
    run: Any


class EntryPoint(NamedTuple):
    """A package's entry point in one of the groups GROUPS, which names a module."""

    package: str
    version: str
    group: str
    module: str
    about: Path  # the folder with the package's metadata


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """Return the entry points of all packages, kfbench's first.

    This reads the files that PyPA's specification of entry points describes. `importlib.metadata` reads them, too, but
    takes a third of the time of `kfbench --help`.
    """
    found: dict[str, list[EntryPoint]] = {}
    for place in (place for folder in sys.path for place in Path(folder).glob("*.[de]*-info")):
        name, _, version = place.stem.partition("-")
        text = ""
        with suppress(OSError):  # most packages have none
            text = (place / "entry_points.txt").read_text(encoding="utf-8", errors="replace")
        package = re.sub(r"[-_.]+", "-", name).lower()
        found.setdefault(package, [EntryPoint(package, version, *each, place) for each in _entry_points_in(text)])
    return tuple(each for package in sorted(found, key=lambda name: (name != OURS, name)) for each in found[package])


def _entry_points_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the group and the module of each entry point of kfbench in a file."""
    whose = group = ""
    for line in text.splitlines():
        if line.startswith("["):
            whose, _, group = line.strip(" []").partition(".")
        elif whose == OURS and group in GROUPS and "=" in line and not line.startswith("#"):
            yield group, re.split(r"[:[]", line.partition("=")[2])[0].strip()


def modules(group: str) -> Iterator[tuple[str, ModuleType]]:
    """Yield the package and the module of each entry point of a group. A module that fails to import is left out."""
    for entry in _entry_points():
        if entry.group != group:
            continue
        try:
            yield entry.package, import_module(entry.module)
        except Exception as error:
            _warn_once(entry.package, f"{type(error).__name__}: {' '.join(str(error).split())}")


def _warn_once(package: str, reason: str) -> None:
    """Warn that a plug-in is left out, in this process or the one that started it."""
    words = f"plug-in {package} is left out: {reason}"
    told = os.environ.get(_TOLD, "").split("\n")
    if words not in told:
        os.environ[_TOLD] = "\n".join((*told, words))
        warnings.warn(words, PluginWarning, stacklevel=2)


class Registry(Mapping[str, T]):
    """All objects of a group by their `name`: those of kfbench first, then those of plug-ins.

    They are loaded at the first look-up, not at import: a plug-in imports the module that has the registry. Looking up
    raises PluginClash.

    Args:
        group: the group, without "kfbench.".
        attribute: the name of the tuple of objects in each module.
        of: the class of the objects.
        built_in: returns kfbench's own objects.
        is_optional: True if a module need not have the attribute.
    """

    def __init__(
        self, group: str, attribute: str, of: type, built_in: Callable[[], Iterable[T]] = tuple,
        is_optional: bool = False,
    ) -> None:  # fmt: skip
        self._group, self._attribute, self._of, self._built_in = group, attribute, of, built_in
        self._is_optional = is_optional

    def package(self, name: str) -> str:
        """Return the package that registers this name. Raises KeyError."""
        return self._named[name][0]

    @cached_property
    def _named(self) -> dict[str, tuple[str, T]]:
        """The package and the object of each name."""
        found: dict[str, tuple[str, T]] = {}
        ours: list[tuple[str, Any]] = [(OURS, each) for each in self._built_in()]
        theirs = [(package, each) for package, module in modules(self._group) for each in self._in(package, module)]
        for package, each in (*ours, *theirs):
            name: str = each.name
            if name in found:
                raise PluginClash(
                    f"{name}: {found[name][0]} and {package} both register it (kfbench.{self._group}): uninstall one"
                )
            found[name] = package, each
        return found

    def _in(self, package: str, module: ModuleType) -> Iterable[Any]:
        """Return the objects of a module. Warn and return nothing if it has no tuple of them."""
        objects = getattr(module, self._attribute, () if self._is_optional else None)
        if isinstance(objects, tuple) and all(isinstance(each, self._of) for each in objects):
            return objects
        wanted = f"{module.__name__}.{self._attribute}: a tuple of {self._of.__name__} is wanted"
        # A module that looks up in a registry, while it is imported, is seen without its tuple.
        _warn_once(package, wanted if objects is not None else f"{wanted}, and there is none yet (docs/plugins.md)")
        return ()

    def __getitem__(self, name: str) -> T:
        return self._named[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __repr__(self) -> str:
        return f"Registry({dict(self)!r})"

    @contextmanager
    def replacing(self, objects: Iterable[T]) -> Iterator[None]:
        """Within the `with` body, look up each of these objects in the place of the one with its name."""
        found = dict(self._named)
        for each in objects:
            name: str = each.name  # type: ignore[attr-defined]
            self._named[name] = found[name][0], each
        try:
            yield
        finally:
            self._named.update(found)


@cache
def plugins() -> tuple[Plugin, ...]:
    """Return the installed plug-ins, without kfbench itself."""
    packages = dict.fromkeys((each.package, each.version) for each in _entry_points() if each.package != OURS)
    return tuple(
        Plugin(
            name, version,
            groups=tuple(dict.fromkeys(each.group for each in _entry_points() if each.package == name)),
            digest=_digest(files_of(name)),
        )
        for name, version in packages
    )  # fmt: skip


def hint_of(name: str, known: Sequence[str]) -> str:
    """Return the right name that is nearest to a wrong one, and the plug-ins that are installed; "" without either."""
    from difflib import get_close_matches  # late, for a quick --help

    near = [f"did you mean {each}?" for each in get_close_matches(name, known, 1)]
    installed = [f"plug-ins: {', '.join(plugin.name for plugin in plugins())}"] if plugins() else []
    return " ".join((*near, *installed))


def files_of(package: str) -> dict[str, Path]:
    """Return the files of a plug-in, by their place below a folder of the import path.

    They are those of the modules that entry points name, where a module in a package stands for the whole package, and
    those in the package's list (RECORD). An editable installation's list has no modules.
    """
    found: dict[str, Path] = {}
    entries = [each for each in _entry_points() if each.package == package]
    for name in dict.fromkeys(entry.module.partition(".")[0] for entry in entries):
        spec = find_spec(name)
        for place in map(Path, (spec.submodule_search_locations or [spec.origin or ""]) if spec else ()):
            files = [place] if place.is_file() else sorted(place.rglob("*"))
            found |= {str(each.relative_to(place.parent)): each for each in files if each.is_file()}
    for listed in (path for about in {entry.about for entry in entries} for path in about.glob("RECORD")):
        names = (line.rsplit(",", 2)[0].strip('"') for line in listed.read_text(encoding="utf-8").splitlines())
        inside = (name for name in names if not name.startswith((listed.parent.name, "..", "/")))
        found |= {name: path for name in inside if (path := listed.parents[1] / name).is_file()}
    return {name: path for name, path in found.items() if "__pycache__" not in path.parts}


def _digest(files: Mapping[str, Path]) -> str:
    from hashlib import blake2b  # late, for a quick --help

    digest = blake2b(digest_size=8)
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
