"""Golden vectors of Kafka's `LogValidator`, with which a leader checks and changes a produce request."""

from collections.abc import Iterator
from typing import Any, Final

from tests.oracle.cases.vector import (
    APPENDED,
    IDEMPOTENT,
    INT32_MAX,
    SEAL,
    T0,
    Vector,
    add,
    batch,
    cut,
    inner_set,
    inside,
    marker,
    patch,
    record,
    sealed_patch,
    series,
)
from tests.oracle.client import Spec

LEADER: Final[Spec] = {
    "baseOffset": 500,
    "partitionLeaderEpoch": 7,
    "timestampType": "CREATE_TIME",
    "now": T0 + 500_000,
    "origin": "CLIENT",
    "compacted": False,
    "beforeMaxMs": None,
    "afterMaxMs": None,
}
COORDINATOR: Final[Spec] = {"origin": "COORDINATOR"}
APPENDS: Final[Spec] = {"timestampType": "LOG_APPEND_TIME"}
TRANSACTIONAL: Final[Spec] = IDEMPOTENT | {"transactional": True}
INVALID: Final[Spec] = {"declined": "INVALID_RECORD"}
LATE: Final[Spec] = {"declined": "INVALID_TIMESTAMP"}
UNFIT: Final[Spec] = {"declined": "UNSUPPORTED_FOR_MESSAGE_FORMAT"}
UNKNOWN: Final[Spec] = {
    "declined": "UNKNOWN_SERVER_ERROR",
    "note": "Kafka's builder throws where its validator has not looked; the client hears of an unknown error",
}
HOLLOW: Final[Spec] = {"kind": "empty", "baseOffset": 0, "lastOffset": 9}


def validate() -> Iterator[Vector]:
    yield from _sound_requests()
    yield from _sound_contents()
    yield from _offsets_of_old_clients()
    yield from _coordinator_batches()
    yield from _refused_batches()
    yield from _refused_records()
    yield from _refused_inner_messages()


def validated(
    name: str, written: Spec | list[Spec], to_magic: int, codec: str, *before: Spec, declined: str = "", **options: Any
) -> Vector:
    """Return a vector whose last step validates the request as a leader.

    before: earlier steps. options: options of the leader, and `note`, a remark on the vector.
    """
    batches = written if isinstance(written, list) else [written]
    sources = [each.get("compression", "none") for each in batches]
    source = next((name for name in reversed(sources) if name != "none"), "none")
    note = options.pop("note", "")
    step = {"op": "validate", "toMagic": to_magic, "sourceCompression": source, "targetCompression": codec}
    step |= LEADER | ({} if to_magic else {"timestampType": "NO_TIMESTAMP_TYPE"}) | options
    return Vector(name=f"validate_{name}", batches=batches, steps=[*before, step], declined=declined, note=note)


def _sound_requests() -> Iterator[Vector]:
    for source in range(3):
        for target in range(3):
            for codec in ("none", "gzip", "lz4") if source == target else ("none", "gzip"):
                written = batch(source, codec, series(3))
                yield validated(f"v{source}_to_v{target}_{codec}", written, target, codec)
    for magic in (1, 2):
        for codec in ("none", "snappy"):
            written = batch(magic, codec, series(3))
            yield validated(f"v{magic}_{codec}_append", written, magic, codec, **APPENDS)
        yield validated(f"v{magic}_gzip_to_none_append", batch(magic, "gzip", series(3)), magic, "none", **APPENDS)
        yield validated(f"v{magic}_none_to_gzip_append", batch(magic, "none", series(3)), magic, "gzip", **APPENDS)
    yield validated("v0_to_v2_gzip_append", batch(0, "gzip", series(3)), 2, "gzip", **APPENDS)
    yield validated("v2_none_to_zstd", batch(2, "none", series(3)), 2, "zstd")
    yield validated("v2_zstd_to_none", batch(2, "zstd", series(3)), 2, "none")
    yield validated("v2_zstd", batch(2, "zstd", series(3)), 2, "zstd")
    yield validated("v1_gzip_to_snappy", batch(1, "gzip", series(3)), 1, "snappy")
    yield validated("v1_none_to_gzip", batch(1, "none", series(3)), 1, "gzip", note="plain messages become one set")
    yield validated("v0_none_to_v2_zstd", batch(0, "none", series(3)), 2, "zstd")
    yield validated("v2_zstd_to_v1_gzip", batch(2, "zstd", series(3)), 1, "gzip")


