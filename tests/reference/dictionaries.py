"""zstd with a dictionary, and dictionaries in a log, from docs/dictionaries.md.

A lean frame is translated to or from a frame with magic, content size, checksum or dictionary ID (RFC 8878).
"""

import hashlib
import struct
from collections.abc import Mapping
from typing import NamedTuple

import cramjam
import zstandard

from tests.reference.model import RefusedError
from tests.reference.varint import unsigned

FRAME_MAGIC, DICTIONARY_MAGIC = b"\x28\xb5\x2f\xfd", b"\x37\xa4\x30\xec"
CHECK_BYTES, MOST_BYTES, BLOCK_BYTES = 3, 131_072, 131_072
WINDOW = 0x58  # 2 MiB, enough for every test
KEY = struct.pack(">hh", 0, 7)

known: dict[int, bytes] = {}
"""The dictionaries of the reference readers by number. A test puts its own here."""


class StoredDictionary(NamedTuple):
    number: int
    data: bytes


def head(number: int, dictionary: bytes) -> bytes:
    """Return the bytes in front of a lean frame: the number, and the check."""
    return unsigned(number) + hashlib.sha256(dictionary).digest()[:CHECK_BYTES]


def compress(data: bytes, number: int, dictionary: bytes) -> bytes:
    """Return a payload whose frame was written with content size, checksum and dictionary ID, and then made lean."""
    parameters = zstandard.ZstdCompressionParameters.from_level(5, write_checksum=1, write_dict_id=1)
    compressor = zstandard.ZstdCompressor(compression_params=parameters, dict_data=loaded(dictionary))
    return head(number, dictionary) + lean(compressor.compress(data))


def uncompressed(data: bytes, number: int, dictionary: bytes) -> bytes:
    """Return a payload whose blocks are not compressed."""
    starts = range(0, max(len(data), 1), BLOCK_BYTES)
    blocks = [
        (len(data[at : at + BLOCK_BYTES]) << 3 | (at == starts[-1]), data[at : at + BLOCK_BYTES]) for at in starts
    ]
    body = b"".join(fields.to_bytes(3, "little") + block for fields, block in blocks)
    return head(number, dictionary) + bytes([0, WINDOW]) + body


def lean(frame: bytes) -> bytes:
    """Remove magic, content size, dictionary ID and checksum from a frame."""
    assert frame[:4] == FRAME_MAGIC
    descriptor = frame[4]
    single = descriptor >> 5 & 1
    size_bytes = (single, 2, 4, 8)[descriptor >> 6]
    start = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + size_bytes
    return bytes([0, WINDOW]) + (frame[start:-4] if descriptor & 4 else frame[start:])


def decompress(payload: bytes, dictionaries: Mapping[int, bytes]) -> bytes:
    number = at = 0
    for i, byte in enumerate(payload[:5]):
        number |= (byte & 0x7F) << 7 * i
        at = i + 1
        if byte < 0x80:
            break
    else:
        raise RefusedError("the dictionary number is cut short")
    if payload[:at] != unsigned(number) or number > 2**31 - 1:
        raise RefusedError("the dictionary number is over-long or too large")
    dictionary = dictionaries.get(number)
    if dictionary is None:
        raise RefusedError(f"no dictionary {number}")
    frame = payload[at + CHECK_BYTES :]
    if payload[at : at + CHECK_BYTES] != head(1, dictionary)[1:]:
        raise RefusedError(f"dictionary {number} has another check")
    if frame[:1] != b"\0" or len(frame) < 2:
        raise RefusedError("frame descriptor")
    if end_of_blocks(frame) != len(frame):
        raise RefusedError("bytes after the last block")
    try:
        with zstandard.ZstdDecompressor(loaded(dictionary), max_window_size=2**27).stream_reader(
            FRAME_MAGIC + frame
        ) as reader:
            return reader.readall()
    except zstandard.ZstdError as error:
        raise RefusedError(f"zstd: {error}") from None


def end_of_blocks(frame: bytes) -> int:
    at, is_last = 2, 0
    while not is_last:
        fields = int.from_bytes(frame[at : at + 3], "little")
        is_last = fields & 1
        at += 3 + (1 if fields >> 1 & 3 == 1 else fields >> 3)
        if at > len(frame):
            raise RefusedError("the frame is cut short")
    return at


def loaded(dictionary: bytes) -> zstandard.ZstdCompressionDict:
    kind = zstandard.DICT_TYPE_FULLDICT if dictionary[:4] == DICTIONARY_MAGIC else zstandard.DICT_TYPE_RAWCONTENT
    return zstandard.ZstdCompressionDict(dictionary, dict_type=kind)


def stored_value(number: int, dictionary: bytes) -> bytes:
    """Return a value of a control record that stores a dictionary. Another library than kfbench's compresses it."""
    digest = hashlib.sha256(dictionary).digest()
    return struct.pack(">hi", 0, number) + digest + bytes(cramjam.zstd.compress(dictionary, 19))


def read_stored(key: bytes, value: bytes) -> StoredDictionary:
    version, number = struct.unpack_from(">hi", value)
    data = bytes(cramjam.zstd.decompress(value[38:]))
    if key[:4] != KEY or version or number < 1 or not 8 <= len(data) <= MOST_BYTES:
        raise RefusedError("dictionary record")
    if hashlib.sha256(data).digest() != value[6:38]:
        raise RefusedError("SHA-256")
    return StoredDictionary(number, data)
