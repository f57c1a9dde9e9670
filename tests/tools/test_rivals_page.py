"""The generated parts of docs/why-not-parquet.md and docs/rivals.md are those of their sources."""

import json
import re

import pytest

from kfbench.report.data.joined import Joined
from kfbench.report.data.rivals import Rivals
from kfbench.rivals.abilities import ABILITIES
from kfbench.store import open_run
from tools.rivals_damage import KINDS, OUTCOMES, STORED, Ended, arm, damaged, ended, try_all
from tools.rivals_page import OTEL_LOGS, PAGE, RUN, blocks, bytes_table, claims_table, facts


@pytest.fixture(scope="module")
def found() -> Rivals:
    return Rivals(Joined(run=open_run(RUN), is_own=True))


def test_the_pages_are_up_to_date_and_the_first_is_short() -> None:
    for block, text in blocks():
        page = block.page.read_text(encoding="utf-8")
        assert block.spliced(page, text) == page, f"{block.name} is old: run `python -m tools.rivals_page`"
    page = PAGE.read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 55
    assert all(each.words in page for each in ABILITIES)


def test_bytes_and_counts_are_those_of_the_stored_rows(found: Rivals) -> None:
    rows = open_run(RUN).measurements()
    rows = rows[(rows["kind"] == "rivals") & (rows["codec"] == "zstd") & (rows["status"] == "ok")]
    rows = rows[~(rows["records"] / rows["batches"] < 0.9 * rows["batch_size"])]
    rows = rows.assign(size=rows["size_bytes"] / rows["records"], batch_size=rows["batch_size"].fillna(0))
    sizes = rows.pivot_table(values="size", index=["workload", "batch_size"], columns="format")
    smaller = int((sizes["parquet-best"] < sizes["columnar"]).sum())
    one = sizes.loc[("user-activity", 1), "parquet-best"]
    cells = next(line.split(" | ") for line in bytes_table(found).splitlines() if line.startswith("| parquet-best"))
    assert cells[1] == f"{one:,.0f}" and cells[-1].startswith(f"{smaller} of {len(sizes)}")


def test_facts_have_the_numbers_of_the_chapter(found: Rivals) -> None:
    text = facts(found, "Quiet run")
    words = f"of {found.compared} sets with the same codec: zstd {len(found.losses())} (at worst"
    assert words in text.replace("\n  ", " ")
    even = found.break_even("parquet-best", "v2")
    assert even is not None and f"parquet-best {even.records:,.0f}" in text


def test_otel_arrows_bytes_cross_where_the_claim_says(found: Rivals) -> None:
    """At 100 logs Arrow's message is larger than OTLP's, at 500 it is smaller."""
    assert OTEL_LOGS[100][1] > OTEL_LOGS[100][0] and OTEL_LOGS[500][1] < OTEL_LOGS[500][0]
    at = re.search(r"cross at about (\d+) logs", claims_table(found))
    assert at is not None and 100 < int(at[1]) < 500


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
