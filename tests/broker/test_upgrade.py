"""`upgrade` replaces a segment file atomically, or does not change it at all."""

import fcntl
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, Records, read_log
from kfbench.broker import upgrade as module
from kfbench.broker.convert import convert
from kfbench.broker.upgrade import INDEXES, SUFFIX, upgrade
from kfbench.errors import CorruptLog, IllegalCombination, KfbenchError, Refused, WouldLose
from tests.common import ON_BROKERS, records_of
from tests.killed import BESIDE, SEGMENT, old_segment, upgrade_segment
from tests.reference.model import Message
from tests.strategies import NOW_MS

pytestmark = pytest.mark.compiled_only

SAMPLE = [Message(offset=i, timestamp_ms=NOW_MS + i, key=b"k%d" % i, value=b"value-%d" % i * 9) for i in range(60)]
NEWER = [name for name, fmt in ON_BROKERS.items() if fmt.magic >= 2 and fmt.is_told_by_magic]
ROOT = Path(__file__).parents[2]


def written(name: str, codec: str = "none", **fields: Any) -> bytes:
    given = BatchFields(**fields) if fields else None
    return bytes(FORMATS[name].encode(records_of(SAMPLE), 7, codec, batch_fields=given, lossy=True))


OLD = written("v2") + written("v0", "gzip") + written("v1") + written("v1", "lz4") + written("v0")


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(OLD)
    for suffix in (*INDEXES, ".txnindex", ".snapshot"):
        path.with_suffix(suffix).write_bytes(b"of the old bytes")
    return path


def beside(segment: Path) -> set[str]:
    return {path.name.removeprefix(segment.stem) for path in segment.parent.iterdir()} - {".log"}


@pytest.mark.sampled
@pytest.mark.parametrize("chunk_bytes", [12, 1000, 1 << 20])
@pytest.mark.parametrize("to", NEWER)
def test_every_batch_in_the_newer_format(segment: Path, to: str, chunk_bytes: int) -> None:
    wanted = bytes(convert(OLD, to).encoded)
    made = upgrade(segment, to, chunk_bytes=chunk_bytes)
    assert segment.read_bytes() == wanted
    assert read_log(segment).records == read_log(OLD).records
    assert {FORMATS[to].magic} == set(read_log(segment).batches["magic"])
    assert (made.path, made.replaced) == (str(segment), True)
    assert (made.before_bytes, made.after_bytes) == (len(OLD), len(wanted))
    assert made.work == convert(OLD, to).work
    assert made.converted_records == convert(OLD, to).converted_records
    assert beside(segment) == {".txnindex", ".snapshot"}

    again = upgrade(segment, to, chunk_bytes=chunk_bytes)
    tagged = "tagged_fields" in FORMATS[to].capabilities.batch_fields  # the segment does not show its format
    assert again.replaced == tagged
    assert segment.read_bytes() == wanted
    if not tagged:
        assert (again.work.written_bytes, again.work.rewritten, again.converted_records) == (0, 0, 0)


def test_upgrade_to_v3(segment: Path) -> None:
    upgrade(segment, "v2")
    assert upgrade(segment, "v3", codec="zstd").replaced
    assert segment.read_bytes() == bytes(convert(convert(OLD, "v2").encoded, "v3", codec="zstd").encoded)


def test_a_segment_that_has_the_format_is_left_alone(segment: Path) -> None:
    segment.write_bytes(written("v2", "zstd"))
    before, files = segment.stat(), beside(segment)
    made = upgrade(segment)
    assert (made.replaced, made.work.untouched) == (False, 9)
    after = segment.stat()  # only the access time may change
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert beside(segment) == files


def test_mode_and_time_are_kept(segment: Path) -> None:
    """The file mode and modification time stay.

    A broker expires a segment without timestamps by the modification time.
    """
    segment.chmod(0o640)
    os.utime(segment, ns=(1_500_000_000_123_456_789, 1_600_000_000_123_456_789))
    upgrade(segment)
    after = segment.stat()
    assert after.st_mode & 0o7777 == 0o640
    assert after.st_mtime_ns == 1_600_000_000_123_456_789


