"""Compression as Kafka frames it: gzip, snappy (xerial stream), lz4 (frame), zstd.

`Compression` and `CompressionType` in `org.apache.kafka.common`. Each codec uses the library that is fastest at small
batches (docs/adr/0002): compressed bytes change with a library's build, so runs record `version`, and nothing asserts
compressed bytes. Decompression never allocates much past its limit, whatever the bytes claim.
"""

import threading
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

import cramjam
import lz4.frame
import numpy as np
import xxhash
import zstandard

from kfbench.errors import IllegalCombination, KfbenchError

CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd", "5", "6", "7")  # by the id in the attributes
DEFAULT_LIMIT_BYTES: Final = 256 << 20  # of one decompressed batch; Kafka's largest sensible batch is far below


LOG_EXPANSION: Final = 256  # a log may decompress to this many times its size, and DEFAULT_LIMIT_BYTES on top


@dataclass(kw_only=True)
class Allowance:
    """How much decompression may give while a log is read: `batch_bytes` a batch, `log_bytes` in all that is left."""

    batch_bytes: int
    log_bytes: int

    @classmethod
    def of(cls, log_size_bytes: int, batch_bytes: int) -> Self:
        return cls(batch_bytes=batch_bytes, log_bytes=batch_bytes + LOG_EXPANSION * log_size_bytes)

    def decompress(self, codec: "Codec", payload: Any) -> bytes:
        """Raises Undecodable."""
        plain = codec.decompress(payload, min(self.batch_bytes, self.log_bytes))
        self.log_bytes -= len(plain)
        return plain


class Undecodable(KfbenchError):
    """Bytes that a codec refuses, or that grow past the limit."""


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

    @abstractmethod
    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        """The plain bytes. Raises Undecodable."""


def _within(size: int, limit_bytes: int) -> None:
    if size > limit_bytes:
        raise Undecodable(f"grows past the limit of {limit_bytes} bytes")


class NoCodec(Codec):
    name, id = "none", 0

    def compress(self, data: Any, level: int | None = None) -> bytes:
        self.check_level(level)
        return bytes(data)

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        _within(len(data), limit_bytes)
        return bytes(data)


class Gzip(Codec):
    """`GZIPOutputStream`: RFC 1952, no name, no time. Readers take several members."""

    name, id, levels, default_level = "gzip", 1, range(1, 10), 6

    @property
    def version(self) -> str:
        return f"zlib {zlib.ZLIB_RUNTIME_VERSION}"

    def compress(self, data: Any, level: int | None = None) -> bytes:
        return zlib.compress(data, self.check_level(level) or 6, wbits=31)

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        raw = bytes(data)
        parts, left, at, step = [], limit_bytes, 0, len(raw)
        while True:
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                if at >= len(raw):
                    raise Undecodable("gzip: the stream is cut short")
                try:
                    part = member.decompress(raw[at : at + step], left + 1)
                except zlib.error as error:
                    raise Undecodable(f"gzip: {error}") from None
                _within(len(part), left)
                parts.append(part)
                left -= len(part)
                at, step = at + step, 2 * step
            at = min(at, len(raw)) - len(member.unused_data)
            if not raw.startswith(b"\x1f\x8b", at):  # as GZIPInputStream: what follows and is no member is ignored
                return b"".join(parts)
            step = 1024  # zlib copies what it has not used: all the rest for each of many small members takes for ever


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
        raw = bytes(data)
        parts, left = [], limit_bytes
        for block in self._blocks(raw):
            try:
                size = _uvarint32(block)
            except ValueError:
                raise Undecodable("snappy: a block without its size") from None
            # A copy of 64 bytes takes 3 bytes at least: a larger claim is a lie, not worth allocating for.
            if size > 64 * len(block):
                raise Undecodable(f"snappy: {len(block)} bytes cannot hold the {size} that they claim")
            _within(size, left)
            try:
                parts.append(bytes(cramjam.snappy.decompress_raw(block)))
            except cramjam.DecompressionError as error:
                raise Undecodable(f"snappy: {error}") from None
            left -= size
        return b"".join(parts)

    def _blocks(self, raw: bytes) -> Iterator[bytes]:
        if not raw.startswith(self.MAGIC):
            yield raw
            return
        at = len(self.HEADER)
        if len(raw) < at:
            raise Undecodable("snappy: the stream header is cut short")
        while at < len(raw):
            if raw.startswith(self.MAGIC, at):  # a stream may follow a stream
                at += len(self.HEADER)
                continue
            size = int.from_bytes(raw[at : at + 4], "big", signed=True)
            at += 4
            if size < 0 or size > len(raw) - at:
                raise Undecodable("snappy: a block runs past the end")
            yield raw[at : at + size]
            at += size


def _uvarint32(data: bytes) -> int:
    value = 0
    for i, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value
    raise ValueError


