"""Exact sizes in bytes. They are the same on every host and in every order of measurement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from kfbench.batches import plan
from kfbench.codecs import find
from kfbench.errors import IllegalCombination
from kfbench.formats import BASE_FORMAT, FORMATS, Format
from kfbench.measure.columns import Row, counts_text
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.verify import verify_breakdown, verify_records, verify_size
from kfbench.records import Records

if TYPE_CHECKING:
    import pandas as pd


def measure_size(fmt: Format, source: EncodeInput) -> Row:
    """Encode the records in one format, verify the encoded log, and return its sizes.

    The result has the columns of one row of the result table. Raises Unverified if the log is wrong.
    """
    records = source.records
    log = source.encode(fmt)
    verify_records(fmt, source, log)
    payload_bytes, size_bytes = records.shapes.payload_bytes, int(log.positions[-1])
    row: Row = {
        "records": len(records),
        "batches": source.batches,
        "size_bytes": size_bytes,
        "payload_bytes": payload_bytes,
        "losses": counts_text(log.losses),
    }
    if source.codec == "none":
        verify_size(fmt, source, log)
        parts = fmt.breakdown(records, source.bounds, source.batch_fields)
        verify_breakdown(fmt, parts, records, log)
        row |= {"overhead_bytes": size_bytes - payload_bytes, "field_bytes": counts_text(parts)}
    return row


def compare(
    records: Records,
    formats: Iterable[str] | None = None,
    codecs: Iterable[str | tuple[str, int]] = ("none",),
    batch_size: int | ArrayLike = 100,
) -> pd.DataFrame:
    """Return the size of the records in each format: one row per format and codec.

    Columns:

    - format, codec, level: names, and the level of the codec.
    - records, batches: their numbers.
    - size_bytes: the size of the log.
    - payload_bytes: the size of keys, values, header keys and header values.
    - overhead_bytes: size_bytes - payload_bytes; <NA> under a codec.
    - ratio_to_v2: size_bytes relative to v2 under the same codec and level.
    - losses: JSON with the number of items per field that the format cannot carry.

    A format that cannot use a codec gets <NA>. If `formats` is given, it raises IllegalCombination instead. An unknown
    format, codec or level raises IllegalCombination, too.

    Args:
        formats: names of formats; None: all formats.
        codecs: names of codecs, or pairs (name, level).
        batch_size: records per batch, or batch boundaries int64[batches + 1].
    """
    import pandas as pd

    bounds = plan(len(records), batch_size)
    names = list(FORMATS if formats is None else formats)
    for name in names:
        if name not in FORMATS:
            raise IllegalCombination(f"no format {name!r} (formats: {', '.join(FORMATS)})")
    rows: list[Row] = []
    for codec_and_level in codecs:
        codec, wanted_level = (codec_and_level, None) if isinstance(codec_and_level, str) else codec_and_level
        level = find(codec).check_level(wanted_level)
        source = EncodeInput(records=records, bounds=bounds, codec=codec, level=level)
        sizes: dict[str, Row] = {}
        for name in dict.fromkeys((BASE_FORMAT, *names)):
            if codec in FORMATS[name].capabilities.codecs:
                sizes[name] = measure_size(FORMATS[name], source)
            elif formats is not None:
                FORMATS[name].check_codec(codec)
        base_bytes = sizes[BASE_FORMAT]["size_bytes"]
        for name in names:
            row = sizes.get(name, {})
            rows.append(
                {
                    "format": name,
                    "codec": codec,
                    "level": level,
                    "records": len(records),
                    "batches": len(bounds) - 1,
                    "size_bytes": row.get("size_bytes"),
                    "payload_bytes": records.shapes.payload_bytes,
                    "overhead_bytes": row.get("overhead_bytes"),
                    "ratio_to_v2": row["size_bytes"] / base_bytes if row and base_bytes else float("nan"),
                    "losses": row.get("losses"),
                }
            )
    integers = dict.fromkeys(["level", "size_bytes", "overhead_bytes"], "Int64")
    return pd.DataFrame(rows).astype(integers)
