"""The golden vectors, as data: for each a name, what Kafka's writer is asked for, and what is then done to the bytes.

A key or value is a text, {"hex": ...}, {"repeat": text, "times": n}, {"json": bytes, "seed": n} or null; `expand` turns
it into the hexadecimal that Kafka's side takes. Steps are what a broker does (stamp, convert, compact, validate) or
what is done by hand (`hand.py`).
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.client import Spec

OLD_CODECS = ("none", "gzip", "snappy", "lz4")
CODECS: dict[int, tuple[str, ...]] = {0: OLD_CODECS, 1: OLD_CODECS, 2: (*OLD_CODECS, "zstd")}
T0 = 1_700_000_000_000
APPENDED = T0 + 123_456
INT16_MAX, INT32_MAX, INT64_MAX = 2**15 - 1, 2**31 - 1, 2**63 - 1
IDEMPOTENT = {"producerId": 4711, "producerEpoch": 3, "baseSequence": 0}
KRAFT = ("leaderChange", "snapshotHeader", "snapshotFooter", "kraftVersion", "kraftVoters")


@dataclass(frozen=True, kw_only=True)
class Vector:
    name: str
    batches: list[Spec]
    steps: list[Spec] = field(default_factory=list)
    refused: bool = False
    """Whether Kafka's reader must refuse it."""
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
    def compacted(what: str, batches: list[Spec], retain: list[int], **options: Any) -> Vector:
        return Vector(
            name=f"compaction_{what}",
            batches=batches,
            steps=[{"op": "compact", "retain": retain, "now": T0 + 100_000} | options],
        )

    for magic, codec in every():
        written = batch(magic, codec, series(10), baseOffset=100)
        yield compacted(f"v{magic}_{codec}_some", [written], [102, 105, 106])
        if codec in ("none", "gzip"):
            yield compacted(f"v{magic}_{codec}_first_and_last", [written], [100, 109])
    for codec in ("none", "zstd"):
        tombstones = [record("a", None), record("b", "v", T0 + 1), record("c", None, T0 + 2)]
        written = batch(2, codec, tombstones, baseOffset=100)
        yield compacted(f"v2_{codec}_tombstones", [written], [100, 101, 102])
    append = {"timestampType": "LOG_APPEND_TIME", "appendTime": APPENDED}
    yield compacted("v1_gzip_append", [batch(1, "gzip", series(5), baseOffset=100, **append)], [101, 103])
    kept = batch(2, "none", series(3), baseOffset=100, **IDEMPOTENT)
    yield compacted("v2_empty_kept", [kept], [], batchRetention="RETAIN_EMPTY")
    yield compacted("v2_gzip_empty_kept", [kept | {"compression": "gzip"}], [], batchRetention="RETAIN_EMPTY")
    yield compacted("v2_empty_deleted", [kept, batch(2, "none", series(1), baseOffset=103)], [103])
    yield compacted("v2_control_horizon", [marker(201, "ABORT")], [201], markerOfEmptyTransaction=True)


def downconvert() -> Iterator[Vector]:
    def converted(what: str, batches: list[Spec], magic: int, first: int = 0, note: str = "") -> Vector:
        step = {"op": "convert", "toMagic": magic, "firstOffset": first}
        return Vector(name=f"downconvert_{what}", batches=batches, steps=[step], note=note)

    with_headers = [one | {"headers": [["h", "v"]]} for one in series(3)]
    for codec in CODECS[1]:
        for to_magic in (0, 1):
            modern = batch(2, codec, with_headers, baseOffset=30)
            yield converted(f"v2_to_v{to_magic}_{codec}", [modern], to_magic, note="headers are dropped")
        yield converted(f"v1_to_v0_{codec}", [batch(1, codec, series(3), baseOffset=30)], 0)
    append = {"timestampType": "LOG_APPEND_TIME", "appendTime": APPENDED}
    for codec in ("none", "gzip"):
        yield converted(f"v2_to_v1_{codec}_append", [batch(2, codec, series(3), **append)], 1)
        several = [batch(2, codec, series(3), baseOffset=30), batch(2, codec, series(3), baseOffset=33)]
        note = "uncompressed records before offset 32 are dropped"
        yield converted(f"v2_to_v1_{codec}_first_offset", several, 1, 32, note)
    transaction = [batch(2, "none", series(2), **IDEMPOTENT, transactional=True), marker(2, "COMMIT")]
    yield converted("v2_to_v1_transaction", transaction, 1, note="the marker is dropped, the producer forgotten")
    hollow = [batch(2, "none", series(1)), {"kind": "empty", "baseOffset": 1, "lastOffset": 4}]
    yield converted("v2_to_v1_empty", hollow, 1, note="the empty batch is gone")
    mixed = [batch(magic, "none", series(2), baseOffset=10 * magic) for magic in range(3)]
    yield converted("mixed_to_v1", mixed, 1)


def validate() -> Iterator[Vector]:
    def validated(what: str, written: Spec, to_magic: int, codec: str, **options: Any) -> Vector:
        step = {"op": "validate", "toMagic": to_magic, "sourceCompression": written["compression"]}
        step |= {"targetCompression": codec, "baseOffset": 500, "partitionLeaderEpoch": 7, "now": T0 + 500_000}
        return Vector(name=f"validate_{what}", batches=[written], steps=[step | options])

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
    yield validated("v0_to_v2_gzip_append", batch(0, "gzip", series(3)), 2, "gzip", **append)
    yield validated("v2_none_to_zstd", batch(2, "none", series(3)), 2, "zstd")
    yield validated("v2_zstd_to_none", batch(2, "zstd", series(3)), 2, "none")
    yield validated("v1_gzip_to_snappy", batch(1, "gzip", series(3)), 1, "snappy")


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
