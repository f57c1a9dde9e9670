"""Mirroring: copying a topic to another cluster (KAFKA-1001). Batches are handed on as they are, or built anew.

A mirror that consumes and produces decompresses every batch, finds each record's partition by its key, fills new
batches and compresses those. Where all records of a batch go to one partition, it can hand the batch on:

| source | needed to know that |
|---|---|
| kip98 | decompression: without a count nothing else says whether there are holes |
| partitions are kept (`partitions=1`; MirrorMaker 2), or no key is promised (`keyed=False`) | nothing |
| enriched, tag 34 off | the header |
| columnar | the header: its attributes say whether any record has a key |
| v3, headers first | the metadata, decompressed, if there is no key |
| any other compressed batch | decompression |

A mirror reads committed. Dropped are control batches (they end the source cluster's transactions), empty batches, and
batches of a transaction that an ABORT marker in the log ends. A transaction without a marker here counts as committed:
a fetch that reads committed ends before the first undecided one.

Always built anew are two kinds of batches. Batches with log append time, because a broker sets that type and readers
would see the producers' times again. Batches of v2 and later and kip98 with holes, because a broker does not take them
from a producer (`LogValidator`: "Inconsistent batch offset range").

A batch that is handed on becomes what a producer may send:

- Its offsets count from 0, which a broker asks of v2. The base offset of a batch and of an enriched set lies outside
  the checksum: 8 bytes. A set of v1 has its last offset there and no count. The last offset before it gives that from
  0. This is wrong after a hole, and for a set that was not the first one after first_offset; then the destination
  builds the set anew. It builds every set of v0 anew, and ignores offsets of plain messages, so these stay.
- Producer, transaction and delete horizon are removed: they belong to the source cluster. That is in place, with one
  pass over the batch for the checksum.
- In enriched sets tag 33 is turned off (one pass again). Positions then stand for offsets, so the destination need not
  rewrite the holes that compaction left.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.broker.batch_headers import dialect_of
from kfbench.broker.mirror_source import Source
from kfbench.broker.source import bytes_of, find
from kfbench.broker.work import Work
from kfbench.codecs import CODEC_NAMES
from kfbench.errors import InvalidConfig
from kfbench.formats import Format
from kfbench.kernels.broker import mirroring
from kfbench.kernels.formats.scan import ENRICHED, KIP98
from kfbench.kernels.wire import frames
from kfbench.kernels.workload import partition
from kfbench.layouts import HEADERS_FIRST_BIT, UNSET
from kfbench.limits import Limits
from kfbench.records import Records

MESSAGE_MAX_BYTES: Final = 1_048_588  # message.max.bytes
REBUILT: Final = -1  # the partition of a batch that is taken apart
DROPPED: Final = -2


@dataclass(frozen=True, kw_only=True)
class Mirrored:
    """The bytes produced to the destination: the batches of partition 0, then of 1, and so on.

    data uint8; positions int64[batches + 1]; bounds int64[partitions + 1]: the batches of each partition. handed_on:
    source batches that were not built anew. aborted: source batches dropped with their transaction. too_large: new
    batches above max_bytes, which a broker refuses.
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
        """All partitions as one log."""
        return EncodedLog(data=self.data, positions=self.positions, losses=self.work.losses)

    @property
    def partitions(self) -> list[EncodedLog]:
        """Each partition as a log, for `append`. No byte is copied."""
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
    """Mirror one partition of the source to `partitions` at the destination.

    A record with a key goes to the partition of Kafka's default partitioner, one without to a partition that the number
    of its batch picks. keyed: False: no record has a key; True: any may have one, whatever a flag says; None: found out
    as the table says. pass_through=False: every batch is built anew. reset_offsets: turn tag 33 off. first_offset: the
    offset where the log was read from, no later than its first record, for sets of v1. batch_size (records), codec
    (None: that of the first batch that is built anew) and level: of new batches. Raises CorruptLog, InvalidConfig,
    IllegalCombination.
    """
    for name, value in (("partitions", partitions), ("batch_size", batch_size)):
        if value < 1:
            raise InvalidConfig(f"{name}: {value} is below 1")
    source = Source(bytes_of(log), find(fmt), limits)
    routes = _routes(source, partitions, keyed, pass_through)
    handed_on, batches = np.flatnonzero(routes.goes >= 0), len(source.rows)
    # A place is (partition, source batch) as one number.
    handed_on_places = routes.goes[handed_on] * batches + handed_on
    new, new_places, recompressed_bytes = _new_batches(source, routes, handed_on_places, batch_size, codec, level)
    places = np.concatenate([handed_on_places, new_places])
    order = np.argsort(places, kind="stable")
    produced = _produced(source, handed_on, new, order)
    is_set, checksum_bytes = _make_ready(
        source, produced, source.sent_offsets(first_offset)[handed_on], order, reset_offsets
    )
    source.is_read[handed_on] = True
    in_place = int(is_set.sum())
    return Mirrored(
        data=produced.data,
        positions=produced.positions,
        bounds=np.searchsorted(places[order], np.arange(partitions + 1) * batches),
        handed_on=len(handed_on),
        aborted=int(routes.aborted.sum()),
        too_large=int((np.diff(new.positions) > max_bytes).sum()),
        work=Work(
            untouched=len(handed_on) - in_place,
            in_place=in_place,
            rewritten=int((routes.goes == REBUILT).sum()),
            dropped=int((routes.goes == DROPPED).sum()),
            read_bytes=source.read_bytes + checksum_bytes,
            written_bytes=len(produced.data),
            decompressed_bytes=source.decompressed_bytes,
            recompressed_bytes=recompressed_bytes,
            losses=source.losses,
        ),
    )


