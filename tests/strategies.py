"""Hypothesis strategies: records at the edges of formats, batch plans, and what a writer sets on a batch.

Everything is drawn as the reference's plain messages; `tests.common` turns them into kfbench's columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.reference.model import Fields, Message

NOW_MS = 1_700_000_000_000
INT16, INT32, INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1

# One step either side of each size of a zig-zag varint (64, 8192) and of the 32-byte moves of the kernels.
BOUNDARY_LENGTHS = (0, 1, 15, 16, 17, 31, 32, 33, 62, 63, 64, 65, 127, 128, 300)
LONG_LENGTHS = (8190, 8191, 8192, 8193)
EDGES = (63, 64, 8191, 8192, 2**20 - 1, 2**20, 2**27, 2**34)
DELTA_STEPS = (0, 1, *EDGES, *(-1 - edge for edge in EDGES))
HOLE_STEPS = (1, 2, 63, 64, 8191, 8192, 2**20)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Batches of messages; `fields` has one entry a batch."""

    batches: tuple[tuple[Message, ...], ...]
    fields: tuple[Fields, ...]

    @property
    def messages(self) -> list[Message]:
        return [message for batch in self.batches for message in batch]


def payloads(lengths: Sequence[int] = BOUNDARY_LENGTHS) -> st.SearchStrategy[bytes | None]:
    """Null, empty, and boundary lengths; a long one repeats a short one, so that shrinking stays fast."""
    sized = st.builds(
        lambda length, seed: (seed * (length // len(seed) + 1))[:length],
        st.sampled_from(lengths),
        st.binary(min_size=1, max_size=8),
    )
    return st.one_of(st.none(), st.just(b""), st.binary(max_size=20), sized)


def header_lists(max_size: int = 4) -> st.SearchStrategy[tuple[tuple[str, bytes | None], ...]]:
    """Few distinct keys, so that duplicates come up; empty and multi-byte keys, null and empty values."""
    known = st.sampled_from(["", "a", "trace", "ключ-鍵-🔑-é"])
    keys = known | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    return st.lists(st.tuples(keys, payloads((0, 1, 63, 64))), max_size=max_size).map(tuple)


def timestamps() -> st.SearchStrategy[int]:
    return st.one_of(st.just(-1), st.just(0), st.just(NOW_MS), st.integers(-1, INT64), st.just(INT64))


@st.composite
def message_lists(
    draw: st.DrawFn,
    min_size: int = 0,
    max_size: int = 8,
    headers: bool = True,
    first_offset: int = 0,
    timestamped: bool = True,
) -> tuple[Message, ...]:
    count = draw(st.integers(min_size, max_size))
    extreme = draw(st.booleans())
    steady = draw(st.booleans())
    base = draw(timestamps())
    # One draw for all payloads of a list: homogeneous batches are what the kernels' fast paths see.
    content = payloads(BOUNDARY_LENGTHS + LONG_LENGTHS) if draw(st.integers(0, 9)) == 0 else payloads()
    offset = first_offset
    messages = []
    for _ in range(count):
        timestamp = -1
        if timestamped:
            near = min(max(base + draw(st.sampled_from(DELTA_STEPS)), -1), INT64)
            timestamp = draw(timestamps()) if extreme else near
        messages.append(
            Message(
                offset=offset,
                timestamp_ms=timestamp,
                key=draw(content),
                value=draw(content),
                headers=draw(header_lists()) if headers and not steady else (),
            )
        )
        offset += 1 if steady else draw(st.sampled_from(HOLE_STEPS))
    return tuple(messages)


def v2_fields(messages: Sequence[Message], base_offset: int) -> st.SearchStrategy[Fields]:
    """What producers, brokers and the log cleaner set; an empty batch must have its offset range."""
    first = messages[0].offset if messages else base_offset
    last = messages[-1].offset if messages else base_offset
    wider_base = st.integers(0, 100).map(lambda room: max(first - room, base_offset))
    wider_last = st.integers(0, 100).map(lambda room: last + room)
    empty = not messages
    maybe_time = st.one_of(st.none(), st.sampled_from([0, NOW_MS, NOW_MS + 86_400_000, INT64]))
    return st.builds(
        Fields,
        producer_id=st.sampled_from([-1, 0, 4711, INT64]),
        producer_epoch=st.sampled_from([-1, 0, INT16]),
        base_sequence=st.sampled_from([-1, 0, 100, INT32 - 1, INT32]),
        is_transactional=st.booleans(),
        is_control=st.booleans(),
        append_time_ms=maybe_time,
        delete_horizon_ms=st.one_of(st.none(), maybe_time),
        partition_leader_epoch=st.sampled_from([-1, 0, 7, INT32]),
        base_offset=wider_base if empty else st.one_of(st.none(), wider_base),
        last_offset=wider_last if empty else st.one_of(st.none(), wider_last),
        base_timestamp_ms=st.none(),
        max_timestamp_ms=st.none(),
    )


@st.composite
def cases(
    draw: st.DrawFn,
    max_batches: int = 4,
    headers: bool = True,
    timestamped: bool = True,
    batch_fields: bool = True,
    empty_batches: bool = True,
) -> Case:
    """Batches for magic 2 and above."""
    batches: list[tuple[Message, ...]] = []
    fields: list[Fields] = []
    offset = draw(st.sampled_from([0, 1, 100, 2**40]))
    for _ in range(draw(st.integers(0, max_batches))):
        smallest = 0 if empty_batches and batch_fields else 1
        batch = draw(message_lists(min_size=smallest, headers=headers, first_offset=offset, timestamped=timestamped))
        batches.append(batch)
        fields.append(draw(v2_fields(batch, offset)) if batch_fields else Fields())
        last = fields[-1].last_offset
        offset = 1 + (last if last is not None else batch[-1].offset if batch else offset)
    return Case(batches=tuple(batches), fields=tuple(fields))


def legacy_fields(magic: int, messages: Sequence[Message]) -> st.SearchStrategy[Fields]:
    """What a batch that comes from a newer format brings along: its offset range, its times."""
    times = st.one_of(st.none(), st.sampled_from([0, NOW_MS]))
    return st.builds(
        Fields,
        append_time_ms=times if magic else st.none(),
        base_offset=st.one_of(st.none(), st.integers(max(messages[0].offset - 100, 0), messages[0].offset)),
        last_offset=st.one_of(st.none(), st.integers(0, 100).map(lambda room: messages[-1].offset + room)),
        max_timestamp_ms=times if magic else st.none(),
    )


@st.composite
def legacy_cases(draw: st.DrawFn, magic: int, max_batches: int = 4) -> Case:
    """Batches that magic 0 or 1 can carry: no headers, no producer, none empty; no timestamps in 0."""
    case = draw(cases(max_batches, headers=False, timestamped=magic > 0, batch_fields=False))
    return Case(batches=case.batches, fields=tuple(draw(legacy_fields(magic, batch)) for batch in case.batches))


def plans(count: int) -> st.SearchStrategy[list[int]]:
    """Bounds over `count` records, empty batches included."""
    return st.lists(st.integers(0, count), max_size=6).map(lambda inner: [0, *sorted(inner), count])
