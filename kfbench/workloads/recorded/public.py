"""Public data sets in the cache folder that `make public` fills: JSON lines, one record per line."""

import os
import tomllib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from kfbench.errors import InvalidConfig
from kfbench.records import Records
from kfbench.shipped import DATASETS

RECIPES: Final = DATASETS / "public"
PUBLIC: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kfbench" / "public"
PREFIX: Final = "public-"
MOST_RECORDS: Final = 65_536  # of one set; the largest set has 336,776
MEAN_GAP_MS: Final = 20  # the rows have no time of their own


class NotFetched(InvalidConfig):
    """A public data set that is not in the cache folder."""


def set_names() -> Iterator[str]:
    """Yield `public-json-NAME` per set that is JSON in its package, and `public-table-NAME` per table."""
    for recipe in sorted(RECIPES.glob("*.toml")):
        for name, entry in tomllib.loads(recipe.read_text(encoding="utf-8"))["sets"].items():
            kind = "json" if entry["path"].endswith(".json") else "table"
            yield f"{PREFIX}{kind}-{name}"


def set_file(name: str) -> Path:
    return PUBLIC / f"{name.removeprefix(PREFIX).partition('-')[2]}.jsonl"


def read_set(name: str) -> Records:
    """Return the first MOST_RECORDS rows of a set as records without keys.

    Their times have exponential gaps of MEAN_GAP_MS on average, and are always the same. Raises NotFetched.
    """
    path = set_file(name)
    try:
        with path.open("rb") as file:
            values = [line.rstrip(b"\n") for line in islice(file, MOST_RECORDS)]
    except FileNotFoundError:
        raise NotFetched(f"{name}: {path.name} is not in the cache folder: run `make public`") from None
    gaps_ms = np.random.default_rng(0).exponential(MEAN_GAP_MS, len(values))
    return Records.from_lists(values, timestamps_ms=np.cumsum(gaps_ms).astype(np.int64))