class _Routes(NamedTuple):
    """The way of each source batch, and of the records of those that were opened.

    goes int64[batches]: a partition, REBUILT or DROPPED. batch, target int64[records]: the source batch and the
    partition of each record.
    """

    goes: Int64
    aborted: NDArray[np.bool_]
    records: Records
    batch: Int64
    target: Int64


def _routes(source: Source, partitions: int, keyed: bool | None, pass_through: bool) -> _Routes:
    """Find the way of each batch, opening no more than has to be opened."""
    rows, dialect, aborted = source.rows, dialect_of(source.fmt), source.aborted
    batch_partitions = np.arange(len(rows)) % partitions  # of records without a key
    goes = np.full(len(rows), REBUILT)
    goes[rows["is_control"] | source.is_empty | aborted] = DROPPED
    may_pass = pass_through & ~rows["is_append_time"] & ~source.has_holes & (goes != DROPPED)
    is_kept = partitions == 1 or keyed is False  # keys do not matter
    if dialect == KIP98:
        settled = may_pass & (rows["last_offset"] == rows["base_offset"]) & is_kept
    elif is_kept:
        settled = may_pass
    else:
        settled = may_pass & (rows["keys"] == 0) & (keyed is None)
    goes[settled] = batch_partitions[settled]
    if partitions > 1 and keyed is None and source.fmt.features & HEADERS_FIRST_BIT:
        looked_at = np.flatnonzero((goes == REBUILT) & may_pass & (rows["codec"] > 0))
        keyless = looked_at[~source.any_key(looked_at)]
        goes[keyless] = batch_partitions[keyless]
    opened = np.flatnonzero(goes == REBUILT)
    decoded = source.open(opened)
    if dialect == ENRICHED:  # only the messages of a set say that they are control messages
        goes[opened[decoded.batch_rows["is_control"]]] = DROPPED
        may_pass &= goes != DROPPED
    if dialect == KIP98:
        span = rows["last_offset"][opened] - rows["base_offset"][opened] + 1
        may_pass[opened] &= np.diff(decoded.bounds) == span
    batch = np.repeat(opened, np.diff(decoded.bounds))
    target = batch_partitions[batch]
    if not is_kept:
        by_key = source.partitions_of(decoded.records, partitions)
        target = np.where(by_key == partition.NO_PARTITION, target, by_key)
    if pass_through:
        lowest, highest = _partition_range(target, decoded.bounds, batch_partitions[opened])
        has_one = may_pass[opened] & (lowest == highest)
        goes[opened[has_one]] = lowest[has_one]
    return _Routes(goes, aborted, decoded.records, batch, target)


