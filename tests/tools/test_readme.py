"""README.md shows the text of a published report, word for word."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kfbench.errors import RunError
from kfbench.report.publish import newest
from tools.readme import BEGIN, BLOCK, END, head, spliced

ROOT = Path(__file__).parents[2]
REPORT = """<!-- Generated -->
# Title

Lead.

| format | batch of 1 |
| --- | ---: |
| v2 | 68.0 |

![Overhead](figures/overhead.svg)

See [index.html](index.html) and [a place](https://example.org/x).

## Section

Not shown.
"""


def published(root: Path, *names: str, profile: str = "default", **facts: bool) -> Path:
    for name in names:
        (root / "reports" / name).mkdir(parents=True)
        (root / "reports" / name / "README.md").write_text(REPORT)
        (root / "reports" / name / "index.html").touch()
        (root / "reports" / name / "manifest.json").write_text(json.dumps({"profile": profile, **facts}))
    return root / "reports"


def test_another_profile_is_not_shown(tmp_path: Path) -> None:
    published(tmp_path, "2026-11-21.1")
    published(tmp_path, "2026-11-22.1", profile="full", publish=True)
    reports = published(tmp_path, "2026-11-23.1", profile="smoke", publish=False)
    assert newest(reports, "default").name == "2026-11-21.1" and newest(reports).name == "2026-11-22.1"
    with pytest.raises(RunError, match="no published report of the fleet profile; make one with"):
        newest(reports, "fleet")


def test_the_head_ends_at_the_first_section_and_its_links_still_lead_somewhere(tmp_path: Path) -> None:
    text = head(published(tmp_path, "2026-11-21.1") / "2026-11-21.1", tmp_path)
    assert text.startswith("Lead.\n")
    assert "| v2 | 68.0 |" in text
    assert "![Overhead](reports/2026-11-21.1/figures/overhead.svg)" in text
    assert "[index.html](reports/2026-11-21.1/index.html)" in text
    assert text.endswith("[a place](https://example.org/x).")


def test_only_the_block_between_the_markers_changes(tmp_path: Path) -> None:
    reports = published(tmp_path, "2026-11-21.1", "2026-11-21.2")
    before = f"# kfbench\n\n{BEGIN.format(report='none')}\n{END}\n\nThe rest.\n"
    first = spliced(before, reports / "2026-11-21.1", tmp_path)
    assert first.startswith("# kfbench\n\n<!-- report reports/2026-11-21.1:")
    assert first.endswith(f"{END}\n\nThe rest.\n")
    second = spliced(first, reports / "2026-11-21.2", tmp_path)
    assert second == first.replace("2026-11-21.1", "2026-11-21.2")


def test_markers_that_are_gone_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="markers"):
        spliced("# kfbench\n", published(tmp_path, "2026-11-21.1") / "2026-11-21.1", tmp_path)


def test_our_readme_shows_its_report_word_for_word() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = BLOCK.search(readme)
    assert block is not None
    assert spliced(readme, ROOT / block["report"], ROOT) == readme


def test_what_our_readme_links_to_exists() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links = [link.partition(")")[0] for link in readme.split("](")[1:]]
    assert links
    missing = [link for link in links if "://" not in link and not (ROOT / link.partition("#")[0]).exists()]
    assert not missing


def test_the_python_of_our_readme_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ratio_to_v2" in done.stdout
