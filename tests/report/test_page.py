"""The page in a real browser: its tables sort, and a phone does not scroll sideways."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kfbench.report.publish import publish
from kfbench.store import Run

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
PROBE = """<script>
const table = document.querySelector("#t-overhead"), head = table.tHead.rows[0].cells[3];
const click = () => head.querySelector("button").click();
const column = at => [...table.tBodies[0].rows].map(row => row.cells[at].textContent).join(" ");
click(); const up = column(3); click();
document.title = [up, column(0), head.getAttribute("aria-sort"),
  document.documentElement.scrollWidth > document.documentElement.clientWidth].join("|");
</script></body>"""


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on PATH")
@pytest.mark.parametrize("width", [390, 1280])
def test_tables_sort_and_nothing_scrolls_sideways(run: Run, tmp_path: Path, width: int) -> None:
    page = (publish(run.path, tmp_path / "reports") / "index.html").read_text()
    probed = tmp_path / "probed.html"
    probed.write_text(page.replace("</body>", PROBE))
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={tmp_path}/profile", f"--window-size={width},900"]
    done = subprocess.run(
        [*command, "--dump-dom", probed.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    (title,) = re.findall(r"<title>(.*?)</title>", done.stdout)
    ascending, batches, state, sideways = title.split("|")
    values = [float(value) for value in ascending.split()]
    assert values == sorted(values)
    assert len(values) == 6
    assert batches.split()[0] == "1"  # descending by now: one record a batch costs the most
    assert (state, sideways) == ("descending", "false")
