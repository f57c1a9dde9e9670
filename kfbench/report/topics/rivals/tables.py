"""Tables about rivals."""

import math
from collections.abc import Collection
from itertools import product
from typing import Any, Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.dictionaries import OWN
from kfbench.report.data.rivals import (
    AGAIN,
    COLUMNAR,
    CPU,
    EACH,
    SEARCH,
    TOGETHER,
    BreakEven,
    Rivals,
)
from kfbench.tables import Cell, Column, Ranked, Table, number, plain_columns

BASES: Final = (BASE_FORMAT, COLUMNAR)
BASE: Final = f"{BASE_FORMAT} + zstd 3"
TRIAL: Final = "user-activity"
TENFOLD: Final = frozenset({1, 10, 100, 1_000, 10_000})  # batch sizes of CPU tables; the rows of the run have more
MEANS: Final = "rivals-means"
OPERATIONS: Final = {
    "encode": "encode",
    "decode": "decode",
    "read-times": "offsets and times only",
    "fetch-record": "one record",
}
CALLS: Final = {
    EACH: "one batch", TOGETHER: "all batches", AGAIN: "one batch, again", SEARCH: "one batch, all settings tried",
}  # fmt: skip


def means_frame(found: Rivals) -> pd.DataFrame:
    """Return the mean ratios for the figure: a row per batch size, a column per format."""
    names = [BASE_FORMAT, COLUMNAR, *found.best]
    return pd.DataFrame(
        {name: {batch: found.mean(batch, name) for batch in found.batches} for name in names}, dtype=float
    )


def _batch_columns(batches: list[int], digits: int) -> tuple[Column, ...]:
    return tuple(Column(name=number(batch) if batch else "own batches", digits=digits) for batch in batches)


def means_table(found: Rivals) -> Table:
    batches = [*found.batches, OWN]
    return Table(
        name=MEANS,
        caption=f"Bytes relative to {BASE}, by records per batch",
        columns=(*plain_columns("container"), *_batch_columns(batches, 3)),
        rows=tuple((name, *(found.mean(batch, name) for batch in batches)) for name in (COLUMNAR, *found.arms)),
        notes=(
            f"Geometric means over up to {len(found.workloads())} workloads, all under zstd 3.",
            "“-best” and “-bare” have the smallest settings that we found.",
            *(("In some batches a documented arm is smaller than that.",) if _is_best_beaten(found) else ()),
        ),
    )


def _is_best_beaten(found: Rivals) -> bool:
    """Return True if an arm with documented settings is smaller than the same container's smallest ones, somewhere."""
    pairs = [(name, name.rpartition("-")[0]) for name in found.best]
    cells = product(pairs, found.workloads(), [*found.batches, OWN])
    ratios = (found.ratio(workload, batch, *pair) for pair, workload, batch in cells)
    return any(ratio > 1 for ratio in ratios if ratio is not None)


def codecs_table(found: Rivals) -> Table:
    """Return a table of the mean ratios under the other codecs, each relative to v2 with the same codec."""
    batches = [batch for batch in found.batches if batch in (1, 10, 100, 1_000, 10_000)]
    body = [
        (codec, name, *(found.mean(batch, name, codec=codec) for batch in batches))
        for codec, name in product(("none", "lz4"), (COLUMNAR, *found.arms))
    ]
    return Table(
        name="rivals-codecs",
        caption=f"Bytes relative to {BASE_FORMAT} with the same codec",
        columns=(*plain_columns("codec", "container"), *_batch_columns(batches, 3)),
        rows=tuple(row for row in body if any(cell is not None for cell in row[2:])),
    )


def own_table(found: Rivals) -> Table:
    """Return a table of each workload in its own batches: v2's bytes per record, and ratios to them."""
    names = (COLUMNAR, *found.arms)
    return Table(
        name="rivals-own",
        caption=f"Named workloads in their own batches: bytes relative to {BASE}",
        columns=(
            *plain_columns("workload"),
            Column(name=BASE_FORMAT, unit="bytes per record", digits=1),
            *(Column(name=name, digits=3) for name in names),
        ),
        rows=tuple(
            (
                workload,
                found.size(workload, OWN, BASE_FORMAT),
                *(found.ratio(workload, OWN, name, BASE_FORMAT) for name in names),
            )
            for workload in found.workloads()
        ),
        notes=("The batches are those that the workload's file describes.",),
    )


def bytes_table(found: Rivals) -> Table:
    """Return a table of the bytes per record of one workload."""
    batches = found.batches
    return Table(
        name="rivals-user-activity",
        caption=f"Bytes per record of {TRIAL} under zstd 3, by records per batch",
        columns=(*plain_columns("container"), *_batch_columns(batches, 1)),
        rows=tuple(
            (name, *(found.size(TRIAL, batch, name) for batch in batches))
            for name in (BASE_FORMAT, COLUMNAR, *found.arms)
        ),
    )


def _break_even_cells(found: BreakEven | None) -> tuple[Cell, ...]:
    if found is None:
        return (None, None, None)
    ends = "–".join("not reached" if math.isinf(each) else number(round(each)) for each in (found.low, found.high))
    middle = Ranked("not reached", None) if math.isinf(found.records) else round(found.records)
    return (middle, ends if found.low != found.high else ends.partition("–")[0], found.never)


