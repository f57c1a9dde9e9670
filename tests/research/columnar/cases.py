"""Generate columnar batches for every kind of column and every form of header.

They depend on a seed and a few choices. `tests.strategies` has the edge cases that all formats share. Columns need more
records and similar values.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from hypothesis import strategies as st

from tests.reference.model import Fields, Message
from tests.strategies import INT32, INT64, NOW_MS, Case, v2_fields

Draw = random.Random
ATTRIBUTES_AT, PRODUCER_BYTES = 21, 14
FARTHEST = INT32 - 300  # leaves room for 100 free offsets before and after the records

# Each function draws `count` int64s.
SHAPES: dict[str, Callable[[Draw, int], list[int]]] = {
    "equal": lambda draw, count: [draw.choice([0, 1, 63, 64, 300])] * count,
    "narrow": lambda draw, count: [draw.randrange(1 << draw.choice([1, 3, 8])) for _ in range(count)],
    "far and narrow": lambda draw, count: [(1 << 30) + draw.randrange(7) for _ in range(count)],
    "rising": lambda draw, count: _sums(draw.randrange(200) for _ in range(count)),
    "a line": lambda draw, count: [5 + 1000 * i + draw.randrange(9) for i in range(count)],
    "a falling line": lambda draw, count: [1000 * (count - i) + draw.randrange(9) for i in range(count)],
    "outliers": lambda draw, count: [draw.choice([1, 2, 3, 3, 2, 1, 2, 1 << draw.randrange(31)]) for _ in range(count)],
    "leaps": lambda draw, count: _sums(draw.choice([1, 1, 2, 1, 1, 1 << draw.randrange(26)]) for _ in range(count)),
    "a tail": lambda draw, count: _tail(draw, count),
    "gaps": lambda draw, count: _sums(_tail(draw, count)),
}
WILD: dict[str, Callable[[Draw, int], list[int]]] = {
    "wide": lambda draw, count: [draw.randrange(1 << draw.choice([55, 56, 57, 58, 62, 63])) for _ in range(count)],
    "extremes": lambda draw, count: [draw.choice([-1, 0, INT64, NOW_MS]) for _ in range(count)],
    "one outlier": lambda draw, count: [INT64 if i == count // 2 else i & 1 for i in range(count)],
}
SHAPE_NAMES, WILD_NAMES = tuple(SHAPES), tuple(SHAPES | WILD)
COUNTS = st.sampled_from([1, 2, 2, 3, 4, 7, 8, 9, 17, 33, 64])
HOLES = ("dense", *SHAPE_NAMES)
NULLS = ("none", "some", "all")
HEADER_KINDS = ("none", "none", "by position", "one", "any", "rare")
LENGTH_SHAPES = ("equal", "narrow", "narrow", "outliers", "a tail", "far and narrow")


def _sums(steps: Iterable[int]) -> list[int]:
    return list(accumulate(steps))


def _tail(draw: Draw, count: int) -> list[int]:
    """Return mostly small values. Some are several times as large."""
    scale = draw.choice([1, 1, 3, 20, 300])
    return [min(int(draw.expovariate(1) ** 2 * scale), 10_000) for _ in range(count)]


def shaped(draw: Draw, name: str, count: int) -> list[int]:
    return (SHAPES | WILD)[name](draw, count)


def _contents(draw: Draw, count: int, nulls: str) -> list[bytes | None]:
    lengths = [min(length, 700) for length in shaped(draw, draw.choice(LENGTH_SHAPES), count)]
    contents: list[bytes | None] = [draw.randbytes(length) for length in lengths]
    if nulls == "none":
        return contents
    return [None if nulls == "all" or draw.random() < 0.3 else content for content in contents]


def _header_values(draw: Draw, count: int) -> list[bytes | None]:
    """Return the value that the header at one position has in each record."""
    few = [None, b"", b"a", b"b" * 9, b"accept", b"x" * 130]
    match draw.randrange(8):
        case 0:
            return [draw.choice(few)] * count
        case 1:
            return [draw.choice(few) for _ in range(count)]
        case 2:
            values = [draw.randbytes(6) for _ in range(draw.choice([2, 31, 32, 33, 40]))]
            return [draw.choice(values) for _ in range(count)]
        case 3:
            return [b"00-%032x-%016x-01" % (draw.getrandbits(128), draw.getrandbits(64)) for _ in range(count)]
        case 4:
            return [b"%x" % draw.getrandbits(draw.choice([3, 4, 5])) for _ in range(count)]
        case 5:
            return [b"%X-%d" % (draw.getrandbits(4), draw.randrange(10)) for _ in range(count)]
        case 6:
            return [draw.randbytes(draw.randrange(70, 90)) for _ in range(count)]
        case _:
            return _contents(draw, count, draw.choice(["none", "some", "all"]))


def _headers(draw: Draw, count: int, kind: str) -> list[tuple[tuple[str, bytes | None], ...]]:
    if kind == "none":
        return [()] * count
    keys = [draw.choice(["", "traceparent", "ce_id", "k", "ключ"]) for _ in range(draw.randrange(1, 4))]
    columns = [[(key, value) for value in _header_values(draw, count)] for key in keys]
    rows = list(zip(*columns, strict=True))
    if kind == "by position":
        return rows
    if kind == "one":
        found: list[tuple[tuple[str, bytes | None], ...]] = [()] * count
        found[draw.randrange(count)] = rows[0][:1]
        return found
    if kind == "rare":
        return [row if draw.random() < 0.1 else () for row in rows]
    return [row[: draw.randrange(len(keys) + 1)] for row in rows]


@st.composite
def batches(draw: st.DrawFn, max_count: int = 64) -> tuple[Message, ...]:
    count = min(draw(COUNTS), max_count)
    times, holes = draw(st.sampled_from(WILD_NAMES)), draw(st.sampled_from(HOLES))
    nulls = draw(st.sampled_from(NULLS)), draw(st.sampled_from(NULLS))
    kind = draw(st.sampled_from(HEADER_KINDS))
    seed = random.Random(draw(st.integers(0, 2**32)))
    return messages(seed, count, times, draw(st.booleans()), holes, nulls, kind)


def messages(
    draw: Draw,
    count: int,
    times: str,
    is_now: bool,
    holes: str,
    nulls: tuple[str, str],
    kind: str,
) -> tuple[Message, ...]:
    """Draw messages.

    is_now: timestamps are close to NOW_MS. nulls: how many keys and values are null. kind: one of HEADER_KINDS.
    """
    offsets = list(range(count)) if holes == "dense" else shaped(draw, holes, count)
    keys, values = (_contents(draw, count, each) for each in nulls)
    headers = _headers(draw, count, kind)
    stamps = shaped(draw, times, count)
    if is_now:
        stamps = [min(NOW_MS + stamp, INT64) for stamp in stamps]
    return tuple(
        Message(
            offset=min(offsets[i], FARTHEST), timestamp_ms=stamps[i], key=keys[i], value=values[i], headers=headers[i]
        )
        for i in range(count)
    )


BATCHES = batches()
BASE_TIMESTAMPS = st.sampled_from([None, None, None, -1, 0, NOW_MS, INT64])


@st.composite
def fields_of(draw: st.DrawFn, messages: Sequence[Message]) -> Fields:
    """Draw header fields as producers, brokers and the cleaner set them. No record need have these timestamps."""
    given = draw(v2_fields(messages, 0))
    base = draw(BASE_TIMESTAMPS) if given.delete_horizon_ms is None else None
    latest = draw(BASE_TIMESTAMPS)
    if base is None and latest is None:
        return given
    return Fields(**{**given.__dict__, "base_timestamp_ms": base, "max_timestamp_ms": latest})


@st.composite
def cases(draw: st.DrawFn, max_batches: int = 3) -> Case:
    """Draw batches whose offsets lie anywhere in the int32 range after the first offset of their batch."""
    drawn = tuple(draw(BATCHES) for _ in range(draw(st.integers(1, max_batches))))
    return Case(batches=drawn, fields=tuple(draw(fields_of(batch)) for batch in drawn))


# For fuzzers: without Hypothesis, and the same batches in every run

FIELDS: tuple[Fields, ...] = (
    Fields(),
    Fields(producer_id=7, producer_epoch=1, base_sequence=3, is_transactional=True),
    Fields(base_timestamp_ms=NOW_MS - 5),
    Fields(delete_horizon_ms=NOW_MS + 9),
    Fields(append_time_ms=NOW_MS + 99),
    Fields(max_timestamp_ms=2**50),
)


def drawn(seed: int) -> tuple[tuple[Message, ...], Fields]:
    draw = random.Random(seed)
    times, holes = draw.choice(WILD_NAMES), draw.choice(HOLES)
    kind = draw.choice(["none", "by position", "by position", "one", "any", "rare"])
    nulls, count = (draw.choice(NULLS), draw.choice(NULLS)), draw.choice([1, 2, 3, 9, 17, 33])
    return messages(draw, count, times, draw.random() < 0.5, holes, nulls, kind), draw.choice(FIELDS)
