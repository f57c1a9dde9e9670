"""Columnar batches are mirrored, and converted to v2 and back without loss.

Tests of all formats are in the other files of this folder.
"""

import re
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Records, read_log
from kfbench.broker.append import append
from kfbench.broker.batch_headers import headers
from kfbench.broker.convert import convert
from kfbench.broker.mirror import mirror
from kfbench.broker.upgrade import upgrade
from kfbench.errors import CorruptLog, KfbenchError
from tests.broker.columnar_batches import ATTRIBUTES, COLUMNAR, FIXED, LATER_MS, encoded, messages
from tests.common import batch_fields_of, bounds_of, messages_of, records_of, reference_decode
from tests.formats.fuzz import mutations, sealed
from tests.recorded import FOLDER, NAMES
from tests.reference import columnar, columnar_cases
from tests.strategies import NOW_MS, Case
from tests.test_golden import OURS, index, vector


class TestMirror:
    @pytest.mark.parametrize("codec", ["none", "gzip"])
    def test_fields_of_the_source_cluster_are_removed_in_place(self, codec: str) -> None:
        horizon: dict[str, Any] = {"delete_horizon_ms": NOW_MS + 99}
        state: dict[str, Any] = {"producer_id": 7, "producer_epoch": 1, "base_sequence": 3, "is_transactional": True}
        log = encoded(codec, **horizon, **state)
        done = mirror(log, "columnar")
        assert (done.work.in_place, len(done.data)) == (1, len(log.data))
        (row,) = read_log(done.data).batch_rows
        assert (row["producer_id"], row["producer_epoch"], row["base_sequence"]) == (-1, -1, -1)
        assert (row["delete_horizon_ms"], row["base_timestamp_ms"]) == (-1, NOW_MS + 99)
        assert not row["is_transactional"]
        assert messages_of(read_log(done.data).records) == messages()
        v2 = mirror(
            FORMATS["v2"].encode(records_of(messages()), 5, codec, batch_fields=BatchFields(**horizon, **state)), "v2"
        )
        assert bytes(convert(done.data, "v2").data) == bytes(v2.data)

    def test_a_record_without_bytes_is_no_empty_batch(self) -> None:
        log = COLUMNAR.encode(Records.from_lists([None], timestamps_ms=[NOW_MS]), 1)
        assert headers(log.data)["header_bytes"].tolist() == [len(log.data)]
        assert mirror(log, "columnar").handed_on == 1


# To columnar and back to v2


def v2_of(case: Case, codec: str) -> bytes:
    fields = batch_fields_of(case)
    return bytes(FORMATS["v2"].encode(records_of(case.messages), bounds_of(case), codec, batch_fields=fields))


@pytest.mark.parametrize("what", ["attributes bit 7", "a record's attributes", "an empty batch's codec"])
def test_values_that_kafka_does_not_write_are_not_restored(what: str) -> None:
    """Kafka never writes these three values of v2, so columnar drops them.

    The conversion does not count a loss. docs/columnar.md lists them.
    """
    v2, fields = FORMATS["v2"], BatchFields(base_offset=5, last_offset=9)
    plain = bytes(v2.encode(records_of(messages(1)), 1))
    if what == "an empty batch's codec":
        plain = bytes(v2.encode(records_of([]), [0, 0], batch_fields=fields))
    log = bytearray(plain)
    log[{"attributes bit 7": 22, "a record's attributes": 62, "an empty batch's codec": 22}[what]] |= (
        0x80 if what == "attributes bit 7" else 1
    )
    there = convert(sealed(bytes(log)), "columnar")
    assert not there.work.losses
    back = convert(there.data, "v2")
    assert bytes(back.data) == plain != bytes(log)
    page = re.sub(r"\s+", " ", (Path(__file__).parents[2] / "docs" / "columnar.md").read_text(encoding="utf-8"))
    assert "attributes bits 7 to 15, a record's attributes byte that is not 0, and codec bits of an empty batch" in page


