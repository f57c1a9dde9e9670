"""Generate the payload of a named workload's records: keys, values and headers, from text templates."""

import numpy as np

from kfbench.arrays import Int64
from kfbench.layouts import NULL_LENGTH
from kfbench.records import Records, Shapes
from kfbench.workloads.base.workload import Filled
from kfbench.workloads.named.batching import Transactions
from kfbench.workloads.named.keys import KeyDistribution
from kfbench.workloads.named.kinds import (
    ABORTS,
    FILLED,
    HEADERS,
    KEY,
    MARKER,
    MARKER_LAYOUTS,
    MARKERS,
    TOMBSTONE,
    VALUE,
    Column,
    Kinds,
    kinds_alike,
    pick_shares,
    shares_main,
    stream_of,
)
from kfbench.workloads.named.tables import Key, Model

NO_BYTES = np.zeros(0, np.uint8)


def records_of(model: Model, shapes: Shapes, kinds: Kinds | None, seed: int, start: int) -> Records:
    """Generate the payload for records with known shapes (lengths, times, offsets).

    Args:
        kinds: the kind of each record; None if all records are plain.
        start: the number of the first record in the workload.
    """
    numbers = np.arange(start, start + len(shapes))
    ids = _key_ids(model, model.key, seed, numbers, kinds)
    key_data, key_starts = _fill_column(model, KEY, seed, shapes, kinds, numbers, ids)
    value_data, value_starts = _fill_column(model, VALUE, seed, shapes, kinds, numbers, ids)
    names = [each.name.encode() for each in model.header]
    name_ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    contents, content_starts = [NO_BYTES], np.empty((len(shapes), len(names)), np.int64)
    lengths = shapes.header_value_lengths.reshape(content_starts.shape)
    size = 0
    for h, header in enumerate(model.header):
        data, starts = header.parsed.fill(
            seed, FILLED + HEADERS + h, numbers, lengths[:, h], keys=ids, timestamps_ms=shapes.timestamps_ms
        )
        content_starts[:, h] = starts + size
        contents.append(data)
        size += len(data)
    return Records(
        shapes=shapes,
        key_data=key_data,
        key_starts=key_starts,
        value_data=value_data,
        value_starts=value_starts,
        header_key_data=np.frombuffer(b"".join(names), np.uint8),
        header_key_starts=np.tile(name_ends - [len(name) for name in names], len(shapes)).astype(np.int64),
        header_value_data=np.concatenate(contents),
        header_value_starts=content_starts.reshape(-1),
    )


def _key_ids(model: Model, key: Key | None, seed: int, numbers: Int64, kinds: Kinds | None) -> Int64:
    """Return the key ids of consecutive records: int64[records]. A tombstone has the key of the record before it.

    numbers: int64[records], the numbers of the records in the workload.
    """
    if not len(numbers):
        return numbers
    distribution, first = KeyDistribution() if key is None else key.distribution, int(numbers[0])
    ids = distribution.ids(seed, first, len(numbers))
    if kinds is not None and model.has_tombstones:
        after = np.flatnonzero(kinds == TOMBSTONE)
        if len(after):
            before = ids[after - 1]
            if after[0] == 0:
                before[0] = distribution.ids(seed, first - 1, 1)[0]
            ids[after] = before
    return ids


def _fill_column(
    model: Model, column: Column, seed: int, shapes: Shapes, kinds: Kinds | None, numbers: Int64, ids: Int64
) -> Filled:
    """Generate all keys or all values of the records. Kinds of records with different tables are generated in turn.

    Args:
        column: KEY or VALUE.
        numbers: int64[records], the numbers of the records in the workload.
        ids: int64[records], their key ids.
    """
    lengths = shapes.key_lengths if column == KEY else shapes.value_lengths
    data_by_kind, starts, size = [NO_BYTES], np.zeros(len(shapes), np.int64), 0
    for k, pair in enumerate(model.parts):
        key, part = pair[KEY], pair[column]
        if part is None or (k and shares_main(model, k, column)):
            continue
        own_ids = ids if key is model.key else _key_ids(model, key, seed, numbers, None)
        mine = None if kinds is None else kinds_alike(model, k, column)[kinds]
        data, found = part.parsed.fill(
            seed, FILLED + stream_of(model, k, column), own_ids if column == KEY else numbers,
            lengths if mine is None else np.where(mine, lengths, np.int32(NULL_LENGTH)), keys=own_ids,
            timestamps_ms=None if column == KEY else shapes.timestamps_ms,
        )  # fmt: skip
        if mine is None:
            return Filled(data, found)
        np.copyto(starts, found + size, where=mine)
        data_by_kind.append(data)
        size += len(data)
    if isinstance(model.batching, Transactions) and kinds is not None:
        marker = np.flatnonzero(kinds == MARKER)
        abort = np.zeros(len(marker), np.int64)
        if column == KEY and len(numbers):
            drawn = np.empty(len(numbers), np.uint8)
            pick_shares((model.batching.abort_share,), seed, ABORTS, int(numbers[0]), drawn)
            abort = drawn[marker].astype(np.int64)
        starts[marker] = size + abort * MARKER_LAYOUTS[column].itemsize
        data_by_kind.append(np.frombuffer(MARKERS[column], np.uint8))
    return Filled(np.concatenate(data_by_kind), starts)