def _sound_contents() -> Iterator[Vector]:
    nulls = [record(None, None), record("k", None, -1), record(None, "v", T0 + 9), record("", "", T0)]
    with_headers = [one | {"headers": [["h", "v"], ["h", None]]} for one in series(3)]
    for codec in ("none", "gzip"):
        for magic in range(3):
            to_magic = 2 if magic else 1
            yield validated(f"v{magic}_to_v{to_magic}_{codec}_nulls", batch(magic, codec, nulls), to_magic, codec)
        yield validated(f"v2_{codec}_transactional", batch(2, codec, series(3), **TRANSACTIONAL), 2, codec)
        yield validated(f"v2_{codec}_to_lz4_transactional", batch(2, codec, with_headers, **TRANSACTIONAL), 2, "lz4")
        wrapping = IDEMPOTENT | {"baseSequence": INT32_MAX - 1}
        yield validated(f"v2_{codec}_sequence_wrap", batch(2, codec, series(3), **wrapping), 2, codec)
        wrong = {"op": "stamp", "maxTimestamp": T0 + 999, "timestampType": "CREATE_TIME"}
        note = "the largest timestamp is the records', whatever the header says"
        yield validated(f"v2_{codec}_max_timestamp", batch(2, codec, series(3)), 2, codec, wrong, note=note)
    yield validated("v1_gzip_max_timestamp", batch(1, "gzip", series(3)), 1, "gzip", wrong, note=note)
    back = [record("a", "v", T0 + 5), record("b", "v", T0 - 5), record("c", "v", -1)]
    for magic, codec in ((1, "none"), (1, "gzip"), (2, "none"), (2, "gzip")):
        yield validated(f"v{magic}_{codec}_times_back", batch(magic, codec, back), magic, codec)


def _offsets_of_old_clients() -> Iterator[Vector]:
    """Yield vectors of requests from v0 and v1 clients. Kafka accepts any offsets in them."""
    zero = {"op": "stamp", "lastOffset": 0}
    yield validated("v1_gzip_inner_zero", inner_set((0, 1), (0, 1), (0, 1)), 1, "gzip", zero, note="written anew")
    yield validated("v1_gzip_inner_holes", inner_set((0, 1), (2, 1), (3, 1)), 1, "gzip", note="written anew")
    note = "a relative set at wrapper offset 0 is in place"
    yield validated("v1_gzip_outer_zero", inner_set((0, 1), (1, 1), (2, 1)), 1, "gzip", zero, note=note)
    note = "offsets that do not start at 0: written anew"
    yield validated(
        "v1_gzip_outer_later", inner_set((0, 1), (1, 1)), 1, "gzip", {"op": "stamp", "lastOffset": 41}, note=note
    )
    for magic in (0, 1):
        for codec in ("none", "gzip"):
            far = batch(magic, codec, series(2), baseOffset=77)
            yield validated(f"v{magic}_{codec}_base_offset", far, magic, codec)
    below = {"op": "stamp", "lastOffset": 3}
    yield validated("v1_gzip_below_inner", inner_set((0, 1), (5, 1)), 1, "gzip", below, **INVALID)


def _coordinator_batches() -> Iterator[Vector]:
    for kind in ("COMMIT", "ABORT"):
        name = kind.lower()
        yield validated(f"v2_{name}_coordinator", marker(0, kind), 2, "none", **COORDINATOR)
        note = "control records stay as they are written"
        yield validated(f"v2_{name}_to_gzip", marker(0, kind), 2, "gzip", **COORDINATOR, note=note)
    yield validated("v2_commit_append", marker(0, "COMMIT"), 2, "none", **COORDINATOR, **APPENDS)
    packed = batch(2, "gzip", [record({"hex": "00000001"}, {"hex": "00000000000f"})], control=True)
    note = "Kafka's builder forgets that it is a control batch; ours does not"
    yield validated("v2_gzip_commit_to_zstd", packed, 2, "zstd", **COORDINATOR, note=note)
    holes = batch(2, "gzip", [record("k", "v", offset=offset) for offset in (0, 1, 3)])
    yield validated("v2_gzip_holes_coordinator", holes, 2, "gzip", **COORDINATOR, **UNKNOWN)
    half: list[Spec] = [patch(43, "0000000000000000"), SEAL]
    yield validated("v2_half_a_producer", batch(2, "none", series(2)), 2, "none", *half, **COORDINATOR)
    yield validated(
        "v2_half_a_producer_to_gzip", batch(2, "none", series(2)), 2, "gzip", *half, **COORDINATOR, **UNKNOWN
    )
    yield validated("v2_empty_coordinator", HOLLOW, 2, "none", **COORDINATOR)
    yield validated("v2_empty_coordinator_to_gzip", HOLLOW, 2, "gzip", **COORDINATOR, note="nothing is left")
    far = batch(2, "none", series(2), baseOffset=77)
    yield validated("v2_base_offset_coordinator", far, 2, "none", **COORDINATOR)
    yield validated("v2_base_offset", far, 2, "none", **INVALID)
    yield validated("v2_commit_client", marker(0, "COMMIT"), 2, "none", **INVALID)
    yield validated("v2_commit_to_v1", marker(0, "COMMIT"), 1, "none", **COORDINATOR, **UNKNOWN)
    yield validated("v2_commit_to_v1_gzip", marker(0, "COMMIT"), 1, "gzip", **COORDINATOR, **UNFIT)


