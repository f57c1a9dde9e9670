"""Parse the text of a payload template into operations for the kernels (`template` documents the language)."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int32, read_only
from kfbench.errors import InvalidConfig
from kfbench.kernels.workload import templates as kernels
from kfbench.text import cut

MAX_WIDTH: Final = 1 << 20
MAX_NUMBER: Final = 1 << 62
MAX_SCALED: Final = 1 << 31  # the largest range that a 32-bit draw can cover
MAX_WORDS: Final = 256  # one random byte chooses a word

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

# Phrases of services, shops and devices. Their choice and skew are assumptions, tuned so that texts compress like real
# topics. No phrase has a character that JSON escapes. Each has at most 31 bytes, or 32 with the space after it.
PHRASES: Final = (
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


def channel_of(name: str) -> int:
    """Return a 64-bit hash of a name, for the random draws of a slot.

    The hash function must never change, because the bytes of published runs depend on it.
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def shown(text: str) -> str:
    return repr(cut(text, 40))


@dataclass(frozen=True, kw_only=True)
class SlotHead:
    """The head of a slot. bodies: the distinct texts after the colon of all slots with this name, in order."""

    name: str = ""
    options: frozenset[str] = frozenset()
    every: int = 1
    of: int = 0
    bodies: list[str] = field(default_factory=list)


class _Unreadable(Exception):
    """A slot of a template is invalid. The message is the reason."""


class Parser:
    """A parser of one template. `program` parses it and returns the arrays for the kernels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bytes = bytearray(kernels.PRELUDE)
        self.ops: list[dict[str, int]] = []
        self.words: list[tuple[int, int]] = []
        self.picks: list[Bytes] = []
        self.widths: list[Int32] = []  # the widths of the words that the picks choose
        self.steps: list[tuple[int, int]] = []
        self.named: dict[str, SlotHead] = {}
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
                self._refuse(opens, f"{shown(f'<{body}>')}: {error}")
            at = closes + 1
        self.literal += self.text[at:].encode()
        self._add(kind=kernels.END)
        names = kernels.OPERATION.names or ()
        ops = np.array([tuple(op.get(name, 0) for name in names) for op in self.ops], kernels.OPERATION)
        varying = [i for i, op in enumerate(self.ops) if op["width"] < 0]
        if self.most > MAX_WIDTH:
            self._refuse(
                0, f"a record of up to {self.most} bytes without its elastic slots; at most {MAX_WIDTH} are possible"
            )
        return {
            "least_bytes": self.least,
            "most_bytes": self.most,
            "elastic_slots": sum(op["elastic"] for op in self.ops),
            "_ops": read_only(ops),
            "_varying": read_only(np.array(varying, np.int64)),
            "_bytes": np.frombuffer(bytes(self.bytes) + bytes(kernels.SLACK_BYTES), np.uint8),
            "_words": read_only(np.array(self.words, kernels.WORD)),
            "_picks": read_only(np.concatenate([np.zeros(0, np.uint8), *self.picks])),
            "_widths": read_only(np.concatenate([np.zeros(0, np.int32), *self.widths])),
            "_steps": read_only(np.array(self.steps, kernels.STEP)),
            "_fixed_bytes": self.fixed,
        }

    def _refuse(self, at: int, why: str) -> NoReturn:
        raise InvalidConfig(f"template {shown(self.text)}, character {at + 1}: {why}")

    def _slot(self, body: str) -> None:
        head, variety = SlotHead(), 0
        if body.startswith("$"):
            found = _HEAD.fullmatch(body)
            if not found:
                raise _Unreadable("a head is $NAME, then key, every N, of N or even, then a colon")
            name, how, again = found.groups()
            known = self.named.get(name) if name else None
            if known is not None and how:
                raise _Unreadable(f"${name} already has its key, every, of or even")
            if known is None and again is None:
                raise _Unreadable("no slot before it has this name")
            head = known or _head(name, how)
            body = head.bodies[0] if again is None else again
            if body not in head.bodies:
                head.bodies.append(body)
            variety = head.bodies.index(body)
            if name:
                self.named[name] = head
        self.slots += 1
        name = f"${head.name}" if head.name else str(self.slots)
        follows = {"by_key": int("key" in head.options), "every": head.every, "of": head.of, "pick": channel_of(name)}
        for part, (literal, fields) in enumerate(_parts(body, head, self)):
            self.literal += literal
            self._add(**fields, **follows, channel=channel_of(f"{name} {variety} {part}"))

    def _add(self, *, kind: int, width: int = 0, least: int = 0, most: int = 0, **fields: int) -> None:
        """Add an operation, with the literal text before it.

        width: the number of bytes that the operation writes; -1 if it varies between `least` and `most`.
        """
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
        """Add a list of words. Return the fields of an operation that chooses one of them.

        share: float64[words], numbers that are proportional to the probabilities of the words.
        """
        row = len(self.picks)
        first = len(self.words)
        for word in words:
            self.words.append((len(self.bytes), len(word)))
            self.bytes += word
        # A random byte chooses the word. Each word gets at least one of the 256 byte values, so no word is missing. The
        # other byte values are divided by the shares.
        until = np.rint(np.cumsum(1 + (256 - len(words)) * share / share.sum()))
        chosen = np.searchsorted(until, np.arange(256), side="right")
        self.picks.append(chosen.astype(np.uint8))
        self.widths.append(np.array([len(word) for word in words], np.int32)[chosen])
        return {"at": first, "picks": row}

    def add_steps(self, kind: int, low: int, span: int) -> dict[str, int]:
        """Add the 32-bit draws from which on a decimal number has more or fewer characters.

        So the length of the number is found without computing the number. This works because a larger draw never gives
        a smaller number (`kernels.number_of`). Return the fields of the operation.

        Args:
            kind: kernels.INT or kernels.LOW.
            low: the smallest number.
            span: the count of possible numbers.
        """
        first = len(self.steps)
        self.fixed += len(str(low))
        for number in sorted({0} | {sign for k in range(1, 20) for sign in (10**k, 1 - 10**k)}):
            if low < number < low + span:
                least = _least_draw(kind, number - low, span)
                if least < 2**32:
                    self.steps.append((least << 32, len(str(number)) - len(str(number - 1))))
        return {"at": first, "size": len(self.steps) - first}

    def add_text(self, text: str) -> int:
        """Add a text to the program's bytes. Return its position there."""
        self.bytes += text.encode()
        return len(self.bytes) - len(text)


