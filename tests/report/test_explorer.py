"""The data that the explorer's page gets. tests/browser has the page."""

import json

import pytest

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.report.data.results import Results
from kfbench.report.topics.explorer import measured, rules
from kfbench.report.topics.explorer.data import FIRST, format_sets, page_data, report_content, script_json
from kfbench.store import Run
from tests.report.workload_rows import workload_rows
from tests.runs import stored


def test_every_format_has_a_rule() -> None:
    assert {rule["name"] for rule in rules.format_rules()} == set(FORMATS)


@pytest.mark.parametrize(("name", "layout"), [("v0", "messages"), ("v2", "batch"), ("kip98", "kip98")])
def test_a_layout_is_known_by_the_fields(name: str, layout: str) -> None:
    assert rules.layout_of(FORMATS[name]) == layout


def test_every_set_has_the_base_format_and_known_formats_only() -> None:
    sets = format_sets()
    assert all(BASE_FORMAT in names and set(names) <= set(FORMATS) for names in sets.values())
    assert set().union(*sets.values()) == set(FORMATS)


def test_first_settings_are_stops_of_the_sliders() -> None:
    assert set(FIRST) == set(rules.STOPS)
    assert all(value in rules.STOPS[name] for name, value in FIRST.items())


def test_cells_have_the_numbers_of_the_run(results: Results) -> None:
    rows = results.grid_bytes
    rows = rows[rows["codec"] != "none"]
    cells = measured.grid_cells(results)
    sizes = {size for cell in cells for of in cell["bytes"].values() for size in of.values()}
    assert sizes == {round(size, 2) for size in rows["size_per_record"]}
    timed = [of for cell in cells for by_operation in cell["cpu"].values() for of in by_operation.values()]
    assert timed and all(of[BASE_FORMAT] > 0 for of in timed)


def test_rows_with_other_settings_than_those_of_the_form_are_no_cells(run: Run) -> None:
    rows = run.measurements()
    assert measured.grid_cells(Results(rows))
    assert measured.grid_cells(Results(rows.assign(header_value_bytes=50))) == []


def test_a_workload_has_the_means_of_its_records() -> None:
    fields = {"key": 30, "value": 200, "header_key_length": 20, "header_key": 120, "header_value": 240}
    found = measured.mean_settings(fields, records=10, batches=4)
    assert found == {
        "records": 2, "key_bytes": 3, "value_bytes": 20, "headers": 2,
        "header_key_bytes": 6, "header_value_bytes": 12, "null_percent": 0,
    }  # fmt: skip


def test_no_key_is_a_null_key() -> None:
    fields = {"key": 0, "value": 0, "header_key_length": 0, "header_key": 0, "header_value": 0}
    assert measured.mean_settings(fields, records=3, batches=3)["key_bytes"] == -1


def test_a_run_without_codecs_and_times_has_no_cells(tmp_path_factory: pytest.TempPathFactory) -> None:
    rows = [row for row in workload_rows() if row["codec"] == "none" and row["kind"] == "bytes"]
    data = page_data(report_content(Results(stored(tmp_path_factory.mktemp("bare"), rows).measurements())))
    assert (data["cells"], data["workloads"], data["codecs"]) == ([], [], [])


def test_no_text_ends_the_script_element() -> None:
    value = {"name": "</script><script>alert(1)"}
    text = script_json(value)
    assert "<" not in text and json.loads(text) == value
