"""The public surface as data, in tests/data/surface.json.

A change of the surface is a change of that file, and a line in CHANGELOG. `python -m tests.test_surface` writes it.

It holds the signatures of `kfbench.__all__`, the names that README imports, the options of every command, the keys of
every `--json` and of a fingerprint, exit statuses, and the columns of a run's Parquet file.
"""

import inspect
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pytest
import typer.main

import kfbench
from kfbench.cli import app, main
from kfbench.formats import Format
from kfbench.measure.schema import SCHEMA, SCHEMA_VERSION
from tests.cli.command import SWEEP
from tests.vectors import write_vectors

ROOT: Final = Path(__file__).parents[1]
SURFACE: Final = ROOT / "tests" / "data" / "surface.json"
RUN: Final = ROOT / "reports" / "2026-11-24.20"
FIELD: Final = re.compile(r"[a-z]\w*", re.ASCII)
LOG: Final = ROOT / "datasets" / "recorded" / "service-headers.log"
JSON_COMMANDS: Final = (
    "codecs",
    "compare RUN RUN",
    "dictionary train LOG --out FOLDER/d.log",
    "doctor",
    "formats",
    "inspect LOG",
    "migrate LOG --plan kip31 --codec none",
    "sweep SWEEP --dry-run",
    "table kip98",
    "verify SWEEP --golden GOLDEN",
    "what-if LOG --format v2 --format v3 --codec zstd --linger-ms 5 --rate-mb-s 1 --dictionary",
    "workloads",
    "workloads iot-telemetry",
)
EXIT_COMMANDS: Final = (
    "formats",
    "inspect LOG",
    "inspect DAMAGED",
    "inspect NOTHING",
    "inspect",
    "what-if DAMAGED --format v2 --codec none",
    "what-if LOG --codec nope",
    "verify SWEEP --golden NOTHING",
    "sweep NOTHING.toml",
    "report NOTHING",
    "nope",
)


def signatures() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in sorted(kfbench.__all__):
        value = getattr(kfbench, name)
        if isinstance(value, Mapping):
            found[name] = sorted(value)
        else:
            found[name] = _members(value) if inspect.isclass(value) else _signature(value)
    return found | {"a format": _members(Format)}


def _members(of: type) -> dict[str, str]:
    """Return the public attributes of a class, in it and in those of kfbench that it inherits from, with signatures."""
    ours = [base for base in of.__mro__ if base.__module__.startswith("kfbench")]
    names = {name for base in ours for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    public = sorted(name for name in names if not name.startswith("_"))
    return {"()": _signature(of)} | {name: _signature(getattr(of, name, None)) for name in public}


def _signature(value: object) -> str:
    """Return the parameters with their defaults, but without types, which Python's versions print differently."""
    if not callable(value) or value is kfbench.KfbenchError:
        return ""
    parameters = inspect.signature(value).parameters.values()
    return str(inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in parameters]))


def readme_names() -> list[str]:
    code = "\n".join(
        re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    )
    modules = re.findall(r"^from (\S+) import (\w+)", code, re.MULTILINE)
    return sorted({*re.findall(r"\bkfbench\.\w+", code), *(f"{module}.{name}" for module, name in modules)})


def commands() -> dict[str, Any]:
    def of(command: Any) -> Any:
        if members := getattr(command, "commands", None):
            return {name: of(each) for name, each in sorted(members.items())}
        return {
            " ".join(each.opts) if each.opts[0].startswith("-") else each.metavar or each.name: str(each.default)
            for each in command.params
        }

    return dict(of(typer.main.get_command(app)))


SPANS = {"span", "span_ns"}  # of measured times: two numbers, or null


def shape(values: Iterable[Any]) -> Any:
    """Return the keys of JSON values, joined over the values. Keys that are data, such as "v2", become "*"."""
    present = [value for value in values if value is not None]
    if lists := [value for value in present if isinstance(value, list)]:
        return [shape(each for value in lists for each in value)]
    dicts = [value for value in present if isinstance(value, dict)]
    keys = {key for value in dicts for key in value}
    if not all(FIELD.fullmatch(key) for key in keys) or keys & {*kfbench.FORMATS, *kfbench.CODECS}:
        return {"*": shape(each for value in dicts for each in value.values())}
    return {key: None if key in SPANS else shape(value.get(key) for value in dicts) for key in sorted(keys)} or None


def run(line: str, folder: Path, *more: str) -> tuple[int, str]:
    """Run a command on the files of `files`, whose paths may have spaces. Return its exit status and what it prints."""
    places = files(folder)
    arguments = [re.sub(r"\b[A-Z]+\b", lambda name: str(places.get(name[0], name[0])), word) for word in line.split()]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with patch.object(sys, "argv", ["kfbench", *arguments, *more]), redirect_stdout(out), redirect_stderr(err):
        status = main()
    out.seek(0)
    return status, out.read()


def files(folder: Path) -> dict[str, Path]:
    """Write files for commands; a bit of the damaged log is flipped. Return their paths by the names in commands."""
    damaged, sweep, golden = folder / "00000000000000000000.log", folder / "two.toml", folder / "golden"
    if not golden.exists():
        data = bytearray(LOG.read_bytes())
        data[len(data) // 2] ^= 1
        damaged.write_bytes(data)
        sweep.write_text(SWEEP, encoding="utf-8")
        write_vectors(golden)
    places = {"RUN": RUN, "LOG": LOG, "DAMAGED": damaged, "SWEEP": sweep, "GOLDEN": golden}
    return places | {"NOTHING": folder / "nothing", "FOLDER": folder}


def json_keys(folder: Path) -> dict[str, Any]:
    found = {}
    for line in JSON_COMMANDS:
        status, out = run(line, folder, "--json")
        assert status == 0 or line == "doctor", (line, out)  # a machine may lack something
        found[line] = shape([json.loads(out)])
    assert run("fingerprint LOG --out FOLDER/fingerprint.json", folder)[0] == 0
    return found | {"a fingerprint": shape([json.loads((folder / "fingerprint.json").read_bytes())])}


def statuses(folder: Path) -> dict[str, int]:
    return {line: run(line, folder)[0] for line in EXIT_COMMANDS}


def columns() -> dict[str, str]:
    types = {column.name: f"{column.type}{'' if column.nullable else ', never null'}" for column in SCHEMA}
    return types | {"schema version": str(SCHEMA_VERSION)}


PARTS: Final[dict[str, Callable[[Path], Any]]] = {
    "signatures": lambda _: signatures(),
    "README": lambda _: readme_names(),
    "commands": lambda _: commands(),
    "JSON keys": json_keys,
    "exit statuses": statuses,
    "columns": lambda _: columns(),
}


@pytest.mark.parametrize("part", PARTS)
def test_the_surface_is_as_stored(part: str, tmp_path: Path) -> None:
    assert PARTS[part](tmp_path) == json.loads(SURFACE.read_text(encoding="utf-8"))[part]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        surface = {name: part(Path(place)) for name, part in PARTS.items()}
    SURFACE.write_text(json.dumps(surface, indent=1) + "\n", encoding="utf-8")
