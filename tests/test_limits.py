"""Limits on memory for reading: data one above a limit is refused, and data at the limit is read."""

import tracemalloc
from dataclasses import fields
from typing import Any

import pytest

from kfbench import FORMATS, KfbenchError, Limits, Records, read_log
from kfbench.errors import CorruptLog
from kfbench.formats import Entries, Format
from tests.formats.fuzz import sealed

every_format = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS.keys())
with_headers = pytest.mark.parametrize(
    "fmt", [pytest.param(f, id=n) for n, f in FORMATS.items() if f.capabilities.headers]
)


def refused(fmt: Format, data: Any, reason: str, **limits: int) -> None:
    with pytest.raises(CorruptLog, match=reason):
        fmt.decode(data, limits=Limits(**limits))
    kept = fmt.decode(data, on_error="skip", limits=Limits(**limits))
    assert (len(kept), len(kept.records), len(kept.errors)) == (0, 0, 1)


@every_format
def test_records_of_a_batch(fmt: Format) -> None:
    records = Records.from_lists([b"v"] * 10)
    for codec in fmt.capabilities.codecs:
        if fmt.holds_messages and codec == "none":
            continue  # each plain message is a batch of its own
        data = fmt.encode(records, codec=codec).data
        assert len(fmt.decode(data, limits=Limits(batch_records=10)).records) == 10
        refused(fmt, data, "more records than limits.batch_records", batch_records=9)


@with_headers
def test_headers_of_a_batch(fmt: Format) -> None:
    records = Records.from_lists([b"v"] * 4, headers=[[("a", b"1"), ("b", None)]] * 3 + [[]])
    for codec in fmt.capabilities.codecs:
        data = fmt.encode(records, codec=codec).data
        assert fmt.decode(data, limits=Limits(batch_headers=6)).records == records
        refused(fmt, data, "more headers in a batch than limits.batch_headers", batch_headers=5)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "field"),
    [
        (name, field)
        for name, fmt in FORMATS.items()
        for field in ("key", "value", *(("header key", "header value") if fmt.capabilities.headers else ()))
    ],
)
def test_bytes_of_a_field(name: str, field: str) -> None:
    fmt = FORMATS[name]
    long, short = b"x" * 100, b"s"
    header, content = (long.decode(), short) if field == "header key" else ("h", long)
    records = Records.from_lists(
        [long if field == "value" else short] * 2,
        keys=[long if field == "key" else short] * 2,
        headers=[[(header, content)]] * 2 if field.startswith("header") else None,
    )
    for codec in fmt.capabilities.codecs:
        data = fmt.encode(records, codec=codec).data
        assert len(fmt.decode(data, limits=Limits(field_bytes=100)).records) == 2
        with pytest.raises(CorruptLog, match=r"longer than limits\.field_bytes"):
            fmt.decode(data, limits=Limits(field_bytes=99))


@pytest.mark.compiled_only
def test_shared_headers_stand_for_no_more_than_a_log_may_hold() -> None:
    """1 KiB of headers shared by 1,000 small records stands for half a million headers.

    They count against the limit.
    """
    records = Records.from_lists([None] * 1000, headers=[[("", None)] * 500] * 1000)
    fmt = FORMATS["v3-batch-headers"]
    log = fmt.encode(records, 1000, "zstd")
    assert len(log.data) < 2100
    assert fmt.decode(log).records == records
    tracemalloc.start()
    refused(fmt, log.data, "limits.batch_headers", batch_headers=499_999)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()
    kept = fmt.decode(bytes(log.data) * 3, on_error="skip", limits=Limits(batch_headers=500_000, log_expansion=1))
    assert (len(kept), len(kept.errors)) == (1, 2)


def test_other_formats_between_shared_headers_make_no_room_for_more_of_them() -> None:
    records = Records.from_lists([None] * 100, headers=[[("", None)] * 500] * 100)
    log, between = bytes(FORMATS["v3-batch-headers"].encode(records)), bytes(FORMATS["v2"].encode(records.part(0, 1)))
    kept = read_log((log + between) * 3, on_error="skip", limits=Limits(batch_headers=50_000, log_expansion=1))
    assert (len(kept), len(kept.errors)) == (4, 2)


