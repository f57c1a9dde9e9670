"""The sample that is compressed at every level is kept until all parts have been read."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kfbench import FORMATS
from kfbench.sources import find
from kfbench.whatif.estimate import Drawn
from kfbench.whatif.levels import at_levels
from kfbench.whatif.question import Question, always_drawn
from kfbench.whatif.sums import Tally
from kfbench.whatif.tally import tally
from kfbench.workloads import WORKLOADS
from tests.recorded import FOLDER

LEVELS = (("gzip", 1), ("lz4", 9), ("zstd", 3), ("zstd", 12))


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Tally:
    """The sums of two files, with about a third of their stretches."""
    sample = WORKLOADS["user-activity"].generate(records=4000, seed=1)
    log = tmp_path_factory.mktemp("orders-0") / "00000000000000000000.log"
    log.write_bytes(bytes(FORMATS["v2"].encode(sample.records, sample.bounds, "lz4")))
    parts = find([log, FOLDER / "telemetry.log"]).parts
    question = Question(
        arms=(("v2", "zstd"),), share=0.1, levels=LEVELS, level_share=0.3, always=always_drawn(parts, 1)
    )
    return sum((tally(part, question) for part in parts), Tally())


def test_each_stretch_counts_at_each_level(sums: Tally) -> None:
    found = at_levels(sums, LEVELS)
    assert len(sums.level_stretches) > 2 and not found.level_stretches and tuple(found.levels) == LEVELS
    for codec, level in LEVELS:
        expected = Drawn()
        for records, bounds, fields in sums.level_stretches:
            default, coded = (
                len(FORMATS["v2"].encode(records, bounds, codec, each, fields).data) for each in (None, level)
            )
            expected = expected.plus(Drawn.of(default, coded))
        assert found.levels[codec, level] == expected and found.level_cpu_ns[codec, level] > 0
    sizes = [int(FORMATS["v2"].size(*each).sum()) for each in sums.level_stretches]
    assert found.level_plain_bytes == sum(sizes)


def test_threads_and_pickled_stretches_give_the_same(sums: Tally) -> None:
    """Tasks of a cluster send pickled stretches."""
    with ThreadPoolExecutor(2) as threads:
        assert at_levels(pickle.loads(pickle.dumps(sums)), LEVELS, threads.map) == at_levels(sums, LEVELS)


def test_stretches_do_not_keep_other_records_in_memory(sums: Tally) -> None:
    for records, _, _ in sums.level_stretches:
        owned: list[Any] = [column if column.base is None else column.base for column in records.columns]
        assert sum(each.nbytes for each in owned) < 200 * len(records) + (64 << 10)


def test_nothing_is_compressed_without_stretches() -> None:
    assert at_levels(Tally(), LEVELS) == Tally()
