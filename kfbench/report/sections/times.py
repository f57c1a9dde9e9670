"""CPU time: along every axis that was timed, on cold data, beside other implementations, and how far to trust it."""

from collections.abc import Iterable, Sequence

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data import noise
from kfbench.report.data.axes import AXES, level
from kfbench.report.data.results import Results, Slice
from kfbench.report.data.shown_formats import pictured
from kfbench.report.render import plots
from kfbench.report.render.tables import Interval, number
from kfbench.report.sections.prose import Prose
from kfbench.report.sections.section import Figure, Missing, Section, apart
from kfbench.report.topics import cold, control, cpu, java, pareto, peers

CPU_AXES = (
    ("batch_size", "cpu-batch-size", "CPU by batch", "What does it cost in CPU, by batch size?"),
    ("value_bytes", "cpu-value-size", "CPU by value", "What does it cost in CPU, by value size?"),
    ("key_bytes", "cpu-key-size", "CPU by key", "What does it cost in CPU, by key size?"),
    (
        "timestamp_spread_ms",
        "cpu-timestamp-spread",
        "CPU by timestamps",
        "What does it cost in CPU, by timestamp spread?",
    ),
)
NO_TIMES = "no CPU times of encode or decode"


def by_axis(results: Results, prose: Prose) -> Iterable[Section | Missing]:
    """CPU along every axis that was timed."""
    for axis, name, short, title in CPU_AXES:
        part = cpu.along(results, axis) if axis in results.axes and not results.cpu.empty else None
        if part is None:
            yield Missing(what=title, why=f"no CPU times without a codec at two levels of one axis: {AXES[axis].name}")
        else:
            yield _along(results, part, name, short, title, prose)


def _along(results: Results, part: Slice, name: str, short: str, title: str, prose: Prose) -> Section:
    timed = set(part.rows["operation"])
    operations = [operation for operation in OPERATIONS if operation in timed]
    figures, missing = apart([_ratios(results, part, operations, name)])
    return Section(
        name=name,
        short=short,
        title=title,
        means=cpu.sentence(results, part),
        prose=prose.of(part.rows),
        figures=figures,
        tables=tuple(table for operation in operations for table in cpu.tables(part, operation, name)),
        missing=missing,
    )


def _ratios(results: Results, part: Slice, operations: Sequence[str], name: str) -> Figure | Missing:
    levels = plots.thinned(sorted(part.rows[part.axis].unique()), most=6)  # the tables have them all
    panels = {operation: _ratio_rows(part, operation, levels) for operation in operations}
    panels = {operation: frame for operation, frame in panels.items() if len(frame)}
    if not panels:
        return Missing(
            what=f"CPU time over {AXES[part.axis].label}", why=f"no {BASE_FORMAT} timed beside another format"
        )
    return Figure(
        name=name,
        svg=plots.ratios(panels, f"CPU time relative to {BASE_FORMAT}", results.noise),
        alt=f"CPU time relative to {BASE_FORMAT}. {cpu.sentence(results, part)}",
        caption=f"Rows: {AXES[part.axis].label}. Bars: 95 % interval of the paired ratio; "
        f"shaded: what {BASE_FORMAT} against itself shows ({part.setting}).",
        numbers={operation: f"{name}-{operation}" for operation in panels},
    )


def _ratio_rows(part: Slice, operation: str, levels: Sequence[float]) -> pd.DataFrame:
    """One row a level and format, v2 left out: label, format, median, low, high."""
    one = Slice(axis=part.axis, rows=part.rows[part.rows["operation"] == operation], fixed=part.fixed)
    formats = set(pictured(one.pivot("ratio")).columns) - {BASE_FORMAT}
    rows = one.rows[one.rows["format"].isin(formats)]
    rows = rows[rows[part.axis].isin(levels)].sort_values(part.axis, kind="stable")
    found = [
        (
            _label(part.axis, getattr(row, part.axis)),
            row.format,
            row.ratio.median,
            row.ratio.low,
            row.ratio.high,
        )
        for row in rows.itertuples()
        if isinstance(row.ratio, Interval)
    ]
    return pd.DataFrame(found, columns=["label", "format", "median", "low", "high"])


def _label(axis: str, value: object) -> str:
    return number(level(axis, value))


def against_bytes(results: Results) -> Section | Missing:
    title = "What do bytes cost in CPU?"
    fronts = pareto.fronts(results)
    table = pareto.table(fronts)
    if table is None:
        return Missing(what=title, why="no CPU times and bytes without a codec in one cell, v2 among them")
    return Section(
        name="pareto",
        short="CPU against bytes",
        title=title,
        means=pareto.sentence(fronts),
        figures=(
            Figure(
                name="pareto",
                svg=plots.pareto(
                    pareto.pictured(fronts),
                    f"all bytes relative to {BASE_FORMAT}",
                    f"CPU relative to {BASE_FORMAT}",
                    results.noise,
                ),
                alt=f"Bytes and CPU time of each format relative to {BASE_FORMAT}. {pareto.sentence(fronts)}",
                caption=f"Down and to the left is better; dotted: the front. {pareto.RULE} Hollow: loses "
                f"something, and is not compared. Grey: named beside it; what is behind the front and would be grey is "
                f"in the table alone. Bars: 95 % interval; shaded: what {BASE_FORMAT} against itself shows.",
                numbers=table.name,
            ),
        ),
        tables=(table,),
    )


def uncached(results: Results, prose: Prose) -> Section | Missing:
    title = "What does it cost in CPU where no cache has the data?"
    if results.cold.empty:
        return Missing(what=title, why="no CPU times on cold data")
    return Section(
        name="cpu-cold",
        short="Cold CPU",
        title=title,
        means=cold.sentence(results),
        prose=prose.all_of(results.cold),
        tables=tuple(table for each in OPERATIONS if (table := cold.table(results, each)) is not None),
    )


def of_peers(results: Results) -> Section | Missing:
    title = "What do other implementations take, and do they agree on which format is dearer?"
    found = None if results.cpu.empty else peers.load()
    if found is None:
        return Missing(what=title, why=NO_TIMES if results.cpu.empty else "no times of peers are stored")
    hosts = sorted(results.cpu["host"].dropna().unique())
    pairs = java.pairs(found)
    said = (peers.noise_sentence(found), peers.sentence(found), java.sentence(found, pairs))
    return Section(
        name="cpu-peers",
        short="Peers",
        title=title,
        means=" ".join(filter(None, said)),
        tables=tuple(filter(None, (peers.table(found, hosts), java.table(found, pairs)))),
    )


def trust(results: Results, prose: Prose, facts: noise.Facts | None) -> Section | Missing:
    title = "How far can the CPU numbers be trusted?"
    if results.cpu.empty:
        return Missing(what=title, why=NO_TIMES)
    large, rows = control.table(results), control.cell(results)
    said = [control.sentence(large)] if large is not None else []
    return Section(
        name="noise",
        short="Noise",
        title=title,
        means=" ".join(
            filter(None, [control.aa_sentence(results), control.hosts_sentence(results), *said, noise.sentence(facts)])
        ),
        prose=() if rows is None else prose.of(rows),
        tables=tuple(filter(None, (control.aa_table(results), large, noise.table(facts)))),
    )
