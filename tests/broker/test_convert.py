"""`convert` compared with reference codecs for every pair of formats. tests/test_golden.py compares it with Kafka."""

from dataclasses import replace
from functools import partial
from typing import Any

import crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Limits, Records, read_log
from kfbench.broker.append import append
from kfbench.broker.compact import compact
from kfbench.broker.convert import convert
from kfbench.errors import CorruptLog, IllegalCombination, Refused, WouldLose
from kfbench.formats import Entries
from kfbench.measure.golden.steps import REMADE
from kfbench.measure.golden.vectors import GOLDEN, read_vector, vectors
from tests import strategies
from tests.common import (
    LEGACY,
    MESSAGES,
    ON_BROKERS,
    batch_fields_of,
    bounds_of,
    records_of,
    reference_decode,
)
from tests.reference.enriched import seconds
from tests.reference.model import Batch, Message
from tests.reference.v23 import TAGGED_NAMES
from tests.strategies import NOW_MS, Case

# Every pair of formats


def rising_cases(name: str) -> st.SearchStrategy[Case]:
    """Draw batches that the format can carry, with rising offsets, as a broker assigns them."""
    if name in MESSAGES:
        return strategies.cases_of(name, max_batches=3)
    in_v2 = name != "kip98"
    return strategies.cases(3, headers=in_v2, leader_epoch=in_v2, delete_horizon=in_v2, tagged=name in TAGGED_NAMES)


def encoded(name: str, case: Case, codec: str) -> bytes:
    fields = batch_fields_of(case)
    return bytes(FORMATS[name].encode(records_of(case.messages), bounds_of(case), codec, batch_fields=fields))


def source_of(name: str) -> str | None:
    return None if FORMATS[name].is_told_by_magic else name


def losses_of(name: str, log: bytes, to: str) -> dict[str, int]:
    """Return what `to` cannot store of a log (tests/formats check `losses`), and the create times that readers lose."""
    read, target = FORMATS[name].decode(log), FORMATS[to]
    covered = int(np.count_nonzero(read.records.timestamps_ms != read.create_timestamps_ms))
    losses = target.losses(read.source_records if target.magic >= 2 else read.records, read.bounds, read.batch_fields)
    return losses | ({"create timestamps": covered} if covered and to in MESSAGES and to != "v0" else {})


def seen_in(batch: Batch, to: str) -> list[Message]:
    can = FORMATS[to].capabilities
    if batch.is_control and "is_control" not in can.batch_fields:
        return []
    messages = []
    for message, stamp in zip(batch.messages, batch.read_timestamps_ms(), strict=True):
        seen = stamp if can.timestamps else -1
        if not can.milliseconds:
            seen = -1 if seconds(stamp) == -1 else seconds(stamp) * 1000
        messages.append(replace(message, timestamp_ms=seen, headers=message.headers if can.headers else ()))
    return messages


def read_in(name: str, data: bytes) -> list[tuple[Batch, list[Message]]]:
    batches, trailing = reference_decode(name, data)
    assert trailing == 0
    return [
        (batch, [replace(m, timestamp_ms=t) for m, t in zip(batch.messages, batch.read_timestamps_ms(), strict=True)])
        for batch in batches
    ]


KEPT_FIELDS = (
    *("base_offset", "last_offset", "producer_id", "producer_epoch", "base_sequence", "is_transactional"),
    *("is_control", "partition_leader_epoch", "delete_horizon_ms", "is_append_time", "tagged_fields"),
)


