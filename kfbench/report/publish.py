"""Write a report as a folder `OUT/<date>.<n>/` that can be read, mailed or committed.

A report that is not for publishing goes to `OUT/unpublished/<date>.<n>/`, which git ignores (docs/publish.md).

Laws (tests/report/test_publish.py):
1. The same run gives the same bytes on every machine with the same versions of the code and of its libraries. A report
  depends on no clock, host or path of the machine. Some contents belong to the version of the code, not to the run:
  times of other implementations, numbers computed from the formats (claims, holes), definitions of classes, and assumed
  traffic and prices. A joined run (`report/files.py`) is the newest one that is shipped or lies next to the run.
2. An existing report is never changed. A new report goes to a new `<n>`, unless a report with the same bytes exists.
3. A half-written report has another name. It is written next to its final place and renamed when it is complete.
4. Unfinished runs and runs of another schema are refused (kfbench.store.open_run).
"""

import json
from pathlib import Path

from kfbench.errors import RunError
from kfbench.present.page import order, place
from kfbench.present.rows import run_date
from kfbench.report.files import files_of, is_for_publishing
from kfbench.store import open_run

UNPUBLISHED = "unpublished"


def publish(run: Path, out: Path) -> Path:
    """Write the report of a finished run to a folder under `out`, and return that folder.

    Raises RunError if the run is missing, unfinished or of another schema.
    """
    opened = open_run(run)
    return place(dict(files_of(opened)), out, run_date(opened.manifest))


def place_of(run: Path, reports: Path) -> Path:
    """Return the folder in which a finished run's report is written if the user gives no `--out`.

    Raises RunError if the run is missing, unfinished or of another schema.
    """
    return reports if is_for_publishing(open_run(run).manifest) else reports / UNPUBLISHED


def newest(reports: Path) -> Path:
    """Return the folder of the newest report that is for publishing. Raises RunError if there is none."""
    found = []
    for page in reports.glob("[0-9]*.*/index.html"):
        file = page.with_name("manifest.json")
        manifest = json.loads(file.read_bytes()) if file.is_file() else {}
        if is_for_publishing(manifest):
            found.append(page.parent)
    if not found:
        raise RunError(f"{reports}: there is no published report; make one with: make report")
    return max(found, key=order)
