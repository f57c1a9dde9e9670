"""The page of a what-if: from the values of its JSON alone, in one folder, with what was left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from kfbench.records import PAYLOAD
from kfbench.report.publish import newest
from kfbench.report.topics import breakdown
from kfbench.sources import Columns
from kfbench.whatif import page as what_if_page
from kfbench.whatif.ask import what_if
from kfbench.whatif.break_even import Crossing
from kfbench.whatif.rebatch import Batching
from tests.recorded import FOLDER

Answer = dict[str, Any]


@pytest.fixture(scope="module")
def answer() -> Answer:
    found = what_if(
        [FOLDER / "service-headers.log", FOLDER / "telemetry.log"], ["v1", "v3"], ["none", "lz4"], rate_mb_s=1
    )
    values: Answer = json.loads(json.dumps(found.to_dict()))
    return values


def test_a_page_stands_alone_and_beside_its_values(answer: Answer, tmp_path: Path) -> None:
    path = what_if_page.publish(answer, tmp_path)
    assert path.parent == tmp_path and path.name.startswith("what-if-")
    assert {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()} == {
        "index.html", "what-if.json", "figures/overhead.svg", "figures/fields.svg",
    }  # fmt: skip
    assert json.loads((path / "what-if.json").read_text()) == answer
    page = (path / "index.html").read_text()
    assert page.count("<svg") == 2 and "src=" not in page and "<link" not in page
    assert f"{answer['sizes'][0]['size_bytes']:,}" in page
    assert what_if_page.publish(answer, tmp_path) == path  # every byte is there already
    assert what_if_page.publish(answer | {"now_bytes": 1}, tmp_path) != path


def test_each_figure_links_a_table_with_what_it_draws(answer: Answer, tmp_path: Path) -> None:
    page = (what_if_page.publish(answer, tmp_path) / "index.html").read_text()
    for figure, name in (("overhead", "overhead"), ("fields", "groups")):
        caption = page.partition(f'id="{figure}-figure_1"')[2].partition("<figcaption>")[2]
        assert f'href="#t-{name}"' in caption.partition("</figcaption>")[0] and f'<table id="t-{name}"' in page
    (drawn,) = what_if_page._groups(answer).values()
    table = breakdown.group_table(what_if_page._groups(answer), name="groups")
    for row in table.rows:
        parts = zip(table.columns[2:-1], row[2:-1], strict=True)
        drawn_of = drawn.T[str(row[1])].dropna().to_dict()
        assert {column.name: cell for column, cell in parts if cell is not None} == drawn_of
        overhead = sum(size for part, size in answer["breakdown"][str(row[1])].items() if part not in PAYLOAD)
        assert row[-1] == pytest.approx(overhead / answer["records"])


def test_it_is_no_report_of_a_run(answer: Answer, tmp_path: Path) -> None:
    what_if_page.publish(answer, tmp_path)
    run = tmp_path / "2026-01-01.1"
    run.mkdir()
    (run / "index.html").touch()
    (run / "manifest.json").write_text('{"profile": "default", "publish": true}')
    assert newest(tmp_path) == run


def test_tables_hold_the_numbers(answer: Answer) -> None:
    sizes = what_if_page.sizes(answer)
    assert [row[0] for row in sizes.rows] == ["v1", "v3", "v2"]
    arms = {(arm["format"], arm["codec"]): arm for arm in answer["sizes"]}
    assert sizes.rows[1][1:] == (
        arms["v3", "none"]["size_bytes"],
        arms["v3", "lz4"]["size_bytes"],
        100 * arms["v3", "none"]["saving"],
        100 * arms["v3", "lz4"]["saving"],
    )
    assert what_if_page.months(answer).rows[2] == (
        "v2", *(arms["v2", codec]["month"]["total"] for codec in ("none", "lz4")),
        *(arms["v2", codec]["saving_a_month"] for codec in ("none", "lz4")),
    )  # fmt: skip
    rebatched = what_if_page.rebatched(answer)
    assert [row[:3] for row in rebatched.rows[:3]] == [(name, 5.0, 16384) for name in ("v1", "v3", "v2")]
    assert [row[1:3] for row in rebatched.rows[::3]] == [(5.0, 16384), (20.0, 65536), (100.0, 262144)]
    arm = next(arm for arm in answer["rebatched"] if (arm["format"], arm["codec"]) == ("v3", "lz4"))
    assert (rebatched.rows[1][5], rebatched.rows[1][7]) == (arm["size_bytes"], 100 * arm["saving"])
    assert "batch.size counts uncompressed bytes" in rebatched.notes[0]
    crossings = {(each["format"], each["other"]): Crossing(**each).words for each in answer["break_even"]}
    assert what_if_page.break_even(answer).rows == (
        ("v3", crossings["v3", "v1"], crossings["v3", "v2"]), ("v2", crossings["v2", "v1"], None),
    )  # fmt: skip
    assert what_if_page.overhead(answer).rows == tuple(
        (int(level), *(row[name] for name in ("v1", "v3", "v2"))) for level, row in answer["overhead_a_record"].items()
    )
    in_v2 = [row[3] for row in what_if_page.fields(answer).rows]
    assert sum(size for size in in_v2 if isinstance(size, int)) == arms["v2", "none"]["size_bytes"]
    assert len(what_if_page.sources(answer).rows) == 2


def test_the_lead_names_what_can_be_had_first(answer: Answer) -> None:
    assert answer["payload_left_out"] == ["v1"] == [name for name, lost in answer["losses"].items() if lost]
    lead = what_if_page.lead(answer)
    today, proposed = lead.split(" Proposed, and in no Kafka: ")
    assert today.startswith("What Kafka has today: v2 with lz4, ") and "v3" not in today
    assert proposed.startswith("v3 with lz4, ") and "v1" not in lead
    for name, said in (("today", today), ("proposed", proposed)):
        as_recorded, rebatched = answer["headline"][name]
        assert f"{as_recorded['size_bytes']:,} bytes, " in said and f"{rebatched['size_bytes']:,} bytes, " in said
        assert "batches of linger 100 ms and batch.size 262,144" in said
    (arm,) = [arm for arm in answer["sizes"] if (arm["format"], arm["codec"]) == ("v3", "lz4")]
    assert f"({100 * arm['saving_against_v2']:.1f} % less than v2 with the same codec)" in proposed
    without = answer["headline"] | {"proposed": []}
    assert what_if_page.lead(answer | {"headline": without}) == today


def test_without_a_rate_there_is_no_month(answer: Answer) -> None:
    without = {"rate": None, "sizes": [arm | {"month": None} for arm in answer["sizes"]]}
    assert not what_if_page.months(answer | without).rows
    page = dict(what_if_page.render(answer | without))["index.html"].decode()
    assert "A month at this rate" not in page


def test_of_tables_it_says_plain_v2_and_which(answer: Answer, tmp_path: Path) -> None:
    assert what_if_page.sizes(answer).caption.endswith(f"batches as they are; {answer['base_bytes']:,} now")
    path = tmp_path / "rows.csv"
    path.write_text("v,t\n" + "".join(f"{i},{1_700_000_000_000 + 1_000 * i}\n" for i in range(300)))
    columns = Columns(value="v", timestamp="t")
    found = what_if(path, ["v2"], ["none"], columns=columns, batchings=[Batching(5, 1_000)])
    table = json.loads(json.dumps(found.to_dict()))
    caption = f"linger 5 ms and batch.size 1,000; {table['base_bytes']:,} of plain v2"
    assert what_if_page.sizes(table).caption.endswith(caption)
    page = dict(what_if_page.render(table))["index.html"].decode()
    assert "No batches in rows.csv; assumed: linger 5 ms" in page and "batches as they are" not in page
    assert "GB a day of plain v2" in page and "times 2023-11-14 22:13:20 to 2023-11-14 22:18:19" in page


def test_the_page_states_standard_errors(answer: Answer) -> None:
    def page_of(error_bytes: int | None) -> str:
        sizes = [arm | {"error_bytes": error_bytes if arm["codec"] == "lz4" else 0} for arm in answer["sizes"]]
        sample = answer["sample"] | {"plain_bytes": 10, "of_bytes": 1_000}
        return dict(what_if_page.render(answer | {"sizes": sizes, "sample": sample}))["index.html"].decode()

    lz4_bytes = min(arm["size_bytes"] for arm in answer["sizes"] if arm["codec"] == "lz4")
    assert "Standard error of an estimate: 10.00 % at most." in page_of(round(lz4_bytes / 10))
    assert "error is unknown" not in page_of(5) and "the error is unknown" in page_of(None)
    assert "Standard error" not in dict(what_if_page.render(answer))["index.html"].decode()


def test_what_was_left_out_is_said(answer: Answer) -> None:
    skipped = [{"path": "a.index", "size_bytes": 5, "reason": "offset indexes", "is_data": False}] * 2
    many = [source | {"path": f"{i}.log", "topic": "orders"} for i, source in enumerate(answer["sources"] * 30)]
    changed = answer | {"lost_bytes": 7, "lost_share": 0.0123, "skipped": skipped, "sources": many}
    changed["sample"] = answer["sample"] | {"plain_bytes": 10, "of_bytes": 1_000, "seed": 4}
    page = dict(what_if_page.render(changed))["index.html"].decode()
    for said in ("1.23 % of the bytes", "1.00 % of the batches", "seed 4", "2 × offset indexes (10 bytes)"):
        assert said in page
    assert [row[:2] for row in what_if_page.sources(changed).rows] == [("orders", 60)]
