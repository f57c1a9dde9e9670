"""Segments of real brokers: kfbench reads what Kafka's readers recorded. Damage costs only the damaged batch."""

import hashlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kfbench import read_log, write_log
from kfbench.codecs import CODECS, LEGACY_LZ4
from kfbench.errors import CorruptLog
from kfbench.formats import FORMATS
from tests.common import messages_of
from tests.compressed import MOST_OFF, Libraries, is_exact, payloads
from tests.recorded import FOLDER, INDEX, NAMES, content_hash, facts

PLAIN = [name for name in NAMES if set(facts(name).batches["codec"]) == {"none"}]
RECORDED = Libraries(zstd=(1, 5, 6), lz4_java=(1, 8, 0))  # of the clients and brokers that compressed these segments
LOSSLESS = ["v2", "v3", "v3-attributes-only", "v3-header-only"]


@pytest.mark.parametrize("name", NAMES)
def test_the_files_have_their_recorded_hashes(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    assert len(data) == INDEX[name]["size_bytes"] == facts(name).positions[-1]
    assert hashlib.sha256(data).hexdigest() == INDEX[name]["sha256"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_every_batch(name: str) -> None:
    log = read_log(FOLDER / name)
    assert len(log) == INDEX[name]["batches"]
    for column, wanted in facts(name).batches.items():
        assert log.batches[column].tolist() == wanted, column
    # Kafka's writer leaves no over-long varints, unused bits or attributes of records.
    assert log.batches["canonical"].all()
    assert log.trailing_bytes == 0 and not log.errors


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_every_record(name: str) -> None:
    wanted, records = facts(name).records, read_log(FOLDER / name).records
    n = len(records)
    assert n == INDEX[name]["records"]
    assert records.offsets.tolist() == wanted["offset"]
    assert records.timestamps_ms.tolist() == wanted["timestamp_ms"]
    assert records.shapes.key_lengths.tolist() == wanted["key_bytes"]
    assert records.shapes.value_lengths.tolist() == wanted["value_bytes"]
    assert [content_hash(records.key(i)) for i in range(n)] == wanted["key_sha256_8"]
    assert [content_hash(records.value(i)) for i in range(n)] == wanted["value_sha256_8"]
    headers = [[[key, content_hash(value)] for key, value in records.headers(i)] for i in range(n)]
    assert headers == wanted["headers"]


def test_each_codec_holds_the_same_records() -> None:
    plain = read_log(FOLDER / "activity-none.log")
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        log = read_log(FOLDER / f"activity-{codec}.log")
        assert set(log.batches["codec"]) == {codec}
        assert log.records == plain.records
        assert log.bounds.tolist() == plain.bounds.tolist()
        assert log.batches["records_size_bytes"].tolist() == plain.batches["records_size_bytes"].tolist()


@pytest.mark.parametrize("codec", MOST_OFF)
def test_compressing_again_gives_kafkas_bytes(codec: str) -> None:
    """Compress the payloads again.

    The bytes equal Kafka's if the library does. Otherwise the total size is nearly equal.
    """
    kafkas, ours = [], []
    for name in NAMES:
        for magic, found, payload in payloads((FOLDER / name).read_bytes()):
            if found == codec:
                library = LEGACY_LZ4 if (codec, magic) == ("lz4", 0) else CODECS[codec]
                kafkas.append(payload)
                ours.append(library.compress(library.decompress(payload)))
    assert len(kafkas) > 30
    if is_exact(codec, RECORDED):
        assert ours == kafkas
    assert abs(sum(map(len, ours)) / sum(map(len, kafkas)) - 1) <= MOST_OFF[codec]


@pytest.mark.parametrize("magic", [0, 1])
def test_each_codec_of_an_older_format_holds_the_same_records(magic: int) -> None:
    plain, newer = read_log(FOLDER / f"activity-v{magic}-none.log"), read_log(FOLDER / "activity-none.log")
    sent = newer.records.take(np.arange(len(plain.records)))
    assert messages_of(plain.records) == [
        message if magic else replace(message, timestamp_ms=-1) for message in messages_of(sent)
    ]
    for codec in ("gzip", "snappy", "lz4"):
        log = read_log(FOLDER / f"activity-v{magic}-{codec}.log")
        assert set(log.batches["codec"]) == {codec} and set(log.batches["magic"]) == {magic}
        assert log.records == plain.records
        assert log.bounds.tolist()[:-1] == newer.bounds.tolist()[: len(log)]


@pytest.mark.parametrize("name", ["changelog-v0.log", "changelog-v1.log", "changelog-upgraded.log"])
def test_the_cleaner_leaves_holes_between_messages_and_inside_sets(name: str) -> None:
    """After compaction, inner offsets of v1 count from the base that the cleaner moved (KIP-31).

    Those of v0 are absolute.
    """
    log = read_log(FOLDER / name)
    older = log.batches[log.batches["magic"] < 2]
    assert (np.diff(log.records.offsets) > 1).any() and (np.diff(log.records.offsets) > 0).all()
    holed = older[older["last_offset"] - older["base_offset"] + 1 > older["count"]]
    assert set(holed["codec"]) == {"gzip", "snappy", "lz4"}
    assert not log.batches["mixed_magic"].any()
    assert (log.records.shapes.value_lengths == -1).any()


def test_a_marker_that_outlives_its_records_has_a_delete_horizon() -> None:
    """KIP-534: once a marker has no records, its batch has a delete horizon as base timestamp.

    The marker's time is a delta from it.
    """
    log = read_log(FOLDER / "changelog-transactions.log")
    remaining = log.batches[log.batches["is_control"] & (log.batches["delete_horizon_ms"] >= 0)]
    assert (remaining["base_timestamp_ms"] == remaining["delete_horizon_ms"]).all()
    assert (remaining["max_timestamp_ms"] < remaining["delete_horizon_ms"]).all()
    keys = {log.records.key(log.bounds[batch]) for batch in remaining.index}
    assert keys == {b"\0\0\0\0", b"\0\0\0\1"}  # version, type: abort and commit


@pytest.mark.compiled_only
def test_an_upgraded_topic_changes_its_format_midway() -> None:
    for name in ("upgraded.log", "changelog-upgraded.log", "consumer-offsets-upgraded.log"):
        magics = read_log(FOLDER / name).batches["magic"].tolist()
        assert magics == sorted(magics) and set(magics) == {0, 1, 2}


def test_append_time_of_a_set_that_the_broker_did_not_open() -> None:
    """A broker that sets append time does not rewrite a compressed set.

    The wrapper has the append time, its messages have create times.
    """
    untouched, log = (read_log(FOLDER / f"older-producer-{kind}v1.log") for kind in ("", "append-time-"))
    in_set = np.repeat(log.batches["codec"] != "none", np.diff(log.bounds))
    assert (log.records.timestamps_ms > untouched.records.timestamps_ms).all()
    assert (log.create_timestamps_ms[in_set] == untouched.create_timestamps_ms[in_set]).all()
    # A broker that converts a set does write the append time into each message.
    converted = read_log(FOLDER / "append-time-v1.log")
    assert set(converted.batches["codec"]) == {"none", "gzip", "snappy", "lz4"}
    assert (converted.create_timestamps_ms == converted.records.timestamps_ms).all()


@pytest.mark.parametrize("name", PLAIN)
def test_writing_again_gives_the_same_bytes(name: str) -> None:
    assert bytes(write_log(read_log(FOLDER / name))) == (FOLDER / name).read_bytes()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", sorted(set(NAMES) - set(PLAIN)))
def test_writing_compressed_batches_again_keeps_records_and_fields(name: str) -> None:
    log = read_log(FOLDER / name)
    again = read_log(write_log(log).data)
    assert again.records == log.records
    assert again.create_timestamps_ms.tolist() == log.create_timestamps_ms.tolist()
    depends_on_the_library = ["position", "size_bytes", "crc"]
    assert again.batches.drop(columns=depends_on_the_library).equals(log.batches.drop(columns=depends_on_the_library))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("format_name", LOSSLESS)
def test_lossless_formats_keep_records_and_fields(format_name: str, codec: str, name: str) -> None:
    log, fmt = read_log(FOLDER / name), FORMATS[format_name]
    encoded = fmt.encode(log.source_records, log.bounds, codec, batch_fields=log.batch_fields)
    back = fmt.decode(encoded)
    assert back.records == log.records
    assert back.create_timestamps_ms.tolist() == log.create_timestamps_ms.tolist()
    for column in (
        "base_offset",
        "last_offset",
        "producer_id",
        "base_sequence",
        "is_control",
        "delete_horizon_ms",
    ):
        assert back.batches[column].tolist() == log.batches[column].tolist()
    if codec == "none":
        sizes = fmt.size(log.source_records, log.bounds, log.batch_fields)
        assert sizes.tolist() == back.batches["size_bytes"].tolist()


@pytest.mark.compiled_only
@pytest.mark.parametrize(
    "name", ["transactions.log", "activity-zstd.log", "changelog.log", "upgraded.log", "changelog-v1.log"]
)
def test_a_flipped_bit_costs_its_batch_and_no_other(name: str, tmp_path: Path) -> None:
    sound, positions = (FOLDER / name).read_bytes(), facts(name).positions
    whole = read_log(sound)
    path = tmp_path / name
    for batch, (start, end) in enumerate(pairwise(positions)):
        # the stored checksum, and the first, a middle and the last byte that it covers
        crc, covered = (17, 21) if whole.batch_rows["magic"][batch] == 2 else (12, 17)
        for at in (start + crc, start + covered, (start + covered + end) // 2, end - 1):
            damaged = bytearray(sound)
            damaged[at] ^= 1 << at % 8
            path.write_bytes(damaged)
            with pytest.raises(CorruptLog, match=f"byte {start}: crc") as raised:
                read_log(path)
            assert raised.value.position == start
            assert str(path) in str(raised.value)
            log = read_log(path, on_error="skip")
            assert [error.position for error in log.errors] == [start]
            assert log.batches["position"].tolist() == [each for each in positions[:-1] if each != start]
            first, last = whole.bounds[batch], whole.bounds[batch + 1]
            left = [*range(first), *range(last, len(whole.records))]
            assert log.records.offsets.tolist() == whole.records.offsets[left].tolist()
            assert [log.records.value(i) for i in (0, -1)] == [whole.records.value(left[i]) for i in (0, -1)]


@pytest.mark.compiled_only
@pytest.mark.parametrize("name", ["transactions.log", "edges.log", "upgraded.log"])
def test_a_cut_tail_is_no_error(name: str) -> None:
    data, positions = (FOLDER / name).read_bytes(), facts(name).positions
    for batch, (start, end) in enumerate(pairwise(positions)):
        for cut in (start, start + 1, start + 11, start + 12, min(start + 60, end - 1), end - 1):
            log = read_log(data[:cut])
            assert len(log) == batch
            assert log.trailing_bytes == cut - start
            assert not log.errors
