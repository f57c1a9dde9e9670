"""A run becomes the file of its machine: its ratios, a hash of its sizes, and nothing that identifies it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.errors import RunError
from kfbench.formats import BASE_FORMAT
from kfbench.machines.contribute import machine_file
from kfbench.machines.file import from_json, to_json
from kfbench.measure.cpu import paired_ratio
from kfbench.measure.noise import checks
from kfbench.report.publish import newest
from kfbench.store import open_run
from tests.machines.samples import ENVIRONMENT, NS, cpu_rows, file_of, ratio_of, run_of, size_rows

REPORTS = Path(__file__).parents[2] / "reports"
PLANTED = ("anna-laptop", "anna", "/home/anna", "10.1.2.3", "6.18.1-anna-7", "secret-topic", "host-0badcafe")


def test_ratios_are_those_of_the_samples(tmp_path: Path) -> None:
    found = file_of(tmp_path)
    assert [each.format for each in found.ratios] == ["columnar", "v3"]
    v3 = ratio_of(found, "v3")
    assert v3.median == pytest.approx(1.1, abs=0.002) and v3.low <= v3.median <= v3.high
    assert (v3.operation, v3.codec, v3.workload, v3.batch_size, v3.records) == ("encode", "none", "grid", 10, 100)
    assert (found.profile, found.machine.cpu, found.noise.aa_share) == ("machine", "AMD EPYC 9R14", None)
    assert from_json(to_json(found)) == found


def test_a_published_run_has_a_file() -> None:
    run = open_run(newest(REPORTS))
    found = machine_file(run)
    assert {each.operation for each in found.ratios} == {"encode", "decode", "read-times", "append"}
    assert sum(each.rows for each in found.sizes) == len(
        {
            (row["cell_id"], row["seed"], row["format"], row["codec"], row["level"])
            for row in run.table.select(["kind", "status", "cell_id", "seed", "format", "codec", "level"]).to_pylist()
            if (row["kind"], row["status"]) == ("bytes", "ok")
        }
    )
    assert found.noise.checks == len(checks(run.table)) == 8
    assert not found.noise.failed and from_json(to_json(found)) == found


def test_only_the_slice_along_the_batch_size_is_taken_from_the_grid(tmp_path: Path) -> None:
    rows = cpu_rows(batch_size=1) + cpu_rows(batch_size=10, value_bytes=1_000, cell_id="f" * 16)
    rows += cpu_rows(batch_size=100, cache="cold") + cpu_rows(batch_size=1_000, operation="decode-metadata")
    rows += cpu_rows(workload="user-activity", variant="rate-10", batch_size=7)
    found = machine_file(run_of(tmp_path, rows))
    assert {(each.workload, each.batch_size) for each in found.ratios} == {("grid", 1), ("user-activity/rate-10", 7)}


def test_the_rounds_of_all_seeds_are_taken_together(tmp_path: Path) -> None:
    fast, slow = cpu_rows(seed=1), cpu_rows({**NS, "v3": 1_300}, seed=2)
    found = ratio_of(machine_file(run_of(tmp_path, fast + slow)), "v3")
    ns = {name: [s for row in fast + slow if row["format"] == name for s in row["cpu_ns"]] for name in ("v2", "v3")}
    assert found.median == pytest.approx(paired_ratio(np.array(ns["v3"]), np.array(ns["v2"])).median, abs=1e-4)
    assert 1.1 < found.median < 1.3


def test_a_cell_of_two_blocks_counts_once(tmp_path: Path) -> None:
    once, twice = (
        cpu_rows() + size_rows({"v2": 9, "v3": 8}),
        cpu_rows(grid="h") + size_rows({"v2": 9, "v3": 8}, grid="h"),
    )
    found = machine_file(run_of(tmp_path / "a", once))
    assert machine_file(run_of(tmp_path / "b", once + twice)) == found


def test_two_runs_of_one_sweep_have_the_same_hash(tmp_path: Path) -> None:
    sizes = size_rows({"v2": 900, "v3": 800}) + size_rows({"v2": 300}, codec="zstd", level=3)
    one = machine_file(run_of(tmp_path / "a", cpu_rows() + sizes))
    other = machine_file(run_of(tmp_path / "b", sizes[::-1] + cpu_rows({**NS, "v3": 777})))
    assert one.sizes == other.sizes and [each.rows for each in one.sizes] == [2, 1]
    assert ratio_of(one, "v3") != ratio_of(other, "v3")


@pytest.mark.parametrize(
    ("changed", "same_cells"),
    [({"size_bytes": 801}, True), ({"records": 99}, False), ({"seed": 5}, False), ({"cell_id": "a" * 16}, False)],
)
def test_another_size_or_cell_has_another_hash(changed: dict[str, Any], same_cells: bool, tmp_path: Path) -> None:
    (before,) = machine_file(run_of(tmp_path / "a", cpu_rows() + size_rows({"v3": 800}))).sizes
    (after,) = machine_file(run_of(tmp_path / "b", cpu_rows() + size_rows({"v3": 800}, **changed))).sizes
    assert before.sizes != after.sizes and (before.cells == after.cells) == same_cells


def test_workloads_of_fingerprints_are_left_out(tmp_path: Path) -> None:
    """They are of the user's topics, and their name is a hash."""
    name = "fingerprint-0123456789ab"
    own = cpu_rows(batch_size=5, workload=name) + size_rows({"v2": 9, "v3": 8}, batch_size=5, workload=name)
    shared = cpu_rows() + size_rows({"v2": 900, "v3": 800})
    (tmp_path / "shared").mkdir()
    found = machine_file(run_of(tmp_path, own + shared))
    without = machine_file(run_of(tmp_path / "shared", shared))
    assert (found.ratios, found.sizes) == (without.ratios, without.sizes) and found.ratios
    (tmp_path / "own").mkdir()
    with pytest.raises(RunError, match="fingerprints do not count"):
        machine_file(run_of(tmp_path / "own", own))


