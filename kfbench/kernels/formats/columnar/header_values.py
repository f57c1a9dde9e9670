"""Kernels that write the header values at one position in the smallest form: constant, plain, dictionary or template.

A header position is the index of a header in its record. The payload of a position is first collected ("staged") in
`Scratch.staged`, because the size of the columns that precede it in the batch is known only at the end. Functions that
write a position return the next position in `out`, or FULL if there is no room, and the end of the staged payload.
Common parameters:

    out uint8[], at: output, and the position in it to write at
    items: the values, as Items
    has_one_length: whether all values are known to have one length
    scratch: the Scratch
    staged_end: end of the payload in `Scratch.staged` so far
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import column_writing, template_writing
from kfbench.kernels.formats.columnar import header_forms as forms
from kfbench.kernels.formats.columnar.choosing import CODES, LENGTHS, ColumnPlan, choose
from kfbench.kernels.formats.columnar.column_writing import FULL, Bounds, LengthColumn, fill_lengths
from kfbench.kernels.formats.columnar.columns import BASED, BITS, U0, U1, ZERO, bits_of, packed_bytes
from kfbench.kernels.formats.columnar.template_writing import Variation
from kfbench.kernels.formats.shared_headers import same_bytes
from kfbench.kernels.jit import leaf, part
from kfbench.kernels.simd.intrinsics import bit_count, put_u8, trailing_zeros
from kfbench.kernels.simd.simd_int64 import equals_of
from kfbench.kernels.wire.varint import put_bytes, put_uvarint, uvarint_bytes, varint_bytes

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


class PlainPlan(NamedTuple):
    """Sizes of the header values at one position in the plain form: a column of lengths, then all values."""

    size_bytes: int  # size of the column of lengths
    lengths: LengthColumn
    column: ColumnPlan


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
        word = template_writing.word_before(items.data, items.starts[h] + end) >> unused
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
            word = template_writing.word_before(values, starts[h] + end)
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
    size += uvarint_bytes(np.uint64(number)) + packed_bytes(items.number, bits_of(np.uint64(number - 1)))
    return Distinct(number if size + payload <= budget_bytes else ZERO, size)


@leaf
def _plan_plain(items, has_one_length, scratch):
    """Compute the size of the plain form. Fill scratch.x with lengths or codes, unless all lengths are the same."""
    n, length = items.number, np.int64(items.lengths[items.first])
    if not has_one_length:
        lengths = fill_lengths(scratch.x, items.lengths, items.first, items.stride, n)
        column = choose(scratch.x, n, lengths.bounds, CODES if lengths.nulls else LENGTHS, scratch.plans)
        least_bytes = uvarint_bytes(np.uint64(lengths.least)) if lengths.nulls else ZERO
        return PlainPlan(least_bytes + column.size_bytes, lengths, column)
    # This is the plan that `choose` returns. It is faster, and most positions are not written as plain.
    lengths = LengthColumn(ZERO, length, n * length, Bounds(length, length, n * length))
    size, bits = 1 + varint_bytes(length), bits_of(np.uint64(length))
    column = ColumnPlan(size, np.int64(BASED), ZERO, length, ZERO, ZERO, ZERO)
    if 1 + packed_bytes(n, bits) <= size:
        column = ColumnPlan(1 + packed_bytes(n, bits), np.int64(BITS), bits, ZERO, ZERO, ZERO, ZERO)
    return PlainPlan(column.size_bytes, lengths, column)


@leaf
def _put_constant(out, at, items, staged, staged_end):
    start, length = items.starts[items.first], np.int64(items.lengths[items.first])
    if 1 + uvarint_bytes(np.uint64(length + 1)) > len(out) - at:
        return np.int64(FULL), staged_end
    put_u8(out, at, np.uint8(forms.CONSTANT))
    at = put_uvarint(out, at + 1, np.uint64(length + 1))
    return at, put_bytes(staged, staged_end, items.data, start, length)


@leaf
def _put_plain(out, at, items, plan, has_one_length, scratch, staged_end):
    """Write the values at one position as a column of lengths, and stage the values themselves.

    Args: see the module docstring; plan: the PlainPlan.
    """
    if plan.lengths.nulls:
        at = put_uvarint(out, at, np.uint64(plan.lengths.least))
    if has_one_length:
        for i in range(np.uint64(items.number)):
            scratch.x[i] = plan.lengths.least
    h = items.first
    for _ in range(items.number):
        staged_end = put_bytes(scratch.staged, staged_end, items.data, items.starts[h], np.int64(items.lengths[h]))
        h += items.stride
    return column_writing.put(out, at, scratch.x, items.number, plan.column, np.int64(1), scratch.plans), staged_end


@leaf
def _put_dictionary(out, at, items, number, scratch, staged_end):
    at = put_uvarint(out, at, np.uint64(number))
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
    plain = _plan_plain(items, has_one_length, scratch)
    form, size = np.int64(forms.PLAIN_WITH_NULLS if plain.lengths.nulls else forms.PLAIN), plain.size_bytes
    budget = plain.size_bytes + plain.lengths.total_bytes - 1
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
        end, are_digits = template_writing.stage_template(
            items, length, scratch.runs, variation.runs, scratch.digits, scratch.staged, staged_end
        )
        if are_digits:
            form, size = np.int64(forms.HEX_TEMPLATE), template_columns
        elif template_bytes < budget:
            distinct = _find_distinct(items, same_end, is_decided_by_word, budget, scratch.indexes, scratch.known)
    if distinct.number:
        form, size = np.int64(forms.DICTIONARY), distinct.size_bytes
    if 1 + size > len(out) - at:
        return np.int64(FULL), staged_end
    put_u8(out, at, np.uint8(form))
    at += 1
    if form == forms.HEX_TEMPLATE:
        at = put_uvarint(out, at, np.uint64(length))
        return put_bytes(out, at, scratch.mask, ZERO, packed_bytes(length, 1)), end
    if form == forms.DICTIONARY:
        return _put_dictionary(out, at, items, distinct.number, scratch, staged_end)
    return _put_plain(out, at, items, plain, has_one_length, scratch, staged_end)


@leaf
def put_values(out, at, items, has_one_length, scratch, staged_end):
    """Write the form byte and the columns of the header values at one position. Stage their payload."""
    h, stride, n = items.first, items.stride, items.number
    if not has_one_length:
        has_one_length = length_differences(items.lengths, h + stride, h + np.uint64(n) * stride, stride, stride) == 0
    length, variation = np.int64(items.lengths[h]), Variation(ZERO, ZERO, ZERO, False)
    if has_one_length and length > 0 and not _share_one_place(items):
        template_writing.put_differences(items, length, scratch.digits)
        variation = template_writing.find_variation(items, length, scratch.digits, scratch.mask, scratch.runs)
    if has_one_length and variation.number == 0:
        return _put_constant(out, at, items, scratch.staged, staged_end)
    return _put_varied(out, at, items, has_one_length, variation, scratch, staged_end)
