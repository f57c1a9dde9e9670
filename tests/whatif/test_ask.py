"""`what_if` computes exact bytes for real segments in every format and codec. It states losses and omissions."""

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kfbench import Records, read_log
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig, KfbenchError
from kfbench.formats import FORMATS
from kfbench.plugins import PluginClash
from kfbench.sources import Columns, find
from kfbench.sweep.spark import executors
from kfbench.whatif import tally
from kfbench.whatif.ask import what_if
from kfbench.whatif.tables import source_table
from tests.common import MESSAGES
from tests.recorded import FOLDER, NAMES, facts

PAYLOAD = ("key", "value", "header_key", "header_value")


def batches_of(name: str, wanted: Sequence[bool]) -> bytes:
    """Return the selected batches of a recorded segment, unchanged. wanted: one boolean per batch."""
    data, positions = (FOLDER / name).read_bytes(), facts(name).positions
    return b"".join(data[a:b] for (a, b), take in zip(pairwise(positions), wanted, strict=True) if take)


def written(folder: Path, data: bytes | bytearray, name: str = "00000000000000000000.log") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# Peak memory of this process from /proc. rusage would include the parent process.
PEAKS = """\
import sys
from pathlib import Path
from kfbench.whatif.ask import what_if

for path in sys.argv[1:]:
    records = what_if(path).records
    lines = Path("/proc/self/status").read_text().splitlines()
    print(records, next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")))
"""
ONE_MAGIC = [name for name in NAMES if len(set(facts(name).batches["magic"])) == 1]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", ONE_MAGIC)
def test_plain_bytes_equal_kafkas(name: str) -> None:
    batches = facts(name).batches
    fmt = f"v{batches['magic'][0]}"
    found = what_if(FOLDER / name, [fmt], ["none"], batchings=[])
    assert found.now_bytes == (FOLDER / name).stat().st_size
    if set(batches["codec"]) == {"none"}:
        assert found.size(fmt, "none") == found.now_bytes
    else:
        assert found.size(fmt, "none") > found.now_bytes  # type: ignore[operator]


@pytest.mark.parametrize("name", ["activity-snappy.log", "edges.log", "telemetry.log", "append-time-zstd.log"])
def test_every_size_is_that_of_the_bytes(name: str) -> None:
    found, log = what_if(FOLDER / name, "all", batchings=[]), read_log(FOLDER / name)
    legal = {(fmt.name, codec) for fmt in FORMATS.values() for codec in fmt.capabilities.codecs}
    assert {(arm.format, arm.codec) for arm in found.arms} == legal
    for arm in found.arms:
        data = FORMATS[arm.format].encode(
            log.source_records, log.bounds, arm.codec, arm.level, log.batch_fields, lossy=True
        )
        assert arm.size_bytes == len(data.data)
        assert arm.codec_version == CODECS[arm.codec].version


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_the_fields_add_up(name: str) -> None:
    found = what_if(FOLDER / name, "all", codecs=["none"], batchings=[])
    for fmt, parts in found.breakdown.items():
        assert sum(parts.values()) == found.size(fmt, "none")
    for fmt in ("v2", "v3"):
        assert sum(found.breakdown[fmt].get(field, 0) for field in PAYLOAD) == found.payload_bytes


def test_control_batches_stay_plain_under_a_codec(tmp_path: Path) -> None:
    control = facts("transactions.log").batches["is_control"]
    without = what_if(written(tmp_path, batches_of("transactions.log", [not each for each in control])), "all")
    whole = what_if(FOLDER / "transactions.log", "all")
    marker_bytes = sum(
        size for size, each in zip(facts("transactions.log").batches["size_bytes"], control, strict=True) if each
    )
    for codec in CODECS:
        assert whole.size("v2", codec) == without.size("v2", codec) + marker_bytes
        if codec != "zstd":  # v0 and v1 cannot store control batches
            assert whole.size("v1", codec) == without.size("v1", codec)


def test_illegal_combinations_are_listed() -> None:
    found = what_if(FOLDER / "activity-gzip.log", ["v0", "v1", "v2"], ["none", "zstd"])
    assert found.to_dict()["illegal"] == [{"format": name, "codec": "zstd"} for name in ("v0", "v1")]
    assert found.size("v1", "none") and found.size("v2", "zstd")
    legal = what_if(FOLDER / "activity-gzip.log", ["v0", "v2"], ["none"])
    assert legal.to_dict()["illegal"] == []


