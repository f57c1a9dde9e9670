"""The headers of a columnar batch: a column for each position where all records have the same keys, else rows."""

import numpy as np

from kfbench.kernels import status
from kfbench.kernels._jit import kernel, leaf, part
from kfbench.kernels.columnar import columns as packed
from kfbench.kernels.columnar.columns import INT32_MAX, bits_of, fill_lengths, is_padded, packed_bytes
from kfbench.kernels.intrinsics import get_u8, move, put_u8
from kfbench.kernels.shared_headers import same_bytes
from kfbench.kernels.varint import get_uvarint, put_bytes, put_uvarint, uvarint_bytes

BY_ROW, BY_POSITION = 0, 1  # modes
CONSTANT, PLAIN, NULLED, DICTIONARY, TEMPLATE = range(5)  # forms of a position
MOST_TRIED, MOST_VALUES = 32, 256  # of a dictionary: what an encoder tries, what a reader takes
ONE = np.uint64(1)
BY_ROWS = 255  # in the place of a form
VARIES, NOT_HEX = 1, 2


# Writing. scratch: (x int64[records, or headers, of the largest batch], histogram, table int64[MOST_TRIED],
# mask uint8[longest header value], forms uint8[headers]). `sizes` decides for each header of a batch's first record on
# the form of its position, or has BY_ROWS at the first.


@leaf
def _is_by_position(header_bounds, key_lengths, keys, key_starts, first, n):
    """Whether all of n >= 2 records have the same number of headers, and the same key at each position."""
    start = header_bounds[first]
    number = header_bounds[first + ONE] - start
    for i in range(np.uint64(n)):
        if header_bounds[first + i + ONE] - header_bounds[first + i] != number:
            return False
    for h in range(np.uint64(start + number), np.uint64(start + number * n)):
        before = h - np.uint64(number)
        if key_lengths[h] != key_lengths[before]:
            return False
        if key_starts[h] != key_starts[before] and not same_bytes(
            keys, key_starts[h], keys, key_starts[before], np.int64(key_lengths[h])
        ):
            return False
    return True


@leaf
def _same_value(lengths, values, starts, one, other):
    if lengths[one] != lengths[other]:
        return False
    return starts[one] == starts[other] or same_bytes(
        values, starts[one], values, starts[other], np.int64(lengths[one])
    )


@leaf
def _number_of(lengths, values, starts, h, table, known):
    """The number of header h's value among those of the headers table[:known]; known: it is none of them."""
    for k in range(known):
        if _same_value(lengths, values, starts, h, np.uint64(table[k])):
            return np.int64(k)
    return np.int64(known)


@part
def _find_values(lengths, values, starts, h, stride, n, table):
    """Fills table with the first header of each distinct value; how many there are, one above MOST_TRIED: more."""
    known = np.int64(0)
    for i in range(np.uint64(n)):
        at = h + i * stride
        if known and _same_value(lengths, values, starts, at, at - stride):
            continue
        if _number_of(lengths, values, starts, at, table, known) == known:
            if known == MOST_TRIED:
                return known + 1
            table[known] = np.int64(at)
            known += 1
    return known


@part
def _find_mask(values, starts, h, stride, n, length, mask):
    """Which characters of n values of one length vary: mask[:length]; how many, 0 where one is no hex digit."""
    for k in range(np.uint64(length)):
        mask[k] = 0
    origin = starts[h]
    for i in range(np.uint64(n)):
        start = starts[h + i * stride]
        for k in range(np.uint64(length)):
            c = values[np.uint64(start) + k]
            is_hex = (c >= 48 and c <= 57) or (c >= 97 and c <= 102)
            varies = c != values[np.uint64(origin) + k]
            mask[k] |= np.uint8((VARIES if varies else 0) | (0 if is_hex else NOT_HEX))
    number = np.int64(0)
    for k in range(np.uint64(length)):
        if mask[k] == VARIES | NOT_HEX:
            return np.int64(0)
        number += mask[k] & VARIES
    return number


