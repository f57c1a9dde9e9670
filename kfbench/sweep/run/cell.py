"""One cell: its records in each of its formats, as rows of the result table.

An exception becomes a row with its error, and so does a cell that takes too long: one broken cell must not cost a sweep
of hours. Errors of a busy moment are told apart, for another try may not have them. An error is the same words wherever
it happens: rows are published, and compared.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import pyarrow as pa

from kfbench.arrays import Bytes
from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.bytes import measure_size
from kfbench.measure.cold import ONE_CALL, prepare_cold
from kfbench.measure.cpu import OPERATIONS, READINGS, Arm, Operation, Samples, measure, prepare, warm_up, why_no_fetch
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.environment import host
from kfbench.measure.floor import FLOOR, floor
from kfbench.measure.host_lock import NotAlone, SomeoneMeasures, alone
from kfbench.measure.noise import TIMED_KINDS, glance, since, yardstick_ns
from kfbench.measure.path_arms import measure_path
from kfbench.measure.prefix import ARMS, measure_prefixes
from kfbench.measure.schema import SCHEMA, table
from kfbench.measure.size_model import Modelled, resident_bytes, verify_model
from kfbench.measure.verify import Unverified, verify_records
from kfbench.sweep.definition.grid import Cell, block_records, illegal
from kfbench.sweep.definition.sweep_file import Kind
from kfbench.sweep.run.time_limit import TookTooLong, time_limit
from kfbench.workloads import Sample, Workload

Row = dict[str, Any]

LIMIT_ESTIMATES: Final = 20
LEAST_LIMIT_S: Final = 120.0  # a busy host; and kernels that nobody has called before the first cell that does
PATIENCE_S: Final = 5.0  # then the driver is told who else measures: a worker has nobody to tell
BUSY: Final = (TookTooLong, MemoryError, OSError)  # no cell reads or writes a file: the host had no room

# Fitted to the times of cells in that run, and for other levels to a sample of the cells of `full`. A test holds the
# estimates against the stages of a newer run. MB/s of compressing and decompressing once, microseconds per batch.
ESTIMATED_FROM: Final = "run 2026-11-22.4 (reports/README.md)"
ESTIMATED_ON: Final = "two cores of an Intel Xeon where little else ran"
_MB_PER_S: Final = {
    ("none", None): 8_000, ("gzip", 1): 100, ("gzip", 6): 100, ("gzip", 9): 20, ("lz4", 1): 140, ("lz4", 17): 17,
    ("zstd", 9): 170, ("zstd", 19): 5,
}  # fmt: skip
_OTHER_MB_PER_S: Final = 1_500
_US_A_BATCH: Final = {"none": 0.05, "gzip": 13}
_OTHER_US_A_BATCH: Final = 6
_RECORD_NS: Final = 15  # in a format without a codec, encoded or decoded
_WARM_UP_CALLS: Final = 8
_SAMPLE: Final = 1.1  # of the time that a sample takes at least: calls are whole
_BYTES_FORMAT_S: Final = 1.3e-3
_BYTES_RECORD_NS: Final = 130  # encoded, decoded and compared, field by field
_CPU_S: Final = 0.08
_COLD_S: Final = 0.9
_COLD_BATCH_US: Final = 1.4
_PREFIX_S: Final = 0.1
_BROKER_S: Final = 0.05
_BROKER_BYTES_PER_S: Final = 2e9
_MODEL_S: Final = 0.1
_MODEL_NS, _MODEL_FORMAT_NS = 70, 6  # a record: made, and sized in a format
_FLOOR_S: Final = 4e-4
_FLOOR_NS: Final = 150  # a record: made, and counted
_VERIFIED: Final = 2_048  # records of a model's cell that are encoded, too
_VERIFIED_BYTES: Final = 1 << 20  # of their payload, one record at least


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a task gives: rows of SCHEMA, and the time that measuring them took, and waiting until nobody else did.

    passing: rows of errors that another try may not have; left: cells that were not measured, and refused is why.
    """

    rows: pa.Table
    passing: pa.Table
    busy_s: float
    waited_s: float = 0.0
    left: tuple[Cell, ...] = ()
    refused: NotAlone | SomeoneMeasures | None = None


