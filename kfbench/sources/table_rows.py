"""The one way from the rows of any kind of table to records. Rows that cannot become records are left out and listed.

The readers of CSV, JSON lines and Parquet yield `RowBatch`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from kfbench.arrays import Int64, group_bounds
from kfbench.errors import InvalidRecords, KfbenchError
from kfbench.log.damage import Damage
from kfbench.records import Records
from kfbench.sources.columns import Columns, Fault, RowBatch, Rows, rows_of
from kfbench.sources.part import CHUNK_BYTES, Chunk

# Errors of decoders. LookupError, RecursionError and ValueError (UnicodeError is one) come from damaged names, numbers
# and nested values.
UNDECODED: Final = (pa.ArrowException, msgspec.MsgspecError, ArithmeticError, LookupError, RecursionError, ValueError)
UNREADABLE: Final = (*UNDECODED, OSError)  # Arrow raises OSError for damaged content too
# Decoders name their own source code. This is what a user can understand, by words in the decoder's message.
IN_OUR_WORDS: Final = {
    re.compile("utf.?8", re.IGNORECASE): "text that is not UTF-8",
    re.compile("truncated compressed", re.IGNORECASE): "the compressed text is truncated",
    re.compile("compress|lz4|zlib|zstd|snappy|brotli|bz2", re.IGNORECASE): "compressed bytes are damaged",
    re.compile("recursion", re.IGNORECASE): "nested too deeply",
    re.compile("encrypt|decrypt", re.IGNORECASE): "encrypted: kfbench has no keys",
    re.compile("memory|malloc", re.IGNORECASE): "larger than the memory",
}


def words_of(error: BaseException) -> str:
    """Return the reason of an error in our words, in one line."""
    if isinstance(error, KfbenchError | msgspec.MsgspecError):
        return str(error)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    found = (words for pattern, words in IN_OUR_WORDS.items() if pattern.search(f"{type(error).__name__} {error}"))
    return next(found, "damaged, or of a kind that cannot be read")


def chunks(batches: Iterator[RowBatch], columns: Columns) -> Iterator[Chunk]:
    """Yield the records of rows in chunks of about CHUNK_BYTES, with their damage."""
    offset = 0
    for batch in batches:
        damage = batch.damage
        for part, rows in _converted(batch, columns):
            left_bytes = part.size_bytes
            for fault in rows.faults:
                more = f" (and {fault.rows - 1:,} more by row {part.numbers[-1]:,})" if fault.rows > 1 else ""
                lost_bytes = share(part.size_bytes, fault.rows, len(part.numbers))
                left_bytes -= lost_bytes
                number, promise = int(part.numbers[fault.row]), fault.promise + more
                damage += (Damage(position=number, size_bytes=lost_bytes, field=fault.field, promise=promise),)
            records, n = rows.records, len(rows.records)
            for first, end in pairwise(group_bounds(_record_bytes(records), CHUNK_BYTES).tolist()):
                yield Chunk(
                    records=records.part(first, end).at_offsets(np.arange(offset, offset + end - first)),
                    size_bytes=share(left_bytes, end, n) - share(left_bytes, first, n) if n else left_bytes,
                    damage=tuple(sorted(damage, key=lambda each: each.position)),
                    partitions=None if columns.partition is None else rows.partitions[first:end],
                    is_ms=rows.is_ms[first:end],
                )
                offset, damage = offset + end - first, ()


def _converted(batch: RowBatch, columns: Columns) -> Iterator[tuple[RowBatch, Rows]]:
    """Yield the rows of a batch as records.

    Arrow does not say which item it cannot convert. So the rows are halved until that item's row is found.
    """
    if not len(batch.numbers):
        yield batch, Rows.none([])
        return
    try:
        yield batch, rows_of(batch, columns)
        return
    except InvalidRecords:
        raise
    except UNDECODED as error:
        if len(batch.numbers) == 1:
            yield batch, Rows.none([Fault(0, 1, "row", words_of(error))])
            return
    n = len(batch.numbers)
    half_bytes = share(batch.size_bytes, n // 2, n)
    yield from _converted(batch.part(0, n // 2, half_bytes), columns)
    yield from _converted(batch.part(n // 2, n, batch.size_bytes - half_bytes), columns)


def _record_bytes(records: Records) -> Int64:
    """Return the number of bytes of each record's key, value and headers, plus 1: int64[records]."""
    shapes = records.shapes
    sizes = 1 + np.maximum(shapes.key_lengths, 0).astype(np.int64) + np.maximum(shapes.value_lengths, 0)
    if shapes.has_headers:
        headers = np.maximum(shapes.header_value_lengths, 0).astype(np.int64) + shapes.header_key_lengths
        sizes += np.diff(np.append(0, np.cumsum(headers))[shapes.header_bounds])
    return sizes


def damage_only(damage: Sequence[Damage], size_bytes: int = 0) -> RowBatch:
    """Return a batch without rows that only reports damage."""
    return RowBatch((), (), np.zeros(0, np.int64), size_bytes, tuple(damage))


def share(size_bytes: int, rows: int, n: int) -> int:
    """Return the number of bytes of `rows` rows, if n rows of equal size take `size_bytes` bytes."""
    return size_bytes * rows // n if n else 0
