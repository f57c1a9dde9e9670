"""Limits of what a reader may be made to allocate, whatever the bytes claim."""

from dataclasses import dataclass, fields
from typing import Final

from kfbench.errors import InvalidConfig

MOST: Final = 1 << 62  # kernels count in int64


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits beyond which a batch is refused as damaged (`CorruptLog`). Raises InvalidConfig for a limit below 1.

    batch_bytes: one compressed batch, decompressed. log_expansion: the batches of a log together may decompress to this
    many times the log's size, plus batch_bytes; `log_records` and `log_headers` apply it to columns. batch_records:
    records of one batch, or messages of one wrapper. batch_headers: headers of one batch, where shared headers count
    once per record. field_bytes: one key, value, header key or header value. The columns of a record take 48 bytes,
    those of a header 24.
    """

    batch_bytes: int = 256 << 20  # a broker's default message.max.bytes is 1 MiB
    log_expansion: int = 256
    batch_records: int = 1 << 24
    batch_headers: int = 1 << 24
    field_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < MOST:
                raise InvalidConfig(f"limits.{field.name}: a whole number from 1 to 2**62 - 1 is wanted, not {value!r}")

    def log_bytes(self, log_size_bytes: int) -> int:
        """Return the bytes to which a log of this size may decompress, and which it may take in another format."""
        return min(self.batch_bytes + self.log_expansion * log_size_bytes, MOST)

    def log_records(self, log_size_bytes: int) -> int:
        """Return the records that a log of this size may hold if they may take no byte: 48 bytes of columns each."""
        return min(self.batch_records + self.log_expansion * log_size_bytes // 48, MOST)

    def log_headers(self, log_size_bytes: int) -> int:
        """Return the headers that a log of this size may hold: 24 bytes of columns each.

        A header that is stored once for a batch counts once per record.
        """
        return min(self.batch_headers + self.log_expansion * log_size_bytes // 24, MOST)


LIMITS: Final = Limits()
