"""CPU timing: samples are paired by round, only the call is timed, and equal code gives a ratio of 1."""

import gc
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, bootstrap

from kfbench.arrays import Bytes
from kfbench.formats import FORMATS, Format
from kfbench.measure.cpu import (
    LEAST_WARM_UP_CALLS,
    MAX_INNER_LOOPS,
    MOST_WARM_UP_CALLS,
    OPERATIONS,
    Arm,
    CallTimes,
    measure,
    paired_ratio,
    warm_up,
)
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.format_arms import prepare
from kfbench.measure.verify import Unverified
from kfbench.workloads import Sample
from kfbench.workloads.grid import GridPoint

ROUNDS = 8


def busy(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def arm(call: object, before: object = lambda: None) -> Arm:
    return Arm(call=call, before=before)  # type: ignore[arg-type]


def prepared(names: list[str], operation: str, sample: Sample, codec: str = "none") -> list[Arm]:
    formats = [FORMATS[name] for name in names]
    logs = [fmt.encode(sample.records, sample.bounds, codec).data for fmt in formats]
    source = EncodeInput(records=sample.records, bounds=sample.bounds, codec=codec)
    return prepare(formats, logs, operation, source)  # type: ignore[arg-type]


@pytest.mark.parametrize("operation", ["decode-metadata", "read-times", "fetch-record"])
def test_what_a_reader_is_given_is_compared_with_what_decode_gives(
    monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    sample = GridPoint(batch_size=10, null_share=0.3, timestamp_spread_ms=50).generate(records=100, seed=1)
    names = ["v2", "v3", "columnar"]
    for each in prepared(names, operation, sample):
        warm_up(each)
    other = GridPoint(batch_size=10, null_share=0.3, timestamp_spread_ms=40).generate(records=100, seed=2)
    for name, each in zip(names, prepared(names, operation, sample), strict=True):
        each.before()
        decoded = FORMATS[name].decode(FORMATS[name].encode(other.records, other.bounds))
        with monkeypatch.context() as patched:
            patched.setattr(Format, "decode", lambda *_, decoded=decoded: decoded)
            with pytest.raises(Unverified, match=f"{name}: .* differ from the decoded ones"):
                each.verify()


def test_cpu_time_is_not_wall_time() -> None:
    work, sleep = measure([arm(lambda: busy(0.002)), arm(lambda: time.sleep(0.004))], 0, ROUNDS, 1)
    assert work.inner_loops == 1 and len(work.cpu_ns) == len(work.wall_ns) == ROUNDS
    assert np.all(work.cpu_ns >= 2_000_000)
    assert np.median(sleep.cpu_ns) < 1_000_000 and np.all(sleep.wall_ns >= 4_000_000)


@pytest.mark.parametrize(("call_ns", "loops"), [(500_000, 10), (499_999, 11), (5_000_001, 1), (1, MAX_INNER_LOOPS)])
def test_samples_are_integers_and_loops_fill_the_time_asked_for(
    monkeypatch: pytest.MonkeyPatch, call_ns: int, loops: int
) -> None:
    """A simulated clock moves only during calls, and the first call takes ten times as long.

    Loops per sample fill the wanted time.
    """
    ns = {"cpu": 0, "wall": 0}
    clock = SimpleNamespace(thread_time_ns=lambda: ns["cpu"], perf_counter_ns=lambda: ns["wall"])
    monkeypatch.setattr("kfbench.measure.cpu.time", clock)

    def call() -> None:
        took = call_ns if ns["cpu"] else 10 * call_ns
        ns["cpu"] += took
        ns["wall"] += took

    (samples,) = measure([arm(call)], 0, ROUNDS, 5_000_000)
    assert samples.cpu_ns.dtype == samples.wall_ns.dtype == np.int64
    assert samples.inner_loops == loops
    assert samples.cpu_ns.tolist() == samples.wall_ns.tolist() == [call_ns * loops] * ROUNDS


def test_every_round_has_every_arm_once_in_a_fresh_order() -> None:
    calls: list[int] = []
    arms = [arm(lambda i=i: calls.append(i)) for i in range(4)]
    measure(arms, 0, ROUNDS, 1)
    once, calls[:] = list(calls), []
    measure(arms, 0, ROUNDS, 1)
    assert calls != once  # measurements in the same order would share its error
    rounds = np.array(calls).reshape(ROUNDS + 1, 4)  # the first round is not counted
    assert [sorted(each) for each in rounds.tolist()] == [[0, 1, 2, 3]] * (ROUNDS + 1)
    assert len({tuple(each) for each in rounds.tolist()}) > ROUNDS / 2


def test_the_first_time_that_arms_meet_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    ns, called = [0], [0]
    clock = SimpleNamespace(thread_time_ns=lambda: ns[0], perf_counter_ns=lambda: ns[0])
    monkeypatch.setattr("kfbench.measure.cpu.time", clock)

    def call() -> None:
        called[0] += 1
        ns[0] += 1_000 if called[0] <= 3 else 100  # one uncounted call for each of three arms

    found = measure([arm(call) for _ in range(3)], 0, ROUNDS, 1)
    assert [each.cpu_ns.tolist() for each in found] == [[100] * ROUNDS] * 3


@pytest.mark.parametrize(
    ("times", "calls"),
    [
        ([5, 5, 5], LEAST_WARM_UP_CALLS),
        ([9, 5, 5, 5, 5], 4),  # the first call was slow; the next two got no faster
        ([9, 8, 7, 6, 5, 5, 5], 7),
        ([9, 5, 5, 3, 3, 3, 3], 6),  # gets faster once more, just before the warm-up would end
        ([*range(60, 0, -1)], MOST_WARM_UP_CALLS),  # never stops getting faster, so the limit ends the warm-up
        ([1500, 1000, 100, 100], LEAST_WARM_UP_CALLS),  # these calls take too long for more of them
    ],
)
def test_warm_up_ends_when_calls_get_no_faster(monkeypatch: pytest.MonkeyPatch, times: list[int], calls: int) -> None:
    done: list[int] = []
    left = iter(times)
    monkeypatch.setattr("kfbench.measure.cpu.timed", lambda call, loops, clock: CallTimes(next(left) * 100_000, call()))
    assert warm_up(arm(lambda: done.append(1))) == len(done) == calls


def test_what_comes_before_a_sample_is_not_timed() -> None:
    (samples,) = measure([arm(lambda: None, before=lambda: busy(0.002))], 0, ROUNDS, 1)
    assert np.all(samples.cpu_ns < 2_000_000)


def test_no_garbage_is_collected_while_it_runs() -> None:
    seen: set[bool] = set()
    measure([arm(lambda: seen.add(gc.isenabled()))], 0, 2, 1)
    assert seen == {False}
    assert gc.isenabled()

    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure([arm(broken)], 0, 2, 1)
    assert gc.isenabled()


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_prepared_arms_do_the_work_in_one_buffer(operation: str, codec: str) -> None:
    sample = GridPoint().generate(records=300, seed=1)
    names = ["v2", "v3", "v2"]
    buffers: list[Bytes] = []
    for fmt, each in zip(map(FORMATS.__getitem__, names), prepared(names, operation, sample, codec), strict=True):
        warm_up(each)
        each.before()
        done = each.call()
        if operation == "encode":
            assert bytes(done) == bytes(fmt.encode(sample.records, sample.bounds, codec))  # type: ignore[call-overload]
            buffers.append(done.data)  # type: ignore[attr-defined]
        else:
            assert done.records == sample.records  # type: ignore[attr-defined]
            if codec == "none":
                buffers.append(done.records.value_data)  # type: ignore[attr-defined]
    assert len({each.__array_interface__["data"][0] for each in buffers}) <= 1


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("at", [0, -1])
def test_what_is_timed_writes_the_bytes_that_were_verified(codec: str, at: int) -> None:
    """The timed call must write the verified bytes. One different byte, or a missing one, raises Unverified."""
    sample = GridPoint().generate(records=300, seed=1)
    v2 = FORMATS["v2"]
    source = EncodeInput(records=sample.records, bounds=sample.bounds, codec=codec)
    log = source.encode(v2).data
    other = log.copy()
    other[at] ^= 1
    for logs in ([log, other], [log, log[:-1]]):
        sound, different = prepare([v2, v2], logs, "encode", source)
        warm_up(sound)
        with pytest.raises(Unverified, match="wrote other bytes than were verified"):
            warm_up(different)


def test_a_call_that_does_not_write_its_buffer_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call wrote elsewhere, and its buffer still has the right bytes from the previous call. This is found."""
    sample = GridPoint().generate(records=300, seed=1)
    encode, writes_elsewhere = type(FORMATS["v2"]).encode, False

    def patched(*given: Any, **options: Any) -> Any:
        return encode(*given, **options | ({"out": np.empty_like(options["out"])} if writes_elsewhere else {}))

    monkeypatch.setattr(type(FORMATS["v2"]), "encode", patched)
    first, second = prepared(["v2", "v2"], "encode", sample)
    warm_up(first)
    writes_elsewhere = True
    with pytest.raises(Unverified, match="wrote other bytes"):
        warm_up(second)


def test_decode_must_not_change_what_it_reads() -> None:
    (each,) = prepared(["v2"], "decode", GridPoint().generate(records=300, seed=1))
    each.before()
    each.verify()
    each.call().records.value_data.base[70] ^= 1  # type: ignore[attr-defined]
    with pytest.raises(Unverified, match="decode changed the bytes"):
        each.verify()


def test_paired_ratio_cancels_what_a_round_has_in_common() -> None:
    random = np.random.default_rng(5)
    drift = random.uniform(1, 3, 41)
    base = (1e6 * drift).astype(np.int64)
    median, low, high = paired_ratio((1.2e6 * drift).astype(np.int64), base, seed=1)
    assert median == pytest.approx(1.2, rel=1e-5) and low == pytest.approx(1.2, rel=1e-5)
    assert low <= median <= high
    unpaired = np.median(random.permutation(1.2e6 * drift) / base)
    assert abs(unpaired - 1.2) > 0.01


@pytest.mark.parametrize("rounds", [5, 7, 11, 19, 49])
def test_interval_is_what_scipys_bootstrap_comes_to(rounds: int) -> None:
    """Our interval ends equal those of scipy's bootstrap with many resamples, or a neighbouring sorted ratio."""
    random = np.random.default_rng(rounds)
    for _ in range(3):
        ratios = np.sort(random.lognormal(0, 0.1, rounds))
        found = bootstrap((ratios,), np.median, method="percentile", n_resamples=20_000, rng=random).confidence_interval
        median, *ends = paired_ratio(ratios, np.ones(rounds))
        assert median == np.median(ratios)
        for end, scipys in zip(ends, found, strict=True):
            at = int(np.searchsorted(ratios, end))
            assert ratios[max(at - 1, 0)] <= scipys <= ratios[min(at + 1, rounds - 1)]


@pytest.mark.parametrize(("rounds", "low", "high", "percent"), [(9, 2, 8, 96.1), (19, 6, 14, 93.6), (67, 26, 42, 95.0)])
def test_the_ends_are_the_ranks_of_the_methodology(rounds: int, low: int, high: int, percent: float) -> None:
    """The interval runs from the `low`-th to the `high`-th sorted ratio, as docs/methodology.md says.

    By the binomial distribution it contains the true median in `percent` % of cases.
    """
    assert paired_ratio(np.arange(1, rounds + 1), np.ones(rounds)) == ((rounds + 1) // 2, low, high)
    held = binom.cdf(high - 1, rounds, 0.5) - binom.cdf(low - 1, rounds, 0.5)
    assert round(100 * float(held), 1) == percent


def test_an_even_number_of_rounds_is_resampled_as_scipy_does() -> None:
    ratios = np.sort(np.random.default_rng(2).lognormal(0, 0.1, 20))
    found = bootstrap((ratios,), np.median, method="percentile", n_resamples=2_000, rng=np.random.default_rng(6))
    assert paired_ratio(ratios, np.ones(20), seed=6)[1:] == pytest.approx(tuple(found.confidence_interval), rel=1e-12)


def test_same_code_twice_reads_one() -> None:
    sample = GridPoint().generate(records=2_000, seed=1)
    arms = prepared(["v2", "v2"], "encode", sample)
    for each in arms:
        warm_up(each)
    base, again = measure(arms, 0, 301, 300_000)  # many ns per sample, because other tests run at the same time
    median, _, _ = paired_ratio(again.cpu_ns, base.cpu_ns, seed=1)
    assert median == pytest.approx(1.0, abs=0.1)
