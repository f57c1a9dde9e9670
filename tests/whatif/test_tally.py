"""A tally (sums over the parts of a source) does not depend on the order of parts.

Samples state their share, estimates state their error.
"""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pytest

from kfbench import FORMATS, Records, read_log
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.log.damage import Damage
from kfbench.sources import Chunk, Part, find
from kfbench.whatif.answer import Crossing
from kfbench.whatif.build import break_evens
from kfbench.whatif.estimate import SampleSums, StretchSums
from kfbench.whatif.question import Question
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.sums import LogSums, SampleKey
from kfbench.whatif.tally import UNIFORM_RECORDS, tally
from kfbench.workloads import WORKLOADS
from tests.recorded import FOLDER

BATCHING = Batching(50.0, 4_000)
LZ4, OTHER_LZ4 = SampleKey(None, "v2", "lz4"), SampleKey(BATCHING, "v2", "lz4")
QUESTION = Question(
    arms=(("v1", "none"), ("v2", "none"), ("v2", "lz4"), ("v3", "none"), ("v3", "lz4")),
    batchings=(BATCHING,),
    compressed_formats=("v2",),
)
NAMES = ("telemetry.log", "transactions.log", "service-headers.log")


def parts() -> list[Part]:
    return list(find([FOLDER / name for name in NAMES]).parts)


@dataclass(frozen=True)
class InMemory:
    """A part of a source whose records are in memory."""

    given: tuple[Chunk, ...]
    name: str = "memory"
    topic: str = "t"
    partition: int | None = None
    unit: str = "row"
    key: str = "memory"
    fails: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(chunk.size_bytes for chunk in self.given)

    def chunks(self) -> Iterator[Chunk]:
        yield from self.given
        if self.fails:
            raise KfbenchError(self.fails)


def chunk(records: int, at: int = 0, value_bytes: int = 200) -> Chunk:
    draws = np.random.default_rng(at)
    values = [draws.integers(97, 105, draws.integers(1, value_bytes), np.uint8).tobytes() for _ in range(records)]
    times = np.arange(at, at + records) * 20
    return Chunk(records=Records.from_lists(values, timestamps_ms=times), size_bytes=sum(map(len, values)))


def test_a_sum_does_not_depend_on_the_order() -> None:
    each = [tally(part, QUESTION) for part in parts()]
    whole = sum(each, LogSums())
    for order in permutations(each):
        found = sum(order, LogSums())
        assert replace(found, sources=()) == replace(whole, sources=())
        assert sorted(source.path for source in found.sources) == sorted(source.path for source in whole.sources)
    assert pickle.loads(pickle.dumps((QUESTION, whole))) == (QUESTION, whole)


def test_listed_damage_is_of_all_sources_whatever_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfbench.whatif.sums.MOST_DAMAGE", 5)

    def damaged(name: str, places: int) -> LogSums:
        damage = tuple(Damage(position=at, size_bytes=1, field="crc", promise="is wrong") for at in range(places))
        each = replace(chunk(1), damage=damage)
        return tally(InMemory((each,), name=name), replace(QUESTION, assumed=BATCHING))

    each = [damaged("a", 4), damaged("b", 0), damaged("c", 1), damaged("d", 9)]
    for order in permutations(each):
        sources = {source.path: source for source in sum(order, LogSums()).sources}
        listed = {name: [place.position for place in source.damage] for name, source in sources.items()}
        assert listed == {"a": [0, 1], "b": [], "c": [0], "d": [0, 1]}
        assert [sources[name].damaged_places for name in "abcd"] == [4, 0, 1, 9]


def test_shares_of_a_file_are_one_source() -> None:
    one, other = InMemory((chunk(30), chunk(20, 30))), InMemory((chunk(10, 80),), fails="memory: the disk is gone")
    question = replace(QUESTION, assumed=BATCHING)
    third = replace(other, name="other")
    for order in ((one, other, third), (other, one, third)):
        whole, second = sum((tally(part, question) for part in order), LogSums()).by_file().sources
        assert (whole.path, second.path) == ("memory", "other")
        assert (whole.records, whole.size_bytes) == (60, one.size_bytes + other.size_bytes)
        assert (whole.first_ms, whole.last_ms, whole.unreadable) == (0, 89 * 20, "the disk is gone")
        assert whole.plain_bytes == sum(tally(part, question).sources[0].plain_bytes for part in (one, other))


