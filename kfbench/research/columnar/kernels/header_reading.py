"""Kernels that read the headers of columnar batches: their numbers, their columns, then their places in the payload.

A header position is the index of a header in its record. "By position" means that all records have the same header
keys, and each position has its own columns. Otherwise the headers follow one another, record by record. Starts are
relative to the header bytes in the payload of the batch, until `place` makes them absolute. If headers are by position,
only the keys of the first record get a start.

The values of a hex template are not in the payload. `place` writes them in front of a copy of the payload, the last
position first. Their starts are negative. The first start is -1 - (position of the template in `data`).

Common parameters:

    data uint8[], p, end: the log, a position in it, the end of the batch
    n: number of records
    first uint64, m: index of the first header, number of headers
    max_bytes: largest length of a key or value allowed
    begin: start of the payload of a header position, relative to the header bytes
    template_bytes: size of the template values of earlier positions
    x int64[]: scratch, as in `columns`
    room, slots, headers: the Room; the Slots and FoundHeaders to fill
    header_bounds int64[records + 1]: record i has the headers header_bounds[i] up to header_bounds[i + 1]
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.jit import kernel, leaf, part
from kfbench.kernels.simd.intrinsics import get_u8, move
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint
from kfbench.research.columnar.kernels import columns as packed
from kfbench.research.columnar.kernels.batch_header import HEADERS
from kfbench.research.columnar.kernels.columns import INT32_MAX, U1, ZERO, bits_of, check_code, is_padded, packed_bytes
from kfbench.research.columnar.kernels.simd_int64 import put_line
from kfbench.research.columnar.kernels.templates import bits_set, expand

BY_RECORD, BY_POSITION = 0, 1  # modes
HEX_TEMPLATE, PLAIN = 254, 255  # forms of the values at a position; from 1 to MOST_VALUES: as many distinct values
MOST_VALUES = 253


class FoundHeaders(NamedTuple):
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
def read_header_counts(data, p, end, n, bits, limits, x, header_bounds, r):
    """Read the header counts of a batch with or without headers into header_bounds[r + 1:r + n + 1], as running sums.

    Return the state and the next position.

    Args:
        data, p, end, n, x, header_bounds: see the module docstring; header_bounds is empty if no batch has headers
        r: row of the first record; header_bounds is filled up to r
        bits: attributes of the batch
        limits: the largest bytes per field, headers per batch, and headers in the log
    """
    has_headers = len(header_bounds) > 0
    if not bits & HEADERS:
        if has_headers:
            put_line(header_bounds, np.uint64(r) + U1, n, header_bounds[r], ZERO)
        return status.SOUND, p
    if not has_headers:  # the log was changed after `survey` read it
        return status.HEADER_COLUMNS, p
    _, max_in_batch, max_in_log = limits
    to, before = np.uint64(r), header_bounds[r]
    most = min(max_in_batch, max_in_log - before)
    limit = status.LIMIT_HEADERS if most == max_in_batch else status.LIMIT_LOG_HEADERS
    mode = ZERO
    if n > 1:
        if p >= end:
            return status.HEADER_COLUMNS, p
        mode = np.int64(get_u8(data, p))
        p += 1
    if n == 1 or mode == BY_POSITION:
        number, p = get_uvarint(data, p, end)
        if p > end or number == 0:
            return status.HEADER_COLUMNS, p
        if number > most or number * n > most:
            return limit, p
        put_line(header_bounds, to + U1, n, before + number, number)
        return status.SOUND, p
    if mode != BY_RECORD:
        return status.HEADER_COLUMNS, p
    state, p = packed.read_short(data, p, end, n, x)
    if state != status.SOUND:
        return state, p
    total = ZERO
    for i in range(np.uint64(n)):
        if x[i] > INT32_MAX:
            return status.COLUMN_LENGTH, p
        total += x[i]
        header_bounds[to + i + U1] = before + total
    if total == 0:
        return status.HEADER_COLUMNS, p
    return limit if total > most else status.SOUND, p


@leaf
def _get_length(data, p, end, max_bytes):
    """Read the length of a header key. Return the state, the next position and the length."""
    length, p = get_uvarint(data, p, end)
    if p > end or length > INT32_MAX:
        return status.HEADER_COLUMNS, p, length
    return status.LIMIT_FIELD if length > max_bytes else status.SOUND, p, length


@leaf
def _get_value_length(data, p, end, max_bytes):
    """Read the length of a header value. Return the state, the next position and the length, -1 for a null."""
    code, p = get_uvarint(data, p, end)
    return status.HEADER_COLUMNS if p > end else check_code(code, max_bytes), p, code - 1


@leaf
def _broken(state, p):
    return ReadHeaders(np.int64(state), np.int64(p), ZERO, ZERO, ZERO)


@part
def _read_plain(data, p, end, max_bytes, begin, x, slots):
    """Read the values at one position in the plain form: a column of lengths. Return the ReadHeaders."""
    start, h, n = begin, slots.first, slots.number
    state, p, total = packed.read_lengths(data, p, end, n, max_bytes, x, x, np.uint64(0))
    if state == status.SOUND:
        for i in range(np.uint64(n)):
            slots.lengths[h], slots.starts[h] = x[i], start
            start += max(x[i], 0)
            h += slots.stride
    return ReadHeaders(np.int64(state), np.int64(p), start, ZERO, total)


@part
def _read_dictionary(data, p, end, known, max_bytes, begin, room, slots):
    """Read the values at one position in the dictionary form: distinct values, then one index per record.

    Return the ReadHeaders. Args: see the module docstring; known: number of distinct values.
    """
    x, dictionary, start, total = room.x, room.dictionary, begin, ZERO
    h, n = slots.first, slots.number
    for k in range(np.uint64(known)):
        state, p, length = _get_value_length(data, p, end, max_bytes)
        if state != status.SOUND:
            return _broken(state, p)
        dictionary[k << U1], dictionary[(k << U1) + U1] = length, start
        start += max(length, 0)
    width = bits_of(np.uint64(known - 1))
    size = packed_bytes(n, width)
    if size > end - p:
        return _broken(status.HEADER_COLUMNS, p)
    if not is_padded(data, p, n, width):
        return _broken(status.PADDING, p)
    packed.unpack(data, p, n, width, ZERO, np.int64(1), x, 0)
    for i in range(np.uint64(n)):
        if x[i] >= known:
            return _broken(status.HEADER_COLUMNS, p)
        k = np.uint64(2 * x[i])
        slots.lengths[h], slots.starts[h] = dictionary[k], dictionary[k + U1]
        total += max(dictionary[k], 0)
        h += slots.stride
    return ReadHeaders(np.int64(status.SOUND), p + size, start, ZERO, total)


@leaf
def _read_template(data, p, end, max_bytes, begin, template_bytes, slots):
    """Read the mask of a hex template: one bit per character, set if it differs. Do not expand the template.

    Return the ReadHeaders. Args: see the module docstring.
    """
    template, n = p, slots.number
    state, p, length = _get_length(data, p, end, max_bytes)
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
    h, start = slots.first, -template_bytes - n * length
    for _ in range(n):
        slots.lengths[h], slots.starts[h] = length, start
        h, start = h + slots.stride, start + length
    slots.starts[slots.first] = -1 - template
    payload_end = begin + length - varying + packed_bytes(n * varying, 4)
    return ReadHeaders(np.int64(status.SOUND), p + size, payload_end, n * length, n * length)


@leaf
def _read_values(data, p, end, max_bytes, begin, template_bytes, room, slots):
    """Read the form byte of one header position, then its values. Return the ReadHeaders.

    Args: see the module docstring.
    """
    form = np.int64(get_u8(data, p)) if p < end else ZERO
    p += 1
    if form == HEX_TEMPLATE:
        return _read_template(data, p, end, max_bytes, begin, template_bytes, slots)
    if form == PLAIN:
        return _read_plain(data, p, end, max_bytes, begin, room.x, slots)
    if form == 0:
        return _broken(status.HEADER_COLUMNS, p)
    return _read_dictionary(data, p, end, form, max_bytes, begin, room, slots)


@leaf
def _read_by_position(data, p, end, n, first, m, max_bytes, room, headers):
    """Read the headers of a batch whose records all have the same header keys. Each key has its own columns.

    Return the ReadHeaders. Args: see the module docstring.
    """
    start = template_bytes = total = ZERO
    number, p = get_uvarint(data, p, end)
    stride = np.uint64(number)
    for h in range(first, first + stride):
        state, p, key_length = _get_length(data, p, end, max_bytes)
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
def _read_batch(data, p, end, n, start, m, max_bytes, room, headers):
    """Read the headers of a batch. Return the ReadHeaders.

    Args: see the module docstring; start: index of the first header.
    """
    first = np.uint64(start)
    if n == 1:
        _, p = get_uvarint(data, p, end)
    elif get_u8(data, p) == BY_POSITION:
        return _read_by_position(data, p + 1, end, n, first, m, max_bytes, room, headers)
    else:  # checked by `reading.index`
        _, p = packed.read_short(data, p + 1, end, n, room.x)
    at = ZERO
    for h in range(first, first + np.uint64(m)):
        state, p, key_length = _get_length(data, p, end, max_bytes)
        if state != status.SOUND:
            return _broken(state, p)
        state, p, value_length = _get_value_length(data, p, end, max_bytes)
        if state != status.SOUND:
            return _broken(state, p)
        headers.key_lengths[h], headers.key_starts[h] = key_length, at
        at += key_length
        headers.value_lengths[h], headers.value_starts[h] = value_length, at
        at += max(value_length, 0)
    return ReadHeaders(np.int64(status.SOUND), p, at, ZERO, at)


@leaf
def _are_digits_padded(data, end, n, first, stop, at, headers):
    """Return whether, in each hex template of a batch, the unused half byte after an odd number of digits is 0.

    Args:
        data, end, n: see the module docstring
        first, stop: bounds of the headers of the first record
        at: position of the header bytes in the uncompressed payload
        headers: the FoundHeaders that were read
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
        headers: the arrays of FoundHeaders, which are filled
    """
    arrays, found_headers = Room(*room), FoundHeaders(*headers)
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


@leaf
def _expand_templates(data, source, at, n, first, stride, template_bytes, digits, headers, out, to):
    """Expand the hex templates of a batch to out[to:to + template_bytes]. Return whether all padding bits are 0.

    Args:
        data uint8[], source uint8[]: the log, and the buffer with the uncompressed payload
        at: position of the header bytes of the batch in `source`
        n: number of records
        first, stride uint64: the first header, and the number of headers per record
        template_bytes: size of the expanded values in bytes
        digits uint8[]: scratch
        headers: the FoundHeaders, whose starts are relative to to + template_bytes
        out uint8[], to: the values are written from `to` on, the last header position first
    """
    base, is_sound = to + template_bytes, True
    for k in range(np.uint64(1), stride + U1):
        h = first + stride - k
        if headers.value_starts[h] < 0:
            payload = at + headers.key_starts[h] + np.int64(headers.key_lengths[h])
            length, has_padding = expand(data, -1 - headers.value_starts[h], n, source, payload, out, to, digits)
            is_sound &= has_padding
            headers.value_starts[h] = to - base
            to += n * length
    return is_sound


@kernel
def place(data, source, starts, ends, bounds, header_bounds, header_columns, totals, template_bytes, digits, state,
          headers, out):  # fmt: skip
    """Turn the starts of header keys and values into absolute positions in `source`.

    They were relative to the header bytes of each batch. If `out` is not empty, values get positions in `out` instead.
    A damaged batch gets its state.

    Args:
        source uint8[], starts, ends int64[batches]: source[starts[b]:ends[b]] is the uncompressed payload of batch b
        digits uint8[]: scratch with room for the `max_digits` of `index`, and SLACK
        out uint8[]: room for the template values and header bytes of all undamaged batches, and SLACK; or empty
        data, bounds, header_bounds, header_columns, totals, template_bytes, state, headers: as in `index`
    """
    found = FoundHeaders(*headers)
    to = np.int64(0)
    for b in range(len(state)):
        record, n = bounds[b], bounds[b + 1] - bounds[b]
        first, stop = np.uint64(header_bounds[record]), np.uint64(header_bounds[bounds[b + 1]])
        if state[b] != status.SOUND or first == stop:
            continue
        at = starts[b] + totals[b]
        base, stride = at, np.uint64(header_bounds[record + 1]) - first
        if len(out):
            base = to + template_bytes[b]
            if template_bytes[b] and not _expand_templates(
                data, source, at, n, first, stride, template_bytes[b], digits, found, out, to
            ):
                state[b] = status.PADDING
            move(out, base, source, at, ends[b] - at)
            to = base + ends[b] - at
        if n > 1 and get_u8(data, header_columns[b]) == BY_POSITION:
            for h in range(first, first + stride):
                found.key_starts[h] += at
            for h in range(first + stride, stop):
                found.key_starts[h] = found.key_starts[h - stride]
        else:
            for h in range(first, stop):
                found.key_starts[h] += at
        for h in range(first, stop):
            found.value_starts[h] += base
