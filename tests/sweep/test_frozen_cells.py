"""The cells of every profile, as they were when kinds became objects: their ids, seeds, sizes and order.

A cell's id and seed decide its records, and its order decides which rows a run that was interrupted still lacks.
`python -m tests.sweep.test_frozen_cells` writes the file. A change of it is a change of what stored runs mean.
"""

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

from kfbench.measure.cell import Cell
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.definition.sweep_file import SWEEPS
from kfbench.workloads.recorded.topics import PUBLIC_PREFIX, RecordedTopic

STORED: Final = Path(__file__).parents[1] / "data" / "frozen-cells.json"
SLOW: Final = {"default", "dictionary", "fleet", "full"}  # ten seconds or more: named workloads are generated
PROFILES: Final = sorted(path.stem for path in SWEEPS.glob("*.toml"))


def is_public(cell: Cell) -> bool:
    """Return whether a cell is of a topic that `make public` fetches: only then it has a size."""
    return isinstance(cell.workload, RecordedTopic) and cell.workload.name.startswith(PUBLIC_PREFIX)


def kinds_of(profile: str) -> dict[str, str]:
    """Return the number of cells of each kind, and a digest of their facts in order."""
    lines: dict[str, list[str]] = defaultdict(list)
    cells = [cell for cell in load_profile(profile).cells if not is_public(cell)]
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
    assert kinds_of(profile) == json.loads(STORED.read_text(encoding="utf-8"))[profile]


if __name__ == "__main__":
    STORED.write_text(json.dumps({name: kinds_of(name) for name in PROFILES}, indent=1) + "\n", encoding="utf-8")
