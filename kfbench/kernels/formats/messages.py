"""Kernels of v0, v1 and enriched: messages, each with a checksum, and compressed sets of messages.

A set is a plain message, or all messages that one wrapper message contains. The value of a wrapper is the compressed
bytes of these inner messages.

`legacy` and `enriched` have the fields of a message. Each kernel is compiled once for v0 and v1 (LEGACY), and once for
enriched (ENRICHED). For v0 and v1, `kind` is the magic. For enriched it is a bool: whether every message has tag 0, its
time in milliseconds.
"""

from typing import Any, NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import enriched, legacy
from kfbench.kernels.formats.message_fields import (
    AFTER_LENGTH,
    INT32_MAX,
    LAST_CODEC,
    MAGIC,
    UNSET,
    describe_message,
    has_long_field,
    message_end,
    value_at,
)
from kfbench.kernels.jit import variant
from kfbench.kernels.simd.intrinsics import get_i8, get_i32
from kfbench.kernels.wire import status
from kfbench.kernels.wire.lengths import RecordColumns
from kfbench.kernels.wire.sealing import MESSAGE_TOO_LARGE, OK, OUT_TOO_SMALL

IS_ENRICHED = False  # replaced by each variant
LAST_MAGIC = 1


def _encode(columns, bounds, fields, kind, inner, out, positions):
    """Write each record as a message.

    Args:
        columns: RecordColumns; headers are not used.
        bounds: int64[batches + 1], the first record of each batch.
        fields: FIELDS rows, one for all batches or one per batch.
        kind: the layout, see the module docstring.
        inner: True to write the messages inside a wrapper, False to write messages that stand in the log.
        out: uint8 buffer, filled.
        positions: int64[batches + 1], filled with the start of each batch.

    Returns:
        OK or the problem that stopped the encoder, and the number of the batch with the problem.
    """
    columns, at = RecordColumns(*columns), 0
    fixed = enriched.fixed_bytes(kind) if IS_ENRICHED else legacy.fixed_bytes(kind)
    most_bytes = enriched.MOST_PAYLOAD_BYTES if IS_ENRICHED else legacy.MOST_PAYLOAD_BYTES
    _, offsets, key_lengths, value_lengths = columns[:4]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        positions[b] = at
        if first == end or (row.is_control and not IS_ENRICHED):
            continue
        base = np.int64(0)
        if inner and (IS_ENRICHED or kind == 1):  # since KIP-31, inner offsets are relative
            base = offsets[first] if row.base_offset == UNSET else row.base_offset
        for i in range(first, end):
            payload = max(np.int64(key_lengths[i]), 0) + max(np.int64(value_lengths[i]), 0)
            if payload > most_bytes:
                return MESSAGE_TOO_LARGE, b
            if payload + fixed > len(out) - at:
                return OUT_TOO_SMALL, b
            if IS_ENRICHED:
                at = enriched.put_record(out, at, columns, i, row, base, kind)
            else:
                at = legacy.put_record(out, at, columns, i, row, base, kind, inner)
    positions[len(bounds) - 1] = at
    return OK, 0


def _wrap(columns, bounds, fields, kind, codec, payload, payload_bounds, out, positions):
    """Write one wrapper message per batch around its slice of `payload`. Write nothing if the slice is empty.

    Args:
        columns, bounds, fields, kind, out, positions: as in `_encode`.
        codec: the codec's number.
        payload: uint8, the compressed messages of all batches.
        payload_bounds: int64[batches + 1], the slice of each batch.

    Returns:
        OK or the problem that stopped the encoder, and the number of the batch with the problem.
    """
    columns, at = RecordColumns(*columns), 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        positions[b] = at
        start, size = payload_bounds[b], payload_bounds[b + 1] - payload_bounds[b]
        if size == 0:
            continue
        if size > INT32_MAX - (enriched.wrapper_bytes(kind) if IS_ENRICHED else legacy.FIXED_V1):
            return MESSAGE_TOO_LARGE, b
        if IS_ENRICHED:
            at = enriched.put_wrapper(out, at, columns, first, end, row, kind, codec, payload, start, size)
        else:
            at = legacy.put_wrapper(out, at, columns, first, end, row, kind, codec, payload, start, size)
    positions[len(bounds) - 1] = at
    return OK, 0