@pytest.mark.compiled_only
@pytest.mark.sampled
@pytest.mark.parametrize("to", ON_BROKERS)
@pytest.mark.parametrize("name", ON_BROKERS)
@settings(max_examples=6)
@given(data=st.data())
def test_every_pair(name: str, to: str, data: st.DataObject) -> None:
    shared = [codec for codec in FORMATS[name].capabilities.codecs if codec in FORMATS[to].capabilities.codecs]
    codec = data.draw(st.sampled_from(shared))
    log = encoded(name, data.draw(rising_cases(name)), codec)
    source, _ = reference_decode(name, log)
    losses = {} if name == to else losses_of(name, log, to)
    fmt = source_of(name)
    if losses:
        with pytest.raises(WouldLose, match="batch at byte"):
            convert(log, to, fmt=fmt)
    made = convert(log, to, fmt=fmt, lossy=True)
    assert made.work.losses == losses
    assert made.work.batches == len(source)
    if name == to and fmt:
        assert (bytes(made.encoded), made.work.untouched) == (log, len(source))

    result = read_in(to, bytes(made.encoded))
    wanted = [(batch, seen_in(batch, to)) for batch in source]
    kept = [(batch, messages) for batch, messages in wanted if messages or to not in MESSAGES]
    assert made.work.dropped == len(source) - len(kept)
    assert [m for _, messages in result for m in messages] == [m for _, messages in kept for m in messages]
    if to not in MESSAGES or codec != "none":
        assert len(result) == len(kept)
        for (new, messages), (old, expected) in zip(result, kept, strict=True):
            assert messages == expected
            assert new.codec == (old.codec if messages else "none")
            assert new.magic == FORMATS[to].magic
            if name not in MESSAGES and to not in MESSAGES:
                for field in KEPT_FIELDS:
                    if field in FORMATS[to].capabilities.batch_fields | {"is_append_time"}:
                        assert getattr(new, field) == getattr(old, field), field
    assert made.positions.tolist() == sorted(set(made.positions.tolist()))
    assert made.positions[-1] == len(made.data)

    if not losses:
        back = convert(made.encoded, name, fmt=source_of(to), lossy=True)
        assert [m for _, messages in read_in(name, bytes(back.encoded)) for m in messages] == [
            m for _, messages in read_in(name, log) for m in messages
        ]
        # Kafka's builder also writes the append time into the inner messages of v1, where consumers do not see it.
        assert back.work.losses.keys() <= ({"create timestamps"} if name == "v1" else set())


# Cases written by hand

SAMPLE = [Message(offset=i, timestamp_ms=NOW_MS + i, key=b"k%d" % i, value=b"value-%d" % i * 9) for i in range(6)]
AGELESS = [replace(message, timestamp_ms=-1) for message in SAMPLE]


def written(name: str, codec: str = "none", batch_size: int = 2, **fields: Any) -> bytes:
    records = records_of(AGELESS if name == "v0" else SAMPLE)
    given = BatchFields(**fields) if fields else None
    return bytes(FORMATS[name].encode(records, batch_size, codec, batch_fields=given))


def test_batches_of_the_format_are_copied() -> None:
    """A batch in the target format is copied, even an unused attribute bit (here of the middle batch)."""
    odd = bytearray(written("v2", batch_size=6))
    odd[21] = 0x40
    odd[17:21] = crc32c.crc32c(bytes(odd[21:])).to_bytes(4, "big")
    log = written("v1") + bytes(odd) + written("v0")
    made = convert(log, "v2")
    assert bytes(odd) in bytes(made.encoded)
    assert (made.work.untouched, made.work.rewritten, made.converted_records) == (1, 12, 12)
    assert made.work.read_bytes == len(log)
    assert made.work.written_bytes == len(made.data)
    kept = convert(log, "v2", keep_older=True)
    assert bytes(kept.encoded) == log
    assert (kept.work.untouched, kept.converted_records) == (13, 0)
    assert not np.shares_memory(kept.data, np.frombuffer(log, np.uint8))


def test_older_batches_stay_for_a_reader_of_a_newer_format() -> None:
    log = written("v0", "gzip") + written("v1") + written("v2", "lz4") + written("v3")
    made = convert(log, "v1", keep_older=True)
    older = len(written("v0", "gzip") + written("v1"))
    assert bytes(made.data[:older]) == log[:older]
    assert set(Entries.of(made.data).magics.tolist()) == {0, 1}
    assert made.work.untouched == 3 + 6
    # A reader of kip98 expects another layout for magic 2.
    assert convert(log[: -len(written("v3"))], "kip98", keep_older=True).work.rewritten == 3


def test_a_reader_of_v3_takes_every_v3() -> None:
    log = written("v3") + written("v3-full", "zstd") + written("v2")
    assert bytes(convert(log, "v3-header-only", keep_older=True).encoded) == log
    made = convert(log, "v3-header-only")
    assert made.work.rewritten == 9
    assert read_log(made.data).records == read_log(log).records


@pytest.mark.parametrize("name", TAGGED_NAMES)
def test_a_tagged_batch_stays_if_its_format_is_given(name: str) -> None:
    """Attributes do not show shared headers. Rebuild the batch to the same bytes, unless its format is given."""
    log = written(name)
    assert convert(log, name, fmt=name).work.untouched == 3
    made = convert(log, name)
    assert made.work.rewritten == 3
    assert bytes(made.encoded) == log


def test_append_time_goes_up_with_its_batch() -> None:
    for codec in ("none", "gzip"):
        log = written("v1", codec, append_time_ms=NOW_MS + 99)
        read = read_log(convert(log, "v2").data)
        assert set(read.batches["timestamp_type"]) == {"append"}
        assert set(read.records.timestamps_ms.tolist()) == {NOW_MS + 99}
        created = [message.timestamp_ms for message in SAMPLE] if codec == "gzip" else [NOW_MS + 99] * 6
        assert read.create_timestamps_ms.tolist() == created


