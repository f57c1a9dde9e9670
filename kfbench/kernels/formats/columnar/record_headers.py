"""The headers of a columnar batch: a column for each position where all records have the same keys, else rows."""

import numpy as np

from kfbench.kernels.formats.columnar import choosing
from kfbench.kernels.formats.columnar import columns as packed
from kfbench.kernels.formats.columnar.choosing import CODES, FULL, LENGTHS, fill_lengths
from kfbench.kernels.formats.columnar.columns import INT32_MAX, bits_of, is_padded, packed_bytes
from kfbench.kernels.formats.shared_headers import same_bytes
from kfbench.kernels.jit import kernel, leaf, part
from kfbench.kernels.simd.characters import CHARACTERS, differ8, differ16, differ32, pack_digits
from kfbench.kernels.simd.intrinsics import (
    bit_count,
    get_u8,
    get_u32,
    load_le64,
    move,
    move32,
    put_i64,
    put_le64,
    put_u8,
    trailing_zeros,
)
from kfbench.kernels.simd.simd_int64 import equals_of
from kfbench.kernels.wire import status
from kfbench.kernels.wire.varint import get_uvarint, put_bytes, put_uvarint, uvarint_bytes, varint_bytes

BY_RECORD, BY_POSITION = 0, 1  # modes
CONSTANT, PLAIN, PLAIN_WITH_NULLS, DICTIONARY, HEX_TEMPLATE = range(5)  # forms of a position
MOST_TRIED, MOST_VALUES = 32, 256  # of a dictionary: what an encoder tries, what a reader takes
MAX_OVERHEAD = 5 + 1 + 5 + 1 + 10 + 8  # of a header: at worst one of two, with a key length, a form and a column of two
SLACK = CHARACTERS  # behind what is read and written a vector at a time; a reader's words want 7 bytes of it
KNOWN = 2 * MOST_TRIED  # the headers and the last words of the values that are known
FIRST_WORD = np.uint64(MOST_TRIED)
SPREAD, TO_BIT = np.uint64(0x9E3779B97F4A7C15), np.uint64(64 - 6)  # a word's bit of 64
ONE = np.uint64(1)
U0, U2, U3, U4, U6, U7, U8, U16, U56 = (np.uint64(value) for value in (0, 2, 3, 4, 6, 7, 8, 16, 56))
# Of eight characters or digits in a word, the first in its highest byte
ZEROS = 0x3030303030303030
ONES, SIXES, HIGHS, LOWS = (np.uint64(0x0101010101010101 * byte) for byte in (0x01, 0x06, 0xF0, 0x7F))
GATHER = np.uint64(0x0102040810204080)  # of eight bytes that are 0 or 1 it takes a bit each to the highest byte
TO_LETTERS = np.uint64(ord("a") - 10 - ord("0"))
NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
PAIRS, FOURS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
BYTE, FULL_WORD = np.uint64(0xFF), np.uint64(0xFFFFFFFFFFFFFFFF)


# Writing. scratch: (x int64[records, or headers, of the largest batch], highs, numbers as x, known int64[KNOWN],
# mask uint8[longest header value], runs int64[longest + 1], digits and staged uint8[header bytes + SLACK]: the writer
# packs 64 digits at a time, and first puts there which bits of a value's characters differ, 8 bytes more than it has.
# Where headers are by position their payload is staged: what makes it small is found when their columns are.


@leaf
def _word_before(data, end):
    """The 8 bytes in front of `end`, zeros where `data` has not begun."""
    if end >= 8:
        return load_le64(data, end - 8)
    word = U0
    for k in range(end):
        word |= np.uint64(get_u8(data, k)) << np.uint64(64 - 8 * (end - k))
    return word


@leaf
def _differences(data, starts, h, stride, n, end, size):
    """Which bits of the `size` bytes, 1 to 8, in front of their byte `end` are not the same in all n items."""
    first = _word_before(data, starts[h] + end)
    bits, at = U0, h
    for _ in range(n - 1):
        at += stride
        bits |= _word_before(data, starts[at] + end) ^ first
    return bits >> np.uint64(64 - 8 * size)


@leaf
def _are_unlike(lengths, h, end, step, stride):
    """Bits by which one of the lengths before `end`, every step-th from `h` on, is not that `stride` before it."""
    unlike = np.int64(0)
    while h < end:
        unlike |= np.int64(lengths[h] ^ lengths[h - stride])
        h += step
    return unlike


@leaf
def _is_one_place(starts, h, stride, n):
    """Whether n items begin where the first does."""
    at = h
    for _ in range(n - 1):
        at += stride
        if starts[at] != starts[h]:
            return False
    return True


