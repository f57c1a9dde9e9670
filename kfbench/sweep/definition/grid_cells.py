"""List the cells of one [[grid]] block of a sweep.

A block has a cell for each combination of kind, workload, seed, codec and broker path.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final, NamedTuple

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.measure.floor import FLOOR
from kfbench.measure.paths import PATHS
from kfbench.sweep.definition.batch_plan import (
    MAX_BATCH_BYTES,
    Amount,
    Extent,
    FirstBatches,
    block_records,
    first_batches,
)
from kfbench.sweep.definition.cell import Cell, non_default_axes, workload_label
from kfbench.sweep.definition.check_grid import DICTIONARY_KINDS, check_grid, targets
from kfbench.sweep.definition.legality import illegal
from kfbench.sweep.definition.points import points
from kfbench.sweep.definition.rival_kinds import MOST_BATCH_BYTES, RIVAL_KINDS
from kfbench.sweep.definition.sweep_file import CpuSettings, DictionarySettings, Grid, Kind, ModelSettings, SweepFile
from kfbench.workloads import BLOCK_RECORDS, Sample, Workload
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.recorded.topics import RecordedTopic

FIRST_MODEL_RECORDS: Final = 1 << 20
_NOT_FETCHED: Final = Extent(records=0, batches=0, payload_bytes=0)  # measuring gives a skipped row with the reason


def cells_of_grid(where: str, grid: Grid, file: SweepFile) -> Iterator[Cell]:
    """Check a [[grid]] block at once, and return an iterator over its cells.

    The check and the iterator may raise InvalidConfig.

    where: the file and the block, for messages.
    """
    return _Block(where, grid, file).cells()


class _Block:
    """A checked [[grid]] block. A setting that is missing in the block is taken from its file."""

    def __init__(self, where: str, grid: Grid, file: SweepFile) -> None:
        self.where = where
        self.grid = grid
        self.file = file
        self.model = grid.model or file.model
        self.dictionary: DictionarySettings = grid.dictionary or file.dictionary
        self.rivals = grid.rivals or file.rivals
        self.instructions = grid.instructions or file.instructions
        self.codecs = check_grid(where, grid, self.model, self.dictionary)

    def cells(self) -> Iterator[Cell]:
        measured = dict.fromkeys(self.grid.measure)
        # The metadata floor (`measure.floor`) and the sizes need the same records, so the records are made once.
        floor_kind = None if "floor" not in measured else "bytes" if "bytes" in measured else "floor"
        kinds = [kind for kind in measured if kind != "floor" or floor_kind == "floor"]
        seeds = dict.fromkeys(self.grid.seeds or [self.file.seed])
        for kind, point, own_seed in product(kinds, points(self.where, self.grid), seeds):
            cell = _bare_cell(kind, point, own_seed)
            amounts = {codec: self._amount(kind, codec) for codec, _ in self.codecs}
            if isinstance(point, RecordedTopic) and not point.is_fetched:
                yield from self._measured_cells(cell, None, amounts)
                continue
            most_records = max(amount.records for amount in amounts.values())
            most_bytes = MOST_BATCH_BYTES if kind in RIVAL_KINDS else None
            batches = first_batches(self.where, point, cell.seed, most_records, most_bytes)
            if batches is None:
                continue
            if kind == floor_kind:
                extent = batches.take(self._amount("floor", "none"))
                yield self._in_block(replace(cell, kind="floor", **extent._asdict()), (FLOOR,))
            if kind == "floor":
                continue
            if self.grid.illegal == "refuse":
                self._refuse_illegal(kind, batches.sample)
            if kind == "model":
                yield from self._model_cells(cell)
            else:
                yield from self._measured_cells(cell, batches, amounts)

    def _in_block(self, cell: Cell, formats: Sequence[str]) -> Cell:
        return replace(cell, formats=tuple(formats), grids={self.grid.name: tuple(formats)})

    def _settings(self, kind: Kind) -> CpuSettings:
        return self.file.broker if kind == "broker" else self.grid.cpu or self.file.cpu

    def _amount(self, kind: Kind, codec: str) -> Amount:
        if kind == "model":
            return Amount(BLOCK_RECORDS, MAX_BATCH_BYTES)
        if kind in ("bytes", "floor"):
            counted = self.grid.bytes or self.file.bytes
            return Amount(counted.records, counted.payload_bytes)
        if kind in DICTIONARY_KINDS:
            return Amount(self.dictionary.records, self.dictionary.payload_bytes)
        if kind in RIVAL_KINDS:
            return Amount(self.rivals.records, self.rivals.payload_bytes, self.rivals.batches)
        timed = self.instructions if kind == "instructions" else self._settings(kind)
        return Amount(timed.records, timed.payload_bytes if codec == "none" else timed.codec_payload_bytes)

    def _refuse_illegal(self, kind: Kind, sample: Sample) -> None:
        names = [name for name in self.grid.formats if name in FORMATS]
        for name, (path, to) in product(names, targets(self.grid, kind)):
            if reason := illegal(name, sample, "none", path if path in PATHS else "", to):
                raise InvalidConfig(f'{self.where}: formats: {reason}; illegal = "skip" leaves these cells out')

    def _model_cells(self, cell: Cell) -> Iterator[Cell]:
        point = cell.workload
        try:
            point.generate(records=1, seed=cell.seed, start=self.model.records - 1)
        except InvalidConfig as error:
            raise InvalidConfig(f"{self.where}: model.records: {workload_label(point)}: {error}") from None
        for start, records in _slices(point, self.model):
            yield self._in_block(replace(cell, start=start, records=records), self.grid.formats)

    def _measured_cells(
        self, cell: Cell, batches: FirstBatches | None, amounts: Mapping[str, Amount]
    ) -> Iterator[Cell]:
        """Yield the cells of all codecs and paths. batches: None if the workload is not in the cache folder."""
        if cell.kind in DICTIONARY_KINDS:
            cell = replace(cell, dictionary=self.dictionary)
            if cell.kind != "dictionary":
                cell = replace(cell, rounds=self.dictionary.rounds, sample_us=self.dictionary.sample_us)
        elif cell.kind == "rivals-cpu":
            cell = replace(cell, rounds=self.rivals.rounds, sample_us=self.rivals.sample_us)
        elif cell.kind not in ("bytes", "instructions") and cell.kind not in RIVAL_KINDS:
            settings = self._settings(cell.kind)
            cell = replace(cell, rounds=settings.rounds, sample_us=settings.sample_us)
            if cell.kind == "cpu":
                cell = replace(cell, cache=settings.cache)
            elif settings.cache == "cold":
                section = "broker" if cell.kind == "broker" else "cpu"
                raise InvalidConfig(f"{self.where}: {section}.cache: {cell.kind} cells have no cold mode")
        for (codec, level), (path, to) in product(self.codecs, targets(self.grid, cell.kind)):
            extent = batches.take(amounts[codec]) if batches else _NOT_FETCHED
            made = replace(cell, codec=codec, level=level, path=path, to=to, **extent._asdict())
            yield self._in_block(made, [name for name in self.grid.formats if name != to])


class Slice(NamedTuple):
    start: int
    records: int


def _slices(point: Workload, settings: ModelSettings) -> Iterator[Slice]:
    """Divide the records of a size model (sizes computed without payload) into the slices of its cells.

    Each cell has as many records as all cells before it together, so the cost is known at every doubling.
    A cell has at least FIRST_MODEL_RECORDS (1,048,576) and at most `settings.cell_records`, rounded down to whole
    batches. Only the last cell may be smaller or end inside a batch.
    """
    unit, start = block_records(point), 0
    while start < settings.records:
        wanted = min(max(start, FIRST_MODEL_RECORDS), settings.cell_records)
        records = min(max(wanted // unit, 1) * unit, settings.records - start)
        yield Slice(start, records)
        start += records


def _bare_cell(kind: Kind, point: Workload, own_seed: int) -> Cell:
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
