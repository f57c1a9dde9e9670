"""`decode_metadata` and `read_times` return the same offsets, timestamps and lengths as `decode`, in every format."""

from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, EncodedLog, Limits, Records
from kfbench.batches import DecodedLog, DecodedMetadata
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.formats import Entries
from kfbench.formats.base.format import Format
from kfbench.kernels.wire.frames import LENGTH_AT, MIN_LENGTH, START

RECORDS = Records.from_lists(
    [None if i % 7 == 0 else b"v" * (40 * i) for i in range(20)],
    keys=[None if i % 3 == 0 else b"key %d" % i for i in range(20)],
    timestamps_ms=[1_700_000_000_000 + 250 * i for i in range(20)],
    headers=[[("h", b"x" * i)] * (i % 3) for i in range(20)],
)
BOUNDS = [0, 1, 12, 20]
ARMS = [(name, codec) for name, fmt in FORMATS.items() for codec in fmt.capabilities.codecs]
WITH_CHECKSUM = [(name, codec) for name, codec in ARMS if FORMATS[name].checksum]


def check_metadata(seen: DecodedMetadata, log: DecodedLog) -> None:
    shapes = log.records.shapes
    for ours, whole in (
        (seen.offsets, shapes.offsets),
        (seen.timestamps_ms, shapes.timestamps_ms),
        (seen.key_lengths, shapes.key_lengths),
        (seen.value_lengths, shapes.value_lengths),
        (seen.header_counts, np.diff(shapes.header_bounds)),
        (seen.bounds, log.bounds),
    ):
        assert ours.tolist() == whole.tolist()
        assert ours.flags.c_contiguous
    assert seen.trailing_bytes == log.trailing_bytes
    assert [str(error) for error in seen.errors] == [str(error) for error in log.errors]


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), ARMS)
def test_metadata_as_a_full_reader(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(RECORDS, BOUNDS, codec, lossy=True)
    whole = fmt.decode(log)
    seen = fmt.decode_metadata(log)
    check_metadata(seen, whole)
    assert seen.plain_bytes <= whole.batch_rows["records_size_bytes"].sum()
    cut = log.data[:-3]
    check_metadata(fmt.decode_metadata(cut), fmt.decode(cut))
    headless = fmt.encode(Records.from_lists([b"v"] * 20), 5, codec)
    check_metadata(fmt.decode_metadata(headless), fmt.decode(headless))


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), WITH_CHECKSUM)
def test_a_damaged_batch_between_sound_ones(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(RECORDS, BOUNDS, codec, lossy=True)
    data = log.data.copy()
    data[log.positions[2] - 1] ^= 1
    check_metadata(fmt.decode_metadata(data, on_error="skip"), fmt.decode(data, on_error="skip"))
    with pytest.raises(CorruptLog):
        fmt.decode_metadata(data)


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.capabilities.headers and fmt.checksum])
def test_headers_that_only_a_damaged_batch_has(name: str) -> None:
    fmt = FORMATS[name]
    headers = [[("h", b"x")] if 5 <= i < 10 else [] for i in range(20)]
    records = Records.from_lists([b"value"] * 20, timestamps_ms=range(20), headers=headers)
    log = fmt.encode(records, 5)
    data = log.data.copy()
    data[log.positions[2] - 1] ^= 1
    seen = fmt.decode_metadata(data, on_error="skip")
    check_metadata(seen, fmt.decode(data, on_error="skip"))
    assert seen.header_counts.tolist() == [0] * 15


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), WITH_CHECKSUM)
def test_without_checksums(name: str, codec: str) -> None:
    """Without checksums, a damaged byte goes unseen. Formats that decode the whole batch may still find it."""
    fmt = FORMATS[name]
    records = Records.from_lists([b"value"] * 20, timestamps_ms=range(20))
    log = fmt.encode(records, 10, codec, lossy=True)
    sound = fmt.decode_metadata(log)
    check_metadata(fmt.decode_metadata(log, check_crcs=False), fmt.decode(log))
    data = log.data.copy()
    data[data.tobytes().index(b"value") if codec == "none" else 17] ^= 1
    with pytest.raises(CorruptLog, match="crc"):
        fmt.decode_metadata(data)
    if not fmt.has_metadata_reader:
        with pytest.raises(CorruptLog, match="crc"):
            fmt.decode_metadata(data, check_crcs=False)
    else:
        seen = fmt.decode_metadata(data, check_crcs=False)
        assert seen.offsets.tolist() == sound.offsets.tolist()
        assert seen.value_lengths.tolist() == [5] * 20


# read_times

PARTIAL = [name for name, fmt in FORMATS.items() if type(fmt)._read_times is not Format._read_times]
TIMES_MS = np.random.default_rng(1).integers(0, 1 << 40, 300)
MANY = Records.from_lists(
    [b"v" * (i * 50 if i < 50 else i % 50) for i in range(300)],  # few long ones: coverage runs kernels as plain Python
    timestamps_ms=TIMES_MS,
    offsets=np.cumsum(1 + (np.arange(300) % 7 == 0)),
)