def _refused_batches() -> Iterator[Vector]:
    """Yield vectors of requests that break a rule of whole batches."""

    one, gzip = batch(2, "none", series(3)), batch(2, "gzip", series(3))
    yield validated("nothing", [], 2, "none", **INVALID)
    yield validated("v2_two_batches", [one, one], 2, "none", **INVALID)
    yield validated("v2_two_gzip_batches", [gzip, gzip], 2, "gzip", **INVALID)
    yield validated("v2_two_batches_to_v1", [one, one], 1, "none", **INVALID)
    for magic in (0, 1):
        old = batch(magic, "gzip", series(2))
        yield validated(f"v{magic}_two_gzip_sets", [old, old], magic, "gzip", **INVALID)
        plain = batch(magic, "none", series(1))
        yield validated(f"v{magic}_gzip_and_plain", [old, plain], magic, "gzip", **INVALID)
    mixed = [batch(magic, "none", series(1)) for magic in (0, 1)]
    yield validated("v0_and_v1", mixed, 1, "none", **INVALID)
    yield validated("v0_and_v1_to_gzip", mixed, 1, "gzip", **INVALID)
    for codec, whole in (("none", one), ("gzip", gzip)):
        yield validated(f"v2_{codec}_offsets_beyond", whole | {"lastOffset": 4}, 2, codec, **INVALID)
        yield validated(f"v2_{codec}_offsets_short", whole, 2, codec, *sealed_patch(23, "00000001"), **INVALID)
        yield validated(f"v2_{codec}_no_offsets", whole, 2, codec, *sealed_patch(23, "ffffffff"), **INVALID)
        yield validated(f"v2_{codec}_count_zero", whole, 2, codec, *sealed_patch(57, "00000000"), **INVALID)
        yield validated(f"v2_{codec}_count_negative", whole, 2, codec, *sealed_patch(57, "ffffffff"), **INVALID)
        count = [*sealed_patch(57, "00000004"), *sealed_patch(23, "00000003")]
        yield validated(f"v2_{codec}_count_beyond", whole, 2, codec, *count, **INVALID)
        few = [*sealed_patch(57, "00000002"), *sealed_patch(23, "00000001")]
        yield validated(f"v2_{codec}_count_short", whole, 2, codec, *few, **INVALID)
        negative = whole | IDEMPOTENT
        yield validated(f"v2_{codec}_sequence_negative", negative, 2, codec, *sealed_patch(53, "ffffffff"), **INVALID)
        crc = [patch(-1, "7f")]
        yield validated(f"v2_{codec}_crc", whole, 2, codec, *crc, declined="CORRUPT_MESSAGE")
        for magic in (0, 1):
            yield validated(
                f"v{magic}_{codec}_crc", batch(magic, codec, series(3)), magic, codec, *crc, declined="CORRUPT_MESSAGE"
            )
        for to_magic in (0, 1):
            yield validated(f"v2_{codec}_idempotent_to_v{to_magic}", negative, to_magic, codec, **UNFIT)
            refusal = UNKNOWN if codec == "none" else UNFIT
            yield validated(
                f"v2_{codec}_transactional_to_v{to_magic}", whole | TRANSACTIONAL, to_magic, codec, **refusal
            )
        with_headers = whole | {"records": [one | {"headers": [["h", "v"]]} for one in series(2)]}
        yield validated(f"v2_{codec}_headers_to_v1", with_headers, 1, codec, **UNKNOWN)
    yield validated("v2_none_to_v1_zstd", one, 1, "zstd", **UNKNOWN)
    yield validated("v2_zstd_to_v1_zstd", batch(2, "zstd", series(3)), 1, "zstd", **UNKNOWN)
    yield validated("v2_empty", HOLLOW, 2, "none", **INVALID)
    for magic in (0, 1):
        yield validated(
            f"v{magic}_zstd", batch(magic, "gzip", series(2)), magic, "gzip", *sealed_patch(17, "04"), **INVALID
        )


