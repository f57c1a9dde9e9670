"""Generate keys, values and headers of the workload `grid`: constant text with slots (gaps) for random characters.

A table maps random bytes to the characters or words that fill a slot.

The payload `template` compresses like real topics, because field names repeat from record to record, but values do not.
So it compresses better with more records per batch. Random and half-random payloads do not. The fields of the template
and the skew of its words are assumptions. They are tuned to real JSON topics under zstd-3, where the size of a batch
after compression is this share of its size before: 0.65-0.9 at 1 record per batch, 0.2-0.35 at 10, 0.1-0.25 at 100.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kfbench.workloads.base.workload import draw_words

Bytes = NDArray[np.uint8]
Payload = Literal["random", "half", "template", "ones"]
PAYLOADS: Final[tuple[str, ...]] = get_args(Payload)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """The bytes from index `start` to `stop` (exclusive) of a text, which are replaced by random characters or words.

    table: uint8[256] maps a random byte to a character. uint8[256, width] maps a random byte to a word. With None, the
    random bytes themselves fill the slot.
    """

    start: int
    stop: int
    table: Bytes | None

    @property
    def draws(self) -> int:
        return 1 if self.table is not None and self.table.ndim == 2 else self.stop - self.start


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A text with slots for random bytes. It is repeated and then cut to `length` bytes.

    Args:
        length: the length of each key, value or header value, in bytes.
        unit: uint8[any], the text that is repeated. Slots overwrite parts of it.
        slots: the slots in the unit, in ascending order.
    """

    length: int
    unit: Bytes
    slots: tuple[Slot, ...]

    @property
    def _unit_draws(self) -> int:
        return sum(slot.draws for slot in self.slots)

    def make(self, seed: int, purpose: int, *, start: int, records: int) -> Bytes:
        """Return the bytes of the records from number `start` on: uint8[records, length].

        purpose: the number of a stream of random draws, so that keys, values and headers differ.
        """
        units, rest = divmod(self.length, len(self.unit))
        words = -(-((units + (rest > 0)) * self._unit_draws) // 8)
        drawn = draw_words(seed, purpose, start=start, records=records, words=words).view(np.uint8)
        out = np.empty((records, self.length), np.uint8)
        whole, whole_draws = units * len(self.unit), units * self._unit_draws
        self._fill(
            out[:, :whole].reshape(records, units, len(self.unit)),
            drawn[:, :whole_draws].reshape(records, units, self._unit_draws),
        )
        self._fill(out[:, None, whole:], drawn[:, None, whole_draws:])
        return out

    def _fill(self, out: NDArray[np.uint8], drawn: NDArray[np.uint8]) -> None:
        """Fill `out` with repetitions of the unit, and their slots with random characters.

        Args:
            out: uint8[records, units, bytes], with at most `len(self.unit)` bytes.
            drawn: uint8[records, units, draws], the random bytes.
        """
        width = out.shape[2]
        if not out.size:
            return
        out[:] = self.unit[:width]
        used = 0
        for slot in self.slots:
            if slot.start >= width:
                break
            stop = min(slot.stop, width)
            if slot.draws == 1 and slot.table is not None and slot.table.ndim == 2:
                out[:, :, slot.start : stop] = slot.table[drawn[:, :, used], : stop - slot.start]
            else:
                raw = drawn[:, :, used : used + stop - slot.start]
                out[:, :, slot.start : stop] = raw if slot.table is None else slot.table[raw]
            used += slot.draws


def _characters(alphabet: bytes) -> Bytes:
    return np.resize(np.frombuffer(alphabet, np.uint8), 256)


def _words(words: Sequence[str]) -> Bytes:
    """Return a table that maps a random byte to a word: uint8[256, width].

    The k-th word is about 1/k as likely as the first word. All words must have `width` bytes.
    """
    share = 1 / np.arange(1, len(words) + 1)
    until = np.rint(np.cumsum(share) / share.sum() * 256).astype(int)
    row = np.searchsorted(until, np.arange(256), side="right")
    return np.array([list(word.encode()) for word in words], np.uint8)[row]


_DIGITS: Final = _characters(b"0123456789")
_HEX: Final = _characters(b"0123456789abcdef")

# An event as services write it to a topic. <5d>: digits, <8x>: hex digits, <a|b>: one of these words.
_EVENT: Final = (
    '{"id":"<8x>","time":"2026-01-01T0<1d>:<0|1|2|3|4|5><1d>:<0|1|2|3|4|5><1d>.<3d>Z","type":"'
    '<page_view|item_list|add_to_ca|check_out|signed_in|searching>","user":<5d>,"status":<200|304|404|201|500>,'
    '"duration_ms":<2d>.<1d>,"method":"<GET |POST|PUT >","host":"www-<1d>.eu-central.example.com",'
    '"path":"/api/v1/<products|accounts|sessions|invoices|messages|settings>/<4d>","session":"<8x>",'
    '"bytes_sent":<4d>,"region":"<eu-central-1|us-east-1-az|ap-south-1-b>",'
    '"device":{"family":"<Android 15|iPhone 17 |Windows 11|macOS 26  |Linux x86 >",'
    '"screen_width":<1080|1170|1920|2560|1440>,"language":"<en-US|de-DE|fr-FR|es-ES|pt-BR|ja-JP>",'
    '"connection":"<wifi|4g  |5g  >"},"referrer":"https://www.<search|social|direct>.example.org/",'
    '"campaign":"<none      |spring26  |newsletter|retarget-a>",'
    '"experiment":{"name":"checkout-flow","bucket":"<control|test-a |test-b >","assigned":true},'
    '"cart":{"items":<1d>,"total_cents":<4d>,"currency":"<EUR|USD|GBP>","discount":null},'
    '"geo":{"country":"<DE|US|FR|GB|ES|JP>","city":"<Berlin  |New York|Paris   |London  |Madrid  |Tokyo   >",'
    '"lat":4<1d>.<3d>,"lon":1<1d>.<3d>},"feature_flags":["new-header","fast-search","dark-mode"],'
    '"app_version":"26.1.<1d>","sdk":{"name":"events-js","version":"4.12.0","transport":"beacon"},'
    '"retries":0,"sampled":true,"schema":"event-v3"}\n'
)


@lru_cache(maxsize=1)
def _event() -> tuple[Bytes, tuple[Slot, ...]]:
    text, slots = b"", []
    for i, part in enumerate(re.split("<(.+?)>", _EVENT)):
        if i % 2 == 0:
            text += part.encode()
            continue
        if "|" in part:
            table = _words(part.split("|"))
            width = table.shape[1]
        else:
            table, width = {"d": _DIGITS, "x": _HEX}[part[-1]], int(part[:-1])
        slots.append(Slot(start=len(text), stop=len(text) + width, table=table))
        text += bytes(width)
    return np.frombuffer(text, np.uint8), tuple(slots)


def _numbered(prefix: str, length: int, digits: int, characters: Bytes) -> Pattern:
    """Return a pattern of `length` bytes: a prefix, then zeros (the character "0"), then `digits` random characters."""
    constant = max(length - digits, 0)
    unit = np.frombuffer(prefix.encode()[:constant].ljust(length, b"0"), np.uint8)
    return Pattern(length=length, unit=unit, slots=(Slot(start=constant, stop=length, table=characters),))


Part = Literal["key", "value", "header"]


@lru_cache(maxsize=64)
def pattern(part: Part, payload: str, length: int) -> Pattern:
    """Return the pattern of a key, value or header value of `length` bytes, at least 1. payload: one of PAYLOADS."""
    if payload == "template":
        if part == "key":
            return _numbered("user-", length, 5, _DIGITS)  # 100,000 users
        if part == "header":
            return _numbered("trace-", length, 8, _HEX)
        unit, slots = _event()
        return Pattern(length=length, unit=unit, slots=slots)
    unit = np.full(length, payload == "ones", np.uint8)
    random = {"random": length, "half": -(-length // 2), "ones": 0}[payload]
    slots = (Slot(start=0, stop=random, table=None),) if random else ()
    return Pattern(length=length, unit=unit, slots=slots)


def names(prefix: str, length: int, count: int) -> Sequence[bytes]:
    """Return `count` header names of `length` bytes each. They end in a number of two digits, cut to `length`."""
    stem = (prefix + "0" * length)[: max(length - 2, 0)].encode()
    return [stem + f"{i:02d}".encode()[:length] for i in range(count)]
