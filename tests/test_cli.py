"""The command line as a user meets it: exit status, results on stdout, one line on stderr when it fails."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest.mock
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console

from kfbench.cli import app, main
from kfbench.cli.migrate import migrate
from kfbench.cli.what_if import what_if
from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.measure.schema import table
from kfbench.migration import ask as migration
from kfbench.migration.bills import Prices, Traffic
from kfbench.migration.subjects import Sample
from kfbench.records import Records
from kfbench.sources import find
from kfbench.store import create_run
from kfbench.sweep.definition.profile import Profile, load_profile
from kfbench.sweep.host import compiling
from kfbench.sweep.run import cell, estimate
from kfbench.whatif import ask as asking
from kfbench.whatif.compiling import compile_for_what_if
from kfbench.workloads import WORKLOADS, catalogue
from tests.runs import MANIFEST, stored, without_progress
from tests.vectors import write_vectors

HEAVY = {"cramjam", "jinja2", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "pyspark", "rich", "scipy"}
COMMANDS = {
    "run",
    "sweep",
    "report",
    "compare",
    "what-if",
    "migrate",
    "inspect",
    "verify",
    "table",
    "formats",
    "workloads",
    "codecs",
    "doctor",
    "pack",
}


class Done(NamedTuple):
    status: int
    out: str
    err: str

    def refused(self, status: int = 1) -> str:
        """The one line that a failure prints."""
        assert self.status == status
        assert self.out == ""
        assert self.err.startswith("kfbench: ")
        assert self.err.count("\n") == 1
        return self.err


Run = Callable[..., Done]


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """Compile what what-if would say that it compiles, once."""
    compile_for_what_if(None, Console(file=io.StringIO()))


@pytest.fixture
def kfbench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["kfbench", *map(str, arguments)])
        status = main()
        return Done(status, *capsys.readouterr())

    return run


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Three batches of v2, two records each."""
    records = Records.from_lists([b"value %d" % i for i in range(6)], timestamps_ms=list(range(1_000, 1_006)))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(FORMATS["v2"].encode(records, batch_size=2).data.tobytes())
    return path


@pytest.fixture
def damaged(segment: Path) -> tuple[Path, int]:
    """The segment with one bit of its second batch turned over, and where that batch starts."""
    data = bytearray(segment.read_bytes())
    start = len(data) // 3
    data[start + 70] ^= 1
    segment.write_bytes(data)
    return segment, start


def process(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kfbench", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def test_help_names_every_command(kfbench: Run) -> None:
    done = kfbench("--help")
    assert done.status == 0
    listed = done.out.partition("Commands:")[2]
    assert {line.split()[0] for line in listed.strip().splitlines()} == COMMANDS
    assert kfbench() == done


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_has_help(kfbench: Run, command: str) -> None:
    done = kfbench(command, "--help")
    assert done.status == 0
    assert done.out.startswith(f"Usage: kfbench {command} ")


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from kfbench.cli import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    assert not HEAVY & {name.partition(".")[0] for name in done.stdout.split()}


def test_version(kfbench: Run) -> None:
    assert kfbench("--version") == (0, "kfbench 0.1.0\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-command"], "no-such-command"),
        (["run"], "PROFILE"),
        (["formats", "--no-such-option"], "--no-such-option"),
        (["inspect"], "FILE"),
        (["verify", "smoke", "default"], "default"),
        (["verify", "--golden"], "--golden"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(kfbench: Run, arguments: list[str], said: str) -> None:
    assert said in kfbench(*arguments).refused(status=2)


@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate", "report", "run", "sweep", "verify"])
def test_a_file_that_does_not_exist(kfbench: Run, tmp_path: Path, command: str) -> None:
    line = kfbench(command, tmp_path / "nowhere.toml").refused()
    assert str(tmp_path / "nowhere.toml") in line
    assert "no such file" in line.lower()
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_shown_when_one_of_them_does_not_exist(kfbench: Run, segment: Path) -> None:
    assert "nowhere.log" in kfbench("inspect", segment, segment.parent / "nowhere.log").refused()


def test_a_profile_that_does_not_exist(kfbench: Run) -> None:
    line = kfbench("run", "no-such-profile").refused()
    assert "no-such-profile" in line
    assert "smoke" in line


def test_a_table_that_does_not_exist(kfbench: Run) -> None:
    assert "kip98" in kfbench("table", "no-such-table").refused(status=2)


def test_what_if_refuses_an_illegal_combination_by_name(kfbench: Run, segment: Path) -> None:
    line = kfbench("what-if", segment, "--format", "v2", "--format", "v1", "--codec", "zstd").refused()
    assert "v1" in line
    assert "zstd" in line


@pytest.mark.parametrize(("option", "known"), [("--format", FORMATS), ("--codec", CODECS)])
def test_what_if_refuses_unknown_names(kfbench: Run, segment: Path, option: str, known: dict[str, object]) -> None:
    line = kfbench("what-if", segment, option, "nope").refused(status=2)
    assert f"{option}: 'nope' is not one of {', '.join(known)}" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plan", "kip32"], "--plan: 'kip32' is not one of kip31, kip724, v3"),
        (["--codec", "brotli"], f"--codec: 'brotli' is not one of {', '.join(CODECS)}"),
        (["--plan", "kip31", "--codec", "zstd"], "v0 has no zstd (codecs: none, gzip, snappy, lz4)"),
        (["--old-producers", "1.5"], "old_producers: 1.5 is not 0 to 1"),
        (["--old-consumers", "-0.1"], "old_consumers: -0.1 is not 0 to 1"),
        (["--old-data", "nan"], "old_data: nan is not 0 to 1"),
        (["--canary-leaders", "many"], "--canary-leaders"),
        (["--fan-out", "-1"], "fan_out: -1.0 is not 0 or more"),
        (["--replication", "0"], "replication: 0 is not 1 or more"),
        (["--replication", "2.5"], "--replication"),
        (["--retention-days", "inf"], "retention_days: inf is not 0 or more"),
        (["--price-network-gb", "-1"], "network_gb: -1.0 is not 0 or more"),
    ],
)
def test_migrate_refuses_what_cannot_be(kfbench: Run, segment: Path, arguments: list[str], said: str) -> None:
    assert said in kfbench("migrate", segment, *arguments).refused(status=2)