def check_times(fmt: Format, log: EncodedLog) -> None:
    whole = fmt.decode(log)
    seen = fmt.read_times(log, Entries.of(log.data).positions)
    assert seen.timestamps_ms.tolist() == whole.records.timestamps_ms.tolist()
    assert seen.offsets.tolist() == whole.records.offsets.tolist()
    assert seen.bounds.tolist() == whole.bounds.tolist() and len(seen) == len(whole)
    assert seen.timestamps_ms.flags.c_contiguous and seen.offsets.flags.c_contiguous


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), ARMS)
def test_times_as_a_full_reader(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    for records, bounds in ((RECORDS, BOUNDS), (MANY, [0, 1, 2, 9, 10, 60, 300]), (MANY.take([]), [0])):
        check_times(fmt, fmt.encode(records, bounds, codec, lossy=True))


@pytest.mark.compiled_only
@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.magic >= 2])
def test_append_time_and_delete_horizon(name: str) -> None:
    fmt = FORMATS[name]
    times = BatchFields(append_time_ms=[5, 1 << 41, 7, 8])
    check_times(fmt, fmt.encode(MANY, [0, 100, 101, 299, 300], batch_fields=times, lossy=True))
    with_horizon = BatchFields(delete_horizon_ms=9)
    check_times(fmt, fmt.encode(MANY, [0, 100, 101, 299, 300], batch_fields=with_horizon, lossy=True))


@pytest.mark.parametrize("name", [name for name in PARTIAL if FORMATS[name].checksum])
def test_no_payload_is_read(name: str) -> None:
    """`read_times` reads no payload and checks no checksum. So it does not see damage in the payload."""
    fmt = FORMATS[name]
    log = fmt.encode(Records.from_lists([b"value"] * 20, timestamps_ms=range(20)), 10)
    data = log.data.copy()
    data[data.tobytes().index(b"value")] ^= 1
    with pytest.raises(CorruptLog, match="crc"):
        fmt.decode(data)
    assert fmt.read_times(data, log.positions).timestamps_ms.tolist() == list(range(20))


@pytest.mark.compiled_only
@pytest.mark.parametrize("name", PARTIAL)
def test_each_changed_byte_is_an_error_or_gives_records(name: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(MANY.take(range(30)), [0, 10, 20, 30], lossy=True)
    for at in range(int(log.positions[1]), int(log.positions[1]) + 200):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            data = log.data.copy()
            data[at] = value
            try:
                seen = fmt.read_times(data, log.positions)
            except CorruptLog as error:
                assert error.position == log.positions[1]  # noqa: PT017 - or nothing is raised
            except InvalidRecords:
                assert LENGTH_AT <= at - log.positions[1] < START
            else:
                assert seen.bounds[1] == 10 and seen.bounds[-1] - seen.bounds[-2] == 10
                assert len(seen.offsets) == len(seen.timestamps_ms) == seen.bounds[-1]


@pytest.mark.parametrize("name", FORMATS)
def test_a_part_of_the_entries(name: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(MANY, 50, lossy=True)
    positions = Entries.of(log.data).positions
    part, whole = fmt.read_times(log.data, positions[2:5]), fmt.decode(log)
    assert part.offsets.tolist() == whole.records.offsets[whole.bounds[2] : whole.bounds[4]].tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_invalid_positions_are_refused(name: str) -> None:
    """`read_times` refuses positions at which no batch starts, and positions that leave out a batch."""
    fmt = FORMATS[name]
    log = fmt.encode(MANY, [0, 0, 50, 150, 300] if fmt.capabilities.empty_batches else [0, 50, 150, 300], lossy=True)
    positions = Entries.of(log.data).positions
    far = np.array([1, -(2**63), -5, 50])  # all differences between these positions are positive, modulo 2**64
    falling, twice = positions[::-1], positions[[0, 0, 1]]
    wrong: list[Any] = [positions[:0], positions * 1.0, positions[None], positions + 1, falling, twice, far]
    wrong += [np.array([len(log.data) - off, -(2**63)]) for off in (0, 5)]
    wrong += [falling.astype(np.uint64), positions[[0, 2, 3]], positions[[0, -1]], [0, START + MIN_LENGTH - 1]]
    for none in wrong:
        with pytest.raises(InvalidRecords, match="positions"):
            fmt.read_times(log.data, none)
        if fmt.name in ("v2", "columnar"):
            with pytest.raises(InvalidRecords, match="positions"):
                fmt.fetch(log, none, [0] * max(len(none) - 1, 0))
    for size in range(START + MIN_LENGTH):
        with pytest.raises(InvalidRecords, match="positions"):
            fmt.read_times(bytes(size), np.array([0, size]))


@pytest.mark.parametrize("name", ["v0", "v1"])
def test_an_entry_of_v0_and_v1_is_a_message(name: str) -> None:
    """In v0 and v1, `read_times` needs the position of every plain message. Positions of whole batches are refused."""
    fmt = FORMATS[name]
    plain, wrapped = fmt.encode(MANY, 50, lossy=True), fmt.encode(MANY, 50, "gzip", lossy=True)
    with pytest.raises(InvalidRecords, match=r"Entries\.of\(data\)"):
        fmt.read_times(plain, plain.positions)
    messages = Entries.of(plain.data).positions
    assert len(messages) == len(MANY) + 1
    assert np.diff(fmt.read_times(plain, messages[:4]).bounds).tolist() == [1, 1, 1]
    assert Entries.of(wrapped.data).positions.tolist() == wrapped.positions.tolist()
    assert np.diff(fmt.read_times(wrapped, wrapped.positions[:4]).bounds).tolist() == [50, 50, 50]


@pytest.mark.parametrize("name", PARTIAL)
def test_limits_hold(name: str) -> None:
    log = FORMATS[name].encode(MANY, 150, lossy=True)
    with pytest.raises(CorruptLog, match=r"limits\.batch_records"):
        FORMATS[name].read_times(log.data, log.positions, Limits(batch_records=100))
