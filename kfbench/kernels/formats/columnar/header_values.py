"""The header values at one position, written in their smallest form: constant, plain, dictionary or hex template."""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import column_writing
from kfbench.kernels.formats.columnar.choosing import CODES, LENGTHS, ColumnPlan, choose
from kfbench.kernels.formats.columnar.column_writing import FULL, Bounds, LengthColumn, fill_lengths
from kfbench.kernels.formats.columnar.columns import BASED, BITS, U0, bits_of, packed_bytes
from kfbench.kernels.formats.columnar.header_forms import (
    CONSTANT,
    DICTIONARY,
    HEX_TEMPLATE,
    ONE,
    PLAIN,
    PLAIN_WITH_NULLS,
)
from kfbench.kernels.formats.columnar.template_writing import (
    Variation,
    find_variation,
    put_differences,
    stage_template,
    word_before,
)
from kfbench.kernels.formats.shared_headers import same_bytes
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import bit_count, put_u8, trailing_zeros
from kfbench.kernels.simd.simd_int64 import equals_of
from kfbench.kernels.wire.varint import put_bytes, put_uvarint, uvarint_bytes, varint_bytes

MOST_TRIED = 32  # values of a dictionary
KNOWN = 2 * MOST_TRIED  # the first headers and the last words of the values of a dictionary
FIRST_WORD = np.uint64(MOST_TRIED)
HASH_FACTOR, HASH_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(64 - 6)  # from a word to one of 64 bits


class Scratch(NamedTuple):
    """Arrays that writers of batches work in. Payload by position is staged: its size is known after its columns."""

    x: np.ndarray  # int64[records, or headers, of the largest batch + GROUP]
    plans: np.ndarray  # int64[BUCKETS]
    indexes: np.ndarray  # as x
    known: np.ndarray  # int64[KNOWN]
    mask: np.ndarray  # uint8[longest header value]
    runs: np.ndarray  # int64[longest header value + 1]
    digits: np.ndarray  # uint8[header bytes + SLACK]: first the differing bits of one value's characters and 8 bytes
    staged: np.ndarray  # uint8[header bytes + SLACK]


class PlainPlan(NamedTuple):
    """The plain form: a column of lengths, and all values."""

    size_bytes: int  # of the column
    lengths: LengthColumn
    column: ColumnPlan


class Distinct(NamedTuple):
    """The dictionary of a position, int64 each."""

    number: int  # of values; 0 where a dictionary is too large
    size_bytes: int  # of the columns


@leaf
def are_unlike(lengths, h, end, step, stride):
    """Return bits by which a length, every `step`th from `h` up to `end`, differs from that `stride` before it."""
    unlike = np.int64(0)
    while h < end:
        unlike |= np.int64(lengths[h] ^ lengths[h - stride])
        h += step
    return unlike


@leaf
def _share_one_place(items):
    """Return whether all items begin where the first does."""
    h = items.first
    for _ in range(items.number - 1):
        h += items.stride
        if items.starts[h] != items.starts[items.first]:
            return False
    return True


@leaf
def _least_distinct(items, end):
    """Return a lower bound of the number of distinct items: of hashes of the words before their byte `end`."""
    seen, h, unused = U0, items.first, np.uint64(64 - 8 * min(end, 8))
    for _ in range(min(items.number, 64)):
        word = word_before(items.data, items.starts[h] + end) >> unused
        seen |= ONE << ((word * HASH_FACTOR) >> HASH_SHIFT)
        h += items.stride
    return bit_count(seen)


