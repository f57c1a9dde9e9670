"""Bytes: exact, the same on every host and in every order. `size` without a codec, `encode` with one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields, plan
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination
from kfbench.formats import BASE_FORMAT, FORMATS, Format
from kfbench.measure.schema import counts_text
from kfbench.measure.verify import verify_breakdown, verify_records, verify_size
from kfbench.records import Records

if TYPE_CHECKING:
    import pandas as pd


def measure_size(
    fmt: Format,
    records: Records,
    bounds: Int64,
    codec: str = "none",
    level: int | None = None,
    batch_fields: BatchFields = NO_FIELDS,
) -> dict[str, Any]:
    """The bytes columns of one row (schema.py), after the round trip was verified. Raises Unverified."""
    log = fmt.encode(records, bounds, codec, level, batch_fields, lossy=True)
    verify_records(fmt, records, bounds, batch_fields, log)
    payload = records.shapes.payload_bytes
    row: dict[str, Any] = {
        "records": len(records),
        "batches": len(bounds) - 1,
        "size_bytes": int(log.positions[-1]),
        "payload_bytes": payload,
        "losses": counts_text(log.losses),
    }
    if codec == "none":
        verify_size(fmt, records, bounds, batch_fields, log)
        row["overhead_bytes"] = row["size_bytes"] - payload
        parts = fmt.breakdown(records, bounds, batch_fields)
        verify_breakdown(fmt, parts, records, log)
        row["field_bytes"] = counts_text(parts)
    return row


def compare(
    records: Records,
    formats: Iterable[str] | None = None,
    codecs: Iterable[str | tuple[str, int]] = ("none",),
    batch_size: int | ArrayLike = 100,
) -> "pd.DataFrame":
    """What the records take in each format: one row a format and codec.

    formats: names; None: all. codecs: names, or (name, level). batch_size: records a batch, or int64 boundaries.
    Columns: format, codec, level, records, batches, size_bytes, payload_bytes, overhead_bytes (size - payload;
    <NA> under a codec), ratio_to_v2 (same codec and level), losses (what the format could not carry, and how
    many). A format that has no such codec gets <NA>, unless it was asked for by name: IllegalCombination.
    """
    import pandas as pd

    bounds = plan(len(records), batch_size)
    names = list(FORMATS if formats is None else formats)
    for name in names:
        if name not in FORMATS:
            raise IllegalCombination(f"no format {name!r} (formats: {', '.join(FORMATS)})")
    rows: list[dict[str, Any]] = []
    for each in codecs:
        codec, asked = (each, None) if isinstance(each, str) else each
        if codec not in CODECS:
            raise IllegalCombination(f"no codec {codec!r} (codecs: {', '.join(CODECS)})")
        level = CODECS[codec].check_level(asked)
        sizes: dict[str, dict[str, Any]] = {}
        for name in dict.fromkeys((BASE_FORMAT, *names)):
            if codec in FORMATS[name].capabilities.codecs:
                sizes[name] = measure_size(FORMATS[name], records, bounds, codec, level)
            elif formats is not None:
                FORMATS[name].check_codec(codec)
        rows += [
            {
                "format": name,
                "codec": codec,
                "level": level,
                "records": len(records),
                "batches": len(bounds) - 1,
                "size_bytes": sizes.get(name, {}).get("size_bytes"),
                "payload_bytes": records.shapes.payload_bytes,
                "overhead_bytes": sizes.get(name, {}).get("overhead_bytes"),
                "ratio_to_v2": _ratio(sizes.get(name), sizes[BASE_FORMAT]),
                "losses": sizes.get(name, {}).get("losses"),
            }
            for name in names
        ]
    integers = dict.fromkeys(["level", "size_bytes", "overhead_bytes"], "Int64")
    return pd.DataFrame(rows).astype(integers)


def _ratio(row: dict[str, Any] | None, base: dict[str, Any]) -> float:
    return row["size_bytes"] / base["size_bytes"] if row and base["size_bytes"] else float(np.nan)
