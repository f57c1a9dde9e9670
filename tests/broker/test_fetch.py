"""`fetch` sends bytes unchanged or converts them. It counts the bytes that it reads to decide."""

import numpy as np
import pytest

from kfbench import FORMATS, EncodedLog, read_log
from kfbench.broker.convert import HEADER_BYTES, convert
from kfbench.broker.fetch import SCANS, Scan, fetch
from kfbench.errors import CorruptLog, InvalidRecords, Refused, WouldLose
from kfbench.formats import Entries
from tests.common import ON_BROKERS, records_of
from tests.reference.model import Message
from tests.strategies import NOW_MS

SAMPLE = [Message(offset=i, timestamp_ms=NOW_MS + i, key=b"k%d" % i, value=b"value-%d" % i * 9) for i in range(6)]
MAGICS = ("v0", "v1", "v2", "v3")


def written(name: str, codec: str = "none", batch_size: int = 2) -> EncodedLog:
    return FORMATS[name].encode(records_of(SAMPLE), batch_size, codec, lossy=True)


def mixed(*names: str) -> bytes:
    return b"".join(bytes(written(name)) for name in names)


@pytest.mark.sampled
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("name", ON_BROKERS)
@pytest.mark.parametrize("scan", SCANS)
def test_the_same_version_is_zero_copy(name: str, codec: str, scan: Scan) -> None:
    log = written(name, codec)
    fetched = fetch(log, name, fmt=name, scan=scan)
    assert fetched.zero_copy
    assert np.shares_memory(fetched.data, log.data)
    assert bytes(fetched.encoded) == bytes(log)
    assert fetched.positions is log.positions
    batches = len(Entries.of(log.data).magics)
    assert fetched.work.read_bytes == (HEADER_BYTES * batches if scan == "batches" else 0)
    assert fetched.work.untouched == (batches if scan == "batches" else 0)
    assert (fetched.work.written_bytes, fetched.converted_records) == (0, 0)


def test_without_a_scan_nothing_is_read() -> None:
    """Without a scan `fetch` reads no byte. It sends even bytes that a scan could not read."""
    noise = np.full(1000, 255, np.uint8)
    fetched = fetch(noise, "v2", fmt="v2", scan="never")
    assert np.shares_memory(fetched.data, noise)
    assert (fetched.zero_copy, fetched.work.read_bytes) == (True, 0)
    with pytest.raises(CorruptLog):
        fetch(noise, "v2", fmt="v2", scan="batches")


def test_a_scan_reads_no_more_than_the_beginning_of_a_batch() -> None:
    log = bytearray(bytes(written("v2", batch_size=6)))
    log[HEADER_BYTES:] = bytes(len(log) - HEADER_BYTES)
    assert fetch(log, "v2").work.read_bytes == HEADER_BYTES


@pytest.mark.sampled
@pytest.mark.parametrize("reader", MAGICS)
@pytest.mark.parametrize("stored", MAGICS)
def test_readers_that_get_a_conversion(stored: str, reader: str) -> None:
    """With a scan, a reader that knows the stored format gets the bytes unchanged (zero-copy).

    Without a scan, it must know the newest format of the topic (KIP-724).
    """
    log = bytes(written(stored))
    knows = MAGICS.index(stored) <= MAGICS.index(reader)
    scanned = fetch(log, reader, lossy=True)
    assert scanned.zero_copy == knows
    for newest in MAGICS[MAGICS.index(stored) :]:
        blind = fetch(log, reader, fmt=newest, scan="never", lossy=True)
        assert blind.zero_copy == (MAGICS.index(newest) <= MAGICS.index(reader))
        assert bytes(blind.encoded) == bytes(scanned.encoded)
        assert np.shares_memory(blind.data, np.frombuffer(log, np.uint8)) == blind.zero_copy
    made = convert(log, reader, keep_older=True, lossy=True)
    assert bytes(made.encoded) == bytes(scanned.encoded)
    if not knows:
        assert scanned.converted_records == 6
        assert scanned.work.read_bytes == HEADER_BYTES + len(log)
        assert scanned.work.losses == made.work.losses
        assert scanned.positions.tolist() == made.positions.tolist()


def test_old_data_under_a_new_broker() -> None:
    log = mixed("v0", "v1")
    for scan in SCANS:
        fetched = fetch(log, "v1", fmt="v2", scan=scan)
        assert fetched.zero_copy == (scan == "batches")
        assert bytes(fetched.encoded) == log
    blind = fetch(log, "v1", fmt="v2", scan="never")
    assert (blind.work.untouched, blind.work.read_bytes) == (12, len(log))
    half = fetch(mixed("v1", "v2"), "v1", fmt="v2", scan="never")
    assert half.converted_records == 6


def test_a_scan_ends_at_the_first_batch_that_is_too_new() -> None:
    log = mixed("v1", "v2", "v1")
    fetched = fetch(log, "v1")
    assert fetched.work.read_bytes == 7 * HEADER_BYTES + len(log)
    assert fetched.work.batches == 6 + 3 + 6


def test_a_format_that_shares_its_magic() -> None:
    for name, reader in (("kip98", "v2"), ("enriched-ms", "v1")):
        log = written(name)
        for scan in SCANS:
            assert not fetch(log, reader, fmt=name, scan=scan, lossy=True).zero_copy
            assert not fetch(written(reader), name, fmt=reader, scan=scan, lossy=True).zero_copy
        assert read_log(fetch(log, reader, fmt=name).data).records.offsets.tolist() == list(range(6))


def test_an_incomplete_last_batch_is_sent_too() -> None:
    log = bytes(written("v2"))[:-1]
    fetched = fetch(log, "v2", scan="never", fmt="v2")
    assert len(fetched.data) == len(log)
    assert len(fetched.positions) == 3


def test_the_consumers_position() -> None:
    log = bytes(written("v2"))
    assert read_log(fetch(log, "v1", first_offset=5).data).records.offsets.tolist() == [5]
    assert fetch(log, "v2", first_offset=5).zero_copy


def test_refused_options() -> None:
    with pytest.raises(InvalidRecords, match="scan"):
        fetch(b"", "v2", scan="always")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="UNSUPPORTED_COMPRESSION_TYPE"):
        fetch(written("v2", "zstd"), "v1")
    with pytest.raises(WouldLose, match="timestamps"):
        fetch(written("v2"), "v0")
    assert fetch(b"", "v0").zero_copy
