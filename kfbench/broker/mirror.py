"""Mirror: copy a topic to another cluster (KAFKA-1001). Batches are forwarded unchanged or rebuilt.

A mirror that consumes and produces decompresses every batch, finds the partition of each record by its key, fills new
batches and compresses them. If all records of a batch go to one partition, the mirror can forward the batch. The table
lists the part of a batch that it must read to find this out:

| source | part to read |
|---|---|
| kip98 | the payload, decompressed: a header has no record count, so gaps between offsets (holes) do not show |
| partitions are kept (`partitions=1`; MirrorMaker 2), or records have no key (`keyed=False`) | nothing |
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
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.broker.batch_headers import dialect_of
from kfbench.broker.mirror_source import Source
from kfbench.broker.source import bytes_of, find
from kfbench.broker.work import NewLog, Work
from kfbench.codecs import REBUILT_AS, Dictionary
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
REBUILT: Final = -1  # a value instead of a partition's number: the batch is rebuilt
DROPPED: Final = -2  # a value instead of a partition's number: the batch is left out


@dataclass(frozen=True, kw_only=True)
class Mirrored(NewLog):
    """The bytes produced to the destination: the batches of partition 0, then those of partition 1, and so on.

    Args:
        data: uint8[size].
        positions: the byte position of each batch, and the end, int64[batches + 1].
        bounds: the number of the first batch of each partition, and the end, int64[partitions + 1].
        handed_on: number of source batches that were forwarded.
        aborted: number of source batches that were dropped because their transaction was aborted.
        too_large: number of new batches above max_bytes, which a broker refuses.
    """

    bounds: Int64
    handed_on: int
    aborted: int
    too_large: int

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
    keyed: bool | None = None,
    pass_through: bool = True,
    reset_offsets: bool = True,
    first_offset: int = 0,
    batch_size: int = 100,
    codec: str | None = None,
    level: int | None = None,
    max_bytes: int = MESSAGE_MAX_BYTES,
    limits: Limits | None = None,
    dictionaries: Iterable[Dictionary] = (),
) -> Mirrored:
    """Mirror one partition of the source to `partitions` at the destination.

    A record with a key goes to the partition that Kafka's default partitioner chooses. Records without a key go to the
    partition (number of their batch) % partitions. Raises CorruptLog, InvalidConfig, IllegalCombination.

    Args:
        fmt: the format of the log and of new batches.
        partitions: number of partitions at the destination.
        keyed: False: no record has a key. True: any record may have one. None: the mirror looks for keys, in the part
            of each batch that the module's table lists.
        pass_through: False: every batch is rebuilt.
        reset_offsets: turn tag 33 of enriched sets off.
        first_offset: the offset from which the log was read, at most the offset of its first record. It is used for
            compressed sets of v1.
        batch_size: number of records per new batch.
        codec, level: codec and level of new batches. codec None: the codec of the first rebuilt batch.
        max_bytes: largest batch that the destination accepts (`message.max.bytes`).
        dictionaries: the zstd dictionaries of the source. New batches have none.
    """
    for name, value in (("partitions", partitions), ("batch_size", batch_size)):
        if value < 1:
            raise InvalidConfig(f"{name}: {value} is below 1")
    source = Source(bytes_of(log), find(fmt), limits, dictionaries)
    routes = _routes(source, partitions, keyed, pass_through)
    handed_on, batches = np.flatnonzero(routes.goes >= 0), len(source.rows)
    # A place is one number made of a partition and a source batch: partition * batches + batch. It gives the order.
    handed_on_places = routes.goes[handed_on] * batches + handed_on
    new = _new_batches(source, routes, handed_on_places, batch_size, codec, level)
    places = np.concatenate([handed_on_places, new.places])
    order = np.argsort(places, kind="stable")
    produced = _produced(source, handed_on, new.log, order)
    changes = _make_ready(source, produced, source.sent_offsets(first_offset)[handed_on], order, reset_offsets)
    source.is_read[handed_on] = True
    return Mirrored(
        data=produced.data,
        positions=produced.positions,
        bounds=np.searchsorted(places[order], np.arange(partitions + 1) * batches),
        handed_on=len(handed_on),
        aborted=int(routes.aborted.sum()),
        too_large=int((np.diff(new.log.positions) > max_bytes).sum()),
        work=Work(
            untouched=len(handed_on) - changes.in_place,
            in_place=changes.in_place,
            rewritten=int((routes.goes == REBUILT).sum()),
            dropped=int((routes.goes == DROPPED).sum()),
            read_bytes=source.read_bytes + changes.checksum_bytes,
            written_bytes=len(produced.data),
            decompressed_bytes=source.decompressed_bytes,
            recompressed_bytes=new.plain_bytes,
            losses=source.losses,
        ),
    )


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


def _routes(source: Source, partitions: int, keyed: bool | None, pass_through: bool) -> _Routes:
    """Find the destination of each batch. Decode only the batches whose headers do not decide it."""
    rows, dialect, aborted = source.rows, dialect_of(source.fmt), source.aborted
    batch_partitions = np.arange(len(rows)) % partitions  # for records without a key
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
    if dialect == ENRICHED:  # the control flag is in the messages inside a set
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


class _NewBatches(NamedTuple):
    """Rebuilt batches.

    Args:
        places: partition * (number of source batches) + (source batch of the first record), for each new batch.
        plain_bytes: number of bytes before compression, in batches with a codec.
    """

    log: EncodedLog
    places: Int64
    plain_bytes: int


def _new_batches(
    source: Source, routes: _Routes, handed_on_places: Int64, batch_size: int, codec: str | None, level: int | None
) -> _NewBatches:
    if codec is None:
        rebuilt = source.rows["codec"][routes.goes == REBUILT]
        codec = REBUILT_AS[int(rebuilt[0])] if len(rebuilt) else "none"
    loose = np.flatnonzero(routes.goes[routes.batch] == REBUILT)
    loose = loose[np.argsort(routes.target[loose], kind="stable")]
    places = routes.target[loose] * len(source.rows) + routes.batch[loose]
    handed_on_before = np.searchsorted(np.sort(handed_on_places), places)
    firsts = _first_of_batches(routes.target[loose], handed_on_before, batch_size)
    encoded = source.encode(routes.records, loose, firsts, codec, level)
    return _NewBatches(encoded.log, places[firsts], encoded.plain_bytes)


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


class _Produced(NamedTuple):
    """All batches in the order of the destination. is_new bool[batches]: True if the batch was rebuilt."""

    data: Bytes
    positions: Int64
    is_new: NDArray[np.bool_]


def _produced(source: Source, handed_on: Int64, new: EncodedLog, order: Int64) -> _Produced:
    """Copy forwarded and new batches into one buffer.

    order: the batches in the result's order. An index counts forwarded batches first, then new ones.
    """
    starts = np.concatenate([source.rows["position"][handed_on], new.positions[:-1]])[order]
    sizes = np.concatenate([source.rows["size_bytes"][handed_on], np.diff(new.positions)])[order]
    is_new = order >= len(handed_on)
    data, positions = np.empty(sizes.sum(), np.uint8), np.concatenate([[0], np.cumsum(sizes)])
    for given, picked in ((source.data, ~is_new), (new.data, is_new)):
        frames.scatter(given, starts[picked], (starts + sizes)[picked], positions[:-1][picked], data)
    return _Produced(data, positions, is_new)


class _Changes(NamedTuple):
    """Counts of changes. in_place: changed batches. checksum_bytes: bytes read for checksums."""

    in_place: int
    checksum_bytes: int


def _make_ready(
    source: Source, produced: _Produced, sent_offsets: Int64, order: Int64, reset_offsets: bool
) -> _Changes:
    """Change the forwarded batches in `produced` so that a producer may send them.

    Args:
        sent_offsets: the new offset field in the header of each forwarded batch; UNSET: it stays.
        order: see `_produced`.
        reset_offsets: turn tag 33 of enriched sets off.
    """
    passed, is_set = ~produced.is_new, np.zeros(len(order), np.bool_)
    offsets = np.full(len(order), UNSET)
    offsets[passed] = sent_offsets[order[passed]]
    checksum_bytes = mirroring.make_ready(
        produced.data, produced.positions, passed, offsets, reset_offsets, dialect_of(source.fmt), source.fmt.magic,
        is_set,
    )  # fmt: skip
    return _Changes(int(is_set.sum()), checksum_bytes)
