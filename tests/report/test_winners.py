"""The map of smallest formats by batch size and value size agrees with the rows."""

from pathlib import Path
from typing import Any

import pytest

from kfbench.report.data.axes import REFERENCE
from kfbench.report.data.named import TIE
from kfbench.report.data.results import Results
from kfbench.report.page import page
from kfbench.report.topics import winners
from tests.common import numbers_in
from tests.report.columns import row_of
from tests.runs import stored

BATCHES, VALUES = (1, 10, 100), (-1, 10, 1_000)
FIXED = {"v0": 26.0, "v1": 34.0, "v2": 9.0, "v3": 8.0}
SHARED = {"v0": 0.0, "v1": 0.0, "v2": 61.0, "v3": 49.0}
LOSSES = {"v0": '{"timestamps":1000}'}
WHOLE = ("v1", "v2", "v3")


def size(name: str, batch: int, value: int) -> float:
    return max(value, 0) + FIXED[name] + SHARED[name] / batch


def byte_rows(codec: str = "none", level: int | None = None, values: tuple[int, ...] = VALUES) -> list[dict[str, Any]]:
    return [
        {
            **REFERENCE, "kind": "bytes", "cell_id": f"{batch}-{value}", "grid": "plane", "workload": "grid", "seed": 1,
            "batch_size": batch, "value_bytes": value, "codec": codec, "level": level, "codec_version": "1",
            "host": "here", "format": name, "status": "ok", "records": 1_000, "batches": 1_000 // batch,
            "size_bytes": round(1_000 * size(name, batch, value)), "payload_bytes": 1_000 * max(value, 0),
            "overhead_bytes": round(1_000 * (size(name, batch, value) - max(value, 0))), "field_bytes": None,
            "losses": LOSSES.get(name, "{}"),
        }
        for batch in BATCHES for value in values for name in FIXED
    ]  # fmt: skip


def maps_of(folder: Path, rows: list[dict[str, Any]]) -> list[winners.Map]:
    return winners.maps(Results(stored(folder, rows).measurements()))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> winners.Map:
    (found,) = maps_of(tmp_path_factory.mktemp("plane"), byte_rows())
    return found


def test_each_cell_has_its_smallest_and_what_it_saves(plain: winners.Map) -> None:
    assert len(plain.wins) == len(BATCHES) * len(VALUES) and plain.codec == "none"
    for win in plain.wins:
        sizes = {name: size(name, win.batch_size, win.value_bytes) for name in FIXED}
        least = min(WHOLE, key=lambda name: sizes[name])
        assert win.winners[0] == least
        assert win.at_a_loss == (("v0",) if sizes["v0"] * (1 + TIE) < sizes[least] else ())
        assert win.saving == pytest.approx(1 - sizes[least] / sizes["v2"], abs=1e-4)
        assert win.ratios == pytest.approx({name: each / sizes["v2"] for name, each in sizes.items()}, abs=1e-4)


def test_where_v2_is_within_a_percent_nothing_is_won(plain: winners.Map) -> None:
    ties = {(win.batch_size, win.value_bytes) for win in plain.wins if win.is_tie}
    assert ties == {(10, 1_000), (100, 1_000)}  # 1,015 bytes against 1,013, and 1,009.6 against 1,008.5


def test_the_table_has_the_words_of_the_map_and_the_other_all_ratios(plain: winners.Map) -> None:
    table, ratios = winners.map_table(plain), winners.ratio_table(plain)
    row = row_of(table, **{"records per batch": 1})
    assert row["value null (bytes)"] == f"v1 −{100 * (1 - 34 / 70):.0f} %"  # v0 has no times
    assert row_of(table, **{"records per batch": 10})["value null (bytes)"] == f"v3 −{100 * (1 - 12.9 / 15.1):.0f} %"
    assert row_of(table, **{"records per batch": 100})["value 1,000 (bytes)"] == "tie"
    assert row["value null (bytes)"].rank == pytest.approx(34 / 70 - 1, abs=1e-4)
    assert row_of(table, **{"records per batch": 100})["value 1,000 (bytes)"].rank == 0
    assert len(ratios.rows) == len(plain.wins)
    assert [row[-1] for row in ratios.rows if row[:2] == (100, 1_000)] == ["v3 and v2"]


def test_the_sentence_counts_wins_and_ties_and_a_note_what_is_smaller_at_a_loss(plain: winners.Map) -> None:
    wins: dict[str, list[float]] = {"v1": [], "v3": []}
    at_a_loss = 0
    for batch, value in ((batch, value) for batch in BATCHES for value in VALUES):
        sizes = {name: size(name, batch, value) for name in FIXED}
        least = min(WHOLE, key=lambda name: sizes[name])
        at_a_loss += sizes["v0"] * (1 + TIE) < sizes[least]
        if sizes["v2"] > sizes[least] * (1 + TIE):
            wins[least].append(round(100 * (1 - sizes[least] / sizes["v2"])))
    ties = 9 - len(wins["v1"]) - len(wins["v3"])
    said = [number for each in wins.values() for number in (len(each), 9, max(each))]
    assert numbers_in(winners.maps_sentence([plain])) == [*said, ties] == [3, 9, 51, 4, 9, 15, 2]
    assert numbers_in(winners.map_table(plain).notes[-1]) == [at_a_loss, 9]


def test_what_takes_less_at_a_loss_wins_nothing(plain: winners.Map) -> None:
    assert not any("v0" in win.winners for win in plain.wins)
    assert "v0" in [column.name for column in winners.ratio_table(plain).columns]


def test_v2_alone_at_the_top_is_no_tie(tmp_path: Path) -> None:
    rows = [
        row | {"size_bytes": row["size_bytes"] * 3} if row["format"] in ("v1", "v3") else row for row in byte_rows()
    ]
    (found,) = maps_of(tmp_path, rows)
    assert {win.words for win in found.wins} == {"v2"} and not any(win.is_tie for win in found.wins)


def test_v2_and_a_format_that_loses_something_make_no_map(tmp_path: Path) -> None:
    assert maps_of(tmp_path, [row for row in byte_rows() if row["format"] in ("v0", "v2")]) == []


def test_under_zstd_the_level_with_most_cells_is_shown(tmp_path: Path) -> None:
    rows = [*byte_rows(), *byte_rows("zstd", 3), *byte_rows("zstd", 9, VALUES[:2])]
    plain, packed = maps_of(tmp_path, rows)
    assert (plain.codec, packed.codec) == ("none", "zstd 3")


def test_a_hole_in_the_plane_is_a_dash(tmp_path: Path) -> None:
    rows = [row for row in byte_rows() if (row["batch_size"], row["value_bytes"]) != (10, 10)]
    (found,) = maps_of(tmp_path, rows)
    assert row_of(winners.map_table(found), **{"records per batch": 10})["value 10 (bytes)"] is None


def test_a_run_without_a_plane_says_so(results: Results, tmp_path: Path) -> None:
    assert winners.maps(results) == []  # all values in these rows have one size
    section = next(
        each
        for each in page(Results(stored(tmp_path, byte_rows()).measurements()), []).sections
        if each.name == "break-even-map"
    )
    assert [figure.name for figure in section.figures] == [table.name for table in section.tables] == ["map-none"]
    assert [each.why for each in section.missing] == ["no such bytes under zstd"]