def batches_of(log: Any) -> list[bytes]:
    """Return each batch in a form that does not depend on the compression library.

    A plain batch is returned as its bytes. A compressed batch is its header without checksum and length, then its
    decompressed records.
    """
    read = read_log(log)
    rows = read.batch_rows
    ends = [*rows["position"].tolist(), int(rows["position"][-1] + rows["size_bytes"][-1])] if len(rows) else [0]
    found = []
    raw = [batch.raw for batch in reference_decode("v2", bytes(log))[0]]
    for (start, end), codec, plain in zip(pairwise(ends), rows["codec"], raw, strict=True):
        batch = bytes(log)[start:end]
        found.append(batch[:8] + batch[12:17] + batch[21:61] + plain if codec else batch)
    return found


@pytest.mark.compiled_only
@settings(max_examples=60)
@given(columnar_cases.cases(), st.sampled_from(["none", "none", "gzip", "zstd"]))
def test_v2_byte_for_byte(case: Case, codec: str) -> None:
    """Convert v2 to columnar and back.

    The drawn batches include transactions, control batches, delete horizons, append times, offset gaps and empty
    batches.
    """
    log = v2_of(case, codec)
    there = convert(log, "columnar")
    assert reference_decode("columnar", bytes(there.data))[1] == 0
    assert not there.work.losses
    assert read_log(there.data).batch_rows["canonical"].all()
    back = convert(there.data, "v2")
    assert not back.work.losses
    assert batches_of(back.data) == batches_of(log)
    assert bytes(convert(back.data, "columnar").data) == bytes(there.data)


@given(st.data())
def test_empty_batches_too(data: st.DataObject) -> None:
    first, last = data.draw(st.sampled_from([0, 5, 2**40])), data.draw(st.sampled_from([0, 1, 99, 2**31 - 1]))
    times = st.sampled_from([-1, 0, NOW_MS, 2**47, 2**63 - 1])
    fields = BatchFields(
        base_offset=first, last_offset=first + last, base_timestamp_ms=data.draw(times),
        max_timestamp_ms=data.draw(times), producer_id=data.draw(st.sampled_from([-1, 7])),
        is_transactional=data.draw(st.booleans()),
    )  # fmt: skip
    log = bytes(FORMATS["v2"].encode(records_of([]), [0, 0], batch_fields=fields))
    there = convert(log, "columnar")
    assert bytes(convert(there.data, "v2").data) == log


@pytest.mark.compiled_only
@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".log")])
def test_recorded_segments(name: str) -> None:
    """A recorded segment of any format gives the same v2 batches directly and through columnar."""
    log = (FOLDER / name).read_bytes()
    v2 = bytes(convert(log, "v2").data)
    there = convert(log, "columnar")
    assert not there.work.losses
    assert read_log(there.data).records == read_log(v2).records
    sent = read_log(v2).batch_rows
    back = bytes(convert(there.data, "v2").data)
    if sent["canonical"].all():
        assert batches_of(back) == batches_of(v2)


VECTORS = [entry["name"] for entry in index(OURS) if entry["error"] is None]


@pytest.mark.compiled_only
def test_kafkas_own_vectors() -> None:
    """Convert more than 200 batches that Kafka's classes wrote to columnar and back.

    They include transactions, markers, append times and compacted batches.
    """
    seen = 0
    for name in VECTORS:
        log, _ = vector(OURS, name)
        read = read_log(log)
        rows = read.batch_rows
        if not len(rows) or not ((rows["magic"] == 2) & rows["canonical"]).all():
            continue
        whole = log[: len(log) - read.trailing_bytes]
        assert batches_of(convert(convert(whole, "columnar").data, "v2").data) == batches_of(whole), name
        seen += len(rows)
    assert seen > 200


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_segment_there_and_back(tmp_path: Any, codec: str) -> None:
    path = tmp_path / "00000000000000000000.log"
    log = bytes(FORMATS["v2"].encode(records_of(messages(500)), 50, codec))
    path.write_bytes(log)
    assert upgrade(path, "columnar").replaced
    assert {4} == set(read_log(path).batches["magic"])
    assert upgrade(path, "columnar").work.untouched == 10
    assert path.stat().st_size < len(log)
    assert upgrade(path, "v2").replaced
    assert path.read_bytes() == log


