"""The files of a report: its pages, its figures, and the rows of its run.

The report is a front page (`index.html`) and a page per chapter. Each page has its style, script and figures inside, so
the folder opens from disk.
"""

import io
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jinja2
import pyarrow.parquet as pq
from markupsafe import Markup, escape

from kfbench.errors import RunError
from kfbench.formats import BASE_FORMAT, RESEARCH
from kfbench.report.data import noise
from kfbench.report.data.joined import DICTIONARY, FOLDER, RIVALS, joined_parquet, joined_runs
from kfbench.report.data.results import Results
from kfbench.report.data.views import Views
from kfbench.report.page import page as page_of
from kfbench.report.render import look
from kfbench.report.render.compact import compact_script, compact_tables
from kfbench.report.section import Block, Figure, drawn
from kfbench.report.topics import control
from kfbench.report.topics.dictionaries.section import CHAPTER as DICTIONARIES_CHAPTER
from kfbench.report.topics.explorer.data import explorer_parts, report_content
from kfbench.report.topics.front import Front, front
from kfbench.report.topics.reference import overhead_figure
from kfbench.report.topics.rivals.section import CHAPTER as RIVALS_CHAPTER
from kfbench.shipped import DATASETS
from kfbench.store import Run
from kfbench.tables import listed, prose
from kfbench.text import printable_lines

TEMPLATES = Path(__file__).parent / "templates"
NO_NUMBERS = "no row of this run is a number"


BIAS: Final = "../../docs/bias.md"  # from the folder of a published report
JOINED_CHAPTERS: Final = {DICTIONARIES_CHAPTER: DICTIONARY, RIVALS_CHAPTER: RIVALS}


def run_date(manifest: Mapping[str, Any]) -> str:
    """Return the day on which the sweep started (YYYY-MM-DD)."""
    return str(manifest["started"])[:10]


def is_for_publishing(manifest: Mapping[str, Any]) -> bool:
    """Return True if the run's report may be published.

    That is a whole sweep with `publish = true`, or an older run of the whole default profile.
    """
    is_whole_default = manifest.get("profile") == "default" and not manifest.get("filter")
    return bool(manifest.get("publish", is_whole_default))


