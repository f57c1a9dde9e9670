"""Mirror: copy a topic to another cluster (KAFKA-1001). Batches are forwarded unchanged or rebuilt.

A mirror that consumes and produces decompresses every batch, finds the partition of each record by its key, fills new
batches and compresses them. If all records of a batch go to one partition, the mirror can forward the batch. The table
lists the part of a batch that it must read to find this out:

| source | part to read |
|---|---|
| kip98 | the payload, decompressed: a header has no record count, so gaps between offsets (holes) do not show |
| partitions are kept (`partitions=1`; MirrorMaker 2) | nothing |
| enriched, tag 34 off | the header |
| v3, headers first | the metadata, decompressed, if there is no key |
| any other compressed batch | the payload, decompressed |

A mirror reads only committed records. It drops three kinds of batches:

- Control batches, because they end transactions of the source cluster.
- Empty batches.
- Batches of a transaction that an ABORT marker in the log ends. A transaction without a marker in the log counts as
  committed: a fetch that reads committed ends before the first undecided transaction.

Two kinds of batches are always rebuilt:

- Batches with log append time. A broker sets this type, so after forwarding readers would see the producers' times.
- Batches of v2 and later and of kip98 with holes. A broker refuses them from a producer (`LogValidator`: "Inconsistent
  batch offset range").

A forwarded batch is changed to one that a producer may send:

- Its offsets count from 0, as a broker requires in v2. The base offset of a batch and of an enriched set is outside the
  checksum: 8 bytes change. A compressed set of v1 stores its last offset there and no count, so the count is taken from
  the last offset before the set. The result is wrong after a hole, and for the first set unless the log was read from
  `first_offset`. Then the destination rebuilds the set. It rebuilds every set of v0, and ignores offsets of plain
  messages, so these stay.
- Producer, transaction and delete horizon are removed, because they belong to the source cluster. This is done in
  place, with one pass over the batch for the checksum.
- In enriched sets tag 33 (relative offsets) is turned off, with one more pass. Then a record's index in the set gives
  its offset, so the destination need not rebuild sets with holes of a compaction.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import BATCH, NO_FIELDS, DecodedLog, EncodedLog
from kfbench.broker.compact import history_of
from kfbench.broker.source import NOT_IN_HEADER, bytes_of, dialect_of, find, headers
from kfbench.broker.work import NewBatches, NewLog, Work, build
from kfbench.codecs import Allowance, Dictionary, rebuilt_as
from kfbench.errors import CorruptLog, InvalidConfig
from kfbench.formats import Format
from kfbench.kernels.broker import mirroring
from kfbench.kernels.formats.scan import ENRICHED, KIP98
from kfbench.layouts import HEADERS_FIRST_BIT, NO_PRODUCER_ID, UNSET
from kfbench.limits import Limits
from kfbench.log.writing import BatchEncoding, Slices, splice
from kfbench.records import Records

REBUILT: Final = -1  # a value instead of a partition's number: the batch is rebuilt
DROPPED: Final = -2  # a value instead of a partition's number: the batch is left out


@dataclass(frozen=True, kw_only=True)
class MirrorResult(NewLog):
    """The bytes produced to the destination: the batches of partition 0, then those of partition 1, and so on.

    Args:
        data: uint8[size].
        positions: the byte position of each batch, and the end, int64[batches + 1].
        bounds: the number of the first batch of each partition, and the end, int64[partitions + 1].
        handed_on: number of source batches that were forwarded.
        aborted: number of source batches that were dropped because their transaction was aborted.
    """

    bounds: Int64
    handed_on: int
    aborted: int

    @property
    def partitions(self) -> list[EncodedLog]:
        """Each partition as a log, to give to `append`. No byte is copied."""
        parts = [self.positions[first : end + 1] for first, end in pairwise(self.bounds)]
        return [EncodedLog(data=self.data[part[0] : part[-1]], positions=part - part[0]) for part in parts]


def mirror(
    log: EncodedLog | Any,
    fmt: Format | str,
    *,
    partitions: int = 1,
    pass_through: bool = True,
    reset_offsets: bool = True,
    first_offset: int = 0,
    batch_size: int = 100,
    codec: str | None = None,
    level: int | None = None,
    limits: Limits | None = None,
    dictionaries: Iterable[Dictionary] = (),
) -> MirrorResult:
    """Mirror one partition of the source to `partitions` at the destination.

    A record with a key goes to the partition that Kafka's default partitioner chooses. Records without a key go to the
    partition (number of their batch) % partitions. Raises CorruptLog, InvalidConfig, IllegalCombination.

    Args:
        fmt: the format of the log and of new batches.
        partitions: number of partitions at the destination.
        pass_through: False: every batch is rebuilt.
        reset_offsets: turn tag 33 of enriched sets off.
        first_offset: the offset from which the log was read, at most the offset of its first record. It is used for
            compressed sets of v1.
        batch_size: number of records per new batch.
        codec, level: codec and level of new batches. codec None: the codec of the first rebuilt batch.
        dictionaries: the zstd dictionaries of the source. New batches have none.
    """
    for name, value in (("partitions", partitions), ("batch_size", batch_size)):
        if value < 1:
            raise InvalidConfig(f"{name}: {value} is below 1")
    source = SourceLog(bytes_of(log), find(fmt), limits, dictionaries)
    routes = _routes(source, partitions, pass_through)
    handed_on, batches = np.flatnonzero(routes.goes >= 0), len(source.rows)
    # A place is one number made of a partition and a source batch: partition * batches + batch. It gives the order.
    handed_on_places = routes.goes[handed_on] * batches + handed_on
    record_places = routes.target * batches + routes.batch
    loose = np.flatnonzero(routes.goes[routes.batch] == REBUILT)
    loose = loose[np.argsort(routes.target[loose], kind="stable")]
    handed_on_before = np.searchsorted(np.sort(handed_on_places), record_places[loose])
    firsts = _first_of_batches(routes.target[loose], handed_on_before, batch_size)
    if codec is None:
        rebuilt = source.rows["codec"][routes.goes == REBUILT]
        codec = rebuilt_as()[int(rebuilt[0])] if len(rebuilt) else "none"
    new = source.encode(routes.records, loose, firsts, codec, level)
    places = np.concatenate([handed_on_places, record_places[loose[firsts]]])
    order = np.argsort(places, kind="stable")
    numbers = np.argsort(order)  # the number of each batch in the result: of the forwarded ones, then of the new ones
    starts, sizes = source.rows["position"][handed_on], source.rows["size_bytes"][handed_on]
    passed, made = numbers[: len(handed_on)], numbers[len(handed_on) :]
    produced = splice(len(order), [Slices(source.data, starts, starts + sizes, passed), Slices.of(new.log, made)])
    changes = _make_ready(source.fmt, produced, passed, source.sent_offsets(first_offset)[handed_on], reset_offsets)
    source.is_read[handed_on] = True
    return MirrorResult(
        data=produced.data,
        positions=produced.positions,
        bounds=np.searchsorted(places[order], np.arange(partitions + 1) * batches),
        handed_on=len(handed_on),
        aborted=int(routes.aborted.sum()),
        work=changes
        + Work(
            rewritten=int((routes.goes == REBUILT).sum()),
            dropped=int((routes.goes == DROPPED).sum()),
            read_bytes=source.read_bytes,
            written_bytes=len(produced.data),
            decompressed_bytes=source.decompressed_bytes,
            recompressed_bytes=new.plain_bytes,
            losses=source.losses,
        ),
    )


class SourceLog:
    """The log that is mirrored, with counters of the parts that were read."""

    def __init__(self, data: Bytes, fmt: Format, limits: Limits | None, dictionaries: Iterable[Dictionary]) -> None:
        self.data, self.fmt = data, fmt
        self.rows = headers(data, fmt)
        self.allowance = Allowance.of(len(data), limits, dictionaries)
        self.is_read = np.zeros(len(self.rows), np.bool_)  # batches that were read beyond their headers
        self.decompressed_bytes = 0

    @property
    def read_bytes(self) -> int:
        return int(np.where(self.is_read, self.rows["size_bytes"], self.rows["header_bytes"]).sum())

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """True for each batch without records."""
        rows = self.rows
        bare = (rows["magic"] > 1) & (rows["size_bytes"] == rows["header_bytes"])
        is_counted = rows["count"] != NOT_IN_HEADER  # kip98 stores no count
        empty: NDArray[np.bool_] = np.where(is_counted, rows["count"] == 0, bare)
        return empty

    @property
    def has_holes(self) -> NDArray[np.bool_]:
        """True for each batch of v2 and later whose range of offsets is larger than its number of records."""
        rows = self.rows
        span = rows["last_offset"] - rows["base_offset"] + 1
        holed: NDArray[np.bool_] = (rows["magic"] > 1) & (rows["count"] != NOT_IN_HEADER) & (span != rows["count"])
        return holed

    @property
    def aborted(self) -> NDArray[np.bool_]:
        """True for each batch of a transaction that a marker in the log aborts. Only the markers are decoded."""
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
        """Return the offset that a producer writes in the header of each batch; UNSET: the stored offset stays.

        first_offset: the offset from which the log was read.
        """
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
        """The properties that belong to the source cluster, each with the number of batches that have it."""
        rows = self.rows
        found = {
            "is_control": rows["is_control"],
            "is_transactional": rows["is_transactional"],
            "producer_id": rows["producer_id"] != NO_PRODUCER_ID,
        }
        return {name: int(flags.sum()) for name, flags in found.items() if flags.any()}

    def any_key(self, batches: Int64) -> NDArray[np.bool_]:
        """Return for each of these batches True if one of its records has a key. Only metadata is decompressed."""
        try:
            found = self.fmt.decode_metadata(
                self._picked(batches).data,
                limits=self.allowance.limits,
                dictionaries=self.allowance.dictionary_codec.dictionaries.values(),
            )
        except CorruptLog as error:
            raise self._placed(error, batches) from None
        self.decompressed_bytes += found.plain_bytes
        keys = np.concatenate([[0], np.cumsum(found.key_lengths >= 0)])
        some: NDArray[np.bool_] = keys[found.bounds[1:]] > keys[found.bounds[:-1]]
        return some

    def open(self, batches: Int64) -> DecodedLog:
        """Decode the batches with these numbers. Raise CorruptLog."""
        picked, before = self._picked(batches), self.allowance.log_bytes
        try:
            decoded = self.fmt.decode_at(picked.data, picked.positions, "raise", self.allowance)
        except CorruptLog as error:
            raise self._placed(error, batches) from None
        self.decompressed_bytes += before - self.allowance.log_bytes
        return decoded

    def encode(self, records: Records, wanted: Int64, firsts: Int64, codec: str, level: int | None) -> NewBatches:
        """Encode some records in new batches.

        Args:
            wanted: the indices of the records.
            firsts: the indices in `wanted` at which the batches begin.
        """
        bounds = np.append(firsts, len(wanted))
        offsets = np.arange(len(wanted)) - np.repeat(firsts, np.diff(bounds))  # a producer counts from 0 in each batch
        picked = records.take(wanted).at_offsets(offsets)
        if not len(wanted):
            bounds = np.zeros(1, np.int64)
        kinds = [BatchEncoding(fmt=self.fmt, codec=codec, level=level)]
        number = np.zeros(len(bounds) - 1, np.int64)
        return build(picked, bounds, NO_FIELDS, number, kinds)

    def _picked(self, batches: Int64) -> EncodedLog:
        """Return the batches with these numbers, one after another. If all are wanted, no byte is copied."""
        self.is_read[batches] = True
        starts, sizes = self.rows["position"][batches], self.rows["size_bytes"][batches]
        if len(batches) == len(self.rows):
            positions = np.append(0, np.cumsum(sizes))
            return EncodedLog(data=read_only(self.data[: positions[-1]]), positions=positions)
        numbers = np.arange(len(batches))
        log = splice(len(batches), [Slices(self.data, starts, starts + sizes, numbers)])
        return EncodedLog(data=read_only(log.data), positions=log.positions)

    def _placed(self, error: CorruptLog, batches: Int64) -> CorruptLog:
        ends = np.cumsum(self.rows["size_bytes"][batches])
        batch = batches[int(np.searchsorted(ends, error.position, side="right"))]
        return error.at(int(self.rows["position"][batch]))


class _Routes(NamedTuple):
    """The destination of each source batch, and of the records of decoded batches.

    Args:
        goes: a partition, REBUILT or DROPPED for each source batch, int64[batches].
        aborted: True for batches of an aborted transaction, bool[batches].
        records: the records of decoded batches.
        batch: the source batch of each record, int64[records].
        target: the partition of each record, int64[records].
    """

    goes: Int64
    aborted: NDArray[np.bool_]
    records: Records
    batch: Int64
    target: Int64


def _routes(source: SourceLog, partitions: int, pass_through: bool) -> _Routes:
    """Find the destination of each batch. Decode only the batches whose headers do not decide it."""
    rows, dialect, aborted = source.rows, dialect_of(source.fmt), source.aborted
    batch_partitions = np.arange(len(rows)) % partitions  # for records without a key
    goes = np.full(len(rows), REBUILT)
    goes[rows["is_control"] | source.is_empty | aborted] = DROPPED
    may_pass = pass_through & ~rows["is_append_time"] & ~source.has_holes & (goes != DROPPED)
    is_kept = partitions == 1  # keys do not matter
    if dialect == KIP98:
        settled = may_pass & (rows["last_offset"] == rows["base_offset"]) & is_kept
    else:
        settled = may_pass & (is_kept | (rows["keys"] == 0))
    goes[settled] = batch_partitions[settled]
    if not is_kept and source.fmt.features & HEADERS_FIRST_BIT:
        looked_at = np.flatnonzero((goes == REBUILT) & may_pass & (rows["codec"] > 0))
        keyless = looked_at[~source.any_key(looked_at)]
        goes[keyless] = batch_partitions[keyless]
    opened = np.flatnonzero(goes == REBUILT)
    decoded = source.open(opened)
    if dialect == ENRICHED:  # the control flag is in the messages inside a set
        goes[opened[decoded.batch_rows["is_control"]]] = DROPPED
        may_pass &= goes != DROPPED
    if dialect == KIP98:
        span = rows["last_offset"][opened] - rows["base_offset"][opened] + 1
        may_pass[opened] &= np.diff(decoded.bounds) == span
    batch = np.repeat(opened, np.diff(decoded.bounds))
    target = batch_partitions[batch]
    if not is_kept:
        records, by_key = decoded.records, np.empty(len(decoded.records), np.int64)
        mirroring.partitions_of(records.key_data, records.key_starts, records.shapes.key_lengths, partitions, by_key)
        target = np.where(by_key == mirroring.NO_PARTITION, target, by_key)
    if pass_through:
        only = _only_partitions(target, decoded.bounds, batch_partitions[opened])
        has_one = may_pass[opened] & (only != REBUILT)
        goes[opened[has_one]] = only[has_one]
    return _Routes(goes, aborted, decoded.records, batch, target)


def _only_partitions(target: Int64, bounds: Int64, batch_partitions: Int64) -> Int64:
    """Return for each batch the partition of all its records; REBUILT if they go to several partitions.

    batch_partitions: the result for batches without records.
    """
    only, filled = batch_partitions.copy(), bounds[:-1] < bounds[1:]
    if filled.any():
        lowest = np.minimum.reduceat(target, bounds[:-1][filled])
        highest = np.maximum.reduceat(target, bounds[:-1][filled])
        only[filled] = np.where(lowest == highest, lowest, REBUILT)
    return only


def _first_of_batches(partition_of: Int64, handed_on_before: Int64, batch_size: int) -> Int64:
    """Return the indices of the records that begin a new batch. The records are sorted by partition.

    handed_on_before: for each record, the number of forwarded batches that come before it at the destination. A new
    batch has no records from both sides of a forwarded batch.
    """
    numbers = np.arange(len(partition_of))
    begins = np.ones(len(partition_of), np.bool_)
    begins[1:] = (np.diff(handed_on_before) != 0) | (np.diff(partition_of) != 0)
    rank = numbers - np.maximum.accumulate(np.where(begins, numbers, 0))
    return np.flatnonzero(rank % batch_size == 0)


def _make_ready(fmt: Format, produced: EncodedLog, passed: Int64, sent_offsets: Int64, reset_offsets: bool) -> Work:
    """Change the forwarded batches in `produced` so that a producer may send them.

    Args:
        passed: the numbers of these batches.
        sent_offsets: the new offset field in the header of each of them; UNSET: it stays.
        reset_offsets: turn tag 33 of enriched sets off.
    """
    batches = len(produced)
    is_passed, is_set, offsets = np.zeros(batches, np.bool_), np.zeros(batches, np.bool_), np.full(batches, UNSET)
    is_passed[passed], offsets[passed] = True, sent_offsets
    checksum_bytes = mirroring.make_ready(
        produced.data, produced.positions, is_passed, offsets, reset_offsets, dialect_of(fmt), fmt.magic, is_set
    )
    in_place = int(is_set.sum())
    return Work(untouched=len(passed) - in_place, in_place=in_place, read_bytes=checksum_bytes)
