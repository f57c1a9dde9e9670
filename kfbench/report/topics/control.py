"""The section about noise: measured ratios whose true value is known, and the checks made during the timing.

The true ratio is 1 for v2 against itself (A/A). It is nearly 1 for records that consist almost only of payload.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data import noise
from kfbench.report.data.arms import Band, ties
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import NEW
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words, percent, span
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Texts
from kfbench.tables import Column, Interval, Table, listed, number, plain_columns

LARGE_PAYLOAD_BYTES: Final = 10_000  # least size of the values in the negative control
CONTROL_LIMIT: Final = 0.02  # the negative control passes if its ratios are this near to 1
SHOWN_STEPS: Final = tuple(round(0.96 + step / 100, 2) for step in range(11))  # CPU ratios of the figure
NO_TIMES: Final = "no CPU times of encode or decode"


def noise_answer(run: Views) -> Answer | str:
    results, facts = run.results, run.noise_facts
    if results.cpu.empty:
        return NO_TIMES
    large, rows = control_table(results), control_rows(results)
    frames = spread(results)
    answers = (
        noise.checks_sentence(facts),
        aa_sentence(results),
        hosts_sentence(results),
        control_sentence(large) if large else "",
    )
    return Answer(
        means=" ".join(filter(None, answers)),
        texts=None if rows is None else Texts(rows=rows),
        figures=(spread_figure(frames),) if frames else (),
        tables=(aa_table(results), large, noise.checks_table(facts)),
        more=(spread_table(frames),) if frames else (),
    )


def hosts_sentence(results: Results) -> str:
    """Give the number of workload settings that are left out because another host timed them.

    The sentence is empty if one host timed all.
    """
    if not results.elsewhere:
        return ""
    cells = listed([f"{count:,} cells of {host}" for host, count in results.elsewhere.items()])
    return f"CPU times of two hosts share no table: {cells} are left out, as another host timed more."


def aa_sentence(results: Results) -> str:
    """Give the number of v2's ratios to itself (A/A) whose interval contains 1.0, and the range that counts as 1."""
    if results.cpu.empty:
        return "This run times no encode or decode."
    ratios = [ratio for ratio in results.aa["ratio"] if ratio is not None]
    if not ratios or results.noise is None:
        return "This run has no A/A arm: its CPU ratios come without a measure of their noise."
    held = sum(ratio.holds(1.0) for ratio in ratios)
    low, high = results.noise
    return (
        f"On the grid, in caches, {BASE_FORMAT} was timed against itself {len(ratios)} times (the A/A arm). "
        f"The interval holds 1.0 in {held} of them ({percent(held / len(ratios))}), with the spread between arms. "
        f"Ratios between {low:.3f} and {high:.3f} count as 1 in this run."
    )


def aa_table(results: Results) -> Table | None:
    """Return a table of the ratios of v2 to itself (A/A), with a row per operation."""
    body = []
    for operation, rows in results.aa.groupby("operation", sort=False):
        ratios = [ratio for ratio in rows["ratio"] if ratio is not None]
        if ratios:
            held = sum(ratio.holds(1.0) for ratio in ratios)
            quantiles = np.percentile([ratio.median for ratio in ratios], [50, 2.5, 97.5, 0, 100])
            body.append((str(operation), len(ratios), held, *map(float, quantiles)))
    if not body:
        return None
    return Table(
        name="aa",
        caption=f"A/A: {BASE_FORMAT} a second time in every cell of the grid, in caches, relative to the first",
        columns=(
            *plain_columns("operation", "cells", "interval holds 1.0 (cells)"),
            *(Column(name=name, digits=3) for name in ("median", "2.5 %", "97.5 %", "least", "most")),
        ),
        rows=tuple(body),
    )


def control_rows(results: Results) -> pd.DataFrame | None:
    """Return the CPU times of the workload setting with the largest values, with ratios to v2.

    Return None if no values have LARGE_PAYLOAD_BYTES or more.
    """
    rows = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["value_bytes"] >= LARGE_PAYLOAD_BYTES)]
    if rows.empty:
        return None
    most = int(rows["value_bytes"].max())
    return results.with_ratios(results.nearest(rows[rows["value_bytes"] == most], value_bytes=most))


def control_table(results: Results) -> Table | None:
    """Return the table of the negative control.

    On large payloads, formats with the same checksum must take nearly equal CPU time: within CONTROL_LIMIT.
    """
    rows = control_rows(results)
    if rows is None:
        return None
    rows = rows[rows["ratio"].notna() & ~((rows["format"] == BASE_FORMAT) & (rows["arm"] == "measure"))]
    body = []
    for row in rows.sort_values(["operation", "format"], ascending=[False, True], kind="stable").itertuples():
        checksum = checksum_of(row.format)
        verdict = _verdict(row.ratio, checksum, results.noise)
        name = f"{row.format} (A/A)" if row.arm == "aa" else row.format
        body.append((name, row.operation, checksum, row.ratio, verdict))
    size, batch = int(rows["value_bytes"].iloc[0]), rows["batch_size"].iloc[0]
    return Table(
        name="control",
        caption=f"Negative control: {number(size)}-byte values, {batch_words(batch)}, CPU relative to {BASE_FORMAT}",
        columns=(
            *plain_columns("format", "operation", "checksum"),
            Column(name=f"× {BASE_FORMAT}", digits=3),
            Column(name="verdict"),
        ),
        rows=tuple(body),
    )


