"""The tables of docs/why-not-parquet.md are those of their sources."""

import json

from kfbench.rivals.abilities import ABILITIES
from tools.rivals_damage import KINDS, OUTCOMES, STORED, Ended, arm, damaged, ended, try_all
from tools.rivals_page import PAGE, blocks, bytes_table, json_table, sizes


def test_the_page_is_up_to_date_and_short() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for block, text in blocks():
        assert block.spliced(page, text) == page, f"{block.name} is old: run `python -m tools.rivals_page`"
    assert len(page.splitlines()) < 110
    assert all(each.words in page for each in ABILITIES)


def row(name: str, size_bytes: int | None, workload: str = "user-activity", **other: object) -> dict[str, object]:
    cell = {"grid": "rivals-batches", "workload": workload, "batch_size": 10, "codec": "zstd", "level": 3}
    return {**cell, "format": name, "arm": "documented", "size_bytes": size_bytes, "records": 10, **other}


def test_bytes_are_per_record_and_compared_with_columnar() -> None:
    rows = [row("columnar", 700), row("parquet", 2_250), row("columnar", 50, "other"), row("parquet", 40, "other")]
    rows += [row("parquet", 1, level=9), row("lance", None)]
    lines = bytes_table(sizes(rows, "rivals-batches")).splitlines()
    assert lines[2:] == [
        "| columnar | – | 70.0 | – | – | – | 0 of 2 |",
        "| parquet | – | 225 | – | – | – | 1 of 2 |",
    ]


def test_typed_columns_are_compared_with_columnar_per_batch_size() -> None:
    def at(batch: int, name: str, size: int) -> dict[str, object]:
        return row(name, size, grid="rivals-json", arm="best", batch_size=batch)

    rows = [at(1, "columnar", 5), at(1, "parquet-shredded", 9), at(200, "columnar", 5), at(200, "parquet-shredded", 4)]
    assert json_table(sizes(rows, "rivals-json")).splitlines()[2:] == ["| parquet-shredded, best | 0 of 1 | 1 of 1 |"]


def test_the_stored_damage_counts_every_container() -> None:
    run = json.loads(STORED.read_text(encoding="utf-8"))
    for found in run["arms"].values():
        assert sum(n for kind in KINDS for *_, n in found["endings"][kind]) == run["damaged_per_arm"]
        assert {outcome for kind in KINDS for outcome, *_ in found["endings"][kind]} <= {*OUTCOMES}


def test_damage_is_repeatable_and_noticed() -> None:
    of = arm("parquet")
    assert ended(of, of.container) == Ended("same", "")
    assert [damaged(of.container, i) for i in range(9)] == [damaged(of.container, i) for i in range(9)]
    assert all(ended(of, damaged(of.container, i)[1]).outcome == "error" for i in range(0, 30, 3))  # cut short
    found = try_all("v2", 9)
    assert sum(found["truncated"].values()) == found["truncated"][Ended("error", "CorruptLog")] == 3
