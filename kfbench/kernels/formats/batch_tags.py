"""Tagged fields of a v3 batch header (bit 11): tag 0, tag 1 and those that callers set.

The layout is `number of fields uvarint`, then `tag uvarint, size uvarint, bytes` per field. Tags rise, as KIP-482
demands. Tag 0 is the append time, i64. Tag 1 has the headers that all records of the batch begin with: their count,
then keys and values with lengths.
"""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats.batch_header import APPEND_TAG, NO_TIMESTAMP
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i64, get_u8, load_le64, move, put_i64, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.lengths import RecordColumns, get_count, get_length, header_list_bytes, put_header_list
from kfbench.kernels.wire.varint import get_uvarint, put_uvarint, uvarint_bytes

SHARED_TAG, APPEND_TAG_BYTES = layouts.SHARED_HEADERS_TAG, 8


@leaf
def shared_bytes(columns, first, shared, unsigned):
    """Return the size in bytes of the content of tag 1: the first `shared` headers of record `first`."""
    start = np.int64(columns.header_bounds[first])
    return header_list_bytes(columns, start, start + shared, unsigned)


@leaf
def tags_bytes(row, columns, first, shared, unsigned):
    """Return the size in bytes of all tagged fields, with the varint that counts them."""
    size = 2 + APPEND_TAG_BYTES + np.int64(row.tags_bytes)
    tags = 1 + np.int64(row.tags_count)
    if shared:
        content = shared_bytes(columns, first, shared, unsigned)
        size += 1 + uvarint_bytes(np.uint64(content)) + content
        tags += 1
    return size + uvarint_bytes(np.uint64(tags))


@leaf
def put_tags(out, at, row, tags, columns, first, shared, unsigned):
    """Write all tagged fields. Return the next position.

    Args:
        out, at: uint8 buffer and position.
        row: the batch's FIELDS row. It says where the caller's own tagged fields are in `tags`.
        tags: uint8, the bytes of tagged fields that callers set.
        columns, first: the columns of all records, and the first record of the batch.
        shared: the number of headers in tag 1; with 0, tag 1 is not written.
        unsigned: a literal, see `wire.lengths`.
    """
    number = 1 + np.int64(row.tags_count) + (1 if shared else 0)
    at = put_uvarint(out, at, np.uint64(number))
    put_u8(out, at, np.uint8(APPEND_TAG))
    put_u8(out, at + 1, np.uint8(APPEND_TAG_BYTES))
    put_i64(out, at + 2, row.append_time_ms)
    at += 2 + APPEND_TAG_BYTES
    if shared:
        put_u8(out, at, np.uint8(SHARED_TAG))
        at = put_uvarint(out, at + 1, np.uint64(shared_bytes(columns, first, shared, unsigned)))
        start = np.int64(columns.header_bounds[first])
        at = put_header_list(out, at, columns, start, start + shared, unsigned)
    move(out, at, tags, row.tags_start, np.int64(row.tags_bytes))
    return at + row.tags_bytes


class TaggedFields(NamedTuple):
    """The tagged fields of a batch header that was read. Fields are int64 except has_append_time."""

    state: int  # of `wire.status`
    has_append_time: bool
    append_time_ms: int
    shared_start: int  # the content of tag 1; start and stop are equal without it
    shared_stop: int
    others_start: int  # the position of the first field that is not tag 0 or 1
    others: int  # the number of fields that are not tag 0 or 1
    records_start: int


