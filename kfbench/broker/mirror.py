"""Copying a topic to another cluster (KAFKA-1001): batches handed on as they are, or taken apart and built anew.

A mirror that consumes and produces decompresses every batch, finds each record's partition by its key, fills new
batches and compresses those. It need not where all records of a batch go to one partition:

| source | what a mirror has to do to know |
|---|---|
| kip98 | decompress it: without a count nothing else says whether there are holes |
| partitions are kept (`partitions=1`; MirrorMaker 2), or no key is promised (`keyed=False`) | nothing |
| enriched, tag 34 off | read the header |
| columnar | the same: its attributes say whether any record has a key |
| v3, headers first | decompress the metadata, to see that there is no key |
| any other compressed batch | decompress it |

A mirror reads committed. Control batches end the source cluster's transactions; they are dropped, and so are empty
batches and those of a transaction that an ABORT marker in the log ends. One that no marker here ends counts as
committed: a fetch that reads committed ends before the first that is not decided.

Built anew whatever their keys: batches with log append time, whose readers would see the producers' times again, since
a broker sets that type; and batches (v2 and later, kip98) with holes, which a broker does not take from a producer
(`LogValidator`: "Inconsistent batch offset range").

What is handed on is made what a producer may send:

- A producer counts from 0, and a broker refuses batches of v2 that do not. The base offset of batches and of an
  enriched set stands outside the checksum: 8 bytes. A set of v1 has its last offset there, and no count to reckon that
  from 0: it is told by the last offset of what stands before it. Where there are holes, or the set was not the first
  one behind first_offset, that is wrong, and the destination builds the set anew. It does so with every set of v0, and
  looks at no offset of plain messages; those are left.
- In batches producer, transaction and delete horizon are the source cluster's and go (in place, but the checksum covers
  them: one pass over the batch).
- In enriched sets tag 33 is turned off (one pass again), so that positions stand for offsets and the destination need
  not rewrite the holes that compaction left.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import BATCH, NO_FIELDS, DecodedLog, EncodedLog
from kfbench.broker.batch_headers import NOT_SAID, dialect_of, headers
from kfbench.broker.retention import history_of
from kfbench.broker.source import bytes_of, find
from kfbench.broker.work import Work
from kfbench.codecs import CODEC_NAMES, Allowance
from kfbench.errors import CorruptLog, InvalidConfig
from kfbench.formats import Format
from kfbench.kernels.broker import mirroring
from kfbench.kernels.formats.scan import ENRICHED, KIP98
from kfbench.kernels.wire import frames
from kfbench.kernels.workload import partition
from kfbench.layouts import HEADERS_FIRST_BIT, NO_PRODUCER_ID, UNSET
from kfbench.limits import Limits
from kfbench.log.writing import Kind, codec_bytes, write_batches
from kfbench.records import Records

MESSAGE_MAX_BYTES: Final = 1_048_588  # message.max.bytes
REBUILT: Final = -1  # the partition of a batch that is taken apart
DROPPED: Final = -2


@dataclass(frozen=True, kw_only=True)
class Mirrored:
    """What is produced to the destination: the batches of partition 0, then of 1, and so on.

    data uint8; positions int64[batches + 1]; bounds int64[partitions + 1]: which of them are each partition's.
    handed_on: source batches that went on without being built anew. aborted: source batches that were dropped because
    their transaction was aborted. too_large: new batches above max_bytes, which a
    broker refuses.
    """

    data: Bytes
    positions: Int64
    bounds: Int64
    handed_on: int
    aborted: int
    too_large: int
    work: Work

    @property
    def encoded(self) -> EncodedLog:
        """As one log."""
        return EncodedLog(data=self.data, positions=self.positions, losses=self.work.losses)

    @property
    def partitions(self) -> list[EncodedLog]:
        """As a log each, for `append`; no byte is copied."""
        return [self._partition(int(first), int(end)) for first, end in zip(self.bounds, self.bounds[1:], strict=False)]

    def _partition(self, first: int, end: int) -> EncodedLog:
        positions = self.positions[first : end + 1]
        return EncodedLog(data=self.data[positions[0] : positions[-1]], positions=positions - positions[0])


def mirror(
    log: EncodedLog | Any,
    fmt: Format | str,
    *,
    partitions: int = 1,
    keyed: bool | None = None,
    pass_through: bool = True,
    reset_offsets: bool = True,
    first_offset: int = 0,
    batch_size: int = 100,
    codec: str | None = None,
    level: int | None = None,
    max_bytes: int = MESSAGE_MAX_BYTES,
    limits: Limits | None = None,
) -> Mirrored:
    """One partition of the source, as it is produced to `partitions` at the destination.

    A record with a key goes where Kafka's default partitioner has it, one without to a partition that the number of its
    batch picks. keyed: False: no record has a key; True: any may have one, whatever a flag says; None: found out as the
    table says. pass_through=False: every batch is built anew. reset_offsets: turn tag 33 off. first_offset: where the
    log was read from, no later than its first record, for sets of v1. batch_size (records), codec (None: that of the
    first batch that is built anew) and level: of new batches. Raises CorruptLog, InvalidConfig, IllegalCombination.
    """
    for name, value in (("partitions", partitions), ("batch_size", batch_size)):
        if value < 1:
            raise InvalidConfig(f"{name}: {value} is below 1")
    source = _Source(bytes_of(log), find(fmt), limits)
    rows = source.rows
    sticky = np.arange(len(rows)) % partitions
    goes = np.full(len(rows), REBUILT)  # the partition, if all of the batch goes there
    aborted = source.aborted
    goes[rows["is_control"] | source.is_empty | aborted] = DROPPED
    may_pass = pass_through & ~rows["is_append_time"] & ~source.has_holes & (goes != DROPPED)
    is_kept = partitions == 1 or keyed is False  # wherever the keys of a batch would have it
    if dialect_of(source.fmt) == KIP98:
        settled = may_pass & (rows["last_offset"] == rows["base_offset"]) & is_kept
    elif is_kept:
        settled = may_pass
    elif keyed is None:
        settled = may_pass & (rows["keys"] == 0)
    else:
        settled = np.zeros(len(rows), np.bool_)
    goes[settled] = sticky[settled]
    if partitions > 1 and keyed is None and source.fmt.features & HEADERS_FIRST_BIT:
        looked_at = np.flatnonzero((goes == REBUILT) & may_pass & (rows["codec"] > 0))
        keyless = looked_at[~source.any_key(looked_at)]
        goes[keyless] = sticky[keyless]
    opened = np.flatnonzero(goes == REBUILT)
    decoded = source.open(opened)
    if dialect_of(source.fmt) == ENRICHED:  # only the messages of a set say that they are control messages
        goes[opened[decoded.batch_rows["is_control"]]] = DROPPED
        may_pass &= goes != DROPPED
    if dialect_of(source.fmt) == KIP98:
        span = rows["last_offset"][opened] - rows["base_offset"][opened] + 1
        may_pass[opened] &= np.diff(decoded.bounds) == span
    batch = np.repeat(opened, np.diff(decoded.bounds))  # of each record
    target = sticky[batch]
    if not is_kept:
        by_key = source.partitions_of(decoded.records, partitions)
        target = np.where(by_key == partition.NO_PARTITION, target, by_key)
    if pass_through:
        lowest, highest = _range_of(target, decoded.bounds, sticky[opened])
        one = may_pass[opened] & (lowest == highest)
        goes[opened[one]] = lowest[one]
    if codec is None:
        rebuilt = rows["codec"][goes == REBUILT]
        codec = CODEC_NAMES[int(rebuilt[0])] if len(rebuilt) else "none"
    loose = np.flatnonzero(goes[batch] == REBUILT)
    loose = loose[np.argsort(target[loose], kind="stable")]
    # A place is (partition, source batch) as one number: of what is handed on, and of each record that is not.
    handed_on = np.flatnonzero(goes >= 0)
    through, places = goes[handed_on] * len(rows) + handed_on, target[loose] * len(rows) + batch[loose]
    firsts = _first_of_batches(places // max(len(rows), 1), np.searchsorted(np.sort(through), places), batch_size)
    new, recompressed_bytes = source.encode(decoded.records, loose, firsts, codec, level)

    every = np.concatenate([through, places[firsts]])
    order = np.argsort(every, kind="stable")
    from_new = order >= len(handed_on)
    starts = np.concatenate([rows["position"][handed_on], new.positions[:-1]])[order]
    sizes = np.concatenate([rows["size_bytes"][handed_on], np.diff(new.positions)])[order]
    data, positions = np.empty(sizes.sum(), np.uint8), np.concatenate([[0], np.cumsum(sizes)])
    for given, picked in ((source.data, ~from_new), (new.data, from_new)):
        frames.scatter(given, starts[picked], (starts + sizes)[picked], positions[:-1][picked], data)
    offsets = np.full(len(order), UNSET)
    offsets[~from_new] = source.sent_offsets(first_offset)[handed_on[order[~from_new]]]
    is_set = np.zeros(len(order), np.bool_)
    again = mirroring.make_ready(
        data, positions, ~from_new, offsets, reset_offsets, dialect_of(source.fmt), source.fmt.magic, is_set
    )
    source.whole[handed_on] = True
    in_place = int(is_set.sum())
    work = Work(
        untouched=len(handed_on) - in_place,
        in_place=in_place,
        rewritten=int((goes == REBUILT).sum()),
        dropped=int((goes == DROPPED).sum()),
        read_bytes=int(np.where(source.whole, rows["size_bytes"], rows["header_bytes"]).sum()) + again,
        written_bytes=len(data),
        decompressed_bytes=source.decompressed_bytes,
        recompressed_bytes=recompressed_bytes,
        losses=source.losses,
    )
    return Mirrored(
        data=data,
        positions=positions,
        bounds=np.searchsorted(every[order], np.arange(partitions + 1) * len(rows)),
        handed_on=len(handed_on),
        aborted=int(aborted.sum()),
        too_large=int((np.diff(new.positions) > max_bytes).sum()),
        work=work,
    )


def _first_of_batches(partition_of: Int64, behind: Int64, batch_size: int) -> Int64:
    """The records that begin a new batch, among those that are sorted by partition.

    behind: how many batches that are handed on go before the record; a new batch does not reach across one.
    """
    numbers = np.arange(len(behind))
    begins = np.ones(len(behind), np.bool_)
    begins[1:] = (np.diff(behind) != 0) | (np.diff(partition_of) != 0)
    rank = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    return np.flatnonzero(rank % batch_size == 0)


def _range_of(target: Int64, bounds: Int64, sticky: Int64) -> tuple[Int64, Int64]:
    """The lowest and the highest partition of each batch's records; an empty batch has its own."""
    lowest, highest = sticky.copy(), sticky.copy()
    held = bounds[:-1] < bounds[1:]
    if held.any():
        lowest[held] = np.minimum.reduceat(target, bounds[:-1][held])
        highest[held] = np.maximum.reduceat(target, bounds[:-1][held])
    return lowest, highest