def break_even_table(found: Rivals) -> Table:
    """Return a table of the batch sizes from which rivals take no more bytes than v2 and than columnar."""
    labels = [
        label
        for base in BASES
        for label in (f"from, {base} (records)", f"quartiles, {base} (records)", f"not reached, {base} (workloads)")
    ]
    return Table(
        name="rivals-break-even",
        caption="From which batch size on a rival takes no more bytes, under zstd 3",
        columns=plain_columns("container", *labels),
        rows=tuple(
            (name, *(cell for base in BASES for cell in _break_even_cells(found.break_even(name, base))))
            for name in found.arms
        ),
        notes=(
            "Medians and quartiles over workloads with batches of all sizes. No larger size takes more.",
            "Between two measured sizes the ratio is interpolated in logarithms.",
        ),
    )


def losses_table(found: Rivals) -> Table:
    return Table(
        name="rivals-losses",
        caption=f"Where a rival takes fewer bytes than {COLUMNAR}, under zstd 3",
        columns=(
            *plain_columns("workload", "records per batch", "smallest rival"),
            Column(name=f"relative to {COLUMNAR}", unit="×", digits=3),
        ),
        rows=tuple((loss.workload, loss.batch or "own", loss.rival, loss.ratio) for loss in found.losses()),
    )


def _shown(batches: Collection[int]) -> list[int]:
    """Return the batch sizes of TENFOLD, or all if there are none."""
    return sorted(TENFOLD.intersection(batches)) or sorted(batches)


def cpu_table(found: Rivals, codec: str) -> Table:
    """Return a table of the mean CPU ratios under one codec."""
    batches = _shown({key.batch for key in found.times})
    timed = list(dict.fromkeys((key.format, key.arm) for key in found.times))
    counts = sorted({len(found.timed_workloads(batch, codec)) for batch in batches})
    body: list[tuple[Cell, ...]] = []
    for operation, words in OPERATIONS.items():
        for name, arm in timed:
            cells = [found.mean_time(batch, codec, name, arm, operation) for batch in batches]
            if (name, arm) != (BASE_FORMAT, EACH) and any(cells):
                body.append((words, name, CALLS[arm], *cells))
    return Table(
        name=f"rivals-cpu-{codec}",
        caption=f"CPU time under {codec} relative to {BASE_FORMAT}, one batch a call, by records per batch",
        columns=(*plain_columns("operation", "container", "a call has"), *_batch_columns(batches, 2)),
        rows=tuple(body),
        notes=(
            f"Geometric means over {' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} workloads.",
            "The run's rows have more batch sizes.",
            f"{BASE_FORMAT} and {COLUMNAR} are made for many batches a call, so small batches flatter rivals.",
            "Rows of “all batches” have two batches a call up to 100 records per batch.",
            "Tuned arms are timed with the setting that was smallest for the batch, found before.",
            "fastavro builds a Python object per record; the others return columns.",
            "The CPU time is that of the process, so a library's own threads count.",
        ),
    )


def memory_table(found: Rivals) -> Table:
    """Return a table of the memory of a call, as the median over workloads."""
    rows = found.full[(found.full["kind"] == CPU) & found.full["call_bytes"].notna() & (found.full["arm"] == EACH)]
    batches = _shown({*rows["batch"]})
    middle = rows.groupby(["operation", "codec", "format", "batch"], sort=False)["call_bytes"].median() / 1000
    keys = sorted(dict.fromkeys(key[:3] for key in middle.index), key=lambda key: (*OPERATIONS,).index(key[0]))
    return Table(
        name="rivals-memory",
        caption="Most memory of a sample's calls (KB), by records per batch",
        columns=(*plain_columns("operation", "codec", "container"), *_batch_columns(batches, 0)),
        rows=tuple(
            (OPERATIONS[operation], codec, name, *(_cell(middle, operation, codec, name, batch) for batch in batches))
            for operation, codec, name in keys
            if operation in ("encode", "decode")
        ),
        notes=(
            "Medians over workloads of Python's, NumPy's and Arrow's memory. Vortex and Lance allocate in Rust.",
            "zstd's own memory is not counted, but the output buffer of Python's zstandard is.",
            f"{BASE_FORMAT}, {COLUMNAR} and the arms that compress a container as a whole have that buffer.",
        ),
    )


def _cell(values: Any, *key: Any) -> float | None:
    return float(values[key]) if key in values.index else None


def failed_table(found: Rivals) -> Table | None:
    """Return a table of arms without numbers; None if there are none.

    An arm raised an error, lost something, or has a library that was not installed.
    """
    counted = found.failed.groupby(["format", "error"], sort=False).size()
    failed = [(name, error.partition(": ")[2][:200], int(rows)) for (name, error), rows in counted.items()]
    skipped = found.rows[found.rows["status"] == "skipped"]
    absent = [(name, reason[:200], int((skipped["format"] == name).sum())) for name, reason in found.unmeasured.items()]
    if not failed and not absent:
        return None
    return Table(
        name="rivals-failed",
        caption="Arms that failed or were not measured",
        columns=plain_columns("container", "reason", "rows"),
        rows=(*failed, *absent),
    )