@leaf
def read_tags(data, p, end):
    """Read the tagged fields at position p of a batch that ends at `end`."""
    state, has_append_time, append_time = np.int64(status.SOUND), False, np.int64(NO_TIMESTAMP)
    shared_start = shared_stop = np.int64(end)
    others, others_start = np.int64(0), np.int64(end)
    number, p = get_uvarint(data, p, end)
    last = np.int64(-1)
    for _ in range(number):
        here = p
        tag, p = get_uvarint(data, p, end)
        size, p = get_uvarint(data, p, end)
        if p > end or size > end - p or tag <= last or (tag == APPEND_TAG and size != APPEND_TAG_BYTES):
            state, p = np.int64(status.TAGS), end
            break
        if tag == SHARED_TAG and size == 0:  # the content must begin with a count
            state, p = np.int64(status.SHARED_HEADERS), end
            break
        if tag == APPEND_TAG:
            has_append_time, append_time = True, get_i64(data, p)
        elif tag == SHARED_TAG:
            shared_start, shared_stop = np.int64(p), np.int64(p + size)
        else:
            if others == 0:
                others_start = np.int64(here)
            others += 1
        last = tag
        p += size
    if p > end:
        state = np.int64(status.TAGS)
    return TaggedFields(
        state, has_append_time, append_time, shared_start, shared_stop, others_start, others, np.int64(p)
    )


class SharedList(NamedTuple):
    """The record headers in tag 1 of a batch that was read, int64 each. start: the position of the first header."""

    state: int
    count: int
    start: int


@leaf
def read_shared(source, p, stop, most_bytes, unsigned):
    """Read the content of tag 1, source[p:stop]. The state is LIMIT_FIELD if a key or value exceeds `most_bytes`."""
    count, p = get_count(source, p, stop, unsigned)
    if count < 0 or count > (stop - p) >> 1:
        return SharedList(np.int64(status.SHARED_HEADERS), np.int64(0), np.int64(p))
    start, state = np.int64(p), np.int64(status.SOUND)
    for _ in range(count):
        key_length, p = get_count(source, p, stop, unsigned)
        if key_length < 0 or key_length > stop - p:
            state = np.int64(status.SHARED_HEADERS)
            break
        value_length, p = get_length(source, p + key_length, stop, unsigned)
        if value_length > stop - p:
            state = np.int64(status.SHARED_HEADERS)
            break
        if max(key_length, value_length) > most_bytes:
            state = np.int64(status.LIMIT_FIELD)
            break
        p += max(value_length, 0)
    if state != status.SOUND:
        return SharedList(state, np.int64(0), start)
    return SharedList(np.int64(status.SOUND if p == stop else status.SHARED_HEADERS), np.int64(count), start)


@leaf
def same_bytes(one, at, other, start, length):
    """Return whether one[at : at + length] equals other[start : start + length].

    Eight bytes are compared at a time. The last eight may overlap the eight before them.
    """
    if length < 8:
        for k in range(length):
            if get_u8(one, at + k) != get_u8(other, start + k):
                return False
        return True
    last = length - 8
    for k in range(0, last, 8):
        if load_le64(one, at + k) != load_le64(other, start + k):
            return False
    return load_le64(one, at + last) == load_le64(other, start + last)


@kernel
def count_shared(columns, bounds, shared):
    """Count the headers (key and value) that all records of a batch begin with. Fill shared, int64[batches]."""
    given = RecordColumns(*columns)
    header_bounds = given.header_bounds
    key_lengths, value_lengths = given.header_key_lengths, given.header_value_lengths
    keys, key_starts = given.header_key_data, given.header_key_starts
    values, value_starts = given.header_value_data, given.header_value_starts
    for b in range(len(bounds) - 1):
        first, end = bounds[b], bounds[b + 1]
        common = header_bounds[first + 1] - header_bounds[first] if first < end else np.int64(0)
        start = header_bounds[first]
        for i in range(first + 1, end):
            if common == 0:
                break
            other = header_bounds[i]
            common = min(common, header_bounds[i + 1] - other)
            for h in range(common):
                one, two = np.uint64(start + h), np.uint64(other + h)
                key_length, value_length = np.int64(key_lengths[one]), np.int64(value_lengths[one])
                if not (
                    key_lengths[two] == key_length
                    and value_lengths[two] == value_length
                    and same_bytes(keys, key_starts[one], keys, key_starts[two], key_length)
                    and same_bytes(values, value_starts[one], values, value_starts[two], value_length)
                ):
                    common = np.int64(h)
                    break
        shared[b] = common
