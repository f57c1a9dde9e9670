"""The kinds of measurement that compare rivals, and the arms that a [[grid]] block of such a kind may name."""

from collections.abc import Iterator
from typing import Final

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.rivals import NAMES
from kfbench.sweep.definition.sweep_file import Grid, Kind

RIVAL_KINDS: Final[frozenset[Kind]] = frozenset({"rivals", "rivals-cpu"})
CODECS_OF_RIVALS: Final = frozenset({"none", "lz4", "zstd"})
MOST_BATCH_BYTES: Final = 16 << 20  # rivals are also measured in batches that a broker would refuse


def names_of(kind: Kind) -> tuple[str, ...]:
    """Return the names that the key `formats` may have in a block of this kind."""
    return (*FORMATS, *NAMES) if kind in RIVAL_KINDS else tuple(FORMATS)


def rival_problems(grid: Grid) -> Iterator[str]:
    """Find problems of the codecs and of the base in blocks that compare rivals."""
    for kind in sorted(RIVAL_KINDS & set(grid.measure)):
        if others := grid.codecs.keys() - CODECS_OF_RIVALS:
            yield f"codecs.{min(others)}: {kind} cells have the codecs {', '.join(sorted(CODECS_OF_RIVALS))}"
        if kind == "rivals-cpu" and BASE_FORMAT not in grid.formats:
            yield f"formats: {kind} cells need {BASE_FORMAT}, the base of every ratio"
