"""Batch sizes from which one format takes fewer bytes than another, on the records of a tally.

The sizes compared are those beside the keys, values and headers that a format carries: a format that cannot carry
headers does not win by leaving them out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kfbench.bracket import bracket
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.whatif.sums import Tally
from kfbench.whatif.tally import UNIFORM

SINGLE = ("v0", "v1")  # every plain message stands alone: its size does not depend on the batch


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """`format` takes fewer bytes than `other` from `at` records per batch on; after, at: see `Bracket`."""

    format: str
    other: str
    after: int | None
    at: int | None

    @property
    def words(self) -> str:
        """The batch sizes in words: 5; 11-12; always; never."""
        if self.at is None:
            return "never"
        if self.after is None:
            return "always" if self.at == 1 else f"{self.at:,} or before"
        return f"{self.at:,}" if self.at == self.after + 1 else f"{self.after + 1:,}-{self.at:,}"


def break_evens(tally: Tally, formats: tuple[str, ...]) -> Iterator[Crossing]:
    """Compare each batched format with v0, v1 and v2, as far as they are among the formats."""
    levels = [level for level in UNIFORM if tally.uniform_records[level]]
    for name in formats:
        for other in formats:
            if not levels or name == other or name in SINGLE or other not in (*SINGLE, BASE_FORMAT):
                continue
            is_smaller = [overhead_bytes(tally, level, name) < overhead_bytes(tally, level, other) for level in levels]
            yield Crossing(format=name, other=other, **bracket(levels, is_smaller)._asdict())


def overhead_bytes(tally: Tally, level: int, name: str) -> int:
    """Return the bytes of a format beside the payload that it carries, in batches of `level` records."""
    return tally.uniform[level, name] - tally.uniform_payload[level, FORMATS[name].capabilities.headers]
