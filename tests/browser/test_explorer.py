"""The explorer in a real browser: its form, its address, its numbers, by keyboard and on a phone."""

import json
from pathlib import Path
from typing import Any

import pytest

from kfbench.migration.bills import Prices, Traffic
from kfbench.present.calculator.data import format_sets
from kfbench.report.files import files_of
from kfbench.whatif.month import month
from tests.browser.chromium import Chromium, Tab
from tests.browser.explorer_points import python_sizes
from tests.browser.test_accessible import ALL_BUT_CONTRAST, CONTRAST, WIDE_PX, with_axe
from tests.report.workload_rows import workload_rows
from tests.runs import stored

pytestmark = [pytest.mark.browser, pytest.mark.thorough]  # rendering the page takes seconds
SUMMARY = "document.getElementById('explorer-summary').textContent"
ROWS = """[...document.querySelectorAll("#explorer-table tbody tr")].map(
  row => [...row.cells].map(cell => cell.textContent.trim()))"""


@pytest.fixture
def explorer(front: Path) -> Path:
    return front


def with_address(chromium: Chromium, page: Path, address: str, **window: Any) -> Tab:
    tab = chromium.open(page, **window)
    tab.ask(f"new Promise(done => (addEventListener('hashchange', () => done()), location.hash = {address!r}))")
    return tab


def row_of(tab: Tab, name: str) -> list[str]:
    rows: list[list[str]] = tab.ask(ROWS)
    return next(row for row in rows if row[0] == name)


def number(text: str) -> float:
    return float(text.removesuffix("%").replace(",", "").replace("−", "-"))


def test_the_table_shows_the_bytes_and_the_bill_of_python(chromium: Chromium, explorer: Path) -> None:
    tab = with_address(chromium, explorer, "#records=7&key_bytes=20&value_bytes=333&span_ms=0&headers=2&mb_per_s=3")
    settings = {
        "records": 7, "key_bytes": 20, "value_bytes": 333, "span_ms": 0,
        "headers": 2, "header_key_bytes": 12, "header_value_bytes": 20,
    }  # fmt: skip
    sizes = {name: size for name, [size] in python_sizes([settings]).items()}
    v2 = sizes["v2"]
    assert v2 is not None
    for name in ("v2", "v3", "columnar"):
        size = sizes[name]
        assert size is not None
        row = row_of(tab, name)
        assert number(row[1]) == pytest.approx(size / 7, abs=0.051)
        cost = month(3e6 * 86_400 * size / v2, Traffic(), Prices()).total
        assert number(row[5]) == pytest.approx(cost, abs=0.51)
    assert row_of(tab, "v0")[1] == "–"  # v0 has no headers


def test_a_run_without_codecs_and_times_has_exact_sizes(chromium: Chromium, tmp_path: Path) -> None:
    rows = [row for row in workload_rows() if row["codec"] == "none" and row["kind"] == "bytes"]
    page = tmp_path / "index.html"
    page.write_bytes(dict(files_of(stored(tmp_path, rows)))["index.html"])
    tab = chromium.open(page)
    assert number(row_of(tab, "v2")[1]) > 100
    assert row_of(tab, "v3")[3:5] == ["–", "–"]  # no CPU times
    assert tab.complaints() == []


def test_the_address_has_the_settings(chromium: Chromium, explorer: Path) -> None:
    tab = with_address(chromium, explorer, "#records=250&codec=zstd&formats=Proposals")
    assert tab.ask("document.getElementById('n-records').value") == "250"
    assert tab.ask("document.getElementById('c-codec').value") == "zstd"
    tab.ask("""(field => { field.value = 17; field.dispatchEvent(new Event("change")); })(
      document.getElementById("n-key_bytes"))""")
    kept = tab.ask("location.hash")
    table = tab.ask(ROWS)
    again = with_address(chromium, explorer, kept)
    assert again.ask("document.getElementById('n-key_bytes').value") == "17"
    assert again.ask(ROWS) == table


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
    chromium: Chromium, explorer: Path, address: str, name: str, used: int
) -> None:
    tab = with_address(chromium, explorer, address)
    assert tab.ask(f"document.getElementById('n-{name}').value") == str(used)
    note = tab.ask("(note => note.hidden ? '' : note.textContent)(document.getElementById('explorer-notes'))")
    assert f"{used:,}".replace("-", "−") in note.replace("is used", "").replace("-", "−")
    assert tab.complaints() == []


