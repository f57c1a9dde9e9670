"""Fill text templates with random content. A template has literal text and placeholders, called slots.

A draw is a uint64 of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) whose state is a hash of seed and record number.
So any slice of records can be made in any order on any machine. An elastic slot fills a record up to its length. Copies
write 32 bytes at a time, so they may write beyond their end. The next bytes overwrite this. The last record needs
SLACK_BYTES of room after it.
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_u8, leading_zeros, move32, put_i64, put_u8
from kfbench.kernels.workload.draws import mix, stream_of, word

(
    CHARACTERS, RAW, ZEROS, WORDS, INT, LOW, DRIFT, COUNT, ID, TEXT, ISO, CLF, SECONDS, MILLIS, END,
) = range(15)  # fmt: skip

OPERATION = np.dtype([  # one slot (placeholder), and the literal text before it
    ("literal_at", np.int64),  # its position in the text
    ("literal_bytes", np.int64),
    ("kind", np.int64),
    ("elastic", np.int64),  # 1 or 0
    ("width", np.int64),  # number of characters, digits or raw bytes
    ("at", np.int64),  # position of the alphabet in the text; number of the first word; first STEP of a number
    ("size", np.int64),  # size of the alphabet; modulus of an id; number of STEPs
    ("picks", np.int64),  # the row of 256 entries in `picks`
    ("low", np.int64),
    ("span", np.int64),  # a number is low … low + span - 1
    ("step", np.int64),
    ("by_key", np.int64),
    ("every", np.int64),  # the number of successive records that share a draw
    ("of", np.int64),  # the number of different draws; 0: no limit
    ("channel", np.uint64),  # slots with equal channel and state draw the same
    ("pick", np.uint64),  # slots with equal pick choose the same of `of` draws
])  # fmt: skip

# The text of every program begins with this.
PRELUDE = b"2026-01-01T00:00:00.000Z".ljust(32) + b"01/Jan/2026:00:00:00 +0000".ljust(32)
PRELUDE += b"JanFebMarAprMayJunJulAugSepOctNovDec"
ISO_AT, CLF_AT, MONTHS_AT = 0, 32, 64
SLACK_BYTES = 32
LAST_MS = 9_999_999_999_999  # 2286: the last of 13 digits

# A WORD is an item that slots of kind WORDS choose from, or a phrase for slots of kind TEXT. A STEP gives the least
# draw from which on a number has `more` additional characters.
WORD = np.dtype([("at", np.int64), ("length", np.int64)])
STEP = np.dtype([("least", np.uint64), ("more", np.int64)])

KEYS_PURPOSE = 2**40  # the purpose of all draws that depend on a key
BITS_4, BITS_6, BITS_8, BITS_16, BITS_32, BITS_56 = (np.uint64(bits) for bits in (4, 6, 8, 16, 32, 56))
LOW_16, LOW_32 = np.uint64(2**16 - 1), np.uint64(2**32 - 1)
ZERO, ONE, TEN, FIFTEEN, SIXTY_FOUR, THOUSAND = (np.uint64(number) for number in (0, 1, 10, 15, 64, 1_000))
ID_FACTOR = np.uint64(618_033_989)  # coprime to the powers of ten
POWERS = np.array([0, *(10**k for k in range(1, 20))], np.uint64)  # 0 has a digit too
DIGIT_0, MINUS = 48, 45


@leaf
def digits_in(value):
    """Return the number of decimal digits of a uint64."""
    least = (64 - leading_zeros(value | ONE)) * 1233 >> 12
    return least + np.int64(value >= POWERS[least])


@leaf
def put_digits(out, at, width, value):
    for k in range(at + width - 1, at - 1, -1):
        tenth = value // TEN
        put_u8(out, k, np.uint8(np.int64(value - tenth * TEN) + DIGIT_0))
        value = tenth


@leaf
def _states(streams, number, key):
    """Return the random states (uint64) of a record and of its key, from which the draws of all slots derive."""
    return word(streams[0], number), word(streams[1], key)


class Slot(NamedTuple):
    """The fields of an OPERATION row that determine random draws, copied so that they stay in CPU registers.

    Fields of an array would be read again after each write.
    """

    kind: int
    low: int
    span: int
    step: int
    by_key: int
    every: int
    of: int
    channel: int
    pick: int


@leaf
def _run(op, number):
    """Return the number of the group of `op.every` successive records with record `number`. Most need no division."""
    return number if op.every == 1 else number // op.every


@leaf
def _one_of(op, state):
    """Choose one of the `op.of` values of a slot at random, low ones more often. Return its number, uint64 from 0."""
    drawn = mix(state ^ op.pick)
    # Octaves of 1, 2, 4 … numbers are equally likely. So the k-th number is about 1/k as likely as the first.
    octave = (drawn >> BITS_32) * np.uint64(64 - leading_zeros(np.uint64(op.of))) >> BITS_32
    chosen = (ONE << octave) - ONE
    chosen += drawn & chosen
    # The last octave may end beyond `of`. The minimum takes the value that does not wrap, without a branch.
    return min(chosen, chosen - np.uint64(op.of))


@leaf
def state_of(op, streams, states, number):
    """Return the random state (uint64) for a slot's draw in record `number`.

    It belongs to the record, to a group of successive records, to the key, or to one of `op.of` values.
    """
    if op.by_key:
        base, state = streams[1], states[1]
    else:
        base, state = streams[0], states[0] if op.every == 1 else word(streams[0], number // op.every)
    if op.of:
        state = word(base, _one_of(op, state))
    return state ^ op.channel


@leaf
def number_of(op, streams, states, number, key):
    """Return the value of a slot that is a decimal number."""
    if op.kind == COUNT:
        value = (key if op.by_key else _run(op, number)) * op.step + op.low
        if op.step == 1:
            return value
        drawn = mix(state_of(op, streams, states, number)) >> BITS_32
        return value + np.int64(drawn * np.uint64(op.step) >> BITS_32)
    if op.kind == DRIFT:
        origin = (states[1] if op.by_key else streams[0]) ^ op.channel
        place = _run(op, number)
        along = np.uint64(place & 63)
        share = (word(origin, place >> 6) >> BITS_32) * (SIXTY_FOUR - along)
        share = share + (word(origin, (place >> 6) + 1) >> BITS_32) * along >> BITS_6
        share = share * FIFTEEN + (mix(states[0] ^ op.channel) >> BITS_32) >> BITS_4
        return op.low + np.int64(share * np.uint64(op.span) >> BITS_32)
    drawn = mix(state_of(op, streams, states, number))
    if op.kind == LOW:
        drawn >>= BITS_32
        drawn = (drawn * drawn >> BITS_32) * drawn >> BITS_32
        return op.low + np.int64(drawn * np.uint64(op.span) >> BITS_32)
    if np.uint64(op.span) <= LOW_32:
        return op.low + np.int64((drawn >> BITS_32) * np.uint64(op.span) >> BITS_32)
    return op.low + np.int64(drawn % np.uint64(op.span))


@leaf
def decimal_width(value):
    return digits_in(np.uint64(value)) if value >= 0 else digits_in(np.uint64(-value)) + 1


@leaf
def _draw(slot, streams, states, numbers, keys, known, drawn):
    """Compute the random draw of one slot for each record.

    Args:
        slot, streams: the Slot, and the two uint64 streams of records and of keys.
        states, numbers, keys: uint64[n], int64[n], int64[n], of the records.
        known: uint64 scratch memory for slots with few values.
        drawn: uint64[n], filled.
    """
    if slot.of == 0 and not slot.by_key and slot.every == 1:
        for i in range(len(drawn)):
            drawn[i] = mix(states[i] ^ slot.channel)
    elif 0 < slot.of <= len(known):  # compute each value once
        base = streams[1] if slot.by_key else streams[0]
        for k in range(slot.of):
            known[k] = mix(word(base, k) ^ slot.channel)
        for i in range(len(drawn)):
            state = word(base, keys[i]) if slot.by_key else states[i]
            if slot.every != 1:
                state = word(base, numbers[i] // slot.every)
            drawn[i] = known[_one_of(slot, state)]
    else:
        for i in range(len(drawn)):
            own = states[i], word(streams[1], keys[i])
            drawn[i] = mix(state_of(slot, streams, own, numbers[i]))


@leaf
def _add_widths(op, widths, steps, drawn, out):
    """Add the width in bytes of a slot in each record to out, int32[n]. The slot's width must depend on its draw."""
    if op.kind == WORDS:
        row = np.uint64(op.picks * 256)
        for i in range(len(out)):
            out[i] += widths[row + (drawn[i] >> BITS_56)]
    elif op.kind == TEXT:
        low, span = np.int32(op.low), np.uint64(op.span)
        for i in range(len(out)):
            out[i] += low + np.int32((drawn[i] >> BITS_32) * span >> BITS_32)
    else:
        for s in range(op.at, op.at + op.size):
            least, extra = steps[s].least, np.int32(steps[s].more)
            for i in range(len(out)):
                out[i] += extra if drawn[i] >= least else np.int32(0)


