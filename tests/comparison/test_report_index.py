"""The index of a folder lists its reports, and says of two of them what `kfbench compare` says."""

from html import unescape
from pathlib import Path
from typing import Any

import pytest

from kfbench.comparison import THRESHOLD
from kfbench.comparison.compare import compare
from kfbench.comparison.report_index import index_html
from kfbench.comparison.text import comparison_text
from kfbench.errors import RunError
from kfbench.report.publish import publish
from tests.runs import stored


def reports(folder: Path, rows: list[dict[str, Any]], count: int) -> list[Path]:
    """Publish `count` reports of the rows of sizes. They differ in the bytes of one row."""
    found = []
    for i in range(count):
        changed = [dict(row) for row in rows if row["kind"] == "bytes"]
        sized = next(row for row in changed if row["kind"] == "bytes" and row["status"] == "ok")
        sized["size_bytes"] += i
        found.append(publish(stored(folder / f"run{i}", changed).path, folder / "reports"))
    return found


def test_two_reports_are_listed_and_compared(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    older, newer = reports(tmp_path, rows, 2)
    page = unescape(index_html(tmp_path / "reports"))
    for each in (older, newer):
        assert f'<a href="{each.name}/index.html">' in page
    words = comparison_text(compare(older, newer, THRESHOLD)).replace(f"{older.parent}/", "")
    assert words in page and "1 value" in words
    assert page.count("<article") == 1


def test_a_report_that_cannot_be_read_is_listed_and_hides_no_other(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    older, newer, damaged = reports(tmp_path, rows, 3)
    (damaged / "measurements.parquet").write_bytes(b"damaged")
    page = unescape(index_html(tmp_path / "reports"))
    row = next(line for line in page.splitlines() if f"{damaged.name}/index.html" in line)
    assert "cannot be read" in row and "measurements.parquet" in row
    assert f'id="{older.name}..{newer.name}"' in page and page.count("<article") == 1


def test_two_runs_that_cannot_be_compared_hide_no_others(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    older, newer = reports(tmp_path, rows, 2)
    other = [row | {"cell_id": f"other {row['cell_id']}"} for row in rows if row["kind"] == "bytes"]
    alone = publish(stored(tmp_path / "alone", other).path, tmp_path / "reports")
    page = unescape(index_html(tmp_path / "reports"))
    assert page.count("<article") == 3 and "1 value" in page
    for each in (older, newer):
        after = page.partition(f'id="{each.name}..{alone.name}"')[2].partition("</article>")[0]
        assert "not one cell" in after and str(tmp_path) not in after


def test_a_folder_without_reports_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=f"{tmp_path}: no reports"):
        index_html(tmp_path)
