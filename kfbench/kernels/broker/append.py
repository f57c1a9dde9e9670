"""What a broker does to a request where it lies: it checks headers and columns, and sets fields in place.

`kind` is which layout a batch has: its magic, or KIP98 or ENRICHED.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import enriched, kip98, legacy
from kfbench.kernels.formats.batch_header import (
    APPEND,
    APPEND_TAG,
    ATTRIBUTES,
    CONTROL,
    CRC,
    EPOCH,
    FIXED,
    TAGGED,
    TAIL_MAX_TIME,
    TRANSACTIONAL,
    UNSIGNED,
    V2_MAX_TIME,
    V2_PRODUCER,
    V2_SEQUENCE,
    V3_PRODUCER,
    V3_SEQUENCE,
    V3_SIZE,
    read_header,
)
from kfbench.kernels.formats.columnar import batch_header as columnar
from kfbench.kernels.formats.columnar import fields as columnar_fields
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u8, move, put_i16, put_i32, put_i64, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32, crc32c
from kfbench.kernels.wire.lengths import get_delta
from kfbench.kernels.wire.sealing import AFTER_LENGTH, LENGTH
from kfbench.kernels.wire.varint import get_uvarint, get_varlong, put_varint, varint_bytes

COLUMNAR, KIP98, ENRICHED = columnar.THIS_MAGIC, 98, 99
NO_PRODUCER_ID, NO_TIMESTAMP = layouts.NO_PRODUCER_ID, layouts.NO_TIMESTAMP
TIMESTAMP_BITS = layouts.TIMESTAMP_BITS

# What is wrong with the batches of a request: it ends inside one, has none, of two magics, or more than it may.
INSIDE_BATCH, NO_BATCH, OTHER_MAGIC, TOO_MANY = range(1, 5)
# Rules of `LogValidator.validateBatch`, as numbers.
SOUND, OFFSET_RANGE, COUNT, RANGE_AND_COUNT, CONTROL_BATCH, SEQUENCE, IS_TRANSACTIONAL, IS_IDEMPOTENT = range(8)
BASE_OFFSET = 8  # `UnifiedLog.analyzeAndValidateRecords`


@leaf
def _traits(data, at, magic, kind):
    """What decides how a batch is treated: magic and codec, of v2 and later whether it is control, of v3 features."""
    if magic < 2:
        bits = np.int64(get_u8(data, at + legacy.ATTRIBUTES))
        if kind == ENRICHED:
            bits &= enriched.TYPE_MASK
            return np.int64(magic) << 16 | (bits if bits <= enriched.LAST_CODEC else 0)
        return np.int64(magic) << 16 | (bits & layouts.CODEC_MASK)
    bits = np.int64(get_i16(data, at + (kip98.ATTRIBUTES if kind == KIP98 else ATTRIBUTES))) & 0xFFFF
    features = layouts.V3_FEATURES_MASK if magic == 3 else 0
    return np.int64(magic) << 16 | (bits & (layouts.CODEC_MASK | CONTROL | features))


@kernel
def split(data, positions, magics, kind, request_positions, firsts, traits):
    """Puts entries into requests: firsts int64[requests + 1], the first entry of each, and traits int64[requests].

    positions int64[entries + 1]; kind: KIP98, ENRICHED or 0, what the magic tells. Gives (what is wrong or SOUND, with
    which entry).
    """
    entries, e = len(magics), np.int64(0)
    for r in range(len(traits)):
        if positions[e] != request_positions[r]:
            return INSIDE_BATCH, e
        first, end = e, request_positions[r + 1]
        while e < entries and positions[e] < end:
            e += 1
        firsts[r] = first
        if positions[e] != end:
            return INSIDE_BATCH, e
        if e == first:
            return NO_BATCH, e
        traits[r] = _traits(data, positions[first], magics[first], kind)
        any_codec = traits[r] & layouts.CODEC_MASK != 0
        for i in range(first + 1, e):
            if magics[i] != magics[first]:
                return OTHER_MAGIC, i
            any_codec |= _traits(data, positions[i], magics[i], kind) & layouts.CODEC_MASK != 0
        if e > first + 1 and (any_codec or magics[first] >= 2):
            return TOO_MANY, first + 1
    firsts[len(traits)] = e
    return SOUND, e


@leaf
def _header(data, at, end, kind):
    """(attributes, last offset delta, count: -1 where none is stored, producer id, base sequence)."""
    if kind == KIP98:
        return (
            np.int64(get_i16(data, at + kip98.ATTRIBUTES)), np.int64(get_i32(data, at + kip98.LAST)), np.int64(-1),
            get_i64(data, at + kip98.PRODUCER), np.int64(get_i32(data, at + kip98.SEQUENCE)),
        )  # fmt: skip
    if kind == COLUMNAR:
        header = columnar.read_header(data, at, end)
        if header.state != status.SOUND:  # it may be cut short: it breaks no rule but that it can be read
            return np.int64(0), np.int64(0), np.int64(1), np.int64(NO_PRODUCER_ID), np.int64(layouts.NO_SEQUENCE)
        producer, sequence = columnar_fields.producer(data, at, header.attributes)
        return header.attributes, header.last_delta, header.count, producer, sequence
    bits, last_delta, _, _, count, _ = read_header(data, at, end, kind)
    producer, sequence = (V2_PRODUCER, V2_SEQUENCE) if kind == 2 else (V3_PRODUCER, V3_SEQUENCE)
    return bits, last_delta, count, get_i64(data, at + producer), np.int64(get_i32(data, at + sequence))


@leaf
def _broken_rule(data, at, end, kind, held, from_client, from_zero, to_messages):
    """(rule or SOUND, last offset delta, count, producer id, sequence); held: the records, where no count is stored."""
    bits, last_delta, count, producer, sequence = _header(data, at, end, kind)
    if kind == KIP98:
        count = held
    rule = SOUND
    if from_client and from_zero and get_i64(data, at) != 0:
        rule = BASE_OFFSET
    elif from_client and last_delta < 0:
        rule = OFFSET_RANGE
    elif from_client and count <= 0:
        rule = COUNT
    elif from_client and last_delta + 1 != count:
        rule = RANGE_AND_COUNT
    elif from_client and bits & CONTROL:
        rule = CONTROL_BATCH
    elif from_client and producer > NO_PRODUCER_ID and sequence < 0:
        rule = SEQUENCE
    elif to_messages and bits & TRANSACTIONAL:
        rule = IS_TRANSACTIONAL
    elif to_messages and producer > NO_PRODUCER_ID:
        rule = IS_IDEMPOTENT
    return rule, last_delta, count, producer, sequence


@kernel
def broken_rule(data, at, end, kind, held, from_client, from_zero, to_messages):
    """`_broken_rule` of one batch, for what is said of it."""
    return _broken_rule(data, at, end, kind, held, from_client, from_zero, to_messages)


@leaf
def _is_marked(data, at, kind):
    """Whether a batch says that its timestamps are a broker's."""
    if kind == 1:
        return get_u8(data, at + legacy.ATTRIBUTES) & APPEND != 0
    if kind == 2 or kind == 3 or kind == COLUMNAR:
        return get_i16(data, at + ATTRIBUTES) & APPEND != 0
    return kind == KIP98 and get_i16(data, at + kip98.ATTRIBUTES) & APPEND != 0


