"""The explorer in a real browser: its form, its address, its numbers, by keyboard and on a phone."""

import json
from pathlib import Path

import pytest

from kfbench.money import Prices, Traffic, month
from kfbench.present.calculator.data import format_sets
from kfbench.report.files import files_of
from tests.browser.chromium import Chromium, Tab
from tests.browser.explorer_points import python_sizes
from tests.report.workload_rows import workload_rows
from tests.runs import stored

SUMMARY = "document.getElementById('explorer-summary').textContent"
ROWS = """[...document.querySelectorAll("#{} tbody tr")].map(
  row => [...row.cells].filter(cell => cell.className !== "drawn").map(cell => cell.textContent.trim()))"""
RESEARCH = "&formats=Shipped%2C+v3%2C+research"


def rows_of(tab: Tab, table: str = "explorer-table") -> list[list[str]]:
    rows: list[list[str]] = tab.ask(ROWS.format(table))
    return rows


def row_of(tab: Tab, name: str) -> list[str]:
    return next(row for row in rows_of(tab) if row[0] == name)


def bill_of(tab: Tab, start: str) -> list[str]:
    """Return the row of the bill whose change starts so: change, bytes, percent, how, US$, US$ saved."""
    return next(row for row in rows_of(tab, "explorer-bill") if row[0].startswith(start))


def choose(tab: Tab, field: str, value: str) -> None:
    tab.ask(f"""(box => {{ box.value = "{value}"; box.dispatchEvent(new Event("change")); }})(
      document.getElementById("{field}"))""")


def number(text: str) -> float:
    return float(text.removesuffix("%").replace(",", "").replace("−", "-"))


def test_the_tables_show_the_bytes_and_the_bill_of_python(chromium: Chromium, front: Path) -> None:
    tab = chromium.open(front, address=f"#records=7&key_bytes=20&value_bytes=333&headers=2&mb_per_s=3{RESEARCH}")
    settings = {
        "records": 7, "key_bytes": 20, "value_bytes": 333, "span_ms": 0,
        "headers": 2, "header_key_bytes": 12, "header_value_bytes": 20,
    }  # fmt: skip
    found = python_sizes([settings, settings | {"records": 70}])
    sizes = {name: [size / records for size, records in zip(column, (7, 70), strict=True) if size]
             for name, column in found.items()}  # fmt: skip
    for name in ("v2", "v3", "columnar"):
        row = row_of(tab, name)
        assert number(row[1]) == pytest.approx(sizes[name][0], abs=0.051) and row[3] == "exact"
    assert row_of(tab, "v0")[1:4] == ["–", "–", "has no headers"]
    today = month(3e6 * 86_400, Traffic(), Prices()).total
    changes = {"Today": sizes["v2"][0], "v3 (KIP-931": sizes["v3"][0], "10 times fuller": sizes["v2"][1]}
    for start, size in changes.items():
        row, cost = bill_of(tab, start), today * size / sizes["v2"][0]
        assert number(row[1]) == pytest.approx(size, abs=0.051)
        assert number(row[4]) == pytest.approx(cost, abs=0.51)
        assert row[5] == "–" if start == "Today" else number(row[5]) == pytest.approx(today - cost, abs=0.51)


def test_a_run_without_codecs_and_times_has_exact_sizes(chromium: Chromium, tmp_path: Path) -> None:
    rows = [row for row in workload_rows() if row["codec"] == "none" and row["kind"] == "bytes"]
    page = tmp_path / "index.html"
    page.write_bytes(dict(files_of(stored(tmp_path, rows)))["index.html"])
    tab = chromium.open(page, address="#records=11")
    assert number(row_of(tab, "v2")[1]) > 100
    assert row_of(tab, "v3")[3:] == ["exact", "–", "–"]  # no CPU times
    assert tab.complaints() == []


def test_the_address_has_the_settings(chromium: Chromium, front: Path) -> None:
    tab = chromium.open(front, address="#records=250&codec=zstd&formats=Proposals")
    assert tab.ask("document.getElementById('n-records').value") == "250"
    assert tab.ask("document.getElementById('c-codec').value") == "zstd"
    choose(tab, "n-key_bytes", "17")
    kept = tab.ask("location.hash")
    table = rows_of(tab)
    again = chromium.open(front, address=kept)
    assert again.ask("document.getElementById('n-key_bytes').value") == "17"
    assert rows_of(again) == table


@pytest.mark.parametrize(
    ("address", "name", "used"),
    [
        ("#records=0", "records", 1),
        ("#records=5000000", "records", 1_000_000),
        ("#key_bytes=-7", "key_bytes", -1),
        ("#headers=65", "headers", 64),
        ("#value_bytes=many", "value_bytes", 100),
        ("#span_ms=1e99", "span_ms", 315_576_000_000),
    ],
)
def test_settings_out_of_range_are_clamped_and_it_says_so(
    chromium: Chromium, front: Path, address: str, name: str, used: int
) -> None:
    tab = chromium.open(front, address=address)
    assert tab.ask(f"document.getElementById('n-{name}').value") == str(used)
    note = tab.ask("(note => note.hidden ? '' : note.textContent)(document.getElementById('explorer-notes'))")
    assert f"{used:,}".replace("-", "−") in note.replace("is used", "").replace("-", "−")
    assert tab.complaints() == []