@every_format
def test_the_largest_limits_are_taken(fmt: Format) -> None:
    limits = Limits(**{field.name: (1 << 62) - 1 for field in fields(Limits)})
    for codec in fmt.capabilities.codecs:
        log = fmt.encode(Records.from_lists([b"v"] * 3), codec=codec, lossy=True)
        assert len(fmt.decode(log, limits=limits).records) == 3
        assert len(fmt.read_times(log, Entries.of(log.data).positions, limits).offsets) == 3


def test_every_reader_takes_limits() -> None:
    data = FORMATS["v2"].encode(Records.from_lists([b"v"] * 3)).data
    with pytest.raises(CorruptLog, match="limits"):
        read_log(data, limits=Limits(batch_records=2))
    with pytest.raises(CorruptLog, match="limits"):
        FORMATS["v2"].decode_metadata(data, limits=Limits(batch_records=2))


def test_a_claim_of_many_records_allocates_nothing() -> None:
    """A compressed batch may claim many records that take few bytes.

    The reader does not allocate memory by the claim alone.
    """
    data = bytearray(bytes(FORMATS["v3-headers-first"].encode(Records.from_lists([b"v"]), codec="zstd")))
    at = data.index(b"\x28\xb5\x2f\xfd") - 4
    data[at : at + 4] = (1 << 24).to_bytes(4, "big")
    tracemalloc.start()
    with pytest.raises(CorruptLog, match="count"):
        FORMATS["v3"].decode(sealed(bytes(data)))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("value", [0, -1, 1 << 62, 1.5, "1", None])
def test_a_limit_is_a_whole_number_from_1(value: Any) -> None:
    with pytest.raises(KfbenchError, match=r"limits\.batch_bytes"):
        Limits(batch_bytes=value)


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
@pytest.mark.parametrize("cut", [0, 9])
def test_refused_bombs_are_paid_for(codec: str, cut: int) -> None:
    """Bytes that were decompressed before a batch is refused count against the limit of the log."""
    fmt = FORMATS["v3-headers-first"]
    bomb = bytearray(bytes(fmt.encode(Records.from_lists([bytes(4 << 20)]), codec=codec)))
    bomb = bytearray(sealed(bytes(bomb[: len(bomb) - cut]))) if cut else bomb
    sound = bytes(fmt.encode(Records.from_lists([b"here"] * 100), codec=codec))
    limits = Limits(batch_bytes=(4 << 20) + 100 if cut else 1 << 20, log_expansion=1)
    log = fmt.decode(sound + bytes(bomb) * 3 + sound, on_error="skip", limits=limits)
    assert [error.field for error in log.errors] == ["records"] * 4
    assert len(log) == 1


def test_limits_are_limits() -> None:
    data = FORMATS["v2"].encode(Records.from_lists([b"v"])).data
    with pytest.raises(KfbenchError, match=r"kfbench\.Limits is wanted, not int"):
        FORMATS["v2"].decode(data, limits=1 << 20)  # type: ignore[arg-type]


def test_a_message_of_kip98_takes_three_bytes() -> None:
    """A message takes at least three bytes, so that columns do not take 48 times as much memory as the bytes."""
    batch = bytearray(bytes(FORMATS["kip98"].encode(Records.from_lists([b"v"]))))
    del batch[53:]
    for size in (0, 1, 2):
        body = bytes([size]) + bytes(size)
        with pytest.raises(CorruptLog, match="record length"):
            FORMATS["kip98"].decode(sealed(bytes(batch) + body * 1000, "kip98"))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_is_told_which_limit_it_exceeds(codec: str) -> None:
    """A batch above its own limit names that. Where earlier batches used up the log's limit, that is named."""
    log = bytes(FORMATS["v2"].encode(Records.from_lists([bytes(40_000)] * 3), 1, codec))
    of_log = f"{60_000 + len(log):,} bytes for all batches"
    for batch_bytes, expansion, named in ((30_000, 1 << 20, "30,000 bytes"), (60_000, 1, of_log)):
        limits = Limits(batch_bytes=batch_bytes, log_expansion=expansion)
        errors = read_log(log, on_error="skip", limits=limits).errors
        assert len(errors) in (2, 3) and all(f"limit of {named}" in error.promise for error in errors)
