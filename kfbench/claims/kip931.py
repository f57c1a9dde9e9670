"""Check KIP-931, "Public Interfaces": the number of bytes that the compact batch header of v3 saves."""

from bisect import bisect_right
from datetime import UTC, datetime
from functools import cache
from typing import Final, Literal, NamedTuple

import numpy as np

from kfbench.claims.claim import Claim, ClaimsTable, Fields
from kfbench.claims.example import (
    KIP_931_WRITTEN_MS,
    LARGEST_BATCH,
    added_bytes,
    batch_header_bytes,
    encoded_overhead_bytes,
    overhead_bytes,
    shapes,
    steps,
)
from kfbench.formats import FORMATS
from kfbench.layouts import V3_HEADER
from kfbench.records import Records, Shapes
from kfbench.text import number_range, percent

TEN_YEARS_LATER_MS: Final = int(datetime(2033, 5, 15, tzinfo=UTC).timestamp()) * 1000
SEARCH_END_MS: Final = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * 1000
SPAN_MS: Final = 16_000  # from the first to the last timestamp of the KIP's example batch


class HeaderVarints(NamedTuple):
    """The number of bytes of each varint in a batch header, in the order of the layout."""

    last_offset_delta: int
    base_timestamp: int
    max_timestamp_delta: int


def _header_varint_bytes(
    timestamps_ms: list[int], offsets: list[int] | None = None, name: Literal["v3", "v3-unsigned"] = "v3"
) -> HeaderVarints:
    records = Records.from_lists([b""] * len(timestamps_ms), timestamps_ms=timestamps_ms, offsets=offsets)
    log = FORMATS[name].encode(records)
    last_bytes = np.flatnonzero(log.data[V3_HEADER.itemsize :] < 0x80)[:3]
    return HeaderVarints(*np.diff(last_bytes, prepend=-1).tolist())


def _base_timestamp_bytes(timestamp_ms: int) -> int:
    return _header_varint_bytes([timestamp_ms]).base_timestamp


def _max_delta_bytes(span_ms: int) -> int:
    return _header_varint_bytes([KIP_931_WRITTEN_MS, KIP_931_WRITTEN_MS + span_ms]).max_timestamp_delta


@cache
def _largest_delta(width: int) -> int:
    """Return the largest timestamp delta, in ms, that v3 stores in a varint of `width` bytes."""
    return bisect_right(range(2**31), width, key=_max_delta_bytes) - 1


def _largest_unsigned(width: int) -> int:
    """Return the largest offset delta that v3-unsigned stores in a varint of `width` bytes."""

    def delta_bytes(delta: int) -> int:
        return _header_varint_bytes([0, 0], [0, delta], "v3-unsigned").last_offset_delta

    return bisect_right(range(1, 2**31 - 1), width, key=delta_bytes)


def _saved_bytes(name: str, records: Shapes) -> int:
    return overhead_bytes("v2", records) - overhead_bytes(name, records)


def _saved_on_header() -> dict[str, int]:
    example = shapes([KIP_931_WRITTEN_MS + round(i * SPAN_MS / 99) for i in range(100)])
    return {
        "v3_header_only": _saved_bytes("v3-header-only", example),
        "v3_header_only_one_record": _saved_bytes("v3-header-only", shapes(steps(1, 0))),
    }


def _saved_share(records: Shapes) -> float:
    """Return the share of all bytes, including keys and values, that v3 saves over v2. All records are in one batch."""
    v2, v3 = (int(FORMATS[name].size(records, batch_size=len(records)).sum()) for name in ("v2", "v3"))
    return (v2 - v3) / v2


