"""Payload bytes from templates: text with slots, so that field names repeat from record to record and values do not.

That is what makes compression per batch fall with depth as it does on real topics, which neither random nor half-random
payloads can show. A template is literal text with slots in angle brackets (`<<` is a literal `<`):

    <5d>              so many characters, each drawn: d digits, x hex, a and A letters, w letters and digits,
                      b base64url, raw any byte, zeros the byte 0; without a number: elastic
    <uuid>            36 characters, version 4
    <GET|POST|PUT>    one of these (up to 256), the k-th about 1/k as likely as the first; they may differ in width or
                      be empty; one that is written several times has all these chances
    <int 1..5000>     a decimal number in this range; `<int 1..5000 low>`: the small ones more often (the cube of a
                      uniform draw); `<int -40..60 drift>`: near its neighbours', from one level to another over 64
                      records, with a sixteenth of the range as noise
    <count 1000>      rises by 1 with the record number; `<count 1000 step 40>`: by 40 on average
    <id 6>            six digits of the key; keys below 10**6 have digits of their own
    <time iso>        2026-01-01T00:00:00.000Z; clf: 01/Jan/2026:00:00:00 +0000; s, ms: numbers; `<time ms -50>`: up to
                      50 ms before the record's time, drawn
    <text>            phrases of a skewed vocabulary, elastic; `<text 20..80>`: of a length in this range

A head before the slot, `<$NAME HOW:SLOT>`, gives it a name and says whom its draws follow:

    <$user:8x> … <$user>       the same bytes again
    <$user of 90:8x> … <$user:Android|iOS>   another slot of the same user: it follows what the first one follows
    <$ of 100:8x>              one of 100 values, the k-th about 1/k as likely as the first
    <$ every 20:8x>            the same for 20 neighbouring records
    <$ key:Berlin|Paris>       the same for all records of a key; a slot with a name draws the same in a record's key,
                               value and headers
    <$ even:a|b|c>             of words: each as likely as the next

`key` or `every` may stand before `of`, and a name before both: `<$session every 20 of 1000:uuid>`.

A record's bytes depend on seed, purpose, its number, key, time and length alone. An elastic slot takes what the wanted
length leaves (several share it evenly); below the length of all the rest, a record is cut at its end.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int32, Int64, check_buffer
from kfbench.errors import InvalidConfig
from kfbench.kernels.workload import templates as kernels
from kfbench.workloads.grid import START_OF_2026_MS

MAX_WIDTH: Final = 1 << 20
MAX_NUMBER: Final = 1 << 62
MAX_SCALED: Final = 1 << 31  # a range that is scaled with 32 bits
MAX_WORDS: Final = 256  # a byte draws one
SCRATCH: Final = 1_024  # records at a time: 24 KiB

_DIGITS, _LOWER, _UPPER = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ALPHABETS: Final = {
    "d": _DIGITS,
    "x": _DIGITS + "abcdef",
    "a": _LOWER,
    "A": _UPPER,
    "w": _DIGITS + _UPPER + _LOWER,
    "b": _UPPER + _LOWER + _DIGITS + "-_",
    "variant": "89ab",  # of a UUID
}
_TIMES: Final = {
    "iso": (kernels.ISO, 24),
    "clf": (kernels.CLF, 26),
    "s": (kernels.SECONDS, 10),
    "ms": (kernels.MILLIS, 13),
}
_UUID: Final = (("", 8, "x"), ("-", 4, "x"), ("-4", 3, "x"), ("-", 1, "variant"), ("", 3, "x"), ("-", 12, "x"))
_HOW: Final = ("key", "every", "of", "even")
_HEAD: Final = re.compile(r"\$(\w*)((?: *\b(?:key|even|every +\d{1,19}|of +\d{1,19})\b)*) *(?::(.*))?", re.DOTALL)

# Fragments as services, shops and devices write them; their choice and skew are an assumption, tuned to the ratios of
# real topics. None holds a character that JSON would escape; none is longer than 31 bytes, with its space 32.
_PHRASES: Final = (
    """
