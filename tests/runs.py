"""Small runs for tests: real cells (measurements), measured and stored by the real code."""

import getpass
import json
import re
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.measure.environment import environment
from kfbench.measure.schema import DETERMINISTIC, SCHEMA, table
from kfbench.store import Run, create_run, open_run
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.task import measure_cell

REPORTS = Path(__file__).parents[1] / "reports"
_TINY = """\
title = "tiny"
analysis = "a"
seed = 3
[bytes]
records = 200
[cpu]
records = 200
rounds = 3
sample_us = 20
[[grid]]
name = "sizes"
title = "Sizes"
analysis = "what it says"
measure = ["bytes"]
formats = {formats}
codecs = {{ none = [], zstd = [3] }}
illegal = "skip"
axes = {{ batch_size = [1, 10, 100], timestamp_spread_ms = [0, 1000] }}
[[grid]]
name = "times"
title = "Times"
analysis = "a"
measure = ["cpu"]
formats = {timed}
axes = {{ batch_size = {batch_sizes} }}
[[grid]]
name = "floors"
title = "Floors"
analysis = "a"
measure = ["floor"]
formats = ["v2"]
axes = {{ batch_size = [1, 10], timestamp_spread_ms = [0, 1000] }}
"""
SWEEP = """
title = "for tests"
analysis = "All of it."
bytes = {records = 200}
cpu = {records = 100, rounds = 7, sample_us = 50}

[[grid]]
name = "batch"
title = "batch size"
analysis = "Prose of the batch grid: a < b & c."
measure = ["bytes", "cpu", "floor"]
formats = ["v0", "v1", "v2", "v3", "v3-attributes-only", "v3-header-only"]
axes = {batch_size = [1, 2, 3, 5, 10, 100]}

[[grid]]
name = "spread"
title = "timestamps"
analysis = "Prose of the spread grid."
measure = ["bytes"]
formats = ["v0", "v1", "v2", "v3"]
axes = {timestamp_spread_ms = [0, 63, 64, 8192], batch_size = [10]}

[[grid]]
name = "key"
title = "keys"
analysis = "Prose of the key grid."
measure = ["bytes"]
formats = ["v0", "v1", "v2", "v3"]
axes = {key_bytes = ["null", 16, 63, 64]}

[[grid]]
name = "headers"
title = "headers"
analysis = "Prose of the header grid."
measure = ["bytes"]
formats = ["v1", "v2", "v3"]
axes = {headers = [0, 2]}
illegal = "skip"

[[grid]]
name = "codecs"
title = "codecs"
analysis = "Prose of the codec grid."
measure = ["bytes"]
formats = ["v1", "v2", "v3"]
axes = {batch_size = [1, 10]}
codecs = {gzip = [6], zstd = [3]}
illegal = "skip"

[[grid]]
name = "large"
title = "control"
analysis = "Prose of the control grid."
measure = ["cpu"]
formats = ["v0", "v1", "v2", "v3"]
axes = {value_bytes = [100, 20000], batch_size = [5]}

[[grid]]
name = "prefix"
title = "prefix"
analysis = "Prose of the prefix grid."
measure = ["prefix"]
formats = ["v3-full"]
axes = {value_bytes = [1000], batch_size = [10, 100]}
codecs = {gzip = [6], zstd = [3]}
"""


def tiny(formats: list[str], timed: list[str], batch_sizes: list[int]) -> str:
    """Return the text of a sweep file that takes about a second to measure.

    It measures the bytes of these formats under two codecs, their floors (lower bounds), and one timed cell per batch
    size.
    """
    return _TINY.format(formats=json.dumps(formats), timed=json.dumps(timed), batch_sizes=batch_sizes)


def stored(out: Path, rows: list[dict[str, Any]], **facts: Any) -> Run:
    """Store the rows as a complete run in out/runs."""
    writer = create_run(out, MANIFEST | facts)
    writer.add(table(rows))
    return writer.complete({})


def date_and_number(report: str) -> tuple[str, int]:
    """Return what orders reports by their names."""
    date, _, number = report.partition(".")
    return date, int(number)


def committed_reports() -> list[Path]:
    """Return the folders of the committed reports, the oldest first. One that `make report` just made is not there."""
    listed = subprocess.run(["git", "ls-files"], cwd=REPORTS, capture_output=True, text=True, check=True).stdout.split()
    return [
        REPORTS / name
        for name in sorted({each.partition("/")[0] for each in listed if "/" in each}, key=date_and_number)
    ]


MANIFEST: dict[str, Any] = {
    "profile": "tests",
    "title": "for tests",
    "analysis": "All of it.",
    "seed": 0,
    "command": "kfbench sweep tests.toml --out somewhere",
    "environment": environment(),
    "grids": [],
}


def measured(folder: Path) -> list[dict[str, Any]]:
    """Measure all cells of SWEEP and return their rows."""
    path = folder / "tests.toml"
    path.write_text(SWEEP)
    profile = load_profile(path)
    MANIFEST["grids"] = [{"name": g.name, "title": g.title, "analysis": g.analysis} for g in profile.grids]
    return [row for cell in profile.cells for row in measure_cell(cell)]


def private_names_in(run: Run) -> list[str]:
    """Return which private names of this machine occur in the files of a run: host, address, user and folders."""
    texts = [(run.path / "manifest.json").read_text()]
    for part in (run.path / "measurements").iterdir():
        columns = [run.table[field.name] for field in SCHEMA if field.type == pa.string()]
        texts += [str(pq.read_schema(part).metadata), *(str(text) for column in columns for text in column.unique())]
    names = [socket.gethostname(), "127.0.0.1", "localhost", getpass.getuser()]
    names += map(str, (Path.home(), Path.cwd(), tempfile.gettempdir()))
    return [name for name in names if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for text in texts)]


def deterministic(run: Path) -> pa.Table:
    """Return the columns of a run that depend neither on the machine nor on interruptions."""
    return open_run(run).table.select(list(DETERMINISTIC))


def without_progress(err: str) -> str:
    """Return stderr without its progress lines. The sweep ran without a terminal."""
    progress = re.compile(r"kfbench: [^:]+: [\d,]+( of [\d,]+)? (part|slot|cell)s?\b.*\n")
    return "".join(line for line in err.splitlines(keepends=True) if not progress.fullmatch(line))