def _base_timestamps() -> Fields:
    width = _base_timestamp_bytes(KIP_931_WRITTEN_MS)
    end_ms = bisect_right(range(SEARCH_END_MS), width, KIP_931_WRITTEN_MS, key=_base_timestamp_bytes)
    return {
        "bytes_2023": width,
        "bytes_2033": _base_timestamp_bytes(TEN_YEARS_LATER_MS),
        "last_ms_of_as_few_bytes": end_ms - 1,
        "later_bytes": f"{_base_timestamp_bytes(end_ms)}",
        "until": datetime.fromtimestamp(end_ms // 1000, UTC).date().isoformat(),
    }


def _largest_varint(width: int, published: int) -> Claim:
    return Claim(
        claim=f"biggest value of a {width}-byte varint",
        published=f"{published}",
        fields=lambda: {"published": published, "v3": _largest_delta(width), "v3_unsigned": _largest_unsigned(width)},
        real="{v3}",
        because="Kafka's varints are zig-zag: one bit holds the sign. Without it, the value is {v3_unsigned} "
        "(v3-unsigned). That format has only lengths and offset deltas unsigned, because time can run backwards",
    )


def _record_count_bytes() -> int:
    """Return the number of header bytes of v3 that are in none of the fields that the KIP lists."""
    listed = V3_HEADER.itemsize + sum(_header_varint_bytes([KIP_931_WRITTEN_MS] * 2))
    return batch_header_bytes("v3") - listed


def _saved_on_header_shares() -> Fields:
    saved, header = _saved_on_header(), batch_header_bytes("v2")
    example, one_record = (size_bytes / header for size_bytes in saved.values())
    return {
        "published": 0.18,
        "example": example,
        "one_record": one_record,
        "example_share": percent(example, 0),
        "one_record_share": percent(one_record, 0),
        "header": f"{header}",
        **{name: f"{size_bytes}" for name, size_bytes in saved.items()},
    }


def _saved_on_record() -> Fields:
    saved, record = _saved_bytes("v3-attributes-only", shapes(steps(1, 0))), added_bytes("v2")
    least, most = saved / record.most, saved / record.least
    return {
        "published": 1 / 7,
        "least": least,
        "most": most,
        "shares": number_range((100 * least, 100 * most), ".0f"),
        "saved": f"{saved}",
        "record": number_range(record, "g"),
    }


CLAIMS: Final = (
    Claim(
        claim="base timestamp in 2023, and ten years later",
        published="6 and 6 bytes",
        fields=_base_timestamps,
        real="{bytes_2023} and {bytes_2033} bytes",
        remark="not for good: zig-zag takes {later_bytes} bytes from {until}",
    ),
    _largest_varint(2, 16_383),
    _largest_varint(3, 2_097_151),
    Claim(
        claim="max timestamp delta of a batch that spans 16 seconds",
        published="2 bytes",
        fields=lambda: {"published": 2, "v3": _max_delta_bytes(SPAN_MS), "largest": f"{_largest_delta(2)}"},
        real="{v3} bytes",
        because="for the same reason 2 bytes end at {largest} ms",
    ),
    Claim(
        claim="original batch overhead",
        published="53 bytes",
        fields=lambda: {"published": 53, "v2": batch_header_bytes("v2")},
        real="{v2} bytes",
        because="53 is the figure of KIP-98's text. The released v2 also has the leader epoch and the count",
    ),
    Claim(
        claim="record count in the batch header",
        published="0 bytes (not listed)",
        fields=lambda: {"published": 0, "v3": _record_count_bytes()},
        real="{v3} bytes",
        holds=lambda values: values["v3"] == 0,
        because="the listed layout leaves `count` out. A reader needs it, so v3 keeps it",
    ),
    Claim(
        claim="saved on a batch header (16 s, two-byte offset delta)",
        published="10 bytes",
        fields=lambda: {"published": 10, **_saved_on_header(), "delta": f"{_max_delta_bytes(SPAN_MS)}"},
        real="{v3_header_only} bytes",
        because="the max timestamp delta takes {delta} bytes. A batch of one record saves {v3_header_only_one_record}",
    ),
    Claim(
        claim="the same as a share of the batch overhead",
        published="18 %",
        fields=_saved_on_header_shares,
        real="{example_share} (one record per batch: {one_record_share})",
        holds=lambda values: round(100 * values["example"]) == 18,
        because="it is {v3_header_only} of {header} bytes in the KIP's example, and {v3_header_only_one_record} with "
        "one record per batch",
    ),
    Claim(
        claim="saved on a message of KIP-98's example",
        published="14 % (7 to 6 bytes)",
        fields=_saved_on_record,
        real="{shares} % ({saved} byte of {record})",
        holds=lambda _: added_bytes("v2").least <= 7 <= added_bytes("v2").most,
        because="the byte is saved, but such a record costs {record} bytes in v2, not 7",
    ),
)


def claims_table() -> ClaimsTable:
    """Compare the figures of KIP-931 with the real ones."""
    one, hundred = (percent(_saved_share(shapes(steps(n, 1))), 2) for n in (1, LARGEST_BATCH))
    decision = (
        'The status line is "the benefits of the space savings outweigh the cost". The decision was the opposite. '
        "The KIP was discarded because converting costs more than v3 saves. Of all bytes of the "
        f"example v3 saves {one} at one record per batch and {hundred} at 100."
    )
    overheads = {name: encoded_overhead_bytes(name, 100, step_ms=1) for name in ("v2", "v3", "v3-unsigned")}
    unsigned = (
        "The KIP's own count of bytes assumes unsigned varints (v3-unsigned). With them, KIP-98's example batch of 100 "
        f"has {overheads['v3-unsigned']:,} bytes of overhead. With zig-zag varints it has {overheads['v3']:,} bytes. "
        f"In v2 it has {overheads['v2']:,} bytes."
    )
    rows = tuple(each.check() for each in CLAIMS)
    return ClaimsTable(name="kip931", source="KIP-931, Public Interfaces", rows=rows, remarks=(decision, unsigned))
