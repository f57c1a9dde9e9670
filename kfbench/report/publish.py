"""Write a report as a folder `OUT/<date>.<n>/` that can be read, mailed or committed.

A report that is not for publishing goes to `OUT/unpublished/<date>.<n>/`, which git ignores (docs/publish.md).

Laws (tests/report/test_publish.py):
1. The same run gives the same bytes on every machine with the same versions of the code and of its libraries. A report
  depends on no clock, host or path of the machine. Some contents belong to the version of the code, not to the run:
  times of other implementations, numbers computed from the formats (claims, holes), definitions of classes, and assumed
  traffic and prices.
2. An existing report is never changed. A new report goes to a new `<n>`, unless a report with the same bytes exists.
3. A half-written report has another name. It is written next to its final place and renamed when it is complete.
4. Unfinished runs and runs of another schema are refused (kfbench.store.open_run).
"""

import io
import json
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import jinja2
import pyarrow.parquet as pq
from markupsafe import Markup, escape

from kfbench.errors import RunError
from kfbench.formats import BASE_FORMAT, RESEARCH
from kfbench.report.data import noise
from kfbench.report.data.results import Results
from kfbench.report.page import page as page_of
from kfbench.report.render import look
from kfbench.report.section import Block, Figure
from kfbench.report.topics import control
from kfbench.store import Run, open_run
from kfbench.tables import listed, prose

TEMPLATES = Path(__file__).parent / "templates"
UNPUBLISHED = "unpublished"
NO_NUMBERS = "no row of this run is a number"


def publish(run: Path, out: Path) -> Path:
    """Write the report of a finished run to a folder under `out`, and return that folder.

    Raises RunError if the run is missing, unfinished or of another schema.
    """
    opened = open_run(run)
    return place(dict(render(opened)), out, run_date(opened.manifest))


def place(files: Mapping[str, bytes], out: Path, date: str) -> Path:
    """Write the files to a new folder OUT/<date>.<n>, and return it.

    If an existing folder has exactly these files, return that folder and write nothing. files: path in the folder ->
    bytes.
    """
    out.mkdir(parents=True, exist_ok=True)
    for existing in sorted(out.glob(f"{date}.*"), key=_serial):
        if existing.is_dir() and _same(existing, files):
            return existing
    staging = Path(tempfile.mkdtemp(prefix=f".{date}.", dir=out))
    try:
        for name, data in files.items():
            path = staging / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        staging.chmod(0o755)  # mkdtemp creates it with 0700
        return _claim(staging, out, date)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def is_for_publishing(manifest: Mapping[str, Any]) -> bool:
    """Return True if the run's report may be published.

    That is a whole sweep with `publish = true`, or an older run of the whole default profile.
    """
    is_whole_default = manifest.get("profile") == "default" and not manifest.get("filter")
    return bool(manifest.get("publish", is_whole_default))


def place_of(run: Path, reports: Path) -> Path:
    """Return the folder in which a finished run's report is written if the user gives no `--out`.

    Raises RunError if the run is missing, unfinished or of another schema.
    """
    return reports if is_for_publishing(open_run(run).manifest) else reports / UNPUBLISHED


def newest(reports: Path, profile: str | None = None) -> Path:
    """Return the folder of the newest report that is for publishing. profile: consider only reports of this profile.

    Raises RunError if there is none.
    """
    found = []
    for page in reports.glob("[0-9]*.*/index.html"):
        file = page.with_name("manifest.json")
        manifest = json.loads(file.read_bytes()) if file.is_file() else {}
        if is_for_publishing(manifest) and profile in (None, manifest.get("profile")):
            found.append(page.parent)
    if not found:
        of = f" of the {profile} profile" if profile else ""
        raise RunError(f"{reports}: there is no published report{of}; make one with: make report")
    return max(found, key=lambda path: (path.name.rpartition(".")[0], _serial(path)))


def _claim(staging: Path, out: Path, date: str) -> Path:
    """Rename the folder to the next free `<date>.<n>`. Other processes may take numbers at the same time."""
    for n in count(1 + max(map(_serial, out.glob(f"{date}.*")), default=0)):
        target = out / f"{date}.{n}"
        if target.exists():
            continue
        try:
            staging.rename(target)
        except OSError:
            if target.exists():
                continue
            raise
        return target
    raise AssertionError("count() does not end")


def _serial(path: Path) -> int:
    tail = path.name.rpartition(".")[2]
    return int(tail) if tail.isdigit() else 0


def _same(directory: Path, files: Mapping[str, bytes]) -> bool:
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    return found == set(files) and all((directory / name).read_bytes() == data for name, data in files.items())


def run_date(manifest: Mapping[str, Any]) -> str:
    """Return the day on which the sweep started (YYYY-MM-DD)."""
    return str(manifest["started"])[:10]


