"""The index of a folder lists its reports, and says of two of them what `kfbench compare` says."""

from collections.abc import Callable
from html import unescape
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from kfbench.comparison import THRESHOLD
from kfbench.comparison.compare import compare
from kfbench.comparison.report_index import index_html
from kfbench.comparison.text import comparison_text
from kfbench.errors import RunError
from kfbench.report.publish import publish
from tests.runs import stored

Copied = Callable[..., list[Path]]


@pytest.fixture(scope="module")
def published(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return four reports of the rows of sizes. Three differ in the bytes of one row. The last has other cells."""
    folder, found = tmp_path_factory.mktemp("published"), list[Path]()
    for i in range(3):
        changed = [dict(row) for row in rows if row["kind"] == "bytes"]
        sized = next(row for row in changed if row["kind"] == "bytes" and row["status"] == "ok")
        sized["size_bytes"] += i
        found.append(publish(stored(folder / f"run{i}", changed).path, folder / "reports"))
    other = [row | {"cell_id": f"other {row['cell_id']}"} for row in rows if row["kind"] == "bytes"]
    return [*found, publish(stored(folder / "alone", other).path, folder / "reports")]


@pytest.fixture
def copied(published: list[Path], tmp_path: Path) -> Copied:
    """Return a function that copies published reports, by their numbers, into the folder `reports` below tmp_path."""
    return lambda *numbers: [
        Path(copytree(published[number], tmp_path / "reports" / published[number].name)) for number in numbers
    ]


def test_two_reports_are_listed_and_compared(copied: Copied, tmp_path: Path) -> None:
    older, newer = copied(0, 1)
    page = unescape(index_html(tmp_path / "reports"))
    for each in (older, newer):
        assert f'<a href="{each.name}/index.html">' in page
    words = comparison_text(compare(older, newer, THRESHOLD)).replace(f"{older.parent}/", "")
    assert words in page and "1 value" in words
    assert page.count("<article") == 1


def test_a_report_that_cannot_be_read_is_listed_and_hides_no_other(copied: Copied, tmp_path: Path) -> None:
    older, newer, damaged = copied(0, 1, 2)
    (damaged / "measurements.parquet").write_bytes(b"damaged")
    page = unescape(index_html(tmp_path / "reports"))
    row = next(line for line in page.splitlines() if f"{damaged.name}/index.html" in line)
    assert "cannot be read" in row and "measurements.parquet" in row
    assert f'id="{older.name}..{newer.name}"' in page and page.count("<article") == 1


def test_two_runs_that_cannot_be_compared_hide_no_others(copied: Copied, tmp_path: Path) -> None:
    older, newer, alone = copied(0, 1, 3)
    page = unescape(index_html(tmp_path / "reports"))
    assert page.count("<article") == 3 and "1 value" in page
    for each in (older, newer):
        after = page.partition(f'id="{each.name}..{alone.name}"')[2].partition("</article>")[0]
        assert "not one cell" in after and str(tmp_path) not in after


def test_a_folder_without_reports_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"{tmp_path}: no reports"):
        index_html(tmp_path)
