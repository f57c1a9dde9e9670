"""The allowance of a log: the numbers of bytes, records and headers that its reader may still allocate.

It also holds the zstd dictionaries that the reader may use.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self

from kfbench.codecs.base import Codec, Undecodable
from kfbench.codecs.dictionary import Dictionary, by_number
from kfbench.codecs.zstd_dictionary import ZstdDictionary
from kfbench.errors import InvalidConfig, InvalidDictionary
from kfbench.limits import LIMITS, Limits
from kfbench.text import size_words

_NO_DICTIONARIES: Final = ZstdDictionary(MappingProxyType({}))


@dataclass(kw_only=True, slots=True)
class Allowance:
    """The numbers of bytes, records and headers that a reader may still allocate for one log. Reading lowers them.

    Attributes:
        limits: the limits of each batch.
        limit_bytes: bytes to which all batches may decompress.
        log_bytes: the part of these bytes that is left.
        log_records: records of formats where a record may take 0 bytes.
        log_headers: headers that may take 0 bytes, such as v3's that are stored once per batch.
        log_header_bytes: bytes of header values that are made of templates (text with placeholders).
        built_bytes: bytes of batches that are written in another format, before compression.
        dictionary_codec: the codec of batches with a dictionary, and its dictionaries.
    """

    limits: Limits
    limit_bytes: int
    log_bytes: int
    log_records: int
    log_headers: int
    log_header_bytes: int
    built_bytes: int
    dictionary_codec: ZstdDictionary

    @classmethod
    def of(cls, log_size_bytes: int, limits: Limits | None, dictionaries: Iterable[Dictionary] = ()) -> Self:
        """Return the whole allowance of a log.

        Raises InvalidConfig for `limits`, and InvalidDictionary for `dictionaries` (no list, or two with one number).
        """
        if limits is None:
            limits = LIMITS
        elif not isinstance(limits, Limits):
            raise InvalidConfig(f"limits: kfbench.Limits is wanted, not {type(limits).__name__}")
        if not isinstance(dictionaries, Iterable):
            kind = type(dictionaries).__name__
            raise InvalidDictionary(f"dictionaries: a list of kfbench.Dictionary is wanted, not {kind}")
        has_none = isinstance(dictionaries, tuple) and not dictionaries
        log_bytes = limits.log_bytes(log_size_bytes)
        return cls(
            limits=limits,
            limit_bytes=log_bytes,
            log_bytes=log_bytes,
            log_records=limits.log_records(log_size_bytes),
            log_headers=limits.log_headers(log_size_bytes),
            log_header_bytes=log_bytes,
            built_bytes=log_bytes,
            dictionary_codec=_NO_DICTIONARIES if has_none else ZstdDictionary(by_number(dictionaries)),
        )

    def read_again(self, before: Self) -> None:
        """Reset all values that reading lowers to those of `before`, a copy that was made earlier.

        Bytes that are read a second time then count only once.
        """
        self.log_bytes, self.log_records = before.log_bytes, before.log_records
        self.log_headers, self.log_header_bytes = before.log_headers, before.log_header_bytes

    def decompress(self, codec: Codec, payload: Any, most_bytes: int | None = None) -> bytes:
        """Decompress a payload to at most `most_bytes` bytes, and subtract its decompressed size from `log_bytes`.

        If decompression fails, subtract the bytes that were decompressed before. Raises Undecodable.
        """
        limit_bytes = self.next_bytes if most_bytes is None else min(most_bytes, self.next_bytes)
        try:
            plain = codec.decompress(payload, limit_bytes)
        except Undecodable as error:
            self.name_limit(error, limit_bytes)
            self.log_bytes -= error.spent_bytes
            raise
        self.log_bytes -= len(plain)
        return plain

    def name_limit(self, error: Undecodable, limit_bytes: int) -> None:
        """Let the error of a payload name the limit of the log, if it was refused at the bytes that are left of that.

        limit_bytes: the bytes that the payload might take. Call this before `log_bytes` changes.
        """
        if error.is_past_limit and limit_bytes == self.log_bytes != self.limits.batch_bytes:
            limit = f"{size_words(self.limit_bytes)} for all batches of a log of this size (limits.log_expansion)"
            error.args = (f"grows past the limit of {limit}",)

    @property
    def next_bytes(self) -> int:
        """The largest number of bytes to which the next batch may decompress."""
        return min(self.limits.batch_bytes, self.log_bytes)