# Damaged batches


@settings(max_examples=200)
@given(data=st.data())
def test_a_damaged_batch_is_refused_or_keeps_its_records(data: st.DataObject) -> None:
    """`append` refuses a damaged batch that has a correct checksum, or stores it with the same records.

    It may also accept an unreadable batch, if this is compressed or a control batch.
    """
    drawn = data.draw(columnar_cases.batches(max_count=9))
    codec = data.draw(st.sampled_from(["none", "none", "none", "lz4"]))
    sent = data.draw(mutations(columnar.encode(drawn, data.draw(columnar_cases.fields_of(drawn)), codec)))
    bits = int.from_bytes(sent[ATTRIBUTES : ATTRIBUTES + 2], "big") if len(sent) > FIXED else 0
    before = None
    with suppress(CorruptLog):
        before = COLUMNAR.decode(sent)
    with suppress(CorruptLog):
        headers(np.frombuffer(sent, np.uint8))
    options: dict[str, Any] = {}
    if append_time := data.draw(st.booleans()):
        options = {"timestamp_type": "append", "now_ms": data.draw(st.sampled_from([0, LATER_MS, 2**47, 2**62]))}
    try:
        done = append(sent, base_offset=1000, origin="coordinator", **options)
    except KfbenchError:
        return
    if before is None:
        assert bits & (columnar.CODEC | columnar.CONTROL)
        assert (done.work.in_place, done.work.decompressed_bytes) == (1, 0)
        with pytest.raises(CorruptLog):
            COLUMNAR.decode(done.data)
        return
    back = COLUMNAR.decode(done.data)
    if not done.work.in_place and not len(before.records):  # an empty batch is not written
        return
    assert [(m.key, m.value, m.headers) for m in messages_of(back.records)] == [
        (m.key, m.value, m.headers) for m in messages_of(before.records)
    ]
    (row,) = back.batch_rows
    if append_time:
        assert set(back.records.timestamps_ms.tolist()) <= {options["now_ms"]}
        assert (row["append_time_ms"], row["timestamp_type"]) == (options["now_ms"], 1)
    elif not bits & columnar.APPEND_TIME:
        assert back.records.timestamps_ms.tolist() == before.records.timestamps_ms.tolist()
        latest = max(before.records.timestamps_ms.tolist(), default=-1)
        assert max(row["max_timestamp_ms"], -1) == max(latest, -1)
    if row["count"] == row["last_offset"] - row["base_offset"] + 1:
        assert back.records.offsets.tolist() == list(range(1000, 1000 + len(back.records)))


@given(data=st.data())
def test_a_mirror_forwards_damage_that_it_does_not_read(data: st.DataObject) -> None:
    drawn = data.draw(columnar_cases.batches(max_count=9))
    sent = data.draw(mutations(columnar.encode(drawn, data.draw(columnar_cases.fields_of(drawn)))))
    before = None
    with suppress(CorruptLog):
        before = COLUMNAR.decode(sent)
    try:
        done = mirror(sent, "columnar")
    except KfbenchError:
        return
    if before is None:  # the batch is copied with its damage
        assert done.handed_on == 1 or not len(done.data)
        if len(done.data):
            with pytest.raises(CorruptLog):
                COLUMNAR.decode(done.data)
        return
    back = COLUMNAR.decode(done.data)
    assert (back.batch_rows["producer_id"] == -1).all()
    assert (back.batch_rows["delete_horizon_ms"] == -1).all()
    if len(back.records):
        assert back.records.timestamps_ms.tolist() == before.records.timestamps_ms.tolist()
