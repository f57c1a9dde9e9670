"""The files of a report: its pages, its figures, its numbers, and the rows of its run.

The report is a front page (`index.html`) and a page per subject. Each page has its style, script and figures inside, so
the folder opens from disk.

Some profiles are too long for `make report`. They are measured apart, and each report joins their newest run.
"""

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
import pyarrow.parquet as pq
from markupsafe import Markup

from kfbench.errors import RunError
from kfbench.formats import BASE_FORMAT, RESEARCH
from kfbench.measure.schema import SCHEMA_VERSION
from kfbench.present.calculator.data import explorer_parts, script_json
from kfbench.present.page import environment_of, html
from kfbench.present.rows import OWN, Rows, Runs, failed_checks, noise_state, run_date, run_words
from kfbench.present.table import listed
from kfbench.present.views import sparse
from kfbench.report.build import FRONT, Report, joined_profiles
from kfbench.report.calculator_rows import report_content
from kfbench.shipped import DATASETS
from kfbench.store import Run, open_run
from kfbench.store.manifest import MANIFEST, read_complete
from kfbench.store.run import JOINED, joined_parquet
from kfbench.text import printable_lines

BIAS: Final = "trust.html#bias"
TITLE: Final = "What does a Kafka record cost?"


def is_for_publishing(manifest: Mapping[str, Any]) -> bool:
    """Return True if the run's report may be published.

    That is a whole sweep with `publish = true`, or an older run of the whole default profile.
    """
    return bool(manifest.get("publish", _is_whole_default(manifest)))


