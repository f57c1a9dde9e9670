"""A workload generates the records that its file describes. Errors name the file and the key."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.batches import NO_FIELDS
from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.layouts import UNSET
from kfbench.records import Records
from kfbench.workloads import BLOCK_RECORDS, Sample
from kfbench.workloads.catalogue import DEFAULT, FILES, WORKLOADS, NamedWorkload
from kfbench.workloads.grid import APPEND_DELAY_MS, PRODUCER_ID, START_OF_2026_MS
from kfbench.workloads.named.file import load, parameters, prose
from kfbench.workloads.named.sampling import sample

BASE = """
summary = "orders"
question = "which?"
story = "what happens"
assumptions = ["none of it is real"]
[sources]
arrival = "assumed"
value.length.low = "a paper"
[arrival]
process = "constant"
rate_per_s = 1000
[batching]
model = "fixed"
records = 100
[key]
template = "order-<6d>"
[value]
template = "<text>"
length = { dist = "uniform", low = 20, high = 60 }
"""
TOMBSTONES = """
cardinality = 50
skew = 0.99
[[other]]
share = 0.25
tombstone = true
value = { template = "deleted <4d>" }
[[other]]
share = 0.25
value = { template = "<x>", length = { dist = "fixed", value = 5 } }
"""


class Files:
    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def write(self, text: str) -> Path:
        self.count += 1
        path = self.folder / f"shop-{self.count}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def sample(self, text: str, records: int = 5_000, start: int = 0, variant: str | None = None) -> Sample:
        return sample(load(self.write(text), variant), records=records, seed=3, start=start)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def lists(records: Records) -> tuple[list[bytes | None], list[bytes | None]]:
    n = range(len(records))
    return [records.key(i) for i in n], [records.value(i) for i in n]


def test_every_file_is_a_workload_and_each_of_its_variants() -> None:
    assert sorted(WORKLOADS) == sorted(path.stem for path in FILES.glob("*.toml"))
    for name, workload in WORKLOADS.items():
        assert workload.name == name and workload.variants[0] == DEFAULT
        for variant in workload.variants:
            assert NamedWorkload(name=name, variant=variant).model.summary == workload.summary


@pytest.mark.parametrize("name", WORKLOADS)
def test_v2_carries_what_it_gives(name: str) -> None:
    """The header fields and control records of each workload can be stored in v2 and are read back."""
    sample = WORKLOADS[name].generate(records=300, seed=5, start=BLOCK_RECORDS - 150)
    log = FORMATS["v2"].encode(sample.records, sample.bounds, batch_fields=sample.batch_fields)
    assert (
        np.diff(log.positions).tolist()
        == FORMATS["v2"].size(sample.shapes, sample.bounds, sample.batch_fields).tolist()
    )
    back = FORMATS["v2"].decode(log.data)
    assert back.bounds.tolist() == sample.bounds.tolist()
    keys, values = lists(back.records)
    assert (keys, values) == lists(sample.records)
    assert back.records.offsets.tolist() == sample.records.offsets.tolist()


def test_an_unknown_variant_is_refused_when_it_is_asked_for() -> None:
    name = min(WORKLOADS)
    with pytest.raises(InvalidConfig, match=rf"{name}\.toml: no variant 'none' \(variants: "):
        NamedWorkload(name=name, variant="none")


def test_a_variant_is_laid_over_the_rest(files: Files) -> None:
    path = files.write(
        BASE + '[variant.large]\nwithout = ["key"]\nbatching.records = 7\n[variant.large.value]\n'
        'length = { dist = "fixed", value = 900 }\n[variant.slow.arrival]\nrate_per_s = 1\n'
    )
    assert tuple(prose(path).variant) == ("large", "slow")
    large, slow = (sample(load(path, variant), records=50, seed=1) for variant in prose(path).variant)
    assert set(large.shapes.key_lengths.tolist()) == {-1} and set(large.shapes.value_lengths.tolist()) == {900}
    assert np.diff(large.bounds).tolist() == [7] * 7 + [1]
    assert np.diff(slow.shapes.timestamps_ms).min() == 1_000
    assert slow.shapes.key_lengths.tolist() == [12] * 50


def test_each_number_is_listed_with_its_source(files: Files) -> None:
    found = {
        each.path: (each.value, each.source)
        for each in parameters(files.write(BASE + "[variant.slow.arrival]\nrate_per_s = 1\n"))
    }
    assert found["arrival.rate_per_s"] == (1000, "assumed")
    assert found["variant.slow.arrival.rate_per_s"] == (1, "assumed")
    assert found["value.length.low"] == (20, "a paper")
    assert found["batching.records"] == (100, None)
    assert "summary" not in found


def test_keys_of_one_id_are_alike_and_the_hottest_is_as_hot_as_zipf_says(files: Files) -> None:
    text = BASE.replace('"order-<6d>"', '"<x>"\nlength = { dist = "uniform", low = 8, high = 36 }')
    sample = files.sample(text.replace("[value]", "cardinality = 100\nskew = 0.99\n[value]"), 20_000)
    counts = Counter(sample.records.key(i) for i in range(20_000))
    assert len(counts) == 100
    weights = np.arange(1, 101) ** -0.99
    expected = 20_000 * weights / weights.sum()
    assert [count for _, count in counts.most_common(3)] == pytest.approx(expected[:3].tolist(), rel=0.05)
    assert len(set(sample.shapes.key_lengths.tolist())) > 20


def test_without_a_cardinality_each_record_has_a_key_of_its_own(files: Files) -> None:
    keys, _ = lists(files.sample(BASE.replace("<6d>", "<16x>"), 2_000).records)
    assert len(set(keys)) == 2_000


def test_tombstones_follow_their_deletes(files: Files) -> None:
    text = BASE.replace("[value]", "cardinality = 50\nskew = 0.99\n[value]") + TOMBSTONES.partition("[[")[1]
    text += TOMBSTONES.partition("[[")[2]
    sample = files.sample(text, 20_000)
    keys, values = lists(sample.records)
    deletes = [i for i, value in enumerate(values) if value is not None and value.startswith(b"deleted ")]
    assert all(values[i + 1] is None and keys[i + 1] == keys[i] for i in deletes if i + 1 < 20_000)
    assert values.count(None) in (len(deletes), len(deletes) - 1)
    changes = len(values) - values.count(None)
    assert len(deletes) / changes == pytest.approx(0.25, abs=0.01)
    assert sum(value is not None and len(value) == 5 for value in values) / changes == pytest.approx(0.25, abs=0.01)
    first = set(sample.bounds[:-1].tolist())
    assert all(i + 1 not in first for i in deletes)  # 100 changes plus tombstones per batch
    for start in (deletes[0] + 1, deletes[1] + 1):  # generate a slice that starts with a tombstone
        piece = files.sample(text, 10, start)
        assert lists(piece.records) == (keys[start : start + 10], values[start : start + 10])


def test_a_delete_at_the_end_of_a_block_has_no_tombstone_in_the_next(files: Files) -> None:
    text = BASE.replace("[value]", "cardinality = 50\n[value]")
    text += '[[other]]\nshare = 1.0\ntombstone = true\nvalue = { template = "deleted" }\n'
    lengths = files.sample(text, BLOCK_RECORDS + 4).shapes.value_lengths
    assert lengths[:BLOCK_RECORDS].reshape(-1, 2).tolist() == [[7, -1]] * (BLOCK_RECORDS // 2)
    assert lengths[BLOCK_RECORDS:].tolist() == [7, -1, 7, -1]


def test_nulls_have_their_share_and_headers_their_order(files: Files) -> None:
    sample = files.sample(
        BASE + 'null_share = 0.155\n[[header]]\nname = "traceparent"\ntemplate = "00-<32x>-<16x>-01"\n'
        '[[header]]\nname = "kind"\ntemplate = "<a|bbb>"\n',
        20_000,
    )
    assert (sample.shapes.value_lengths == -1).mean() == pytest.approx(0.155, rel=0.03)
    pairs = [sample.records.headers(i) for i in range(200)]
    assert {tuple(name for name, _ in each) for each in pairs} == {("traceparent", "kind")}
    assert {content for each in pairs for name, content in each if name == "kind"} == {b"a", b"bbb"}
    assert len({each[0][1] for each in pairs}) == 200 and {len(each[0][1] or b"") for each in pairs} == {55}


def test_times_of_a_transaction_of_a_database_are_one(files: Files) -> None:
    sample = files.sample(BASE + "[time]\nsame_in_batch = true\n")
    assert set(np.ptp(sample.shapes.timestamps_ms.reshape(50, 100), axis=1).tolist()) == {0}
    assert np.diff(sample.shapes.timestamps_ms[::100]).tolist() == [100] * 49


def test_an_upload_s_last_record_is_of_now_and_each_one_before_a_period_older(files: Files) -> None:
    sample = files.sample(BASE + "[time]\nperiod_ms = 10_000\n")
    rows = sample.shapes.timestamps_ms.reshape(50, 100)
    assert set(np.diff(rows, axis=1).ravel().tolist()) == {10_000}
    assert rows[:, -1].tolist() == [START_OF_2026_MS + 100 * i + 99 for i in range(50)]


def test_lagging_records_are_out_of_order_half_the_time(files: Files) -> None:
    sample = files.sample(BASE + '[time]\nlag_ms = { dist = "uniform", low = 0, high = 86_400_000 }\n', 50_000)
    deltas = np.diff(sample.shapes.timestamps_ms)
    assert (deltas < 0).mean() == pytest.approx(0.5, abs=0.01)
    assert np.abs(deltas).max() > 0.95 * 86_400_000


def test_append_time_is_after_the_batch_s_last_record(files: Files) -> None:
    sample = files.sample(BASE + "[time]\nappend_time = true\nperiod_ms = 10\n", 250, 30)
    rows = sample.batch_fields.rows
    assert rows["timestamp_type"].tolist() == [1, 1, 1]
    last = [START_OF_2026_MS + after + APPEND_DELAY_MS for after in (99, 199, 299)]
    assert rows["append_time_ms"].tolist() == last


def test_an_idempotent_producer_counts_its_records(files: Files) -> None:
    rows = files.sample(BASE, 250, 30).batch_fields.rows
    assert rows["base_sequence"].tolist() == [30, 100, 200]
    assert set(rows["producer_id"].tolist()) == {PRODUCER_ID} and set(rows["producer_epoch"].tolist()) == {0}
    later = files.sample(BASE, 10, 2**31 + 5).batch_fields.rows
    assert later["base_sequence"].tolist() == [5]
    assert files.sample(BASE + "[producer]\nidempotent = false\n").batch_fields is NO_FIELDS


TRANSACTIONS = BASE.replace(
    'model = "fixed"\nrecords = 100',
    'model = "transactions"\nabort_share = 0.2\nrecords = { dist = "uniform", low = 1, high = 20 }',
)


def test_a_transaction_ends_with_kafka_s_marker(files: Files) -> None:
    sample = files.sample(TRANSACTIONS, BLOCK_RECORDS)
    rows, sizes = sample.batch_fields.rows, np.diff(sample.bounds)
    assert rows["is_transactional"].all() and rows["is_control"].tolist() == [False, True] * (len(rows) // 2)
    assert set(sizes[1::2].tolist()) == {1}
    assert set(rows["base_sequence"][::2].tolist()) == {0} and set(rows["base_sequence"][1::2].tolist()) == {-1}
    assert (np.diff(rows["producer_epoch"]) == [1, 0] * (len(rows) // 2 - 1) + [1]).all()
    # EndTransactionMarker.java. Key: version 0, then type (abort 0, commit 1). Value: version 0, coordinator epoch.
    markers = [(sample.records.key(i), sample.records.value(i)) for i in sample.bounds[1::2].tolist()]
    counts = Counter(markers)
    commit, abort = (b"\0\0\0\1", bytes(6)), (bytes(4), bytes(6))
    assert counts.keys() == {commit, abort}
    assert counts[abort] / len(markers) == pytest.approx(0.2, abs=0.02)
    inside = files.sample(TRANSACTIONS, 3, int(sample.bounds[2]) + 1) if sizes[2] > 1 else None
    assert inside is None or inside.batch_fields.rows["base_sequence"][0] == 1


def test_no_epoch_is_beyond_kafka_s_last(files: Files) -> None:
    text = TRANSACTIONS.replace('"uniform", low = 1, high = 20', '"fixed", value = 1')
    rows = files.sample(text, 2 * BLOCK_RECORDS).batch_fields.rows
    assert rows["producer_epoch"].max() == 32_766
    assert len(
        {*zip(rows["producer_id"].tolist(), rows["producer_epoch"].tolist(), rows["is_control"], strict=True)}
    ) == (len(rows))


SURVIVORS = BASE.replace(
    'model = "fixed"\nrecords = 100',
    'model = "survivors"\nof_records = 100\nsurvival = 0.1\ndelete_retention_ms = 1000\ncleaned_after_ms = 70',
)


def test_survivors_keep_the_offsets_of_their_batches(files: Files) -> None:
    sample = files.sample(SURVIVORS + "null_share = 0.05\n")
    offsets, rows, first = sample.shapes.offsets, sample.batch_fields.rows, sample.bounds[:-1]
    assert np.all(rows["base_offset"] % 100 == 0) and np.all(rows["last_offset"] - rows["base_offset"] == 99)
    assert np.all((rows["base_offset"] <= offsets[first]) & (offsets[sample.bounds[1:] - 1] <= rows["last_offset"]))
    assert rows["base_sequence"].tolist() == rows["base_offset"].tolist()
    has_null = np.add.reduceat(sample.shapes.value_lengths == -1, first) > 0
    last_ms = sample.shapes.timestamps_ms[sample.bounds[1:] - 1]
    assert 0.1 < has_null.mean() < 0.9
    # MemoryRecords.filterTo: deleteHorizonMs = filter.currentTime + filter.deleteRetentionMs
    assert rows["delete_horizon_ms"][:-1].tolist() == np.where(has_null, last_ms + 70 + 1000, -1)[:-1].tolist()
    cut = files.sample(SURVIVORS, 1, int(sample.bounds[1]) - 1).batch_fields.rows
    assert cut["base_offset"].tolist() == rows["base_offset"][:1].tolist()
    assert cut["base_sequence"].tolist() == rows["base_sequence"][:1].tolist()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("summary = ", r"shop-1\.toml: "),
        (BASE.replace("low = 20", 'low = "20"'), r"shop-1\.toml: .*\$\.value\.length\.low"),
        (BASE + "[variant]\nlarge = 3\n", r"shop-1\.toml: variant: "),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(files: Files, text: str, named: str) -> None:
    path = files.write(text)
    with pytest.raises(InvalidConfig, match=named):
        load(path)


def test_what_is_wrong_with_a_variant_is_said_with_its_name(files: Files) -> None:
    path = files.write(BASE + '[variant.a]\nwithout = ["header"]\n[variant.b.value]\nsize = 3\n')
    with pytest.raises(InvalidConfig, match=r"variant\.a\.without: no table 'header'"):
        load(path, "a")
    with pytest.raises(InvalidConfig, match=r"variant\.b: .*size.*\$\.value"):
        load(path, "b")
    with pytest.raises(InvalidConfig, match="cannot be read"):
        load(path.with_name("none.toml"))


def test_records_whose_times_or_offsets_no_int64_holds(files: Files) -> None:
    slow = files.write(BASE.replace("rate_per_s = 1000", "rate_per_s = 0.01"))
    last = 2**62 // (100_000_000 * BLOCK_RECORDS) * BLOCK_RECORDS
    assert sample(load(slow), records=1, seed=1, start=last - 1).shapes.timestamps_ms[0] > 2**51
    with pytest.raises(InvalidConfig, match=rf"records 2 from start {last - 1} on take .* microseconds"):
        sample(load(slow), records=2, seed=1, start=last - 1)
    with pytest.raises(InvalidConfig, match=rf"records 1 from start {2**70} on take "):
        sample(load(slow), records=1, seed=1, start=2**70)
    holes = files.write(SURVIVORS.replace("survival = 0.1", "survival = 1e-9").replace("= 1000\n[", "= 1e9\n["))
    with pytest.raises(InvalidConfig, match=r"records 1 from start 10000000000 on take .* offsets"):
        sample(load(holes), records=1, seed=1, start=10**10)


@pytest.mark.parametrize("arguments", [{"records": -1}, {"records": 1, "start": -1}, {"records": 1, "seed": -1}])
def test_negative_numbers_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig, match="must not be negative"):
        WORKLOADS[min(WORKLOADS)].generate(**{"seed": 0, **arguments})


@pytest.mark.parametrize("name", ["user-activity", "transactional", "compacted-changelog", "consumer-offsets"])
def test_the_same_records_in_other_batches(name: str) -> None:
    own = NamedWorkload(name=name).generate(records=1_000, seed=3)
    other = NamedWorkload(name=name, batch_size=10).generate(records=1_000, seed=3)
    assert other.records == own.records
    rows, sizes, first = other.batch_fields.rows, np.diff(other.bounds), other.bounds[:-1]
    assert sizes.max() == 10 and {0, *range(10, 1_000, 10)} <= {*first.tolist()}
    of_own = np.searchsorted(own.bounds, first, side="right") - 1
    before = np.broadcast_to(own.batch_fields.rows, len(own.bounds) - 1)[of_own]
    assert (sizes[rows["is_control"]] == 1).all() and rows["is_control"].sum() == before["is_control"].sum()
    for field in ("producer_id", "producer_epoch", "is_control", "is_transactional", "delete_horizon_ms"):
        assert (rows[field] == before[field]).all()
    goes_on = np.where(before["base_sequence"] < 0, -1, before["base_sequence"] + first - own.bounds[of_own])
    assert (rows["base_sequence"] == goes_on).all()
    assert (rows["base_offset"] == UNSET).all() and (rows["last_offset"] == UNSET).all()
    log = FORMATS["v2"].encode(other.records, other.bounds, batch_fields=other.batch_fields)
    assert FORMATS["v2"].decode(log).records.shapes.offsets.tolist() == own.records.offsets.tolist()
