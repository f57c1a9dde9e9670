"""Compression as Kafka frames it: gzip, snappy (xerial stream), lz4 (frame), zstd.

`Compression` and `CompressionType` in `org.apache.kafka.common`. Each codec uses the library that is fastest at small
batches (docs/adr/0002). gzip, lz4 and zstd give Kafka's own bytes where the library's version is Kafka's; snappy-java's
matches differ from ours. Runs record `version`, because compressed bytes depend on it; `make oracle` compares them with
Kafka's. Decompression never allocates much past its limit, whatever the bytes claim.
"""

import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self, TypeAlias

import cramjam
import lz4.block
import lz4.frame
import numpy as np
import xxhash
import zstandard

from kfbench.errors import IllegalCombination, InvalidConfig, KfbenchError
from kfbench.limits import LIMITS, Limits
from kfbench.uvarint import get_uvarint

CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd", "5", "6", "7")  # by the id in the attributes
DEFAULT_LIMIT_BYTES: Final = LIMITS.batch_bytes

Buffer: TypeAlias = bytes | memoryview  # bytes are quicker to take apart; a view copies nothing that is not read


@dataclass(kw_only=True)
class Allowance:
    """What may still be made of a log while it is read, whichever formats it has: `limits` for a batch, and in all
    `log_bytes` decompressed, of columnar `log_records` and `log_headers`, which may take no byte each, of v3 those
    headers that shared ones stand for, `log_header_bytes` that headers stand for, and `built_bytes` of plain batches
    where it is written in another format."""

    limits: Limits
    log_bytes: int
    log_records: int
    log_headers: int
    log_header_bytes: int
    built_bytes: int

    @classmethod
    def of(cls, log_size_bytes: int, limits: Limits | None) -> Self:
        if limits is None:
            limits = LIMITS
        if not isinstance(limits, Limits):
            raise InvalidConfig(f"limits: kfbench.Limits is wanted, not {type(limits).__name__}")
        log_bytes = limits.log_bytes(log_size_bytes)
        return cls(
            limits=limits,
            log_bytes=log_bytes,
            log_records=limits.log_records(log_size_bytes),
            log_headers=limits.log_headers(log_size_bytes),
            log_header_bytes=log_bytes,
            built_bytes=log_bytes,
        )

    def read_again(self, before: Self) -> None:
        """What has been read since `before`, a copy of this one, is read once more: it counts once."""
        self.log_bytes, self.log_records = before.log_bytes, before.log_records
        self.log_headers, self.log_header_bytes = before.log_headers, before.log_header_bytes

    def decompress(self, codec: "Codec", payload: Any, most_bytes: int | None = None) -> bytes:
        """Raises Undecodable, also of a payload larger than `most_bytes`; what was decompressed before that is spent
        all the same."""
        try:
            next_bytes = self.next_bytes
            plain = codec.decompress(payload, next_bytes if most_bytes is None else min(most_bytes, next_bytes))
        except Undecodable as error:
            self.log_bytes -= error.spent_bytes
            raise
        self.log_bytes -= len(plain)
        return plain

    @property
    def next_bytes(self) -> int:
        """What the next batch may decompress to."""
        return min(self.limits.batch_bytes, self.log_bytes)


class Undecodable(KfbenchError):
    """Bytes that a codec refuses, or that grow past the limit. spent_bytes: how many were plain by then."""

    spent_bytes = 0
    is_past_limit = False


class _Tally:
    """What a reader wants next, and what its codec has done for it so far."""

    __slots__ = ("left_bytes", "limit_bytes", "taken_bytes", "wanted_bytes")

    def __init__(self, limit_bytes: int, wanted_bytes: int) -> None:
        self.limit_bytes = self.left_bytes = limit_bytes
        self.wanted_bytes = wanted_bytes
        self.taken_bytes = 0

    def note(self, plain_bytes: int, taken_bytes: int) -> None:
        """That reading up to `taken_bytes` gives so many plain bytes more. Raises Undecodable."""
        _within(plain_bytes, self.left_bytes, spent_bytes=self.limit_bytes)
        self.left_bytes -= plain_bytes
        self.taken_bytes = taken_bytes


