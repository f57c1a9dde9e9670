"""From how many records a batch one format takes fewer bytes than another, on records that were tallied.

What counts is what a format takes beside the keys, values and headers that it carries: one that cannot carry headers
does not win by leaving them out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.whatif.tally import UNIFORM, Tally

SINGLE = ("v0", "v1")  # every plain message stands alone: their size does not depend on the batch


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """`format` takes fewer bytes than `other` from `at` records a batch on, and not yet at `after`, the largest number
    below it that was measured. after None: from the smallest on; at None: never, up to the largest."""

    format: str
    other: str
    after: int | None
    at: int | None

    @property
    def words(self) -> str:
        """5; 11-12; always; never."""
        if self.at is None:
            return "never"
        if self.after is None:
            return "always" if self.at == 1 else f"{self.at:,} or before"
        return f"{self.at:,}" if self.at == self.after + 1 else f"{self.after + 1:,}-{self.at:,}"


def break_evens(found: Tally, formats: tuple[str, ...]) -> Iterator[Crossing]:
    """Each batched format against v0, v1 and v2, as far as they are among the formats."""
    levels = [level for level in UNIFORM if found.uniform_records[level]]
    for name in formats:
        for other in formats:
            if not levels or name == other or name in SINGLE or other not in (*SINGLE, BASE_FORMAT):
                continue
            fewer = [overhead_bytes(found, level, name) < overhead_bytes(found, level, other) for level in levels]
            first = len(fewer) - next((i for i, each in enumerate(reversed(fewer)) if not each), len(fewer))
            yield Crossing(
                format=name,
                other=other,
                after=levels[first - 1] if first else None,
                at=levels[first] if first < len(levels) else None,
            )


def overhead_bytes(found: Tally, level: int, name: str) -> int:
    """What the format takes beside the payload that it carries, in batches of `level` records."""
    return found.uniform[level, name] - found.uniform_payload[level, FORMATS[name].capabilities.headers]
