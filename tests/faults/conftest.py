"""The sweep that nothing disturbs, with which the others are compared."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.faults.sweeping import Sweeping
from tests.runs import deterministic


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    with Sweeping(tmp_path_factory.mktemp("undisturbed") / "out", "--master", "local[2]") as sweep:
        status, out, err = sweep.finish()
    assert (status, err) == (0, "")
    return deterministic(Path(out.strip()))