@leaf
def _is_by_position(header_bounds, key_lengths, keys, key_starts, first, n):
    """Whether all of n >= 2 records have the same number of headers, and the same key at each position."""
    start, end = np.uint64(header_bounds[first]), np.uint64(header_bounds[first + np.uint64(n)])
    stride = np.uint64(header_bounds[first + ONE]) - start
    unlike = np.int64(0)
    for i in range(first, first + np.uint64(n)):
        unlike |= header_bounds[i + ONE] - header_bounds[i] - np.int64(stride)
    if unlike:
        return False
    apart = np.int64(0)
    for h in range(start + stride, end):
        unlike |= np.int64(key_lengths[h]) ^ np.int64(key_lengths[h - stride])
        apart |= key_starts[h] ^ key_starts[h - stride]
    if unlike:
        return False
    if apart:
        for h in range(start, start + stride):
            for k in range(np.int64(key_lengths[h]), 0, -8):
                if _differences(keys, key_starts, h, stride, n, k, min(k, 8)):
                    return False
    return True


@leaf
def _put_differences(values, starts, h, stride, n, length, bits):
    """Puts which bits of each character are not the same in all n values of one length, and a word of zeros.

    Vectors that end where a value does overlap others, so that nothing is read behind it."""
    if length < 8:
        put_le64(bits, 0, _differences(values, starts, h, stride, n, length, length))
    elif length < 16:
        differ8(values, starts, h, stride, n, np.int64(0), length - 8, bits)
    elif length < 32:
        differ16(values, starts, h, stride, n, np.int64(0), length - 16, bits)
    else:
        last = length - 32
        for k in range(0, length, 64):
            differ32(values, starts, h, stride, n, min(k, last), min(k + 32, last), bits)
    put_le64(bits, length, U0)


@leaf
def _strays_in(word):
    """Bits among HIGHS if one of eight characters ^ ZEROS is no hex digit."""
    letters = (word >> U6) & ONES
    word -= (letters << U6) + (letters << U3) - letters  # 71 of each: what "a" ^ "0" is above 10
    return ((word + SIXES) ^ (letters << U4)) | word  # letters are digits of 10 and up, none is above 15


@leaf
def _find_runs(values, start, length, bits, mask, runs):
    """The characters that are not the same in all values: (how many, runs of them, end of the last, are digits).

    bits: what `_put_differences` puts. Fills mask with a bit for each, packed, and runs with where each of them
    begins and its length, 8 at most. Of the digits, only those of the first value are seen, which is at `start`.
    """
    varying, number, end, strays = np.int64(0), np.int64(0), np.int64(0), U0
    for k in range(0, length, 8):
        differing = load_le64(bits, k)
        mask[k >> 3] = 0
        if differing == U0:
            continue
        first = _word_before(values, start + min(k + 8, length))
        if length - k < 8:
            first >>= np.uint64(8 * (8 - (length - k)))
        ones = ((((differing & LOWS) + LOWS) | differing) >> U7) & ONES
        varying += bit_count(ones)
        strays |= _strays_in((first ^ np.uint64(ZEROS)) & (ones * BYTE))
        byte = (ones * GATHER) >> U56
        mask[k >> 3] = np.uint8(byte)
        while byte != U0:
            many, _, shift, byte = _stretch(byte)
            begin = k + np.int64(shift >> U3)
            if number and begin == end and runs[2 * number - 1] + many <= 8:
                runs[2 * number - 1] += many
            else:
                runs[2 * number], runs[2 * number + 1] = begin, many
                number += 1
            end = begin + many
    return varying, number, end, strays & HIGHS == U0


@part
def _stage_template(values, starts, h, stride, n, length, runs, number, digits, staged, at):
    """Stages the payload of a template: (next position, whether all characters that vary are hex digits)."""
    last = np.int64(0)
    for k in range(np.uint64(number)):
        at = put_bytes(staged, at, values, starts[h] + last, runs[2 * k] - last)
        last = runs[2 * k] + runs[2 * k + ONE]
    at = put_bytes(staged, at, values, starts[h] + last, length - last)
    end, safe, behind = np.int64(0), len(values) - length - 8, np.uint64(2 * number)
    for _ in range(n):
        start, k = starts[h], U0
        if start <= safe:
            while k < behind:  # a run is moved as a word, over whose end the next one comes
                put_le64(digits, end, load_le64(values, start + runs[k]))
                end += runs[k + ONE]
                k += U2
        while k < behind:
            end = put_bytes(digits, end, values, start + runs[k], runs[k + ONE])
            k += U2
        h += stride
    return at + ((end + 1) >> 1), pack_digits(digits, end, staged, at)


@leaf
def _least_distinct(values, starts, h, stride, n, end):
    """How many values there are at least: words in front of their byte `end` that are apart where 64 bits have room."""
    seen, at, unused = U0, h, np.uint64(64 - 8 * min(end, 8))
    for _ in range(min(n, 64)):
        seen |= ONE << (((_word_before(values, starts[at] + end) >> unused) * SPREAD) >> TO_BIT)
        at += stride
    return bit_count(seen)


