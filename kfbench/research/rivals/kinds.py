"""The kinds "rivals" and "rivals-cpu": other containers in the place of v2's records.

A rival that fails, or is not installed, gets rows with the reason. Measuring is done in a child process (see `child`).
A library that ends it gives rows with this error.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from kfbench.errors import IllegalCombination, MissingExtra
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.cell import Cell
from kfbench.measure.child import LibraryEnded, call_in_child
from kfbench.measure.columns import INT32, INT64, TEXT, Row, added
from kfbench.measure.host_counters import watch_host
from kfbench.measure.kinds.base import (
    Amount,
    CellCosts,
    GridBlock,
    GridPlan,
    Kernels,
    Kind,
    RemovedKind,
    encode_input,
    error_text,
    failed,
    illegal,
    sample_of,
    skipped,
    times_of,
)
from kfbench.measure.kinds.bytes import BytesKind
from kfbench.research.rivals import NAMES, Rival, missing, rivals
from kfbench.research.rivals.measure import measure_rival
from kfbench.research.rivals.measure_cpu import CLOCK_NAME, EACH, RIVAL_OPERATIONS, RivalInput, time_rivals

CODECS: Final = frozenset({"none", "lz4", "zstd"})

# Fitted to some cells of the profile `rivals`.
_CELL_S: Final = 0.02
_BATCH_S: Final = 1.7e-3  # in one arm
_RECORD_S: Final = 1.1e-5
_CPU_CELL_S: Final = 1.0
_CALL_S: Final = 5e-4  # one call per batch, in the mean over all arms and operations
_CALL_RECORD_S: Final = 3e-6


class RivalSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The settings of the kinds "rivals" and "rivals-cpu".

    Args:
        records, payload_bytes: the size of the records, as in BytesSettings. At least one batch is measured.
        batches: at most this number of batches, because a rival takes up to 30 ms per batch.
        rounds, sample_us: as in CpuSettings, for "rivals-cpu".
    """

    records: int = 10_000
    payload_bytes: int = 4 << 20
    batches: int = 40
    rounds: int = 19
    sample_us: int = 200


_COLUMNS: Final = (
    added("library", TEXT, "", "library that writes and reads a rival's container, with its version"),
    added(
        "cpu_clock",
        TEXT,
        "",
        "rivals-cpu: process: cpu_ns is that of all threads of the process; null: that of the calling thread",
    ),
    added(
        "library_level",
        INT32,
        "",
        "level that the rival's library used; null: it has none, or it is unknown; `level` is the cell's",
    ),
    added(
        "call_bytes",
        INT64,
        "bytes",
        "rivals-cpu: most memory that Python, NumPy and Arrow held during a call, with its output; memory of the "
        "codecs is not seen; null for Vortex and Lance, whose memory is Rust's",
        is_measured=True,
    ),
)
_SETTING: Final = "the rival's settings, such as documented or best"
_KEYS: Final[list[Row]] = [{"arm": EACH, "operation": operation} for operation in RIVAL_OPERATIONS]
_NAMES: Final = {"format": "also names of rivals", "codec_version": "null if unknown"}


class _Rivals(Kind):
    section = "rivals"
    settings = RivalSettings
    columns = _COLUMNS
    has_own_blocks = True
    most_batch_bytes = 16 << 20  # rivals are also measured in batches that a broker would refuse

    def names(self) -> Sequence[str]:
        return (*FORMATS, *NAMES)

    def problems(self, block: GridBlock, settings: Any) -> Iterator[str]:
        if others := block.codecs.keys() - CODECS:
            yield f"codecs.{min(others)}: {self.name} cells have the codecs {', '.join(sorted(CODECS))}"

    def amount(self, settings: RivalSettings, codec: str) -> Amount:
        return Amount(settings.records, settings.payload_bytes, settings.batches)

    def note(self, cells: Sequence[Cell]) -> str | None:
        wanted = dict.fromkeys(name for cell in cells for name in cell.formats)
        if found := [name for name in wanted if name in missing()]:
            return f"not installed: {', '.join(found)} (skipped rows); {MissingExtra('rivals')}"
        return None


def _with_codec(cell: Cell, row: Row) -> Row:
    """Add the codec's version and level of a rival's library. Those of the cell are kfbench's."""
    if (name := row["format"]) in FORMATS:
        return row
    rival = rivals().get(name)
    return row | {
        "codec_version": rival.codec_version(cell.codec) if rival else None,
        "library_level": rival.library_level(cell.codec, cell.level) if rival else None,
    }


class RivalSizes(_Rivals):
    name = "rivals"
    meanings = _NAMES | {"arm": _SETTING}

    def rows(self, cell: Cell) -> Iterator[Row]:
        """Yield the size of the cell's records in each rival and in each of Kafka's formats.

        Rivals store keys and values as bytes, whatever is in them.
        """
        for name in cell.formats:
            yield _with_codec(cell, self._row(cell, name))

    def _row(self, cell: Cell, name: str) -> Row:
        if name in FORMATS:
            try:
                return call_in_child(_size_row, cell, name)
            except LibraryEnded:  # an earlier call of a library ended the child, so a new one measures
                return call_in_child(_size_row, cell, name)
        if name in missing():
            return skipped(name, missing()[name])
        rival = rivals()[name]
        try:
            return call_in_child(_rival_row, cell, rival)
        except LibraryEnded as error:
            return {"arm": rival.setting} | failed(cell, name, str(error))

    def estimate_s(self, cell: Cell) -> float:
        return _CELL_S + len(cell.formats) * (cell.batches * _BATCH_S + cell.records * _RECORD_S)


