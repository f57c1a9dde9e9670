"""Convert the batches and records of a part of a segment to lines of text, or to values for JSON.

Whole columns are converted at once, because work per field would be slow.
"""

import base64
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import DecodedLog
from kfbench.inspection.segment import Part
from kfbench.layouts import CONTROL_TYPES
from kfbench.records import Records
from kfbench.text import preview, printable

FIRST_MS: Final = -62_135_596_800_000  # the year 1
LAST_MS: Final = 253_402_300_799_999  # the year 9999
# The width of each column in characters. Columns with "-" are aligned to the left. A long codec takes from the offsets.
LINE: Final = "%12s  %9s  %5s  %-29s  %7s  %-23s  %5s  %-22s  %s"
TITLES: Final = (
    "position", "bytes", "magic", "codec   offsets", "records", "newest(UTC)", "epoch", "producer", "flags",
)  # fmt: skip


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


def _record_values(records: Records) -> Iterator[tuple[int, int, Any, Any, list[tuple[str, Any]]]]:
    """Return the offset, the timestamp, the key, the value and the headers of each record."""
    offsets, times_ms = records.offsets.tolist(), records.timestamps_ms.tolist()
    return zip(offsets, times_ms, records.keys(), records.values(), records.header_lists(), strict=True)


def record_lines(part: Part) -> Iterator[list[str]]:
    """Yield a list per batch: one line of text per record."""
    records, lines = part.log.records, []
    times = utc_column(records.timestamps_ms)
    for time, (offset, _, key, value, headers) in zip(times, _record_values(records), strict=True):
        line = f"              {offset}  {time}  key {preview(key)}  value {preview(value)}"
        if headers:
            line += "  headers " + ", ".join(f"{printable(name)}={preview(value)}" for name, value in headers)
        lines.append(line)
    for first, end in pairwise(part.log.bounds.tolist()):
        yield lines[first:end]


def batch_objects(part: Part) -> Iterator[dict[str, Any]]:
    """Yield the fields of each batch, for JSON."""
    frame = part.log.batches.assign(position=part.positions)
    names = list(frame)
    for values in zip(*(frame[name].tolist() for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def record_objects(part: Part) -> Iterator[list[dict[str, Any]]]:
    """Yield a list per batch: the fields of each record, for JSON."""
    objects = [
        {
            "offset": offset,
            "timestamp_ms": time_ms,
            "key": json_value(key),
            "value": json_value(value),
            "headers": [[name, json_value(each)] for name, each in headers],
        }
        for offset, time_ms, key, value, headers in _record_values(part.log.records)
    ]
    for first, end in pairwise(part.log.bounds.tolist()):
        yield objects[first:end]


def json_value(data: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as a JSON value without loss: a string, or {"base64": ...} if they are not UTF-8. None is null."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def utc(timestamp_ms: int) -> str:
    """Return a timestamp (ms since 1970) as a date in UTC. -1 (no timestamp) is "-".

    A timestamp outside the years 1 to 9999 becomes a number: "… ms".
    """
    return utc_column(np.array([timestamp_ms]))[0]


def utc_column(timestamps_ms: Int64) -> list[str]:
    """Convert an array of timestamps, int64[n], to n texts. See `utc` for the form of each text."""
    is_date = (timestamps_ms >= FIRST_MS) & (timestamps_ms <= LAST_MS) & (timestamps_ms != -1)
    texts = np.datetime_as_string(np.where(is_date, timestamps_ms, 0).astype("M8[ms]"), unit="ms").tolist()
    return [
        text.replace("T", " ") if known else "-" if time_ms == -1 else f"{time_ms} ms"
        for text, known, time_ms in zip(texts, is_date.tolist(), timestamps_ms.tolist(), strict=True)
    ]
