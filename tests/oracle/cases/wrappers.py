"""Golden vectors of compressed sets of v0 and v1, with the oddities that clients wrote into them."""

from collections.abc import Iterator

from tests.oracle.cases.vector import CODECS, SEAL, Vector, batch, cut, inner_set, inside, pack, patch, record, series
from tests.oracle.client import Spec


def changed(name: str, spec: Spec, steps: list[Spec], refused: bool, note: str = "") -> Vector:
    """Return a vector of one compressed set, with its changes and the expected result."""
    return Vector(name=f"wrapper_{name}", batches=[spec], steps=steps, refused=refused, note=note)


def wrapper() -> Iterator[Vector]:
    for magic in (0, 1):
        for codec in CODECS[magic][1:]:
            yield Vector(
                name=f"wrapper_v{magic}_{codec}_single", batches=[batch(magic, codec, series(1), baseOffset=321)]
            )
            tail = [inside(cut(3))]
            one = batch(magic, codec, series(3))
            note = "an inner set that is cut short ends at its last whole message"
            yield changed(f"v{magic}_{codec}_inner_tail", one, tail, False, note)
        one = batch(magic, "snappy", series(3))
        raw = [pack("raw snappy")]
        yield changed(f"v{magic}_raw_snappy", one, raw, False, "a raw block, not a stream of blocks")
        gzip = batch(magic, "gzip", series(3))
        yield changed(f"v{magic}_two_gzip_members", gzip, [pack("two gzip members")], False)
        nothing = [inside(cut("all"))]
        yield changed(f"v{magic}_no_message", gzip, nothing, True, "a compressed set without a message")
        flipped = [inside(patch(-1, "ff"))]
        yield changed(f"v{magic}_inner_crc", gzip, flipped, True)
        plain = batch(magic, "none", [record("k", None)])
        codec_bit: list[Spec] = [patch(17, "01"), SEAL]
        yield changed(f"v{magic}_null_value", plain, codec_bit, True, "a compressed message without a value")
        nested = [inside(patch(17, "01"), SEAL)]
        yield changed(f"v{magic}_nested", batch(magic, "gzip", series(1)), nested, True)
        lz4 = batch(magic, "lz4", series(3))
        linked = [pack("linked lz4")]
        yield changed(f"v{magic}_linked_lz4", lz4, linked, True, "blocks that depend on each other")
        checksum: list[Spec] = [patch((26 if magic == 0 else 34) + 6, "00"), SEAL]
        note = "v0's is wrong by design, so readers ignore it" if magic == 0 else "the frame descriptor's checksum"
        yield changed(f"v{magic}_lz4_checksum", lz4, checksum, magic == 1, note)
    yield changed(
        "v1_absolute_inner",
        inner_set((40, 1), (41, 1), baseOffset=0),
        [],
        False,
        "the last inner offset is the wrapper's",
    )
    yield changed("v1_inner_mixed", inner_set((10, 1), (11, 0), baseOffset=10, codec="snappy"), [], False)
    yield changed("v1_inner_v0", inner_set((10, 0), (11, 0), baseOffset=10), [], False, "KAFKA-4298")
    yield changed("v0_inner_v1", inner_set((10, 1), (11, 1), magic=0, baseOffset=0), [], False)
    at_zero = [{"op": "stamp", "lastOffset": 0}]
    yield changed(
        "v1_offset_zero",
        inner_set((0, 1), (1, 1), (2, 1), baseOffset=0),
        at_zero,
        False,
        "as a producer sends it: base 0",
    )
    yield changed("v1_below_inner", inner_set((0, 1), (5, 1), baseOffset=0), [{"op": "stamp", "lastOffset": 3}], True)
    same = inner_set((0, 1), (0, 1), (0, 1), baseOffset=0)
    note = "clients that left all inner offsets at 0"
    yield changed("v1_inner_all_zero", same, [{"op": "stamp", "lastOffset": 7}], False, note)