class _Source:
    """The log that is mirrored, and what has been read of it."""

    def __init__(self, data: Bytes, fmt: Format, limits: Limits | None) -> None:
        self.data, self.fmt = data, fmt
        self.rows = headers(data, fmt)
        self.allowance = Allowance.of(len(data), limits)
        self.whole = np.zeros(len(self.rows), np.bool_)  # which batches were read, and not their headers alone
        self.decompressed_bytes = 0

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which batches hold no record."""
        rows = self.rows
        bare = (rows["magic"] > 1) & (rows["size_bytes"] == rows["header_bytes"])
        is_counted = rows["count"] != NOT_SAID  # kip98 does not say its count
        empty: NDArray[np.bool_] = np.where(is_counted, rows["count"] == 0, bare)
        return empty

    @property
    def has_holes(self) -> NDArray[np.bool_]:
        """Which batches of v2 and v3 span more offsets than they hold records."""
        rows = self.rows
        span = rows["last_offset"] - rows["base_offset"] + 1
        holed: NDArray[np.bool_] = (rows["magic"] > 1) & (rows["count"] != NOT_SAID) & (span != rows["count"])
        return holed

    @property
    def aborted(self) -> NDArray[np.bool_]:
        """Which batches are of a transaction that a marker in the log aborts; of all records only markers are read."""
        rows = self.rows
        markers = np.flatnonzero(rows["is_control"] & (rows["producer_id"] != NO_PRODUCER_ID))
        if not len(markers) or not rows["is_transactional"].any():
            return np.zeros(len(rows), np.bool_)
        opened = self.open(markers)
        counts, seen = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows), BATCH)
        counts[markers + 1] = np.diff(opened.bounds)
        for name in ("producer_id", "is_transactional", "is_control"):
            seen[name] = rows[name]
        return history_of(replace(opened, bounds=np.cumsum(counts), rows=lambda: seen)).aborted

    def sent_offsets(self, first_offset: int) -> Int64:
        """What the offset in each header is where a producer sends the batch; UNSET: nobody looks at it."""
        rows, magic = self.rows, self.fmt.magic
        if magic > 1:
            return np.zeros(len(rows), np.int64)
        if dialect_of(self.fmt) == ENRICHED:
            return np.where(rows["codec"] > 0, 0, UNSET)
        before = np.concatenate([[first_offset - 1], rows["last_offset"][:-1]])
        last = rows["last_offset"] - before - 1
        return np.where((magic == 1) & (rows["codec"] > 0) & (last >= 0), last, UNSET)

    @property
    def losses(self) -> dict[str, int]:
        """How many batches had what belongs to the source cluster."""
        rows = self.rows
        found = {
            "is_control": rows["is_control"],
            "is_transactional": rows["is_transactional"],
            "producer_id": rows["producer_id"] != NO_PRODUCER_ID,
        }
        return {name: int(which.sum()) for name, which in found.items() if which.any()}

    def any_key(self, batches: Int64) -> NDArray[np.bool_]:
        """Whether a record of each of these has a key, by its metadata."""
        data, _ = self._picked(batches)
        try:
            found = self.fmt.decode_metadata(data, limits=self.allowance.limits)
        except CorruptLog as error:
            raise self._placed(error, batches) from None
        self.decompressed_bytes += found.plain_bytes
        keys = np.concatenate([[0], np.cumsum(found.key_lengths >= 0)])
        some: NDArray[np.bool_] = keys[found.bounds[1:]] > keys[found.bounds[:-1]]
        return some

    def open(self, batches: Int64) -> DecodedLog:
        data, positions = self._picked(batches)
        before = self.allowance.log_bytes
        try:
            decoded = self.fmt.decode_at(data, positions, "raise", self.allowance)
        except CorruptLog as error:
            raise self._placed(error, batches) from None
        self.decompressed_bytes += before - self.allowance.log_bytes
        return decoded

    def partitions_of(self, records: Records, partitions: int) -> Int64:
        out = np.empty(len(records), np.int64)
        partition.partitions_of(records.key_data, records.key_starts, records.shapes.key_lengths, partitions, out)
        return out

    def encode(
        self, records: Records, wanted: Int64, firsts: Int64, codec: str, level: int | None
    ) -> tuple[EncodedLog, int]:
        """These records in batches that begin with the given ones of them, and the plain bytes that the codec took."""
        bounds = np.append(firsts, len(wanted))
        picked = records.take(wanted)
        offsets = np.arange(len(wanted)) - np.repeat(firsts, np.diff(bounds))  # as a producer counts them
        picked = replace(picked, shapes=replace(picked.shapes, offsets=offsets))
        if not len(wanted):
            bounds = np.zeros(1, np.int64)
        kinds = [Kind(fmt=self.fmt, codec=codec, level=level)]
        number = np.zeros(len(bounds) - 1, np.int64)
        new = write_batches(picked, bounds, NO_FIELDS, number, kinds)
        return new, codec_bytes(picked, bounds, NO_FIELDS, number, kinds)

    def _picked(self, batches: Int64) -> tuple[Bytes, Int64]:
        """These batches one after another; the log itself where that is all of them."""
        self.whole[batches] = True
        starts, sizes = self.rows["position"][batches], self.rows["size_bytes"][batches]
        positions = np.zeros(len(batches) + 1, np.int64)
        np.cumsum(sizes, out=positions[1:])
        if len(batches) == len(self.rows):
            return read_only(self.data[: positions[-1]]), positions
        picked = np.empty(positions[-1], np.uint8)
        frames.scatter(self.data, starts, starts + sizes, positions[:-1], picked)
        return read_only(picked), positions

    def _placed(self, error: CorruptLog, batches: Int64) -> CorruptLog:
        ends = np.cumsum(self.rows["size_bytes"][batches])
        batch = batches[int(np.searchsorted(ends, error.position, side="right"))]
        return CorruptLog(int(self.rows["position"][batch]), error.field, error.promise)


__all__ = ["Mirrored", "mirror"]
