"""The columns of the result table that several kinds of measurement share: Arrow type, unit and meaning of each.

A kind declares the columns that only it has (`kfbench.measure.kinds`). `kfbench.measure.schema` has all of them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa

Row = dict[str, Any]
"""Some columns of a row that is not complete yet. `kfbench.measure.schema.table` checks the names."""


@dataclass(frozen=True, kw_only=True)
class ResultColumn:
    """A column of the result table.

    Args:
        unit: the unit of the numbers; empty if they have none.
        meaning: a description for readers of the table.
        is_axis: True if the column has the value of an axis of the workload, such as the batch size.
        is_added: True if runs of schema version 1 without the column exist. It is null in their rows.
        is_identity: True if the column identifies a row within its run, together with the others of this sort.
        is_measured: True if the values differ from run to run.
    """

    name: str
    type: pa.DataType
    unit: str
    meaning: str
    nullable: bool = True
    is_axis: bool = False
    is_added: bool = False
    is_identity: bool = False
    is_measured: bool = False


TEXT: Final = pa.string()
INT32: Final = pa.int32()
INT64: Final = pa.int64()
INT64_LIST: Final = pa.list_(pa.int64())


def added(name: str, type_: pa.DataType, unit: str, meaning: str, **more: bool) -> ResultColumn:
    """Return a column of one kind. Runs without the kind, and older runs, may lack it."""
    return ResultColumn(name=name, type=type_, unit=unit, meaning=meaning, is_added=True, **more)


def _column(type_: pa.DataType, unit: str, meaning: str, **more: bool) -> Any:
    """Declare a column. more: fields of ResultColumn. A measured column differs from run to run."""
    return field(default=None, metadata={"type": type_, "unit": unit, "meaning": meaning, **more})


_axis: Final = partial(_column, is_axis=True)
_measured: Final = partial(_column, is_measured=True)
_key: Final = partial(_column, unit="", nullable=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRow:
    """One row of the result table. A field is None if the column is null or was not read.

    of_kind: the columns that its kind of measurement declares, by name.
    """

    kind: str = _key(TEXT, meaning="kind of measurement")
    cell_id: str = _key(TEXT, meaning="hash of the workload and of its axes that are not at their default")
    status: str = _key(TEXT, meaning="ok, skipped or error")
    error: str | None = _column(TEXT, "", "why there is no measurement")
    grid: str = _key(TEXT, meaning="block of the sweep; a cell of several blocks has its rows under each of them")
    workload: str = _key(TEXT, meaning="name of the workload")
    variant: str | None = _column(TEXT, "", "variant of a workload of the catalogue")
    seed: int = _key(INT64, meaning="seed of the workload's records")
    batch_size: int | None = _axis(INT32, "records", "records per batch")
    key_bytes: int | None = _axis(INT32, "bytes", "length of every key; -1: null")
    value_bytes: int | None = _axis(INT32, "bytes", "length of every value that is not null; -1: all null")
    timestamp_spread_ms: int | None = _axis(INT64, "ms", "last timestamp of a batch minus its first")
    headers: int | None = _axis(INT32, "headers", "headers per record")
    payload: str | None = _axis(TEXT, "", "content of the payload: random, half, template, ones")
    null_share: float | None = _axis(pa.float64(), "", "share of the records whose value is null")
    header_key_bytes: int | None = _axis(INT32, "bytes", "length of every header key")
    header_value_bytes: int | None = _axis(INT32, "bytes", "length of every header value; -1: null")
    offset_stride: int | None = _axis(INT32, "", "offset of a record minus the offset before")
    base_timestamp_ms: int | None = _axis(INT64, "ms", "first timestamp of every batch; -1: none")
    producer: bool | None = _axis(pa.bool_(), "", "producer id, epoch and base sequence are set")
    append_time: bool | None = _axis(pa.bool_(), "", "log append time")
    format: str = _key(TEXT, meaning="name of the format")
    codec: str = _key(TEXT, meaning="name of the codec")
    level: int | None = _column(INT32, "", "level of the codec; null where it has none")
    codec_version: str | None = _column(TEXT, "", "library that compressed: compressed bytes depend on it")
    host: str | None = _measured(
        TEXT, "", "hash of the name of the host that measured; CPU times of two hosts never share a table"
    )
    start: int | None = _column(INT64, "records", "number of the first record in its workload")
    records: int | None = _column(INT64, "records", "records measured")
    # sizes
    batches: int | None = _column(INT64, "batches", "batches of these records")
    size_bytes: int | None = _column(INT64, "bytes", "size of all batches")
    payload_bytes: int | None = _column(INT64, "bytes", "keys, values, header keys and values")
    overhead_bytes: int | None = _column(INT64, "bytes", "size_bytes - payload_bytes; uncompressed only")
    losses: str | None = _column(TEXT, "", "JSON: what the format could not carry, and how many")
    field_bytes: str | None = _column(TEXT, "bytes", "JSON: bytes per field, sum = size_bytes; uncompressed only")
    to_format: str | None = _column(TEXT, "", "format that the path converts to; null where it keeps the format")
    # times and counts
    operation: str | None = _column(TEXT, "", "what was timed or counted")
    arm: str | None = _column(TEXT, "", "measure, or aa: the base (v2) once more, which must read 1.0")
    inner_loops: int | None = _measured(
        INT32,
        "",
        "calls per sample; the same for all arms of a cell and operation; 1 where a call changes its input",
    )
    cpu_ns: Sequence[int] | None = _measured(
        INT64_LIST,
        "ns",
        "CPU time of inner_loops calls, one item per round; round i of all arms belongs together",
    )
    wall_ns: Sequence[int] | None = _measured(INT64_LIST, "ns", "wall time of the same calls")
    cache: str | None = _column(
        TEXT,
        "",
        "resident: the working set stays in the caches; cold: it goes round through more memory than they hold",
    )
    # the host during a measurement: the same in all rows of the measurement, null if the host does not report it
    watched_ns: int | None = _measured(INT64, "ns", "wall time of the measurement, warm-up and rounds")
    others_cpu_ns: int | None = _measured(
        INT64, "ns", "CPU time of other processes on the host meanwhile, all cores together"
    )
    stolen_ns: int | None = _measured(
        INT64, "ns", "time that the hypervisor gave to others meanwhile, all cores together"
    )
    yardstick_ns: int | None = _measured(
        INT64, "ns", "fastest pass over a fixed piece of work just before: the host's speed"
    )
    of_kind: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return the value of a column, shared or of the kind."""
        return self.of_kind.get(name) if name in self.of_kind else getattr(self, name, None)


def counts_text(counts: Mapping[str, int]) -> str:
    """Return a mapping from names to counts as JSON. The columns `losses` and `field_bytes` have this form."""
    return json.dumps(dict(counts), separators=(",", ":"))
