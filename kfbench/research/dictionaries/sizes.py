"""Sizes with dictionaries. A dictionary is trained on the beginning of a topic and measured on the rest."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from kfbench.arrays import Int64
from kfbench.codecs import Dictionary
from kfbench.codecs.zstd_dictionary import FRAMES
from kfbench.dictionary_sizes import RAW_BYTES
from kfbench.dictionary_training import raw_tail, samples
from kfbench.errors import IllegalCombination, InvalidDictionary
from kfbench.formats import Format
from kfbench.log import dictionary_batch
from kfbench.measure.columns import Row
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.verify import verify_records


class Split(NamedTuple):
    """A topic, divided at a batch boundary. Dictionaries see the records before it, measurements those behind it.

    first: the number of the first batch that is measured. cuts: int64[parts + 1], the batch boundaries of the parts.
    """

    first: int
    cuts: Int64


def split_topic(bounds: Int64, share: float, parts: int) -> Split:
    """Divide a topic's batches at about this share of its records, and the rest into parts of about as many batches.

    bounds: int64[batches + 1], the record boundaries of the batches. Raises IllegalCombination for too few batches.
    """
    batches = len(bounds) - 1
    first = int(np.searchsorted(bounds, share * bounds[-1]))
    if batches - first < parts or (share and not first):
        raise IllegalCombination(f"{batches} batches are too few for {parts} parts behind a share of {share:g}")
    return Split(first, first + np.round(np.linspace(0, batches - first, parts + 1)).astype(np.int64))


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A dictionary, and the columns of the result table about how it was made."""

    dictionary: Dictionary
    columns: Row


def trained(source: EncodeInput, fmt: Format, split: Split, size_bytes: int, training_batch: int) -> Trained:
    """Train a dictionary on the records before the split. Raises InvalidDictionary."""
    past, taken = _past(source, fmt, split, training_batch)
    began_ns = time.thread_time_ns()
    dictionary = Dictionary.train(taken, size_bytes, number=1)
    columns = {"training_ns": time.thread_time_ns() - began_ns}
    return _described(fmt, dictionary, source.level, past, taken, columns)


class _Past(NamedTuple):
    records: int
    taken: list[bytes]


def _past(source: EncodeInput, fmt: Format, split: Split, training_batch: int) -> _Past:
    records = int(source.bounds[split.first])
    return _Past(records, samples(source.records.part(0, records), fmt, training_batch))


def _described(
    fmt: Format, dictionary: Dictionary, level: int | None, records: int, taken: Sequence[bytes], columns: Row
) -> Trained:
    columns |= {
        "dictionary_stored_bytes": len(dictionary_batch(dictionary, fmt).data),
        "dictionary_memory_bytes": FRAMES.get(dictionary, level).size_bytes,
        "trained_records": records,
        "trained_bytes": sum(map(len, taken)),
    }
    return Trained(dictionary=dictionary, columns=columns)


def measure_dictionaries(
    fmt: Format,
    source: EncodeInput,
    *,
    sizes_bytes: Sequence[int],
    shares: Sequence[float],
    parts: int,
    training_batch: int,
) -> Iterator[Row]:
    """Yield the rows of one format: each arm of each share and part. Each encoded log is verified.

    An arm that the topic is too small for has a row with the reason. The share 0 stands for the whole topic: without a
    codec, and with the codec alone.
    """
    for share in (0.0, *shares):
        try:
            split = split_topic(source.bounds, share, parts if share else 1)
        except IllegalCombination as error:
            yield {"status": "skipped", "error": str(error), "trained_share": share}
            continue
        for arm in _plain_arms(fmt, source, split):
            yield from (row | {"trained_share": share} for row in arm)
        if not share:
            continue
        for size_bytes in sizes_bytes:
            common: Row = {"dictionary": "trained", "dictionary_size_bytes": size_bytes, "trained_share": share}
            try:
                made = trained(source, fmt, split, size_bytes, training_batch)
            except InvalidDictionary as error:
                yield common | {"status": "skipped", "error": str(error)}
            else:
                rows = _rows(fmt, source, split, made.dictionary)
                yield from (row | common | made.columns for row in rows)
        common = {"dictionary": "raw", "dictionary_size_bytes": RAW_BYTES, "trained_share": share}
        try:
            past, taken = _past(source, fmt, split, training_batch)
            made = _described(fmt, raw_tail(taken, RAW_BYTES, number=1), source.level, past, taken, {})
        except InvalidDictionary as error:
            yield common | {"status": "skipped", "error": str(error)}
        else:
            yield from (row | common | made.columns for row in _rows(fmt, source, split, made.dictionary))


def _plain_arms(fmt: Format, source: EncodeInput, split: Split) -> Iterator[list[Row]]:
    bare = EncodeInput(records=source.records, bounds=source.bounds, batch_fields=source.batch_fields)
    yield [row | {"dictionary": "none"} for row in _rows(fmt, bare, split)]
    yield [row | {"dictionary": "plain"} for row in _rows(fmt, source, split)]


def _rows(fmt: Format, source: EncodeInput, split: Split, dictionary: Dictionary | None = None) -> list[Row]:
    """Encode and verify the batches behind the split. Return one row per part."""
    rest = replace(source.behind(split.first), dictionary=dictionary)
    log = rest.encode(fmt)
    verify_records(fmt, rest.records, rest.bounds, rest.batch_fields, log, rest.dictionaries)
    rows = []
    for part, (first, end) in enumerate(zip(split.cuts[:-1], split.cuts[1:], strict=True), 1):
        records = source.records.part(int(source.bounds[first]), int(source.bounds[end]))
        positions = log.positions[[first - split.first, end - split.first]]
        rows.append(_row(len(records), int(end - first), int(positions[1] - positions[0]), part))
        rows[-1]["payload_bytes"] = records.shapes.payload_bytes
    return rows


def _row(records: int, batches: int, size_bytes: int, part: int) -> Row:
    return {"status": "ok", "records": records, "batches": batches, "size_bytes": size_bytes, "part": part}
