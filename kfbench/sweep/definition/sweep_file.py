"""The TOML file of a sweep: what it may say, and one laid over another.

A sweep may extend another one: what it says is laid over what that one says, block by block. Formats, axes, codecs and
workloads are names here; other modules of this folder know what they stand for.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec

from kfbench.errors import InvalidConfig
from kfbench.shipped import DATASETS

SWEEPS: Final = DATASETS / "sweeps"

Kind = Literal["bytes", "cpu", "metadata", "lookup", "record", "prefix", "broker", "model", "floor"]
Cache = Literal["resident", "cold"]
Illegal = Literal["refuse", "skip"]

# msgspec's words for what is wrong, and its names of types in people's.
_WRONG_TYPE: Final = re.compile(r"Expected `(.+?)`, got `(.+?)`")
_KEY: Final = re.compile(r"Object (missing required|contains unknown) field `(.+?)`")
_KINDS: Final = {
    int: "int", float: "float", str: "str", bool: "bool", list: "array", dict: "object",
    date: "date", datetime: "datetime", time: "time",
}  # fmt: skip
_TYPES: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "date": "a date",
    "datetime": "a date and time",
    "time": "a time",
}
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "measure": get_args(Kind),
    "cache": get_args(Cache),
    "illegal": get_args(Illegal),
}


class BytesSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How much each bytes cell encodes, and its floor is of: whole batches of about `records` records, `payload_bytes`
    at most."""

    records: int = 2_048
    payload_bytes: int = 1 << 18


class CpuSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How each timed cell, CPU to broker, is timed: its working set (smaller under a codec, which is so much slower),
    rounds, and the least time that one sample takes. cache: of CPU cells alone; "cold" has them wait for memory, one
    call a sample."""

    records: int = 8_192
    payload_bytes: int = 1 << 20
    codec_payload_bytes: int = 1 << 16
    rounds: int = 19
    sample_us: int = 1_000
    cache: Cache = "resident"


class ModelSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How many records of each workload the size model runs over, and how many of them a cell has at most."""

    records: int = 1_000_000_000
    cell_records: int = 1 << 25


