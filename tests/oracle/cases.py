"""The golden vectors, as data: for each a name, what Kafka's writer is asked for, and what is then done to the bytes.

A key or value is a text, {"hex": ...}, {"repeat": text, "times": n}, {"json": bytes, "seed": n} or null; `expand` turns
it into the hexadecimal that Kafka's side takes. Steps are what a broker does (stamp, convert, compact, validate) or
what is done by hand (`hand.py`).
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.client import Spec

OLD_CODECS = ("none", "gzip", "snappy", "lz4")
CODECS: dict[int, tuple[str, ...]] = {0: OLD_CODECS, 1: OLD_CODECS, 2: (*OLD_CODECS, "zstd")}
T0 = 1_700_000_000_000
APPENDED = T0 + 123_456
INT16_MAX, INT32_MAX, INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1
CLEANER: Spec = {"now": T0 + 100_000, "deleteRetentionMs": 86_400_000, "batchRetention": "DELETE_EMPTY"}
CLEANER |= {"markerOfEmptyTransaction": False}
LEADER: Spec = {"baseOffset": 500, "partitionLeaderEpoch": 7, "timestampType": "CREATE_TIME", "now": T0 + 500_000}
LEADER |= {"origin": "CLIENT", "compacted": False, "beforeMaxMs": None, "afterMaxMs": None}
UNKNOWN = {"declined": "UNKNOWN_SERVER_ERROR"}
UNKNOWN |= {"note": "Kafka's builder throws where its validator has not looked; the client hears of an unknown error"}
IDEMPOTENT = {"producerId": 4711, "producerEpoch": 3, "baseSequence": 0}
KRAFT = ("leaderChange", "snapshotHeader", "snapshotFooter", "kraftVersion", "kraftVoters")


@dataclass(frozen=True, kw_only=True)
class Vector:
    name: str
    batches: list[Spec]
    steps: list[Spec] = field(default_factory=list)
    refused: bool = False
    """Whether Kafka's reader must refuse it."""
    declined: str = ""
    """The error with which Kafka's broker must refuse the last step; nothing is written then."""
    note: str = ""

    @property
    def category(self) -> str:
        return self.name.split("_", 1)[0]


def expand(content: Any) -> str | None:
    match content:
        case None:
            return None
        case str():
            return content.encode().hex()
        case {"hex": str(digits)}:
            return digits
        case {"repeat": str(text), "times": int(times)}:
            return (text.encode() * times).hex()
        case {"json": int(size), "seed": int(seed)}:
            return _json(size, seed).hex()
    raise ValueError(content)


def _json(size: int, seed: int) -> bytes:
    """Text like a log of events, which compresses as such."""
    draw, text = random.Random(seed), ""
    while len(text) < size:
        event = {"user": f"u-{draw.randrange(10**5):06}", "event": draw.choice(["click", "view", "cart"])}
        text += json.dumps(event | {"ms": draw.randrange(10**4)}) + "\n"
    return text.encode()[:size]


def record(key: Any, value: Any, timestamp: int = T0, **more: Any) -> Spec:
    return {"timestamp": timestamp, "key": key, "value": value} | more


def series(count: int, step_ms: int = 7) -> list[Spec]:
    return [record(f"key-{i}", f"value-{i}-of-{count}", T0 + step_ms * i) for i in range(count)]


def batch(magic: int, codec: str, records: list[Spec], **more: Any) -> Spec:
    """v0 has no timestamps."""
    if magic == 0:
        records = [{name: value for name, value in each.items() if name != "timestamp"} for each in records]
    return {"magic": magic, "compression": codec, "records": records} | more


def marker(offset: int, kind: str, producer: int = 4711, **more: Any) -> Spec:
    spec = {"kind": "marker", "type": kind, "baseOffset": offset, "timestamp": T0 + offset, "coordinatorEpoch": 15}
    return spec | {"producerId": producer, "producerEpoch": 3} | more


def every(least: int = 0) -> Iterator[tuple[int, str]]:
    return ((magic, codec) for magic in range(least, 3) for codec in CODECS[magic])


def vectors() -> list[Vector]:
    makers = (
        *(basic, size, nulls, timestamps, offsets, headers, producer, control, compaction, downconvert, validate),
        *(segment, level, empty, varint, wrapper, corrupt),
    )
    found = [vector for make in makers for vector in make()]
    names = [vector.name for vector in found]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return found


def basic() -> Iterator[Vector]:
    append = {"timestampType": "LOG_APPEND_TIME", "appendTime": APPENDED}
    for magic, codec in every():
        for count in (1, 3):
            yield Vector(name=f"basic_v{magic}_{codec}_{count}", batches=[batch(magic, codec, series(count))])
            if magic:
                appended = batch(magic, codec, series(count), **append)
                yield Vector(name=f"basic_v{magic}_{codec}_append_{count}", batches=[appended])


def size() -> Iterator[Vector]:
    def values(count: int, length: int) -> list[Spec]:
        return [record(f"key-{i}", {"json": length, "seed": i}, T0 + i) for i in range(count)]

    for magic, codec in every():
        yield Vector(name=f"size_v{magic}_{codec}_1k_2", batches=[batch(magic, codec, values(2, 1024))])
    for magic in range(3):
        for length in (127, 128, 300):
            one = batch(magic, "none", values(1, length))
            yield Vector(name=f"size_v{magic}_none_{length}", batches=[one])
    for codec in ("none", "lz4", "zstd"):
        many = batch(2, codec, series(50, 1))
        yield Vector(name=f"size_v2_{codec}_50_records", batches=[many])
    for magic, codec, length in ((1, "snappy", 33_000), (2, "snappy", 33_000), (2, "lz4", 66_000)):
        blocks = batch(magic, codec, [record(None, {"json": length, "seed": 1})])
        yield Vector(
            name=f"size_v{magic}_{codec}_two_blocks", batches=[blocks], note="more than one block of the codec"
        )


def nulls() -> Iterator[Vector]:
    contents = {
        "null_key": (None, "v"),
        "null_value": ("k", None),
        "both_null": (None, None),
        "empty_key": ("", "v"),
        "empty_value": ("k", ""),
        "both_empty": ("", ""),
    }
    for magic, codec in every():
        if codec == "none":
            for what, (key, value) in contents.items():
                yield Vector(name=f"nulls_v{magic}_{what}", batches=[batch(magic, codec, [record(key, value)])])
        everything = [record(key, value, T0 + i) for i, (key, value) in enumerate(contents.values())]
        yield Vector(name=f"nulls_v{magic}_{codec}_all", batches=[batch(magic, codec, everything)])


