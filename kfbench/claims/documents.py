"""Figures that Kafka's own proposals publish, each beside the bytes that the real formats write.

Sources: KIP-98 "Space Comparison", KIP-931 "Public Interfaces", KIP-31 "Proposed Changes", and the proposal
"Kafka Enriched Message Metadata". Every real figure is computed when asked, by `encode` or `size`, and those
bytes decide whether a claim holds. Only the claim's own words and numbers stand here.

No pandas and no matplotlib: `kfbench table kip98` must answer in under two seconds.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

import numpy as np

from kfbench.claims.claim import Claim, ClaimsTable
from kfbench.codecs import CODECS
from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.layouts import ENRICHED_MESSAGE, LEGACY_FIXED_BYTES, V0_MESSAGE, V3_HEADER, position
from kfbench.records import Records, Shapes

KIP_VALUE_BYTES = 1024  # KIP-98's example: "a fixed message size of 1K with 100 byte keys"
KIP_KEY_BYTES = 100
KIP_98_BATCHES = {1: 60, 3: 74, 10: 123, 50: 403, 100: 745}
KIP_931_WRITTEN_MS = int(datetime(2023, 5, 15, tzinfo=UTC).timestamp()) * 1000
TEN_YEARS_LATER_MS = int(datetime(2033, 5, 15, tzinfo=UTC).timestamp()) * 1000
SEARCH_END_MS = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp()) * 1000


def _claim(
    claim: str,
    published: str,
    real: str,
    *,
    holds: bool,
    else_why: str = "",
    remark: str = "",
    values: Mapping[str, int | float],
    shipped: str = "",
) -> Claim:
    """else_why: printed when the claim does not hold; remark: printed when it does."""
    return Claim(
        claim=claim,
        published=published,
        real=real,
        holds=holds,
        why=remark if holds else else_why,
        values=values,
        shipped=shipped,
    )


def shapes(timestamps_ms: list[int], key_bytes: int = KIP_KEY_BYTES, value_bytes: int = KIP_VALUE_BYTES) -> Shapes:
    """Records of one key size and one value size, without headers; offsets 0, 1, 2, ..."""
    n = len(timestamps_ms)
    return Shapes(
        timestamps_ms=np.array(timestamps_ms, dtype=np.int64),
        offsets=np.arange(n, dtype=np.int64),
        key_lengths=np.full(n, key_bytes, dtype=np.int32),
        value_lengths=np.full(n, value_bytes, dtype=np.int32),
    )


def steps(count: int, step_ms: int) -> list[int]:
    return [KIP_931_WRITTEN_MS + i * step_ms for i in range(count)]


def encoded_overhead_bytes(name: str, count: int, step_ms: int) -> int:
    """Bytes beyond keys and values that `encode` writes for one batch of KIP-98's example records."""
    key, value = b"k" * KIP_KEY_BYTES, b"v" * KIP_VALUE_BYTES
    records = Records.from_lists([value] * count, keys=[key] * count, timestamps_ms=steps(count, step_ms))
    log = FORMATS[name].encode(records, batch_size=count)
    return len(log.data) - records.shapes.payload_bytes


def overhead_bytes(name: str, records: Shapes) -> int:
    """Bytes beyond keys and values when all records go into one batch."""
    return int(FORMATS[name].size(records, batch_size=len(records)).sum()) - records.payload_bytes


def header_varints_bytes(
    timestamps_ms: list[int], offsets: list[int] | None = None, name: Literal["v3", "v3-unsigned"] = "v3"
) -> list[int]:
    """Widths of lastOffsetDelta, baseTimestamp and maxTimestampDelta, read off one encoded batch."""
    records = Records.from_lists([b""] * len(timestamps_ms), timestamps_ms=timestamps_ms, offsets=offsets)
    log = FORMATS[name].encode(records)
    widths, at = [], V3_HEADER.itemsize
    for _ in range(3):
        width = 1
        while log.data[at + width - 1] & 0x80:
            width += 1
        widths.append(width)
        at += width
    return widths


