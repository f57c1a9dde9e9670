"""Golden vectors of record contents: sizes, nulls, timestamps, offsets, headers, varints."""

from collections.abc import Iterator

from tests.oracle.cases.vector import (
    APPEND,
    APPENDED,
    CODECS,
    IDEMPOTENT,
    INT32_MAX,
    INT64_MAX,
    T0,
    Vector,
    batch,
    every,
    record,
    series,
)
from tests.oracle.client import Spec


def basic() -> Iterator[Vector]:
    for magic, codec in every():
        for count in (1, 3):
            yield Vector(name=f"basic_v{magic}_{codec}_{count}", batches=[batch(magic, codec, series(count))])
            if magic:
                appended = batch(magic, codec, series(count), **APPEND)
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