@part
def _find_distinct(items, same_end, is_told_by_word, budget_bytes, indexes, known):
    """Return the Distinct values if the dictionary takes at most `budget_bytes`.

    Args:
        items: the values
        same_end: number of characters that all values end with
        is_told_by_word: whether values differ only in the 8 characters before that end
        budget_bytes: most bytes of columns and payload
        indexes int64[]: filled with the index of each value
        known int64[KNOWN]: filled with the first header of each distinct value
    """
    number, size, payload = np.int64(0), np.int64(0), np.int64(0)
    lengths, starts, values, h = items.lengths, items.starts, items.data, items.first
    for i in range(np.uint64(items.number)):
        length = np.int64(lengths[h])
        end = length - same_end  # most values that differ do so before it
        word = U0
        if end > 0:
            word = word_before(values, starts[h] + end)
            if end < 8:
                word >>= np.uint64(64 - 8 * end)
        same, k = equals_of(known, FIRST_WORD, number, np.int64(word)), np.uint64(number)
        while same:
            k = np.uint64(trailing_zeros(same))
            other = np.uint64(known[k])
            if np.int64(lengths[other]) == length and (
                is_told_by_word
                or starts[other] == starts[h]
                or same_bytes(values, starts[other], values, starts[h], length)
            ):
                break
            same &= same - ONE
        if same == U0:
            k = np.uint64(number)
            number += 1
            size += uvarint_bytes(np.uint64(length + 1))
            payload += max(length, 0)
            if number > MOST_TRIED or number + payload > budget_bytes:
                return Distinct(np.int64(0), size)
            known[k], known[k + FIRST_WORD] = np.int64(h), np.int64(word)
        indexes[i] = np.int64(k)
        h += items.stride
    size += uvarint_bytes(np.uint64(number)) + packed_bytes(items.number, bits_of(np.uint64(number - 1)))
    return Distinct(number if size + payload <= budget_bytes else np.int64(0), size)


@leaf
def _plan_plain(items, has_one_length, scratch):
    """Return the PlainPlan. It fills scratch.x unless all lengths are the same."""
    n, length, none = items.number, np.int64(items.lengths[items.first]), np.int64(0)
    if not has_one_length:
        lengths = fill_lengths(scratch.x, items.lengths, items.first, items.stride, n)
        column = choose(scratch.x, n, lengths.bounds, CODES if lengths.nulls else LENGTHS, scratch.plans)
        least_bytes = uvarint_bytes(np.uint64(lengths.least)) if lengths.nulls else none
        return PlainPlan(least_bytes + column.size_bytes, lengths, column)
    # The plan that would be chosen; most positions are not plain in the end.
    lengths = LengthColumn(none, length, n * length, Bounds(length, length, n * length))
    size, bits = 1 + varint_bytes(length), bits_of(np.uint64(length))
    column = ColumnPlan(size, np.int64(BASED), none, length, none, none, none)
    if 1 + packed_bytes(n, bits) <= size:
        column = ColumnPlan(1 + packed_bytes(n, bits), np.int64(BITS), bits, none, none, none, none)
    return PlainPlan(column.size_bytes, lengths, column)


@leaf
def _put_constant(out, at, items, staged, behind):
    start, length = items.starts[items.first], np.int64(items.lengths[items.first])
    if 1 + uvarint_bytes(np.uint64(length + 1)) > len(out) - at:
        return np.int64(FULL), behind
    put_u8(out, at, np.uint8(CONSTANT))
    at = put_uvarint(out, at + 1, np.uint64(length + 1))
    return at, put_bytes(staged, behind, items.data, start, length)


@leaf
def _put_plain(out, at, items, plan, has_one_length, scratch, behind):
    if plan.lengths.nulls:
        at = put_uvarint(out, at, np.uint64(plan.lengths.least))
    if has_one_length:
        for i in range(np.uint64(items.number)):
            scratch.x[i] = plan.lengths.least
    h = items.first
    for _ in range(items.number):
        behind = put_bytes(scratch.staged, behind, items.data, items.starts[h], np.int64(items.lengths[h]))
        h += items.stride
    return column_writing.put(out, at, scratch.x, items.number, plan.column, np.int64(1), scratch.plans), behind