def test_through_a_link(segment: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(segment)
    assert upgrade(link).path == str(segment)
    assert link.is_symlink()
    assert read_log(segment).batches["magic"].eq(2).all()
    assert not set(INDEXES) & beside(segment)


def test_a_file_that_is_no_segment_of_a_broker_has_no_indexes(tmp_path: Path) -> None:
    """Only a file with the name of a segment has index files. An .index file next to any other file is kept."""
    path, other = tmp_path / "batches.bin", tmp_path / "batches.index"
    path.write_bytes(OLD)
    other.write_bytes(b"")
    assert upgrade(path).replaced
    assert other.exists()


# Refused upgrades change neither the segment, nor its index files, nor its folder


def check_refused(segment: Path, error: type[KfbenchError], match: str, **options: Any) -> KfbenchError:
    before, data, files = segment.stat(), segment.read_bytes(), beside(segment)
    with pytest.raises(error, match=match) as refusal:
        upgrade(segment, **options)
    assert str(segment) in str(refusal.value)
    after = segment.stat()
    assert (after.st_ino, after.st_mtime_ns, segment.read_bytes()) == (before.st_ino, before.st_mtime_ns, data)
    assert beside(segment) == files - {".log" + SUFFIX}
    return refusal.value


@pytest.mark.parametrize("chunk_bytes", [300, 1 << 20])
@pytest.mark.parametrize("name", ["v0", "v1", "v2"])
def test_damage(segment: Path, name: str, chunk_bytes: int) -> None:
    """Damage in the last batch is found, even if that batch would only be copied."""
    data = bytearray(OLD + written(name, "gzip"))
    data[-1] ^= 1
    segment.write_bytes(data)
    error = check_refused(segment, CorruptLog, "batch at byte", chunk_bytes=chunk_bytes)
    whole = read_log(data, on_error="skip")
    assert isinstance(error, CorruptLog)
    assert (error.position, error.source) == (whole.errors[0].position, str(segment))


def test_a_length_that_cannot_be_skipped(segment: Path) -> None:
    segment.write_bytes(OLD + bytes(100))
    error = check_refused(segment, CorruptLog, "length", chunk_bytes=500)
    assert isinstance(error, CorruptLog)
    assert error.position == len(OLD)


@pytest.mark.parametrize("cut", [1, 100])
def test_a_last_batch_that_does_not_end(segment: Path, cut: int) -> None:
    segment.write_bytes(OLD + written("v1", "gzip")[:-cut])
    error = check_refused(segment, CorruptLog, "recover the log first", chunk_bytes=500)
    assert isinstance(error, CorruptLog)
    last = read_log(segment).batches.iloc[-1]
    assert error.position == last["position"] + last["size_bytes"]


def test_a_loss_is_refused(segment: Path) -> None:
    segment.write_bytes(written("v2") + written("v3-tagged", tagged_fields={7: b"x"}))
    check_refused(segment, WouldLose, rf"byte {len(written('v2'))}: v2 cannot carry tagged_fields \(1\)")
    made = upgrade(segment, lossy=True)
    assert made.work.losses == {"tagged_fields": 9}


def test_a_batch_without_room_in_the_target_is_refused(segment: Path) -> None:
    far = Records.from_lists([b"a", b"b"], offsets=[0, 2**31])
    segment.write_bytes(OLD + bytes(FORMATS["v0"].encode(far, 2, "gzip")))
    error = check_refused(segment, Refused, "UNSUPPORTED_FOR_MESSAGE_FORMAT")
    assert isinstance(error, Refused)
    assert (error.position, error.source) == (len(OLD), str(segment))


def test_a_segment_that_would_outgrow_a_broker(segment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", len(OLD))
    check_refused(segment, KfbenchError, "larger than", chunk_bytes=500)


def test_one_upgrade_at_a_time(segment: Path) -> None:
    Path(f"{segment}{SUFFIX}").write_bytes(b"being written")
    holder = os.open(segment, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    try:
        with pytest.raises(KfbenchError, match="another upgrade"):
            upgrade(segment)
        assert segment.read_bytes() == OLD
        assert Path(f"{segment}{SUFFIX}").read_bytes() == b"being written"
    finally:
        os.close(holder)
    assert upgrade(segment).replaced


def test_a_segment_that_was_replaced_before_it_was_locked(segment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        lock(descriptor, how)
        fresh = segment.with_suffix(".fresh")
        fresh.write_bytes(written("v2"))
        fresh.replace(segment)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(KfbenchError, match="was replaced"):
        upgrade(segment)
    assert segment.read_bytes() == written("v2")


def test_a_segment_that_is_written_to(segment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, more = os.fsync, written("v1")

    def append(descriptor: int) -> None:
        if segment.read_bytes() == OLD:
            segment.write_bytes(OLD + more)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", append)
    with pytest.raises(KfbenchError, match="written to meanwhile"):
        upgrade(segment)
    assert segment.read_bytes() == OLD + more
    assert set(INDEXES) <= beside(segment)
    assert ".log" + SUFFIX not in beside(segment)


def test_no_such_file_and_no_such_format(segment: Path, tmp_path: Path) -> None:
    with pytest.raises(KfbenchError, match="No such file"):
        upgrade(tmp_path / "nothing.log")
    with pytest.raises(KfbenchError, match=f"{tmp_path}: is no regular file"):
        upgrade(tmp_path)
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(KfbenchError, match=r"pipe\.log: is no regular file"):
        upgrade(tmp_path / "pipe.log")
    for name in ("kip98", "enriched"):
        with pytest.raises(IllegalCombination, match=f"^{name}: "):
            upgrade(segment, name)
    segment.write_bytes(b"")
    assert not upgrade(segment).replaced


def test_a_segment_that_is_cut_off_meanwhile(segment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = segment.read_bytes()
    monkeypatch.setattr(os, "sendfile", lambda *_: 0)
    segment.write_bytes(bytes(FORMATS["v2"].encode(Records.from_lists([b"new"]))) + whole)
    with pytest.raises(KfbenchError, match="truncated at byte 0"):
        upgrade(segment)
    assert sorted(segment.parent.glob("*.upgrade")) == []


# Killed at any moment


def test_the_order_of_writes_to_the_disk(segment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power failure may lose writes without fsync, in any order.

    So every file and folder is synced before the next step relies on it.
    """
    done: list[str] = []

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            file = Path(f"/proc/self/fd/{given[0]}").readlink() if isinstance(given[0], int) else Path(given[0])
            done.append(f"{name} {file.name.removeprefix(segment.stem)}")
            return real(*given, **named)

        return call

    for name in ("write", "fsync", "unlink", "replace", "utime"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    upgrade(segment)
    monkeypatch.undo()
    folder = segment.parent.name
    last_write = len(done) - done[::-1].index("write .log.upgrade")
    assert done[last_write:] == [
        "utime .log.upgrade",
        "fsync .log.upgrade",
        "unlink .index",
        "unlink .timeindex",
        f"fsync {folder}",
        "replace .log.upgrade",
        f"fsync {folder}",
    ]


@pytest.mark.thorough
def test_after_a_kill_the_old_or_the_new_segment_is_complete(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "tests.killed", "upgrade", str(tmp_path)], cwd=ROOT, check=True, timeout=300)
    folders = [folder for folder in sorted(tmp_path.iterdir()) if (folder / SEGMENT).exists()]
    new = bytes(convert(old_segment(), "v2").encoded)
    left = []
    for folder in folders:
        found = {path.name.removeprefix(Path(SEGMENT).stem) for path in folder.iterdir()}
        data = (folder / SEGMENT).read_bytes()
        assert data in (old_segment(), new)
        # a broker rebuilds the indexes only if .index is missing
        assert ".txnindex" in found and (".timeindex" in found or ".index" not in found)
        assert data != new or found == {".log", ".txnindex"}
        left.append((data == new, found))
        upgrade_segment(folder)
        assert (folder / SEGMENT).read_bytes() == new
        assert {path.suffix for path in folder.iterdir()} == {".log", ".txnindex"}
    assert left[0] == (False, {".log", *BESIDE}) and left[-1][0] and len(left) > 8
    assert (False, {".log", ".txnindex", ".log" + SUFFIX}) in left


@pytest.mark.parametrize(("name", "to", "codec"), [("v1", "v2", "none"), ("v2", "v3", "lz4")])
@pytest.mark.thorough
def test_memory_is_bounded_by_the_piece(segment: Path, name: str, to: str, codec: str) -> None:
    records = Records.from_lists([bytes(range(250)) * 4] * 250, timestamps_ms=NOW_MS + np.arange(250))
    part = bytes(FORMATS[name].encode(records, 50, codec))
    peaks = []
    chunk_bytes = len(part)
    for times in (4, 40):
        segment.write_bytes(part * times)
        tracemalloc.start()
        upgrade(segment, to, chunk_bytes=chunk_bytes)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.25 * peaks[0]
