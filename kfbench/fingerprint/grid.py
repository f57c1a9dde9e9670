"""The sizes of a topic's sample in the batches of many producers' settings.

`sample_sizes` measures them. Sizes under other settings are interpolated between these (see `between`).
"""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct

from kfbench.codecs import CODECS
from kfbench.formats import FORMATS

NONE: Final = "none"
SLOW: Final = "gzip"
"""A codec that takes most of the time. It is tried under fewer settings, unless the sample is small."""
REFERENCE: Final = "zstd"
"""The codec that others are compared with."""
LEAST_CHANGE: Final = 0.01
"""Settings between which a number changes by less get none between them."""

Positive = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Rows = list[list[Positive]]


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values of two settings of a producer. Tables have a row per linger.ms, with a number per batch.size."""

    linger_ms: Annotated[list[Annotated[int, Meta(ge=0, le=86_400_000)]], Meta(min_length=2)]
    batch_size_bytes: Annotated[list[Annotated[int, Meta(ge=1, lt=1 << 31)]], Meta(min_length=2)]

    @property
    def is_rising(self) -> bool:
        return all(axis == sorted({*axis}) for axis in (self.linger_ms, self.batch_size_bytes))

    @property
    def ends(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The lowest and the highest linger.ms and batch.size."""
        lingers_ms, sizes = self.linger_ms, self.batch_size_bytes
        return (lingers_ms[0], sizes[0]), (lingers_ms[-1], sizes[-1])

    def has(self, linger_ms: float, batch_size_bytes: int) -> bool:
        """Return True if two settings are not outside of the values."""
        is_inside = self.linger_ms[0] <= linger_ms <= self.linger_ms[-1]
        return is_inside and self.batch_size_bytes[0] <= batch_size_bytes <= self.batch_size_bytes[-1]

    def is_table(self, rows: Rows) -> bool:
        """Return True if the rows have a number for each pair of values."""
        return len(rows) == len(self.linger_ms) and {*map(len, rows)} == {len(self.batch_size_bytes)}


class Counts(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of batches of some records."""

    records: Positive
    batches: Rows

    @property
    def is_complete(self) -> bool:
        return self.is_rising and self.is_table(self.batches) and max(map(max, self.batches)) <= self.records


class GridArm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bytes of the sample in one format and codec, for each division into batches."""

    format: str
    codec: str
    size_bytes: list[Positive]


class Grid(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bytes of the sample in several formats and codecs.

    divisions: the number of each pair's division into batches. Pairs with the same batches have the same number.
    """

    divisions: Rows
    arms: list[GridArm]

    @property
    def is_complete(self) -> bool:
        numbers = {number for row in self.divisions for number in row}
        has_all = numbers == {*range(1, len(numbers) + 1)} and self.is_table(self.divisions)
        return self.is_rising and has_all and all(len(arm.size_bytes) == len(numbers) for arm in self.arms)


class SampleSizes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample of a topic in the batches of producers with many settings.

    Args:
        counts: numbers of batches.
        fast: bytes without a codec, and under all codecs but the slow one.
        slow: bytes under the slow codec.
    """

    counts: Counts
    fast: Grid
    slow: Grid

    @property
    def grids(self) -> tuple[Grid, Grid]:
        return self.fast, self.slow

    @property
    def is_complete(self) -> bool:
        """True if each table is complete, and the grids do not reach beyond the counts."""
        tables = self.counts, *self.grids
        return all(table.is_complete for table in tables) and len({table.ends for table in tables}) == 1


Arms = list[tuple[str, str]]


def arms_of(formats: Sequence[str]) -> tuple[Arms, Arms]:
    """Return the pairs of format and codec of the grids `fast` and `slow` of `SampleSizes`."""
    arms = [(name, codec) for name in formats for codec in CODECS if codec in FORMATS[name].capabilities.codecs]
    return [arm for arm in arms if arm[1] != SLOW], [arm for arm in arms if arm[1] == SLOW]
