"""The header columns of columnar batches, read. `header_placing` finds their keys and values in the payload.

Starts count from where the header bytes of the batch's payload begin. Where headers are by position, keys of the first
record only are filled in. Values of a template are not in the payload: `header_placing` writes them in front of a copy
of it, those of the last position first. They have starts below 0, and the first of them has -1 less the position of the
template in `data`.

Parameters: data uint8[] is the log; p a position in it; end where the batch ends; n the number of its records.
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar.columns import INT32_MAX, is_padded, packed_bytes
from kfbench.kernels.formats.columnar.header_forms import (
    BY_POSITION,
    BY_RECORD,
    CONSTANT,
    DICTIONARY,
    HEX_TEMPLATE,
    MOST_VALUES,
    ONE,
    PLAIN,
    PLAIN_WITH_NULLS,
)
from kfbench.kernels.formats.columnar.template_reading import bits_set
from kfbench.kernels.jit import kernel, leaf, part
from kfbench.kernels.simd.intrinsics import get_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint


class Headers(NamedTuple):
    """Lengths and starts that are filled in, one per header."""

    key_lengths: np.ndarray  # int32[]
    key_starts: np.ndarray  # int64[]
    value_lengths: np.ndarray  # int32[], -1 of a null
    value_starts: np.ndarray  # int64[]


class Room(NamedTuple):
    """Arrays that readers of headers work in."""

    x: np.ndarray  # int64[records, or headers, of the largest batch + GROUP]
    dictionary: np.ndarray  # int64[2 * MOST_VALUES]: length and start of each value


class Slots(NamedTuple):
    """The headers that the values of one position are read into: `number` of them, every `stride`th from `first` on."""

    lengths: np.ndarray  # int32[headers]
    starts: np.ndarray  # int64[headers]
    first: int  # uint64
    stride: int  # uint64
    number: int


class ReadHeaders(NamedTuple):
    """The header columns of a batch, or of one position, as they were read. int64 each."""

    state: int
    position: int  # behind the columns
    payload_end: int  # of keys and values, from where the header bytes begin
    template_bytes: int  # of values that templates stand for
    total_bytes: int  # of the keys and values of all records


@leaf
def _get_value_length(data, p, end, most_bytes):
    """Return the state, the next position and the length, -1 of a null."""
    length, p = get_uvarint(data, p, end)
    length -= 1
    if p > end or length > INT32_MAX:
        return status.HEADER_COLUMNS, p, length
    return status.LIMIT_FIELD if length > most_bytes else status.SOUND, p, length


@leaf
def _get_key_length(data, p, end, most_bytes):
    length, p = get_uvarint(data, p, end)
    if p > end or length > INT32_MAX:
        return status.HEADER_COLUMNS, p, length
    return status.LIMIT_FIELD if length > most_bytes else status.SOUND, p, length


@leaf
def _broken(state, p):
    none = np.int64(0)
    return ReadHeaders(np.int64(state), np.int64(p), none, none, none)


@leaf
def _fill(slots, length, start, step):
    """Give all slots one length, and starts `step` bytes apart."""
    h = slots.first
    for _ in range(slots.number):
        slots.lengths[h], slots.starts[h] = length, start
        h += slots.stride
        start += step


@leaf
def _read_constant(data, p, end, most_bytes, begin, slots):
    state, p, length = _get_value_length(data, p, end, most_bytes)
    if state != status.SOUND:
        return _broken(state, p)
    _fill(slots, length, begin, np.int64(0))
    length = max(length, 0)
    return ReadHeaders(np.int64(state), p, begin + length, np.int64(0), slots.number * length)


@part
def _read_plain(data, p, end, has_nulls, most_bytes, begin, x, slots):
    start, h, n = begin, slots.first, slots.number
    state, p, total = packed.read_lengths(data, p, end, n, has_nulls, most_bytes, x, x, np.uint64(0))
    if state == status.SOUND:
        for i in range(np.uint64(n)):
            slots.lengths[h], slots.starts[h] = x[i], start
            start += max(x[i], 0)
            h += slots.stride
    return ReadHeaders(np.int64(state), np.int64(p), start, np.int64(0), total)


@part
def _read_dictionary(data, p, end, most_bytes, begin, room, slots):
    x, dictionary, start, total = room.x, room.dictionary, begin, np.int64(0)
    h, n = slots.first, slots.number
    known, p = get_uvarint(data, p, end)
    if p > end or known < 2 or known > MOST_VALUES:
        return _broken(status.HEADER_COLUMNS, p)
    for k in range(np.uint64(known)):
        state, p, length = _get_value_length(data, p, end, most_bytes)
        if state != status.SOUND:
            return _broken(state, p)
        dictionary[k << ONE], dictionary[(k << ONE) + ONE] = length, start
        start += max(length, 0)
    state, width, next_position = packed.check_indexes(data, p, end, n, known)
    if state != status.SOUND:
        return _broken(status.HEADER_COLUMNS if state == status.COLUMN else state, p)
    packed.unpack(data, p, n, width, np.int64(0), np.int64(0), np.int64(1), x, 0)
    for i in range(np.uint64(n)):
        if x[i] >= known:
            return _broken(status.HEADER_COLUMNS, p)
        k = np.uint64(2 * x[i])
        slots.lengths[h], slots.starts[h] = dictionary[k], dictionary[k + ONE]
        total += max(dictionary[k], 0)
        h += slots.stride
    return ReadHeaders(np.int64(status.SOUND), next_position, start, np.int64(0), total)


@leaf
def _read_template(data, p, end, most_bytes, begin, made, slots):
    template, n = p, slots.number
    state, p, length = _get_key_length(data, p, end, most_bytes)
    size = packed_bytes(length, 1)
    if state == status.LIMIT_FIELD:
        return _broken(state, p)
    if state != status.SOUND or length == 0 or size > end - p:
        return _broken(status.HEADER_COLUMNS, p)
    if not is_padded(data, p, length, 1):
        return _broken(status.PADDING, p)
    varying = bits_set(data, p, size)
    if varying == 0:
        return _broken(status.HEADER_COLUMNS, p)
    _fill(slots, length, -made - n * length, length)
    slots.starts[slots.first] = -1 - template
    payload_end = begin + length - varying + packed_bytes(n * varying, 4)
    return ReadHeaders(np.int64(status.SOUND), p + size, payload_end, n * length, n * length)


@leaf
def _read_values(data, p, end, most_bytes, begin, made, room, slots):
    """Read the form and the values of one position. Return the ReadHeaders.

    Args:
        data, p, end: as in the module
        most_bytes: greatest length allowed
        begin: where their payload begins
        made: bytes of the templates before it in the batch
        room: a Room
        slots: the Slots to be filled
    """
    form = np.int64(get_u8(data, p)) if p < end else np.int64(-1)
    p += 1
    if form == CONSTANT:
        return _read_constant(data, p, end, most_bytes, begin, slots)
    if form == HEX_TEMPLATE:
        return _read_template(data, p, end, most_bytes, begin, made, slots)
    if form == PLAIN or form == PLAIN_WITH_NULLS:
        return _read_plain(data, p, end, form == PLAIN_WITH_NULLS, most_bytes, begin, room.x, slots)
    if form == DICTIONARY:
        return _read_dictionary(data, p, end, most_bytes, begin, room, slots)
    return _broken(status.HEADER_COLUMNS, p)


@leaf
def _read_by_position(data, p, end, n, first, m, most_bytes, room, headers):
    """Read m headers of n records, as `_read_batch` does."""
    start, made, total = np.int64(0), np.int64(0), np.int64(0)
    number, p = get_uvarint(data, p, end)
    stride = np.uint64(number)
    for h in range(first, first + stride):
        state, p, key_length = _get_key_length(data, p, end, most_bytes)
        if state != status.SOUND:
            return _broken(state, p)
        headers.key_lengths[h], headers.key_starts[h] = key_length, start
        slots = Slots(headers.value_lengths, headers.value_starts, h, stride, n)
        found = _read_values(data, p, end, most_bytes, start + key_length, made, room, slots)
        if found.state != status.SOUND:
            return _broken(found.state, found.position)
        p, start, made = found.position, found.payload_end, made + found.template_bytes
        total += n * key_length + found.total_bytes
    for h in range(first + stride, first + np.uint64(m)):
        headers.key_lengths[h] = headers.key_lengths[h - stride]
    return ReadHeaders(np.int64(status.SOUND), p, start, made, total)


@leaf
def _read_pairs(data, p, end, first, m, most_bytes, headers):
    """Read the lengths of key and value of each header in turn. Return the state and the next position."""
    for h in range(first, first + np.uint64(m)):
        state, p, key_length = _get_key_length(data, p, end, most_bytes)
        if state != status.SOUND:
            return state, p
        state, p, value_length = _get_value_length(data, p, end, most_bytes)
        if state != status.SOUND:
            return state, p
        headers.key_lengths[h], headers.value_lengths[h] = key_length, value_length
    return status.SOUND, p


@leaf
def _read_lengths(data, p, end, first, m, most_bytes, x, headers):
    """Read the columns of m >= 2 key lengths and value lengths. Return the state and the next position."""
    state, p, _ = packed.read_lengths(data, p, end, m, False, most_bytes, x, x, np.uint64(0))
    if state != status.SOUND:
        return state, p
    for k in range(np.uint64(m)):
        headers.key_lengths[first + k] = x[k]
    nulls = np.int64(get_u8(data, p)) if p < end else np.int64(2)
    if nulls > 1:
        return status.HEADER_COLUMNS, p
    state, p, _ = packed.read_lengths(data, p + 1, end, m, nulls == 1, most_bytes, x, x, np.uint64(0))
    if state == status.SOUND:
        for k in range(np.uint64(m)):
            headers.value_lengths[first + k] = x[k]
    return state, p


@leaf
def _read_batch(data, p, end, n, start, m, most_bytes, room, headers):
    """Read m headers of n records into headers `start` and up. Return the ReadHeaders.

    Args:
        data, p, end, n: as in the module
        start, m: the first header and their number
        most_bytes: greatest length allowed
        room: a Room
        headers: the Headers
    """
    first, mode = np.uint64(start), np.int64(BY_RECORD)
    if n > 1:
        mode = np.int64(get_u8(data, p))
        p += 1
    if mode == BY_POSITION:
        return _read_by_position(data, p, end, n, first, m, most_bytes, room, headers)
    if n == 1:
        _, p = get_uvarint(data, p, end)
    else:  # `reading.index` has checked it
        _, p = packed.read(data, p, end, n, np.int64(0), np.int64(1), room.x, 0)
    if n == 1 or m == 1:
        state, p = _read_pairs(data, p, end, first, m, most_bytes, headers)
    else:
        state, p = _read_lengths(data, p, end, first, m, most_bytes, room.x, headers)
    if state != status.SOUND:
        return _broken(state, p)
    at = np.int64(0)
    for h in range(first, first + np.uint64(m)):
        headers.key_starts[h] = at
        at += np.int64(headers.key_lengths[h])
        headers.value_starts[h] = at
        at += max(np.int64(headers.value_lengths[h]), 0)
    return ReadHeaders(np.int64(status.SOUND), p, at, np.int64(0), at)


@leaf
def _are_digits_padded(data, end, n, first, stop, at, headers):
    """Return whether the nibble behind an odd number of digits is 0 in each template of a batch.

    Args:
        data, end, n: as in the module
        first, stop: the headers of the first record
        at: where the header bytes of the payload begin, which is plain
        headers: the Headers that were read
    """
    for h in range(np.uint64(first), np.uint64(stop)):
        if headers.value_starts[h] < 0:
            length, p = get_uvarint(data, -1 - headers.value_starts[h], end)
            varying = bits_set(data, p, packed_bytes(length, 1))
            begin = at + headers.key_starts[h] + np.int64(headers.key_lengths[h])
            if (n * varying) & 1 and get_u8(data, begin + length - varying + ((n * varying) >> 1)) & 15:
                return False
    return True


@kernel
def index(data, positions, bounds, header_bounds, header_columns, totals, most_bytes, most_in_all, room, state, codecs,
          bodies, header_totals, made, headers):  # fmt: skip
    """Read the header columns of the batches that have headers. A batch that breaks a promise gets its state.

    Return, of the sound batches: the bytes of headers and templates if there is any template, else 0; the most digits
    of a template; the rest of `most_in_all`.

    Args:
        data uint8[]: the log
        positions int64[batches + 1]: of the batches in it
        bounds, header_bounds, totals, codecs: as `reading.index` left them
        header_columns int64[batches]: positions of the header columns
        most_bytes: greatest length of a key or value
        most_in_all: bytes that all headers may stand for
        room: the arrays of a Room
        state int8[batches]
        bodies int64[batches]: filled with where each payload begins
        header_totals, made int64[batches]: filled with the bytes of headers in each payload, and of their templates
        headers: the arrays of Headers, which are filled
    """
    arrays, found_headers = Room(*room), Headers(*headers)
    total, made_in_all, most_digits = np.int64(0), np.int64(0), np.int64(0)
    for b in range(len(state)):
        made[b] = header_totals[b] = 0
        first, n = bounds[b], bounds[b + 1] - bounds[b]
        start, m = header_bounds[first], header_bounds[bounds[b + 1]] - header_bounds[first]
        if state[b] != status.SOUND or m == 0:
            continue
        end = positions[b + 1]
        found = _read_batch(data, header_columns[b], end, n, start, m, most_bytes, arrays, found_headers)
        problem, p = found.state, found.position
        header_totals[b], made[b] = found.payload_end, found.template_bytes
        if problem == status.SOUND and found.total_bytes > most_in_all:
            problem = np.int64(status.LIMIT_LOG_HEADER_BYTES)
        if problem == status.SOUND:
            bodies[b] = p
            if p == end:
                codecs[b] = 0
            if codecs[b] == 0 and p + totals[b] + header_totals[b] != end:
                problem = np.int64(status.PAYLOAD)
            elif (
                codecs[b] == 0
                and made[b]
                and n & 1  # else the number of digits is even
                and not _are_digits_padded(data, end, n, start, header_bounds[first + 1], p + totals[b], found_headers)
            ):
                problem = np.int64(status.PADDING)
        if problem == status.SOUND:
            most_in_all -= found.total_bytes
            made_in_all += made[b]
            total += made[b] + header_totals[b]
            most_digits = max(most_digits, min(2 * header_totals[b], made[b]))
        state[b] = problem
    return (total if made_in_all else np.int64(0)), most_digits, most_in_all