def test_losses_are_counted() -> None:
    headers = sum(map(len, facts("service-headers.log").records["headers"]))
    found = what_if(FOLDER / "service-headers.log", "all")
    assert found.losses["v0"]["timestamps"] == 120
    assert found.losses["v0"]["headers"] == found.losses["v1"]["headers"] == headers
    assert found.losses["v2"] == found.losses["v3"] == {}
    transactions = facts("transactions.log").batches
    lost = what_if(FOLDER / "transactions.log", "all").losses["v1"]
    assert lost["is_control"] == sum(transactions["is_control"])
    assert lost["is_transactional"] == sum(transactions["is_transactional"])
    changelog = facts("changelog.log").batches
    lost = what_if(FOLDER / "changelog.log", "all").losses["v1"]
    assert lost["delete_horizon_ms"] == sum(horizon >= 0 for horizon in changelog["delete_horizon_ms"])
    assert lost["empty batches"] == changelog["count"].count(0)


def test_a_large_segment_is_read_in_shares_and_shown_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("telemetry.log", "transactions.log", "service-headers.log")
    data = bytearray(b"".join((FOLDER / name).read_bytes() for name in names))
    data[facts("telemetry.log").positions[200] + 70] ^= 8
    path = written(tmp_path, data[:-11])
    whole = what_if(path, batchings=[])
    monkeypatch.setattr("kfbench.sources.part.SHARE_BYTES", 5_000)
    assert len(find([path]).parts) > 10
    found = what_if(path, batchings=[])
    assert (found.sources, found.arms, found.breakdown) == (whole.sources, whole.arms, whole.breakdown)
    assert (found.losses, found.sent_records, found.rate) == (whole.losses, whole.sent_records, whole.rate)
    assert source_table(found) == source_table(whole)


def test_a_damaged_batch_is_left_out_and_stated(tmp_path: Path) -> None:
    name, damaged = "activity-lz4.log", 7
    positions = facts(name).positions
    data = bytearray((FOLDER / name).read_bytes())
    data[positions[damaged] + 80] ^= 16
    path = written(tmp_path, data[:-20])
    last = len(positions) - 2
    sound = what_if(
        written(tmp_path, batches_of(name, [i not in (damaged, last) for i in range(last + 1)]), "sound.log")
    )
    found = what_if(path)
    assert found.arms == sound.arms and found.breakdown == sound.breakdown and found.losses == sound.losses
    assert found.now_bytes == sound.now_bytes
    [source] = found.sources
    size = positions[damaged + 1] - positions[damaged]
    assert [(each.position, each.size_bytes, each.field) for each in source.damage] == [
        (positions[damaged], size, "crc")
    ]
    assert source.trailing_bytes == positions[-1] - positions[last] - 20
    assert source.sound_bytes + size + source.trailing_bytes == source.size_bytes == path.stat().st_size


def test_mixed_magics_and_plain_old_messages(tmp_path: Path) -> None:
    records = Records.from_lists([b"a" * 50] * 8, keys=[b"k"] * 8, timestamps_ms=range(8))
    old, wrapped = FORMATS["v1"].encode(records, 8), FORMATS["v1"].encode(records, 8, "gzip")
    new = FORMATS["v2"].encode(records, 8)
    found = what_if(written(tmp_path, bytes(old) + bytes(wrapped) + bytes(new)))
    assert found.sources[0].kinds == {"v1 none": 8, "v1 gzip": 1, "v2 none": 1}
    assert found.records == 24
    alone = FORMATS["v2"].size(records, 1).sum()
    assert found.size("v2", "none") == alone + 2 * len(new.data)


def test_savings() -> None:
    found = json.loads(json.dumps(what_if(FOLDER / "telemetry.log", ["v1", "v2", "v3"]).to_dict()))
    sizes = {(arm["format"], arm["codec"]): arm for arm in found["sizes"]}
    v2, v3 = sizes["v2", "none"], sizes["v3", "none"]
    assert v2["saving"] == v2["saving_against_v2"] == 0
    # Per batch of one record, v3 saves: lastOffsetDelta 3 of 4 bytes, baseTimestamp 2 of 8, maxTimestampDelta 7 of 8,
    # and the attributes byte of the record.
    assert v2["size_bytes"] - v3["size_bytes"] == 300 * (3 + 2 + 7 + 1)
    assert v3["saving"] == v3["saving_against_v2"] == pytest.approx(3900 / v2["size_bytes"])
    assert sizes["v1", "gzip"]["saving_against_v2"] == pytest.approx(
        1 - sizes["v1", "gzip"]["size_bytes"] / sizes["v2", "gzip"]["size_bytes"]
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"# not a log\n" * 9, "no whole batch in 108 bytes: is this a log segment?"),
        (bytes(40), "the file is empty"),  # a broker may fill a new segment with zeros
        (None, "no such file or folder"),
        ("folder", "no segment"),
    ],
)
def test_a_source_without_a_readable_batch_is_refused_in_one_line(
    tmp_path: Path, content: bytes | str | None, message: str
) -> None:
    path = tmp_path / "0.log"
    if content == "folder":
        path.mkdir()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    with pytest.raises(KfbenchError) as raised:
        what_if(path)
    assert str(raised.value).startswith(f"{path}: {message}") and "\n" not in str(raised.value)


