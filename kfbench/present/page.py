"""Web pages from templates, with their style and script inside, and the folder that they are written to.

Scripts and tables are made smaller without a change that a reader can see. A folder `OUT/<date>.<n>/` is written whole
or not at all. An existing folder is never changed.
"""

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from itertools import count
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


def place(files: Mapping[str, bytes], out: Path, date: str) -> Path:
    """Write the files to a new folder OUT/<date>.<n>, and return it.

    If an existing folder has exactly these files, return that folder and write nothing. files: path in the folder ->
    bytes.
    """
    out.mkdir(parents=True, exist_ok=True)
    for existing in sorted(out.glob(f"{date}.*"), key=_serial):
        if existing.is_dir() and _same(existing, files):
            return existing
    staging = Path(tempfile.mkdtemp(prefix=f".{date}.", dir=out))
    try:
        for name, data in files.items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        staging.chmod(0o755)  # mkdtemp creates it with 0700
        return _claim(staging, out, date)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _claim(staging: Path, out: Path, date: str) -> Path:
    """Rename the folder to the next free `<date>.<n>`. Other processes may take numbers at the same time."""
    for n in count(1 + max(map(_serial, out.glob(f"{date}.*")), default=0)):
        target = out / f"{date}.{n}"
        if target.exists():
            continue
        try:
            staging.rename(target)
        except OSError:
            if target.exists():
                continue
            raise
        return target
    raise AssertionError("count() does not end")


def order(path: Path) -> tuple[str, int]:
    """Return the key that sorts reports by age: the day and the number of the folder's name, <date>.<n>."""
    return path.name.rpartition(".")[0], _serial(path)


def _serial(path: Path) -> int:
    tail = path.name.rpartition(".")[2]
    return int(tail) if tail.isdigit() else 0


def _same(directory: Path, files: Mapping[str, bytes]) -> bool:
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    return found == set(files) and all((directory / name).read_bytes() == data for name, data in files.items())