def test_zstd_is_refused_below_magic_2() -> None:
    """zstd needs magic 2. A lower target is refused even if no record is converted, unless a codec is given."""
    log = written("v2") + written("v2", "zstd")
    with pytest.raises(Refused, match="zstandard-compressed") as refusal:
        convert(log, "v1", first_offset=100)
    assert refusal.value.error == "UNSUPPORTED_COMPRESSION_TYPE"
    assert refusal.value.position == len(written("v2"))
    made = convert(log, "v1", codec="lz4")
    assert read_log(made.data).batches["codec"].tolist() == ["lz4"] * 6
    assert convert(log, "v3").work.rewritten == 6


def test_a_control_batch_is_dropped_with_any_codec() -> None:
    marker = Records.from_lists([bytes(6)], keys=[bytes(4)], timestamps_ms=[NOW_MS])
    control = bytes(FORMATS["v2"].encode(marker, 1, "zstd", batch_fields=BatchFields(is_control=True)))
    with pytest.raises(WouldLose, match=r"batch at byte 0: v1 cannot carry is_control \(1\)"):
        convert(control, "v1")
    made = convert(control, "v1", lossy=True)
    assert (len(made.data), made.positions.tolist(), made.converted_records) == (0, [0], 0)
    assert (made.work.dropped, made.work.losses) == (1, {"is_control": 1})


def test_the_codec_of_rebuilt_batches() -> None:
    made = convert(written("v2", "gzip"), "v3", codec="zstd", level=1)
    assert read_log(made.data).batches["codec"].tolist() == ["zstd"] * 3
    plain = int(read_log(written("v2", "gzip")).batches["records_size_bytes"].sum())
    assert made.work.decompressed_bytes == plain
    assert made.work.recompressed_bytes == int(read_log(made.data).batches["records_size_bytes"].sum())
    assert convert(written("v2"), "v3").work.recompressed_bytes == 0
    hollow = FORMATS["v2"].encode(records_of([]), [0, 0], batch_fields=BatchFields(base_offset=3, last_offset=9))
    assert read_log(convert(hollow, "v3", codec="zstd").data).batches["codec"].tolist() == ["none"]
    with pytest.raises(IllegalCombination, match="v1 has no zstd"):
        convert(b"", "v1", codec="zstd")


@pytest.mark.parametrize(("name", "to"), [("v1", "v0"), ("v2", "v0"), ("v2", "v1"), ("v2", "enriched-ms")])
def test_records_before_the_first_offset(name: str, to: str) -> None:
    """Records before the consumer's first offset are removed from plain batches. They do not count as losses."""
    plain = convert(written(name), to, first_offset=3, lossy=True)
    assert FORMATS[to].decode(plain.data).records.offsets.tolist() == [3, 4, 5]
    assert plain.converted_records == 3
    assert plain.work.batches == (6 if name in LEGACY else 3)
    assert plain.work.losses.get("timestamps", 0) == (3 if to == "v0" else 0)
    whole = convert(written(name, "gzip"), to, first_offset=3, lossy=True)
    assert FORMATS[to].decode(whole.data).records.offsets.tolist() == list(range(6))


def test_records_before_the_first_offset_stay_in_formats_with_batches() -> None:
    for name, to in (("v3", "v2"), ("v1", "v2"), ("v0", "v1")):
        assert convert(written(name), to, first_offset=3).converted_records == 6


@pytest.mark.parametrize(
    "call", [convert, append, partial(compact, now_ms=NOW_MS)], ids=["convert", "append", "compact"]
)
def test_a_result_that_limits_do_not_allow_is_refused_before_it_is_written(call: Any) -> None:
    """A header that v3-batch-headers stores once per batch is in every record of v2."""
    same = [replace(SAMPLE[0], offset=i, key=b"%d" % i, value=b"v", headers=(("h", b"x" * 1000),)) for i in range(200)]
    sent = bytes(FORMATS["v3-batch-headers"].encode(records_of(same), 200))
    size = len(call(sent, to="v2").data)
    assert size > 20 * len(sent)
    assert len(call(sent, to="v2", limits=Limits(batch_bytes=size - len(sent), log_expansion=1)).data) == size
    limits = Limits(batch_bytes=size - len(sent) - 1, log_expansion=1)
    with pytest.raises(CorruptLog, match=r"more bytes as v2 than limits\.log_expansion") as refusal:
        call(sent, to="v2", limits=limits)
    assert refusal.value.position == 0


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_limits_apply_to_the_size_of_a_whole_result(codec: str | None) -> None:
    same = [replace(message, headers=(("h", b"x" * 1000),)) for message in SAMPLE]
    one = bytes(FORMATS["v3-batch-headers"].encode(records_of(same), 6))
    large, older = len(convert(one, "v2").data), written("v2")
    log = one + older + one
    enough = Limits(batch_bytes=2 * large, log_expansion=1)
    assert convert(log, "v2", codec=codec, limits=enough).work.rewritten >= 2
    with pytest.raises(CorruptLog, match=r"more bytes as v2 than limits\.log_expansion") as refusal:
        convert(log, "v2", codec=codec, limits=Limits(batch_bytes=2 * large - len(log) - 100, log_expansion=1))
    assert refusal.value.position == len(one) + len(older)