def timestamps() -> Iterator[Vector]:
    times = {
        "back": [T0 + 1000, T0, T0 + 2000, T0 - 5000],
        "none": [-1, -1, -1],
        "first_none": [-1, T0, T0 + 1],
        "later_none": [T0, -1, T0 + 1],
        "spread": [0, 253_402_300_799_999, 1, T0],
        "largest": [INT64_MAX, 0, INT64_MAX - 1],
    }
    for magic, codec in ((1, "none"), (1, "gzip"), (2, "none"), (2, "lz4")):
        for what, stamps in times.items():
            records = [record(f"k{i}", f"v{i}", stamp) for i, stamp in enumerate(stamps)]
            yield Vector(name=f"timestamps_v{magic}_{codec}_{what}", batches=[batch(magic, codec, records)])
        records = [record(f"k{i}", f"v{i}", stamp) for i, stamp in enumerate(times["back"])]
        stamp = {"op": "stamp", "timestampType": "LOG_APPEND_TIME", "maxTimestamp": APPENDED}
        yield Vector(
            name=f"timestamps_v{magic}_{codec}_stamped",
            batches=[batch(magic, codec, records)],
            steps=[stamp],
            note="the leader writes its append time into the header and leaves the records' own times",
        )
        early = stamp | {"maxTimestamp": T0 - 10**6}
        yield Vector(
            name=f"timestamps_v{magic}_{codec}_stamped_early",
            batches=[batch(magic, codec, records)],
            steps=[early],
            note="the leader's clock is behind the producer's",
        )
    for codec in ("snappy", "zstd"):
        built = batch(2, codec, series(2), timestampType="LOG_APPEND_TIME", appendTime=0)
        yield Vector(name=f"timestamps_v2_{codec}_append_zero", batches=[built])


