"""Estimated times grow with the work. tests/sweep/test_plan.py compares them with a published run."""

from itertools import pairwise
from typing import Any

from kfbench.measure.kinds import estimate_s
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.plan import START_S, planned
from tests.sweep.cells import a_cell, model_cell


def test_estimates_grow_with_the_work() -> None:
    gzip: dict[str, Any] = {"path": "append", "codec": "gzip", "level": 6}
    rising = [
        [a_cell(records=100), a_cell(records=100_000), a_cell(records=100_000, codec="zstd", level=19)],
        [a_cell("broker", records=100, **gzip), a_cell("broker", records=10_000, **gzip)],
        [model_cell(0, 10**6), model_cell(0, 10**7)],
    ]
    for cells in rising:
        seconds = [0.0, *map(estimate_s, cells)]
        assert all(less < more for less, more in pairwise(seconds))
    assert estimate_s(model_cell(0, 10**6)) < estimate_s(model_cell(0, 10**7)) / 3


def test_a_cell_takes_at_least_its_samples() -> None:
    assert estimate_s(a_cell("cpu", rounds=10, sample_us=1_000)) > 10 * 1e-3 * 8
    assert estimate_s(a_cell("broker", path="append", rounds=1_000, sample_us=1_000)) > 4


def test_a_cell_without_payload_has_an_estimate() -> None:
    assert 0 < estimate_s(a_cell(axes={"value_bytes": -1, "key_bytes": -1})) < 1


# Seconds in the cells of these blocks, in a run of 2026-11-25 on two cores of an AMD EPYC.
MEASURED_S = 200
GRIDS = ["dictionary-cpu", "dictionary-lines-cpu", "dictionary-live"]


def test_dictionary_cells_take_about_as_long_as_they_took() -> None:
    cells = load_profile("dictionary").cells
    timed = [cell for cell in cells if cell.kind == "dictionary-cpu" and not cell.grids.keys().isdisjoint(GRIDS)]
    assert MEASURED_S / 1.2 < sum(map(estimate_s, timed)) < 1.2 * MEASURED_S
    stages = planned(cells, cores=2)
    assert START_S + 60 + sum(stage.seconds(2) for stage in stages) < 12 * 60  # 60: compiling the kernels
