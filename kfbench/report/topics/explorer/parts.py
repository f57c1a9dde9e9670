"""The explorer as a part of a page (`templates/explorer.html`)."""

from pathlib import Path
from typing import Final

from markupsafe import Markup

from kfbench.report.render.compact import compact_script
from kfbench.report.topics.explorer.data import Content, page_data, script_json
from kfbench.report.topics.explorer.rules import page_rules

TEMPLATES: Final = Path(__file__).parents[2] / "templates"
SCRIPTS: Final = ("sizes.js", "settings.js", "measured.js", "words.js", "line.js", "explorer.js")


def explorer_parts(content: Content) -> dict[str, object]:
    """Return what the template `explorer.html` needs, under the name `explorer`."""
    return {
        "rules": Markup(script_json(page_rules())),
        "data": Markup(script_json(page_data(content))),
        "has_cpu": bool(content.operations),
        "css": Markup((TEMPLATES / "explorer.css").read_text()),
        "scripts": [Markup(compact_script((TEMPLATES / name).read_text())) for name in SCRIPTS],
    }
