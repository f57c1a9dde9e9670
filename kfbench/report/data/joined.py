"""Find the newest stored run of a profile, so that a report of another run can show its rows.

Some profiles are too long for `make report`. They are measured apart, and each report joins the newest run.
"""

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kfbench.errors import RunError
from kfbench.report.data import noise
from kfbench.shipped import DATASETS
from kfbench.store import Run, open_run
from kfbench.store.manifest import MANIFEST, read_complete

FOLDER: Final = "joined"
DICTIONARY: Final = "dictionary"  # the profile, and the kind of its sizes
RIVALS: Final = "rivals"  # the profile, and the kind of its sizes
INSTRUCTIONS: Final = "instructions"  # the profile, and the kind of its counts
PROFILES: Final = (DICTIONARY, RIVALS, INSTRUCTIONS)  # the profiles that a report joins
DICTIONARY_CPU: Final = "dictionary-cpu"
SAMPLES: Final = ("cpu_ns", "wall_ns")


@dataclass(frozen=True, kw_only=True, eq=False)
class Joined:
    """The rows of a run in a report. is_own: True if the report is of this run."""

    run: Run
    is_own: bool

    @cached_property
    def rows(self) -> pd.DataFrame:
        return self.run.measurements()

    @property
    def origin(self) -> str:
        """Sentences with the run's date, machine, noise and command."""
        manifest: Mapping[str, Any] = self.run.manifest
        environment = manifest["environment"]
        machine = environment.get("cpu") or environment.get("machine")
        whose = "This run was" if self.is_own else "These numbers are of another run,"
        command = f"kfbench sweep {manifest['profile']}"
        return (
            f"{whose} measured {str(manifest['started'])[:10]} on {machine}. "
            f"{noise.state_words(manifest.get('noise'))}. Repeat it: `{command}`."
        )


def joined_run(run: Run, profile: str) -> Joined | None:
    """Return the run itself if it has rows of the kind `profile`. Otherwise return the newest run of the profile.

    It is the newest by the manifest's `started`. Candidates lie in the folder of `run`, in `runs/` next to it, in the
    report itself, and among the shipped files. Filtered and unfinished runs do not count, nor runs that measured
    nothing of the kind, such as counts on a machine without valgrind.
    """
    if profile in run.table["kind"].unique().to_pylist():
        return Joined(run=run, is_own=True)
    started = {path: manifest["started"] for path, manifest in _candidates(run.path, profile)}
    newest_first = sorted(started, key=lambda path: started[path], reverse=True)
    return next((found for found in map(_opened, newest_first) if _has_numbers(found.run, profile)), None)


def _has_numbers(run: Run, kind: str) -> bool:
    return bool(pc.any(pc.and_(pc.equal(run.table["kind"], kind), pc.equal(run.table["status"], "ok"))).as_py())


def joined_runs(run: Run) -> dict[str, Joined]:
    """Return, per profile of PROFILES, the run that `joined_run` finds. Profiles without a run are left out."""
    found = {profile: joined_run(run, profile) for profile in PROFILES}
    return {profile: joined for profile, joined in found.items() if joined}


@lru_cache(maxsize=2 * len(PROFILES))
def _opened(path: Path) -> Joined:
    return Joined(run=open_run(path), is_own=False)


def _candidates(path: Path, profile: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    folders = [DATASETS / FOLDER / profile, path / FOLDER / profile]
    for runs in (path.parent, path.parent / "runs"):
        folders += sorted(file.parent for file in runs.glob(f"*/{MANIFEST}"))
    for folder in folders:
        try:
            manifest = read_complete(folder)
        except RunError:
            continue
        if manifest["profile"] == profile and not manifest.get("filter"):
            yield folder, manifest


def joined_parquet(run: Run) -> bytes:
    """Return the rows of a joined run as one Parquet file, as small as possible. The wall times are left out."""
    at = run.table.schema.get_field_index("wall_ns")
    field = run.table.schema.field(at)
    rows = run.table.set_column(at, field, pa.nulls(run.table.num_rows, field.type))
    others = [name for name in rows.column_names if name not in SAMPLES]
    encodings = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in SAMPLES}
    sink = io.BytesIO()
    pq.write_table(
        rows, sink, compression="zstd", compression_level=19, use_dictionary=others, column_encoding=encodings
    )
    return sink.getvalue()
