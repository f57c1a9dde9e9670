"""asv plugin: the site that `asv publish` writes asks no other host for anything, and opens from disk, too.

asv's page loads jQuery, flot and Bootstrap from other hosts: copies of them lie in asv_www. It fetches its data, which
browsers refuse to a page that was opened from disk: beside each file of data comes a script that holds the same.
"""

import re
import shutil
from pathlib import Path
from typing import Any, Final

from asv.commands.publish import Publish  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]

COPIES: Final = Path(__file__).parent / "asv_www"
FROM_DISK: Final = "from_disk.js"
# Browsers check no integrity of what lies on a disk: a test checks the copies instead.
LOADED: Final = re.compile(
    r'(src|href)="https?://[^"]*/([^"/]+)"(?: (?:integrity|crossorigin|referrerpolicy)="[^"]*")+'
)
LEFT: Final = re.compile(r'<(?:script|link)\b[^>]*"(?:https?:)?//[^>]*>')


def setup() -> None:
    """Called by asv before any command. Its own hook for plugins that publish comes before the index is written."""
    publish = Publish.run

    def run(conf: Any, *given: Any, **named: Any) -> Any:
        status = publish(conf, *given, **named)
        make_local(Path(conf.html_dir))
        return status

    Publish.run = staticmethod(run)


def make_local(site: Path) -> None:
    """Of a site as asv writes it. Raises UserError where its page loads what there is no copy of."""

    def local(found: re.Match[str]) -> str:
        copy = _copy(found[2])
        shutil.copyfile(copy, site / copy.name)
        return f'{found[1]}="{copy.name}"'

    page = LOADED.sub(local, (site / "index.html").read_text())
    if left := LEFT.search(page):
        raise UserError(f"asv's page loads what {COPIES.name} has no copy of: {left[0]}")
    shutil.copyfile(COPIES / FROM_DISK, site / FROM_DISK)
    page = page.replace("</head>", f'  <script src="{FROM_DISK}"></script>\n  </head>', 1)
    (site / "index.html").write_text(page)
    for data in site.rglob("*.json"):
        data.with_name(f"{data.name}.js").write_text(f"asv_data = {data.read_text()};\n")


def _copy(name: str) -> Path:
    """Minified or not. Raises UserError."""
    for found in (COPIES / name, COPIES / name.replace(".min.", ".")):
        if found.is_file():
            return found
    raise UserError(f"asv's page loads {name}, which {COPIES.name} has no copy of")
