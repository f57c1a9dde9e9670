"""Codecs: Kafka's framing byte by byte, streams written by other libraries, damage and limits."""

import gzip
import struct
import zlib
from contextlib import suppress
from typing import Any

import cramjam
import lz4.frame as lz4_library
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kfbench.codecs import CODECS, LEGACY_LZ4, Codec, Undecodable, Zstd, codec_of, find, new_contexts
from kfbench.errors import IllegalCombination, KfbenchError
from tests.compressed import NOISE, REAL, TEXT
from tests.reference import codecs as reference
from tests.reference import lz4

SAMPLES = {"empty": b"", "one": b"x", "text": TEXT, "noise": NOISE, "zeros": bytes(200_000)}


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", [*REAL, "none"])
def test_foreign_readers_read_ours_and_we_read_theirs(name: str, sample: str, magic: int) -> None:
    if name == "zstd" and magic < 2:
        magic = 2
    codec, data = LEGACY_LZ4 if (name, magic) == ("lz4", 0) else CODECS[name], SAMPLES[sample]
    compressed = codec.compress(data)
    assert codec.decompress(compressed) == data
    if not (name == "snappy" and not data):
        assert reference.decompress(name, compressed, magic) == data
    assert codec.decompress(reference.compress(name, data, magic)) == data


@pytest.mark.parametrize("name", REAL)
def test_every_level(name: str) -> None:
    codec = CODECS[name]
    assert codec.default_level is None or codec.default_level in codec.levels
    for level in codec.levels:
        assert reference.decompress(name, codec.compress(TEXT[:5000], level), 2) == TEXT[:5000]


@pytest.mark.parametrize("name", CODECS)
def test_a_new_context_per_batch_writes_the_same_bytes_and_reads_them(name: str) -> None:
    kept = CODECS[name]
    levels: list[int | None] = [level for level in kept.levels if name != "zstd" or level < 16]  # above, they are large
    with new_contexts():
        new = CODECS[name]
        for level in levels or [None]:
            for data in (*SAMPLES.values(), TEXT[:50], TEXT[:5000]):
                compressed = new.compress(data, level)
                assert compressed == kept.compress(data, level) and new.decompress(compressed) == data
        assert codec_of(new.id) is find(name) is new
    assert CODECS[name] is kept


def test_only_zstd_and_lz4_differ_with_new_contexts_and_zstd_keeps_none() -> None:
    before = dict(CODECS)
    with new_contexts():
        assert {name for name, codec in CODECS.items() if codec is not before[name]} == {"zstd", "lz4"}
        zstd: Any = CODECS["zstd"]
        contexts = []
        for _ in range(2):
            zstd.decompress(zstd.compress(TEXT))
            contexts.append((zstd._contexts.compressobj, zstd._contexts.decompressor))
        assert contexts[0][0] is not contexts[1][0] and contexts[0][1] is not contexts[1][1]
    with suppress(Undecodable), new_contexts():
        CODECS["zstd"].decompress(b"nothing")
    assert dict(CODECS) == before


@pytest.mark.parametrize(
    ("name", "level"), [("gzip", 10), ("gzip", 0), ("snappy", 1), ("lz4", 18), ("zstd", 23), ("none", 1), ("gzip", 6.0)]
)
def test_a_level_that_the_codec_lacks(name: str, level: Any) -> None:
    with pytest.raises(IllegalCombination, match=rf"{name}.*{level}"):
        CODECS[name].compress(b"data", level)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
@pytest.mark.parametrize("name", REAL)
def test_anything_with_a_buffer(name: str, kind: type) -> None:
    codec = CODECS[name]
    assert codec.decompress(kind(codec.compress(kind(TEXT)))) == TEXT


# gzip


@pytest.mark.parametrize("level", CODECS["gzip"].levels)
def test_gzip_header_is_that_of_a_current_jdk(level: int) -> None:
    """The gzip header equals that of a current JDK.

    It has no flags and no time. The level byte is 0 at every level, and the operating system is unknown.
    """
    for data in (TEXT, b""):
        assert CODECS["gzip"].compress(data, level)[:10] == bytes.fromhex("1f8b 08 00 00000000 00 ff")