def _refused_records() -> Iterator[Vector]:
    """Yield vectors of requests with records that Kafka reports as invalid."""
    for magic, codec in ((0, "none"), (0, "gzip"), (1, "none"), (1, "gzip"), (2, "none"), (2, "gzip")):
        keyless = [record("k", "v"), record(None, "v"), record("k", "w"), record(None, None)]
        written = batch(magic, codec, keyless)
        yield validated(f"v{magic}_{codec}_no_key", written, magic, codec, compacted=True, **INVALID)
        keyed = batch(magic, codec, [record("", "v"), record("k", None)])
        yield validated(f"v{magic}_{codec}_compacted", keyed, magic, codec, compacted=True)
        if magic == 0:
            continue
        now = LEADER["now"]
        edges = [record("k", "v", now - 1000), record("k", "v", now + 500), record("k", "v", -1)]
        limits: Spec = {"beforeMaxMs": 1000, "afterMaxMs": 500}
        yield validated(f"v{magic}_{codec}_just_in_time", batch(magic, codec, edges), magic, codec, **limits)
        for when, stamp in (("too_early", now - 1001), ("too_late", now + 501)):
            written = batch(magic, codec, [*edges, record("k", "v", stamp)])
            yield validated(f"v{magic}_{codec}_{when}", written, magic, codec, **limits, **LATE)
            note = "who stamps does not mind"
            yield validated(f"v{magic}_{codec}_{when}_append", written, magic, codec, **limits, **APPENDS, note=note)
        stamped = batch(magic, codec, series(2), timestampType="LOG_APPEND_TIME", appendTime=APPENDED)
        yield validated(f"v{magic}_{codec}_stamped_by_producer", stamped, magic, codec, **APPENDS, **LATE)
        if (magic, codec) != (1, "gzip"):  # inner messages would keep the append-time bit, which no writer writes
            note = "under create time a producer's append time passes as a timestamp"
            yield validated(f"v{magic}_{codec}_stamped_by_producer_create", stamped, magic, codec, note=note)
        both = batch(magic, codec, [record(None, "v", now), record("k", "v", now + 501)])
        refusal = INVALID if (magic, codec) == (1, "none") else LATE  # a plain message counts as a batch of its own
        yield validated(f"v{magic}_{codec}_no_key_and_late", both, magic, codec, compacted=True, **limits, **refusal)


def _refused_inner_messages() -> Iterator[Vector]:
    """Yield vectors of compressed requests whose decompressed messages are damaged."""
    for magic, other in ((0, 1), (1, 0)):
        odd = inner_set((0, magic), (1, other), magic=magic)
        yield validated(f"v{magic}_inner_v{other}", odd, magic, "gzip", **INVALID)
        gzip = batch(magic, "gzip", series(2))
        nested: Spec = inside(patch(17, "01"), SEAL)
        yield validated(f"v{magic}_nested", batch(magic, "gzip", series(1)), magic, "gzip", nested, **INVALID)
        flipped: Spec = inside(patch(-1, "ff"))
        yield validated(f"v{magic}_inner_crc", gzip, magic, "gzip", flipped, declined="CORRUPT_MESSAGE")
        nothing: Spec = inside(cut("all"))
        yield validated(f"v{magic}_no_message", gzip, magic, "gzip", nothing, **INVALID)
    short: Spec = inside(cut(1))
    yield validated("v2_gzip_record_cut", batch(2, "gzip", series(2)), 2, "gzip", short, **INVALID)
    left: Spec = inside(add("00"))
    yield validated("v2_gzip_left_over", batch(2, "gzip", series(2)), 2, "gzip", left, **INVALID)