def measure_task(
    cells: Sequence[Cell], least_limit_s: float = LEAST_LIMIT_S, patience_s: float = PATIENCE_S
) -> Measured:
    """The rows of the cells, one after another, until one of them gets no turn to measure for patience_s.

    A cell that takes LIMIT_ESTIMATES times its estimate, and least_limit_s, is an error; one that hears no signal ends
    the process (see time_limit).
    """
    rows: list[Row] = []
    passing: list[Row] = []
    left: tuple[Cell, ...] = ()
    refused: NotAlone | SomeoneMeasures | None = None
    waited_s, began = 0.0, time.perf_counter()
    for number, cell in enumerate(cells):
        waits = time.perf_counter()
        try:
            with alone(patience_s) if cell.kind in TIMED_KINDS else nullcontext():
                waited_s += time.perf_counter() - waits
                with time_limit(max(least_limit_s, LIMIT_ESTIMATES * estimate_s(cell))):
                    found = measure_cell(cell)
            rows += found
        except (NotAlone, SomeoneMeasures) as error:  # given back: Spark would try what is raised again
            waited_s += time.perf_counter() - waits
            left, refused = tuple(cells[number:]), error
            break
        except BUSY as error:
            passing += failed_rows(cell, "error", f"{cell.title}: {_told(error)}", host())
        except Exception as error:
            rows += failed_rows(cell, "error", f"{cell.title}: {_told(error)}", host())
    return Measured(
        rows=table(rows),
        passing=table(passing),
        busy_s=time.perf_counter() - began - waited_s,
        waited_s=waited_s,
        left=left,
        refused=refused,
    )


def estimate_s(cell: Cell) -> float:
    """About how long the cell takes, in seconds, kernels compiled. It decides how cells are grouped, and what is too
    long."""
    payload, rounds = cell.payload_bytes + 30 * cell.records, cell.rounds + _WARM_UP_CALLS
    speed = _MB_PER_S.get((cell.codec, cell.level), _OTHER_MB_PER_S) * 1e6
    both = payload / speed + cell.batches * _US_A_BATCH.get(cell.codec, _OTHER_US_A_BATCH) * 1e-6
    plain, sample_s = cell.records * _RECORD_NS * 1e-9, _SAMPLE * cell.sample_us * 1e-6
    match cell.kind:
        case "model":
            return _MODEL_S + cell.records * (_MODEL_NS + len(cell.formats) * _MODEL_FORMAT_NS) * 1e-9
        case "floor":
            return _FLOOR_S + cell.records * _FLOOR_NS * 1e-9
        case "bytes":
            return len(cell.formats) * (_BYTES_FORMAT_S + cell.records * _BYTES_RECORD_NS * 1e-9 + both)
        case "broker":  # at worst the records are decompressed, and compressed again
            once = both + plain + payload / _BROKER_BYTES_PER_S
            return _BROKER_S + (len(cell.formats) + 1) * rounds * max(once, sample_s)
        case "prefix":
            return _PREFIX_S + ARMS * len(cell.formats) * rounds * max(both / 4, sample_s)
    arms = len(_operations(cell)) * (len(cell.formats) + 1)
    if cell.cache == "cold":
        return _COLD_S + arms * rounds * (both + plain + cell.batches * _COLD_BATCH_US * 1e-6)
    return _CPU_S + arms * rounds * max(both / 2 + plain, sample_s)


def measure_cell(cell: Cell) -> list[Row]:
    """The rows of the cell, under each block that names it. What a format raises is in `status` and `error`, but for
    BUSY: that is raised."""
    if cell.kind not in TIMED_KINDS:
        return _under_its_grids(cell, _ROWS[cell.kind](cell), host())
    yardstick, before = {"yardstick_ns": yardstick_ns()}, glance()
    rows = list(_ROWS[cell.kind](cell))
    watched = yardstick | since(before)
    return _under_its_grids(cell, [watched | row for row in rows], host())


def failed_rows(cell: Cell, status: Literal["error", "skipped"], reason: str, on: str | None = None) -> list[Row]:
    """The rows of a cell of which nothing was measured. on: the host that tried."""
    parts: list[Row] = [{}]
    if cell.kind in ("cpu", *READINGS):
        parts = [{"arm": "measure", "operation": operation} for operation in _operations(cell)]
    elif cell.kind == "broker":
        parts = [{"arm": "measure", "operation": cell.path, "to_format": cell.to}]
    elif cell.kind == "model":
        parts = [{"start": cell.start, "records": cell.records}]
    rows = [{"format": name, "status": status, "error": reason} | part for name in cell.formats for part in parts]
    return _under_its_grids(cell, rows, on)


def _under_its_grids(cell: Cell, rows: Iterable[Row], on: str | None) -> list[Row]:
    measured = list(rows)
    columns = {name: value for name, value in cell.axes.items() if name in SCHEMA.names}
    common = {
        "kind": cell.kind,
        "cell_id": cell.cell_id,
        "workload": cell.workload.name,
        "seed": cell.seed,
        "codec": cell.codec,
        "level": cell.level,
        "codec_version": CODECS[cell.codec].version,
        "host": on,
        "cache": cell.cache if cell.kind == "cpu" else None,
    }
    return [
        columns | common | {"grid": grid} | row
        for grid, formats in cell.grids.items()
        for row in measured
        if row["format"] in formats
    ]


