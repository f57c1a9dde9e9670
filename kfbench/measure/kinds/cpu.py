"""The kind "cpu", the time of encoding and decoding, and the kinds that time readers of a part of a log."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Final, Literal

import msgspec

from kfbench.arrays import Bytes
from kfbench.codecs import new_contexts
from kfbench.errors import InvalidConfig
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.cell import Cell
from kfbench.measure.cold import prepare_cold
from kfbench.measure.columns import INT32, INT64, TEXT, Row, added
from kfbench.measure.cpu import ONE_CALL, OPERATIONS, Arm, Operation, measure, warm_up
from kfbench.measure.format_arms import prepare, why_no_fetch
from kfbench.measure.kinds.base import (
    CellCosts,
    GridBlock,
    GridPlan,
    Kernels,
    Kind,
    Unavailable,
    encode_input,
    failed,
    legal_input,
    sample_of,
    times_of,
)
from kfbench.measure.verify import Unverified, verify_records

Cache = Literal["resident", "cold"]
Context = Literal["kept", "new"]
# Kinds that read only a part of a log -> the operation that each kind times.
READINGS: Final[Mapping[str, Operation]] = {
    "metadata": "decode-metadata",
    "lookup": "read-times",
    "record": "fetch-record",
}
_CELL_S: Final = 0.08
_COLD_S: Final = 0.9
_COLD_BATCH_US: Final = 1.4


class CpuSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The size and timing of a timed measurement.

    cache: "cold" is only for the kind "cpu". Then each call waits for its data from memory, and a sample is one call.
    contexts: cells with a codec are timed with its context kept, or new for each batch. None: kept, and rows do not say
    so.
    """

    records: int = 8_192
    payload_bytes: int = 1 << 20
    codec_payload_bytes: int = 1 << 16  # the largest payload under a codec; smaller, because codecs are slow
    rounds: int = 19
    sample_us: int = 1_000  # the shortest time of one sample
    cache: Cache = "resident"
    contexts: tuple[Context, ...] | None = None


class TimedKind(Kind):
    """A kind with the settings CpuSettings, such as `cpu` or `broker`."""

    section = "cpu"
    settings: type[msgspec.Struct] = CpuSettings
    is_timed = True
    has_contexts = False  # True if new contexts can be timed

    def settle(self, cell: Cell, plan: GridPlan) -> Cell:
        settings: CpuSettings = plan.settings
        if settings.cache == "cold" and not self.has_cold_mode:
            raise InvalidConfig(f"{plan.where}: {self.section}.cache: {self.name} cells have no cold mode")
        if settings.contexts and not self.has_contexts:
            raise InvalidConfig(f"{plan.where}: {self.section}.contexts: {self.name} cells keep contexts")
        return replace(cell, rounds=settings.rounds, sample_us=settings.sample_us, cache=settings.cache)