@pytest.mark.parametrize("address", ["#<b>=1", "#codec=none%22%3E%3Cb%3E", "#records=&records=3&formats=none"])
def test_an_address_cannot_break_the_page(chromium: Chromium, explorer: Path, address: str) -> None:
    tab = with_address(chromium, explorer, address)
    assert not tab.ask("document.getElementById('explorer-notes').hidden")
    assert tab.ask("document.querySelectorAll('#explorer-notes *').length") == 0
    assert len(tab.ask(ROWS)) == 5
    assert tab.complaints() == []


def test_a_workload_brings_its_own_measurements(chromium: Chromium, explorer: Path) -> None:
    data = json.loads(chromium.open(explorer).ask("document.getElementById('kfbench-explorer').textContent"))
    cell = next(each for each in data["workloads"] if each["name"] == "service-events")
    tab = with_address(chromium, explorer, "#codec=zstd")
    tab.ask("""(box => { box.value = "service-events"; box.dispatchEvent(new Event("change")); })(
      document.getElementById("c-workload"))""")
    assert tab.ask("document.getElementById('n-headers').value") == str(cell["settings"]["headers"])
    for name in ("v2", "columnar"):
        stored = cell["bytes"]["zstd"][data["formats"].index(name)]
        assert number(row_of(tab, name)[1]) == pytest.approx(stored, abs=0.51)
    tab.ask("""(field => { field.value = 2; field.dispatchEvent(new Event("change")); })(
      document.getElementById("n-records"))""")
    assert tab.ask("document.getElementById('c-workload').value") == ""


def test_a_workload_brings_rivals_as_measured(chromium: Chromium, explorer: Path) -> None:
    data = json.loads(chromium.open(explorer).ask("document.getElementById('kfbench-explorer').textContent"))
    (stored,) = [each["rivals"]["zstd"] for each in data["workloads"] if each["name"] == "service-events"]
    tab = with_address(chromium, explorer, "#workload=service-events&codec=zstd")
    for name, size, of_v2 in stored:
        row = row_of(tab, name)
        assert number(row[1]) == pytest.approx(size, abs=0.51)
        assert number(row[2]) == pytest.approx(100 * (size / of_v2 - 1), abs=0.51)
    assert {"arrow-ipc-bare", "avro-best", "parquet-best", "vortex-best"} <= {name for name, *_ in stored}
    tab = with_address(chromium, explorer, "#records=10&codec=zstd")
    assert "parquet-best" not in [row[0] for row in tab.ask(ROWS)]


@pytest.mark.parametrize(
    ("records", "value_bytes", "codec", "v3_percent"),  # the true change of bytes from v2 to v3
    [
        (5, 300, "lz4", -1.50), (10, 300, "zstd", -1.39), (30, 300, "zstd", -0.52), (20, 1000, "lz4", -0.24),
        (5, 500, "gzip", -1.45), (3, 300, "snappy", -2.10), (2, 50, "zstd", -7.51), (50, 100, "zstd", -1.49),
    ],
)  # fmt: skip
def test_a_number_under_a_codec_is_true_or_absent(
    chromium: Chromium, explorer: Path, records: int, value_bytes: int, codec: str, v3_percent: float
) -> None:
    is_measured = (records, value_bytes) == (50, 100)
    settings = f"#records={records}&value_bytes={value_bytes}&formats=All+formats"
    plain_shares = with_address(chromium, explorer, settings).ask(SUMMARY).count("%")
    tab = with_address(chromium, explorer, f"{settings}&codec={codec}")
    assert tab.ask(SUMMARY).count("%") == plain_shares + is_measured
    if is_measured:
        assert number(row_of(tab, "v3")[2]) == pytest.approx(v3_percent, abs=0.06)
    else:
        assert {cell for row in tab.ask(ROWS) for cell in row[1:]} == {"–"}