@lru_cache(maxsize=2)
def _sample(workload: Workload, records: int, seed: int) -> Sample:
    """Cells that differ in the codec only come one after another, and share their records."""
    return workload.generate(records=records, seed=seed)


def _encode_input(cell: Cell, sample: Sample) -> EncodeInput:
    return EncodeInput(
        records=sample.records,
        bounds=sample.bounds,
        codec=cell.codec,
        level=cell.level,
        batch_fields=sample.batch_fields,
    )


def _bytes_rows(cell: Cell) -> Iterator[Row]:
    for name in cell.formats:
        try:
            sample = _sample(cell.workload, cell.records, cell.seed)
            if reason := illegal(name, sample, cell.codec):
                yield {"format": name, "status": "skipped", "error": reason}
                continue
            row = measure_size(
                FORMATS[name], sample.records, sample.bounds, cell.codec, cell.level, sample.batch_fields
            )
            yield {"format": name, "status": "ok"} | row
        except Exception as error:
            yield _error(cell, name, error)


def _operations(cell: Cell) -> tuple[Operation, ...]:
    return (READINGS[cell.kind],) if cell.kind in READINGS else OPERATIONS


def _cpu_rows(cell: Cell) -> Iterator[Row]:
    """All formats in one interleaved measurement an operation; a format that fails is left out of it."""
    sound: dict[str, Bytes] = {}
    given: tuple[Any, ...] = ()
    for name in cell.formats:
        row: Row = {"format": name, "arm": "measure"}
        try:
            sample = _sample(cell.workload, cell.records, cell.seed)
            given = sample.records, sample.bounds, cell.codec, cell.level, sample.batch_fields
            reason = illegal(name, sample, cell.codec)
            if reason is None and cell.kind == "record":
                reason = why_no_fetch(FORMATS[name])
            if reason:
                row |= {"status": "skipped", "error": reason}
            else:
                log = FORMATS[name].encode(*given, lossy=True)
                verify_records(FORMATS[name], sample.records, sample.bounds, sample.batch_fields, log)
                sound[name] = log.data
                continue
        except Exception as error:
            row |= _error(cell, name, error)
        for operation in _operations(cell):
            yield row | {"operation": operation}
    for operation in _operations(cell):
        yield from _timed_rows(cell, operation, sound, given)


def _timed_rows(cell: Cell, operation: Operation, logs: Mapping[str, Bytes], given: tuple[Any, ...]) -> Iterator[Row]:
    """logs: the verified bytes of each sound format."""
    names = [*logs, BASE_FORMAT]  # the last one is the A/A arm
    rows: list[Row] = [{"format": name, "arm": "measure", "operation": operation} for name in names]
    rows[-1]["arm"] = "aa"
    timed: list[tuple[Row, Arm]] = []
    try:
        if BASE_FORMAT not in logs:
            raise Unverified(f"{BASE_FORMAT}, the base of every ratio, failed")
        what = [FORMATS[name] for name in names], [logs[name] for name in names], operation, *given
        sample_ns, rotated = cell.sample_us * 1_000, None
        if cell.cache == "cold":
            rotating = prepare_cold(*what)
            sample_ns, rotated, arms = ONE_CALL, rotating.rotated_bytes, rotating.arms
        else:
            arms = prepare(*what)
        for row, arm in zip(rows, arms, strict=True):
            try:
                row |= {"warm_up_calls": warm_up(arm), "rotated_bytes": rotated}
            except Exception as error:
                if row["format"] == BASE_FORMAT:
                    raise
                row |= _error(cell, row["format"], error)
            else:
                timed.append((row, arm))
        base = next(i for i, (row, _) in enumerate(timed) if row["format"] == BASE_FORMAT)
        samples = measure([arm for _, arm in timed], base, cell.rounds, sample_ns, cell.seed)
    except Exception as error:
        yield from (_error(cell, row["format"], error) | row for row in rows)  # a row keeps an error of its own
        return
    for (row, _), times in zip(timed, samples, strict=True):
        row |= _times(cell, times)
    yield from rows


def _prefix_rows(cell: Cell) -> Iterator[Row]:
    """Each format on its own: its prefix is compared with its whole."""
    for name in cell.formats:
        try:
            sample = _sample(cell.workload, cell.records, cell.seed)
            log = FORMATS[name].encode(sample.records, sample.bounds, cell.codec, cell.level, sample.batch_fields)
            verify_records(FORMATS[name], sample.records, sample.bounds, sample.batch_fields, log)
            found = measure_prefixes(
                FORMATS[name], log, cell.codec, rounds=cell.rounds, sample_ns=cell.sample_us * 1_000, seed=cell.seed
            )
        except Exception as error:
            yield _error(cell, name, error)
            continue
        for each in found:
            yield {
                "format": name,
                "operation": each.operation,
                "arm": each.arm,
                "batches": len(log),
                "compressed_bytes": each.compressed_bytes,
                "plain_bytes": each.plain_bytes,
                "metadata_bytes": each.metadata_bytes,
            } | _times(cell, each.samples)


