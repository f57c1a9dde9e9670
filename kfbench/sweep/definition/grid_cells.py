"""List the cells of one [[grid]] block of a sweep.

A block has a cell for each combination of kind, workload, seed, codec and broker path.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.measure.cell import Cell, non_default_axes
from kfbench.measure.kinds import KINDS
from kfbench.measure.kinds.base import Extent, Kind, Plan, illegal
from kfbench.measure.paths import PATHS
from kfbench.sweep.definition.batch_plan import first_batches
from kfbench.sweep.definition.check_grid import check_grid
from kfbench.sweep.definition.points import points
from kfbench.sweep.definition.sweep_file import Grid, SweepFile, settings_of
from kfbench.workloads import Sample, Workload
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.recorded.topics import RecordedTopic

_NOT_FETCHED: Final = Extent(records=0, batches=0, payload_bytes=0)  # measuring gives a skipped row with the reason


def cells_of_grid(where: str, grid: Grid, file: SweepFile) -> Iterator[Cell]:
    """Check a [[grid]] block at once, and return an iterator over its cells.

    The check and the iterator may raise InvalidConfig.

    where: the file and the block, for messages.
    """
    codecs = check_grid(where, grid, file)
    plans = {
        name: Plan(where, grid, settings_of(KINDS[name], grid, file), codecs, lambda _: _NOT_FETCHED)
        for name in dict.fromkeys(grid.measure)
    }
    return _cells(plans, grid, list(dict.fromkeys(grid.seeds or [file.seed])))


def _cells(plans: Mapping[str, Plan], grid: Grid, seeds: Sequence[int]) -> Iterator[Cell]:
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
            _refuse_illegal(kind, plan, batches.sample)
        yield from _of_block(kind, cell, plan._replace(extent=batches.take))


def _of_block(kind: Kind, cell: Cell, plan: Plan) -> Iterator[Cell]:
    for made in kind.cells(cell, plan):
        yield replace(made, grids={plan.block.name: made.formats})


def _refuse_illegal(kind: Kind, plan: Plan, sample: Sample) -> None:
    names = [name for name in plan.block.formats if name in FORMATS]
    for name, (path, to) in product(names, kind.targets(plan.block)):
        if reason := illegal(name, sample, "none", path if path in PATHS else "", to):
            raise InvalidConfig(f'{plan.where}: formats: {reason}; illegal = "skip" leaves these cells out')


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