@pytest.mark.parametrize("address", ["#<b>=1", "#codec=none%22%3E%3Cb%3E", "#records=&records=3&formats=none"])
def test_an_address_cannot_break_the_page(chromium: Chromium, front: Path, address: str) -> None:
    tab = chromium.open(front, address=address)
    assert not tab.ask("document.getElementById('explorer-notes').hidden")
    assert tab.ask("document.querySelectorAll('#explorer-notes *').length") == 0
    assert len(rows_of(tab)) == 2
    assert tab.complaints() == []


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_sentence_bars_and_tables_of_a_workload_agree(chromium: Chromium, front: Path, codec: str) -> None:
    data = json.loads(chromium.open(front).ask("document.getElementById('kfbench-explorer').textContent"))
    cell = next(each for each in data["workloads"] if each["name"] == "service-events")
    tab = chromium.open(front, address=f"#codec={codec}{RESEARCH}")
    choose(tab, "c-workload", "service-events")
    assert tab.ask("document.getElementById('n-headers').value") == str(cell["settings"]["headers"])
    sizes = dict(zip(data["formats"], cell["bytes"][codec], strict=False))
    width = "[...row.querySelectorAll('i')].reduce((sum, part) => sum + parseFloat(part.style.width), 0)"
    rows = "[...document.querySelectorAll('#explorer-table tbody tr')]"
    bars = dict(tab.ask(f"{rows}.map(row => [row.cells[0].textContent, {width}])"))
    for name in ("v2", "v3", "columnar"):
        row = row_of(tab, name)
        assert number(row[1]) == pytest.approx(sizes[name], abs=0.051) and row[3] == "measured"
        assert bars[name] / bars["v2"] == pytest.approx(sizes[name] / sizes["v2"], rel=1e-4)
        if name != "v2":
            assert number(row[2]) == pytest.approx(100 * (sizes[name] / sizes["v2"] - 1), abs=0.051)
    v3, saved = row_of(tab, "v3"), sizes["v2"] - sizes["v3"]
    summary = tab.ask(SUMMARY)
    assert f"{row_of(tab, 'v2')[1]} bytes" in summary and f"({v3[2]}, measured)" in summary
    assert f"saves {saved:.2f} bytes" in summary
    assert [row[1] for row in (bill_of(tab, "Today"), bill_of(tab, "v3 "))] == [row_of(tab, "v2")[1], v3[1]]
    choose(tab, "n-records", "2")
    assert tab.ask("document.getElementById('c-workload').value") == ""


@pytest.mark.parametrize("address", ["#records=5&value_bytes=300&codec=lz4", "#workload=service-events&codec=zstd"])
def test_the_choice_of_formats_changes_no_number(chromium: Chromium, front: Path, address: str) -> None:
    found: dict[str, set[tuple[str, ...]]] = {}
    for formats in format_sets():
        tab = chromium.open(front, address=f"{address}&formats={formats.replace(' ', '+')}")
        others = [["sentence", tab.ask(SUMMARY)], *rows_of(tab, "explorer-bill")]
        for name, *cells in [*rows_of(tab), *others]:
            found.setdefault(name, set()).add(tuple(cells))
    assert {"v2", "v3", "sentence"} < found.keys() and {name for name, rows in found.items() if len(rows) > 1} == set()


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_the_bill_starts_from_today(chromium: Chromium, front: Path, codec: str) -> None:
    tab = chromium.open(front, address=f"#records=10&codec={codec}&mb_per_s=3")
    rows, today = rows_of(tab, "explorer-bill"), month(3e6 * 86_400, Traffic(), Prices()).total
    assert rows[0][0].startswith("Today: v2, ") and number(rows[0][4]) == pytest.approx(today, abs=0.51)
    size = number(rows[0][1])
    for row in rows[1:]:
        assert number(row[4]) == pytest.approx(today * number(row[1]) / size, rel=4e-3)
        assert number(row[4]) + number(row[5]) == pytest.approx(today, abs=1.01)
        assert number(row[2]) == pytest.approx(100 * (number(row[1]) / size - 1), abs=0.4)
    assert len(rows) == (4 if codec == "zstd" else 6)
    assert any(row[0].startswith("zstd 3 instead of ") for row in rows) == (codec != "zstd")


def test_settings_far_from_measured_ones_are_empty(chromium: Chromium, front: Path) -> None:
    tab = chromium.open(front, address="#records=70000&value_bytes=300&codec=gzip&headers=30")
    assert {cell for row in rows_of(tab) for cell in (*row[1:3], *row[4:])} == {"–"}
    assert "%" not in tab.ask(SUMMARY) and "not measured" in tab.ask(SUMMARY)
    assert {row[1] for row in rows_of(tab, "explorer-bill")} == {"–"}


def test_a_number_grows_by_the_keyboard(chromium: Chromium, front: Path) -> None:
    tab = chromium.open(front)
    tab.ask("document.getElementById('n-records').focus()")
    summary = "document.querySelector('#explorer-summary[role=status]').textContent"
    before = tab.ask(summary)
    tab.send("Input.dispatchKeyEvent", type="keyDown", key="ArrowUp", windowsVirtualKeyCode=38)
    assert tab.ask("document.getElementById('n-records').value") == "11"
    assert tab.ask(summary) != before
    assert "records=11" in tab.ask("location.hash")
    assert tab.requests() == [front.as_uri()]  # nothing from a network


def test_a_changed_setting_in_an_address_leaves_the_workload(chromium: Chromium, front: Path) -> None:
    workload = "document.getElementById('c-workload').value"
    assert chromium.open(front, address="#workload=service-events&codec=zstd").ask(workload) == "service-events"
    assert chromium.open(front, address="#workload=service-events&records=3").ask(workload) == ""
