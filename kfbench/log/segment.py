"""Reading and writing a log segment: the magic byte of each batch picks its format."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, as_bytes
from kfbench.batches import BATCH, DecodedLog, EncodedLog
from kfbench.codecs import CODEC_NAMES, Allowance
from kfbench.errors import CorruptLog, KfbenchError
from kfbench.formats import FORMATS, Entries, Format
from kfbench.formats._batched import BatchedFormat
from kfbench.formats._damage import OnError
from kfbench.layouts import SHARED_HEADERS, V3_FEATURES_MASK
from kfbench.limits import Limits
from kfbench.records import Records, Shapes

BY_MAGIC: Final = {fmt.magic: fmt for name in ("v0", "v1", "v2", "v3") for fmt in [FORMATS[name]]}


def read_log(
    source: str | os.PathLike[str] | Any, on_error: OnError = "raise", limits: Limits | None = None
) -> DecodedLog:
    """Reads a log segment, from a path or from bytes: magics 0 to 3, mixed, any codec.

    on_error: "raise" the first CorruptLog, or "skip" damaged batches and list them in `.errors`. An incomplete last
    batch is no error: `.trailing_bytes`. limits: what the bytes may make it allocate (None: the defaults).
    Raises KfbenchError for a file that cannot be read.
    """
    name = None
    if isinstance(source, EncodedLog):
        source = source.data
    if isinstance(source, str | os.PathLike):
        name, source = os.fspath(source), _read(Path(source))
    data = as_bytes("source", source)
    entries = Entries.of(data)
    allowance = Allowance.of(len(data), limits)
    cuts = [0, *(np.flatnonzero(np.diff(entries.magics)) + 1).tolist(), len(entries.magics)]
    parts: list[DecodedLog] = []
    errors: list[CorruptLog] = []
    try:
        for first, end in pairwise(cuts):
            magic, positions = int(entries.magics[first]) if first < end else 2, entries.positions[first : end + 1]
            if magic in BY_MAGIC:
                parts.append(BY_MAGIC[magic].decode_at(data, positions, on_error, allowance))
                errors += parts[-1].errors
            else:
                known = ", ".join(map(str, BY_MAGIC))
                unknown = [CorruptLog(at, "magic", f"{magic} is none of {known}") for at in positions[:-1].tolist()]
                if on_error == "raise":
                    raise unknown[0]
                errors += unknown
        errors += entries.errors(on_error)
    except CorruptLog as error:
        raise CorruptLog(error.position, error.field, error.promise, name) from None
    if name:
        errors = [CorruptLog(error.position, error.field, error.promise, name) for error in errors]
    return replace(_together(parts), errors=errors, trailing_bytes=entries.trailing_bytes)


def _read(path: Path) -> Bytes:
    # Not mapped: a broker may truncate a live segment, and a page that is gone kills the process.
    try:
        return np.frombuffer(path.read_bytes(), np.uint8)
    except (OSError, ValueError) as error:
        raise KfbenchError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _together(parts: list[DecodedLog]) -> DecodedLog:
    if not parts:
        return FORMATS["v2"].decode(b"")
    if len(parts) == 1:
        return parts[0]
    return DecodedLog(
        records=_joined([part.records for part in parts]),
        bounds=_chained([part.bounds for part in parts]),
        create_timestamps_ms=np.concatenate([part.create_timestamps_ms for part in parts]),
        rows=partial(_joined_rows, parts),
        tags=partial(_joined_tags, parts) if any(part.tags for part in parts) else None,
    )


def _joined_rows(parts: list[DecodedLog]) -> NDArray[np.void]:
    return np.concatenate([part.batch_rows for part in parts]) if parts else np.zeros(0, BATCH)


def _joined_tags(parts: list[DecodedLog]) -> Sequence[Mapping[int, bytes]]:
    return [fields for part in parts for fields in part.tagged_fields]


def _chained(bounds: list[Int64]) -> Int64:
    """Boundaries one after another as one."""
    starts = np.cumsum([0, *(int(part[-1]) for part in bounds)])
    return np.concatenate([*(part[:-1] + start for part, start in zip(bounds, starts, strict=False)), starts[-1:]])


def _joined(parts: list[Records]) -> Records:
    columns: dict[str, Any] = {}
    for field in fields(Shapes):
        arrays = [getattr(part.shapes, field.name) for part in parts]
        columns[field.name] = _chained(arrays) if field.name == "header_bounds" else np.concatenate(arrays)
    # The runs of a log mostly share its buffer: each distinct one is kept once.
    distinct = {_place(data): data for part in parts for data in part.buffers}
    places = dict(zip(distinct, np.cumsum([0, *map(len, distinct.values())]).tolist(), strict=False))
    buffers = list(distinct.values())
    joined = buffers[0] if len(buffers) == 1 else np.concatenate([np.zeros(0, np.uint8), *buffers])
    for name in ("key", "value", "header_key", "header_value"):
        starts = [
            getattr(part, f"{name}_starts") + places.get(_place(getattr(part, f"{name}_data")), 0) for part in parts
        ]
        columns[f"{name}_data"], columns[f"{name}_starts"] = joined, np.concatenate(starts)
    shapes = Shapes(**{field.name: columns.pop(field.name) for field in fields(Shapes)})
    return Records(shapes=shapes, **columns)


def _place(data: Bytes) -> tuple[int, int]:
    return data.ctypes.data, len(data)


def write_log(log: DecodedLog) -> EncodedLog:
    """Encodes a log that was read anew, batch by batch in its own format and codec.

    Equal to what was read where that was plain and canonical (`.batches` says which are): no over-long varints, unused
    bits or record attributes.
    """
    rows, records = log.batch_rows, log.source_records
    features = np.where(rows["magic"] == 3, rows["attributes"].astype(np.int64) & V3_FEATURES_MASK, 0)
    features = np.where(rows["shared_headers"] > 0, features | SHARED_HEADERS, features)
    kinds = (
        np.stack([rows["magic"], np.where(rows["count"], rows["codec"], 0), features])
        if len(rows)
        else np.zeros((3, 0))
    )
    cuts = [0, *(np.flatnonzero(np.any(np.diff(kinds, axis=1), axis=0)) + 1).tolist(), len(rows)]
    pieces: list[EncodedLog] = []
    all_fields = log.batch_fields
    for first, end in pairwise(cuts):
        if first == end:
            continue
        row = rows[first]
        fmt = FORMATS[log.format_name] if log.format_name else _format_of(int(row["magic"]), int(features[first]))
        span = slice(int(log.bounds[first]), int(log.bounds[end]))
        pieces.append(
            fmt.encode(
                sliced(records, span),
                log.bounds[first : end + 1] - span.start,
                CODEC_NAMES[int(kinds[1, first])],
                batch_fields=all_fields.part(first, end),
            )
        )
    data: Bytes = np.concatenate([piece.data for piece in pieces]) if pieces else np.zeros(0, np.uint8)
    return EncodedLog(data=data, positions=_chained([piece.positions for piece in pieces] or [np.zeros(1, np.int64)]))


def _format_of(magic: int, features: int) -> Format:
    if magic != 3:
        return BY_MAGIC[magic]
    named = (fmt for fmt in FORMATS.values() if fmt.magic == 3 and fmt.features == features)
    return next(named, None) or BatchedFormat(name="v3", magic=3, summary="unnamed", features=features)


def sliced(records: Records, span: slice) -> Records:
    """The records span.start to span.stop, no payload copied."""
    shapes = records.shapes
    bounds = shapes.header_bounds[span.start : span.stop + 1]
    inner = slice(int(bounds[0]), int(bounds[-1]))
    columns = {
        field.name: getattr(shapes, field.name)[inner if field.name.startswith("header") else span]
        for field in fields(Shapes)
        if field.name != "header_bounds"
    }
    buffers = {
        field.name: getattr(records, field.name)[inner if field.name.startswith("header") else span]
        if field.name.endswith("starts")
        else getattr(records, field.name)
        for field in fields(Records)
        if field.name != "shapes"
    }
    return Records(shapes=Shapes(**columns, header_bounds=bounds - bounds[0]), **buffers)
