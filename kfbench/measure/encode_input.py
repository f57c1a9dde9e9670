"""The input of every measurement: records, their batches and a codec."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.batches import APPEND_TIME, NO_FIELDS, BatchFields, EncodedLog
from kfbench.codecs import Dictionary
from kfbench.formats import Format
from kfbench.layouts import NO_TIMESTAMP
from kfbench.records import Records, Shapes


@dataclass(frozen=True, kw_only=True)
class EncodeInput:
    """The arguments of `Format.encode`.

    bounds: int64[batches + 1], the index of the first record of each batch, then the number of records.
    dictionary: the dictionary of zstd that `encode` uses.
    """

    records: Records
    bounds: Int64
    codec: str = "none"
    level: int | None = None
    batch_fields: BatchFields = NO_FIELDS
    dictionary: Dictionary | None = None

    @property
    def dictionaries(self) -> tuple[Dictionary, ...]:
        """The dictionaries that a reader of the encoded log needs."""
        return (self.dictionary,) if self.dictionary else ()

    @property
    def batches(self) -> int:
        return len(self.bounds) - 1

    def encoder(self, fmt: Format, out: Bytes) -> Callable[[], EncodedLog]:
        """Return a function without parameters that encodes the records into the buffer `out`."""
        return partial(
            fmt.encode, self.records, self.bounds, self.codec, self.level, self.batch_fields, lossy=True, out=out
        )

    def encode(self, fmt: Format) -> EncodedLog:
        """Encode the records in a format. Fields that the format cannot carry are dropped without an error."""
        return fmt.encode(
            self.records, self.bounds, self.codec, self.level, self.batch_fields, lossy=True, dictionary=self.dictionary
        )

    def between(self, first: int, end: int) -> "EncodeInput":
        """Return the batches `first` to `end` - 1 alone."""
        return replace(
            self,
            records=self.records.part(int(self.bounds[first]), int(self.bounds[end])),
            bounds=self.bounds[first : end + 1] - self.bounds[first],
            batch_fields=self.batch_fields.part(first, end),
        )

    def behind(self, first: int) -> "EncodeInput":
        """Return the batches from `first` on."""
        return self.between(first, self.batches)

    def records_in(self, fmt: Format) -> Records:
        """Return the records without the fields that the format cannot carry, as decoding would give them."""
        can, timestamps_ms = fmt.capabilities, self.records.timestamps_ms
        if not can.timestamps:
            timestamps_ms = np.full(len(self.records), NO_TIMESTAMP)
        elif not can.milliseconds:
            seconds = timestamps_ms // 1_000
            timestamps_ms = np.where((seconds >= 0) & (seconds < 2**31), seconds * 1_000, NO_TIMESTAMP)
        elif "append_time_ms" in can.batch_fields:
            rows = np.broadcast_to(self.batch_fields.over(self.batches), self.batches)
            append = np.repeat(rows["timestamp_type"] == APPEND_TIME, np.diff(self.bounds))
            timestamps_ms = np.where(append, np.repeat(rows["append_time_ms"], np.diff(self.bounds)), timestamps_ms)
        old = self.records.shapes
        if can.headers or not old.has_headers:
            return replace(self.records, shapes=replace(old, timestamps_ms=timestamps_ms))
        bare = Shapes(
            timestamps_ms=timestamps_ms,
            offsets=old.offsets,
            key_lengths=old.key_lengths,
            value_lengths=old.value_lengths,
        )
        none = np.zeros(0, np.int64)
        return replace(self.records, shapes=bare, header_key_starts=none, header_value_starts=none)
