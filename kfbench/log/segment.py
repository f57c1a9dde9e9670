"""Read a log segment. The magic byte of each batch selects its format."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.arrays import Bytes, as_bytes, place_of, rows_joined
from kfbench.batches import DecodedLog, EncodedLog
from kfbench.codecs import Allowance, Dictionary
from kfbench.errors import CorruptLog, KfbenchError
from kfbench.formats import BASE_FORMAT, BY_MAGIC, FORMATS, Entries, OnError, unknown_magic
from kfbench.layouts import MAGIC_AT
from kfbench.limits import Limits
from kfbench.log.dictionaries import add_stored
from kfbench.log.writing import chained, runs
from kfbench.records import PAYLOAD, Records, Shapes

IS_LOG: Final = "is this a log segment?"
LOG_SUFFIX: Final = ".log"
NO_MAGIC: Final = 1 << 8  # takes the place of a magic byte


def read_log(
    source: str | os.PathLike[str] | Any,
    on_error: OnError = "raise",
    limits: Limits | None = None,
    dictionaries: Iterable[Dictionary] = (),
) -> DecodedLog:
    """Read a log segment from a path or from bytes. It may mix formats and codecs. No bytes are an empty log.

    on_error: "raise" the first CorruptLog, or "skip" damaged batches and list them in `.errors`. limits: limits of the
    memory that the reader allocates; None: the defaults. dictionaries: zstd dictionaries, in addition to those that
    stand in the log. Raises KfbenchError for a file that cannot be read.

    An incomplete last batch is no error: its size is in `.trailing_bytes`. If no batch comes before it, its first bytes
    must look like a batch. Otherwise the bytes are no log, which is an error. Zeros at the end (log.preallocate) are an
    error too, as in Kafka. `kfbench inspect` can tell these zeros from damage.
    """
    name = None
    if isinstance(source, EncodedLog):
        source = source.data
    if isinstance(source, str | os.PathLike):
        name, source = os.fspath(source), _read(Path(source))
    data = as_bytes("source", source)
    entries = Entries.of(data)
    allowance = Allowance.of(len(data), limits, dictionaries)
    try:
        parts, errors = _read_runs(data, entries, on_error, allowance)
    except CorruptLog as error:
        raise error.at(error.position, name) from None
    if name:
        errors = [error.at(error.position, name) for error in errors]
    return replace(
        _join_logs(parts),
        dictionaries=allowance.dictionary_codec.dictionaries,
        errors=errors,
        trailing_bytes=entries.trailing_bytes,
    )


class _Runs(NamedTuple):
    """The decoded log of each run of neighbouring entries with the same magic, and the errors of all runs."""

    parts: list[DecodedLog]
    errors: list[CorruptLog]


def _read_runs(data: Bytes, entries: Entries, on_error: OnError, allowance: Allowance) -> _Runs:
    """Decode each run of neighbouring entries with the same magic. With on_error="raise" raise the first error."""
    parts: list[DecodedLog] = []
    errors: list[CorruptLog] = []
    damaged, magics = add_stored(data, entries.positions, entries.magics, allowance), entries.magics.astype(int)
    magics[[*damaged]] = NO_MAGIC  # neither read nor joined with their neighbours
    for first, end in runs(magics):
        magic, positions = int(magics[first]), entries.positions[first : end + 1]
        if magic == NO_MAGIC:
            found = [damaged[entry] for entry in range(first, end)]
            if on_error == "raise":
                raise found[0]
            errors += found
        elif magic in BY_MAGIC:
            parts.append(BY_MAGIC[magic].decode_at(data, positions, on_error, allowance))
            errors += parts[-1].errors
        else:
            unknown = [unknown_magic(magic, at) for at in positions[:-1].tolist()]
            if on_error == "raise":
                raise unknown[0]
            errors += unknown
    errors += entries.errors(on_error)
    if 0 < len(data) == entries.trailing_bytes and not begins_batch(data):
        errors.append(CorruptLog(0, "magic", f"no batch begins like these {len(data):,} bytes: {IS_LOG}"))
        if on_error == "raise":
            raise errors[-1]
    return _Runs(parts, errors)


def begins_batch(data: Bytes) -> bool:
    """Return True if a batch may begin with these bytes.

    The magic must be known. If there are too few bytes for a magic, the first byte (of the offset) must be 0.
    """
    return int(data[MAGIC_AT]) in BY_MAGIC if len(data) > MAGIC_AT else data[0] == 0


def _read(path: Path) -> Bytes:
    # Not mapped into memory: a broker may truncate a live segment, and reading a missing page kills the process.
    try:
        return np.frombuffer(path.read_bytes(), np.uint8)
    except (OSError, ValueError) as error:
        raise KfbenchError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _join_logs(parts: list[DecodedLog]) -> DecodedLog:
    if not parts:
        return FORMATS[BASE_FORMAT].decode(b"")
    if len(parts) == 1:
        return parts[0]
    has_tags = any(part.tags for part in parts)
    return DecodedLog(
        records=join_records([part.records for part in parts]),
        bounds=chained([part.bounds for part in parts]),
        create_timestamps_ms=np.concatenate([part.create_timestamps_ms for part in parts]),
        rows=lambda: rows_joined([part.batch_rows for part in parts]),
        tags=(lambda: [fields for part in parts for fields in part.tagged_fields]) if has_tags else None,
    )


def join_records(parts: Sequence[Records]) -> Records:
    """Concatenate records. A buffer that several parts use is stored only once."""
    columns: dict[str, Any] = {}
    for field in fields(Shapes):
        arrays = [getattr(part.shapes, field.name) for part in parts]
        columns[field.name] = chained(arrays) if field.name == "header_bounds" else np.concatenate(arrays)
    # Usually the parts share one buffer: the log.
    distinct = {place_of(data): data for part in parts for data in part.buffers}
    places = dict(zip(distinct, np.cumsum([0, *map(len, distinct.values())]).tolist(), strict=False))
    buffers = list(distinct.values())
    data = buffers[0] if len(buffers) == 1 else np.concatenate([np.zeros(0, np.uint8), *buffers])
    for name in PAYLOAD:
        starts = [
            getattr(part, f"{name}_starts") + places.get(place_of(getattr(part, f"{name}_data")), 0) for part in parts
        ]
        columns[f"{name}_data"], columns[f"{name}_starts"] = data, np.concatenate(starts)
    shapes = Shapes(**{field.name: columns.pop(field.name) for field in fields(Shapes)})
    return Records(shapes=shapes, **columns)
