"""The kind "bytes": exact sizes in each format."""

from collections.abc import Iterator
from typing import Final

import msgspec

from kfbench.formats import FORMATS
from kfbench.measure.bytes import measure_size
from kfbench.measure.cell import Cell
from kfbench.measure.columns import Row
from kfbench.measure.kinds.base import CellCosts, Kind, legal_input

_FORMAT_S: Final = 1.3e-3
_RECORD_NS: Final = 130  # encoding, decoding and comparing all fields


class BytesSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The size of a measurement of the kinds "bytes" and "floor" (the metadata floor), in whole batches.

    Args:
        records: about this number of records.
        payload_bytes: at most this number of bytes of keys, values and headers.
    """

    records: int = 2_048
    payload_bytes: int = 1 << 18


class BytesKind(Kind):
    name = section = "bytes"
    settings = BytesSettings
    can_divide = True

    def rows_of_format(self, cell: Cell, name: str) -> Iterator[Row]:
        yield measure_size(FORMATS[name], legal_input(cell, name))

    def estimate_s(self, cell: Cell) -> float:
        return len(cell.formats) * (_FORMAT_S + cell.records * _RECORD_NS * 1e-9 + CellCosts.of(cell).codec_s)


KINDS: Final = (BytesKind(),)