def batch_header_bytes(name: str) -> int:
    """Batch overhead alone: a second record like the first adds what a record costs."""
    one = overhead_bytes(name, shapes(steps(1, 0)))
    two = overhead_bytes(name, shapes(steps(2, 0)))
    return 2 * one - two


def last_where(predicate: Callable[[int], bool], low: int, high: int) -> int:
    """Largest integer in [low, high) where a predicate holds that is true at low and, once false, stays so."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if predicate(middle) else (low, middle)
    return low


def _span(low: float, high: float, unit: str = "") -> str:
    text = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return f"{text} {unit}".strip()


@cache
def _added_bytes(name: str) -> tuple[int, int]:
    """Least and most that a further record adds within KIP-98's largest batch, records 1 or 64 ms apart."""
    added: list[int] = []
    for step in (1, 64):
        totals = [overhead_bytes(name, shapes(steps(n, step))) for n in range(1, max(KIP_98_BATCHES) + 1)]
        added += [more - less for less, more in pairwise(totals)]
    return min(added), max(added)


def _record_range_bytes(name: str) -> tuple[int, int]:
    """Least and most that a record without headers can cost: every field narrow, every field wide."""
    narrow = shapes([0, 0], key_bytes=-1, value_bytes=0)
    least = overhead_bytes(name, narrow) - overhead_bytes(name, shapes([0], key_bytes=-1, value_bytes=0))
    wide = Shapes(
        timestamps_ms=np.array([0, 2**63 - 1]),
        offsets=np.array([0, 2**31 - 1]),
        key_lengths=np.array([-1, 2**28]),
        value_lengths=np.array([0, 2**28]),
    )
    most = overhead_bytes(name, wide) - overhead_bytes(name, shapes([0], key_bytes=-1, value_bytes=0))
    return least, most


def kip98() -> ClaimsTable:
    """KIP-98, "Space Comparison": 1 KiB values, 100-byte keys, "reasonably close timestamps". Its figures are held to
    the layout that its text has (`kip98`); what shipped (`v2`) stands beside them."""
    rows = []
    for n in KIP_98_BATCHES:
        real = encoded_overhead_bytes("v1", n, step_ms=1)
        rows.append(
            _claim(
                f"old format, overhead of {n} message{'s' if n > 1 else ''}",
                f"34*{n} = {34 * n}",
                f"{real}",
                holds=real == 34 * n,
                else_why=f"v1 writes {real / n:g} bytes a message",
                values={"published": 34 * n, "v1": real},
            )
        )
    first = overhead_bytes("kip98", shapes(steps(1, 0))) - batch_header_bytes("kip98")
    for n, published in KIP_98_BATCHES.items():
        near, far, v2_near, v2_far = (
            encoded_overhead_bytes(name, n, step_ms=step) for name in ("kip98", "v2") for step in (1, 64)
        )
        misprint = published != 53 + 7 * n
        stale = f"53 + {n}*7 is {53 + 7 * n}, the printed {published} is a stale 45 + {published - 45}"
        why = (
            f"53 + 7n has 2 bytes of timestamp delta in every record; the first one's delta is 0, which makes {first} "
            "bytes"
            if n == 1
            else "as for a batch of 1; the others' deltas take 1 byte below 64 ms, then 2"
        )
        rows.append(
            _claim(
                f"new format, overhead of a batch of {n}",
                f"{published}",
                _span(near, far),
                holds=near <= published <= far,
                else_why=f"{why}; {stale}" if misprint else why,
                remark=f"within by chance: {stale}" if misprint else "",
                values={
                    "published": published,
                    "kip98_1ms_apart": near,
                    "kip98_64ms_apart": far,
                    "v2_1ms_apart": v2_near,
                    "v2_64ms_apart": v2_far,
                },
                shipped=_span(v2_near, v2_far),
            )
        )
    header, shipped_header = batch_header_bytes("kip98"), batch_header_bytes("v2")
    (low, high), (shipped_low, shipped_high) = _added_bytes("kip98"), _added_bytes("v2")
    (least, most), (shipped_least, shipped_most) = _record_range_bytes("kip98"), _record_range_bytes("v2")
    rows += [
        _claim(
            "new format, overhead of the message set",
            "53",
            f"{header}",
            holds=header == 53,
            else_why="the layout adds up to something else",
            values={"published": 53, "kip98": header, "v2": shipped_header},
            shipped=f"{shipped_header}",
        ),
        _claim(
            "new format, each additional message of the example",
            "7",
            _span(low, high),
            holds=low <= 7 <= high,
            else_why="the fields take something else",
            remark=f"{low} while the timestamp delta is below 64 ms" if low < 7 else "",
            values={"published": 7, "kip98_least": low, "kip98_most": high}
            | {"v2_least": shipped_low, "v2_most": shipped_high},
            shipped=_span(shipped_low, shipped_high),
        ),
        _claim(
            "new format, per-message overhead ranges",
            "6 to 25",
            _span(least, most),
            holds=(least, most) == (6, 25),
            else_why="every field at its narrowest and at its widest: length, attributes and two deltas at least, for "
            "a null key has no length",
            values={"published_least": 6, "published_most": 25, "kip98_least": least, "kip98_most": most}
            | {"v2_least": shipped_least, "v2_most": shipped_most},
            shipped=_span(shipped_least, shipped_most),
        ),
    ]
    remark = (
        f"What shipped (v2) is another layout: a header of {shipped_header} bytes, for the partition leader epoch and "
        f"the record count, 4 bytes each, joined before release; and {_span(shipped_low, shipped_high)} a record, for "
        "zig-zag makes the length of a 100-byte key 2 bytes, and the value's length and the header count are stored."
    )
    return ClaimsTable(name="kip98", source="KIP-98, Space Comparison", rows=tuple(rows), remarks=(remark,))


