"""Write percentages, ranges, batch sizes and codecs as text."""

from collections.abc import Sequence

import pandas as pd

from kfbench import text
from kfbench.formats import BASE_FORMAT
from kfbench.tables import Interval, number
from kfbench.text import number_range


def percent(share: float, digits: int = 1) -> str:
    """Return a share as a percentage, with a typographic minus sign (−)."""
    return text.percent(share, digits).replace("-", "−")


def more_or_less(ratio: Interval) -> str:
    """Return, for example, "12 % more"; "about as much" if the interval holds 1."""
    if ratio.holds(1):
        return "about as much"
    return f"{percent(abs(ratio.median - 1), 0)} {'more' if ratio.median > 1 else 'less'}"


def span(values: Sequence[float], digits: int = 2) -> str:
    """Return the range of the values as text: "a to b", or "a" if both ends look the same; empty without values."""
    return number_range(values, f",.{digits}f") if values else ""


def cpu_range_sentence(of: str, operation: str, ratios: Sequence[float], where: str = "") -> str:
    """Return, for example, "Encode CPU of v3 is 0.97 to 1.10 × v2's." where: more words before the period."""
    return f"{operation.capitalize()} CPU of {of} is {span(ratios)} × {BASE_FORMAT}'s{where and f' {where}'}."


def lower_first(text: str) -> str:
    """Return the text with a small first letter."""
    return text[:1].lower() + text[1:]


def upper_first(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def record_words(size: float) -> str:
    """Return, for example, "100 records" or "one record"."""
    return "one record" if size == 1 else f"{number(int(size))} records"


def batch_words(size: float) -> str:
    """Return, for example, "100 records per batch" or "one record per batch"."""
    return f"{record_words(size)} per batch"


def codecs_of(rows: pd.DataFrame) -> list[str]:
    """Return the codec and level of each row, for example: gzip 6."""
    return [codec_words(*each) for each in zip(rows["codec"], rows["level"], strict=True)]


def codec_words(codec: str, codec_level: float | None) -> str:
    """Return a codec with its level, for example: gzip 6. A codec without a level gives its name."""
    return codec if codec_level is None or pd.isna(codec_level) else f"{codec} {int(codec_level)}"
