"""The axes of the benchmark's grid, such as batch size: their names, default values, and points in words.

A point has one value for each axis. The reference point has the default value of each axis.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.report.data.words import batch_words
from kfbench.tables import Cell, Column, number
from kfbench.workloads import WORKLOADS

GRID: Final = "grid"
_DEFAULTS: Any = WORKLOADS[GRID]
REFERENCE: Final[Mapping[str, Any]] = {axis.name: getattr(_DEFAULTS, axis.name) for axis in fields(_DEFAULTS)}
HEADLINE_BATCHES: Final = (1, 10, 100, 1000)
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
_WORDS: Final = {  # the axes in the text of `setting`, in this order
    "batch_size": "",
    "key_bytes": "{}-byte keys",
    "value_bytes": "{}-byte values",
    "timestamp_spread_ms": "{} ms timestamp spread",
    "headers": "{} headers per record",
}


def level(axis: str, value: Any) -> Cell:
    """Return the value of an axis as a cell of a table. A length of -1 bytes becomes the word null."""
    if axis.endswith("_bytes") and value == -1:
        return "null"
    if axis in ("producer", "append_time"):
        return bool(value)
    return value if isinstance(value, str) else float(value) if axis == "null_share" else int(value)


def setting(point: Mapping[str, Any]) -> str:
    """Return a description of a point, for example: 100 records per batch, 16-byte keys."""
    words = []
    for axis, pattern in _WORDS.items():
        value = point.get(axis)
        if value is None or (axis == "headers" and value == 0):
            continue
        if axis == "batch_size":
            words.append(batch_words(value))
        elif axis == "timestamp_spread_ms" and value == 0:
            words.append("equal timestamps")
        elif (shown := level(axis, value)) == "null":
            words.append(pattern.replace("-byte", "").format("null"))
        else:
            words.append(pattern.format(number(shown)))
    payload = point.get("payload", REFERENCE["payload"])
    if payload != REFERENCE["payload"]:
        words.append(f"{payload} payload")
    return ", ".join(words)


def with_settings(caption: str, *settings: str) -> str:
    """Add a sentence to a caption for each description of a point."""
    return f"{caption}. Settings: {'. Also: '.join(settings)}."


class Distance(NamedTuple):
    """The distance of two points.

    axes: the number of axes with different values. doublings: the sum over these axes of |log2((a + 2) / (b + 2))|.
    """

    axes: int
    doublings: float


def distance(point: Mapping[str, Any], wanted: Mapping[str, Any] = REFERENCE) -> Distance:
    """Return the distance of a point from the wanted point. The default is the distance from the grid's defaults."""
    differing = [axis for axis, value in point.items() if value != wanted[axis]]
    numbers = [axis for axis in differing if not isinstance(wanted[axis], str)]
    doublings = sum(abs(float(np.log2((float(point[axis]) + 2) / (float(wanted[axis]) + 2)))) for axis in numbers)
    return Distance(len(differing), doublings)