@kernel
def check(data, positions, kind, timestamps, key_lengths, offsets, bounds, from_client, from_zero, to_messages,
          is_create, earliest, latest, keyed, latest_ms, in_order):  # fmt: skip
    """The first batch that breaks a rule: (number, rule, a record out of time, one without a key), each -1 or SOUND.

    bounds int64[batches + 1]. to_messages: it is to become v0 or v1. Times from `earliest` to `latest` are taken where
    the topic has create time; keyed: the topic is compacted. Fills latest_ms int64[batches] (no less than -1) and
    in_order bool[batches]: offsets rise by one, from 0 (from_zero) or its own.
    """
    for b in range(len(bounds) - 1):
        at, end_at = positions[b], positions[b + 1]
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        if kind == 2 or kind == 3 or kind == COLUMNAR or kind == KIP98:
            rule, _, _, _, _ = _broken_rule(
                data, at, end_at, kind, bounds[b + 1] - bounds[b], from_client, from_zero, to_messages
            )
            if rule != SOUND:
                return b, rule, -1, -1
        marked = _is_marked(data, at, kind)
        base = np.int64(0)
        if first < end and not from_zero:  # only a v1 wrapper's offset is the last one's
            base = offsets[first] if kind < 2 else get_i64(data, at)
        late, keyless, top, whole = np.int64(-1), np.int64(-1), np.int64(NO_TIMESTAMP), True
        for i in range(first, end):
            time = timestamps[i]
            if keyed and key_lengths[i] < 0:
                keyless = np.int64(i) if keyless < 0 else keyless
            elif is_create and time != NO_TIMESTAMP:
                if (time < earliest or time > latest) and late < 0:
                    late = np.int64(i)
            elif marked and late < 0:
                late = np.int64(i)
            top = max(top, time)
            whole &= offsets[i] - base == np.int64(i) - np.int64(first)
        if late >= 0 or keyless >= 0:
            return b, SOUND, late, keyless
        latest_ms[b], in_order[b] = top, whole
    return -1, SOUND, -1, -1