def test_migrate_assumes_what_it_says_it_does() -> None:
    given = {name: parameter.default for name, parameter in signature(migrate).parameters.items()}
    prices = {name.removeprefix("price_"): value for name, value in given.items() if name.startswith("price_")}
    assert prices == vars(Prices())
    assert {name: given[name] for name in vars(Traffic())} == vars(Traffic())


def test_a_plan_is_given_with_its_option(kfbench: Run) -> None:
    assert "kip31 is a plan: kfbench migrate --plan kip31" in kfbench("migrate", "kip31").refused(status=2)


def test_migrate_as_text_and_json(kfbench: Run, segment: Path) -> None:
    text = kfbench("migrate", segment, "--plan", "kip31", "--codec", "none", "--old-consumers", "0.5")
    data = kfbench("migrate", segment, "--plan", "kip31", "--codec", "none", "--old-consumers", "0.5", "--json")
    assert (text.status, data.status, text.err, data.err) == (0, 0, "", "")
    found = json.loads(data.out)
    assert [phase["name"] for phase in found["phases"]] == ["before", "phase 1", "canary", "phase 2"]
    assert found["traffic"]["old_consumers"] == 0.5
    (subject,) = found["subjects"]
    assert subject["name"] == segment.name
    for phase in found["phases"]:
        assert f"{phase['name']} ({phase['source']}): {phase['summary']}" in text.out


def test_a_sweep_with_an_illegal_combination_leaves_nothing_behind(kfbench: Run, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        'title = "t"\nanalysis = "a"\n[[grid]]\nname = "g"\ntitle = "t"\nanalysis = "a"\nworkload = "grid"\n'
        'measure = ["bytes"]\nformats = ["v1", "v2"]\nillegal = "refuse"\n[grid.axes]\nbatch_size = [1]\n'
        "[grid.codecs]\nzstd = [3]\n"
    )
    line = kfbench("run", sweep, "--out", tmp_path / "reports").refused()
    assert all(word in line for word in ("sweep.toml", "'g'", "codecs.zstd", "v1"))
    assert list(tmp_path.iterdir()) == [sweep]


def test_inspect_shows_batches_and_records(kfbench: Run, segment: Path) -> None:
    plain, full = kfbench("inspect", segment), kfbench("inspect", "--records", segment)
    assert plain.status == full.status == 0
    assert "3 batches, 6 records" in plain.out
    assert "value 5" not in plain.out
    assert "value 5" in full.out


def test_inspect_as_json(kfbench: Run, segment: Path) -> None:
    done = kfbench("inspect", segment, segment, "--records", "--json")
    first, second = json.loads(done.out)
    assert first == second
    assert first["record_count"] == 6
    assert [record["value"] for batch in first["batches"] for record in batch["records"]][-1] == "value 5"


@pytest.mark.parametrize("command", ["inspect", "what-if"])
def test_sound_batches_of_a_damaged_log_are_used_and_the_command_fails(
    kfbench: Run, damaged: tuple[Path, int], command: str
) -> None:
    path, start = damaged
    done = kfbench(command, path, "--json")
    assert done.status == 1
    found = json.loads(done.out)
    assert (found["sources"][0]["batches"] if command == "what-if" else found[0]["batch_count"]) == 2
    assert done.err.startswith(f"kfbench: {path}: batch at byte {start}: crc: ")
    assert done.err.count("\n") == 1


