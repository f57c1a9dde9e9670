"""Random settings of the explorer, and the sizes that `Format.size` gives for them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfbench import Records
from kfbench.formats import FORMATS
from kfbench.present.calculator.rules import BASE_TIME_MS, STOPS
from kfbench.records import PAYLOAD, Shapes

Settings = dict[str, int]
SETTINGS = (
    "records", "key_bytes", "value_bytes", "span_ms",
    "headers", "header_key_bytes", "header_value_bytes", "null_values",
)  # fmt: skip
MOST_HEADERS = 4000  # of one random batch, to keep the records of all batches small
# Powers of two near which a varint or a zig-zag varint grows, or a length of records does.
EDGES = tuple(sorted({2**power + step for power in (6, 7, 13, 14, 20) for step in (-20, -8, -2, -1, 0, 1)}))


def random_settings(number: int, seed: int) -> list[Settings]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        records = _around(rng, 1, 400)
        headers = int(rng.integers(0, 65)) if rng.random() < 0.4 else 0
        found.append(
            {
                "records": records,
                "key_bytes": _around(rng, -1, 20_000),
                "value_bytes": _around(rng, -1, 2_000_000),
                "span_ms": _around(rng, 0, 5_000_000_000),
                "headers": min(headers, MOST_HEADERS // records),
                "header_key_bytes": _around(rng, 0, 200),
                "header_value_bytes": _around(rng, -1, 20_000),
            }
        )
    return found


def stops_settings(number: int, seed: int) -> list[Settings]:
    """Return settings at which columnar is known, too: batch sizes and time spans are STOPS."""
    rng = np.random.default_rng(seed)
    found = []
    for at in random_settings(number, seed):
        at |= {name: int(rng.choice(stops)) for name, stops in STOPS.items()}
        at["records"] = min(at["records"], 1000)
        found.append(at | {"headers": min(at["headers"], MOST_HEADERS // at["records"])})
    return found


def _around(rng: np.random.Generator, low: int, high: int) -> int:
    """Return a number that is small as often as large. A quarter of the numbers lie near EDGES."""
    if rng.random() < 0.25:
        edges = [edge for edge in EDGES if low <= edge <= high]
        return int(rng.choice(edges)) if edges else low
    return min(high, low + int(np.exp(rng.uniform(0, np.log(high - low + 2)))) - 1)


def python_sizes(settings: list[Settings]) -> dict[str, list[int | None]]:
    """Return the size of each batch in each format; None where a format has no headers and the batch has."""
    records, bounds = _records(settings)
    without, without_bounds = _records([each | {"headers": 0} for each in settings])
    found: dict[str, list[int | None]] = {}
    for name, fmt in FORMATS.items():
        if fmt.capabilities.headers:
            found[name] = list(map(int, fmt.size(records, bounds)))
        else:
            sizes = fmt.size(without, without_bounds)
            found[name] = [None if each["headers"] else int(b) for each, b in zip(settings, sizes, strict=True)]
    return found


def python_fields(settings: Settings, name: str) -> dict[str, int]:
    records, bounds = _records([settings])
    return FORMATS[name].breakdown(records, bounds)


def _records(settings: list[Settings]) -> tuple[Records, NDArray[np.int64]]:
    """Return the records of all settings, one batch for each, and the bounds of the batches."""
    column = {name: np.array([each.get(name, 0) for each in settings], np.int64) for name in SETTINGS}
    counts = column["records"]
    bounds = np.concatenate(([0], np.cumsum(counts)))
    offsets = np.arange(bounds[-1]) - np.repeat(bounds[:-1], counts)
    last = np.maximum(counts - 1, 1)
    times = BASE_TIME_MS + offsets * np.repeat(column["span_ms"], counts) // np.repeat(last, counts)
    headers = np.repeat(column["headers"], counts)
    values = np.repeat(column["value_bytes"], counts)
    values[offsets >= np.repeat(counts - column["null_values"], counts)] = -1
    shapes = Shapes(
        timestamps_ms=times,
        offsets=offsets,
        key_lengths=np.repeat(column["key_bytes"], counts),
        value_lengths=values.astype(np.int32),
        header_bounds=np.concatenate(([0], np.cumsum(headers))),
        header_key_lengths=np.repeat(np.repeat(column["header_key_bytes"], counts), headers),
        header_value_lengths=np.repeat(np.repeat(column["header_value_bytes"], counts), headers),
    )
    content: dict[str, Any] = {}
    for name, letter in zip(PAYLOAD, b"kvhx", strict=True):
        lengths = getattr(shapes, f"{name}_lengths")
        content[f"{name}_data"] = np.full(max(int(lengths.max(initial=0)), 0), letter, np.uint8)
        content[f"{name}_starts"] = np.zeros(len(lengths), np.int64)
    return Records(shapes=shapes, **content), bounds
