"""The source of a mirror: headers of all batches, and the records of batches that are decoded."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import BATCH, NO_FIELDS, DecodedLog, EncodedLog
from kfbench.broker.batch_headers import NOT_IN_HEADER, dialect_of, headers
from kfbench.broker.retention import history_of
from kfbench.broker.source import picked
from kfbench.codecs import Allowance, Dictionary
from kfbench.errors import CorruptLog
from kfbench.formats import Format
from kfbench.kernels.formats.scan import ENRICHED
from kfbench.kernels.workload import partition
from kfbench.layouts import NO_PRODUCER_ID, UNSET
from kfbench.limits import Limits
from kfbench.log.writing import Kind, codec_bytes, write_batches
from kfbench.records import Records


class Encoded(NamedTuple):
    """New batches. plain_bytes: number of bytes before compression; 0 without a codec."""

    log: EncodedLog
    plain_bytes: int


class Source:
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

    def partitions_of(self, records: Records, partitions: int) -> Int64:
        out = np.empty(len(records), np.int64)
        partition.partitions_of(records.key_data, records.key_starts, records.shapes.key_lengths, partitions, out)
        return out

    def encode(self, records: Records, wanted: Int64, firsts: Int64, codec: str, level: int | None) -> Encoded:
        """Encode some records in new batches.

        Args:
            wanted: the indices of the records.
            firsts: the indices in `wanted` at which the batches begin.
        """
        bounds = np.append(firsts, len(wanted))
        picked = records.take(wanted)
        offsets = np.arange(len(wanted)) - np.repeat(firsts, np.diff(bounds))  # a producer counts from 0 in each batch
        picked = replace(picked, shapes=replace(picked.shapes, offsets=offsets))
        if not len(wanted):
            bounds = np.zeros(1, np.int64)
        kinds = [Kind(fmt=self.fmt, codec=codec, level=level)]
        number = np.zeros(len(bounds) - 1, np.int64)
        new = write_batches(picked, bounds, NO_FIELDS, number, kinds)
        return Encoded(new, codec_bytes(picked, bounds, NO_FIELDS, number, kinds))

    def _picked(self, batches: Int64) -> EncodedLog:
        """Return the batches with these numbers, one after another. If all are wanted, no byte is copied."""
        self.is_read[batches] = True
        starts, sizes = self.rows["position"][batches], self.rows["size_bytes"][batches]
        if len(batches) == len(self.rows):
            positions = np.append(0, np.cumsum(sizes))
            return EncodedLog(data=read_only(self.data[: positions[-1]]), positions=positions)
        log = picked(self.data, starts, starts + sizes)
        return EncodedLog(data=read_only(log.data), positions=log.positions)

    def _placed(self, error: CorruptLog, batches: Int64) -> CorruptLog:
        ends = np.cumsum(self.rows["size_bytes"][batches])
        batch = batches[int(np.searchsorted(ends, error.position, side="right"))]
        return error.at(int(self.rows["position"][batch]))
