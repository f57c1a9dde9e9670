"""The parts of a broker's CPU time, and the table that attributes a stack to one of them.

A stack belongs to the part of its top-most frame that TABLE names. Frames that no row names, such as those of
ByteBuffer, ByteUtils or HashMap, belong to their caller. Where two rows match a frame, the longer prefix counts.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

FORMAT, CODEC, CRC, NETWORK, TLS = "record format", "codec", "CRC", "network", "TLS"
REQUESTS, LOG, GC, OTHER, UNKNOWN = "request handling", "log and index", "GC", "other", "no stack"
JIT, JFR = "JIT compiler", "JFR"

PARTS: Final = (FORMAT, CODEC, CRC, NETWORK, TLS, REQUESTS, LOG, GC, OTHER, UNKNOWN)
EXCLUDED: Final = (JIT, JFR)
"""CPU time of the JVM that is not counted: a broker that runs for hours compiles little, and nobody records it."""
DIRECT: Final = (FORMAT, CODEC, CRC)
"""The parts whose code depends on the record format."""
BY_BYTES: Final = (NETWORK, TLS, LOG)
"""The parts that a format changes only by the number of bytes."""

_KAFKA: Final = "org.apache.kafka"
TABLE: Final = (
    (FORMAT, f"{_KAFKA}.common.record.", "batches and records: iterate, read, write, set offsets"),
    (FORMAT, f"{_KAFKA}.common.header.", "record headers"),
    (FORMAT, f"{_KAFKA}.storage.internals.log.LogValidator", "the check of each record when a batch arrives"),
    (CODEC, f"{_KAFKA}.common.compress.", "Kafka's streams around the codecs; LZ4's framing"),
    (CODEC, f"{_KAFKA}.common.utils.internals.BufferSupplier", "buffers to decompress into"),
    (CODEC, f"{_KAFKA}.common.utils.internals.ChunkedBytesStream", "buffered reading of a decompressed stream"),
    (CODEC, "com.github.luben.zstd.", "zstd, with its native code"),
    (CODEC, "net.jpountz.", "LZ4 and its xxHash"),
    (CRC, f"{_KAFKA}.common.utils.internals.Crc32C", "CRC-32C of a batch"),
    (CRC, f"{_KAFKA}.common.utils.internals.Checksums", "CRC-32C of a batch"),
    (CRC, "java.util.zip.CRC32", "CRC-32C of a batch"),
    (NETWORK, f"{_KAFKA}.common.network.", "channels and selectors"),
    (NETWORK, "kafka.network.", "socket server"),
    (NETWORK, f"{_KAFKA}.network.", "socket server"),
    (NETWORK, "sun.nio.ch.SocketChannelImpl", "socket reads and writes, with the kernel's TCP"),
    (NETWORK, "sun.nio.ch.SocketDispatcher", "socket reads and writes, with the kernel's TCP"),
    (NETWORK, "sun.nio.ch.Net", "socket calls"),
    (NETWORK, "sun.nio.ch.EPoll", "waiting for sockets"),
    (NETWORK, "sun.nio.ch.EventFD", "waking the network threads"),
    (NETWORK, "sun.nio.ch.Selector", "waiting for sockets"),
    (NETWORK, "sun.nio.ch.SelectionKeyImpl", "waiting for sockets"),
    (NETWORK, "sun.nio.ch.FileChannelImpl.transferTo", "sendfile from log to socket"),
    (NETWORK, "sun.nio.ch.FileDispatcherImpl.transferTo", "sendfile from log to socket"),
    (NETWORK, "sun.nio.ch.UnixFileDispatcherImpl.transferTo", "sendfile from log to socket"),
    (NETWORK, f"{_KAFKA}.common.record.internal.FileRecords.writeTo", "sending a part of the log"),
    (NETWORK, f"{_KAFKA}.common.record.internal.MultiRecordsSend", "sending a response"),
    (NETWORK, f"{_KAFKA}.common.record.internal.RecordsSend", "sending a response"),
    (NETWORK, f"{_KAFKA}.common.record.internal.DefaultRecordsSend", "sending a response"),
    (TLS, f"{_KAFKA}.common.network.SslTransportLayer", "TLS buffers"),
    (TLS, "sun.security.", "TLS records and ciphers"),
    (TLS, "com.sun.crypto.", "ciphers"),
    (TLS, "javax.crypto.", "ciphers"),
    (TLS, "javax.net.ssl.", "TLS engine"),
    (REQUESTS, f"{_KAFKA}.common.requests.", "requests and responses"),
    (REQUESTS, f"{_KAFKA}.common.message.", "fields of requests and responses"),
    (REQUESTS, f"{_KAFKA}.common.protocol.", "fields of requests and responses"),
    (REQUESTS, f"{_KAFKA}.common.metrics.", "metrics and quotas"),
    (REQUESTS, "com.yammer.metrics.", "metrics"),
    (REQUESTS, f"{_KAFKA}.server.", "request threads, purgatories, timers, fetch sessions"),
    (REQUESTS, "kafka.server.", "request handlers, replica manager"),
    (REQUESTS, "kafka.cluster.", "partitions"),
    (LOG, f"{_KAFKA}.storage.", "log, segments, indexes, producer state"),
    (LOG, f"{_KAFKA}.common.record.internal.FileRecords", "a segment's file"),
    (LOG, f"{_KAFKA}.common.record.internal.FileLogInputStream", "a segment's file"),
    (LOG, "sun.nio.ch.FileChannelImpl", "file reads and writes, with the kernel's file system"),
    (LOG, "sun.nio.ch.FileDispatcherImpl", "file reads and writes, with the kernel's file system"),
    (LOG, "sun.nio.ch.UnixFileDispatcherImpl", "file reads and writes, with the kernel's file system"),
)
"""Rows: part, prefix of CLASS.METHOD, description."""

NATIVE_THREADS: Final = (
    (JIT, ("C1 Comp", "C2 Comp")),
    (JFR, ("JFR ",)),
    (GC, ("GC Thread", "G1 ", "VM Thread")),
)
"""Threads without Java stacks, by the beginning of their names. All others are OTHER."""

_VALIDATOR: Final = f"{_KAFKA}.storage.internals.log.LogValidator"
_APPEND: Final = f"{_KAFKA}.storage.internals.log.UnifiedLog.append"


def part_of(frames: Sequence[str]) -> str:
    """Return the part of a stack. frames: CLASS.METHOD with the top first."""
    if not frames:
        return UNKNOWN
    return next(filter(None, map(_part_of_frame, frames)), OTHER)


@cache
def _part_of_frame(frame: str) -> str | None:
    matching = [(len(prefix), part) for part, prefix, _ in TABLE if frame.startswith(prefix)]
    return max(matching)[1] if matching else None


def is_validation(frames: Sequence[str]) -> bool:
    """Return whether the broker was checking the records of an arriving batch."""
    return any(frame.startswith(_VALIDATOR) for frame in frames)


def is_append(frames: Sequence[str]) -> bool:
    """Return whether the broker was appending batches to a log."""
    return any(frame.startswith(_APPEND) for frame in frames)


def part_of_thread(name: str) -> str:
    """Return the part of a thread that has no Java stacks. name: as in /proc, cut to 15 characters."""
    return next((part for part, beginnings in NATIVE_THREADS if name.startswith(beginnings)), OTHER)
