"""`decode_metadata` returns the same offsets, timestamps and lengths as `decode`, in every format."""

import numpy as np
import pytest

from kfbench import FORMATS, Records
from kfbench.batches import DecodedLog, DecodedMetadata
from kfbench.errors import CorruptLog

RECORDS = Records.from_lists(
    [None if i % 7 == 0 else b"v" * (40 * i) for i in range(20)],
    keys=[None if i % 3 == 0 else b"key %d" % i for i in range(20)],
    timestamps_ms=[1_700_000_000_000 + 250 * i for i in range(20)],
    headers=[[("h", b"x" * i)] * (i % 3) for i in range(20)],
)
BOUNDS = [0, 1, 12, 20]
ARMS = [(name, codec) for name, fmt in FORMATS.items() for codec in fmt.capabilities.codecs]
WITH_CHECKSUM = [(name, codec) for name, codec in ARMS if FORMATS[name].checksum]


def check_same(seen: DecodedMetadata, log: DecodedLog) -> None:
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
def test_the_same_as_a_full_reader(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(RECORDS, BOUNDS, codec, lossy=True)
    whole = fmt.decode(log)
    seen = fmt.decode_metadata(log)
    check_same(seen, whole)
    assert seen.plain_bytes <= whole.batch_rows["records_size_bytes"].sum()
    cut = log.data[:-3]
    check_same(fmt.decode_metadata(cut), fmt.decode(cut))
    headless = fmt.encode(Records.from_lists([b"v"] * 20), 5, codec)
    check_same(fmt.decode_metadata(headless), fmt.decode(headless))


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), WITH_CHECKSUM)
def test_a_damaged_batch_between_sound_ones(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(RECORDS, BOUNDS, codec, lossy=True)
    data = log.data.copy()
    data[log.positions[2] - 1] ^= 1
    check_same(fmt.decode_metadata(data, on_error="skip"), fmt.decode(data, on_error="skip"))
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
    check_same(seen, fmt.decode(data, on_error="skip"))
    assert seen.header_counts.tolist() == [0] * 15


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), WITH_CHECKSUM)
def test_without_checksums(name: str, codec: str) -> None:
    """Without checksums, a damaged byte goes unseen. Formats that decode the whole batch may still find it."""
    fmt = FORMATS[name]
    records = Records.from_lists([b"value"] * 20, timestamps_ms=range(20))
    log = fmt.encode(records, 10, codec, lossy=True)
    sound = fmt.decode_metadata(log)
    check_same(fmt.decode_metadata(log, check_crcs=False), fmt.decode(log))
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
