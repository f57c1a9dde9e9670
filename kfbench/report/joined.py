"""Find the newest stored run of a profile, so that a report of another run can show its rows.

Some profiles are too long for `make report`. They are measured apart, and each report joins the newest run.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from kfbench.errors import RunError
from kfbench.present.rows import OWN, Rows, Runs
from kfbench.shipped import DATASETS
from kfbench.store import Run, open_run
from kfbench.store.manifest import MANIFEST, read_complete
from kfbench.store.run import JOINED


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
