"""Amounts, batch sizes and codecs in words."""

from collections.abc import Sequence

import pandas as pd

from kfbench import text
from kfbench.tables import number
from kfbench.text import number_range


def percent(share: float) -> str:
    """Return a share as a percentage, with the minus sign of a printed page."""
    return text.percent(share).replace("-", "−")


def span(values: Sequence[float], digits: int = 2) -> str:
    """Return the range of the values: a to b, or a if both read the same; empty without values."""
    return number_range(values, f",.{digits}f") if values else ""


def batch_words(size: float) -> str:
    """Return the number of records per batch in words."""
    return "one record per batch" if size == 1 else f"{number(int(size))} records per batch"


def codecs_of(rows: pd.DataFrame) -> list[str]:
    """Return the codec and level of each row in words."""
    return [codec_words(*each) for each in zip(rows["codec"], rows["level"], strict=True)]


def codec_words(codec: str, codec_level: float | None) -> str:
    """Return the codec and its level, for example: gzip 6."""
    return codec if codec_level is None or pd.isna(codec_level) else f"{codec} {int(codec_level)}"
