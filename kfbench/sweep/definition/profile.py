"""Load a profile: a sweep that is read from its TOML file and checked, with the list of its cells.

A [[grid]] block has a cell for each combination of kind, workload, seed, codec and broker path.
An invalid sweep raises InvalidConfig before anything is measured. The message names the file and the key.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from kfbench.arrays import Int64
from kfbench.errors import InvalidConfig
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.cell import Cell, axes_of, non_default_axes, workload_label
from kfbench.measure.kinds import KINDS, cell_key
from kfbench.measure.kinds.base import Amount, Extent, GridPlan, Kind, illegal
from kfbench.measure.paths import PATHS
from kfbench.records import Shapes
from kfbench.sweep.definition.grid import check_grid, named_workloads, points
from kfbench.sweep.definition.sweep_file import Grid, SweepFile, read, settings_of
from kfbench.workloads import BLOCK_RECORDS, Sample, Workload
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.recorded import RecordedTopic

MAX_BATCH_BYTES: Final = 1_048_588  # message.max.bytes
_NOT_FETCHED: Final = Extent(records=0, batches=0, payload_bytes=0)  # measuring gives a skipped row with the reason


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A checked sweep. grids: the [[grid]] blocks of its file; cells: the measurements of all blocks, each once."""

    name: str
    title: str
    analysis: str
    seed: int
    grids: tuple[Grid, ...]
    cells: tuple[Cell, ...]
    text: str  # the TOML text of its file and of the files that it extends
    filter: tuple[str, ...] = ()  # the user's filters that reduced its cells, as the user wrote them
    publish: bool = False  # True if its reports go into the folder of published reports


def load_profile(name_or_path: str | Path, workloads: Sequence[str] = ()) -> Profile:
    """Read and check a sweep, by its name in datasets/sweeps/ or by the path of a TOML file. Raises InvalidConfig.

    workloads: if given, each block measures these named workloads instead of
    its own, at the levels of its axis batch_size. Combinations that a format does not support are skipped.
    """
    path, file, text = read(name_or_path)
    if workloads:
        named_workloads("--workload", workloads)  # otherwise an error would name the sweep's file
        blocks = [
            msgspec.structs.replace(
                grid,
                workload="grid",
                workloads=list(workloads),
                axes={name: levels for name, levels in grid.axes.items() if name == "batch_size"},
                illegal="skip",
            )
            for grid in file.grid
        ]
        file = msgspec.structs.replace(file, publish=False, grid=blocks)
    cells: dict[tuple[object, ...], Cell] = {}
    names: set[str] = set()
    for i, grid in enumerate(file.grid):
        where = f"{path}: grid {grid.name!r} ($.grid[{i}])"
        if grid.name in names:
            raise InvalidConfig(f"{where}: name: two blocks have this name")
        names.add(grid.name)
        made = list(cells_of_grid(where, grid, file))
        if not made:
            raise InvalidConfig(
                f"{where}: axes: no valid cell is left: a timestamp spread needs 2 records per batch, a null share "
                f"needs values that are not null, and a broker accepts at most {MAX_BATCH_BYTES:,} bytes per batch"
            )
        for cell in made:
            key = cell_key(cell)
            cells[key] = cells[key].merge(cell) if key in cells else cell
    if not cells:
        raise InvalidConfig(f"{path}: grid: missing")
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


def cells_of_grid(where: str, grid: Grid, file: SweepFile) -> Iterator[Cell]:
    """Check a [[grid]] block at once, and return an iterator over its cells.

    The check and the iterator may raise InvalidConfig.

    where: the file and the block, for messages.
    """
    codecs = check_grid(where, grid, file)
    plans = {
        name: GridPlan(where, grid, settings_of(KINDS[name], grid, file), codecs, lambda _: _NOT_FETCHED)
        for name in dict.fromkeys(grid.measure)
    }
    return _cells(plans, grid, list(dict.fromkeys(grid.seeds or [file.seed])))


def _cells(plans: Mapping[str, GridPlan], grid: Grid, seeds: Sequence[int]) -> Iterator[Cell]:
    """Yield the cells of a checked block. A kind that rides on another one is made of the same records."""
    riders = [KINDS[name] for name in plans if KINDS[name].rides_on in plans]
    kinds = [KINDS[name] for name in plans if KINDS[name] not in riders]
    for kind, point, own_seed in product(kinds, points(next(iter(plans.values())).where, grid), seeds):
        plan, cell = plans[kind.name], _bare_cell(kind.name, point, own_seed)
        if isinstance(point, RecordedTopic) and not point.is_fetched:
            yield from _of_block(kind, cell, plan)
            continue
        amounts = [kind.amount(plan.settings, codec) for codec, _ in plan.codecs]
        most = max(amount.records for amount in amounts)
        batches = first_batches(plan.where, point, cell.seed, most, kind.most_batch_bytes)
        if batches is None:
            continue
        for rider in (rider for rider in riders if rider.rides_on == kind.name):
            yield from _of_block(rider, replace(cell, kind=rider.name), plans[rider.name]._replace(extent=batches.take))
        if grid.illegal == "refuse" and not kind.rides_on:
            names = [name for name in grid.formats if name in FORMATS]
            for name, (path, to) in product(names, kind.targets(grid)):
                if reason := illegal(name, batches.sample, "none", path if path in PATHS else "", to):
                    raise InvalidConfig(f'{plan.where}: formats: {reason}; illegal = "skip" leaves these cells out')
        yield from _of_block(kind, cell, plan._replace(extent=batches.take))


