"""Convert bytes and timestamps of a log to text and JSON."""

import base64
import json
from dataclasses import asdict
from json.encoder import encode_basestring_ascii
from typing import Any, Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.codecs import Dictionary

FIRST_MS: Final = -62_135_596_800_000  # the year 1
LAST_MS: Final = 253_402_300_799_999  # the year 9999


def json_value(data: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as a JSON value without loss: a string, or {"base64": ...} if they are not UTF-8. None is null."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def json_text(data: bytes | None) -> str:
    """Return the JSON text of `json_value(data)`."""
    value = json_value(data)
    return encode_basestring_ascii(value) if isinstance(value, str) else json.dumps(value)


def dictionary_values(dictionary: Dictionary) -> dict[str, Any]:
    """Return a dictionary without its data, for JSON."""
    return {
        "number": dictionary.number,
        "size_bytes": len(dictionary.data),
        "sha256": dictionary.sha256.hex(),
        "is_raw": dictionary.is_raw,
        "trained_on": None if dictionary.trained_on is None else asdict(dictionary.trained_on),
    }


def utc(timestamp_ms: int) -> str:
    """Return a timestamp (ms since 1970) as a date in UTC. -1 (no timestamp) is "-".

    A timestamp outside the years 1 to 9999 becomes a number: "… ms".
    """
    return utc_column(np.array([timestamp_ms]))[0]


def utc_column(timestamps_ms: Int64) -> list[str]:
    """Convert an array of timestamps, int64[n], to n texts. See `utc` for the form of each text."""
    is_date = (timestamps_ms >= FIRST_MS) & (timestamps_ms <= LAST_MS) & (timestamps_ms != -1)
    texts = np.datetime_as_string(np.where(is_date, timestamps_ms, 0).astype("M8[ms]"), unit="ms").tolist()
    return [
        text.replace("T", " ") if known else "-" if time_ms == -1 else f"{time_ms} ms"
        for text, known, time_ms in zip(texts, is_date.tolist(), timestamps_ms.tolist(), strict=True)
    ]
