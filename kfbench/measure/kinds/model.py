"""The kind "model", the size model: sizes of very many records, computed from their shapes without payload.

Shapes are lengths, timestamps and offsets. The size without a codec follows from them (law 1 of `formats.base.format`).
So the model can size 1,000,000,000 records without a byte of payload. The shapes are processed in blocks of records,
and only sums are kept. Sums of several blocks, cells and hosts can be added.
"""

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final

import msgspec

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS, Format
from kfbench.measure.cell import Cell, block_records, workload_label
from kfbench.measure.columns import INT64, Row, added, counts_text
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.kinds.base import Amount, GridBlock, GridPlan, Kind, Unavailable, illegal, sample_at
from kfbench.measure.verify import verify_records, verify_size
from kfbench.records import Shapes
from kfbench.workloads import BLOCK_RECORDS, Sample, Workload
from kfbench.workloads.recorded import NotFetched

FIRST_RECORDS: Final = 1 << 20
_VERIFIED_RECORDS: Final = 2_048  # the number of records that are encoded to verify a cell
_VERIFIED_BYTES: Final = 1 << 20  # about the largest payload of these records, unless the first record alone is larger
_CELL_S: Final = 0.1
_RECORD_NS: Final = 70  # generating a record
_FORMAT_NS: Final = 6  # computing the size of a record in one format


class ModelSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The number of records whose sizes the size model computes, without generating payload."""

    records: int = 1_000_000_000  # per workload; the records are divided into cells
    cell_records: int = 1 << 25  # the largest number of records in a cell


@dataclass(kw_only=True)
class ModelSums:
    """The total size in one format of all records that were added so far.

    cpu_ns, wall_ns: the time of `Format.size` only.
    """

    fmt: Format
    batches: int = 0
    size_bytes: int = 0
    payload_bytes: int = 0
    cpu_ns: int = 0
    wall_ns: int = 0
    losses: Counter[str] = field(default_factory=Counter)

    def add(self, shapes: Shapes, bounds: Int64, batch_fields: BatchFields = NO_FIELDS) -> None:
        cpu_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
        sizes = self.fmt.size(shapes, bounds, batch_fields)
        self.cpu_ns += time.thread_time_ns() - cpu_ns
        self.wall_ns += time.perf_counter_ns() - wall_ns
        self.batches += len(sizes)
        self.size_bytes += int(sizes.sum())
        self.payload_bytes += shapes.payload_bytes
        self.losses.update(self.fmt.losses(shapes, bounds, batch_fields))

    @property
    def columns(self) -> dict[str, Any]:
        """The sums as columns of one row of the result table."""
        return {
            "batches": self.batches,
            "size_bytes": self.size_bytes,
            "payload_bytes": self.payload_bytes,
            "overhead_bytes": self.size_bytes - self.payload_bytes,
            "losses": counts_text(dict(sorted(self.losses.items()))),
            "inner_loops": 1,
            "cpu_ns": [self.cpu_ns],
            "wall_ns": [self.wall_ns],
        }


def verify_model(fmt: Format, source: EncodeInput) -> None:
    """Raise Unverified unless encode writes batches of the computed sizes, and decode returns the same records."""
    log = source.encode(fmt)
    verify_records(fmt, source, log)
    verify_size(fmt, source, log)


def resident_bytes() -> int:
    """Return the peak resident memory of this process in bytes. getrusage(2) gives KiB on Linux, bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class ModelKind(Kind):
    name = section = "model"
    settings = ModelSettings
    columns = (
        added(
            "generate_ns", INT64, "ns", "thread CPU time of making the shapes, once for all formats of the cell",
            is_measured=True,
        ),
        added(
            "resident_bytes", INT64, "bytes", "most memory that the worker has held so far, the whole process",
            is_measured=True,
        ),
    )  # fmt: skip
    meanings = {"start": "the cells of a workload add up", "cpu_ns": "of sizing the records, one item"}
    has_slices = True
    is_verified = False  # cells verify sizes themselves when they run

    def problems(self, block: GridBlock, settings: Any) -> Iterator[str]:
        if set(block.codecs) != {"none"}:
            yield "codecs: the size model has no payload to compress"
        formats = [name for name in block.formats if name in FORMATS]
        if unsized := [name for name in formats if not FORMATS[name].capabilities.sizes_from_shapes]:
            yield f"formats: sizes of {unsized[0]} depend on the contents of headers, which the size model has not"

    def amount(self, settings: ModelSettings, codec: str) -> Amount:
        """Return the size of a plan's sample: cells have their own numbers of records."""
        return Amount(BLOCK_RECORDS, settings.records)

    def cells_per_point(self, block: GridBlock, settings: ModelSettings, codecs: int) -> int:
        return -(-settings.records // max(settings.cell_records, BLOCK_RECORDS))

    def cells(self, cell: Cell, plan: GridPlan) -> Iterator[Cell]:
        """Divide the records of a workload into cells.

        Each cell has as many records as all cells before it together, so the cost is known at every doubling. A cell
        has at least FIRST_RECORDS (1,048,576) and at most `settings.cell_records`, rounded down to whole batches. Only
        the last cell may be smaller or end inside a batch.
        """
        settings: ModelSettings = plan.settings
        try:
            cell.workload.generate(records=1, seed=cell.seed, start=settings.records - 1)
        except NotFetched:
            size = plan.extent(self.amount(settings, "none"))
            yield replace(cell, formats=tuple(plan.block.formats), **size._asdict())  # its rows say what to fetch
            return
        except InvalidConfig as error:
            label = workload_label(cell.workload)
            raise InvalidConfig(f"{plan.where}: model.records: {label}: {error}") from None
        unit, start = block_records(cell.workload), 0
        while start < settings.records:
            wanted = min(max(start, FIRST_RECORDS), settings.cell_records)
            records = min(max(wanted // unit, 1) * unit, settings.records - start)
            yield replace(cell, start=start, records=records, formats=tuple(plan.block.formats))
            start += records

    def rows(self, cell: Cell) -> Iterator[Row]:
        """Compute the sizes of the cell's records in each format, without payload.

        About 65,536 records are generated at a time, so memory does not grow with their number. Some records are
        encoded first, to verify the computed sizes.
        """
        generate_ns, block_size = 0, block_records(cell.workload)
        models, failures = self.attempt(cell, partial(_verified_model, cell))
        yield from chain(*failures.values())
        try:
            end = cell.start + cell.records
            for start in range(cell.start, end, block_size):
                began_ns = time.thread_time_ns()
                block = cell.workload.generate(records=min(block_size, end - start), seed=cell.seed, start=start)
                _ = block.shapes.payload_bytes  # computed once for all formats
                generate_ns += time.thread_time_ns() - began_ns
                for model in models.values():
                    model.add(block.shapes, block.bounds, block.batch_fields)
        except Exception as error:
            yield from (row for name in models for row in self.failures(cell, name, error))
            return
        (key,) = self.row_keys(cell)
        common = key | {"status": "ok", "generate_ns": generate_ns, "resident_bytes": resident_bytes()}
        yield from (common | {"format": name} | model.columns for name, model in models.items())

    def row_keys(self, cell: Cell) -> list[Row]:
        return [{"start": cell.start, "records": cell.records}]

    def estimate_s(self, cell: Cell) -> float:
        return _CELL_S + cell.records * (_RECORD_NS + len(cell.formats) * _FORMAT_NS) * 1e-9


def _verified_model(cell: Cell, name: str) -> ModelSums:
    if reason := illegal(name, sample_at(cell.workload, block_records(cell.workload), cell.seed), cell.codec):
        raise Unavailable(reason)
    first = _first_records(cell.workload, cell.seed, cell.start, cell.records)
    verify_model(
        FORMATS[name], EncodeInput(records=first.records, bounds=first.bounds, batch_fields=first.batch_fields)
    )
    return ModelSums(fmt=FORMATS[name])


@lru_cache(maxsize=1)
def _first_records(workload: Workload, seed: int, start: int, records: int) -> Sample:
    """Return the first records from `start` on: at least 1, at most 2,048, with at most about 1 MiB of payload."""
    wanted = min(records, _VERIFIED_RECORDS)
    payload = workload.generate(records=wanted, seed=seed, start=start).shapes.payload_bytes
    fitting = wanted if payload <= _VERIFIED_BYTES else max(1, wanted * _VERIFIED_BYTES // payload)
    return workload.generate(records=fitting, seed=seed, start=start)


KINDS: Final = (ModelKind(),)