def _partition_range(target: Int64, bounds: Int64, batch_partitions: Int64) -> tuple[Int64, Int64]:
    """Return the lowest and the highest partition of each batch's records; of an empty batch its own."""
    lowest, highest = batch_partitions.copy(), batch_partitions.copy()
    held = bounds[:-1] < bounds[1:]
    if held.any():
        lowest[held] = np.minimum.reduceat(target, bounds[:-1][held])
        highest[held] = np.maximum.reduceat(target, bounds[:-1][held])
    return lowest, highest


def _new_batches(
    source: Source, routes: _Routes, handed_on_places: Int64, batch_size: int, codec: str | None, level: int | None
) -> tuple[EncodedLog, Int64, int]:
    """Encode the records of batches that are built anew. Return the log, places, and plain bytes for the codec."""
    if codec is None:
        rebuilt = source.rows["codec"][routes.goes == REBUILT]
        codec = CODEC_NAMES[int(rebuilt[0])] if len(rebuilt) else "none"
    loose = np.flatnonzero(routes.goes[routes.batch] == REBUILT)
    loose = loose[np.argsort(routes.target[loose], kind="stable")]
    places = routes.target[loose] * len(source.rows) + routes.batch[loose]
    handed_on_before = np.searchsorted(np.sort(handed_on_places), places)
    firsts = _first_of_batches(routes.target[loose], handed_on_before, batch_size)
    new, recompressed_bytes = source.encode(routes.records, loose, firsts, codec, level)
    return new, places[firsts], recompressed_bytes


def _first_of_batches(partition_of: Int64, handed_on_before: Int64, batch_size: int) -> Int64:
    """Return the records that begin a new batch, among records sorted by partition.

    handed_on_before: the number of handed-on batches before each record. A new batch does not reach across one.
    """
    numbers = np.arange(len(partition_of))
    begins = np.ones(len(partition_of), np.bool_)
    begins[1:] = (np.diff(handed_on_before) != 0) | (np.diff(partition_of) != 0)
    rank = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    return np.flatnonzero(rank % batch_size == 0)


class _Produced(NamedTuple):
    """Batches in the order of the destination. is_new bool[batches]: built anew."""

    data: Bytes
    positions: Int64
    is_new: NDArray[np.bool_]


def _produced(source: Source, handed_on: Int64, new: EncodedLog, order: Int64) -> _Produced:
    """Copy the batches that are handed on and the new ones. order: their places, first those that are handed on."""
    starts = np.concatenate([source.rows["position"][handed_on], new.positions[:-1]])[order]
    sizes = np.concatenate([source.rows["size_bytes"][handed_on], np.diff(new.positions)])[order]
    is_new = order >= len(handed_on)
    data, positions = np.empty(sizes.sum(), np.uint8), np.concatenate([[0], np.cumsum(sizes)])
    for given, picked in ((source.data, ~is_new), (new.data, is_new)):
        frames.scatter(given, starts[picked], (starts + sizes)[picked], positions[:-1][picked], data)
    return _Produced(data, positions, is_new)


def _make_ready(
    source: Source, produced: _Produced, sent_offsets: Int64, order: Int64, reset_offsets: bool
) -> tuple[NDArray[np.bool_], int]:
    """Set the handed-on batches to what a producer may send. Return which changed, and bytes read for checksums.

    sent_offsets: the offset in the header of each batch that is handed on.
    """
    passed, is_set = ~produced.is_new, np.zeros(len(order), np.bool_)
    offsets = np.full(len(order), UNSET)
    offsets[passed] = sent_offsets[order[passed]]
    checksum_bytes = mirroring.make_ready(
        produced.data, produced.positions, passed, offsets, reset_offsets, dialect_of(source.fmt), source.fmt.magic,
        is_set,
    )  # fmt: skip
    return is_set, checksum_bytes


__all__ = ["Mirrored", "mirror"]
