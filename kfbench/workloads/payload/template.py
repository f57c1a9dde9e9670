"""Generate keys, values and header values from templates: literal text with slots (placeholders) for random content.

Literal text, such as field names, repeats from record to record, but the content of slots does not. So larger batches
compress better, as on real topics. (Random and half-random payloads do not show this.) Slots are in angle brackets
(`<<` is a literal `<`):

    <5d>              5 random characters: d digits, x hex, a and A letters, w letters and digits, b base64url, raw any
                      byte, zeros the byte 0. Without a number the slot is elastic: its length is chosen so that the
                      record gets its wanted length
    <uuid>            a random UUID of version 4: 36 characters
    <GET|POST|PUT>    one of up to 256 words. The k-th is about 1/k as likely as the first. Words may differ in width or
                      be empty. If a word is listed twice, its probabilities add up
    <int 1..5000>     a decimal number in this range. `<int 1..5000 low>`: small numbers are more likely (the cube of a
                      uniform draw). `<int -40..60 drift>`: near the numbers of neighbouring records. It moves from one
                      random level to the next over 64 records, with noise of a sixteenth of the range
    <count 1000>      a number that rises by 1 per record, from 1000 on. `<count 1000 step 40>`: by 40 on average
    <id 6>            six digits that depend on the key's id. Ids below 10**6 have distinct digits
    <time iso>        the record's timestamp, such as 2026-01-01T00:00:00.000Z. clf: 01/Jan/2026:00:00:00 +0000; s, ms:
                      seconds and ms since 1970. `<time ms -50>`: a random time up to 50 ms before the timestamp
    <text>            random phrases with a skewed choice, elastic. `<text 20..80>`: with a length in this range

A head before the slot, `<$NAME HOW:SLOT>`, gives the slot a name. HOW says what its random content depends on:

    <$user:8x> … <$user>       the second slot repeats the bytes of the first
    <$user of 90:8x> … <$user:Android|iOS>   the second slot has other bytes, but the same user has the same bytes
    <$ of 100:8x>              one of 100 values. The k-th is about 1/k as likely as the first
    <$ every 20:8x>            the same bytes for 20 neighbouring records, then other bytes
    <$ key:Berlin|Paris>       the same bytes for all records of a key. A slot with a name has the same draws in a
                               record's key, value and headers
    <$ even:a|b|c>             all words are equally likely

`key` or `every` may come before `of`, and a name before both: `<$session every 20 of 1000:uuid>`.

A record's bytes depend only on the seed, the purpose (the number of a stream of random draws), and the record's number,
key, timestamp and length. Elastic slots fill the record up to its wanted length, and share the room evenly. If the rest
of the record is already longer than the wanted length, its end is cut.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int32, Int64, check_buffer, read_only
from kfbench.errors import InvalidConfig
from kfbench.kernels.workload import templates as kernels
from kfbench.workloads.base import TextColumn
from kfbench.workloads.grid import START_OF_2026_MS
from kfbench.workloads.payload.parser import Parser, shown

SCRATCH: Final = 1_024  # records at a time: 24 KiB


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    """A compiled template: literal text with slots. A record here is one text that it generates.

    Args:
        text: the text of the template.
        least_bytes: the length of the shortest possible record if all elastic slots are empty.
        most_bytes: the length of the longest possible record if all elastic slots are empty.
        elastic_slots: the number of elastic slots.
    """

    text: str
    least_bytes: int
    most_bytes: int
    elastic_slots: int
    _ops: NDArray[Any] = field(repr=False)
    _varying: Int64 = field(repr=False)
    _bytes: Bytes = field(repr=False)
    _words: NDArray[Any] = field(repr=False)
    _picks: Bytes = field(repr=False)
    _widths: Int32 = field(repr=False)
    _steps: NDArray[Any] = field(repr=False)
    _fixed_bytes: int = field(repr=False)

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> Self:
        """Compile a template. Raises InvalidConfig with the position (from 1) of an invalid slot."""
        return cls(text=text, **Parser(text).program())

    @property
    def elastic(self) -> bool:
        """True if the template can generate records of any length from `most_bytes` on."""
        return self.elastic_slots > 0

    def room_bytes(self, total_bytes: int) -> int:
        """Return the buffer size that `fill` needs for records with `total_bytes` bytes in total.

        It is larger than `total_bytes`, because `fill` writes past the end of a record before the next one.
        """
        return total_bytes + self.most_bytes + kernels.SLACK_BYTES

    def natural(self, seed: int, purpose: int, numbers: Int64, *, keys: Int64 | None = None) -> Int32:
        """Return the natural length of each record, with empty elastic slots: int32[n].

        Arguments are explained at `fill`.
        """
        numbers = _column(numbers, np.int64)
        if self.least_bytes == self.most_bytes:
            return np.full(len(numbers), self.least_bytes, np.int32)
        lengths = np.empty(len(numbers), np.int32)
        kernels.natural(
            self._ops, self._varying, self._widths, self._steps, seed, purpose, self._fixed_bytes,
            numbers, numbers if keys is None else _column(keys, np.int64), np.empty(3 * SCRATCH, np.uint64), lengths,
        )  # fmt: skip
        return lengths

    def fill(
        self,
        seed: int,
        purpose: int,
        numbers: Int64,
        lengths: Int32 | None = None,
        *,
        keys: Int64 | None = None,
        timestamps_ms: Int64 | None = None,
        out: Bytes | None = None,
    ) -> TextColumn:
        """Generate records, one after another in one buffer. Return the bytes and the start of each record.

        Args:
            seed: the seed of the workload.
            purpose: the number of a stream of random draws.
            numbers: int64[n], one number per record that its random content depends on. For values, it is the number of
                the record. For keys, it is the id of the key, so that equal keys have equal bytes.
            lengths: int32[n], the wanted length of each record, -1 for a null; None: natural lengths.
            keys: int64[n], key ids for slots that depend on the key; None: `numbers`.
            timestamps_ms: int64[n], timestamps for `<time>` slots; None: the start of 2026 plus 1 ms per number.
            out: uint8, a buffer of at least `room_bytes` to write into; None: a new buffer.

        Raises InvalidConfig if a length is too large for a template without elastic slots. Raises InvalidRecords for an
        invalid `out`.
        """
        numbers = _column(numbers, np.int64)
        keys = numbers if keys is None else _column(keys, np.int64)
        naturals = read_only(self.natural(seed, purpose, numbers, keys=keys))
        lengths = naturals if lengths is None else _column(lengths, np.int32)
        if not self.elastic and (longer := np.flatnonzero(lengths > naturals)).size:
            raise InvalidConfig(
                f"template {shown(self.text)}: record {numbers[longer[0]]} has {naturals[longer[0]]} bytes, "
                f"{lengths[longer[0]]} are wanted, and no slot is elastic"
            )
        times_ms = _column(START_OF_2026_MS + numbers if timestamps_ms is None else timestamps_ms, np.int64)
        if len(self._ops) == 1:
            at = self._ops[0]["literal_at"]  # constant text needs one copy
            return TextColumn(self._bytes[at : at + self.least_bytes], np.zeros(len(numbers), np.int64))
        ends = np.cumsum(np.maximum(lengths, 0), dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        starts = np.zeros(len(numbers), np.int64)
        starts[1:] = ends[:-1]
        if out is None:
            out = np.empty(self.room_bytes(total), np.uint8)
        check_buffer(out, self.room_bytes(total))
        kernels.fill(
            self._ops, self._bytes, self._words, self._picks, seed, purpose, self.elastic_slots,
            numbers, keys, times_ms, naturals, lengths, read_only(starts), out,
        )  # fmt: skip
        return TextColumn(out[:total], starts)


def _column(values: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    return read_only(np.ascontiguousarray(values, dtype))
