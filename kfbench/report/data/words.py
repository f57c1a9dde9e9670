"""Amounts, batch sizes and codecs in words."""

import pandas as pd

from kfbench import text
from kfbench.tables import number


def percent(share: float) -> str:
    """Return a share as a percentage, with the minus sign of a printed page."""
    return text.percent(share).replace("-", "−")


def batch_words(size: float) -> str:
    """Return the number of records per batch in words."""
    return "one record per batch" if size == 1 else f"{number(int(size))} records per batch"


def codecs_of(rows: pd.DataFrame) -> list[str]:
    """Return the codec and level of each row in words."""
    return [codec_words(*each) for each in zip(rows["codec"], rows["level"], strict=True)]


def codec_words(codec: str, codec_level: float | None) -> str:
    """Return codec and level: gzip 6."""
    return codec if codec_level is None or pd.isna(codec_level) else f"{codec} {int(codec_level)}"
