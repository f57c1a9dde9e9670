"""Apply steps to golden vectors: overwrite, remove and add bytes, also under a codec, and correct checksums."""

import gzip
import struct

import cramjam

from tests.compressed import HEADER_BYTES
from tests.formats.fuzz import sealed
from tests.oracle.client import Spec
from tests.reference import codecs, lz4


def applied(data: bytes, step: Spec) -> bytes:
    match step["op"]:
        case "patch":
            patch = bytes.fromhex(step["hex"])
            at = step["at"] % len(data)
            return data[:at] + patch + data[at + len(patch) :]
        case "cut":
            return b"" if step["bytes"] == "all" else data[: -step["bytes"]]
        case "add":
            return data + bytes.fromhex(step["hex"])
        case "seal":
            at = _last_batch_at(data)
            return data[:at] + _sealed(data[at:])
        case "inside":
            return _inside(data, step)
    raise ValueError(step)


def _last_batch_at(data: bytes) -> int:
    """Return the byte position of the last batch. Its size field may be wrong."""
    at = 0
    while True:
        (size,) = struct.unpack_from(">i", data, at + 8)
        if at + 12 + size + 17 > len(data):
            return at
        at += 12 + size


def _sealed(batch: bytes) -> bytes:
    """Return the batch with length and checksum corrected, and for a wrapper the length of its value."""
    magic = batch[16]
    if magic < 2 and batch[17] & 7 and len(batch) > HEADER_BYTES[magic]:
        at = HEADER_BYTES[magic]
        batch = batch[: at - 4] + struct.pack(">i", len(batch) - at) + batch[at:]
    return sealed(batch)


def _inside(batch: bytes, step: Spec) -> bytes:
    """Decompress a batch, change the plain bytes, and compress them by the same codec or as `pack` says."""
    magic = batch[16]
    codec = ("none", "gzip", "snappy", "lz4", "zstd")[batch[22 if magic == 2 else 17] & 7]
    header, payload = batch[: HEADER_BYTES[magic]], batch[HEADER_BYTES[magic] :]
    plain = codecs.decompress(codec, payload, magic)
    for inner in step.get("steps", ()):
        plain = applied(plain, inner)
    return _sealed(header + _packed(plain, step.get("pack", codec), magic))


def _packed(plain: bytes, how: str, magic: int) -> bytes:
    half = len(plain) // 2
    match how:
        case "raw snappy":
            return codecs.snappy_of_literals(plain)
        case "two gzip members":
            return gzip.compress(plain[:half], mtime=0) + gzip.compress(plain[half:], mtime=0)
        case "two zstd frames":
            return bytes(cramjam.zstd.compress(plain[:half])) + bytes(cramjam.zstd.compress(plain[half:]))
        case "linked lz4":  # the flag suffices: Kafka refuses it before it reads a block
            frame = codecs.compress("lz4", plain, magic)
            descriptor = bytes([frame[4] & ~0x20, frame[5]])
            return frame[:4] + descriptor + bytes([lz4.header_checksum(descriptor, magic)]) + frame[7:]
    return codecs.compress(how, plain, magic)