@kernel
def natural(ops, varying, widths, steps, seed, purpose, fixed, numbers, keys, scratch, out):
    """Compute the natural length of each record in bytes: its length if all elastic slots are empty.

    The loops go slot by slot, so that loops over records have no branches and compilers vectorize them.

    Args:
        ops, seed, purpose, numbers, keys: as in `fill`.
        varying: int64, the indexes in `ops` of the slots whose width is random.
        widths: int32[256 per row of `picks`], the width in bytes of the word for each random byte.
        steps: STEP rows.
        fixed: the number of bytes of everything else, and of numbers before their first step.
        scratch: uint64[3 * r], for r records at a time.
        out: int32[n], filled.
    """
    streams = stream_of(seed, purpose), stream_of(seed, KEYS_PURPOSE)
    room = len(scratch) // 3
    for first in range(0, len(out), room):
        own_numbers, own_keys = numbers[first : first + room], keys[first : first + room]
        own = out[first : first + room]
        states, drawn, known = scratch[: len(own)], scratch[room : room + len(own)], scratch[2 * room :]
        for i in range(len(own)):
            states[i] = word(streams[0], own_numbers[i])
            own[i] = fixed
        for v in range(len(varying)):
            op = ops[varying[v]]
            slot = Slot(op.kind, op.low, op.span, op.step, op.by_key, op.every, op.of, op.channel, op.pick)
            if op.kind == WORDS or op.kind == TEXT or op.size:
                _draw(slot, streams, states, own_numbers, own_keys, known, drawn)
                _add_widths(op, widths, steps, drawn, own)
            else:
                for i in range(len(own)):
                    number, key = own_numbers[i], own_keys[i]
                    value = number_of(slot, streams, _states(streams, number, key), number, key)
                    own[i] += decimal_width(value)


