"""The sample for levels has pieces of each large topic. Its error holds the truth, and `best` does not hang on luck."""

import pickle
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit

from kfbench import FORMATS, read_log
from kfbench.sources import find
from kfbench.whatif import ask, stretches
from kfbench.whatif.ask import what_if
from kfbench.whatif.estimate import ONE_SIGMA, Estimate, Stratum, StretchSums, ratio_of, student_factor
from kfbench.whatif.question import OTHER_TOPICS, Question, stretch_shares
from kfbench.whatif.stretches import LevelSums, at_levels
from kfbench.whatif.summary import best_choice
from kfbench.whatif.sums import LogSums
from kfbench.whatif.tally import tally
from tests.recorded import FOLDER

LEVELS = (("gzip", 1), ("lz4", 9), ("zstd", 3), ("zstd", 12))
PARTITIONS = ("activity-none", "activity-zstd", "telemetry", "append-time")


def copied(folder: Path, names: dict[str, str]) -> Path:
    """Copy recorded logs to partition folders of these names."""
    for partition, name in names.items():
        (folder / partition).mkdir(parents=True)
        (folder / partition / f"{0:020d}.log").write_bytes((FOLDER / f"{name}.log").read_bytes())
    return folder


@pytest.fixture(scope="module")
def question() -> Question:
    return Question(arms=(("v2", "zstd"),), levels=LEVELS, stretch_shares={OTHER_TOPICS: 1.0})


@pytest.fixture(scope="module")
def sums(question: Question, tmp_path_factory: pytest.TempPathFactory) -> LogSums:
    """The sums of four topics. One has control batches, one has tagged fields in its source, one has headers."""
    names = ("transactions", "service-headers", "telemetry", "activity-gzip")
    root = copied(tmp_path_factory.mktemp("topics"), {f"{name}-0": name for name in names})
    return sum((tally(part, question) for part in find([root]).parts), LogSums())


def test_a_whole_log_has_the_bytes_of_its_encodings(
    sums: LogSums, question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stretches, "LEVEL_BYTES", 1 << 30)
    found = at_levels(sums.stretches, question)
    for topic in ("transactions", "service-headers", "telemetry", "activity-gzip"):
        log = read_log(FOLDER / f"{topic}.log")
        sizes = FORMATS["v2"].size(log.source_records, log.bounds, log.batch_fields)
        assert found.plain_bytes[topic] == sums.by_topic[topic].sizes()["v2"]
        for codec, level in LEVELS:
            drawn = found.stretches[topic, codec, level]
            for size_bytes, each in ((drawn.plain, None), (drawn.compressed, level)):
                encoded = FORMATS["v2"].encode(log.source_records, log.bounds, codec, each, log.batch_fields)
                assert size_bytes == np.where(log.batch_rows["is_control"], sizes, np.diff(encoded.positions)).sum()
            assert found.cpu_ns[codec, level] > 0


def test_the_sample_is_divided_among_topics(sums: LogSums, question: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "LEVEL_BYTES", 100_000)
    shares = dict.fromkeys(sums.by_topic, 1.0)
    found = at_levels(sums.stretches, replace(question, stretch_shares=shares)).plain_bytes
    plain = {topic: each.sizes()["v2"] for topic, each in sums.by_topic.items()}
    whole = {topic for topic in plain if found[topic] == plain[topic]}
    assert 0 < len(whole) < 4 and max(plain[topic] for topic in whole) < 30_000
    rest = [found[topic] for topic in plain.keys() - whole]
    assert max(rest) - min(rest) < 8_192 and 100_000 <= sum(found.values()) < 108_192


def test_a_topic_of_large_batches_has_two_pieces(question: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "LEVEL_BYTES", 1)
    parts = find([FOLDER / "activity-none.log", FOLDER / "service-headers.log"]).parts
    wanted = replace(question, stretch_shares=stretch_shares(parts, 1 << 30))
    found = at_levels(sum((tally(part, wanted) for part in parts), LogSums()).stretches, wanted)
    assert [drawn.stretches for (_, *pair), drawn in found.stretches.items() if pair == ["zstd", 12]] == [2, 2]


