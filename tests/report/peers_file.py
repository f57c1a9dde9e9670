"""Write a file of peers (other implementations) with known CPU time ratios."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kfbench.report.topics import peers
from kfbench.report.topics.peers import JAVA, LIMIT, OURS, Peers

V0, V1 = 1.3, 1.8
ROUNDS = 19
BASES = {OURS: 0.1, LIMIT: 0.05, "aiokafka": 0.9, JAVA: 1.0}


def write_peers(
    folder: Path,
    ours_v0: float = V0,
    without: str = "",
    cells: int = 1,
    again: float = 1.0,
    loops_again: int = 2,
    waited: float = 0.0,
    java_base: float = BASES[JAVA],
    differences: Sequence[dict[str, str]] = (),
    other_threads: dict[str, float] | None = None,
) -> Peers:
    """Write a file of peers and load it.

    again: CPU time of each base implementation's A/A arm (its second timing) divided by its first. loops_again: calls
    per sample of the A/A arm. waited: share of samples that waited for a core. java_base: Java's CPU time of v2 in ms.
    """
    later = np.random.default_rng(3).permutation(np.linspace(1, 2, ROUNDS - 1))
    drift = np.concatenate([[np.median(later)], later])  # the first round takes about the median time

    def arm(peer: str, operation: str, name: str, which: str) -> dict[str, Any]:
        times = {"v0": ours_v0 if peer == OURS else V0, "v1": V1, "v2": 1.0}[name] * (BASES | {JAVA: java_base})[peer]
        loops = loops_again if which == "aa" else 2
        cpu_ns = 1e6 * times * loops / 2 * (again if which == "aa" else 1) * drift
        wall_ns = cpu_ns * np.where(np.arange(ROUNDS) < waited * ROUNDS - 0.5, 2, 1)
        return {
            "peer": peer,
            "operation": operation,
            "format": name,
            "arm": which,
            "inner_loops": loops,
            "cpu_ns": cpu_ns.astype(int).tolist(),
            "wall_ns": wall_ns.astype(int).tolist(),
        }

    arms = [
        arm(peer, operation, name, which)
        for peer in BASES
        for operation in ("encode", "decode")
        for name, which in (("v0", "measure"), ("v1", "measure"), ("v2", "measure"), ("v2", "aa"))
        if peer != without and (peer, operation) != (LIMIT, "decode")
    ]
    head = {
        "measured": "2026-11-22T00:00:00+00:00",
        "peers": {peer: "3.9.1" for peer in BASES if peer != without},
        "machines": {} if without == JAVA else {JAVA: "A VM 17 (-Xmx512m; Copy)"},
        "environment": {"host": "host-1", "cpu": "A CPU", "machine": "x", "load_1_min": 1.25},
    }
    every = [
        {"records": 1000, "batch_size": 10, "value_bytes": 10 * 10**i, "key_bytes": 16, "arms": arms}
        for i in range(1, cells + 1)
    ]
    path = folder / "cpu.json"
    path.write_text(
        json.dumps(head | {"cells": every, "differences": list(differences), "other_threads": other_threads or {}})
    )
    peers.load.cache_clear()
    found = peers.load(path)
    assert found is not None
    return found
