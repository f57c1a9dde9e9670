"""Codecs: Kafka's framing byte by byte, foreign streams, damage, and the limit."""

import gzip
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import cramjam
import lz4.frame as lz4_library
import pytest
import xxhash
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kfbench.codecs import CODECS, DEFAULT_LIMIT_BYTES, LEGACY_LZ4, Codec, Undecodable, Zstd
from kfbench.errors import IllegalCombination, KfbenchError
from tests.reference import codecs as reference
from tests.reference import lz4, snappy

REAL = ("gzip", "snappy", "lz4", "zstd")
TEXT = b"".join(b'{"user":%d,"page":"/item/%d"}' % (i % 97, i * i % 1009) for i in range(6000))
NOISE = bytes((i * 2654435761 >> 13) & 0xFF for i in range(100_000))
SAMPLES = {"empty": b"", "one": b"x", "text": TEXT, "noise": NOISE, "zeros": bytes(200_000)}


def by_magic(name: str, magic: int) -> Codec:
    return LEGACY_LZ4 if (name, magic) == ("lz4", 0) else CODECS[name]


def test_ids_are_kafkas() -> None:
    assert {name: codec.id for name, codec in CODECS.items()} == {
        "none": 0,
        "gzip": 1,
        "snappy": 2,
        "lz4": 3,
        "zstd": 4,
    }
    assert all(codec.name == name for name, codec in CODECS.items())


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", [*REAL, "none"])
def test_foreign_readers_read_ours_and_we_read_theirs(name: str, sample: str, magic: int) -> None:
    if name == "zstd" and magic < 2:
        magic = 2
    codec, data = by_magic(name, magic), SAMPLES[sample]
    ours = codec.compress(data)
    assert codec.decompress(ours) == data
    if not (name == "snappy" and not data):
        assert reference.decompress(name, ours, magic) == data
    assert codec.decompress(reference.compress(name, data, magic)) == data


@pytest.mark.parametrize("name", REAL)
def test_every_level(name: str) -> None:
    codec = CODECS[name]
    assert codec.default_level is None or codec.default_level in codec.levels
    for level in codec.levels:
        assert reference.decompress(name, codec.compress(TEXT[:5000], level), 2) == TEXT[:5000]


@pytest.mark.parametrize(
    ("name", "level"), [("gzip", 10), ("gzip", 0), ("snappy", 1), ("lz4", 18), ("zstd", 23), ("none", 1)]
)
def test_a_level_that_the_codec_lacks(name: str, level: int) -> None:
    with pytest.raises(IllegalCombination, match=rf"{name}.*{level}"):
        CODECS[name].compress(b"data", level)


@pytest.mark.parametrize("name", REAL)
def test_a_higher_level_is_not_larger(name: str) -> None:
    codec = CODECS[name]
    if codec.levels:
        lowest, highest = codec.compress(TEXT, codec.levels[0]), codec.compress(TEXT, codec.levels[-1])
        assert len(highest) < len(lowest) < len(TEXT)


@pytest.mark.parametrize("name", REAL)
def test_the_version_names_a_library(name: str) -> None:
    library, _, number = CODECS[name].version.partition(" ")
    assert library.isalnum()
    assert number[0].isdigit()


@pytest.mark.parametrize("kind", [bytearray, memoryview])
@pytest.mark.parametrize("name", REAL)
def test_anything_with_a_buffer(name: str, kind: type) -> None:
    codec = CODECS[name]
    assert codec.decompress(kind(codec.compress(kind(TEXT)))) == TEXT


@given(st.binary(max_size=3000), st.integers(0, 40), st.sampled_from(REAL))
def test_any_data(data: bytes, times: int, name: str) -> None:
    codec = CODECS[name]
    assert codec.decompress(codec.compress(data * times)) == data * times


# gzip