def offsets() -> Iterator[Vector]:
    for magic, codec in every():
        far = 2**40 + 12345
        gaps = [record(f"k{i}", f"v{i}", T0 + i, offset=offset) for i, offset in enumerate((100, 103, 110, 111))]
        big = [record("k", "v", offset=far), record("k", "w", offset=far + INT32_MAX // 2)]
        yield Vector(name=f"offsets_v{magic}_{codec}_holes", batches=[batch(magic, codec, gaps, baseOffset=100)])
        yield Vector(name=f"offsets_v{magic}_{codec}_far", batches=[batch(magic, codec, big, baseOffset=far)])
        if codec in ("none", "gzip"):
            assigned = [{"op": "stamp", "lastOffset": 5000}]
            note = "the leader writes the last offset; what is inside a v0 wrapper stays"
            built = batch(magic, codec, series(1 if codec == "none" else 3))
            yield Vector(name=f"offsets_v{magic}_{codec}_assigned", batches=[built], steps=assigned, note=note)
    for codec in ("none", "gzip", "zstd"):
        inner = [record("k", "v", offset=105), record("k", "w", T0 + 1, offset=106)]
        cleaned = batch(2, codec, inner, baseOffset=100, lastOffset=109, **IDEMPOTENT | {"baseSequence": 30})
        note = "as compaction leaves it: the first and last records are gone, their offsets are not"
        yield Vector(name=f"offsets_v2_{codec}_first_and_last_gone", batches=[cleaned], note=note)
    largest = batch(2, "none", [record("k", "v", offset=INT64_MAX - 1)], baseOffset=INT64_MAX - 1)
    yield Vector(name="offsets_v2_none_largest", batches=[largest])


def headers() -> Iterator[Vector]:
    lists = {
        "one": [["trace", "00-4bf92f35"]],
        "duplicates": [["retry", "1"], ["retry", "2"], ["retry", "1"], ["other", "x"], ["retry", "1"]],
        "null_value": [["a", None], ["b", None]],
        "empty_value": [["a", ""]],
        "empty_key": [["", "v"], ["", None], ["", ""]],
        "unicode": [["ключ-鍵-🔑-é", "значение"], ["naïve", "日本"]],
        "long": [["h" * 63, {"repeat": "v", "times": 63}], ["h" * 64, {"repeat": "v", "times": 64}]],
        "order": [[f"h{i}", str(i)] for i in (3, 1, 2)],
        "seventy": [[f"h{i}", str(i)] for i in range(70)],
    }
    for what, given in lists.items():
        one = batch(2, "none", [record("k", "v", headers=given), record("k", "w")])
        yield Vector(name=f"headers_v2_none_{what}", batches=[one])
    for codec in CODECS[2]:
        mix = [record("k", "v", headers=given) for what, given in lists.items() if what != "seventy"]
        yield Vector(name=f"headers_v2_{codec}_mix", batches=[batch(2, codec, mix)])


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
        yield Vector(name=f"control_{_snake(kind)}", batches=[one])
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

    steps: list[Spec] = [{"op": "patch", "at": 21, "hex": "0020"}, {"op": "seal"}]

    def raw(what: str, key: str, value: str | None, refused: bool, note: str) -> Vector:
        content = [record({"hex": key}, None if value is None else {"hex": value})]
        one = batch(2, "none", content, producerId=1, producerEpoch=0, baseSequence=0)
        return Vector(name=f"control_{what}", batches=[one], steps=steps, refused=refused, note=note)

    yield raw("unknown_type", "0000002a", "0000", False, "type 42, ControlRecordType.UNKNOWN")
    yield raw("long_key", "00000001ffff", "00000000000f", False, "bytes behind the type")
    yield raw("long_value", "00000001", "00000000000fffff", False, "bytes behind the coordinator epoch")
    yield raw("newer_version", "00050001", "00050000000f", False, "a later version is read as the newest known one")
    yield raw("short_key", "0000", "0000", True, "a key needs 4 bytes")
    yield raw("negative_version", "ffff0001", "00000000000f", True, "a key of version -1")
    yield raw("commit_short_value", "00000001", "0000000000", True, "a marker's value needs 6 bytes")
    yield raw("commit_null_value", "00000001", None, True, "a marker's value is null")
    yield raw("abort_negative_version", "00000000", "ffff0000000f", True, "a marker's value of version -1")
    null_key = batch(2, "none", [record(None, "v")], producerId=1, producerEpoch=0, baseSequence=0)
    yield Vector(name="control_null_key", batches=[null_key], steps=steps, refused=True)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def compaction() -> Iterator[Vector]:
    def compacted(
        what: str,
        batches: list[Spec],
        retain: list[int],
        *before: Spec,
        declined: str = "",
        note: str = "",
        **more: Any,
    ) -> Vector:
        """before: steps before the cleaner's; more: its options."""
        return Vector(
            name=f"compaction_{what}",
            batches=batches,
            steps=[*before, {"op": "compact", "retain": retain} | CLEANER | more],
            declined=declined,
            note=note,
        )

    for magic, codec in every():
        written = batch(magic, codec, series(10), baseOffset=100)
        yield compacted(f"v{magic}_{codec}_some", [written], [102, 105, 106])
        if codec in ("none", "gzip"):
            yield compacted(f"v{magic}_{codec}_first_and_last", [written], [100, 109])
            note = "all are kept: the batch is handed on as it is"
            yield compacted(f"v{magic}_{codec}_all", [written], [*range(100, 110)], note=note)
            yield compacted(f"v{magic}_{codec}_nothing", [written], [])
    for codec in ("none", "zstd"):
        tombstones = [record("a", None), record("b", "v", T0 + 1), record("c", None, T0 + 2)]
        written = batch(2, codec, tombstones, baseOffset=100)
        yield compacted(f"v2_{codec}_tombstones", [written], [100, 101, 102])
        yield compacted(f"v2_{codec}_last_tombstone", [written], [101, 102])
        yield compacted(f"v2_{codec}_no_tombstone_left", [written], [101], note="no horizon where none is left")
        horizon = written | {"deleteHorizonMs": T0 + 50_000}
        yield compacted(f"v2_{codec}_horizon_kept", [horizon], [100, 102], note="a horizon is set once")
        note = "as it is: its horizon is set"
        yield compacted(f"v2_{codec}_horizon_all", [horizon], [100, 101, 102], note=note)
        yield compacted(f"v2_{codec}_horizon_no_tombstone", [horizon], [101], note="the horizon stays")
        append = {"timestampType": "LOG_APPEND_TIME", "appendTime": APPENDED}
        yield compacted(f"v2_{codec}_append_tombstones", [written | append], [100, 101, 102])
    for magic in (0, 1):
        for codec in ("none", "gzip"):
            tombstones = [record("a", None), record(None, None, T0 + 1), record(None, "v", T0 + 2)]
            written = batch(magic, codec, tombstones, baseOffset=100)
            yield compacted(f"v{magic}_{codec}_nulls", [written], [100, 102], note="no horizon before v2")
    append = {"timestampType": "LOG_APPEND_TIME", "appendTime": APPENDED}
    for codec in ("none", "gzip"):
        for magic in (1, 2):
            written = batch(magic, codec, series(5), baseOffset=100, **append)
            yield compacted(f"v{magic}_{codec}_append", [written], [101, 103])
        stamp = {"op": "stamp", "timestampType": "LOG_APPEND_TIME", "maxTimestamp": APPENDED}
        for magic in (1, 2):
            written = batch(magic, codec, series(5), baseOffset=100)
            yield compacted(f"v{magic}_{codec}_stamped", [written], [101, 103], stamp)
        written = batch(2, codec, series(5), baseOffset=100)
        wrong = {"op": "stamp", "timestampType": "CREATE_TIME", "maxTimestamp": APPENDED}
        yield compacted(
            f"v2_{codec}_max_timestamp", [written], [101, 103], wrong, note="what is kept has another maximum"
        )
        given = IDEMPOTENT | {"baseSequence": 30, "transactional": True, "partitionLeaderEpoch": 5}
        written = batch(2, codec, series(5), baseOffset=100, lastOffset=109, **given)
        yield compacted(f"v2_{codec}_transactional", [written], [101, 103])
    with_headers = [one | {"headers": [["h", "v"], ["h", None]]} for one in series(4)]
    yield compacted("v2_none_headers", [batch(2, "none", with_headers, baseOffset=100)], [101, 102])
    inner = [record("k0", "v0", magic=0, offset=100), record("k1", "v1", magic=0, offset=101)]
    odd = {"magic": 1, "compression": "gzip", "unchecked": True, "baseOffset": 100, "records": inner}
    yield compacted("v1_gzip_inner_v0", [odd], [100, 101], note="KAFKA-4298: messages of v0 inside v1 are mended")
    for magic, codec in ((0, "none"), (1, "gzip"), (2, "none"), (2, "lz4")):
        several = [batch(magic, codec, series(3), baseOffset=base) for base in (100, 103, 110)]
        yield compacted(f"v{magic}_{codec}_several", several, [101, 110, 111, 112])
    kept = batch(2, "none", series(3), baseOffset=100, **IDEMPOTENT)
    yield compacted("v2_empty_kept", [kept], [], batchRetention="RETAIN_EMPTY")
    yield compacted("v2_gzip_empty_kept", [kept | {"compression": "gzip"}], [], batchRetention="RETAIN_EMPTY")
    yield compacted("v2_append_empty_kept", [kept | append], [], batchRetention="RETAIN_EMPTY")
    lost = kept | {"deleteHorizonMs": T0 + 50_000, "transactional": True}
    yield compacted("v2_horizon_empty_kept", [lost], [], batchRetention="RETAIN_EMPTY")
    hollow = {"kind": "empty", "baseOffset": 10, "lastOffset": 19, "timestamp": T0} | IDEMPOTENT
    yield compacted("v2_empty_kept_again", [hollow, kept], [101], batchRetention="RETAIN_EMPTY")
    yield compacted("v2_empty_deleted_again", [hollow, kept], [101])
    yield compacted("v2_empty_deleted", [kept, batch(2, "none", series(1), baseOffset=103)], [103])
    yield compacted("v2_deleted", [kept], [100, 101, 102], batchRetention="DELETE", note="whatever is to be kept")
    yield compacted(
        "v1_empty_kept",
        [batch(1, "gzip", series(3), baseOffset=100)],
        [],
        batchRetention="RETAIN_EMPTY",
        declined="UNKNOWN_SERVER_ERROR",
        note="no empty batches before v2",
    )
    for kind in ("ABORT", "COMMIT"):
        name = kind.lower()
        yield compacted(f"v2_{name}_horizon", [marker(201, kind)], [201], markerOfEmptyTransaction=True)
        yield compacted(f"v2_{name}_kept", [marker(201, kind)], [201])
        yield compacted(f"v2_{name}_empty_kept", [marker(201, kind)], [], batchRetention="RETAIN_EMPTY")


def downconvert() -> Iterator[Vector]:
    def converted(
        what: str, batches: list[Spec], magic: int, first: int = 0, note: str = "", declined: str = "", *before: Spec
    ) -> Vector:
        step = {"op": "convert", "toMagic": magic, "firstOffset": first}
        name = f"downconvert_{what}"
        return Vector(name=name, batches=batches, steps=[*before, step], note=note, declined=declined)

    with_headers = [one | {"headers": [["h", "v"]]} for one in series(3)]
    for codec in CODECS[1]:
        for to_magic in (0, 1):
            modern = batch(2, codec, with_headers, baseOffset=30)
            yield converted(f"v2_to_v{to_magic}_{codec}", [modern], to_magic, note="headers are dropped")
        yield converted(f"v1_to_v0_{codec}", [batch(1, codec, series(3), baseOffset=30)], 0)
    append = {"timestampType": "LOG_APPEND_TIME", "appendTime": APPENDED}
    for codec in ("none", "gzip"):
        yield converted(f"v2_to_v1_{codec}_append", [batch(2, codec, series(3), **append)], 1)
        yield converted(f"v2_to_v0_{codec}_append", [batch(2, codec, series(3), **append)], 0)
        yield converted(f"v1_to_v0_{codec}_append", [batch(1, codec, series(3), **append)], 0)
        stamp = {"op": "stamp", "timestampType": "LOG_APPEND_TIME", "maxTimestamp": T0 - 10**6}
        early = batch(2, codec, series(3))
        yield converted(f"v2_to_v1_{codec}_stamped", [early], 1, 0, "the leader's clock is behind", "", stamp)
        several = [batch(2, codec, series(3), baseOffset=30), batch(2, codec, series(3), baseOffset=33)]
        note = "uncompressed records before offset 32 are dropped"
        yield converted(f"v2_to_v1_{codec}_first_offset", several, 1, 32, note)
        yield converted(f"v2_to_v0_{codec}_all_before", several, 0, 100)
        older = [batch(1, codec, series(3), baseOffset=30), batch(1, codec, series(3), baseOffset=33)]
        yield converted(f"v1_to_v0_{codec}_first_offset", older, 0, 32, note)
        yield converted(f"v1_to_v1_{codec}_first_offset", older, 1, 32, "what is old enough is handed on as it is")
        holes = [record(f"k{i}", f"v{i}", T0 - i, offset=offset) for i, offset in enumerate((33, 35, 40))]
        hollow = batch(2, codec, holes, baseOffset=30, lastOffset=49)
        yield converted(
            f"v2_to_v1_{codec}_holes", [hollow], 1, note="what the header says of gone records is forgotten"
        )
        yield converted(f"v2_to_v0_{codec}_holes", [hollow], 0)
        nulls = [record(None, None), record("k", None, -1), record(None, "v", T0 + 9), record("", "", T0)]
        for to_magic in (0, 1):
            yield converted(f"v2_to_v{to_magic}_{codec}_nulls", [batch(2, codec, nulls, baseOffset=7)], to_magic)
        horizon = batch(2, codec, nulls, baseOffset=7, deleteHorizonMs=T0 + 10**6)
        yield converted(f"v2_to_v1_{codec}_horizon", [horizon], 1)
    transaction = [batch(2, "none", series(2), **IDEMPOTENT, transactional=True), marker(2, "COMMIT")]
    yield converted("v2_to_v1_transaction", transaction, 1, note="the marker is dropped, the producer forgotten")
    yield converted("v2_to_v0_marker", [marker(2, "ABORT")], 0, note="nothing is left")
    emptied = [batch(2, "none", series(1)), {"kind": "empty", "baseOffset": 1, "lastOffset": 4}]
    yield converted("v2_to_v1_empty", emptied, 1, note="the empty batch is gone")
    mixed = [batch(magic, "none", series(2), baseOffset=10 * magic) for magic in range(3)]
    for to_magic in range(3):
        yield converted(f"mixed_to_v{to_magic}", mixed, to_magic)
    packed = [batch(magic, "gzip", series(2), baseOffset=10 * magic) for magic in range(3)]
    yield converted("mixed_to_v0_gzip", packed, 0)
    refusal: Spec = {"note": "no zstd before v2, wherever it stands", "declined": "UNSUPPORTED_COMPRESSION_TYPE"}
    zstd = [batch(2, "none", series(2)), batch(2, "zstd", series(2), baseOffset=2)]
    for to_magic in (0, 1):
        yield converted(f"v2_to_v{to_magic}_zstd", zstd, to_magic, **refusal)
    yield converted("v2_to_v1_zstd_before_first_offset", zstd[1:], 1, first=50, **refusal)
    yield converted("v2_to_v2_zstd", zstd, 2)


def validate() -> Iterator[Vector]:
    def validated(
        what: str, written: Spec | list[Spec], to_magic: int, codec: str, *before: Spec, declined: str = "", **more: Any
    ) -> Vector:
        """before: steps before the leader's; more: a note, and the leader's options."""
        batches = written if isinstance(written, list) else [written]
        sources = [each.get("compression", "none") for each in batches]
        source = next((name for name in reversed(sources) if name != "none"), "none")
        note = more.pop("note", "")
        step = {"op": "validate", "toMagic": to_magic, "sourceCompression": source, "targetCompression": codec}
        step |= LEADER | ({} if to_magic else {"timestampType": "NO_TIMESTAMP_TYPE"}) | more
        name = f"validate_{what}"
        return Vector(name=name, batches=batches, steps=[*before, step], declined=declined, note=note)

    append = {"timestampType": "LOG_APPEND_TIME"}
    for source in range(3):
        for target in range(3):
            for codec in ("none", "gzip", "lz4") if source == target else ("none", "gzip"):
                written = batch(source, codec, series(3))
                yield validated(f"v{source}_to_v{target}_{codec}", written, target, codec)
    for magic in (1, 2):
        for codec in ("none", "snappy"):
            written = batch(magic, codec, series(3))
            yield validated(f"v{magic}_{codec}_append", written, magic, codec, **append)
        yield validated(f"v{magic}_gzip_to_none_append", batch(magic, "gzip", series(3)), magic, "none", **append)
        yield validated(f"v{magic}_none_to_gzip_append", batch(magic, "none", series(3)), magic, "gzip", **append)
    yield validated("v0_to_v2_gzip_append", batch(0, "gzip", series(3)), 2, "gzip", **append)
    yield validated("v2_none_to_zstd", batch(2, "none", series(3)), 2, "zstd")
    yield validated("v2_zstd_to_none", batch(2, "zstd", series(3)), 2, "none")
    yield validated("v2_zstd", batch(2, "zstd", series(3)), 2, "zstd")
    yield validated("v1_gzip_to_snappy", batch(1, "gzip", series(3)), 1, "snappy")
    yield validated("v1_none_to_gzip", batch(1, "none", series(3)), 1, "gzip", note="plain messages become one set")
    yield validated("v0_none_to_v2_zstd", batch(0, "none", series(3)), 2, "zstd")
    yield validated("v2_zstd_to_v1_gzip", batch(2, "zstd", series(3)), 1, "gzip")
    nulls = [record(None, None), record("k", None, -1), record(None, "v", T0 + 9), record("", "", T0)]
    transactional = IDEMPOTENT | {"transactional": True}
    with_headers = [one | {"headers": [["h", "v"], ["h", None]]} for one in series(3)]
    for codec in ("none", "gzip"):
        for magic in range(3):
            to_magic = 2 if magic else 1
            yield validated(f"v{magic}_to_v{to_magic}_{codec}_nulls", batch(magic, codec, nulls), to_magic, codec)
        yield validated(f"v2_{codec}_transactional", batch(2, codec, series(3), **transactional), 2, codec)
        yield validated(f"v2_{codec}_to_lz4_transactional", batch(2, codec, with_headers, **transactional), 2, "lz4")
        wrapping = IDEMPOTENT | {"baseSequence": INT32_MAX - 1}
        yield validated(f"v2_{codec}_sequence_wrap", batch(2, codec, series(3), **wrapping), 2, codec)
        wrong = {"op": "stamp", "maxTimestamp": T0 + 999, "timestampType": "CREATE_TIME"}
        note = "the largest timestamp is the records', whatever the header says"
        yield validated(f"v2_{codec}_max_timestamp", batch(2, codec, series(3)), 2, codec, wrong, note=note)
    yield validated("v1_gzip_max_timestamp", batch(1, "gzip", series(3)), 1, "gzip", wrong, note=note)
    back = [record("a", "v", T0 + 5), record("b", "v", T0 - 5), record("c", "v", -1)]
    for magic, codec in ((1, "none"), (1, "gzip"), (2, "none"), (2, "gzip")):
        yield validated(f"v{magic}_{codec}_times_back", batch(magic, codec, back), magic, codec)
    yield from _validate_offsets(validated)
    yield from _validate_markers(validated)
    yield from _validate_refusals(validated)
    yield from _validate_record_refusals(validated)


def _inner(*entries: tuple[int, int], magic: int = 1) -> Spec:
    """A gzip set whose inner messages have these offsets and magics, whatever Kafka's writer thinks of it."""
    records = [
        {"timestamp": T0 + i if own else -1, "key": f"k{i}", "value": f"v{i}", "offset": offset, "magic": own}
        for i, (offset, own) in enumerate(entries)
    ]
    return {"magic": magic, "compression": "gzip", "unchecked": True, "records": records}


def _validate_offsets(validated: Callable[..., Vector]) -> Iterator[Vector]:
    """What clients of v0 and v1 put into offsets is no reason to refuse."""
    zero = {"op": "stamp", "lastOffset": 0}
    yield validated("v1_gzip_inner_zero", _inner((0, 1), (0, 1), (0, 1)), 1, "gzip", zero, note="written anew")
    yield validated("v1_gzip_inner_holes", _inner((0, 1), (2, 1), (3, 1)), 1, "gzip", note="written anew")
    note = "a relative set at wrapper offset 0 is in place"
    yield validated("v1_gzip_outer_zero", _inner((0, 1), (1, 1), (2, 1)), 1, "gzip", zero, note=note)
    note = "offsets that do not start at 0: written anew"
    yield validated(
        "v1_gzip_outer_later", _inner((0, 1), (1, 1)), 1, "gzip", {"op": "stamp", "lastOffset": 41}, note=note
    )
    for magic in (0, 1):
        for codec in ("none", "gzip"):
            far = batch(magic, codec, series(2), baseOffset=77)
            yield validated(f"v{magic}_{codec}_base_offset", far, magic, codec)
    below = {"op": "stamp", "lastOffset": 3}
    yield validated("v1_gzip_below_inner", _inner((0, 1), (5, 1)), 1, "gzip", below, declined="INVALID_RECORD")


def _validate_markers(validated: Callable[..., Vector]) -> Iterator[Vector]:
    coordinator = {"origin": "COORDINATOR"}
    for kind in ("COMMIT", "ABORT"):
        name = kind.lower()
        yield validated(f"v2_{name}_coordinator", marker(0, kind), 2, "none", **coordinator)
        note = "control records stay as they are written"
        yield validated(f"v2_{name}_to_gzip", marker(0, kind), 2, "gzip", **coordinator, note=note)
    append = coordinator | {"timestampType": "LOG_APPEND_TIME"}
    yield validated("v2_commit_append", marker(0, "COMMIT"), 2, "none", **append)
    packed = batch(2, "gzip", [record({"hex": "00000001"}, {"hex": "00000000000f"})], control=True)
    note = "Kafka's builder forgets that it is a control batch; ours does not"
    yield validated("v2_gzip_commit_to_zstd", packed, 2, "zstd", **coordinator, note=note)
    holes = batch(2, "gzip", [record("k", "v", offset=offset) for offset in (0, 1, 3)])
    yield validated("v2_gzip_holes_coordinator", holes, 2, "gzip", **coordinator, **UNKNOWN)
    half: list[Spec] = [{"op": "patch", "at": 43, "hex": "0000000000000000"}, {"op": "seal"}]
    yield validated("v2_half_a_producer", batch(2, "none", series(2)), 2, "none", *half, **coordinator)
    yield validated(
        "v2_half_a_producer_to_gzip", batch(2, "none", series(2)), 2, "gzip", *half, **coordinator, **UNKNOWN
    )
    hollow = {"kind": "empty", "baseOffset": 0, "lastOffset": 9}
    yield validated("v2_empty_coordinator", hollow, 2, "none", **coordinator)
    yield validated("v2_empty_coordinator_to_gzip", hollow, 2, "gzip", **coordinator, note="nothing is left")
    far = batch(2, "none", series(2), baseOffset=77)
    yield validated("v2_base_offset_coordinator", far, 2, "none", **coordinator)
    yield validated("v2_base_offset", far, 2, "none", declined="INVALID_RECORD")
    yield validated("v2_commit_client", marker(0, "COMMIT"), 2, "none", declined="INVALID_RECORD")
    yield validated("v2_commit_to_v1", marker(0, "COMMIT"), 1, "none", **coordinator, **UNKNOWN)
    unfit = coordinator | {"declined": "UNSUPPORTED_FOR_MESSAGE_FORMAT"}
    yield validated("v2_commit_to_v1_gzip", marker(0, "COMMIT"), 1, "gzip", **unfit)


def _validate_refusals(validated: Callable[..., Vector]) -> Iterator[Vector]:
    """Of whole batches."""

    def patch(at: int, digits: str) -> list[Spec]:
        return [{"op": "patch", "at": at, "hex": digits}, {"op": "seal"}]

    bad = {"declined": "INVALID_RECORD"}
    one, gzip = batch(2, "none", series(3)), batch(2, "gzip", series(3))
    yield validated("nothing", [], 2, "none", **bad)
    yield validated("v2_two_batches", [one, one], 2, "none", **bad)
    yield validated("v2_two_gzip_batches", [gzip, gzip], 2, "gzip", **bad)
    yield validated("v2_two_batches_to_v1", [one, one], 1, "none", **bad)
    for magic in (0, 1):
        old = batch(magic, "gzip", series(2))
        yield validated(f"v{magic}_two_gzip_sets", [old, old], magic, "gzip", **bad)
        plain = batch(magic, "none", series(1))
        yield validated(f"v{magic}_gzip_and_plain", [old, plain], magic, "gzip", **bad)
    mixed = [batch(magic, "none", series(1)) for magic in (0, 1)]
    yield validated("v0_and_v1", mixed, 1, "none", **bad)
    yield validated("v0_and_v1_to_gzip", mixed, 1, "gzip", **bad)
    for codec, whole in (("none", one), ("gzip", gzip)):
        yield validated(f"v2_{codec}_offsets_beyond", whole | {"lastOffset": 4}, 2, codec, **bad)
        yield validated(f"v2_{codec}_offsets_short", whole, 2, codec, *patch(23, "00000001"), **bad)
        yield validated(f"v2_{codec}_no_offsets", whole, 2, codec, *patch(23, "ffffffff"), **bad)
        yield validated(f"v2_{codec}_count_zero", whole, 2, codec, *patch(57, "00000000"), **bad)
        yield validated(f"v2_{codec}_count_negative", whole, 2, codec, *patch(57, "ffffffff"), **bad)
        count = [*patch(57, "00000004"), *patch(23, "00000003")]
        yield validated(f"v2_{codec}_count_beyond", whole, 2, codec, *count, **bad)
        few = [*patch(57, "00000002"), *patch(23, "00000001")]
        yield validated(f"v2_{codec}_count_short", whole, 2, codec, *few, **bad)
        negative = whole | IDEMPOTENT
        yield validated(f"v2_{codec}_sequence_negative", negative, 2, codec, *patch(53, "ffffffff"), **bad)
        crc = [{"op": "patch", "at": -1, "hex": "7f"}]
        yield validated(f"v2_{codec}_crc", whole, 2, codec, *crc, declined="CORRUPT_MESSAGE")
        for magic in (0, 1):
            yield validated(
                f"v{magic}_{codec}_crc", batch(magic, codec, series(3)), magic, codec, *crc, declined="CORRUPT_MESSAGE"
            )
        unfit = {"declined": "UNSUPPORTED_FOR_MESSAGE_FORMAT"}
        for to_magic in (0, 1):
            yield validated(f"v2_{codec}_idempotent_to_v{to_magic}", negative, to_magic, codec, **unfit)
            transactional = negative | {"transactional": True}
            said = UNKNOWN if codec == "none" else unfit
            yield validated(f"v2_{codec}_transactional_to_v{to_magic}", transactional, to_magic, codec, **said)
        with_headers = whole | {"records": [one | {"headers": [["h", "v"]]} for one in series(2)]}
        yield validated(f"v2_{codec}_headers_to_v1", with_headers, 1, codec, **UNKNOWN)
    yield validated("v2_none_to_v1_zstd", one, 1, "zstd", **UNKNOWN)
    yield validated("v2_zstd_to_v1_zstd", batch(2, "zstd", series(3)), 1, "zstd", **UNKNOWN)
    hollow = {"kind": "empty", "baseOffset": 0, "lastOffset": 9}
    yield validated("v2_empty", hollow, 2, "none", **bad)
    for magic in (0, 1):
        yield validated(f"v{magic}_zstd", batch(magic, "gzip", series(2)), magic, "gzip", *patch(17, "04"), **bad)


def _validate_record_refusals(validated: Callable[..., Vector]) -> Iterator[Vector]:
    """Of single records, which Kafka lists."""
    bad, late = {"declined": "INVALID_RECORD"}, {"declined": "INVALID_TIMESTAMP"}
    append = {"timestampType": "LOG_APPEND_TIME"}
    for magic, codec in ((0, "none"), (0, "gzip"), (1, "none"), (1, "gzip"), (2, "none"), (2, "gzip")):
        keyless = [record("k", "v"), record(None, "v"), record("k", "w"), record(None, None)]
        written = batch(magic, codec, keyless)
        yield validated(f"v{magic}_{codec}_no_key", written, magic, codec, compacted=True, **bad)
        keyed = batch(magic, codec, [record("", "v"), record("k", None)])
        yield validated(f"v{magic}_{codec}_compacted", keyed, magic, codec, compacted=True)
        if magic == 0:
            continue
        now = LEADER["now"]
        edges = [record("k", "v", now - 1000), record("k", "v", now + 500), record("k", "v", -1)]
        limits = {"beforeMaxMs": 1000, "afterMaxMs": 500}
        yield validated(f"v{magic}_{codec}_just_in_time", batch(magic, codec, edges), magic, codec, **limits)
        for what, stamp in (("too_early", now - 1001), ("too_late", now + 501)):
            written = batch(magic, codec, [*edges, record("k", "v", stamp)])
            yield validated(f"v{magic}_{codec}_{what}", written, magic, codec, **limits, **late)
            note = "who stamps does not mind"
            yield validated(f"v{magic}_{codec}_{what}_append", written, magic, codec, **limits, **append, note=note)
        stamped = batch(magic, codec, series(2), timestampType="LOG_APPEND_TIME", appendTime=APPENDED)
        yield validated(f"v{magic}_{codec}_stamped_by_producer", stamped, magic, codec, **append, **late)
        if (magic, codec) != (1, "gzip"):  # whose inner messages would keep the bit, as no writer writes it
            note = "under create time a producer's append time passes as a timestamp"
            yield validated(f"v{magic}_{codec}_stamped_by_producer_create", stamped, magic, codec, note=note)
        both = batch(magic, codec, [record(None, "v", now), record("k", "v", now + 501)])
        said = bad if (magic, codec) == (1, "none") else late  # there each message is a batch, and the first one speaks
        yield validated(f"v{magic}_{codec}_no_key_and_late", both, magic, codec, compacted=True, **limits, **said)
    for magic, other in ((0, 1), (1, 0)):
        odd = _inner((0, magic), (1, other), magic=magic)
        yield validated(f"v{magic}_inner_v{other}", odd, magic, "gzip", **bad)
        gzip = batch(magic, "gzip", series(2))
        nested: Spec = {"op": "inside", "steps": [{"op": "patch", "at": 17, "hex": "01"}, {"op": "seal"}]}
        yield validated(f"v{magic}_nested", batch(magic, "gzip", series(1)), magic, "gzip", nested, **bad)
        flipped: Spec = {"op": "inside", "steps": [{"op": "patch", "at": -1, "hex": "ff"}]}
        yield validated(f"v{magic}_inner_crc", gzip, magic, "gzip", flipped, declined="CORRUPT_MESSAGE")
        nothing: Spec = {"op": "inside", "steps": [{"op": "cut", "bytes": "all"}]}
        yield validated(f"v{magic}_no_message", gzip, magic, "gzip", nothing, **bad)
    cut: Spec = {"op": "inside", "steps": [{"op": "cut", "bytes": 1}]}
    yield validated("v2_gzip_record_cut", batch(2, "gzip", series(2)), 2, "gzip", cut, **bad)
    left: Spec = {"op": "inside", "steps": [{"op": "add", "hex": "00"}]}
    yield validated("v2_gzip_left_over", batch(2, "gzip", series(2)), 2, "gzip", left, **bad)


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
        yield Vector(name=f"segment_v{magic}_tail_in_body", batches=whole, steps=[{"op": "cut", "bytes": 5}])
        start = {"op": "add", "hex": "0000000000000001000000"}
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


def varint() -> Iterator[Vector]:
    lengths = (0, 1, 62, 63, 64, 65, 127, 128)
    filled = [{"repeat": "x", "times": length} for length in lengths]
    yield Vector(name="varint_v2_key_sizes", batches=[batch(2, "none", [record(one, None) for one in filled])])
    yield Vector(name="varint_v2_value_sizes", batches=[batch(2, "none", [record(None, one) for one in filled])])
    names = [record(None, None, headers=[["h" * length, one]]) for length, one in zip(lengths, filled, strict=True)]
    yield Vector(name="varint_v2_header_sizes", batches=[batch(2, "none", names)])
    for length in (8191, 8192):
        one = batch(2, "none", [record(None, {"repeat": "x", "times": length})])
        yield Vector(name=f"varint_v2_value_{length}", batches=[one])
    steps = [0, *(sign * edge for edge in (63, 64, 65, 8191, 8192, 8193) for sign in (1, -1))]
    steps += [sign * (2**power + more) for power in (20, 27, 31, 34, 40) for more in (-1, 0) for sign in (1, -1)]
    times = [record(None, None, T0 + step) for step in steps]
    yield Vector(name="varint_v2_timestamp_deltas", batches=[batch(2, "none", times)])
    places = [0, 63, 64, 8191, 8192, 2**20 - 1, 2**20, 2**27 - 1, 2**27, INT32_MAX]
    spread = [record(None, None, offset=place) for place in places]
    yield Vector(name="varint_v2_offset_deltas", batches=[batch(2, "none", spread)])
    for count in (63, 64, 65):
        given = [["h", None]] * count
        one = batch(2, "none", [record(None, None, headers=given)])
        yield Vector(name=f"varint_v2_header_count_{count}", batches=[one])


def wrapper() -> Iterator[Vector]:
    def inner(*entries: tuple[int, int], magic: int = 1, base: int = 0, codec: str = "gzip") -> Spec:
        """(offset, magic) of each message inside, whatever Kafka's writer thinks of it."""
        records = [
            {"timestamp": T0 + i if own else -1, "key": f"k{i}", "value": f"v{i}", "offset": offset, "magic": own}
            for i, (offset, own) in enumerate(entries)
        ]
        return {"magic": magic, "compression": codec, "unchecked": True, "baseOffset": base, "records": records}

    def handmade(what: str, spec: Spec, steps: list[Spec], refused: bool, note: str = "") -> Vector:
        return Vector(name=f"wrapper_{what}", batches=[spec], steps=steps, refused=refused, note=note)

    for magic in (0, 1):
        for codec in CODECS[magic][1:]:
            yield Vector(
                name=f"wrapper_v{magic}_{codec}_single", batches=[batch(magic, codec, series(1), baseOffset=321)]
            )
            tail = [{"op": "inside", "steps": [{"op": "cut", "bytes": 3}]}]
            one = batch(magic, codec, series(3))
            note = "an inner set that is cut short ends at its last whole message"
            yield handmade(f"v{magic}_{codec}_inner_tail", one, tail, False, note)
        one = batch(magic, "snappy", series(3))
        raw = [{"op": "inside", "pack": "raw snappy"}]
        yield handmade(f"v{magic}_raw_snappy", one, raw, False, "a raw block, not a stream of blocks")
        gzip = batch(magic, "gzip", series(3))
        yield handmade(f"v{magic}_two_gzip_members", gzip, [{"op": "inside", "pack": "two gzip members"}], False)
        nothing = [{"op": "inside", "steps": [{"op": "cut", "bytes": "all"}]}]
        yield handmade(f"v{magic}_no_message", gzip, nothing, True, "a compressed set without a message")
        flipped = [{"op": "inside", "steps": [{"op": "patch", "at": -1, "hex": "ff"}]}]
        yield handmade(f"v{magic}_inner_crc", gzip, flipped, True)
        plain = batch(magic, "none", [record("k", None)])
        codec_bit: list[Spec] = [{"op": "patch", "at": 17, "hex": "01"}, {"op": "seal"}]
        yield handmade(f"v{magic}_null_value", plain, codec_bit, True, "a compressed message without a value")
        nested = [{"op": "inside", "steps": [{"op": "patch", "at": 17, "hex": "01"}, {"op": "seal"}]}]
        yield handmade(f"v{magic}_nested", batch(magic, "gzip", series(1)), nested, True)
        lz4 = batch(magic, "lz4", series(3))
        linked = [{"op": "inside", "pack": "linked lz4"}]
        yield handmade(f"v{magic}_linked_lz4", lz4, linked, True, "blocks that depend on each other")
        checksum: list[Spec] = [{"op": "patch", "at": (26 if magic == 0 else 34) + 6, "hex": "00"}, {"op": "seal"}]
        note = "v0's is wrong by design, so readers ignore it" if magic == 0 else "the frame descriptor's checksum"
        yield handmade(f"v{magic}_lz4_checksum", lz4, checksum, magic == 1, note)
    yield handmade("v1_absolute_inner", inner((40, 1), (41, 1)), [], False, "the last inner offset is the wrapper's")
    yield handmade("v1_inner_mixed", inner((10, 1), (11, 0), base=10, codec="snappy"), [], False)
    yield handmade("v1_inner_v0", inner((10, 0), (11, 0), base=10), [], False, "KAFKA-4298")
    yield handmade("v0_inner_v1", inner((10, 1), (11, 1), magic=0), [], False)
    zero = [{"op": "stamp", "lastOffset": 0}]
    yield handmade("v1_offset_zero", inner((0, 1), (1, 1), (2, 1)), zero, False, "as a producer sends it: base 0")
    yield handmade("v1_below_inner", inner((0, 1), (5, 1)), [{"op": "stamp", "lastOffset": 3}], True)
    same = inner((0, 1), (0, 1), (0, 1))
    note = "clients that left all inner offsets at 0"
    yield handmade("v1_inner_all_zero", same, [{"op": "stamp", "lastOffset": 7}], False, note)


def corrupt() -> Iterator[Vector]:
    def damaged(
        what: str, spec: Spec, *steps: Spec, sealed: bool = True, refused: bool = True, note: str = ""
    ) -> Vector:
        done = [*steps, {"op": "seal"}] if sealed else list(steps)
        return Vector(name=f"corrupt_{what}", batches=[spec], steps=done, refused=refused, note=note)

    def patch(at: int, digits: str) -> Spec:
        return {"op": "patch", "at": at, "hex": digits}

    for magic, codec in ((0, "none"), (0, "gzip"), (1, "none"), (1, "gzip"), (2, "none"), (2, "zstd")):
        whole = batch(magic, codec, series(2))
        yield damaged(f"v{magic}_{codec}_crc", whole, patch(-1, "ff"), sealed=False)
        yield damaged(f"v{magic}_{codec}_stored_crc", whole, patch(17 if magic == 2 else 12, "0badc0de"), sealed=False)
    for magic, least in ((0, 13), (1, 14), (2, 14), (2, 48)):
        note = "below the smallest size of " + ("any magic" if least == 13 else "this magic")
        whole = batch(magic, "none", series(1))
        yield damaged(f"v{magic}_size_{least}", whole, patch(8, f"{least:08x}"), sealed=False, note=note)
    yield damaged("v2_size_negative", batch(2, "none", series(1)), patch(8, "ffffffff"), sealed=False)
    yield damaged("v2_magic_5", batch(2, "none", series(1)), patch(16, "05"), sealed=False)
    yield damaged("v2_magic_negative", batch(2, "none", series(1)), patch(16, "ff"), sealed=False)
    for magic in (0, 1):
        gzip = batch(magic, "gzip", series(2))
        yield damaged(f"v{magic}_codec_zstd", gzip, patch(17, "04"), note="zstd came with v2")
        yield damaged(f"v{magic}_codec_7", gzip, patch(17, "07"))
        fixed = 18 if magic == 0 else 26
        one = batch(magic, "none", [record("key", "value")])
        yield damaged(f"v{magic}_key_length_beyond", one, patch(fixed, "00000100"))
        yield damaged(f"v{magic}_value_length_beyond", one, patch(fixed + 7, "00000100"))
        null, minus_two = batch(magic, "none", [record(None, "value")]), "fffffffe"
        yield damaged(f"v{magic}_key_length_minus_two", null, patch(fixed, minus_two), refused=False)
        yield damaged(f"v{magic}_value_length_minus_two", one, patch(fixed + 7, minus_two), refused=False)
        note = "bytes behind the value: not looked at"
        yield damaged(f"v{magic}_value_length_short", one, patch(fixed + 7, "00000002"), refused=False, note=note)
        for codec in CODECS[magic][1:]:
            cut = {"op": "cut", "bytes": 14}
            yield damaged(f"v{magic}_{codec}_cut", batch(magic, codec, series(1)), cut)

    one = batch(2, "none", [record("k", "v")])  # its record begins at 61
    yield damaged("v2_codec_7", one, patch(21, "0007"))
    yield damaged("v2_unused_attributes", one, patch(21, "ff80"), refused=False, note="bits 7-15 mean nothing")
    yield damaged("v2_record_attributes", one, patch(62, "7f"), refused=False, note="of no use: not looked at")
    yield damaged("v2_count_too_few", batch(2, "none", series(2)), patch(57, "00000001"), note="bytes remain")
    yield damaged("v2_count_too_many", batch(2, "none", series(2)), patch(57, "00000003"))
    yield damaged("v2_count_negative", one, patch(57, "ffffffff"))
    yield damaged("v2_count_zero", one, patch(57, "00000000"), refused=False, note="what follows is not looked at")
    yield damaged("v2_record_length_beyond", one, patch(61, "7e"))
    yield damaged("v2_record_length_negative", one, patch(61, "01"))
    yield damaged("v2_record_length_short", one, patch(61, "0e"))
    yield damaged("v2_record_length_long", batch(2, "none", series(2)), patch(61, "30"))
    yield damaged("v2_record_length_overlong", one, patch(61, "ffffffffff"), note="a varint of more than 5 bytes")
    yield damaged("v2_key_length_beyond", one, patch(65, "20"))
    yield damaged("v2_key_length_minus_two", batch(2, "none", [record(None, "v")]), patch(65, "03"), refused=False)
    yield damaged("v2_value_length_beyond", one, patch(67, "20"))
    yield damaged("v2_header_count_beyond", one, patch(-1, "04"))
    yield damaged("v2_header_count_negative", one, patch(-1, "01"))
    with_header = batch(2, "none", [record("k", "v", headers=[["h", "v"]])])
    yield damaged("v2_header_key_null", with_header, patch(-4, "01"))
    yield damaged("v2_header_key_beyond", with_header, patch(-4, "40"))
    yield damaged("v2_header_value_beyond", with_header, patch(-2, "40"))
    yield damaged("v2_gzip_not_gzip", one, patch(21, "0001"), note="says gzip, is plain")
    for codec in CODECS[2][1:]:
        cut = {"op": "cut", "bytes": 14}
        yield damaged(f"v2_{codec}_cut", batch(2, codec, series(3)), cut, note="the stream ends too soon")
        inside = {"op": "inside", "steps": [{"op": "add", "hex": "00"}]}
        yield damaged(f"v2_{codec}_left_over", batch(2, codec, series(2)), inside, sealed=False)
        short = {"op": "inside", "steps": [{"op": "cut", "bytes": 1}]}
        yield damaged(f"v2_{codec}_record_cut", batch(2, codec, series(2)), short, sealed=False)
    snappy = batch(2, "snappy", series(2))
    first, later = patch(61 + 8, "fffffffe"), {"op": "add", "hex": b"\x82SNAPPY\x00".hex() + "fffffffe00000001"}
    yield damaged("v2_snappy_version", snappy, first, refused=False, note="of the first header: not looked at")
    yield damaged("v2_snappy_later_version", snappy, later, note="of a stream behind a stream: looked at")
    linked = {"op": "inside", "pack": "linked lz4"}
    yield damaged("v2_linked_lz4", batch(2, "lz4", series(2)), linked, sealed=False)
    frames = {"op": "inside", "pack": "two zstd frames"}
    yield damaged("v2_two_zstd_frames", batch(2, "zstd", series(2)), frames, sealed=False, refused=False)
    second = [batch(2, "none", series(2)), batch(2, "none", series(2), baseOffset=2)]
    yield Vector(
        name="corrupt_v2_second_batch", batches=second, steps=[patch(-3, "ff")], refused=True, note="the first is sound"
    )
    yield Vector(
        name="corrupt_v2_second_batch_sealed", batches=second, steps=[patch(-1, "04"), {"op": "seal"}], refused=True
    )
