"""README.md shows the verdict on the rows of a published report, its links lead somewhere, and its code runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kfbench.errors import RunError
from kfbench.report.publish import newest
from tools.readme import BLOCK, spliced

ROOT = Path(__file__).parents[2]


def published(root: Path, *names: str, profile: str = "default", **facts: bool) -> Path:
    for name in names:
        (root / "reports" / name).mkdir(parents=True)
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


def test_markers_that_are_gone_are_one_line() -> None:
    with pytest.raises(SystemExit, match=r"README\.md: .*markers"):
        spliced("# kfbench\n", newest(ROOT / "reports", "default"), ROOT)


def test_our_readme_shows_the_verdict_on_the_rows_of_its_report() -> None:
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