@pytest.mark.parametrize("level", CODECS["gzip"].levels)
def test_gzip_header_is_that_of_a_current_jdk(level: int) -> None:
    """No flags, no time, no effort whatever the level, and an unknown operating system."""
    for data in (TEXT, b""):
        assert CODECS["gzip"].compress(data, level)[:10] == bytes.fromhex("1f8b 08 00 00000000 00 ff")


def test_gzip_members_one_after_another() -> None:
    stream = gzip.compress(TEXT[:100]) + gzip.compress(b"") + gzip.compress(TEXT[100:])
    assert CODECS["gzip"].decompress(stream) == TEXT


def test_gzip_members_of_any_size() -> None:
    """Some end inside the pieces that the reader takes, some span several."""
    sizes = [0, 1, 900, 1100, 70_000, 0, 0, 3000, 100_000]
    parts = [NOISE[:size] for size in sizes]
    assert CODECS["gzip"].decompress(b"".join(map(gzip.compress, parts))) == b"".join(parts)
    assert CODECS["gzip"].decompress(gzip.compress(b"x") * 20_000) == b"x" * 20_000
    cut = b"".join(map(gzip.compress, parts))[:-1]
    with pytest.raises(Undecodable, match="cut short"):
        CODECS["gzip"].decompress(cut)


def test_gzip_ignores_what_is_no_member() -> None:
    for rest in (b"\0", b"\0" * 3000, b"\x1f", b"rubbish"):
        assert CODECS["gzip"].decompress(gzip.compress(TEXT) + rest) == TEXT


def test_gzip_trailer_is_checked() -> None:
    stream = bytearray(gzip.compress(TEXT))
    stream[-5] ^= 1
    with pytest.raises(Undecodable, match="gzip"):
        CODECS["gzip"].decompress(stream)


def test_gzip_is_not_zlib_or_raw_deflate() -> None:
    for stream in (zlib.compress(TEXT), zlib.compress(TEXT, wbits=-15), b""):
        with pytest.raises(Undecodable, match="gzip"):
            CODECS["gzip"].decompress(stream)


# snappy


@pytest.mark.parametrize("size", [0, 1, 32767, 32768, 32769, 65536, 100_000])
def test_snappy_blocks_are_of_32_kib(size: int) -> None:
    data = NOISE[:size]
    stream = CODECS["snappy"].compress(data)
    assert stream.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    blocks = snappy.xerial_blocks(stream)
    assert b"".join(blocks) == data
    assert all(len(block) == 32768 for block in blocks[:-1])
    assert len(blocks) == -(-size // 32768)


def test_snappy_reads_one_raw_block() -> None:
    for raw in (bytes(cramjam.snappy.compress_raw(TEXT)), snappy.compress_raw(TEXT)):
        assert CODECS["snappy"].decompress(raw) == TEXT


def test_snappy_reads_blocks_of_other_sizes() -> None:
    stream = snappy.XERIAL_HEADER
    for at in range(0, len(TEXT), 50_000):
        block = bytes(cramjam.snappy.compress_raw(TEXT[at : at + 50_000]))
        stream += struct.pack(">i", len(block)) + block
    assert CODECS["snappy"].decompress(stream) == TEXT


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, 6])
def test_snappy_block_length_is_checked(length: int) -> None:
    stream = snappy.XERIAL_HEADER + struct.pack(">i", length) + b"\x04\x0cabc"
    with pytest.raises(Undecodable, match="snappy"):
        CODECS["snappy"].decompress(stream)


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
        assert len(frame.descriptor) == 2  # no content size, no dictionary
        assert frame.header_checksum == lz4.header_checksum(frame.descriptor, magic=2)


def test_lz4_header_checksum_of_v0_covers_the_frame_magic() -> None:
    frame = lz4.read_frame(LEGACY_LZ4.compress(TEXT))
    assert frame.header_checksum == lz4.header_checksum(frame.descriptor, magic=0)
    assert frame.header_checksum != lz4.header_checksum(frame.descriptor, magic=1)


