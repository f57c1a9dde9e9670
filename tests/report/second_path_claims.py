"""Compute the real bytes of the proposals' claims a second time: by arithmetic on the layouts of docs/formats.md.

Each cell is the text of a claims table. Records of KIP-98's example have 100-byte keys and 1,024-byte values.
"""

import zlib
from datetime import UTC, datetime
from typing import Final

KIP98_HEADER: Final = 8 + 4 + 4 + 1 + 2 + 4 + 8 + 8 + 8 + 2 + 4
V2_HEADER: Final = 8 + 4 + 4 + 1 + 4 + 2 + 4 + 8 + 8 + 8 + 2 + 4 + 4
V3_FIXED, V3_COUNT = 8 + 4 + 4 + 1 + 4 + 2 + 8 + 2 + 4, 4
V0_MESSAGE: Final = 8 + 4 + 4 + 1 + 1 + 4 + 4
V1_MESSAGE: Final = V0_MESSAGE + 8
ENRICHED_MESSAGE: Final = V0_MESSAGE + 4 + 4
KEY, VALUE = 100, 1024
STEPS_MS: Final = (1, 64)
REAL, HOLDS = "real bytes", "holds"
PUBLISHED_BATCHES: Final = {1: 60, 3: 74, 10: 123, 50: 403, 100: 745}  # KIP-98: records -> overhead of a batch
PUBLISHED_SET, PUBLISHED_ADDED, PUBLISHED_RANGE = 53, 7, (6, 25)
Words = dict[tuple[str, ...], dict[str, float | str]]


