"""gzip with the framing that Kafka uses."""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from kfbench.codecs.base import DEFAULT_LIMIT_BYTES, Buffer, ByteCounts, Codec, Undecodable


class Gzip(Codec):
    """gzip members (complete gzip streams, RFC 1952) with the header that Java's `GZIPOutputStream` writes.

    The header has no name, no time, and "unknown" as operating system, as in JDK 16 and newer; older JDKs wrote
    operating system 0. Readers accept several members in one payload.

    Every call makes a new deflate or inflate state, and Python's zlib cannot keep one. Kafka does the same: its
    `GzipOutputStream` (a `GZIPOutputStream`) has a new `Deflater` for each batch, and `GZIPInputStream` a new
    `Inflater`.
    """

    name, id, levels, default_level = "gzip", 1, range(1, 10), 6
    HEADER: Final = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    MOST_IGNORED: Final = 18  # header and trailer
    LEAST_BYTES: Final = 256  # compressed bytes to read at a time: enough for a header
    CLASSIC_CRC: Final = 0xD2F216CF  # CRC-32 of the sample's gzip member without its header

    @property
    def version(self) -> str:
        return f"zlib {zlib.ZLIB_RUNTIME_VERSION}"

    @property
    def is_classic(self) -> bool:
        """True if zlib compresses a sample to the same bytes as the classic zlib in the JDK. zlib-ng does not."""
        sample = b"".join(b'{"user":%d,"page":"/item/%d"}' % (i % 97, i * i % 1009) for i in range(2000))
        return zlib.crc32(self.compress(sample)[len(self.HEADER) :]) == self.CLASSIC_CRC

    def compress(self, data: Any, level: int | None = None) -> bytes:
        member = zlib.compress(data, self.check_level(level) or 6, wbits=31)
        # zlib's header names the system and, at some levels, the effort.
        return self.HEADER + member[len(self.HEADER) :]

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        member = zlib.decompressobj(wbits=31)
        with suppress(zlib.error):
            plain = member.decompress(data, limit_bytes + 1)
            if member.eof and not member.unused_data and len(plain) <= limit_bytes:
                return plain  # usually there is one member; reading it in one call is a quarter faster at 1 KiB
        return super().decompress(data, limit_bytes)

    def _parts(self, data: Buffer, tally: ByteCounts) -> Iterator[bytes]:
        at, step = 0, len(data)
        while True:
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                if at >= len(data):
                    raise Undecodable("gzip: the stream is cut short")
                # zlib copies the input that it does not use, so it gets little more than it needs: compressed bytes are
                # rarely more than plain ones.
                piece = data[at : at + min(step, tally.wanted_bytes + self.LEAST_BYTES)]
                try:
                    part = member.decompress(piece, min(tally.wanted_bytes, tally.left_bytes + 1))
                except zlib.error as error:
                    raise Undecodable(f"gzip: {error}") from None
                unused = member.unused_data if member.eof else member.unconsumed_tail  # at the end both may be set
                at, step = at + len(piece) - len(unused), 2 * step
                tally.note(len(part), at)
                yield part
            # Like GZIPInputStream: other bytes after a member are ignored, and so are too few bytes for another one.
            if data[at : at + 3] != self.HEADER[:3] or len(data) - at <= self.MOST_IGNORED:
                return
            step = 1024  # else zlib would copy the rest of the payload for each of many small members


class GzipReader:
    """Reads a gzip file of several members and of zeros behind a member, as gzip(1) does. Arrow fails on such zeros.

    `read` raises OSError for damage, after it has returned the text before it. Only text from the same PACKED_BYTES
    bytes of the file as the damage may be lost.
    """

    PACKED_BYTES: Final = 1 << 18  # bytes of the file to read at a time

    def __init__(self, file: Any) -> None:
        self._file, self._member = file, zlib.decompressobj(wbits=31)
        self._packed = file.read(self.PACKED_BYTES)  # the next bytes: behind the last text, the file is at its end

    def read(self, size: int) -> bytes:
        plain = b""
        try:
            while len(plain) < size and self._is_in_member():
                fresh = self._member.decompress(self._packed, size - len(plain))
                if not fresh and not self._packed:
                    break
                plain += fresh
                self._packed = (
                    self._member.unconsumed_tail or self._member.unused_data or self._file.read(self.PACKED_BYTES)
                )
            if not plain and not self._member.eof:
                raise OSError("truncated compressed text")
        except zlib.error:
            if not plain:
                raise OSError("zlib: damaged") from None
        return plain

    def _is_in_member(self) -> bool:
        """Go on to the next member behind one that has ended. False: there is none."""
        while self._member.eof and self._packed:
            if packed := self._packed.lstrip(b"\0"):
                self._member, self._packed = zlib.decompressobj(wbits=31), packed
            else:
                self._packed = self._file.read(self.PACKED_BYTES)
        return not self._member.eof
