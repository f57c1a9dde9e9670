"""Read the TOML file of a sweep, and merge it with the file that it extends.

A block is one [[grid]] table. Files are merged block by block. This module checks keys and types. Other modules of this
folder check the names of formats, axes, codecs and workloads.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import msgspec

from kfbench.errors import InvalidConfig
from kfbench.measure.cpu import Operation
from kfbench.measure.kinds import KINDS
from kfbench.measure.kinds.base import GridBlock, Illegal, Kind
from kfbench.measure.kinds.cpu import Cache, Context
from kfbench.plugins import OURS, PluginClash, hint_of
from kfbench.shipped import DATASETS

SWEEPS: Final = DATASETS / "sweeps"

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "cache": get_args(Cache),
    "contexts": get_args(Context),
    "illegal": get_args(Illegal),
    "operations": get_args(Operation),
}


class _FileKeys(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The content of a sweep's file, with the tables SECTIONS.

    publish: True if its reports go into the published folder (docs/publish.md).
    """

    title: str
    analysis: str
    grid: list[GridBlock]
    publish: bool = False
    seed: int = 0


class _Extension(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The content of a sweep's file that extends another file.

    Its title, analysis and seed replace the values of the other file. Its sections (see SECTIONS) replace single keys
    of the other file's sections. A [[grid]] block with the name of an existing block replaces single keys of that
    block. Other blocks are added. `publish` is never inherited.

    extends: the name of a profile, or a path that ends in .toml and is relative to this file.
    """

    extends: str
    publish: bool = False
    title: str | msgspec.UnsetType = msgspec.UNSET
    analysis: str | msgspec.UnsetType = msgspec.UNSET
    seed: int | msgspec.UnsetType = msgspec.UNSET
    grid: list[dict[str, Any]] = []


def _sections() -> dict[str, Kind]:
    """Return a kind for each table. Raises PluginClash for a table that is another kind's, or a key of sweep files."""
    found: dict[str, Kind] = {}
    keys = {*GridBlock.__struct_fields__, *_FileKeys.__struct_fields__, *_Extension.__struct_fields__}
    for kind in KINDS.values():
        other = found.setdefault(kind.section, kind)
        if other.settings != kind.settings or kind.section in keys or not kind.section.isidentifier():
            owner, holder = KINDS.package(kind.name), OURS if other is kind else KINDS.package(other.name)
            raise PluginClash(f"{kind.section}: no table for {kind.name} of {owner}: it is {holder}'s, or not one word")
    return found


# The TOML tables with the settings of kinds, by name -> a kind that reads the table.
SECTIONS: Final[Mapping[str, Kind]] = _sections()


def _with_sections(
    base: type[msgspec.Struct],
    name: str,
    type_: Callable[[Kind], Any],
    default: Callable[[Kind], Any],
    more: Iterable[tuple[str, Any]] = (),
) -> Any:
    """Return a subclass that also has the tables SECTIONS. more: further fields, each a name and a type."""
    sections = [(section, type_(kind), default(kind)) for section, kind in SECTIONS.items()]
    return msgspec.defstruct(
        name, [*more, *sections], bases=(base,), forbid_unknown_fields=True, kw_only=True, frozen=True
    )


if TYPE_CHECKING:
    Grid = GridBlock
    SweepFile = _FileKeys
else:
    Grid = _with_sections(GridBlock, "Grid", lambda kind: kind.settings | None, lambda _: None)
    SweepFile = _with_sections(
        _FileKeys, "SweepFile", lambda kind: kind.settings, lambda kind: kind.settings(), [("grid", list[Grid])]
    )
_EXTENSION: Final = _with_sections(_Extension, "Extension", lambda _: dict[str, Any], lambda _: {})


def settings_of(kind: Kind, grid: Grid, file: SweepFile) -> Any:
    """Return the settings of a kind in a block: its own, or else those of its file."""
    return getattr(grid, kind.section) or getattr(file, kind.section)


class ReadSweep(NamedTuple):
    """A sweep file, merged with the files that it extends. text: the TOML text of all these files, joined."""

    path: Path
    file: SweepFile
    text: str


def read(name_or_path: str | Path) -> ReadSweep:
    """Read a sweep by its name in datasets/sweeps/, or from the path of a TOML file. Raises InvalidConfig."""
    path = _find(name_or_path)
    tables, text = _tables(path)
    try:
        file = msgspec.convert(tables, SweepFile)
    except msgspec.ValidationError as error:
        raise InvalidConfig(_refusal(path, tables, error)) from None
    check_settings(f"{path}: $", file)
    if file.seed < 0:
        raise InvalidConfig(f"{path}: $.seed: {file.seed} is negative")
    return ReadSweep(path, file, text)


class _Tables(NamedTuple):
    tables: dict[str, Any]
    text: str


def _tables(path: Path, extending: tuple[Path, ...] = ()) -> _Tables:
    """Read a file and merge it with the files that it extends, directly or through others. Raises InvalidConfig.

    extending: the files that extend this file, to find a file that extends itself.
    """
    try:
        text = path.read_text(encoding="utf-8")
        tables: dict[str, Any] = msgspec.toml.decode(text)
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path}: cannot be read: {error}") from None
    except msgspec.DecodeError as error:
        raise InvalidConfig(f"{path}: {error}") from None
    if "extends" not in tables:
        return _Tables(tables, text)
    if path.resolve() in extending:
        raise InvalidConfig(
            f"{path}: extends: the file extends itself through {' and '.join(each.name for each in extending)}"
        )
    try:
        own = msgspec.convert(tables, _EXTENSION)
    except msgspec.ValidationError as error:
        raise InvalidConfig(_refusal(path, tables, error)) from None
    names = [block.get("name") for block in own.grid]
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidConfig(f"{path}: $.grid[{i}].name: a name is wanted, of a new block or of a block to change")
        if names.count(name) > 1:
            raise InvalidConfig(f"{path}: grid {name!r} ($.grid[{i}]): name: two blocks have this name")
    try:
        other = path.parent / own.extends if own.extends.endswith(".toml") else _find(own.extends)
    except InvalidConfig as error:
        raise InvalidConfig(f"{path}: extends: {error}") from None
    base, base_text = _tables(other, (*extending, path.resolve()))
    try:
        msgspec.convert(base, SweepFile)
    except msgspec.ValidationError as error:
        raise InvalidConfig(_refusal(other, base, error)) from None
    return _Tables(_merge(base, own), f"{text}\n# {other.name}, which {path.name} extends:\n{base_text}")