def test_lz4_header_checksum_is_ignored_in_v0_only() -> None:
    stream = bytearray(lz4.compress(TEXT))
    stream[6] ^= 0xFF
    assert LEGACY_LZ4.decompress(stream) == TEXT
    with pytest.raises(Undecodable, match="lz4"):
        CODECS["lz4"].decompress(stream)


@pytest.mark.parametrize("codec", [CODECS["lz4"], LEGACY_LZ4], ids=["lz4", "legacy"])
def test_lz4_linked_blocks_are_refused(codec: Codec) -> None:
    linked = bytes(cramjam.lz4.compress(TEXT))
    assert not linked[4] & 0x20
    with pytest.raises(Undecodable, match="depend"):
        codec.decompress(linked)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("codec", [CODECS["lz4"], LEGACY_LZ4], ids=["lz4", "legacy"])
def test_lz4_reads_foreign_independent_frames(codec: Codec, checksum: bool) -> None:
    writer = cramjam.lz4.Compressor(level=4, content_checksum=checksum, block_linked=False)
    writer.compress(TEXT)
    assert codec.decompress(bytes(writer.finish())) == TEXT


def test_lz4_stops_after_the_first_frame() -> None:
    assert CODECS["lz4"].decompress(lz4.compress(TEXT) + lz4.compress(NOISE)) == TEXT
    assert CODECS["lz4"].decompress(lz4.compress(TEXT) + b"anything") == TEXT


# zstd

ZSTD_RAW, ZSTD_RUN = 0, 1


def zstd_blocks(frame: bytes) -> list[tuple[bool, int, int]]:
    """The blocks of one frame without a checksum: is it the last, its kind, its size."""
    at, blocks = zstandard.frame_header_size(frame), []
    while at < len(frame):
        fields = int.from_bytes(frame[at : at + 3], "little")
        is_last, kind, size = bool(fields & 1), fields >> 1 & 3, fields >> 3
        blocks.append((is_last, kind, size))
        at += 3 + (1 if kind == ZSTD_RUN else size)
    assert at == len(frame)
    return blocks


ZSTD_WINDOW_LOGS = {-7: 19, 1: 19, 3: 21, 9: 22, 19: 23, 22: 27}  # of zstd's table for inputs of unknown size


@pytest.mark.parametrize("level", [None, *ZSTD_WINDOW_LOGS])
def test_zstd_frame_is_of_a_stream_that_is_flushed_and_then_closed(level: int | None) -> None:
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


def test_zstd_levels_in_turn_write_what_each_writes_alone() -> None:
    """A context is used again, and only one level's is kept."""
    levels = (3, 1, 3, 3, 19, -7, 3, 1)
    samples = [TEXT[at : at + 5000] for at in range(0, 5000 * len(levels), 5000)]
    alone = [Zstd().compress(data, level) for data, level in zip(samples, levels, strict=True)]
    shared = Zstd()
    assert [shared.compress(data, level) for data, level in zip(samples, levels, strict=True)] == alone
    assert len({len(Zstd().compress(TEXT, level)) for level in set(levels)}) == len(set(levels))


def test_zstd_frames_one_after_another() -> None:
    frames = [bytes(cramjam.zstd.compress(part)) for part in (TEXT[:100], b"", TEXT[100:])]
    assert CODECS["zstd"].decompress(b"".join(frames)) == TEXT


def test_zstd_reads_checksums_content_sizes_and_skippable_frames() -> None:
    whole = zstandard.ZstdCompressor(write_checksum=True, write_content_size=True).compress(TEXT)
    skipped = struct.pack("<II", 0x184D2A50, 3) + b"abc"
    assert CODECS["zstd"].decompress(skipped + whole + skipped) == TEXT
    damaged = whole[:-1] + bytes([whole[-1] ^ 1])
    with pytest.raises(Undecodable, match="zstd"):
        CODECS["zstd"].decompress(damaged)


