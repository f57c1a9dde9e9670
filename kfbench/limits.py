"""Limits of the memory that a reader allocates, and the default sizes of zstd dictionaries.

A log may claim sizes that it does not have, so readers check them.
"""

from dataclasses import dataclass, fields
from typing import Final

from kfbench.errors import InvalidConfig

MOST: Final = 1 << 62  # every limit is smaller, because kernels compute with int64


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The largest batches and logs that a reader accepts. It reports a larger batch as damaged (`CorruptLog`).

    Attributes:
        batch_bytes: bytes of one batch after decompression.
        log_expansion: all batches of a log may decompress to this many times the log's size, plus batch_bytes.
            `log_records` and `log_headers` apply it to columns, with 48 bytes per record and 24 bytes per header.
        batch_records: records of one batch, or messages of one wrapper (a message around a compressed set).
        batch_headers: headers of one batch. Headers that are stored once per batch count once per record.
        field_bytes: bytes of one key, value, header key or header value.

    Raises InvalidConfig for a limit below 1.
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
        """Return the largest number of bytes to which all batches of a log may decompress.

        The same number limits the log's size when it is written in another format. log_size_bytes: the log's size.
        """
        return min(self.batch_bytes + self.log_expansion * log_size_bytes, MOST)

    def log_records(self, log_size_bytes: int) -> int:
        """Return the largest number of records in a log of this size, for a format whose records may take 0 bytes."""
        return min(self.batch_records + self.log_expansion * log_size_bytes // 48, MOST)

    def log_headers(self, log_size_bytes: int) -> int:
        """Return the largest number of headers in a log of this size. Shared headers count once per record."""
        return min(self.batch_headers + self.log_expansion * log_size_bytes // 24, MOST)


LIMITS: Final = Limits()

# Sizes of dictionaries; docs/adr/0015 has the measurements.
SIZE_BYTES: Final = 32_768  # the largest size of a trained dictionary
RAW_BYTES: Final = 8_192  # the largest size of a raw dictionary
LEAST_TRAINING_BYTES: Final = 100_000  # of samples; with fewer a raw dictionary is made
