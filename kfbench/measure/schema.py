"""The schema of the result table. A row has the result of one kind of measurement in one cell, format, codec and level.

A cell is a workload with one value for each of its axes. `StoredRow` declares every column once: its Arrow type, its
unit and its meaning. The table stores integers and raw samples. The report computes ratios, medians and readable units.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import pyarrow as pa

# A reader refuses a run with another version, and an older run that lacks a column. Columns in ADDED may be missing.
SCHEMA_VERSION: Final = 1
# The kinds that kfbench measured up to commit d1750749. Runs may have their rows.
REMOVED_KINDS: Final = frozenset(
    {"dictionary-codecs", "dictionary-broker", "rivals-metadata", "rivals-json", "rivals-stream"}
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the result table.

    Args:
        unit: the unit of the numbers; empty if they have none.
        meaning: a description for readers of the table.
        is_axis: True if the column has the value of an axis of the workload, such as the batch size.
        is_added: True if runs of schema version 1 without the column exist. It is null in their rows.
    """

    name: str
    type: pa.DataType
    unit: str
    meaning: str
    nullable: bool = True
    is_axis: bool = False
    is_added: bool = False


_TEXT: Final = pa.string()
_INT32: Final = pa.int32()
_INT64: Final = pa.int64()
_INT64_LIST: Final = pa.list_(pa.int64())


def _column(type_: pa.DataType, unit: str, meaning: str, *, nullable: bool = True, is_axis: bool = False) -> Any:
    column = {"type": type_, "unit": unit, "meaning": meaning, "nullable": nullable, "is_axis": is_axis}
    return field(default=None, metadata=column)


def _key(type_: pa.DataType, meaning: str) -> Any:
    """Declare a column that is never null."""
    return _column(type_, "", meaning, nullable=False)


def _added(type_: pa.DataType, unit: str, meaning: str) -> Any:
    """Declare a column that older runs lack."""
    column = {"type": type_, "unit": unit, "meaning": meaning, "is_added": True}
    return field(default=None, metadata=column)


