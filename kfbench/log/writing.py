"""Write logs whose batches may have different formats and codecs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, ranges
from kfbench.batches import BatchFields, DecodedLog, EncodedLog
from kfbench.codecs import Allowance, Dictionary, Level, ZstdDictionary, codec_names
from kfbench.codecs.dictionary import by_number
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.formats import FORMATS, Format, format_of
from kfbench.kernels.wire import frames
from kfbench.layouts import SHARED_HEADERS, V3_FEATURES_MASK
from kfbench.log.dictionaries import dictionary_batch
from kfbench.records import Records


@dataclass(frozen=True, kw_only=True)
class BatchEncoding:
    """The way to write a batch: its format, its codec's name and level, and the dictionary of zstd."""

    fmt: Format
    codec: str = "none"
    level: Level = None
    dictionary: Dictionary | None = None


class BatchEncodings(NamedTuple):
    """The kinds (format and codec) of n batches: batch b is written as kinds[number[b]]. number: int64[n]."""

    number: Int64
    kinds: list[BatchEncoding]


def write_log(log: DecodedLog, dictionary: Dictionary | None = None) -> EncodedLog:
    """Encode a decoded log. Each batch keeps its format, its codec and its zstd dictionary.

    Canonical batches without a codec get the same bytes again. A batch is canonical if it has no over-long varints,
    unused bits or record attributes (column `canonical` of `.batches`).

    dictionary: write the zstd batches of v2 and v3 with it, and store it in front of all batches. It takes
    the offset before the first batch.

    Raises InvalidDictionary if the log has another dictionary with this number, and InvalidRecords if the log begins at
    offset 0. Kafka's consumer would skip a record that has the offset of the stored dictionary.
    """
    number, kinds = encodings_of(log)
    if dictionary is None:
        return write_batches(log.source_records, log.bounds, log.batch_fields, number, kinds)
    by_number([dictionary, *log.dictionaries.values()])
    is_changed = [kind.codec == "zstd" and kind.fmt.capabilities.dictionaries for kind in kinds]
    kinds = [replace(kind, dictionary=dictionary) if is_changed[i] else kind for i, kind in enumerate(kinds)]
    log_bytes = write_batches(log.source_records, log.bounds, log.batch_fields, number, kinds)
    if not any(is_changed):
        return log_bytes
    first = int(np.flatnonzero(np.array(is_changed)[number])[0])
    offset = int(log.batch_rows["base_offset"][0]) - 1
    if offset < 0:
        raise InvalidRecords("offsets: the log begins at 0, so no offset before it is free for the dictionary")
    head = dictionary_batch(dictionary, kinds[number[first]].fmt, offset)
    positions = np.append(0, log_bytes.positions + len(head.data))
    return EncodedLog(data=np.concatenate([head.data, log_bytes.data]), positions=positions)


def encodings_of(log: DecodedLog) -> BatchEncodings:
    """Return the kind (format and codec) of each batch of a decoded log."""
    rows = log.batch_rows
    features = np.where(rows["magic"] == 3, rows["attributes"].astype(np.int64) & V3_FEATURES_MASK, 0)
    features = np.where(rows["shared_headers"] > 0, features | SHARED_HEADERS, features)
    is_compressed = (rows["count"] > 0) & ((rows["codec"] != ZstdDictionary.id) | (rows["dictionary"] > 0))
    codecs = np.where(is_compressed, rows["codec"], 0)
    # One number per batch, because np.unique takes 25 times as long with rows. Bits 0-2: magic; 3-5: codec; from 17 on:
    # dictionary.
    dictionaries = np.maximum(rows["dictionary"], 0).astype(np.int64) << 17
    packed = dictionaries | features | codecs.astype(np.int64) << 3 | rows["magic"]
    distinct, number = np.unique(packed, return_inverse=True)
    named = FORMATS[log.format_name] if log.format_name else None
    kinds = [
        BatchEncoding(
            fmt=named or format_of(each & 7, each & 0x1FFFF & ~0x3F),
            codec="zstd" if each >> 17 else codec_names()[each >> 3 & 7],
            dictionary=log.dictionaries[each >> 17] if each >> 17 else None,
        )
        for each in distinct.tolist()
    ]
    return BatchEncodings(number.astype(np.int64), kinds)


