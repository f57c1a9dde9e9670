"""The HTML page of a what-if: one folder with its values, figures and the tables behind them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kfbench.present.calculator.data import page_data
from kfbench.present.calculator.rules import STOPS
from kfbench.present.look import group_of
from kfbench.present.page import compact_tables
from kfbench.records import PAYLOAD
from kfbench.report.publish import newest
from kfbench.whatif import page as what_if_page
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import what_if
from kfbench.whatif.page import THIS_LOG, explorer_content, lead_sentences, log_settings
from kfbench.whatif.summary import best_choice, dollars_of, summary_tables
from kfbench.whatif.tables import sections
from tests.browser.explorer_points import python_sizes
from tests.common import numbers_in
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
    assert {file.name for file in path.iterdir()} == {"index.html", "what-if.json"}
    assert json.loads((path / "what-if.json").read_text()) == json.loads(json.dumps(answer.to_dict()))
    page = (path / "index.html").read_text()
    assert not re.search("<[^>]+ src=", page) and "<link" not in page
    for table in (*summary_tables(answer), *(table for section in sections(answer) for table in section.tables)):
        assert compact_tables(table.to_html()) in page
    assert what_if_page.publish(answer, tmp_path) == path  # the same page exists already
    assert what_if_page.publish(replace(answer, sent_records=1), tmp_path) != path


def test_pictures_draw_the_overhead_by_batch_and_by_group_of_fields(answer: WhatIf) -> None:
    shown = what_if_page.views_json(answer)
    assert shown is not None and [each["view"] for each in shown["presets"]] == ["overhead", "groups"]
    for preset in shown["presets"]:
        view = shown["views"][preset["view"]]
        named = (preset.get("x"), preset.get("series"), *preset.get("chips", ()), *preset.get("label", ()))
        assert {*named} - {None} <= view["dims"].keys()
        assert {preset["metric"], *preset.get("beside", ())} <= view["metrics"].keys()
    view = shown["views"]["overhead"]
    found: dict[float, dict[str, object]] = {}
    for batch, name, size in zip(
        *(view["columns"][each] for each in ("batch_size", "format", "overhead")), strict=True
    ):
        of_batch = found.setdefault(view["dims"]["batch_size"]["numbers"][batch], {})
        of_batch[view["dims"]["format"]["values"][name]] = pytest.approx(size / 1_000, abs=6e-4)
    assert found == answer.overhead
    table = what_if_page.groups_table(answer)
    assert {row[1] for row in table.rows} == answer.breakdown.keys()
    for row in table.rows:
        of_fields = {part: size for part, size in answer.breakdown[str(row[1])].items() if part not in PAYLOAD}
        groups = {column.name: cell for column, cell in zip(table.columns[2:-1], row[2:-1], strict=True) if cell}
        for name, cell in groups.items():
            size = sum(size for part, size in of_fields.items() if group_of(part) == name)
            assert cell == pytest.approx(size / answer.records)
        assert row[-1] == pytest.approx(sum(of_fields.values()) / answer.records)


def test_the_lead_has_the_bytes_the_dollars_and_the_savings(answer: WhatIf) -> None:
    values = answer.to_dict()
    by_topic = [min(each["base_bytes"], each["best"]["size_bytes"]) for each in values["by_topic"]]
    now, base_bytes = values["month_now"]["total"], sum(source["sound_bytes"] for source in values["sources"])
    dollars = now * sum(by_topic) / base_bytes
    assert dollars_of(answer) == now and dollars_of(answer, best_choice(answer)) == pytest.approx(dollars)
    sizes = {each["format"]: each["size_bytes"] for each in values["sizes"] if each["codec"] == "lz4"}
    of_now, of_v3 = (round(100 * (1 - size / base_bytes), 1) for size in (sum(by_topic), sizes["v3"]))
    of_v2, level = round(100 * (1 - sizes["v3"] / sizes["v2"]), 1), 9
    lead = " ".join(lead_sentences(answer))
    assert numbers_in(lead) == [base_bytes, round(now, 2), of_now, of_v2, level, of_v3] and lead in index_of(answer)


def test_a_log_that_is_the_best_already_is_told_so() -> None:
    found = what_if(FOLDER / "activity-none.log", ["v2"], ["none"], batchings=[])
    assert best_choice(found).size_bytes == found.base_bytes
    assert numbers_in(" ".join(lead_sentences(found))) == [found.base_bytes]


@pytest.mark.parametrize("name", ["service-headers.log", "telemetry.log", "activity-lz4.log", "transactions.log"])
def test_the_explorer_starts_from_the_means_of_the_log(name: str) -> None:
    found = what_if(FOLDER / name, ["v2", "v3"], ["none", "lz4"], batchings=[], rate_mb_s=3)
    settings = {"headers": 0, "header_key_bytes": 0, "header_value_bytes": 0} | log_settings(found)
    assert settings["span_ms"] in STOPS["span_ms"]
    sizes = python_sizes([{axis: value for axis, value in settings.items() if axis != "null_percent"}])
    plain = found.size("v2", "none")
    (of_means,) = sizes["v2"]
    assert plain is not None and of_means is not None
    assert of_means / settings["records"] == pytest.approx(plain / found.records, rel=0.1)
    data = page_data(explorer_content(found))
    today = found.size("v2", data["first"]["codec"])
    assert today is not None and data["first"]["codec"] == ("lz4" if "lz4" in name else "none")
    assert data["first"]["workload"] == data["workloads"][0]["name"] == THIS_LOG
    assert data["first"]["mb_per_s"] == pytest.approx(3 * today / found.base_bytes, rel=1e-3)
    of_lz4 = data["workloads"][0]["bytes"]["lz4"][data["formats"].index("v3")]
    assert of_lz4 == pytest.approx((found.size("v3", "lz4") or 0) / found.records, abs=1e-3)


def test_a_page_is_not_listed_as_a_report(answer: WhatIf, tmp_path: Path) -> None:
    what_if_page.publish(answer, tmp_path)
    run = tmp_path / "2026-01-01.1"
    run.mkdir()
    (run / "index.html").touch()
    (run / "manifest.json").write_text('{"profile": "default", "publish": true}')
    assert newest(tmp_path) == run


def test_control_characters_of_names_are_escaped_on_the_page(answer: WhatIf) -> None:
    source = answer.sources[0]
    hostile = replace(source, path="/caf\udce9\x1b[31m/\u202ea.log", damaged_places=1, damaged_bytes=9)
    files = dict(what_if_page.render(replace(answer, sources=(hostile, *answer.sources[1:]))))
    page = files["index.html"].decode()
    assert "/caf\\xe9\\x1b[31m/\\u202ea.log" in page and not {"\x1b", "\u202e"} & {*page}
    assert json.loads(files["what-if.json"])["sources"][0]["path"] == hostile.path
