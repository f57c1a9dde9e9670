"""Format the batches and records of a part of a segment as lines of text or JSON.

Whole columns are converted at once, because work per field would be slow.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.batches import DecodedLog
from kfbench.inspection.segment import Part
from kfbench.inspection.values import json_text, utc, utc_column
from kfbench.layouts import CONTROL_TYPES
from kfbench.records import Records
from kfbench.text import preview, printable

TITLES: Final = "position bytes magic codec offsets records newest(UTC) epoch producer flags".split()
# The width of each column in characters. Columns with "-" are aligned to the left. A long codec takes from the offsets.
LINE: Final = "%12s  %9s  %5s  %-29s  %7s  %-23s  %5s  %-22s  %s"


def title_line() -> str:
    first, second = TITLES[:3], TITLES[5:]
    return LINE % (*first, f"{TITLES[3]:<6}  {TITLES[4]}", *second)


def batch_lines(part: Part) -> Iterator[str]:
    """Return one line of text per batch."""
    log = part.log
    frame = log.batches
    columns = {name: frame[name].tolist() for name in frame}
    producers, flags = ["-"] * len(log), [""] * len(log)
    rows = log.batch_rows
    is_plain = (rows["producer_id"] < 0) & (frame["timestamp_type"].to_numpy() != "append") & rows["canonical"]
    is_plain &= rows["dictionary"] < 0
    is_plain &= (rows["delete_horizon_ms"] < 0) & ~rows["is_transactional"] & ~rows["is_control"]
    for i in np.flatnonzero(~is_plain).tolist():
        batch = {name: values[i] for name, values in columns.items()}
        producers[i], flags[i] = _producer(batch), ", ".join(_flags(log, i, batch))
    cells = zip(
        part.positions.tolist(),
        columns["size_bytes"],
        columns["magic"],
        map(
            "%-6s  %d..%d".__mod__,
            zip(columns["codec"], columns["base_offset"], columns["last_offset"], strict=True),
        ),
        columns["count"],
        utc_column(frame["max_timestamp_ms"].to_numpy()),
        [epoch if epoch >= 0 else "-" for epoch in columns["partition_leader_epoch"]],
        producers,
        flags,
        strict=True,
    )
    return (line.rstrip() for line in map(LINE.__mod__, cells))


def _producer(batch: Mapping[str, Any]) -> str:
    if batch["producer_id"] < 0:
        return "-"
    sequences = f" {batch['base_sequence']}..{batch['last_sequence']}" if batch["base_sequence"] >= 0 else ""
    return f"{batch['producer_id']}/{batch['producer_epoch']}{sequences}"


def _flags(log: DecodedLog, i: int, batch: Mapping[str, Any]) -> Iterator[str]:
    if batch["timestamp_type"] == "append":
        yield "append time"
    if batch["is_transactional"]:
        yield "transactional"
    if batch["is_control"]:
        yield f"control: {_control_type(log, i)}"
    if batch["dictionary"] >= 0:
        yield f"dictionary {batch['dictionary']}"
    if batch["delete_horizon_ms"] >= 0:
        yield f"delete horizon {utc(batch['delete_horizon_ms'])}"
    if not batch["canonical"]:
        yield "not canonical"


def _control_type(log: DecodedLog, i: int) -> str:
    first, end = log.bounds[i : i + 2].tolist()
    key = log.records.key(first) if first < end else None
    if key is None or len(key) < 4:
        return "unknown"
    number = int.from_bytes(key[2:4], "big", signed=True)
    return CONTROL_TYPES.get(number, f"unknown type {number}")


class Columns(NamedTuple):
    """The columns of records as Python lists, with one item per record."""

    offsets: list[int]
    timestamps_ms: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[list[tuple[str, bytes | None]]]


def columns_of(records: Records) -> Columns:
    return Columns(
        records.offsets.tolist(),
        records.timestamps_ms.tolist(),
        records.keys(),
        records.values(),
        records.header_lists(),
    )


def record_lines(part: Part) -> Iterator[list[str]]:
    """Yield a list per batch: one line of text per record."""
    records = part.log.records
    columns, times = columns_of(records), utc_column(records.timestamps_ms)
    lines = [
        f"              {offset}  {time}  key {preview(key)}  value {preview(value)}"
        for offset, time, key, value in zip(columns.offsets, times, columns.keys, columns.values, strict=True)
    ]
    for i, headers in enumerate(columns.headers):
        if headers:
            lines[i] += "  headers " + ", ".join(f"{printable(name)}={preview(value)}" for name, value in headers)
    for first, end in pairwise(part.log.bounds.tolist()):
        yield lines[first:end]


def batch_objects(part: Part, prefix: str = "") -> Iterator[str]:
    """Yield one JSON object per batch, without its closing brace, so that the caller can add fields.

    prefix: JSON text of fields to put in front, with a comma at its end.
    """
    frame = part.log.batches.assign(position=part.positions)
    texts = []
    for name in frame:
        values = frame[name].to_numpy()
        if values.dtype == bool:
            texts.append(np.where(values, "true", "false").tolist())
        elif values.dtype.kind in "iu":
            texts.append(list(map(str, values.tolist())))
        else:
            texts.append([f'"{value}"' for value in values.tolist()])
    template = "{" + prefix + ", ".join(f'"{name}": %s' for name in frame)
    for row in zip(*texts, strict=True):
        yield template % row


def record_objects(part: Part, prefix: str = "") -> Iterator[list[str]]:
    """Yield a list per batch: one JSON object per record.

    prefix: JSON text of fields to put in front, with a comma at its end.
    """
    columns = columns_of(part.log.records)
    objects = [
        f'{{{prefix}"offset": {offset}, "timestamp_ms": {time_ms}, "key": {json_text(key)}, '
        f'"value": {json_text(value)}, "headers": {_json_headers(headers)}}}'
        for offset, time_ms, key, value, headers in zip(*columns, strict=True)
    ]
    for first, end in pairwise(part.log.bounds.tolist()):
        yield objects[first:end]


def _json_headers(headers: list[tuple[str, bytes | None]]) -> str:
    if not headers:
        return "[]"
    return f"[{', '.join(f'[{json_text(name.encode())}, {json_text(value)}]' for name, value in headers)}]"
