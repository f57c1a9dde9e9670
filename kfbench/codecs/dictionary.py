"""Dictionaries for zstd: bytes that are typical of a topic, so that small batches compress well. docs/dictionaries.md.

A dictionary is either trained (a zstd dictionary with entropy tables, RFC 8878 section 5) or raw (any bytes, such as
the newest values of a topic).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Final, Self

import zstandard

from kfbench.errors import InvalidDictionary
from kfbench.varints import put_uvarint

MOST_BYTES: Final = 128 << 10
LEAST_BYTES: Final = 8  # zstd ignores a shorter raw dictionary
LEAST_TRAINED_BYTES: Final = 256  # zstd trains no smaller one
MOST_NUMBER: Final = 2**31 - 1
CHECK_BYTES: Final = 3
MAGIC: Final = b"\x37\xa4\x30\xec"  # of a trained dictionary


@dataclass(frozen=True, kw_only=True)
class TrainedOn:
    """The samples of a trained dictionary. size_bytes: the size of all samples together."""

    format: str
    batch_size: int | None  # records per batch; None: batches of several sizes
    records: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """A dictionary of one partition. Raises InvalidDictionary.

    Attributes:
        number: identifies the dictionary within its partition, 1 to 2**31 - 1.
        data: 8 to 131,072 bytes.
        is_raw: True if `data` is raw content, without a dictionary header and entropy tables.
        trained_on: the samples; None if the dictionary was read from a log or a file. Equality ignores it.
    """

    number: int
    data: bytes
    is_raw: bool = False
    trained_on: TrainedOn | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if type(self.number) is not int or not 1 <= self.number <= MOST_NUMBER:
            raise InvalidDictionary(f"number: 1 to {MOST_NUMBER} is wanted, not {self.number!r}")
        if not isinstance(self.data, bytes):
            raise InvalidDictionary(f"data: bytes are wanted, not {type(self.data).__name__}")
        if not LEAST_BYTES <= len(self.data) <= MOST_BYTES:
            raise InvalidDictionary(f"data: {LEAST_BYTES} to {MOST_BYTES} bytes are wanted, not {len(self.data)}")
        if self.is_raw == self.data.startswith(MAGIC):
            wanted = "not begin with the magic of a trained one" if self.is_raw else "begin with the magic 37a430ec"
            raise InvalidDictionary(f"data: a {'raw' if self.is_raw else 'trained'} dictionary must {wanted}")
        self.digest(level=1)  # checks the entropy tables

    @cached_property
    def sha256(self) -> bytes:
        return sha256(self.data).digest()

    @cached_property
    def head(self) -> bytes:
        """The bytes in front of each frame: the number (uvarint) and the first bytes of the SHA-256."""
        return put_uvarint(self.number) + self.sha256[:CHECK_BYTES]

    @cached_property
    def packed(self) -> bytes:
        """The dictionary as a zstd frame of level 19. A log stores it so."""
        return zstandard.ZstdCompressor(level=19).compress(self.data)

    def digest(self, level: int | None = None) -> zstandard.ZstdCompressionDict:
        """Return the dictionary in the library's form, for compression at `level`; None: for decompression.

        Raises InvalidDictionary for damaged entropy tables.
        """
        kind = zstandard.DICT_TYPE_RAWCONTENT if self.is_raw else zstandard.DICT_TYPE_FULLDICT
        digest = zstandard.ZstdCompressionDict(self.data, dict_type=kind)
        if level is not None:
            try:
                digest.precompute_compress(compression_params=tables_for(level, len(self.data)))
            except zstandard.ZstdError:
                raise InvalidDictionary("data: the header or the entropy tables are damaged") from None
        return digest

    @classmethod
    def train(cls, samples: list[bytes], size_bytes: int, number: int, trained_on: TrainedOn | None = None) -> Self:
        """Train a dictionary of at most `size_bytes` bytes with FASTCOVER. Raises InvalidDictionary for few samples.

        k (the length of a segment in bytes) and d are fixed. All samples are used: zstd's default holds out a quarter,
        which makes batches larger (docs/adr/0015).
        """
        if not isinstance(size_bytes, int) or not LEAST_TRAINED_BYTES <= size_bytes <= MOST_BYTES:
            raise InvalidDictionary(f"size_bytes: {LEAST_TRAINED_BYTES} to {MOST_BYTES} is wanted, not {size_bytes!r}")
        try:
            found = zstandard.train_dictionary(size_bytes, [*samples], k=1024, d=8, split_point=1.0)
        except (zstandard.ZstdError, ValueError) as error:
            size = sum(map(len, samples))
            raise InvalidDictionary(f"{len(samples)} samples of {size} bytes train no dictionary: {error}") from None
        return cls(number=number, data=found.as_bytes(), trained_on=trained_on)


def tables_for(level: int, size_bytes: int) -> zstandard.ZstdCompressionParameters:
    """Return the parameters of a level for a dictionary of this size.

    Levels with two hash tables (3 and 4) get tables of half of zstd's size or less. They take half of the memory, and
    15 % less time at 10 records per batch, for 0.1 to 0.6 % more bytes (docs/adr/0015).
    """
    chosen = zstandard.ZstdCompressionParameters.from_level(level, dict_size=size_bytes)
    if chosen.strategy != zstandard.STRATEGY_DFAST:
        return chosen
    most = max(15, (size_bytes - 1).bit_length())  # one entry per byte
    return zstandard.ZstdCompressionParameters.from_level(
        level, dict_size=size_bytes, hash_log=min(chosen.hash_log, most), chain_log=min(chosen.chain_log, most - 1)
    )


def by_number(dictionaries: Iterable[Dictionary]) -> Mapping[int, Dictionary]:
    """Return the dictionaries by number. Raise InvalidDictionary if two different ones have the same number."""
    found: dict[int, Dictionary] = {}
    for each in dictionaries:
        if not isinstance(each, Dictionary):
            raise InvalidDictionary(f"dictionaries: kfbench.Dictionary is wanted, not {type(each).__name__}")
        if found.setdefault(each.number, each) != each:
            raise InvalidDictionary(f"dictionaries: two different ones have number {each.number}")
    return MappingProxyType(found)
