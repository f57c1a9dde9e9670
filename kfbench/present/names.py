"""The formats that are shown, and their order. Names of the axes of the benchmark's grid, such as batch size.

Batches and codecs are written as words, and values of axes as cells of tables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

import pandas as pd

from kfbench.formats import FORMATS, SHIPPED
from kfbench.present.table import Cell, Column, number
from kfbench.workloads import WORKLOADS

NEW: Final = "v3"  # the proposal that sentences compare with BASE_FORMAT
HEADERS_FIRST: Final = f"{NEW}-headers-first"  # KIP-931's additional proposal
MAIN: Final = (*sorted(SHIPPED), NEW)  # a table has a column for each, even if it contains only dashes

GRID: Final = "grid"
_DEFAULTS: Any = WORKLOADS[GRID]
REFERENCE: Final[Mapping[str, Any]] = {axis.name: getattr(_DEFAULTS, axis.name) for axis in fields(_DEFAULTS)}
AXES: Final = {
    "batch_size": Column(name="records per batch"),
    "key_bytes": Column(name="key", unit="bytes"),
    "value_bytes": Column(name="value", unit="bytes"),
    "timestamp_spread_ms": Column(name="timestamp spread", unit="ms"),
    "headers": Column(name="headers per record"),
    "null_share": Column(name="share of null values"),
    "offset_stride": Column(name="offset stride"),
    "base_timestamp_ms": Column(name="base timestamp", unit="ms"),
    "payload": Column(name="payload"),
    "header_key_bytes": Column(name="header key", unit="bytes"),
    "header_value_bytes": Column(name="header value", unit="bytes"),
    "producer": Column(name="producer id"),
    "append_time": Column(name="log append time"),
}


def in_order(names: Iterable[str]) -> list[str]:
    """Return the formats in the order of the report: v0, v1, v2, v3, then all others by name."""
    return sorted(set(names), key=lambda name: (len(name) > 2, name))


def level(axis: str, value: Any) -> Cell:
    """Return the value of an axis as a cell of a table. A length of -1 bytes becomes the word null."""
    if axis.endswith("_bytes") and value == -1:
        return "null"
    if axis in ("producer", "append_time"):
        return bool(value)
    return value if isinstance(value, str) else float(value) if axis == "null_share" else int(value)


def batch_words(size: float) -> str:
    """Return, for example, "100 records per batch" or "one record per batch"."""
    return f"{'one record' if size == 1 else f'{number(int(size))} records'} per batch"


def codecs_of(rows: pd.DataFrame) -> list[str]:
    """Return the codec and level of each row, for example: gzip 6."""
    return [codec_words(*each) for each in zip(rows["codec"], rows["level"], strict=True)]


def codec_words(codec: str, codec_level: float | None) -> str:
    """Return a codec with its level, for example: gzip 6. A codec without a level gives its name."""
    return codec if codec_level is None or pd.isna(codec_level) else f"{codec} {int(codec_level)}"


FIELD_WORDS: Final[Mapping[str, str]] = {
    "timestamps": "times",
    "producer_id": "producer ids",
    "producer_epoch": "producer ids",
    "base_sequence": "producer ids",
    "partition_leader_epoch": "leader epochs",
    "append_time_ms": "append times",
    "timestamp_type": "append times",
    "delete_horizon_ms": "delete horizons",
    "is_transactional": "transactions",
    "is_control": "control batches",
}


def in_words(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of fields in words, each word once.

    names: fields of `capabilities.missing`, or of the losses of a row.
    """
    return tuple(dict.fromkeys(FIELD_WORDS.get(name, name.replace("_", " ")) for name in names))


def lacking(name: str, than: str) -> tuple[str, ...]:
    """Return the fields and codecs that format `than` can carry and format `name` cannot, codecs last.

    The result is empty if `name` is unknown.
    """
    if name not in FORMATS:
        return ()
    own, other = FORMATS[name].capabilities, FORMATS[than].capabilities
    missing = [field for field in own.missing if field not in other.missing]
    return (*in_words(missing), *(codec for codec in other.codecs if codec not in own.codecs))
