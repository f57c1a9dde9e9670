"""`write_log` writes batches of several formats and codecs one after another."""

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, Records, read_log
from kfbench.errors import WouldLose
from kfbench.log.writing import BatchEncoding, codec_bytes, encodings_of, write_batches

RECORDS = Records.from_lists([b"a" * n for n in range(6)], timestamps_ms=[1_000 + i for i in range(6)])
BOUNDS = np.array([0, 1, 3, 4, 6])
KINDS = [
    BatchEncoding(fmt=FORMATS["v2"]),
    BatchEncoding(fmt=FORMATS["v3-tagged"], codec="zstd", level=3),
    BatchEncoding(fmt=FORMATS["v1"]),
]


def test_each_batch_has_its_format_and_codec() -> None:
    fields = BatchFields(partition_leader_epoch=[4, 5, -1, 6])
    log = write_batches(RECORDS, BOUNDS, fields, np.array([0, 1, 2, 0]), KINDS)
    back = read_log(log)
    assert back.records == RECORDS
    assert back.batches["magic"].tolist() == [2, 3, 1, 2]
    assert back.batches["codec"].tolist() == ["none", "zstd", "none", "none"]
    assert back.batches["partition_leader_epoch"].tolist() == [4, 5, -1, 6]
    assert log.positions.tolist() == [*back.batches["position"].tolist(), len(log.data)]
    number, kinds = encodings_of(back)
    assert [kinds[k].fmt.name for k in number] == ["v2", "v3-tagged", "v1", "v2"]


def test_codec_bytes_count_only_the_compressed_part() -> None:
    """In columnar only keys, values and headers count as codec bytes, because its columns are not compressed."""
    records = Records.from_lists(
        [b"value"] * 100, keys=[b"k%02d" % i for i in range(100)], headers=[[("h", b"x")]] * 100
    )
    one, number = np.array([0, 100]), np.zeros(1, np.int64)
    for name, plain in (("columnar", 100 * (5 + 3) + 2), ("v2", 100 * 19 + 36)):
        kinds = [BatchEncoding(fmt=FORMATS[name], codec="gzip")]
        rows = read_log(write_batches(records, one, BatchFields(), number, kinds)).batch_rows
        assert codec_bytes(records, one, BatchFields(), number, kinds) == rows["records_size_bytes"].sum() == plain


@pytest.mark.parametrize("name", ["v0", "v1", "v2", "v3", "columnar"])
def test_each_magic_and_codec_is_a_kind(name: str) -> None:
    codecs = FORMATS[name].capabilities.codecs
    kinds = [BatchEncoding(fmt=FORMATS[name], codec=codec) for codec in codecs]
    ageless = Records.from_lists([b"value"] * 2 * len(codecs))
    log = write_batches(ageless, 2 * np.arange(len(codecs) + 1), BatchFields(), np.arange(len(codecs)), kinds)
    number, found = encodings_of(read_log(log))
    assert [found[k] for k in dict.fromkeys(number.tolist())] == kinds


def test_losses_of_all_kinds_add_up() -> None:
    fields = BatchFields(producer_id=[1, 2, 3, 4])
    number = np.array([2, 0, 2, 2])
    with pytest.raises(WouldLose):
        write_batches(RECORDS, BOUNDS, fields, number, KINDS)
    assert write_batches(RECORDS, BOUNDS, fields, number, KINDS, lossy=True).losses == {"producer_id": 3}


def test_alternating_kinds_are_written_in_order() -> None:
    records = Records.from_lists([b"v%d" % i for i in range(400)], timestamps_ms=list(range(400)))
    bounds, number = np.arange(401), np.arange(400) % 3
    log = write_batches(records, bounds, BatchFields(), number, KINDS)
    alone = [kind.fmt.encode(records, bounds, kind.codec, kind.level) for kind in KINDS]
    wanted = [alone[k].data[alone[k].positions[b] : alone[k].positions[b + 1]] for b, k in enumerate(number)]
    assert log.data.tobytes() == np.concatenate(wanted).tobytes()
    assert np.diff(log.positions).tolist() == [len(each) for each in wanted]
    plain = sum(int(FORMATS["v3-tagged"].size(records.part(b, b + 1))[0]) for b in range(1, 400, 3))
    assert 0 < codec_bytes(records, bounds, BatchFields(), number, KINDS) < plain  # less than whole batches