def test_a_batch_that_the_target_has_no_room_for_is_named() -> None:
    far = Records.from_lists([b"a", b"b"], offsets=[0, 2**31])
    log = written("v0", "gzip") + bytes(FORMATS["v0"].encode(far, 2, "gzip"))
    with pytest.raises(Refused, match="spans more than an int32") as refusal:
        convert(log, "v2")
    assert refusal.value.error == "UNSUPPORTED_FOR_MESSAGE_FORMAT"
    assert refusal.value.position == len(written("v0", "gzip"))


def test_the_first_batch_that_loses_is_named() -> None:
    log = written("v2") + written("v2", partition_leader_epoch=4)
    with pytest.raises(WouldLose) as refusal:
        convert(log, "v1")
    start = len(written("v2"))
    assert str(refusal.value) == (
        f"batch at byte {start}: v1 cannot carry partition_leader_epoch (1); lossy=True leaves that out"
    )


def test_damage_is_named_by_its_place_in_the_log() -> None:
    log = bytearray(written("v1") + written("v3") + written("v2"))
    start = len(written("v1") + written("v3"))
    log[start + 70] ^= 1
    with pytest.raises(CorruptLog, match="crc") as refusal:
        convert(log, "v1", keep_older=True)
    assert refusal.value.position == start
    assert convert(log, "v2").work.untouched == 3  # a copied batch is not checked for damage
    for unknown in (4, 6, 255):
        log[start + 16] = unknown
        with pytest.raises(CorruptLog, match="magic") as refusal:
            convert(log, "v3", keep_older=True)
        assert refusal.value.position == start
    log[start + 8 : start + 12] = bytes(4)
    with pytest.raises(CorruptLog, match="length"):
        convert(log, "v2")


def test_an_empty_log() -> None:
    made = convert(b"", "v2")
    assert (len(made.data), made.positions.tolist(), made.work.batches) == (0, [0], 0)
    with pytest.raises(IllegalCombination, match="no such format"):
        convert(b"", "v9")


@pytest.mark.compiled_only
@pytest.mark.parametrize(("name", "to", "codec"), [("v1", "v2", "none"), ("v2", "v1", "none"), ("v2", "v3", "lz4")])
def test_a_log_of_several_chunks(name: str, to: str, codec: str) -> None:
    """Several chunks give the same result as one. Damage has its position in the whole log."""
    n = 100_000
    records = Records.from_lists([bytes(200)] * n, timestamps_ms=NOW_MS + np.arange(n))
    log = FORMATS[name].encode(records, 50, codec)
    many = convert(bytes(log.data) * (1 if codec == "none" else 40), to)
    size = 1 if name == "v1" else 50
    once = bytes(FORMATS[to].encode(records, size, codec))
    assert bytes(many.encoded) == once * (1 if codec == "none" else 40)
    damaged = bytearray(log.data)
    damaged[-1] ^= 1
    with pytest.raises(CorruptLog) as refusal:
        convert(damaged, to)
    assert refusal.value.position == Entries.of(log.data).positions[-2]


REFUSED = [
    sidecar
    for entry in vectors()
    if entry["category"] == "downconvert" and (sidecar := read_vector(GOLDEN, entry["name"]).sidecar).get("refused")
]


@pytest.mark.parametrize("sidecar", REFUSED, ids=lambda sidecar: sidecar["name"])
def test_a_conversion_that_kafka_refuses_has_kafkas_message(sidecar: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refusal:
        REMADE["downconvert"].remake(bytes.fromhex(sidecar["source"]), sidecar["spec"]["steps"][-1])
    kafkas = sidecar["refused"]
    assert (refusal.value.error, refusal.value.promise) == (kafkas["error"], kafkas["message"])