def _head(name: str, how: str) -> SlotHead:
    options = dict(re.findall(r"(key|even|every|of) *(\d*)", how))
    if name in _HOW:
        raise _Unreadable(f"{name} cannot be a name: a space before it is missing")
    if {"key", "every"} <= options.keys():
        raise _Unreadable("key and every do not go together")
    numbers = {word: int(options[word]) for word in ("every", "of") if word in options}
    for word, number in numbers.items():
        if not 1 <= number <= MAX_SCALED:
            raise _Unreadable(f"{word} {number}: 1 to {MAX_SCALED} are possible")
    return SlotHead(name=name, options=frozenset(options), every=numbers.get("every", 1), of=numbers.get("of", 0))


def _parts(body: str, head: SlotHead, parser: Parser) -> Iterator[tuple[bytes, dict[str, int]]]:
    """Yield the fields of each operation of a slot, with the literal text before it. A UUID has several operations.

    Raises _Unreadable.
    """
    if "|" in body:
        yield b"", _words(body.split("|"), head, parser)
        return
    if "even" in head.options:
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


def _words(words: Sequence[str], head: SlotHead, parser: Parser) -> dict[str, int]:
    if len(words) > MAX_WORDS:
        raise _Unreadable(f"{len(words)} words; at most {MAX_WORDS} are possible")
    encoded = [word.encode() for word in words]
    share = np.ones(len(words)) if "even" in head.options else 1 / np.arange(1, len(words) + 1)
    fields = {"kind": kernels.WORDS, **parser.add_words(encoded, share)}
    return fields | _width(min(map(len, encoded)), max(map(len, encoded)))


