"""`kfbench verify` finds what differs; `formats`, `workloads` and `codecs` list what exists."""

import json
from pathlib import Path

import pytest

from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.workloads import WORKLOADS, catalogue
from tests.cli.command import SWEEP, Run
from tests.vectors import write_vectors


def test_verify_says_what_it_checked(kfbench: Run, tmp_path: Path, two_cells: Path) -> None:
    golden = write_vectors(tmp_path / "golden")
    text = kfbench("verify", two_cells, "--golden", golden)
    assert (text.status, text.err) == (0, "")
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
    assert "nothing.json: Object missing required field `sha256`" in done.err
    (golden / "nothing.bin").unlink()
    assert "nothing.bin: No such file" in kfbench("verify", two_cells, "--golden", golden).err


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
