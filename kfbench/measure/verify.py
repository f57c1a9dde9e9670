"""Verify the output of a format before it is counted or timed. A failure is stored as an error instead of a number."""

from binascii import crc32
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import crc32c
import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import as_bytes
from kfbench.batches import DecodedMetadata, DecodedTimes, EncodedLog
from kfbench.errors import KfbenchError
from kfbench.formats import BY_MAGIC, Entries, Format
from kfbench.measure.encode_input import EncodeInput
from kfbench.records import Records, Shapes

WITNESSES: Final[dict[str, tuple[str, Callable[[memoryview], int]]]] = {
    "CRC-32C": ("the crc32c package", crc32c.crc32c),
    "CRC-32": ("binascii", crc32),
}


class Unverified(KfbenchError):
    """A format broke a promise, for example encode and decode gave other records. So its output is not measured."""


@dataclass(frozen=True, kw_only=True)
class CheckOutcome:
    """The outcome of one check of a golden vector or of a measurement.

    Args:
        check: the name of the check.
        format: the name of the format, or the names of several formats.
        subject: the name of the golden vector or of the measured cell.
        problem: a description of the difference and its place; empty if the check passed.
    """

    check: str
    format: str
    subject: str
    problem: str = ""

    @property
    def line(self) -> str:
        """The outcome as one line of text, for a failed check."""
        problem = self.problem.removeprefix(f"{self.format}: ")
        return f"{self.subject}: {self.format}: {self.check}: {problem}"


def wrong_checksum(data: Any, fmt: Format | None = None) -> str | None:
    """Return a description of the first entry with a wrong checksum; None if all checksums are right.

    Code from other projects computes them. Readers and writers of kfbench share one checksum kernel, so they would
    agree on a wrong checksum.

    An entry is a batch. In v0, v1 and enriched, an entry is a message, which may be a wrapper around other messages. An
    incomplete entry at the end of the log is not checked. Unknown magics and formats without a checksum are not
    checked, either.

    Args:
        data: the log: any object with a buffer.
        fmt: the format of all entries; None: the magic byte of each entry selects its format (`BY_MAGIC`).
    """
    data = as_bytes("data", data)
    entries = Entries.of(data)
    starts, ends = entries.positions[:-1].tolist(), entries.positions[1:].tolist()
    view = memoryview(data)
    for number, (start, end, magic) in enumerate(zip(starts, ends, entries.magics.tolist(), strict=True)):
        found = fmt or BY_MAGIC.get(magic)
        if found is None or found.checksum is None:
            continue
        algorithm, position, covers_from = found.checksum
        at = start + position
        stored = int.from_bytes(view[at : at + 4], "big")
        name, compute = WITNESSES[algorithm]
        if (computed := compute(view[start + covers_from : end])) != stored:
            return (
                f"entry {number} at byte {start}: {algorithm} is {stored:#010x}, and {computed:#010x} by a second "
                f"witness, {name}"
            )
    return None


def verify_size(fmt: Format, source: EncodeInput, log: EncodedLog) -> None:
    """Compare the size that `Format.size` computes with the encoded size, batch by batch.

    The log must be uncompressed. Raises Unverified if any batch differs; the message names the first one.
    """
    sizes = fmt.size(source.records, source.bounds, source.batch_fields)
    written = np.diff(log.positions)
    if (batch := _first(sizes != written)) is not None:
        raise Unverified(
            f"{fmt.name}: size says {sizes[batch]} bytes for batch {batch} at byte {log.positions[batch]}, "
            f"encode wrote {written[batch]}"
        )


def verify_breakdown(fmt: Format, parts: Mapping[str, int], records: Records, log: EncodedLog) -> None:
    """Raise Unverified unless the bytes per field add up to the size of the log.

    No number may be negative. The fields "key" and "value" must have the size of all keys and of all values.

    Args:
        parts: the number of bytes per field, from `Format.breakdown`.
        records: the records of the log.
        log: the log, uncompressed.
    """
    if (total := sum(parts.values())) != log.positions[-1]:
        raise Unverified(f"{fmt.name}: breakdown adds up to {total} bytes, encode wrote {log.positions[-1]}")
    if negative := [name for name, part in parts.items() if part < 0]:
        raise Unverified(f"{fmt.name}: breakdown says {parts[negative[0]]} bytes for {negative[0]}")
    for name, payload in (("key", records.shapes.key_bytes), ("value", records.shapes.value_bytes)):
        if parts[name] != payload:
            raise Unverified(f"{fmt.name}: breakdown says {parts[name]} bytes for {name}, the records hold {payload}")