class CpuKind(TimedKind):
    """A kind that times whole operations of formats, with A/A.

    operations: what is timed in each format, such as encode and decode.
    """

    needs_base = True
    columns = (
        added(
            "context", TEXT, "", "kept: the codec keeps its context from batch to batch; new: each batch makes a new "
            "one, as in Kafka's clients; null: kept, or without a codec", is_identity=True,
        ),
        added(
            "rotated_bytes", INT64, "bytes", "cold: the memory that calls go through before they come round",
            is_measured=True,
        ),
        added(
            "warm_up_calls", INT32, "", "calls of the arm before those that count, until they got no faster",
            is_measured=True,
        ),
    )  # fmt: skip

    def __init__(
        self, name: str, *operations: Operation, has_cold_mode: bool = False, is_headline: bool = False
    ) -> None:
        self.name = name
        self.operations = operations
        self.has_cold_mode = has_cold_mode
        self.has_contexts = operations == OPERATIONS  # readers of a part may read streams, which keep contexts
        self.is_headline = is_headline
        self.meanings = {"operation": " or ".join(operations)}

    def cells_per_point(self, block: GridBlock, settings: CpuSettings, codecs: int) -> int:
        return super().cells_per_point(block, settings, codecs) * len(settings.contexts or (None,))

    def cells(self, cell: Cell, plan: GridPlan) -> Iterator[Cell]:
        settings: CpuSettings = plan.settings
        for each in super().cells(cell, plan):
            contexts = (settings.contexts or (None,)) if each.codec != "none" else (None,)
            yield from (replace(each, context=context) for context in contexts)

    def problems(self, block: GridBlock, settings: Any) -> Iterator[str]:
        if "new" in (settings.contexts or ()) and "v0" in block.formats and "lz4" in block.codecs:
            yield "cpu.contexts: v0's lz4 frames have no new contexts"
        if "fetch-record" in self.operations and set(block.codecs) != {"none"}:
            yield f"codecs: {self.name} cells take no codec: a codec cannot decompress one record alone"

    def rows(self, cell: Cell) -> Iterator[Row]:
        """Verify the log of each format, then time each operation. Yield one row per format and operation.

        A format that fails its verification, or does not support the cell, gets rows with the reason and is not timed.
        """
        logs, failures = self.attempt(cell, partial(self._verified_log, cell))
        yield from chain(*failures.values())
        for operation in self.operations:
            with _contexts(cell):
                rows = list(_timed_rows(cell, operation, logs))
            yield from rows

    def _verified_log(self, cell: Cell, name: str) -> Bytes:
        fmt, source = FORMATS[name], legal_input(cell, name)
        if "fetch-record" in self.operations and (reason := why_no_fetch(fmt)):
            raise Unavailable(reason)
        log = source.encode(fmt)  # with kept contexts: timed calls must write the same bytes
        with _contexts(cell):
            verify_records(fmt, source, log)
        return log.data

    def row_keys(self, cell: Cell) -> list[Row]:
        return [{"arm": "measure", "operation": operation} for operation in self.operations]

    def estimate_s(self, cell: Cell) -> float:
        costs = CellCosts.of(cell)
        arms = len(self.operations) * (len(cell.formats) + 1)
        if cell.cache == "cold":
            return _COLD_S + arms * costs.rounds * (
                costs.codec_s + costs.plain_s + cell.batches * _COLD_BATCH_US * 1e-6
            )
        return _CELL_S + arms * costs.rounds * max(costs.codec_s / 2 + costs.plain_s, costs.sample_s)

    def kernels(self, cell: Cell) -> Kernels | None:
        readings = tuple(each for each in self.operations if each not in OPERATIONS)
        return Kernels(dict.fromkeys(cell.formats, readings))


def _contexts(cell: Cell) -> AbstractContextManager[None]:
    return new_contexts() if cell.context == "new" else nullcontext()


def _timed_rows(cell: Cell, operation: Operation, logs: Mapping[str, Bytes]) -> Iterator[Row]:
    """Time one operation of all formats in one measurement, in which the formats' calls alternate.

    The base format is timed twice (A/A). The second time has the value "aa" in the column `arm`.

    logs: the verified log of each format that did not fail, by name.
    """
    names = [*logs, BASE_FORMAT]  # the last one times the base format again (A/A)
    rows: list[Row] = [{"format": name, "arm": "measure", "operation": operation} for name in names]
    rows[-1]["arm"] = "aa"
    timed: list[tuple[Row, Arm]] = []
    try:
        if BASE_FORMAT not in logs:
            raise Unverified(f"{BASE_FORMAT}, the base of every ratio, failed")
        source = encode_input(cell, sample_of(cell))
        arguments = [FORMATS[name] for name in names], [logs[name] for name in names], operation, source
        sample_ns, rotated_bytes = cell.sample_us * 1_000, None
        if cell.cache == "cold":
            rotating = prepare_cold(*arguments)
            sample_ns, rotated_bytes, arms = ONE_CALL, rotating.rotated_bytes, rotating.arms
        else:
            arms = prepare(*arguments)
        for row, arm in zip(rows, arms, strict=True):
            try:
                row |= {"warm_up_calls": warm_up(arm), "rotated_bytes": rotated_bytes}
            except Exception as error:
                if row["format"] == BASE_FORMAT:
                    raise
                row |= failed(cell, row["format"], error)
            else:
                timed.append((row, arm))
        base = next(i for i, (row, _) in enumerate(timed) if row["format"] == BASE_FORMAT)
        samples = measure([arm for _, arm in timed], base, cell.rounds, sample_ns)
    except Exception as error:
        yield from (failed(cell, row["format"], error) | row for row in rows)  # a row that has an error keeps it
        return
    for (row, _), times in zip(timed, samples, strict=True):
        row |= times_of(cell, times)
    yield from rows


KINDS: Final = (
    CpuKind("cpu", *OPERATIONS, has_cold_mode=True, is_headline=True),
    *(CpuKind(name, operation) for name, operation in READINGS.items()),
)
