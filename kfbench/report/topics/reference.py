"""Every format at the reference point: overhead by batch size, and all bytes and CPU against v2."""

from collections.abc import Sequence

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import ties
from kfbench.report.data.axes import HEADLINE_BATCHES, REFERENCE
from kfbench.report.data.results import Results, as_cell
from kfbench.report.render.tables import Column, Interval, Table, listed, number
from kfbench.report.render.words import batch_words, percent


def table(results: Results) -> Table | None:
    """One row a format: overhead at a few batch sizes; all bytes, encode and decode CPU relative to v2."""
    part = results.over_batch_size
    if part is None:
        return None
    overhead = part.pivot("overhead_per_record")
    batches = [size for size in HEADLINE_BATCHES if size in overhead.index] or list(
        overhead.index[:: max(1, len(overhead) // 4)]
    )
    sizes = part.pivot("size_per_record")
    at = REFERENCE["batch_size"] if REFERENCE["batch_size"] in sizes.index else sizes.index[-1]
    cpu = headline_cpu(results)
    rows = []
    for name in overhead.columns:
        ratio = sizes.at[at, name] / sizes.at[at, BASE_FORMAT] if BASE_FORMAT in sizes else None
        rows.append(
            (
                name,
                *(as_cell(overhead.at[size, name]) for size in batches),
                as_cell(ratio),
                *(
                    1.0 if name == BASE_FORMAT and (op, BASE_FORMAT) in cpu else cpu.get((op, name))
                    for op in OPERATIONS
                ),
            )
        )
    return Table(
        name="reference",
        caption=f"Overhead in bytes a record by batch size; ratios to {BASE_FORMAT} at {batch_words(at)} "
        f"({part.setting})",
        columns=(
            Column(name="format", swatch=True),
            *(Column(name=f"batch of {number(int(size))}", unit="bytes", digits=1) for size in batches),
            Column(name="all bytes", unit=f"× {BASE_FORMAT}", digits=3),
            Column(name="encode CPU", unit=f"× {BASE_FORMAT}"),
            Column(name="decode CPU", unit=f"× {BASE_FORMAT}"),
        ),
        rows=tuple(rows),
    )


def headline_cpu(results: Results) -> dict[tuple[str, str], Interval | None]:
    """(operation, format) -> ratio to v2 in the one CPU cell nearest to the reference, without a codec."""
    rows = results.with_ratios(_headline_rows(results))
    return {(row.operation, row.format): row.ratio for row in rows.itertuples()}


def _headline_rows(results: Results) -> pd.DataFrame:
    return results.nearest(results.cpu[(results.cpu["codec"] == "none") & (results.cpu["arm"] == "measure")])


def sentence(results: Results, apart: Sequence[str] = ()) -> str:
    """apart: research formats that were measured, and have a section of their own."""
    part = results.over_batch_size
    if part is None:
        return "This run holds no byte counts without a codec over the batch sizes of the grid."
    overhead = part.pivot("overhead_per_record")
    if not {BASE_FORMAT, "v3"} <= set(overhead.columns):
        return f"This run compares {listed(list(overhead.columns))}{f' and {listed(apart)}' if apart else ''}."
    first, last = overhead.index[0], overhead.index[-1]
    v2, v3 = overhead[BASE_FORMAT], overhead["v3"]
    sizes = part.pivot("size_per_record")
    share = 1 - sizes["v3"] / sizes[BASE_FORMAT]
    text = (
        f"Compared with {BASE_FORMAT}, v3 saves {_amount(v2[first] - v3[first])} of {v2[first]:.1f} overhead bytes a "
        "record "
        f"at {batch_words(first)} and {_amount(v2[last] - v3[last])} of {v2[last]:.1f} at {batch_words(last)}: "
        f"{percent(share[first])} and {percent(share[last])} of all bytes"
    )
    cpu = headline_cpu(results)
    said = [f"{op} {_against(cpu[op, 'v3'], results.noise)}" for op in OPERATIONS if cpu.get((op, "v3")) is not None]
    if not said:
        return f"{text}."
    at = batch_words(_headline_rows(results)["batch_size"].iloc[0])
    return f"{text}; CPU against {BASE_FORMAT} at {at}: {listed(said)}."


def _amount(value: float) -> str:
    return f"{value:.1f}" if value >= 0 else f"−{-value:.1f}"


def _against(ratio: Interval | None, noise: tuple[float, float] | None) -> str:
    if ratio is None:
        return "not measured"
    tie = "; a tie" if ties(ratio, noise) else ""
    return f"{ratio.median:.2f}× ({ratio.low:.2f}–{ratio.high:.2f}{tie})"
