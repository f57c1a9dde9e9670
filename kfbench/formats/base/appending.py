"""The steps of a broker's append that depend on the format. A broker validates batches and sets fields in place.

The class `Appending` is for batches with a header of fixed size, as in v2. Its subclasses override steps for other
layouts.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import FIELDS, NO_FIELDS, BatchFields, EncodedLog
from kfbench.formats.base.reading import Reading
from kfbench.kernels.broker import assignment, request_checks
from kfbench.kernels.formats import batch_description
from kfbench.layouts import CONTROL_BIT, KIP98_HEADER, TRANSACTIONAL_BIT

Flags = NDArray[np.bool_]
NO_RULE_FIELDS = np.zeros(0, np.int64)
PRODUCER_FIELDS = ("producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control")


class BrokerFields(NamedTuple):
    """The fields that a broker sets: offsets, leader epoch and timestamps in ms since 1970.

    bases: int64[batches], the first offset of each batch. ends: int64[batches], the last offset of each batch plus 1.
    is_append: True if the topic uses log append time. now_ms: the time on the broker's clock. latest_ms:
    int64[batches], the largest timestamp of each batch, at least -1.
    """

    bases: Int64
    ends: Int64
    epoch: int
    is_append: bool
    now_ms: int
    latest_ms: Int64

    @property
    def times(self) -> tuple[bool, int, Int64]:
        """The timestamps, in the order in which kernels take them."""
        return self.is_append, self.now_ms, self.latest_ms

    def take(self, batches: Int64) -> Self:
        return self._replace(bases=self.bases[batches], ends=self.ends[batches], latest_ms=self.latest_ms[batches])


class Assignment(NamedTuple):
    """The work that a broker did to set fields in place.

    written_bytes: number of bytes that were written. checksum_bytes: number of bytes that were read to compute
    checksums.
    """

    written_bytes: int
    checksum_bytes: int


@dataclass(frozen=True, kw_only=True)
class Appending:
    """The append steps for batches with a header of fixed size. Batch b is data[positions[b]:positions[b + 1]].

    kind: the number of the layout in `kernels.broker`. has_absolute_offsets: True if offsets inside a compressed set
    are absolute, so that a broker has to decompress and write the set again. is_only_path: True if append is the only
    broker path of the format. It then sets offsets in place, and refuses every batch that would have to be rebuilt.
    """

    kind: int
    has_absolute_offsets: bool = False
    is_only_path: bool = False

    def producer_fields(self, read: Reading) -> BatchFields:
        """Return the header fields that producers set. A broker that writes a batch again copies these fields."""
        rows = np.zeros(len(read.positions) - 1, FIELDS)
        batch_description.read_fields(read.data, read.positions, self.kind, rows)
        tagged_fields = read.tags() if read.has_tags else None
        return BatchFields(**{name: rows[name] for name in PRODUCER_FIELDS}, tagged_fields=tagged_fields)

    def control_sets(self, read: Reading) -> Flags | None:
        """Return bool[entries], True for entries with control records. None: each batch header has a bit for that."""
        return None

    def rule_fields(self, data: Bytes, positions: Int64) -> Int64:
        """Return int64[5 * batches], the `RuleFields` of each batch, if `kind` is `request_checks.OTHER`."""
        return NO_RULE_FIELDS

    def keeps_times(self, data: Bytes, positions: Int64, latest_ms: Int64) -> Flags | None:
        """Return bool[batches], True for batches whose times a broker need not set; None: it can set those of all.

        latest_ms: int64[batches], the largest timestamp of each batch, at least -1.
        """
        return None

    def misplaced_sets(self, read: Reading) -> Flags | None:
        """Return bool[entries], True for compressed sets whose base offset cannot be set in place; None: all can."""
        return None

    def growth(self, data: Bytes, positions: Int64, fields: BrokerFields) -> Int64 | None:
        """Return int64[batches], the number of bytes by which setting the timestamps makes each batch larger.

        Negative: the batch becomes smaller. None: no batch changes its size.
        """
        return None

    def moved(self, data: Bytes, starts: Int64, stops: Int64, fields: BrokerFields, growth: Int64) -> EncodedLog:
        """Copy the batches data[starts[b]:stops[b]] into a new buffer.

        Add growth[b] bytes of room for the timestamps.
        """
        raise NotImplementedError

    def assign(
        self, target: Bytes, positions: Int64, fields: BrokerFields, chosen: Flags, is_moved: bool = False
    ) -> Assignment:
        """Set offsets, leader epoch, timestamps and checksum of the chosen batches in `target`.

        positions: int64[batches + 1]. chosen: bool[batches]. is_moved: True if `moved` made room in these batches.
        """
        ends, times = fields.ends, fields.times
        done = assignment.assign_batches(target, positions, self.kind, ends, fields.epoch, *times, chosen, is_moved)
        return Assignment(*done)


@dataclass(frozen=True, kw_only=True)
class GrowingAppending(Appending):
    """The append steps of v3. Its maximum timestamp may be a varlong, whose size depends on its value."""

    def growth(self, data: Bytes, positions: Int64, fields: BrokerFields) -> Int64 | None:
        growth = np.empty(len(positions) - 1, np.int64)
        return growth if assignment.measure_room(data, positions, *fields.times, growth) else None

    def moved(self, data: Bytes, starts: Int64, stops: Int64, fields: BrokerFields, growth: Int64) -> EncodedLog:
        out = np.empty(int((stops - starts).sum() + growth.sum()), np.uint8)
        positions = np.empty(len(starts) + 1, np.int64)
        assignment.make_room(data, starts, stops, *fields.times, growth, out, positions)
        return EncodedLog(data=out, positions=positions)


@dataclass(frozen=True, kw_only=True)
class Kip98Appending(Appending):
    """The append steps of kip98. Its batches have no leader epoch and no count."""

    kind: int = request_checks.KIP98

    def producer_fields(self, read: Reading) -> BatchFields:
        header_bytes = read.data[read.positions[:-1, None] + np.arange(KIP98_HEADER.itemsize)]
        headers = header_bytes.view(KIP98_HEADER)[:, 0]
        return BatchFields(
            producer_id=headers["producer_id"],
            producer_epoch=headers["producer_epoch"],
            base_sequence=headers["base_sequence"],
            is_transactional=headers["attributes"] & TRANSACTIONAL_BIT != 0,
            is_control=headers["attributes"] & CONTROL_BIT != 0,
        )


@dataclass(frozen=True, kw_only=True)
class MessageAppending(Appending):
    """The append steps of v0 and v1. Entries are messages.

    Compressed messages lie in an outer message, the wrapper. It has the offset of its last inner message.
    """

    def producer_fields(self, read: Reading) -> BatchFields:
        return NO_FIELDS

    def misplaced_sets(self, read: Reading) -> Flags | None:
        if self.has_absolute_offsets or read.plain_sets is None:
            return None
        # The wrapper has the last inner offset. If inner offsets do not begin at 0, they may exceed a newly set offset.
        source, starts, _ = read.plain_sets
        found: Flags = source[starts[:, None] + np.arange(8)].any(axis=1)
        return found

    def assign(
        self, target: Bytes, positions: Int64, fields: BrokerFields, chosen: Flags, is_moved: bool = False
    ) -> Assignment:
        found = assignment.assign_messages(target, positions, self.kind, fields.ends, *fields.times, chosen)
        return Assignment(*found)


@dataclass(frozen=True, kw_only=True)
class EnrichedAppending(MessageAppending):
    """The append steps of enriched.

    The outer message of a compressed set has the offset of its first inner message. Only the inner messages say whether
    they are control records.
    """

    kind: int = request_checks.ENRICHED

    def producer_fields(self, read: Reading) -> BatchFields:
        return BatchFields(is_control=self.control_sets(read))

    def control_sets(self, read: Reading) -> Flags:
        assert read.plain_sets is not None
        found = np.empty(len(read.bounds) - 1, np.bool_)
        request_checks.find_control(*read.plain_sets, found)
        return found

    def misplaced_sets(self, read: Reading) -> Flags | None:
        return None

    def assign(
        self, target: Bytes, positions: Int64, fields: BrokerFields, chosen: Flags, is_moved: bool = False
    ) -> Assignment:
        bases, is_append, now_ms = fields.bases, fields.is_append, fields.now_ms
        return Assignment(*assignment.assign_enriched(target, positions, bases, is_append, now_ms, chosen))