def kip931() -> ClaimsTable:
    """KIP-931: what the compact header of v3 is said to save."""

    def base_bytes(timestamp_ms: int) -> int:
        return header_varints_bytes([timestamp_ms])[1]

    def span_bytes(span_ms: int) -> int:
        return header_varints_bytes([KIP_931_WRITTEN_MS, KIP_931_WRITTEN_MS + span_ms])[2]

    def biggest(width: int) -> int:
        return last_where(lambda ms: span_bytes(ms) <= width, 0, 2**31)

    def biggest_unsigned(width: int) -> int:
        return last_where(
            lambda delta: header_varints_bytes([0, 0], [0, delta], "v3-unsigned")[0] <= width, 0, 2**31 - 1
        )

    def saved(part: str, records: Shapes) -> int:
        return overhead_bytes("v2", records) - overhead_bytes(part, records)

    now, later = base_bytes(KIP_931_WRITTEN_MS), base_bytes(TEN_YEARS_LATER_MS)
    last = last_where(lambda ms: base_bytes(ms) <= now, KIP_931_WRITTEN_MS, SEARCH_END_MS)
    until = datetime.fromtimestamp((last + 1) // 1000, UTC).date().isoformat()
    rows = [
        _claim(
            "base timestamp in 2023, and ten years later",
            "6 and 6 bytes",
            f"{now} and {later} bytes",
            holds=(now, later) == (6, 6),
            remark=f"not for good: zig-zag takes {base_bytes(last + 1)} bytes from {until}",
            values={"bytes_2023": now, "bytes_2033": later, "last_ms_of_as_few_bytes": last},
        )
    ]
    for width, published in ((2, 16_383), (3, 2_097_151)):
        rows.append(
            _claim(
                f"biggest value of a {width}-byte varint",
                f"{published}",
                f"{biggest(width)}",
                holds=biggest(width) == published,
                else_why="Kafka's varints are zig-zag: one bit holds the sign; without it (v3-unsigned: lengths and "
                f"offset deltas, for time can run backwards) it is {biggest_unsigned(width)}",
                values={"published": published, "v3": biggest(width), "v3_unsigned": biggest_unsigned(width)},
            )
        )
    sixteen = span_bytes(16_000)
    header = batch_header_bytes("v2")
    listed = V3_HEADER.itemsize + sum(header_varints_bytes([KIP_931_WRITTEN_MS] * 2))
    count = batch_header_bytes("v3") - listed
    example = saved("v3-header-only", shapes([KIP_931_WRITTEN_MS + round(i * 16_000 / 99) for i in range(100)]))
    single = saved("v3-header-only", shapes(steps(1, 0)))
    low, high = _added_bytes("v2")
    byte = saved("v3-attributes-only", shapes(steps(1, 0)))
    rows += [
        _claim(
            "max timestamp delta of a batch that spans 16 seconds",
            "2 bytes",
            f"{sixteen} bytes",
            holds=sixteen == 2,
            else_why=f"for the same reason 2 bytes end at {biggest(2)} ms",
            values={"published": 2, "v3": sixteen},
        ),
        _claim(
            "original batch overhead",
            "53 bytes",
            f"{header} bytes",
            holds=header == 53,
            else_why="53 is KIP-98's text; the shipped v2 also has the leader epoch and the count",
            values={"published": 53, "v2": header},
        ),
        _claim(
            "record count in the batch header",
            "0 bytes (not listed)",
            f"{count} bytes",
            holds=count == 0,
            else_why="the listed layout leaves `count` out; a reader needs it, v3 keeps it",
            values={"published": 0, "v3": count},
        ),
        _claim(
            "saved on a batch header (16 s, two-byte offset delta)",
            "10 bytes",
            f"{example} bytes",
            holds=example == 10,
            else_why=f"the max timestamp delta takes {sixteen} bytes; a one-record batch saves {single}",
            values={"published": 10, "v3_header_only": example, "v3_header_only_one_record": single},
        ),
        _claim(
            "the same as a share of the batch overhead",
            "18 %",
            f"{100 * example / header:.0f} % (one record a batch: {100 * single / header:.0f} %)",
            holds=round(100 * example / header) == 18,
            else_why=f"{example} of {header} bytes in the KIP's example, {single} with one record a batch",
            values={"published": 0.18, "example": example / header, "one_record": single / header},
        ),
        _claim(
            "saved on a message of KIP-98's example",
            "14 % (7 to 6 bytes)",
            f"{100 * byte / high:.0f} to {100 * byte / low:.0f} % ({byte} byte of {_span(low, high)})",
            holds=low <= 7 <= high,
            else_why=f"the byte is saved, but such a record costs {_span(low, high)} bytes in v2, not 7",
            values={"published": 1 / 7, "least": byte / high, "most": byte / low},
        ),
    ]
    one, hundred = (100 * _share_saved(shapes(steps(n, 1))) for n in (1, 100))
    remark = (
        'The status line ("the benefits of the space savings outweigh the cost") says the opposite of the '
        "decision that it explains: the KIP was discarded because converting costs more than v3 saves. Of "
        f"all bytes of the example v3 saves {one:.2f} % at one record a batch and {hundred:.2f} % at 100."
    )
    example_bytes = {name: encoded_overhead_bytes(name, 100, step_ms=1) for name in ("v2", "v3", "v3-unsigned")}
    unsigned = (
        "What the KIP's own count of bytes would save (v3-unsigned): KIP-98's example batch of 100 has "
        f"{example_bytes['v3-unsigned']} bytes of overhead with unsigned varints, {example_bytes['v3']} with zig-zag "
        f"ones, {example_bytes['v2']} in v2."
    )
    return ClaimsTable(name="kip931", source="KIP-931, Public Interfaces", rows=tuple(rows), remarks=(remark, unsigned))


def _share_saved(records: Shapes) -> float:
    """Share of all bytes, payload too, that v3 saves over v2 with all records in one batch."""
    n = len(records)
    v2, v3 = (int(FORMATS[name].size(records, batch_size=n).sum()) for name in ("v2", "v3"))
    return (v2 - v3) / v2


def _numbered(first_offset: int, count: int) -> Records:
    """A few small records whose offsets can be told apart."""
    values = [b"value %d" % i for i in range(count)]
    return Records.from_lists(values, offsets=list(range(first_offset, first_offset + count)))


def kip31() -> ClaimsTable:
    """KIP-31: relative offsets in compressed sets, read off three messages with the offsets 1000 to 1002."""
    wrapper = _compressed_set("v1", 1000)
    wrapper_offset = int.from_bytes(wrapper[:8], "big")
    inner = _entry_offsets(_unwrapped(wrapper))
    moved = {name: _changed_bytes(name) for name in ("v0", "v1")}
    overhead = encoded_overhead_bytes("v1", 1, step_ms=1)
    rows = (
        _claim(
            "inner messages carry relative offsets",
            "0, 1, 2",
            ", ".join(map(str, inner)),
            holds=inner == [0, 1, 2],
            else_why="the inner offsets count from somewhere else",
            values={f"inner_{i}": offset for i, offset in enumerate(inner)},
        ),
        _claim(
            "offset of the wrapper (Proposed Changes)",
            "that of the last inner message",
            f"{wrapper_offset}",
            holds=wrapper_offset == 1002,
            else_why="another message's offset is stored",
            values={"v1": wrapper_offset},
        ),
        _claim(
            "offset of the wrapper (Public Interfaces)",
            "base offset",
            f"{wrapper_offset}, first is 1000",
            holds=wrapper_offset == 1000,
            else_why="the interface section calls it the base offset; stored is the last inner message's",
            values={"v1": wrapper_offset},
        ),
        _claim(
            "to assign offsets the broker rewrites the wrapper's offset only",
            "no other byte",
            f"{moved['v1']} other bytes (v0: {moved['v0']})",
            holds=moved["v1"] == 0,
            else_why="bytes beyond the offset depend on it",
            values=moved,
        ),
        _claim(
            "overhead of a message (layout with an 8-byte timestamp)",
            "34 bytes",
            f"{overhead} bytes",
            holds=overhead == 34,
            else_why="v1 writes something else",
            values={"v1": overhead},
        ),
    )
    return ClaimsTable(name="kip31", source="KIP-31, Public Interfaces and Proposed Changes", rows=rows)


def _compressed_set(name: str, first_offset: int) -> bytes:
    return bytes(FORMATS[name].encode(_numbered(first_offset, 3), codec="gzip").data)


def _unwrapped(wrapper: bytes) -> bytes:
    """The inner message set of a v1 wrapper, whose key is null: its value starts after the fixed fields."""
    inner: bytes = CODECS["gzip"].decompress(wrapper[LEGACY_FIXED_BYTES[1] :], 1 << 20)
    return inner


def _entry_offsets(entries: bytes) -> list[int]:
    """The offset field of each entry of an uncompressed message set (offset i64, size i32, message)."""
    found, at = [], 0
    while at < len(entries):
        found.append(int.from_bytes(entries[at : at + 8], "big"))
        at += 12 + int.from_bytes(entries[at + 8 : at + 12], "big")
    return found


def _changed_bytes(name: str) -> int:
    """Bytes after the offset field in which a compressed set at offset 1000 differs from one at 0."""
    a, b = (_compressed_set(name, first)[8:] for first in (0, 1000))
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


def enriched() -> ClaimsTable:
    """The text "Kafka Enriched Message Metadata": what it says of the old format, and its own layout in bytes."""
    one = _numbered(7, 1)
    v0 = FORMATS["v0"]
    first = int.from_bytes(v0.encode(one).data[:8].tobytes(), "big")
    attributes = position(V0_MESSAGE, "attributes")
    codecs = [int(v0.encode(one, codec=codec).data[attributes]) for codec in v0.capabilities.codecs]
    old, shipped, new, tagged = (overhead_bytes(name, one.shapes) for name in ("v0", "v1", "enriched", "enriched-ms"))
    a_second = Records.from_lists([b""] * 1_000, timestamps_ms=[KIP_931_WRITTEN_MS + i for i in range(1_000)])
    kept = {
        name: len(np.unique(FORMATS[name].decode(FORMATS[name].encode(a_second, lossy=True)).records.timestamps_ms))
        for name in ("enriched", "enriched-ms")
    }
    wrapper = _compressed_set("enriched", 1000)
    wrapper_offset = int.from_bytes(wrapper[:8], "big")
    tags = int.from_bytes(wrapper[position(ENRICHED_MESSAGE, "tags_length") :][:4], "big")
    inner = _entry_offsets(CODECS["gzip"].decompress(wrapper[ENRICHED_MESSAGE.itemsize + tags + 8 :], 1 << 20))
    moved = {name: _changed_bytes(name) for name in ("v0", "enriched")}
    rows = (
        _claim(
            "an entry starts with",
            "MessageSize, then Offset",
            "Offset, then MessageSize" if first == 7 else "MessageSize, then Offset",
            holds=first != 7,
            else_why="the offset (int64) comes first on the wire and on disk, the size after it",
            values={"first_8_bytes": first},
        ),
        _claim(
            "the lowest 2 attribute bits hold the codec (current format)",
            "at most 3",
            f"at most {max(codecs)}",
            holds=max(codecs) <= 3,
            else_why="a codec's number takes more bits",
            values={"most": max(codecs)},
        ),
        _claim(
            "metadata grows in the best case",
            f"by 8 bytes, to {old + 8}",
            f"by {new - old} bytes, to {new}",
            holds=new == old + 8,
            else_why="a message without tags costs something else",
            remark=f"v1 as shipped takes as many ({shipped}), and its 8 bytes are a millisecond timestamp"
            if shipped == new
            else f"v1 as shipped takes {shipped}",
            values={"v0": old, "v1": shipped, "enriched": new},
        ),
        _claim(
            "offset of a compressed set",
            "that of its first message",
            f"{wrapper_offset}, first is 1000",
            holds=wrapper_offset == 1000,
            else_why="another message's offset is stored",
            remark="v1 as shipped stores the last one's",
            values={"enriched": wrapper_offset},
        ),
        _claim(
            "inner messages carry offsets relative to it",
            "0, 1, 2",
            ", ".join(map(str, inner)),
            holds=inner == [0, 1, 2],
            else_why="the inner offsets count from somewhere else",
            values={f"inner_{i}": offset for i, offset in enumerate(inner)},
        ),
        _claim(
            "to assign offsets the broker sets the set's offset only",
            "no other byte",
            f"{moved['enriched']} other bytes (v0: {moved['v0']})",
            holds=moved["enriched"] == 0,
            else_why="bytes beyond the offset depend on it",
            remark="nothing is decompressed, as the text says, if nobody checks what is inside; v1 and v2 brokers do",
            values=moved,
        ),
    )
    seconds = (
        "What the text makes no promise of, its int32 timestamp of Unix seconds: of 1,000 times within a second it "
        f"keeps {kept['enriched']}, and it ends in 2038; tag 0 keeps {kept['enriched-ms']:,} for {tagged - new} bytes "
        f"a message more, {tagged} in all."
    )
    unknown = (
        "An unknown tag is to be ignored, but a tag has no size of its own: a reader can only skip all tags that "
        f"follow, known ones too. Those of a compressed set take {tags} bytes here, two of them under ids of ours, for "
        "the text gives none."
    )
    return ClaimsTable(name="enriched", source="Kafka Enriched Message Metadata", rows=rows, remarks=(seconds, unknown))


CLAIMS: Mapping[str, Callable[[], ClaimsTable]] = MappingProxyType(
    {"kip98": kip98, "kip931": kip931, "kip31": kip31, "enriched": enriched}
)


def table(name: str) -> ClaimsTable:
    """The checked figures of one document. Raises InvalidConfig for a name that is not in CLAIMS."""
    if name not in CLAIMS:
        raise InvalidConfig(f"table {name!r}: no such table; there are {', '.join(CLAIMS)}")
    return CLAIMS[name]()
