"""zstd with a dictionary: `number uvarint, check (3 bytes), lean frame`. Codec 5; docs/dictionaries.md.

number: the dictionary's number in its partition. check: the first bytes of its SHA-256. A lean frame is a zstd frame
without magic, content size, checksum and dictionary ID. It has no empty block at its end, unlike Kafka's zstd frames.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Self

import zstandard

from kfbench.codecs.base import DEFAULT_LIMIT_BYTES, Buffer, ByteCounts, Codec, Undecodable
from kfbench.codecs.dictionary import CHECK_BYTES, MOST_NUMBER, Dictionary, tables_for
from kfbench.codecs.zstd_frames import GROWTH_BITS, Zstd, blocks_from
from kfbench.errors import IllegalCombination
from kfbench.varints import get_uvarint, put_uvarint

LEAN: Final = zstandard.FORMAT_ZSTD1_MAGICLESS
_DESCRIPTOR: Final = b"\0"
_ROW_HASH: Final = zstandard.STRATEGY_GREEDY, zstandard.STRATEGY_LAZY, zstandard.STRATEGY_LAZY2


class UnknownDictionary(Undecodable):
    """A payload that names a dictionary which the reader does not have. number: the dictionary's number."""

    def __init__(self, number: int, why: str) -> None:
        self.number = number
        super().__init__(f"number {number} {why}")


