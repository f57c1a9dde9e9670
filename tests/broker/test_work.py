"""Counters of two `Work` objects add up. Losses add up by name."""

from kfbench.broker import Work
from kfbench.broker.work import COUNTERS


def test_work_adds_up() -> None:
    one = Work(untouched=1, read_bytes=10, losses={"headers": 2})
    two = Work(rewritten=2, dropped=1, read_bytes=5, written_bytes=7, losses={"headers": 1, "empty batches": 3})
    both = one + two
    assert (both.batches, both.untouched, both.rewritten, both.dropped) == (4, 1, 2, 1)
    assert (both.read_bytes, both.written_bytes) == (15, 7)
    assert both.losses == {"empty batches": 3, "headers": 3}
    assert sum((one, two), Work()) == both
    assert set(COUNTERS) | {"losses"} == set(Work.__dataclass_fields__)
