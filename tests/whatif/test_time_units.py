"""Timestamps in s, ms, µs and ns: the same times give the same batches. An unknown unit gives none."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, Records, read_log
from kfbench.errors import UnknownTimeUnit
from kfbench.fingerprint.measure import fingerprint
from kfbench.sources import Columns
from kfbench.sources.time_columns import UNITS, Unit, to_ms
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import what_if
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.record_times import TimeUnits, TopicUnit
from tests.strategies import NOW_MS

BATCHINGS: Final = (Batching(5, 16_384), Batching(2_000, 200), Batching(30_000, 1 << 20))
SECONDS: Final = [1_700_000_000 + t for t in accumulate([0, 0, 1, 30, 2, 2, 7, 90, 0, 1] * 30)]
MILLISECONDS: Final = [NOW_MS + t for t in accumulate([0, 3, 1, 40, 2, 2, 7, 90_000, 0, 11] * 30)]
COUNTERS: Final = list(range(1_000, 1_300))
MIXTURE: Final = [*MILLISECONDS[:290], *(t * 1000 for t in MILLISECONDS[290:])]
COLUMNS: Final = Columns(value="v", timestamp="t")


def in_unit(times_ms: Sequence[int], unit: Unit) -> list[int]:
    return [t * UNITS[unit] // 1000 for t in times_ms]


def log(path: Path, times: Sequence[int], name: str = "v2") -> Path:
    path.parent.mkdir(exist_ok=True)
    records = Records.from_lists([b"value %d" % (i % 10) for i in range(len(times))], timestamps_ms=times)
    path.write_bytes(bytes(FORMATS[name].encode(records, 1)))
    return path


def csv(path: Path, times: Sequence[object]) -> Path:
    path.write_text("v,t\n" + "".join(f"value {i % 10},{t}\n" for i, t in enumerate(times)))
    return path


def asked(paths: Any, **options: Any) -> WhatIf:
    is_table = not isinstance(paths, list) and paths.suffix in (".csv", ".jsonl", ".parquet")
    columns = {"columns": COLUMNS} if is_table else {}
    return what_if(paths, ["v2"], ["none"], **{"batchings": BATCHINGS} | columns | options)


def batches(answer: WhatIf, least_ms: float = 0) -> list[int | None]:
    return [arm.batches for arm in answer.rebatched if arm.batching and arm.batching.linger_ms >= least_ms]


@pytest.mark.parametrize("name", ["v1", "v2", "v3", "columnar"])
@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit != "ms"])
def test_a_log_in_another_unit_gets_the_same_batches(tmp_path: Path, name: str, unit: Unit) -> None:
    times_ms = [1000 * t for t in SECONDS] if unit == "s" else MILLISECONDS
    usual = asked(log(tmp_path / "ms.log", times_ms, name))
    path = log(tmp_path / "other.log", in_unit(times_ms, unit), name)
    for found in (asked(path), asked(path, timestamp_unit=unit)):
        assert batches(found) == batches(usual, 1_000 if unit == "s" else 0)  # seconds tell no shorter linger
        assert len({*batches(found)}) == (2 if unit == "s" else 3)
        [source], [same] = found.sources, usual.sources
        assert (source.first_ms, source.last_ms) == (same.first_ms, same.last_ms) == (times_ms[0], times_ms[-1])
        assert source.sound_bytes == path.stat().st_size
        decoded = read_log(path)
        rows = decoded.source_records, decoded.bounds, decoded.batch_fields
        assert found.size("v2", "none") == int(FORMATS["v2"].size(*rows).sum())
        assert found.rate is not None and usual.rate is not None
        share = found.rate.bytes_a_day / usual.rate.bytes_a_day
        assert share == pytest.approx(found.base_bytes / usual.base_bytes)
    units = [asked(path).to_dict(), asked(path, timestamp_unit=unit).to_dict(), usual.to_dict()]
    known = [(each["timestamp_unit"], each["timestamp_unit_from"]) for each in units]
    assert known == [(unit, "values"), (unit, "option"), ("ms", "values")]


GAPS_MS = st.lists(st.sampled_from([0, 1, 4, 5, 6, 300]), min_size=9, max_size=60)


@given(GAPS_MS, st.sampled_from(["us", "ns"]), st.integers(0, 999), st.sampled_from([0, 5, 20]))
def test_any_gaps_give_the_same_batches(
    tmp_path_factory: pytest.TempPathFactory, gaps_ms: list[int], unit: Unit, rest: int, linger_ms: int
) -> None:
    """A fraction of a ms is cut off, as by a clock of ms."""
    folder, times_ms = tmp_path_factory.mktemp("gaps"), [NOW_MS + t for t in accumulate(gaps_ms)]
    finer = [t + rest for t in in_unit(times_ms, unit)]
    batchings = [Batching(linger_ms, 500), Batching(linger_ms, 1 << 20)]
    usual = asked(log(folder / "ms.log", times_ms), batchings=batchings)
    assert batches(asked(log(folder / "other.log", finer), batchings=batchings)) == batches(usual)
    table = asked(csv(folder / "other.csv", finer), batchings=batchings)
    in_ms = asked(csv(folder / "ms.csv", times_ms), batchings=batchings)
    assert [each.size_bytes for each in table.rebatched] == [each.size_bytes for each in in_ms.rebatched]
    assert batches(table) == batches(usual)


def written(path: Path, times: pa.Array) -> Path:
    values = [f"value {i % 10}" for i in range(len(times))]
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"v": values, "t": times}), path)
    elif path.suffix == ".csv":
        csv(path, times.to_pylist())
    else:
        rows = zip(values, times.to_pylist(), strict=True)
        path.write_text("".join(json.dumps({"v": v, "t": t}, default=str) + "\n" for v, t in rows))
    return path


COLUMN_TYPES: Final[dict[str, pa.Array]] = {
    **{unit: pa.array(in_unit([1000 * t for t in SECONDS], unit)) for unit in UNITS},
    **{f"float {unit}": pa.array([float(t) for t in in_unit([1000 * t for t in SECONDS], unit)]) for unit in UNITS},
    **{f"text {unit}": pa.array([f"{t}.0" for t in in_unit([1000 * t for t in SECONDS], unit)]) for unit in UNITS},
    "exponent": pa.array([f"{t / 1e9:.9f}E12" for t in SECONDS]),
    "decimal": pa.array([Decimal(t) * 1000 for t in SECONDS], pa.decimal128(38, 0)),
    "decimal of seconds": pa.array([Decimal(t) for t in SECONDS], pa.decimal256(60, 6)),
    "unsigned": pa.array(SECONDS, pa.uint64()),
    "small integers": pa.array(SECONDS, pa.uint32()),
    "dictionary": pa.array(SECONDS).dictionary_encode(),
    "text view": pa.array([str(1000 * t) for t in SECONDS], pa.string_view()),
    "UTC": pa.array([f"{np.datetime64(t, 's')}".replace("T", " ") + " UTC" for t in SECONDS]),
    "Z": pa.array([f"{np.datetime64(t, 's')}.{'0' * (i % 13 + 1)}Z" for i, t in enumerate(SECONDS)]),
    "zone": pa.array([f"{np.datetime64(t + 3600, 's')}+0100" for t in SECONDS]),
    "basic": pa.array([f"{np.datetime64(t, 's')}Z".replace("-", "").replace(":", "") for t in SECONDS]),
    **{
        f"timestamp[{unit}]": pa.array(in_unit([1000 * t for t in SECONDS], unit)).cast(pa.timestamp(unit, zone))
        for unit, zone in zip(UNITS, ("UTC", None, "Asia/Tokyo", None), strict=True)
    },
}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("column", COLUMN_TYPES)
def test_the_same_time_in_every_column_and_table(tmp_path: Path, suffix: str, column: str) -> None:
    usual = asked(written(tmp_path / "usual.parquet", pa.array(SECONDS).cast(pa.timestamp("s"))))
    found = asked(written(tmp_path / f"t{suffix}", COLUMN_TYPES[column]))
    assert found.records == len(SECONDS) and not found.sources[0].damage
    assert (found.sources[0].first_ms, found.sources[0].last_ms) == (1000 * SECONDS[0], 1000 * SECONDS[-1])
    assert [asdict(arm) for arm in (*found.arms, *found.rebatched)] == [
        asdict(arm) for arm in (*usual.arms, *usual.rebatched)
    ]
    assert usual.timestamp_unit is None


TICKS: Final = [(t + 62_135_596_800_000) * 10_000 for t in MILLISECONDS]  # 100 ns since the year 1, as in .NET
DIGITS: Final = [20_260_131_120_000 + i for i in range(60)]  # YYYYMMDDhhmmss


@pytest.mark.parametrize(("zeros", "is_known"), [(0, True), (100, True), (101, False)])
def test_at_most_a_tenth_may_be_zeros(zeros: int, is_known: bool) -> None:
    times = np.array([0] * zeros + [NOW_MS] * 900)
    assert (TimeUnits.of(times).doubt is None) == is_known


def test_counters_among_dates_tell_no_unit() -> None:
    units = TimeUnits.of(np.array([0, 7])).plus(TimeUnits(in_ms=300))
    assert TopicUnit.of(units, None) == TopicUnit()


@pytest.mark.parametrize(
    "times",
    [COUNTERS, MIXTURE, TICKS, DIGITS, [0] * 50, [i - NOW_MS for i in range(50)], [0] * 40 + MILLISECONDS],
    ids=["counters", "mixture", "ticks", "digits", "zeros", "negative", "some zeros"],
)
def test_a_log_of_unknown_unit_gets_no_other_batches(tmp_path: Path, times: list[int]) -> None:
    path = log(tmp_path / "t.log", times)
    found = asked(path)
    assert found.rebatched == () and found.rate is None and found.timestamp_unit is None
    assert found.size("v2", "none") == path.stat().st_size
    assert [*found.unit_doubts] == [str(path)] and found.sources[0].first_ms == -1
    [topic] = found.to_dict()["by_topic"]
    assert (topic["timestamp_unit"], topic["timestamp_unit_from"], topic["best"]["batching"]) == (None, None, None)
    for unit in UNITS:
        told = asked(path, timestamp_unit=unit)
        assert len(told.rebatched) == (2 if unit == "s" else 3) and not told.unit_doubts and told.timestamp_unit == unit


@pytest.mark.parametrize("times", [COUNTERS, MIXTURE, ["2026-01-01", *map(str, COUNTERS)], [20260101] * 20])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_table_of_unknown_unit_gets_no_answer(tmp_path: Path, times: list[Any], suffix: str) -> None:
    path = written(tmp_path / f"t{suffix}", pa.array(times))
    with pytest.raises(UnknownTimeUnit, match="--timestamp-unit") as raised:
        asked(path)
    assert str(raised.value).startswith(f"{path} (")
    assert asked(path, timestamp_unit="ms").records == len(times)


def test_numbers_among_dates_count_by_their_share(tmp_path: Path) -> None:
    dates = [f"{np.datetime64(t, 's')}" for t in SECONDS]
    assert asked(csv(tmp_path / "few.csv", [*dates, 0, 7])).records == len(SECONDS) + 2
    with pytest.raises(UnknownTimeUnit):
        asked(csv(tmp_path / "many.csv", [*dates, *COUNTERS[:20]]))


@pytest.mark.parametrize(
    ("first", "others", "unit"),
    [
        (in_unit(MILLISECONDS[:2], "us"), MILLISECONDS[2:], "ms"),
        ([5, 7], SECONDS, "s"),
        ([5, 7], in_unit(MILLISECONDS, "us"), "us"),
    ],
    ids=["µs before ms", "counters before s", "counters before µs"],
)
def test_first_numbers_that_mislead(tmp_path: Path, first: list[int], others: list[int], unit: Unit) -> None:
    """The first file of a partition seems to be in another unit, and has less than 1 % of the records.

    It is read again in the unit of the topic.
    """
    log(tmp_path / "t-0" / f"{0:020}.log", first)
    log(tmp_path / "t-0" / f"{2:020}.log", others)
    found, told = (asked([tmp_path / "t-0"], timestamp_unit=option) for option in (None, unit))
    assert found.rebatched == told.rebatched and found.rate == told.rate
    assert [source.first_ms for source in found.sources] == [source.first_ms for source in told.sources]
    assert found.to_dict()["timestamp_unit_from"] == "values"


def test_each_topic_has_its_unit(tmp_path: Path) -> None:
    one = log(tmp_path / "one-0" / f"{0:020}.log", MILLISECONDS)
    other = log(tmp_path / "other-0" / f"{0:020}.log", in_unit(MILLISECONDS, "us"))
    both, [first, second] = asked([one, other]), [asked([path]) for path in (one, other)]
    assert [b.batches for b in both.rebatched] == [
        (x.batches or 0) + (y.batches or 0) for x, y in zip(first.rebatched, second.rebatched, strict=True)
    ]
    assert both.timestamp_unit is None and {e.topic: e.timestamp_unit for e in both.by_topic} == {
        "one": "ms",
        "other": "us",
    }
    counters = log(tmp_path / "counters-0" / f"{0:020}.log", COUNTERS)
    found = asked([one, counters])
    assert found.rebatched == () and [*found.unit_doubts] == ["counters"]
    assert {each.topic: each.best.batching is None for each in found.by_topic} == {"one": False, "counters": True}
    assert found.rate is not None and [stream.name for stream in found.rate.streams] == ["one"]


def test_records_without_times_tell_nothing(tmp_path: Path) -> None:
    half = [t if i % 2 else -1 for i, t in enumerate(in_unit(MILLISECONDS, "us"))]
    assert asked(log(tmp_path / "half.log", half)).timestamp_unit == "us"
    for path in (log(tmp_path / "v0.log", [-1] * 30, "v0"), log(tmp_path / "none.log", [-1] * 30)):
        found = asked(path)
        assert (found.timestamp_unit, found.unit_doubts, len(found.rebatched)) == (None, {}, 3)


NUMBERS = st.lists(
    st.sampled_from([2, 50_000_000, 1_700_000_000, NOW_MS, 1000 * NOW_MS, 10**6 * NOW_MS]), min_size=1, max_size=300
)


@given(NUMBERS, st.integers(0, 400))
def test_units_by_their_definition(numbers: list[int], more: int) -> None:
    times = np.array(numbers + [numbers[0]] * more, np.int64)
    half = len(times) // 3
    found = TopicUnit.of(TimeUnits.of(times[:half]).plus(TimeUnits.of(times[half:])), None)

    def unit_of(number: float) -> str:
        return next((unit for unit, end in (("s", 1e11), ("ms", 1e14), ("us", 1e17)) if number < end), "ns")

    median = sorted(times.tolist())[(len(times) - 1) // 2]
    agree = sum(t >= 1e8 and unit_of(t) == unit_of(median) for t in times.tolist())
    is_counter = (times < 1e8).sum() * 2 > len(times)
    if is_counter or agree < 0.99 * len(times):
        assert found.unit is None and found.doubt
    else:
        assert found == (unit_of(median), "values", None)


def test_units_at_their_limits() -> None:
    for unit, first, end in [("s", 10**8, 10**11), ("ms", 10**11, 10**14), ("us", 10**14, 10**17)]:
        for number in (first, end - 1):
            assert TimeUnits.of(np.array([number])).likely == unit
    assert TimeUnits.of(np.array([10**17, 2**63 - 1, -(2**63)])).likely == "ns"
    for unit, per_second in UNITS.items():
        for year, is_plausible in ((1994, False), (1995, True), (2099, True), (2100, False)):
            number = int(np.datetime64(f"{year}-06-01", "s").astype(np.int64)) * per_second
            told = TopicUnit.of(TimeUnits.of(np.array([number])), None)
            assert (told.unit, bool(told.doubt)) == ((unit, False) if is_plausible else (None, True))
    assert TopicUnit.of(TimeUnits.of(np.array([NOW_MS, -NOW_MS, 0])), None).doubt
    assert TopicUnit.of(TimeUnits.of(np.array([10**8 - 1])), None).doubt
    for unit in UNITS:
        times = to_ms(np.array([-1, 0, 2**63 - 1, -(2**63)]), unit)
        assert times[:2].tolist() == [-1, 0] and times[2] > 0 > times[3]


def test_a_fingerprint_has_the_steps_of_its_times(tmp_path: Path) -> None:
    usual = fingerprint(log(tmp_path / "ms.log", MILLISECONDS)).fingerprint
    found = fingerprint(log(tmp_path / "us.log", in_unit(MILLISECONDS, "us"))).fingerprint
    assert usual.histograms["topic 1"]["time_steps_ms"]
    assert found.histograms == usual.histograms and found.answer.rate == usual.answer.rate
