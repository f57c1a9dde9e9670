"""Segments: every valid batch is read once, omissions are reported, memory stays bounded."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kfbench import FORMATS, Limits, Records, read_log
from kfbench.errors import KfbenchError
from kfbench.inspection.segment import SegmentReader
from kfbench.sources import GONE, Chunk, find, log, part
from kfbench.sources.log import Segment
from kfbench.whatif.question import Question
from kfbench.whatif.tally import tally_all
from tests.formats.fuzz import sealed
from tests.recorded import FOLDER, NAMES, facts

ROOM_BYTES = 320 << 20  # a worker may use 1 GiB; interpreter and libraries take a quarter
# Peak memory of this process from /proc. rusage would include the parent process.
MEASURE = """\
import sys
from pathlib import Path
from kfbench.whatif.question import Question
from kfbench.whatif.tally import tally
from kfbench.sources.log import Segment

def peak_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))

def read(path):
    whole = Segment(name=path, written_bytes=Path(path).stat().st_size)
    return tally(whole, Question(arms=(("v2", "none"),), share=1e-9))

read(sys.argv[1])
before = peak_bytes()
counts = [read(path).sources[0].records for path in sys.argv[2:]]
print(peak_bytes() - before, *counts)
"""


def written(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join((FOLDER / name).read_bytes() for name in names))
    return path


def chunks_of(path: Path) -> list[Chunk]:
    return list(Segment(name=str(path), written_bytes=path.stat().st_size).chunks())


def chunks_of_shares(path: Path) -> list[Chunk]:
    return [chunk for each in find([path]).parts for chunk in each.chunks()]


def check(chunks: list[Chunk], data: bytes) -> None:
    """Check that the chunks together equal a single reading of all bytes."""
    whole = read_log(data, on_error="skip")
    assert np.concatenate([np.diff(chunk.bounds) for chunk in chunks if chunk.bounds is not None]).tolist() == (
        np.diff(whole.bounds).tolist()
    )
    assert np.concatenate([chunk.records.offsets for chunk in chunks]).tolist() == whole.records.offsets.tolist()
    values = [chunk.records.value(i) for chunk in chunks for i in range(len(chunk.records))]
    assert values == [whole.records.value(i) for i in range(len(whole.records))]
    assert sum(chunk.size_bytes for chunk in chunks) == whole.batch_rows["size_bytes"].sum()
    left_out = [each.position for chunk in chunks for each in chunk.damage if each.size_bytes]
    assert left_out == [error.position for error in whole.errors]
    assert sum(chunk.trailing_bytes for chunk in chunks) == whole.trailing_bytes
    lost = sum(each.size_bytes for chunk in chunks for each in chunk.damage)
    assert sum(chunk.size_bytes + chunk.trailing_bytes for chunk in chunks) + lost == len(data)


@pytest.mark.parametrize("first_bytes", [100, 2_000, 1 << 20])
def test_every_sound_batch_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_bytes: int) -> None:
    monkeypatch.setattr(log, "FIRST_BYTES", first_bytes)
    monkeypatch.setattr(log, "PIECE_BYTES", 3 * first_bytes)
    path = written(tmp_path / "a.log", "transactions.log", "activity-zstd.log", "changelog.log")
    data = bytearray(path.read_bytes())
    check(chunks_of(path), bytes(data))
    data[facts("transactions.log").positions[3] + 70] ^= 8
    path.write_bytes(data[:-11])
    check(chunks_of(path), bytes(data[:-11]))


@pytest.mark.parametrize("share_bytes", [3_000, 20_000, 60_000])
def test_shares_of_a_segment_have_every_sound_batch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share_bytes: int
) -> None:
    monkeypatch.setattr(part, "SHARE_BYTES", share_bytes)
    monkeypatch.setattr("kfbench.log.pieces.HEADERS_BYTES", 900)
    monkeypatch.setattr(log, "PIECE_BYTES", 5_000)
    path = written(tmp_path / "a.log", "transactions.log", "activity-zstd.log", "changelog.log", "edges.log")
    sound = bytearray(path.read_bytes())
    assert len(find([path]).parts) > 1
    check(chunks_of_shares(path), bytes(sound))
    damaged = sound.copy()
    damaged[facts("transactions.log").positions[3] + 70] ^= 8
    at = len(sound) - 90_000
    at = next(int(position) for position in read_log(sound).batches["position"] if position >= at)
    for broken_length in (bytes(4), b"\x7f\xff\xff\xff"):  # the next batch is not found; above the limit
        data = damaged.copy()
        data[at + 8 : at + 12] = broken_length
        path.write_bytes(data)
        found = chunks_of_shares(path)
        reported = [(each.position, each.size_bytes, each.field) for chunk in found for each in chunk.damage]
        assert reported == [(each.position, each.size_bytes, each.field) for c in chunks_of(path) for each in c.damage]
        assert reported[-1] == (at, len(data) - at, "length")
        whole = read_log(bytes(data[:at]), on_error="skip")
        assert [each for chunk in found for each in chunk.records.offsets] == whole.records.offsets.tolist()
    path.write_bytes(damaged[:-11])
    check(chunks_of_shares(path), bytes(damaged[:-11]))


def test_a_run_that_grows_too_large_is_read_batch_by_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LIMITS", Limits(batch_bytes=30_000, log_expansion=1))
    grows = FORMATS["v2"].encode(Records.from_lists([bytes(25_000), bytes(40_000), b"a"] * 2), 1, "lz4")
    path = tmp_path / "a.log"
    path.write_bytes(bytes(grows))
    chunks = chunks_of(path)
    assert [len(chunk.records.value(i) or b"") for chunk in chunks for i in range(len(chunk.records))] == [
        25_000, 1, 25_000, 1,
    ]  # fmt: skip
    damage = [each for chunk in chunks for each in chunk.damage]
    assert [each.position for each in damage] == grows.positions[[1, 4]].tolist()
    assert all("past the limit of 30,000 bytes" in each.promise for each in damage)


def damage_of(chunks: list[Chunk]) -> list[tuple[int, int, str]]:
    return [(each.position, each.size_bytes, each.field) for chunk in chunks for each in chunk.damage]


@pytest.mark.parametrize("name", ["v2", "v3", "columnar"])
def test_a_batch_of_too_many_records_is_damage_and_runs_of_many_are_split(tmp_path: Path, name: str) -> None:
    """A batch with too many records counts as damage.

    In columnar it takes 34 bytes, under any codec. Sequences of large batches are split.
    """
    fmt = FORMATS[name]
    one = bytes(fmt.encode(Records.from_lists([None] * 400_000), 400_000, "zstd"))
    path = tmp_path / "a.log"
    path.write_bytes(one * 3)
    assert [len(chunk.records) for chunk in chunks_of(path)] == [400_000] * 3
    many = bytes(fmt.encode(Records.from_lists([None] * ((1 << 20) + 1)), (1 << 20) + 1, "zstd"))
    path.write_bytes(many + one)
    chunks = chunks_of(path)
    assert sum(len(chunk.records) for chunk in chunks) == 400_000
    assert damage_of(chunks) == [(0, len(many), "count")]
    assert "1,048,576" in chunks[0].damage[0].promise


def test_a_length_that_no_batch_has_is_not_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log", "telemetry.log")
    data, at = bytearray(path.read_bytes()), facts("telemetry.log").positions[7]
    data[at + 8 : at + 12] = (0x7FFF_0000).to_bytes(4, "big")
    path.write_bytes(data)
    os.truncate(path, 1 << 40)  # a sparse file that is never read
    with path.open("r+b") as file:
        file.seek((1 << 40) - 1)
        file.write(b"x")
    *sound, last = chunks_of(path)
    assert sum(chunk.size_bytes for chunk in sound) == at
    assert damage_of([*sound, last]) == [(at, (1 << 40) - at, "length")]
    assert last.damage[0].promise == "2,147,418,124 bytes, where a batch may take 67,108,864"


@pytest.mark.parametrize("zeros", [5, 12, 100_000, 20 << 20])
@pytest.mark.parametrize("is_hole", [False, True])
def test_zeros_that_a_broker_allocated_ahead_are_no_damage(tmp_path: Path, zeros: int, is_hole: bool) -> None:
    path = written(tmp_path / "orders-0" / f"{0:020}.log", "telemetry.log")
    size_bytes = path.stat().st_size
    if is_hole:
        os.truncate(path, size_bytes + zeros)
    else:
        path.write_bytes(path.read_bytes() + bytes(zeros))
    [part] = find([path]).parts
    chunks = list(part.chunks())
    assert sum(chunk.size_bytes for chunk in chunks) == size_bytes
    assert not damage_of(chunks) and not any(chunk.trailing_bytes for chunk in chunks)
    # Zeros may belong to the last batch.
    assert size_bytes - 12 <= part.size_bytes <= size_bytes + (zeros if zeros < 12 else 0)


def test_a_segment_that_vanishes_raises_gone(tmp_path: Path) -> None:
    path = written(tmp_path / "orders-0" / f"{0:020}.log", "telemetry.log")
    [part] = find([path]).parts
    path.rename(f"{path}.deleted")
    with pytest.raises(KfbenchError, match=f"^{GONE}$"):
        list(part.chunks())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.thorough
def test_memory_is_bounded_whatever_the_size(tmp_path: Path) -> None:
    logs, expected = [], []
    # Batches that decompress to 8,000 times their size, and records with columns larger than their bytes.
    for codec, value_bytes, batch_size, times in (("zstd", 1 << 20, 1, 340), ("none", 1, 5_000, 700)):
        batch = bytes(FORMATS["v2"].encode(Records.from_lists([bytes(value_bytes)] * batch_size), batch_size, codec))
        logs.append(tmp_path / f"{codec}.log")
        logs[-1].write_bytes(batch * times)
        expected.append(batch_size * times)
        assert (value_bytes + 2 * log.COLUMN_BYTES) * batch_size * times > ROOM_BYTES  # if all were read at once
    command = [sys.executable, "-c", MEASURE, str(FOLDER / "activity-zstd.log"), *map(str, logs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    peak_bytes, *counts = map(int, done.stdout.split())
    assert counts == expected
    assert peak_bytes < ROOM_BYTES


def batch_of(*offsets: int, name: str = "v2", codec: str = "none") -> bytes:
    records = Records.from_lists([b"v"] * len(offsets), offsets=list(offsets))
    return bytes(FORMATS[name].encode(records, len(offsets), codec, lossy=True))


def offset_places(path: Path, data: bytes) -> list[int]:
    path.write_bytes(data)
    damage = [each for chunk in chunks_of(path) for each in chunk.damage]
    assert all((each.size_bytes, each.field) == (0, "offset") for each in damage)
    return [each.position for each in damage]


@pytest.mark.parametrize("first_bytes", [1, 1 << 20])
@pytest.mark.parametrize(
    ("name", "codec"), [("v0", "none"), ("v0", "gzip"), ("v1", "snappy"), ("v2", "none"), ("v2", "zstd"), ("v3", "lz4")]
)
def test_offsets_that_repeat_or_go_back_are_damage_of_no_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, codec: str, first_bytes: int
) -> None:
    monkeypatch.setattr(log, "FIRST_BYTES", first_bytes)

    def batches(*each: tuple[int, ...]) -> list[bytes]:
        return [batch_of(*offsets, name=name, codec=codec) for offsets in each]

    path = tmp_path / "a.log"
    first, second = batches((5, 6), (7, 9))
    assert offset_places(path, first + second + batch_of(20, name=name, codec=codec)) == []  # gaps, as of compaction
    assert offset_places(path, second + first + second) == [len(second)]
    assert offset_places(path, first + second + first + second) == [len(first + second)]
    (overlapping,) = batches((9, 12))
    assert offset_places(path, first + second + overlapping) == [len(first + second)]


def test_offsets_that_repeat_inside_a_batch_are_found(tmp_path: Path) -> None:
    path, ahead, behind = tmp_path / "a.log", batch_of(1, 2), batch_of(10)
    same = bytearray(batch_of(5, 6, 7))
    second = same.index(b"\x02v", same.index(b"\x02v") + 1)  # the length of its value
    assert same[second - 2] == 2  # the offset delta 1
    same[second - 2] = 0
    assert offset_places(path, ahead + sealed(bytes(same)) + behind) == [len(ahead)]
    low = bytearray(ahead + batch_of(5, 6) + behind)
    low[len(ahead) + 7] = 2  # the base offset, which no checksum covers
    assert offset_places(path, bytes(low)) == [len(ahead)]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_offsets_of_recorded_logs_rise(name: str) -> None:
    assert not [each for chunk in chunks_of(FOLDER / name) for each in chunk.damage]


def test_offsets_rise_from_share_to_share_and_from_segment_to_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "SHARE_BYTES", 200)
    ahead, again = b"".join(batch_of(i) for i in range(5)), b"".join(batch_of(i) for i in range(3, 9))
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first, second = (folder / f"{number:020}.log" for number in (0, 3))
    for path, data in ((first, ahead), (second, again)):
        path.write_bytes(data)
    asked = Question(arms=(("v2", "none"),))
    sources = tally_all(find([folder]).parts, asked).sources
    assert [[(each.position, each.size_bytes) for each in source.damage] for source in sources] == [[], [(0, 0)]]
    readers = [SegmentReader(first)]
    readers.append(SegmentReader(second, readers[0].read()))
    assert [each.position for each in readers[1].read().damage] == [0]
    second.write_bytes(batch_of(5) + ahead + ahead)
    (back, again_at) = tally_all(find([second]).parts, asked).sources[0].damage
    assert (back.position, again_at.position) == (len(batch_of(5)), len(batch_of(5) + ahead))


@pytest.mark.parametrize("offset", [0, 1 << 16, 1 << 40])
def test_no_offset_makes_a_segment_another_kind_of_file(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "ours.log"
    path.write_bytes(batch_of(offset))
    assert sum(len(chunk.records) for chunk in chunks_of(path)) == 1


def test_a_record_that_names_an_archive_is_no_archive(tmp_path: Path) -> None:
    """A tar archive has "ustar" at byte 257, which may be a byte of a value."""
    for padding in range(140, 200):
        records = Records.from_lists([b"a" * padding + b"mustard"] * 20)
        path = tmp_path / f"{padding}.log"
        path.write_bytes(bytes(FORMATS["v2"].encode(records, 1)))
        [part] = find([path]).parts
        assert sum(len(chunk.records) for chunk in part.chunks()) == 20
    heads = [path.read_bytes()[257:262] for path in tmp_path.glob("*.log")]
    assert b"ustar" in heads
