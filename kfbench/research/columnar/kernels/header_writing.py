"""Kernels that write the headers of a columnar batch: their columns, then keys and values.

A header position is the index of a header in its record. If all records have the same header keys, the values at each
position are written in the smallest form: plain, dictionary or hex template. Their payload is first collected
("staged") in `Scratch.staged`, because the size of the columns that precede it in the batch is known only at the end.
Functions that write a position return the next position in `out`, or FULL if there is no room, and the end of the
staged payload. Common parameters:

    out uint8[], at: output, and the position in it to write at
    headers: the GivenHeaders
    first uint64, n: index of the first record, number of records
    start, end uint64: bounds of the headers
    items: the values at one position, as Items
    has_one_length: whether all values are known to have one length
    scratch: the Scratch
    staged_end: end of the payload in `Scratch.staged` so far
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.batch_tags import same_bytes
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import bit_count, put_u8, trailing_zeros
from kfbench.kernels.wire.sealing import FULL
from kfbench.kernels.wire.varint import put_bytes, put_uvarint, uvarint_bytes
from kfbench.research.columnar.kernels import column_writing, templates
from kfbench.research.columnar.kernels.column_writing import (
    Bounds,
    bounds_of,
    write_values,
)
from kfbench.research.columnar.kernels.columns import U0, U1, ZERO, bits_of, packed_bytes
from kfbench.research.columnar.kernels.header_reading import BY_POSITION, BY_RECORD, HEX_TEMPLATE, PLAIN
from kfbench.research.columnar.kernels.simd_int64 import equals_of
from kfbench.research.columnar.kernels.templates import Items, Variation, differing_bits

MAX_OVERHEAD = 5 + 1 + 1 + 10 + 8  # most bytes of columns per header: a key length, a form, a column of two lengths
MAX_TRIED = 32  # a dictionary is tried up to this number of values
KNOWN = 2 * MAX_TRIED  # for each dictionary value, its first header and its last word
FIRST_WORD = np.uint64(MAX_TRIED)
HASH_FACTOR, HASH_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(64 - 6)  # they map a word to one of 64 bits


class Scratch(NamedTuple):
    """Scratch arrays of the functions that write batches."""

    x: np.ndarray  # int64[records, or headers, of the largest batch + GROUP]
    plans: np.ndarray  # int64[BUCKETS]
    indexes: np.ndarray  # int64[], as large as x
    known: np.ndarray  # int64[KNOWN]
    mask: np.ndarray  # uint8[longest header value]
    runs: np.ndarray  # int64[longest header value + 1]
    digits: np.ndarray  # uint8[header bytes + SLACK]: also the differing bits of each character
    staged: np.ndarray  # uint8[header bytes + SLACK]


class GivenHeaders(NamedTuple):
    """The headers of all records. Record i has the headers bounds[i] up to bounds[i + 1]."""

    bounds: np.ndarray  # int64[records + 1]
    key_lengths: np.ndarray  # int32[headers]
    value_lengths: np.ndarray  # int32[headers], -1 for a null
    keys: np.ndarray  # uint8[]
    key_starts: np.ndarray  # int64[headers]
    values: np.ndarray  # uint8[]
    value_starts: np.ndarray  # int64[headers]


class HeaderSizes(NamedTuple):
    """The sizes of the headers of one batch, after their columns were written. All fields but `is_staged` are int64."""

    position: int  # the position after the columns, or FULL
    key_bytes: int  # size of the keys in the payload
    value_bytes: int  # size of the values in the payload
    is_staged: bool  # whether the payload was already collected in `Scratch.staged`


@leaf
def headers_of(columns):
    """Select the GivenHeaders from the RecordColumns."""
    return GivenHeaders(
        columns.header_bounds, columns.header_key_lengths, columns.header_value_lengths, columns.header_key_data,
        columns.header_key_starts, columns.header_value_data, columns.header_value_starts,
    )  # fmt: skip


class Distinct(NamedTuple):
    """The dictionary of the header values at one position. All fields are int64."""

    number: int  # number of distinct values; 0 if a dictionary is too large
    size_bytes: int  # size of its lengths and indexes


@leaf
def length_differences(lengths, h, end, step, stride):
    """Compare every `step`-th length, from index h up to `end`, with the length `stride` rows before it.

    Return the bits in which any pair differs. The result is 0 if all pairs are equal.
    """
    unlike = ZERO
    while h < end:
        unlike |= np.int64(lengths[h] ^ lengths[h - stride])
        h += step
    return unlike


@leaf
def _share_one_place(items):
    """Return whether all items have the same start, so that they are the same bytes of one buffer."""
    h = items.first
    for _ in range(items.number - 1):
        h += items.stride
        if items.starts[h] != items.starts[items.first]:
            return False
    return True


@leaf
def _least_distinct(items, end):
    """Return a lower bound of the number of distinct items. It counts hashes of the 8 bytes before byte `end`."""
    seen, h, unused = U0, items.first, np.uint64(64 - 8 * min(end, 8))
    for _ in range(min(items.number, 64)):
        word = templates.word_before(items.data, items.starts[h] + end) >> unused
        seen |= U1 << ((word * HASH_FACTOR) >> HASH_SHIFT)
        h += items.stride
    return bit_count(seen)


@part
def _find_distinct(items, same_end, is_decided_by_word, budget_bytes, indexes, known):
    """Find the distinct header values at one position. Their number is 0 if a dictionary exceeds `budget_bytes`.

    Args:
        items: the values
        same_end: number of bytes at the end of each value that are the same in all values
        is_decided_by_word: whether values differ only in the 8 characters before that suffix
        budget_bytes: most bytes allowed for columns and payload
        indexes int64[]: filled with the dictionary index of each value
        known int64[KNOWN]: filled with the first header of each distinct value
    """
    number = size = payload = ZERO
    lengths, starts, values, h = items.lengths, items.starts, items.data, items.first
    for i in range(np.uint64(items.number)):
        length = np.int64(lengths[h])
        end = length - same_end  # most values differ in the characters before it
        word = U0
        if end > 0:
            word = templates.word_before(values, starts[h] + end)
            if end < 8:
                word >>= np.uint64(64 - 8 * end)
        same, k = equals_of(known, FIRST_WORD, number, np.int64(word)), np.uint64(number)
        while same:
            k = np.uint64(trailing_zeros(same))
            other = np.uint64(known[k])
            if np.int64(lengths[other]) == length and (
                is_decided_by_word
                or starts[other] == starts[h]
                or same_bytes(values, starts[other], values, starts[h], length)
            ):
                break
            same &= same - U1
        if same == U0:
            k = np.uint64(number)
            number += 1
            size += uvarint_bytes(np.uint64(length + 1))
            payload += max(length, 0)
            if number > MAX_TRIED or number + payload > budget_bytes:
                return Distinct(ZERO, size)
            known[k], known[k + FIRST_WORD] = np.int64(h), np.int64(word)
        indexes[i] = np.int64(k)
        h += items.stride
    size += packed_bytes(items.number, bits_of(np.uint64(number - 1)))
    return Distinct(number if size + payload <= budget_bytes else ZERO, size)


@leaf
def _plan_plain(items, has_one_length, scratch):
    """Plan the plain form. Fill scratch.x with codes, unless all lengths are the same.

    Return the ColumnPlan of the lengths, and their sum.
    """
    n, length = items.number, np.int64(items.lengths[items.first])
    if not has_one_length:
        h, nulls = items.first, ZERO
        for i in range(np.uint64(n)):
            scratch.x[i] = np.int64(items.lengths[h]) + 1
            nulls += scratch.x[i] == 0
            h += items.stride
        bounds = bounds_of(scratch.x, n)
        plan = column_writing.choose(scratch.x, n, bounds, False, scratch.plans)
        return plan, bounds.total - (n - nulls)
    # This is the plan that `choose` returns. It is faster, and most positions are not written as plain.
    bounds = Bounds(length + 1, length + 1, (length + 1) * n)
    return column_writing.choose_even(bounds, n), length * n


@leaf
def _put_plain(out, at, items, plan, has_one_length, scratch, staged_end):
    """Write the values at one position as a column of lengths, and stage the values themselves.

    Args: see the module docstring; plan: the ColumnPlan of the lengths.
    """
    if has_one_length:
        for i in range(np.uint64(items.number)):
            scratch.x[i] = np.int64(items.lengths[items.first]) + 1
    h = items.first
    for _ in range(items.number):
        staged_end = put_bytes(scratch.staged, staged_end, items.data, items.starts[h], np.int64(items.lengths[h]))
        h += items.stride
    return column_writing.put(out, at, scratch.x, items.number, plan, False), staged_end


@leaf
def _put_dictionary(out, at, items, number, scratch, staged_end):
    for k in range(np.uint64(number)):
        h = np.uint64(scratch.known[k])
        length = np.int64(items.lengths[h])
        at = put_uvarint(out, at, np.uint64(length + 1))
        staged_end = put_bytes(scratch.staged, staged_end, items.data, items.starts[h], length)
    return column_writing.pack(out, at, scratch.indexes, items.number, bits_of(np.uint64(number - 1))), staged_end


@leaf
def _put_varied(out, at, items, has_one_length, variation, scratch, staged_end):
    """Write header values that are not all equal in the smallest form: plain, dictionary or hex template.

    Args: see the module docstring; variation: the Variation, valid if all values have one length.
    """
    n, length = items.number, np.int64(items.lengths[items.first])
    plain, total_bytes = _plan_plain(items, has_one_length, scratch)
    form, size = np.int64(PLAIN), plain.size_bytes
    budget = size + total_bytes - 1
    template_bytes, template_columns = budget + 1, ZERO
    if variation.are_digits:
        template_columns = uvarint_bytes(np.uint64(length)) + packed_bytes(length, 1)
        template_bytes = template_columns + length - variation.number + packed_bytes(n * variation.number, 4)
    distinct, fewest, same_end, is_decided_by_word = Distinct(ZERO, ZERO), ZERO, ZERO, False
    if variation.number:
        same_end, is_decided_by_word = length - variation.end, variation.end - scratch.runs[0] <= 8
        fewest = _least_distinct(items, variation.end)
    smaller = min(budget, template_bytes)
    if fewest <= MAX_TRIED and fewest * (1 + length) <= smaller:
        distinct = _find_distinct(items, same_end, is_decided_by_word, smaller, scratch.indexes, scratch.known)
    end = staged_end
    if distinct.number == 0 and template_bytes <= budget:
        end, are_digits = templates.stage_template(
            items, length, scratch.runs, variation.runs, scratch.digits, scratch.staged, staged_end
        )
        if are_digits:
            form, size = np.int64(HEX_TEMPLATE), template_columns
        elif template_bytes < budget:
            distinct = _find_distinct(items, same_end, is_decided_by_word, budget, scratch.indexes, scratch.known)
    if distinct.number:
        form, size = distinct.number, distinct.size_bytes
    if 1 + size > len(out) - at:
        return np.int64(FULL), staged_end
    put_u8(out, at, np.uint8(form))
    at += 1
    if form == HEX_TEMPLATE:
        at = put_uvarint(out, at, np.uint64(length))
        return put_bytes(out, at, scratch.mask, ZERO, packed_bytes(length, 1)), end
    if form == PLAIN:
        return _put_plain(out, at, items, plain, has_one_length, scratch, staged_end)
    return _put_dictionary(out, at, items, form, scratch, staged_end)


@leaf
def _put_values(out, at, items, has_one_length, scratch, staged_end):
    """Write the form byte and the columns of the header values at one position. Stage their payload."""
    h, stride, n = items.first, items.stride, items.number
    if not has_one_length:
        has_one_length = length_differences(items.lengths, h + stride, h + np.uint64(n) * stride, stride, stride) == 0
    length, variation = np.int64(items.lengths[h]), Variation(ZERO, ZERO, ZERO, False)
    if has_one_length and length > 0 and not _share_one_place(items):
        templates.put_differences(items, length, scratch.digits)
        variation = templates.find_variation(items, length, scratch.digits, scratch.mask, scratch.runs)
    if has_one_length and variation.number == 0:
        if 1 + uvarint_bytes(np.uint64(length + 1)) > len(out) - at:
            return np.int64(FULL), staged_end
        put_u8(out, at, np.uint8(1))  # a dictionary of one value, whose indexes take no bit
        at = put_uvarint(out, at + 1, np.uint64(length + 1))
        return at, put_bytes(scratch.staged, staged_end, items.data, items.starts[h], length)
    return _put_varied(out, at, items, has_one_length, variation, scratch, staged_end)


@leaf
def _have_same_keys(headers, first, n):
    """Return whether n >= 2 records have the same number of headers, with the same keys in the same order."""
    bounds, lengths, starts = headers.bounds, headers.key_lengths, headers.key_starts
    start, end = np.uint64(bounds[first]), np.uint64(bounds[first + np.uint64(n)])
    stride = np.uint64(bounds[first + U1]) - start
    differences = moves = ZERO
    for i in range(first, first + np.uint64(n)):
        differences |= bounds[i + U1] - bounds[i] - np.int64(stride)
    if differences:
        return False
    for h in range(start + stride, end):
        differences |= np.int64(lengths[h]) ^ np.int64(lengths[h - stride])
        moves |= starts[h] ^ starts[h - stride]
    if differences:
        return False
    if moves:
        for h in range(start, start + stride):
            items = Items(headers.keys, starts, lengths, h, stride, n)
            for k in range(np.int64(lengths[h]), 0, -8):
                if differing_bits(items, k, min(k, 8)):
                    return False
    return True


@leaf
def _put_pairs(out, at, headers, start, end):
    """Write the key length and the value length of each header. Return the next position, or FULL."""
    for h in range(start, end):
        key, value = np.uint64(headers.key_lengths[h]), np.uint64(np.int64(headers.value_lengths[h]) + 1)
        if len(out) - at < 10 and uvarint_bytes(key) + uvarint_bytes(value) > len(out) - at:
            return np.int64(FULL)
        at = put_uvarint(out, put_uvarint(out, at, key), value)
    return at


@leaf
def _put_by_record(out, at, headers, first, n, scratch):
    """Write the header columns of n >= 1 records, record by record. Return the next position, or FULL."""
    bounds, x = headers.bounds, scratch.x
    start, end = np.uint64(bounds[first]), np.uint64(bounds[first + np.uint64(n)])
    if n == 1:
        if uvarint_bytes(end - start) > len(out) - at:
            return np.int64(FULL)
        return _put_pairs(out, put_uvarint(out, at, end - start), headers, start, end)
    if at == len(out):
        return np.int64(FULL)
    put_u8(out, at, np.uint8(BY_RECORD))
    for i in range(np.uint64(n)):
        x[i] = bounds[first + i + U1] - bounds[first + i]
    at = write_values(out, at + 1, x, n, False, scratch.plans)
    return at if at == FULL else _put_pairs(out, at, headers, start, end)


@leaf
def _payload_bytes(headers, start, end):
    """Return the total size in bytes of the keys, and of the values, of the headers start to end - 1."""
    key_bytes = value_bytes = ZERO
    for h in range(start, end):
        key_bytes += np.int64(headers.key_lengths[h])
        value_bytes += max(np.int64(headers.value_lengths[h]), 0)
    return key_bytes, value_bytes


@part
def put_columns(out, at, headers, first, n, scratch):
    """Write the header columns of a batch of n >= 1 records. At least one has headers. Return the HeaderSizes."""
    bounds = headers.bounds
    start, end = np.uint64(bounds[first]), np.uint64(bounds[first + np.uint64(n)])
    if n == 1 or not _have_same_keys(headers, first, n):
        key_bytes, value_bytes = _payload_bytes(headers, start, end)
        at = _put_by_record(out, at, headers, first, n, scratch)
        return HeaderSizes(at, key_bytes, value_bytes, False)
    stride = np.uint64(bounds[first + U1]) - start
    has_one_length = length_differences(headers.value_lengths, start + stride, end, U1, stride) == 0
    key_bytes = staged_end = ZERO
    if 1 + uvarint_bytes(stride) > len(out) - at:
        return HeaderSizes(np.int64(FULL), key_bytes, staged_end, True)
    put_u8(out, at, np.uint8(BY_POSITION))
    at = put_uvarint(out, at + 1, stride)
    for h in range(start, start + stride):
        length = np.int64(headers.key_lengths[h])
        if uvarint_bytes(np.uint64(length)) > len(out) - at:
            return HeaderSizes(np.int64(FULL), key_bytes, staged_end, True)
        at = put_uvarint(out, at, np.uint64(length))
        staged_end = put_bytes(scratch.staged, staged_end, headers.keys, headers.key_starts[h], length)
        key_bytes += length
        items = Items(headers.values, headers.value_starts, headers.value_lengths, h, stride, n)
        at, staged_end = _put_values(out, at, items, has_one_length, scratch, staged_end)
        if at == FULL:
            break
    return HeaderSizes(at, key_bytes, staged_end - key_bytes, True)


@leaf
def put_payload(out, at, headers, first, n):
    """Write the header keys, then the header values, of n records. `out` must have room. Return the next position."""
    for h in range(np.uint64(headers.bounds[first]), np.uint64(headers.bounds[first + np.uint64(n)])):
        at = put_bytes(out, at, headers.keys, headers.key_starts[h], np.int64(headers.key_lengths[h]))
        at = put_bytes(out, at, headers.values, headers.value_starts[h], np.int64(headers.value_lengths[h]))
    return at
