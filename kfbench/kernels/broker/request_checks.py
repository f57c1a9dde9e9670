"""Check produce requests without copying them: their entries (batches or messages), batch headers and records.

`kind` is the layout of a batch: its magic, KIP98, ENRICHED, or OTHER. Fields of an OTHER layout are given as numbers.
"""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import batch_header, enriched, kip98, legacy
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u8
from kfbench.kernels.wire.sealing import AFTER_LENGTH, LENGTH

OTHER, KIP98, ENRICHED = 97, 98, 99
NO_PRODUCER_ID, NO_TIMESTAMP = layouts.NO_PRODUCER_ID, layouts.NO_TIMESTAMP
NONE = np.int64(-1)

# Problems of a request's entries: it ends inside an entry, has none, has two magics, or has too many.
INSIDE_BATCH, NO_BATCH, OTHER_MAGIC, TOO_MANY = range(1, 5)
# Rules of `LogValidator.validateBatch`, as numbers.
SOUND, OFFSET_RANGE, COUNT, RANGE_AND_COUNT, CONTROL_BATCH, SEQUENCE, IS_TRANSACTIONAL, IS_IDEMPOTENT = range(8)
BASE_OFFSET = 8  # `UnifiedLog.analyzeAndValidateRecords`


class RuleFields(NamedTuple):
    """The batch header fields that the rules of Kafka's LogValidator check. count: -1 if the layout stores no count."""

    attributes: int
    last_delta: int
    count: int
    producer_id: int
    base_sequence: int


class BrokenRule(NamedTuple):
    """The number of the first rule that a batch breaks, or SOUND, and the values for the error message."""

    rule: int
    last_delta: int
    count: int
    producer_id: int
    base_sequence: int


class FirstBroken(NamedTuple):
    """The first batch of a log that breaks a rule, or -1.

    late: the number of its first record with a timestamp that is not allowed, or -1. keyless: the number of its first
    record without a key, or -1.
    """

    batch: int
    rule: int
    late: int
    keyless: int


@leaf
def _traits(data, at, magic, kind):
    """Return the properties of a batch that decide how its request is handled, as bits of one number.

    These are magic << 16, the codec, from v2 on the control bit, and in v3 the feature bits.
    """
    if magic < 2:
        bits = np.int64(get_u8(data, at + legacy.ATTRIBUTES))
        if kind == ENRICHED:
            bits &= enriched.TYPE_MASK
            return np.int64(magic) << 16 | (bits if bits <= enriched.LAST_CODEC else 0)
        return np.int64(magic) << 16 | (bits & layouts.CODEC_MASK)
    bits = np.int64(get_i16(data, at + (kip98.ATTRIBUTES if kind == KIP98 else batch_header.ATTRIBUTES))) & 0xFFFF
    features = layouts.V3_FEATURES_MASK if magic == 3 else 0
    return np.int64(magic) << 16 | (bits & (layouts.CODEC_MASK | batch_header.CONTROL | features))