def spread(results: Results) -> dict[str, pd.DataFrame]:
    """Return the shares of the grid's cells by CPU ratio: v2 against itself (A/A), and v3 against v2.

    The keys are operations. A frame has a row per step of 0.01, and a column per comparison. It is empty unless both
    comparisons were measured for every operation.
    """
    rows = results.cpu
    new = rows[(rows["format"] == NEW) & (rows["codec"] == "none") & (rows["arm"] == "measure")]
    arms = {f"{BASE_FORMAT} / {BASE_FORMAT}": results.aa, f"{NEW} / {BASE_FORMAT}": results.with_ratios(new)}
    frames: dict[str, pd.DataFrame] = {}
    for operation in OPERATIONS:
        steps = {
            arm: pd.Series([round(ratio.median, 2) for ratio in part["ratio"] if ratio is not None], dtype=float)
            for arm, found in arms.items()
            if not (part := found[found["operation"] == operation]).empty
        }
        if len(steps) < len(arms):
            return {}
        shares = pd.DataFrame({arm: each.value_counts(normalize=True) for arm, each in steps.items()})
        frames[operation] = shares.reindex(SHOWN_STEPS).fillna(0.0)
    return frames


def spread_table(frames: Mapping[str, pd.DataFrame]) -> Table:
    return Table(
        name="aa-spread",
        caption="Share of the grid's cells by CPU ratio, rounded to 0.01",
        columns=(
            Column(name="CPU ratio", digits=2),
            *(Column(name=operation, unit=arm, digits=3) for operation, frame in frames.items() for arm in frame),
        ),
        rows=tuple(
            (step, *(frame.at[step, arm] for frame in frames.values() for arm in frame)) for step in SHOWN_STEPS
        ),
    )


def spread_figure(frames: Mapping[str, pd.DataFrame]) -> Figure:
    at_one = [
        f"{operation} {arm} {percent(frame.at[1.0, arm])}" for operation, frame in frames.items() for arm in frame
    ]
    hidden = max(1 - float(frame[arm].sum()) for frame in frames.values() for arm in frame)
    return Figure(
        name="aa-spread",
        svg=plots.histograms({f"{operation} (CPU ratio)": frames[operation] for operation in frames}),
        alt=f"Share of cells whose CPU ratio rounds to 1.00: {listed(at_one)}",
        caption=f"Share of the grid's cells by CPU ratio. Bars: {BASE_FORMAT} against itself, which is noise. "
        f"Line: {NEW} against {BASE_FORMAT}. Ratios beyond the axis are not drawn: {percent(hidden)} of cells at most.",
        numbers="aa-spread",
    )


def checksum_of(name: str) -> str:
    """Return the checksum of a format in words. CRC-32 is slower than CRC-32C."""
    fmt = FORMATS.get(name)
    return fmt.checksum.algorithm if fmt and fmt.checksum else "no known checksum"


BASE_CHECKSUM: Final = checksum_of(BASE_FORMAT)


def _verdict(ratio: Interval, checksum: str, noise: Band | None) -> str:
    if ties(ratio, noise):
        return "ties"
    if checksum != BASE_CHECKSUM:
        return f"differs, pays {checksum}"
    return f"within {percent(CONTROL_LIMIT)}" if _is_within(ratio) else "differs"


def _is_within(ratio: Interval) -> bool:
    return ratio.low >= 1 - CONTROL_LIMIT and ratio.high <= 1 + CONTROL_LIMIT


def control_sentence(control: Table) -> str:
    """State the rule of the negative control, its ratios, and the formats that break it or are beyond the noise."""
    same = [row for row in control.rows if row[2] == BASE_CHECKSUM and "A/A" not in str(row[0])]
    ratios = [row[3].median for row in same if isinstance(row[3], Interval)]
    if not ratios:
        return ""
    limit = f"{percent(CONTROL_LIMIT)} of {BASE_FORMAT}'s CPU"
    broken = [f"{row[0]} {row[1]}" for row in same if row[4] == "differs"]
    beyond = [f"{row[0]} {row[1]}" for row in same if row[4] != "ties"]
    sentences = [
        f"On large payloads, formats with {BASE_FORMAT}'s checksum must be within {limit}.",
        f"They are {span(ratios, 3)} ×.",
        f"The check fails for {listed(broken)}." if broken else _passed_words(beyond),
    ]
    return " ".join(sentences)


def _passed_words(beyond: Sequence[str]) -> str:
    return (
        f"The check is passed. A real but small difference: {listed(list(beyond))}."
        if beyond
        else "The check is passed."
    )
