"""A published report is complete, has equal bytes for equal runs, and never replaces another report."""

import json
import re
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kfbench.errors import RunError
from kfbench.measure.noise import noise_facts
from kfbench.report import publish as module
from kfbench.report.build import all_views
from kfbench.report.files import facts_of, files_of
from kfbench.report.publish import UNPUBLISHED, newest, place_of, publish
from kfbench.report.sources import clients
from kfbench.store import Run, create_run, open_run
from tests.measure.test_noise import rows as noise_rows
from tests.report.conftest import PUBLISHED
from tests.report.workload_rows import workload_rows
from tests.runs import MANIFEST, stored


@pytest.fixture(scope="module")
def report(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(run.path, tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def pages(report: Path) -> dict[str, str]:
    """Return each page of the report, by the name of its file."""
    return {path.name: path.read_text() for path in sorted(report.glob("*.html"))}


@pytest.fixture(scope="module")
def text(pages: dict[str, str]) -> str:
    """Return all pages of the report as one text."""
    return "".join(pages.values())


class Outline(HTMLParser):
    """Parses a page: its tags in order, their ids, and the elements that are still open."""

    VOID = frozenset({"meta", "br", "img", "link", "input", "hr", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.mark.slow
def test_a_report_is_the_newest_also_where_an_older_one_was_removed(run: Run, tmp_path: Path) -> None:
    date = run.manifest["started"][:10]
    for n in (2, 10):
        (tmp_path / f"{date}.{n}").mkdir()
    made = publish(run.path, tmp_path)
    assert made.name == f"{date}.11"
    (made / "manifest.json").write_text('{"publish": true}')
    assert newest(tmp_path) == made


def test_a_report_is_named_after_the_day_of_the_run_and_holds_what_it_says(report: Path, run: Run) -> None:
    assert report.name == f"{run.manifest['started'][:10]}.1"
    files = {path.relative_to(report).as_posix() for path in report.rglob("*") if path.is_file()}
    assert {"README.md", "index.html", "measurements.parquet", "manifest.json", "environment.json"} <= files
    pages = {f"{view.page.name}.html" for view in all_views() if view.page}
    # The run has no workloads, no broker paths and no columnar, and joins no run.
    assert pages - files == {"workloads.html", "broker.html", "research.html"}
    assert json.loads((report / "environment.json").read_text()) == run.manifest["environment"]
    assert pq.read_table(report / "measurements.parquet").equals(run.table)


def test_the_same_run_gives_the_same_directory_and_nothing_else(run: Run, report: Path) -> None:
    before = sorted(report.parent.rglob("*"))
    assert publish(run.path, report.parent) == report
    assert sorted(report.parent.rglob("*")) == before


@pytest.mark.parametrize("of", ["run", pytest.param("report", marks=pytest.mark.slow)])
def test_every_byte_is_the_same_in_another_place_and_when_rendered_again(
    run: Run, report: Path, tmp_path: Path, of: str
) -> None:
    other = publish(run.path if of == "run" else report, tmp_path / "deep" / "reports")
    for path in report.rglob("*"):
        if path.is_file():
            assert (other / path.relative_to(report)).read_bytes() == path.read_bytes(), path.name


@pytest.mark.slow
def test_times_of_peers_are_of_the_code_and_not_of_the_run(
    run: Run, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "load_peers", lambda: None)
    without = publish(run.path, tmp_path)
    tables, others = (json.loads((folder / "tables.json").read_bytes()) for folder in (report, without))
    assert tables.keys() - others.keys() == {"clients", "client-cells", "peers", "peer-differences"}
    assert {name for name, table in others.items() if table != tables[name]} == {"missing", "runs"}
    for name in ("measurements.parquet", "manifest.json", "environment.json"):
        assert (without / name).read_bytes() == (report / name).read_bytes(), name


@pytest.mark.thorough
def test_another_report_of_that_day_gets_the_next_number_and_the_first_stays(
    run: Run, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    first = publish(run.path, tmp_path)
    changed = first / "README.md"
    changed.write_text("edited by hand")
    second = publish(run.path, tmp_path)
    assert second.name == f"{first.name[:-2]}.2"
    assert changed.read_text() == "edited by hand"
    assert publish(run.path, tmp_path) == second


def put_report(folder: Path, **manifest: Any) -> None:
    folder.mkdir(parents=True)
    (folder / "index.html").touch()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_the_newest_report_for_publishing_is_found_by_day_and_number(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="make report"):
        newest(tmp_path)
    for name in ("2026-11-20.9", "2026-11-20.10", "2026-09-30.99", ".2026-12-01.x"):
        put_report(tmp_path / name, profile="default", publish=True)
    put_report(tmp_path / "2026-11-21.1", profile="smoke", publish=False)
    put_report(tmp_path / UNPUBLISHED / "2026-11-21.2", profile="default", publish=True)
    put_report(tmp_path / "2026-11-21.3", profile="smoke", filter=[])  # without the key `publish`, as older reports
    put_report(tmp_path / "2026-11-21.4", profile="default", filter=["kind=bytes"])
    (tmp_path / "2026-11-21.5").mkdir()
    (tmp_path / "2026-11-21.5" / "index.html").touch()
    assert newest(tmp_path).name == "2026-11-20.10"
    put_report(tmp_path / "2026-11-21.6", profile="default", filter=[])
    assert newest(tmp_path).name == "2026-11-21.6"
    put_report(tmp_path / "2026-11-21.7", profile="default")
    assert newest(tmp_path).name == "2026-11-21.7"


def test_what_is_not_for_publishing_goes_where_git_ignores_it(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for is_published in (True, False):
        run = stored(tmp_path, rows, publish=is_published).path
        place = place_of(run, root / "reports")
        assert place.parent == (root if is_published else root / "reports")
        asked = subprocess.run(["git", "check-ignore", "-q", place / "2026-11-22.1"], cwd=root, check=False)
        assert asked.returncode == (1 if is_published else 0)


def broken(run: Run) -> Any:
    yield "index.html", b"half"
    raise RuntimeError("disk full")


def unwritable(run: Run) -> Any:
    yield from [("index.html", b"whole"), ("README.md", "not bytes")]


@pytest.mark.parametrize(("render", "error"), [(broken, RuntimeError), (unwritable, TypeError)])
def test_nothing_is_left_when_rendering_or_writing_fails(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, render: Any, error: type[Exception]
) -> None:
    monkeypatch.setattr(module, "files_of", render)
    with pytest.raises(error):
        publish(run.path, tmp_path)
    assert not list(tmp_path.iterdir())


def unfinished(folder: Path, run: Run) -> Path:
    writer = create_run(folder, MANIFEST)
    writer.add(run.table)
    return writer.path


def of_another_schema(folder: Path, run: Run) -> Path:
    other = stored(folder, run.table.to_pylist()).path
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps(manifest | {"schema_version": 999}))
    return other


def without_a_number(folder: Path, run: Run) -> Path:
    return stored(folder, [row for row in run.table.to_pylist() if row["status"] == "skipped"]).path


REFUSED: Final = [(unfinished, "interrupted"), (of_another_schema, "999"), (without_a_number, "nothing to report")]


@pytest.mark.parametrize(("store", "reason"), REFUSED)
def test_a_run_without_a_report_is_refused(store: Callable[..., Path], reason: str, run: Run, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=reason):
        publish(store(tmp_path, run), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["", *(f"joined/{name}" for name in ("dictionary", "rivals"))])
def test_the_rows_of_a_kind_alone_render(folder: str, tmp_path: Path) -> None:
    """Every 40th cell of the large kinds."""
    whole = open_run(PUBLISHED / folder)
    for kind in pc.unique(whole.table["kind"]).to_pylist():
        rows = whole.table.filter(pc.field("kind") == kind)
        cells = pc.unique(rows["cell_id"])[:: 40 if len(rows) > 1_000 else 1]
        rows = rows.filter(pc.field("cell_id").isin(cells))
        (alone := tmp_path / kind).mkdir()
        (alone / "manifest.json").write_text(
            json.dumps({**whole.manifest, "rows": len(rows), "filter": [f"kind={kind}"]})
        )
        pq.write_table(rows, alone / "measurements.parquet")
        files = dict(files_of(open_run(alone)))
        assert "index.html" in files and len(files) > 2, kind


def test_each_page_is_one_well_formed_file_without_a_network(pages: dict[str, str]) -> None:
    for page in pages.values():
        outline = Outline(page)
        assert outline.open == []
        assert not [tag for tag, _ in outline.tags if tag in ("link", "img", "iframe", "object")]
        assert all("src" not in attributes for attributes in outline.all("script"))
        links = [a.get("href") or "" for a in outline.all("a")]
        assert links
        assert not [link for link in links if "//" in link]
        assert not re.search(r"@import|url\((?!#)", page)
        without = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
        assert ('id="kfbench-views"' in page) == ('id="t-preset-' in without)  # the first preset needs no script


def test_a_plain_table_stands_under_the_words_of_its_run(pages: dict[str, str]) -> None:
    """The rows of other implementations have those of another run."""
    shown = set()
    for page in (page for page in pages.values() if 'id="kfbench-views"' in page):
        data = json.loads(page.partition('id="kfbench-views">')[2].partition("</script>")[0])
        run = data["views"][data["presets"][0]["view"]]["run"]
        shown.add(run)
        assert f'<p class="meta">{run}</p>' in page.partition('<section id="views"')[2].partition("<table")[0]
    assert len(shown) == 2


def test_every_link_leads_somewhere(pages: dict[str, str], report: Path) -> None:
    ids = {name: [each["id"] for _, each in Outline(page).tags if each.get("id")] for name, page in pages.items()}
    for name, page in pages.items():
        assert len(ids[name]) == len(set(ids[name]))
        for link in (a.get("href") or "" for a in Outline(page).all("a")):
            file, _, anchor = link.partition("#")
            assert not file or (report / file).exists(), (name, link)
            assert not anchor or anchor in ids[file or name], (name, link)


def test_headings_are_in_order(pages: dict[str, str]) -> None:
    for page in pages.values():
        levels = [int(tag[1]) for tag, _ in Outline(page).tags if re.fullmatch(r"h\d", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))


def test_no_number_is_missing_in_silence(text: str, report: Path) -> None:
    words = r"\b(nan|NaN|None|inf|<NA>)\b"
    assert not re.search(words, re.sub(r"<script>.*?</script>|<style>.*?</style>", "", text, flags=re.DOTALL))
    assert not re.search(words, (report / "README.md").read_text())


def test_markdown_links_every_page_and_file(report: Path) -> None:
    text = (report / "README.md").read_text()
    links = {link.partition("#")[0] for _, link in re.findall(r"\[(.+?)\]\((.+?)\)", text)}
    assert links == {path.name for path in report.iterdir()} - {"README.md"}
    assert len(text.encode()) < 20_000 and "&amp;" not in text


def test_a_noisy_run_says_so_before_its_first_number(tmp_path: Path) -> None:
    run = stored(tmp_path, workload_rows(), noise=noise_facts(noise_rows(others_cpu_ns=90_000_000)))
    files = dict(files_of(run))
    for name, after in (("README.md", "Noisy run: "), ("index.html", '<p class="lead">'), ("workloads.html", "<table")):
        text = files[name].decode()
        assert "0.30 cores" in text[text.index("Noisy: ") :][:100]
        assert text.index("Noisy: ") < text.index(after)


def test_the_environment_says_what_the_engine_took_and_what_the_cells_were_chosen_by() -> None:
    stages = [
        {"kind": "bytes", "wall_s": 2.0, "slots": 2, "overhead_share": 0.0712},
        {"kind": "cpu", "wall_s": 3.0, "slots": 1, "overhead_share": 0.1},
        {"kind": "cpu", "wall_s": 1.0, "slots": 1, "overhead_share": 0.5},  # a second session that resumed the run
    ]
    shown = facts_of({"environment": {"cores": 2}, "stages": stages, "filter": ["kind=bytes,cpu"]})
    assert shown == [("filter", "kind=bytes,cpu"), ("engine's share of the time", "bytes 7%, cpu 20%"), ("cores", "2")]
    assert facts_of({"environment": {"cores": 2}, "filter": []}) == [("cores", "2")]