def _sizes(columns, bounds, fields, kind, out):
    """Fill out, int64[batches], with the uncompressed size of each batch in bytes. Other arguments: as in `_encode`."""
    _, _, key_lengths, value_lengths = columns[:4]
    fixed = enriched.fixed_bytes(kind) if IS_ENRICHED else legacy.fixed_bytes(kind)
    for b in range(len(bounds) - 1):
        total = np.int64(0)
        if IS_ENRICHED or not fields[b if len(fields) > 1 else 0].is_control:
            for i in range(np.uint64(bounds[b]), np.uint64(bounds[b + 1])):
                total += fixed + max(np.int64(key_lengths[i]), 0) + max(np.int64(value_lengths[i]), 0)
        out[b] = total


def _survey(data, positions, kind, codecs, bodies, stops, state):
    """Check each message of a log. Return whether any message is a wrapper.

    Args:
        data, positions: uint8 log, and int64[messages + 1].
        kind: the layout, see the module docstring.
        codecs: int8[messages], filled with the codec of each wrapper, 0 for a plain message.
        bodies, stops: int64[messages] each, filled: the payload of a wrapper is data[bodies[b]:stops[b]].
        state: int8[messages], filled with the `status` of each message.
    """
    any_wrapper = False
    for b in range(len(state)):
        at, end = positions[b], positions[b + 1]
        codecs[b], bodies[b], stops[b] = 0, at, end
        if get_i8(data, at + MAGIC) != (enriched.THIS_MAGIC if IS_ENRICHED else kind):
            state[b] = status.MAGIC
            continue
        problem = enriched.check(data, at, end) if IS_ENRICHED else legacy.check(data, at, end)
        codec = enriched.codec_of(data, at) if IS_ENRICHED else legacy.codec_of(data, at)
        if problem == status.SOUND and codec:
            value = value_at(data, enriched.key_at(data, at) if IS_ENRICHED else legacy.key_at(data, at))
            length = np.int64(get_i32(data, value))
            if codec > LAST_CODEC:
                problem = status.CODEC
            elif length < 0:
                problem = status.WRAPPER_VALUE
            else:
                codecs[b], bodies[b], stops[b], any_wrapper = codec, value + 4, value + 4 + length, True
        state[b] = problem
    return any_wrapper


def _count(source, starts, ends, codecs, limits, state, counts):
    """Check and count the messages of each set source[starts[b]:ends[b]]. An incomplete last message is no error.

    Args:
        source: uint8, the uncompressed messages.
        starts, ends: int64[sets].
        codecs: int8[sets]; 0 means that the set is one plain message, which `_survey` has checked.
        limits: the largest number of messages per set, and the largest key or value in bytes.
        state: int8[sets], in and out: sets with damage found before are skipped, and new damage is stored as `status`.
        counts: int64[sets], filled with messages per set; 0 for a damaged set.
    """
    most_messages, most_bytes = limits
    for b in range(len(state)):
        counts[b] = 0
        if state[b] != status.SOUND:
            continue
        at, end, messages, problem = starts[b], ends[b], 0, status.SOUND
        if codecs[b] == 0:
            key = enriched.key_at(source, at) if IS_ENRICHED else legacy.key_at(source, at)
            if has_long_field(source, key, end - at, most_bytes):
                state[b] = status.LIMIT_FIELD
            else:
                counts[b] = 1
            continue
        while end - at >= AFTER_LENGTH:
            stop = message_end(source, at)
            if stop - at - AFTER_LENGTH < layouts.MIN_LENGTH:
                problem = status.RECORD_LENGTH
                break
            if stop > end:
                break
            magic = get_i8(source, at + MAGIC)
            if magic < (enriched.THIS_MAGIC if IS_ENRICHED else 0) or magic > LAST_MAGIC:
                problem = status.MAGIC
            else:
                problem = enriched.check(source, at, stop) if IS_ENRICHED else legacy.check(source, at, stop)
            if problem == status.SOUND:
                key = enriched.key_at(source, at) if IS_ENRICHED else legacy.key_at(source, at)
                if enriched.codec_of(source, at) if IS_ENRICHED else legacy.codec_of(source, at):
                    problem = status.NESTED
                elif has_long_field(source, key, stop - at, most_bytes):
                    problem = status.LIMIT_FIELD
                elif messages == most_messages:
                    problem = status.LIMIT_RECORDS
            elif problem == status.CRC:
                problem = status.INNER_CRC
            if problem != status.SOUND:
                break
            messages += 1
            at = stop
        if problem == status.SOUND and messages == 0:
            problem = status.EMPTY_SET
        state[b] = problem
        if problem == status.SOUND:
            counts[b] = messages