class Grid(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """One [[grid]] block: the product of its axes, codecs and levels, for each of its formats.

    workloads: of the catalogue, in place of workload: "NAME" is its default, "NAME/VARIANT" a variant, and both may be
    patterns ("*" each default, "*/*" all that there is); batch_size is their one axis, and without it batches are their
    own. bytes, cpu, model and seeds: in place of the file's; every cell once with each seed. paths and to: of broker
    cells alone; `to` are the formats that a path converts to, if it converts. illegal: what to do where a format cannot
    have a cell (zstd or headers in v0 and v1): "refuse" the sweep, or "skip" the cell, which leaves a row that says so.
    """

    name: str
    title: str
    analysis: str
    measure: list[Kind]
    formats: list[str]
    axes: dict[str, list[Any]] = {}
    workload: str = "grid"
    workloads: list[str] = []
    bytes: BytesSettings | None = None
    cpu: CpuSettings | None = None
    model: ModelSettings | None = None
    seeds: list[int] = []
    codecs: dict[str, list[int]] = msgspec.field(default_factory=lambda: {"none": []})
    paths: list[str] = []
    to: list[str] = []
    illegal: Illegal = "refuse"


class SweepFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A sweep. publish: its reports are for publishing, and go where published ones are (docs/publish.md)."""

    title: str
    analysis: str
    grid: list[Grid]
    publish: bool = False
    seed: int = 0
    bytes: BytesSettings = BytesSettings()
    cpu: CpuSettings = CpuSettings()
    broker: CpuSettings = CpuSettings()
    model: ModelSettings = ModelSettings()


class _Over(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A file that extends another one: a profile by name, or a path beside its own that ends in .toml.

    Its words take the place of the other's, its sections key by key. A block of a name that the other has is laid over
    that block, key by key; other blocks follow. `publish` is never the other's: each file says it for itself.
    """

    extends: str
    publish: bool = False
    title: str | msgspec.UnsetType = msgspec.UNSET
    analysis: str | msgspec.UnsetType = msgspec.UNSET
    seed: int | msgspec.UnsetType = msgspec.UNSET
    grid: list[dict[str, Any]] = []
    bytes: dict[str, Any] = {}
    cpu: dict[str, Any] = {}
    broker: dict[str, Any] = {}
    model: dict[str, Any] = {}


def read(name_or_path: str | Path) -> tuple[Path, SweepFile, str]:
    """The sweep of that name (datasets/sweeps/) or at a path: where it is, what it says over what it extends, and its
    text before the other's. Raises InvalidConfig."""
    path = _find(name_or_path)
    tables, text = _tables(path)
    try:
        file = msgspec.convert(tables, SweepFile)
    except msgspec.ValidationError as error:
        raise InvalidConfig(_refusal(path, tables, error)) from None
    check_settings(f"{path}: $", file, ("bytes", "cpu", "broker", "model"))
    if file.seed < 0:
        raise InvalidConfig(f"{path}: $.seed: {file.seed} is negative")
    return path, file, text


def _tables(path: Path, extending: tuple[Path, ...] = ()) -> tuple[dict[str, Any], str]:
    """What a file says, laid over what it extends, and its text before the other's. Raises InvalidConfig."""
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
        return tables, text
    if path.resolve() in extending:
        raise InvalidConfig(f"{path}: extends: itself, by way of {' and '.join(each.name for each in extending)}")
    try:
        own = msgspec.convert(tables, _Over)
    except msgspec.ValidationError as error:
        raise InvalidConfig(_refusal(path, tables, error)) from None
    names = [block.get("name") for block in own.grid]
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidConfig(f"{path}: $.grid[{i}].name: a name is wanted, of a new block or of one to change")
        if names.count(name) > 1:
            raise InvalidConfig(f"{path}: grid {name!r} ($.grid[{i}]): name: two blocks have it")
    try:
        other = path.parent / own.extends if own.extends.endswith(".toml") else _find(own.extends)
    except InvalidConfig as error:
        raise InvalidConfig(f"{path}: extends: {error}") from None
    below, text_below = _tables(other, (*extending, path.resolve()))
    try:
        msgspec.convert(below, SweepFile)
    except msgspec.ValidationError as error:
        raise InvalidConfig(_refusal(other, below, error)) from None
    return _laid_over(below, own), f"{text}\n# {other.name}, which {path.name} extends:\n{text_below}"


def _refusal(path: Path, tables: Mapping[str, Any], error: msgspec.ValidationError) -> str:
    """Which key is wrong, and what is wanted there. msgspec says it in Python's words, ` - at ` and a place in which a
    key of the user's own is `...`."""
    said, _, place = str(error).partition(" - at ")
    keys = re.findall(r"[^.\[\]`$]+|\.\.\.", place)
    wrong_type, key = _WRONG_TYPE.fullmatch(said), _KEY.fullmatch(said)
    keys, value = _found(tables, keys, wrong_type[2] if wrong_type else None) or (keys, None)
    where = f"$.{keys[0]}" if keys else "$"
    if keys[:1] == ["grid"] and len(keys) > 1:
        name = _of(tables["grid"][int(keys[1])], "name")
        where, keys = f"grid{f' {name!r}' if isinstance(name, str) else ''} ($.grid[{keys[1]}])", keys[1:]
    where = f"{path}: {where}" + f": {'.'.join(keys[1:])}" * (len(keys) > 1)
    if wrong_type:
        wanted = " or ".join(_TYPES.get(each, each) for each in wrong_type[1].split(" | ") if each != "null")
        return f"{where}: {wanted} is wanted, not {_given(value)}"
    if key:
        return f"{where}: {key[2]}: {'missing' if key[1] == 'missing required' else 'unknown key'}"
    if choices := next((choices for name, choices in _CHOICES.items() if name in keys), None):
        return f"{where}: {said.removeprefix('Invalid enum value ')} is not one of {', '.join(choices)}"
    return f"{where}: {said}"


def check_level(where: str, default: Any, level: Any) -> None:
    """Raises InvalidConfig for a level of another type than its axis has by default (None: a whole number)."""
    wanted = int if default is None else type(default)
    if type(level) is not wanted and not (wanted is float and type(level) is int):
        raise InvalidConfig(f"{where}: {_TYPES[_KINDS[wanted]]} is wanted, not {_given(level)}")


def _given(value: Any) -> str:
    is_plain = not isinstance(value, list | dict | date | time)
    return repr(value) if is_plain else _TYPES[_KINDS[type(value)]]


def _found(value: Any, keys: Sequence[str], kind: str | None) -> tuple[list[str], Any] | None:
    """The keys with their names, and what is there; None: nothing of that kind."""
    if not keys:
        is_it = kind is None or _KINDS.get(type(value)) == kind
        return ([], value) if is_it else None
    for name in value if keys[0] == "..." and isinstance(value, dict) else keys[:1]:
        if found := _found(_of(value, name), keys[1:], kind):
            return [name, *found[0]], found[1]
    return None


def _of(value: Any, key: str) -> Any:
    if isinstance(value, list):
        return value[int(key)]
    return value.get(key) if isinstance(value, dict) else None


def _laid_over(below: Mapping[str, Any], own: _Over) -> dict[str, Any]:
    found = {**below, "publish": own.publish}
    for name in ("title", "analysis", "seed"):
        if (words := getattr(own, name)) is not msgspec.UNSET:
            found[name] = words
    for name in ("bytes", "cpu", "broker", "model"):
        if section := getattr(own, name):
            found[name] = {**found.get(name, {}), **section}
    blocks = {block["name"]: block for block in below["grid"]}
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


def check_settings(where: str, given: SweepFile | Grid, sections: Sequence[str]) -> None:
    """Raises InvalidConfig for a number of theirs below 1."""
    for section in sections:
        settings = getattr(given, section)
        for key in settings.__struct_fields__ if settings else ():
            if key != "cache" and getattr(settings, key) < 1:
                raise InvalidConfig(f"{where}.{section}.{key}: {getattr(settings, key)} is below 1")
