"""Example records of the proposals, and their bytes.

KIP-98 and KIP-931 have the same example. Its overhead is all bytes except keys and values. KIP-31 and the enriched
format are checked with compressed sets of three small messages, read field by field.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from kfbench.claims.claim import Claim
from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.records import Records, Shapes

VALUE_BYTES: Final = 1024  # KIP-98: "a fixed message size of 1K with 100 byte keys"
KEY_BYTES: Final = 100
LARGEST_BATCH: Final = 100
FIRST_OFFSET: Final = 1000  # of a compressed set
LIMIT_BYTES: Final = 1 << 20  # the largest size of a decompressed set
KIP_931_WRITTEN_MS: Final = int(datetime(2023, 5, 15, tzinfo=UTC).timestamp()) * 1000
STEPS_MS: Final = (1, 64)  # "reasonably close timestamps". 1: all deltas take 1 byte; 64: first 1 byte, later 2


class Extremes(NamedTuple):
    """The smallest and the largest number of bytes of a field or record."""

    least: int
    most: int


def steps(count: int, step_ms: int) -> list[int]:
    """Return `count` timestamps from the day on which KIP-931 was written, `step_ms` apart."""
    return [KIP_931_WRITTEN_MS + i * step_ms for i in range(count)]


def shapes(timestamps_ms: list[int], key_bytes: int = KEY_BYTES, value_bytes: int = VALUE_BYTES) -> Shapes:
    """Return records of one key size and one value size, without headers. Their offsets are 0, 1, 2, ..."""
    n = len(timestamps_ms)
    return Shapes(
        timestamps_ms=np.array(timestamps_ms, dtype=np.int64),
        offsets=np.arange(n, dtype=np.int64),
        key_lengths=np.full(n, key_bytes, dtype=np.int32),
        value_lengths=np.full(n, value_bytes, dtype=np.int32),
    )


def encoded_overhead_bytes(name: str, count: int, step_ms: int) -> int:
    """Encode one batch of KIP-98's example records. Return its overhead in bytes."""
    key, value = b"k" * KEY_BYTES, b"v" * VALUE_BYTES
    records = Records.from_lists([value] * count, keys=[key] * count, timestamps_ms=steps(count, step_ms))
    log = FORMATS[name].encode(records, batch_size=count)
    return len(log.data) - records.shapes.payload_bytes


def overhead_bytes(name: str, records: Shapes) -> int:
    """Compute the overhead in bytes of one batch with all records, without encoding it."""
    return int(FORMATS[name].size(records, batch_size=len(records)).sum()) - records.payload_bytes


def batch_header_bytes(name: str) -> int:
    """Return the overhead of a batch without its records, in bytes.

    It is the overhead of a batch of one record, less the overhead that a second, equal record adds.
    """
    one, two = (overhead_bytes(name, shapes(steps(count, 0))) for count in (1, 2))
    return 2 * one - two


@cache
def added_bytes(name: str) -> Extremes:
    """Return the smallest and the largest overhead that one more record adds to a batch of the example, in bytes."""
    added: list[int] = []
    for step_ms in STEPS_MS:
        totals = [overhead_bytes(name, shapes(steps(n, step_ms))) for n in range(1, LARGEST_BATCH + 1)]
        added += [after - before for before, after in pairwise(totals)]
    return Extremes(min(added), max(added))


def record_bytes(name: str) -> Extremes:
    """Return the smallest and the largest overhead of a record without headers, in bytes.

    It is smallest with the narrowest fields, and largest with the widest.
    """
    first = overhead_bytes(name, shapes([0], key_bytes=-1, value_bytes=0))
    narrow = shapes([0, 0], key_bytes=-1, value_bytes=0)
    wide = Shapes(
        timestamps_ms=np.array([0, 2**63 - 1]),
        offsets=np.array([0, 2**31 - 1]),
        key_lengths=np.array([-1, 2**28]),
        value_lengths=np.array([0, 2**28]),
    )
    return Extremes(overhead_bytes(name, narrow) - first, overhead_bytes(name, wide) - first)


def numbered_records(first_offset: int, count: int) -> Records:
    """Return `count` small records whose offsets begin at `first_offset` and rise by one."""
    values = [b"value %d" % i for i in range(count)]
    return Records.from_lists(values, offsets=list(range(first_offset, first_offset + count)))


def compressed_set(name: str, first_offset: int = FIRST_OFFSET) -> bytes:
    """Return three messages as one wrapper message, compressed with gzip."""
    return bytes(FORMATS[name].encode(numbered_records(first_offset, 3), codec="gzip").data)


def stored_offset(entry: bytes) -> int:
    """Return the integer in the first 8 bytes of an entry, where its offset is stored."""
    return int.from_bytes(entry[:8], "big")


def relative_offsets(claim: str, compressed: Callable[[], bytes]) -> Claim:
    """Return the claim that the messages of a compressed set carry the offsets 0, 1 and 2.

    An entry of the set is: offset i64, size i32, message.
    """

    def fields() -> dict[str, int]:
        entries: bytes = CODECS["gzip"].decompress(compressed(), LIMIT_BYTES)
        offsets, at = [], 0
        while at < len(entries):
            offsets.append(stored_offset(entries[at:]))
            at += 12 + int.from_bytes(entries[at + 8 : at + 12], "big")
        return {f"inner_{i}": offset for i, offset in enumerate(offsets)}

    return Claim(
        claim=claim,
        published="0, 1, 2",
        fields=fields,
        real="{inner_0}, {inner_1}, {inner_2}",
        because="the inner offsets count from somewhere else",
    )


def only_offset_changes(claim: str, name: str, remark: str = "") -> Claim:
    """Return the claim that only the offset field of a set depends on its first offset.

    A set at offset 1,000 is compared with one at offset 0.
    """

    def changed_bytes(name: str) -> int:
        a, b = (compressed_set(name, first)[8:] for first in (0, FIRST_OFFSET))
        return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))

    return Claim(
        claim=claim,
        published="no other byte",
        fields=lambda: {each: changed_bytes(each) for each in ("v0", name)},
        real=f"{{{name}}} other bytes (v0: {{v0}})",
        holds=lambda values: values[name] == 0,
        because="bytes beyond the offset depend on it",
        remark=remark,
    )