@kernel
def find_requests(data, positions, magics, kind, request_positions, firsts, traits):
    """Find which entries (batches or messages) belong to which request. Return the problem, and the entry that has it.

    The problem is SOUND if there is none.

    Args:
        data, positions: uint8 log, and int64[entries + 1].
        magics: int8[entries].
        kind: KIP98 or ENRICHED; 0 if the magic gives the layout.
        request_positions: int64[requests + 1].
        firsts: int64[requests + 1], filled with the first entry of each request, and the number of entries.
        traits: int64[requests], filled with the `_traits` of the first entry of each request.
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
def read_rule_fields(data, at, end, kind):
    """Read the RuleFields of the batch data[at:end]."""
    if kind == KIP98:
        return RuleFields(
            np.int64(get_i16(data, at + kip98.ATTRIBUTES)), np.int64(get_i32(data, at + kip98.LAST)), np.int64(-1),
            get_i64(data, at + kip98.PRODUCER), np.int64(get_i32(data, at + kip98.SEQUENCE)),
        )  # fmt: skip
    bits, last_delta, _, _, count, _ = batch_header.read_header(data, at, end, kind)
    producer, sequence = (
        (batch_header.V2_PRODUCER, batch_header.V2_SEQUENCE)
        if kind == 2
        else (batch_header.V3_PRODUCER, batch_header.V3_SEQUENCE)
    )
    return RuleFields(bits, last_delta, count, get_i64(data, at + producer), np.int64(get_i32(data, at + sequence)))


@leaf
def _given_fields(given, b):
    """Return the RuleFields of batch b of an OTHER layout: given[5 * b] and the next four."""
    i = 5 * b
    return RuleFields(given[i], given[i + 1], given[i + 2], given[i + 3], given[i + 4])


def _broken_rule(data, at, end, kind, given, b, records, from_client, from_zero, to_messages):
    """Check the header of one batch. Return the first broken rule, or SOUND, as a BrokenRule.

    Args:
        data, at, end, kind: uint8 log, the bounds of the batch, and its layout.
        given, b: int64[5 * batches], RuleFields of an OTHER layout, and the number of the batch in it.
        records: the number of its records, for a layout that stores no count.
        from_client, from_zero, to_messages: as in `check`.
    """
    fields = _given_fields(given, b) if kind == OTHER else read_rule_fields(data, at, end, kind)
    last_delta, producer, sequence = fields.last_delta, fields.producer_id, fields.base_sequence
    count = records if kind == KIP98 else fields.count
    rule = SOUND
    if from_client and from_zero and get_i64(data, at) != 0:
        rule = BASE_OFFSET
    elif from_client and last_delta < 0:
        rule = OFFSET_RANGE
    elif from_client and count <= 0:
        rule = COUNT
    elif from_client and last_delta + 1 != count:
        rule = RANGE_AND_COUNT
    elif from_client and fields.attributes & batch_header.CONTROL:
        rule = CONTROL_BATCH
    elif from_client and producer > NO_PRODUCER_ID and sequence < 0:
        rule = SEQUENCE
    elif to_messages and fields.attributes & batch_header.TRANSACTIONAL:
        rule = IS_TRANSACTIONAL
    elif to_messages and producer > NO_PRODUCER_ID:
        rule = IS_IDEMPOTENT
    return BrokenRule(rule, last_delta, count, producer, sequence)


_broken_rule_leaf, broken_rule = leaf(_broken_rule), kernel(_broken_rule)


@leaf
def _is_marked(data, at, kind, given, b):
    """Return whether the timestamp type of a batch is log append time."""
    if kind == OTHER:
        return given[5 * b] & batch_header.APPEND != 0
    if kind == 1:
        return get_u8(data, at + legacy.ATTRIBUTES) & batch_header.APPEND != 0
    if kind == 2 or kind == 3:
        return get_i16(data, at + batch_header.ATTRIBUTES) & batch_header.APPEND != 0
    return kind == KIP98 and get_i16(data, at + kip98.ATTRIBUTES) & batch_header.APPEND != 0


@kernel
def check(data, positions, kind, given, timestamps, key_lengths, offsets, bounds, from_client, from_zero, to_messages,
          is_create, earliest, latest, keyed, latest_ms, in_order):  # fmt: skip
    """Check all batches of a log against the rules for produce requests. Return the FirstBroken.

    Args:
        data, positions: uint8 log, and int64[batches + 1].
        kind: the magic of v0 to v3, KIP98, ENRICHED or OTHER.
        given: int64[5 * batches], the RuleFields of an OTHER layout.
        timestamps, key_lengths, offsets: the columns of all records.
        bounds: int64[batches + 1], the number of the first record of each batch, then the number of all records.
        from_client: check the rules for clients: no control batches, and correct counts.
        from_zero: offsets must begin at 0.
        to_messages: the batches will be converted to v0 or v1.
        is_create: the topic has create time. Times must then lie between `earliest` and `latest`, in ms.
        keyed: the topic is compacted, so that each record needs a key.
        latest_ms: int64[batches], filled with the latest timestamp of each batch in ms, at least -1.
        in_order: bool[batches], filled with whether offsets rise by one, from 0 (from_zero) or from the base offset.
    """
    for b in range(len(bounds) - 1):
        at, end_at = positions[b], positions[b + 1]
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        if kind == 2 or kind == 3 or kind == OTHER or kind == KIP98:
            rule = _broken_rule_leaf(
                data, at, end_at, kind, given, b, bounds[b + 1] - bounds[b], from_client, from_zero, to_messages
            ).rule
            if rule != SOUND:
                return FirstBroken(b, rule, NONE, NONE)
        marked = _is_marked(data, at, kind, given, b)
        base = np.int64(0)
        if first < end and not from_zero:  # a v1 wrapper stores its last offset, other batches their first one
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
            return FirstBroken(b, np.int64(SOUND), late, keyless)
        latest_ms[b], in_order[b] = top, whole
    return FirstBroken(NONE, np.int64(SOUND), NONE, NONE)


@kernel
def other_magic(source, starts, ends, magic):
    """Return the first b where source[starts[b]:ends[b]] has a message of another magic, or -1 if there is none.

    `legacy.count` has checked the lengths.
    """
    for b in range(len(starts)):
        if legacy.holds_other_magic(source, starts[b], ends[b], magic):
            return b
    return -1


@kernel
def find_control(source, starts, ends, found):
    """Fill found, bool[sets], with whether the enriched messages source[starts[b]:ends[b]] have a control record."""
    for b in range(len(found)):
        at, end = starts[b], ends[b]
        found[b] = False
        while end - at >= AFTER_LENGTH:
            stop = at + AFTER_LENGTH + np.int64(get_i32(source, at + LENGTH))
            if stop > end:
                break
            found[b] |= get_u8(source, at + enriched.ATTRIBUTES) & enriched.TYPE_MASK >= enriched.FIRST_CONTROL
            at = stop
