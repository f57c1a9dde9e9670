"""The input of a broker operation: the bytes of a log, its format, and the headers of its batches.

`headers` reads no records, so a batch is found without decompressing any.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, as_bytes, rows_joined
from kfbench.batches import EncodedLog
from kfbench.errors import CorruptLog, IllegalCombination
from kfbench.formats import BY_MAGIC, FORMATS, Format, unknown_magic
from kfbench.kernels.broker import request_checks
from kfbench.kernels.formats import scan
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import MAGIC_AT

NOT_IN_HEADER: Final = scan.NOT_IN_HEADER
FIRST_ROWS, MOST_ROWS = 64, 1 << 16
DIALECTS: Final = {request_checks.KIP98: scan.KIP98, request_checks.ENRICHED: scan.ENRICHED}

HEADER: Final = np.dtype(
    [
        ("position", np.int64),
        ("size_bytes", np.int64),
        ("header_bytes", np.int64),  # number of bytes that were read
        ("base_offset", np.int64),  # UNSET in compressed sets of v0 and v1: their header has only the last offset
        ("last_offset", np.int64),
        ("last_is_least", np.bool_),  # last_offset is a lower bound: enriched sets may have holes
        ("count", np.int64),  # NOT_IN_HEADER: compressed sets of v0 and v1, kip98
        ("max_timestamp_ms", np.int64),  # the largest timestamp; in batches with append time, this time
        ("producer_id", np.int64),
        ("magic", np.int8),
        ("codec", np.int8),
        ("keys", np.int8),  # 1: a record has a key; 0: none has; or NOT_IN_HEADER
        ("is_append_time", np.bool_),
        ("is_transactional", np.bool_),
        ("is_control", np.bool_),
    ]
)


def bytes_of(log: EncodedLog | Any) -> Bytes:
    """Return the log's bytes without copying them. Raise InvalidRecords."""
    return as_bytes("log", log.data if isinstance(log, EncodedLog) else log)


def find(fmt: Format | str, *, for_append: bool = False) -> Format:
    """Return a format by its name, or the given format.

    Raise IllegalCombination for an unknown name, and for a format that brokers' operations do not support.

    for_append: also return a format whose only broker path is `append`.
    """
    if not isinstance(fmt, Format):
        if fmt not in FORMATS:
            raise IllegalCombination(f"{fmt}: no such format (formats: {', '.join(FORMATS)})")
        fmt = FORMATS[fmt]
    if fmt.appending.is_only_path and not for_append:  # `appending` raises for a format without broker paths
        raise IllegalCombination(f"no path for {fmt.name}: it is a research format; append is the only one")
    return fmt


def of_magic(magic: int, position: int, *, for_append: bool = False) -> Format:
    """Return the format that this magic identifies. position: the byte of the log at which its batch starts.

    Raise CorruptLog for an unknown magic, and IllegalCombination as `find` does.
    """
    if magic not in BY_MAGIC:
        raise unknown_magic(magic, position)
    return find(BY_MAGIC[magic], for_append=for_append)


def headers(
    data: Bytes,
    fmt: Format | None = None,
    position: int = 0,
    *,
    to_offset: int | None = None,
    to_ms: int | None = None,
    from_offset: int = 0,
) -> NDArray[np.void]:
    """Read a header row (dtype HEADER) per batch, starting with the batch at byte `position`.

    No checksum is checked. An incomplete last batch ends the log. Raises CorruptLog for a header that cannot be read.

    Args:
        fmt: the format of all batches; None: found by the magic of each.
        to_offset: stop after the first batch whose last offset is this one or later.
        to_ms: stop after the first batch whose largest timestamp is this one or later. Batches that end before
            from_offset do not count.
    """
    stop, target = scan.AT_END, 0
    if to_offset is not None:
        stop, target = scan.AT_OFFSET, to_offset
    elif to_ms is not None:
        stop, target = scan.AT_TIME, to_ms
    dialect, magic = dialect_of(fmt), scan.ANY_MAGIC if fmt is None else fmt.magic
    parts, room, done = list[NDArray[np.void]](), FIRST_ROWS, False
    while not done:
        rows = np.zeros(room, HEADER)
        found, position, state, done = scan.scan(data, position, dialect, magic, stop, target, from_offset, rows)
        if state == scan.NO_LENGTH:
            raise CorruptLog(position, "length", "too small to be skipped: nothing after it can be found")
        if state == status.MAGIC and fmt is None:
            of_magic(int(data[position + MAGIC_AT]), position)
        if state != status.SOUND:
            raise CorruptLog(position, *status.PROMISES[state])
        parts.append(rows[:found])
        room = min(4 * room, MOST_ROWS)
    return parts[0] if len(parts) == 1 else rows_joined(parts)


def dialect_of(fmt: Format | None) -> int:
    """Return the number by which the kernels identify the layout of a format; None: found by the magic.

    Raise IllegalCombination for a format that brokers' operations do not support.
    """
    return scan.BY_MAGIC if fmt is None else DIALECTS.get(fmt.appending.kind, scan.BY_MAGIC)
