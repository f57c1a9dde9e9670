"""Ratios of Kafka's Java code beside ours: what the file says, on the host that it names."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.report import kafka_cpu
from kfbench.report.kafka_cpu import FILE, Java, Pair
from kfbench.report.render import Interval
from kfbench.report.results import Results
from kfbench.report.sections import sections

V0, V1 = 1.3, 1.8


def arm(writer: str, operation: str, name: str, times: float, which: str = "measure") -> dict[str, Any]:
    drift = np.random.default_rng(3).uniform(1, 2, 19)
    cpu_ns = (1e6 * times * drift).astype(int).tolist()
    return {"writer": writer, "operation": operation, "format": name, "arm": which, "inner_loops": 2, "cpu_ns": cpu_ns}


def made(folder: Path, ours_v0: float = V0) -> Java:
    times = {"java": {"v0": V0, "v1": V1, "v2": 1.0}, "kfbench": {"v0": ours_v0, "v1": V1, "v2": 0.1}}
    arms = [
        arm(writer, operation, name, times[writer][name] * (times[writer]["v2"] if name != "v2" else 1.0), which)
        for writer in times
        for operation in ("encode", "decode")
        for name, which in (("v0", "measure"), ("v1", "measure"), ("v2", "measure"), ("v2", "aa"))
    ]
    cell = {"cell_id": "c", "records": 1000, "batch_size": 10, "value_bytes": 100, "key_bytes": 16, "arms": arms}
    facts = {"host": "host-1", "cpu": "A CPU", "machine": "x", "load_1_min": 1.25}
    head = {"measured": "2026-11-22T00:00:00+00:00", "java": "a VM", "kafka": "3.9.1", "environment": facts}
    path = folder / "cpu.json"
    path.write_text(json.dumps(head | {"cells": [cell]}))
    found = kafka_cpu.load(path)
    assert found is not None
    return found


def test_ratios_are_paired_and_stand_beside_each_other(tmp_path: Path) -> None:
    found = made(tmp_path)
    assert {(pair.format, pair.operation) for pair in found.pairs} == {
        (name, operation) for name in ("v0", "v1") for operation in ("encode", "decode")
    }
    for pair in found.pairs:
        wanted = {"v0": V0, "v1": V1}[pair.format]
        assert pair.java.median == pytest.approx(wanted, rel=1e-4) == pair.ours.median and pair.word == "agree"
    java_ns, our_ns = found.ns["encode", 10, 100]
    assert java_ns == pytest.approx(10 * our_ns, rel=1e-3)
    assert "of 2 pairs the two agree on which is dearer in 2, differ in 0, and are undecided in 0" in (
        kafka_cpu.sentence(found)
    )


def test_where_they_differ_it_is_said(tmp_path: Path) -> None:
    found = made(tmp_path, ours_v0=0.7)
    assert [pair.word for pair in found.pairs if pair.format == "v0"] == ["differ", "differ"]
    assert "in 1, differ in 1, and are undecided in 0" in kafka_cpu.sentence(found)
    assert [row[-1] for row in kafka_cpu.table(found, []).rows] == ["agree: v1; differ: v0"] * 2


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
    (same,), (other,) = (kafka_cpu.table(found, [host]).notes for host in ("host-1", "host-2"))
    assert "on host-1 (A CPU; load 1.2 as it ended; so was this run)" in same
    assert "; this run was not)" in other


def test_nothing_measured_is_no_section(tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kafka_cpu.load(tmp_path / "none.json") is None
    monkeypatch.setattr(kafka_cpu, "load", lambda: None)
    assert "cpu-java" not in {section.name for section in sections(results, [])}


def test_what_is_committed_reads_and_names_its_host(results: Results) -> None:
    found = kafka_cpu.load(FILE)
    assert found is not None and found.host.startswith("host-") and found.kafka and len(found.ns) == 18
    section = {each.name: each for each in sections(results, [])}["cpu-java"]
    assert found.host in section.tables[0].notes[0] and len(section.tables[0].rows) == 18
