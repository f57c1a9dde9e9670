"""A sweep from its TOML file: named blocks of axes, each with the prose that the report prints beside its tables.

A wrong sweep is refused before anything runs, with its file and key: here, or in `sweep_file`, which reads the file.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.layouts import NULL_LENGTH
from kfbench.measure.cpu import READINGS
from kfbench.measure.floor import FLOOR
from kfbench.measure.paths import PATHS
from kfbench.measure.prefix import has_prefix
from kfbench.records import Shapes
from kfbench.sweep.definition.sweep_file import Grid, Kind, ModelSettings, SweepFile, check_level, check_settings, read
from kfbench.workloads import BLOCK_RECORDS, WORKLOADS, NoSuchPoint, Sample, Workload
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.catalogue import NamedWorkload

MAX_BATCH_BYTES: Final = 1_048_588  # message.max.bytes
MAX_CELLS: Final = 100_000  # of a block; these are checked in 20 seconds and measured in an hour or more
FIRST_MODEL_RECORDS: Final = 1 << 20
# Without these header fields it is another log to its readers. Others may be lost, and are counted.
NEEDED: Final = {
    "is_transactional": "transactions",
    "is_control": "control batches",
    "delete_horizon_ms": "delete horizons",
}
NOT_SENT: Final = frozenset({"is_control", "last_offset", "delete_horizon_ms"})


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The recipe of one measurement: a workload's records in several formats under one codec. Cheap to ship.

    A cell that several blocks name is measured once: `grids` maps each block to the formats that it asked for.
    batches and payload_bytes: what the records make and hold. A cell of the size model has the records start ...
    start + records - 1; every other one the first.
    """

    kind: Kind
    cell_id: str
    seed: int
    workload: Workload
    records: int
    codec: str
    level: int | None
    formats: tuple[str, ...]
    grids: Mapping[str, tuple[str, ...]]
    rounds: int = 0
    sample_us: int = 0
    cache: str = "resident"
    path: str = ""  # broker only
    to: str | None = None
    batches: int = 1
    payload_bytes: int = 0
    start: int = 0

    @cached_property
    def axes(self) -> Mapping[str, Any]:
        return axes_of(self.workload)

    @property
    def title(self) -> str:
        away = ", ".join(f"{name} {value}" for name, value in _away_from_default(self.workload).items())
        codec = self.codec if self.level is None else f"{self.codec} {self.level}"
        path = f"; {self.path}{f' to {self.to}' if self.to else ''}" if self.path else ""
        start = f"; from record {self.start:,} on" if self.start else ""
        cache = "; cold caches" if self.cache == "cold" else ""
        where = f"{self.workload.name}: {away or 'defaults'}; {codec}{path}{cache}{start}"
        return f"{self.kind} cell {self.cell_id} ({where})"

    @property
    def key(self) -> tuple[object, ...]:
        """What makes it another cell than the others of its sweep."""
        slice_ = (self.start, self.records) if self.kind == "model" else None
        return self.kind, self.cell_id, self.seed, self.codec, self.level, self.path, self.to, self.cache, slice_

    def of(self, grids: Mapping[str, tuple[str, ...]]) -> "Cell":
        """For these blocks and formats alone, which are some of its own."""
        asked = {name for formats in grids.values() for name in formats}
        return replace(self, grids=dict(grids), formats=tuple(name for name in self.formats if name in asked))


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A sweep, checked: its prose, its blocks and its cells. text: the TOML as it was read, then what it extends;
    filter: what its cells were chosen by, as it was given; publish: its reports are for publishing."""

    name: str
    title: str
    analysis: str
    seed: int
    grids: tuple[Grid, ...]
    cells: tuple[Cell, ...]
    text: str
    filter: tuple[str, ...] = ()
    publish: bool = False


def load_profile(name_or_path: str | Path) -> Profile:
    """The sweep of that name (datasets/sweeps/), or of a TOML file. Raises InvalidConfig."""
    path, file, text = read(name_or_path)
    cells: dict[tuple[object, ...], Cell] = {}
    names: set[str] = set()
    for i, grid in enumerate(file.grid):
        where = f"{path}: grid {grid.name!r} ($.grid[{i}])"
        if grid.name in names:
            raise InvalidConfig(f"{where}: name: two blocks have it")
        names.add(grid.name)
        found = list(_cells(where, grid, file))
        if not found:
            raise InvalidConfig(
                f"{where}: axes: no valid cell is left: a spread of timestamps takes two records a batch, a share of "
                f"nulls values that are not, and a broker no batch above {MAX_BATCH_BYTES:,} bytes"
            )
        for cell in found:
            cells[cell.key] = _merged(cells[cell.key], cell) if cell.key in cells else cell
    if not cells:
        raise InvalidConfig(f"{path}: grid: there is none")
    return Profile(
        name=path.stem,
        title=file.title,
        analysis=file.analysis,
        seed=file.seed,
        grids=tuple(file.grid),
        cells=tuple(cells.values()),
        text=text,
        publish=file.publish,
    )


def _cells(where: str, grid: Grid, file: SweepFile) -> Iterator[Cell]:
    codecs = _check_grid(where, grid, grid.model or file.model)
    seeds = dict.fromkeys(grid.seeds or [file.seed])
    with_floor = {"floor", "bytes"} if "floor" in grid.measure else set()
    kinds = [kind for kind in dict.fromkeys(grid.measure) if kind != "floor" or "bytes" not in grid.measure]
    for kind, point, own_seed in product(kinds, _points(where, grid), seeds):
        canonical = _canonical(point)
        cell_id = _digest(canonical)
        of_records = _canonical(replace(point, batch_size=None)) if isinstance(point, NamedWorkload) else canonical
        seed = int(_digest(of_records | ({"seed": own_seed} if own_seed else {})), 16) >> 1
        extents = {codec: _extent(file, grid, kind, codec) for codec, _ in codecs}
        batches = _batches(where, point, seed, max(records for records, _ in extents.values()))
        if batches is None:
            continue
        if kind in with_floor:  # beside the bytes of the same records, which are made once
            yield Cell(
                kind="floor",
                cell_id=cell_id,
                seed=seed,
                workload=point,
                codec="none",
                level=None,
                formats=(FLOOR,),
                grids={grid.name: (FLOOR,)},
                **batches.take(*_extent(file, grid, "floor", "none")),
            )
        if kind == "floor":
            continue
        paths = _paths(grid) if kind == "broker" else [("", None)]
        if grid.illegal == "refuse":
            for name, (path, to) in product(grid.formats, paths):
                if reason := illegal(name, batches.sample, "none", path, to):
                    raise InvalidConfig(f'{where}: formats: {reason}; give illegal = "skip" to leave such cells out')
        if kind == "model":
            formats, model = tuple(grid.formats), grid.model or file.model
            try:
                point.generate(records=1, seed=seed, start=model.records - 1)
            except InvalidConfig as error:
                raise InvalidConfig(f"{where}: model.records: {label(point)}: {error}") from None
            for start, records in _slices(point, model):
                yield Cell(
                    kind=kind,
                    cell_id=cell_id,
                    seed=seed,
                    workload=point,
                    records=records,
                    codec="none",
                    level=None,
                    formats=formats,
                    grids={grid.name: formats},
                    start=start,
                )
            continue
        timing: dict[str, Any] = {}
        if kind != "bytes":
            settings = file.broker if kind == "broker" else grid.cpu or file.cpu
            timing = {"rounds": settings.rounds, "sample_us": settings.sample_us}
            if kind == "cpu":
                timing["cache"] = settings.cache
            elif settings.cache == "cold":
                section = "broker" if kind == "broker" else "cpu"
                raise InvalidConfig(f"{where}: {section}.cache: {kind} cells have no cold mode")
        for (codec, level), (path, to) in product(codecs, paths):
            formats = tuple(name for name in grid.formats if name != to)
            yield Cell(
                kind=kind,
                cell_id=cell_id,
                seed=seed,
                workload=point,
                codec=codec,
                level=level,
                formats=formats,
                grids={grid.name: formats},
                path=path,
                to=to,
                **batches.take(*extents[codec]),
                **timing,
            )


def _slices(point: Workload, settings: ModelSettings) -> Iterator[tuple[int, int]]:
    """First record and records of each cell: as many as all before it have, from FIRST_MODEL_RECORDS up to
    cell_records, so that the cost of so many can be told at every doubling. Only the last one may end inside a batch.
    """
    unit, start = block_records(point), 0
    while start < settings.records:
        wanted = min(max(start, FIRST_MODEL_RECORDS), settings.cell_records)
        records = min(max(wanted // unit, 1) * unit, settings.records - start)
        yield start, records
        start += records


def block_records(workload: Workload) -> int:
    """Records of about a block that no batch reaches out of."""
    batch = int(axes_of(workload).get("batch_size") or 1)
    return max(BLOCK_RECORDS // batch, 1) * batch


def _paths(grid: Grid) -> list[tuple[str, str | None]]:
    """Each path, with each format that it converts to."""
    pairs: list[tuple[str, str | None]] = []
    for path in dict.fromkeys(grid.paths):
        pairs += [(path, to) for to in dict.fromkeys(grid.to)] if PATHS[path].converts else [(path, None)]
    return pairs


def _check_paths(where: str, grid: Grid) -> None:
    if ("broker" in grid.measure) != bool(grid.paths):
        raise InvalidConfig(f'{where}: paths: measure = ["broker"] and paths need each other')
    for path in grid.paths:
        if path not in PATHS:
            raise InvalidConfig(f"{where}: paths: no path {path!r} (paths: {', '.join(PATHS)})")
    converting = [path for path in grid.paths if PATHS[path].converts]
    if bool(converting) != bool(grid.to):
        raise InvalidConfig(f"{where}: to: " + (f"{converting[0]} needs formats" if converting else "no path converts"))
    for name in grid.to:
        if name not in FORMATS:
            raise InvalidConfig(f"{where}: to: no format {name!r} (formats: {', '.join(FORMATS)})")
        if grid.formats == [name]:
            raise InvalidConfig(f"{where}: to: {name} is all that there is to convert")


def _check_grid(where: str, grid: Grid, model: ModelSettings) -> list[tuple[str, int | None]]:
    """Names are known, lists have something in them; the codecs and levels of the block."""
    for key in ("measure", "formats"):
        if not getattr(grid, key):
            raise InvalidConfig(f"{where}: {key}: empty")
    for name in grid.formats:
        if name not in FORMATS:
            raise InvalidConfig(f"{where}: formats: no format {name!r} (formats: {', '.join(FORMATS)})")
        if grid.formats.count(name) > 1:
            raise InvalidConfig(f"{where}: formats: {name!r} is there twice")
    _check_paths(where, grid)
    if "model" in grid.measure:
        if set(grid.codecs) != {"none"}:
            raise InvalidConfig(f"{where}: codecs: the size model has none: there is no payload to compress")
        if unsized := [name for name in grid.formats if not FORMATS[name].capabilities.sizes_from_shapes]:
            raise InvalidConfig(f"{where}: formats: sizes of {unsized[0]} depend on what is in the headers")
    if "prefix" in grid.measure:
        if without := [name for name in grid.formats if not has_prefix(FORMATS[name])]:
            raise InvalidConfig(f"{where}: formats: {without[0]} has no headers first, and so no prefix to read")
        if "none" in grid.codecs:
            raise InvalidConfig(f"{where}: codecs.none: prefix cells compare how much is decompressed")
    if grid.workload not in WORKLOADS:
        raise InvalidConfig(f"{where}: workload: no {grid.workload!r} (workloads: {', '.join(WORKLOADS)})")
    if grid.workloads and grid.workload != "grid":
        raise InvalidConfig(f"{where}: workloads: they take the place of workload, which is there too")
    if grid.workloads and (others := grid.axes.keys() - {"batch_size"}):
        raise InvalidConfig(f"{where}: axes: workloads by name have no {min(others)!r} (axes: batch_size)")
    for kind in ("cpu", *READINGS):
        if kind in grid.measure and BASE_FORMAT not in grid.formats:
            raise InvalidConfig(f"{where}: formats: {kind} cells need {BASE_FORMAT}, the base of every ratio")
    if "record" in grid.measure and set(grid.codecs) != {"none"}:
        raise InvalidConfig(f"{where}: codecs: record cells have none: a codec has no way to one record")
    check_settings(where, grid, ("bytes", "cpu", "model"))
    if negative := [seed for seed in grid.seeds if seed < 0]:
        raise InvalidConfig(f"{where}: seeds: {negative[0]} is negative")
    codecs: list[tuple[str, int | None]] = []
    for codec, levels in grid.codecs.items():
        try:
            if codec not in CODECS:
                raise IllegalCombination(f"no codec {codec!r} (codecs: {', '.join(CODECS)})")
            asked: list[int | None] = [*levels] or [None]
            codecs += [(codec, CODECS[codec].check_level(level)) for level in asked]
            if grid.illegal == "refuse":
                for name in (*grid.formats, *grid.to):
                    FORMATS[name].check_codec(codec)
        except IllegalCombination as error:
            raise InvalidConfig(f"{where}: codecs.{codec}: {error}") from None
    codecs = list(dict.fromkeys(codecs))
    kinds = len(set(grid.measure) - {"broker", "model", "floor"}) + len(_paths(grid))
    points = (len(_named(where, grid)) if grid.workloads else 1) * prod(map(len, grid.axes.values()))
    slices = -(-model.records // max(model.cell_records, BLOCK_RECORDS)) if "model" in grid.measure else 0
    cells = points * (kinds * len(codecs) + slices + ("floor" in grid.measure)) * max(len(set(grid.seeds)), 1)
    if cells > MAX_CELLS:
        raise InvalidConfig(f"{where}: axes: {cells:,} cells, and a block may have {MAX_CELLS:,}: use fewer levels")
    return codecs


def _points(where: str, grid: Grid) -> Iterator[Workload]:
    """The points of the product that there are: one record a batch has no spread, a null value cannot turn null. Or the
    workloads by name."""
    bases: list[Workload] = [*_named(where, grid)] if grid.workloads else [WORKLOADS[grid.workload]]
    known = axes_of(bases[0])
    for axis, levels in grid.axes.items():
        if axis not in known:
            raise InvalidConfig(f"{where}: axes: {grid.workload} has no axis {axis!r} (axes: {', '.join(known)})")
        if not levels:
            raise InvalidConfig(f"{where}: axes.{axis}: empty")
        for level in levels:
            if level != "null" or not axis.endswith("_bytes"):
                check_level(f"{where}: axes.{axis}", known[axis], level)
    for base, point in product(bases, [*product(*grid.axes.values())]):
        try:
            yield _at(base, dict(zip(grid.axes, point, strict=True)))
        except NoSuchPoint:
            continue
        except InvalidConfig as error:
            raise InvalidConfig(f"{where}: axes.{error}") from None


def _named(where: str, grid: Grid) -> list[NamedWorkload]:
    """The workloads of the catalogue that match the block's patterns, each once."""
    found: dict[NamedWorkload, None] = {}
    for asked in grid.workloads:
        name, _, variant = asked.partition("/")
        named = [each for each in CATALOGUE.values() if fnmatchcase(each.name, name)]
        if not named:
            raise InvalidConfig(f"{where}: workloads: no {name!r} in the catalogue ({', '.join(CATALOGUE)})")
        if variant:
            known = [replace(each, variant=other) for each in named for other in each.variants]
            named = [each for each in known if fnmatchcase(each.variant, variant)]
            if not named:
                variants = ", ".join(dict.fromkeys(each.variant for each in known))
                raise InvalidConfig(f"{where}: workloads: {name} has no variant {variant!r} (variants: {variants})")
        found |= dict.fromkeys(named)
    return list(found)


