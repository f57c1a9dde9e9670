"""The cells of every profile, as they were when kinds became objects: their ids, seeds, sizes and order.

A cell's id and seed decide its records, and its order decides which rows a run that was interrupted still lacks.
`python -m tests.sweep.test_frozen_cells` writes the file. A change of it is a change of what stored runs mean.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from kfbench.measure.cell import Cell
from kfbench.measure.kinds import KINDS, cell_key, estimate_s
from kfbench.measure.paths import PATHS
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.definition.sweep_file import SWEEPS
from kfbench.sweep.run.plan import CELL_BUDGET_S
from kfbench.workloads.recorded import PUBLIC_PREFIX, RecordedTopic

STORED: Final = Path(__file__).parents[1] / "data" / "frozen-cells.json"
SLOW: Final = {"default", "dictionary", "fleet", "full"}  # ten seconds or more: named workloads are generated
PROFILES: Final = sorted(path.stem for path in SWEEPS.glob("*.toml"))


def is_public(cell: Cell) -> bool:
    """Return whether a cell is of a topic that `make public` fetches: only then it has a size."""
    return isinstance(cell.workload, RecordedTopic) and cell.workload.name.startswith(PUBLIC_PREFIX)


def kinds_of(cells: Iterable[Cell]) -> dict[str, str]:
    """Return the number of cells of each kind, and a digest of their facts in order."""
    lines: dict[str, list[str]] = defaultdict(list)
    cells = [cell for cell in cells if not is_public(cell)]
    for cell in cells:
        facts = (
            cell.cell_id, cell.seed, cell.workload, cell.codec, cell.level, cell.formats, sorted(cell.grids.items()),
            cell.path, cell.to, cell.cache, cell.rounds, cell.sample_us, cell.start, cell.records, cell.batches,
            cell.payload_bytes, *([cell.context] if cell.context else ()),
        )  # fmt: skip
        lines[cell.kind].append(repr(facts))
    digests = {kind: hashlib.sha256("\n".join(each).encode()).hexdigest()[:16] for kind, each in lines.items()}
    found = {kind: f"{len(each)} cells, {digests[kind]}" for kind, each in sorted(lines.items())}
    return found | {"order": hashlib.sha256(" ".join(cell.kind for cell in cells).encode()).hexdigest()[:16]}


@pytest.mark.parametrize(
    "profile", [pytest.param(name, marks=[pytest.mark.thorough] * (name in SLOW)) for name in PROFILES]
)
def test_the_cells_of_a_profile_stay(profile: str) -> None:
    found = load_profile(profile)
    assert kinds_of(found.cells) == json.loads(STORED.read_text(encoding="utf-8"))[profile]
    assert all(estimate_s(cell) < CELL_BUDGET_S for cell in found.cells)
    assert len({cell_key(cell) for cell in found.cells}) == len(found.cells)
    assert all(grid.title and grid.analysis for grid in found.grids)


def test_the_smoke_profile_has_every_kind_and_path() -> None:
    cells = load_profile("smoke").cells
    others = {"rivals", "rivals-cpu", "instructions"}  # they have profiles of their own
    assert {cell.kind for cell in cells} == set(KINDS) - others
    assert {cell.path for cell in cells if cell.kind == "broker"} == set(PATHS)


if __name__ == "__main__":
    STORED.write_text(
        json.dumps({name: kinds_of(load_profile(name).cells) for name in PROFILES}, indent=1) + "\n", encoding="utf-8"
    )