@part
def _find_values(lengths, values, starts, h, stride, n, tail, tells_all, most, numbers, known):
    """(number of distinct values, bytes in columns) where a dictionary takes `most` bytes or less, else 0.

    Fills numbers[:n], and known with the first header of each value. tail: how many characters all values end with;
    tells_all: whether they differ in the 8 in front of it alone.
    """
    number, size, payload = np.int64(0), np.int64(0), np.int64(0)
    at = h
    for i in range(np.uint64(n)):
        length = np.int64(lengths[at])
        seen = length - tail  # most values that differ do so at their end
        word = U0
        if seen > 0:
            word = _word_before(values, starts[at] + seen)
            if seen < 8:
                word >>= np.uint64(64 - 8 * seen)
        same, k = equals_of(known, FIRST_WORD, number, np.int64(word)), np.uint64(number)
        while same:
            k = np.uint64(trailing_zeros(same))
            other = np.uint64(known[k])
            if np.int64(lengths[other]) == length and (
                tells_all
                or starts[other] == starts[at]
                or same_bytes(values, starts[other], values, starts[at], length)
            ):
                break
            same &= same - ONE
        if same == U0:
            k = np.uint64(number)
            number += 1
            size += uvarint_bytes(np.uint64(length + 1))
            payload += max(length, 0)
            if number > MOST_TRIED or number + payload > most:
                return np.int64(0), size
            known[k], known[k + FIRST_WORD] = np.int64(at), np.int64(word)
        numbers[i] = np.int64(k)
        at += stride
    size += uvarint_bytes(np.uint64(number)) + packed_bytes(n, bits_of(np.uint64(number - 1)))
    return number if size + payload <= most else np.int64(0), size


@leaf
def _put_position(out, at, lengths, values, starts, h, stride, n, unlike, scratch, behind):
    """Writes form and columns of the values of one position and stages their payload; the next positions, FULL.

    unlike: 0 where at each position all lengths are one."""
    x, highs, numbers, known, mask, runs, digits, staged = scratch
    length, varying, number, last = np.int64(lengths[h]), np.int64(0), np.int64(0), np.int64(0)
    are_digits = False
    if unlike:
        unlike = _are_unlike(lengths, h + stride, h + np.uint64(n) * stride, stride, stride)
    if unlike == 0 and length > 0 and not _is_one_place(starts, h, stride, n):
        _put_differences(values, starts, h, stride, n, length, digits)
        varying, number, last, are_digits = _find_runs(values, starts[h], length, digits, mask, runs)
    if unlike == 0 and varying == 0:
        if 1 + uvarint_bytes(np.uint64(length + 1)) > len(out) - at:
            return np.int64(FULL), behind
        put_u8(out, at, np.uint8(CONSTANT))
        at = put_uvarint(out, at + 1, np.uint64(length + 1))
        return at, put_bytes(staged, behind, values, starts[h], length)

    nulls, least, total = np.int64(0), length, n * length
    kind, width, base, more, patches = np.int64(packed.BASED), np.int64(0), length, np.int64(0), np.int64(0)
    if unlike:
        nulls, least, total, low, high, code_total = fill_lengths(x, lengths, h, stride, n)
        plain, kind, width, base, more, patches = choosing.choose(
            x, n, low, high, code_total, CODES if nulls else LENGTHS, highs
        )
    else:  # what would be chosen; most are no plain values in the end
        plain, bits = 1 + varint_bytes(length), bits_of(np.uint64(length))
        if 1 + packed_bytes(n, bits) <= plain:
            plain, kind, width, base = 1 + packed_bytes(n, bits), np.int64(packed.BITS), bits, np.int64(0)
    form, size = np.int64(PLAIN_WITH_NULLS if nulls else PLAIN), 1 + plain
    most, tail, end = plain + total - 1, np.int64(0), behind
    if nulls:
        size += uvarint_bytes(np.uint64(least))
        most += uvarint_bytes(np.uint64(least))
    template, template_columns = most + 1, np.int64(0)
    tells_all = False
    if varying:
        tail, tells_all = length - last, last - runs[0] <= 8
    if are_digits:
        template_columns = uvarint_bytes(np.uint64(length)) + packed_bytes(length, 1)
        template = template_columns + length - varying + packed_bytes(n * varying, 4)
    found, columns, least_tried = np.int64(0), np.int64(0), np.int64(0)
    if varying:
        least_tried = _least_distinct(values, starts, h, stride, n, last)
    if least_tried <= MOST_TRIED and least_tried * (1 + length) <= min(most, template):
        found, columns = _find_values(
            lengths, values, starts, h, stride, n, tail, tells_all, min(most, template), numbers, known
        )
    if found == 0 and template <= most:
        end, are_digits = _stage_template(values, starts, h, stride, n, length, runs, number, digits, staged, behind)
        if are_digits:
            form, size = np.int64(HEX_TEMPLATE), 1 + template_columns
        elif template < most:
            found, columns = _find_values(lengths, values, starts, h, stride, n, tail, tells_all, most, numbers, known)
    if found:
        form, size = np.int64(DICTIONARY), 1 + columns
    if size > len(out) - at:
        return np.int64(FULL), behind
    put_u8(out, at, np.uint8(form))
    at += 1
    if form == HEX_TEMPLATE:
        at = put_uvarint(out, at, np.uint64(length))
        return put_bytes(out, at, mask, np.int64(0), packed_bytes(length, 1)), end
    if form == DICTIONARY:
        at = put_uvarint(out, at, np.uint64(found))
        for k in range(np.uint64(found)):
            one = np.uint64(known[k])
            at = put_uvarint(out, at, np.uint64(np.int64(lengths[one]) + 1))
            behind = put_bytes(staged, behind, values, starts[one], np.int64(lengths[one]))
        return choosing.pack(out, at, numbers, n, bits_of(np.uint64(found - 1))), behind
    if nulls:
        at = put_uvarint(out, at, np.uint64(least))
    if unlike == 0:
        for i in range(np.uint64(n)):
            x[i] = length
    for _ in range(n):
        behind = put_bytes(staged, behind, values, starts[h], np.int64(lengths[h]))
        h += stride
    return choosing.put(out, at, x, n, kind, width, base, more, patches, np.int64(1), highs), behind