def files_of(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of every file of the report."""
    manifest = run.manifest
    results = Results(run.measurements())
    measured = set(results.research.loc[results.research["status"] == "ok", "format"].dropna())
    if measured <= RESEARCH:
        alone = f"{listed(sorted(measured))} stands alone, with no {BASE_FORMAT} to compare it with"
        raise RunError(f"{run.path}: {alone if measured else NO_NUMBERS}: nothing to report")
    facts = manifest.get("noise")
    joined = joined_runs(run)
    others = {profile: each for profile, each in joined.items() if not each.is_own}
    page = page_of(results, blocks(manifest), facts, str(manifest["profile"]), joined)
    shown = _head(manifest, page.front, page.figures) | {
        "aa": control.aa_sentence(results),
        "prose": analysis_of(manifest),
        "chapters": page.chapters,
        "joined": [f"{FOLDER}/{profile}" for profile in others],
        "environment": facts_of(manifest),
    }
    explorer = {"explorer": explorer_parts(report_content(results, page.rivals))}
    yield "index.html", html(shown | explorer, results.formats, "front.html").encode()
    for chapter in page.chapters:
        own = {"chapter": chapter, **page.opening(chapter)._asdict()}
        if each := joined.get(JOINED_CHAPTERS.get(chapter.name, "")):
            of_joined = each.run.manifest
            own |= {"quiet": noise.state_words(of_joined.get("noise")), "subtitle": subtitle(of_joined)}
        yield f"{chapter.name}.html", html(shown | own, results.formats, "chapter.html").encode()
    yield "README.md", _markdown(shown).encode()
    for figure in page.figures:  # the chapters hold their own figures
        yield f"figures/{figure.name}.svg", figure.svg.encode()
    yield "measurements.parquet", _parquet(run)
    yield "manifest.json", (run.path / "manifest.json").read_bytes()
    for profile, each in others.items():
        yield f"{FOLDER}/{profile}/measurements.parquet", joined_parquet(each.run)
        yield f"{FOLDER}/{profile}/manifest.json", (each.run.path / "manifest.json").read_bytes()
    yield "environment.json", (json.dumps(manifest["environment"], indent=2, sort_keys=True) + "\n").encode()


def opening(run: Run) -> str:
    """Return the opening of the report's README.md (verdict, figure, ranges), without its sections."""
    results = Results(run.measurements())
    views = Views(results, run.manifest.get("noise"), joined_runs(run))
    figures = drawn([overhead_figure(results, views.verdicts.named_formats)])
    shown = _head(run.manifest, front(views), figures) | {"aa": "", "chapters": (), "joined": ()}
    return _markdown(shown).partition("\n## ")[0].strip()


def _head(manifest: Mapping[str, Any], words: Front, figures: Sequence[Figure]) -> dict[str, Any]:
    facts = manifest.get("noise")
    return {
        "title": "What does a Kafka record cost?",
        "subtitle": subtitle(manifest),
        "front": words,
        "figures": figures,
        "quiet": noise.state_words(facts),
        "noisy": noise.noisy_sentence(facts),
        "command": manifest["command"],
        "bias": BIAS if is_for_publishing(manifest) else "",
    }


def blocks(manifest: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of the sweep with their titles and texts.

    They are those of the run's manifest. A block that still measures the same in the sweep of this name takes the
    sweep's texts, which may be better by now.
    """
    then, now = _grids(_tables(str(manifest.get("profile_text", "")))), _grids(_shipped(manifest))
    found = []
    for grid in manifest["grids"]:
        name, text = grid["name"], grid
        if name in then and name in now and _without_texts(then[name]) == _without_texts(now[name]):
            text = now[name]
        found.append(Block(name=name, title=text["title"], analysis=text["analysis"]))
    return found


def analysis_of(manifest: Mapping[str, Any]) -> str:
    """Return the explanation of the whole sweep: today's, if the sweep is a shipped one."""
    return str(_shipped(manifest).get("analysis", manifest.get("analysis", ""))).strip()


def _shipped(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return today's tables of the shipped sweep with the name of the run's; empty if there is none."""
    path = DATASETS / "sweeps" / f"{manifest['profile']}.toml"
    return _tables(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _tables(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # the texts of several files: a sweep that extends another one
        return {}


def _grids(tables: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the blocks of a sweep by name; empty for a sweep that extends another one."""
    return {grid["name"]: grid for grid in tables.get("grid", ()) if "extends" not in tables}


def _without_texts(grid: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in grid.items() if name not in ("title", "analysis")}


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


def facts_of(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
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
        f"measured on {host}": {name: known[name] for name in of_host if name in known}
        for host, known in manifest.get("host_facts", {}).items()
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


def html(page: Mapping[str, Any], formats: Sequence[str], template: str) -> str:
    """Return a web page with its style, script and figures inside."""
    plain = _environment(autoescape=False)
    css = plain.get_template("style.css").render(
        light=look.css_variables(formats, dark=False), dark=look.css_variables(formats, dark=True)
    )
    script = compact_script((TEMPLATES / "page.js").read_text())

    def draw(figure: Figure, page: str = "") -> Markup:
        """Return the figure with a link to its numbers. page: the file that has them, if it is another one."""
        svg = look.inline(figure.svg, figure.name, str(escape(figure.alt)))
        caption = f"{escape(figure.caption)} {_links(figure, page)}"
        return Markup(f"<figure>{svg}<figcaption>{caption}</figcaption></figure>")

    rich = _environment(autoescape=True)
    rich.filters["prose"] = lambda text: Markup(prose(text))
    text = rich.get_template(template).render(page, css=Markup(css), script=Markup(script), draw=draw)
    return compact_tables(printable_lines(text))


def _links(figure: Figure, page: str) -> str:
    if isinstance(figure.numbers, str):
        return f'<a href="{page}#t-{figure.numbers}">Its numbers, as a table.</a>'
    links = [f'<a href="{page}#t-{name}">{escape(panel)}</a>' for panel, name in figure.numbers.items()]
    return f"Its numbers, as tables: {', '.join(links)}."


def _markdown(page: Mapping[str, Any]) -> str:
    text = _environment(autoescape=False).get_template("README.md").render(page)
    return printable_lines(re.sub("\n{3,}", "\n\n", text))


def _parquet(run: Run) -> bytes:
    """Return all rows of the run as one Parquet file, compressed strongly so that it can be committed."""
    sink = io.BytesIO()
    pq.write_table(run.table, sink, compression="zstd", compression_level=12)
    return sink.getvalue()
