"""Text for the generated parts of documentation pages. Cog blocks in the pages call these functions: `make docs`.

Signatures are copied from the source code, so that the pages are the same with every version of Python.
"""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from posixpath import normpath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.present.table import number
from kfbench.report.files import opening
from kfbench.store import open_run
from kfbench.workloads import WORKLOADS
from kfbench.workloads.catalogue import NamedWorkload

ROOT: Final = Path(__file__).resolve().parents[1]
RECORDS: Final = 65_536  # one block


def api(module: str, names: str) -> str:
    """Return the entries of public names, separated by spaces in `names`: signature and first paragraph of each.

    module: the module that users import the names from. Public methods of a class are added.
    """
    return "\n\n".join(paragraph for name in names.split() for paragraph in _entry(module, name))


def _entry(module: str, name: str) -> Iterator[str]:
    node = _definition(module, name)
    yield f"### {name}"
    if isinstance(node, ast.FunctionDef):
        yield f"```python\nfrom {module} import {name}\n\n{_signature(node)}\n```"
    yield _first_paragraph(node)
    if isinstance(node, ast.ClassDef):
        yield from _methods(node)


def _definition(module: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """Find the syntax tree of a public function or class in its source file. Raises LookupError if it is missing."""
    source = Path(inspect.getfile(getattr(import_module(module), name)))
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    raise LookupError(f"{source} does not define {name}")


def _signature(function: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    arguments = ast.unparse(function.args).removeprefix("self, ").removeprefix("cls, ")
    return f"{function.name}({'' if arguments in ('self', 'cls') else arguments}){returns}"


def _first_paragraph(node: ast.FunctionDef | ast.ClassDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n\n")[0]


def _methods(class_: ast.ClassDef) -> Iterator[str]:
    """Yield the Markdown of each public method and property that has a docstring."""
    for node in class_.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or ast.get_docstring(node) is None:
            continue
        decorators = {ast.unparse(each) for each in node.decorator_list}
        returns = f": {ast.unparse(node.returns)}" if node.returns else ""
        head = f"{node.name}{returns}" if decorators & {"property", "cached_property"} else _signature(node)
        yield f"**`{head}`**\n\n{_first_paragraph(node)}"


def cli() -> str:
    """Return the help text of every command, which Typer writes in Markdown, without its title."""
    command = [sys.executable, "-m", "typer", "kfbench.cli", "utils", "docs", "--name", "kfbench"]
    shown = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    return shown.strip().partition("\n")[2].strip()


def front(report: str) -> str:
    """Return today's opening of a report's README.md: without its title, with links relative to the repository."""
    text = opening(open_run(ROOT / report)).partition("\n# ")[2].partition("\n")[2].strip()
    return re.sub(r"\]\((?!\w+:|[/#])([^)]*)", lambda link: f"]({normpath(f'{report}/{link[1]}')}", text)


def workload_table() -> str:
    """Return a table of all variants of the named workloads, from one block of their records with seed 0."""
    head = "| workload | records per batch | key | value | headers | v2's overhead |\n| --- |" + " ---: |" * 5
    rows = [_workload_row(each, variant) for each in _named_workloads() for variant in each.variants]
    return "\n".join([head, *rows])


def _named_workloads() -> list[NamedWorkload]:
    return [each for each in WORKLOADS.values() if isinstance(each, NamedWorkload)]


def _workload_row(workload: NamedWorkload, variant: str) -> str:
    sample = NamedWorkload(name=workload.name, variant=variant).generate(records=RECORDS, seed=0)
    shapes = sample.shapes
    headers = shapes.header_key_lengths.sum() + np.maximum(shapes.header_value_lengths, 0).sum()
    size_bytes = int(FORMATS[BASE_FORMAT].size(shapes, sample.bounds).sum())
    cells = (
        f"[{workload.name}](#{workload.name})" if variant == workload.variant else f"– {variant}",
        number(float(np.diff(sample.bounds).mean())),
        *(number(_mean_length(lengths), 0) for lengths in (shapes.key_lengths, shapes.value_lengths)),
        number(float(headers / RECORDS), 0),
        number((size_bytes - shapes.payload_bytes) / RECORDS, 1),
    )
    return f"| {' | '.join(cells)} |"


def _mean_length(lengths: NDArray[np.int32]) -> float | None:
    """Return the mean of the lengths without nulls, or None if all are null."""
    present = lengths[lengths >= 0]
    return float(present.mean()) if len(present) else None


def workload_sections() -> str:
    """Return a section per named workload: its question, summary and story."""
    sections = (
        f"## {each.name}\n\n**{each.model.question}** {each.summary}. {each.model.story.strip()}\n\n"
        f"[Every number and its source](../datasets/workloads/{each.file.name})."
        for each in _named_workloads()
    )
    return "\n\n".join(sections)
