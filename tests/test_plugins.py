"""Packages that register a format, a kind and a command are found, and nothing of kfbench is edited for them."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from kfbench.measure.kinds import KINDS, REMOVED_KINDS
from tests.cli.command import SWEEP

ROOT: Final = Path(__file__).parents[1]
LOG: Final = ROOT / "datasets" / "recorded" / "service-headers.log"
PAGE_OF_PLUGINS: Final = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
(FORMAT,) = re.findall(r"```python\n(.*?)```", PAGE_OF_PLUGINS, re.DOTALL)
FAILS: Final = """
from kfbench.formats.base.batched import BatchedFormat


class Fails(BatchedFormat):
    def _encode(self, *given, **named):
        raise RuntimeError("out of ideas")


FORMATS = (Fails(name="fails", magic=3, summary="raises an error", features=0),)
"""
KIND: Final = """
import msgspec

from kfbench.measure.columns import INT64, added
from kfbench.measure.kinds.base import Kind, failed, sample_of


class Settings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    records: int = 100
    payload_bytes: int = 1 << 20


class Keys(Kind):
    name = section = "keys"
    settings = Settings
    columns = (added("distinct_keys", INT64, "keys", "different keys among the records"),)

    def rows(self, cell):
        for name in cell.formats:
            try:
                keys = sample_of(cell).records.keys()
                yield {"format": name, "status": "ok", "records": len(keys), "distinct_keys": len({*keys})}
            except Exception as error:
                yield failed(cell, name, error)

    def estimate_s(self, cell):
        return 1e-6 * cell.records


KINDS = (Keys(),)
"""
CODEC: Final = """
import lzma

from kfbench.codecs.base import Codec, Undecodable


class Xz(Codec):
    name, id, levels, default_level = "xz", 6, range(10), 6

    def compress(self, data, level=None):
        return lzma.compress(bytes(data), preset=self.check_level(level))

    def _parts(self, data, tally):
        stream = lzma.LZMADecompressor()
        try:
            while not stream.eof:
                part = stream.decompress(data, max_length=tally.wanted_bytes)
                tally.note(len(part), len(data))
                data = b""
                yield part
        except lzma.LZMAError as error:
            raise Undecodable(str(error)) from None


CODECS = (Xz(),)
"""
TABLE: Final = """
from dataclasses import dataclass

from kfbench.whatif.more import WhatIfTable


@dataclass(frozen=True)
class Largest:
    topic_bytes: int


class LargestTopic(WhatIfTable):
    name, help, title, answer_type = "largest", "Also show the largest topic.", "The largest topic", Largest

    def answer(self, kept, with_details):
        return Largest(max(each.plain_bytes for each in kept.topics.values()))

    def line(self, found):
        return f"The largest topic has {found.more[self.name].topic_bytes} bytes in plain v2."


WHATIF_TABLES = (LargestTopic(),)
"""
COMMAND: Final = """
from kfbench.plugins import Command


def hello() -> None:
    "Say hello."
    print("hello from a plug-in")


COMMANDS = (Command("hello", hello),)
"""

VIEW: Final = """
from pathlib import Path

from kfbench.report.view_packages import ViewPackage


def largest(runs):
    rows = runs.own.rows
    rows = rows[(rows["kind"] == "bytes") & (rows["status"] == "ok")]
    return rows.groupby("format", as_index=False)["size_bytes"].max()


VIEWS = (ViewPackage(name="largest", path=Path(__file__).with_suffix(".toml"), sources={"largest": largest}),)
"""
PAGE: Final = """
[page]
name = "largest"
short = "largest"
title = "The largest cell of each format"
place = 95
lead = "v2 takes {largest.size_bytes[format=v2]:bytes1}."

[[section]]
name = "largest-cells"
title = "Largest cells"
tables = ["largest"]

