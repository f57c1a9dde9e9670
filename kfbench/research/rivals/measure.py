"""Sizes of rivals: existing containers in the place of v2's records. Each batch is read back before its size counts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from kfbench.errors import IllegalCombination, KfbenchError
from kfbench.layouts import V2_HEADER
from kfbench.measure.columns import Row
from kfbench.measure.encode_input import EncodeInput
from kfbench.records import Records
from kfbench.research.rivals import Rival
from kfbench.research.rivals.base import SCHEMA, FetchedPayload, from_table, to_table
from kfbench.research.rivals.envelope import headers_of, open_sealed, seal


class RivalFailed(KfbenchError):
    """A rival's library raised an error, or the records that were read back differ."""


def check_same(name: str, is_same: bool) -> None:
    """Raise RivalFailed unless the decoded data equal the original. name: the data, for the message."""
    if not is_same:
        raise RivalFailed(f"{name}: decoded data differ")


@contextmanager
def library_errors() -> Iterator[None]:
    """Turn every error of a library into RivalFailed.

    Interrupts, time limits and a lack of memory or disk space are no errors of a library. A panic in a Rust library is
    one, and no Exception. An OSError of the system has a number; one of a library has none.
    """
    try:
        yield
    except (IllegalCombination, RivalFailed):
        raise
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"
        is_of_host = error.errno is not None if isinstance(error, OSError) else isinstance(error, MemoryError)
        if is_of_host or not (is_panic or isinstance(error, Exception)):
            raise
        first_line = str(error).partition("\n")[0]
        raise RivalFailed(f"{type(error).__name__}: {first_line}") from error


@dataclass(frozen=True, kw_only=True)
class RivalBatch:
    """One batch. header: v2's. records: their offsets and timestamps are deltas to the header's bases."""

    records: Records
    header: bytes

    @cached_property
    def table(self) -> pa.Table:
        """The batch with the columns of SCHEMA, verified once for all rivals and codecs."""
        table = to_table(self.records)
        check_same("records", from_table(table) == self.records)
        return table


_SAMPLE_FIELDS: Final = ("records", "bounds", "batch_fields")


class _LastBatches(NamedTuple):
    source: EncodeInput
    batches: list[RivalBatch]


_LAST: Final = list[_LastBatches]()  # none or one: the arms and codecs of a sample have the same batches


def rival_batches(source: EncodeInput) -> list[RivalBatch]:
    """Return all batches. A base of a header may lie before the first record, as after a compaction."""
    if _LAST and all(getattr(_LAST[0].source, name) is getattr(source, name) for name in _SAMPLE_FIELDS):
        return _LAST[0].batches
    _LAST[:] = [_LastBatches(source, _batches_of(source))]
    return _LAST[0].batches


def _batches_of(source: EncodeInput) -> list[RivalBatch]:
    headers = headers_of(source.records, source.bounds, source.batch_fields)
    found = []
    for (first, end), header in zip(pairwise(source.bounds.tolist()), headers, strict=True):
        (row,) = np.frombuffer(header, V2_HEADER)
        records = source.records.part(first, end)
        with np.errstate(over="ignore"):
            deltas = records.offsets - row["base_offset"], records.timestamps_ms - row["base_timestamp_ms"]
        found.append(RivalBatch(records=records.at_offsets(deltas[0]).at_times(deltas[1]), header=header))
    return found


def encode_batch(rival: Rival, batch: RivalBatch, codec: str, level: int | None) -> bytes:
    """Return one batch with v2's header. An empty batch has no container."""
    records = batch.records
    container = rival.encode(rival.prepare_table(batch.table), codec, level) if len(records) else b""
    return seal(container, batch.header)


def verify_batch(rival: Rival, batch: RivalBatch, sealed: bytes) -> None:
    """Raise an error unless every reader of the rival returns what was encoded."""
    container, records = open_sealed(sealed), batch.records
    if not len(records):
        return
    check_same("records", rival.table(rival.decode(container)).cast(SCHEMA).equals(batch.table))
    times = rival.read_times(container)
    check_same("offsets", np.array_equal(times.offset_deltas, records.offsets))
    check_same("timestamps", np.array_equal(times.timestamp_deltas, records.timestamps_ms))
    for i in sorted({0, len(records) // 2, len(records) - 1}):
        check_same(f"record {i}", is_record(rival.fetch(container, i), records, i))


def is_record(fetched: FetchedPayload, records: Records, i: int) -> bool:
    """Return True if a fetched payload is that of record i."""
    headers = [(name.decode(errors="replace"), value) for name, value in fetched.headers]
    return (fetched.key, fetched.value, headers) == (records.key(i), records.value(i), records.headers(i))


_ENCODED_TWICE: Final = 10  # batches that are encoded twice


def measure_rival(rival: Rival, source: EncodeInput) -> Row:
    """Encode every batch with a rival, verify it, and return the sizes as columns of the result table.

    The first 10 batches are encoded twice, and must have the same bytes. Raises IllegalCombination for a codec that the
    container does not have, and RivalFailed.
    """
    rival.check_codec(source.codec)
    size_bytes = 0
    batches = rival_batches(source)
    for i, batch in enumerate(batches):
        with library_errors():
            sealed = encode_batch(rival, batch, source.codec, source.level)
            verify_batch(rival, batch, sealed)
            if i < _ENCODED_TWICE:
                check_same("a second run", encode_batch(rival, batch, source.codec, source.level) == sealed)
        size_bytes += len(sealed)
    return {
        "records": len(source.records),
        "batches": len(batches),
        "size_bytes": size_bytes,
        "payload_bytes": source.records.shapes.payload_bytes,
        "library": f"{rival.needs} {rival.version()}",
    }
