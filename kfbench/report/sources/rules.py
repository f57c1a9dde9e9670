"""Rules that several sources share: which format is the smallest, what a format cannot carry, and the noise of CPU."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kfbench.formats import BASE_FORMAT
from kfbench.present.arms import middle_95
from kfbench.present.rows import Rows
from kfbench.present.table import Band
from kfbench.report.sources.noise import to_itself

TIE: Final = 0.01  # sizes within one percent of each other are a tie
RESIDENT: Final[Mapping[str, Any]] = {"kind": "cpu", "cache": "resident", "research": False}


def smallest(sizes: Mapping[str, float], lossy: Collection[str]) -> list[str]:
    """Return the smallest format that loses nothing, then the formats that lose nothing and are at most TIE larger.

    Empty unless v2 and another format lose nothing, because otherwise nothing can be compared.

    Args:
        sizes: format -> bytes per record.
        lossy: the formats that lose a field of these records.
    """
    whole = {name: size for name, size in sizes.items() if name not in lossy}
    if BASE_FORMAT not in whole or len(whole) < 2:
        return []
    least = min(whole, key=lambda name: whole[name])
    return [least, *(name for name, size in whole.items() if name != least and size <= whole[least] * (1 + TIE))]


def noise(rows: Rows, where: Mapping[str, Any]) -> Band | None:
    """Return the middle 95 % of the CPU time of v2's second timing (A/A) divided by its first; None without any.

    where: the arms whose second timings count.
    """
    return middle_95([ratio.median for ratio in to_itself(rows, {**where, "format": BASE_FORMAT})["ratio"]])