def test_no_planted_name_is_in_the_file(tmp_path: Path) -> None:
    environment = {
        **ENVIRONMENT,
        "host": "anna-laptop",
        "hostname": "anna-laptop",
        "user": "anna",
        "system": "Linux 6.18.1-anna-7",
        "governor": "anna",
        "cpu": "anna-laptop",
        "cpu_model": "/home/anna",
        "machine": "anna-laptop",
        "virtual": "anna",
        "cores": "10.1.2.3",
        "cache": {"L2 unified": "/home/anna", "anna": "1024K", "L3 unified": "32768K"},
        "kernel_features": {
            "vectors": "anna",
            "host_vectors": "/home/anna",
            "fast_crc": "anna",
            "fast_deposit": "anna",
        },
        "python": "3.11.7+anna",
        "packages": {"kfbench": "0.1.0+anna", "numpy": "/home/anna", "secret-topic": "1.0"},
        "codecs": {"none": "-", "zstd": "zstandard 0.25.0 (/home/anna)", "anna": "zlib 1.2"},
        "git_revision": "anna",
    }
    run = run_of(
        tmp_path, cpu_rows(), environment, profile="secret-topic", command="kfbench run /home/anna/secret-topic.toml",
        master="spark://10.1.2.3:7077", code="/home/anna", title="secret-topic", hosts=["host-0badcafe"],
        noise={"noisy": True, "seen": ["anna-laptop: busy"], "hosts": {"anna-laptop": []}},
    )  # fmt: skip
    found = machine_file(run)
    text = to_json(found).decode()
    assert not [name for name in PLANTED if name in text]
    assert (found.profile, found.machine.cpu, found.machine.python) == ("own", "unknown", "3.11.7")
    assert found.machine.caches == {"L3 unified": "32768K"} and found.machine.packages == {"kfbench": "0.1.0"}
    assert (found.machine.instructions.vectors, found.machine.instructions.host_vectors) == ("unknown", None)


def test_the_facts_are_those_of_the_host_that_timed(tmp_path: Path) -> None:
    driver = {**ENVIRONMENT, "cpu": "Intel(R) Xeon(R) Processor"}
    run = run_of(tmp_path, cpu_rows(), driver, host_facts={"host-0badcafe": dict(ENVIRONMENT)})
    assert machine_file(run).machine.cpu == "AMD EPYC 9R14"


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({"fast_crc": True, "wide_crc": True, "vectors": "AVX-512", "host_vectors": "AVX-512"}, "AVX-512"),
        (
            {"fast_crc": True, "wide_crc": False, "vectors": "AVX2", "host_vectors": "AVX-512"},
            "AVX2 only (the host has AVX-512)",
        ),
        (
            {"fast_crc": False, "wide_crc": False, "vectors": "SSE2", "host_vectors": "AVX-512"},
            "SSE2 only (the host has AVX-512), CRC by tables",
        ),
        ({"fast_crc": False, "wide_crc": False, "vectors": "NEON", "host_vectors": "NEON"}, "NEON, CRC by tables"),
        ({"fast_crc": True, "wide_crc": True}, "AVX-512"),  # an older run
        ({"fast_crc": True, "wide_crc": False}, "unknown"),
    ],
)
def test_instructions_are_named(features: dict[str, Any], words: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, cpu_rows(), {**ENVIRONMENT, "kernel_features": features})
    assert machine_file(run).machine.instructions.words == words


@pytest.mark.parametrize(
    ("rows", "facts", "words"),
    [
        (size_rows({"v2": 900}), {}, "no CPU time of a format beside v2's"),
        (cpu_rows({"v2": 1_000}), {}, "no CPU time of a format beside v2's"),
        (cpu_rows({"v3": 1_000}), {}, "no CPU time of a format beside v2's"),
        (cpu_rows(cache="cold"), {}, "in caches"),
        (cpu_rows() + cpu_rows(batch_size=1, host="host-1"), {}, "CPU times of 2 hosts"),
        (cpu_rows(), {"environment": {**ENVIRONMENT, "kernel_features": {"vectors": "none"}}}, "plain Python"),
    ],
    ids=["no times", "no format", "no base", "cold", "two hosts", "interpreted"],
)
def test_a_run_without_ratios_of_one_machine_is_refused(
    rows: list[dict[str, Any]], facts: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match=words):
        machine_file(run_of(tmp_path, rows, **facts))


def test_v2_again_is_no_format_and_gives_the_noise(tmp_path: Path) -> None:
    rows = [row for i in range(25) for row in cpu_rows(batch_size=i + 1)]
    again = [row | {"arm": "aa"} for row in rows if row["format"] == BASE_FORMAT]
    found = machine_file(run_of(tmp_path, rows + again))
    assert len(found.ratios) == 2 * 25 and found.noise.aa_share == 1.0 and found.noise.aa_half_width == 0.0
