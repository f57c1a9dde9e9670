"""The analysis of each block of a sweep, as its author wrote it: printed once, where most of its rows are shown."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from kfbench.report.data.arms import COLD
from kfbench.report.data.results import Results


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of the sweep, as its author named and explained it."""

    name: str
    title: str
    analysis: str


class Prose:
    """Hands each block out once."""

    def __init__(self, results: Results, sweep: Sequence[Block]) -> None:
        self._rows = results.all
        self._blocks = {block.name: block for block in sweep}
        self._order = tuple(self._blocks)

    def of(self, shown: pd.DataFrame) -> tuple[str, ...]:
        """The text of the block that has the most of these rows' cells; among equals the sweep's first."""
        rows = self._rows[self._rows["cell_id"].isin(shown["cell_id"]) & (self._rows["cache"] != COLD)]
        rows = rows[rows["kind"].isin(shown["kind"]) & rows["codec"].isin(shown["codec"])]
        cells = rows.drop_duplicates(["grid", "cell_id", "codec", "level"])["grid"].value_counts(sort=False)
        if cells.empty:
            return ()
        most = {name for name, count in cells.items() if count == cells.max()}
        first = next((name for name in self._order if name in most), None)
        block = self._blocks.pop(first, None) if first is not None else None
        return (block.analysis.strip(),) if block is not None and block.analysis.strip() else ()

    def paths(self, operations: Sequence[str]) -> tuple[str, ...]:
        """The texts of all blocks that measured these paths of a broker, in the order of the sweep."""
        return self.all_of(self._rows[(self._rows["kind"] == "broker") & self._rows["operation"].isin(operations)])

    def all_of(self, rows: pd.DataFrame) -> tuple[str, ...]:
        """The texts of all blocks that have any of these rows, in the order of the sweep."""
        return tuple(block.analysis.strip() for block in self.blocks_of(rows))

    def blocks_of(self, rows: pd.DataFrame) -> tuple[Block, ...]:
        """These blocks themselves, where their author wrote anything."""
        named = set(rows["grid"])
        found = [self._blocks.pop(name) for name in self._order if name in self._blocks and name in named]
        return tuple(block for block in found if block.analysis.strip())

    def workloads(self) -> tuple[str, ...]:
        """The texts of all blocks that measured bytes or CPU of named workloads, in the order of the sweep."""
        rows = self._rows[self._rows["workload"] != "grid"]
        return self.all_of(rows[rows["kind"].isin(["bytes", "cpu"])])

    @property
    def left(self) -> tuple[Block, ...]:
        """The blocks that no section has printed, in the order of the sweep."""
        return tuple(self._blocks.values())