def test_a_path_that_is_absent_is_skipped_beside_others(tmp_path: Path) -> None:
    (skipped,) = what_if([FOLDER / "edges.log", tmp_path / "absent.log"], ["v2"], ["none"]).skipped
    assert (skipped.path, skipped.is_data) == (str(tmp_path / "absent.log"), True)


@pytest.mark.parametrize(
    ("paths", "options", "error", "message"),
    [
        ([], {}, KfbenchError, "is wanted"),
        (FOLDER / "telemetry.log", {"formats": ["v9"]}, InvalidConfig, "no format 'v9'"),
        (FOLDER / "telemetry.log", {"codecs": ["brotli"]}, InvalidConfig, "no codec 'brotli'"),
        (FOLDER / "telemetry.log", {"formats": ["v1"], "codecs": ["zstd"]}, IllegalCombination, "v1 has no zstd"),
        (FOLDER / "telemetry.log", {"sample_bytes": 0}, InvalidConfig, "sample_bytes: 0 is below 1"),
        (FOLDER / "telemetry.log", {"details": ["other"]}, InvalidConfig, "no further question 'other'"),
        (FOLDER / "telemetry.log", {"rate_mb_s": 0}, InvalidConfig, "rate_mb_s: 0 is not above 0"),
        (FOLDER / "telemetry.log", {"timestamp_unit": "minutes"}, InvalidConfig, "timestamp_unit"),
        (FOLDER / "telemetry.log", {"columns": Columns(value="v")}, InvalidConfig, "column `v`: no source is a table"),
    ],
)
def test_wrong_arguments_are_refused_by_name(paths: Any, options: Any, error: type[KfbenchError], message: str) -> None:
    with pytest.raises(error, match=message):
        what_if(paths, **options)


def test_a_further_table_with_the_name_of_a_key_of_json_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kfbench.whatif.answer.LAST_KEYS", ("dictionary",))
    with pytest.raises(PluginClash, match=r"^dictionary: kfbench registers it, but kfbench's --json has this key$"):
        what_if(tmp_path / "absent.log")


def test_formats_that_lack_a_codec_are_left_out_of_all() -> None:
    with_zstd = {name for name, fmt in FORMATS.items() if "zstd" in fmt.capabilities.codecs}
    found = {arm.format for arm in what_if(FOLDER / "telemetry.log", "all", codecs=["zstd"]).arms}
    assert found == with_zstd == FORMATS.keys() - set(MESSAGES)


def test_segments_of_a_folder_are_one_topic(tmp_path: Path) -> None:
    data = (FOLDER / "telemetry.log").read_bytes()
    for i in (0, 300):
        written(tmp_path, data, f"{i:020}.log")
    options: dict[str, Any] = {"formats": ["v2"], "codecs": ["none"], "batchings": []}
    together = what_if(tmp_path, **options)
    assert together.topics == (str(tmp_path),)
    alone = what_if(tmp_path / f"{0:020}.log", **options)
    assert together.rate and alone.rate
    assert together.rate.bytes_a_day == pytest.approx(2 * alone.rate.bytes_a_day, rel=0.01)


def test_spark_is_for_a_master_and_threads_for_everything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("Spark was asked")

    for i in range(5):
        written(tmp_path, (FOLDER / "telemetry.log").read_bytes(), f"{i:020}.log")
    asked: dict[str, Any] = {"formats": ["v2"], "codecs": ["none", "zstd"], "batchings": []}
    monkeypatch.setattr(executors, "map_tasks", refused)
    found = what_if(tmp_path, **asked)
    monkeypatch.setattr(tally, "MOST_THREADS", 1)
    assert what_if(tmp_path, **asked) == found
    with pytest.raises(AssertionError, match="Spark was asked"):
        what_if(tmp_path, **asked, master="local[1]")


@pytest.mark.slow
@pytest.mark.thorough
def test_memory_is_bounded_for_what_is_asked_by_default(tmp_path: Path) -> None:
    value_bytes, a_batch = 1_000, 16
    values = [bytes(value_bytes)] * a_batch
    batch = bytes(FORMATS["v2"].encode(Records.from_lists(values, timestamps_ms=range(a_batch)), a_batch))
    times = (12_000, 36_000)  # 192 and 576 MB: many shares of a file, so that all threads work in both
    logs = [written(tmp_path, batch * each, f"{each:020}.log") for each in times]
    command = [sys.executable, "-c", PEAKS, *map(str, logs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    (few, peak_bytes), (many, later_peak_bytes) = (map(int, line.split()) for line in done.stdout.splitlines())
    assert (few, many) == tuple(a_batch * each for each in times)
    assert later_peak_bytes < 768 << 20  # a worker may use 1 GiB
    assert later_peak_bytes - peak_bytes < (many - few) * value_bytes // 2
