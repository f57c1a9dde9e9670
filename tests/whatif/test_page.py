"""The HTML page of a what-if: one folder with its values, figures and the tables behind them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kfbench.records import PAYLOAD
from kfbench.report.publish import newest
from kfbench.report.topics import breakdown
from kfbench.sources import Columns
from kfbench.whatif import page as what_if_page
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import what_if
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.summary import log_line, summary_tables
from kfbench.whatif.tables import sections, uniform_table
from tests.recorded import FOLDER


@pytest.fixture(scope="module")
def answer() -> WhatIf:
    logs = [FOLDER / "service-headers.log", FOLDER / "telemetry.log"]
    return what_if(logs, ["v1", "v3"], ["none", "lz4"], rate_mb_s=1)


def index_of(answer: WhatIf) -> str:
    return dict(what_if_page.render(answer))["index.html"].decode()


def test_a_page_needs_no_other_file_and_has_its_values_as_json(answer: WhatIf, tmp_path: Path) -> None:
    path = what_if_page.publish(answer, tmp_path)
    assert path.parent == tmp_path and path.name.startswith("what-if-")
    assert {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()} == {
        "index.html", "what-if.json", "figures/overhead.svg", "figures/fields.svg",
    }  # fmt: skip
    assert json.loads((path / "what-if.json").read_text()) == answer.to_dict()
    page = (path / "index.html").read_text()
    assert page.count("<svg") == 2 and "src=" not in page and "<link" not in page
    for table in (*summary_tables(answer), *(table for section in sections(answer) for table in section.tables)):
        assert table.to_html() in page
    assert what_if_page.publish(answer, tmp_path) == path  # the same page exists already
    assert what_if_page.publish(replace(answer, sent_records=1), tmp_path) != path


def test_each_figure_links_a_table_with_what_it_draws(answer: WhatIf) -> None:
    page = index_of(answer)
    for figure, name in (("overhead", "overhead"), ("fields", "groups")):
        caption = page.partition(f'id="{figure}-figure_1"')[2].partition("<figcaption>")[2]
        assert f'href="#t-{name}"' in caption.partition("</figcaption>")[0] and f'<table id="t-{name}"' in page
    assert {row[0]: row[1:] for row in uniform_table(answer).rows} == {
        level: tuple(sizes[name] for name in ("v1", "v3", "v2")) for level, sizes in answer.overhead.items()
    }
    (drawn,) = what_if_page.field_groups(answer).values()
    table = breakdown.groups_table(what_if_page.field_groups(answer), name="groups")
    for row in table.rows:
        parts = zip(table.columns[2:-1], row[2:-1], strict=True)
        drawn_of = drawn.T[str(row[1])].dropna().to_dict()
        assert {column.name: cell for column, cell in parts if cell is not None} == drawn_of
        overhead = sum(size for part, size in answer.breakdown[str(row[1])].items() if part not in PAYLOAD)
        assert row[-1] == pytest.approx(overhead / answer.records)


def test_the_contents_lead_to_each_section(answer: WhatIf) -> None:
    page = index_of(answer)
    links = re.findall(r'<li><a href="#([\w-]+)">([^<]+)</a></li>', page)
    assert [title for _, title in links] == [*(section.title for section in sections(answer)), "Numbers of the figures"]
    for name, title in links:
        assert page.count(f'<section id="{name}">\n<h2><a href="#{name}">{title}</a></h2>') == 1


def test_a_page_is_not_listed_as_a_report(answer: WhatIf, tmp_path: Path) -> None:
    what_if_page.publish(answer, tmp_path)
    run = tmp_path / "2026-01-01.1"
    run.mkdir()
    (run / "index.html").touch()
    (run / "manifest.json").write_text('{"profile": "default", "publish": true}')
    assert newest(tmp_path) == run


def test_of_tables_it_names_plain_v2_and_the_assumed_batches(answer: WhatIf, tmp_path: Path) -> None:
    assert f"{answer.base_bytes:,} bytes" in log_line(answer) and log_line(answer) in index_of(answer)
    path = tmp_path / "rows.csv"
    path.write_text("v,t\n" + "".join(f"{i},{1_700_000_000_000 + 1_000 * i}\n" for i in range(300)))
    columns = Columns(value="v", timestamp="t")
    found = what_if(path, ["v2"], ["none"], columns=columns, batchings=[Batching(5, 1_000)])
    page = index_of(found)
    assert f"{found.base_bytes:,} bytes of plain v2" in page and "batches as recorded" not in page
    assert f"No batches in {path}; assumed: linger 5 ms and batch.size 1,000" in page
    assert "GB per day of plain v2" in page and "times 2023-11-14 22:13:20 to 2023-11-14 22:18:19" in page