def _index(data, positions, source, starts, codecs, counts, state, columns, bounds):
    """Read messages into columns, after `_survey` and `_count` have found them undamaged.

    Args:
        data, positions: uint8 log, and int64[sets + 1].
        source, starts, codecs, counts: as in `_count`.
        state: int8[sets]; a set that its wrapper contradicts gets a `status` and no records.
        columns: arrays of an `Index`, filled. `timestamps` are those that a consumer reads, `created` those that the
            producer set.
        bounds: int64[sets + 1], filled with the number of the first record of each set.
    """
    r = np.int64(0)
    bounds[0] = 0
    for b in range(len(state)):
        number, inner = counts[b], codecs[b] != 0
        if IS_ENRICHED:
            problem = enriched.read_set(data, positions[b], source, starts[b], inner, r, number, columns)
        else:
            problem = legacy.read_set(data, positions[b], source, starts[b], inner, r, number, columns)
        if problem == status.SOUND:
            r += number
        else:
            state[b] = problem
        bounds[b + 1] = r


def _describe(data, positions, kind, source, starts, ends, sound, bounds, offsets, rows):
    """Fill one BATCH row for each undamaged set. A set is a plain message or the messages inside one wrapper.

    Args:
        data, positions: as in `_index`.
        kind: the layout, see the module docstring.
        source, starts, ends: as in `_count`.
        sound: int64, the numbers of the undamaged sets.
        bounds: int64; set sound[i] has the records bounds[i] to bounds[i + 1] - 1.
        offsets: int64[records], the offsets that `_index` has read.
        rows: BATCH rows, filled.
    """
    for i in range(len(sound)):
        b, row = sound[i], rows[i]
        at, end, count = positions[b], positions[b + 1], bounds[i + 1] - bounds[i]
        first_offset, last_offset = offsets[bounds[i]], offsets[bounds[i + 1] - 1]
        if IS_ENRICHED:
            describe_message(data, at, end, enriched.codec_of(data, at), count, row)
            enriched.describe_set(data, at, source, starts[b], ends[b], kind, last_offset, row)
        else:
            describe_message(data, at, end, legacy.codec_of(data, at), count, row)
            legacy.describe_set(data, at, end, source, starts[b], ends[b], kind, first_offset, last_offset, row)


class MessageKernels(NamedTuple):
    """The kernels of v0 and v1, or those of enriched."""

    encode: Any
    wrap: Any
    sizes: Any
    survey: Any
    count: Any
    index: Any
    describe: Any


LEGACY, ENRICHED = (
    MessageKernels(
        *(
            variant(function, f"{name}{function.__name__}", IS_ENRICHED=is_enriched)
            for function in (_encode, _wrap, _sizes, _survey, _count, _index, _describe)
        )
    )
    for name, is_enriched in (("legacy", False), ("enriched", True))
)
