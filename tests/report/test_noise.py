"""The report of a noisy run starts with a warning. A run stored before the noise checks has none."""

from pathlib import Path
from typing import Any

import pytest

from kfbench.measure.noise import noise_facts
from kfbench.report.data import noise
from kfbench.report.files import files_of
from kfbench.report.topics import peers
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


def test_a_run_from_before_has_none() -> None:
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
