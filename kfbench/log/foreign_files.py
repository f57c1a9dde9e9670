"""Recognise files that are no log segment of Kafka by their first bytes, and say what to do with them.

A segment begins with its first offset. None has an offset as large as these signatures would be, as numbers.
"""

import struct
from collections.abc import Mapping
from typing import Final

from kfbench.kernels.wire.frames import LENGTH_AT, MAGIC_AT, MIN_LENGTH

HEAD_BYTES: Final = 512
PACKED: Final[Mapping[bytes, tuple[str, str]]] = {
    b"\x1f\x8b\x08": ("gzip", "gzip -d"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -d"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -d"),
    b"\x02\x21\x4c\x18": ("lz4", "lz4 -d"),  # the older frame of the command lz4
    b"\xfd7zXZ\0": ("xz", "xz -d"),
    b"BZh": ("bzip2", "bzip2 -d"),
    b"\xff\x06\0\0sNaPpY": ("snappy", "snzip -d"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"7z\xbc\xaf\x27\x1c": ("7z", "7z x"),
}
TABLES: Final[Mapping[bytes, str]] = {
    b"PAR1": "Parquet: what-if reads it as a table if its name ends in .parquet",
    b"Obj\x01": "Avro: convert it to Parquet, which what-if reads as a table",
    b"ORC": "ORC: convert it to Parquet, which what-if reads as a table",
}
SUFFIXES: Final = (".gz", ".zst", ".lz4", ".xz", ".bz2", ".sz", ".zip", ".7z")
TAR: Final = slice(257, 262)
REDPANDA_HEADER: Final = struct.Struct("<IiqbIhiqqqhii")  # little-endian; its checksum, then the batch's size


def foreign_file(head: bytes, size_bytes: int) -> str | None:
    """Return what a file is, and what to do with it; None: it may be a segment.

    head: its first HEAD_BYTES bytes.
    """
    for signature, (name, command) in PACKED.items():
        if head.startswith(signature):
            return f"{'an' if name in ('lz4', 'xz') else 'a'} {name} file: unpack it first ({command})"
    for signature, words in TABLES.items():
        if head.startswith(signature):
            return f"a file of {words}"
    if head[TAR] == b"ustar":
        return "a tar archive: unpack it first (tar -x)"
    if _is_redpanda(head, size_bytes):
        return "a segment of Redpanda, whose batches have another header: read the topic (kafka://HOST:PORT/TOPIC)"
    return None


def _is_redpanda(head: bytes, size_bytes: int) -> bool:
    """Return True if the first batch has a plausible size in Redpanda's header, and none in Kafka's."""
    if len(head) < REDPANDA_HEADER.size:
        return False
    checksum, batch_bytes, *_ = REDPANDA_HEADER.unpack_from(head)
    (kafka_length,) = struct.unpack_from(">i", head, LENGTH_AT)
    is_of_kafka = MIN_LENGTH <= kafka_length <= size_bytes
    has_size = REDPANDA_HEADER.size <= batch_bytes <= size_bytes
    return bool(checksum) and has_size and not is_of_kafka and 0 < head[MAGIC_AT] < 64  # the magic is its batch type
