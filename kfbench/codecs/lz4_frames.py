"""lz4 with the framing that Kafka uses, and with the different header checksum of v0."""

from collections.abc import Iterator
from typing import Any, Final

import lz4.block
import lz4.frame
import xxhash

from kfbench.codecs.base import DEFAULT_LIMIT_BYTES, Buffer, ByteCounts, Codec, Undecodable, check_limit


class Lz4(Codec):
    """One frame like that of `Lz4BlockOutputStream`: independent 64 KiB blocks, no content checksum, no content size.

    Like Kafka's readers, ours refuse blocks that depend on each other, and ignore everything after the first frame.
    The end mark may have the bit of stored blocks, and neither the content's size nor its checksum is checked.

    Nothing is kept from batch to batch. But a frame in one call has its context on the C stack and needs no buffer.
    """

    name, id, levels, default_level, library = "lz4", 3, range(1, 18), 9, "lz4"
    MAGIC: Final = b"\x04\x22\x4d\x18"
    FLAGS_AT: Final = 4
    HEADER: Final = MAGIC + b"\x60\x40\x82"  # flags, block size, and their checksum
    BLOCK_BYTES: Final = 64 << 10
    LEAST_FRAME_LEVEL: Final = 3  # the first level at which lz4's C library writes frames with the "high" compressor
    MOST_EXPANSION: Final = 256
    STORED: Final = 1 << 31

    def compress(self, data: Any, level: int | None = None) -> bytes:
        level = self.check_level(level) or 0
        if level < self.LEAST_FRAME_LEVEL:
            return self._frame_of_blocks(memoryview(data), level)
        # As in Lz4BlockOutputStream: the default level is the fast compressor, any other the "high" one.
        return self._frame(data, 0 if level == self.default_level else level)

    def _frame(self, data: Any, level: int) -> bytes:
        frame: bytes = lz4.frame.compress(
            data,
            compression_level=level,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            content_checksum=False,
            store_size=False,
        )
        return frame

    def with_new_contexts(self) -> Codec:
        return NewLz4()

    def _frame_of_blocks(self, data: memoryview, level: int) -> bytes:
        """Write a frame with the "high" compressor at a level below 3, where the library would use the fast one."""
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
        try:  # in one call, because it cannot grow past the limit: 20 times faster at 1 KiB
            plain: bytes = lz4.frame.decompress(self._readable(raw, header_bytes))
        except (RuntimeError, EOFError, ValueError):  # found again below, or a frame that only Kafka reads
            return super().decompress(raw, limit_bytes)
        return plain

    def _header_bytes(self, data: Buffer, limit_bytes: int) -> int:
        """Check the frame's header and return its length in bytes. Raises Undecodable."""
        if data[:4] != self.MAGIC or len(data) < 7:
            raise Undecodable("lz4: not an lz4 frame")
        flags = data[self.FLAGS_AT]
        if not flags & 0x20:
            raise Undecodable("lz4: blocks depend on each other")
        size = self.FLAGS_AT + 3
        if flags & 0x08:  # the library allocates the content size before it has seen any content
            claimed = int.from_bytes(data[6:14], "little")
            check_limit(claimed, limit_bytes)
            if claimed > len(data) * self.MOST_EXPANSION:
                raise Undecodable(f"lz4: {len(data)} bytes cannot hold the {claimed} that they claim")
            size += 8
        return size + 4 if flags & 0x01 else size

    def _readable(self, frame: bytes, _header_bytes: int) -> bytes:
        """Return a frame, or its beginning, in a form that the library accepts.

        `LegacyLz4` corrects the checksum here.
        """
        return frame

    def _parts(self, data: Buffer, tally: ByteCounts) -> Iterator[bytes]:
        at = self._header_bytes(data, tally.limit_bytes)
        flags, block_bytes = data[self.FLAGS_AT], 256 << 2 * (data[self.FLAGS_AT + 1] >> 4 & 7)
        reader = lz4.frame.LZ4FrameDecompressor()
        try:
            reader.decompress(self._readable(bytes(data[:at]), at))
            size = -1
            while size:
                size = int.from_bytes(data[at : at + 4], "little") % self.STORED
                checksum = 4 if flags & (0x10 if size else 0x04) else 0  # bit 4: blocks have one; bit 2: the content
                end = at + 4 + size + checksum
                if end > len(data):
                    raise Undecodable("lz4: the frame is cut short")
                part = b""
                if size:
                    part = reader.decompress(bytes(data[at:end]), max_length=min(tally.left_bytes + 1, block_bytes))
                tally.note(len(part), end)
                yield part
                at = end
        except (RuntimeError, EOFError, ValueError) as error:
            raise Undecodable(f"lz4: {error}") from None


class NewLz4(Lz4):
    """lz4 with a new frame context for each batch, and its buffer of 64 KiB.

    Kafka's `Lz4BlockOutputStream` allocates two such buffers for each batch. Reading is the same as in `Lz4`, which
    makes a frame context for each batch, too.
    """

    def _frame(self, data: Any, level: int) -> bytes:
        context = lz4.frame.create_compression_context()
        head: bytes = lz4.frame.compress_begin(
            context,
            compression_level=level,
            block_size=lz4.frame.BLOCKSIZE_MAX64KB,
            block_linked=False,
            content_checksum=False,
            auto_flush=True,
        )
        return head + lz4.frame.compress_chunk(context, data) + lz4.frame.compress_flush(context)  # type: ignore[no-any-return]


class LegacyLz4(Lz4):
    """The lz4 frame of v0.

    Its header checksum wrongly covers the frame's magic too, and readers ignore the checksum.
    """

    def compress(self, data: Any, level: int | None = None) -> bytes:
        frame = super().compress(data, level)
        return self._with_header_checksum(frame, self._header_bytes(frame, 0), start=0)

    def _readable(self, frame: bytes, header_bytes: int) -> bytes:
        return self._with_header_checksum(frame, header_bytes, start=self.FLAGS_AT)

    @staticmethod
    def _with_header_checksum(frame: bytes, header_bytes: int, start: int) -> bytes:
        """Return the frame with a new header checksum, which covers the header's bytes from byte `start` on."""
        end = header_bytes - 1
        checksum = (xxhash.xxh32_intdigest(frame[start:end]) >> 8) & 0xFF
        return frame[:end] + bytes([checksum]) + frame[header_bytes:]
