"""Read the newest records of a source, about the same number of bytes from each partition."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kfbench.arrays import Int64, ranges
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.log.damage import Damage
from kfbench.log.segment import join_records
from kfbench.records import Records
from kfbench.sources.folder import unread_line
from kfbench.sources.part import Chunk, Part


class Newest(NamedTuple):
    """The newest records of clients, with offsets from 0.

    damage: the damage that was met, by file. unread: a line for each part that could not be read to its end.
    """

    records: Records
    damage: dict[str, tuple[Damage, ...]]
    unread: list[str]


def newest_records(parts: Iterable[Part], most_bytes: int) -> Newest:
    """Return the newest records whose keys and values take about `most_bytes` bytes.

    Control records are left out. Parts of a partition are read from the last one, until there are enough bytes. Raises
    InvalidConfig.
    """
    partitions: dict[Any, list[Part]] = {}
    for part in parts:
        partitions.setdefault(part.name if part.partition is None else part.partition, []).append(part)
    found: list[Records] = []
    damage: dict[str, tuple[Damage, ...]] = {}
    unread: list[str] = []
    for of_one in partitions.values():
        left_bytes, newest = most_bytes // len(partitions), list[Records]()
        for part in reversed(of_one):
            read: list[Records] = []
            try:
                for chunk in part.chunks():
                    damage[part.name] = damage.get(part.name, ()) + chunk.damage
                    read = _last_records([*read, _of_clients(chunk)], left_bytes)
            except InvalidConfig:
                raise
            except (KfbenchError, OSError) as error:
                unread.append(unread_line(part.name, error))
            newest = [*read, *newest]
            left_bytes -= sum(int(_sizes(each).sum()) for each in read)
            if left_bytes <= 0:
                break
        found += newest
    records = join_records(found) if found else Records.from_lists([])
    found_damage = {name: each for name, each in damage.items() if each}
    return Newest(records.at_offsets(np.arange(len(records))), found_damage, unread)


def _of_clients(chunk: Chunk) -> Records:
    if chunk.bounds is None:
        return chunk.records
    counts = np.diff(chunk.bounds)
    is_control = np.broadcast_to(chunk.fields.over(len(counts))["is_control"], len(counts))
    chosen = np.flatnonzero(~is_control)
    return chunk.records.take(ranges(chunk.bounds[chosen], counts[chosen])) if is_control.any() else chunk.records


def _last_records(records: Sequence[Records], most_bytes: int) -> list[Records]:
    """Return the last records that take `most_bytes` bytes, at least one record. Older records are dropped."""
    newest: list[Records] = []
    for each in reversed(records):
        if most_bytes <= 0 and newest:
            break
        sizes = _sizes(each)
        first = max(len(each) - max(int(np.searchsorted(np.cumsum(sizes[::-1]), most_bytes, "right")), 1), 0)
        newest.insert(0, each.part(first, len(each)))
        most_bytes -= int(sizes[first:].sum())
    return newest


def _sizes(records: Records) -> Int64:
    """Return the bytes of each record's key and value; null has none."""
    return np.maximum(records.shapes.key_lengths, 0) + np.maximum(records.shapes.value_lengths, 0)