@leaf
def _put_pairs(out, at, key_lengths, value_lengths, start, end):
    """Writes the lengths of key and value of each header in turn; the next position, FULL."""
    for h in range(start, end):
        name, content = np.uint64(key_lengths[h]), np.uint64(np.int64(value_lengths[h]) + 1)
        if 10 > len(out) - at and uvarint_bytes(name) + uvarint_bytes(content) > len(out) - at:
            return np.int64(FULL)
        at = put_uvarint(out, put_uvarint(out, at, name), content)
    return at


@leaf
def _put_rows(out, at, header_bounds, key_lengths, value_lengths, first, n, x, highs):
    """The columns of n >= 2 records whose headers are by row; the next position, FULL."""
    start, end = np.uint64(header_bounds[first]), np.uint64(header_bounds[first + np.uint64(n)])
    m = np.int64(end - start)
    if at == len(out):
        return np.int64(FULL)
    put_u8(out, at, np.uint8(BY_RECORD))
    for i in range(np.uint64(n)):
        x[i] = header_bounds[first + i + ONE] - header_bounds[first + i]
    at = choosing.write_all(out, at + 1, x, n, LENGTHS, highs)
    if at == FULL:
        return at
    if m == 1:
        return _put_pairs(out, at, key_lengths, value_lengths, start, end)
    _, _, _, low, high, total = fill_lengths(x, key_lengths, start, ONE, m)
    at = choosing.write(out, at, x, m, low, high, total, LENGTHS, highs)
    if at == FULL:
        return at
    nulls, least, _, low, high, total = fill_lengths(x, value_lengths, start, ONE, m)
    if 1 + (uvarint_bytes(np.uint64(least)) if nulls else 0) > len(out) - at:
        return np.int64(FULL)
    put_u8(out, at, np.uint8(1 if nulls else 0))
    at += 1
    if nulls:
        at = put_uvarint(out, at, np.uint64(least))
    return choosing.write(out, at, x, m, low, high, total, CODES if nulls else LENGTHS, highs)


@leaf
def _payload_bytes(key_lengths, value_lengths, start, end):
    key_bytes = value_bytes = np.int64(0)
    for h in range(start, end):
        key_bytes += np.int64(key_lengths[h])
        value_bytes += max(np.int64(value_lengths[h]), 0)
    return key_bytes, value_bytes


@part
def _put_many(
    out, at, header_bounds, key_lengths, value_lengths, keys, key_starts, values, value_starts, first, n, scratch
):
    """`put_columns` of n >= 2 records."""
    x, highs, _, _, _, _, _, staged = scratch
    start = np.uint64(header_bounds[first])
    if not _is_by_position(header_bounds, key_lengths, keys, key_starts, first, n):
        key_bytes, value_bytes = _payload_bytes(
            key_lengths, value_lengths, start, np.uint64(header_bounds[first + np.uint64(n)])
        )
        at = _put_rows(out, at, header_bounds, key_lengths, value_lengths, first, n, x, highs)
        return at, key_bytes, value_bytes, False
    stride = np.uint64(header_bounds[first + ONE]) - start
    unlike = _are_unlike(value_lengths, start + stride, np.uint64(header_bounds[first + np.uint64(n)]), ONE, stride)
    key_bytes = behind = np.int64(0)
    if 1 + uvarint_bytes(stride) > len(out) - at:
        return np.int64(FULL), key_bytes, behind, True
    put_u8(out, at, np.uint8(BY_POSITION))
    at = put_uvarint(out, at + 1, stride)
    for h in range(start, start + stride):
        name = np.int64(key_lengths[h])
        if uvarint_bytes(np.uint64(name)) > len(out) - at:
            return np.int64(FULL), key_bytes, behind, True
        at = put_uvarint(out, at, np.uint64(name))
        behind = put_bytes(staged, behind, keys, key_starts[h], name)
        key_bytes += name
        at, behind = _put_position(out, at, value_lengths, values, value_starts, h, stride, n, unlike, scratch, behind)
        if at == FULL:
            break
    return at, key_bytes, behind - key_bytes, True


