"""Golden vectors of batch headers and logs: producers, control batches, segments, levels, empty batches."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.oracle.cases.vector import (
    APPENDED,
    IDEMPOTENT,
    INT16_MAX,
    INT32_MAX,
    INT64_MAX,
    T0,
    Vector,
    add,
    batch,
    cut,
    every,
    marker,
    record,
    sealed_patch,
    series,
)
from tests.oracle.client import Spec

KRAFT: Final = ("leaderChange", "snapshotHeader", "snapshotFooter", "kraftVersion", "kraftVoters")


def producer() -> Iterator[Vector]:
    wrapping = IDEMPOTENT | {"baseSequence": INT32_MAX - 1}
    extreme = {"producerId": INT64_MAX, "producerEpoch": INT16_MAX, "baseSequence": INT32_MAX}
    given = {
        "idempotent": IDEMPOTENT,
        "transactional": IDEMPOTENT | {"transactional": True},
        "sequence_wrap": wrapping,
        "extremes": extreme | {"partitionLeaderEpoch": INT32_MAX, "transactional": True},
    }
    for codec in ("none", "gzip", "zstd"):
        for what, fields in given.items():
            yield Vector(name=f"producer_v2_{codec}_{what}", batches=[batch(2, codec, series(4), **fields)])
    append = {"timestampType": "LOG_APPEND_TIME", "appendTime": APPENDED, "transactional": True}
    yield Vector(
        name="producer_v2_none_transactional_append", batches=[batch(2, "none", series(2), **IDEMPOTENT, **append)]
    )


def control() -> Iterator[Vector]:
    yield Vector(name="control_commit", batches=[marker(200, "COMMIT", partitionLeaderEpoch=4)])
    yield Vector(name="control_abort", batches=[marker(201, "ABORT", coordinatorEpoch=INT32_MAX)])
    for kind in KRAFT:
        one = {"kind": kind, "baseOffset": 3, "timestamp": T0, "partitionLeaderEpoch": 2}
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind)
        yield Vector(name=f"control_{name}", batches=[one])
    voters = {"kind": "leaderChange", "baseOffset": 9, "timestamp": T0, "partitionLeaderEpoch": 3, "voters": 5}
    yield Vector(name="control_leader_change_five_voters", batches=[voters])
    transactional = IDEMPOTENT | {"transactional": True}
    other = transactional | {"producerId": 4712}
    interleaved = [
        batch(2, "none", series(2), baseOffset=10, **transactional),
        batch(2, "lz4", series(2), baseOffset=12, **other),
        batch(2, "none", series(1), baseOffset=14, **transactional | {"baseSequence": 2}),
        marker(15, "COMMIT"),
        batch(2, "zstd", series(3), baseOffset=16, **other | {"baseSequence": 2}),
        marker(19, "ABORT", producer=4712),
    ]
    yield Vector(name="control_interleaved_segment", batches=interleaved)

    yield from _odd_control_records()


class OddControlRecord(NamedTuple):
    """A control record that Kafka's writer never writes. key, value: hexadecimal, or None for null."""

    name: str
    key: str
    value: str | None
    refused: bool
    note: str


ODD_CONTROL_RECORDS: Final = (
    OddControlRecord("unknown_type", "0000002a", "0000", False, "type 42, ControlRecordType.UNKNOWN"),
    OddControlRecord("long_key", "00000001ffff", "00000000000f", False, "bytes behind the type"),
    OddControlRecord("long_value", "00000001", "00000000000fffff", False, "bytes behind the coordinator epoch"),
    OddControlRecord(
        "newer_version", "00050001", "00050000000f", False, "a later version is read as the newest known one"
    ),
    OddControlRecord("short_key", "0000", "0000", True, "a key needs 4 bytes"),
    OddControlRecord("negative_version", "ffff0001", "00000000000f", True, "a key of version -1"),
    OddControlRecord("commit_short_value", "00000001", "0000000000", True, "a marker's value needs 6 bytes"),
    OddControlRecord("commit_null_value", "00000001", None, True, "a marker's value is null"),
    OddControlRecord("abort_negative_version", "00000000", "ffff0000000f", True, "a marker's value of version -1"),
)