class Lz4(Codec):
    """`Lz4BlockOutputStream`: one frame of independent 64 KiB blocks, no content checksum, no content size.

    Readers refuse blocks that depend on each other and stop after the first frame, as Kafka's do.
    """

    name, id, levels, default_level, library = "lz4", 3, range(1, 18), 9, "lz4"
    MAGIC: Final = b"\x04\x22\x4d\x18"
    FLAGS_AT: Final = 4
    MOST_EXPANSION: Final = 256
    CHUNK_BYTES: Final = 4 << 20

    def compress(self, data: Any, level: int | None = None) -> bytes:
        level = self.check_level(level) or 0
        frame: bytes = lz4.frame.compress(
            data,
            # As Lz4BlockOutputStream: the default level means the fast compressor, any other the "high" one, which in
            # lz4's C library begins at 3.
            compression_level=0 if level == self.default_level else max(level, 3),
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            content_checksum=False,
            store_size=False,
        )
        return frame

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        raw = bytes(data)
        if not raw.startswith(self.MAGIC) or len(raw) < 7:
            raise Undecodable("lz4: not an lz4 frame")
        if not raw[self.FLAGS_AT] & 0x20:
            raise Undecodable("lz4: blocks depend on each other")
        if raw[self.FLAGS_AT] & 0x08:  # the library allocates the content size before it has seen any content
            claimed = int.from_bytes(raw[6:14], "little")
            _within(claimed, limit_bytes)
            if claimed > len(raw) * self.MOST_EXPANSION:
                raise Undecodable(f"lz4: {len(raw)} bytes cannot hold the {claimed} that they claim")
        try:
            if len(raw) * self.MOST_EXPANSION <= limit_bytes:  # cannot grow past the limit: 20 times faster at 1 KiB
                plain: bytes = lz4.frame.decompress(raw)
                return plain
            return self._in_chunks(raw, limit_bytes)
        except (RuntimeError, EOFError, ValueError) as error:
            raise Undecodable(f"lz4: {error}") from None

    def _in_chunks(self, raw: bytes, limit_bytes: int) -> bytes:
        reader = lz4.frame.LZ4FrameDecompressor()
        parts, left, given = [], limit_bytes, raw
        while not reader.eof:
            part = reader.decompress(given, max_length=min(left + 1, self.CHUNK_BYTES))
            _within(len(part), left)
            if not part and reader.needs_input:
                raise Undecodable("lz4: the frame is cut short")
            parts.append(part)
            left -= len(part)
            given = b""
        return b"".join(parts)


def _descriptor_end(frame: bytes) -> int:
    """Where the frame descriptor's checksum byte stands."""
    flags = frame[Lz4.FLAGS_AT]
    return Lz4.FLAGS_AT + 2 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)


class LegacyLz4(Lz4):
    """lz4 as v0 has it: the descriptor's checksum wrongly covers the frame's magic too, and readers ignore it."""

    def compress(self, data: Any, level: int | None = None) -> bytes:
        return self._sealed(super().compress(data, level), start=0)

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        frame = bytes(data)
        return super().decompress(self._sealed(frame, start=self.FLAGS_AT) if len(frame) > 6 else frame, limit_bytes)

    @staticmethod
    def _sealed(frame: bytes, start: int) -> bytes:
        end = _descriptor_end(frame)
        checksum = (xxhash.xxh32_intdigest(frame[start:end]) >> 8) & 0xFF
        return frame[:end] + bytes([checksum]) + frame[end + 1 :]


class Zstd(Codec):
    """zstd as zstd-jni's stream writes it: no content size, no checksum. Readers take several frames."""

    name, id, levels, default_level, library = "zstd", 4, range(-7, 23), 3, "zstandard"
    CHUNK_BYTES: Final = 64 << 10

    def __init__(self) -> None:
        self._contexts = threading.local()  # a fresh context costs more than a small batch

    def compress(self, data: Any, level: int | None = None) -> bytes:
        level = self.check_level(level)
        compressors = self._contexts.__dict__.setdefault("compressors", {})
        if level not in compressors:
            compressors[level] = zstandard.ZstdCompressor(
                level=level or 0, write_content_size=False, write_checksum=False
            )
        return compressors[level].compress(data)  # type: ignore[no-any-return]

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        if "decompressor" not in self._contexts.__dict__:
            self._contexts.decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        raw = bytes(data)
        parts, left = [], limit_bytes
        guess = min(left + 1, max(self.CHUNK_BYTES, 4 * len(raw)))
        try:
            with self._contexts.decompressor.stream_reader(raw, read_across_frames=True) as reader:
                while part := reader.read(min(guess, left + 1)):
                    _within(len(part), left)
                    parts.append(part)
                    left -= len(part)
        except zstandard.ZstdError as error:
            raise Undecodable(f"zstd: {error}") from None
        plain = parts[0] if len(parts) == 1 else b"".join(parts)
        _complete(raw)
        return plain


def _complete(raw: bytes) -> None:
    """zstandard's reader takes a frame that is cut short for a whole one; the frame's own blocks tell."""
    at = 0
    while at < len(raw):
        if raw[at : at + 4] != b"\x28\xb5\x2f\xfd":
            skippable = raw[at + 1 : at + 4] == b"\x2a\x4d\x18" and raw[at] & 0xF0 == 0x50
            if not skippable:
                raise Undecodable("zstd: not a zstd frame")
            at += 8 + int.from_bytes(raw[at + 4 : at + 8], "little")
            continue
        try:
            header = zstandard.frame_header_size(raw[at : at + 18])
            checksum = zstandard.get_frame_parameters(raw[at : at + 18]).has_checksum
        except zstandard.ZstdError as error:
            raise Undecodable(f"zstd: {error}") from None
        at += header
        last = False
        while not last:
            block = raw[at : at + 3]
            if len(block) < 3:
                raise Undecodable("zstd: the frame is cut short")
            fields = int.from_bytes(block, "little")
            last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
            at += 3 + (1 if kind == 1 else size)
        at += 4 if checksum else 0
    if at > len(raw) or not raw:
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
