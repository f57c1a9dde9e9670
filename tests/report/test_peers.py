"""Other implementations beside ours: what the file says, on the host that it names."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.report import peers
from kfbench.report.peers import FILE, JAVA, LIMIT, Pair, Peers
from kfbench.report.render import Interval
from kfbench.report.results import Results
from kfbench.report.sections import sections

V0, V1 = 1.3, 1.8


def arm(peer: str, operation: str, name: str, times: float, which: str = "measure") -> dict[str, Any]:
    drift = np.random.default_rng(3).uniform(1, 2, 19)
    cpu_ns = (1e6 * times * drift).astype(int).tolist()
    return {"peer": peer, "operation": operation, "format": name, "arm": which, "inner_loops": 2, "cpu_ns": cpu_ns}


def made(folder: Path, ours_v0: float = V0, without: str = "") -> Peers:
    base = {"kfbench": 0.1, LIMIT: 0.05, "aiokafka": 0.9, JAVA: 1.0}
    to_base = {peer: {"v0": V0, "v1": V1, "v2": 1.0} for peer in base} | {
        "kfbench": {"v0": ours_v0, "v1": V1, "v2": 1.0}
    }
    arms = [
        arm(peer, operation, name, to_base[peer][name] * base[peer], which)
        for peer in base
        for operation in ("encode", "decode")
        for name, which in (("v0", "measure"), ("v1", "measure"), ("v2", "measure"), ("v2", "aa"))
        if peer != without and (peer, operation) != (LIMIT, "decode")
    ]
    cell = {"records": 1000, "batch_size": 10, "value_bytes": 100, "key_bytes": 16, "arms": arms}
    facts = {"host": "host-1", "cpu": "A CPU", "machine": "x", "load_1_min": 1.25}
    versions = {peer: "3.9.1" for peer in base if peer != without}
    head = {"measured": "2026-11-22T00:00:00+00:00", "peers": versions, "environment": facts}
    path = folder / "cpu.json"
    path.write_text(json.dumps(head | {"cells": [cell]}))
    peers.load.cache_clear()
    found = peers.load(path)
    assert found is not None
    return found


def test_javas_ratios_are_paired_and_stand_beside_ours(tmp_path: Path) -> None:
    found = made(tmp_path)
    assert {(pair.format, pair.operation) for pair in found.pairs} == {
        (name, operation) for name in ("v0", "v1") for operation in ("encode", "decode")
    }
    for pair in found.pairs:
        wanted = {"v0": V0, "v1": V1}[pair.format]
        assert pair.java.median == pytest.approx(wanted, rel=1e-4) == pair.ours.median and pair.word == "agree"
    assert "of 2 pairs the two agree on which is dearer in 2, differ in 0, and are undecided in 0" in (
        peers.java_sentence(found)
    )


def test_times_of_all_are_in_multiples_of_ours(tmp_path: Path) -> None:
    found = made(tmp_path)
    told = peers.table(found, [])
    assert [column.name for column in told.columns[4:]] == ["kfbench", LIMIT, "aiokafka 3.9.1", f"{JAVA} 3.9.1"]
    assert [row[:4] for row in told.rows] == [
        (operation, name, 10, 100) for operation in ("encode", "decode") for name in ("v0", "v1", "v2")
    ]
    ratios = {(row[0], row[1]): [cell and cell.median for cell in row[5:]] for row in told.rows}  # type: ignore[union-attr]
    assert ratios["encode", "v2"] == pytest.approx([0.5, 9, 10], rel=1e-3)
    assert ratios["decode", "v1"][0] is None and ratios["decode", "v1"][1:] == pytest.approx([9, 10], rel=1e-3)
    assert peers.sentence(found).startswith(
        "CPU time in multiples of kfbench's, the least and the most of all cells: to encode v2 limit 0.50 to 0.50, "
        "aiokafka 9.00 to 9.00 and Kafka's Java 10.00 to 10.00; to decode v2 aiokafka"
    )


def test_where_they_differ_it_is_said(tmp_path: Path) -> None:
    found = made(tmp_path, ours_v0=0.7)
    assert [pair.word for pair in found.pairs if pair.format == "v0"] == ["differ", "differ"]
    assert "in 1, differ in 1, and are undecided in 0" in peers.java_sentence(found)
    assert [row[-1] for row in peers.java_table(found).rows] == ["agree: v1; differ: v0"] * 2


def test_a_peer_that_was_not_there_has_no_column(
    tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = made(tmp_path, without=JAVA)
    assert found.pairs == [] and JAVA not in {column.name for column in peers.table(found, []).columns}
    monkeypatch.setattr(peers, "load", lambda: found)
    section = {each.name: each for each in sections(results, [])}["cpu-peers"]
    assert [table.name for table in section.tables] == ["peers"] and JAVA not in section.means


@pytest.mark.parametrize(
    ("java", "ours", "word"),
    [
        ((1.1, 1.2), (1.01, 2.0), "agree"),
        ((0.8, 0.9), (0.7, 0.99), "agree"),
        ((1.1, 1.2), (0.7, 0.99), "differ"),
        ((0.8, 0.9), (1.01, 2.0), "differ"),
        ((1.1, 1.2), (0.9, 1.3), "undecided"),
        ((0.9, 1.1), (0.8, 0.9), "undecided"),
        ((0.9, 1.1), (0.9, 1.1), "undecided"),
        ((1.0, 1.2), (1.1, 1.2), "undecided"),
    ],
)
def test_an_interval_that_holds_one_decides_nothing(
    java: tuple[float, float], ours: tuple[float, float], word: str
) -> None:
    java_ratio, our_ratio = (Interval(median=sum(ends) / 2, low=ends[0], high=ends[1]) for ends in (java, ours))
    pair = Pair(operation="encode", batch_size=1, value_bytes=1, format="v0", java=java_ratio, ours=our_ratio)
    assert pair.word == word


def test_the_host_is_named_and_told_from_the_runs(tmp_path: Path) -> None:
    found = made(tmp_path)
    (same,), (other,) = (peers.table(found, [host]).notes[:1] for host in ("host-1", "host-2"))
    assert "on host-1 (A CPU; load 1.2 as it ended; so was this run)" in same
    assert "; this run was not)" in other


def test_nothing_measured_is_no_section(tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    assert peers.load(tmp_path / "none.json") is None
    monkeypatch.setattr(peers, "load", lambda: None)
    assert "cpu-peers" not in {section.name for section in sections(results, [])}


def test_what_is_committed_reads_and_names_its_host(results: Results) -> None:
    found = peers.load(FILE)
    assert found is not None and found.host.startswith("host-") and JAVA in found.versions and len(found.pairs) == 36
    section = {each.name: each for each in sections(results, [])}["cpu-peers"]
    assert found.host in section.tables[0].notes[0] and len(section.tables[0].rows) == 54
