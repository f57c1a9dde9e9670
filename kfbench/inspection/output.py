"""Write the output of `kfbench inspect` while a segment is read: as text, one JSON document, or JSON lines.

Whole columns of batches and records are converted at once, because work per field would be slow.
"""

import base64
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import DecodedLog
from kfbench.codecs import Dictionary
from kfbench.inspection.segment import Inspection, MissingBatches, SegmentPiece, SegmentReader
from kfbench.layouts import CONTROL_TYPES
from kfbench.log.damage import Damage, WithoutDictionary
from kfbench.records import Records
from kfbench.text import count_words, preview, printable, text_table

FIRST_MS: Final = -62_135_596_800_000  # the year 1
LAST_MS: Final = 253_402_300_799_999  # the year 9999
# The width of each column in characters. Columns with "-" are aligned to the left. A long codec takes from the offsets.
LINE: Final = "%12s  %9s  %5s  %-29s  %7s  %-23s  %5s  %-22s  %s"
TITLES: Final = (
    "position", "bytes", "magic", "codec   offsets", "records", "newest(UTC)", "epoch", "producer", "flags",
)  # fmt: skip


def text(reader: SegmentReader, with_records: bool) -> Iterator[str]:
    """Yield the lines of text about one segment: its batches, with their records if wanted, then the summary."""
    yield LINE % TITLES
    for part in reader.parts():
        positions = part.positions.tolist()
        records = record_lines(part) if with_records else iter([[]] * len(positions))
        damaged = list(part.damage)
        for position, line, of_batch in zip(positions, batch_lines(part), records, strict=True):
            while damaged and damaged[0].position < position:
                yield _damage_line(damaged.pop(0))
            yield line
            yield from of_batch
        yield from map(_damage_line, damaged)
    found = reader.found
    if rest := _tail_words(found):
        yield f"{found.size_bytes - found.trailing_bytes - found.allocated_bytes:>12}  {rest}"
    yield ""
    yield from summary_lines(found)


def _damage_line(damage: Damage) -> str:
    if isinstance(damage, WithoutDictionary):
        return f"{damage.position:>12}  NOT READ, {damage.size_bytes:,} bytes: dictionary {damage.promise}"
    if not damage.size_bytes:
        return f"{damage.position:>12}  OUT OF ORDER: {damage.field}: {damage.promise}"
    return f"{damage.position:>12}  DAMAGED, {damage.size_bytes:,} bytes left out: {damage.field}: {damage.promise}"


def summary_lines(found: Inspection) -> Iterator[str]:
    """Yield the lines of the summary of a segment that was read to its end."""
    sizes = [count_words(found.size_bytes, "byte"), count_words(found.batch_count, "batch")]
    yield f"{printable(found.path)}: {', '.join(sizes)}, {count_words(found.record_count, 'record')}"
    if found.batch_count:
        kinds = [f"magic {magic} ({count:,})" for magic, count in sorted(found.magics.items())]
        kinds += [f"{codec} ({count:,})" for codec, count in sorted(found.codecs.items())]
        yield "batches by kind: " + ", ".join(kinds)
        yield "records per batch: " + _quantile_words(found.records_per_batch)
        yield "bytes per batch: " + _quantile_words(found.bytes_per_batch)
        gaps = f", {count_words(found.gaps, 'gap')} of {count_words(found.missing_offsets, 'offset')}"
        yield f"offsets: {found.first_offset} to {found.last_offset}{gaps if found.gaps else ''}"
        special = {"transactional": found.transactional_batches, "control": found.control_batches}
        words = ", ".join(f"{count:,} {kind}" for kind, count in special.items() if count)
        yield f"producers with an id: {len(found.producers):,}{f'; batches: {words}' if words else ''}"
    if found.first_ms is not None and found.last_ms is not None:
        yield f"times: {utc(found.first_ms)} to {utc(found.last_ms)} UTC"
    yield from map(dictionary_line, found.dictionaries.values())
    for missing in found.missing:
        yield f"not read: {missing_words(missing)} ({count_words(missing.size_bytes, 'byte')})"
        yield from _missing_hint(found, missing)
    yield f"damage: {_damage_words(found)}"
    if rest := _tail_words(found):
        yield f"at the end: {rest}"


def missing_words(missing: MissingBatches) -> str:
    """Return the number of batches that cannot be read, the dictionary that they name, and the reason."""
    names = "names" if missing.batches == 1 else "name"
    reason = missing.reason.removeprefix(f"number {missing.number} ")
    return f"{count_words(missing.batches, 'batch')} {names} dictionary {missing.number}, which {reason}"


def _missing_hint(found: Inspection, missing: MissingBatches) -> Iterator[str]:
    if missing.number not in found.dictionaries:
        whole = f"cat DICTIONARY {printable(shlex.quote(found.path))} > WHOLE.log"
        yield f"  hint: {whole}. DICTIONARY is the dictionary's file, or a segment that begins with it"
    elif missing.reason.endswith("is missing"):
        yield f"  hint: dictionary {missing.number} stands after these batches. kfbench.read_log reads them"


