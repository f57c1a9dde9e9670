"""A tool replaces its own block of a page and changes no other text."""

from pathlib import Path

import pytest

from tools.block import Block

BLOCK = Block(page=Path("page.md"), name="figures", by="`make figures`")
PAGE = f"# How\n\n- Seen:\n\n  {BLOCK.begin}\n  old\n  {BLOCK.end}\n\n  More. <!-- end of it -->\n"


def test_the_text_stands_between_the_markers_as_far_in_as_they_are() -> None:
    found = BLOCK.spliced(PAGE, "\n| a |\n| \\1 |\n")
    assert found == PAGE.replace("  old\n", "\n  | a |\n  | \\1 |\n\n")
    assert BLOCK.spliced(found, "old") == PAGE


@pytest.mark.parametrize(
    "page", ["# How\n", PAGE + PAGE, PAGE.replace(BLOCK.end, ""), PAGE.replace("figures:", "sizes:")]
)
def test_a_page_without_its_markers_is_refused(page: str) -> None:
    with pytest.raises(SystemExit, match=r"page\.md: the markers of the figures are "):
        BLOCK.spliced(page, "new")


def test_the_page_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    Block(page=page, name=BLOCK.name, by=BLOCK.by).write("≥ 1")
    assert page.read_text(encoding="utf-8") == PAGE.replace("old", "≥ 1")
