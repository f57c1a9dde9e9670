"""The figures of topic dictionaries in the documentation are those of the stored run."""

import re

import pytest

from tools.dictionary_pages import BROKER, PROPOSAL, RUN, V2, V2_TRAINED, Figures, blocks, shown, table

needs_run = pytest.mark.skipif(not RUN.is_dir(), reason="datasets/joined/dictionary is not there")


@needs_run
def test_the_pages_are_up_to_date() -> None:
    for block, text in blocks(Figures()):
        page = block.page.read_text(encoding="utf-8")
        assert block.spliced(page, text) == page, f"{block.page.name}: {block.name} is old: run `make proposal`"


@needs_run
def test_a_ratio_is_that_of_the_rows() -> None:
    figures, workload = Figures(), "lines-jvm-gc"
    rows = figures.run.table.to_pandas().query(
        f"grid == 'dictionary-lines' and workload == '{workload}' and batch_size == 1 and format == 'v2'"
        " and level == 3 and trained_share == 0.5"
    )
    trained = rows.query("dictionary == 'trained' and dictionary_size_bytes == 32768")
    base_bytes = rows.query("dictionary == 'plain'").size_bytes.item()
    charged = trained.size_bytes.item() / base_bytes + trained.dictionary_stored_bytes.item() / 10_000_000
    assert figures.found.ratio(V2_TRAINED, workload, 1) == pytest.approx(charged)
    assert figures.found.ratio(V2, workload, 1) == 1


def test_tables_by_hand_have_no_ratios() -> None:
    for page in (PROPOSAL, BROKER):
        text = page.read_text(encoding="utf-8")
        generated = re.compile(r"<!-- ([^:]+): written by .*?<!-- end of \1 -->", re.DOTALL)
        rows = [line for line in generated.sub("", text).splitlines() if line.startswith("|")]
        assert rows and not [row for row in rows if re.search(r"\d\.\d", row) and "`compression." not in row]


def test_shown() -> None:
    assert [shown(None), shown(0.5), shown(6), shown(100.0)] == ["–", "0.50", "6.00", "100"]
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
