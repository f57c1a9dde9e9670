"""Sizes with dictionaries. A dictionary is trained on the beginning of a topic and measured on the rest."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kfbench.arrays import Int64
from kfbench.codecs import Dictionary
from kfbench.codecs.zstd_dictionary import FRAMES
from kfbench.dictionary_training import raw_tail, samples
from kfbench.errors import IllegalCombination, InvalidDictionary
from kfbench.formats import Format
from kfbench.limits import RAW_BYTES
from kfbench.log import dictionary_batch
from kfbench.measure.columns import Row
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.verify import verify_records


def split_topic(bounds: Int64, share: float, parts: int) -> Int64:
    """Divide a topic's batches at about this share of its records, and the rest into parts of about as many batches.

    Dictionaries are trained on the records before the split, and measured on those after it. Return the first batch of
    each part, and the end: int64[parts + 1]. bounds: int64[batches + 1], the first record of each batch, and the end.
    Raises IllegalCombination for too few batches.
    """
    batches = len(bounds) - 1
    first = int(np.searchsorted(bounds, share * bounds[-1]))
    if batches - first < parts or (share and not first):
        raise IllegalCombination(f"{batches} batches are too few for {parts} parts behind a share of {share:g}")
    cuts: Int64 = first + np.round(np.linspace(0, batches - first, parts + 1)).astype(np.int64)
    return cuts


class MadeDictionary(NamedTuple):
    """A dictionary, and the columns of the result table about how it was made."""

    dictionary: Dictionary
    columns: Row


Maker = Callable[[list[bytes]], Dictionary]


def trainer(size_bytes: int) -> Maker:
    """Return a call that trains a dictionary of at most this size on samples."""
    return partial(Dictionary.train, size_bytes=size_bytes, number=1)


def make_dictionary(source: EncodeInput, fmt: Format, first: int, training_batch: int, make: Maker) -> MadeDictionary:
    """Make a dictionary of the records before batch `first`. Raises InvalidDictionary."""
    records = int(source.bounds[first])
    taken = samples(source.records.part(0, records), fmt, training_batch)
    began_ns = time.thread_time_ns()
    dictionary = make(taken)
    times: Row = {} if dictionary.is_raw else {"training_ns": time.thread_time_ns() - began_ns}
    return MadeDictionary(
        dictionary,
        times
        | {
            "dictionary_stored_bytes": len(dictionary_batch(dictionary, fmt).data),
            "dictionary_memory_bytes": FRAMES.get(dictionary, source.level).size_bytes,
            "trained_records": records,
            "trained_bytes": sum(map(len, taken)),
        },
    )


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
    makers = [("trained", size, trainer(size)) for size in sizes_bytes]
    makers.append(("raw", RAW_BYTES, partial(raw_tail, size_bytes=RAW_BYTES, number=1)))
    plain = {
        "none": EncodeInput(records=source.records, bounds=source.bounds, batch_fields=source.batch_fields),
        "plain": source,
    }
    for share in (0.0, *shares):
        try:
            cuts = split_topic(source.bounds, share, parts if share else 1)
        except IllegalCombination as error:
            yield {"status": "skipped", "error": str(error), "trained_share": share}
            continue
        for arm, given in plain.items():
            yield from _rows(fmt, given, cuts, {"dictionary": arm, "trained_share": share})
        for arm, size_bytes, make in makers if share else ():
            common: Row = {"dictionary": arm, "dictionary_size_bytes": size_bytes, "trained_share": share}
            try:
                made = make_dictionary(source, fmt, int(cuts[0]), training_batch, make)
            except InvalidDictionary as error:
                yield common | {"status": "skipped", "error": str(error)}
            else:
                yield from _rows(fmt, source, cuts, common | made.columns, made.dictionary)


def _rows(
    fmt: Format, source: EncodeInput, cuts: Int64, common: Row, dictionary: Dictionary | None = None
) -> list[Row]:
    """Encode and verify the batches behind the split. Return one row per part, with the columns of `common`."""
    rest = replace(source.behind(int(cuts[0])), dictionary=dictionary)
    log = rest.encode(fmt)
    verify_records(fmt, rest, log)
    rows = []
    for part, (first, end) in enumerate(pairwise(cuts.tolist()), 1):
        records = source.records.part(int(source.bounds[first]), int(source.bounds[end]))
        start, stop = log.positions[[first - cuts[0], end - cuts[0]]].tolist()
        row = {"status": "ok", "records": len(records), "batches": end - first, "size_bytes": stop - start}
        rows.append(row | {"part": part, "payload_bytes": records.shapes.payload_bytes} | common)
    return rows
