"""A profile: a sweep from its TOML file, checked, with its cells.

A wrong sweep is refused before anything runs, with its file and key.
"""

from dataclasses import dataclass
from pathlib import Path

from kfbench.errors import InvalidConfig
from kfbench.sweep.definition.batch_plan import MAX_BATCH_BYTES
from kfbench.sweep.definition.cell import Cell
from kfbench.sweep.definition.grid_cells import cells_of_grid
from kfbench.sweep.definition.sweep_file import Grid, read


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A sweep, checked.

    Args:
        text: its TOML, then the TOML that it extends.
        filter: the filters that chose its cells, as the user wrote them.
        publish: its reports are for publishing.
    """

    name: str
    title: str
    analysis: str
    seed: int
    grids: tuple[Grid, ...]
    cells: tuple[Cell, ...]
    text: str
    filter: tuple[str, ...] = ()
    publish: bool = False


def load_profile(name_or_path: str | Path) -> Profile:
    """Return the sweep of that name (datasets/sweeps/), or of a TOML file. Raises InvalidConfig."""
    path, file, text = read(name_or_path)
    cells: dict[tuple[object, ...], Cell] = {}
    names: set[str] = set()
    for i, grid in enumerate(file.grid):
        where = f"{path}: grid {grid.name!r} ($.grid[{i}])"
        if grid.name in names:
            raise InvalidConfig(f"{where}: name: two blocks have it")
        names.add(grid.name)
        made = list(cells_of_grid(where, grid, file))
        if not made:
            raise InvalidConfig(
                f"{where}: axes: no valid cell is left: a spread of timestamps takes two records a batch, a share of "
                f"nulls values that are not, and a broker no batch above {MAX_BATCH_BYTES:,} bytes"
            )
        for cell in made:
            cells[cell.key] = cells[cell.key].merged(cell) if cell.key in cells else cell
    if not cells:
        raise InvalidConfig(f"{path}: grid: there is none")
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