@leaf
def _put_dictionary(out, at, items, number, scratch, behind):
    at = put_uvarint(out, at, np.uint64(number))
    for k in range(np.uint64(number)):
        h = np.uint64(scratch.known[k])
        length = np.int64(items.lengths[h])
        at = put_uvarint(out, at, np.uint64(length + 1))
        behind = put_bytes(scratch.staged, behind, items.data, items.starts[h], length)
    return column_writing.pack(out, at, scratch.indexes, items.number, bits_of(np.uint64(number - 1))), behind


@leaf
def _put_varied(out, at, items, has_one_length, variation, scratch, behind):
    """Write values that are not all the same, as `put_values` does. They are plain unless another form is smaller."""
    n, length = items.number, np.int64(items.lengths[items.first])
    plain = _plan_plain(items, has_one_length, scratch)
    form, size = np.int64(PLAIN_WITH_NULLS if plain.lengths.nulls else PLAIN), plain.size_bytes
    budget = plain.size_bytes + plain.lengths.total_bytes - 1
    template_bytes, template_columns = budget + 1, np.int64(0)
    if variation.are_digits:
        template_columns = uvarint_bytes(np.uint64(length)) + packed_bytes(length, 1)
        template_bytes = template_columns + length - variation.number + packed_bytes(n * variation.number, 4)
    distinct, fewest = Distinct(np.int64(0), np.int64(0)), np.int64(0)
    same_end, is_told_by_word = np.int64(0), False
    if variation.number:
        same_end, is_told_by_word = length - variation.end, variation.end - scratch.runs[0] <= 8
        fewest = _least_distinct(items, variation.end)
    smaller = min(budget, template_bytes)
    if fewest <= MOST_TRIED and fewest * (1 + length) <= smaller:
        distinct = _find_distinct(items, same_end, is_told_by_word, smaller, scratch.indexes, scratch.known)
    end = behind
    if distinct.number == 0 and template_bytes <= budget:
        end, are_digits = stage_template(
            items, length, scratch.runs, variation.runs, scratch.digits, scratch.staged, behind
        )
        if are_digits:
            form, size = np.int64(HEX_TEMPLATE), template_columns
        elif template_bytes < budget:
            distinct = _find_distinct(items, same_end, is_told_by_word, budget, scratch.indexes, scratch.known)
    if distinct.number:
        form, size = np.int64(DICTIONARY), distinct.size_bytes
    if 1 + size > len(out) - at:
        return np.int64(FULL), behind
    put_u8(out, at, np.uint8(form))
    at += 1
    if form == HEX_TEMPLATE:
        at = put_uvarint(out, at, np.uint64(length))
        return put_bytes(out, at, scratch.mask, np.int64(0), packed_bytes(length, 1)), end
    if form == DICTIONARY:
        return _put_dictionary(out, at, items, distinct.number, scratch, behind)
    return _put_plain(out, at, items, plain, has_one_length, scratch, behind)


@leaf
def put_values(out, at, items, has_one_length, scratch, behind):
    """Write the form and the columns of the values at one position; stage their payload from `behind` on.

    Return the next position in `out`, or FULL, and the end of the staged payload. has_one_length: all values of each
    position are known to have one length.
    """
    h, stride, n = items.first, items.stride, items.number
    if not has_one_length:
        has_one_length = are_unlike(items.lengths, h + stride, h + np.uint64(n) * stride, stride, stride) == 0
    length, variation = np.int64(items.lengths[h]), Variation(np.int64(0), np.int64(0), np.int64(0), False)
    if has_one_length and length > 0 and not _share_one_place(items):
        put_differences(items, length, scratch.digits)
        variation = find_variation(items, length, scratch.digits, scratch.mask, scratch.runs)
    if has_one_length and variation.number == 0:
        return _put_constant(out, at, items, scratch.staged, behind)
    return _put_varied(out, at, items, has_one_length, variation, scratch, behind)
