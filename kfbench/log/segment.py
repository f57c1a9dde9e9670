"""Reading a log segment: the magic byte of each batch picks its format."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, as_bytes, rows_joined
from kfbench.batches import BATCH, DecodedLog, EncodedLog
from kfbench.codecs import Allowance
from kfbench.errors import CorruptLog, KfbenchError
from kfbench.formats import BASE_FORMAT, BY_MAGIC, FORMATS, Entries, OnError
from kfbench.layouts import MAGIC_AT
from kfbench.limits import Limits
from kfbench.log.writing import chained
from kfbench.records import PAYLOAD, Records, Shapes

IS_LOG: Final = "is this a log segment?"


def read_log(
    source: str | os.PathLike[str] | Any, on_error: OnError = "raise", limits: Limits | None = None
) -> DecodedLog:
    """Reads a log segment, from a path or from bytes: magics 0 to 4, mixed, any codec. No bytes are an empty log.

    on_error: "raise" the first CorruptLog, or "skip" damaged batches and list them in `.errors`. An incomplete last
    batch is no error: `.trailing_bytes`. Where it is all that there is, it has to begin as a batch does, or these bytes
    are no log, which is an error. Zeros at the end (log.preallocate) are one too, as in Kafka; `inspect` knows them.
    limits: what the bytes may make it allocate (None: the defaults).
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
        if 0 < len(data) == entries.trailing_bytes and not _begins_batch(data):
            errors.append(CorruptLog(0, "magic", f"no batch begins like these {len(data):,} bytes: {IS_LOG}"))
            if on_error == "raise":
                raise errors[-1]
    except CorruptLog as error:
        raise CorruptLog(error.position, error.field, error.promise, name) from None
    if name:
        errors = [CorruptLog(error.position, error.field, error.promise, name) for error in errors]
    return replace(_together(parts), errors=errors, trailing_bytes=entries.trailing_bytes)


def _begins_batch(data: Bytes) -> bool:
    """Return True where these bytes may begin a batch: the magic is known, or the first byte of the offset is 0."""
    return int(data[MAGIC_AT]) in BY_MAGIC if len(data) > MAGIC_AT else data[0] == 0


def _read(path: Path) -> Bytes:
    # Not mapped: a broker may truncate a live segment, and a page that is gone kills the process.
    try:
        return np.frombuffer(path.read_bytes(), np.uint8)
    except (OSError, ValueError) as error:
        raise KfbenchError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _together(parts: list[DecodedLog]) -> DecodedLog:
    if not parts:
        return FORMATS[BASE_FORMAT].decode(b"")
    if len(parts) == 1:
        return parts[0]
    return DecodedLog(
        records=joined([part.records for part in parts]),
        bounds=chained([part.bounds for part in parts]),
        create_timestamps_ms=np.concatenate([part.create_timestamps_ms for part in parts]),
        rows=partial(_joined_rows, parts),
        tags=partial(_joined_tags, parts) if any(part.tags for part in parts) else None,
    )


def _joined_rows(parts: list[DecodedLog]) -> NDArray[np.void]:
    return rows_joined([part.batch_rows for part in parts]) if parts else np.zeros(0, BATCH)


def _joined_tags(parts: list[DecodedLog]) -> Sequence[Mapping[int, bytes]]:
    return [fields for part in parts for fields in part.tagged_fields]


def joined(parts: Sequence[Records]) -> Records:
    """The records of all parts, one after another; buffers that parts share are kept once."""
    columns: dict[str, Any] = {}
    for field in fields(Shapes):
        arrays = [getattr(part.shapes, field.name) for part in parts]
        columns[field.name] = chained(arrays) if field.name == "header_bounds" else np.concatenate(arrays)
    # The runs of a log mostly share its buffer: each distinct one is kept once.
    distinct = {_place(data): data for part in parts for data in part.buffers}
    places = dict(zip(distinct, np.cumsum([0, *map(len, distinct.values())]).tolist(), strict=False))
    buffers = list(distinct.values())
    joined = buffers[0] if len(buffers) == 1 else np.concatenate([np.zeros(0, np.uint8), *buffers])
    for name in PAYLOAD:
        starts = [
            getattr(part, f"{name}_starts") + places.get(_place(getattr(part, f"{name}_data")), 0) for part in parts
        ]
        columns[f"{name}_data"], columns[f"{name}_starts"] = joined, np.concatenate(starts)
    shapes = Shapes(**{field.name: columns.pop(field.name) for field in fields(Shapes)})
    return Records(shapes=shapes, **columns)


def _place(data: Bytes) -> tuple[int, int]:
    return data.ctypes.data, len(data)
