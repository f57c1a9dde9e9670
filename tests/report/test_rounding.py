"""An interval that ends at 1.0 holds it, whatever the rounding of its floats."""

import numpy as np
import pandas as pd
import pytest

from kfbench.measure.noise import ROUNDING, BasePair, base_pairs, held_out
from kfbench.present.rows import Rows, Runs
from kfbench.present.table import Interval
from kfbench.report.sources import noise
from tests.measure.test_noise import rows


@pytest.mark.parametrize(("end", "held"), [(1 + ROUNDING / 2, 1), (1 - ROUNDING / 2, 1), (1 + 2 * ROUNDING, 0)])
def test_the_count_of_v2_against_itself(end: float, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = Interval(median=1.1, low=end, high=1.2)
    again = pd.DataFrame({"operation": ["encode"], "ratio": [ratio]})
    monkeypatch.setattr(noise, "to_itself", lambda rows, where: again)
    found = noise.aa(Runs(own=Rows.__new__(Rows), joined={}, manifests={}))
    assert found["held"].tolist() == [held]


@pytest.mark.parametrize("seed", range(10))
def test_the_check_of_a_run(seed: int) -> None:
    """All cells have the same times, so the spread of one half of them just suffices for the other half."""
    first_ns, second_ns = np.random.default_rng(seed).normal([[1e6], [0.98e6]], 1e3, (2, 19)).astype(np.int64)
    pairs = [BasePair(second_ns, first_ns, each.row) for each in base_pairs(rows())]
    assert all(held_out(pairs))