@leaf
def put_columns(out, at, columns, first, n, scratch):
    """Writes the header columns of n >= 1 records of which some have headers.

    Gives the next position, FULL where there is no room, and what `put_payload` takes: bytes of keys, of values, and
    whether they are staged.
    """
    _, _, _, _, header_bounds, key_lengths, value_lengths = columns[:7]
    keys, key_starts, values, value_starts = columns[11:15]
    if n > 1:  # without the other columns: each array of a call is seven arguments
        return _put_many(
            out, at, header_bounds, key_lengths, value_lengths, keys, key_starts, values, value_starts, first, n,
            scratch,
        )  # fmt: skip
    start, end = np.uint64(header_bounds[first]), np.uint64(header_bounds[first + ONE])
    key_bytes, value_bytes = _payload_bytes(key_lengths, value_lengths, start, end)
    if uvarint_bytes(end - start) > len(out) - at:
        return np.int64(FULL), key_bytes, value_bytes, False
    at = _put_pairs(out, put_uvarint(out, at, end - start), key_lengths, value_lengths, start, end)
    return at, key_bytes, value_bytes, False


@leaf
def put_payload(out, at, columns, first, n):
    """Writes keys and values of the headers of n >= 1 records, which fit; gives the next position."""
    _, _, _, _, header_bounds, key_lengths, value_lengths = columns[:7]
    keys, key_starts, values, value_starts = columns[11:15]
    for h in range(np.uint64(header_bounds[first]), np.uint64(header_bounds[first + np.uint64(n)])):
        at = put_bytes(out, at, keys, key_starts[h], np.int64(key_lengths[h]))
        at = put_bytes(out, at, values, value_starts[h], np.int64(value_lengths[h]))
    return at


@kernel
def sizes(columns, bounds, scratch, room, out):
    """Fills int64[3 * batches]: what the headers of each batch take in columns, and of keys and of values in payload.

    room: for the columns of one batch.
    """
    header_bounds = columns[4]
    for b in range(len(bounds) - 1):
        first, n = np.uint64(bounds[b]), bounds[b + 1] - bounds[b]
        size = key_bytes = value_bytes = np.int64(0)
        if header_bounds[bounds[b]] != header_bounds[bounds[b + 1]]:
            size, key_bytes, value_bytes, _ = put_columns(room, np.int64(0), columns, first, n, scratch)
        out[3 * b], out[3 * b + 1], out[3 * b + 2] = size, key_bytes, value_bytes


# Reading. Positions in the payload count from where its header bytes begin. Of keys by position `index` fills in the
# first record's alone; `place` has the others. Values of a template are not in the payload: they are written in front
# of it, those of the last position first. Until `place` has done so the first of each has -1 less the position of the
# template in `data`.


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
    for k in range(p, p + size):
        number += bit_count(np.uint64(get_u8(data, k)))
    return number


@leaf
def _fill(lengths, starts, h, stride, n, length, at, step):
    """Gives n headers, every stride-th from h on, one length, and places from `at` on that are `step` apart."""
    for _ in range(n):
        lengths[h], starts[h] = length, at
        h += stride
        at += step


@part
def _read_each(data, p, end, n, form, most_bytes, at, room, lengths, starts, h, stride):
    """Reads the values of one position that have lengths of their own into headers h, h + stride, ...

    Their payload begins at `at`. (state, next position, end of the payload, bytes of all n).
    """
    x, table = room
    taken = np.int64(0)
    if form == PLAIN or form == PLAIN_WITH_NULLS:
        state, p, taken = packed.read_lengths(data, p, end, n, form == PLAIN_WITH_NULLS, most_bytes, x, x, U0)
        if state == status.SOUND:
            for i in range(np.uint64(n)):
                lengths[h], starts[h] = x[i], at
                at += max(x[i], 0)
                h += stride
        return state, p, at, taken
    known, p = get_uvarint(data, p, end)
    if form != DICTIONARY or p > end or known < 2 or known > MOST_VALUES:
        return status.HEADER_COLUMNS, p, at, taken
    for k in range(np.uint64(known)):
        state, p, length = _get_value_length(data, p, end, most_bytes)
        if state != status.SOUND:
            return state, p, at, taken
        table[k << ONE], table[(k << ONE) + ONE] = length, at
        at += max(length, 0)
    width = bits_of(np.uint64(known - 1))
    size = packed_bytes(n, width)
    if size > end - p:
        return status.HEADER_COLUMNS, p, at, taken
    if not is_padded(data, p, n, width):
        return status.PADDING, p, at, taken
    packed.unpack(data, p, n, width, np.int64(0), np.int64(0), np.int64(1), x, 0)
    for i in range(np.uint64(n)):
        if x[i] >= known:
            return status.HEADER_COLUMNS, p, at, taken
        k = np.uint64(2 * x[i])
        lengths[h], starts[h] = table[k], table[k + ONE]
        taken += max(table[k], 0)
        h += stride
    return status.SOUND, p + size, at, taken


