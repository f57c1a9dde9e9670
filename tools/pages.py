"""Text for the generated parts of documentation pages. Cog blocks in the pages call these functions: `make docs`.

Signatures are copied from the source code, so that the pages are the same with every version of Python.
"""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer.main
from numpy.typing import NDArray

from kfbench.cli import app
from kfbench.formats import BASE_FORMAT, FORMATS, Format
from kfbench.present.names import batch_words
from kfbench.present.rows import Rows, at_reference
from kfbench.present.table import number
from kfbench.store import open_run
from kfbench.workloads import WORKLOADS
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.grid import GridPoint

TEN_BARS: Final = (
    ("v2", 1, "none"), ("v2", 1, "zstd 3"), ("v3", 1, "none"), ("v2", 10, "none"), ("v2", 100, "none"),
    ("v2", 10, "lz4 9"), ("v2", 10, "zstd 3"), ("v2", 100, "lz4 9"), ("v2", 100, "zstd 3"), ("v3", 100, "zstd 3"),
)  # fmt: skip
SVG: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 744 {height}" role="img" \
aria-label="Bytes per record of ten settings">
<style>text{{font:14px system-ui,sans-serif;fill:#1c1e21}}.n{{text-anchor:end}}.v2{{fill:#c3c9d2}}.v3{{fill:#ab1d0c}}
@media(prefers-color-scheme:dark){{text{{fill:#e6e9ec}}.v2{{fill:#4a525d}}.v3{{fill:#ff6b57}}}}</style>
{bars}
</svg>
"""
ROOT: Final = Path(__file__).resolve().parents[1]
RECORDS: Final = 65_536  # one block


def api(module: str, names: str) -> str:
    """Return the entries of public names, separated by spaces in `names`: signature and first paragraph of each.

    module: the module that users import the names from. Signatures of a class's public methods are added.
    """
    return "\n\n".join(paragraph for name in names.split() for paragraph in _entry(module, name))


def _entry(module: str, name: str) -> Iterator[str]:
    node = _definition(module, name)
    yield f"### {name}"
    if isinstance(node, ast.FunctionDef):
        yield f"```python\n{module}.{_signature(node)}\n```"
    yield _first_paragraph(node)
    if isinstance(node, ast.ClassDef) and (methods := list(_methods(node))):
        yield "\n".join(["```text", *methods, "```"])


def _definition(module: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    """Find the syntax tree of a public function or class in its source file. Raises LookupError if it is missing."""
    source = Path(inspect.getfile(getattr(import_module(module), name)))
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    raise LookupError(f"{source} does not define {name}")


def _signature(function: ast.FunctionDef) -> str:
    """Return the signature without the types of arguments, which `help` shows."""
    for each in ast.walk(function.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    arguments = ast.unparse(function.args).removeprefix("self, ").removeprefix("cls, ")
    return f"{function.name}({'' if arguments in ('self', 'cls') else arguments}){returns}"


def _first_paragraph(node: ast.FunctionDef | ast.ClassDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n\n")[0]


def _methods(class_: ast.ClassDef) -> Iterator[str]:
    """Yield the signature of each public method and property that has a docstring."""
    for node in class_.body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or ast.get_docstring(node) is None:
            continue
        decorators = {ast.unparse(each) for each in node.decorator_list}
        returns = f": {ast.unparse(node.returns)}" if node.returns else ""
        yield f"{node.name}{returns}" if decorators & {"property", "cached_property"} else _signature(node)


def cli() -> str:
    """Return a list item per command: its arguments and options, and its help."""
    return "\n".join(_commands("kfbench", typer.main.get_command(app)))


def _commands(name: str, command: Any) -> Iterator[str]:
    for each in getattr(command, "commands", {}).values():
        yield from _commands(f"{name} {each.name}", each)
    if not hasattr(command, "commands"):
        words = (
            words if each.required else f"[{words}]"
            for each in command.params
            if each.opts[0][:1] == "-"
            for words in (" ".join(filter(None, (each.opts[0], each.metavar))),)
        )
        arguments = [each.metavar for each in command.params if each.param_type_name == "argument"]
        yield f"- **`{' '.join([name, *arguments])}`**: {command.help}"
        if options := " ".join(f"`{each}`" for each in words):
            yield f"  Options: {options}"


def ten_bars(path: str) -> None:
    """Write a picture of TEN_BARS: bytes per record of each setting, from the rows of the profile codec-cpu."""
    rows = Rows(open_run(ROOT / "datasets" / "joined" / "codec-cpu").measurements())
    arms = rows.arms(at_reference({"kind": "bytes", "workload": "grid"}, ["batch_size"]))
    sizes = {key: size / records for *key_, size, records in zip(
        *(arms[name] for name in ("format", "batch_size", "with_codec", "size_bytes", "records")), strict=True
    ) for key in [tuple(key_)]}  # fmt: skip
    base = sizes[TEN_BARS[0]]
    lines = []
    for place, bar in enumerate(sorted(TEN_BARS, key=lambda each: -sizes[each])):
        size, (name, batch, codec) = sizes[bar], bar
        words = f"{name}, {batch_words(batch)}{'' if codec == 'none' else f', {codec}'}"
        change = "" if bar == TEN_BARS[0] else f"{100 * (size / base - 1):+.1f} %".replace("-", "−")
        y, width = 22 + 26 * place, 340 * size / max(sizes[each] for each in TEN_BARS)
        kind = "v3" if name == "v3" else "v2"
        lines.append(
            f'<text x="0" y="{y}">{words}</text><rect class="{kind}" x="250" y="{y - 13}" width="{width:.1f}" '
            f'height="16" rx="3"/><text class="n" x="660" y="{y}">{size:.1f}</text>'
            f'<text class="n" x="740" y="{y}">{change}</text>'
        )
    (ROOT / path).write_text(SVG.format(height=26 * len(TEN_BARS) + 12, bars="\n".join(lines)), encoding="utf-8")


def format_table() -> str:
    """Return a table of all formats. Overhead is bytes per record beyond keys and values, at the reference point."""
    head = "| name | magic | attributes bits | what it is | overhead at 1 record per batch | at 100 |"
    rows = [
        f"| {name} | {each.magic} | {', '.join(str(bit) for bit in range(16) if each.features >> bit & 1)} "
        f"| {each.summary} | {_overhead(each, 1):.0f} | {_overhead(each, 100):.2f} |"
        for name, each in sorted(FORMATS.items(), key=lambda item: item[1].magic)
    ]
    return "\n".join([head, "|---" * 6 + "|", *rows])


def _overhead(of: Format, batch: int) -> float:
    records = GridPoint(batch_size=batch).generate(records=batch, seed=0).records
    return float((of.size(records, batch).sum() - records.shapes.payload_bytes) / batch)


def loss_table() -> str:
    """Return a table of what formats cannot store. Formats that lose the same share a row."""
    formats: dict[str, list[str]] = {}
    for name, each in FORMATS.items():
        formats.setdefault(", ".join(each.capabilities.missing), []).append(name)
    rows = [f"| {', '.join(names)} | {lost} |" for lost, names in formats.items()]
    return "\n".join(["| name | cannot carry |\n|---|---|", *rows])


def workload_table() -> str:
    """Return a table of the named workloads in their default variant, from one block of their records with seed 0."""
    head = "| workload | records per batch | key | value | headers | v2's overhead |\n| --- |" + " ---: |" * 5
    return "\n".join([head, *map(_workload_row, _named_workloads())])


def _named_workloads() -> list[NamedWorkload]:
    return [each for each in WORKLOADS.values() if isinstance(each, NamedWorkload)]


def _workload_row(workload: NamedWorkload) -> str:
    sample = workload.generate(records=RECORDS, seed=0)
    shapes = sample.shapes
    headers = shapes.header_key_lengths.sum() + np.maximum(shapes.header_value_lengths, 0).sum()
    size_bytes = int(FORMATS[BASE_FORMAT].size(shapes, sample.bounds).sum())
    cells = (
        f"[{workload.name}](#{workload.name})",
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
    """Return a section per named workload: its question, and its summary with a link to its file."""
    sections = (
        f"## {each.name}\n\n**{each.model.question}** [{each.summary}](../datasets/workloads/{each.file.name})."
        for each in _named_workloads()
    )
    return "\n\n".join(sections)
