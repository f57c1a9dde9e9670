"""The workload of a fingerprint: records with a topic's lengths, batches, times, offsets, keys and compressibility."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import BatchFields
from kfbench.errors import InvalidConfig
from kfbench.layouts import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kfbench.records import Records, Shapes
from kfbench.workloads.base.workload import BLOCK_RECORDS, Description, Filled, Sample, block_slices, check_slice
from kfbench.workloads.fingerprinted.block import Block, block_of
from kfbench.workloads.fingerprinted.content import PLAIN, Profile, profile
from kfbench.workloads.fingerprinted.model import TopicModel
from kfbench.workloads.named.batching import rebatch

KEY, VALUE, HEADER_KEY, HEADER_VALUE = range(1, 5)
MOST_PLACES: Final = 1_000
UNIQUE_REUSE: Final = 1.5  # with fewer records per key, keys vary by position like values


@dataclass(frozen=True, kw_only=True)
class FingerprintWorkload:
    """Records generated from a topic of a fingerprint. Raises InvalidConfig.

    Args:
        batch_size: records per batch; None: batches of the topic's sizes.
    """

    name: str
    batch_size: int | None = None
    model: TopicModel = field(metadata={"is_axis": False})

    def __post_init__(self) -> None:
        if self.batch_size is not None and not (
            isinstance(self.batch_size, int) and 1 <= self.batch_size <= BLOCK_RECORDS
        ):
            raise InvalidConfig(f"batch_size: {self.batch_size!r} is not 1 to {BLOCK_RECORDS}")

    @classmethod
    def of(cls, model: TopicModel) -> "FingerprintWorkload":
        return cls(name=model.name, model=model)

    @property
    def summary(self) -> str:
        return f"Records like those of topic {self.model.number} of the fingerprint with sha256 {self.model.sha256}"

    def describe(self) -> Description:
        return Description(
            question="How do formats and codecs do on a topic whose records are not shown?",
            story=self.summary,
            variants=("default",),
            assumptions=(
                "the bytes of keys, values and headers are invented; they compress about like the original's",
            ),
            parameters=(),
        )

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """Return the records with the numbers start to start + records - 1 of the endless sequence of this seed."""
        check_slice(records, seed, start)
        if self.batch_size is None:
            return _sample(self.model, records, seed, start)
        return rebatch(_sample(self.model, records, seed, start), self.batch_size, start)


class _Slice:
    """The columns of consecutive records, from one or more blocks."""

    def __init__(self, model: TopicModel, records: int, seed: int, start: int) -> None:
        self.parts: dict[str, list[Any]] = {name: [] for name in Block._fields}
        done = 0
        for number, first, count in block_slices(start, records):
            block = block_of(model, seed, number)
            headers = slice(*block.headers[[first, first + count]].tolist())
            batch = int(np.searchsorted(block.bounds, first, side="right")) - 1
            end = int(np.searchsorted(block.bounds, first + count))
            for name, column in block._asdict().items():
                if name == "bounds":
                    self.parts[name].append(done + np.maximum(column[batch:end] - first, 0))
                elif name == "producers":
                    self.parts[name].append(column[batch:end])
                elif name == "headers":
                    self.parts[name].append(np.diff(column[first : first + count + 1]))
                elif name in ("name_lengths", "content_lengths", "name_ids", "content_ids"):
                    self.parts[name].append(column[headers])
                else:
                    self.parts[name].append(column[first : first + count])
            done += count

    def column(self, name: str) -> Any:
        parts = self.parts[name]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32 if name.endswith("lengths") else np.int64)


def _sample(model: TopicModel, records: int, seed: int, start: int) -> Sample:
    found = _Slice(model, records, seed, start)
    producers = found.column("producers")
    bounds = np.append(found.column("bounds"), records).astype(np.int64)
    shapes = Shapes(
        timestamps_ms=found.column("times_ms"),
        offsets=found.column("offsets"),
        key_lengths=found.column("key_lengths"),
        value_lengths=found.column("value_lengths"),
        header_bounds=np.append(0, np.cumsum(found.column("headers"))).astype(np.int64),
        header_key_lengths=found.column("name_lengths"),
        header_value_lengths=found.column("content_lengths"),
    )
    fields = BatchFields()
    if (producers >= 0).any():
        known = producers >= 0
        fields = BatchFields(
            producer_id=np.where(known, producers, NO_PRODUCER_ID),
            producer_epoch=np.where(known, 0, NO_PRODUCER_EPOCH),
            base_sequence=np.where(known, (bounds[:-1] + start) & 0x7FFFFFFF, NO_SEQUENCE),
        )

    def payload() -> Records:
        ids = found.column("key_ids"), found.column("name_ids"), found.column("content_ids")
        return _records(model, shapes, seed, start, *ids)

    return Sample(shapes=shapes, bounds=bounds, batch_fields=fields, payload=payload)


def _records(
    model: TopicModel, shapes: Shapes, seed: int, start: int, key_ids: Int64, name_ids: Int64, content_ids: Int64
) -> Records:
    found = model.distributions
    reuse = found.records_per_key
    has_unique = reuse.sum < UNIQUE_REUSE * reuse.members
    keys, values, names = _profiles(model)
    key = keys.fill(seed, KEY, start, shapes.key_lengths, None if has_unique else key_ids)
    value = values.fill(seed, VALUE, start, shapes.value_lengths)
    name = names.fill(seed, HEADER_KEY, 0, shapes.header_key_lengths, name_ids)
    content = _header_values(model, shapes, seed, content_ids)
    return Records(
        shapes=shapes,
        key_data=key.data,
        key_starts=key.starts,
        value_data=value.data,
        value_starts=value.starts,
        header_key_data=name.data,
        header_key_starts=name.starts,
        header_value_data=content.data,
        header_value_starts=content.starts,
    )


def _header_values(model: TopicModel, shapes: Shapes, seed: int, ids: Int64) -> Filled:
    """Generate header values, those of each position in turn. The last known position stands for later ones."""
    counts = np.diff(shapes.header_bounds)
    known = model.distributions.headers
    data, starts, size = [np.zeros(0, np.uint8)], np.zeros(len(ids), np.int64), 0
    for place in range(int(counts.max(initial=0))):
        mine = shapes.header_bounds[:-1][counts > place] + place
        positions = known[min(place, len(known) - 1)].values if known else ()
        purpose = HEADER_VALUE + place % MOST_PLACES
        found = profile(positions).fill(seed, purpose, 0, shapes.header_value_lengths[mine], ids[mine])
        starts[mine] = found.starts + size
        data.append(found.data)
        size += len(found.data)
    return Filled(np.concatenate(data), starts)


@lru_cache(maxsize=8)
def _profiles(model: TopicModel) -> tuple[Profile, Profile, Profile]:
    found = model.distributions
    return (
        profile(found.keys),
        profile(found.values, model.freshness, model.spread, model.has_long_runs),
        profile(PLAIN),
    )


def varied(
    workload: FingerprintWorkload, freshness: float, spread: float, has_long_runs: bool = False
) -> FingerprintWorkload:
    """Return the workload with values that vary more or less."""
    return replace(
        workload, model=replace(workload.model, freshness=freshness, spread=spread, has_long_runs=has_long_runs)
    )