def _is_whole_default(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("profile") == "default" and not manifest.get("filter")


def report_of(run: Run, joined: Mapping[str, Run] | None = None) -> Report:
    """Build the report of a run. joined: the runs whose rows it joins; None: those that `joined_runs` finds.

    A field in a text must have a number if the run is a whole default run of this schema. Otherwise its text is left
    out.
    """
    is_strict = _is_whole_default(run.manifest) and run.manifest.get("schema_version") == SCHEMA_VERSION
    found = joined_runs(run, joined_profiles()) if joined is None else joined
    return Report(runs_of(run, found), is_strict=is_strict)


def files_of(run: Run) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the bytes of every file of the report."""
    rows = run.measurements()
    measured = set(rows.loc[rows["status"] == "ok", "format"].dropna())
    if measured <= RESEARCH:
        alone = f"{listed(sorted(measured))} stands alone, with no {BASE_FORMAT} to compare it with"
        raise RunError(f"{run.path}: {alone if measured else 'no row of this run is a number'}: nothing to report")
    joined = joined_runs(run, joined_profiles())
    report, others = report_of(run, joined), {name: each for name, each in joined.items() if each.path != run.path}
    shown = _shown(run, report) | {"joined": [f"{JOINED}/{profile}" for profile in others]}
    formats = sorted(measured)
    for page in report.pages:
        own: dict[str, Any] = {"page": page, "views": Markup(script_json(sparse(page.views))) if page.views else ""}
        if page.name == FRONT:
            own["explorer"] = explorer_parts(report_content(report.runs))
        template = "front.html" if page.name == FRONT else "chapter.html"
        yield f"{page.name}.html", html(shown | own, formats, template).encode()
    text = environment_of(autoescape=False).get_template("README.md").render(shown | {"page": report.pages[0]})
    yield "README.md", printable_lines(re.sub("\n{3,}", "\n\n", text)).encode()
    yield "tables.json", (json.dumps(report.json, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    sink = io.BytesIO()
    pq.write_table(run.table, sink, compression="zstd", compression_level=12)  # small, because it is committed
    yield "measurements.parquet", sink.getvalue()
    yield "manifest.json", (run.path / "manifest.json").read_bytes()
    for profile, each in others.items():
        yield f"{JOINED}/{profile}/measurements.parquet", joined_parquet(each)
        yield f"{JOINED}/{profile}/manifest.json", (each.path / "manifest.json").read_bytes()
    yield "environment.json", (json.dumps(run.manifest["environment"], indent=2, sort_keys=True) + "\n").encode()


def _shown(run: Run, report: Report) -> dict[str, Any]:
    manifest = run.manifest
    return {
        "title": TITLE,
        "subtitle": subtitle(manifest),
        "status": status(manifest),
        "noisy": failed_checks(manifest),
        "command": manifest["command"],
        "bias": BIAS,
        "pages": report.pages,
        "about": str(manifest.get("analysis", "")),
        "grids": manifest["grids"],
        "environment": facts_of(manifest),
    }


def status(manifest: Mapping[str, Any]) -> str:
    """Return the day, the machine and the noise state of a run in a few words, for the header of a page."""
    environment = manifest["environment"]
    machine = str(environment.get("cpu") or environment.get("machine")).partition(",")[0]
    state = re.sub(r": (\d+) of (\d+).*", r" \1/\2", noise_state(manifest))
    return f"{run_date(manifest)} · {machine} · {state[0].lower()}{state[1:]}"


def subtitle(manifest: Mapping[str, Any]) -> str:
    """Return the run's machine, noise, profile and revision in words."""
    environment = manifest["environment"]
    version = environment.get("packages", {}).get("kfbench", "unknown")
    commit, _, dirty = (environment.get("git_revision") or "unknown").partition("-")
    revision = commit[:12] + (f"-{dirty}" if dirty else "")
    return f"{run_words(manifest)} Profile {manifest['profile']}, kfbench {version}, revision {revision}."


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


def joined_runs(run: Run, profiles: Iterable[str]) -> dict[str, Run]:
    """Return, per profile, the run that `joined_run` finds. Profiles without a run are left out."""
    return {profile: joined for profile in profiles if (joined := joined_run(run, profile)) is not None}


def runs_of(run: Run, found: Mapping[str, Run]) -> Runs:
    """Return the rows of a report's run, and of the runs that it joins. found: the result of `joined_runs`."""
    own = Rows(run.measurements())
    rows = {profile: own if joined is run else _rows(joined.path) for profile, joined in found.items()}
    manifests = {profile: joined.manifest for profile, joined in found.items()}
    return Runs(own=own, joined=rows, manifests={OWN: run.manifest, **manifests})


def joined_run(run: Run, profile: str) -> Run | None:
    """Return the run itself if it has rows of the kind `profile`. Otherwise return the newest run of the profile.

    It is the newest by the manifest's `started`. Candidates lie in the folder of `run`, in `runs/` next to it, in the
    report itself, and among the shipped files. Filtered and unfinished runs do not count, nor runs that measured
    nothing of the kind, such as counts on a machine without valgrind.
    """
    if profile in run.table["kind"].unique().to_pylist():
        return run
    started = {path: manifest["started"] for path, manifest in _candidates(run.path, profile)}
    newest_first = sorted(started, key=lambda path: started[path], reverse=True)
    return next((found for found in map(_opened, newest_first) if _has_numbers(found, profile)), None)


def _has_numbers(run: Run, profile: str) -> bool:
    """Return True if a row of the kind `profile` has a number, or any row if the run has no row of that kind."""
    rows = run.table.select(["kind", "status"])
    of_kind = rows.filter(pc.equal(rows["kind"], profile))
    return "ok" in (of_kind if len(of_kind) else rows)["status"].unique().to_pylist()


@lru_cache(maxsize=6)
def _opened(path: Path) -> Run:
    return open_run(path)


@lru_cache(maxsize=6)
def _rows(path: Path) -> Rows:
    return Rows(_opened(path).measurements())


def _candidates(path: Path, profile: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    folders = [DATASETS / JOINED / profile, path / JOINED / profile]
    for runs in (path.parent, path.parent / "runs"):
        folders += sorted(file.parent for file in runs.glob(f"*/{MANIFEST}"))
    for folder in folders:
        try:
            manifest = read_complete(folder)
        except RunError:
            continue
        if manifest["profile"] == profile and not manifest.get("filter"):
            yield folder, manifest
