"""Golden vectors of damaged batches, and of odd batches that Kafka's reader accepts."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.oracle.cases.vector import (
    CODECS,
    SEAL,
    Vector,
    add,
    batch,
    cut,
    inside,
    pack,
    patch,
    record,
    sealed_patch,
    series,
)
from tests.oracle.client import Spec

ONE: Final = batch(2, "none", [record("k", "v")])  # its only record starts at byte 61
TWO: Final = batch(2, "none", series(2))
NULL_KEY: Final = batch(2, "none", [record(None, "v")])
WITH_HEADER: Final = batch(2, "none", [record("k", "v", headers=[["h", "v"]])])


class Change(NamedTuple):
    """Bytes to overwrite in a v2 batch. The checksum is corrected afterwards."""

    name: str
    batch: Spec
    at: int
    digits: str
    refused: bool = True
    note: str = ""


V2_CHANGES: Final = (
    Change("codec_7", ONE, 21, "0007"),
    Change("unused_attributes", ONE, 21, "ff80", False, "bits 7-15 mean nothing"),
    Change("record_attributes", ONE, 62, "7f", False, "of no use: not looked at"),
    Change("count_too_few", TWO, 57, "00000001", note="bytes remain"),
    Change("count_too_many", TWO, 57, "00000003"),
    Change("count_negative", ONE, 57, "ffffffff"),
    Change("count_zero", ONE, 57, "00000000", False, "what follows is not looked at"),
    Change("record_length_beyond", ONE, 61, "7e"),
    Change("record_length_negative", ONE, 61, "01"),
    Change("record_length_short", ONE, 61, "0e"),
    Change("record_length_long", TWO, 61, "30"),
    Change("record_length_overlong", ONE, 61, "ffffffffff", note="a varint of more than 5 bytes"),
    Change("key_length_beyond", ONE, 65, "20"),
    Change("key_length_minus_two", NULL_KEY, 65, "03", False),
    Change("value_length_beyond", ONE, 67, "20"),
    Change("header_count_beyond", ONE, -1, "04"),
    Change("header_count_negative", ONE, -1, "01"),
    Change("header_key_null", WITH_HEADER, -4, "01"),
    Change("header_key_beyond", WITH_HEADER, -4, "40"),
    Change("header_value_beyond", WITH_HEADER, -2, "40"),
    Change("gzip_not_gzip", ONE, 21, "0001", note="says gzip, is plain"),
)


def damaged(name: str, spec: Spec, *steps: Spec, refused: bool = True, note: str = "") -> Vector:
    """Return a vector of one batch whose bytes are changed after Kafka wrote it."""
    return Vector(name=f"corrupt_{name}", batches=[spec], steps=list(steps), refused=refused, note=note)


def corrupt() -> Iterator[Vector]:
    yield from _checksums_and_headers()
    for magic in (0, 1):
        yield from _messages(magic)
    for name, spec, at, digits, refused, note in V2_CHANGES:
        yield damaged(f"v2_{name}", spec, *sealed_patch(at, digits), refused=refused, note=note)
    yield from _compressed_batches()
    yield from _second_batches()


def _checksums_and_headers() -> Iterator[Vector]:
    for magic, codec in ((0, "none"), (0, "gzip"), (1, "none"), (1, "gzip"), (2, "none"), (2, "zstd")):
        whole = batch(magic, codec, series(2))
        yield damaged(f"v{magic}_{codec}_crc", whole, patch(-1, "ff"))
        yield damaged(f"v{magic}_{codec}_stored_crc", whole, patch(17 if magic == 2 else 12, "0badc0de"))
    for magic, size in ((0, 13), (1, 14), (2, 14), (2, 48)):
        note = "below the smallest size of " + ("any magic" if size == 13 else "this magic")
        yield damaged(f"v{magic}_size_{size}", batch(magic, "none", series(1)), patch(8, f"{size:08x}"), note=note)
    one = batch(2, "none", series(1))
    yield damaged("v2_size_negative", one, patch(8, "ffffffff"))
    yield damaged("v2_magic_5", one, patch(16, "05"))
    yield damaged("v2_magic_negative", one, patch(16, "ff"))


def _messages(magic: int) -> Iterator[Vector]:
    """Yield vectors of damaged v0 or v1 messages: codec, key length, value length, cut sets."""
    gzip, one = batch(magic, "gzip", series(2)), batch(magic, "none", [record("key", "value")])
    null_key = batch(magic, "none", [record(None, "value")])
    key_at = 18 if magic == 0 else 26
    value_at = key_at + 7
    for name, spec, at, digits, refused, note in (
        ("codec_zstd", gzip, 17, "04", True, "zstd came with v2"),
        ("codec_7", gzip, 17, "07", True, ""),
        ("key_length_beyond", one, key_at, "00000100", True, ""),
        ("value_length_beyond", one, value_at, "00000100", True, ""),
        ("key_length_minus_two", null_key, key_at, "fffffffe", False, ""),
        ("value_length_minus_two", one, value_at, "fffffffe", False, ""),
        ("value_length_short", one, value_at, "00000002", False, "bytes behind the value: not looked at"),
    ):
        yield damaged(f"v{magic}_{name}", spec, *sealed_patch(at, digits), refused=refused, note=note)
    for codec in CODECS[magic][1:]:
        yield damaged(f"v{magic}_{codec}_cut", batch(magic, codec, series(1)), cut(14), SEAL)


def _compressed_batches() -> Iterator[Vector]:
    for codec in CODECS[2][1:]:
        two = batch(2, codec, series(2))
        yield damaged(f"v2_{codec}_cut", batch(2, codec, series(3)), cut(14), SEAL, note="the stream ends too soon")
        yield damaged(f"v2_{codec}_left_over", two, inside(add("00")))
        yield damaged(f"v2_{codec}_record_cut", two, inside(cut(1)))
    snappy = batch(2, "snappy", series(2))
    first, later = patch(61 + 8, "fffffffe"), add(b"\x82SNAPPY\x00".hex() + "fffffffe00000001")
    yield damaged("v2_snappy_version", snappy, first, SEAL, refused=False, note="of the first header: not looked at")
    yield damaged("v2_snappy_later_version", snappy, later, SEAL, note="of a stream behind a stream: looked at")
    yield damaged("v2_linked_lz4", batch(2, "lz4", series(2)), pack("linked lz4"))
    yield damaged("v2_two_zstd_frames", batch(2, "zstd", series(2)), pack("two zstd frames"), refused=False)


def _second_batches() -> Iterator[Vector]:
    both = [TWO, TWO | {"baseOffset": 2}]
    crc, sealed = [patch(-3, "ff")], sealed_patch(-1, "04")
    yield Vector(name="corrupt_v2_second_batch", batches=both, steps=crc, refused=True, note="the first is sound")
    yield Vector(name="corrupt_v2_second_batch_sealed", batches=both, steps=sealed, refused=True)
