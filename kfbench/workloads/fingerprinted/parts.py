"""The distributions of a topic's records, as they are stored in a fingerprint. No bucket has fewer than k members.

k is `Distributions.least_members`. Shares and entropies have two digits. No number counts fewer than k records, except
totals.
"""

from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta, Struct

LEAST_MEMBERS: Final = 10
SMALLEST_LEAST_MEMBERS: Final = 2
MOST_CLASSES: Final = 300
MOST_BUCKETS: Final = 600
POSITIONS: Final = 64
HEADER_POSITIONS: Final = 16
HEADER_VALUE_POSITIONS: Final = 32

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Sum = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Bits = Annotated[float, Meta(ge=0, le=8)]
Members = Annotated[int, Meta(ge=SMALLEST_LEAST_MEMBERS, le=1_000_000)]


class Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of the parts of the file: unknown names are refused."""


class Bucket(Part, frozen=True, kw_only=True):
    """Values from `least` to `most`: how many there are, and their sum."""

    least: Sum
    most: Sum
    members: Count
    sum: Sum


class Histogram(Part, frozen=True, kw_only=True):
    """A distribution of numbers. Without buckets, there are fewer than k members.

    members, sum: totals of all buckets. Sums of times and of gaps of offsets are rounded to three digits.
    """

    members: Count
    sum: Sum
    buckets: Annotated[tuple[Bucket, ...], Meta(max_length=MOST_BUCKETS)]


class RecordClass(Part, frozen=True, kw_only=True):
    """Records with keys, values and headers of about the same lengths. All fields but `records` are sums over them."""

    records: Count
    key_bytes: Count
    value_bytes: Count
    headers: Count
    header_key_bytes: Count
    header_value_bytes: Count
    null_keys: Count
    null_values: Count
    null_header_values: Count


class BytePosition(Part, frozen=True, kw_only=True):
    """The bytes at one position of keys or values, in a sample of records.

    entropy_bits: the order-0 entropy of the bytes. same: the share of records with the same byte as the record before.
    """

    entropy_bits: Bits
    same: Share


class HeaderPosition(Part, frozen=True, kw_only=True):
    """The n-th header of records.

    key_bytes, value_bytes: mean lengths. same_key, same_value: the shares of records whose n-th header has the key, or
    the value, of the record before. values: the bytes of its values by position, from the first one on.
    """

    key_bytes: Annotated[float, Meta(ge=0)]
    value_bytes: Annotated[float, Meta(ge=0)]
    same_key: Share
    same_value: Share
    values: Annotated[tuple[BytePosition, ...], Meta(max_length=HEADER_VALUE_POSITIONS)]


class Distributions(Part, frozen=True, kw_only=True):
    """Distributions of the records that clients sent.

    Args:
        least_members: k, the least number of members of a bucket.
        records: the number of records.
        classes: the joint distribution of the lengths of keys, values and headers.
        records_per_batch: records per batch.
        time_steps_ms: differences of timestamps of successive records in a batch.
        batch_time_steps_ms: the same for the first record of a batch and the record before.
        offset_gaps, batch_offset_gaps: offsets that are missing between such records.
        untimed_records: records without a usable timestamp.
        records_per_producer: records per producer id.
        producerless_records: records without a producer id.
        records_per_key: how often a key appears, scaled up from a sample of keys.
        key_share: the share of keys in this sample.
        same_keys: the share of records with the key of the record before.
        keys, values: the bytes by position, from the first one on.
        headers: the headers by position, from the first one on.
    """

    least_members: Members
    records: Count
    classes: Annotated[tuple[RecordClass, ...], Meta(min_length=1, max_length=MOST_CLASSES)]
    records_per_batch: Histogram
    time_steps_ms: Histogram
    batch_time_steps_ms: Histogram
    offset_gaps: Histogram
    batch_offset_gaps: Histogram
    untimed_records: Count
    records_per_producer: Histogram
    producerless_records: Count
    records_per_key: Histogram
    key_share: Annotated[float, Meta(gt=0, le=1)]
    same_keys: Share
    keys: Annotated[tuple[BytePosition, ...], Meta(max_length=POSITIONS)]
    values: Annotated[tuple[BytePosition, ...], Meta(max_length=POSITIONS)]
    headers: Annotated[tuple[HeaderPosition, ...], Meta(max_length=HEADER_POSITIONS)]


HISTOGRAMS: Final = (
    "records_per_batch", "time_steps_ms", "batch_time_steps_ms", "offset_gaps", "batch_offset_gaps",
    "records_per_producer", "records_per_key",
)  # fmt: skip


def broken(found: Distributions) -> Iterator[str]:
    """Yield what the types allow and `fingerprint` never writes."""
    k = found.least_members
    if sum(each.records for each in found.classes) != found.records:
        yield "classes: their records do not add up to records"
    for i, each in enumerate(found.classes):
        if each.records < k:
            yield f"classes[{i}]: {each.records} records, fewer than least_members ({k})"
        if max(each.null_keys, each.null_values) > each.records or each.null_header_values > each.headers:
            yield f"classes[{i}]: more nulls than items"
        if each.headers == 0 and each.header_key_bytes + each.header_value_bytes:
            yield f"classes[{i}]: bytes of headers without headers"
    for name in HISTOGRAMS:
        yield from (f"{name}: {problem}" for problem in _broken_in(getattr(found, name), k))
    if max(found.untimed_records, found.producerless_records) > found.records:
        yield "untimed_records, producerless_records: more than records"


def _broken_in(found: Histogram, k: int) -> Iterator[str]:
    for i, each in enumerate(found.buckets):
        if each.members < k:
            yield f"buckets[{i}]: {each.members} members, fewer than least_members ({k})"
        if each.least > each.most or (i and each.least <= found.buckets[i - 1].most):
            yield f"buckets[{i}]: its range is not after the one before"
    if found.buckets and sum(each.members for each in found.buckets) != found.members:
        yield "the members of its buckets do not add up"
    if not found.buckets and found.members >= k:
        yield "has members and no buckets"