def render(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of every file of the report."""
    manifest = run.manifest
    results = Results(run.measurements())
    if results.ok.empty:
        measured = results.research.loc[results.research["status"] == "ok", "format"]
        alone = sorted(RESEARCH & set(measured.dropna()))
        why = f"{listed(alone)} stands alone, with no {BASE_FORMAT} to compare it with" if alone else NO_NUMBERS
        raise RunError(f"{run.path}: {why}: nothing to report")
    noisy = manifest.get("noise")
    page = page_of(results, blocks(manifest), noisy)
    shown = {
        "title": "Kafka record formats " + listed([name for name in results.formats if "-" not in name]),
        "subtitle": subtitle(manifest),
        "lead": page.lead,
        "head_table": page.table,
        "head_figures": page.figures,
        "head_costs": page.costs,
        "noisy": noise.noisy_sentence(noisy),
        "aa": control.aa_sentence(results),
        "prose": str(manifest.get("analysis", "")).strip(),
        "sections": page.sections,
        "command": manifest["command"],
        "environment": facts(manifest),
    }
    yield "index.html", html(shown, results.formats).encode()
    yield "README.md", _markdown(shown).encode()
    for figure in (*page.figures, *(figure for section in page.sections for figure in section.figures)):
        yield f"figures/{figure.name}.svg", figure.svg.encode()
    yield "measurements.parquet", _parquet(run)
    yield "manifest.json", (run.path / "manifest.json").read_bytes()
    yield "environment.json", (json.dumps(manifest["environment"], indent=2, sort_keys=True) + "\n").encode()


def blocks(manifest: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of the sweep with their titles and texts. They are read from the run's manifest."""
    return [Block(name=grid["name"], title=grid["title"], analysis=grid["analysis"]) for grid in manifest["grids"]]


def subtitle(manifest: Mapping[str, Any]) -> str:
    environment = manifest["environment"]
    parts = [
        f"profile {manifest['profile']}",
        f"measured {run_date(manifest)}",
        f"on {environment.get('cpu') or environment.get('machine')}",
        f"kfbench {environment.get('packages', {}).get('kfbench', 'unknown')}",
        f"revision {_revision(environment.get('git_revision'))}",
    ]
    return ", ".join(parts) + "."


def _revision(revision: str | None) -> str:
    """Return the first twelve digits of the git revision, with a mark for uncommitted changes."""
    commit, _, dirty = (revision or "unknown").partition("-")
    return commit[:12] + (f"-{dirty}" if dirty else "")


def facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the properties of the run that a reader needs to judge or repeat it, as pairs of name and value."""
    environment = manifest["environment"]
    names = ("profile", "seed", "schema_version", "started", "finished", "master", "spark", "counts", "hosts")
    own = {name: manifest[name] for name in names if name in manifest}
    if manifest.get("filter"):
        own["filter"] = manifest["filter"]
    if stages := manifest.get("stages"):
        own["engine's share of the time"] = {kind: f"{share:.0%}" for kind, share in _engine_shares(stages).items()}
    of_host = ("cpu", "cpu_model", "cores", "cache", "kernel_features", "system", "python")
    hosts = {
        f"measured on {host}": {name: facts[name] for name in of_host if name in facts}
        for host, facts in manifest.get("host_facts", {}).items()
        if host != environment.get("host")
    }
    return [(name.replace("_", " "), _words(value)) for name, value in {**own, **hosts, **environment}.items()]


def _engine_shares(stages: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the engine's share of the workers' time, per kind of measurement.

    It is the share in which no task measured or waited for the host lock. A resumed run has several stages per kind.
    """
    slot_s: dict[str, float] = defaultdict(float)
    engine_s: dict[str, float] = defaultdict(float)
    for stage in stages:
        stage_s = stage["wall_s"] * stage["slots"]
        slot_s[stage["kind"]] += stage_s
        engine_s[stage["kind"]] += stage_s * stage["overhead_share"]
    return {kind: engine_s[kind] / total_s if total_s else 0.0 for kind, total_s in slot_s.items()}


def _words(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)


def _environment(autoescape: bool) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )


def html(page: Mapping[str, Any], formats: Sequence[str], template: str = "index.html") -> str:
    """Return the web page with its style, script and figures inside."""
    plain = _environment(autoescape=False)
    css = plain.get_template("style.css").render(
        light=look.css_variables(formats, dark=False), dark=look.css_variables(formats, dark=True)
    )
    script = (TEMPLATES / "page.js").read_text()

    def draw(figure: Figure) -> Markup:
        """Return the figure with a link to its numbers."""
        svg = look.inline(figure.svg, figure.name, str(escape(figure.alt)))
        return Markup(f"<figure>{svg}<figcaption>{escape(figure.caption)} {_links(figure)}</figcaption></figure>")

    rich = _environment(autoescape=True)
    rich.filters["prose"] = lambda text: Markup(prose(text))
    return rich.get_template(template).render(page, css=Markup(css), script=Markup(script), draw=draw)


def _links(figure: Figure) -> str:
    if isinstance(figure.numbers, str):
        return f'<a href="#t-{figure.numbers}">Its numbers, as a table.</a>'
    links = [f'<a href="#t-{name}">{escape(panel)}</a>' for panel, name in figure.numbers.items()]
    return f"Its numbers, as tables: {', '.join(links)}."


def _markdown(page: Mapping[str, Any]) -> str:
    text = _environment(autoescape=False).get_template("README.md").render(page)
    return re.sub("\n{3,}", "\n\n", text)


def _parquet(run: Run) -> bytes:
    """Return all rows of the run as one Parquet file, compressed strongly so that it can be committed."""
    sink = io.BytesIO()
    pq.write_table(run.table, sink, compression="zstd", compression_level=12)
    return sink.getvalue()
