"""Mirroring: find the partitions of keys, and change batches in place so that a producer may send them."""

import numpy as np

from kfbench.kernels.formats import enriched, kip98, scan
from kfbench.kernels.formats.batch_header import (
    ATTRIBUTES,
    CRC,
    HORIZON,
    TRANSACTIONAL,
    V2_PRODUCER,
    V2_PRODUCER_EPOCH,
    V2_SEQUENCE,
    V3_PRODUCER,
    V3_PRODUCER_EPOCH,
    V3_SEQUENCE,
)
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u8, put_i16, put_i32, put_i64, put_u8
from kfbench.kernels.wire.crc import crc32, crc32c
from kfbench.layouts import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, UNSET

ALL32, POSITIVE = np.uint64(0xFFFFFFFF), np.uint64(0x7FFFFFFF)
SEED, M = np.uint64(0x9747B28C), np.uint64(0x5BD1E995)
BITS_8, BITS_13, BITS_15, BITS_16, BITS_24 = (np.uint64(bits) for bits in (8, 13, 15, 16, 24))
NO_PARTITION = -1


@leaf
def _clear(out, at, end, crc_at, attributes, producer, epoch, sequence):
    """Remove producer, transaction and delete horizon from a batch.

    Return the number of bytes read for the new checksum, 0 if the batch did not change.

    Args:
        out, at, end: uint8 log, and the bounds of the batch.
        crc_at, attributes, producer, epoch, sequence: positions of these fields within the batch.
    """
    bits = get_i16(out, at + attributes)
    if bits & (TRANSACTIONAL | HORIZON) == 0 and get_i64(out, at + producer) == NO_PRODUCER_ID:
        return 0
    put_i16(out, at + attributes, np.int16(bits & ~(TRANSACTIONAL | HORIZON)))
    put_i64(out, at + producer, np.int64(NO_PRODUCER_ID))
    put_i16(out, at + epoch, np.int16(NO_PRODUCER_EPOCH))
    put_i32(out, at + sequence, np.int32(NO_SEQUENCE))
    put_i32(out, at + crc_at, np.int32(crc32c(out, at + attributes, end)))
    return end - at - attributes


@leaf
def _use_positions(out, at, end):
    """Set tag 33 of an enriched wrapper to 0: inner messages then get consecutive relative offsets from 0.

    Return the number of bytes read for the new checksum, 0 if the wrapper did not change.
    """
    p, stop, found = at + enriched.TAGS, at + enriched.TAGS, False
    if get_u8(out, at + enriched.ATTRIBUTES) & enriched.TYPE_MASK in (1, 2, 3):
        stop += max(np.int64(get_i32(out, at + enriched.TAGS_LENGTH)), 0)
    while p < stop:
        tag = get_u8(out, p)
        if tag == enriched.TIME_TAG:
            p += enriched.TIME_BYTES
        elif tag == enriched.COUNT_TAG:
            p += enriched.COUNT_BYTES
        elif tag == enriched.RELATIVE_TAG:
            if get_u8(out, p + 1):
                put_u8(out, p + 1, np.uint8(0))
                found = True
            p += enriched.FLAG_BYTES
        elif tag == enriched.KEYS_TAG:
            p += enriched.FLAG_BYTES
        else:
            break
    if not found:
        return 0
    put_i32(out, at + enriched.CRC, np.int32(crc32(out, at + enriched.MAGIC, end)))
    return end - at - enriched.MAGIC


@kernel
def make_ready(out, positions, passed, offsets, reset, dialect, magic, is_set):
    """Change batches so that a producer may send them. Return the number of bytes read for new checksums.

    Producer, transaction and delete horizon are removed, because they belong to the source cluster.

    Args:
        out, positions: batch b is out[positions[b]:positions[b + 1]], with an undamaged header.
        passed: bool[batches], the batches to change.
        offsets: int64[batches], the offset for the header, or UNSET.
        reset: inner messages of an enriched wrapper get consecutive relative offsets from 0.
        dialect, magic: the layout of the batches; see `formats.scan`.
        is_set: bool[batches], filled with whether the batch was changed.
    """
    again = np.int64(0)
    for b in range(len(passed)):
        is_set[b] = False
        if not passed[b]:
            continue
        at, end, checked = positions[b], positions[b + 1], np.int64(0)
        if dialect == scan.ENRICHED:
            if reset:
                checked = np.int64(_use_positions(out, at, end))
        elif dialect == scan.KIP98:
            checked = np.int64(
                _clear(out, at, end, kip98.CRC, kip98.ATTRIBUTES, kip98.PRODUCER, kip98.PRODUCER_EPOCH, kip98.SEQUENCE)
            )
        elif magic == 2:
            checked = np.int64(_clear(out, at, end, CRC, ATTRIBUTES, V2_PRODUCER, V2_PRODUCER_EPOCH, V2_SEQUENCE))
        elif magic == 3:
            checked = np.int64(_clear(out, at, end, CRC, ATTRIBUTES, V3_PRODUCER, V3_PRODUCER_EPOCH, V3_SEQUENCE))
        is_set[b] = checked > 0
        if offsets[b] != UNSET and get_i64(out, at) != offsets[b]:  # the checksum does not cover the offset
            put_i64(out, at, offsets[b])
            is_set[b] = True
        again += checked
    return again


@leaf
def _byte(data, at):
    return np.uint64(get_u8(data, at))


@leaf
def murmur2(data, start, length):
    """Return Kafka's murmur2 hash of data[start : start + length], as a uint64 below 2**32."""
    h = SEED ^ np.uint64(length)
    at, end = start, start + length
    while end - at >= 4:
        k = _byte(data, at) | _byte(data, at + 1) << BITS_8 | _byte(data, at + 2) << BITS_16
        k = (k | _byte(data, at + 3) << BITS_24) * M & ALL32
        k = (k ^ k >> BITS_24) * M & ALL32
        h = (h * M & ALL32) ^ k
        at += 4
    if at < end:
        if end - at == 3:
            h ^= _byte(data, at + 2) << BITS_16
        if end - at >= 2:
            h ^= _byte(data, at + 1) << BITS_8
        h = (h ^ _byte(data, at)) * M & ALL32
    h = (h ^ h >> BITS_13) * M & ALL32
    return h ^ h >> BITS_15


@kernel
def partitions_of(keys, starts, lengths, partitions, out):
    """Fill out, int64[n], with the partition of each key, or NO_PARTITION for a null.

    It is Kafka's default partitioner: murmur2 of the key, made positive, modulo the partitions (`Utils.murmur2`,
    `BuiltInPartitioner.partitionForKey`).
    """
    for i in range(len(lengths)):
        length = np.int64(lengths[i])
        if length < 0:
            out[i] = NO_PARTITION
        else:
            out[i] = np.int64(murmur2(keys, starts[i], length) & POSITIVE) % partitions
