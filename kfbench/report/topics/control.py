"""What a run reads where the truth is known: v2 against itself (A/A), and records that are nearly all payload."""

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import ties
from kfbench.report.data.results import Results
from kfbench.report.render.tables import Column, Table, listed, number
from kfbench.report.render.words import batch_words, percent

LARGE_PAYLOAD_BYTES = 10_000  # a record that is nearly all payload: the negative control
CHECKSUM = {"v0": "CRC-32", "v1": "CRC-32"}  # the others pay CRC-32C, which the processor computes faster


def hosts_sentence(results: Results) -> str:
    """What was left out because another host timed it; empty where one timed all."""
    if not results.elsewhere:
        return ""
    told = listed([f"{count:,} cells of {host}" for host, count in results.elsewhere.items()])
    return f"CPU times of two hosts share no table: {told} are left out, as another host timed more."


def aa_sentence(results: Results) -> str:
    """The A/A statement: how often v2 against v2 holds 1.0, and which differences this run cannot tell."""
    if results.cpu.empty:
        return "This run times no encode or decode."
    ratios = [r for r in results.aa["ratio"] if r is not None]
    if not ratios or results.noise is None:
        return "This run has no A/A arm: its CPU ratios come without a measure of their noise."
    held = sum(r.holds(1.0) for r in ratios)
    medians = [r.median for r in ratios]
    low, high = results.noise
    return (
        f"A/A arm: on the grid, in caches, {BASE_FORMAT} was encoded and decoded against itself {len(ratios)} times; "
        "the "
        f"interval held 1.0 in {held} of them ({percent(held / len(ratios))}), medians from {min(medians):.3f} to "
        f"{max(medians):.3f}. "
        f"Ratios between {low:.3f} and {high:.3f} are not told apart from 1 in this run."
    )


def aa_table(results: Results) -> Table | None:
    """v2 against v2, by operation: what the run reads where the truth is 1."""
    body = []
    for operation, rows in results.aa.groupby("operation", sort=False):
        ratios = [r for r in rows["ratio"] if r is not None]
        if ratios:
            medians = np.array([r.median for r in ratios])
            low, high = (float(v) for v in np.percentile(medians, [2.5, 97.5]))
            held = sum(r.holds(1.0) for r in ratios)
            body.append(
                (
                    str(operation),
                    len(ratios),
                    held,
                    float(np.median(medians)),
                    low,
                    high,
                    float(medians.min()),
                    float(medians.max()),
                )
            )
    if not body:
        return None
    return Table(
        name="aa",
        caption=f"A/A: {BASE_FORMAT} a second time in every cell of the grid, in caches, relative to the first",
        columns=(
            Column(name="operation"),
            Column(name="cells"),
            Column(name="interval holds 1.0", unit="cells"),
            Column(name="median", digits=3),
            Column(name="2.5 %", digits=3),
            Column(name="97.5 %", digits=3),
            Column(name="least", digits=3),
            Column(name="most", digits=3),
        ),
        rows=tuple(body),
    )


def cell(results: Results) -> pd.DataFrame | None:
    """Rows with ratios of the one CPU cell with the largest values, if they are large at all."""
    rows = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["value_bytes"] >= LARGE_PAYLOAD_BYTES)]
    if rows.empty:
        return None
    most = int(rows["value_bytes"].max())
    return results.with_ratios(results.nearest(rows[rows["value_bytes"] == most], value_bytes=most))


def table(results: Results) -> Table | None:
    """The negative control: records nearly all payload, where formats with the same checksum must tie."""
    rows = cell(results)
    if rows is None:
        return None
    rows = rows[rows["ratio"].notna() & ~((rows["format"] == BASE_FORMAT) & (rows["arm"] == "measure"))]
    body = []
    for row in rows.sort_values(["operation", "format"], ascending=[False, True], kind="stable").itertuples():
        crc = CHECKSUM.get(row.format, "CRC-32C")
        said = "ties" if ties(row.ratio, results.noise) else "differs" if crc == "CRC-32C" else f"differs, pays {crc}"
        body.append((f"{row.format} (A/A)" if row.arm == "aa" else row.format, row.operation, crc, row.ratio, said))
    size, batch = int(rows["value_bytes"].iloc[0]), rows["batch_size"].iloc[0]
    return Table(
        name="control",
        caption=f"Negative control: {number(size)} byte values, {batch_words(batch)}, CPU relative to {BASE_FORMAT}",
        columns=(
            Column(name="format"),
            Column(name="operation"),
            Column(name="checksum"),
            Column(name=f"× {BASE_FORMAT}", digits=3),
            Column(name="verdict"),
        ),
        rows=tuple(body),
    )


def sentence(table: Table) -> str:
    same = [row for row in table.rows if row[2] == "CRC-32C" and "A/A" not in str(row[0])]
    broken = [f"{row[0]} {row[1]}" for row in same if row[4] != "ties"]
    if not broken:
        return f"All {len(same)} arms with the checksum of {BASE_FORMAT} tie with it on large payloads, as they must."
    return (
        f"{listed(broken)} {'does' if len(broken) == 1 else 'do'} not tie with {BASE_FORMAT} on large payloads, as "
        "they "
        "should: read smaller CPU differences of this run with that in mind."
    )