class LeanFrames(Zstd):
    """Lean frames of one dictionary. Contexts and the digested dictionary are kept for the next batch.

    dictionary: None: frames without one, to measure. level: the level of `compress`; None: only `decompress` and
    `stream` are used.
    """

    HEADER_BYTES: Final = 2  # descriptor and window

    def __init__(self, dictionary: Dictionary | None, level: int | None) -> None:
        super().__init__()
        self._digest = None if dictionary is None else dictionary.digest(level)
        self._level = level

    @property
    def size_bytes(self) -> int:
        """The memory of the digested dictionary and of one context, at most.

        Buffers are not counted, because only the pages that a batch fills become resident.
        """
        digest_bytes = 0 if self._digest is None else len(self._digest)
        if self._level is None:
            return digest_bytes + (50 << 10)
        chosen = tables_for(self._level, digest_bytes)
        tables = 4 << chosen.hash_log
        if chosen.strategy in _ROW_HASH and chosen.window_log > 14:
            tables += 1 << chosen.hash_log  # one byte per entry, instead of chains
        elif chosen.strategy != zstandard.STRATEGY_FAST:
            tables += 4 << chosen.chain_log
        return digest_bytes + 2 * (tables + (30 << 10))  # a context has tables of the same size

    def compressobj(self) -> Callable[[], Any]:
        """Return the function with which this thread begins a frame."""
        if self._contexts.compressobj is None:
            self._contexts.compressobj = self._new_compressor(self._level or 0).compressobj
        return self._contexts.compressobj

    def compress(self, data: Any, level: int | None = None) -> bytes:  # noqa: ARG002  (the level is fixed)
        stream = (self._contexts.compressobj or self.compressobj())()
        return stream.compress(data) + stream.flush()  # type: ignore[no-any-return]

    def decompressobj(self) -> Callable[[], Any]:
        """Return the function with which this thread begins to read a frame."""
        return self._contexts.decompressobj or self._begin_reading()

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        is_lean = data[:1] == _DESCRIPTOR
        return super().decompress(data, limit_bytes) if is_lean else self._decompress_in_parts(data, limit_bytes)

    def _new_compressor(self, level: int) -> zstandard.ZstdCompressor:
        wanted = zstandard.ZstdCompressionParameters(
            compression_level=level, format=LEAN, write_content_size=0, write_dict_id=0
        )
        return zstandard.ZstdCompressor(compression_params=wanted, dict_data=self._digest)

    def _new_decompressor(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor(dict_data=self._digest, max_window_size=self.WINDOW_BYTES, format=LEAN)

    @staticmethod
    def _has_one_block(raw: bytes) -> bool:
        if len(raw) < 5 or raw[0]:
            return False
        fields = raw[2] | raw[3] << 8 | raw[4] << 16
        return (fields | 4) == (((len(raw) - 5) << 3) | 5) or (fields & 7 == 3 and len(raw) == 6)  # see Zstd

    @classmethod
    def _blocks(cls, data: Buffer) -> Iterator[tuple[int, int, bool]]:
        if len(data) < cls.HEADER_BYTES:
            raise Undecodable("zstd: the frame is cut short")
        if data[0]:
            raise Undecodable("zstd: the frame has a content size, a checksum or a dictionary ID")
        end = 0
        for start, end, is_last in blocks_from(data, 0, cls.HEADER_BYTES, checksum_bytes=0):
            yield start, end, is_last
        if end < len(data):
            raise Undecodable("zstd: bytes follow the frame")


class FramesCache:
    """The most recently used `LeanFrames`, whose estimated sizes add up to `most_bytes`.

    Each thread has its own, because a context serves one thread at a time. So the limit counts the contexts of all
    threads.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes, self.size_bytes = most_bytes, 0
        self._frames: OrderedDict[tuple[int, bytes, int | None], LeanFrames] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._frames)

    def get(self, dictionary: Dictionary, level: int | None) -> LeanFrames:
        key = threading.get_ident(), dictionary.sha256, level
        with self._lock:
            if key in self._frames:
                self._frames.move_to_end(key)
                return self._frames[key]
        made = LeanFrames(dictionary, level)  # outside the lock, because it takes long
        with self._lock:
            self._frames[key] = made
            self.size_bytes += made.size_bytes
            while self.size_bytes > self.most_bytes and len(self._frames) > 1:
                self.size_bytes -= self._frames.popitem(last=False)[1].size_bytes
        return made

    def clear(self) -> None:
        with self._lock:
            self._frames.clear()
            self.size_bytes = 0


FRAMES: Final = FramesCache(most_bytes=64 << 20)


class _Last(threading.local):
    """The dictionary of the batch before, of one thread. Tuples, because each name of a thread costs 40 ns to look up.

    writer: the level as the caller passed it, or `...` if nothing was written yet; the head; the function that begins
    a frame. reader: the head and the descriptor, or () if nothing was read yet; the position of the frame; the
    function.
    """

    writer: tuple[Any, bytes, Callable[[], Any]] = (..., b"", object)
    reader: tuple[bytes | tuple[()], int, Callable[[], Any]] = ((), 0, object)


class ZstdDictionary(Codec):
    """The codec for batches with these dictionaries.

    dictionaries: by number, for reading. written: the dictionary with which `compress` compresses.
    """

    name, id, levels, default_level, library = "zstd-dictionary", 5, Zstd.levels, Zstd.default_level, Zstd.library

    def __init__(self, dictionaries: Mapping[int, Dictionary], written: Dictionary | None = None) -> None:
        self.dictionaries, self.written = dictionaries, written
        self._last = _Last()

    @classmethod
    def of(cls, dictionary: Dictionary) -> Self:
        """Return the codec that reads and writes with one dictionary."""
        return cls(MappingProxyType({dictionary.number: dictionary}), dictionary)

    def compress(self, data: Any, level: int | None = None) -> bytes:
        asked, head, begin = self._last.writer
        if level is not asked:
            if self.written is None:
                raise IllegalCombination(f"{self.name}: no dictionary to compress with")
            frames = FRAMES.get(self.written, self.check_level(level) or Zstd.default_level)
            _, head, begin = self._last.writer = level, self.written.head, frames.compressobj()
        stream = begin()
        compressed: bytes = head + stream.compress(data) + stream.flush()
        return compressed

    def decompress(self, data: Any, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
        raw = data if type(data) is bytes else bytes(data)
        head, start, begin = self._last.reader
        if raw.startswith(head):
            frame = raw[start:]
            try:
                if len(frame) <= limit_bytes >> GROWTH_BITS or LeanFrames._has_one_block(frame):
                    stream = begin()
                    plain: bytes = stream.decompress(frame)
                    if stream.eof and not stream.unused_data and len(plain) <= limit_bytes:
                        return plain
            except zstandard.ZstdError:  # found again below
                pass
        dictionary, start = self._find(raw)
        frames = FRAMES.get(dictionary, None)
        self._last.reader = dictionary.head + _DESCRIPTOR, start, frames.decompressobj()
        return frames.decompress(raw[start:], limit_bytes)

    def _parts(self, data: Buffer, tally: ByteCounts) -> Iterator[bytes]:
        dictionary, start = self._find(data)
        for part in FRAMES.get(dictionary, None)._parts(data[start:], tally):
            tally.taken_bytes += start
            yield part

    def _find(self, data: Buffer) -> tuple[Dictionary, int]:
        """Return the dictionary that a payload names, and the position of its frame. Raises Undecodable.

        The pair has no names, because creating a NamedTuple takes a part of a small batch's time.
        """
        number = dictionary_number(data)
        start = len(put_uvarint(number)) + CHECK_BYTES
        check = bytes(data[start - CHECK_BYTES : start])
        if not number or start > len(data):
            raise Undecodable("zstd-dictionary: no dictionary is named")
        found = self.dictionaries.get(number)
        if found is None or found.head != data[:start]:
            why = "is missing" if found is None else f"has not the check {check.hex()}: it is another one"
            raise UnknownDictionary(number, why)
        return found, start


def dictionary_number(payload: Buffer) -> int:
    """Return the number of the dictionary that a payload names, 0 to 2**31 - 1. Raises Undecodable."""
    try:
        number, end = get_uvarint(payload)
    except ValueError:
        raise Undecodable("zstd-dictionary: the dictionary number is cut short") from None
    if bytes(payload[:end]) != put_uvarint(number) or number > MOST_NUMBER:
        raise Undecodable(f"zstd-dictionary: the dictionary number is over-long, or above {MOST_NUMBER}")
    return number
