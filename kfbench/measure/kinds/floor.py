"""The kind "floor", the metadata floor: lean batch headers plus the entropy of lengths, times and offsets."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kfbench.measure.cell import Cell
from kfbench.measure.columns import Row
from kfbench.measure.floor import FLOOR, floor
from kfbench.measure.kinds.base import GridBlock, GridPlan, Kernels, Kind, sample_of
from kfbench.measure.kinds.bytes import BytesSettings

_CELL_S: Final = 4e-4
_RECORD_NS: Final = 150  # generating a record and counting its values for the entropy


class FloorKind(Kind):
    name = "floor"
    section = "bytes"
    settings = BytesSettings
    meanings = {"format": "the word floor"}
    rides_on = "bytes"
    is_verified = False

    def cells_per_point(self, block: GridBlock, settings: Any, codecs: int) -> int:
        return 1

    def cells(self, cell: Cell, plan: GridPlan) -> Iterator[Cell]:
        """Yield one cell, without a codec."""
        extent = plan.extent(self.amount(plan.settings, "none"))
        yield replace(cell, formats=(FLOOR,), **extent._asdict())

    def rows_of_format(self, cell: Cell, name: str) -> Iterator[Row]:
        """Compute the floor from shapes. No payload is generated."""
        sample = sample_of(cell)
        yield floor(sample.shapes, sample.bounds, sample.batch_fields).columns

    def estimate_s(self, cell: Cell) -> float:
        return _CELL_S + cell.records * _RECORD_NS * 1e-9

    def kernels(self, cell: Cell) -> Kernels | None:
        return None


KINDS: Final = (FloorKind(),)
