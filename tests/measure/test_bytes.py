"""`size` gives exactly the number of bytes that `encode` writes."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kfbench
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.errors import IllegalCombination
from kfbench.formats import FORMATS
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure.bytes import compare, measure_size
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.kinds.model import ModelSums, resident_bytes, verify_model
from kfbench.measure.verify import Unverified
from kfbench.records import Records
from kfbench.workloads.catalogue import WORKLOADS
from kfbench.workloads.grid import GridPoint


def records(number: int = 250, headers: int = 0) -> Records:
    return GridPoint(headers=headers, timestamp_spread_ms=1_000).generate(records=number, seed=1).records


# v2: 61 + length 2, attributes 1, deltas 2, key length 1, value length 2, header count 1. v3's header: 8 + 4 + 4 + 1 +
# 4 + 2 + 8 + 2 + 4 = 37, lastOffsetDelta 1, baseTimestamp 1 (5 is small), maxTimestampDelta 1, count 4. Unsigned: each
# of the two longer lengths takes 1. Headers first: metadataLength 1, no record length. Tagged: how many 1, id 1, size
# 1, tag 0 itself 8. kip98: 53 + length 1, attributes 1, deltas 2, key length 1. columnar: 29 + count 1, key length 1,
# value length 1.
OVERHEAD_OF_ONE_RECORD = {
    "v0": 26, "v1": 34, "v2": 61 + 9, "v3": 44 + 8, "v3-attributes-only": 61 + 8, "v3-header-only": 44 + 9,
    "v3-unsigned": 44 + 6, "v3-headers-first": 44 + 7, "v3-tagged": 44 + 11 + 8, "v3-batch-headers": 44 + 11 + 8,
    "v3-full": 44 + 11 + 6, "kip98": 53 + 5, "enriched": 34, "enriched-ms": 34 + 9, "columnar": 29 + 3,
}  # fmt: skip


@pytest.mark.parametrize("name", OVERHEAD_OF_ONE_RECORD)
def test_one_record_is_the_hand_counted_size(name: str) -> None:
    one = Records.from_lists([b"v" * 100], keys=[b"k" * 16], timestamps_ms=[5])
    row = measure_size(FORMATS[name], EncodeInput(records=one, bounds=np.array([0, 1])))
    overhead = OVERHEAD_OF_ONE_RECORD[name]
    assert row["overhead_bytes"] == overhead
    assert row["size_bytes"] == overhead + 116 and row["payload_bytes"] == 116
    assert sum(json.loads(row["field_bytes"]).values()) == row["size_bytes"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_compressed_size_is_what_encode_writes(codec: str) -> None:
    row = measure_size(FORMATS["v1"], EncodeInput(records=records(), bounds=np.array([0, 100, 250]), codec=codec))
    log = FORMATS["v1"].encode(records(), [0, 100, 250], codec)
    assert row["size_bytes"] == len(log.data) and row["batches"] == 2
    assert "overhead_bytes" not in row and "field_bytes" not in row


def test_losses_are_counted() -> None:
    row = measure_size(FORMATS["v0"], EncodeInput(records=records(headers=2), bounds=np.array([0, 250])))
    assert json.loads(row["losses"]) == {"timestamps": 250, "headers": 500}


def test_batch_fields_reach_the_encoder() -> None:
    late = BatchFields(append_time_ms=2**45)  # far from the records, so that the delta of v3 takes more bytes
    source = EncodeInput(records=records(), bounds=np.array([0, 250]))
    sizes = [measure_size(FORMATS["v3"], replace(source, batch_fields=fields)) for fields in (NO_FIELDS, late)]
    assert sizes[1]["size_bytes"] > sizes[0]["size_bytes"]


def test_compare_has_a_row_for_each_format_and_codec() -> None:
    frame = compare(records(), codecs=("none", "zstd", ("zstd", 9)))
    assert list(frame.columns) == [
        "format", "codec", "level", "records", "batches", "size_bytes", "payload_bytes", "overhead_bytes",
        "ratio_to_v2", "losses",
    ]  # fmt: skip
    assert len(frame) == 3 * len(FORMATS)
    rows: Any = frame.set_index(["format", "codec", "level"])
    for name in FORMATS:
        log = FORMATS[name].encode(records(), lossy=True)
        plain = frame[(frame["format"] == name) & (frame["codec"] == "none")].iloc[0]
        assert plain["size_bytes"] == len(log.data)
        assert plain["overhead_bytes"] == len(log.data) - records().shapes.payload_bytes
    compressed = frame[frame["codec"] == "zstd"]
    absent = {name for name, fmt in FORMATS.items() if "zstd" not in fmt.capabilities.codecs}
    for column in ("size_bytes", "ratio_to_v2"):
        assert set(compressed[compressed[column].isna()]["format"]) == absent >= {"v0", "v1"}
    assert compressed["overhead_bytes"].isna().all()  # absent is not zero
    assert rows.loc[("v2", "zstd", 9), "ratio_to_v2"] == 1.0
    assert rows.loc[("v3", "zstd", 3), "ratio_to_v2"] == pytest.approx(
        rows.loc[("v3", "zstd", 3), "size_bytes"] / rows.loc[("v2", "zstd", 3), "size_bytes"]
    )


def test_compare_takes_bounds_and_a_choice_of_formats_and_nothing() -> None:
    frame = kfbench.compare(records(), formats=["v3"], batch_size=np.array([0, 1, 250]))
    assert frame["format"].tolist() == ["v3"] and frame["batches"].tolist() == [2]
    assert 0 < frame["ratio_to_v2"].iloc[0] < 1
    frame = compare(Records.from_lists([]))
    assert frame["size_bytes"].tolist() == [0] * len(FORMATS) and frame["ratio_to_v2"].isna().all()


@pytest.mark.parametrize(
    ("formats", "codecs", "named"),
    [(["v1"], ["zstd"], "v1 has no zstd"), (["v9"], ["none"], "'v9'"), (None, ["brotli"], "'brotli'"),
     (None, [("gzip", 12)], "no level 12")],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(formats: list[str] | None, codecs: list[str], named: str) -> None:
    with pytest.raises(IllegalCombination, match=named):
        compare(records(), formats=formats, codecs=codecs)


def test_sizes_do_not_depend_on_where_the_payload_lies() -> None:
    shuffled = replace(records(), key_data=np.roll(records().key_data, 1))
    assert compare(shuffled)["size_bytes"].tolist() == compare(records())["size_bytes"].tolist()


# Sizes added up block by block


BLOCK = WORKLOADS["user-activity"].generate(records=300, seed=3)


class Short(BatchedFormat):
    """A format whose size of the third batch is one byte too small."""

    def size(self, *args: Any, **options: Any) -> Any:
        sizes = super().size(*args, **options)
        sizes[2] -= 1
        return sizes


def test_sizes_that_are_not_those_of_the_bytes_are_refused() -> None:
    source = EncodeInput(records=BLOCK.records, bounds=BLOCK.bounds, batch_fields=BLOCK.batch_fields)
    verify_model(FORMATS["v2"], source)
    with pytest.raises(Unverified, match="for batch 2 at byte"):
        verify_model(Short(name="v2", magic=2, summary="short"), source)


def test_batches_that_the_caller_has_described_are_sized_as_such() -> None:
    fields = BatchFields(append_time_ms=np.full(len(BLOCK.bounds) - 1, 2**50))
    plain, late = ModelSums(fmt=FORMATS["v3"]), ModelSums(fmt=FORMATS["v3"])
    plain.add(BLOCK.shapes, BLOCK.bounds)
    late.add(BLOCK.shapes, BLOCK.bounds, fields)
    assert late.size_bytes > plain.size_bytes and late.batches == plain.batches == len(BLOCK.bounds) - 1


def test_a_process_holds_what_it_has_held() -> None:
    held = np.ones(80 << 20, np.uint8)
    most = resident_bytes()
    assert most > len(held)
    del held
    assert resident_bytes() >= most