def test_threads_order_and_pickled_stretches_change_nothing(
    sums: LogSums, question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks of a cluster send pickled stretches, and end in any order."""
    monkeypatch.setattr(stretches, "LEVEL_BYTES", 100_000)
    expected = at_levels(sums.stretches, question)
    assert 0 < expected.plain_bytes.total() < sums.sizes()["v2"]
    with ThreadPoolExecutor(2) as threads:
        found = at_levels(pickle.loads(pickle.dumps(sums)).stretches[::-1], question, threads.map)
    assert found == expected


def test_nothing_is_compressed_without_stretches_or_levels(sums: LogSums, question: Question) -> None:
    assert at_levels((), question) == at_levels(sums.stretches, replace(question, levels=())) == LevelSums()


@pytest.fixture(scope="module", params=[True, False], ids=["topics", "partitions"])
def four(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four recorded logs, as a topic each and as partitions of one topic."""
    names = {f"{name}-0" if request.param else f"t-{i}": name for i, name in enumerate(PARTITIONS)}
    return copied(tmp_path_factory.mktemp("four"), names)


@pytest.mark.slow
def test_the_error_holds_the_truth_and_best_is_the_same(four: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error holds the truth in about two of three samples, twice the error in about nine of ten."""
    monkeypatch.setattr(ask, "LEVELS", {"gzip": (1, 3, 6, 9), "lz4": (1, 9)})
    with monkeypatch.context() as patch:
        patch.setattr(stretches, "LEVEL_BYTES", 1 << 30)
        whole = what_if(four, ["v2"], ["gzip", "lz4"], batchings=[])
    assert {each.error_bytes for each in whole.levels} == {0}
    truth = {(each.codec, each.level): each.size_bytes or 0 for each in whole.levels}
    times: list[float] = []
    for seed in range(50):
        found = what_if(four, ["v2"], ["gzip", "lz4"], batchings=[], seed=seed)
        assert best_choice(found).codec == best_choice(whole).codec
        for each in (each for each in found.levels if not each.is_default):
            assert each.size_bytes is not None and each.error_bytes
            assert each.error_bytes < 0.005 * each.size_bytes
            times.append(abs(each.size_bytes - truth[each.codec, each.level]) / each.error_bytes)
    assert np.mean(np.array(times) <= 1) > 0.5 and np.mean(np.array(times) <= 2) > 0.85


def test_an_error_is_wider_for_few_stretches() -> None:
    """Two strata: 1,000 bytes of which two of 20 stretches were drawn, and 500 that were all drawn."""
    drawn, whole = StretchSums.of([50, 50], [40, 20]), StretchSums.of([500], [250])
    exact = Stratum(Estimate(500, 0), whole, 1.0)
    assert ratio_of([exact]) == (0.5, 0.0)
    ratio, error = ratio_of([exact, Stratum(Estimate(1_000, 0), drawn, 0.1)])
    # Residuals of +10 and -10: sqrt(0.9 / 1 * 2 * 200) / 100 = 0.19. Student's factor for one degree of freedom: 1.84.
    assert ratio == pytest.approx((250 + 600) / 1_500)
    assert error == pytest.approx(1.8373 * 0.18974 * 1_000 / 1_500, rel=1e-3)


@pytest.mark.parametrize("freedom", [range(1, 2_001), np.geomspace(1, 1e12, 500)], ids=["whole", "any"])
def test_the_factor_for_few_stretches_is_scipys(freedom: Iterable[float]) -> None:
    factors = [student_factor(each) for each in freedom]
    assert factors == pytest.approx(stdtrit([*freedom], ONE_SIGMA), rel=1e-11)


def test_a_stratum_of_one_stretch_varies_as_all_do() -> None:
    one, few = Stratum(Estimate(1_000, 0), StretchSums.of([50], [40]), 0.05), StretchSums.of([50, 50], [40, 20])
    assert ratio_of([one]) == (0.8, None)
    ratio, error = ratio_of([one, Stratum(Estimate(100, 0), few, 1.0)])
    assert ratio == pytest.approx((800 + 60) / 1_100)
    # All three: ratio 2/3, residuals 20/3, 20/3 and -40/3; one stretch: sqrt(0.95 * 3 / 2 * 266.7 * 3) / 150 = 0.2251.
    assert error == pytest.approx(1.3213 * 0.22509 * 1_000 / 1_100, rel=1e-3)
    no_stretch = Stratum(Estimate(1_000, 0), StretchSums(), 0.0)
    assert ratio_of([no_stretch, Stratum(Estimate(100, 0), few, 1.0)])[0] == pytest.approx(0.6)


def test_the_error_of_a_topics_size_counts_where_topics_differ() -> None:
    halves, stays = StretchSums.of([500], [250]), StretchSums.of([500], [500])
    strata = [Stratum(Estimate(500, 40), halves, 1.0), Stratum(Estimate(500, 0), stays, 1.0)]
    ratio, error = ratio_of(strata)
    assert ratio == 0.75 and error == pytest.approx(40 / 1_000 * 0.25)