@part
def _choose(lengths, values, starts, h, stride, n, scratch):
    """(form, bytes in the columns behind it, bytes in the payload) of the values of one position."""
    x, histogram, table, mask, _ = scratch
    known = _find_values(lengths, values, starts, h, stride, n, table)
    length = np.int64(lengths[h])
    if known == 1:
        return np.int64(CONSTANT), uvarint_bytes(np.uint64(length + 1)), max(length, 0)
    nulls, least, total, low, high, code_total = fill_lengths(x, lengths, h, stride, n)
    is_one_length = nulls == 0 and total == length * n and least == length
    form, payload = np.int64(NULLED if nulls else PLAIN), total
    size = uvarint_bytes(np.uint64(least)) if nulls else np.int64(0)
    size += packed.choose(x, n, low, high, code_total, False, histogram)[0]
    if known <= MOST_TRIED:
        other, other_payload = uvarint_bytes(np.uint64(known)), np.int64(0)
        for k in range(known):
            one = np.int64(lengths[np.uint64(table[k])])
            other += uvarint_bytes(np.uint64(one + 1))
            other_payload += max(one, 0)
        other += packed_bytes(n, bits_of(np.uint64(known - 1)))
        if other + other_payload < size + payload:
            form, size, payload = np.int64(DICTIONARY), other, other_payload
    if is_one_length and length:
        varying = _find_mask(values, starts, h, stride, n, length, mask)
        if varying:
            other = uvarint_bytes(np.uint64(length)) + packed_bytes(length, 1)
            other_payload = length - varying + packed_bytes(n * varying, 4)
            if other + other_payload < size + payload:
                form, size, payload = np.int64(TEMPLATE), other, other_payload
    return form, size, payload


@kernel
def sizes(columns, bounds, scratch, out):
    """Fills int64[3 * batches]: what the headers of each batch take in columns, and of keys and of values in payload.

    Decides on the forms that `put_columns` and `put_payload` write.
    """
    _, _, _, _, header_bounds, key_lengths, value_lengths = columns[:7]
    keys, key_starts, values, value_starts = columns[11:15]
    x, histogram = scratch[:2]
    forms = scratch[4]
    for b in range(len(bounds) - 1):
        first, n = np.uint64(bounds[b]), bounds[b + 1] - bounds[b]
        start, end = np.uint64(header_bounds[first]), np.uint64(header_bounds[bounds[b + 1]])
        m = np.int64(end - start)
        size = key_bytes = value_bytes = np.int64(0)
        if m == 0:
            pass
        elif n > 1 and _is_by_position(header_bounds, key_lengths, keys, key_starts, first, n):
            stride = np.uint64(header_bounds[first + ONE]) - start
            size = 1 + uvarint_bytes(stride)
            for h in range(start, start + stride):
                name = np.int64(key_lengths[h])
                forms[h], own, payload = _choose(value_lengths, values, value_starts, h, stride, n, scratch)
                size += uvarint_bytes(np.uint64(name)) + 1 + own
                key_bytes += name
                value_bytes += payload
        else:
            forms[start] = BY_ROWS
            for h in range(start, end):
                key_bytes += np.int64(key_lengths[h])
                value_bytes += max(np.int64(value_lengths[h]), 0)
            if n == 1 or m == 1:
                for h in range(start, end):
                    size += uvarint_bytes(np.uint64(key_lengths[h]))
                    size += uvarint_bytes(np.uint64(np.int64(value_lengths[h]) + 1))
            if n == 1:
                size += uvarint_bytes(np.uint64(m))
            else:
                for i in range(np.uint64(n)):
                    x[i] = header_bounds[first + i + ONE] - header_bounds[first + i]
                size += 1 + packed.size_of(x, n, False, histogram)
            if n > 1 and m > 1:
                fill_lengths(x, key_lengths, start, ONE, m)
                size += packed.size_of(x, m, False, histogram)
                nulls, least, _, _, _, _ = fill_lengths(x, value_lengths, start, ONE, m)
                size += 1 + (uvarint_bytes(np.uint64(least)) if nulls else 0)
                size += packed.size_of(x, m, False, histogram)
        out[3 * b], out[3 * b + 1], out[3 * b + 2] = size, key_bytes, value_bytes


