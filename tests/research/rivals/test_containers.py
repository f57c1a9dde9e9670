"""Every rival's container holds all records of a batch, and reads parts of them."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kfbench.errors import IllegalCombination, WouldLose
from kfbench.records import Records
from kfbench.research.rivals import rivals
from kfbench.research.rivals.base import Rival, SmallestRival, from_table, to_table
from kfbench.workloads.catalogue import WORKLOADS


def relative(records: Records) -> Records:
    """Return the records with offsets and timestamps (ms) relative to the first record. They may be negative."""
    offsets = records.offsets - records.offsets[0]
    return records.at_offsets(offsets).at_times(records.timestamps_ms - records.timestamps_ms[0])


ARMS: Final = [
    pytest.param(rival, codec, id=f"{name}-{codec}")
    for name, rival in rivals().items()
    for codec in sorted(rival.codecs)
]
EDGES: Final = {
    "one record": Records.from_lists([b"value"]),
    "nulls": Records.from_lists([None, b"", b"v"], keys=[b"", None, None]),
    "all null": Records.from_lists([None, None]),
    "empty": Records.from_lists([b"", b""], keys=[b"", b""]),
    "headers": Records.from_lists(
        [b"a", b"b", b"c"],
        headers=[[("x", b"1"), ("a", None), ("x", b"1")], [], [("", b"")]],
        timestamps_ms=[5, 3, -1],
    ),
    "holes": Records.from_lists(
        [b"a"] * 4, keys=[b"k"] * 4, offsets=[7, 9, 1_000, 2_000_000], timestamps_ms=[1, 1, 2, 0]
    ),
}


def check(rival: Rival, codec: str, records: Records) -> None:
    """Check every operation of a rival on one batch, and for every setting that it may choose."""
    records = relative(records)
    prepared = rival.prepare_table(to_table(records))
    container = rival.encode(prepared, codec, 3)
    assert rival.encode(prepared, codec, 3) == container == rival.encoder(prepared, codec, 3)()
    containers = [container]
    if isinstance(rival, SmallestRival):
        containers += [rival.write(prepared, codec, 3, choice) for choice in rival.choices(prepared, codec)]
        assert len(container) == min(map(len, containers[1:]))
    for each in containers:
        check_readers(rival, each, records)


def check_readers(rival: Rival, container: bytes, records: Records) -> None:
    assert from_table(rival.table(rival.decode(container))) == records
    times = rival.read_times(container)
    assert np.array_equal(times.offset_deltas, records.offsets)
    assert np.array_equal(times.timestamp_deltas, records.timestamps_ms)
    for i in {0, len(records) // 2, len(records) - 1}:
        fetched = rival.fetch(container, i)
        assert (fetched.key, fetched.value) == (records.key(i), records.value(i))
        assert [(name.decode(), value) for name, value in fetched.headers] == records.headers(i)


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(("rival", "codec"), ARMS)
def test_edge_records(rival: Rival, codec: str, edge: str) -> None:
    check(rival, codec, EDGES[edge])


@pytest.mark.parametrize("workload", WORKLOADS)
def test_named_workloads(workload: str) -> None:
    records = WORKLOADS[workload].generate(records=20, seed=7).records
    for rival in rivals().values():
        check(rival, "zstd", records)


@pytest.mark.parametrize("rival", rivals().values(), ids=rivals())
def test_refused(rival: Rival) -> None:
    records = EDGES["one record"]
    with pytest.raises(IllegalCombination):
        rival.encode(rival.prepare_table(to_table(records)), "snappy")
    with pytest.raises(WouldLose):
        rival.prepare_table(to_table(Records.from_lists([b"a", b"b"], offsets=[0, 2**31])))


REPEATED: Final = relative(
    Records.from_lists(
        [b"abcdefgh" * 9] * 150, headers=[[("trace", b"0123456789" * 5)]] * 150, timestamps_ms=[*range(150)]
    )
)


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("name", [name for name, rival in rivals().items() if isinstance(rival, SmallestRival)])
def test_repeated_values_and_headers(name: str, codec: str) -> None:
    check(rivals()[name], codec, REPEATED)


def test_parquet_takes_dictionaries_for_repeated_values_and_none_for_random_ones() -> None:
    rival = rivals()["parquet-best"]

    def dictionaries(records: Records) -> list[bool]:
        file = pq.ParquetFile(pa.BufferReader(rival.encode(rival.prepare_table(to_table(relative(records))), "none")))
        columns = [file.metadata.row_group(0).column(i) for i in range(file.metadata.num_columns)]
        return [column.has_dictionary_page for column in columns if column.path_in_schema == "value"]

    random = np.random.default_rng(1)
    assert dictionaries(REPEATED) == [True]
    assert dictionaries(Records.from_lists([random.bytes(70) for _ in range(150)])) == [False]
