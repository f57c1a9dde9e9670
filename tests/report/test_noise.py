"""A noisy run says so at the head of its report, and what was seen; a run from before says nothing."""

from pathlib import Path
from typing import Any

from kfbench.measure.noise import noise_facts
from kfbench.report import noise
from kfbench.report.publish import render
from kfbench.store import Run
from tests.measure.test_noise import rows as noise_rows
from tests.runs import stored


def test_a_noisy_run_says_so_on_its_first_screen(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    facts = noise_facts(noise_rows(others_cpu_ns=90_000_000))
    page = dict(render(stored(tmp_path, rows, noise=facts)))
    for name in ("index.html", "README.md"):
        text = page[name].decode()
        said = text.index("Noisy: other processes used 0.30 cores on average while cells were timed.")
        assert said < text.index("A/A arm:") < text.index("What does a record cost, by batch size?")
        assert "1 of 7 checks of the host and of the samples were not passed." in text
        assert "cores that others used" in text


def test_a_quiet_run_has_the_checks_in_its_section_alone(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    page = dict(render(stored(tmp_path, rows, noise=noise_facts(noise_rows()))))["README.md"].decode()
    assert "Noisy:" not in page and "All 7 checks of the host and of the samples were passed." in page


def test_a_run_from_before_has_none(run: Run) -> None:
    page = dict(render(run))["README.md"].decode()
    assert "Noisy" not in page and "checks of the host" not in page
    assert noise.table(None) is None and noise.table({"noisy": False, "seen": [], "hosts": {}}) is None


def test_the_table_shows_each_check_beside_its_limit() -> None:
    table = noise.table(noise_facts(noise_rows(noise=0.08)))
    assert table is not None
    by = {row[1]: row[2:] for row in table.rows}
    assert by["A/A half-width"][1:] == ("≤ 2.0%", "NO") and by["cores that others used"] == (
        "0.010",
        "≤ 0.200",
        "passed",
    )
    assert by["A/A intervals that hold 1.0"][1] == "≥ 86.7%"  # 52 of 60