def _refusal(path: Path, tables: Mapping[str, Any], error: msgspec.ValidationError) -> str:
    """Return msgspec's error message with the file, the name of the block, and the right keys or values.

    msgspec's message is `PROBLEM - at PLACE`. In PLACE, `[...]` stands for a key that the user chose.
    """
    problem, _, place = str(error).partition(" - at ")
    place = place.strip("`") or "$"
    of_block = re.match(r"\$\.grid\[(\d+)\]", place)
    block = tables["grid"][int(of_block[1])] if of_block else None
    if of_block and isinstance(block, dict) and "name" in block:
        key = place.removeprefix(of_block[0]).removeprefix(".")
        place = f"grid {block['name']!r} ({of_block[0]})" + f": {key}" * bool(key)
    if unknown := re.search("unknown field `(.+?)`", problem):
        hint = hint_of(unknown[1], [*(GridBlock if of_block else _FileKeys).__struct_fields__, *SECTIONS])
        problem += f" ({hint})" * bool(hint)
    if "enum" in problem and (choices := next((known for name, known in _CHOICES.items() if name in place), None)):
        problem += f": it is not one of {', '.join(choices)}"
    return f"{path}: {place}: {problem}"


def check_level(where: str, default: Any, level: Any) -> None:
    """Raise InvalidConfig if a level (a value of an axis) does not have the type of the axis's default.

    If the default is None, the level must be a whole number. A float axis also accepts whole numbers.
    """
    try:
        msgspec.convert(level, int if default is None else type(default))
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{where}: {level!r}: {error}") from None


def _merge(base: Mapping[str, Any], own: _Extension) -> dict[str, Any]:
    found = {**base, "publish": own.publish}
    for name in ("title", "analysis", "seed"):
        if (value := getattr(own, name)) is not msgspec.UNSET:
            found[name] = value
    for name in SECTIONS:
        if section := getattr(own, name):
            found[name] = {**found.get(name, {}), **section}
    blocks = {block["name"]: block for block in base["grid"]}
    for block in own.grid:
        blocks[block["name"]] = {**blocks.get(block["name"], {}), **block}
    found["grid"] = list(blocks.values())
    return found


def _find(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml" or len(path.parts) > 1:
        return path
    named = SWEEPS / f"{path}.toml"
    if not named.is_file():
        known = ", ".join(sorted(each.stem for each in SWEEPS.glob("*.toml")))
        raise InvalidConfig(f"{name_or_path}: no such profile (profiles: {known}; or a path that ends in .toml)")
    return named


def check_settings(where: str, given: SweepFile | Grid) -> None:
    """Raise InvalidConfig if a number of a section is out of range. where: the file and the table, for messages.

    Numbers must be 1 or more. Kinds have ranges for the numbers in lists. Lists are not empty and repeat nothing.
    """
    for section, kind in SECTIONS.items():
        settings = getattr(given, section)
        for key in settings.__struct_fields__ if settings else ():
            value, place = getattr(settings, key), f"{where}.{section}.{key}"
            if isinstance(value, tuple):
                _check_list(place, value, kind.ranges.get(key))
            elif isinstance(value, int | float) and value < 1:
                raise InvalidConfig(f"{place}: {value} is below 1")


def _check_list(place: str, values: Sequence[Any], ends: tuple[float, float] | None) -> None:
    if not values:
        raise InvalidConfig(f"{place}: empty")
    for value in values:
        if ends and not ends[0] <= value <= ends[1]:
            raise InvalidConfig(f"{place}: {value} is not within {ends[0]} to {ends[1]}")
        if values.count(value) > 1:
            raise InvalidConfig(f"{place}: {value} is listed twice")
