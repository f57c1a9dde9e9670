"""Golden vectors of compaction: Kafka's `MemoryRecords.filterTo` with the filter of its log cleaner."""

from collections.abc import Iterator
from typing import Any, Final

from tests.oracle.cases.vector import (
    APPEND,
    APPENDED,
    IDEMPOTENT,
    T0,
    Vector,
    batch,
    every,
    marker,
    record,
    series,
)
from tests.oracle.client import Spec

CLEANER: Final[Spec] = {
    "now": T0 + 100_000,
    "deleteRetentionMs": 86_400_000,
    "batchRetention": "DELETE_EMPTY",
    "markerOfEmptyTransaction": False,
}
RETAIN_EMPTY: Final[Spec] = {"batchRetention": "RETAIN_EMPTY"}


def compaction() -> Iterator[Vector]:
    yield from _kept_offsets()
    yield from _tombstones()
    yield from _timestamps_and_producers()
    yield from _contents()
    yield from _empty_batches()
    yield from _markers()


def compacted(
    name: str, batches: list[Spec], retain: list[int], *before: Spec, declined: str = "", note: str = "", **options: Any
) -> Vector:
    """Return a vector whose last step compacts the log and keeps the records with the offsets `retain`.

    before: steps before it. options: the cleaner's options.
    """
    step = {"op": "compact", "retain": retain} | CLEANER | options
    return Vector(name=f"compaction_{name}", batches=batches, steps=[*before, step], declined=declined, note=note)


def _kept_offsets() -> Iterator[Vector]:
    for magic, codec in every():
        written = batch(magic, codec, series(10), baseOffset=100)
        yield compacted(f"v{magic}_{codec}_some", [written], [102, 105, 106])
        if codec in ("none", "gzip"):
            yield compacted(f"v{magic}_{codec}_first_and_last", [written], [100, 109])
            note = "all are kept: the batch is handed on as it is"
            yield compacted(f"v{magic}_{codec}_all", [written], [*range(100, 110)], note=note)
            yield compacted(f"v{magic}_{codec}_nothing", [written], [])


def _tombstones() -> Iterator[Vector]:
    for codec in ("none", "zstd"):
        tombstones = [record("a", None), record("b", "v", T0 + 1), record("c", None, T0 + 2)]
        written = batch(2, codec, tombstones, baseOffset=100)
        horizon = written | {"deleteHorizonMs": T0 + 50_000}
        for name, source, retain, note in (
            ("tombstones", written, [100, 101, 102], ""),
            ("last_tombstone", written, [101, 102], ""),
            ("no_tombstone_left", written, [101], "no horizon where none is left"),
            ("horizon_kept", horizon, [100, 102], "a horizon is set once"),
            ("horizon_all", horizon, [100, 101, 102], "as it is: its horizon is set"),
            ("horizon_no_tombstone", horizon, [101], "the horizon stays"),
            ("append_tombstones", written | APPEND, [100, 101, 102], ""),
        ):
            yield compacted(f"v2_{codec}_{name}", [source], retain, note=note)
    for magic in (0, 1):
        for codec in ("none", "gzip"):
            tombstones = [record("a", None), record(None, None, T0 + 1), record(None, "v", T0 + 2)]
            written = batch(magic, codec, tombstones, baseOffset=100)
            yield compacted(f"v{magic}_{codec}_nulls", [written], [100, 102], note="no horizon before v2")


def _timestamps_and_producers() -> Iterator[Vector]:
    stamp = {"op": "stamp", "timestampType": "LOG_APPEND_TIME", "maxTimestamp": APPENDED}
    wrong = stamp | {"timestampType": "CREATE_TIME"}
    producer = IDEMPOTENT | {"baseSequence": 30, "transactional": True, "partitionLeaderEpoch": 5}
    for codec in ("none", "gzip"):
        v1, v2 = (batch(magic, codec, series(5), baseOffset=100) for magic in (1, 2))
        yield compacted(f"v1_{codec}_append", [v1 | APPEND], [101, 103])
        yield compacted(f"v2_{codec}_append", [v2 | APPEND], [101, 103])
        yield compacted(f"v1_{codec}_stamped", [v1], [101, 103], stamp)
        yield compacted(f"v2_{codec}_stamped", [v2], [101, 103], stamp)
        yield compacted(f"v2_{codec}_max_timestamp", [v2], [101, 103], wrong, note="what is kept has another maximum")
        yield compacted(f"v2_{codec}_transactional", [v2 | {"lastOffset": 109} | producer], [101, 103])


def _contents() -> Iterator[Vector]:
    with_headers = [one | {"headers": [["h", "v"], ["h", None]]} for one in series(4)]
    yield compacted("v2_none_headers", [batch(2, "none", with_headers, baseOffset=100)], [101, 102])
    inner = [record("k0", "v0", magic=0, offset=100), record("k1", "v1", magic=0, offset=101)]
    odd = {"magic": 1, "compression": "gzip", "unchecked": True, "baseOffset": 100, "records": inner}
    yield compacted("v1_gzip_inner_v0", [odd], [100, 101], note="KAFKA-4298: messages of v0 inside v1 are mended")
    for magic, codec in ((0, "none"), (1, "gzip"), (2, "none"), (2, "lz4")):
        several = [batch(magic, codec, series(3), baseOffset=base) for base in (100, 103, 110)]
        yield compacted(f"v{magic}_{codec}_several", several, [101, 110, 111, 112])


def _empty_batches() -> Iterator[Vector]:
    whole = batch(2, "none", series(3), baseOffset=100, **IDEMPOTENT)
    yield compacted("v2_empty_kept", [whole], [], **RETAIN_EMPTY)
    yield compacted("v2_gzip_empty_kept", [whole | {"compression": "gzip"}], [], **RETAIN_EMPTY)
    yield compacted("v2_append_empty_kept", [whole | APPEND], [], **RETAIN_EMPTY)
    with_horizon = whole | {"deleteHorizonMs": T0 + 50_000, "transactional": True}
    yield compacted("v2_horizon_empty_kept", [with_horizon], [], **RETAIN_EMPTY)
    hollow = {"kind": "empty", "baseOffset": 10, "lastOffset": 19, "timestamp": T0} | IDEMPOTENT
    yield compacted("v2_empty_kept_again", [hollow, whole], [101], **RETAIN_EMPTY)
    yield compacted("v2_empty_deleted_again", [hollow, whole], [101])
    yield compacted("v2_empty_deleted", [whole, batch(2, "none", series(1), baseOffset=103)], [103])
    yield compacted("v2_deleted", [whole], [100, 101, 102], batchRetention="DELETE", note="whatever is to be kept")
    older = batch(1, "gzip", series(3), baseOffset=100)
    refusal: Spec = {"declined": "UNKNOWN_SERVER_ERROR", "note": "no empty batches before v2"}
    yield compacted("v1_empty_kept", [older], [], **RETAIN_EMPTY, **refusal)


def _markers() -> Iterator[Vector]:
    for kind in ("ABORT", "COMMIT"):
        name = kind.lower()
        yield compacted(f"v2_{name}_horizon", [marker(201, kind)], [201], markerOfEmptyTransaction=True)
        yield compacted(f"v2_{name}_kept", [marker(201, kind)], [201])
        yield compacted(f"v2_{name}_empty_kept", [marker(201, kind)], [], **RETAIN_EMPTY)
