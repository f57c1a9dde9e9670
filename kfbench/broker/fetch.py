"""A fetch: the log's own bytes where the reader knows their format, and Kafka's down-conversion where it does not.

KIP-724 has two ways to find out. Before it, "batches": the magic of each batch is looked at, which takes 17 bytes of
it, up to the first that is too new (`AbstractRecords.hasCompatibleMagic`). After it, "never": a reader that is older
than what the broker writes is always converted for, and for all others nothing is looked at.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.broker.convert import HEADER_BYTES, Conversion, convert
from kfbench.broker.source import bytes_of, find
from kfbench.broker.work import Work
from kfbench.errors import InvalidRecords
from kfbench.formats import BY_MAGIC, Entries, Format
from kfbench.limits import Limits

Scan = Literal["batches", "never"]
SCANS: Final = ("batches", "never")


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """zero_copy: `data` is a view of what came in, an incomplete last batch included; a disk need not give it to us."""

    data: Bytes
    zero_copy: bool
    converted_records: int
    work: Work
    known_positions: Int64 | None

    @cached_property
    def positions(self) -> Int64:
        """int64[batches + 1]; of a zero-copy fetch they are looked for when they are first asked for."""
        return Entries.of(self.data).positions if self.known_positions is None else self.known_positions

    @property
    def encoded(self) -> EncodedLog:
        """As a log that can be passed on."""
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
) -> Fetched:
    """What a consumer that knows `reader`, and what is older, is sent.

    fmt: the newest format that is in the log, what the broker writes; None: any that its magic tells. first_offset:
    where the consumer reads on, as `convert` takes it; lossy and limits likewise. `work.read_bytes` is 0 where nothing
    was looked at; `work.untouched` counts the batches that were seen to be fit. Raises what `convert` raises.
    """
    if scan not in SCANS:
        raise InvalidRecords(f'scan: "batches" or "never" is wanted, not {scan!r}')
    to, stored, data = find(reader), None if fmt is None else find(fmt), bytes_of(log)
    looked = Work()
    if scan == "never":
        fits = _knows(to, stored)
    else:
        entries = Entries.of(data)
        entries.errors("raise")
        stays = Conversion(to=to, fmt=stored, keep_older=True).stays(data, entries.positions, entries.magics)
        fits = bool(stays.all())
        seen = len(stays) if fits else int(np.argmin(stays)) + 1
        looked = Work(untouched=seen if fits else 0, read_bytes=HEADER_BYTES * seen)
    if fits:
        positions = log.positions if isinstance(log, EncodedLog) else entries.positions if scan == "batches" else None
        return Fetched(data=data, zero_copy=True, converted_records=0, work=looked, known_positions=positions)
    named = None if stored is not None and stored.is_told_by_magic else stored  # older batches may lie in the log, too
    made = convert(log, to, fmt=named, first_offset=first_offset, keep_older=True, lossy=lossy, limits=limits)
    return Fetched(
        data=made.data,
        zero_copy=False,
        converted_records=made.converted_records,
        work=made.work + looked,
        known_positions=made.positions,
    )


def _knows(reader: Format, stored: Format | None) -> bool:
    """Whether the reader knows whatever may be in a log of that format."""
    if reader == stored:
        return True
    newest = max(BY_MAGIC) if stored is None else stored.magic
    return reader.is_told_by_magic and (stored is None or stored.is_told_by_magic) and newest <= reader.magic