def test_progress_is_reported_during_reading() -> None:
    sizes: list[int] = []
    part = InMemory((chunk(30), chunk(20, 30)), fails="memory: the disk is gone")
    tally(part, replace(QUESTION, assumed=BATCHING), advance=sizes.append)
    assert sizes == [*(each.size_bytes for each in part.given), 0]


def test_sums_equal_the_sizes_of_the_logs() -> None:
    found = sum((tally(part, QUESTION) for part in parts()), LogSums())
    for fmt in (FORMATS["v1"], FORMATS["v3"]):
        logs = [read_log(FOLDER / name) for name in NAMES]
        sizes = [fmt.size(log.source_records, log.bounds, log.batch_fields) for log in logs]
        assert found.sizes()[fmt.name] == sum(int(each.sum()) for each in sizes)
        control = [int(each[log.batch_rows["is_control"]].sum()) for each, log in zip(sizes, logs, strict=True)]
        assert found.control[fmt.name] == sum(control)
        assert (sum(control) > 0) == (fmt.name == "v3")  # v1 cannot store control batches
    lz4 = [
        len(FORMATS["v2"].encode(log.source_records, log.bounds, "lz4", batch_fields=log.batch_fields).data)
        for log in (read_log(FOLDER / name) for name in ("telemetry.log", "service-headers.log"))
    ]
    two = sum((tally(part, QUESTION) for part in parts()[::2]), LogSums())
    assert two.compressed[LZ4].both.compressed == sum(lz4)
    assert two.compressed[LZ4].both.plain == two.sizes()["v2"]
    assert [key for key in two.compressed if key.batching] == [OTHER_LZ4]
    assert two.compressed[OTHER_LZ4].both.plain == two.rebatched[BATCHING, "v2"]


def test_uniform_batches_have_only_client_records() -> None:
    [part] = find([FOLDER / "transactions.log"]).parts
    found, log = tally(part, QUESTION), read_log(FOLDER / "transactions.log")
    clients = int((~np.repeat(log.batch_rows["is_control"], np.diff(log.bounds))).sum())
    assert found.uniform_records[1] == found.sent_records == clients < len(log.records)
    assert found.uniform_records[7] == clients // 7 * 7
    assert 1_000 not in found.uniform_records


def test_a_source_without_batches_gets_assumed_ones() -> None:
    part = InMemory((chunk(300), chunk(200, 300)))
    with pytest.raises(InvalidConfig, match="memory: has no batches"):
        tally(part, QUESTION)
    found = tally(part, replace(QUESTION, assumed=BATCHING))
    assert found.sizes()["v2"] == found.rebatched[BATCHING, "v2"]
    assert found.compressed[LZ4] == found.compressed[OTHER_LZ4]
    [source] = found.sources
    assert (source.records, source.batches, source.unit) == (500, found.rebatched_batches[BATCHING], "row")
    assert (source.first_ms, source.last_ms, source.kinds) == (0, 499 * 20, {})


@pytest.fixture(scope="module")
def sampled() -> list[LogSums]:
    """Return the tally of all records, and the tallies of two random samples of 30 %."""
    part = InMemory(tuple(chunk(2_000, at, 600) for at in range(0, 40_000, 2_000)))
    question = replace(QUESTION, arms=(("v2", "none"), ("v2", "lz4")), batchings=(), assumed=Batching(1_000.0, 16_384))
    return [tally(part, replace(question, share=share, seed=seed)) for share, seed in ((1.0, 0), (0.3, 1), (0.3, 2))]


def test_an_estimate_is_within_its_error(sampled: list[LogSums]) -> None:
    whole, *samples = sampled
    compressed = whole.compressed[LZ4]
    assert compressed.estimate(whole.sizes()["v2"]) == (compressed.both.compressed, 0)
    for each in samples:
        assert each.sizes() == whole.sizes()
        drawn = each.compressed[LZ4]
        assert 0 < drawn.both.plain < each.sizes()["v2"]
        size_bytes, error_bytes = drawn.estimate(each.sizes()["v2"])
        assert size_bytes is not None and error_bytes is not None and 0 < error_bytes < 0.01 * size_bytes
        assert abs(size_bytes - compressed.both.compressed) < 5 * error_bytes
    assert samples[0].compressed != samples[1].compressed