class Stream:
    """The plain bytes of a payload from its beginning, decompressed only as far as they are asked for.

    Every codec but gzip gives whole blocks (snappy 32 KiB, lz4 64 KiB, zstd 128 KiB as Kafka writes them; a raw snappy
    block is one). What lies behind the block that was read last is not looked at: damage there goes unseen, and so does
    a checksum that stands at the end of the payload. After Undecodable a stream is of no more use.
    """

    def __init__(self, codec: "Codec", data: Any, limit_bytes: int) -> None:
        self._tally = _Tally(limit_bytes, wanted_bytes=0)
        self._parts = filter(None, codec._parts(memoryview(data), self._tally))
        self._part, self._at = b"", 0  # what is left of it begins at _at

    @property
    def plain_bytes(self) -> int:
        """How much had to be decompressed so far: not less than was read."""
        return self._tally.limit_bytes - self._tally.left_bytes

    @property
    def taken_bytes(self) -> int:
        """How much of the payload that took."""
        return self._tally.taken_bytes

    def read(self, size_bytes: int) -> bytes:
        """The next `size_bytes` plain bytes, fewer only at the end. Raises Undecodable."""
        end = self._at + max(size_bytes, 0)
        if end <= len(self._part):
            found, self._at = self._part[self._at : end], end
            return found
        parts, missing = [self._part[self._at :]], end - len(self._part)
        while missing > 0:
            self._tally.wanted_bytes = missing
            self._part, self._at = next(self._parts, b""), 0
            if not self._part:
                break
            self._at = min(missing, len(self._part))
            parts.append(self._part[: self._at])
            missing -= self._at
        return b"".join(parts)


