"""Records, their batches and the codec that they are encoded under: the input of every measurement."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from kfbench.arrays import Bytes, Int64
from kfbench.batches import NO_FIELDS, BatchFields, EncodedLog
from kfbench.formats import Format
from kfbench.records import Records


@dataclass(frozen=True, kw_only=True)
class EncodeInput:
    """Arguments of `Format.encode`. bounds: int64[batches + 1], the first record of each batch, then the end."""

    records: Records
    bounds: Int64
    codec: str = "none"
    level: int | None = None
    batch_fields: BatchFields = NO_FIELDS

    def encoder(self, fmt: Format, out: Bytes) -> Callable[[], EncodedLog]:
        """Return a call that encodes the records in a format into the buffer `out`."""
        return partial(
            fmt.encode, self.records, self.bounds, self.codec, self.level, self.batch_fields, lossy=True, out=out
        )

    def encode(self, fmt: Format) -> EncodedLog:
        """Encode the records in a format. What the format cannot carry is lost."""
        return fmt.encode(self.records, self.bounds, self.codec, self.level, self.batch_fields, lossy=True)
