"""Damaged batches with correct checksums. The damage is also made under a codec."""

import random
import struct
from collections.abc import Iterator

from kfbench.codecs import CODECS, LEGACY_LZ4, codec_of
from tests.compressed import HEADER_BYTES
from tests.formats.fuzz import INTERESTING, sealed
from tests.oracle.generate import BatchChunk, chunks
from tests.oracle.judge import encoded

SMALL_BYTES = 600
EDGE_INT32 = (-(2**31), -2, -1, 0, 1, 13, 14, 2**31 - 1)


def mutants(name: str, codec: str, seed: int, count: int) -> Iterator[bytes]:
    """Yield `count` logs with a damaged batch. One log in five has a valid batch before and after it."""
    draw = random.Random(f"mutants {name} {codec} {seed}")
    pool: list[bytes] = []
    for chunk in chunks(name, codec, seed, 400):
        pool += [batch for batch in _batches(chunk) if len(batch) < SMALL_BYTES]
    for _ in range(count):
        mutant = _mutant(draw, draw.choice(pool))
        yield mutant if draw.random() < 0.8 else draw.choice(pool) + mutant + draw.choice(pool)


def _batches(chunk: BatchChunk) -> Iterator[bytes]:
    log = encoded(chunk)
    for start, end in zip(log.positions[:-1].tolist(), log.positions[1:].tolist(), strict=True):
        if start < end:
            batch = bytes(log.data[start:end])
            if batch[16] < 2:  # of several plain messages, take the first
                batch = batch[: 12 + struct.unpack_from(">i", batch, 8)[0]]
            yield batch


def _mutant(draw: random.Random, batch: bytes) -> bytes:
    magic = batch[16]
    header, number = HEADER_BYTES[magic], batch[22 if magic == 2 else 17] & 7
    if number and len(batch) > header and draw.random() < 0.5:
        codec = LEGACY_LZ4 if magic == 0 and number == LEGACY_LZ4.id else codec_of(number)
        plain = bytearray(codec.decompress(batch[header:]))
        _damage(draw, plain, 0)
        if magic < 2 and draw.random() < 0.7:
            plain = bytearray(_inner_sealed(bytes(plain)))
        payload = codec.compress(bytes(plain)) if draw.random() < 0.95 else CODECS["gzip"].compress(bytes(plain))
        return _with_payload(batch[:header], payload)
    data = bytearray(batch)
    _damage(draw, data, 17)
    if number and magic < 2 and draw.random() < 0.7 and len(data) > header:
        return _with_payload(bytes(data[:header]), bytes(data[header:]))
    return sealed(bytes(data)) if len(data) > 17 else bytes(data)


def _with_payload(header: bytes, payload: bytes) -> bytes:
    if header[16] < 2:
        header = header[:-4] + struct.pack(">i", len(payload))
    return sealed(header + payload)


def _inner_sealed(plain: bytes) -> bytes:
    """Correct the checksums of the inner messages of a set. Stop at the first message with a wrong size."""
    out, at = b"", 0
    while len(plain) - at >= 18:
        (size,) = struct.unpack_from(">i", plain, at + 8)
        end = at + 12 + size
        if size < 14 or end > len(plain) or plain[at + 16] > 1:
            break
        out += sealed(plain[at:end])
        at = end
    return out + plain[at:]


def _damage(draw: random.Random, data: bytearray, first: int) -> None:
    """Change the data one to three times, at byte `first` or after it."""
    for _ in range(draw.choice([1, 1, 2, 3])):
        if len(data) <= first:
            return
        at = draw.randrange(first, len(data))
        byte = draw.choice(INTERESTING) if draw.random() < 0.5 else draw.randrange(256)
        match draw.choice(["change", "change", "flip", "insert", "remove", "cut", "int32", "append"]):
            case "change":
                data[at] = byte
            case "flip":
                data[at] ^= 1 << draw.randrange(8)
            case "insert":
                data[at:at] = bytes([byte]) * draw.choice([1, 1, 1, 4, 9])
            case "remove":
                del data[at : at + draw.choice([1, 1, 4])]
            case "cut":
                del data[at:]
            case "int32":
                data[at : at + 4] = struct.pack(">i", draw.choice(EDGE_INT32))
            case "append":
                data += bytes([byte]) * draw.choice([1, 4, 30])