@kernel
def other_magic(source, starts, ends, magic):
    """The first set source[starts[b]:ends[b]] with a message of another magic; -1: none. `legacy.count` has seen it."""
    for b in range(len(starts)):
        if legacy.holds_other_magic(source, starts[b], ends[b], magic):
            return b
    return -1


@kernel
def find_control(source, starts, ends, found):
    """Which sets source[starts[b]:ends[b]] of enriched messages hold a control record: found bool[sets]."""
    for b in range(len(found)):
        at, end = starts[b], ends[b]
        found[b] = False
        while end - at >= AFTER_LENGTH:
            stop = at + AFTER_LENGTH + np.int64(get_i32(source, at + LENGTH))
            if stop > end:
                break
            found[b] |= get_u8(source, at + enriched.ATTRIBUTES) & enriched.TYPE_MASK >= enriched.FIRST_CONTROL
            at = stop


@leaf
def _max_time_at(data, at, end, bits):
    """Where the maximum timestamp of a v3 batch begins and ends, and the base timestamp."""
    if bits & FIXED:
        return at + TAIL_MAX_TIME, at + TAIL_MAX_TIME + 8, np.int64(0)
    _, p = get_delta(data, at + V3_SIZE, end, bits & UNSIGNED != 0)
    base_time, p = get_varlong(data, p, end)
    _, stop = get_varlong(data, p, end)
    return p, stop, base_time


@leaf
def _append_tag_at(data, at, end, kind, bits):
    """Where tag 0 of a v3 batch has its time; 0: nowhere."""
    if kind != 3 or not bits & TAGGED:
        return np.int64(0)
    _, _, _, _, _, p = read_header(data, at, end, 3)
    number, p = get_uvarint(data, p, end)
    if number == 0:
        return np.int64(0)
    tag, p = get_uvarint(data, p, end)
    _, p = get_uvarint(data, p, end)
    return np.int64(p) if tag == APPEND_TAG else np.int64(0)  # tags rise: it is the first


@kernel
def find_append_tag(data, positions, found):
    """Which v3 batches have a time in tag 0: found bool[batches]."""
    for b in range(len(found)):
        at, end = positions[b], positions[b + 1]
        found[b] = _append_tag_at(data, at, end, 3, np.int64(get_i16(data, at + ATTRIBUTES))) != 0


@leaf
def _columnar_max_time(data, at, end, append, now_ms, latest_ms):
    """(the maximum timestamp of a columnar batch, what it is to be). The records' own that is below -1 stays: it is
    what their times count from."""
    held = columnar.read_header(data, at, end).max_time
    if append:
        return held, now_ms
    return held, held if max(held, np.int64(NO_TIMESTAMP)) == latest_ms else latest_ms


@kernel
def find_settable(data, positions, append, now_ms, latest_ms, found):
    """Which columnar batches can be given their maximum timestamp where it stands: found bool[batches].

    48 bits hold most times, and create times count from it where they have no anchor of their own: then only a broker
    that writes its own time may set another. Such a time as every record's own (bit 3 goes) leaves no age in place.
    """
    for b in range(len(found)):
        at, end = positions[b], positions[b + 1]
        header = columnar.read_header(data, at, end)
        held, has_anchor = header.max_time, header.extensions & columnar.HAS_ANCHOR != 0
        _, wanted = _columnar_max_time(data, at, end, append, now_ms, latest_ms[b])
        is_wide = columnar.is_wide(wanted) or columnar_fields.has_wide_maximum(data, at, end, header.attributes)
        found[b] = held == wanted or (not is_wide and (append or has_anchor))
        if not append and not has_anchor and header.attributes & APPEND and header.attributes & columnar.AGES:
            found[b] = False


