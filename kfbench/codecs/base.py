"""The base class of codecs, the class for partial decompression, and the error for bytes that no codec can read."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, ClassVar, Final, TypeAlias

from kfbench.errors import IllegalCombination, KfbenchError
from kfbench.limits import LIMITS
from kfbench.text import size_words

DEFAULT_LIMIT_BYTES: Final = LIMITS.batch_bytes

Level: TypeAlias = int | None  # None: the codec's default
Buffer: TypeAlias = bytes | memoryview  # slicing bytes is faster; a view copies only what is read


class Undecodable(KfbenchError):
    """Bytes that a codec cannot decompress, or that grow beyond the limit.

    spent_bytes: the number of bytes that were decompressed before the error. is_past_limit: True if the limit is the
    reason.
    """

    def __init__(self, why: str, *, spent_bytes: int = 0, is_past_limit: bool = False) -> None:
        super().__init__(why)
        self.spent_bytes, self.is_past_limit = spent_bytes, is_past_limit


def check_limit(size: int, limit_bytes: int, left_bytes: int | None = None, spent_bytes: int = 0) -> None:
    """Raise Undecodable if `size` more bytes exceed the limit.

    left_bytes: the part of the limit that is left; None: all of it. spent_bytes: the bytes decompressed so far.
    """
    if size > (limit_bytes if left_bytes is None else left_bytes):
        why = f"grows past the limit of {size_words(limit_bytes)}"
        raise Undecodable(why, spent_bytes=spent_bytes, is_past_limit=True)


class ByteCounts:
    """Byte counts of one decompression.

    wanted_bytes: decompressed bytes that the caller wants next. left_bytes: decompressed bytes that the limit still
    allows. taken_bytes: compressed bytes that were read so far.
    """

    __slots__ = ("left_bytes", "limit_bytes", "taken_bytes", "wanted_bytes")

    def __init__(self, limit_bytes: int, wanted_bytes: int) -> None:
        self.limit_bytes = self.left_bytes = limit_bytes
        self.wanted_bytes = wanted_bytes
        self.taken_bytes = 0

    def note(self, plain_bytes: int, taken_bytes: int) -> None:
        """Count `plain_bytes` more decompressed bytes. Raise Undecodable if they exceed the limit.

        taken_bytes: the number of compressed bytes that were read so far, in total.
        """
        check_limit(plain_bytes, self.limit_bytes, self.left_bytes, spent_bytes=self.limit_bytes)
        self.left_bytes -= plain_bytes
        self.taken_bytes = taken_bytes


class Stream:
    """A payload that is decompressed only as far as the caller reads.

    Every codec except gzip decompresses whole blocks. Kafka writes snappy in blocks of 32 KiB, lz4 64 KiB, zstd 128
    KiB; a raw snappy payload is one block. Bytes after the last block that was read are ignored. Damage in these bytes
    goes unseen, and so does a checksum at the end of the payload. After Undecodable a stream cannot be read further.
    """

    def __init__(self, codec: "Codec", data: Any, limit_bytes: int) -> None:
        self._tally = ByteCounts(limit_bytes, wanted_bytes=0)
        self._parts = filter(None, codec._parts(memoryview(data), self._tally))
        self._part, self._at = b"", 0  # bytes from _at on were decompressed but not read yet

    @property
    def plain_bytes(self) -> int:
        """The number of bytes that were decompressed so far. It is at least the number of bytes that were read."""
        return self._tally.limit_bytes - self._tally.left_bytes

    @property
    def taken_bytes(self) -> int:
        """The number of compressed bytes of the payload that were used so far."""
        return self._tally.taken_bytes

    def read(self, size_bytes: int) -> bytes:
        """Return the next `size_bytes` decompressed bytes, or fewer at the end of the payload. Raises Undecodable."""
        end = self._at + max(size_bytes, 0)
        if end <= len(self._part):
            plain, self._at = self._part[self._at : end], end
            return plain
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
    """A codec with the framing that Kafka uses.

    name: Kafka's name of the codec. id: its number in the attributes of a batch. levels: the levels that it accepts;
    empty: it has no levels. library: the name of the Python package that compresses.
    """

    name: ClassVar[str]
    id: ClassVar[int]
    levels: ClassVar[range] = range(0)
    default_level: ClassVar[int | None] = None
    library: ClassVar[str | None] = None

    @property
    def version(self) -> str:
        """The library's name and version. Compressed bytes depend on them."""
        return f"{self.library} {version(self.library)}" if self.library else "-"

    def check_level(self, level: int | None) -> int | None:
        """Return the level to use: `level`, or the default level for None. Raises IllegalCombination."""
        if level is None:
            return self.default_level
        if not isinstance(level, int) or level not in self.levels:
            range_text = f"{self.levels[0]} to {self.levels[-1]}" if self.levels else "none"
            raise IllegalCombination(f"{self.name} has no level {level} (levels: {range_text})")
        return level

    def with_new_contexts(self) -> "Codec":
        """Return a codec that writes the same bytes, and makes a new context for each batch as Kafka's clients do.

        It is this codec if it keeps nothing from batch to batch.
        """
        return self

    @abstractmethod
    def compress(self, data: Any, level: int | None = None) -> bytes:
        """Compress `data` (an object with a buffer) into one payload."""

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        """Return the decompressed bytes. Raises Undecodable, also for more than `limit_bytes` bytes."""
        tally = ByteCounts(limit_bytes, wanted_bytes=limit_bytes + 1)
        try:
            return b"".join(self._parts(bytes(data), tally))
        except Undecodable as error:
            error.spent_bytes = max(error.spent_bytes, limit_bytes - tally.left_bytes)
            raise

    def stream(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Stream:
        """Return a stream of the decompressed bytes, for a caller that needs only the beginning."""
        return Stream(self, data, limit_bytes)

    @abstractmethod
    def _parts(self, data: Buffer, tally: ByteCounts) -> Iterator[bytes]:
        """Yield the decompressed bytes in parts. Raises Undecodable.

        A part has about `tally.wanted_bytes` bytes if the codec can stop there.
        """


class NoCodec(Codec):
    name, id = "none", 0

    def compress(self, data: Any, level: int | None = None) -> bytes:
        self.check_level(level)
        return bytes(data)

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        check_limit(len(data), limit_bytes)
        return bytes(data)

    def _parts(self, data: Buffer, tally: ByteCounts) -> Iterator[bytes]:
        while tally.taken_bytes < len(data):
            part = bytes(data[tally.taken_bytes : tally.taken_bytes + tally.wanted_bytes])
            tally.note(len(part), tally.taken_bytes + len(part))
            yield part
