"""docs/workloads.md and its figures agree with the catalogue of workloads."""

import re

import numpy as np
import pandas as pd

from kfbench.workloads.catalogue import NamedWorkload
from tools.workloads_page import FIGURES, PAGE, every, figure, page, shares, trimmed


def test_the_page_is_not_stale() -> None:
    """Compare the text, the numbers and digests of the figures' data. Drawing all figures would take too long."""
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make workloads"


def test_a_figure_is_drawn_as_it_stands_there() -> None:
    workload = NamedWorkload(name="consumer-offsets")
    assert (FIGURES / "consumer-offsets.svg").read_text(encoding="utf-8") == figure(workload), "run: make workloads"


def test_every_workload_has_its_figure_and_no_figure_is_left_over() -> None:
    names = {each.name for each in every()}
    assert {path.stem for path in FIGURES.iterdir()} == names
    assert set(re.findall(r"\]\(workloads/(.+?)\.svg\)", PAGE.read_text(encoding="utf-8"))) == names


def test_shares_are_of_all_values_and_classes_begin_at_their_name() -> None:
    found = shares(np.array([0, 1, 9, 10, 10, 99, 5_000, -3]), {"< 0": -np.inf, "0": 0, "1": 1, "10": 10, "100": 100})
    assert (found * 8).tolist() == [1, 1, 2, 3, 1]
    assert trimmed(
        pd.DataFrame({"records": shares(np.array([3, 50]), {"0": 0, "1": 1, "10": 10, "100": 100})})
    ).index.tolist() == ["1", "10"]