def verify_metadata(fmt: Format, metadata: DecodedMetadata | DecodedTimes, shapes: Shapes) -> None:
    """Compare metadata that was read without the payload with the decoded records.

    Offsets, timestamps and lengths must be equal, otherwise Unverified is raised. DecodedTimes has no lengths to
    compare. shapes: the shapes of the decoded records.
    """
    lengths = () if isinstance(metadata, DecodedTimes) else ("key_lengths", "value_lengths")
    for name in ("offsets", "timestamps_ms", *lengths):
        if not np.array_equal(getattr(metadata, name), getattr(shapes, name)):
            raise Unverified(f"{fmt.name}: {name} read from the prefix differ from the decoded ones")


def verify_records(fmt: Format, source: EncodeInput, log: EncodedLog) -> None:
    """Raise Unverified unless `log` decodes to the records and header fields that were encoded.

    Fields that the format cannot carry are not compared. Another project's code must compute the same checksums.
    """
    if wrong := wrong_checksum(log.data, fmt):
        raise Unverified(f"{fmt.name}: {wrong}")
    back = fmt.decode(log.data, dictionaries=source.dictionaries)
    if back.trailing_bytes:
        raise Unverified(f"{fmt.name}: {back.trailing_bytes} bytes are left over after decoding")
    expected, found = source.records_in(fmt), back.records
    if len(found) != len(expected):
        raise Unverified(f"{fmt.name}: {len(expected)} records encoded, {len(found)} decoded")
    names = Shapes.__dataclass_fields__
    for name, one, other in zip(names, expected.shapes.columns, found.shapes.columns, strict=True):
        _verify_column(fmt.name, name, one, other)
    if expected != found:
        raise Unverified(f"{fmt.name}: payload differs after encode and decode{_payload_difference(expected, found)}")
    if fmt.magic >= 2:  # v2 and later store the producer's timestamp and the append time
        _verify_column(fmt.name, "create_timestamps_ms", source.records.timestamps_ms, back.create_timestamps_ms)
    if len(back) == source.batches:  # plain messages of v0 and v1 have no batches
        rows = source.batch_fields.over(source.batches)
        for name in sorted(source.batch_fields.set_fields & fmt.capabilities.batch_fields & _READ_AS_WRITTEN):
            if (batch := _first(rows[name] != back.batch_rows[name])) is not None:
                raise Unverified(
                    f"{fmt.name}: {name} differs after encode and decode: batch {batch} has "
                    f"{np.broadcast_to(rows[name], len(back))[batch]}, {back.batch_rows[name][batch]} was read"
                )


def verify_log(what: str, fmt: Format, data: Any, expected: Records) -> None:
    """Raise Unverified unless the bytes are a complete log of exactly these records, with their offsets.

    Another project's code must compute the same checksums. what: the first words of each error message.
    """
    if wrong := wrong_checksum(data, fmt):
        raise Unverified(f"{what}: {wrong}")
    log = fmt.decode(data)
    found = log.records
    if log.trailing_bytes or len(found) != len(expected):
        raise Unverified(
            f"{what}: {len(found)} records came out, not {len(expected)}, and {log.trailing_bytes} bytes of a batch"
        )
    for name in ("offsets", "timestamps_ms"):
        _verify_column(what, name, getattr(expected.shapes, name), getattr(found.shapes, name))
    if found != expected:
        raise Unverified(f"{what}: keys, values or headers differ{_payload_difference(expected, found)}")


# Header fields that decode must return as the caller set them. No encoder computes them.
_READ_AS_WRITTEN: Final = {
    "producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control", "partition_leader_epoch",
    "delete_horizon_ms", "timestamp_type",
}  # fmt: skip


def _first(differs: NDArray[np.bool_]) -> int | None:
    return int(np.argmax(differs)) if differs.any() else None


def _verify_column(what: str, name: str, one: NDArray[Any], other: NDArray[Any]) -> None:
    if len(one) != len(other):
        raise Unverified(f"{what}: {name} differ: {len(one)} items, {len(other)} were read")
    if (at := _first(one != other)) is not None:
        raise Unverified(f"{what}: {name} differ: item {at} was {one[at]}, {other[at]} was read")


def _payload_difference(expected: Records, found: Records) -> str:
    for i in range(len(expected)):
        for part, one, other in (
            ("key", expected.key(i), found.key(i)),
            ("value", expected.value(i), found.value(i)),
            ("headers", expected.headers(i), found.headers(i)),
        ):
            if one != other:
                return f": the {part} of record {i}"
    return ""