request completed in time|connection established|user session refreshed|cache entry expired for|retrying after timeout
order was accepted by|payment is being processed|failed to reach upstream|no route to host|read from replica
heartbeat received from node|waiting for more data|scheduled maintenance window|starting background task
partition leader was elected|offset committed for group|consumer joined the group|rebalance finished|schema registered
queue depth is above limit|message was delivered|delivery attempt number|stock level updated|price list was changed
the customer asked for|please contact support|new address was confirmed|item added to basket|shipment left the warehouse
returned to sender|invoice has been paid|subscription will renew|temperature within range|battery level is low
sensor reported a value|firmware update available|door opened at entrance|motion detected in hall|signal strength fell
login from a new device|password was changed|token has been revoked|access was denied|permission granted to role
file uploaded to bucket|image resized for preview|video stream started|download finished|checksum does not match
database query took longer|index rebuilt on table|transaction rolled back|lock wait was exceeded|vacuum ran on shard
memory usage is normal|garbage collection paused|thread pool is exhausted|disk space below threshold|cpu load returned
service registered with|health check passed|circuit breaker opened|fallback response was used|rate limit was reached
invalid argument in call|unexpected end of input|null value in column|duplicate key was ignored|deprecated field in use
search returned results|page viewed by visitor|button clicked on form|campaign mail was opened|coupon code applied at
driver assigned to trip|route was recalculated|arrival expected within|pickup point was moved|fare estimate changed
account balance updated|transfer was scheduled|card payment declined|refund issued to customer|exchange rate loaded
backup written to storage|snapshot restored from|replica is catching up|node removed from cluster|config reloaded by
job finished without errors|worker picked up task|step skipped by rule|result stored for later|deadline was extended
""".replace("\n", "|")
    .strip("|")
    .split("|")
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Template:
    """A text with slots, compiled. least_bytes, most_bytes: a record's length while its elastic slots are empty."""

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
        """Raises InvalidConfig with the character of the text, counted from 1, where a slot cannot be read."""
        return cls(text=text, **_Parser(text).program())

    @property
    def elastic(self) -> bool:
        """Whether a record can be as long as is asked for, from `most_bytes` on."""
        return self.elastic_slots > 0

    def room_bytes(self, total_bytes: int) -> int:
        """What a buffer needs for records of so many bytes: `fill` writes past the end of each."""
        return total_bytes + self.most_bytes + kernels.SLACK_BYTES

    def natural(self, seed: int, purpose: int, numbers: Int64, *, keys: Int64 | None = None) -> Int32:
        """int32[n]: how long these records are while their elastic slots are empty."""
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
    ) -> tuple[Bytes, Int64]:
        """(data uint8[total], starts int64[n]) of these records, one after another.

        numbers int64[n] seed the draws: a record's number, or a key's id, so that equal keys are equal bytes. lengths
        int32[n], -1 for a null: natural ones if None. keys int64[n]: ids for the slots that follow the key; numbers if
        None. timestamps_ms int64[n]: for times; 1 ms a number from 2026 on if None. out: a buffer to reuse, of at least
        `room_bytes`; data are a part of it. Raises InvalidConfig where a record is to be longer than a template without
        an elastic slot makes it, InvalidRecords for an `out` that is no such buffer.
        """
        numbers = _column(numbers, np.int64)
        keys = numbers if keys is None else _column(keys, np.int64)
        naturals = _column(self.natural(seed, purpose, numbers, keys=keys), np.int32)
        lengths = naturals if lengths is None else _column(lengths, np.int32)
        if not self.elastic and (longer := np.flatnonzero(lengths > naturals)).size:
            raise InvalidConfig(
                f"template {_shown(self.text)}: {lengths[longer[0]]} bytes are wanted of record {numbers[longer[0]]}, "
                f"which has {naturals[longer[0]]}, and no slot of it is elastic"
            )
        times_ms = _column(START_OF_2026_MS + numbers if timestamps_ms is None else timestamps_ms, np.int64)
        if len(self._ops) == 1:
            at = self._ops[0]["literal_at"]  # of constant text there need be one copy
            return self._bytes[at : at + self.least_bytes], np.zeros(len(numbers), np.int64)
        ends = np.cumsum(np.maximum(lengths, 0), dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        starts = np.zeros(len(numbers), np.int64)
        starts[1:] = ends[:-1]
        if out is None:
            out = np.empty(self.room_bytes(total), np.uint8)
        check_buffer(out, self.room_bytes(total))
        kernels.fill(
            self._ops, self._bytes, self._words, self._picks, seed, purpose, self.elastic_slots,
            numbers, keys, times_ms, naturals, lengths, _column(starts, np.int64), out,
        )  # fmt: skip
        return out[:total], starts


def _column(values: NDArray[Any], dtype: type[np.generic] | np.dtype[Any]) -> NDArray[Any]:
    """Read-only, so that the kernels are compiled for one kind of array."""
    column = np.ascontiguousarray(values, dtype).view()
    column.flags.writeable = False
    return column


def _channel(name: str) -> int:
    """64 bits, for good: bytes of published runs depend on them."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")


@dataclass(frozen=True, kw_only=True)
class _Head:
    name: str = ""
    asked: frozenset[str] = frozenset()
    every: int = 1
    of: int = 0


class _Unreadable(Exception):
    """What is wrong with a slot."""


class _Parser:
    """Text to operations, one slot after another."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bytes = bytearray(kernels.PRELUDE)
        self.ops: list[dict[str, int]] = []
        self.words: list[tuple[int, int]] = []
        self.picks: list[Bytes] = []
        self.widths: list[Int32] = []  # of what the picks choose
        self.steps: list[tuple[int, int]] = []
        self.named: dict[str, tuple[_Head, list[str]]] = {}  # the slots of a name, the first of them its own
        self.literal = b""
        self.least = self.most = self.fixed = 0
        self.slots = 0

    def program(self) -> dict[str, Any]:
        at = 0
        while (opens := self.text.find("<", at)) >= 0:
            self.literal += self.text[at:opens].encode()
            if self.text.startswith("<<", opens):
                self.literal += b"<"
                at = opens + 2
                continue
            closes = self.text.find(">", opens)
            body = self.text[opens + 1 : closes]
            if closes < 0 or "<" in body:
                self._refuse(opens, "the slot is not closed (a literal < is <<)")
            try:
                self._slot(body)
            except _Unreadable as error:
                self._refuse(opens, f"{_shown(f'<{body}>')}: {error}")
            at = closes + 1
        self.literal += self.text[at:].encode()
        self._add(kind=kernels.END)
        ops = np.zeros(len(self.ops), kernels.OPERATION)
        for op, row in zip(self.ops, ops, strict=True):
            for name, value in op.items():
                row[name] = value
        varying = [i for i, op in enumerate(self.ops) if op["width"] < 0]
        if self.most > MAX_WIDTH:
            self._refuse(0, f"a record of up to {self.most} bytes before the elastic slots; {MAX_WIDTH} are the most")
        return {
            "least_bytes": self.least,
            "most_bytes": self.most,
            "elastic_slots": sum(op["elastic"] for op in self.ops),
            "_ops": _column(ops, kernels.OPERATION),
            "_varying": _column(np.array(varying, np.int64), np.int64),
            "_bytes": _column(np.frombuffer(bytes(self.bytes) + bytes(kernels.SLACK_BYTES), np.uint8), np.uint8),
            "_words": _column(np.array(self.words, kernels.WORD), kernels.WORD),
            "_picks": _column(np.concatenate([np.zeros(0, np.uint8), *self.picks]), np.uint8),
            "_widths": _column(np.concatenate([np.zeros(0, np.int32), *self.widths]), np.int32),
            "_steps": _column(np.array(self.steps, kernels.STEP), kernels.STEP),
            "_fixed_bytes": self.fixed,
        }

    def _refuse(self, at: int, why: str) -> NoReturn:
        raise InvalidConfig(f"template {_shown(self.text)}, character {at + 1}: {why}")

    def _slot(self, body: str) -> None:
        head, variety = _Head(), 0
        if body.startswith("$"):
            found = _HEAD.fullmatch(body)
            if not found:
                raise _Unreadable("a head is $NAME, then key, every N, of N or even, then a colon")
            name, how, again = found.groups()
            known = self.named.get(name) if name else None
            if known is not None and how:
                raise _Unreadable(f"whom ${name} follows has been said already")
            if known is None and again is None:
                raise _Unreadable("no slot of this name stands before it")
            head = known[0] if known else _head(name, how)
            bodies = known[1] if known else []
            body = bodies[0] if again is None else again
            if body not in bodies:
                bodies.append(body)
            variety = bodies.index(body)
            if name:
                self.named[name] = head, bodies
        self.slots += 1
        name = f"${head.name}" if head.name else str(self.slots)
        follows = {"by_key": int("key" in head.asked), "every": head.every, "of": head.of, "pick": _channel(name)}
        for part, (literal, fields) in enumerate(_parts(body, head, self)):
            self.literal += literal
            self._add(**fields, **follows, channel=_channel(f"{name} {variety} {part}"))

    def _add(self, *, kind: int, width: int = 0, least: int = 0, most: int = 0, **fields: int) -> None:
        """width: -1 if it is drawn, between `least` and `most`."""
        self.ops.append(
            {"kind": kind, "width": width, "elastic": 0, "literal_at": len(self.bytes)}
            | {"literal_bytes": len(self.literal)}
            | fields
        )
        self.bytes += self.literal
        fixed = len(self.literal) + max(width, 0)
        self.literal = b""
        self.fixed += fixed
        self.least += fixed + least
        self.most += fixed + most

    def add_words(self, words: Sequence[bytes], share: NDArray[np.float64]) -> dict[str, int]:
        """Fields of a slot that takes one of these."""
        row = len(self.picks)
        first = len(self.words)
        for word in words:
            self.words.append((len(self.bytes), len(word)))
            self.bytes += word
        # One pick each, so that none is missing, and the rest by their shares.
        until = np.rint(np.cumsum(1 + (256 - len(words)) * share / share.sum()))
        chosen = np.searchsorted(until, np.arange(256), side="right")
        self.picks.append(chosen.astype(np.uint8))
        self.widths.append(np.array([len(word) for word in words], np.int32)[chosen])
        return {"at": first, "picks": row}

    def add_steps(self, kind: int, low: int, span: int) -> dict[str, int]:
        """Fields of a number, after `kernels.number_of`: a larger draw is never a smaller number."""
        first = len(self.steps)
        self.fixed += len(str(low))
        for number in sorted({0} | {sign for k in range(1, 20) for sign in (10**k, 1 - 10**k)}):
            if low < number < low + span:
                least = _least_draw(kind, number - low, span)
                if least < 2**32:
                    self.steps.append((least << 32, len(str(number)) - len(str(number - 1))))
        return {"at": first, "size": len(self.steps) - first}

    def add_text(self, text: str) -> int:
        """Where it is."""
        self.bytes += text.encode()
        return len(self.bytes) - len(text)


def _head(name: str, how: str) -> _Head:
    asked = dict(re.findall(r"(key|even|every|of) *(\d*)", how))
    if name in _HOW:
        raise _Unreadable(f"{name} is no name: a space before it is missing")
    if {"key", "every"} <= asked.keys():
        raise _Unreadable("key and every do not go together")
    numbers = {word: int(asked[word]) for word in ("every", "of") if word in asked}
    for word, number in numbers.items():
        if not 1 <= number <= MAX_SCALED:
            raise _Unreadable(f"{word} {number}: 1 to {MAX_SCALED} are possible")
    return _Head(name=name, asked=frozenset(asked), **numbers)


def _parts(body: str, head: _Head, parser: _Parser) -> Iterator[tuple[bytes, dict[str, int]]]:
    """(Literal text, the operation after it) of a slot; there are several in a UUID."""
    if "|" in body:
        yield b"", _words(body.split("|"), head, parser)
        return
    if "even" in head.asked:
        raise _Unreadable("even is for words")
    if body == "uuid":
        for literal, digits, alphabet in _UUID:
            yield literal.encode(), _characters(digits, alphabet, parser)
        return
    if found := re.fullmatch(r"(\d{0,19}) ?(d|x|a|A|w|b|raw|zeros)", body):
        width = int(found[1]) if found[1] else None
        if width is not None and not 1 <= width <= MAX_WIDTH:
            raise _Unreadable(f"1 to {MAX_WIDTH} characters are possible")
        yield b"", _characters(width, found[2], parser)
    elif found := re.fullmatch(r"int (-?\d{1,19})\.\.(-?\d{1,19})(?: (low|drift))?", body):
        yield b"", _integer(int(found[1]), int(found[2]), found[3], head, parser)
    elif found := re.fullmatch(r"count (\d{1,19})(?: step (\d{1,19}))?", body):
        yield b"", _count(int(found[1]), int(found[2] or 1), head)
    elif found := re.fullmatch(r"id (\d{1,19})", body):
        yield b"", _id(int(found[1]), head)
    elif found := re.fullmatch(r"time (iso|clf|s|ms)(?: -(\d{1,19}))?", body):
        yield b"", _time(found[1], int(found[2] or 0), head)
    elif found := re.fullmatch(r"text(?: (\d{1,19})\.\.(\d{1,19}))?", body):
        yield b"", _text(found[1], found[2], parser)
    else:
        raise _Unreadable("no such slot")


def _words(words: Sequence[str], head: _Head, parser: _Parser) -> dict[str, int]:
    if len(words) > MAX_WORDS:
        raise _Unreadable(f"{len(words)} words; {MAX_WORDS} are the most")
    encoded = [word.encode() for word in words]
    share = np.ones(len(words)) if "even" in head.asked else 1 / np.arange(1, len(words) + 1)
    fields = {"kind": kernels.WORDS, **parser.add_words(encoded, share)}
    return fields | _width(min(map(len, encoded)), max(map(len, encoded)))


def _width(least: int, most: int) -> dict[str, int]:
    return {"width": least} if least == most else {"width": -1, "least": least, "most": most}


def _characters(width: int | None, alphabet: str, parser: _Parser) -> dict[str, int]:
    room = {"width": 0, "elastic": 1} if width is None else {"width": width}
    if alphabet in ("raw", "zeros"):
        return {"kind": kernels.RAW if alphabet == "raw" else kernels.ZEROS, **room}
    letters = _ALPHABETS[alphabet]
    return {"kind": kernels.CHARACTERS, "at": parser.add_text(letters), "size": len(letters), **room}


def _integer(low: int, high: int, kind: str | None, head: _Head, parser: _Parser) -> dict[str, int]:
    most = MAX_SCALED if kind else MAX_NUMBER
    if high < low:
        raise _Unreadable("the range ends before it begins")
    if max(abs(low), abs(high)) > MAX_NUMBER or high - low >= most:
        raise _Unreadable(f"numbers up to {MAX_NUMBER} and a range of up to {most} are possible")
    if kind == "drift" and "of" in head.asked:
        raise _Unreadable("drift and of do not go together")
    widths = [len(str(number)) for number in (low, high)] + [1] * (low <= 0 <= high)
    kinds = {None: kernels.INT, "low": kernels.LOW, "drift": kernels.DRIFT}
    fields = {"kind": kinds[kind], "low": low, "span": high - low + 1} | _width(min(widths), max(widths))
    if fields["width"] < 0 and kind != "drift" and fields["span"] < 2**32:
        fields |= parser.add_steps(fields["kind"], low, fields["span"])
    return fields


def _least_draw(kind: int, above: int, span: int) -> int:
    """The least of 32 bits that draw a number so much above the lowest one; 2**32 if none does."""

    def number(drawn: int) -> int:
        share = (drawn * drawn >> 32) * drawn >> 32 if kind == kernels.LOW else drawn
        return share * span >> 32

    return bisect_left(range(2**32), above, key=number)


def _count(first: int, step: int, head: _Head) -> dict[str, int]:
    if "of" in head.asked:
        raise _Unreadable("a count and of do not go together")
    if first > MAX_NUMBER or not 1 <= step <= MAX_SCALED:
        raise _Unreadable(f"it may begin at up to {MAX_NUMBER}, in steps of 1 to {MAX_SCALED}")
    return {"kind": kernels.COUNT, "low": first, "step": step, "width": -1, "least": 1, "most": 20}


def _id(digits: int, head: _Head) -> dict[str, int]:
    if head.asked:
        raise _Unreadable("an id follows the key")
    if not 1 <= digits <= 9:
        raise _Unreadable("1 to 9 digits are possible")
    return {"kind": kernels.ID, "width": digits, "size": 10**digits}


def _time(form: str, before_ms: int, head: _Head) -> dict[str, int]:
    if head.asked:
        raise _Unreadable("a time follows the record")
    if before_ms >= MAX_SCALED:
        raise _Unreadable(f"up to {MAX_SCALED - 1} ms before are possible")
    kind, width = _TIMES[form]
    return {"kind": kind, "width": width, "span": before_ms + 1}


def _text(low: str | None, high: str | None, parser: _Parser) -> dict[str, int]:
    phrases = [f"{phrase} ".encode() for phrase in _PHRASES]
    fields = {"kind": kernels.TEXT, **parser.add_words(phrases, 1 / np.arange(4, len(phrases) + 4))}
    if low is None or high is None:
        return fields | {"elastic": 1}
    least, most = int(low), int(high)
    if not least <= most <= MAX_WIDTH:
        raise _Unreadable(f"a range that rises, up to {MAX_WIDTH}, is possible")
    return fields | {"low": least, "span": most - least + 1, "width": -1, "least": least, "most": most}
