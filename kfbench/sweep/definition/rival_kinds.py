"""The kinds of measurement that compare rivals, and the arms that a [[grid]] block of such a kind may name."""

from collections.abc import Iterator, Mapping
from typing import Final

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.rivals import METADATA_NAMES, NAMES, SHREDDED_NAMES, STREAM_NAMES
from kfbench.sweep.definition.sweep_file import Grid, Kind

RIVALS_OF_KIND: Final[Mapping[Kind, tuple[str, ...]]] = {
    "rivals": NAMES,
    "rivals-metadata": METADATA_NAMES,
    "rivals-json": SHREDDED_NAMES,
    "rivals-stream": STREAM_NAMES,
    "rivals-cpu": NAMES,
}
CODECS_OF_RIVALS: Final = frozenset({"none", "lz4", "zstd"})
ZSTD_LEVELS: Final[tuple[list[int], ...]] = ([], [3])  # shredded JSON and streams always use level 3
MOST_BATCH_BYTES: Final = 16 << 20  # rivals are also measured in batches that a broker would refuse


def names_of(kind: Kind) -> tuple[str, ...]:
    """Return the names that the key `formats` may have in a block of this kind."""
    if kind == "rivals-metadata":  # v2 has no metadata columns
        return (*METADATA_NAMES, "columnar")
    return (*FORMATS, *RIVALS_OF_KIND.get(kind, ()))


def rival_problems(grid: Grid) -> Iterator[str]:
    """Find problems of the codecs and of the base in blocks that compare rivals."""
    for kind in sorted(RIVALS_OF_KIND.keys() & set(grid.measure)):
        if others := grid.codecs.keys() - CODECS_OF_RIVALS:
            yield f"codecs.{min(others)}: {kind} cells have the codecs {', '.join(sorted(CODECS_OF_RIVALS))}"
        if kind == "rivals-metadata" and set(grid.codecs) != {"none"}:
            yield "codecs: rivals-metadata cells take no codec: each packer compresses in its own way"
        if kind in ("rivals-json", "rivals-stream") and grid.codecs.get("zstd", []) not in ZSTD_LEVELS:
            yield f"codecs.zstd: {kind} cells have level 3 only"
        if kind == "rivals-cpu" and BASE_FORMAT not in grid.formats:
            yield f"formats: {kind} cells need {BASE_FORMAT}, the base of every ratio"