def _at(base: Workload, axes: Mapping[str, Any]) -> Workload:
    given = {
        axis: NULL_LENGTH if level == "null" and axis.endswith("_bytes") else level for axis, level in axes.items()
    }
    assert is_dataclass(base)
    return replace(base, **given)


def illegal(format_name: str, sample: Sample, codec: str, path: str = "", to: str | None = None) -> str | None:
    """Why the format cannot have such a cell; None if it can. Headers that a conversion leaves out are a loss only."""
    shapes, capabilities = sample.shapes, FORMATS[format_name].capabilities
    if shapes.has_headers and not capabilities.headers:
        return f"{format_name} has no headers"
    for field, meaning in NEEDED.items():
        if field in sample.batch_fields.set_fields - capabilities.batch_fields:
            return f"{format_name} has no {meaning}"
    if path and sample.batch_fields.set_fields & NOT_SENT:
        return f"{path} begins with what clients send: no control batches, and none that compaction has been through"
    for name in (format_name, to):
        if name and codec not in FORMATS[name].capabilities.codecs:
            return f"{name} has no {codec}"
    return PATHS[path].missing(FORMATS[format_name], shapes) if path else None


@dataclass(frozen=True, kw_only=True)
class _Batches:
    """What a cell's records are cut from: the first batches of its workload, without payload. alike: it is one batch,
    and all others are as large."""

    sample: Sample
    alike: bool

    def take(self, records: int, payload_bytes: int) -> dict[str, Any]:
        """Whole batches of about `records` records and `payload_bytes` at most; one batch at least."""
        shapes, ends = self.sample.shapes, self.sample.bounds[1:]
        if self.alike:
            batch = len(shapes)
            count = max(1, min(-(-records // batch), payload_bytes // max(shapes.payload_bytes, 1)))
            return {"records": count * batch, "batches": count, "payload_bytes": count * shapes.payload_bytes}
        payload = _payload_until(shapes, ends)
        by_records = int(np.searchsorted(ends, records)) + 1
        by_payload = int(np.searchsorted(payload, payload_bytes, side="right"))
        last = max(0, min(by_records, by_payload, len(ends)) - 1)
        return {"records": int(ends[last]), "batches": last + 1, "payload_bytes": int(payload[last])}


def _payload_until(shapes: Shapes, ends: Int64) -> Int64:
    """int64[batches]: keys, values and headers of all records before each of these."""
    lengths = np.maximum(shapes.key_lengths, 0, dtype=np.int64) + np.maximum(shapes.value_lengths, 0)
    headers = np.maximum(shapes.header_key_lengths, 0, dtype=np.int64) + np.maximum(shapes.header_value_lengths, 0)
    found: Int64 = np.cumsum(lengths)[ends - 1]
    if len(headers):
        found = found + np.cumsum(headers)[shapes.header_bounds[ends] - 1]
    return found


def _batches(where: str, point: Workload, seed: int, records: int) -> _Batches | None:
    """None when a broker would refuse the batches of this point of a product as too large; of a workload's own batches,
    InvalidConfig."""
    axes = axes_of(point)
    by_name = isinstance(point, NamedWorkload)
    batch = -(-records // BLOCK_RECORDS) * BLOCK_RECORDS if by_name else axes["batch_size"]
    if not by_name and batch * (1 + axes.get("headers", 0)) > MAX_BATCH_BYTES:  # too large to be tried
        return None
    sample = point.generate(records=batch, seed=seed)
    if not by_name and sample.shapes.payload_bytes > MAX_BATCH_BYTES:
        return None
    largest = int(FORMATS[BASE_FORMAT].size(sample.shapes, sample.bounds, sample.batch_fields).max())
    if largest <= MAX_BATCH_BYTES:
        return _Batches(sample=sample, alike=not by_name)
    if isinstance(point, NamedWorkload) and point.batch_size is None:
        raise InvalidConfig(
            f"{where}: workloads: {label(point)}: a batch of {largest:,} bytes in {BASE_FORMAT}, and a broker takes "
            f"{MAX_BATCH_BYTES:,} (message.max.bytes)"
        )
    return None


@lru_cache(maxsize=256)
def whole_batches(workload: Workload, seed: int, records: int) -> int:
    """About so many records: as many as their last batch has, but not those of another block."""
    batch = axes_of(workload).get("batch_size")
    if batch is not None:
        return int(batch) * -(-records // int(batch))
    bounds = workload.generate(records=BLOCK_RECORDS, seed=seed).bounds
    return int(bounds[min(int(np.searchsorted(bounds, records)), len(bounds) - 1)])


def _extent(file: SweepFile, grid: Grid, kind: Kind, codec: str) -> tuple[int, int]:
    if kind == "model":
        return BLOCK_RECORDS, MAX_BATCH_BYTES
    if kind in ("bytes", "floor"):
        counted = grid.bytes or file.bytes
        return counted.records, counted.payload_bytes
    settings = file.broker if kind == "broker" else grid.cpu or file.cpu
    return settings.records, settings.payload_bytes if codec == "none" else settings.codec_payload_bytes


def label(workload: Workload) -> str:
    """As a sweep names it: NAME, or NAME/VARIANT."""
    variant = _away_from_default(workload).get("variant")
    return f"{workload.name}/{variant}" if variant else workload.name


def axes_of(workload: Workload) -> dict[str, Any]:
    """A workload's axes are the fields of its dataclass, but for its name."""
    assert is_dataclass(workload)
    return {axis.name: getattr(workload, axis.name) for axis in fields(workload) if axis.name != "name"}


def _away_from_default(point: Workload) -> dict[str, Any]:
    default = axes_of(WORKLOADS[point.name])
    return {axis: value for axis, value in sorted(axes_of(point).items()) if value != default[axis]}


def _canonical(point: Workload) -> dict[str, Any]:
    """What a cell's id is made of: axes at their default stay out, so that a new axis changes no id."""
    return {"workload": point.name, "axes": _away_from_default(point)}


def _digest(what: Mapping[str, Any]) -> str:
    text = json.dumps(what, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _merged(one: Cell, other: Cell) -> Cell:
    formats = tuple(dict.fromkeys((*one.formats, *other.formats)))
    return replace(one, formats=formats, grids={**one.grids, **other.grids})