# damage and limits, all codecs


@pytest.mark.parametrize("name", REAL)
def test_a_stream_cut_anywhere_is_refused(name: str) -> None:
    data = TEXT[:70_000]
    stream = CODECS[name].compress(data)
    # A xerial stream has no end mark: whole blocks are a stream.
    whole = {len(CODECS[name].compress(data[:size])) for size in (0, 32768, 65536)} if name == "snappy" else set()
    for cut in [
        *range(1, 60),
        *range(60, len(stream), len(stream) // 97),
        *range(len(stream) - 20, len(stream)),
    ]:
        if cut not in whole:
            with pytest.raises(Undecodable, match=name):
                CODECS[name].decompress(stream[:cut])


@pytest.mark.parametrize("name", REAL)
def test_nothing_is_no_stream(name: str) -> None:
    with pytest.raises(Undecodable, match=name):
        CODECS[name].decompress(b"")


@given(st.sampled_from(REAL), st.binary(max_size=200), st.integers(0, 10))
def test_noise_ends_in_a_clear_refusal(name: str, noise: bytes, keep: int) -> None:
    """Noise, bare and behind the first bytes of a real stream."""
    for stream in (noise, CODECS[name].compress(b"abc" * 10)[:keep] + noise):
        try:
            CODECS[name].decompress(stream, limit_bytes=1000)
        except KfbenchError as refusal:
            message = str(refusal)
        else:
            message = ""
        assert "\n" not in message


@pytest.mark.parametrize("name", [*REAL, "none"])
def test_the_limit_is_exact(name: str) -> None:
    codec = CODECS[name]
    for data in (TEXT[:1000], TEXT):
        stream = codec.compress(data)
        assert codec.decompress(stream, limit_bytes=len(data)) == data
        for limit in (len(data) - 1, len(data) // 2, 1, 0):
            with pytest.raises(Undecodable, match="limit"):
                codec.decompress(stream, limit_bytes=limit)


# streams: a prefix without the rest

STREAMS = {**CODECS, "lz4 of v0": LEGACY_LZ4}
BLOCK_BYTES = {"none": 1, "gzip": 1, "snappy": 32 << 10, "lz4": 64 << 10, "lz4 of v0": 64 << 10, "zstd": 128 << 10}
MIXED = TEXT + NOISE + bytes(150_000) + TEXT


def several(name: str) -> tuple[bytes, bytes]:
    """(payload, plain) of several members, frames or streams, where the codec's readers take several."""
    codec, parts = STREAMS[name], [NOISE[:900], b"", TEXT, b"x", NOISE]
    if name.startswith("lz4"):
        return codec.compress(TEXT), TEXT
    return b"".join(map(codec.compress, parts)), b"".join(parts)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_gives_the_prefix_of_every_level_and_size(name: str) -> None:
    codec = STREAMS[name]
    for level in codec.levels or [None]:
        for size in (0, 1, 32768, 65537, 200_000):
            data = MIXED[:size]
            payload = codec.compress(data, level)
            for length in {0, 1, 300, 32768, size - 1, size, size + 1} - {-1}:
                if payload or not length:
                    assert codec.stream(payload).read(length) == data[:length], (level, size, length)


@given(st.sampled_from(list(STREAMS)), st.lists(st.integers(0, 70_000), max_size=12), st.booleans())
def test_a_stream_is_read_in_any_steps(name: str, steps: list[int], is_one: bool) -> None:
    payload, data = (STREAMS[name].compress(MIXED), MIXED) if is_one else several(name)
    stream, at, taken = STREAMS[name].stream(payload), 0, 0
    for step in steps:
        assert stream.read(step) == data[at : at + step]
        at = min(at + step, len(data))
        assert at <= stream.plain_bytes < at + BLOCK_BYTES[name]
        assert taken <= stream.taken_bytes <= len(payload)
        taken = stream.taken_bytes
    assert stream.read(len(data)) == data[at:]
    assert stream.read(1) == b""
    assert stream.plain_bytes == len(data)


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_does_no_more_than_the_prefix_needs(name: str) -> None:
    payload = STREAMS[name].compress(MIXED)
    stream = STREAMS[name].stream(payload)
    assert (stream.plain_bytes, stream.taken_bytes) == (0, 0)
    stream.read(1)
    first_block = BLOCK_BYTES[name]
    assert stream.plain_bytes == first_block
    assert stream.taken_bytes <= len(STREAMS[name].compress(MIXED[:first_block])) + 300
    stream.read(1000)
    assert stream.plain_bytes == max(1001, first_block)


@pytest.mark.parametrize("name", REAL)
def test_streams_that_are_read_in_turns_do_not_disturb_each_other(name: str) -> None:
    codec = CODECS[name]
    streams = [(codec.stream(codec.compress(data)), data) for data in (MIXED, TEXT, NOISE)]
    for at in range(0, 300_000, 30_000):
        for stream, data in streams:
            assert stream.read(30_000) == data[at : at + 30_000]
        assert codec.decompress(codec.compress(TEXT)) == TEXT


@pytest.mark.parametrize("name", REAL)
def test_damage_behind_the_prefix_goes_unseen_and_inside_it_does_not(name: str) -> None:
    """Unseen is what a reader of a prefix has to live with: half of the payload may be gone."""
    codec = CODECS[name]
    payload = codec.compress(MIXED)
    for damaged in (payload[: len(payload) // 2], payload[:-200] + bytes(200) + b"rubbish"):
        assert codec.stream(damaged).read(1000) == MIXED[:1000]
        assert codec.stream(damaged).read(BLOCK_BYTES[name]) == MIXED[: BLOCK_BYTES[name]]
    with pytest.raises(Undecodable, match=name):
        codec.stream(payload[: len(payload) // 2]).read(len(MIXED))
    for cut in (0, 1, 5, 20, 100):
        with pytest.raises(Undecodable, match=name):
            codec.stream(payload[:cut]).read(1000)
    with pytest.raises(Undecodable):
        codec.stream(payload[:2] + b"\xff" * 6 + payload[8:]).read(1000)


@given(st.sampled_from(list(STREAMS)), st.data())
def test_a_stream_refuses_nothing_that_the_whole_does_not(name: str, data: st.DataObject) -> None:
    """Bit flips and cuts: prefixes agree where the whole can be read, and read to its end both refuse or neither."""
    codec = STREAMS[name]
    payload, plain = several(name) if data.draw(st.booleans()) else (codec.compress(MIXED[300_000:]), MIXED[300_000:])
    hostile = bytearray(payload[: data.draw(st.integers(0, len(payload)))] if data.draw(st.booleans()) else payload)
    near = st.integers(0, min(len(hostile), 40)) if data.draw(st.booleans()) else st.integers(0, len(hostile))
    for at in data.draw(st.lists(near, min_size=1, max_size=3)):
        if at < len(hostile):
            hostile[at] ^= 1 << data.draw(st.integers(0, 7))
    length = data.draw(st.integers(0, len(plain)))
    try:
        whole = codec.decompress(hostile)
    except Undecodable:
        with pytest.raises(Undecodable):
            codec.stream(hostile).read(DEFAULT_LIMIT_BYTES)
    else:
        assert codec.stream(hostile).read(length) == whole[:length]
        assert codec.stream(hostile).read(DEFAULT_LIMIT_BYTES) == whole


@pytest.mark.parametrize("name", STREAMS)
def test_the_limit_of_a_stream_is_exact(name: str) -> None:
    codec = STREAMS[name]
    for data in (TEXT[:1000], MIXED):
        payload = codec.compress(data)
        assert codec.stream(payload, limit_bytes=len(data)).read(len(data) + 1) == data
        for limit in (len(data) - 1, len(data) // 2, 1, 0):
            with pytest.raises(Undecodable, match="limit"):
                codec.stream(payload, limit_bytes=limit).read(len(data) + 1)


BOMBS = """
import gzip, resource, struct, sys
import cramjam, lz4.frame
from kfbench.codecs import CODECS, LEGACY_LZ4, Undecodable

def xerial(size):
    block = bytes(cramjam.snappy.compress_raw(bytes(size)))
    return b"\\x82SNAPPY\\0" + struct.pack(">iii", 1, 1, len(block)) + block

frame = lz4.frame.compress(bytes(200 << 20), block_size=4, block_linked=False)
bombs = [
    (CODECS["gzip"], gzip.compress(bytes(200 << 20), 9)),
    (CODECS["gzip"], gzip.compress(bytes(900_000), 9) * 200),
    (CODECS["snappy"], xerial(200 << 20)),
    (CODECS["snappy"], xerial(900_000) * 200),
    (CODECS["snappy"], xerial(200 << 20)[20:]),
    (CODECS["lz4"], frame),
    (LEGACY_LZ4, frame),
    (CODECS["zstd"], bytes(cramjam.zstd.compress(bytes(200 << 20)))),
    (CODECS["zstd"], bytes(cramjam.zstd.compress(bytes(900_000))) * 200),
]
with open("/proc/self/statm") as statm:
    held = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (64 << 20),) * 2)
for codec, bomb in bombs:
    for read in (codec.decompress, lambda *given: codec.stream(*given).read(2**40)):
        try:
            read(bomb, 1_000_000)
        except Undecodable as refusal:
            assert "limit" in str(refusal), refusal
        else:
            sys.exit(f"{codec.name}: let through")
print("stopped", len(bombs))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's address space limit")
def test_bombs_are_stopped_before_they_take_memory() -> None:
    """Streams of 180 MB and more, a limit of 1 MB, and an address space with room for 64 MiB."""
    done = subprocess.run([sys.executable, "-c", BOMBS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "stopped 9\n"), done.stderr


def test_snappy_claims_are_not_believed() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"\x00a"  # 4 GiB out of two bytes
    with pytest.raises(Undecodable, match="snappy"):
        CODECS["snappy"].decompress(claim, limit_bytes=2**33)


@pytest.mark.parametrize("claimed", [1 << 20, 1 << 33, 1 << 62])
def test_an_lz4_frame_that_lies_about_its_size_is_refused_before_anything_is_allocated(claimed: int) -> None:
    frame = bytearray(lz4_library.compress(bytes(100), block_linked=False, store_size=True))
    frame[6:14] = claimed.to_bytes(8, "little")
    frame[14] = xxhash.xxh32_intdigest(bytes(frame[4:14])) >> 8 & 0xFF
    with pytest.raises(Undecodable, match=r"claim|limit"):
        CODECS["lz4"].decompress(bytes(frame))


def test_a_level_is_a_whole_number() -> None:
    with pytest.raises(IllegalCombination, match="level"):
        CODECS["gzip"].compress(b"x", level=6.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [0, -1])
def test_a_snappy_stream_of_an_incompatible_version(version: int) -> None:
    """snappy-java refuses a version below 1 in the header of a stream that follows, and passes over it in the first."""
    stream = CODECS["snappy"].compress(b"plain" * 20)
    old = stream[:8] + version.to_bytes(4, "big", signed=True) + stream[12:]
    assert CODECS["snappy"].decompress(old) == b"plain" * 20
    with pytest.raises(Undecodable, match="incompatible version"):
        CODECS["snappy"].decompress(stream + old)


def test_zstd_compresses_on_after_a_context_could_not_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    zstd = Zstd()
    found = zstd.compress(TEXT, 3)

    def no_memory(**_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(zstandard, "ZstdCompressor", no_memory)
        with pytest.raises(MemoryError):
            zstd.compress(TEXT, 19)
    assert zstd.compress(TEXT, 3) == found