class Codec(ABC):
    """A codec by its Kafka name: `id` is its number in the attributes, `levels` what `level` may be (empty: none)."""

    name: ClassVar[str]
    id: ClassVar[int]
    levels: ClassVar[range] = range(0)
    default_level: ClassVar[int | None] = None
    library: ClassVar[str | None] = None

    @property
    def version(self) -> str:
        """The library and its version: what compressed bytes depend on."""
        return f"{self.library} {version(self.library)}" if self.library else "-"

    def check_level(self, level: int | None) -> int | None:
        """The level to use. Raises IllegalCombination."""
        if level is None:
            return self.default_level
        if not isinstance(level, int) or level not in self.levels:
            range_text = f"{self.levels[0]} to {self.levels[-1]}" if self.levels else "none"
            raise IllegalCombination(f"{self.name} has no level {level} (levels: {range_text})")
        return level

    @abstractmethod
    def compress(self, data: Any, level: int | None = None) -> bytes:
        """`data` (anything with a buffer) as one compressed payload."""

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        """The plain bytes. Raises Undecodable."""
        tally = _Tally(limit_bytes, wanted_bytes=limit_bytes + 1)
        try:
            return b"".join(self._parts(bytes(data), tally))
        except Undecodable as error:
            error.spent_bytes = max(error.spent_bytes, limit_bytes - tally.left_bytes)
            raise

    def stream(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Stream:
        """The plain bytes from their beginning, for who needs no more than that."""
        return Stream(self, data, limit_bytes)

    @abstractmethod
    def _parts(self, data: Buffer, tally: _Tally) -> Iterator[bytes]:
        """The plain bytes, in parts of about the wanted size where the codec can stop anywhere. Raises Undecodable."""


def _within(size: int, limit_bytes: int, spent_bytes: int = 0) -> None:
    if size > limit_bytes:
        raise _undecodable(f"grows past the limit of {limit_bytes} bytes", spent_bytes, is_past_limit=True)


def _undecodable(why: str, spent_bytes: int, is_past_limit: bool) -> Undecodable:
    """To be raised where it is made: in a variable there, its traceback would keep the callers' frames, and all that
    they hold, until the collector runs."""
    error = Undecodable(why)
    error.spent_bytes, error.is_past_limit = spent_bytes, is_past_limit
    return error


class NoCodec(Codec):
    name, id = "none", 0

    def compress(self, data: Any, level: int | None = None) -> bytes:
        self.check_level(level)
        return bytes(data)

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        _within(len(data), limit_bytes)
        return bytes(data)

    def _parts(self, data: Buffer, tally: _Tally) -> Iterator[bytes]:
        while tally.taken_bytes < len(data):
            part = bytes(data[tally.taken_bytes : tally.taken_bytes + tally.wanted_bytes])
            tally.note(len(part), tally.taken_bytes + len(part))
            yield part


class Gzip(Codec):
    """`GZIPOutputStream`: RFC 1952, no name, no time, operating system unknown. Readers take several members.

    The header is that of JDK 16 and newer; before, the operating system was 0.
    """

    name, id, levels, default_level = "gzip", 1, range(1, 10), 6
    HEADER: Final = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    LEAST_BYTES: Final = 256  # of compressed bytes to look at, for a header
    CLASSIC_CRC: Final = 0xD2F216CF  # of the sample's gzip member behind the header

    @property
    def version(self) -> str:
        return f"zlib {zlib.ZLIB_RUNTIME_VERSION}"

    @property
    def is_classic(self) -> bool:
        """True where zlib deflates a sample as classic zlib does, the JDK's. zlib-ng and others write other bytes."""
        sample = b"".join(b'{"user":%d,"page":"/item/%d"}' % (i % 97, i * i % 1009) for i in range(2000))
        return zlib.crc32(self.compress(sample)[len(self.HEADER) :]) == self.CLASSIC_CRC

    def compress(self, data: Any, level: int | None = None) -> bytes:
        member = zlib.compress(data, self.check_level(level) or 6, wbits=31)
        return self.HEADER + member[len(self.HEADER) :]  # zlib's names the system and, at some levels, the effort

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        member = zlib.decompressobj(wbits=31)
        with suppress(zlib.error):
            plain = member.decompress(data, limit_bytes + 1)
            if member.eof and not member.unused_data and len(plain) <= limit_bytes:
                return plain  # one member is the rule, and worth not taking apart: a quarter faster at 1 KiB
        return super().decompress(data, limit_bytes)

    def _parts(self, data: Buffer, tally: _Tally) -> Iterator[bytes]:
        at, step = 0, len(data)
        while True:
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                if at >= len(data):
                    raise Undecodable("gzip: the stream is cut short")
                # Deflated bytes rarely are more than the plain ones; zlib copies what it was given and did not use.
                piece = data[at : at + min(step, tally.wanted_bytes + self.LEAST_BYTES)]
                try:
                    part = member.decompress(piece, min(tally.wanted_bytes, tally.left_bytes + 1))
                except zlib.error as error:
                    raise Undecodable(f"gzip: {error}") from None
                unused = member.unused_data if member.eof else member.unconsumed_tail  # at the end both may be set
                at, step = at + len(piece) - len(unused), 2 * step
                tally.note(len(part), at)
                yield part
            if data[at : at + 2] != b"\x1f\x8b":  # as GZIPInputStream: what follows and is no member is ignored
                return
            step = 1024  # all the rest, copied for each of many small members, takes for ever


class Snappy(Codec):
    """The xerial stream of snappy-java: a 16-byte header, then blocks of at most 32 KiB, each behind its i32 length.

    Readers also take one raw snappy block, as `SnappyInputStream` does.
    """

    name, id, library = "snappy", 2, "cramjam"
    MAGIC: Final = b"\x82SNAPPY\x00"
    HEADER: Final = MAGIC + (1).to_bytes(4, "big") * 2  # version, and the oldest version that can read it
    BLOCK_BYTES: Final = 32 << 10

    def compress(self, data: Any, level: int | None = None) -> bytes:
        self.check_level(level)
        view = memoryview(data)
        parts = [self.HEADER]
        for start in range(0, len(view), self.BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(view[start : start + self.BLOCK_BYTES]))
            parts += [len(block).to_bytes(4, "big"), block]
        return b"".join(parts)

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        raw, parts, left = bytes(data), [], limit_bytes
        for start, end in self._blocks(raw):
            parts.append(self._block(raw[start:end], left))
            left -= len(parts[-1])
        return b"".join(parts)

    def _parts(self, data: Buffer, tally: _Tally) -> Iterator[bytes]:
        for start, end in self._blocks(data):
            plain = self._block(data[start:end], tally.left_bytes)
            tally.note(len(plain), end)
            yield plain

    @staticmethod
    def _block(block: Buffer, left_bytes: int) -> bytes:
        try:
            size, _ = get_uvarint(block)
        except ValueError:
            raise Undecodable("snappy: a block without its size") from None
        # A copy of 64 bytes takes 3 bytes at least: a larger claim is a lie, not worth allocating for.
        if size > 64 * len(block):
            raise Undecodable(f"snappy: {len(block)} bytes cannot hold the {size} that they claim")
        _within(size, left_bytes)
        try:
            return bytes(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError as error:
            raise Undecodable(f"snappy: {error}") from None

    def _blocks(self, data: Buffer) -> Iterator[tuple[int, int]]:
        if data[:8] != self.MAGIC:
            yield 0, len(data)
            return
        at = self._after_header(data, 0)
        while at < len(data):
            if data[at : at + 8] == self.MAGIC:  # a stream may follow a stream
                at = self._after_header(data, at)
                continue
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            at += 4
            if size < 0 or size > len(data) - at:
                raise Undecodable("snappy: a block runs past the end")
            yield at, at + size
            at += size

    def _after_header(self, data: Buffer, at: int) -> int:
        end = at + len(self.HEADER)
        if end > len(data):
            raise Undecodable("snappy: the stream header is cut short")
        # snappy-java does not look at the first header's version.
        if at and int.from_bytes(data[at + len(self.MAGIC) : end - 4], "big", signed=True) < 1:
            raise Undecodable("snappy: a stream of an incompatible version")
        return end


class Lz4(Codec):
    """`Lz4BlockOutputStream`: one frame of independent 64 KiB blocks, no content checksum, no content size.

    Readers refuse blocks that depend on each other and stop after the first frame, as Kafka's do.
    """

    name, id, levels, default_level, library = "lz4", 3, range(1, 18), 9, "lz4"
    MAGIC: Final = b"\x04\x22\x4d\x18"
    FLAGS_AT: Final = 4
    HEADER: Final = MAGIC + b"\x60\x40\x82"  # flags, block size, and their checksum
    BLOCK_BYTES: Final = 64 << 10
    LEAST_FRAME_LEVEL: Final = 3  # of the "high" compressor in frames of lz4's C library
    MOST_EXPANSION: Final = 256
    STORED: Final = 1 << 31

    def compress(self, data: Any, level: int | None = None) -> bytes:
        level = self.check_level(level) or 0
        if level < self.LEAST_FRAME_LEVEL:
            return self._high_frame(memoryview(data), level)
        frame: bytes = lz4.frame.compress(
            data,
            # As Lz4BlockOutputStream: the default level means the fast compressor, any other the "high" one.
            compression_level=0 if level == self.default_level else level,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            content_checksum=False,
            store_size=False,
        )
        return frame

    def _high_frame(self, data: memoryview, level: int) -> bytes:
        """Write a frame with the "high" compressor at a level that the library's frames take for the fast one."""
        parts = [self.HEADER]
        for start in range(0, len(data), self.BLOCK_BYTES):
            plain = data[start : start + self.BLOCK_BYTES]
            block = lz4.block.compress(plain, mode="high_compression", compression=level, store_size=False)
            is_smaller = len(block) < len(plain)
            size = len(block) if is_smaller else len(plain) | self.STORED
            parts += [size.to_bytes(4, "little"), block if is_smaller else bytes(plain)]
        return b"".join([*parts, bytes(4)])

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        raw = bytes(data)
        if len(raw) * self.MOST_EXPANSION > limit_bytes:
            return super().decompress(raw, limit_bytes)
        header_bytes = self._header_bytes(raw, limit_bytes)
        try:  # in one call, as it cannot grow past the limit: 20 times faster at 1 KiB
            plain: bytes = lz4.frame.decompress(self._readable(raw, header_bytes))
        except (RuntimeError, EOFError, ValueError) as error:
            raise Undecodable(f"lz4: {error}") from None
        return plain

    def _header_bytes(self, data: Buffer, limit_bytes: int) -> int:
        """The length of the frame's header. Raises Undecodable."""
        if data[:4] != self.MAGIC or len(data) < 7:
            raise Undecodable("lz4: not an lz4 frame")
        flags = data[self.FLAGS_AT]
        if not flags & 0x20:
            raise Undecodable("lz4: blocks depend on each other")
        size = self.FLAGS_AT + 3
        if flags & 0x08:  # the library allocates the content size before it has seen any content
            claimed = int.from_bytes(data[6:14], "little")
            _within(claimed, limit_bytes)
            if claimed > len(data) * self.MOST_EXPANSION:
                raise Undecodable(f"lz4: {len(data)} bytes cannot hold the {claimed} that they claim")
            size += 8
        return size + 4 if flags & 0x01 else size

    def _readable(self, frame: bytes, header_bytes: int) -> bytes:  # noqa: ARG002
        """The frame, or its header alone, as the library takes it."""
        return frame

    def _parts(self, data: Buffer, tally: _Tally) -> Iterator[bytes]:
        start, at = 0, self._header_bytes(data, tally.limit_bytes)
        flags, block_bytes = data[self.FLAGS_AT], 256 << 2 * (data[self.FLAGS_AT + 1] >> 4 & 7)
        reader = lz4.frame.LZ4FrameDecompressor()
        try:
            while not reader.eof:
                size = int.from_bytes(data[at : at + 4], "little")
                checksum = 4 if flags & (0x10 if size else 0x04) else 0  # of a block; of the content
                end = at + 4 + size % self.STORED + checksum
                if end > len(data):
                    raise Undecodable("lz4: the frame is cut short")
                piece = bytes(data[start:end])
                piece = piece if start else self._readable(piece, at)  # the header goes with the first block
                part = reader.decompress(piece, max_length=min(tally.left_bytes + 1, block_bytes))
                tally.note(len(part), end)
                yield part
                start = at = end
        except (RuntimeError, EOFError, ValueError) as error:
            raise Undecodable(f"lz4: {error}") from None


class LegacyLz4(Lz4):
    """lz4 as v0 has it: the descriptor's checksum wrongly covers the frame's magic too, and readers ignore it."""

    def compress(self, data: Any, level: int | None = None) -> bytes:
        frame = super().compress(data, level)
        return self._sealed(frame, self._header_bytes(frame, 0), start=0)

    def _readable(self, frame: bytes, header_bytes: int) -> bytes:
        return self._sealed(frame, header_bytes, start=self.FLAGS_AT)

    @staticmethod
    def _sealed(frame: bytes, header_bytes: int, start: int) -> bytes:
        end = header_bytes - 1
        checksum = (xxhash.xxh32_intdigest(frame[start:end]) >> 8) & 0xFF
        return frame[:end] + bytes([checksum]) + frame[header_bytes:]


class Zstd(Codec):
    """zstd as Kafka's stream writes it with zstd-jni. Readers take several frames.

    The stream does not know the size of a batch. So it keeps the level's parameters, where a call with all of the data
    tunes them to the size, and writes neither content size nor checksum. Kafka flushes before it closes: the last block
    with data is not marked as the last, and an empty block of 3 bytes follows.
    """

    name, id, levels, default_level, library = "zstd", 4, range(-7, 23), 3, "zstandard"
    CHUNK_BYTES: Final = 64 << 10
    WINDOW_BYTES: Final = 1 << 27

    def __init__(self) -> None:
        self._contexts = threading.local()  # a fresh context costs more than a small batch: 0.5 ms at level 3
        self._idle: list[zstandard.ZstdDecompressor] = []  # of streams: each needs one for as long as it is read

    @property
    def version(self) -> str:
        return f"{super().version} (zstd {'.'.join(map(str, zstandard.ZSTD_VERSION))})"

    def compress(self, data: Any, level: int | None = None) -> bytes:
        stream = self._compressor(self.check_level(level) or 0).compressobj()
        if not len(data):
            return stream.flush()  # nothing was written before the close, so the frame says that it is empty
        return b"".join((stream.compress(data), stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK), stream.flush()))

    def _compressor(self, level: int) -> zstandard.ZstdCompressor:
        """Return this thread's context, set up for `level`.

        Only one level's context is kept, because a large one takes much memory: 90 MiB at level 19, 834 MiB at 22.
        """
        contexts = self._contexts.__dict__
        if contexts.get("level") != level:
            contexts.pop("level", None)
            contexts.pop("compressor", None)  # before the next one takes its memory
            contexts["compressor"] = zstandard.ZstdCompressor(level=level)
            contexts["level"] = level
        return contexts["compressor"]  # type: ignore[no-any-return]

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        if "decompressor" not in self._contexts.__dict__:
            self._contexts.decompressor = zstandard.ZstdDecompressor(max_window_size=self.WINDOW_BYTES)
        raw = bytes(data)
        parts, left = [], limit_bytes
        guess = max(self.CHUNK_BYTES, 4 * len(raw))
        try:
            with self._contexts.decompressor.stream_reader(raw, read_across_frames=True) as reader:
                while part := reader.read(min(guess, left + 1)):
                    _within(len(part), left, spent_bytes=limit_bytes)
                    parts.append(part)
                    left -= len(part)
            for _ in self._blocks(raw):  # zstandard's reader takes a frame that is cut short for a whole one
                pass
        except (zstandard.ZstdError, Undecodable) as error:
            spent_bytes = max(getattr(error, "spent_bytes", 0), limit_bytes - left)
            why = str(error) if isinstance(error, Undecodable) else f"zstd: {error}"
            raise _undecodable(why, spent_bytes, getattr(error, "is_past_limit", False)) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _parts(self, data: Buffer, tally: _Tally) -> Iterator[bytes]:
        try:
            context = self._idle.pop()
        except IndexError:
            context = zstandard.ZstdDecompressor(max_window_size=self.WINDOW_BYTES)
        reader = None
        try:
            for start, end, is_last in self._blocks(data):
                reader = reader or context.decompressobj()
                part = reader.decompress(data[start:end])
                tally.note(len(part), end)
                reader = None if is_last else reader
                yield part
        except zstandard.ZstdError as error:
            raise Undecodable(f"zstd: {error}") from None
        finally:
            self._idle.append(context)

    @staticmethod
    def _blocks(data: Buffer) -> Iterator[tuple[int, int, bool]]:
        """Where each block stands, with its frame's header or checksum if it is the first or last: (start, end, last).

        Raises Undecodable where a block runs past the end.
        """
        at = 0
        while at < len(data):
            if data[at : at + 4] != b"\x28\xb5\x2f\xfd":
                skippable = data[at + 1 : at + 4] == b"\x2a\x4d\x18" and data[at] & 0xF0 == 0x50
                if not skippable:
                    raise Undecodable("zstd: not a zstd frame")
                at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
                continue
            header = data[at : at + 18]
            try:
                end = at + zstandard.frame_header_size(header)
                checksum_bytes = 4 if zstandard.get_frame_parameters(header).has_checksum else 0
            except zstandard.ZstdError as error:
                raise Undecodable(f"zstd: {error}") from None
            is_last = False
            while not is_last:
                fields = int.from_bytes(data[end : end + 3], "little")
                is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
                end += 3 + (1 if kind == 1 else size) + (checksum_bytes if is_last else 0)
                if end > len(data):
                    raise Undecodable("zstd: the frame is cut short")
                yield at, end, is_last
                at = end
        if at > len(data) or not data:
            raise Undecodable("zstd: the frame is cut short")


CODECS: Final[Mapping[str, Codec]] = MappingProxyType(
    {codec.name: codec for codec in (NoCodec(), Gzip(), Snappy(), Lz4(), Zstd())}
)
LEGACY_LZ4: Final = LegacyLz4()


def codec_of(number: int) -> Codec:
    """The codec with that number in the attributes, 0 to 4."""
    return CODECS[CODEC_NAMES[number]]


def find(name: str, level: int | None = None) -> Codec:
    """The codec of that name, with a level that it has. Raises IllegalCombination."""
    if name not in CODECS:
        raise IllegalCombination(f"no codec {name!r} (codecs: {', '.join(CODECS)})")
    CODECS[name].check_level(level)
    return CODECS[name]


def joined(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Payloads one after another: (uint8[size], bounds int64[parts + 1])."""
    bounds = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=bounds[1:])
    return np.frombuffer(b"".join(parts), np.uint8), bounds