ENDINGS: dict[
    str, tuple[Callable[[bytes], bytes], int, str | None]
] = {  # what follows three sound batches of so many bytes, and the status
    "sound": (lambda log: log, 0, None),
    "allocated ahead": (lambda log: log + bytes(5_000), 0, None),
    "a few zeros": (lambda log: log + bytes(3), 0, None),
    "being written": (lambda log: log + log[:30], 0, None),
    "a batch behind it": (
        lambda log: log + log[:8] + (1 << 19).to_bytes(4, "big") + log[12:30] + log,
        1,
        "batch at byte {end}: length: the batch would end after the file does",
    ),
    "no length": (lambda log: log + bytes(8) + b"\0\0\0\1" + bytes(40), 1, "batch at byte {end}: length: "),
    "a batch damaged": (lambda log: log[:-1] + bytes([log[-1] ^ 1]), 1, "batch at byte {last}: crc: "),
    "empty": (lambda log: b"", 1, "the file is empty"),
    "all allocated ahead": (lambda log: bytes(5_000), 1, "the file is empty"),
    "no log": (lambda log: b"notes" * 9, 1, "no whole batch in 45 bytes: is this a log segment?"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate"])
def test_all_that_read_a_segment_have_one_rule_for_its_damage_and_its_end(
    kfbench: Run, segment: Path, monkeypatch: pytest.MonkeyPatch, command: str, ending: str
) -> None:
    made, status, said = ENDINGS[ending]
    log = segment.read_bytes()
    segment.write_bytes(made(log))
    monkeypatch.setattr(migration, "SAMPLES", {"none": Sample(size_bytes=2_000, batches=9, rounds=3)})
    done = kfbench(command, segment, *(["--codec", "none"] if command != "inspect" else []))
    where = "" if said is None else f"kfbench: {segment}: {said.format(end=len(log), last=len(log) // 3 * 2)}"
    assert done.status == status and done.err.startswith(where) and done.err.count("\n") == status, done.err


@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate"])
def test_a_segment_that_another_follows_is_not_being_written(
    kfbench: Run, segment: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    folder = segment.parent / "orders-0"
    folder.mkdir()
    first, last = (folder / f"{number:020}.log" for number in (0, 900))
    log = segment.read_bytes()
    for path in (first, last):
        path.write_bytes(log + log[:30])
    monkeypatch.setattr(migration, "SAMPLES", {"none": Sample(size_bytes=2_000, batches=9, rounds=3)})
    options = ["--codec", "none"] if command != "inspect" else []
    assert kfbench(command, last, *options).status == 0
    done = kfbench(command, first, *options)
    assert done.status == 1 and done.err.startswith(f"kfbench: {first}: batch at byte {len(log)}: length: ")


@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate"])
def test_a_file_that_is_no_log_fails_the_command(kfbench: Run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("a plain text, and no batch in it\n" * 3)
    done = kfbench(command, path)
    assert (done.status, done.err) == (1, f"kfbench: {path}: no whole batch in 99 bytes: is this a log segment?\n")


def test_what_if_prints_every_format_and_codec_that_was_asked_for(kfbench: Run, segment: Path) -> None:
    done = kfbench(
        "what-if", segment, "--format", "v2", "--format", "v3", "--codec", "none", "--codec", "lz4", "--json"
    )
    assert done.status == 0
    arms = {(arm["format"], arm["codec"]): arm["size_bytes"] for arm in json.loads(done.out)["sizes"]}
    assert arms.keys() == {("v2", "none"), ("v2", "lz4"), ("v3", "none"), ("v3", "lz4")}
    assert arms["v2", "none"] == segment.stat().st_size


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--linger-ms", "-1"], "linger_ms: -1 is not 0 to 86400000"),
        (["--batch-size", "-1"], "batch_size_bytes: -1 is not 0 to"),
        (["--replication", "0"], "replication: 0 is not 1 or more"),
        (["--price-network-gb", "nan"], "network_gb: nan is not 0 or more"),
        (["--rate-mb-s", "0"], "rate_mb_s: 0 is not above 0"),
        (["--rate-mb-s", "nan"], "rate_mb_s: nan is not above 0"),
        (["--connector", "a:b:1"], "--connector: no source is a topic"),
    ],
)
def test_what_if_refuses_what_cannot_be(kfbench: Run, segment: Path, arguments: list[str], said: str) -> None:
    assert said in kfbench("what-if", segment, *arguments).refused(status=2)


def test_what_if_of_a_folder_in_other_batches_with_a_page(kfbench: Run, segment: Path, tmp_path: Path) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(segment.read_bytes())
    (folder / "00000000000000000000.index").write_bytes(bytes(10))
    batches = ["--linger-ms", "5", "--linger-ms", "50", "--batch-size", "1000"]
    chosen = ["--format", "v3", "--codec", "lz4", "--all", "--rate-mb-s", "2.5", "--out", tmp_path / "pages"]
    done = kfbench("what-if", folder, *batches, *chosen, "--json")
    assert done.status == 0
    found = json.loads(done.out)
    assert {tuple(arm["batching"].values()) for arm in found["rebatched"]} == {(5.0, 1000), (50.0, 1000)}
    assert found["topics"] == ["orders"] and found["rate"]["bytes_a_day"] == 2.5e6 * 86_400
    assert found["sample"]["share"] == 1.0
    [page] = (tmp_path / "pages").iterdir()
    assert done.err == f"kfbench: the report is {page}\n"
    assert json.loads((page / "what-if.json").read_text()) == found
    assert "orders" in (page / "index.html").read_text()


def test_what_if_of_columns_where_there_are_none(kfbench: Run, segment: Path) -> None:
    assert "column `k`: no source is a table" in kfbench("what-if", segment, "--key", "k").refused()
    assert "--value-json: no source is a table" in kfbench("what-if", segment, "--value-json").refused()
    assert "a topic has no columns" in kfbench("what-if", "kafka://a:1/t", "--key", "k").refused(status=2)


def test_what_if_names_the_byte_of_a_flipped_length(kfbench: Run, segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    at = int.from_bytes(data[8:12], "big") + 12
    data[at + 9] ^= 0x20
    segment.write_bytes(data)
    done = kfbench("what-if", segment, "--format", "v2", "--codec", "none")
    assert done.status == 1 and done.err.startswith(f"kfbench: {segment}: batch at byte {at}: length: ")


def test_what_if_takes_a_segment_that_vanishes_as_a_brokers_work(
    kfbench: Run, segment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    for i in range(2):
        (folder / f"{i:020}.log").write_bytes(segment.read_bytes())

    def found_then_gone(*asked: Any) -> Any:
        found = find(*asked)
        (folder / f"{0:020}.log").rename(folder / f"{0:020}.log.deleted")
        return found

    monkeypatch.setattr(asking, "find", found_then_gone)
    done = kfbench("what-if", folder, "--format", "v2", "--codec", "none")
    assert (done.status, done.err) == (0, "")
    assert f"{folder / f'{0:020}.log'}: not read to its end: gone meanwhile: deleted or renamed" in done.out


def test_what_if_of_a_table(kfbench: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("id,at,v\n7,2026-01-02,x\n8,2026-01-02T00:00:01Z,yz\n9,late,z\n")
    columns = ["--key", "id", "--timestamp", "at"]
    asked = [*columns, "--linger-ms", "5", "--format", "v2", "--codec", "none", "--json"]
    done = kfbench("what-if", table, *asked, "--value", "v")
    assert done.status == 1 and done.err.startswith(f"kfbench: {table}: row 3: column `at`: 'late' is no time")
    found = json.loads(done.out)
    assert found["records"] == 2 and found["sizes"][0]["size_bytes"] == 61 * 2 + (7 + 1 + 1) + (7 + 1 + 2)
    assert found["columns"] == {"key": "id", "value": "v", "timestamp": "at", "headers": None, "partition": None}
    whole = json.loads(kfbench("what-if", table, *asked, "--value-json").out)
    assert whole["payload_bytes"] == 2 + len(
        '{"id":7,"at":"2026-01-02","v":"x"}{"id":8,"at":"2026-01-02T00:00:01Z","v":"yz"}'
    )
    assert "value: the whole row as JSON; timestamp: column `at`" in whole["rows_as_records"]
    assert "by --linger-ms and --batch-size" in kfbench("what-if", table, *columns).refused()
    assert "--value-json: not together with --value" in kfbench(
        "what-if", table, *asked, "--value", "v", "--value-json"
    ).refused(2)


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (["kafka://a:1/t", "."], "SOURCE: a topic is asked about alone"),
        (["kafka://a/t"], "kafka://a/t: kafka://HOST:PORT[,HOST:PORT…]/TOPIC[?from=earliest&to=latest] is wanted"),
        (["kafka://a:1/t?from=7"], "from: earliest, latest or PARTITION:OFFSET,… is wanted, not '7'"),
    ],
)
def test_what_if_refuses_what_is_no_topic(kfbench: Run, sources: list[str], said: str) -> None:
    assert said in kfbench("what-if", *sources, "--linger-ms", "5").refused(status=2)


def test_what_if_names_what_it_could_not_read_and_shows_the_rest(kfbench: Run, segment: Path, tmp_path: Path) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    garbage = folder / "00000000000000000000.log"
    garbage.write_bytes(b"x" * 30)
    table = tmp_path / "rows.parquet"
    table.write_bytes(b"PAR1 and no more")
    (folder / "00000000000000000001.log").write_bytes(segment.read_bytes())
    done = kfbench("what-if", folder, table, "--format", "v2", "--codec", "none", "--json")
    assert done.status == 1
    found = json.loads(done.out)
    assert found["now_bytes"] == segment.stat().st_size and found["lost_bytes"] == 30 + 16
    first, second = done.err.splitlines()
    assert first == f"kfbench: {garbage}: no whole batch in 30 bytes: is this a log segment?"
    assert second.startswith(f"kfbench: {table}: ")


def test_what_if_of_a_folder_leaves_out_what_lies_beside_its_segments(kfbench: Run, segment: Path) -> None:
    (segment.parent / f"{segment.name}.json").write_text('{"offset": 0}\n')
    done = kfbench("what-if", segment.parent, "--format", "v2", "--codec", "none")
    assert (done.status, done.err) == (0, "")
    assert "Not looked at: tables beside segments, to be given by name: 1 (14 bytes)" in done.out


def test_what_if_assumes_what_it_says_it_does() -> None:
    given = {name: parameter.default for name, parameter in signature(what_if).parameters.items()}
    assert given["price_storage_gb_month"] == Prices().storage_gb_month
    assert given["price_network_gb"] == Prices().network_gb
    assert {name: given[name] for name in ("fan_out", "replication", "retention_days")} == {
        name: getattr(Traffic(), name) for name in ("fan_out", "replication", "retention_days")
    }


@pytest.mark.parametrize(("command", "known"), [("formats", FORMATS), ("workloads", WORKLOADS), ("codecs", CODECS)])
def test_catalogues(kfbench: Run, command: str, known: dict[str, object]) -> None:
    text, data = kfbench(command), kfbench(command, "--json")
    assert text.status == data.status == 0
    assert [row["name"] for row in json.loads(data.out)] == list(known)
    assert all(name in text.out for name in known)


@pytest.mark.parametrize("name", ["grid", "user-activity"])
def test_a_workload_with_its_story_its_numbers_and_their_sources(kfbench: Run, name: str) -> None:
    text, data = kfbench("workloads", name), kfbench("workloads", name, "--json")
    assert text.status == data.status == 0
    about, told = WORKLOADS[name].describe(), json.loads(data.out)
    assert told["name"] == name and told["variants"] == list(about.variants)
    assert [each["path"] for each in told["parameters"]] == [each.path for each in about.parameters]
    for words in (WORKLOADS[name].summary, about.question, about.story, *about.assumptions):
        assert words in text.out
    for each in about.parameters:
        assert each.path in text.out and (each.source or each.meaning or "") in text.out


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('model = "linger"', 'model = "never"', "batching"),
        ("share = 0.03", "share = 3.0", "share"),
        ("[producer]", "[produce]", "produce"),
        ("[bands]", "[variant.odd.value]\nshape = 3\n\n[bands]", "variant.odd"),
    ],
)
def test_a_workload_that_no_sweep_takes_is_refused(
    old: str, new: str, said: str, kfbench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in catalogue.FILES.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        changed = text.replace(old, new, 1) if path.stem == "cluster-metadata" else text
        assert (changed != text) == (path.stem == "cluster-metadata")
        (tmp_path / path.name).write_text(changed, encoding="utf-8")
    monkeypatch.setattr(catalogue, "FILES", tmp_path)
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(SWEEP.partition("[grid.axes]")[0] + 'workloads = ["cluster-metadata", "*/*"]\n')
    refused = kfbench("sweep", sweep, "--out", tmp_path / "out").refused()
    file = str(tmp_path / "cluster-metadata.toml")
    assert file in refused and said in refused
    for arguments in ([], ["cluster-metadata"], ["cluster-metadata", "--json"]):
        refused = kfbench("workloads", *arguments).refused()
        assert file in refused and said in refused
    assert kfbench("workloads", "user-activity").status == 0


def test_a_workload_that_does_not_exist(kfbench: Run) -> None:
    done = kfbench("workloads", "nothing")
    assert done.status == 2 and "'nothing' is not one of " in done.err


def test_table_as_text_and_json(kfbench: Run) -> None:
    text, data = kfbench("table", "kip98"), kfbench("table", "kip98", "--json")
    assert text.status == data.status == 0
    rows = json.loads(data.out)["rows"]
    assert rows
    assert all(row["claim"] in text.out for row in rows)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_debug_shows_the_traceback_wherever_it_stands(kfbench: Run, tmp_path: Path, place: int) -> None:
    arguments = ["inspect", str(tmp_path / "nowhere.log")]
    assert "Traceback" not in kfbench(*arguments).err
    arguments.insert(place, "--debug")
    done = kfbench(*arguments)
    assert done.status == 1
    assert done.err.startswith("Traceback")
    assert done.err.splitlines()[-1].startswith("kfbench: ")


def test_a_name_after_two_dashes_is_no_option(kfbench: Run) -> None:
    assert kfbench("inspect", "--", "--debug").refused().startswith("kfbench: --debug: ")


def test_unforeseen_failures_are_one_line_too(kfbench: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @app.command(name="break")
    def broken() -> None:
        raise ValueError("first line\nsecond line")

    try:
        line = kfbench("break").refused()
    finally:
        app.registered_commands.pop()
    assert line == "kfbench: ValueError: first line second line (unexpected; --debug shows where)\n"


@pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="asks Linux whether the command waits")
@pytest.mark.parametrize(
    ("sent", "status", "line"), [(signal.SIGINT, 130, "kfbench: interrupted\n"), (signal.SIGTERM, 143, "")]
)
def test_a_signal_is_at_most_one_line_and_its_status(tmp_path: Path, sent: int, status: int, line: str) -> None:
    pipe = tmp_path / "segment.log"
    os.mkfifo(pipe)  # nobody writes to it: the command waits, as a long one would
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started deaf to it
    try:
        running = process("inspect", pipe, "--debug")
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        deadline = time.monotonic() + 60
        while "wait_for_partner" not in Path(f"/proc/{running.pid}/wchan").read_text():
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        running.send_signal(sent)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (running.returncode, out, err) == (status, "", line)


@pytest.mark.parametrize("status", [0, pytest.param(3, marks=pytest.mark.thorough)])
def test_a_reader_that_leaves_early_is_no_failure(tmp_path: Path, two_cells: Path, status: int) -> None:
    """Neither in words nor in the status, which is what it would have been."""
    golden = write_vectors(tmp_path / "golden", trailingBytes=7 if status else 0)
    running = process("verify", two_cells, "--golden", golden)
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert len(running.stderr.read().splitlines()) == (1 if status else 0)
    running.stderr.close()
    assert running.wait() == status


def test_a_table_whose_reader_leaves_early() -> None:
    running = process("table", "kip98")
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert running.stderr.read() == ""
    running.stderr.close()
    assert running.wait() == 0


def test_a_terminal_without_unicode_still_gets_its_table() -> None:
    running = process("codecs", env={**os.environ, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"})
    out, err = running.communicate()
    assert (running.returncode, err) == (0, "")
    assert "snappy" in out


SWEEP = """
title = "Two cells"
analysis = "For a test."
[[grid]]
name = "two"
title = "Two cells"
analysis = "For a test."
measure = ["bytes"]
formats = ["v1", "v2", "v3"]
[grid.axes]
batch_size = [1, 10]
"""


@pytest.fixture
def two_cells(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(SWEEP)
    return path


def test_verify_says_what_it_checked(kfbench: Run, tmp_path: Path, two_cells: Path) -> None:
    golden = write_vectors(tmp_path / "golden")
    text = kfbench("verify", two_cells, "--golden", golden)
    assert (text.status, text.err) == (0, "")
    assert "golden vectors of Apache Kafka's own classes: 1" in text.out
    assert "cells of the profile two: 2, with 2,054 records (at most 1,024 per cell, or one batch)" in text.out
    assert "v3" in text.out
    assert text.out.endswith("22 checks: 22 hold, 0 failed\n")
    found = json.loads(kfbench("verify", two_cells, "--golden", golden, "--json").out)
    assert (found["checks"], found["failures"], found["golden"]["vectors"]) == (22, [], 1)
    assert [row["round trip"] for row in found["profile"]["formats"]] == [2, 2, 2]


def test_verify_fails_with_a_line_a_failure(
    kfbench: Run, tmp_path: Path, two_cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KFBENCH_GOLDEN", str(write_vectors(tmp_path / "golden", trailingBytes=7)))
    for options in ((), ("--json",)):
        done = kfbench("verify", two_cells, *options)
        assert done.status == 3
        assert done.err == "kfbench: nothing: empty: fields: Kafka leaves 7 bytes over, kfbench 0\n"
        assert done.out
    assert json.loads(done.out)["failures"][0]["subject"] == "nothing"


def test_verify_names_a_vector_that_it_cannot_read(kfbench: Run, tmp_path: Path, two_cells: Path) -> None:
    golden = write_vectors(tmp_path / "golden")
    (golden / "nothing.json").write_text("{}")
    done = kfbench("verify", two_cells, "--golden", golden)
    assert done.status == 3
    assert done.err.count("\n") == 1
    assert "nothing.json: sha256, error, byteExact" in done.err
    (golden / "nothing.bin").unlink()
    assert "nothing.bin: No such file" in kfbench("verify", two_cells, "--golden", golden).err


@pytest.fixture
def sizes(tmp_path: Path) -> Callable[[int], Path]:
    """A finished run of one row, which is of that many bytes."""

    def finished(size_bytes: int) -> Path:
        row = {"kind": "bytes", "cell_id": "one", "grid": "one", "workload": "grid", "seed": 1, "records": 10}
        result = {"status": "ok", "format": "v3", "codec": "none", "size_bytes": size_bytes}
        return stored(tmp_path, [row | result]).path

    return finished


def test_compare_ends_with_status_3_where_bytes_changed(kfbench: Run, sizes: Callable[[int], Path]) -> None:
    first, same, other = sizes(700), sizes(700), sizes(699)
    done = kfbench("compare", first, same)
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith("No regression in the exact columns.\nCPU was not compared: neither run has any.\n")
    done = kfbench("compare", first, other)
    assert (done.status, done.err) == (3, "") and "Regression: exact columns" in done.out
    done = kfbench("compare", first, other, "--json")
    found = json.loads(done.out)
    assert done.status == 3 and found["is_regression"] is True
    assert [(each["column"], each["before"], each["after"]) for each in found["changed"]] == [("size_bytes", 700, 699)]


def test_a_terminal_is_told_what_takes_seconds(
    kfbench: Run, sizes: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sizes(100)
    assert kfbench("compare", run, run).err == ""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # rich's own name for it
    monkeypatch.setenv("TERM", "xterm")
    said = kfbench("compare", run, run)
    assert said.status == 0 and "comparing" in said.err and "comparing" not in said.out


@pytest.mark.parametrize("threshold", ["0", "1", "-0.1", "nan", "x"])
def test_compare_wants_a_threshold_that_is_a_share(kfbench: Run, sizes: Callable[[int], Path], threshold: str) -> None:
    assert "--threshold" in kfbench("compare", sizes(1), sizes(1), f"--threshold={threshold}").refused(status=2)


def test_compare_names_the_run_that_it_cannot_use(kfbench: Run, sizes: Callable[[int], Path], tmp_path: Path) -> None:
    assert "nowhere: no such file or folder" in kfbench("compare", sizes(1), tmp_path / "nowhere").refused()
    assert f"{tmp_path}: not a run" in kfbench("compare", tmp_path, sizes(1)).refused()


def test_verify_needs_a_folder_of_vectors(kfbench: Run, tmp_path: Path, two_cells: Path) -> None:
    assert "nowhere" in kfbench("verify", two_cells, "--golden", tmp_path / "nowhere").refused()


@pytest.mark.spark
@pytest.mark.slow
def test_run_sweeps_and_reports_and_report_finds_the_same_report_again(two_cells: Path) -> None:
    out = two_cells.parent / "reports"
    running = process("run", two_cells, "--out", out)
    printed, err = running.communicate(timeout=180)
    assert running.returncode == 0, err
    stages = [line.removeprefix("kfbench: ").split(":")[0] for line in err.splitlines()]
    assert list(dict.fromkeys(stages)) == [compiling.COMPILING, "bytes", "rendering"]  # no terminal is here
    report = Path(printed.strip())
    assert report.parent == out
    assert {"README.md", "index.html", "measurements.parquet", "manifest.json"} <= {
        path.name for path in report.iterdir()
    }
    command = json.loads((report / "manifest.json").read_text())["command"]
    assert command == "kfbench run two.toml --out reports"
    (run,) = (out / "runs").iterdir()
    again = process("report", run, "--out", out)
    assert again.communicate(timeout=180) == (printed, "")


@pytest.mark.parametrize("is_published", [True, False])
def test_a_report_goes_where_its_sweep_wants_it_unless_told(
    is_published: bool, kfbench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"kind": "bytes", "cell_id": "one", "grid": "one", "workload": "grid", "seed": 1, "records": 10}
    row |= {"status": "ok", "codec": "none", "batch_size": 10, "batches": 1, "payload_bytes": 50}
    sizes = [
        row | {"format": name, "size_bytes": size, "overhead_bytes": size} for name, size in (("v2", 700), ("v3", 600))
    ]
    run = stored(tmp_path, sizes, publish=is_published).path
    place = "reports" if is_published else "reports/unpublished"
    assert re.fullmatch(rf"{place}/\d{{4}}-\d\d-\d\d\.1\n", kfbench("report", run).out)
    assert re.fullmatch(r"elsewhere/\d{4}-\d\d-\d\d\.1\n", kfbench("report", run, "--out", "elsewhere").out)


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_dry_run_says_what_would_be_done_and_does_nothing(kfbench: Run, two_cells: Path, command: str) -> None:
    out = two_cells.parent / "reports"
    text = kfbench(command, two_cells, "--out", out, "--dry-run")
    assert (text.status, text.err) == (0, "") and "0 s of stages\n" in text.out
    assert re.search(r"^2 cells, about \d+ s on \d+ cores: ", text.out, re.MULTILINE)
    assert f"estimated from what cells took in {estimate.ESTIMATED_FROM}, on " in text.out
    data = json.loads(kfbench(command, two_cells, "--out", out, "--dry-run", "--json").out)
    (stage,) = data["stages"]
    assert (stage["kind"], stage["cells"], stage["tasks"], stage["skipped"]) == ("bytes", 2, 1, [])
    assert data["total_s"] == pytest.approx(data["start_s"] + data["compiling_s"] + stage["here_s"])
    assert data["cores"] > 0 and {"alone_s", "here_s", "longest_task_s"} <= stage.keys()
    few = kfbench(command, two_cells, "--dry-run", "--json", "--filter", "batch_size>5", "--cell-budget-s", "1e-6")
    (stage,) = json.loads(few.out)["stages"]
    assert stage["tasks"] == 0 and all("budget of a cell is 1e-06 s" in each["reason"] for each in stage["skipped"])
    assert not out.exists()


def test_a_dry_run_counts_compiling_until_a_sweep_has_done_it(
    kfbench: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_cells: Path
) -> None:
    cache = tmp_path / "kernels-0"
    (cache / "kernels_1").mkdir(parents=True)
    (cache / "kernels_1" / "scan.nbc").touch()  # reading the sweep compiled it
    monkeypatch.setattr(compiling, "CACHE_FOLDER", cache)
    monkeypatch.setattr(compiling, "COMPILED", True)
    dry = ("sweep", two_cells, "--dry-run")
    assert ", 60 s to compile kernels, once for this code, " in kfbench(*dry).out
    before = json.loads(kfbench(*dry, "--json").out)
    compiling.note_compiled(compiling.compilations(load_profile(two_cells).cells))
    after = json.loads(kfbench(*dry, "--json").out)
    assert (before["compiling_s"], after["compiling_s"]) == (compiling.COMPILING_S, 0)
    assert before["total_s"] - after["total_s"] == pytest.approx(compiling.COMPILING_S)
    assert "compile" not in kfbench(*dry).out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--filter", "size=3"], "--filter: 'size=3': no column 'size' (columns: grid, kind, workload, codec, "),
        (["--filter", "kind=bytes", "--filter", "batch_size=7"], "kind=bytes and batch_size=7: none of the 2 cells"),
        (["--filter", "batch_size"], "--filter: 'batch_size': COLUMN=VALUE"),
        (["--cell-budget-s", "0"], "--cell-budget-s: 0.0 is not above 0"),
        (["--cell-budget-s", "nan"], "--cell-budget-s: nan is not above 0"),
        (["--json"], "--json: only with --dry-run"),
    ],
)
def test_a_sweep_refuses_options_that_cannot_be(kfbench: Run, two_cells: Path, options: list[str], said: str) -> None:
    assert said in kfbench("sweep", two_cells, *options).refused(status=2)


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_sweep_resumes_no_run_of_another(kfbench: Run, two_cells: Path, tmp_path: Path, options: list[str]) -> None:
    with create_run(tmp_path, MANIFEST | {"profile_text": "another"}) as writer:
        pass
    before = {each: each.read_bytes() for each in writer.path.rglob("*") if each.is_file()}
    done = kfbench("sweep", two_cells, "--resume", writer.path, *options)
    assert "profile_text: the text of the profile is not the same: line 1: another then, " in done.refused()
    assert {each: each.read_bytes() for each in writer.path.rglob("*") if each.is_file()} == before
    assert "not a run" in kfbench("sweep", two_cells, "--resume", tmp_path, *options).refused()


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_rows_that_are_errors_fail_the_command_after_it_has_stored_and_shown_the_rest(
    kfbench: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_cells: Path, command: str
) -> None:
    from kfbench.sweep.run import runner

    def swept(profile: Profile, *_: object, **__: object) -> Path:
        """The cells of the sweep, without the Spark around them; one of them broken."""
        with unittest.mock.patch.object(cell, "FORMATS", {k: v for k, v in FORMATS.items() if k != "v1"}):
            rows = [row for each in profile.cells for row in cell.measure_cell(each)]
        writer = create_run(out, MANIFEST)
        writer.add(table(rows))
        return writer.complete({"counts": {"error": sum(row["status"] == "error" for row in rows)}}).path

    out = tmp_path / ("a folder with a name that is longer than eighty columns are wide, " + "and [brackets] " * 3)
    monkeypatch.setattr(runner, "run_sweep", swept)
    done = kfbench(command, two_cells, "--out", out)
    (run,) = (out / "runs").iterdir()
    assert done.status == 3
    complaint = f"kfbench: {run}: 2 rows are errors instead of numbers: see their column `error`"
    assert done.err.splitlines()[-1] == complaint
    printed = Path(done.out.removesuffix("\n"))
    assert printed == (run if command == "sweep" else out / run.name) and printed.is_dir()


@pytest.mark.spark
@pytest.mark.faults
def test_an_interrupted_sweep_is_no_run_to_report_on(two_cells: Path, kfbench: Run) -> None:
    many = SWEEP.replace("[1, 10]", str(list(range(1, 400)))).replace('"bytes"', '"bytes", "cpu"')
    two_cells.write_text(many)
    out = two_cells.parent / "reports"
    running = process("sweep", two_cells, "--out", out)
    try:
        deadline = time.monotonic() + 120
        while not list(out.glob("runs/*/measurements/*.parquet")):
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        printed, err = running.communicate(timeout=60)
    finally:
        running.kill()
    (run,) = (out / "runs").iterdir()
    said = f"kfbench: this run is kept as far as it came: --resume {run}\nkfbench: interrupted\n"
    assert (running.returncode, printed, without_progress(err)) == (130, "", said)
    assert str(run) in kfbench("report", run, "--out", out).refused()
    assert [path.name for path in out.iterdir()] == ["runs"]


@pytest.mark.parametrize("command", [["sweep", "smoke"], ["run", "smoke"], ["what-if", "{segment}"]])
def test_an_archive_is_for_a_cluster_and_has_to_be_there(
    kfbench: Run, segment: Path, tmp_path: Path, command: list[str]
) -> None:
    asked = [each.format(segment=segment) for each in command]
    archive = tmp_path / "environment.tar.gz"
    for master in ([], ["--master", "local"], ["--master", "local[2]"]):
        refused = kfbench(*asked, *master, "--archive", archive).refused(2)
        assert "--archive: only a cluster's executors need one (--master)" in refused
    refused = kfbench(*asked, "--master", "spark://host:7077", "--archive", archive).refused()
    assert f"{archive}: no such file: write it with `kfbench pack {archive}`" in refused
