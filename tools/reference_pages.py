"""Write docs/api.md from the docstrings of public names, and docs/cli.md from the help texts of commands.

usage: reference_pages.py

Signatures are copied from the source code, so that the pages are the same with every version of Python.
"""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
WRITTEN_BY: Final = "<!-- written by `make reference`, do not edit -->"
INTRODUCTION: Final = """\
The public names of the package, with their docstrings. A `Format` is an item of `kfbench.FORMATS`, a `Workload` an item
of `kfbench.WORKLOADS`."""

# The public names of each section, by the module that users import them from. Public methods of a class are added.
SECTIONS: Final = {
    "Records": {"kfbench": "Records Shapes"},
    "Formats and batches": {"kfbench.formats": "Format", "kfbench": "EncodedLog DecodedLog BatchFields Limits"},
    "Logs": {"kfbench": "read_log write_log"},
    "Dictionaries": {"kfbench": "Dictionary train_dictionary", "kfbench.log": "dictionary_batch"},
    "Sizes in all formats": {"kfbench": "compare"},
    "Instructions": {"kfbench": "instructions_per_record"},
    "Workloads": {"kfbench.workloads": "Workload Sample"},
    "Broker paths": {
        **{f"kfbench.broker.{path}": path for path in "append fetch convert upgrade compact mirror expire".split()},
        "kfbench.broker.seek": "seek_offset seek_time",
        "kfbench.broker": "Work",
    },
    "Errors": {
        "kfbench.errors": "KfbenchError InvalidRecords IllegalCombination WouldLose CorruptLog MissingDictionary "
        "InvalidDictionary Refused InvalidConfig RunError MissingTool MissingExtra"
    },
}


def definition(module: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """Find the syntax tree of a public function or class in its source file. Raises LookupError if it is missing."""
    source = Path(inspect.getfile(getattr(import_module(module), name)))
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    raise LookupError(f"{source} does not define {name}")


def signature(function: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    arguments = ast.unparse(function.args).removeprefix("self, ").removeprefix("cls, ")
    return f"{function.name}({'' if arguments in ('self', 'cls') else arguments}){returns}"


def methods(class_: ast.ClassDef) -> Iterator[str]:
    """Yield the Markdown of each public method and property that has a docstring."""
    for node in class_.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or ast.get_docstring(node) is None:
            continue
        decorators = {ast.unparse(each) for each in node.decorator_list}
        returns = f": {ast.unparse(node.returns)}" if node.returns else ""
        head = f"{node.name}{returns}" if decorators & {"property", "cached_property"} else signature(node)
        yield f"**`{head}`**\n\n{ast.get_docstring(node)}"


def paragraphs(module: str, name: str) -> Iterator[str]:
    node = definition(module, name)
    yield f"### {name}"
    if isinstance(node, ast.FunctionDef):
        yield f"```python\nfrom {module} import {name}\n\n{signature(node)}\n```"
    yield ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        yield from methods(node)


def api() -> str:
    parts = ["# API", WRITTEN_BY, INTRODUCTION]
    for title, modules in SECTIONS.items():
        parts.append(f"## {title}")
        for module, names in modules.items():
            for name in names.split():
                parts += paragraphs(module, name)
    return "\n\n".join(filter(None, parts)) + "\n"


def cli() -> str:
    """Return the page docs/cli.md: the help text of every command, which Typer writes in Markdown."""
    options = ["--name", "kfbench", "--title", "Commands"]
    command = [sys.executable, "-m", "typer", "kfbench.cli", "utils", "docs", *options]
    shown = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    head, _, rest = shown.strip().partition("\n")
    return f"{head}\n\n{WRITTEN_BY}\n{rest}\n"


def main() -> None:
    (DOCS / "api.md").write_text(api(), encoding="utf-8")
    (DOCS / "cli.md").write_text(cli(), encoding="utf-8")


if __name__ == "__main__":
    main()