@leaf
def _copied(out, at, text, start, length):
    for k in range(0, length, 32):
        move32(out, at + k, text, start + k)


@leaf
def _put_text(out, at, end, op, text, words, picks, state):
    """Write phrases up to `end`. The last one is cut there.

    Args:
        out, at, end: uint8 buffer, and the bounds of the text in it.
        op, text, words, picks: as in `fill`.
        state: uint64, the random state of the slot's draw.
    """
    k, drawn = 0, ZERO
    while at < end:
        if k & 7 == 0:
            drawn = word(state, k >> 3)
        phrase = words[op.at + picks[op.picks * 256 + np.int64(drawn & np.uint64(255))]]
        move32(out, at, text, phrase.at)
        at += phrase.length
        drawn >>= BITS_8
        k += 1


@leaf
def _put_characters(out, at, width, op, text, state):
    size, drawn = np.uint64(op.size), ZERO
    for k in range(width):
        if k & 3 == 0:
            drawn = word(state, k >> 2)
        put_u8(out, at + k, get_u8(text, op.at + np.int64((drawn & LOW_16) * size >> BITS_16)))
        drawn >>= BITS_16


@leaf
def _put_drawn(out, at, width, op, text, words, picks, state):
    """Write the content of a slot: random characters, raw bytes, zeros or a word. Return its width in bytes.

    Args:
        out, at, width: uint8 buffer, position, and width in bytes; a word has its own width.
        op, text, words, picks, state: as in `_put_text`.
    """
    if op.kind == CHARACTERS:
        _put_characters(out, at, width, op, text, state)
    elif op.kind == WORDS:
        chosen = words[op.at + picks[op.picks * 256 + np.int64(mix(state) >> BITS_56)]]
        width = np.int64(chosen.length)
        _copied(out, at, text, chosen.at, width)
    else:
        for b in range(0, width, 8):
            put_i64(out, at + b, np.int64(word(state, b)) if op.kind == RAW else 0)
    return width


@leaf
def _date(days):
    """Return year, month and day for a number of days since 1970, at least 0 (H. Hinnant, civil_from_days)."""
    days += 719_468
    era = days // 146_097
    day = days - era * 146_097
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month += 3 if month < 10 else -9
    return era * 400 + year + (1 if month <= 2 else 0), month, day


