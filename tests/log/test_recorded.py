"""Segments of real brokers: kfbench reads what Kafka's readers recorded."""

import hashlib

import numpy as np
import pytest

from kfbench import read_log, write_log
from kfbench.codecs import CODECS, LEGACY_LZ4
from kfbench.formats import FORMATS
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


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_every_batch(name: str) -> None:
    log = read_log(FOLDER / name)
    assert len(log) == INDEX[name]["batches"]
    for column, wanted in facts(name).batches.items():
        assert log.batches[column].tolist() == wanted, column
    # Kafka's writer leaves no over-long varints, unused bits or attributes of records.
    assert log.batches["canonical"].all()
    assert log.trailing_bytes == 0 and not log.errors


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
