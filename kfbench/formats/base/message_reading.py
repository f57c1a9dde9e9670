"""Read messages of v0, v1 and enriched: single messages, and outer messages (wrappers) around compressed sets."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH
from kfbench.codecs import Allowance, Codec
from kfbench.formats.base.damage import Bodies, Damage, OnError, PlainBodies
from kfbench.formats.base.index import Index
from kfbench.formats.base.reading import Reading
from kfbench.records import Records


class MessageReading(Reading):
    """Reader of messages and compressed sets of one format. The constructor reads everything.

    kernels: the module whose kernels read this format. variant: the number that selects the format in these kernels.
    """

    def __init__(
        self,
        kernels: Any,
        variant: int,
        find_codec: Callable[[int], Codec],
        data: Bytes,
        positions: Int64,
        on_error: OnError,
        allowance: Allowance,
    ) -> None:
        entries = len(positions) - 1
        self.data, self.positions, self.kernels, self.variant = data, positions, kernels, variant
        self.damage = Damage(positions, on_error)
        state = self.damage.state
        codecs, bodies, stops = np.empty(entries, np.int8), np.empty(entries, np.int64), np.empty(entries, np.int64)
        self.source, self.starts, self.ends = data, positions[:-1], positions[1:]
        any_codec = kernels.survey(data, positions, variant, codecs, bodies, stops, state)
        if any_codec:
            compressed = Bodies(data, bodies, stops, codecs, find_codec)
            self.source, self.starts, self.ends = self.damage.plain(compressed, allowance)
        counts = np.empty(entries, np.int64)
        limits = allowance.limits.batch_records, allowance.limits.field_bytes
        kernels.count(self.source, self.starts, self.ends, codecs, limits, state, counts)
        self.index = Index(int(counts.sum()), two_clocks=any_codec)
        self.bounds = np.empty(entries + 1, np.int64)
        kernels.index(data, positions, self.source, self.starts, codecs, counts, state, self.index.columns, self.bounds)
        records = int(self.bounds[-1])
        self.index.cut(records)
        self.header_bounds = np.zeros(records + 1, np.int64)

    def rows(self, records: Records, bounds: Int64) -> NDArray[np.void]:
        sound = self.sound
        rows = np.zeros(len(sound), BATCH)
        self.kernels.describe(
            self.data, self.positions, self.variant, self.source, self.starts, self.ends, sound, bounds,
            records.offsets, rows,
        )  # fmt: skip
        rows["records_size_bytes"] = (self.ends - self.starts)[sound]
        return rows

    @property
    def plain_sets(self) -> PlainBodies:
        return PlainBodies(self.source, self.starts, self.ends)
