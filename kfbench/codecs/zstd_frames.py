"""zstd with the framing that Kafka uses."""

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import zstandard

from kfbench.codecs.base import DEFAULT_LIMIT_BYTES, Buffer, ByteCounts, Codec, Undecodable, check_limit
from kfbench.text import size_words

_KAFKA_HEAD: Final = b"\x28\xb5\x2f\xfd\0"  # magic and descriptor
_EMPTY_BLOCK: Final = b"\x01\x00\x00"  # the last one
GROWTH_BITS: Final = 15  # a block of 4 bytes decompresses to at most 128 KiB, and no block grows more
_FLUSH_BLOCK: Final = zstandard.COMPRESSOBJ_FLUSH_BLOCK  # a global name is found faster


class Contexts(threading.local):
    """A thread's contexts: functions that begin a stream. None or `...`: not made yet.

    asked: the level that the caller passed, None for the default; level: the level that it stands for.
    """

    asked: Any = ...
    level: int | None = None
    compressobj: Callable[[], Any] | None = None
    decompressobj: Callable[[], Any] | None = None
    decompressor: zstandard.ZstdDecompressor | None = None


class Zstd(Codec):
    """zstd frames like those of Kafka's output stream, which uses zstd-jni. Readers accept several frames.

    The stream does not know the size of a batch, so it uses the level's default parameters. (Compressing all data in
    one call would tune the parameters to the size.) The stream writes neither content size nor checksum. Kafka flushes
    the stream before it closes it. So the last block with data is not marked as the last, and an empty block of 3 bytes
    follows.
    """

    name, id, levels, default_level, library = "zstd", 4, range(-7, 23), 3, "zstandard"
    MAGIC: Final = b"\x28\xb5\x2f\xfd"
    CHUNK_BYTES: Final = 64 << 10
    WINDOW_BYTES: Final = 1 << 27

    def __init__(self) -> None:
        self._contexts = Contexts()  # a new context costs more than a small batch: 0.5 ms at level 3
        self._idle: list[zstandard.ZstdDecompressor] = []  # for streams: each needs one while it is read

    @property
    def version(self) -> str:
        return f"{super().version} (zstd {'.'.join(map(str, zstandard.ZSTD_VERSION))})"

    def compress(self, data: Any, level: int | None = None) -> bytes:
        contexts = self._contexts
        if level is not contexts.asked:  # small integers are the same object; others only take longer
            self._set_level(level)
        stream = contexts.compressobj()  # type: ignore[misc]
        if not len(data):
            return stream.flush()  # type: ignore[no-any-return]  # like Kafka's stream if nothing was written before
        return stream.compress(data) + stream.flush(_FLUSH_BLOCK) + stream.flush()  # type: ignore[no-any-return]

    def _set_level(self, level: int | None) -> None:
        """Make this thread's compression context for `level`.

        A thread keeps only one context, because contexts may be large: 90 MiB at level 19, 834 MiB at level 22.
        """
        contexts, number = self._contexts, self.check_level(level) or 0
        if contexts.compressobj is None or contexts.level != number:
            contexts.asked, contexts.compressobj = ..., None  # freed before the next one allocates its memory
            contexts.compressobj, contexts.level = self._new_compressor(number).compressobj, number
        contexts.asked = level

    def with_new_contexts(self) -> Codec:
        return NewZstd()

    def _new_compressor(self, level: int) -> zstandard.ZstdCompressor:
        return zstandard.ZstdCompressor(level=level)

    def _new_decompressor(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor(max_window_size=self.WINDOW_BYTES)

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        raw = data if type(data) is bytes else bytes(data)
        if len(raw) <= limit_bytes >> GROWTH_BITS or self._has_one_block(raw):
            stream = (self._contexts.decompressobj or self._begin_reading())()  # half the time of `stream_reader`
            try:
                plain: bytes = stream.decompress(raw)
                if stream.eof and not stream.unused_data and len(plain) <= limit_bytes:
                    return plain
            except zstandard.ZstdError:  # found again below; `contextlib.suppress` takes longer
                pass
        return self._decompress_in_parts(raw, limit_bytes)

    def _begin_reading(self) -> Callable[[], Any]:
        """Make this thread's decompression context. Return the function that begins a frame."""
        self._contexts.decompressor = self._new_decompressor()
        begin = self._contexts.decompressobj = self._contexts.decompressor.decompressobj
        return begin

    def _decompress_in_parts(self, raw: bytes, limit_bytes: int) -> bytes:
        if self._contexts.decompressor is None:
            self._begin_reading()
        decompressor: Any = self._contexts.decompressor
        parts, left = [], limit_bytes
        part_bytes = max(self.CHUNK_BYTES, 4 * len(raw))
        try:
            with decompressor.stream_reader(raw, read_across_frames=True) as reader:
                while part := reader.read(min(part_bytes, left + 1)):
                    check_limit(len(part), limit_bytes, left, spent_bytes=limit_bytes)
                    parts.append(part)
                    left -= len(part)
            for _ in self._blocks(raw):  # zstandard's reader accepts a frame that is cut short
                pass
        except (zstandard.ZstdError, Undecodable) as error:
            raise Undecodable(
                str(error) if isinstance(error, Undecodable) else self._why(error),
                spent_bytes=max(getattr(error, "spent_bytes", 0), limit_bytes - left),
                is_past_limit=getattr(error, "is_past_limit", False),
            ) from None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _why(self, error: zstandard.ZstdError) -> str:
        limit = f" (a window above {size_words(self.WINDOW_BYTES)})" if "too much memory" in str(error) else ""
        return f"zstd: {error}{limit}"

    @staticmethod
    def _has_one_block(raw: bytes) -> bool:
        """Return True for a frame of Kafka's stream with one block, so that it decompresses to 128 KiB at most."""
        if not raw.startswith(_KAFKA_HEAD) or not raw.endswith(_EMPTY_BLOCK) or len(raw) < 12:
            return False
        fields = raw[6] | raw[7] << 8 | raw[8] << 16
        # Bit 0: is last. Bits 1 and 2: the kind; 0 plain, 2 compressed, 1 one byte that is repeated. Then the size.
        return (fields | 4) == (((len(raw) - 12) << 3) | 4) or (fields & 7 == 2 and len(raw) == 13)

    def _parts(self, data: Buffer, tally: ByteCounts) -> Iterator[bytes]:
        try:
            context = self._idle.pop()
        except IndexError:
            context = self._new_decompressor()
        reader = None
        try:
            for start, end, is_last in self._blocks(data):
                reader = reader or context.decompressobj()
                part = reader.decompress(data[start:end])
                tally.note(len(part), end)
                reader = None if is_last else reader
                yield part
        except zstandard.ZstdError as error:
            raise Undecodable(self._why(error)) from None
        finally:
            self._idle.append(context)

    @classmethod
    def _blocks(cls, data: Buffer) -> Iterator[tuple[int, int, bool]]:
        """Yield (start, end, is_last) of each block: byte positions, and True for the last block of a frame.

        The first block of a frame includes the frame's header, the last one its checksum. Raise Undecodable if a block
        ends after the data. The tuples have no names, because creating a NamedTuple takes a tenth of a small batch's
        time.
        """
        at = 0
        while at < len(data):
            if data[at : at + 4] != cls.MAGIC:
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
            for block in blocks_from(data, at, end, checksum_bytes):
                yield block
                at = block[1]
        if at > len(data) or not data:
            raise Undecodable("zstd: the frame is cut short")


class NewZstd(Zstd):
    """zstd with a new ZSTD_CCtx or ZSTD_DCtx for each batch, which has to allocate and clear its tables.

    Kafka does so: `ZstdCompression.wrapForOutput` makes a `ZstdOutputStreamNoFinalizer` of zstd-jni for each batch,
    which calls ZSTD_createCStream and frees it at the end; `wrapForInput` makes a `ZstdInputStreamNoFinalizer`.
    """

    def compress(self, data: Any, level: int | None = None) -> bytes:
        self._contexts.asked, self._contexts.compressobj = ..., None
        return super().compress(data, level)

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        self._contexts.decompressor = self._contexts.decompressobj = None
        return super().decompress(data, limit_bytes)


def blocks_from(data: Buffer, start: int, at: int, checksum_bytes: int) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, is_last) of each block of the frame that begins at byte `start`. See `Zstd._blocks`.

    at: the position of the first block. checksum_bytes: the size of the frame's checksum.
    """
    is_last = False
    while not is_last:
        fields = int.from_bytes(data[at : at + 3], "little")
        is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        at += 3 + (1 if kind == 1 else size) + (checksum_bytes if is_last else 0)
        if at > len(data):
            raise Undecodable("zstd: the frame is cut short")
        yield start, at, is_last
        start = at