@leaf
def _read_position(data, p, end, n, most_bytes, at, made, room, lengths, starts, h, stride):
    """Lengths and places of one position's values, headers h, h + stride, ..., whose payload begins at `at`; `made`
    bytes of templates are before it. (state, next position, end of the payload, bytes of templates, of all n)."""
    form = np.int64(get_u8(data, p)) if p < end else np.int64(-1)
    p += 1
    if form == CONSTANT:
        state, p, length = _get_value_length(data, p, end, most_bytes)
        if state == status.SOUND:
            _fill(lengths, starts, h, stride, n, length, at, np.int64(0))
        length = max(length, 0)
        return state, p, at + length, made, n * length
    if form == HEX_TEMPLATE:
        template = p
        state, p, length = _get_key_length(data, p, end, most_bytes)
        size = packed_bytes(length, 1)
        if state != status.SOUND or length == 0 or size > end - p:
            problem = status.LIMIT_FIELD if state == status.LIMIT_FIELD else status.HEADER_COLUMNS
            return problem, p, at, made, np.int64(0)
        if not is_padded(data, p, length, 1):
            return status.PADDING, p, at, made, np.int64(0)
        varying = _bits_set(data, p, size)
        if varying == 0:
            return status.HEADER_COLUMNS, p, at, made, np.int64(0)
        made += n * length
        _fill(lengths, starts, h, stride, n, length, -made, length)
        starts[h] = -1 - template
        return status.SOUND, p + size, at + length - varying + packed_bytes(n * varying, 4), made, n * length
    state, p, at, taken = _read_each(data, p, end, n, form, most_bytes, at, room, lengths, starts, h, stride)
    return state, p, at, made, taken


@leaf
def _read_batch(data, p, end, n, first, m, most_bytes, room, headers):
    """Headers of n >= 1 records into rows `first` and up.

    (state, next position, payload bytes, template bytes, bytes of all keys and values).
    """
    key_lengths, key_starts, value_lengths, value_starts = headers
    x = room[0]
    at, made, taken = np.int64(0), np.int64(0), np.int64(0)
    mode = np.int64(BY_RECORD)
    state = status.SOUND
    to, until = np.uint64(first), np.uint64(first + m)
    if n > 1:
        mode = np.int64(get_u8(data, p))
        p += 1
    if mode == BY_POSITION:
        number, p = get_uvarint(data, p, end)
        stride = np.uint64(number)
        for h in range(to, to + stride):
            state, p, name = _get_key_length(data, p, end, most_bytes)
            if state != status.SOUND:
                break
            key_lengths[h], key_starts[h] = name, at
            state, p, at, made, content = _read_position(
                data, p, end, n, most_bytes, at + name, made, room, value_lengths, value_starts, h, stride
            )
            if state != status.SOUND:
                break
            taken += n * name + content
        if state == status.SOUND:
            for h in range(to + stride, until):
                key_lengths[h] = key_lengths[h - stride]
        return state, p, at, made, taken
    if n == 1:
        _, p = get_uvarint(data, p, end)
    else:
        state, p = packed.read(data, p, end, n, np.int64(0), np.int64(1), x, 0)  # `index` has seen it
    if n == 1 or m == 1:
        for h in range(to, until):
            state, p, name = _get_key_length(data, p, end, most_bytes)
            if state != status.SOUND:
                break
            state, p, content = _get_value_length(data, p, end, most_bytes)
            if state != status.SOUND:
                break
            key_lengths[h], value_lengths[h] = name, content
    else:
        state, p, _ = packed.read_lengths(data, p, end, m, False, most_bytes, x, x, U0)
        if state == status.SOUND:
            for h in range(np.uint64(m)):
                key_lengths[to + h] = x[h]
            nulls = np.int64(get_u8(data, p)) if p < end else np.int64(2)
            if nulls > 1:
                state = status.HEADER_COLUMNS
            else:
                state, p, _ = packed.read_lengths(data, p + 1, end, m, nulls == 1, most_bytes, x, x, U0)
        if state == status.SOUND:
            for h in range(np.uint64(m)):
                value_lengths[to + h] = x[h]
    if state == status.SOUND:
        for h in range(to, until):
            key_starts[h] = at
            at += np.int64(key_lengths[h])
            value_starts[h] = at
            at += max(np.int64(value_lengths[h]), 0)
    return state, p, at, made, at