def _odd_control_records() -> Iterator[Vector]:
    steps = sealed_patch(21, "0020")  # attributes with the control bit
    fields = {"producerId": 1, "producerEpoch": 0, "baseSequence": 0}
    for name, key, value, refused, note in ODD_CONTROL_RECORDS:
        content = record({"hex": key}, None if value is None else {"hex": value})
        one = batch(2, "none", [content], **fields)
        yield Vector(name=f"control_{name}", batches=[one], steps=steps, refused=refused, note=note)
    null_key = batch(2, "none", [record(None, "v")], **fields)
    yield Vector(name="control_null_key", batches=[null_key], steps=steps, refused=True)


def segment() -> Iterator[Vector]:
    def chain(magic: int, codec: str, count: int) -> list[Spec]:
        return [batch(magic, codec, series(2), baseOffset=2 * i) for i in range(count)]

    yield Vector(
        name="segment_mixed_magics",
        batches=[batch(magic, codec, series(2), baseOffset=2 * i) for i, (magic, codec) in enumerate(every())],
    )
    yield Vector(name="segment_v1_wrappers_and_plain", batches=[*chain(1, "gzip", 2), *chain(1, "none", 2)])
    yield Vector(name="segment_v2_five", batches=chain(2, "none", 5))
    yield Vector(
        name="segment_v2_back",
        batches=[batch(2, "none", series(2), baseOffset=base) for base in (100, 100, 50)],
        note="offsets that go back between batches are not the reader's affair",
    )
    yield Vector(
        name="segment_v2_holes", batches=[batch(2, "none", series(2), baseOffset=base) for base in (0, 1000, 2**33)]
    )
    for magic in range(3):
        whole = chain(magic, "none", 2)
        yield Vector(name=f"segment_v{magic}_tail_in_body", batches=whole, steps=[cut(5)])
        start = add("0000000000000001000000")
        yield Vector(name=f"segment_v{magic}_tail_in_header", batches=whole, steps=[start])


def level() -> Iterator[Vector]:
    levels = {"gzip": (1, 9), "lz4": (1, 9, 17), "zstd": (-7, 1, 3, 19, 22)}
    for codec, given in levels.items():
        for number in given:
            name = f"level_v2_{codec}_{str(number).replace('-', 'm')}"
            yield Vector(name=name, batches=[batch(2, codec, series(20), level=number)])
    for codec, number in (("gzip", 1), ("lz4", 17)):
        yield Vector(name=f"level_v1_{codec}_{number}", batches=[batch(1, codec, series(20), level=number)])


def empty() -> Iterator[Vector]:
    hollow = {"kind": "empty", "baseOffset": 10, "lastOffset": 19}
    append = {"timestamp": APPENDED, "timestampType": "LOG_APPEND_TIME", "transactional": True}
    yield Vector(name="empty_zero_bytes", batches=[])
    yield Vector(name="empty_v2", batches=[hollow])
    yield Vector(name="empty_v2_max_timestamp", batches=[hollow | {"timestamp": T0} | IDEMPOTENT])
    yield Vector(name="empty_v2_transactional_append", batches=[hollow | IDEMPOTENT | append])
    yield Vector(name="empty_v2_control", batches=[hollow | {"control": True, "producerId": 1, "producerEpoch": 0}])
    around = [batch(2, "none", series(1), baseOffset=base) for base in (9, 20)]
    yield Vector(name="empty_v2_between", batches=[around[0], hollow, around[1]])
    yield Vector(name="empty_v2_widest", batches=[hollow | {"lastOffset": 10 + INT32_MAX}])