def test_one_stretch_has_no_known_error() -> None:
    assert StretchSums.of([100], [60]).estimate(1_000) == (600, None)
    assert StretchSums().estimate(1_000) == (None, None)
    two = StretchSums.of([100, 100], [60, 40])
    # 2 of 20 stretches (runs of batches) were drawn, with residuals +10 and -10: 20 * sqrt((1 - 0.1) / 2 * 200)
    assert two.estimate(2_000) == (1_000, round(20 * (0.9 / 2 * 200) ** 0.5))


def test_one_part_always_has_a_sample() -> None:
    part = InMemory((chunk(40),))
    nothing = replace(QUESTION, share=1e-12, assumed=BATCHING)
    assert not tally(part, nothing).compressed
    assert tally(part, replace(nothing, always=(part.key,))).compressed[LZ4].both.stretches == 1
    for share in (0, 1.5, float("nan")):
        with pytest.raises(InvalidConfig, match="share"):
            replace(QUESTION, share=share)


def test_break_even_by_hand() -> None:
    """A v2 batch takes 61 + 7 n bytes of overhead, v1 34 n. So v2 is smaller from 3 records per batch on."""
    records = Records.from_lists([b"a" * 20] * 60, timestamps_ms=[1_700_000_000_000] * 60)
    log = Chunk(records=records, size_bytes=1)
    found = tally(InMemory((log,)), replace(QUESTION, assumed=BATCHING))
    each = {(e.format, e.other): (e.after, e.at) for e in break_evens(found, QUESTION.formats)}
    assert each == {("v2", "v1"): (2, 3), ("v3", "v1"): (1, 2), ("v3", "v2"): (None, 1)}
    names = tuple(FORMATS)
    assert all(isinstance(e, Crossing) and e.other in ("v0", "v1", "v2") for e in break_evens(found, names))


def test_a_format_does_not_win_by_losses() -> None:
    headers = [[("trace", bytes(500))]] * 20
    records = Records.from_lists([b"a"] * 20, headers=headers)
    with_headers = tally(InMemory((Chunk(records=records, size_bytes=1),)), replace(QUESTION, assumed=BATCHING))
    assert with_headers.sizes()["v1"] < with_headers.sizes()["v2"]
    assert any(e.at and (e.format, e.other) == ("v2", "v1") for e in break_evens(with_headers, QUESTION.formats))


def test_a_stretch_that_is_always_drawn_stands_for_itself() -> None:
    """Ten small topics of 10 bytes that halve, and a large one of 1,000 bytes that does not shrink."""
    small = SampleSums(certain=StretchSums.of([10], [5]))
    large = SampleSums(random=StretchSums.of([50, 50], [50, 50]))
    total = large
    for _ in range(10):
        total = total.plus(small)
    assert total.estimate(1_100) == (1_000 + 50, 0)
    assert total.both.stretches == 12
    assert small.estimate(100) == (50, None) and small.estimate(10) == (5, 0)


def test_stretches_compressed_in_one_call_count_as_if_each_were_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfbench.whatif.tally.STRETCH_BYTES", 3_000)
    [part] = find([FOLDER / "service-headers.log"]).parts
    question = replace(QUESTION, share=0.6, seed=1, always=(part.key,))
    sums = []
    for group_stretches in (1, 3, 1000):
        monkeypatch.setattr("kfbench.whatif.tally.GROUP_STRETCHES", group_stretches)
        sums.append(tally(part, question))
    alone = sums[0]
    sample = alone.compressed[LZ4._replace(format="v3")]
    assert sample.certain.stretches == 1
    assert sample.random.stretches > 3
    assert sample.both.plain < alone.sizes()["v3"]
    assert [each.compressed for each in sums] == [alone.compressed] * 3


def test_equal_batches_are_those_of_the_first_records_of_each_chunk() -> None:
    records = WORKLOADS["user-activity"].generate(records=20_000, seed=1).records
    chunks = tuple(Chunk(records=records, size_bytes=1, bounds=np.array([0, 20_000])) for _ in range(3))
    found = tally(InMemory(chunks), replace(QUESTION, share=0.001)).uniform_records
    assert found[1] == 3 * UNIFORM_RECORDS and found[1000] == 3 * (UNIFORM_RECORDS // 1000 * 1000)
    assert tally(InMemory(chunks), QUESTION).uniform_records[1] == 60_000