@part
def _put_position(out, at, lengths, values, starts, h, stride, n, scratch):
    """Form and columns of the values of one position; gives the next position."""
    x, histogram, table, mask, forms = scratch
    form = np.int64(forms[h])
    put_u8(out, at, np.uint8(form))
    at += 1
    length = np.int64(lengths[h])
    if form == CONSTANT:
        return put_uvarint(out, at, np.uint64(length + 1))
    if form == DICTIONARY:
        known = _find_values(lengths, values, starts, h, stride, n, table)
        at = put_uvarint(out, at, np.uint64(known))
        for k in range(known):
            at = put_uvarint(out, at, np.uint64(np.int64(lengths[np.uint64(table[k])]) + 1))
        for i in range(np.uint64(n)):
            x[i] = _number_of(lengths, values, starts, h + i * stride, table, known)
        return packed.pack(out, at, x, n, bits_of(np.uint64(known - 1)))
    if form == TEMPLATE:
        at = put_uvarint(out, at, np.uint64(length))
        _find_mask(values, starts, h, stride, n, length, mask)
        for k in range(0, length, 8):
            byte = np.int64(0)
            for j in range(min(8, length - k)):
                byte |= np.int64(mask[np.uint64(k + j)] & VARIES) << j
            put_u8(out, at, np.uint8(byte))
            at += 1
        return at
    nulls, least, _, _, _, _ = fill_lengths(x, lengths, h, stride, n)
    if nulls:
        at = put_uvarint(out, at, np.uint64(least))
    return packed.write_all(out, at, x, n, False, histogram)


@part
def put_columns(out, at, columns, first, n, scratch):
    """Writes the header columns of n >= 1 records, which fit; gives the next position."""
    _, _, _, _, header_bounds, key_lengths, value_lengths = columns[:7]
    values, value_starts = columns[13:15]
    x, histogram = scratch[:2]
    start, end = np.uint64(header_bounds[first]), np.uint64(header_bounds[first + np.uint64(n)])
    m = np.int64(end - start)
    if scratch[4][start] != BY_ROWS:
        stride = np.uint64(header_bounds[first + ONE]) - start
        put_u8(out, at, np.uint8(BY_POSITION))
        at = put_uvarint(out, at + 1, stride)
        for h in range(start, start + stride):
            at = put_uvarint(out, at, np.uint64(key_lengths[h]))
            at = _put_position(out, at, value_lengths, values, value_starts, h, stride, n, scratch)
        return at
    if n == 1:
        at = put_uvarint(out, at, np.uint64(m))
    else:
        put_u8(out, at, np.uint8(BY_ROW))
        for i in range(np.uint64(n)):
            x[i] = header_bounds[first + i + ONE] - header_bounds[first + i]
        at = packed.write_all(out, at + 1, x, n, False, histogram)
    if n == 1 or m == 1:
        for h in range(start, end):
            at = put_uvarint(out, at, np.uint64(key_lengths[h]))
            at = put_uvarint(out, at, np.uint64(np.int64(value_lengths[h]) + 1))
        return at
    fill_lengths(x, key_lengths, start, ONE, m)
    at = packed.write_all(out, at, x, m, False, histogram)
    nulls, least, _, _, _, _ = fill_lengths(x, value_lengths, start, ONE, m)
    put_u8(out, at, np.uint8(1 if nulls else 0))
    at += 1
    if nulls:
        at = put_uvarint(out, at, np.uint64(least))
    return packed.write_all(out, at, x, m, False, histogram)


@leaf
def _put_value(out, at, lengths, values, starts, h):
    return put_bytes(out, at, values, starts[h], np.int64(lengths[h]))