def _size_row(cell: Cell, name: str) -> Row:
    return next(BytesKind().rows(replace(cell, formats=(name,))))


def _rival_row(cell: Cell, rival: Rival) -> Row:
    common: Row = {"arm": rival.setting}
    try:
        row = measure_rival(rival, encode_input(cell, sample_of(cell)))
    except IllegalCombination as error:
        return common | skipped(rival.name, error_text(error))
    except Exception as error:
        return common | failed(cell, rival.name, error)
    return common | {"format": rival.name, "status": "ok"} | row


class RivalCpu(_Rivals):
    name = "rivals-cpu"
    meanings = _NAMES | {
        "operation": "encode, decode, read-times or fetch-record",
        "arm": "each (one call per batch) or together (all batches in one call); aa: v2, one call per batch",
        "cpu_ns": "see cpu_clock",
    }
    is_timed = True
    needs_base = True

    def settle(self, cell: Cell, plan: GridPlan) -> Cell:
        return replace(cell, rounds=plan.settings.rounds, sample_us=plan.settings.sample_us)

    def rows(self, cell: Cell) -> Iterator[Row]:
        """Time the operations of rivals and of Kafka's formats on the same batches. The base is v2, once per batch.

        All arms share their rounds in the child process. If a library ends it, each rival is tried alone. Those that
        end their process get rows with this error, and the others are timed.
        """
        yield from (_with_codec(cell, row) for row in self._rows(cell))

    def _rows(self, cell: Cell) -> Iterator[Row]:
        absent = missing()
        for name in cell.formats:
            if name in absent:
                yield from (skipped(name, absent[name]) | key for key in self.row_keys(cell))
        here = [name for name in cell.formats if name not in absent]
        try:
            yield from _time_in_child(cell, here)
        except LibraryEnded:
            ended = {name: error for name in here if name in rivals() and (error := _ending_alone(cell, name))}
            yield from (failed(cell, name, error) | key for name, error in ended.items() for key in self.row_keys(cell))
            yield from _time_in_child(cell, [name for name in here if name not in ended])

    def row_keys(self, cell: Cell) -> list[Row]:
        return _KEYS

    def estimate_s(self, cell: Cell) -> float:
        arms = len(RIVAL_OPERATIONS) * (len(cell.formats) + 3)
        calls_s = cell.batches * _CALL_S + cell.records * _CALL_RECORD_S
        return _CPU_CELL_S + arms * 2 * CellCosts.of(cell).rounds * calls_s

    def kernels(self, cell: Cell) -> Kernels | None:
        return Kernels({name: ("read-times", "fetch-record") for name in cell.formats if name in FORMATS})


def _time_in_child(cell: Cell, names: Sequence[str]) -> list[Row]:
    """Return the rows of a CPU cell with the noise of the child's host: the parent's own CPU time is another's."""
    arms = [rivals()[name] for name in names if name in rivals()]
    return call_in_child(watch_host, partial(_cpu_rows, cell, names, arms))


def _ending_alone(cell: Cell, name: str) -> str | None:
    """Return how a rival ends its process when it is measured alone, with v2; None: it does not."""
    try:
        _time_in_child(cell, [BASE_FORMAT, name])
    except LibraryEnded as error:
        return str(error)
    return None


def _cpu_rows(cell: Cell, names: Sequence[str], rivals: Sequence[Rival]) -> Iterator[Row]:
    try:
        sample = sample_of(cell)
        source = encode_input(cell, sample)
        legal = []
        for name in (each for each in names if each in FORMATS):
            if why := illegal(name, sample, cell.codec):
                yield from (skipped(name, why) | key for key in _KEYS)
            else:
                legal.append(name)
        given = RivalInput([FORMATS[name] for name in legal], rivals, source)
    except Exception as error:
        yield from (failed(cell, name, error) | key for name in names for key in _KEYS)
        return
    for name, reason in given.failed.items():
        is_illegal = isinstance(reason, IllegalCombination)
        row = skipped(name, error_text(reason)) if is_illegal else failed(cell, name, reason)
        yield from (row | key for key in _KEYS)
    for operation in RIVAL_OPERATIONS:
        try:
            arms = time_rivals(given, operation, cell.rounds, cell.sample_us * 1_000)
        except Exception as error:
            left = [name for name in names if name not in given.failed]
            yield from (failed(cell, name, error) | {"arm": EACH, "operation": operation} for name in left)
            continue
        for arm in arms:
            row = {"format": arm.columns["format"], "batches": cell.batches, "cpu_clock": CLOCK_NAME}
            if arm.samples is None:
                row |= failed(cell, arm.columns["format"], arm.error or "it was not timed")
            else:
                row |= times_of(cell, arm.samples)
            yield row | arm.columns


KINDS: Final = (RivalSizes(), RivalCpu())
REMOVED_KINDS: Final = tuple(  # measured up to commit d1750749
    RemovedKind(name, columns=_COLUMNS, meanings={"arm": _SETTING})
    for name in ("rivals-metadata", "rivals-json", "rivals-stream")
)
