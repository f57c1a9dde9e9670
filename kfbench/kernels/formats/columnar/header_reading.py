"""Kernels that read the header columns of columnar batches. `header_placing` then finds keys and values in the payload.

A header position is the index of a header in its record. "By position" means that all records have the same header
keys, and each position has its own columns. Starts are relative to the header bytes in the payload of the batch. If
headers are by position, only the keys of the first record get a start.

The values of a hex template are not in the payload. `header_placing` writes them in front of a copy of the payload, the
last position first. Their starts are negative. The first start is -1 - (position of the template in `data`).

Common parameters:

    data uint8[], p, end: the log, a position in it, the end of the batch
    n: number of records
    first uint64, m: index of the first header, number of headers
    max_bytes: largest length of a key or value allowed
    begin: start of the payload of a header position, relative to the header bytes
    template_bytes: size of the template values of earlier positions
    x int64[]: scratch, as in `columns`
    room, slots, headers: the Room; the Slots and Headers to fill
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar import header_forms as forms
from kfbench.kernels.formats.columnar.columns import INT32_MAX, U1, ZERO, is_padded, packed_bytes
from kfbench.kernels.formats.columnar.template_reading import bits_set
from kfbench.kernels.jit import kernel, leaf, part
from kfbench.kernels.simd.intrinsics import get_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint


class Headers(NamedTuple):
    """The output arrays: length and start of each header key and of each header value."""

    key_lengths: np.ndarray  # int32[]
    key_starts: np.ndarray  # int64[]
    value_lengths: np.ndarray  # int32[], -1 for a null
    value_starts: np.ndarray  # int64[]


class Room(NamedTuple):
    """Scratch arrays of the functions that read headers."""

    x: np.ndarray  # int64[records, or headers, of the largest batch + GROUP]
    dictionary: np.ndarray  # int64[2 * MOST_VALUES]: length and start of each distinct value


class Slots(NamedTuple):
    """The output rows for the headers at one position: `number` rows, every `stride`-th from `first` on."""

    lengths: np.ndarray  # int32[headers]
    starts: np.ndarray  # int64[headers]
    first: int  # uint64
    stride: int  # uint64
    number: int


class ReadHeaders(NamedTuple):
    """The result of reading the header columns of a batch or of one position. All fields are int64."""

    state: int
    position: int  # the position after the columns
    payload_end: int  # end of the keys and values in the payload, relative to the begin of the header bytes
    template_bytes: int  # size of the values that templates expand to
    total_bytes: int  # size of the keys and values of all records


class Summary(NamedTuple):
    """Sizes and limits over the header columns of all undamaged batches. All fields are int64."""

    expanded_bytes: int  # size of header bytes and template values; 0 without a template
    max_digits: int  # the largest number of hex digits in one template
    header_bytes_left: int  # `max_in_log` minus the bytes that were read


@leaf
def _get_value_length(data, p, end, max_bytes):
    """Read the length of a header value. Return the state, the next position and the length, -1 for a null."""
    length, p = get_uvarint(data, p, end)
    length -= 1
    if p > end or length > INT32_MAX:
        return status.HEADER_COLUMNS, p, length
    return status.LIMIT_FIELD if length > max_bytes else status.SOUND, p, length


@leaf
def _get_key_length(data, p, end, max_bytes):
    length, p = get_uvarint(data, p, end)
    if p > end or length > INT32_MAX:
        return status.HEADER_COLUMNS, p, length
    return status.LIMIT_FIELD if length > max_bytes else status.SOUND, p, length


@leaf
def _broken(state, p):
    return ReadHeaders(np.int64(state), np.int64(p), ZERO, ZERO, ZERO)


@leaf
def _fill(slots, length, start, step):
    """Store the same length in all output rows of `slots`, and starts that are `step` bytes apart."""
    h = slots.first
    for _ in range(slots.number):
        slots.lengths[h], slots.starts[h] = length, start
        h += slots.stride
        start += step


@leaf
def _read_constant(data, p, end, max_bytes, begin, slots):
    state, p, length = _get_value_length(data, p, end, max_bytes)
    if state != status.SOUND:
        return _broken(state, p)
    _fill(slots, length, begin, ZERO)
    length = max(length, 0)
    return ReadHeaders(np.int64(state), p, begin + length, ZERO, slots.number * length)


@part
def _read_plain(data, p, end, has_nulls, max_bytes, begin, x, slots):
    """Read the values at one position in the plain form: a column of lengths. Return the ReadHeaders.

    Args: see the module docstring; has_nulls: whether the column stores codes.
    """
    start, h, n = begin, slots.first, slots.number
    state, p, total = packed.read_lengths(data, p, end, n, has_nulls, max_bytes, x, x, np.uint64(0))
    if state == status.SOUND:
        for i in range(np.uint64(n)):
            slots.lengths[h], slots.starts[h] = x[i], start
            start += max(x[i], 0)
            h += slots.stride
    return ReadHeaders(np.int64(state), np.int64(p), start, ZERO, total)


@part
def _read_dictionary(data, p, end, max_bytes, begin, room, slots):
    """Read the values at one position in the dictionary form: distinct values, then one index per record.

    Return the ReadHeaders. Args: see the module docstring.
    """
    x, dictionary, start, total = room.x, room.dictionary, begin, ZERO
    h, n = slots.first, slots.number
    known, p = get_uvarint(data, p, end)
    if p > end or known < 2 or known > forms.MOST_VALUES:
        return _broken(status.HEADER_COLUMNS, p)
    for k in range(np.uint64(known)):
        state, p, length = _get_value_length(data, p, end, max_bytes)
        if state != status.SOUND:
            return _broken(state, p)
        dictionary[k << U1], dictionary[(k << U1) + U1] = length, start
        start += max(length, 0)
    state, width, next_position = packed.check_indexes(data, p, end, n, known)
    if state != status.SOUND:
        return _broken(status.HEADER_COLUMNS if state == status.COLUMN else state, p)
    packed.unpack(data, p, n, width, ZERO, ZERO, np.int64(1), x, 0)
    for i in range(np.uint64(n)):
        if x[i] >= known:
            return _broken(status.HEADER_COLUMNS, p)
        k = np.uint64(2 * x[i])
        slots.lengths[h], slots.starts[h] = dictionary[k], dictionary[k + U1]
        total += max(dictionary[k], 0)
        h += slots.stride
    return ReadHeaders(np.int64(status.SOUND), next_position, start, ZERO, total)


@leaf
def _read_template(data, p, end, max_bytes, begin, template_bytes, slots):
    """Read the mask of a hex template: one bit per character, set if it differs. Do not expand the template.

    Return the ReadHeaders. Args: see the module docstring.
    """
    template, n = p, slots.number
    state, p, length = _get_key_length(data, p, end, max_bytes)
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
    _fill(slots, length, -template_bytes - n * length, length)
    slots.starts[slots.first] = -1 - template
    payload_end = begin + length - varying + packed_bytes(n * varying, 4)
    return ReadHeaders(np.int64(status.SOUND), p + size, payload_end, n * length, n * length)


@leaf
def _read_values(data, p, end, max_bytes, begin, template_bytes, room, slots):
    """Read the form byte of one header position, then its values. Return the ReadHeaders.

    Args: see the module docstring.
    """
    form = np.int64(get_u8(data, p)) if p < end else np.int64(-1)
    p += 1
    if form == forms.CONSTANT:
        return _read_constant(data, p, end, max_bytes, begin, slots)
    if form == forms.HEX_TEMPLATE:
        return _read_template(data, p, end, max_bytes, begin, template_bytes, slots)
    if form == forms.PLAIN or form == forms.PLAIN_WITH_NULLS:
        return _read_plain(data, p, end, form == forms.PLAIN_WITH_NULLS, max_bytes, begin, room.x, slots)
    if form == forms.DICTIONARY:
        return _read_dictionary(data, p, end, max_bytes, begin, room, slots)
    return _broken(status.HEADER_COLUMNS, p)


@leaf
def _read_by_position(data, p, end, n, first, m, max_bytes, room, headers):
    """Read the headers of a batch whose records all have the same header keys. Each key has its own columns.

    Return the ReadHeaders. Args: see the module docstring.
    """
    start = template_bytes = total = ZERO
    number, p = get_uvarint(data, p, end)
    stride = np.uint64(number)
    for h in range(first, first + stride):
        state, p, key_length = _get_key_length(data, p, end, max_bytes)
        if state != status.SOUND:
            return _broken(state, p)
        headers.key_lengths[h], headers.key_starts[h] = key_length, start
        slots = Slots(headers.value_lengths, headers.value_starts, h, stride, n)
        found = _read_values(data, p, end, max_bytes, start + key_length, template_bytes, room, slots)
        if found.state != status.SOUND:
            return _broken(found.state, found.position)
        p, start, template_bytes = found.position, found.payload_end, template_bytes + found.template_bytes
        total += n * key_length + found.total_bytes
    for h in range(first + stride, first + np.uint64(m)):
        headers.key_lengths[h] = headers.key_lengths[h - stride]
    return ReadHeaders(np.int64(status.SOUND), p, start, template_bytes, total)


@leaf
def _read_pairs(data, p, end, first, m, max_bytes, headers):
    """Read a key length and a value length for each of m headers. Return the state and the next position.

    Args: see the module docstring.
    """
    for h in range(first, first + np.uint64(m)):
        state, p, key_length = _get_key_length(data, p, end, max_bytes)
        if state != status.SOUND:
            return state, p
        state, p, value_length = _get_value_length(data, p, end, max_bytes)
        if state != status.SOUND:
            return state, p
        headers.key_lengths[h], headers.value_lengths[h] = key_length, value_length
    return status.SOUND, p


@leaf
def _read_lengths(data, p, end, first, m, max_bytes, x, headers):
    """Read the columns of m >= 2 key lengths and m value lengths. Return the state and the next position.

    Args: see the module docstring.
    """
    state, p, _ = packed.read_lengths(data, p, end, m, False, max_bytes, x, x, np.uint64(0))
    if state != status.SOUND:
        return state, p
    for k in range(np.uint64(m)):
        headers.key_lengths[first + k] = x[k]
    nulls = np.int64(get_u8(data, p)) if p < end else np.int64(2)
    if nulls > 1:
        return status.HEADER_COLUMNS, p
    state, p, _ = packed.read_lengths(data, p + 1, end, m, nulls == 1, max_bytes, x, x, np.uint64(0))
    if state == status.SOUND:
        for k in range(np.uint64(m)):
            headers.value_lengths[first + k] = x[k]
    return state, p


@leaf
def _read_batch(data, p, end, n, start, m, max_bytes, room, headers):
    """Read the headers of a batch. Return the ReadHeaders.

    Args: see the module docstring; start: index of the first header.
    """
    first, mode = np.uint64(start), np.int64(forms.BY_RECORD)
    if n > 1:
        mode = np.int64(get_u8(data, p))
        p += 1
    if mode == forms.BY_POSITION:
        return _read_by_position(data, p, end, n, first, m, max_bytes, room, headers)
    if n == 1:
        _, p = get_uvarint(data, p, end)
    else:  # checked by `reading.index`
        _, p = packed.read(data, p, end, n, ZERO, np.int64(1), room.x, 0)
    if n == 1 or m == 1:
        state, p = _read_pairs(data, p, end, first, m, max_bytes, headers)
    else:
        state, p = _read_lengths(data, p, end, first, m, max_bytes, room.x, headers)
    if state != status.SOUND:
        return _broken(state, p)
    at = ZERO
    for h in range(first, first + np.uint64(m)):
        headers.key_starts[h] = at
        at += np.int64(headers.key_lengths[h])
        headers.value_starts[h] = at
        at += max(np.int64(headers.value_lengths[h]), 0)
    return ReadHeaders(np.int64(status.SOUND), p, at, ZERO, at)


@leaf
def _are_digits_padded(data, end, n, first, stop, at, headers):
    """Return whether, in each hex template of a batch, the unused half byte after an odd number of digits is 0.

    Args:
        data, end, n: see the module docstring
        first, stop: bounds of the headers of the first record
        at: position of the header bytes in the uncompressed payload
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
def index(data, positions, bounds, header_bounds, header_columns, totals, max_bytes, max_in_log, room, state, codecs,
          bodies, header_totals, template_bytes, headers):  # fmt: skip
    """Read the header columns of the batches that have headers. Return the Summary. A damaged batch gets its state.

    Args:
        data uint8[], positions int64[batches + 1]: the log, and the positions of its batches
        bounds, header_bounds, totals, codecs: as `reading.index` filled them
        header_columns int64[batches]: positions of the header columns
        max_bytes: largest length of a key or value allowed
        max_in_log: bytes of keys and values of all headers allowed
        room: the arrays of a Room
        state int8[batches]: see `status`
        bodies int64[batches]: filled with the position of each payload
        header_totals int64[batches]: filled with the header bytes in each payload
        template_bytes int64[batches]: filled with the size of the template values of each batch
        headers: the arrays of Headers, which are filled
    """
    arrays, found_headers = Room(*room), Headers(*headers)
    total = all_template_bytes = max_digits = ZERO
    for b in range(len(state)):
        template_bytes[b] = header_totals[b] = 0
        first, n = bounds[b], bounds[b + 1] - bounds[b]
        start, m = header_bounds[first], header_bounds[bounds[b + 1]] - header_bounds[first]
        if state[b] != status.SOUND or m == 0:
            continue
        end = positions[b + 1]
        found = _read_batch(data, header_columns[b], end, n, start, m, max_bytes, arrays, found_headers)
        problem, p = found.state, found.position
        header_totals[b], template_bytes[b] = found.payload_end, found.template_bytes
        if problem == status.SOUND and found.total_bytes > max_in_log:
            problem = np.int64(status.LIMIT_LOG_HEADER_BYTES)
        if problem == status.SOUND:
            bodies[b] = p
            if p == end:
                codecs[b] = 0
            if codecs[b] == 0 and p + totals[b] + header_totals[b] != end:
                problem = np.int64(status.PAYLOAD)
            elif (
                codecs[b] == 0
                and template_bytes[b]
                and n & 1  # an even number of records has an even number of digits
                and not _are_digits_padded(data, end, n, start, header_bounds[first + 1], p + totals[b], found_headers)
            ):
                problem = np.int64(status.PADDING)
        if problem == status.SOUND:
            max_in_log -= found.total_bytes
            all_template_bytes += template_bytes[b]
            total += template_bytes[b] + header_totals[b]
            max_digits = max(max_digits, min(2 * header_totals[b], template_bytes[b]))
        state[b] = problem
    return Summary(total if all_template_bytes else ZERO, max_digits, np.int64(max_in_log))
