"""Web pages from templates, with their style and script inside.

Scripts and tables are made smaller without a change that a reader can see.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import jinja2
from markupsafe import Markup

from kfbench.present import look
from kfbench.present.table import prose
from kfbench.text import printable_lines

TEMPLATES = Path(__file__).parent / "templates"
SHARED_SCRIPTS = ("words.js", "line.js")  # before the content: the calculator needs them, too
PAGE_SCRIPTS = ("page.js", "view.js")
_COMMENT: Final = re.compile(r"^\s*(?://.*|/\*\*.*\*/)\n", re.MULTILINE)  # only those that have lines of their own


def environment_of(autoescape: bool) -> jinja2.Environment:
    """Return the templates. autoescape: they are HTML."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )


def html(page: Mapping[str, Any], formats: Sequence[str], template: str) -> str:
    """Return a web page with its style and script inside."""
    plain = environment_of(autoescape=False)
    css = plain.get_template("style.css").render(
        light=look.css_variables(formats, dark=False), dark=look.css_variables(formats, dark=True)
    )
    shared, script = (
        Markup("\n".join(compact_script((TEMPLATES / name).read_text()) for name in names))
        for names in (SHARED_SCRIPTS, PAGE_SCRIPTS)
    )

    rich = environment_of(autoescape=True)
    rich.filters["prose"] = lambda text: Markup(prose(text))
    text = rich.get_template(template).render(page, css=Markup(css), shared=shared, script=script)
    return compact_tables(printable_lines(text))


def compact_script(script: str) -> str:
    """Remove indentation, and comments that have lines of their own."""
    return re.sub(r"^[ \t]+|\n(?=\n)", "", _COMMENT.sub("", script), flags=re.MULTILINE)


def compact_tables(page: str) -> str:
    """Remove line breaks between the tags of tables."""
    return re.sub(r">\n(?=</?(?:caption|t[rdh]|table|thead|tbody)\b)", ">", page)
