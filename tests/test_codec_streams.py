"""Decompressing streams return a prefix without reading the rest. A limit stops compression bombs."""

import gzip
import io
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.codecs import CODECS, DEFAULT_LIMIT_BYTES, LEGACY_LZ4, Undecodable
from kfbench.codecs.gzip_members import GzipReader
from tests.compressed import NOISE, REAL, TEXT

STREAMS = {**CODECS, "lz4 of v0": LEGACY_LZ4}
BLOCK_BYTES = {"none": 1, "gzip": 1, "snappy": 32 << 10, "lz4": 64 << 10, "lz4 of v0": 64 << 10, "zstd": 128 << 10}
MIXED = TEXT + NOISE + bytes(150_000) + TEXT


def several(name: str) -> tuple[bytes, bytes]:
    """Return several compressed members or frames in one stream, and their plain bytes. For lz4 it is one frame."""
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
def test_a_stream_decompresses_only_what_the_prefix_needs(name: str) -> None:
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
def test_streams_can_be_read_alternately(name: str) -> None:
    codec = CODECS[name]
    streams = [(codec.stream(codec.compress(data)), data) for data in (MIXED, TEXT, NOISE)]
    for at in range(0, 300_000, 30_000):
        for stream, data in streams:
            assert stream.read(30_000) == data[at : at + 30_000]
        assert codec.decompress(codec.compress(TEXT)) == TEXT


@pytest.mark.parametrize("name", REAL)
def test_only_damage_inside_the_prefix_is_seen(name: str) -> None:
    """Reading a prefix fails only if the payload is cut or damaged inside the prefix."""
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
def test_a_stream_agrees_with_a_whole_read(name: str, data: st.DataObject) -> None:
    """Change or cut the compressed bytes.

    A stream returns the same prefix as a whole read. At its end both refuse, or neither does.
    """
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
    """Reading 180 MB or more under a limit of 1 MB raises an error, with only 64 MiB of free address space."""
    done = subprocess.run([sys.executable, "-c", BOMBS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "stopped 9\n"), done.stderr


PACKED = gzip.compress(MIXED, 1, mtime=0)
TRUNCATED, DAMAGED = "truncated compressed text", "zlib: damaged"


@pytest.mark.parametrize("size", [1 << 16, 1 << 22])
@pytest.mark.parametrize(
    ("packed", "texts", "reason"),
    [
        (PACKED, 1, ""), (PACKED + bytes(GzipReader.PACKED_BYTES * 2) + PACKED, 2, ""), (PACKED + bytes(9), 1, ""),
        (b"", 0, TRUNCATED), (gzip.compress(b""), 0, ""), (PACKED[:5], 0, TRUNCATED), (PACKED[:-1], 1, TRUNCATED),
        (PACKED + PACKED[:9], 1, TRUNCATED), (PACKED + b"junk", 1, DAMAGED), (b"junk", 0, DAMAGED),
    ],
    ids=["whole", "members", "zeros", "empty", "empty member", "header", "cut", "member cut", "junk", "only junk"],
)  # fmt: skip
def test_a_gzip_file_gives_all_text_before_its_end_or_damage(packed: bytes, texts: int, reason: str, size: int) -> None:
    """The program gzip(1) gives the same text for these files."""
    reader, parts, error = GzipReader(io.BytesIO(packed)), [], ""
    try:
        while part := reader.read(size):
            parts.append(part)
    except OSError as raised:
        error = str(raised)
    assert (b"".join(parts), error) == (MIXED * texts, reason)
    assert len(parts) <= len(MIXED) * texts // size + 1