def _of_block(kind: Kind, cell: Cell, plan: GridPlan) -> Iterator[Cell]:
    for made in kind.cells(cell, plan):
        yield replace(made, grids={plan.block.name: made.formats})


def _bare_cell(kind: str, point: Workload, own_seed: int) -> Cell:
    """Return a cell that has its kind, id, seed and workload, but no size, codec or formats yet.

    The seed of a named workload does not depend on the batch size, so all batch sizes have the same records.
    """
    canonical = _canonical(point)
    same_records = canonical
    if isinstance(point, NamedWorkload):
        same_records = _canonical(replace(point, batch_size=None))
    return Cell(
        kind=kind,
        cell_id=_digest(canonical),
        seed=int(_digest(same_records | ({"seed": own_seed} if own_seed else {})), 16) >> 1,
        workload=point,
        records=0,
        codec="none",
        level=None,
        formats=(),
        grids={},
    )


def _canonical(point: Workload) -> dict[str, Any]:
    """Return the facts whose hash is a cell's id. Axes at their default are left out, so a new axis changes no id."""
    return {"workload": point.name, "axes": non_default_axes(point)}


def _digest(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=256)
def whole_batches(workload: Workload, seed: int, records: int) -> int:
    """Return `records` rounded up to the end of a batch.

    Without a value for the axis batch_size, the result is at most BLOCK_RECORDS (65,536).
    """
    batch = axes_of(workload).get("batch_size")
    if batch is not None:
        return int(batch) * -(-records // int(batch))
    bounds = workload.generate(records=BLOCK_RECORDS, seed=seed).bounds
    return int(bounds[min(int(np.searchsorted(bounds, records)), len(bounds) - 1)])


@dataclass(frozen=True, kw_only=True)
class FirstBatches:
    """The first batches of a workload, without payload. They show how many batches fit into a cell.

    is_uniform: True if the sample is one batch and all other batches have the same size.
    """

    sample: Sample
    is_uniform: bool

    def take(self, amount: Amount) -> Extent:
        """Count the whole batches, from the first one on, that fit the amount. Return their size; at least one batch.

        The last batch may exceed `amount.records`. Only a single batch may exceed `amount.payload_bytes`.
        """
        shapes, ends = self.sample.shapes, self.sample.bounds[1:]
        if self.is_uniform:
            batch = len(shapes)
            by_payload = amount.payload_bytes // max(shapes.payload_bytes, 1)
            count = max(1, min(-(-amount.records // batch), by_payload, amount.batches))
            return Extent(count * batch, count, count * shapes.payload_bytes)
        payload = _payload_until(shapes, ends)
        by_records = int(np.searchsorted(ends, amount.records)) + 1
        by_payload = int(np.searchsorted(payload, amount.payload_bytes, side="right"))
        last = max(0, min(by_records, by_payload, amount.batches, len(ends)) - 1)
        return Extent(int(ends[last]), last + 1, int(payload[last]))


def _payload_until(shapes: Shapes, ends: Int64) -> Int64:
    """Return the bytes of all keys, values and headers up to the end of each batch: int64[batches].

    ends: int64[batches], the number of records before the end of each batch.
    """
    lengths = np.maximum(shapes.key_lengths, 0, dtype=np.int64) + np.maximum(shapes.value_lengths, 0)
    headers = np.maximum(shapes.header_key_lengths, 0, dtype=np.int64) + np.maximum(shapes.header_value_lengths, 0)
    payload: Int64 = np.append(0, np.cumsum(lengths))[ends]
    if len(headers):
        payload = payload + np.append(0, np.cumsum(headers))[shapes.header_bounds[ends]]
    return payload


def first_batches(
    where: str, point: Workload, seed: int, records: int, most_bytes: int | None = None
) -> FirstBatches | None:
    """Generate the first batches of a workload, to plan its cells.

    Named workloads: whole blocks of 65,536 records, with at least `records` records. Recorded topics:
    `records` records, or all of them. Grid workloads: one batch.

    Return None if the sweep's axes make batches above `most_bytes`; None: MAX_BATCH_BYTES, a broker's limit. Raises
    InvalidConfig if a named workload without the axis batch_size has batches above this limit.

    where: the file and the block, for messages.
    """
    most_bytes = MAX_BATCH_BYTES if most_bytes is None else most_bytes
    axes = axes_of(point)
    is_named, is_recorded = isinstance(point, NamedWorkload), isinstance(point, RecordedTopic)
    batch = -(-records // BLOCK_RECORDS) * BLOCK_RECORDS if is_named else axes["batch_size"]
    if isinstance(point, RecordedTopic):
        batch = min(records, point.recorded)
    elif not is_named and batch * (1 + axes.get("headers", 0)) > most_bytes:  # too large to generate
        return None
    sample = point.generate(records=batch, seed=seed)
    if not (is_named or is_recorded) and sample.shapes.payload_bytes > most_bytes:
        return None
    largest_bytes = int(FORMATS[BASE_FORMAT].size(sample.shapes, sample.bounds, sample.batch_fields).max())
    if largest_bytes <= most_bytes:
        return FirstBatches(sample=sample, is_uniform=not (is_named or is_recorded))
    if isinstance(point, NamedWorkload) and point.batch_size is None:
        raise InvalidConfig(
            f"{where}: workloads: {workload_label(point)}: a batch has {largest_bytes:,} bytes in {BASE_FORMAT}, but a "
            f"broker accepts at most {most_bytes:,} (message.max.bytes)"
        )
    return None
