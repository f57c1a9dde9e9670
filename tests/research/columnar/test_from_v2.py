"""Batches of v2 that are written in columnar and back in v2 stay the same byte for byte."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, read_log
from kfbench.broker.convert import convert
from kfbench.log.writing import encodings_of, write_batches
from tests.common import batch_fields_of, bounds_of, records_of, reference_decode
from tests.formats.fuzz import sealed
from tests.recorded import FOLDER, NAMES
from tests.research.columnar import cases as columnar_cases
from tests.research.columnar.batches import messages
from tests.strategies import NOW_MS, Case
from tests.test_golden import OURS, index, vector


def written_as(name: str, log: Any) -> bytes:
    """Write the batches of a log in another format, each with its codec and header fields. Nothing may be lost."""
    read = read_log(log)
    found = encodings_of(read)
    kinds = [replace(kind, fmt=FORMATS[name]) for kind in found.kinds]
    made = write_batches(read.source_records, read.bounds, read.batch_fields, found.number, kinds)
    assert not made.losses
    return bytes(made.data)


def v2_of(case: Case, codec: str) -> bytes:
    fields = batch_fields_of(case)
    return bytes(FORMATS["v2"].encode(records_of(case.messages), bounds_of(case), codec, batch_fields=fields))


@pytest.mark.parametrize("what", ["attributes bit 7", "a record's attributes", "an empty batch's codec"])
def test_values_that_kafka_does_not_write_are_not_restored(what: str) -> None:
    """Kafka never writes these three values of v2, so columnar drops them. docs/columnar.md lists them."""
    v2, fields = FORMATS["v2"], BatchFields(base_offset=5, last_offset=9)
    plain = bytes(v2.encode(records_of(messages(1)), 1))
    if what == "an empty batch's codec":
        plain = bytes(v2.encode(records_of([]), [0, 0], batch_fields=fields))
    log = bytearray(plain)
    log[{"attributes bit 7": 22, "a record's attributes": 62, "an empty batch's codec": 22}[what]] |= (
        0x80 if what == "attributes bit 7" else 1
    )
    assert written_as("v2", written_as("columnar", sealed(bytes(log)))) == plain != bytes(log)
    page = re.sub(r"\s+", " ", (Path(__file__).parents[3] / "docs" / "columnar.md").read_text(encoding="utf-8"))
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
    """Write v2 as columnar and back.

    The drawn batches include transactions, control batches, delete horizons, append times, offset gaps and empty
    batches.
    """
    log = v2_of(case, codec)
    there = written_as("columnar", log)
    assert reference_decode("columnar", there)[1] == 0
    assert read_log(there).batch_rows["canonical"].all()
    back = written_as("v2", there)
    assert batches_of(back) == batches_of(log)
    assert written_as("columnar", back) == there


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
    assert written_as("v2", written_as("columnar", log)) == log


@pytest.mark.compiled_only
@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".log")])
def test_recorded_segments(name: str) -> None:
    """The batches of a recorded segment, converted to v2 if they are older, stay the same."""
    v2 = bytes(convert((FOLDER / name).read_bytes(), "v2").data)
    there = written_as("columnar", v2)
    sent = read_log(v2)
    assert read_log(there).records == sent.records
    if sent.batch_rows["canonical"].all():
        assert batches_of(written_as("v2", there)) == batches_of(v2)


VECTORS = [entry["name"] for entry in index(OURS) if entry["error"] is None]


@pytest.mark.compiled_only
def test_kafkas_own_vectors() -> None:
    """More than 200 batches that Kafka's classes wrote stay the same.

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
        assert batches_of(written_as("v2", written_as("columnar", whole))) == batches_of(whole), name
        seen += len(rows)
    assert seen > 200