@kernel
def count_covered(data, positions, bounds, timestamps, chosen):
    """How many create times of the chosen columnar batches an append time that is set in place leaves unknown.

    timestamps: of the records, bounds int64[batches + 1] which are each batch's. None has an append time yet: a topic
    that sets it takes no such batch.
    """
    covered = np.int64(0)
    for b in range(len(chosen)):
        header = columnar.read_header(data, positions[b], positions[b + 1])
        if chosen[b] and not header.extensions & columnar.HAS_ANCHOR:
            for i in range(np.uint64(bounds[b]), np.uint64(bounds[b + 1])):
                covered += timestamps[i] != NO_TIMESTAMP
    return covered


@kernel
def measure_room(data, positions, append, now_ms, latest_ms, growth):
    """How much longer (negative: shorter) each v3 batch becomes, growth int64[batches]; gives whether any does."""
    any_growth = False
    for b in range(len(growth)):
        at, end = positions[b], positions[b + 1]
        bits = np.int64(get_i16(data, at + ATTRIBUTES))
        growth[b] = 0
        if not bits & FIXED:
            tagged = _append_tag_at(data, at, end, 3, bits) != 0
            start, stop, base_time = _max_time_at(data, at, end, bits)
            max_time = now_ms if append and not tagged else latest_ms[b]
            delta, _ = get_varlong(data, start, end)
            if base_time + delta != max_time:
                growth[b] = varint_bytes(max_time - base_time) - (stop - start)
        any_growth |= growth[b] != 0
    return any_growth


@kernel
def make_room(data, starts, stops, append, now_ms, latest_ms, growth, out, positions):
    """Copies the v3 batches data[starts[b]:stops[b]], what follows the maximum timestamp moved by growth[b].

    Length and maximum are set; the checksum is left to `assign_batches`. Fills positions int64[batches + 1] in `out`.
    """
    at = np.int64(0)
    for b in range(len(growth)):
        start, end = starts[b], stops[b]
        positions[b] = at
        size = end - start + growth[b]
        bits = np.int64(get_i16(data, start + ATTRIBUTES))
        p, stop, base_time = _max_time_at(data, start, end, bits)
        tagged = _append_tag_at(data, start, end, 3, bits) != 0
        max_time = now_ms if append and not tagged else latest_ms[b]
        move(out, at, data, start, p - start)
        here = put_varint(out, at + p - start, max_time - base_time)
        move(out, here, data, stop, end - stop)
        put_i32(out, at + LENGTH, np.int32(size - AFTER_LENGTH))
        at += size
    positions[len(growth)] = at