def _axis(type_: pa.DataType, unit: str, meaning: str) -> Any:
    return _column(type_, unit, meaning, is_axis=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRow:
    """One row of the result table. A field is None if the column is null or was not read."""

    kind: str = _key(
        _TEXT,
        "bytes, cpu, metadata, lookup, record, prefix, broker, model, floor, dictionary, dictionary-cpu, rivals, "
        "rivals-cpu or instructions; older runs also dictionary-codecs, dictionary-broker, rivals-metadata, "
        "rivals-json or rivals-stream",
    )
    cell_id: str = _key(_TEXT, "hash of the workload and of its axes that are not at their default")
    status: str = _key(_TEXT, "ok, skipped or error")
    error: str | None = _column(_TEXT, "", "why there is no measurement")
    grid: str = _key(_TEXT, "block of the sweep; a cell of several blocks has its rows under each of them")
    workload: str = _key(_TEXT, "name of the workload")
    variant: str | None = _column(_TEXT, "", "variant of a workload of the catalogue")
    seed: int = _key(_INT64, "seed of the workload's records")
    batch_size: int | None = _axis(_INT32, "records", "records per batch")
    key_bytes: int | None = _axis(_INT32, "bytes", "length of every key; -1: null")
    value_bytes: int | None = _axis(_INT32, "bytes", "length of every value that is not null; -1: all null")
    timestamp_spread_ms: int | None = _axis(_INT64, "ms", "last timestamp of a batch minus its first")
    headers: int | None = _axis(_INT32, "headers", "headers per record")
    payload: str | None = _axis(_TEXT, "", "content of the payload: random, half, template, ones")
    null_share: float | None = _axis(pa.float64(), "", "share of the records whose value is null")
    header_key_bytes: int | None = _axis(_INT32, "bytes", "length of every header key")
    header_value_bytes: int | None = _axis(_INT32, "bytes", "length of every header value; -1: null")
    offset_stride: int | None = _axis(_INT32, "", "offset of a record minus the offset before")
    base_timestamp_ms: int | None = _axis(_INT64, "ms", "first timestamp of every batch; -1: none")
    producer: bool | None = _axis(pa.bool_(), "", "producer id, epoch and base sequence are set")
    append_time: bool | None = _axis(pa.bool_(), "", "log append time")
    format: str = _key(_TEXT, "name of the format; kind floor: the word floor; kinds rivals*: also names of rivals")
    codec: str = _key(_TEXT, "name of the codec")
    level: int | None = _column(_INT32, "", "level of the codec; null where it has none")
    codec_version: str | None = _column(
        _TEXT, "", "library that compressed: compressed bytes depend on it; rivals: null if unknown"
    )
    host: str | None = _column(
        _TEXT, "", "hash of the name of the host that measured; CPU times of two hosts never share a table"
    )
    start: int | None = _column(
        _INT64, "records", "model: number of the first record in its workload; the cells of a workload add up"
    )
    records: int | None = _column(_INT64, "records", "records measured")
    # kinds bytes, model and floor
    batches: int | None = _column(_INT64, "batches", "batches of these records; broker: batches that the path met")
    size_bytes: int | None = _column(_INT64, "bytes", "size of all batches; broker: size of the result")
    payload_bytes: int | None = _column(_INT64, "bytes", "keys, values, header keys and values")
    overhead_bytes: int | None = _column(_INT64, "bytes", "size_bytes - payload_bytes; uncompressed only")
    losses: str | None = _column(_TEXT, "", "JSON: what the format could not carry, and how many")
    field_bytes: str | None = _column(_TEXT, "bytes", "JSON: bytes per field, sum = size_bytes; uncompressed only")
    # kind prefix
    compressed_bytes: int | None = _column(_INT64, "bytes", "compressed bytes that were read")
    plain_bytes: int | None = _column(_INT64, "bytes", "bytes that were decompressed from them")
    metadata_bytes: int | None = _column(_INT64, "bytes", "plain bytes that offsets, timestamps and lengths need")
    # kind broker: the work of one call of the path
    to_format: str | None = _column(_TEXT, "", "format that the path converts to; null where it keeps the format")
    source_bytes: int | None = _column(_INT64, "bytes", "size of the log that came in")
    batches_untouched: int | None = _column(_INT64, "batches", "handed on as they are")
    batches_in_place: int | None = _column(_INT64, "batches", "header fields were set where they stand")
    batches_shifted: int | None = _column(
        _INT64, "batches", "header fields were set, and the bytes behind the header have moved"
    )
    batches_rewritten: int | None = _column(_INT64, "batches", "built anew")
    batches_dropped: int | None = _column(_INT64, "batches", "left out")
    converted_records: int | None = _column(_INT64, "records", "records that changed their format")
    read_bytes: int | None = _column(_INT64, "bytes", "bytes read of the log: headers alone, or all of it")
    written_bytes: int | None = _column(
        _INT64, "bytes", "fields that were set, bytes that have moved, batches that were built"
    )
    decompressed_bytes: int | None = _column(_INT64, "bytes", "plain bytes that the codec gave")
    recompressed_bytes: int | None = _column(_INT64, "bytes", "plain bytes that the codec took")
    extra_bytes: int | None = _column(
        _INT64,
        "bytes",
        "most memory that Python and numpy held during the call, beyond its input and output; memory of the codecs is "
        "not seen",
    )
    # timed kinds
    operation: str | None = _column(
        _TEXT,
        "",
        "cpu: encode or decode; metadata: decode-metadata; lookup: read-times; record: fetch-record; prefix: "
        "decompress or decompress-prefix (codec alone), decode or decode-metadata; broker, dictionary-broker: the "
        "path; dictionary-cpu: compress or decompress (codec alone); rivals-cpu: encode, decode, read-times or "
        "fetch-record; instructions: any of these operations, sizes or a path",
    )
    arm: str | None = _column(
        _TEXT,
        "",
        "measure, or aa: the base once more, which must read 1.0 (base: v2; a broker path without v2: its first "
        "format; prefix: decompress; dictionary-cpu: plain zstd; dictionary-broker: v2 with plain zstd); "
        "dictionary-codecs: stream (zstd as everywhere), lean (codec 5's frame, no dictionary), one-shot (zstd in "
        "one call), gzip, lz4; rivals-cpu: each (one call per batch) or together (all batches in one call), and aa: v2 "
        "once more, one call per batch; other kinds rivals*: the rival's settings, such as documented or best",
    )
    inner_loops: int | None = _column(
        _INT32,
        "",
        "calls per sample; the same for all arms of a cell and operation (prefix: format); 1 where a call changes its "
        "input",
    )
    cpu_ns: Sequence[int] | None = _column(
        _INT64_LIST,
        "ns",
        "CPU time of inner_loops calls (see cpu_clock), one item per round; round i of all arms belongs together; "
        "model: of sizing the records, one item",
    )
    wall_ns: Sequence[int] | None = _column(_INT64_LIST, "ns", "wall time of the same calls")
    cache: str | None = _column(
        _TEXT,
        "",
        "cpu: resident, the working set stays in the caches; or cold, it goes round through more memory than they hold",
    )
    rotated_bytes: int | None = _column(
        _INT64, "bytes", "cold: the memory that calls go through before they come round"
    )
    warm_up_calls: int | None = _column(
        _INT32, "", "calls of the arm before those that count, until they got no faster"
    )
    # kind model
    generate_ns: int | None = _column(
        _INT64, "ns", "thread CPU time of making the shapes, once for all formats of the cell"
    )
    resident_bytes: int | None = _column(
        _INT64, "bytes", "most memory that the worker has held so far, the whole process"
    )
    # the host during a measurement: the same in all rows of the measurement, null if the host does not report it
    watched_ns: int | None = _column(_INT64, "ns", "wall time of the measurement, warm-up and rounds")
    others_cpu_ns: int | None = _column(
        _INT64, "ns", "CPU time of other processes on the host meanwhile, all cores together"
    )
    stolen_ns: int | None = _column(
        _INT64, "ns", "time that the hypervisor gave to others meanwhile, all cores together"
    )
    yardstick_ns: int | None = _column(
        _INT64, "ns", "fastest pass over a fixed piece of work just before: the host's speed"
    )

    # kinds dictionary, dictionary-codecs, dictionary-cpu and dictionary-broker
    dictionary: str | None = _added(
        _TEXT,
        "",
        "none: without a codec; plain: the codec alone; lean: zstd in codec 5's frame without a dictionary; "
        "trained: a trained dictionary; raw: the newest 8 KiB before the split as dictionary; policy: dictionaries "
        "that the policy of docs/dictionaries-broker.md chooses",
    )
    dictionary_size_bytes: int | None = _added(_INT32, "bytes", "largest size that was asked for")
    trained_share: float | None = _added(
        pa.float64(), "", "share of the topic before the split: training sees it, measuring does not; 0: no split"
    )
    part: int | None = _added(_INT32, "", "which of the equal parts after the split was measured, from 1")
    live: int | None = _added(_INT32, "dictionaries", "dictionaries that batches use in turn in one process")
    dictionary_stored_bytes: int | None = _added(
        _INT64, "bytes", "size of the control batches that store the dictionaries; size_bytes does not include it"
    )
    dictionary_memory_bytes: int | None = _added(
        _INT64, "bytes", "estimated memory of the digested dictionary and its context, for compression"
    )
    trained_records: int | None = _added(_INT64, "records", "records that the dictionary was made from")
    trained_bytes: int | None = _added(_INT64, "bytes", "samples that the dictionary was made from")
    training_ns: int | None = _added(_INT64, "ns", "thread CPU time of training once, without making the samples")
    dictionary_switches: int | None = _added(
        _INT32, "", "policy: changes between dictionaries, plain zstd and no codec"
    )
    # kinds rivals and rivals-cpu, and older kinds rivals*
    library: str | None = _added(_TEXT, "", "library that writes and reads a rival's container, with its version")
    cpu_clock: str | None = _added(
        _TEXT, "", "rivals-cpu: process: cpu_ns is that of all threads of the process; null: that of the calling thread"
    )
    library_level: int | None = _added(
        _INT32, "", "level that the rival's library used; null: it has none, or it is unknown; `level` is the cell's"
    )
    call_bytes: int | None = _added(
        _INT64,
        "bytes",
        "rivals-cpu: most memory that Python, NumPy and Arrow held during a call, with its output; memory of the "
        "codecs is not seen; null for Vortex and Lance, whose memory is Rust's",
    )
    # kind instructions: lists of two calls, for the first half of the batches and for all
    counted_records: Sequence[int] | None = _added(_INT64_LIST, "records", "records of each call")
    kernel_instructions: Sequence[int] | None = _added(
        _INT64_LIST, "instructions", "instructions of kernels and NumPy in each call"
    )
    library_instructions: Sequence[int] | None = _added(
        _INT64_LIST, "instructions", "instructions of the codec's library in each call"
    )
    python_instructions: Sequence[int] | None = _added(
        _INT64_LIST, "instructions", "instructions of Python and libc in each call"
    )
    l1_misses: Sequence[int] | None = _added(
        _INT64_LIST, "misses", "simulated misses of the first-level caches of instructions and data"
    )
    last_level_misses: Sequence[int] | None = _added(_INT64_LIST, "misses", "simulated misses of the last-level cache")


COLUMNS: Final = tuple(Column(name=each.name, **each.metadata) for each in fields(StoredRow))
ADDED: Final = frozenset(column.name for column in COLUMNS if column.is_added)
WORKLOAD_COLUMNS: Final = tuple(column for column in COLUMNS if column.is_axis)
SCHEMA: Final = pa.schema(
    [
        pa.field(column.name, column.type, column.nullable, {"unit": column.unit, "meaning": column.meaning})
        for column in COLUMNS
    ],
    {"kfbench_schema_version": str(SCHEMA_VERSION)},
)

MEASURED: Final = (
    "host", "inner_loops", "cpu_ns", "wall_ns", "rotated_bytes", "warm_up_calls", "watched_ns", "others_cpu_ns",
    "stolen_ns", "yardstick_ns", "generate_ns", "resident_bytes",
    "training_ns", "call_bytes", "kernel_instructions", "library_instructions", "python_instructions", "l1_misses",
    "last_level_misses",
    "extra_bytes",  # it includes Python's own objects: the same call differs by some 60 bytes between processes
)  # fmt: skip
# The columns that identify a row within its run. `Run.table` sorts rows by these columns, in this order.
IDENTITY: Final = (
    "kind", "grid", "cell_id", "seed", "codec", "level", "operation", "to_format", "format", "arm", "cache", "start",
    "dictionary", "dictionary_size_bytes", "trained_share", "part", "live",
)  # fmt: skip


def _identity_without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in IDENTITY if name not in names)


