"""Read whole logs and write them again: mixed magics, damaged batches, incomplete ends."""

from pathlib import Path
from typing import Any

import crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, EncodedLog, Limits, Records, read_log, write_log
from kfbench.errors import CorruptLog, KfbenchError
from kfbench.formats import BY_MAGIC
from kfbench.formats.base.batched import BatchedFormat
from kfbench.layouts import MAGIC_AT, SHARED_HEADERS, UNSET, V2_HEADER, position
from tests import strategies
from tests.common import LEGACY, REFERENCES, batch_fields_of, bounds_of, check_decoded, messages_of, records_of
from tests.formats.fuzz import sealed
from tests.reference import log as reference_log
from tests.reference import v23
from tests.reference.model import Message
from tests.strategies import NOW_MS

NAMES = sorted((name for name in REFERENCES if FORMATS[name].is_told_by_magic), key=lambda name: FORMATS[name].magic)
SAMPLE = [Message(offset=i, timestamp_ms=NOW_MS + i, key=b"k%d" % i, value=b"value-%d" % i) for i in range(4)]
AGELESS = [Message(offset=i, key=b"k%d" % i, value=b"value-%d" % i) for i in range(4)]


def written(name: str, codec: str = "none") -> bytes:
    """Return four small records in batches of two."""
    return bytes(FORMATS[name].encode(records_of(AGELESS if name == "v0" else SAMPLE), 2, codec))


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Draw a log of several segments, each of any format and codec."""
    data = b""
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=5)):
        case = draw(strategies.cases_of(name, max_batches=2))
        codec = draw(st.sampled_from(FORMATS[name].capabilities.codecs))
        log = FORMATS[name].encode(
            records_of(case.messages), bounds_of(case), codec, batch_fields=batch_fields_of(case)
        )
        data += bytes(log)
    return data


@given(logs())
def test_mixed_magics_read_as_the_reference_reads_them(data: bytes) -> None:
    log = read_log(data)
    batches, trailing = reference_log.decode(data)
    assert log.trailing_bytes == trailing == 0
    check_decoded(log, batches)


@given(logs())
def test_what_was_read_is_written_again(data: bytes) -> None:
    """Write again what was read. Plain batches keep their bytes, compressed ones their decompressed bytes."""
    log = read_log(data)
    again = write_log(log)
    if (log.batches["codec"] == "none").all():
        assert bytes(again) == data
    before, after = (reference_log.decode(each)[0] for each in (data, bytes(again)))
    for old, new in zip(before, after, strict=True):
        # A v1 set whose first records were compacted away does not show its base offset.
        relative_to_first = old.magic != 1 or old.codec == "none" or old.raw.startswith(bytes(8))
        assert new.raw == old.raw or not relative_to_first
    assert [batch.attributes for batch in after] == [batch.attributes for batch in before]
    assert [batch.messages for batch in after] == [batch.messages for batch in before]
    assert len(again) == len(log)
    starts = again.positions[:-1].tolist()
    assert starts == [batch.position for batch in after]
    assert again.positions[-1] == len(again.data)


@given(logs(), st.data())
def test_a_cut_tail_is_counted(data: bytes, draw: st.DataObject) -> None:
    cut = draw.draw(st.integers(0, len(data)))
    batches, trailing = reference_log.decode(data[:cut])
    log = read_log(data[:cut], on_error="skip")
    # The cut is before the magic, so only the small offset shows that this is a batch.
    assert bool(log.errors) == (0 < cut <= MAGIC_AT and data[0] != 0)
    assert log.trailing_bytes == trailing
    check_decoded(log, batches)
    assert bytes(write_log(log))[:8] == data[: min(8, cut - trailing)]


def test_one_of_each_in_a_row() -> None:
    data = b"".join(written(name) for name in NAMES)
    log = read_log(data)
    expected = [message for name in NAMES for message in (AGELESS if name == "v0" else SAMPLE)]
    assert messages_of(log.records) == expected
    magics = [FORMATS[name].magic for name in NAMES for _ in range(4 if name in LEGACY else 2)]
    assert log.batches["magic"].tolist() == magics
    assert log.batches["position"].is_monotonic_increasing
    assert bytes(write_log(log)) == data


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(written("v2") + written("v1"))
    log, of_text = read_log(path), read_log(str(path))
    path.write_bytes(b"")
    assert len(read_log(path)) == 0
    path.unlink()  # records outlive their file
    encoded = EncodedLog(data=np.frombuffer(written("v2") * 2, np.uint8), positions=np.zeros(1, np.int64))
    for read in (log, of_text, read_log(encoded)):
        assert messages_of(read.records) == SAMPLE * 2


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, reason in [(tmp_path / "none.log", "No such file"), (tmp_path, "directory"), ("a\0b", "null")]:
        with pytest.raises(KfbenchError, match=reason) as refusal:
            read_log(path)
        assert str(path) in str(refusal.value)
        assert "\n" not in str(refusal.value)


def test_nothing() -> None:
    log = read_log(b"")
    assert (len(log), len(log.records), log.trailing_bytes, list(log.errors)) == (0, 0, 0, [])
    assert len(write_log(log).data) == 0
    for short in (b"\0", bytes(11), bytes(12)[:11]):
        assert read_log(short).trailing_bytes == len(short)


@pytest.mark.parametrize(
    "junk", [b"junk", b"not a log", b"name,age\nalice,1\nbob,2\n" * 9, b"\x1f\x8b" * 40, b"\0" * 10 + b"\x09" * 40]
)
def test_bytes_that_are_no_log(junk: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(junk)
    with pytest.raises(CorruptLog, match="is this a log segment") as refusal:
        read_log(path)
    assert str(refusal.value).startswith(f"{path}: ") and f"{len(junk)} bytes" in str(refusal.value)
    (error,) = read_log(path, on_error="skip").errors
    assert str(error) == str(refusal.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_first_batch_that_is_cut_short_is_a_log(name: str) -> None:
    data = written(name)
    end = read_log(data).batches["size_bytes"][0]
    for cut in range(end):
        log = read_log(data[:cut])
        assert (len(log), log.trailing_bytes) == (0, cut)


# Damage


def test_the_file_the_position_and_the_promise_are_named(tmp_path: Path) -> None:
    path = tmp_path / "damaged.log"
    data = bytearray(written("v2"))
    second = read_log(bytes(data)).batches["position"].tolist()[1]
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptLog) as refusal:
        read_log(path)
    assert str(refusal.value) == f"{path}: batch at byte {second}: crc: the stored checksum does not match the bytes"
    assert (refusal.value.position, refusal.value.field, refusal.value.source) == (second, "crc", str(path))
    sound_log = read_log(path, on_error="skip")
    assert [str(error) for error in sound_log.errors] == [str(refusal.value)]
    assert messages_of(sound_log.records) == SAMPLE[:2]


def test_sound_batches_around_damage_in_every_format() -> None:
    parts = [written(name, codec) for name in NAMES for codec in FORMATS[name].capabilities.codecs]
    sound = read_log(b"".join(parts))
    data, broken, start = bytearray(), [], 0
    for part in parts:
        data += part
        last = read_log(part).batches["position"].tolist()[-1]
        data[-1] ^= 0x10
        broken.append(start + last)
        start += len(part)
    with pytest.raises(CorruptLog) as first:
        read_log(data)
    assert first.value.position == broken[0]
    sound_log = read_log(data, on_error="skip")
    assert [error.position for error in sound_log.errors] == broken
    assert {error.field for error in sound_log.errors} == {"crc"}
    remaining = [row for row in sound.batches.to_dict("records") if row["position"] not in broken]
    assert sound_log.batches.to_dict("records") == remaining
    assert len(sound_log.records) == sum(row["count"] for row in remaining)
    again = read_log(bytes(write_log(sound_log)))
    assert messages_of(again.records) == messages_of(sound_log.records)


@pytest.mark.parametrize("magic", [magic for magic in (4, 6, 127, 128, 255) if magic not in BY_MAGIC])
def test_an_unknown_magic(magic: int) -> None:
    data = bytearray(written("v2"))
    data[16] = magic
    with pytest.raises(CorruptLog, match="magic") as refusal:
        read_log(data)
    assert refusal.value.position == 0
    sound_log = read_log(data, on_error="skip")
    assert messages_of(sound_log.records) == SAMPLE[2:]
    assert [error.position for error in sound_log.errors] == [0]


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 13])
def test_a_length_that_ends_the_walk(length: int) -> None:
    sound = written("v2")
    data = sound + bytes(8) + length.to_bytes(4, "big", signed=True) + sound[12:]
    with pytest.raises(CorruptLog, match="length") as refusal:
        read_log(data)
    assert refusal.value.position == len(sound)
    sound_log = read_log(data, on_error="skip")
    assert messages_of(sound_log.records) == SAMPLE
    assert [error.position for error in sound_log.errors] == [len(sound)]
    assert sound_log.trailing_bytes == 0


def test_zeros_after_the_last_batch() -> None:
    """A segment may be allocated in advance and end with zeros. They are reported as an error of the length field."""
    sound_log = read_log(written("v2") + bytes(4096), on_error="skip")
    assert messages_of(sound_log.records) == SAMPLE
    assert [error.field for error in sound_log.errors] == ["length"]


@pytest.mark.parametrize("on_error", ["", "ignore", None, True])
def test_on_error_is_one_of_two(on_error: Any) -> None:
    for data in (b"", written("v2")):
        with pytest.raises(KfbenchError, match="on_error"):
            read_log(data, on_error=on_error)


@given(st.binary(max_size=400), st.sampled_from(NAMES), st.data())
def test_noise_is_read_or_refused(noise: bytes, name: str, draw: st.DataObject) -> None:
    real = written(name, draw.draw(st.sampled_from(FORMATS[name].capabilities.codecs)))
    for data in (noise, real + noise, real[: draw.draw(st.integers(0, len(real)))] + noise):
        log = read_log(data, on_error="skip")
        assert len(log.batches) == len(log)
        assert len(messages_of(log.records)) == len(log.records)
        assert all(0 <= error.position < len(data) for error in log.errors)


def test_header_keys_that_are_not_utf8_survive() -> None:
    """Header keys that are not UTF-8 are shown with the replacement character. Their bytes are kept."""
    message = Message(offset=0, value=b"v", headers=(("abc", b"1"),))
    data = sealed(v23.encode("v2", [message]).replace(b"abc", b"\xffbc"))
    log = read_log(data)
    assert log.records.headers(0) == [("\ufffdbc", b"1")]
    assert bytes(write_log(log)) == data


def test_a_log_of_bombs_gives_the_sound_batches_and_stays_within_its_allowance() -> None:
    sound = bytes(FORMATS["v2"].encode(Records.from_lists([b"here"])))
    bomb = bytes(FORMATS["v2"].encode(Records.from_lists([bytes(1 << 20)]), codec="zstd"))
    log = read_log(sound + bomb * 40 + sound, on_error="skip", limits=Limits(batch_bytes=2 << 20))
    assert [log.records.value(0), log.records.value(len(log.records) - 1)] == [b"here", b"here"]
    assert 0 < len(log.errors) < 40
    assert all(error.field == "records" and "limit" in error.promise for error in log.errors)


def test_runs_of_alternating_formats_keep_each_buffer_once() -> None:
    one = Records.from_lists([b"x"])
    pair = bytes(FORMATS["v0"].encode(one)) + bytes(FORMATS["v1"].encode(one))
    data = pair * 200 + bytes(FORMATS["v2"].encode(one, codec="gzip"))
    log = read_log(data)
    assert len(log.records) == 401
    assert {log.records.value(i) for i in range(401)} == {b"x"}
    assert sum(map(len, log.records.buffers)) < 2 * len(data)


@pytest.mark.parametrize("field", ["base_offset", "base_timestamp_ms", "max_timestamp_ms"])
def test_a_header_value_that_means_unset_is_not_canonical(field: str) -> None:
    data = bytearray(bytes(FORMATS["v2"].encode(Records.from_lists([b"a"]))))
    at = position(V2_HEADER, field)
    data[at : at + 8] = int(UNSET).to_bytes(8, "big", signed=True)
    data[17:21] = crc32c.crc32c(bytes(data[21:])).to_bytes(4, "big")
    log = read_log(bytes(data))
    assert log.batches["canonical"].tolist() == [False]
    read_log(write_log(log).data)


@pytest.mark.parametrize("sizes", [[], [1], [5000, *[1] * 500], [1] * 500, [*[1] * 500, 5000], [300, 1] * 50])
def test_entries_of_unequal_sizes_are_found(sizes: list[int]) -> None:
    """The number of batches is first estimated from the size of the first batch. The arrays grow if there are more."""
    parts = [bytes(FORMATS["v1"].encode(Records.from_lists([bytes(size)]))) for size in sizes]
    log = read_log(b"".join(parts) + b"\0" * 5)
    assert [len(log.records.value(i) or b"") for i in range(len(log.records))] == sizes
    assert log.batches["position"].tolist() == [sum(map(len, parts[:i])) for i in range(len(parts))]
    assert log.trailing_bytes == 5


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if not fmt.is_told_by_magic])
def test_formats_without_own_magic_keep_their_bytes(name: str) -> None:
    fmt = FORMATS[name]
    records = Records.from_lists([b"a", b"b"], keys=[None, b"k"], timestamps_ms=[1_700_000_000_000] * 2)
    log = fmt.encode(records, 1)
    assert bytes(write_log(fmt.decode(log))) == bytes(log)


@pytest.mark.parametrize("features", [*range(0, 1 << 12, 1 << 7), SHARED_HEADERS | 1 << 11, SHARED_HEADERS | 0xF << 8])
def test_every_combination_of_v3_features_is_written_again(features: int) -> None:
    fmt = BatchedFormat(name="v3", magic=3, summary="", features=features)
    headers: list[list[tuple[str, bytes | None]]] = [[("a", b"1"), ("b", None)], [("a", b"1")]]
    records = Records.from_lists([b"a", None], keys=[b"k", None], timestamps_ms=[5, 9], headers=headers)
    for codec in ("none", "gzip", "snappy"):
        back = read_log(fmt.encode(records, codec=codec).data)
        assert back.records == records
        assert back.batches["canonical"].all()
        if codec == "none":
            assert bytes(write_log(back)) == bytes(fmt.encode(records))