def write_batches(
    records: Records,
    bounds: Int64,
    fields: BatchFields,
    number: Int64,
    kinds: Sequence[BatchEncoding],
    lossy: bool = False,
) -> EncodedLog:
    """Write batch b as kinds[number[b]]. Batches of one kind are encoded together, then put back in order.

    bounds: int64[batches + 1]. fields: the header fields to set. lossy: leave out what a format cannot store; the
    losses of all kinds are added up.
    """
    pieces: list[Slices] = []
    losses: Counter[str] = Counter()
    for part in _by_kind(records, bounds, fields, number):
        kind = kinds[part.kind]
        piece = kind.fmt.encode(
            part.records, part.bounds, kind.codec, kind.level, part.fields, lossy, dictionary=kind.dictionary
        )
        if len(part.batches) == len(number):
            return piece
        pieces.append(Slices.of(piece, part.batches))
        losses.update(piece.losses)
    return replace(splice(len(number), pieces), losses=dict(losses))


class Slices(NamedTuple):
    """Some items (batches or requests) of a result: item numbers[i] is data[starts[i]:ends[i]]."""

    data: Bytes
    starts: Int64
    ends: Int64
    numbers: Int64

    @classmethod
    def of(cls, log: EncodedLog, numbers: Int64) -> Self:
        return cls(log.data, log.positions[:-1], log.positions[1:], numbers)


def splice(items: int, parts: Sequence[Slices]) -> EncodedLog:
    """Copy the items of all parts into a new buffer, in the order of their numbers. Each item is in one part."""
    positions = np.zeros(items + 1, np.int64)
    for part in parts:
        positions[part.numbers + 1] = part.ends - part.starts
    np.cumsum(positions, out=positions)
    data = np.empty(positions[-1], np.uint8)
    for part in parts:
        frames.scatter(part.data, part.starts, part.ends, positions[part.numbers], data)
    return EncodedLog(data=data, positions=positions)


def check_room(
    fmt: Format, records: Records, bounds: Int64, fields: BatchFields, positions: Int64, allowance: Allowance
) -> None:
    """Raise CorruptLog if these batches would take more bytes in `fmt` than the allowance permits.

    This can happen because headers that v3 stores once per batch are in every record of `fmt`. positions: the byte at
    which each batch begins in the log that was read.
    """
    batch = fmt.first_beyond(allowance.built_bytes, records, bounds, fields)
    if batch is not None:
        promise = f"more bytes as {fmt.name} than limits.log_expansion allows a log of this size"
        raise CorruptLog(int(positions[batch]), "records", promise)


def codec_bytes(
    records: Records, bounds: Int64, fields: BatchFields, number: Int64, kinds: Sequence[BatchEncoding]
) -> int:
    """Return the number of bytes before compression that the codecs get when `write_batches` writes these batches."""
    total = 0
    for part in _by_kind(records, bounds, fields, number):
        fmt = kinds[part.kind].fmt
        if kinds[part.kind].codec != "none":
            parts = fmt.breakdown(part.records, part.bounds, part.fields)
            total += sum(size for name, size in parts.items() if not name.startswith(fmt.bare_parts))
    return total


class _KindPart(NamedTuple):
    """The batches of one kind.

    kind: its index in `kinds`. batches: the indices of its batches. records, bounds, fields: of these batches only.
    """

    kind: int
    batches: Int64
    records: Records
    bounds: Int64
    fields: BatchFields


def _by_kind(records: Records, bounds: Int64, fields: BatchFields, number: Int64) -> Iterator[_KindPart]:
    for kind in np.unique(number).tolist():
        batches = np.flatnonzero(number == kind)
        if len(batches) == len(number):
            yield _KindPart(kind, batches, records, bounds, fields)
            continue
        counts = bounds[batches + 1] - bounds[batches]
        part = records.take(ranges(bounds[batches], counts))
        yield _KindPart(kind, batches, part, np.append(0, np.cumsum(counts)), fields.take(batches))


def runs(numbers: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield (first index, index after the last) of each run of equal neighbouring numbers."""
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)] if len(numbers) else []
    return pairwise(cuts)


def chained(bounds: Sequence[Int64]) -> Int64:
    """Join the batch boundaries of several parts into those of all parts together.

    Each part's boundaries begin at 0.
    """
    starts = np.cumsum([0, *(int(part[-1]) for part in bounds)])
    parts = [part[:-1] + start for part, start in zip(bounds, starts, strict=False)]
    return np.concatenate([*parts, starts[-1:]]).astype(np.int64)