@pytest.mark.parametrize(
    "address",
    [
        "#records=50&codec=zstd", "#records=100&codec=lz4", "#records=100", "#records=5&value_bytes=300&codec=lz4",
        "#workload=service-events&codec=zstd",
    ],
)  # fmt: skip
def test_the_choice_of_formats_changes_no_number(chromium: Chromium, explorer: Path, address: str) -> None:
    found: dict[str, set[tuple[str, ...]]] = {}
    for formats in format_sets():
        tab = with_address(chromium, explorer, f"{address}&formats={formats.replace(' ', '+')}")
        for name, *cells in tab.ask(ROWS):
            found.setdefault(name, set()).add(tuple(cells))
    assert {"v2", "v3"} < found.keys() and {name for name, rows in found.items() if len(rows) > 1} == set()


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_the_bill_is_that_of_the_same_records_under_each_codec(chromium: Chromium, explorer: Path, codec: str) -> None:
    plain = number(row_of(with_address(chromium, explorer, "#records=100"), "v2")[1])
    tab = with_address(chromium, explorer, f"#records=100&codec={codec}&mb_per_s=3")
    for name in ("v2", "v3"):
        row = row_of(tab, name)
        cost = month(3e6 * 86_400 * number(row[1]) / plain, Traffic(), Prices()).total
        assert number(row[5]) == pytest.approx(cost, rel=2e-3)


def test_settings_that_were_not_measured_link_some_that_were(chromium: Chromium, explorer: Path) -> None:
    tab = with_address(chromium, explorer, "#records=70000&value_bytes=300&codec=gzip&headers=30")
    assert row_of(tab, "v2")[1] == "–"
    tab.ask("""new Promise(done => { addEventListener("hashchange", () => done());
      document.querySelector("#explorer-source a").click(); })""")
    assert number(row_of(tab, "v2")[1]) > 0 and number(row_of(tab, "v3")[5]) > 0
    assert tab.ask("document.getElementById('c-codec').value") == "gzip"


def test_a_slider_moves_by_the_keyboard(chromium: Chromium, explorer: Path) -> None:
    tab = chromium.open(explorer)
    tab.ask("document.querySelector('[data-name=records]').focus()")
    summary = "document.querySelector('#explorer-summary[role=status]').textContent"
    before = tab.ask(summary)
    tab.send("Input.dispatchKeyEvent", type="keyDown", key="ArrowRight", windowsVirtualKeyCode=39)
    assert tab.ask("document.getElementById('n-records').value") == "20"
    assert tab.ask("document.querySelector('[data-name=records]').getAttribute('aria-valuetext')").startswith("20 ")
    assert tab.ask(summary) != before
    assert "records=20" in tab.ask("location.hash")
    assert tab.requests() == [explorer.as_uri()]  # nothing from a network


def test_a_changed_setting_in_an_address_leaves_the_workload(chromium: Chromium, explorer: Path) -> None:
    workload = "document.getElementById('c-workload').value"
    assert with_address(chromium, explorer, "#workload=service-events&codec=zstd").ask(workload) == "service-events"
    assert with_address(chromium, explorer, "#workload=service-events&records=3").ask(workload) == ""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_in_the_explorer(chromium: Chromium, axe: str, explorer: Path, dark: bool) -> None:
    address = "#headers=2&records=0&formats=All+formats"
    assert with_axe(with_address(chromium, explorer, address, dark=dark), axe).ask(ALL_BUT_CONTRAST) == []
    assert with_axe(with_address(chromium, explorer, address, width=WIDE_PX, dark=dark), axe).ask(CONTRAST) == []
