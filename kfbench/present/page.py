"""Web pages from templates, with their style, script and figures inside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from kfbench.present import look
from kfbench.present.compact import compact_script, compact_tables
from kfbench.present.table import prose
from kfbench.text import printable_lines

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture with its texts.

    Args:
        name: the name of the figure's file and of its anchor in the page.
        svg: the picture as SVG text.
        alt: a description of the picture in words.
        caption: the text below the picture.
        numbers: the name of the table that has all drawn numbers. If each panel has its own table: panel -> name.
            Empty: they are in tables.json only.
    """

    name: str
    svg: str
    alt: str
    caption: str
    numbers: str | Mapping[str, str]


def environment_of(autoescape: bool) -> jinja2.Environment:
    """Return the templates. autoescape: they are HTML."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )


def html(page: Mapping[str, Any], formats: Sequence[str], template: str) -> str:
    """Return a web page with its style, script and figures inside."""
    plain = environment_of(autoescape=False)
    css = plain.get_template("style.css").render(
        light=look.css_variables(formats, dark=False), dark=look.css_variables(formats, dark=True)
    )
    script = compact_script((TEMPLATES / "page.js").read_text())

    def draw(figure: Figure, page: str = "") -> Markup:
        """Return the figure with a link to its numbers. page: the file that has them, if it is another one."""
        svg = look.inline(figure.svg, figure.name, str(escape(figure.alt)))
        caption = f"{escape(figure.caption)} {_links(figure, page)}"
        return Markup(f"<figure>{svg}<figcaption>{caption}</figcaption></figure>")

    rich = environment_of(autoescape=True)
    rich.filters["prose"] = lambda text: Markup(prose(text))
    text = rich.get_template(template).render(page, css=Markup(css), script=Markup(script), draw=draw)
    return compact_tables(printable_lines(text))


def _links(figure: Figure, page: str) -> str:
    if not figure.numbers:
        return 'Its numbers: <a href="tables.json">tables.json</a>.'
    if isinstance(figure.numbers, str):
        return f'<a href="{page}#t-{figure.numbers}">Its numbers, as a table.</a>'
    links = [f'<a href="{page}#t-{name}">{escape(panel)}</a>' for panel, name in figure.numbers.items()]
    return f"Its numbers, as tables: {', '.join(links)}."