@part
def _put_position_payload(out, at, lengths, values, starts, h, stride, n, scratch):
    _, _, table, mask, forms = scratch
    form = np.int64(forms[h])
    if form == CONSTANT:
        return _put_value(out, at, lengths, values, starts, h)
    if form == DICTIONARY:
        for k in range(_find_values(lengths, values, starts, h, stride, n, table)):
            at = _put_value(out, at, lengths, values, starts, np.uint64(table[k]))
        return at
    if form != TEMPLATE:
        for i in range(np.uint64(n)):
            at = _put_value(out, at, lengths, values, starts, h + i * stride)
        return at
    length = np.int64(lengths[h])
    _find_mask(values, starts, h, stride, n, length, mask)
    for k in range(np.uint64(length)):
        if mask[k] & VARIES == 0:
            put_u8(out, at, values[np.uint64(starts[h]) + k])
            at += 1
    byte, odd = np.int64(0), False
    for i in range(np.uint64(n)):
        start = np.uint64(starts[h + i * stride])
        for k in range(np.uint64(length)):
            if mask[k] & VARIES:
                c = np.int64(values[start + k])
                byte = byte << 4 | (c - 48 if c <= 57 else c - 87)
                if odd:
                    put_u8(out, at, np.uint8(byte))
                    at += 1
                    byte = np.int64(0)
                odd = not odd
    if odd:
        put_u8(out, at, np.uint8(byte << 4))
        at += 1
    return at


@part
def put_payload(out, at, columns, first, n, scratch):
    """Writes keys and values of the headers of n >= 1 records, which fit; gives the next position."""
    _, _, _, _, header_bounds, key_lengths, value_lengths = columns[:7]
    keys, key_starts, values, value_starts = columns[11:15]
    start, end = np.uint64(header_bounds[first]), np.uint64(header_bounds[first + np.uint64(n)])
    if scratch[4][start] != BY_ROWS:
        stride = np.uint64(header_bounds[first + ONE]) - start
        for h in range(start, start + stride):
            at = put_bytes(out, at, keys, key_starts[h], np.int64(key_lengths[h]))
            at = _put_position_payload(out, at, value_lengths, values, value_starts, h, stride, n, scratch)
        return at
    for h in range(start, end):
        at = put_bytes(out, at, keys, key_starts[h], np.int64(key_lengths[h]))
        at = _put_value(out, at, value_lengths, values, value_starts, h)
    return at


# Reading. Positions in the payload count from where its header bytes begin; those of a template's values, which are
# not in it, as -1 less their place among those of the batch.


@leaf
def _get_value_length(data, p, end, most_bytes):
    """(state, next position, nullable length)."""
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
def _bits_set(data, p, size):
    number = np.int64(0)
    for k in range(size):
        byte = np.int64(get_u8(data, p + k))
        while byte:
            byte &= byte - 1
            number += 1
    return number


@part
def _read_position(data, p, end, n, most_bytes, at, made, room):
    """Lengths x[:n] and places y[:n] of one position's values, whose payload begins at `at`, and `made` bytes of
    templates before it; (state, next position, end of the payload, bytes of templates)."""
    x, y, table = room
    form = np.int64(get_u8(data, p)) if p < end else np.int64(-1)
    p += 1
    if form == CONSTANT:
        state, p, length = _get_value_length(data, p, end, most_bytes)
        for i in range(np.uint64(n)):
            x[i], y[i] = length, at
        return state, p, at + max(length, 0), made
    if form == PLAIN or form == NULLED:
        state, p, _ = packed.read_lengths(data, p, end, n, form == NULLED, most_bytes, x)
        if state == status.SOUND:
            for i in range(np.uint64(n)):
                y[i] = at
                at += max(x[i], 0)
        return state, p, at, made
    if form == DICTIONARY:
        known, p = get_uvarint(data, p, end)
        if p > end or known < 2 or known > MOST_VALUES:
            return status.HEADER_COLUMNS, p, at, made
        lengths = p
        for _ in range(known):
            state, p, length = _get_value_length(data, p, end, most_bytes)
            if state != status.SOUND:
                return state, p, at, made
        width = bits_of(np.uint64(known - 1))
        size = packed_bytes(n, width)
        if size > end - p:
            return status.HEADER_COLUMNS, p, at, made
        if not is_padded(data, p, n, width):
            return status.PADDING, p, at, made
        for k in range(known):
            _, lengths, table[2 * k] = _get_value_length(data, lengths, end, most_bytes)
            table[2 * k + 1] = at
            at += max(table[2 * k], 0)
        packed.unpack(data, p, n, width, 0, x, 0)
        for i in range(np.uint64(n)):
            if x[i] >= known:
                return status.HEADER_COLUMNS, p, at, made
            k = np.uint64(2 * x[i])
            x[i], y[i] = table[k], table[k + ONE]
        return status.SOUND, p + size, at, made
    if form == TEMPLATE:
        state, p, length = _get_key_length(data, p, end, most_bytes)
        size = packed_bytes(length, 1)
        if state != status.SOUND or length == 0 or size > end - p:
            return status.LIMIT_FIELD if state == status.LIMIT_FIELD else status.HEADER_COLUMNS, p, at, made
        if not is_padded(data, p, length, 1):
            return status.PADDING, p, at, made
        varying = _bits_set(data, p, size)
        if varying == 0:
            return status.HEADER_COLUMNS, p, at, made
        for i in range(np.uint64(n)):
            x[i], y[i] = length, -1 - made
            made += length
        return status.SOUND, p + size, at + length - varying + packed_bytes(n * varying, 4), made
    return status.HEADER_COLUMNS, p, at, made


