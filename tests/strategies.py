"""Hypothesis strategies for records at the limits of formats, batch bounds and header fields.

Records are drawn as plain messages of the reference codecs. `tests.common` converts them to kfbench's columns.
`cases_of` uses a format's declared capabilities, so a new format needs no change here.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from kfbench.formats import FORMATS
from kfbench.layouts import UNSIGNED_BIT
from tests.reference.enriched import seconds
from tests.reference.model import Fields, Message, RefusedError, check_control

NOW_MS = 1_700_000_000_000
INT16, INT32, INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1

# On both sides of each size limit of a zig-zag varint (64, 8192) and of the kernels' 32-byte copies.
BOUNDARY_LENGTHS = (0, 1, 15, 16, 17, 31, 32, 33, 62, 63, 64, 65, 127, 128, 300)
LONG_LENGTHS = (8190, 8191, 8192, 8193)
EDGES = (63, 64, 8191, 8192, 2**20 - 1, 2**20, 2**27, 2**34)
DELTA_STEPS = (0, 1, *EDGES, *(-1 - edge for edge in EDGES))
HOLE_STEPS = (1, 2, 63, 64, 127, 128, 8191, 8192, 16383, 16384, 2**20)
FALLING_STEPS = (*HOLE_STEPS, 0, -1, -2, -64, -8193)
# A negative offset delta is a special case in these formats.
FALLING_NAMES = ("kip98", *(name for name, fmt in FORMATS.items() if fmt.features & UNSIGNED_BIT))
CONTROL_TYPES = (0, 1, 2, 3, 4, 5, 6, 42, -1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Batches of messages, with the header fields of each batch in `fields`."""

    batches: tuple[tuple[Message, ...], ...]
    fields: tuple[Fields, ...]

    @property
    def messages(self) -> list[Message]:
        return [message for batch in self.batches for message in batch]