def dictionary_line(dictionary: Dictionary) -> str:
    """Return one line about a stored dictionary."""
    on = dictionary.trained_on
    words = "raw" if dictionary.is_raw else "trained"
    if on is not None:
        words += f" {'from' if dictionary.is_raw else 'on'} {count_words(on.records, 'record')} in {on.format}"
        words += "" if on.batch_size is None else f" ({on.batch_size:,} per batch)"
    size = count_words(len(dictionary.data), "byte")
    return f"dictionary {dictionary.number}: {size}, {words}, SHA-256 {dictionary.sha256.hex()}"


def _quantile_words(quantiles: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:,.0f}" for name, value in quantiles.items())


def _damage_words(found: Inspection) -> str:
    if found.damage:
        lost = [each.size_bytes for each in found.damage if each.size_bytes]
        words = [f"{count_words(sum(lost), 'byte')} left out in {count_words(len(lost), 'place')}"] if lost else []
        if back := len(found.damage) - len(lost):
            words.append(f"offsets repeat or go back in {count_words(back, 'place')}")
        return ", ".join(words)
    if not found.trailing_bytes:
        return found.unreadable_reason or "none"
    # A truncated copy looks the same as a segment that a broker is writing.
    end = found.size_bytes - found.trailing_bytes
    return f"none before byte {end:,}" if found.batch_count or found.missing else str(found.unreadable)


def _tail_words(found: Inspection) -> str:
    if found.allocated_bytes:
        return f"{count_words(found.allocated_bytes, 'byte')} of zeros, allocated ahead"
    if found.trailing_bytes == found.size_bytes and not found.begins_batch:  # no log: see `unreadable`
        return ""
    if found.trailing_bytes:
        return f"{count_words(found.trailing_bytes, 'byte')} of an incomplete batch, being written or cut off"
    return ""


def files_table(inspections: Sequence[Inspection]) -> Iterator[str]:
    """Yield the lines of a table: one row per file, then the sums of all files."""
    rows = [["file", "bytes", "batches", "records", "per batch", "codecs", "damage"]]
    for each in inspections:
        median = each.records_per_batch.get("p50")
        rows.append(
            [
                each.path,
                f"{each.size_bytes:,}",
                f"{each.batch_count:,}",
                f"{each.record_count:,}",
                "-" if median is None else f"{median:,.0f}",
                ", ".join(sorted(each.codecs)) or "-",
                "; ".join([each.unreadable or _damage_words(each), *map(missing_words, each.missing)]),
            ]
        )
    sums = [sum(getattr(each, name) for each in inspections) for name in ("size_bytes", "batch_count", "record_count")]
    rows.append([count_words(len(inspections), "file"), *(f"{each:,}" for each in sums), "", "", ""])
    yield from text_table(rows, right=range(1, 5), has_rule=True)


def json_document(readers: Iterable[SegmentReader], with_records: bool) -> Iterator[str]:
    """Yield the text of one JSON array. It has one object per file: its batches, then its sums.

    with_records: True if each batch has its records.
    """
    separator = "["
    for reader in readers:
        yield f'{separator}\n{{"batches": ['
        separator, comma = ",", ""
        for part in reader.parts():
            records = record_objects(part) if with_records else None
            for batch in batch_objects(part):
                yield f"{comma}\n{json.dumps(batch | {'records': next(records)} if records else batch)}"
                comma = ","
        yield f"\n], {json.dumps(reader.found.to_dict())[1:]}"
    yield f"{'[' if separator == '[' else ''}\n]\n"


def json_lines(reader: SegmentReader, with_batches: bool, with_records: bool) -> Iterator[str]:
    """Yield one JSON object per line: {"kind": "batch"}, then the batch's records, and finally {"kind": "file"}.

    Without `with_batches` and `with_records` there is only the last line.
    """
    for part in reader.parts():
        records = record_objects(part) if with_records else None
        for batch in batch_objects(part) if with_batches or with_records else ():
            yield json.dumps({"kind": "batch", **batch}) + "\n"
            for record in next(records) if records else ():
                yield json.dumps({"kind": "record", **record}) + "\n"
    yield json.dumps({"kind": "file", **reader.found.to_dict()}) + "\n"


def batch_lines(part: SegmentPiece) -> Iterator[str]:
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


def record_lines(part: SegmentPiece) -> Iterator[list[str]]:
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


def batch_objects(part: SegmentPiece) -> list[dict[str, Any]]:
    """Return the fields of each batch, for JSON."""
    objects: list[dict[str, Any]] = part.log.batches.assign(position=part.positions).to_dict("records")
    return objects


def record_objects(part: SegmentPiece) -> Iterator[list[dict[str, Any]]]:
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
