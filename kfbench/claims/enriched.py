"""Check "Kafka Enriched Message Metadata": its claims about the old format, and the bytes of its layout."""

from typing import Final

import numpy as np

from kfbench.claims.claim import Claim, ClaimsTable, Fields
from kfbench.claims.example import (
    compressed_set,
    numbered_records,
    only_offset_changes,
    overhead_bytes,
    relative_offsets,
    steps,
    stored_offset,
)
from kfbench.formats import FORMATS
from kfbench.layouts import ENRICHED_MESSAGE, V0_MESSAGE, position
from kfbench.records import Records

ENTRY_FIELD: Final = {True: "Offset, then MessageSize", False: "MessageSize, then Offset"}


def _largest_codec_bits() -> int:
    v0, one = FORMATS["v0"], numbered_records(7, 1)
    attributes = position(V0_MESSAGE, "attributes")
    return max(int(v0.encode(one, codec=codec).data[attributes]) for codec in v0.capabilities.codecs)


def _message_overheads(*names: str) -> dict[str, int]:
    return {name: overhead_bytes(name, numbered_records(7, 1).shapes) for name in names}


def _grown_bytes() -> Fields:
    found = _message_overheads("v0", "v1", "enriched")
    return {**found, "added": f"{found['enriched'] - found['v0']}"}


def _tags_bytes(wrapper: bytes) -> int:
    return int.from_bytes(wrapper[position(ENRICHED_MESSAGE, "tags_length") :][:4], "big")


def _wrapper_value() -> bytes:
    """Return the compressed bytes in an enriched wrapper. They follow the fixed fields, the tags and two lengths."""
    wrapper = compressed_set("enriched")
    return wrapper[ENRICHED_MESSAGE.itemsize + _tags_bytes(wrapper) + 8 :]


def _distinct_times(name: str) -> int:
    """Return how many different timestamps remain in a format, of 1,000 within a second."""
    records = Records.from_lists([b""] * 1_000, timestamps_ms=steps(1_000, 1))
    decoded = FORMATS[name].decode(FORMATS[name].encode(records, lossy=True))
    return len(np.unique(decoded.records.timestamps_ms))


CLAIMS: Final = (
    Claim(
        claim="an entry starts with",
        published=ENTRY_FIELD[False],
        fields=lambda: {
            "first_8_bytes": (first := stored_offset(bytes(FORMATS["v0"].encode(numbered_records(7, 1)).data))),
            "order": ENTRY_FIELD[first == 7],
        },
        real="{order}",
        because="the offset (int64) comes first on the wire and on disk, and then the size",
    ),
    Claim(
        claim="the lowest 2 attribute bits hold the codec (current format)",
        published="at most 3",
        fields=lambda: {"most": _largest_codec_bits()},
        real="at most {most}",
        holds=lambda values: values["most"] <= 3,
        because="a codec's number takes more bits",
    ),
    Claim(
        claim="metadata grows in the best case",
        published="by 8 bytes, to 34",
        fields=_grown_bytes,
        real="by {added} bytes, to {enriched}",
        because="a message without tags costs something else",
        remark="v1 as shipped takes {v1}, and its 8 bytes are a millisecond timestamp",
    ),
    Claim(
        claim="offset of a compressed set",
        published="that of its first message",
        fields=lambda: {"enriched": stored_offset(compressed_set("enriched"))},
        real="{enriched}, first is 1000",
        holds=lambda values: values["enriched"] == 1000,
        because="another message's offset is stored",
        remark="v1 as shipped stores the last one's",
    ),
    relative_offsets("inner messages carry offsets relative to it", _wrapper_value),
    only_offset_changes(
        "to assign offsets the broker sets the set's offset only",
        "enriched",
        remark="nothing is decompressed, as in the text, if nobody checks the messages. Brokers of v1 and v2 do",
    ),
)


def claims_table() -> ClaimsTable:
    """Compare the figures of the enriched metadata proposal with the real ones."""
    kept, kept_by_tag = (_distinct_times(name) for name in ("enriched", "enriched-ms"))
    without_tag, with_tag = _message_overheads("enriched", "enriched-ms").values()
    seconds = (
        "The text makes no promise about its int32 timestamp of Unix seconds. Of 1,000 times within a second it keeps "
        f"{kept}, and it ends in 2038. Tag 0 keeps {kept_by_tag:,} for {with_tag - without_tag} bytes more per "
        f"message, {with_tag} in all."
    )
    tags_bytes = _tags_bytes(compressed_set("enriched"))
    unknown = (
        "According to the text, readers ignore an unknown tag. But a tag has no size of its own. So a reader can only "
        "skip all tags that follow, known ones too. "
        f"The tags of a compressed set take {tags_bytes} bytes here. "
        "The text gives no ids for two of them, so we chose them."
    )
    rows = tuple(each.check() for each in CLAIMS)
    return ClaimsTable(name="enriched", source="Kafka Enriched Message Metadata", rows=rows, remarks=(seconds, unknown))
