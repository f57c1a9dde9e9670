"""The overhead of each format, split into its fields and into groups of fields."""

import json
from typing import Any, Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.present.look import group_of
from kfbench.present.names import GRID, in_order
from kfbench.present.rows import Runs, at_reference
from kfbench.records import PAYLOAD

BATCH_SIZES: Final = (1, 100)
ALL: Final = "all overhead"
COLUMNS: Final = ("batch_size", "batches", "format", "field", "group", "bytes", "bytes_or_0")


def fields(runs: Runs) -> pd.DataFrame:
    """Return a row per batch size, format and field of metadata, without a codec, at the grid's defaults.

    The field "all overhead" is their sum; its group has the same name.
    bytes: per record; None if the format does not have the field. bytes_or_0: the same, but 0.
    """
    where = {"kind": "bytes", "workload": GRID, "codec": "none", "research": False, "batch_size": list(BATCH_SIZES)}
    arms = runs.own.arms(at_reference(where, []))
    arms = arms[arms["field_bytes"].notna()]
    return pd.DataFrame(
        [row for size, part in arms.groupby("batch_size") for row in _of_batch_size(int(size), part)], columns=COLUMNS
    )


def _of_batch_size(size: int, arms: pd.DataFrame) -> list[tuple[Any, ...]]:
    by_format: dict[str, dict[str, float]] = {}
    for row in arms.itertuples():
        counts = json.loads(row.field_bytes)
        by_format[row.format] = {name: count / row.records for name, count in counts.items() if name not in PAYLOAD}
    known = in_order(by_format)
    names = dict.fromkeys(name for each in (BASE_FORMAT, *known) for name in by_format.get(each, ()))
    found = []
    for each in known:
        own = {**{name: by_format[each].get(name, 0.0) for name in names}, ALL: sum(by_format[each].values())}
        for name, count in own.items():
            group = ALL if name == ALL else group_of(name)
            found.append((size, f"batch of {size}", each, name, group, count or None, count))
    return found