[[table]]
name = "largest"
caption = "Bytes of the largest cell"
source = "largest"
rows = ["format"]
metrics = [{ metric = "size_bytes", name = "bytes", unit = "bytes", digits = 0 }]
"""


def install(folder: Path, name: str, group: str, code: str, version: str = "0.1", helper: str = "") -> Path:
    """Install a package with uv into a folder of its own. Return this folder, for PYTHONPATH.

    helper: the code of a second module, which no entry point names.
    """
    source, module = folder / f"{name}-source", name.replace("-", "_")
    source.mkdir(parents=True, exist_ok=True)
    (source / f"{module}.py").write_text(code)
    (source / f"{module}_helper.py").write_text(helper)
    (source / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        f'[project]\nname = "{name}"\nversion = "{version}"\n'
        f'[project.entry-points."kfbench.{group}"]\n{module} = "{module}"\n'
        f'[tool.hatch.build.targets.wheel]\ninclude = ["*.py"]\n'
    )
    target = folder / name
    options = ["--quiet", "--no-cache", "--no-deps", "--offline", "--no-build-isolation", "--reinstall"]
    command = [sys.executable, "-m", "uv", "pip", "install", *options, "--target", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def python(*arguments: str | Path, plugins: list[Path]) -> subprocess.CompletedProcess[str]:
    """Run Python where these packages are installed.

    A package of formats has a kernel cache of its own. So kernels are plain Python, unless a variable says otherwise.
    """
    own = {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, *plugins)))}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={"NUMBA_DISABLE_JIT": "1", **os.environ, **own}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def kfbench(*arguments: str | Path, plugins: list[Path]) -> subprocess.CompletedProcess[str]:
    return python("-m", "kfbench", *arguments, plugins=plugins)


@pytest.fixture(scope="module")
def lean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("plugins"), "lean-format", "formats", FORMAT)


def test_a_format_is_listed_and_answers_what_if(lean: Path) -> None:
    listed = kfbench("formats", "--json", plugins=[lean])
    assert "lean" in {each["name"] for each in json.loads(listed.stdout)}
    code = "import lean_format, kfbench; print('lean' in kfbench.FORMATS)"  # in this order: the module registers itself
    assert python("-c", code, plugins=[lean]).stdout == "True\n"
    done = kfbench("what-if", LOG, "--format", "lean", "--codec", "none", "--json", plugins=[lean])
    sizes = {each["format"]: each["size_bytes"] for each in json.loads(done.stdout)["sizes"]}
    assert set(sizes) == {"v2", "lean"} and sizes["lean"] < sizes["v2"]


@pytest.mark.spark
@pytest.mark.slow
def test_a_sweep_and_its_report_have_a_format_and_a_kind(
    lean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    keys = install(tmp_path, "key-kind", "kinds", KIND)
    fails = install(tmp_path, "fails", "formats", FAILS)
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(SWEEP.replace('"v3"]', '"lean", "fails"]').replace('["bytes"]', '["bytes", "keys"]'))
    done = kfbench("run", sweep, "--out", tmp_path / "out", plugins=[lean, fails, keys])
    assert done.returncode == 3, done.stderr
    report = Path(done.stdout.strip())
    assert "lean" in (report / "index.html").read_text()
    rows = pq.read_table(report / "measurements.parquet").to_pylist()
    assert {row["format"] for row in rows} == {"v1", "v2", "lean", "fails"}
    errors = [(row["format"], row["error"].rpartition("): ")[2]) for row in rows if row["status"] == "error"]
    assert {*errors} == {("fails", "fails: RuntimeError: out of ideas")}
    assert all((row["distinct_keys"] or 0) > 0 for row in rows if row["kind"] == "keys" and row["status"] == "ok")
    (run,) = (tmp_path / "out" / "runs").iterdir()
    manifest = json.loads((run / "manifest.json").read_text())
    found = {each["name"]: (each["version"], each["groups"]) for each in manifest["plugins"]}
    assert found == {
        name: ("0.1", [group])
        for name, group in (("fails", "formats"), ("key-kind", "kinds"), ("lean-format", "formats"))
    }
    without = kfbench("report", run, plugins=[lean])
    assert without.returncode == 1 and "distinct_keys" in without.stderr
    # A changed plug-in is other code: a run that it did not finish is refused, and says so in one line.
    manifest["state"] = "running"
    (run / "manifest.json").write_text(json.dumps(manifest))
    (lost, *_) = sorted(run.glob("measurements/*.parquet"))
    lost.unlink()  # as after a kill: the lock is there, and nobody holds it
    (run / "lock").touch()
    again = ("sweep", sweep, "--out", tmp_path / "out", "--resume", run)
    refused = kfbench(*again, plugins=[lean, fails, install(tmp_path, "key-kind", "kinds", KIND + "\n# and a line\n")])
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1 and ": code: " in refused.stderr
    resumed = kfbench(*again, plugins=[lean, fails, install(tmp_path, "key-kind", "kinds", KIND)])
    assert resumed.returncode == 3, resumed.stderr
    page = install(tmp_path, "largest-page", "views", VIEW)
    (page / "largest_page.toml").write_text(PAGE)
    rendered = kfbench("report", run, "--out", tmp_path / "again", plugins=[lean, fails, keys, page])
    assert rendered.returncode == 0, rendered.stderr
    (tables,) = (tmp_path / "again").rglob("tables.json")
    largest = {row[0]: row[1] for row in json.loads(tables.read_text())["largest"]["rows"]}
    assert largest == {
        name: max(row["size_bytes"] for row in rows if (row["kind"], row["format"]) == ("bytes", name))
        for name in ("lean", "v1", "v2")
    }
    assert f"v2 takes {largest['v2']:,.1f} bytes." in (tables.parent / "largest.html").read_text()
    (page / "largest_page.toml").write_text(PAGE.replace("size_bytes[", "size_byte["))
    wrong = kfbench("report", run, "--out", tmp_path / "wrong", plugins=[lean, fails, keys, page])
    assert wrong.returncode == 1 and wrong.stderr.count("\n") == 1 and "largest_page.toml" in wrong.stderr
    assert "size_bytes" in wrong.stderr, wrong.stderr
    assert of_cells(pq.read_table(next((tmp_path / "again").rglob("measurements.parquet"))).to_pylist()) == of_cells(
        rows
    )


def of_cells(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((row["cell_id"], row["kind"], row["format"], row["size_bytes"], row["distinct_keys"]) for row in rows)


def test_a_codec_and_a_table_answer_what_if(tmp_path: Path) -> None:
    installed = [install(tmp_path, "xz-codec", "codecs", CODEC), install(tmp_path, "largest", "whatif_tables", TABLE)]
    done = kfbench("what-if", LOG, "--format", "v2", "--codec", "xz", "--codec", "none", "--json", plugins=installed)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    sizes = {each["codec"]: each["size_bytes"] for each in answer["sizes"] if each["format"] == "v2"}
    assert sizes["xz"] < sizes["none"] == answer["largest"]["topic_bytes"]
    shown = kfbench("what-if", LOG, "--format", "v2", "--codec", "none", plugins=installed)
    assert f"The largest topic has {sizes['none']} bytes in plain v2." in shown.stdout
    code = (
        "import kfbench; v2 = kfbench.FORMATS['v2']; values = [b'value'] * 90; "
        "log = v2.encode(kfbench.Records.from_lists(values), 10, codec='xz'); "
        "found = v2.decode(log.data); print(list(found.records.values()) == values, {*found.batches.codec})"
    )
    assert python("-c", code, plugins=installed).stdout == "True {'xz'}\n"


def test_a_command_is_listed_and_runs(tmp_path: Path) -> None:
    hello = install(tmp_path, "hello-command", "commands", COMMAND)
    assert "Say hello." in kfbench("--help", plugins=[hello]).stdout
    assert kfbench("hello", plugins=[hello]).stdout == "hello from a plug-in\n"


@pytest.mark.parametrize(("name", "group"), [("lean", "formats"), ("v2", "formats"), ("hello", "commands")])
def test_a_name_is_registered_once(lean: Path, tmp_path: Path, name: str, group: str) -> None:
    code = FORMAT.replace('"lean"', f'"{name}"') if group == "formats" else COMMAND
    others = [install(tmp_path, other, group, code) for other in ("other-one", "other-two")]
    used = [lean, others[0]] if name == "lean" else others[:1] if name == "v2" else others
    done = kfbench("formats", plugins=used)
    first = {"lean": "lean-format", "v2": "kfbench", "hello": "other-one"}[name]
    second = "other-two" if name == "hello" else "other-one"
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    assert re.match(rf"kfbench: {name}: .*\b{first}\b.*\b{second}\b", done.stderr)


def test_a_plug_in_that_fails_is_one_line_and_the_rest_works(lean: Path, tmp_path: Path) -> None:
    broken = install(tmp_path, "broken-format", "formats", "raise RuntimeError('out of ideas')")
    done = kfbench("formats", "--json", plugins=[lean, broken])
    assert done.returncode == 0 and "lean" in {each["name"] for each in json.loads(done.stdout)}
    assert done.stderr == "kfbench: plug-in broken-format is left out: RuntimeError: out of ideas\n"


@pytest.mark.parametrize(
    ("group", "code", "status", "words"),
    [
        ("formats", "FORMATS = 3", 0, "a tuple of Format is wanted"),
        ("formats", "FORMAT = ()", 0, "a tuple of Format is wanted"),
        ("commands", "COMMANDS = (print,)", 0, "a tuple of Command is wanted"),
        ("codecs", CODEC.replace("6, range", "9, range"), 1, "xz of wrong: number 9 is kfbench's"),
        ("kinds", KIND.replace("section =", "section = 'formats'; _ ="), 1, "no table for formats of wrong: it is"),
        ("whatif_tables", TABLE.replace('"largest",', '"seed",'), 1, "seed: the table of another package has the name"),
    ],
)  # fmt: skip
def test_a_wrong_plug_in_is_one_line(tmp_path: Path, group: str, code: str, status: int, words: str) -> None:
    wrong = install(tmp_path, "wrong", group, code)
    if group == "kinds":
        (tmp_path / "sweep.toml").write_text(SWEEP)
        done = kfbench("sweep", tmp_path / "sweep.toml", "--dry-run", plugins=[wrong])
    else:
        done = kfbench("what-if", LOG, "--format", "v2", "--codec", "none", plugins=[wrong])
    lines = [line for line in done.stderr.splitlines() if "compiling" not in line]
    assert done.returncode == status and len(lines) == 1 and words in lines[0], done.stderr


def test_executors_get_a_plug_in(lean: Path) -> None:
    code = "from kfbench.sweep.host.packing import _packages; print(*(name for name in _packages() if 'lean' in name))"
    listed = python("-c", code, plugins=[lean]).stdout
    assert {"packages/lean_format.py", "packages/lean_format-0.1.dist-info/entry_points.txt"} <= {*listed.split()}


def test_a_change_of_any_module_changes_the_digest(tmp_path: Path) -> None:
    code = "from kfbench.plugins import plugins; print(plugins()[0].digest)"
    digests = [
        python("-c", code, plugins=[install(tmp_path, "two-modules", "formats", FORMAT, helper=helper)]).stdout
        for helper in ("", "# another")
    ]
    assert digests[0] != digests[1] and all(digests)


@pytest.mark.parametrize(
    ("change", "near"), [(('"v3"', '"laen"'), "lean"), (('"bytes"', '"byts"'), "bytes"), (('"v1"', '"v11"'), "v1")]
)
def test_an_unknown_name_has_the_nearest_right_one(
    lean: Path, tmp_path: Path, change: tuple[str, str], near: str
) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(SWEEP.replace(*change))
    done = kfbench("sweep", sweep, "--dry-run", plugins=[lean])
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"did you mean {near}?" in done.stderr and "lean-format" in done.stderr


CORE: Final = [
    path
    for path in sorted((ROOT / "kfbench").rglob("*.py"))
    if not {"research", "report", "present"} & {*path.relative_to(ROOT / "kfbench").parts}
]


def test_nobody_but_the_folder_of_kinds_names_a_kind() -> None:
    """Find comparisons of a kind with a name, and collections of names. A name alone may be a word, such as "bytes"."""
    known = {*KINDS, *REMOVED_KINDS}
    found = []
    for path in (path for path in CORE if path.parent.name != "kinds"):
        nodes = [each for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(each, ast.expr)]
        for node in nodes:
            constants = {each.value for each in ast.iter_child_nodes(node) if isinstance(each, ast.Constant)} & known
            compared = isinstance(node, ast.Compare) and constants and "kind" in ast.unparse(node)
            parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", ())
            collected = len(parts) > 1 and all(isinstance(each, ast.Constant) and each.value in known for each in parts)
            if compared or collected:
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)[:100]}")
    assert found == []


def test_the_core_does_not_name_research() -> None:
    named = re.compile(r"\bcolumnar\b|\brivals?\b|dictionary-cpu", re.IGNORECASE)
    places = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in CORE
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        if named.search(line)
    ]
    assert places == []
