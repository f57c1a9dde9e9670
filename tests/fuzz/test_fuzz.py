"""Short runs of both fuzzers, the memory traps that they rely on, and the stored results in docs/fuzzing.md."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kfbench import FORMATS, kernels
from tests.fuzz import run
from tests.fuzz.corpus import DamageSource

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="guards memory with Linux's mprotect"),
    pytest.mark.skipif(not kernels.COMPILED, reason="NUMBA_DISABLE_JIT is set: nothing is compiled"),
]
SHORT = 1500


@pytest.mark.thorough
def test_damaged_batches_of_every_format() -> None:
    outcome = run.native(list(FORMATS), seed=7, first=0, count=SHORT)
    assert outcome.fault == ""
    assert list(outcome.found) == list(FORMATS)
    for name, found in outcome.found.items():
        assert found["inputs"] == SHORT
        assert SHORT / 50 < found["accepted"] < SHORT / 2, name
        # Most damage has a correct checksum and breaks other promises.
        assert found["refused"]["crc"] < SHORT / 2 and len(found["refused"]) > 6, name


@pytest.mark.thorough
def test_coverage_guided_inputs(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this machine")
    names = ["v1", "v2", "v3-full", "enriched", "read_log"]
    outcome = run.guided(names, seed=7, runs=1000, artifacts=tmp_path)
    assert outcome.fault == ""
    assert sum(found["inputs"] for found in outcome.found.values()) >= 1000  # libFuzzer reads the corpus first
    assert [name for name, found in outcome.found.items() if not found["accepted"] or not found["refused"]] == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(FORMATS))
def test_a_number_always_gives_the_same_damage(name: str) -> None:
    one, other, third = DamageSource(name, 1), DamageSource(name, 1), DamageSource(name, 2)
    found = [one.damage(number) for number in range(200)]
    assert [other.damage(number) for number in reversed(range(200))][::-1] == found
    assert len(set(found)) > 190
    assert sum(third.damage(number) == found[number] for number in range(200)) < 5


CHILD = """
import ctypes, signal, sys, time
import numpy as np
from tests.fuzz import native

bound_memory, reads, native.HANG_S = native.bound_memory, None, 5

def begin():
    global reads
    bound_memory()
    reads = 0

def check(name, data, again):
    global reads
    if reads == NUMBER:
        DEED
    reads = reads if reads is None else reads + 1
    return []

native.bound_memory, native.check = begin, check
native.main(["v2", "--count", "10", *sys.argv[1:]])
"""


@pytest.mark.parametrize(
    ("number", "deed", "fault"),
    [
        (5, "ctypes.string_at(data.ctypes.data + len(data), 1)", "ended with -11 at number 5"),
        *(
            pytest.param(*case, marks=pytest.mark.thorough)
            for case in (
                (7, "ctypes.string_at(data.ctypes.data - 1, 1)", "ended with -11 at number 7"),
                (5, "time.sleep(99)", "hung at number 5"),
                (None, "assert signal.alarm(1) and time.sleep(9)", "hung at number -1"),  # while it warms up
                (5, "[][0]", "v2, seed 0, number 5: IndexError"),
                (5, "np.zeros(2 * native.ROOM_BYTES, np.uint8)", "v2, seed 0, number 5: MemoryError"),
            )
        ),
    ],
)
def test_a_failing_child_is_a_fault(number: int | None, deed: str, fault: str) -> None:
    """Run a child process with one fault, and check that the fault is reported.

    The child reads a byte before or after the batch, hangs, allocates too much, or raises another error.
    """
    script = CHILD.replace("NUMBER", str(number)).replace("DEED", deed)
    outcome = run.watched([sys.executable, "-c", script])
    assert fault in outcome.fault
    assert not outcome.found


@pytest.mark.slow
def test_an_index_error_in_a_twin_ends_the_run(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="atheris has no wheel for this machine")
    bad = tmp_path / "input"
    bad.write_bytes(b"\x80" + b"x" * 40)
    script = (
        "import sys, tests.fuzz.native as n\n"
        "def check(name, data, again): raise IndexError('1 bytes at 61 of 61')\n"
        "n.check = check\n"
        f"sys.argv[1:] = ['v2', '--input', {str(bad)!r}]\n"
        "import runpy; runpy.run_module('tests.fuzz.guided', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=run.ROOT,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode != 0
    assert "IndexError: 1 bytes at 61 of 61" in done.stderr


def test_the_stored_run() -> None:
    stored = json.loads(run.STORED.read_text())
    assert not any(each["faults"] for each in stored)
    for part, least, names in (
        ("native", 10_000_000, {*FORMATS}),
        ("guided", 200_000, {*FORMATS, "read_log"}),
    ):
        found = {name: found for each in stored for name, found in each[part].items()}
        assert found.keys() == names
        assert sum(found["inputs"] for each in stored for found in each[part].values()) >= least
        assert all(each["accepted"] and each["refused"] for each in found.values())