@kernel
def assign_batches(data, positions, kind, ends, epoch, append, now_ms, latest_ms, chosen, made_room):
    """Sets base offset and leader epoch of each chosen batch, and its maximum timestamp, timestamp type and tag 0 with
    the checksum where those change, as `setLastOffset`, `setMaxTimestamp` and `setPartitionLeaderEpoch` do.

    ends int64[batches]: the offset behind each; chosen bool[batches]; made_room: `make_room` has copied them. Under
    create time tag 0 becomes -1. Gives (bytes written, bytes read again for a checksum).
    """
    written, read = np.int64(0), np.int64(0)
    crc_at = kip98.CRC if kind == KIP98 else CRC
    bits_at = kip98.ATTRIBUTES if kind == KIP98 else ATTRIBUTES
    for b in range(len(ends)):
        if not chosen[b]:
            continue
        at, end = positions[b], positions[b + 1]
        bits, last_delta, _, _, _ = _header(data, at, end, kind)
        put_i64(data, at, ends[b] - 1 - last_delta)
        written += 8
        if kind != KIP98:
            put_i32(data, at + EPOCH, np.int32(epoch))
            written += 4
        tag_at = _append_tag_at(data, at, end, kind, bits)
        wanted = bits | APPEND if append else bits & ~APPEND
        max_time = now_ms if append and tag_at == 0 else latest_ms[b]
        noted = now_ms if append else np.int64(NO_TIMESTAMP)
        start, stop, base_time = at + (kip98.MAX_TIME if kind == KIP98 else V2_MAX_TIME), np.int64(0), np.int64(0)
        if kind == 3:
            start, stop, base_time = _max_time_at(data, at, end, bits)
        plain = kind != COLUMNAR and (kind != 3 or bits & FIXED != 0)
        if kind == COLUMNAR:
            held, max_time = _columnar_max_time(data, at, end, append, now_ms, latest_ms[b])
        else:
            held = get_i64(data, start) if plain else base_time + get_varlong(data, start, end)[0]
        stamped = tag_at != 0 and get_i64(data, tag_at) != noted
        if wanted == bits and held == max_time and not stamped and not made_room:
            continue
        # Kafka drops the bits that v2 does not know.
        wanted &= layouts.V2_ATTRIBUTES_MASK if kind == 2 else 0xFFFF
        put_i16(data, at + bits_at, np.int16((wanted ^ 0x8000) - 0x8000))  # an i16 of the same bits
        if plain:
            put_i64(data, start, max_time)
            written += 8
        elif held != max_time and kind == COLUMNAR:
            columnar.put_max_time(data, at, max_time)
            written += TIMESTAMP_BITS // 8
        elif held != max_time:
            put_varint(data, start, max_time - base_time)
            written += stop - start
        if stamped:
            put_i64(data, tag_at, noted)
            written += 8
        put_i32(data, at + crc_at, np.int32(crc32c(data, at + bits_at, end)))
        written += 2 + 4
        read += end - at - bits_at
    return written, read


@kernel
def assign_messages(data, positions, magic, ends, append, now_ms, latest_ms, chosen):
    """Sets the offset of each chosen v0 or v1 message, a wrapper's to its last inner one's, and of v1 timestamp and
    timestamp type with the checksum where those change; ends int64[messages]: the offset behind each.

    Gives (bytes written, bytes read again for a checksum).
    """
    written, read = np.int64(0), np.int64(0)
    for b in range(len(ends)):
        if not chosen[b]:
            continue
        at, end = positions[b], positions[b + 1]
        put_i64(data, at, ends[b] - 1)
        written += 8
        if magic == 0:
            continue
        bits = np.int64(get_u8(data, at + legacy.ATTRIBUTES))
        time = now_ms if append else latest_ms[b]
        if (bits & APPEND != 0) == append and get_i64(data, at + legacy.TIMESTAMP) == time:
            continue
        put_u8(data, at + legacy.ATTRIBUTES, np.uint8(bits & layouts.CODEC_MASK | (APPEND if append else 0)))
        put_i64(data, at + legacy.TIMESTAMP, time)
        put_i32(data, at + legacy.CRC, np.int32(crc32(data, at + legacy.MAGIC, end)))
        written += 1 + 8 + 4
        read += end - at - legacy.MAGIC
    return written, read


@kernel
def assign_enriched(data, positions, bases, append, now_ms, chosen):
    """Sets the offset of each chosen enriched message, a wrapper's to its first inner one's, and (append) its time of
    arrival: the seconds, and tag 0 where there is one. Gives (bytes written, bytes read again for a checksum)."""
    written, read = np.int64(0), np.int64(0)
    for b in range(len(bases)):
        if not chosen[b]:
            continue
        at, end = positions[b], positions[b + 1]
        put_i64(data, at, bases[b])
        written += 8
        if not append:
            continue
        seconds = now_ms // 1000 if 0 <= now_ms <= enriched.LAST_MS else np.int64(NO_TIMESTAMP)
        put_i32(data, at + enriched.SECONDS, np.int32(seconds))
        written += 4
        # Writers put tag 0 first; behind another one it is out of reach, for tags carry no size.
        if get_i32(data, at + enriched.TAGS_LENGTH) > 0 and get_u8(data, at + enriched.TAGS) == enriched.TIME_TAG:
            put_i64(data, at + enriched.TAGS + 1, now_ms)
            written += 8
        put_i32(data, at + enriched.CRC, np.int32(crc32(data, at + enriched.MAGIC, end)))
        written += 4
        read += end - at - enriched.MAGIC
    return written, read