def _width(least: int, most: int) -> dict[str, int]:
    return {"width": least} if least == most else {"width": -1, "least": least, "most": most}


def _characters(width: int | None, alphabet: str, parser: Parser) -> dict[str, int]:
    room = {"width": 0, "elastic": 1} if width is None else {"width": width}
    if alphabet in ("raw", "zeros"):
        return {"kind": kernels.RAW if alphabet == "raw" else kernels.ZEROS, **room}
    letters = _ALPHABETS[alphabet]
    return {"kind": kernels.CHARACTERS, "at": parser.add_text(letters), "size": len(letters), **room}


def _integer(low: int, high: int, kind: str | None, head: SlotHead, parser: Parser) -> dict[str, int]:
    most = MAX_SCALED if kind else MAX_NUMBER
    if high < low:
        raise _Unreadable("the range ends before it begins")
    if max(abs(low), abs(high)) > MAX_NUMBER or high - low >= most:
        raise _Unreadable(f"numbers up to {MAX_NUMBER} and a range of up to {most} are possible")
    if kind == "drift" and "of" in head.options:
        raise _Unreadable("drift and of do not go together")
    widths = [len(str(number)) for number in (low, high)] + [1] * (low <= 0 <= high)
    kinds = {None: kernels.INT, "low": kernels.LOW, "drift": kernels.DRIFT}
    fields = {"kind": kinds[kind], "low": low, "span": high - low + 1} | _width(min(widths), max(widths))
    if fields["width"] < 0 and kind != "drift" and fields["span"] < 2**32:
        fields |= parser.add_steps(fields["kind"], low, fields["span"])
    return fields


def _least_draw(kind: int, above: int, span: int) -> int:
    """Return the smallest 32-bit draw that gives a number of at least low + `above`; 2**32 if there is none."""

    def number(drawn: int) -> int:
        share = (drawn * drawn >> 32) * drawn >> 32 if kind == kernels.LOW else drawn
        return share * span >> 32

    return bisect_left(range(2**32), above, key=number)


def _count(first: int, step: int, head: SlotHead) -> dict[str, int]:
    if "of" in head.options:
        raise _Unreadable("a count and of do not go together")
    if first > MAX_NUMBER or not 1 <= step <= MAX_SCALED:
        raise _Unreadable(f"it may begin at most at {MAX_NUMBER}, with steps of 1 to {MAX_SCALED}")
    return {"kind": kernels.COUNT, "low": first, "step": step, "width": -1, "least": 1, "most": 20}


def _id(digits: int, head: SlotHead) -> dict[str, int]:
    if head.options:
        raise _Unreadable("an id depends on the key: it takes no head")
    if not 1 <= digits <= 9:
        raise _Unreadable("1 to 9 digits are possible")
    return {"kind": kernels.ID, "width": digits, "size": 10**digits}


def _time(form: str, before_ms: int, head: SlotHead) -> dict[str, int]:
    if head.options:
        raise _Unreadable("a time depends on the record: it takes no head")
    if before_ms >= MAX_SCALED:
        raise _Unreadable(f"up to {MAX_SCALED - 1} ms before are possible")
    kind, width = _TIMES[form]
    return {"kind": kind, "width": width, "span": before_ms + 1}


def _text(low: str | None, high: str | None, parser: Parser) -> dict[str, int]:
    phrases = [f"{phrase} ".encode() for phrase in PHRASES]
    fields = {"kind": kernels.TEXT, **parser.add_words(phrases, 1 / np.arange(4, len(phrases) + 4))}
    if low is None or high is None:
        return fields | {"elastic": 1}
    least, most = int(low), int(high)
    if not least <= most <= MAX_WIDTH:
        raise _Unreadable(f"a range that rises, up to {MAX_WIDTH}, is possible")
    return fields | {"low": least, "span": most - least + 1, "width": -1, "least": least, "most": most}
