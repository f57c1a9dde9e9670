"""The report of a noisy run starts with a warning and its reasons. A run stored before the noise checks has none."""

from pathlib import Path
from typing import Any

import pytest

from kfbench.measure.noise import noise_facts
from kfbench.report.data import noise
from kfbench.report.files import files_of
from kfbench.report.topics import peers
from kfbench.store import Run
from tests.measure.test_noise import rows as noise_rows
from tests.report.columns import some
from tests.runs import stored

pytestmark = pytest.mark.usefixtures("drawn")


@pytest.fixture(autouse=True)
def _no_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load no file of peers (other implementations), because that file has its own noise."""
    monkeypatch.setattr(peers, "load", lambda: None)


def test_a_noisy_run_says_so_on_its_first_screen(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    facts = noise_facts(noise_rows(others_cpu_ns=90_000_000))
    page = dict(files_of(stored(tmp_path, rows, noise=facts)))
    for name in ("README.md", "index.html"):
        text = page[name].decode()
        warning = text.index("Noisy: ")
        assert "0.30 cores" in text[warning : warning + 100]
        assert warning < text.index("v3 saves") and "Noisy run: " in text
    assert "1 of 8 checks" in page["trust.html"].decode()
    assert "cores that others used" in page["trust.html"].decode()


def test_a_quiet_run_has_the_checks_in_its_section_alone(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    pages = dict(files_of(stored(tmp_path, rows, noise=noise_facts(noise_rows()))))
    assert not [name for name, data in pages.items() if b"Noisy:" in data]
    assert b"Quiet run: 8 of 8 noise checks passed" in pages["index.html"] and b"All 8 checks" in pages["trust.html"]


def test_a_run_from_before_has_none(run: Run) -> None:
    pages = dict(files_of(run))
    assert not [name for name, data in pages.items() if b"Noisy" in data or b"checks of the host" in data]
    assert b"Noise not checked<" in pages["index.html"]
    assert noise.checks_table(None) is None and noise.checks_table({"noisy": False, "seen": [], "hosts": {}}) is None


def test_the_table_shows_each_check_next_to_its_limit() -> None:
    table = some(noise.checks_table(noise_facts(noise_rows(noise=0.08))))
    by = {row[1]: row[2:] for row in table.rows}
    assert by["A/A half-width"][1:] == ("≤ 2.0 %", "NO") and by["cores that others used"] == (
        "0.010",
        "≤ 0.200",
        "passed",
    )
    assert by["A/A intervals that hold 1.0"][1:] == ("≥ 90.0 %", "passed; 94.0 % met")  # 54 of 60 intervals


@pytest.mark.parametrize(
    ("seen", "verdict"), [(0.95, "passed; 94.0 % met"), (0.92, "passed; 94.0 % not met"), (0.8, "NO; 94.0 % not met")]
)
def test_the_share_stands_next_to_its_goal(seen: float, verdict: str) -> None:
    facts = noise_facts(noise_rows())
    (check,) = (each for each in facts["hosts"]["h"] if each["goal"] is not None)
    words = f"{seen:.1%} of 60 intervals hold 1.0"
    check |= {"seen": seen, "passed": seen >= check["limit"], "met": seen >= check["goal"], "words": words}
    sentence = noise.checks_sentence(facts)
    assert (
        words in sentence
        and ("misses the goal" in sentence) == (0.9 <= seen < 0.94)
        and ("fails" in sentence) == (seen < 0.9)
    )
    assert [row[-1] for row in some(noise.checks_table(facts)).rows if "; " in str(row[-1])] == [verdict]
    two = noise.checks_sentence(facts | {"hosts": {"h": [check], "k": [check]}})
    assert "(h)" in two and "(k)" in two
    del check["goal"], check["met"]  # older runs do not store these
    assert words not in noise.checks_sentence(facts)
