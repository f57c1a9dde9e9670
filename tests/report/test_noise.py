"""A noisy run says so at the head of its report, and what was seen; a run from before says nothing."""

from pathlib import Path
from typing import Any

import pytest

from kfbench.measure.noise import noise_facts
from kfbench.report.data import noise
from kfbench.report.publish import render
from kfbench.report.topics import peers
from kfbench.store import Run
from tests.measure.test_noise import rows as noise_rows
from tests.runs import stored


@pytest.fixture(autouse=True)
def _no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs was another measurement, which says of itself whether it was noisy."""
    monkeypatch.setattr(peers, "load", lambda: None)


def test_a_noisy_run_says_so_on_its_first_screen(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    facts = noise_facts(noise_rows(others_cpu_ns=90_000_000))
    page = dict(render(stored(tmp_path, rows, noise=facts)))
    for name in ("README.md", "index.html"):
        text = page[name].decode()
        said = text.index("Noisy: other processes used 0.30 cores on average while cells were timed.")
        assert said < text.index("Compared with v2, v3 saves") < text.index("A/A arm:")
    assert "1 of 7 checks of the host and of the samples were not passed." in text
    assert "cores that others used" in text


def test_a_quiet_run_has_the_checks_in_its_section_alone(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    page = dict(render(stored(tmp_path, rows, noise=noise_facts(noise_rows()))))["index.html"].decode()
    assert "Noisy:" not in page and "All 7 checks of the host and of the samples were passed." in page


def test_a_run_from_before_has_none(run: Run) -> None:
    page = dict(render(run))["index.html"].decode()
    assert "Noisy" not in page and "checks of the host" not in page
    assert noise.checks_table(None) is None and noise.checks_table({"noisy": False, "seen": [], "hosts": {}}) is None


def test_the_table_shows_each_check_beside_its_limit() -> None:
    table = noise.checks_table(noise_facts(noise_rows(noise=0.08)))
    assert table is not None
    by = {row[1]: row[2:] for row in table.rows}
    assert by["A/A half-width"][1:] == ("≤ 2.0%", "NO") and by["cores that others used"] == (
        "0.010",
        "≤ 0.200",
        "passed",
    )
    assert by["A/A intervals that hold 1.0"][1:] == ("≥ 86.7%", "passed; 92.0% met")  # 52 of 60


@pytest.mark.parametrize(
    ("seen", "said", "verdict"),
    [
        (0.95, "; the goal of 92.0% is met.", "passed; 92.0% met"),
        (0.9, "; the goal of 92.0% is not met, within what chance allows (86.7%).", "passed; 92.0% not met"),
        (0.8, "; the goal of 92.0% is not met, beyond what chance allows (86.7%).", "NO; 92.0% not met"),
    ],
)
def test_the_share_is_told_beside_what_is_asked_for(seen: float, said: str, verdict: str) -> None:
    facts = noise_facts(noise_rows())
    (check,) = (each for each in facts["hosts"]["h"] if each["goal"] is not None)
    words = f"{seen:.1%} of 60 intervals hold 1.0"
    check |= {"seen": seen, "passed": seen >= check["limit"], "met": seen >= check["goal"], "words": words}
    assert noise.checks_sentence(facts).endswith(f"passed. Of all that was timed ({noise.EVERYTHING}), {words}{said}")
    table = noise.checks_table(facts)
    assert table is not None and [row[-1] for row in table.rows if "; " in str(row[-1])] == [verdict]
    two = noise.checks_sentence(facts | {"hosts": {"h": [check], "k": [check]}})
    assert "hold 1.0 (h); " in two and "hold 1.0 (k); " in two
    del check["goal"], check["met"]  # as runs from before have it
    assert noise.checks_sentence(facts).endswith("passed.")
