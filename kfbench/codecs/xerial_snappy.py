"""snappy with the framing that Kafka uses."""

from collections.abc import Iterator
from typing import Any, Final

import cramjam

from kfbench.codecs.base import DEFAULT_LIMIT_BYTES, Buffer, ByteCounts, Codec, Undecodable, check_limit
from kfbench.varints import get_uvarint


class Snappy(Codec):
    """The xerial stream of snappy-java: a 16-byte header, then blocks.

    A block is an i32 length and compressed bytes of at most 32 KiB of input. Readers also accept one raw snappy block
    without a header, like `SnappyInputStream`.

    snappy has no context to keep. Kafka makes a `SnappyOutputStream` for each batch, which reuses its buffers.
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
        try:  # without a tally, which takes 1 µs
            for start, end in self._blocks(raw):
                parts.append(self._block(raw[start:end], limit_bytes, left))
                left -= len(parts[-1])
        except Undecodable as error:
            error.spent_bytes = limit_bytes - left
            raise
        return b"".join(parts)

    def _parts(self, data: Buffer, tally: ByteCounts) -> Iterator[bytes]:
        for start, end in self._blocks(data):
            plain = self._block(data[start:end], tally.limit_bytes, tally.left_bytes)
            tally.note(len(plain), end)
            yield plain

    @staticmethod
    def _block(block: Buffer, limit_bytes: int, left_bytes: int) -> bytes:
        try:
            size, _ = get_uvarint(block)
        except ValueError:
            raise Undecodable("snappy: a block without its size") from None
        # A copy of 64 bytes takes at least 3: a larger claim is false, and nothing is allocated for it.
        if size > 64 * len(block):
            raise Undecodable(f"snappy: {len(block)} bytes cannot hold the {size} that they claim")
        check_limit(size, limit_bytes, left_bytes)
        try:
            return bytes(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError as error:
            raise Undecodable(f"snappy: {error}") from None

    def _blocks(self, data: Buffer) -> Iterator[tuple[int, int]]:
        """Yield (first byte, byte after the last) of each compressed block."""
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
        """Check the stream header at byte `at` and return the position after it."""
        end = at + len(self.HEADER)
        if end > len(data):
            raise Undecodable("snappy: the stream header is cut short")
        # snappy-java ignores the version in the first header, and checks it in later ones.
        if at and int.from_bytes(data[at + len(self.MAGIC) : end - 4], "big", signed=True) < 1:
            raise Undecodable("snappy: a stream of an incompatible version")
        return end
