"""The table of levels in docs/what-if.md has the published sizes, and sizes that the codecs give again."""

import re
from pathlib import Path

import pytest

from tools.kip390_page import PAGE, PUBLISHED, RECORDED, lines_of, main, recorded, shares

TEXT = PAGE.read_text(encoding="utf-8")


def on_page() -> dict[tuple[str, int], list[float]]:
    rows = re.findall(r"^\| (gzip|lz4|zstd) (-?\d+) \| (.*) \|$", TEXT, re.MULTILINE)
    return {
        (codec, int(level)): [float(cell.removesuffix(" %")) for cell in cells.split(" | ")]
        for codec, level, cells in rows
    }


def test_the_page_has_each_published_level() -> None:
    assert on_page().keys() == PUBLISHED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_the_page_has_what_the_codecs_give(name: str) -> None:
    """Another build of zlib may differ by a little."""
    column = 1 + RECORDED.index(name)
    found = dict(zip(PUBLISHED, shares(recorded(name)), strict=True))
    for arm, cells in on_page().items():
        assert 100 * found[arm] == pytest.approx(cells[column], abs=0.05 if arm[0] != "gzip" else 0.5), arm


def test_the_page_says_what_the_table_shows() -> None:
    found = on_page()
    for log in (1, 2):  # the logs with several records per batch
        of = {arm: cells[log] for arm, cells in found.items()}
        assert all(of["zstd", level] <= of["gzip", 6] + 0.3 for level in (1, 3, 12, 18))
        assert max(of["gzip", level] for level in (1, 6, 9)) < min(of["lz4", level] for level in (1, 9, 17))
        assert 0.39 < of["zstd", 3] - of["zstd", 12] < 1.11
        assert of["zstd", 18] < of["zstd", 12] and of["lz4", 1] < of["lz4", 9]
    assert all(cells[3] > 100 for cells in found.values())


def test_lines_of_a_file_are_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.log"
    path.write_text("".join(f"INFO request {i} took {i * 7 % 90} ms\n" for i in range(250)))
    log = lines_of(path)
    assert len(log.records) == 250 and log.bounds == [0, 100, 200, 250]
    assert log.records.value(249) == b"INFO request 249 took 33 ms"
    main([str(path)])
    printed = capsys.readouterr().out
    assert "| KIP-390 | mine |" in printed and printed.count(" % |") == 2 * len(PUBLISHED)