def test_gzip_members_of_any_size() -> None:
    """A gzip stream may have several members. Some end inside one piece of input, some span several pieces."""
    sizes = [0, 1, 900, 1100, 70_000, 0, 0, 3000, 100_000]
    parts = [NOISE[:size] for size in sizes]
    assert CODECS["gzip"].decompress(b"".join(map(gzip.compress, parts))) == b"".join(parts)
    assert CODECS["gzip"].decompress(gzip.compress(b"x") * 20_000) == b"x" * 20_000


@pytest.mark.parametrize(
    "rest", [b"\0", bytes(3000), b"\x1f", b"rubbish", b"\x1f\x8b" + bytes(99), b"\x1f\x8b\x08" + bytes(15)]
)
def test_gzip_ignores_what_is_no_member(rest: bytes) -> None:
    stream = CODECS["gzip"].compress(TEXT) + rest
    assert CODECS["gzip"].decompress(stream) == TEXT
    assert CODECS["gzip"].stream(stream).read(len(TEXT) + 1) == TEXT


# snappy


@pytest.mark.parametrize("size", [0, 1, 32767, 32768, 32769, 65536, 100_000])
def test_snappy_blocks_are_of_32_kib(size: int) -> None:
    data = NOISE[:size]
    stream = CODECS["snappy"].compress(data)
    assert stream.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    blocks = reference.xerial_blocks(stream)
    assert b"".join(blocks) == data
    assert all(len(block) == 32768 for block in blocks[:-1])
    assert len(blocks) == -(-size // 32768)


def test_snappy_reads_one_raw_block() -> None:
    for raw in (bytes(cramjam.snappy.compress_raw(TEXT)), reference.snappy_of_literals(TEXT)):
        assert CODECS["snappy"].decompress(raw) == TEXT


def test_snappy_reads_blocks_of_other_sizes() -> None:
    stream = reference.XERIAL_HEADER
    for at in range(0, len(TEXT), 50_000):
        block = bytes(cramjam.snappy.compress_raw(TEXT[at : at + 50_000]))
        stream += struct.pack(">i", len(block)) + block
    assert CODECS["snappy"].decompress(stream) == TEXT


# lz4


@pytest.mark.parametrize("level", [None, 1, 9, 17])
def test_lz4_frame_is_kafkas(level: int | None) -> None:
    for data in (TEXT, NOISE, b""):
        frame = lz4.read_frame(CODECS["lz4"].compress(data, level))
        assert frame.data == data
        assert frame.block_independent
        assert not frame.has_content_checksum
        assert frame.block_max_bytes == 64 * 1024
        assert all(size == 65536 for size in frame.block_bytes[:-1])
        assert len(frame.descriptor) == 2  # neither content size nor dictionary
        assert frame.header_checksum == lz4.header_checksum(frame.descriptor, magic=2)


def test_lz4_header_checksum_of_v0_covers_the_frame_magic() -> None:
    frame = lz4.read_frame(LEGACY_LZ4.compress(TEXT))
    assert frame.header_checksum == lz4.header_checksum(frame.descriptor, magic=0)
    assert frame.header_checksum != lz4.header_checksum(frame.descriptor, magic=1)


def test_lz4_header_checksum_is_ignored_in_v0() -> None:
    assert LEGACY_LZ4.decompress(flipped(lz4.compress(TEXT), 6, 0xFF)) == TEXT


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("codec", [CODECS["lz4"], LEGACY_LZ4], ids=["lz4", "legacy"])
def test_lz4_reads_foreign_independent_frames(codec: Codec, checksum: bool) -> None:
    writer = cramjam.lz4.Compressor(level=4, content_checksum=checksum, block_linked=False)
    writer.compress(TEXT)
    assert codec.decompress(bytes(writer.finish())) == TEXT


@pytest.mark.parametrize("plain", [b"", b"abc", TEXT])
@pytest.mark.parametrize("behind", [b"", bytes(9), b"anything"])
def test_lz4_reads_every_end_of_a_frame_that_kafka_reads(plain: bytes, behind: bytes) -> None:
    """Kafka 3.9.1 take an end mark with the bit of stored blocks, and check no content."""
    bare = CODECS["lz4"].compress(plain)[:-4]
    with_checksum = bytes([*bare[:4], bare[4] | 4, bare[5]])
    with_checksum += bytes([lz4.header_checksum(with_checksum[4:], 2)]) + bare[7:]
    for frame, content_checksum in ((bare, b""), (with_checksum, b"bad!")):
        for end_mark in (bytes(4), b"\0\0\0\x80"):
            whole = frame + end_mark + content_checksum
            assert CODECS["lz4"].decompress(whole + behind) == plain
            assert CODECS["lz4"].stream(whole + behind).read(len(plain) + 1) == plain
            with pytest.raises(Undecodable):
                CODECS["lz4"].decompress(whole[:-1])


# zstd

ZSTD_RAW, ZSTD_RUN = 0, 1


def zstd_blocks(frame: bytes) -> list[tuple[bool, int, int]]:
    """Return the blocks of a zstd frame without checksum, each as (is it the last, type, size)."""
    at, blocks = zstandard.frame_header_size(frame), []
    while at < len(frame):
        fields = int.from_bytes(frame[at : at + 3], "little")
        is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        blocks.append((is_last, kind, size))
        at += 3 + (1 if kind == ZSTD_RUN else size)
    assert at == len(frame)
    return blocks


ZSTD_WINDOW_LOGS = {-7: 19, 1: 19, 3: 21, 9: 22, 19: 23, 22: 27}  # limit from zstd's table for inputs of unknown size


@pytest.mark.parametrize("level", [None, *ZSTD_WINDOW_LOGS])
def test_zstd_frame_is_that_of_a_flushed_and_closed_stream(level: int | None) -> None:
    for data in (b"x", TEXT[:1000], TEXT, NOISE, bytes(300_000)):
        frame = CODECS["zstd"].compress(data, level)
        header = zstandard.get_frame_parameters(frame)
        assert header.content_size == zstandard.CONTENTSIZE_UNKNOWN
        assert header.window_size == 1 << ZSTD_WINDOW_LOGS[3 if level is None else level]
        assert (header.has_checksum, header.dict_id) == (False, 0)
        *filled, end = zstd_blocks(frame)
        assert end == (True, ZSTD_RAW, 0)
        assert len(filled) >= -(-len(data) // (128 << 10))
        assert not any(is_last for is_last, *_ in filled)


def test_zstd_frame_of_nothing_says_that_it_is_empty() -> None:
    for level in (None, -7, 22):
        assert CODECS["zstd"].compress(b"", level) == bytes.fromhex("28b52ffd 20 00 010000")


def test_zstd_levels_do_not_influence_each_other() -> None:
    """The compressor stores a context for the last level that was used. Another level must not use it."""
    levels = (3, 1, 3, 3, 19, -7, 3, 1)
    samples = [TEXT[at : at + 5000] for at in range(0, 5000 * len(levels), 5000)]
    alone = [Zstd().compress(data, level) for data, level in zip(samples, levels, strict=True)]
    shared = Zstd()
    assert [shared.compress(data, level) for data, level in zip(samples, levels, strict=True)] == alone
    assert len({len(Zstd().compress(TEXT, level)) for level in set(levels)}) == len(set(levels))


def test_zstd_reads_checksums_content_sizes_and_skippable_frames() -> None:
    whole = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True).compress(TEXT)
    skipped = struct.pack("<II", 0x184D2A50, 3) + b"abc"
    assert CODECS["zstd"].decompress(skipped + whole + skipped) == TEXT


# damage and limits, all codecs


@pytest.mark.parametrize("name", REAL)
def test_a_stream_cut_anywhere_is_refused(name: str) -> None:
    data = TEXT[:70_000]
    stream = CODECS[name].compress(data)
    # A xerial stream has no end mark, so a cut after a whole block cannot be seen.
    whole = {len(CODECS[name].compress(data[:size])) for size in (0, 32768, 65536)} if name == "snappy" else set()
    for cut in [
        *range(60),
        *range(60, len(stream), len(stream) // 97),
        *range(len(stream) - 20, len(stream)),
    ]:
        if cut not in whole:
            with pytest.raises(Undecodable, match=name):
                CODECS[name].decompress(stream[:cut])


@given(st.sampled_from(REAL), st.binary(max_size=200), st.integers(0, 10))
def test_noise_ends_in_a_clear_refusal(name: str, noise: bytes, keep: int) -> None:
    """Decompress noise, also after the first bytes of a valid stream. An error message has one line."""
    for stream in (noise, CODECS[name].compress(b"abc" * 10)[:keep] + noise):
        try:
            CODECS[name].decompress(stream, limit_bytes=1000)
        except KfbenchError as refusal:
            message = str(refusal)
        else:
            message = ""
        assert "\n" not in message


@pytest.mark.parametrize("name", [*REAL, "none", "lz4 of v0"])
def test_the_limit_is_exact(name: str) -> None:
    """A refusal names the limit, not what is left of it."""
    codec = CODECS.get(name, LEGACY_LZ4)
    for data in (TEXT[:1000], TEXT, TEXT + NOISE + bytes(2 << 20)):
        stream = codec.compress(data)
        for read in (codec.decompress, lambda stream, limit: codec.stream(stream, limit).read(4 << 20)):
            assert read(stream, len(data)) == data
            for limit in (len(data) - 1, len(data) // 2, 1, 0, 1 << 20):
                if limit < len(data):
                    named = "1 MiB" if limit == 1 << 20 else f"{limit:,} bytes?"
                    with pytest.raises(Undecodable, match=f"limit of {named}$") as refusal:
                        read(stream, limit)
                    assert refusal.value.is_past_limit


@pytest.mark.parametrize("name", REAL)
def test_a_refusal_counts_what_was_decompressed_before(name: str) -> None:
    stream = bytearray(CODECS[name].compress(TEXT + NOISE))
    for damaged in (stream[:-1], stream[: len(stream) // 2] + b"\xff" * (len(stream) // 2)):
        with pytest.raises(Undecodable) as refusal:
            CODECS[name].decompress(damaged)
        assert refusal.value.spent_bytes >= 32 << 10


def flipped(stream: bytes, at: int, bits: int = 1) -> bytes:
    changed = bytearray(stream)
    changed[at] ^= bits
    return bytes(changed)


def snappy_of_version(version: int) -> bytes:
    stream = CODECS["snappy"].compress(TEXT)
    return stream[:8] + version.to_bytes(4, "big", signed=True) + stream[12:]


def lz4_that_claims(size: int) -> bytes:
    frame = bytearray(lz4_library.compress(bytes(100), block_linked=False, store_size=True))
    frame[6:14] = size.to_bytes(8, "little")
    frame[14] = lz4.header_checksum(bytes(frame[4:14]), magic=2)
    return bytes(frame)


LINKED_LZ4 = bytes(cramjam.lz4.compress(TEXT))
REFUSED = (
    ("gzip", flipped(gzip.compress(TEXT), -5), "gzip"),  # its trailer
    ("gzip", (gzip.compress(NOISE) * 2)[:-1], "cut short"),
    ("gzip", zlib.compress(TEXT), "gzip"),
    ("gzip", zlib.compress(TEXT, wbits=-15), "gzip"),
    ("gzip", b"", "gzip"),
    *(("snappy", reference.XERIAL_HEADER + struct.pack(">i", length) + b"\x04\x0cabc", "snappy")
      for length in (-1, -(2**31), 2**31 - 1, 6)),
    ("snappy", b"\xff\xff\xff\xff\x0f" + b"\x00a", "snappy"),  # two bytes that claim 4 GiB of plain bytes
    ("snappy", snappy_of_version(1) + snappy_of_version(0), "incompatible version"),
    ("snappy", snappy_of_version(1) + snappy_of_version(-1), "incompatible version"),
    ("lz4", flipped(lz4.compress(TEXT), 6, 0xFF), "lz4"),
    ("lz4", LINKED_LZ4, "depend"),
    ("lz4 of v0", LINKED_LZ4, "depend"),
    *(("lz4", lz4_that_claims(size), "claim|limit") for size in (1 << 20, 1 << 33, 1 << 62)),
    ("zstd", flipped(zstandard.ZstdCompressor(write_checksum=True).compress(TEXT), -1), "zstd"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "stream", "words"), REFUSED, ids=lambda given: given if isinstance(given, str) else ""
)
def test_what_is_refused(name: str, stream: bytes, words: str) -> None:
    codec = CODECS.get(name, LEGACY_LZ4)
    with pytest.raises(Undecodable, match=words):
        codec.decompress(stream, limit_bytes=2**33 if name == "snappy" else 1 << 22)


@pytest.mark.parametrize("version", [0, -1])
def test_the_first_header_of_snappy_may_have_an_old_version(version: int) -> None:
    assert CODECS["snappy"].decompress(snappy_of_version(version)) == TEXT


def test_zstd_works_after_a_failed_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    zstd = Zstd()
    found = zstd.compress(TEXT, 3)

    def no_memory(**_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(zstandard, "ZstdCompressor", no_memory)
        with pytest.raises(MemoryError):
            zstd.compress(TEXT, 19)
    assert zstd.compress(TEXT, 3) == found