def payloads(lengths: Sequence[int] = BOUNDARY_LENGTHS) -> st.SearchStrategy[bytes | None]:
    """Draw keys or values: null, empty, or of a boundary length. Different ones have different bytes.

    Each payload is a single draw, because drawing takes most of a test's time.
    """
    sized = [(bytes([length * 37 & 0xFF, length & 0x7F, 0xFF]) * (length // 3 + 1))[:length] for length in lengths]
    return st.sampled_from([None, b"", *sized]) | st.binary(max_size=20)


PAYLOADS, LONG_PAYLOADS = payloads(), payloads(BOUNDARY_LENGTHS + LONG_LENGTHS)


def header_lists(max_size: int = 4) -> st.SearchStrategy[tuple[tuple[str, bytes | None], ...]]:
    """Draw lists of headers with few different keys, so that duplicates occur.

    Keys may be empty or multi-byte. Values may be null.
    """
    keys, values = ["", "a", "trace", "ключ-鍵-🔑-é", "k" * 64], [None, b"", b"1", b"x" * 63, b"x" * 64]
    any_key = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    headers = st.sampled_from([(key, value) for key in keys for value in values]) | st.tuples(any_key, st.just(b"?"))
    return st.lists(headers, max_size=max_size).map(tuple)


HEADER_LISTS, OWN_HEADERS = header_lists(), header_lists(2)
TIMESTAMPS = st.sampled_from([-1, 0, NOW_MS, INT64]) | st.integers(-1, INT64)
NEAR_STEPS = st.sampled_from(DELTA_STEPS)
HOLES, FALLING = st.sampled_from(HOLE_STEPS), st.sampled_from(FALLING_STEPS)
ANY_HEADERS_KEPT = st.sampled_from([9, 9, 9, 0, 1, 2, 3])
CONTROL_KEYS = st.sampled_from(
    [struct.pack(">hh", version, kind) + more
     for version in (0, 1, INT16) for kind in CONTROL_TYPES for more in (b"", b"more")]
)  # fmt: skip
MARKERS = st.sampled_from(
    [struct.pack(">hi", version, epoch) + more
     for version in (0, INT16) for epoch in (-1, 0, INT32) for more in (b"", b"more")]
)  # fmt: skip


@st.composite
def control_records(draw: st.DrawFn) -> tuple[bytes, bytes | None]:
    """Draw the key and value of a control record that Kafka can read. It may have any type, also of a later version."""
    key = draw(CONTROL_KEYS)
    return key, draw(MARKERS if key[2:4] in (b"\0\0", b"\0\1") else PAYLOADS)


CONTROL_RECORDS = control_records()


def is_control_record(message: Message) -> bool:
    try:
        check_control([message])
    except RefusedError:
        return False
    return True


@st.composite
def message_lists(
    draw: st.DrawFn,
    min_size: int = 0,
    max_size: int = 8,
    headers: bool = True,
    first_offset: int = 0,
    timestamped: bool = True,
    falling: bool = False,
) -> tuple[Message, ...]:
    """Draw a list of messages. falling: offsets may go down."""
    count = draw(st.integers(min_size, max_size))
    kind = draw(st.integers(0, 31))
    extreme, steady, control, is_long = bool(kind & 1), bool(kind & 2), kind >= 28, kind in (20, 21)
    base = draw(TIMESTAMPS)
    content = LONG_PAYLOADS if is_long else PAYLOADS
    # All records start with these headers. If some lists are cut, only some records do.
    shared = draw(HEADER_LISTS) if headers and not steady else ()
    offset = first_offset
    messages = []
    for _ in range(count):
        timestamp = -1
        if timestamped:
            timestamp = draw(TIMESTAMPS) if extreme else min(max(base + draw(NEAR_STEPS), -1), INT64)
        key, value = draw(CONTROL_RECORDS) if control else (draw(content), draw(content))
        own: tuple[tuple[str, bytes | None], ...] = ()
        if headers and not steady:
            own = shared[: draw(ANY_HEADERS_KEPT)] + draw(OWN_HEADERS)
        messages.append(Message(offset=offset, timestamp_ms=timestamp, key=key, value=value, headers=own))
        offset += 1 if steady else draw(FALLING if falling else HOLES)
    return tuple(messages)


# Header fields as producers and brokers set them. Each is a single draw.
PRODUCERS = st.sampled_from(
    [(-1, -1, -1), (0, 0, 0), (4711, INT16, 100), (INT64, 0, INT32 - 1), (4711, 3, INT32), (7, -1, -1)]
)
FLAGS = st.integers(0, 3)
APPEND_TIMES = st.sampled_from([None, None, 0, NOW_MS, NOW_MS + 86_400_000, INT64])
DELETE_HORIZONS = st.sampled_from([None, None, None, 0, NOW_MS, NOW_MS + 86_400_000, INT64])
LEADER_EPOCHS = st.sampled_from([-1, 0, 7, INT32])
TIMESTAMP_TYPES = st.sampled_from([None, 0, 1])
ROOMS = st.integers(0, 100)
MAYBE_ROOMS = st.none() | ROOMS


@st.composite
def v2_fields(
    draw: st.DrawFn,
    messages: Sequence[Message],
    base_offset: int,
    leader_epoch: bool = True,
    delete_horizon: bool = True,
    tagged: bool = False,
) -> Fields:
    """Draw batch header fields as producers, brokers and the log cleaner set them.

    An empty batch keeps an offset range.
    """
    first = messages[0].offset if messages else base_offset
    last = messages[-1].offset if messages else base_offset
    rooms = MAYBE_ROOMS if messages else ROOMS
    before, after = draw(rooms), draw(rooms)
    (producer_id, producer_epoch, base_sequence), flags = draw(PRODUCERS), draw(FLAGS)
    return Fields(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=bool(flags & 1),
        is_control=bool(flags & 2) and all(map(is_control_record, messages)),
        append_time_ms=draw(APPEND_TIMES),
        timestamp_type=draw(TIMESTAMP_TYPES) if tagged else None,
        delete_horizon_ms=draw(DELETE_HORIZONS) if delete_horizon else None,
        partition_leader_epoch=draw(LEADER_EPOCHS) if leader_epoch else -1,
        base_offset=None if before is None else max(first - before, base_offset),
        last_offset=None if after is None else last + after,
        tagged_fields=draw(TAGGED_FIELDS) if tagged else {},
    )


def tagged_fields() -> st.SearchStrategy[dict[int, bytes]]:
    """Draw unknown tags. Their numbers and sizes are at the limits of varints."""
    tags = st.sampled_from([2, 3, 127, 128, 16383, 16384, INT32])
    return st.dictionaries(tags, st.binary(max_size=9) | st.sampled_from([bytes(127), bytes(128)]), max_size=3)


TAGGED_FIELDS = tagged_fields()
FIRST_OFFSETS = st.sampled_from([0, 1, 100, 2**40])


@st.composite
def cases(
    draw: st.DrawFn,
    max_batches: int = 4,
    headers: bool = True,
    timestamped: bool = True,
    batch_fields: bool = True,
    empty_batches: bool = True,
    leader_epoch: bool = True,
    delete_horizon: bool = True,
    tagged: bool = False,
    falling: bool = False,
) -> Case:
    """Draw batches and their header fields for magic 2 and above."""
    batches: list[tuple[Message, ...]] = []
    fields: list[Fields] = []
    offset = draw(FIRST_OFFSETS)
    for _ in range(draw(st.integers(0, max_batches))):
        smallest = 0 if empty_batches and batch_fields else 1
        batch = draw(
            message_lists(
                min_size=smallest, headers=headers, first_offset=offset, timestamped=timestamped, falling=falling
            )
        )
        batches.append(batch)
        wanted = v2_fields(batch, offset, leader_epoch=leader_epoch, delete_horizon=delete_horizon, tagged=tagged)
        fields.append(draw(wanted) if batch_fields else Fields())
        last = fields[-1].last_offset
        offset = 1 + (last if last is not None else batch[-1].offset if batch else offset)
    return Case(batches=tuple(batches), fields=tuple(fields))


def cases_of(name: str, max_batches: int = 4) -> st.SearchStrategy[Case]:
    """Draw batches that this format can store without loss. Columnar has cases of its own, too."""
    can = FORMATS[name].capabilities
    if FORMATS[name].holds_messages:
        return message_cases(name, max_batches)
    drawn = cases(
        max_batches,
        timestamped=can.timestamps,
        falling=name in FALLING_NAMES,
        empty_batches=can.empty_batches,
        **_content_of(name),
    )
    if name == "columnar":
        from tests.research.columnar import cases as columnar_cases  # it draws fields by this module

        return drawn | columnar_cases.cases(max_batches).map(one_maximum)
    return drawn if can.milliseconds else drawn.map(whole_second_case)


def one_maximum(case: Case) -> Case:
    """Remove the maximum timestamp of batches with an append time, which takes its place."""
    fields = [each if each.append_time_ms is None else replace(each, max_timestamp_ms=None) for each in case.fields]
    return replace(case, fields=tuple(fields))


def _content_of(name: str) -> dict[str, bool]:
    """Return which optional parts the format can store, as arguments of `cases`."""
    can = FORMATS[name].capabilities
    return {
        "headers": can.headers,
        "leader_epoch": "partition_leader_epoch" in can.batch_fields,
        "delete_horizon": "delete_horizon_ms" in can.batch_fields,
        "tagged": "tagged_fields" in can.batch_fields,
    }


@st.composite
def batches_of(draw: st.DrawFn, name: str, max_size: int = 3, min_size: int = 0) -> tuple[tuple[Message, ...], Fields]:
    """Draw one batch and its header fields. It may be empty if the format has magic 2 or above."""
    if name == "columnar" and draw(st.booleans()):
        from tests.research.columnar import cases as columnar_cases

        messages = draw(columnar_cases.BATCHES)
        return messages, draw(columnar_cases.fields_of(messages))
    content = _content_of(name)
    falling, headers = name in FALLING_NAMES, content.pop("headers")
    if not FORMATS[name].holds_messages:
        messages = draw(message_lists(min_size=min_size, max_size=max_size, headers=headers, falling=falling))
        return messages, draw(v2_fields(messages, 0, **content))
    can = FORMATS[name].capabilities
    messages = draw(message_lists(min_size=1, max_size=max_size, headers=headers, timestamped=can.timestamps))
    if "is_control" in can.batch_fields:
        return messages, Fields(is_control=all(map(is_control_record, messages)) and draw(st.booleans()))
    return messages, Fields(append_time_ms=draw(st.sampled_from([None, NOW_MS])) if can.timestamps else None)


def whole_seconds(message: Message) -> Message:
    stamp = seconds(message.timestamp_ms)
    return replace(message, timestamp_ms=-1 if stamp == -1 else stamp * 1000)


def whole_second_case(case: Case) -> Case:
    """Round the timestamps of all messages down to whole seconds.

    A time whose seconds do not fit an int32 becomes -1.
    """
    return replace(case, batches=tuple(tuple(map(whole_seconds, batch)) for batch in case.batches))


@st.composite
def message_fields(draw: st.DrawFn, name: str, messages: Sequence[Message]) -> Fields:
    """Draw header fields of a batch of messages, as one that was converted from a newer format has them."""
    can, first, last = FORMATS[name].capabilities, messages[0].offset, messages[-1].offset
    given: dict[str, Any] = {"base_offset": draw(st.none() | st.integers(max(first - 100, 0), first))}
    if "is_control" in can.batch_fields:
        return Fields(is_control=all(map(is_control_record, messages)) and draw(st.booleans()), **given)
    if can.timestamps:
        given |= {field: draw(MESSAGE_TIMES) for field in ("append_time_ms", "max_timestamp_ms")}
    return Fields(last_offset=draw(st.none() | st.integers(last, last + 100)), **given)


MESSAGE_TIMES = st.sampled_from([None, 0, NOW_MS])


@st.composite
def message_cases(draw: st.DrawFn, name: str, max_batches: int = 4) -> Case:
    """Draw batches that formats of messages can store: without headers or producers, and none empty."""
    can = FORMATS[name].capabilities
    case = draw(cases(max_batches, headers=False, timestamped=can.timestamps, batch_fields=False))
    case = replace(case, fields=tuple(draw(message_fields(name, batch)) for batch in case.batches))
    return case if can.milliseconds else whole_second_case(case)


def plans(count: int) -> st.SearchStrategy[list[int]]:
    """Draw batch bounds (record indexes) for `count` records. Batches may be empty."""
    return st.lists(st.integers(0, count), max_size=6).map(lambda inner: [0, *sorted(inner), count])