@leaf
def _read_batch(data, p, end, n, first, m, most_bytes, room, headers):
    """Headers of n >= 1 records into rows `first` and up; (state, next position, payload bytes, template bytes)."""
    key_lengths, key_starts, value_lengths, value_starts = headers
    x, y, _ = room
    at, made = np.int64(0), np.int64(0)
    mode = np.int64(BY_ROW)
    state = status.SOUND
    if n > 1:
        mode = np.int64(get_u8(data, p))
        p += 1
    if mode == BY_POSITION:
        number, p = get_uvarint(data, p, end)
        stride = np.uint64(number)
        for h in range(np.uint64(first), np.uint64(first) + stride):
            state, p, name = _get_key_length(data, p, end, most_bytes)
            if state != status.SOUND:
                break
            for i in range(np.uint64(n)):
                key_lengths[h + i * stride], key_starts[h + i * stride] = name, at
            state, p, at, made = _read_position(data, p, end, n, most_bytes, at + name, made, room)
            if state != status.SOUND:
                break
            for i in range(np.uint64(n)):
                value_lengths[h + i * stride], value_starts[h + i * stride] = x[i], y[i]
        return state, p, at, made
    if n == 1:
        _, p = get_uvarint(data, p, end)
    else:
        state, p = packed.read(data, p, end, n, x, 0)  # `index` has seen it
    to = np.uint64(first)
    if n == 1 or m == 1:
        for h in range(to, to + np.uint64(m)):
            state, p, name = _get_key_length(data, p, end, most_bytes)
            if state != status.SOUND:
                break
            state, p, content = _get_value_length(data, p, end, most_bytes)
            if state != status.SOUND:
                break
            key_lengths[h], value_lengths[h] = name, content
    else:
        state, p, _ = packed.read_lengths(data, p, end, m, False, most_bytes, x)
        if state == status.SOUND:
            for h in range(np.uint64(m)):
                key_lengths[to + h] = x[h]
            nulls = np.int64(get_u8(data, p)) if p < end else np.int64(2)
            if nulls > 1:
                state = status.HEADER_COLUMNS
            else:
                state, p, _ = packed.read_lengths(data, p + 1, end, m, nulls == 1, most_bytes, x)
        if state == status.SOUND:
            for h in range(np.uint64(m)):
                value_lengths[to + h] = x[h]
    if state == status.SOUND:
        for h in range(to, to + np.uint64(m)):
            key_starts[h] = at
            at += np.int64(key_lengths[h])
            value_starts[h] = at
            at += max(np.int64(value_lengths[h]), 0)
    return state, p, at, made