@leaf
def _are_padded(data, end, n, start, stop, at, headers):
    """Whether the nibble behind an odd number of digits is 0 in each template of a batch, whose headers' payload is
    plain and begins at `at`: of all that a payload can have wrong, what who looks no further can see."""
    key_lengths, key_starts, _, value_starts = headers
    for h in range(np.uint64(start), np.uint64(stop)):
        if value_starts[h] < 0:
            length, p = get_uvarint(data, -1 - value_starts[h], end)
            varying = _bits_set(data, p, packed_bytes(length, 1))
            last = at + key_starts[h] + np.int64(key_lengths[h]) + length - varying + ((n * varying) >> 1)
            if (n * varying) & 1 and get_u8(data, last) & 15:
                return False
    return True


@kernel
def index(data, positions, bounds, header_bounds, header_columns, totals, most_bytes, most_in_all, room, state, codecs,
          bodies, header_totals, made, headers):  # fmt: skip
    """Reads the header columns of the batches that have some; moves bodies to where the payload begins.

    header_columns: where they begin; totals, codecs, bounds and header_bounds as `columnar.index` left them;
    most_in_all: bytes that headers may stand for; room: scratch, x int64 for the records and the headers of the
    largest batch and GROUP more, table int64[2 * MOST_VALUES]. Fills headers (lengths and places of keys, of values),
    header_totals and made int64 (bytes of headers in each batch's payload, of their templates). A batch that breaks a
    promise gets its state. Gives of the sound ones (bytes of both if there is a template, else 0, the most digits of a
    template, what is left of most_in_all).
    """
    total, made_in_all, most_digits = np.int64(0), np.int64(0), np.int64(0)
    for b in range(len(state)):
        made[b] = header_totals[b] = 0
        first, n = bounds[b], bounds[b + 1] - bounds[b]
        start, m = header_bounds[first], header_bounds[bounds[b + 1]] - header_bounds[first]
        if state[b] != status.SOUND or m == 0:
            continue
        end = positions[b + 1]
        problem, p, header_total, batch_made, taken = _read_batch(
            data, header_columns[b], end, n, start, m, most_bytes, room, headers
        )
        header_totals[b], made[b] = header_total, batch_made
        if problem == status.SOUND and taken > most_in_all:
            problem = status.LIMIT_LOG_HEADER_BYTES
        if problem == status.SOUND:
            bodies[b] = p
            if p == end:
                codecs[b] = 0
            if codecs[b] == 0 and p + totals[b] + header_total != end:
                problem = status.PAYLOAD
            elif (
                codecs[b] == 0
                and batch_made
                and n & 1  # else there are no odd digits
                and not _are_padded(data, end, n, start, header_bounds[first + 1], p + totals[b], headers)
            ):
                problem = status.PADDING
        if problem == status.SOUND:
            most_in_all -= taken
            made_in_all += batch_made
            total += batch_made + header_total
            most_digits = max(most_digits, min(2 * header_total, batch_made))
        state[b] = problem
    return (total if made_in_all else np.int64(0)), most_digits, most_in_all


@part
def _spell(source, at, number, digits):
    """Writes `number` nibbles that lie at `at` as hex digits, eight at a time: more are written than there are."""
    end = at + packed_bytes(number, 4)
    to = np.int64(0)
    for k in range(at, end - 3, 4):  # compilers make vectors of it
        put_i64(digits, to, np.int64(_digits_of(np.uint64(get_u32(source, k)))))
        to += 8
    left = (end - at) & 3
    if left:
        word = U0
        for k in range(end - left, end):
            word = word << U8 | np.uint64(get_u8(source, k))
        put_i64(digits, to, np.int64(_digits_of(word << np.uint64(8 * (4 - left)))))


@leaf
def _digits_of(word):
    """The eight nibbles of 32 bits as characters."""
    word = (word | word << U16) & FOURS
    word = (word | word << U8) & PAIRS
    word = (word | word << U4) & NIBBLES
    letters = (word + SIXES) >> U4 & ONES
    return word + np.uint64(ZEROS) + letters * TO_LETTERS


@leaf
def _same_characters(source, at, number, mask):
    """A word of characters: the `number` at `at` in turn where the mask has no bit, 0 where it has one."""
    word = U0
    if at + 8 <= len(source):
        word = load_le64(source, at)
    else:
        for k in range(number):
            word |= np.uint64(get_u8(source, at + k)) << np.uint64(8 * k)
    if mask == U0:
        return word
    made = U0
    for k in range(8):
        same = ~(mask >> np.uint64(k)) & ONE
        made |= (word & (same * BYTE)) << np.uint64(8 * k)
        word >>= same << U3
    return made


@leaf
def _stretch(mask):
    """The first stretch of bits in a byte that is not 0: (bits, mask of as many bytes, bits below its first byte, the
    byte without it)."""
    low = mask & (~mask + ONE)
    stretch = mask & ~(mask + low)
    begin = bits_of(low) - 1
    number = bits_of(stretch) - begin
    return number, FULL_WORD >> np.uint64(8 * (8 - number)), np.uint64(8 * begin), mask ^ stretch


