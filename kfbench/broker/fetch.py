"""Fetch: send the log's bytes if the reader knows their format, else Kafka's down-conversion of them.

The option `scan` decides how the broker finds out if the reader knows the format:

- scan="batches", before KIP-724: the broker reads 17 bytes of each batch for its magic. It stops at the first batch
  that is too new (`AbstractRecords.hasCompatibleMagic`).
- scan="never", after KIP-724: a reader older than the broker's format always gets a conversion. For other readers no
  batch is read.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.broker.convert import HEADER_BYTES, Conversion, convert
from kfbench.broker.source import bytes_of, find
from kfbench.broker.work import Work
from kfbench.codecs import Dictionary
from kfbench.errors import InvalidRecords
from kfbench.formats import BY_MAGIC, Entries, Format
from kfbench.limits import Limits

Scan = Literal["batches", "never"]
SCANS: Final = ("batches", "never")
NEWEST_MAGIC: Final = max(magic for magic, fmt in BY_MAGIC.items() if fmt.has_broker_paths)


@dataclass(frozen=True, kw_only=True)
class FetchResult:
    """The bytes sent to a consumer.

    Args:
        zero_copy: True: `data` is a view of the log, including an incomplete last batch.
        converted_records: number of records in batches that were rebuilt.
        known_positions: the positions of batches, if they were needed for the fetch.
    """

    data: Bytes
    zero_copy: bool
    converted_records: int
    work: Work
    known_positions: Int64 | None

    @cached_property
    def positions(self) -> Int64:
        """The byte position of each batch, and the end: int64[batches + 1].

        After a zero-copy fetch they are found at the first use.
        """
        return Entries.of(self.data).positions if self.known_positions is None else self.known_positions

    @property
    def encoded(self) -> EncodedLog:
        """The same bytes as a log."""
        return EncodedLog(data=self.data, positions=self.positions, losses=self.work.losses)


def fetch(
    log: EncodedLog | Any,
    reader: Format | str,
    *,
    fmt: Format | str | None = None,
    first_offset: int = 0,
    scan: Scan = "batches",
    lossy: bool = False,
    limits: Limits | None = None,
    dictionaries: Iterable[Dictionary] = (),
) -> FetchResult:
    """Return the bytes for a consumer that knows the format `reader` and older ones. Raise the errors of `convert`.

    In the result, `work.read_bytes` is 0 if no batch was read. `work.untouched` counts the batches whose magic was read
    and that the reader knows.

    Args:
        fmt: the newest format in the log, which the broker writes; None: any format that a magic identifies.
        first_offset: the consumer's position. See `convert`.
        scan: "batches" or "never", see the module.
        lossy, limits, dictionaries: see `convert`.
    """
    if scan not in SCANS:
        raise InvalidRecords(f'scan: "batches" or "never" is wanted, not {scan!r}')
    to, stored, data = find(reader), None if fmt is None else find(fmt), bytes_of(log)
    scanned = Work()
    if scan == "never":
        fits = _knows(to, stored)
    else:
        entries = Entries.of(data)
        entries.errors("raise")
        stays = Conversion(to=to, fmt=stored, keep_older=True).stays(data, entries.positions, entries.magics)
        fits = bool(stays.all())
        seen = len(stays) if fits else int(np.argmin(stays)) + 1
        scanned = Work(untouched=seen if fits else 0, read_bytes=HEADER_BYTES * seen)
    if fits:
        positions = log.positions if isinstance(log, EncodedLog) else entries.positions if scanned.batches else None
        return FetchResult(data=data, zero_copy=True, converted_records=0, work=scanned, known_positions=positions)
    source = None if stored is not None and stored.is_told_by_magic else stored  # the log may also hold older batches
    converted = convert(
        log, to, fmt=source, first_offset=first_offset, keep_older=True, lossy=lossy, limits=limits,
        dictionaries=dictionaries,
    )  # fmt: skip
    return FetchResult(
        data=converted.data,
        zero_copy=False,
        converted_records=converted.converted_records,
        work=converted.work + scanned,
        known_positions=converted.positions,
    )


def _knows(reader: Format, stored: Format | None) -> bool:
    """Return True if the reader knows every format that a log may have whose newest format is `stored`."""
    if reader == stored:
        return True
    newest = NEWEST_MAGIC if stored is None else stored.magic
    return reader.is_told_by_magic and (stored is None or stored.is_told_by_magic) and newest <= reader.magic
