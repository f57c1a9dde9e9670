"""Workloads are equal on all processors, although NumPy's log, power and cosine differ there in the last bit."""

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kfbench.workloads.catalogue import WORKLOADS, NamedWorkload
from kfbench.workloads.named.arrivals import Bursts, GeneralisedParetoGaps, Sine, _period_cells, block_us, times_us
from kfbench.workloads.named.batching import CompactionSurvivors, _geometric
from kfbench.workloads.named.distributions import GeneralisedPareto, Lognormal, lengths_table, table, zipf

TIMED = ("user-activity", "kv-etc", "kv-mixgraph", "log-shipping")


def digests() -> dict[str, str]:
    """Return digests of all tables that random draws use, and of the arrival times of a few workloads."""
    found: dict[str, NDArray[Any]] = {
        "exponential": table(GeneralisedPareto(sigma=1, k=0)),
        "lognormal": table(Lognormal(mean=212, sigma=0.9)),
    }
    for name, workload in WORKLOADS.items():
        if not isinstance(workload, NamedWorkload):
            continue
        for variant in workload.variants:
            model = NamedWorkload(name=name, variant=variant).model
            title, arrival = f"{name}/{variant}", model.arrival
            found[f"{title} block"] = np.array([block_us(arrival)])
            if isinstance(arrival, GeneralisedParetoGaps):
                found[f"{title} gaps"] = table(arrival.gap_us)
            if isinstance(arrival, Bursts):
                found[f"{title} pauses"], found[f"{title} within"] = table(arrival.pause_us), table(arrival.gap_us)
            if isinstance(arrival, Sine):
                found[f"{title} period"] = _period_cells(arrival)
            if isinstance(model.batching, CompactionSurvivors):
                found[f"{title} survivors"] = _geometric(model.batching.survival)
            for part in (model.key, model.value, *model.header):
                if part is not None and part.length is not None:
                    found[f"{title} {type(part).__name__}"] = lengths_table(part.length)
            if model.key is not None and model.key.skew:
                found[f"{title} keys"] = zipf(model.key.cardinality or 1, model.key.skew).table
    for name in TIMED:
        found[f"{name} times"] = times_us(NamedWorkload(name=name).model.arrival, 3, 7)
    return {name: hashlib.sha256(each.tobytes()).hexdigest() for name, each in found.items()}


def test_tables_and_times_are_those_of_any_processor() -> None:
    features = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if not features:
        pytest.skip("NumPy found nothing on this processor that it could do without")
    code = "import json; from tests.workloads.test_processors import digests; print(json.dumps(digests()))"
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": " ".join(features)}
    environment["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"  # other code for logarithms
    child = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    plain, own = json.loads(child.stdout), digests()
    assert plain.keys() == own.keys()
    assert [name for name in own if own[name] != plain[name]] == []