@kernel
def index(data, positions, bounds, header_bounds, header_columns, totals, most_bytes, most_in_all, room, state, codecs,
          bodies, header_totals, made, headers):  # fmt: skip
    """Reads the header columns of the batches that have some; moves bodies to where the payload begins.

    header_columns: where they begin; totals, codecs, bounds and header_bounds as `columnar.index` left them;
    most_in_all: bytes that headers may stand for; room: scratch, x and y int64 for the records and the headers of the
    largest batch, table int64[2 * MOST_VALUES]. Fills headers (lengths and places of keys, of values), header_totals
    and made int64 (bytes of headers in each batch's payload, of their templates). A batch that breaks a promise gets
    its state.
    """
    key_lengths, _, value_lengths, _ = headers
    for b in range(len(state)):
        made[b] = header_totals[b] = 0
        first, n = bounds[b], bounds[b + 1] - bounds[b]
        start, m = header_bounds[first], header_bounds[bounds[b + 1]] - header_bounds[first]
        if state[b] != status.SOUND or m == 0:
            continue
        end = positions[b + 1]
        problem, p, header_totals[b], made[b] = _read_batch(
            data, header_columns[b], end, n, start, m, most_bytes, room, headers
        )
        if problem == status.SOUND:
            for h in range(np.uint64(start), np.uint64(start + m)):
                most_in_all -= np.int64(key_lengths[h]) + max(np.int64(value_lengths[h]), 0)
            if most_in_all < 0:
                most_in_all, problem = np.int64(0), status.LIMIT_LOG_HEADER_BYTES
        if problem == status.SOUND:
            bodies[b] = p
            if p == end:
                codecs[b] = 0
            if codecs[b] == 0 and p + totals[b] + header_totals[b] != end:
                problem = status.PAYLOAD
        state[b] = problem


@leaf
def _expand(data, p, end, n, source, at, out, to):
    """Writes the n values of a template whose length lies at p and whose payload begins at `at`."""
    length, p = get_uvarint(data, p, end)
    varying, place, nibble = _bits_set(data, p, packed_bytes(length, 1)), to, np.int64(0)
    digits = at + length - varying
    for k in range(length):
        if (np.int64(get_u8(data, p + (k >> 3))) >> (k & 7)) & 1:
            for i in range(n):
                nibble = i * varying + place - to
                byte = np.int64(get_u8(source, digits + (nibble >> 1)))
                digit = byte & 15 if nibble & 1 else byte >> 4
                put_u8(out, to + i * length + k, np.uint8(digit + (48 if digit < 10 else 87)))
            place += 1
        else:
            c = get_u8(source, at)
            at += 1
            for i in range(n):
                put_u8(out, to + i * length + k, c)
    odd = (n * varying) & 1
    return odd == 0 or get_u8(source, digits + ((n * varying) >> 1)) & 15 == 0


@leaf
def _expand_batch(data, p, end, n, source, at, out, to, room):
    """Writes the templates of a batch, whose header columns lie at p and their payload at `at`; its state."""
    number, p = get_uvarint(data, p + 1, end)
    payload = made = np.int64(0)
    for _ in range(number):
        name, p = get_uvarint(data, p, end)
        payload += name
        here, before, made_before = p, payload, made
        _, p, payload, made = _read_position(data, p, end, n, INT32_MAX, payload, made, room)
        if made != made_before and not _expand(
            data, here + 1, end, n, source, at + before, out, to + made_before
        ):  # behind its form
            return status.PADDING
    return status.SOUND


@kernel
def place(data, positions, source, starts, ends, bounds, header_bounds, header_columns, totals, made, sections, room,
          state, headers, out):  # fmt: skip
    """Turns places in header bytes into positions: of keys in `source`, of values there or, if `out` is any, in it.

    source[starts[b]:ends[b]]: the plain payload of each batch; sections int64[batches + 1]: where its header bytes and
    then its templates go in `out`; the rest as in `index`. A batch that breaks a promise gets its state.
    """
    _, key_starts, _, value_starts = headers
    for b in range(len(state)):
        first, n = bounds[b], bounds[b + 1] - bounds[b]
        start, stop = header_bounds[first], header_bounds[bounds[b + 1]]
        if state[b] != status.SOUND or start == stop:
            continue
        at = starts[b] + totals[b]
        base, behind = at, np.int64(0)
        if len(out):
            base, behind = sections[b], sections[b] + ends[b] - at
            move(out, base, source, at, ends[b] - at)
            if made[b]:
                state[b] = _expand_batch(data, header_columns[b], positions[b + 1], n, source, at, out, behind, room)
        for h in range(np.uint64(start), np.uint64(stop)):
            key_starts[h] += at
            place_of = value_starts[h]
            value_starts[h] = base + place_of if place_of >= 0 else behind - 1 - place_of