@leaf
def _put_time(out, at, kind, text, ms, date):
    """Write a date and a time of day. Return the width in bytes.

    The resolution is a second in the format of access logs (CLF), else a millisecond. text: as in `fill`; ms: Unix
    milliseconds; date: year, month and day of `ms`.
    """
    year, month, day = date
    if kind == CLF:
        move32(out, at, text, CLF_AT)
        put_digits(out, at, 2, np.uint64(day))
        for k in range(3):
            put_u8(out, at + 3 + k, get_u8(text, MONTHS_AT + 3 * (month - 1) + k))
        put_digits(out, at + 7, 4, np.uint64(year))
        clock = at + 12
    else:
        move32(out, at, text, ISO_AT)
        put_digits(out, at, 4, np.uint64(year))
        put_digits(out, at + 5, 2, np.uint64(month))
        put_digits(out, at + 8, 2, np.uint64(day))
        put_digits(out, at + 20, 3, np.uint64(ms % 1000))
        clock = at + 11
    second = ms // 1000
    put_digits(out, clock, 2, np.uint64(second // 3600 % 24))
    put_digits(out, clock + 3, 2, np.uint64(second // 60 % 60))
    put_digits(out, clock + 6, 2, np.uint64(second % 60))
    return 26 if kind == CLF else 24


@kernel
def fill(ops, text, words, picks, seed, purpose, elastic, numbers, keys, times_ms, naturals, lengths, starts, out):
    """Write record i to out[starts[i]:][:lengths[i]]. Cut it there if its natural length is larger.

    Args:
        ops: OPERATION[k], the last of kind END.
        text: uint8, literals and words.
        words: WORD rows, positions in the text; 32 bytes after each must be readable.
        picks: uint8[256 per row], the word for each random byte.
        seed, purpose: they choose the stream of random draws.
        elastic: the number of elastic slots.
        numbers, keys, times_ms: int64[n] each, the number, key number and timestamp of each record.
        naturals: int32[n], results of `natural`. Without elastic slots, lengths[i] must not exceed naturals[i].
        lengths, starts: int32[n] and int64[n], length and start of each record in `out`; -1 is a null. Starts rise.
        out: uint8, with room for the longest natural length and SLACK_BYTES after the last record.
    """
    streams = stream_of(seed, purpose), stream_of(seed, KEYS_PURPOSE)
    known_day, date = -1, (1970, 1, 1)
    for i in range(len(numbers)):
        length = np.int64(lengths[i])
        if length <= 0:
            continue
        number, key, at = numbers[i], keys[i], starts[i]
        states = _states(streams, number, key)
        left, spare = elastic, max(length - np.int64(naturals[i]), 0)
        for k in range(len(ops)):
            op = ops[k]
            _copied(out, at, text, op.literal_at, op.literal_bytes)
            at += op.literal_bytes
            kind, width = op.kind, op.width
            if kind == END:
                break
            if op.elastic:
                width = spare // left
                spare -= width
                left -= 1
            if kind <= WORDS:
                width = _put_drawn(out, at, width, op, text, words, picks, state_of(op, streams, states, number))
            elif kind <= COUNT:
                value = number_of(op, streams, states, number, key)
                width = decimal_width(value)
                put_digits(out, at, width, np.uint64(value if value >= 0 else -value))
                if value < 0:
                    put_u8(out, at, MINUS)
            elif kind == ID:
                value = np.uint64(key) % np.uint64(op.size) * ID_FACTOR + streams[1] % np.uint64(op.size)
                put_digits(out, at, width, value % np.uint64(op.size))
            elif kind == TEXT:
                state = state_of(op, streams, states, number)
                if not op.elastic:
                    width = op.low + np.int64((mix(state) >> BITS_32) * np.uint64(op.span) >> BITS_32)
                _put_text(out, at, at + width, op, text, words, picks, state)
            else:
                ms, drawn = times_ms[i], mix(state_of(op, streams, states, number))
                ms = min(max(ms - np.int64((drawn & LOW_32) * np.uint64(op.span) >> BITS_32), 0), LAST_MS)
                if kind <= CLF:
                    if ms // 86_400_000 != known_day:
                        known_day = ms // 86_400_000
                        date = _date(known_day)
                    width = _put_time(out, at, kind, text, ms, date)
                else:
                    put_digits(out, at, width, np.uint64(ms) // THOUSAND if kind == SECONDS else np.uint64(ms))
            at += width
