"""The table about batches after compaction. They have holes, so fewer records share the header of a batch."""

from typing import Final

import numpy as np

from kfbench.broker.compact import sizes_with_holes
from kfbench.claims.example import KIP_931_WRITTEN_MS
from kfbench.layouts import DAY_MS, NO_TIMESTAMP
from kfbench.records import Records
from kfbench.report.data.paths import Paths
from kfbench.tables import Cell, Table, plain_columns

HOLES: Final = (1, 2, 10, 100)  # 10: one of 10 records remains


def holes_table(paths: Paths) -> Table | None:
    """Return a table of overhead per record in batches of 100 records, after some of the records are removed.

    The numbers are computed from the formats, not measured. They equal the bytes that compaction writes without a
    codec.
    """
    if not any(operation.startswith("compact") for operation in paths.operations):
        return None
    count = 1_000
    records = Records.from_lists(
        [b"v" * 100] * count, keys=[b"k" * 16] * count, timestamps_ms=[KIP_931_WRITTEN_MS + i for i in range(count)]
    )
    body: list[tuple[Cell, ...]] = []
    for step in HOLES:
        keep = np.arange(count) % step == step - 1
        survivors = int(keep.sum())
        for horizon_ms in (NO_TIMESTAMP, KIP_931_WRITTEN_MS + DAY_MS):
            sizes = [sizes_with_holes(name, records, 100, keep, horizon_ms).sum() for name in paths.formats]
            over = [float(size) / survivors - 116 for size in sizes]
            body.append((f"1 in {step}" if step > 1 else "all", horizon_ms != NO_TIMESTAMP, *over))
    return Table(
        name="broker-holes",
        caption="Holes: overhead after compaction of batches of 100, bytes per record, computed without a codec",
        columns=plain_columns("kept", "delete horizon", *paths.formats),
        rows=tuple(body),
        notes=(
            "16-byte keys, 100-byte values, records 1 ms apart. Batches are not merged: a header is shared by fewer.",
            "A delete horizon replaces the base timestamp, and timestamp deltas count from it: here one day.",
        ),
    )