def unsigned(value: int) -> int:
    """Return the bytes of an unsigned varint: seven bits each."""
    return max(1, -(-value.bit_length() // 7))


def zigzag(value: int) -> int:
    """Return the bytes of a varint whose lowest bit is the sign."""
    return unsigned(2 * value if value >= 0 else -2 * value - 1)


def largest(width: int) -> int:
    """Return the largest value of a zig-zag varint of `width` bytes."""
    return max(ones for ones in ((1 << bits) - 1 for bits in range(7 * width)) if zigzag(ones) <= width)


def of_kip98(at: int, step_ms: int) -> int:
    fields = 1 + zigzag(at * step_ms) + unsigned(at) + unsigned(KEY)
    return unsigned(fields + KEY + VALUE) + fields


def of_v2(at: int, step_ms: int) -> int:
    fields = 1 + zigzag(at * step_ms) + zigzag(at) + zigzag(KEY) + zigzag(VALUE) + zigzag(0)
    return zigzag(fields + KEY + VALUE) + fields


def words(values: list[int]) -> str:
    """Return the range of numbers as text."""
    return " to ".join(dict.fromkeys(f"{each:g}" for each in (min(values), max(values))))


def kip98() -> Words:
    found: Words = {}
    for count in (1, 3, 10, 50, 100):
        found[(f"old format, overhead of {count} message{'s'[: count - 1]}",)] = {
            REAL: str(V1_MESSAGE * count),
            HOLDS: _yes(V1_MESSAGE == 34),
        }
        sizes = [
            [header + sum(size(at, step_ms) for at in range(count)) for step_ms in STEPS_MS]
            for header, size in ((KIP98_HEADER, of_kip98), (V2_HEADER, of_v2))
        ]
        found[(f"new format, overhead of a batch of {count}",)] = _both(sizes, PUBLISHED_BATCHES[count])
    added = [[size(at, step_ms) for step_ms in STEPS_MS for at in range(1, 100)] for size in (of_kip98, of_v2)]
    narrow, wide, most_ms, most = 0, 2**28, zigzag(2**63 - 1), 2**31 - 1
    least_98 = 1 + 1 + zigzag(narrow) + unsigned(narrow)  # a null key has no length
    most_98 = unsigned(2 * wide) + 1 + most_ms + unsigned(most) + unsigned(wide)
    least_v2 = 1 + 1 + 3 * zigzag(narrow) + zigzag(-1) + zigzag(narrow)
    most_v2 = zigzag(2 * wide) + 1 + most_ms + zigzag(most) + 2 * zigzag(wide) + zigzag(0)
    found[("new format, overhead of the message set",)] = _both([[KIP98_HEADER], [V2_HEADER]], PUBLISHED_SET)
    found[("new format, each additional message of the example",)] = _both(added, PUBLISHED_ADDED)
    found[("new format, per-message overhead ranges",)] = {
        **_both([[least_98, most_98], [least_v2, most_v2]], 0),
        HOLDS: _yes((least_98, most_98) == PUBLISHED_RANGE),
    }
    return found


def _both(sizes: list[list[int]], published: int) -> dict[str, float | str]:
    real, shipped = sizes
    return {
        REAL: words(real),
        "v2, not counted": words(shipped),
        HOLDS: _yes(min(real) <= published <= max(real)),
    }


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def kip931() -> Words:
    written, later = (int(datetime(year, 5, 15, tzinfo=UTC).timestamp()) * 1000 for year in (2023, 2033))
    span_ms, record = 16_000, [of_v2(at, step_ms) for step_ms in STEPS_MS for at in range(1, 100)]
    example, lone = (
        V2_HEADER - V3_FIXED - zigzag(last) - zigzag(written) - zigzag(ms) - V3_COUNT
        for last, ms in ((99, span_ms), (0, 0))
    )
    share, of_lone = (f"{100 * saved / V2_HEADER:.0f} %" for saved in (example, lone))
    of_record = words([round(100 / each) for each in record])
    found = {  # claim -> published and real
        "base timestamp in 2023, and ten years later": (
            "6 and 6 bytes",
            f"{zigzag(written)} and {zigzag(later)} bytes",
        ),
        "biggest value of a 2-byte varint": ("16383", str(largest(2))),
        "biggest value of a 3-byte varint": ("2097151", str(largest(3))),
        "max timestamp delta of a batch that spans 16 seconds": ("2 bytes", f"{zigzag(span_ms)} bytes"),
        "original batch overhead": ("53 bytes", f"{V2_HEADER} bytes"),
        "record count in the batch header": ("0 bytes", f"{V3_COUNT} bytes"),
        "saved on a batch header (16 s, two-byte offset delta)": ("10 bytes", f"{example} bytes"),
        "the same as a share of the batch overhead": ("18 %", f"{share} (one record per batch: {of_lone})"),
        "saved on a message of KIP-98's example": ("14 %", f"{of_record} % (1 byte of {words(record)})"),
    }
    return {
        (claim,): {REAL: real, HOLDS: _yes(real.startswith(published))} for claim, (published, real) in found.items()
    }


def kip31() -> Words:
    found = {  # claim -> whether it holds, and real bytes
        "inner messages carry relative offsets": (True, "0, 1, 2"),
        "offset of the wrapper (Proposed Changes)": (True, "1002"),  # as published: of the last inner message
        "offset of the wrapper (Public Interfaces)": (False, "1002, first is 1000"),  # published: the base offset
        "to assign offsets the broker rewrites the wrapper's offset only": (
            True,
            f"0 other bytes (v0: {_moved_in_v0()})",
        ),
        "overhead of a message (layout with an 8-byte timestamp)": (V1_MESSAGE == 34, f"{V1_MESSAGE} bytes"),
    }
    return {(claim,): {REAL: real, HOLDS: _yes(holds)} for claim, (holds, real) in found.items()}


def enriched() -> Words:
    added = ENRICHED_MESSAGE - V0_MESSAGE
    found = {
        "an entry starts with": (False, "Offset, then MessageSize"),  # published: the other way round
        "the lowest 2 attribute bits hold the codec (current format)": (True, "at most 3"),
        "metadata grows in the best case": (
            (added, ENRICHED_MESSAGE) == (8, 34),
            f"by {added} bytes, to {ENRICHED_MESSAGE}",
        ),
        "offset of a compressed set": (True, "1000, first is 1000"),
        "inner messages carry offsets relative to it": (True, "0, 1, 2"),
        "to assign offsets the broker sets the set's offset only": (True, f"0 other bytes (v0: {_moved_in_v0()})"),
    }
    return {(claim,): {REAL: real, HOLDS: _yes(holds)} for claim, (holds, real) in found.items()}


def _moved_in_v0() -> int:
    """Count the bytes of a gzip set of three messages that change with its first offset, but for the offset itself."""
    one, other = (
        _message(b"".join(_message(b"value %d" % i, first + i) for i in range(3)), None) for first in (0, 1000)
    )
    return sum(a != b for a, b in zip(one, other, strict=False)) + abs(len(one) - len(other))


def _message(value: bytes, offset: int | None) -> bytes:
    """Return a message of v0 with a null key; without an offset, a wrapper of this set, from its size on."""
    if offset is None:
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        value = packer.compress(value) + packer.flush()
    body = bytes([0, offset is None]) + b"\xff" * 4 + len(value).to_bytes(4, "big") + value
    entry = (len(body) + 4).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body
    return entry if offset is None else offset.to_bytes(8, "big") + entry
