"""Read only the start of compressed payloads (a prefix): it costs less, gives equal metadata, and skips some checks."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kfbench import FORMATS, BatchFields, Limits
from kfbench.batches import EncodedLog
from kfbench.codecs import CODECS
from kfbench.errors import CorruptLog
from kfbench.measure.kinds.prefix import ARMS, LOST, has_prefix, measure_prefixes
from kfbench.measure.verify import Unverified
from kfbench.workloads.grid import GridPoint
from tests.common import records_of
from tests.formats.fuzz import sealed
from tests.reference.model import Message

HEADERS_FIRST = [name for name in FORMATS if name in ("v3-headers-first", "v3-full")]
# Each operation on the prefix, and its counterpart on the whole payload.
WHOLE = {"decompress-prefix": "decompress", "decode-metadata": "decode"}
REAL = ("gzip", "snappy", "lz4", "zstd")
BLOCK_BYTES = {"gzip": 1, "snappy": 32 << 10, "lz4": 64 << 10, "zstd": 128 << 10}
FMT = FORMATS["v3-headers-first"]
POINT = GridPoint(batch_size=200, value_bytes=2_000, payload="random", timestamp_spread_ms=50)
SAMPLE = POINT.generate(records=400, seed=1)
SHORT = replace(POINT, value_bytes=20).generate(records=400, seed=1)  # quick for kernels in plain Python


def test_only_formats_with_headers_first_have_a_prefix() -> None:
    assert [name for name, fmt in FORMATS.items() if has_prefix(fmt)] == HEADERS_FIRST


@pytest.mark.compiled_only
@pytest.mark.parametrize("name", HEADERS_FIRST)
@pytest.mark.parametrize("codec", REAL)
def test_a_prefix_takes_no_more_than_its_blocks(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(SAMPLE.records, SAMPLE.bounds, codec)
    arms = measure_prefixes(fmt, log, codec, rounds=5, sample_ns=1)
    found = {(row["operation"], row["arm"]): row for row, _ in arms}
    assert len(found) == ARMS
    assert {row["metadata_bytes"] for row in found.values()} == {found["decode", "measure"]["metadata_bytes"]}
    for prefix_name, whole_name in WHOLE.items():
        prefix, whole = found[prefix_name, "measure"], found[whole_name, "measure"]
        least = -(-prefix["metadata_bytes"] // 2 // BLOCK_BYTES[codec]) * BLOCK_BYTES[codec] * 2
        assert prefix["metadata_bytes"] <= prefix["plain_bytes"] == least
        assert prefix["plain_bytes"] < whole["plain_bytes"] / 2
        assert 0 < prefix["compressed_bytes"] < whole["compressed_bytes"] / 2
        assert whole["compressed_bytes"] == sum(map(len, fmt.compressed_bodies(log)))
    assert found["decompress", "aa"]["plain_bytes"] == found["decompress", "measure"]["plain_bytes"]
    for _, times in arms:
        assert len(times.cpu_ns) == 5 and times.cpu_ns.min() > 0


def test_a_reader_that_says_something_else_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = FMT.encode(SHORT.records, SHORT.bounds, "gzip")
    sound = FMT.decode_metadata(log)
    for change, said in (
        ({"offsets": sound.offsets + 1}, "offsets read from the prefix differ"),
        ({"plain_bytes": sound.plain_bytes + 1}, "bytes made to read the metadata"),
    ):
        monkeypatch.setattr(type(FMT), "decode_metadata", lambda *_, change=change: replace(sound, **change))
        with pytest.raises(Unverified, match=said):
            measure_prefixes(FMT, log, "gzip", rounds=1, sample_ns=1)


@pytest.mark.compiled_only
def test_the_payloads_are_what_the_codec_made() -> None:
    log = FMT.encode(SAMPLE.records, SAMPLE.bounds, "zstd")
    plain = FMT.encode(SAMPLE.records, SAMPLE.bounds)
    made = [CODECS["zstd"].decompress(payload) for payload in FMT.compressed_bodies(log)]
    assert made == [bytes(payload) for payload in FMT.compressed_bodies(plain)]


# Damage that a reader of the prefix does not see


def log_with(change: Callable[[bytes], bytes], codec: str = "gzip", log: EncodedLog | None = None) -> bytes:
    """Return a batch whose compressed payload was changed by `change`. Length and CRC are correct."""
    log = log or FMT.encode(SAMPLE.records, len(SAMPLE.records), codec)
    (payload,) = FMT.compressed_bodies(log)
    data = bytes(log)[: -len(payload)] + change(bytes(payload))
    return sealed(data[:8] + struct.pack(">i", len(data) - 12) + data[12:])


def recompressed(change: Callable[[bytes], bytes], codec: str = "gzip", log: EncodedLog | None = None) -> bytes:
    """Return a batch whose decompressed records were changed by `change` and compressed again."""
    one = CODECS[codec]
    return log_with(lambda payload: one.compress(change(one.decompress(payload))), codec, log)


def same(data: bytes) -> bytes:
    return data


# What is lost -> how to change the compressed payload, or what is decompressed from it; the field that decode refuses.
DAMAGE = [
    ("undecodable payload", log_with, lambda payload: payload[: len(payload) // 2], "records", None),
    ("undecodable payload", log_with, lambda payload: payload[:-1], "records", None),
    ("payload size", recompressed, lambda plain: plain[:-1], "value length", None),
    ("payload size", recompressed, lambda plain: plain + b"\0", "count", None),
    ("size limit", log_with, same, "records", Limits(batch_bytes=300_000)),
]


@pytest.mark.compiled_only
@pytest.mark.parametrize("codec", REAL)
@pytest.mark.parametrize(("lost", "damaged", "change", "field", "limits"), DAMAGE)
def test_lost(lost: str, damaged: Any, change: Any, field: str, limits: Limits | None, codec: str) -> None:
    data = damaged(change, codec)
    with pytest.raises(CorruptLog) as refusal:
        FMT.decode(data, limits=limits)
    assert refusal.value.field == field and lost in LOST
    seen = FMT.decode_metadata(data, limits=limits)
    assert not seen.errors
    assert seen.offsets.tolist() == SAMPLE.shapes.offsets.tolist()
    assert seen.timestamps_ms.tolist() == SAMPLE.shapes.timestamps_ms.tolist()


@pytest.mark.compiled_only
def test_lost_control_records() -> None:
    records = records_of([Message(offset=0, timestamp_ms=7, key=b"\0\0\0\1", value=b"\0\0\0\0\0\0")])
    log = FMT.encode(records, 1, "gzip", batch_fields=BatchFields(is_control=True))
    assert FMT.decode(log).batches.is_control.all()
    data = recompressed(lambda plain: plain[:-10] + b"\xff" + plain[-9:], log=log)  # its key has a negative version
    with pytest.raises(CorruptLog, match="control"):
        FMT.decode(data)
    assert FMT.decode_metadata(data).timestamps_ms.tolist() == [7]
    assert "control records" in LOST


# Damage that a reader of the prefix refuses


@pytest.mark.compiled_only
def test_kept_the_checksum_over_the_compressed_bytes() -> None:
    data = log_with(lambda payload: payload)
    with pytest.raises(CorruptLog) as refusal:
        FMT.decode_metadata(data[:-1] + bytes([data[-1] ^ 1]))
    assert refusal.value.field == "crc"


def test_kept_the_metadata_itself() -> None:
    log = FMT.encode(SHORT.records, len(SHORT.records), "gzip")
    for change in (lambda payload: payload[:100], lambda payload: payload[:20] + bytes(200) + payload[220:]):
        with pytest.raises(CorruptLog):
            FMT.decode_metadata(log_with(change, log=log))
    shorter = zlib.compress(b"\1\0", wbits=31)  # one byte of metadata for 400 records
    with pytest.raises(CorruptLog):
        FMT.decode_metadata(log_with(lambda payload: shorter, log=log))