@leaf
def _put_words(out, to, length, n, word, digits, digit, varying, kept, shift):
    for _ in range(n):
        put_le64(out, to, word | (load_le64(digits, digit) & kept) << shift)
        to += length
        digit += varying


@leaf
def _put_words_of_two(out, to, length, n, word, digits, digit, varying, kept, shift, other, other_kept, other_shift):
    """Of two stretches at once, the other's digits at `other`: a word is not loaded again for it."""
    for _ in range(n):
        characters = word | (load_le64(digits, digit) & kept) << shift
        put_le64(out, to, characters | (load_le64(digits, other) & other_kept) << other_shift)
        to += length
        digit += varying
        other += varying


@leaf
def _add_to_words(out, to, length, n, digits, digit, varying, kept, shift):
    for _ in range(n):
        put_le64(out, to, load_le64(out, to) | (load_le64(digits, digit) & kept) << shift)
        to += length
        digit += varying


@leaf
def _expand(data, p, n, source, at, out, to, digits):
    """Writes the n values of the template at p, whose payload begins at `at`; (their length, whether it is padded).

    A word of all values at a time, so that what is the same in them is found out once. Up to 7 bytes are written behind
    each value: words go from the last to the first, so that the next value's own come later. Most words have one
    stretch of digits or two.
    """
    length, p = get_uvarint(data, p, len(data))
    size = packed_bytes(length, 1)
    varying = _bits_set(data, p, size)
    same, digit = at + length - varying, varying
    first = same
    _spell(source, first, n * varying, digits)
    k = size
    while k > 0:
        k -= 1
        mask = np.uint64(get_u8(data, p + k))
        characters, vary = min(length - 8 * k, 8), bit_count(mask)
        same -= characters - vary
        digit -= vary
        word = U0
        if vary < characters:
            word = _same_characters(source, same, characters - vary, mask)
        here, next_digit = to + 8 * k, digit
        if mask == U0 and k >= 3 and characters == 8 and get_u32(data, p + k - 3) == 0:  # four words at once
            k -= 3
            same -= 24
            here -= 24
            for _ in range(n):
                move32(out, here, source, same)
                here += length
        elif mask == U0:
            for _ in range(n):
                put_le64(out, here, word)
                here += length
        while mask != U0:
            number, kept, shift, mask = _stretch(mask)
            if next_digit != digit:
                _add_to_words(out, here, length, n, digits, next_digit, varying, kept, shift)
            elif mask == U0:
                _put_words(out, here, length, n, word, digits, digit, varying, kept, shift)
            else:
                more, other_kept, other_shift, mask = _stretch(mask)
                _put_words_of_two(
                    out, here, length, n, word, digits, digit, varying, kept, shift, digit + number, other_kept,
                    other_shift,
                )  # fmt: skip
                number += more
            next_digit += number
    odd = (n * varying) & 1
    return length, odd == 0 or get_u8(source, first + ((n * varying) >> 1)) & 15 == 0


@kernel
def place(data, source, starts, ends, bounds, header_bounds, header_columns, totals, made, digits, state, headers,
          out):  # fmt: skip
    """Turns places in header bytes into positions: of keys in `source`, of values there or, if `out` is any, in it.

    source[starts[b]:ends[b]]: the plain payload of each batch; out: for the templates and the header bytes of the sound
    batches and SLACK; digits: room uint8[as many as `index` gave + SLACK]; the rest as in `index`. A batch that breaks
    a promise gets its state.
    """
    key_lengths, key_starts, _, value_starts = headers
    to = np.int64(0)
    for b in range(len(state)):
        first, n = bounds[b], bounds[b + 1] - bounds[b]
        start, stop = np.uint64(header_bounds[first]), np.uint64(header_bounds[bounds[b + 1]])
        if state[b] != status.SOUND or start == stop:
            continue
        at = starts[b] + totals[b]
        base, stride = at, np.uint64(header_bounds[first + 1]) - start
        if len(out):
            base = to + made[b]
            if made[b]:
                for k in range(np.uint64(1), stride + ONE):
                    h = start + stride - k
                    if value_starts[h] >= 0:
                        continue
                    length, padded = _expand(
                        data, -1 - value_starts[h], n, source, at + key_starts[h] + np.int64(key_lengths[h]),
                        out, to, digits,
                    )  # fmt: skip
                    if not padded:
                        state[b] = status.PADDING
                    value_starts[h] = to - base
                    to += n * length
            move(out, base, source, at, ends[b] - at)
            to = base + ends[b] - at
        if n > 1 and get_u8(data, header_columns[b]) == BY_POSITION:
            for h in range(start, start + stride):
                key_starts[h] += at
            for h in range(start + stride, stop):
                key_starts[h] = key_starts[h - stride]
        else:
            for h in range(start, stop):
                key_starts[h] += at
        for h in range(start, stop):
            value_starts[h] += base
