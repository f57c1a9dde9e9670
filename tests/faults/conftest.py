"""Fixtures: a sweep without faults to compare with, and random moments for faults."""

from pathlib import Path
from random import Random

import pytest

from kfbench.store import Run, open_run
from tests.faults.sweeping import Sweeping


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with Sweeping(tmp_path_factory.mktemp("undisturbed") / "out", "--master", "local[2]") as sweep:
        status, out, err = sweep.finish()
    assert (status, err) == (0, "")
    run = open_run(Path(out.strip()))
    assert run.manifest["counts"]["error"] == 0
    assert sweep.parts() == run.manifest["counts"]["cells"]
    return run


@pytest.fixture
def moments(request: pytest.FixtureRequest) -> Random:
    """Return a random number generator, seeded anew in each run. pytest's --randomly-seed repeats it."""
    seed = f"{request.config.getoption('randomly_seed', 0)} {request.node.name}"
    print(f"moments of {seed}")  # noqa: T201 - pytest shows it with a failure
    return Random(seed)
