"""The explorer as a part of a page (`templates/explorer.html`), and as a page of its own."""

from typing import Final

from markupsafe import Markup

from kfbench.formats import FORMATS
from kfbench.report.data.results import Results
from kfbench.report.publish import TEMPLATES, html, subtitle
from kfbench.report.topics.explorer.data import page_data, script_json
from kfbench.report.topics.explorer.rules import page_rules
from kfbench.store import Run

SCRIPTS: Final = ("sizes.js", "settings.js", "measured.js", "words.js", "line.js", "explorer.js")


def explorer_parts(results: Results) -> dict[str, object]:
    """Return what the template `explorer.html` needs, under the name `explorer`."""
    return {
        "rules": Markup(script_json(page_rules())),
        "data": Markup(script_json(page_data(results))),
        "css": Markup((TEMPLATES / "explorer.css").read_text()),
        "scripts": [Markup((TEMPLATES / name).read_text()) for name in SCRIPTS],
    }


def explorer_page(run: Run) -> str:
    """Return a web page that has only the explorer, with the measured numbers of this run."""
    page = {
        "title": "What do your Kafka records cost?",
        "subtitle": subtitle(run.manifest),
        "explorer": explorer_parts(Results(run.measurements())),
    }
    return html(page, list(FORMATS), "explorer-page.html")
