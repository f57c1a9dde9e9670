"""Measure one cell: one workload under one codec, in several formats. The results are rows of the result table.

A format that fails gets a row with its error. The error's text is the same on every host, because rows are published
and compared. An arm is one timed call, such as encoding in one format.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Literal

from kfbench.arrays import Bytes
from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.bytes import measure_size
from kfbench.measure.cold import prepare_cold
from kfbench.measure.cpu import ONE_CALL, Arm, Operation, measure, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.environment import host
from kfbench.measure.floor import FLOOR, floor
from kfbench.measure.format_arms import prepare, why_no_fetch
from kfbench.measure.noise import TIMED_KINDS, counted_since, host_counters, yardstick_ns
from kfbench.measure.path_arms import measure_path
from kfbench.measure.prefix import measure_prefixes
from kfbench.measure.schema import SCHEMA, Row
from kfbench.measure.size_model import Modelled, resident_bytes, verify_model
from kfbench.measure.verify import Unverified, verify_records
from kfbench.sweep.definition.batch_plan import block_records
from kfbench.sweep.definition.cell import Cell
from kfbench.sweep.definition.legality import illegal
from kfbench.sweep.definition.sweep_file import Kind
from kfbench.sweep.run.cell_rows import encode_input, failed, parts_of, sample_at, sample_of, skipped, times_of
from kfbench.sweep.run.dictionary_rows import (
    dictionary_cpu_rows,
    dictionary_rows,
)
from kfbench.sweep.run.estimate import operations_of
from kfbench.sweep.run.instruction_rows import instruction_rows
from kfbench.sweep.run.rival_rows import rival_cpu_rows, rival_rows
from kfbench.workloads import Sample, Workload

_VERIFIED_RECORDS: Final = 2_048  # the number of records that are encoded to verify a cell of the size model
_VERIFIED_BYTES: Final = 1 << 20  # about the largest payload of these records, unless the first record alone is larger


def measure_cell(cell: Cell) -> list[Row]:
    """Measure a cell and return its rows.

    A cell may belong to several [[grid]] blocks of the sweep. Each of these blocks gets its own rows.

    If a format fails, the columns `status` and `error` of its rows show the error. Raises the errors in BUSY.
    """
    if cell.kind not in TIMED_KINDS:
        return _under_its_grids(cell, _ROWS[cell.kind](cell), host())
    yardstick, before = {"yardstick_ns": yardstick_ns()}, host_counters()
    rows = list(_ROWS[cell.kind](cell))
    watched = yardstick | counted_since(before)
    return _under_its_grids(cell, [watched | row for row in rows], host())


def failed_rows(cell: Cell, status: Literal["error", "skipped"], reason: str, on: str | None = None) -> list[Row]:
    """Return the rows of a cell that was not measured, for each format and operation.

    reason: the text of the column `error`. on: the host that tried to measure it; None if no host did.
    """
    rows = [
        {"format": name, "status": status, "error": reason} | part for name in cell.formats for part in parts_of(cell)
    ]
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


def _bytes_rows(cell: Cell) -> Iterator[Row]:
    for name in cell.formats:
        try:
            sample = sample_of(cell)
            if reason := illegal(name, sample, cell.codec):
                yield skipped(name, reason)
            else:
                yield {"format": name, "status": "ok"} | measure_size(FORMATS[name], encode_input(cell, sample))
        except Exception as error:
            yield failed(cell, name, error)


def _cpu_rows(cell: Cell) -> Iterator[Row]:
    """Verify the log of each format, then time each operation. Yield one row per format and operation.

    A format that fails its verification, or does not support the cell, gets rows with the reason and is
    not timed.
    """
    logs: dict[str, Bytes] = {}
    source: EncodeInput | None = None
    for name in cell.formats:
        try:
            sample = sample_of(cell)
            source = encode_input(cell, sample)
            reason = illegal(name, sample, cell.codec)
            if reason is None and cell.kind == "record":
                reason = why_no_fetch(FORMATS[name])
            if reason is None:
                log = source.encode(FORMATS[name])
                verify_records(FORMATS[name], sample.records, sample.bounds, sample.batch_fields, log)
                logs[name] = log.data
                continue
            row = skipped(name, reason)
        except Exception as error:
            row = failed(cell, name, error)
        for operation in operations_of(cell):
            yield row | {"arm": "measure", "operation": operation}
    for operation in operations_of(cell):
        yield from _timed_rows(cell, operation, logs, source)


def _timed_rows(
    cell: Cell, operation: Operation, logs: Mapping[str, Bytes], source: EncodeInput | None
) -> Iterator[Row]:
    """Time one operation of all formats in one measurement, in which the formats' calls alternate.

    The base format is timed twice (A/A). The second time has the value "aa" in the column `arm`.

    Args:
        logs: the verified log of each format that did not fail, by name.
        source: the records and settings that the logs were encoded from; None if generating them failed.
    """
    names = [*logs, BASE_FORMAT]  # the last one times the base format again (A/A)
    rows: list[Row] = [{"format": name, "arm": "measure", "operation": operation} for name in names]
    rows[-1]["arm"] = "aa"
    timed: list[tuple[Row, Arm]] = []
    try:
        if source is None or BASE_FORMAT not in logs:
            raise Unverified(f"{BASE_FORMAT}, the base of every ratio, failed")
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


def _prefix_rows(cell: Cell) -> Iterator[Row]:
    """Time reading only the prefix of each format's batches, and reading whole batches.

    The prefix is the beginning of a batch, with the offsets, times and lengths of its records. Formats are timed
    separately, because the prefix of a format is compared with whole batches of the same format.
    """
    for name in cell.formats:
        try:
            sample = sample_of(cell)
            log = FORMATS[name].encode(sample.records, sample.bounds, cell.codec, cell.level, sample.batch_fields)
            verify_records(FORMATS[name], sample.records, sample.bounds, sample.batch_fields, log)
            sample_ns = cell.sample_us * 1_000
            arms = measure_prefixes(FORMATS[name], log, cell.codec, rounds=cell.rounds, sample_ns=sample_ns)
        except Exception as error:
            yield failed(cell, name, error)
            continue
        for arm in arms:
            yield {
                "format": name,
                "operation": arm.operation,
                "arm": arm.arm,
                "batches": len(log),
                "compressed_bytes": arm.compressed_bytes,
                "plain_bytes": arm.plain_bytes,
                "metadata_bytes": arm.metadata_bytes,
            } | times_of(cell, arm.samples)


def _broker_rows(cell: Cell) -> Iterator[Row]:
    """Time one broker path of all formats in one measurement, in which the formats' calls alternate.

    A format that fails, or does not support the path, gets a row with the reason.
    """
    common: Row = {"operation": cell.path, "to_format": cell.to}
    try:
        sample = sample_of(cell)
    except Exception as error:
        yield from (common | {"arm": "measure"} | failed(cell, name, error) for name in cell.formats)
        return
    formats = []
    for name in cell.formats:
        if reason := illegal(name, sample, cell.codec, cell.path, cell.to):
            yield common | {"arm": "measure"} | skipped(name, reason)
        else:
            formats.append(FORMATS[name])
    to, source = FORMATS[cell.to] if cell.to else None, encode_input(cell, sample)
    for arm in measure_path(
        cell.path, formats, to, source, rounds=cell.rounds, sample_ns=cell.sample_us * 1_000, seed=cell.seed
    ):
        row = common | {"format": arm.format, "arm": arm.arm}
        if arm.samples is None:
            yield row | failed(cell, arm.format, arm.error or Unverified("it was not timed"))
        else:
            yield row | arm.columns | times_of(cell, arm.samples)


def _model_rows(cell: Cell) -> Iterator[Row]:
    """Compute the sizes of the cell's records in each format, without payload.

    About 65,536 records are generated at a time, so memory does not grow with their number. Some records are encoded
    first, to verify the computed sizes.
    """
    common: Row = {"start": cell.start, "records": cell.records}
    models: dict[str, Modelled] = {}
    generate_ns, block_size = 0, block_records(cell.workload)
    for name in cell.formats:
        try:
            if reason := illegal(name, sample_at(cell.workload, block_size, cell.seed), cell.codec):
                yield common | skipped(name, reason)
                continue
            first = _first_records(cell.workload, cell.seed, cell.start, cell.records)
            verify_model(FORMATS[name], first.records, first.bounds, first.batch_fields)
            models[name] = Modelled(fmt=FORMATS[name])
        except Exception as error:
            yield common | failed(cell, name, error)
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
        yield from (common | failed(cell, name, error) for name in models)
        return
    common |= {"status": "ok", "generate_ns": generate_ns, "resident_bytes": resident_bytes()}
    yield from (common | {"format": name} | model.columns for name, model in models.items())


@lru_cache(maxsize=1)
def _first_records(workload: Workload, seed: int, start: int, records: int) -> Sample:
    """Return the first records from `start` on: at least 1, at most 2,048, with at most about 1 MiB of payload."""
    wanted = min(records, _VERIFIED_RECORDS)
    payload = workload.generate(records=wanted, seed=seed, start=start).shapes.payload_bytes
    fitting = wanted if payload <= _VERIFIED_BYTES else max(1, wanted * _VERIFIED_BYTES // payload)
    return workload.generate(records=fitting, seed=seed, start=start)


def _floor_rows(cell: Cell) -> Iterator[Row]:
    """Compute the metadata floor: lean batch headers plus the entropy of lengths, times and offsets.

    No payload is generated.
    """
    try:
        sample = sample_of(cell)
        yield {"format": FLOOR, "status": "ok"} | floor(sample.shapes, sample.bounds, sample.batch_fields).columns
    except Exception as error:
        yield failed(cell, FLOOR, error)


_ROWS: Final[Mapping[Kind, Callable[[Cell], Iterator[Row]]]] = {
    "bytes": _bytes_rows, "cpu": _cpu_rows, "metadata": _cpu_rows, "lookup": _cpu_rows, "record": _cpu_rows,
    "prefix": _prefix_rows, "broker": _broker_rows, "model": _model_rows, "floor": _floor_rows,
    "dictionary": dictionary_rows, "dictionary-cpu": dictionary_cpu_rows,
    "rivals": rival_rows, "rivals-cpu": rival_cpu_rows, "instructions": instruction_rows,
}  # fmt: skip