ARM: Final = _identity_without("grid")  # without the block: a cell of several blocks is measured once
SELF: Final = _identity_without("grid", "arm")  # equal for a base and its A/A arm
ROUNDS: Final = _identity_without("grid", "format", "arm")  # equal for all arms that were timed in the same rounds
ROUNDS_PREFIX: Final = _identity_without(
    "grid", "operation", "arm"
)  # the same for kind prefix: its arms are operations of one format
# the same for kind dictionary-cpu: plain zstd and zstd with dictionaries of several sizes, in one format
ROUNDS_DICTIONARY: Final = _identity_without("grid", "arm", "dictionary", "dictionary_size_bytes", "trained_share")
# the same for kind dictionary-broker: plain zstd and zstd with a dictionary, in all formats
ROUNDS_DICTIONARY_BROKER: Final = tuple(name for name in ROUNDS_DICTIONARY if name != "format")
_DICTIONARY: Final = ("dictionary", "dictionary_size_bytes", "trained_share", "part", "live")
CELL: Final = _identity_without("operation", "to_format", "format", "arm", "cache", *_DICTIONARY)
# The columns that are the same with any Spark master, partitioning and day, if the codec libraries are the same.
DETERMINISTIC: Final = tuple(name for name in SCHEMA.names if name not in MEASURED)

Row = dict[str, Any]  # some columns of a row that is not complete yet; `table` checks the names


def table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return the rows as an Arrow table with the schema SCHEMA. Raises KeyError for an unknown column."""
    rows = list(rows)
    for row in rows:
        if unknown := row.keys() - set(SCHEMA.names):
            raise KeyError(f"no column {', '.join(sorted(unknown))}")
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def stored_rows(rows: pa.Table) -> list[StoredRow]:
    """Return the rows of an Arrow table as objects. A column that the table lacks is None."""
    return [StoredRow(**row) for row in rows.to_pylist()]


def counts_text(counts: Mapping[str, int]) -> str:
    """Return a mapping from names to counts as JSON. The columns `losses` and `field_bytes` have this form."""
    return json.dumps(dict(counts), separators=(",", ":"))
