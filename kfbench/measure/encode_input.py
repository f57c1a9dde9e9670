"""The input of every measurement: records, their batches and a codec."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from kfbench.arrays import Bytes, Int64
from kfbench.batches import NO_FIELDS, BatchFields, EncodedLog
from kfbench.codecs import Dictionary
from kfbench.formats import Format
from kfbench.records import Records


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
        return self.between(first, len(self.bounds) - 1)
