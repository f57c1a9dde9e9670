"""Check KIP-98, "Space Comparison": the overhead of the old and the new format, 1 KiB values with 100-byte keys.

The published figures are compared with the layout in the KIP's text (format `kip98`). The figures of the released
layout (format `v2`) are listed too.
"""

from typing import Final

from kfbench.claims.claim import Claim, ClaimsTable, Fields
from kfbench.claims.example import (
    STEPS_MS,
    Extremes,
    added_bytes,
    batch_header_bytes,
    encoded_overhead_bytes,
    record_bytes,
)
from kfbench.text import count_words, number_range

BATCHES: Final = {1: 60, 3: 74, 10: 123, 50: 403, 100: 745}  # records per batch -> overhead as published


def _old_format(count: int) -> Claim:
    return Claim(
        claim=f"old format, overhead of {count_words(count, 'message')}",
        published=f"34*{count} = {34 * count}",
        fields=lambda: {"published": 34 * count, "v1": encoded_overhead_bytes("v1", count, step_ms=1)},
        real="{v1}",
        holds=lambda values: values["v1"] == values["published"],
        because="v1 writes {v1} bytes",
    )


def _batch(count: int, published: int) -> Claim:
    misprint = f"53 + {count}*7 is {53 + 7 * count}, the printed {published} is a stale 45 + {published - 45}"
    is_misprint = published != 53 + 7 * count
    because = "53 + 7n has 2 bytes of timestamp delta in every record. The first delta is 0, which makes {first} bytes"
    if count > 1:
        because = "As for a batch of 1. The others' deltas take 1 byte below 64 ms, then 2"

    def fields() -> Fields:
        overheads = {
            f"{name}_{step_ms}ms_apart": encoded_overhead_bytes(name, count, step_ms)
            for name in ("kip98", "v2")
            for step_ms in STEPS_MS
        }
        return {
            "published": published,
            **overheads,
            "kip98": _range(overheads["kip98_1ms_apart"], overheads["kip98_64ms_apart"]),
            "v2": _range(overheads["v2_1ms_apart"], overheads["v2_64ms_apart"]),
            "first": f"{overheads['kip98_1ms_apart'] - batch_header_bytes('kip98')}",
        }

    return Claim(
        claim=f"new format, overhead of a batch of {count}",
        published=f"{published}",
        fields=fields,
        real="{kip98}",
        shipped="{v2}",
        holds=lambda values: values["kip98_1ms_apart"] <= published <= values["kip98_64ms_apart"],
        because=f"{because}. The sum {misprint}" if is_misprint else because,
        remark=f"within by chance: {misprint}" if is_misprint else "",
    )


def _extremes(text: Extremes, shipped: Extremes) -> Fields:
    numbers = {"kip98_least": text.least, "kip98_most": text.most, "v2_least": shipped.least, "v2_most": shipped.most}
    return {**numbers, "kip98": _range(*text), "v2": _range(*shipped)}


def _range(low: float, high: float) -> str:
    return number_range((low, high), "g")


CLAIMS: Final = (
    *(_old_format(count) for count in BATCHES),
    *(_batch(count, published) for count, published in BATCHES.items()),
    Claim(
        claim="new format, overhead of the message set",
        published="53",
        fields=lambda: {"published": 53, **{name: batch_header_bytes(name) for name in ("kip98", "v2")}},
        real="{kip98}",
        shipped="{v2}",
        because="the layout adds up to something else",
    ),
    Claim(
        claim="new format, each additional message of the example",
        published="7",
        fields=lambda: {"published": 7, **_extremes(added_bytes("kip98"), added_bytes("v2"))},
        real="{kip98}",
        shipped="{v2}",
        holds=lambda values: values["kip98_least"] <= 7 <= values["kip98_most"],
        because="the fields take something else",
        remark="{kip98_least} while the timestamp delta is below 64 ms",
    ),
    Claim(
        claim="new format, per-message overhead ranges",
        published="6 to 25",
        fields=lambda: {
            "published_least": 6,
            "published_most": 25,
            **_extremes(record_bytes("kip98"), record_bytes("v2")),
        },
        real="{kip98}",
        shipped="{v2}",
        because="Each field is at its narrowest, or at its widest. A record has at least the length, the attributes "
        "and two deltas, because a null key has no length",
    ),
)


def claims_table() -> ClaimsTable:
    """Compare the figures of KIP-98 with the real ones."""
    remark = (
        f"The released v2 is another layout. Its header has {batch_header_bytes('v2')} bytes. "
        "The partition leader epoch and the record count, 4 bytes each, were added before release. "
        f"A record has {_range(*added_bytes('v2'))} bytes. Zig-zag makes the length of a 100-byte key 2 bytes. "
        "The value's length and the header count are stored, too."
    )
    rows = tuple(each.check() for each in CLAIMS)
    return ClaimsTable(name="kip98", source="KIP-98, Space Comparison", rows=rows, remarks=(remark,))
