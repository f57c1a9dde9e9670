"""One Arrow stream per topic: all batches survive in order, and the failures that its state causes."""

import numpy as np
import pyarrow as pa
import pytest

from kfbench.batch_plan import plan
from kfbench.records import Records
from kfbench.rivals import whole
from kfbench.rivals.base import from_table, relative
from kfbench.rivals.envelope import ENVELOPE_BYTES
from kfbench.rivals.streams import TopicStream, encode_stream, plain_table, read_stream, stream_sizes
from kfbench.workloads.catalogue import WORKLOADS

KEYS = [b"a", b"b", b"c", b"d", b"a", b"c"]  # a batch each; batch 2 adds key c
STREAM = encode_stream(Records.from_lists([b"v"] * 6, keys=KEYS), plan(6, 1), "none")


def keys_of(stream: TopicStream) -> list[bytes]:
    return [key_of(batch) for batch in read_stream(stream)]


def key_of(batch: pa.RecordBatch) -> bytes:
    key: bytes = plain_table(batch)["key"][0].as_py()
    return key


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_every_kind_of_record_survives(codec: str) -> None:
    records = Records.from_lists(
        [b"value", None, b"", b"x"],
        keys=[None, b"key", b"", b"key"],
        timestamps_ms=[9, 5, -1, 7],
        headers=[[("a", b"1"), ("a", None)], [], [("b", b"")], [("a", b"2")]],
        offsets=[7, 9, 30, 31],
    )
    tables = map(plain_table, read_stream(encode_stream(records, np.array([0, 2, 2, 4]), codec)))
    assert [from_table(table) for table in tables] == [relative(records.part(0, 2)), relative(records.part(2, 4))]
    assert not [row for row in stream_sizes(records, np.array([0, 2, 2, 4]), codec) if row.error]


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_named_workloads_survive(name: str) -> None:
    rows = stream_sizes(WORKLOADS[name].generate(records=12, seed=7).records, plan(12, 3), "zstd")
    assert not [row for row in rows if row.error]


def test_the_smaller_of_buffers_and_messages_is_taken() -> None:
    """Small batches compress better as a whole. Large ones do not always."""
    small = WORKLOADS["user-activity"].generate(records=30, seed=7).records
    stream = encode_stream(small, plan(30, 10), "zstd")
    assert all(data.startswith(b"\x28\xb5\x2f\xfd") for data in stream.batches)
    large = Records.from_lists([bytes([i % 251]) * 3 for i in range(20_000)])
    ways = set()
    for records, size in ((small, 10), (large, 20_000)):
        for codec in ("zstd", "lz4"):
            found = encode_stream(records, plan(len(records), size), codec)
            plain = encode_stream(records, plan(len(records), size), "none")
            ways |= {whole.decompress(data) == data for data in found.batches}
            assert all(len(a) <= len(b) for a, b in zip(found.batches, plain.batches, strict=True))
            tables = map(plain_table, read_stream(found))
            assert [len(table) for table in tables] == [size] * (len(records) // size)
    assert ways == {True, False}


def test_the_middle_excludes_the_first_batch_and_its_schema() -> None:
    whole, middle = stream_sizes(Records.from_lists([b"v"] * 6, keys=KEYS), plan(6, 1), "none")
    assert whole.size_bytes == 6 * ENVELOPE_BYTES + len(STREAM.schema) + sum(map(len, STREAM.batches))
    assert middle.size_bytes == 2 * ENVELOPE_BYTES + sum(map(len, STREAM.batches[2:4]))
    assert (middle.records, middle.batches) == (2, 2)


def test_one_batch_has_no_middle() -> None:
    (whole,) = stream_sizes(Records.from_lists([b"v"]), plan(1, 1), "none")
    assert whole.setting == "all" and whole.error is None


def test_a_known_key_makes_a_batch_smaller() -> None:
    assert len(STREAM.batches[4]) < len(STREAM.batches[3])


def test_a_consumer_that_starts_in_the_middle_has_no_schema() -> None:
    with pytest.raises(OSError, match="schema"):
        pa.ipc.open_stream(b"".join(STREAM.batches[2:]))


def test_a_consumer_that_starts_in_the_middle_with_the_schema_has_no_dictionary() -> None:
    assert keys_of(STREAM) == KEYS
    with pytest.raises(KeyError):
        read_stream(STREAM.without(0, 1))


def test_after_a_lost_batch_a_key_is_wrong_without_an_error() -> None:
    batches = read_stream(STREAM.without(2))
    with pytest.raises(IndexError):
        plain_table(batches[2])
    assert key_of(batches[4]) == b"d" != KEYS[5]
