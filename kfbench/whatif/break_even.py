"""Find the batch sizes from which one format takes fewer bytes than another, for the records of a log.

Keys, values and headers that a format carries are not counted. So a format that cannot carry headers does not win
because it leaves them out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kfbench.bracket import bracket
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.whatif.sums import Tally
from kfbench.whatif.tally import UNIFORM

SINGLE = ("v0", "v1")  # formats without batches of plain messages: the size does not depend on records per batch


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """The result that `format` takes fewer bytes than `other` from `at` records per batch on.

    after: the largest tested number of records per batch at which it does not. See `Bracket`.
    """

    format: str
    other: str
    after: int | None
    at: int | None

    @property
    def words(self) -> str:
        """The result in words. Examples: "5", "11-12" (at one of these numbers), "always", "never"."""
        if self.at is None:
            return "never"
        if self.after is None:
            return "always" if self.at == 1 else f"{self.at:,} or before"
        return f"{self.at:,}" if self.at == self.after + 1 else f"{self.after + 1:,}-{self.at:,}"


def break_evens(tally: Tally, formats: tuple[str, ...]) -> Iterator[Crossing]:
    """Compare each format that has batches with v0, v1 and v2, if they are among `formats`."""
    levels = [level for level in UNIFORM if tally.uniform_records[level]]
    for name in formats:
        for other in formats:
            if not levels or name == other or name in SINGLE or other not in (*SINGLE, BASE_FORMAT):
                continue
            is_smaller = [overhead_bytes(tally, level, name) < overhead_bytes(tally, level, other) for level in levels]
            yield Crossing(format=name, other=other, **bracket(levels, is_smaller)._asdict())


def overhead_bytes(tally: Tally, level: int, name: str) -> int:
    """Return the bytes in batches of `level` records, without the keys, values and headers that the format carries."""
    return tally.uniform[level, name] - tally.uniform_payload[level, FORMATS[name].capabilities.headers]
