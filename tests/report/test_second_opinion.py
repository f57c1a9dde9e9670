"""The ratios of the Java implementation stand next to ours, and differences are named."""

from pathlib import Path

import pytest

from kfbench.report.topics import published_iteration, second_opinion
from kfbench.report.topics.published_iteration import PUBLISHED
from kfbench.report.topics.second_opinion import JavaRun, SecondOpinion
from tests.report.columns import some
from tests.report.second_opinion_file import JAVA, KERNELS, run, write


def claimed(found: SecondOpinion) -> JavaRun:
    assert found.claimed
    return found.claimed


def test_a_ratio_is_to_v2_in_the_same_code(tmp_path: Path) -> None:
    (v3,) = claimed(write(tmp_path)).of("v3", "write")
    assert (v3.java.median, v3.to_kafka.median, v3.ours.median) == pytest.approx((0.9, 90 / 80, 1.1), rel=0.03)
    assert v3.java.low < v3.java.median < v3.java.high


def test_a_slow_round_of_all_formats_changes_no_ratio(tmp_path: Path) -> None:
    slow = run(spread=0.0)
    for row in slow["rows"]:
        row["fork_ns"][3] *= 2
    (v3,) = claimed(write(tmp_path, slow)).of("v3", "write")
    assert (v3.java.low, v3.java.median, v3.java.high) == pytest.approx((0.9, 0.9, 0.9)) and not v3.is_noisy


@pytest.mark.parametrize(
    ("java", "ours", "spread", "word"),
    [
        ({"v3": 70.0}, 900, 0.01, "agree"),
        ({"v3": 120.0}, 1100, 0.01, "agree"),
        ({"v3": 70.0}, 1100, 0.01, "differ"),
        ({"v3": 90.0}, 900, 0.01, "undecided"),  # cheaper than v2 in the same code, dearer than Kafka's own
        ({"v3": 70.0}, 1100, 0.3, "undecided"),
        ({"v3": 70.0}, 1000, 0.01, "undecided"),
    ],
)
def test_a_verdict_needs_intervals_and_both_bases(
    java: dict[str, float], ours: int, spread: float, word: str, tmp_path: Path
) -> None:
    given = run(java={**JAVA, **java}, kernels={**KERNELS, "v3": ours}, spread=spread)
    assert {ratio.word for ratio in claimed(write(tmp_path, given)).of("v3", "write")} == {word}


def test_v2_against_itself_is_given_for_both_sides(tmp_path: Path) -> None:
    found = claimed(write(tmp_path, run(spread=0.0)))
    assert found.java_again == pytest.approx([1.02, 1.02])
    assert found.our_again == [1.0, 1.0]


def test_only_cells_of_several_jvms_have_verdicts(tmp_path: Path) -> None:
    found = write(tmp_path, run(), run(cells="all", operations=("write", "iterate", "skim")))
    assert len(second_opinion.claimed_table(claimed(found)).rows) == 2 * 3
    assert found.every and len(second_opinion.ranges_table(found.every).rows) == 3 * 3
    assert write(tmp_path, run(cells="all")).claimed is None


def test_only_the_newest_kafka_is_shown(tmp_path: Path) -> None:
    found = claimed(write(tmp_path, run(kafka="4.10.0", spread=0.0), run(kafka="4.9.1", java={**JAVA, "v3": 300.0})))
    assert found.kafka == "4.10.0"
    assert [ratio.java.median for ratio in found.of("v3", "write")] == pytest.approx([0.9])


def test_differing_operations_have_a_reason(tmp_path: Path) -> None:
    table = some(second_opinion.reasons_table(claimed(write(tmp_path, run(java={**JAVA, "v3": 70.0})))))
    assert [row[:2] for row in table.rows] == [("write", 1), ("iterate", 1)]
    assert second_opinion.reasons_table(claimed(write(tmp_path, run(kernels={**KERNELS, "v3": 900})))) is None


def test_a_file_without_runs_has_no_opinion(tmp_path: Path) -> None:
    path = tmp_path / "jmh.json"
    path.write_text('{"runs": []}')
    second_opinion.load.cache_clear()
    assert second_opinion.load(path) is second_opinion.load(tmp_path / "absent.json") is None


def test_the_stored_bytes_per_batch_are_the_published_ones_within_5_percent() -> None:
    found = published_iteration.load()
    assert found and {(row.codec, row.reading) for row in found.rows} == set(PUBLISHED)
    assert found.largest_difference <= 0.05
