"""Every workload keeps the laws that kfbench/workloads/base.py states."""

import pickle
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest

from kfbench.workloads import BLOCK_RECORDS, WORKLOADS, Sample, Workload
from kfbench.workloads.catalogue import NamedWorkload

# Other batches: by linger, with markers in between, with gaps and delete horizons.
REBATCHED = {
    f"{name} by {size}": NamedWorkload(name=name, batch_size=size)
    for name, size in (("user-activity", 10), ("transactional", 7), ("compacted-changelog", 30))
}
EACH: Mapping[str, Workload] = {**WORKLOADS, **REBATCHED}


@pytest.fixture(params=sorted(EACH))
def workload(request: pytest.FixtureRequest) -> Workload:
    return EACH[request.param]


def joined(
    samples: list[Sample],
) -> tuple[list[bytes | None], list[bytes | None], list[object], list[int], list[int]]:
    records = [sample.records for sample in samples]
    return (
        [each.key(i) for each in records for i in range(len(each))],
        [each.value(i) for each in records for i in range(len(each))],
        [each.headers(i) for each in records for i in range(len(each))],
        [int(t) for each in records for t in each.timestamps_ms],
        [int(t) for each in records for t in each.offsets],
    )


def test_any_partitioning_gives_the_same_records(workload: Workload) -> None:
    start, records = BLOCK_RECORDS - 70, 200
    cuts = [0, 1, 64, 70, 71, 133, 200]  # one cut is at the end of a block, one right after it
    pieces = [workload.generate(records=b - a, seed=3, start=start + a) for a, b in pairwise(cuts)]
    assert joined(pieces) == joined([workload.generate(records=records, seed=3, start=start)])


def test_seeds_differ(workload: Workload) -> None:
    one, other = (joined([workload.generate(records=50, seed=seed)]) for seed in (1, 2))
    assert one != other


def test_bounds_are_the_workloads_batches_clipped_to_the_slice(workload: Workload) -> None:
    whole = workload.generate(records=1_000, seed=3).bounds
    part = workload.generate(records=500, seed=3, start=250).bounds
    assert whole[0] == 0 and whole[-1] == 1_000
    inner = whole[(whole > 250) & (whole < 750)] - 250
    assert part.tolist() == [0, *inner.tolist(), 500]


def test_batch_fields_have_one_item_or_one_a_batch(workload: Workload) -> None:
    sample = workload.generate(records=1_000, seed=3)
    assert len(sample.batch_fields.over(len(sample.bounds) - 1)) > 0


def test_shapes_come_without_payload_and_agree_with_it(workload: Workload) -> None:
    sample = workload.generate(records=500, seed=3)
    assert "records" not in sample.__dict__
    assert sample.records.shapes == sample.shapes
    values = [sample.records.value(i) for i in range(500)]
    assert [-1 if value is None else len(value) for value in values] == sample.shapes.value_lengths.tolist()


def test_nothing_is_a_workload_too(workload: Workload) -> None:
    sample = workload.generate(records=0, seed=3)
    assert len(sample.records) == 0 and sample.bounds.tolist() == [0]


def test_a_workload_is_a_value(workload: Workload) -> None:
    again = pickle.loads(pickle.dumps(workload))
    assert again == workload
    one, other = (each.generate(records=10, seed=1).records.value_data for each in (again, workload))
    assert np.array_equal(one, other)
