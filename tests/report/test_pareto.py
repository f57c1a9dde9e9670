"""The Pareto front (formats that no other format beats by both bytes and CPU time) agrees with the rows."""

from pathlib import Path

import pytest

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import Band
from kfbench.report.data.capability import lacking
from kfbench.report.data.results import Results
from kfbench.report.topics import pareto
from kfbench.report.topics.pareto import Measured, Place
from kfbench.store import Run
from kfbench.tables import Interval
from tests.report.columns import column, row_of
from tests.runs import stored

FORMATS = ("v0", "v1", "v2", "v3", "v3-attributes-only", "v3-header-only")


def around(median: float, width: float = 0.02) -> Interval:
    return Interval(median=median, low=median - width, high=median + width)


def test_points_are_the_ratios_of_the_rows(results: Results) -> None:
    found = pareto.fronts(results)
    assert [(front.operation, front.batch_size) for front in found] == [
        ("encode", 100), ("decode", 100), ("encode", 1), ("decode", 1),
    ]  # fmt: skip
    for front in found:
        assert {point.format for point in front.points} == set(FORMATS)
        sizes = results.uncompressed[
            (results.uncompressed["batch_size"] == front.batch_size) & (results.uncompressed["grid"] == "batch")
        ].set_index("format")["size_bytes"]
        timed = results.cpu[(results.cpu["batch_size"] == front.batch_size) & (results.cpu["grid"] == "batch")]
        ratios = results.with_ratios(timed[(timed["operation"] == front.operation) & (timed["arm"] == "measure")])
        for point in front.points:
            assert point.bytes_ratio == pytest.approx(sizes[point.format] / sizes[BASE_FORMAT])
            assert point.cpu == ratios.set_index("format")["ratio"][point.format]


def measured(name: str, size: float, cpu: Interval, lost: tuple[str, ...] = ()) -> Measured:
    return Measured(format=name, bytes_ratio=size, cpu=cpu, lost=lost, lacking=())


def places(every: list[Measured], noise: Band | None = None) -> dict[str, Place]:
    return {point.format: point.place for point in pareto._placed(every, noise)}


@pytest.mark.parametrize(
    ("size", "cpu", "noise", "place"),
    [
        (0.9, around(1.2), None, "front"),  # fewest bytes
        (1.0, around(1.01), None, "front"),  # equal bytes, CPU times not distinguishable
        (1.0, around(1.2), None, "beaten"),  # equal bytes, more CPU time
        (1.1, around(0.8), None, "front"),  # more bytes, less CPU time
        (1.1, around(1.2), None, "beaten"),
        (1.1, around(0.98), None, "beaten"),  # more bytes, and the CPU intervals overlap
        (1.1, around(0.95), Band(0.9, 1.1), "beaten"),  # the interval is apart, but inside the noise band of v2
        (1.1, around(0.8), Band(0.9, 1.1), "front"),
    ],
)
def test_a_place_takes_bytes_exactly_and_times_with_their_noise(
    size: float, cpu: Interval, noise: Band | None, place: Place
) -> None:
    assert places([measured("x", size, cpu), measured("other", 1.0, around(1.0))], noise)["x"] == place


def test_a_beaten_format_beats_no_other() -> None:
    """b beats c by bytes: their CPU times are too close.

    But b itself is beaten by a, so it does not count. c takes less time than a, so c is on the front.
    """
    every = [measured(name, size, around(cpu)) for name, size, cpu in (("a", 1, 1.0), ("b", 2, 0.97), ("c", 3, 0.94))]
    assert places(every) == {"a": "front", "b": "beaten", "c": "front"}


def test_what_loses_something_is_on_no_front_and_beats_nobody() -> None:
    lossy = measured("v0", 0.7, around(0.5), ("times",))
    assert places([lossy, measured("v2", 1.0, around(1.0))]) == {"v0": "lossy", "v2": "front"}
    assert lossy.words == "v0, without times"


def test_times_along_a_front_fall_and_each_of_the_others_has_one_on_it_that_beats_it(results: Results) -> None:
    for front in pareto.fronts(results):
        best = [point for point in front.points if point.place == "front"]
        assert best and best[0].bytes_ratio == min(point.bytes_ratio for point in front.points if not point.lost)
        for point in front.points:
            if point.place == "beaten":
                assert any(
                    one.bytes_ratio <= point.bytes_ratio and not pareto._is_less(point.cpu, one.cpu, results.noise)
                    for one in best
                )


def test_losses_are_those_of_the_rows_and_what_there_is_no_room_for_the_formats_own(run: Run, tmp_path: Path) -> None:
    """v0 stores no timestamps, so it loses them. kip98 loses nothing.

    kip98 has no room for some fields, but the records of the grid do not use these.
    """
    rows = run.table.to_pylist()
    rows += [row | {"format": "kip98"} for row in rows if row["format"] == "v3" and row["status"] == "ok"]
    found = pareto.fronts(Results(stored(tmp_path, rows).measurements()))
    for front in found:
        by = {point.format: point for point in front.points}
        assert by["v0"].lost == ("times",) and by["v0"].place == "lossy" and "times" not in by["v0"].lacking
        assert by["kip98"].lost == () and by["kip98"].lacking == lacking("kip98", "v2") and by["kip98"].lacking
        assert by["v3"].lacking == by["v2"].lacking == () and "zstd" in by["v1"].lacking
    table = pareto.pareto_table(found)
    assert table is not None
    first = row_of(table, **{"records per batch": 100, "format": "v0"})
    assert (first["on the front (encode)"], first["loses (these records)"]) == ("not compared", "times")


def test_the_table_says_who_is_on_it(results: Results) -> None:
    found = pareto.fronts(results)
    table = pareto.pareto_table(found)
    assert table is not None
    assert column(table, "format") == [*FORMATS, *FORMATS]
    said = dict(zip(zip(column(table, "records per batch"), column(table, "format"), strict=True),
                    column(table, "on the front (encode)"), strict=True))  # fmt: skip
    first = found[0]
    assert [name for (batch, name), word in said.items() if batch == 100 and word == "yes"] == sorted(first.on_it)


def test_what_is_larger_and_dearer_than_v2_is_named_and_not_drawn(results: Results) -> None:
    for front, frame in zip(pareto.fronts(results), pareto.pareto_panels(pareto.fronts(results)).values(), strict=True):
        beyond = set(frame[frame["beyond"]]["format"])
        assert beyond == {point.format for point in front.points if point.bytes_ratio > 1 and point.cpu.low > 1}
        assert BASE_FORMAT not in beyond


def test_without_times_or_without_v2_there_is_no_front(results: Results) -> None:
    assert pareto.fronts(Results(results.all[results.all["kind"] == "bytes"])) == []
    lonely = pareto.fronts(Results(results.all[results.all["format"] != BASE_FORMAT]))
    assert lonely == [] and pareto.pareto_table(lonely) is None
