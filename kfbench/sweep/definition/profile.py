"""Load a profile: a sweep that is read from its TOML file and checked, with the list of its cells.

An invalid sweep raises InvalidConfig before anything is measured. The message names the file and the key.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kfbench.errors import InvalidConfig
from kfbench.measure.cell import Cell
from kfbench.measure.kinds import cell_key
from kfbench.sweep.definition.batch_plan import MAX_BATCH_BYTES
from kfbench.sweep.definition.grid_cells import cells_of_grid
from kfbench.sweep.definition.points import named_workloads
from kfbench.sweep.definition.sweep_file import Grid, read


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A checked sweep. grids: the [[grid]] blocks of its file; cells: the measurements of all blocks, each once."""

    name: str
    title: str
    analysis: str
    seed: int
    grids: tuple[Grid, ...]
    cells: tuple[Cell, ...]
    text: str  # the TOML text of its file and of the files that it extends
    filter: tuple[str, ...] = ()  # the user's filters that reduced its cells, as the user wrote them
    publish: bool = False  # True if its reports go into the folder of published reports


def load_profile(name_or_path: str | Path, workloads: Sequence[str] = ()) -> Profile:
    """Read and check a sweep, by its name in datasets/sweeps/ or by the path of a TOML file. Raises InvalidConfig.

    workloads: if given, each block measures these named workloads instead of
    its own, at the levels of its axis batch_size. Combinations that a format does not support are skipped.
    """
    path, file, text = read(name_or_path)
    if workloads:
        named_workloads("--workload", workloads)  # otherwise an error would name the sweep's file
        file = msgspec.structs.replace(file, publish=False, grid=[_of_workloads(grid, workloads) for grid in file.grid])
    cells: dict[tuple[object, ...], Cell] = {}
    names: set[str] = set()
    for i, grid in enumerate(file.grid):
        where = f"{path}: grid {grid.name!r} ($.grid[{i}])"
        if grid.name in names:
            raise InvalidConfig(f"{where}: name: two blocks have this name")
        names.add(grid.name)
        made = list(cells_of_grid(where, grid, file))
        if not made:
            raise InvalidConfig(
                f"{where}: axes: no valid cell is left: a timestamp spread needs 2 records per batch, a null share "
                f"needs values that are not null, and a broker accepts at most {MAX_BATCH_BYTES:,} bytes per batch"
            )
        for cell in made:
            key = cell_key(cell)
            cells[key] = cells[key].merged(cell) if key in cells else cell
    if not cells:
        raise InvalidConfig(f"{path}: grid: missing")
    return Profile(
        name=path.stem,
        title=file.title,
        analysis=file.analysis,
        seed=file.seed,
        grids=tuple(file.grid),
        cells=tuple(cells.values()),
        text=text,
        publish=file.publish,
    )


def _of_workloads(grid: Grid, workloads: Sequence[str]) -> Grid:
    axes = {name: levels for name, levels in grid.axes.items() if name == "batch_size"}
    return msgspec.structs.replace(grid, workload="grid", workloads=list(workloads), axes=axes, illegal="skip")