def _broker_rows(cell: Cell) -> Iterator[Row]:
    """One path, all formats in one interleaved measurement; a format that fails is left out of it."""
    common: Row = {"operation": cell.path, "to_format": cell.to}
    try:
        sample = _sample(cell.workload, cell.records, cell.seed)
    except Exception as error:
        yield from (common | {"arm": "measure"} | _error(cell, name, error) for name in cell.formats)
        return
    possible = []
    for name in cell.formats:
        if reason := illegal(name, sample, cell.codec, cell.path, cell.to):
            yield common | {"format": name, "arm": "measure", "status": "skipped", "error": reason}
        else:
            possible.append(FORMATS[name])
    for each in measure_path(
        cell.path,
        possible,
        FORMATS[cell.to] if cell.to else None,
        _encode_input(cell, sample),
        rounds=cell.rounds,
        sample_ns=cell.sample_us * 1_000,
        seed=cell.seed,
    ):
        row = common | {"format": each.format, "arm": each.arm}
        if each.samples is None:
            yield row | _error(cell, each.format, each.error or Unverified("it was not timed"))
        else:
            yield row | each.columns | _times(cell, each.samples)


def _model_rows(cell: Cell) -> Iterator[Row]:
    """Block by block: memory does not grow with the records. Some are encoded, too, and have to take what was sized."""
    common: Row = {"start": cell.start, "records": cell.records}
    formats: dict[str, Modelled] = {}
    generate_ns, each = 0, block_records(cell.workload)
    for name in cell.formats:
        try:
            if reason := illegal(name, _sample(cell.workload, each, cell.seed), cell.codec):
                yield common | {"format": name, "status": "skipped", "error": reason}
                continue
            some = _sample_of(cell.workload, cell.seed, cell.start, cell.records)
            verify_model(FORMATS[name], some.records, some.bounds, some.batch_fields)
            formats[name] = Modelled(fmt=FORMATS[name])
        except Exception as error:
            yield common | _error(cell, name, error)
    try:
        end = cell.start + cell.records
        for start in range(cell.start, end, each):
            since_ns = time.thread_time_ns()
            block = cell.workload.generate(records=min(each, end - start), seed=cell.seed, start=start)
            _ = block.shapes.payload_bytes  # which all formats ask for
            generate_ns += time.thread_time_ns() - since_ns
            for one in formats.values():
                one.add(block.shapes, block.bounds, block.batch_fields)
    except Exception as error:
        yield from (common | _error(cell, name, error) for name in formats)
        return
    common |= {"status": "ok", "generate_ns": generate_ns, "resident_bytes": resident_bytes()}
    yield from (common | {"format": name} | one.columns for name, one in formats.items())


def _floor_rows(cell: Cell) -> Iterator[Row]:
    """Of shapes alone: no payload is made, and no format is asked."""
    try:
        sample = _sample(cell.workload, cell.records, cell.seed)
        yield {"format": FLOOR, "status": "ok"} | floor(sample.shapes, sample.bounds, sample.batch_fields).columns
    except Exception as error:
        yield _error(cell, FLOOR, error)


@lru_cache(maxsize=1)
def _sample_of(workload: Workload, seed: int, start: int, records: int) -> Sample:
    """The first records of a slice, of about _VERIFIED_BYTES."""
    wanted = min(records, _VERIFIED)
    payload = workload.generate(records=wanted, seed=seed, start=start).shapes.payload_bytes
    fitting = wanted if payload <= _VERIFIED_BYTES else max(1, wanted * _VERIFIED_BYTES // payload)
    return workload.generate(records=fitting, seed=seed, start=start)


_ROWS: Final[Mapping[Kind, Callable[[Cell], Iterator[Row]]]] = {
    "bytes": _bytes_rows,
    "cpu": _cpu_rows,
    "metadata": _cpu_rows,
    "lookup": _cpu_rows,
    "record": _cpu_rows,
    "prefix": _prefix_rows,
    "broker": _broker_rows,
    "model": _model_rows,
    "floor": _floor_rows,
}


def _times(cell: Cell, times: Samples) -> Row:
    return {
        "status": "ok",
        "records": cell.records,
        "inner_loops": times.inner_loops,
        "cpu_ns": times.cpu_ns.tolist(),
        "wall_ns": times.wall_ns.tolist(),
    }


def _error(cell: Cell, name: str, error: Exception) -> Row:
    if isinstance(error, BUSY):
        raise error
    return {"format": name, "status": "error", "error": f"{cell.title}: {name}: {_told(error)}"}


def _told(error: BaseException) -> str:
    """One line; of a system's error its words alone: the path is of this host."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{type(error).__name__}: {' '.join(said.split())}"
