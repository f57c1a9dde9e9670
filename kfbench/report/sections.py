"""What stands in a report, in which order: each section a question, one computed sentence, figures, tables."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from kfbench.report import broker, claims, cold, fleet, java, migration, peers, plots, proposals, tables, workloads
from kfbench.report import noise as checked
from kfbench.report.render import Interval, Table, number
from kfbench.report.results import AXES, BASE, COLD, PICTURED, Frame, Results, Slice, level, pictured


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture: SVG text, what it shows in words for who cannot see it, and a caption."""

    name: str
    svg: str
    alt: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """One question. means: the computed sentence; prose: what the sweep's author wrote; more: tables folded away.

    wrap: the tables hold sentences.
    """

    name: str
    short: str
    title: str
    means: str = ""
    prose: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    more: tuple[Table, ...] = ()
    wrap: bool = False


class Prose:
    """The analysis of each block of the sweep, printed once: where the block has most of the rows shown."""

    def __init__(self, results: Results, sweep: Sequence["Block"]) -> None:
        self._rows = results.all
        self._blocks = {block.name: block for block in sweep}
        self._order = tuple(self._blocks)

    def of(self, shown: Frame) -> tuple[str, ...]:
        """The text of the block that has the most of these rows' cells; among equals the sweep's first."""
        rows = self._rows[self._rows["cell_id"].isin(shown["cell_id"]) & (self._rows["cache"] != COLD)]
        rows = rows[rows["kind"].isin(shown["kind"]) & rows["codec"].isin(shown["codec"])]
        cells = rows.drop_duplicates(["grid", "cell_id", "codec", "level"])["grid"].value_counts(sort=False)
        if cells.empty:
            return ()
        most = {name for name, count in cells.items() if count == cells.max()}
        first = next((name for name in self._order if name in most), None)
        block = self._blocks.pop(first, None) if first is not None else None
        return (block.analysis.strip(),) if block is not None and block.analysis.strip() else ()

    def paths(self, operations: Sequence[str]) -> tuple[str, ...]:
        """The texts of all blocks that measured these paths of a broker, in the order of the sweep."""
        return self.all_of(self._rows[(self._rows["kind"] == "broker") & self._rows["operation"].isin(operations)])

    def all_of(self, rows: Frame) -> tuple[str, ...]:
        """The texts of all blocks that have any of these rows, in the order of the sweep."""
        named = set(rows["grid"])
        found = [self._blocks.pop(name) for name in self._order if name in self._blocks and name in named]
        return tuple(text for block in found if (text := block.analysis.strip()))

    def workloads(self) -> tuple[str, ...]:
        """The texts of all blocks that measured bytes or CPU of named workloads, in the order of the sweep."""
        rows = self._rows[self._rows["workload"] != "grid"]
        return self.all_of(rows[rows["kind"].isin(["bytes", "cpu"])])

    @property
    def left(self) -> tuple["Block", ...]:
        """The blocks that no section has printed, in the order of the sweep."""
        return tuple(self._blocks.values())


# Where one more byte is needed: zig-zag varints of 1, 2 and 3 bytes end at 63, 8,191 and 1,048,575.
BYTE_STEPS = {64.0: "64", 8192.0: "8,192"}
MILLISECOND_STEPS = {64.0: "64 ms", 8192.0: "8.2 s", 1_048_576.0: "17 min", 86_400_000.0: "1 day"}
ONE_AXIS = (
    ("timestamp_spread_ms", "timestamp-spread", "Timestamps", "What does the spread of timestamps cost?"),
    ("key_bytes", "key-size", "Keys", "What does the size of the key cost?"),
    ("value_bytes", "value-size", "Values", "What does the size of the value cost?"),
    ("headers", "headers", "Headers", "What do record headers cost?"),
    ("null_share", "nulls", "Nulls", "What do null values cost?"),
    ("offset_stride", "offset-holes", "Offset holes", "What do holes in the offsets cost?"),
    (
        "base_timestamp_ms",
        "base-timestamp",
        "Base timestamp",
        "What does the age of the base timestamp cost?",
    ),
)


def head_figures(results: Results) -> tuple[Figure, ...]:
    """The one picture of the first screen."""
    part = results.along(results.uncompressed, "batch_size")
    if part is None:
        return ()
    frame = pictured(part.pivot("overhead_per_record"))
    return (
        Figure(
            name="overhead",
            svg=plots.overhead(frame),
            alt=f"Overhead in bytes a record over batch size, one line a format: {_ends(frame)}",
            caption=f"Overhead: bytes a record beyond keys, values and headers, uncompressed ({part.setting}). "
            "Both axes are logarithmic.",
        ),
    )


def _ends(frame: Frame) -> str:
    words = []
    for name in frame:
        (first, start), (last, end) = tables.ends(frame[name])
        words.append(f"{name} {start:.1f} at {first} and {end:.1f} at {last}")
    return "; ".join(words)


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of the sweep, as its author named and explained it."""

    name: str
    title: str
    analysis: str


def sections(results: Results, sweep: Sequence[Block], noise: checked.Facts | None = None) -> list[Section]:
    """Every section that this run has rows for. noise: what its manifest says of it.

    First the questions that every run answers, each with the prose of the block that most of its rows come from; then
    the blocks that no question has used up, so that nothing that was measured and explained is left out.
    """
    prose = Prose(results, sweep)
    built: list[Section | None] = [
        _batch_size(results, prose),
        _break_even(results),
        *(_one_axis(results, prose, axis, name, short, title) for axis, name, short, title in ONE_AXIS),
        _fields(results),
        _compressed(results, prose),
        *_cpu(results, prose),
        _cold(results, prose),
        _peers(results),
        _workloads(results, prose),
        _fleet(results, prose),
        _prefix(results, prose),
        *_broker(results, prose),
    ]
    trusted = _noise(results, prose, noise)
    built += [_block(results, block) for block in prose.left]
    built += [trusted, _claims(), _failures(results)]
    return [section for section in built if section is not None]


def _block(results: Results, block: Block) -> Section | None:
    """A block on its own: its prose and the tables of its rows."""
    found = tables.blocks(results, block.name)
    return Section(
        name=f"block-{block.name}",
        short=block.title,
        title=block.title,
        means=tables.block_sentence(found),
        prose=(block.analysis.strip(),),
        tables=tuple(table for table, _ in found),
    )


def _batch_size(results: Results, prose: Prose) -> Section | None:
    part = results.along(results.uncompressed, "batch_size")
    if part is None:
        return None
    return Section(
        name="batch-size",
        short="Batch size",
        title="What does a record cost, by batch size?",
        means=tables.overhead_sentence(part),
        prose=prose.of(part.rows),
        tables=(
            tables.axis_table(
                part, "overhead_per_record", name="overhead", caption="Overhead, bytes a record, uncompressed"
            ),
            tables.ratio_table(part, name="ratio", caption=f"All bytes, payload too, relative to {BASE}"),
        ),
    )


def _break_even(results: Results) -> Section | None:
    table = tables.break_even(results)
    part = results.along(results.uncompressed, "batch_size")
    if table is None or part is None:
        return None
    frame = pictured(part.pivot("overhead_per_record"))
    figures: tuple[Figure, ...] = ()
    if BASE in frame:
        relative = frame.div(frame[BASE], axis=0)
        figures = (
            Figure(
                name="break-even",
                svg=plots.break_even(frame),
                alt=f"Overhead relative to {BASE} over batch size: {_ends(relative)}",
                caption=f"Below 1× a format has less overhead than {BASE} ({part.setting}).",
            ),
        )
    return Section(
        name="break-even",
        short="Break-even",
        title="From which batch size does a newer format pay?",
        means=tables.break_even_sentence(results),
        figures=figures,
        tables=(table,),
    )


def _one_axis(results: Results, prose: Prose, axis: str, name: str, short: str, title: str) -> Section | None:
    if axis not in results.axes:
        return None
    part = results.along(results.uncompressed, axis)
    if part is None:
        return None
    frame = pictured(part.pivot("overhead_per_record"))
    label = AXES[axis].label
    steps = MILLISECOND_STEPS if axis == "timestamp_spread_ms" else BYTE_STEPS
    figures: tuple[Figure, ...] = ()
    numeric = frame.loc[frame.index >= 0, tables.moving(frame)]  # null is not a length; a flat line needs no picture
    if axis in ("timestamp_spread_ms", "key_bytes") and not numeric.empty:
        figures = (
            Figure(
                name=name,
                svg=plots.steps(numeric, steps, label if axis == "key_bytes" else "timestamp spread"),
                alt=f"Overhead in bytes a record over {label}: {_ends(numeric)}",
                caption=f"Dotted: where a zig-zag varint needs one byte more ({part.setting}).",
            ),
        )
    return Section(
        name=name,
        short=short,
        title=title,
        means=tables.step_sentence(part),
        prose=prose.of(part.rows),
        figures=figures,
        tables=(
            tables.axis_table(part, "overhead_per_record", name=name, caption="Overhead, bytes a record, uncompressed"),
        ),
    )


def _fields(results: Results) -> Section | None:
    found = {size: frame for size in (1, 100) if (frame := tables.breakdown(results, size)) is not None}
    if not found:
        return None
    panels = {f"batch of {number(int(size))}": _grouped(frame) for size, frame in found.items()}
    words = "; ".join(
        f"{title}: " + ", ".join(f"{name} {total:.1f}" for name, total in frame.sum(axis=1).items())
        for title, frame in panels.items()
    )
    return Section(
        name="fields",
        short="Fields",
        title="Where do the bytes go?",
        means=tables.breakdown_sentence(found),
        figures=(
            Figure(
                name="fields",
                svg=plots.stacked(panels),
                alt=f"Overhead in bytes a record by group of fields. {words}",
                caption="Overhead by group of fields; every field stands in the tables beneath.",
            ),
        ),
        tables=tuple(tables.breakdown_table(frame, size) for size, frame in found.items()),
    )


def _grouped(frame: Frame) -> Frame:
    """Fields summed into the groups of the figure; index: the formats that it shows."""
    frame = pictured(frame)
    return frame.groupby([plots.group_of(str(field)) for field in frame.index]).sum().T


def _compressed(results: Results, prose: Prose) -> Section | None:
    shown = tables.compressed_slice(results)
    if shown.empty:
        return None
    panels = {}
    table = tables.compressed_table(
        shown, "to_base", name="codecs-ratio", caption=f"Relative to {BASE} with the same codec", digits=4
    )
    formats = [column.name for column in table.columns if column.name in PICTURED]
    sizes = sorted(shown["batch_size"].unique())
    for size in sizes if len(sizes) <= 3 else (sizes[0], sizes[len(sizes) // 2], sizes[-1]):
        rows = shown[(shown["batch_size"] == size) & shown["format"].isin(formats) & shown["to_base"].notna()]
        rows = rows.assign(packed=rows["codec"] != "none").sort_values(["packed", "codec", "level"], kind="stable")
        panels[f"batch of {number(int(size))}"] = pd.DataFrame(
            {
                "label": rows["arm"],
                "format": rows["format"],
                "median": rows["to_base"],
                "low": float("nan"),
                "high": float("nan"),
            }
        )
    panels = {title: frame for title, frame in panels.items() if len(frame)}
    figures: tuple[Figure, ...] = ()
    if panels:
        figures = (
            Figure(
                name="compressed",
                svg=plots.ratios(panels, f"bytes relative to {BASE}, same codec"),
                alt=f"Compressed bytes relative to {BASE} by codec. {tables.compressed_sentence(shown)}",
                caption=f"Left of 1× a format takes fewer bytes than {BASE} with the same codec and level.",
            ),
        )
    return Section(
        name="compressed",
        short="Compression",
        title="What is left of it under compression?",
        means=tables.compressed_sentence(shown),
        prose=prose.of(shown[shown["codec"] != "none"]),
        figures=figures,
        tables=(
            tables.compressed_table(
                shown, "size_per_record", name="codecs", caption="Bytes a record, payload too", digits=2
            ),
            table,
        ),
        more=(
            tables.compressed_table(
                shown,
                "to_plain",
                name="codecs-plain",
                caption="Relative to the same format uncompressed",
                digits=3,
            ),
        ),
    )


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


def _cpu(results: Results, prose: Prose) -> list[Section]:
    """CPU along every axis that was timed."""
    built = []
    for axis, name, short, title in CPU_AXES:
        part = tables.cpu_slice(results, axis) if axis in results.axes and not results.cpu.empty else None
        if part is not None:
            built.append(_cpu_section(results, part, name, short, title, prose))
    return built


def _cold(results: Results, prose: Prose) -> Section | None:
    if results.cold.empty:
        return None
    return Section(
        name="cpu-cold",
        short="Cold CPU",
        title="What does it cost in CPU where no cache has the data?",
        means=cold.sentence(results),
        prose=prose.all_of(results.cold),
        tables=tuple(table for each in cold.OPERATIONS if (table := cold.table(results, each)) is not None),
    )


def _peers(results: Results) -> Section | None:
    found = None if results.cpu.empty else peers.load()
    if found is None:
        return None
    hosts = sorted(results.cpu["host"].dropna().unique())
    said = (peers.noise_sentence(found), peers.sentence(found), java.sentence(found))
    return Section(
        name="cpu-peers",
        short="Peers",
        title="What do other implementations take, and do they agree on which format is dearer?",
        means=" ".join(filter(None, said)),
        tables=tuple(filter(None, (peers.table(found, hosts), java.table(found)))),
    )


def _workloads(results: Results, prose: Prose) -> Section | None:
    named = workloads.Named(results)
    if not named.sizes:
        return None
    panels = workloads.pictured(named)
    means = workloads.sentence(named)
    figures: tuple[Figure, ...] = ()
    if panels:
        figures = (
            Figure(
                name="workloads",
                svg=plots.paths(panels, f"bytes relative to {BASE}, same codec", row_height=0.3),
                alt=f"Bytes of each workload by format, relative to {BASE}. {means}",
                caption=f"Left of 1× a format takes fewer bytes than {BASE} with the same codec. v0 and v1 have no dot "
                "where they cannot carry the records or have no such codec.",
            ),
        )
    shown, folded = workloads.size_tables(named)
    cpu = workloads.cpu_table(named)
    seeds = workloads.seed_table(results)
    return Section(
        name="workloads",
        short="Workloads",
        title="Which format wins for whom?",
        means=means,
        prose=prose.workloads(),
        figures=figures,
        tables=(workloads.verdict(named), *shown, *([cpu] if cpu else [])),
        more=(*folded, *([seeds] if seeds else [])),
        wrap=True,
    )


def _fleet(results: Results, prose: Prose) -> Section | None:
    model = fleet.Fleet(results)
    if not model.workloads:
        return None
    figures: tuple[Figure, ...] = ()
    if len(model.growth) > 1:
        last = ", ".join(f"{name} {seconds:.1f}" for name, seconds in model.growth.ffill().iloc[-1].items())
        figures = (
            Figure(
                name="fleet",
                svg=plots.growth(model.growth),
                alt=f"CPU seconds that the size model took, over records, one line a workload. At the end: {last}",
                caption="A line parallel to the dotted ones is a cost linear in records; a cell ends at each dot.",
            ),
        )
    saved = fleet.saved_table(model)
    return Section(
        name="fleet",
        short="Fleet",
        title="What does it say of a fleet?",
        means=fleet.sentence(model),
        prose=prose.all_of(model.rows),
        figures=figures,
        tables=(*([saved] if saved else []), fleet.day_table(model)),
        more=(fleet.cost_table(model),),
    )


def _prefix(results: Results, prose: Prose) -> Section | None:
    if results.prefixes.empty:
        return None
    return Section(
        name="prefix",
        short="Prefix",
        title="What does reading offsets and times from the prefix save, and what does it give up?",
        means=tables.prefix_sentence(results),
        prose=prose.of(results.prefixes),
        tables=(*tables.prefix_tables(results), tables.lost_table()),
    )


def _broker(results: Results, prose: Prose) -> list[Section]:
    """What a broker does with batches: what each path costs, whether the proposals are right, and what follows."""
    paths = broker.Paths(results)
    built = [
        _appended(paths, prose),
        _broker_claims(paths),
        _converted(paths, prose),
        _migration(paths),
        _kept(paths, prose),
    ]
    return [section for section in built if section is not None]


def _path_tables(paths: broker.Paths, operations: Sequence[str]) -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    """Tables of the formats that most ask for, and those to fold away: the other formats, the other workloads."""
    shown = [table for each in operations for table in broker.path_tables(paths, each, shown=True)]
    folded = [table for each in operations for table in broker.path_tables(paths, each, shown=False)]
    folded += [table for each in operations if (table := broker.ratio_table(paths, each)) is not None]
    return tuple(shown), tuple(folded)


def _appended(paths: broker.Paths, prose: Prose) -> Section | None:
    operations = paths.within("append")
    if not operations:
        return None
    panels = broker.pictured(paths)
    means = " ".join(filter(None, [broker.sentence(paths), broker.noise_sentence(paths)]))
    figures: tuple[Figure, ...] = ()
    if panels:
        figures = (
            Figure(
                name="broker",
                svg=plots.paths(panels, f"CPU time relative to {BASE}'s append with the same codec"),
                alt=f"CPU time of each broker path by format, relative to {BASE}'s append. {broker.sentence(paths)}",
                caption=f"Each path beside {BASE}'s append, one panel a codec ({paths.setting(broker.APPEND)}). "
                "Paths are timed apart: read differences of a few percent in the tables, where formats are paired.",
            ),
        )
    shown, folded = _path_tables(paths, operations)
    argued = broker.argued(paths)
    return Section(
        name="broker",
        short="Broker",
        title="What does a format cost the broker?",
        means=means,
        prose=prose.paths(operations),
        figures=figures,
        tables=(*([argued] if argued else []), *shown),
        more=folded,
    )


def _broker_claims(paths: broker.Paths) -> Section | None:
    table = proposals.table(paths, [migration.LAST_WORD])
    if table is None:
        return None
    return Section(
        name="broker-claims",
        short="Proposals",
        title="Are the proposals right about the broker?",
        means=proposals.sentence(table),
        tables=(table,),
        wrap=True,
    )


def _converted(paths: broker.Paths, prose: Prose) -> Section | None:
    operations = paths.within("convert")
    if not operations:
        return None
    losses = broker.losses(paths)
    shown, folded = _path_tables(paths, [name for name in operations if name != broker.CONVERSION])
    plain, packed = broker.conversion_tables(paths)
    return Section(
        name="broker-convert",
        short="Conversions",
        title="What does a conversion cost?",
        means=broker.conversion_sentence(paths),
        prose=prose.paths(operations),
        tables=(*plain, *shown, *([losses] if losses else [])),
        more=(*packed, *folded),
    )


def _migration(paths: broker.Paths) -> Section | None:
    shown, folded = migration.tables(paths)
    if not shown:
        return None
    return Section(
        name="broker-migrate",
        short="Migration",
        title="What does a migration cost, and when does it pay?",
        means=migration.sentence(paths),
        prose=(migration.assumed(),),
        tables=tuple(shown),
        more=tuple(folded),
    )


def _kept(paths: broker.Paths, prose: Prose) -> Section | None:
    operations = paths.within("keep")
    if not operations:
        return None
    shown, folded = _path_tables(paths, operations)
    holes = broker.holes(paths)
    return Section(
        name="broker-keep",
        short="Compaction, mirrors, seeks",
        title="What does it cost to compact, mirror, seek and expire?",
        means=broker.keep_sentence(paths),
        prose=prose.paths(operations),
        tables=(*shown, *([holes] if holes else [])),
        more=folded,
    )


def _noise(results: Results, prose: Prose, facts: checked.Facts | None) -> Section | None:
    if results.cpu.empty:
        return None
    control, rows = tables.control(results), tables.control_rows(results)
    said = [tables.control_sentence(control)] if control is not None else []
    return Section(
        name="noise",
        short="Noise",
        title="How far can the CPU numbers be trusted?",
        means=" ".join(
            filter(None, [tables.aa_sentence(results), tables.hosts_sentence(results), *said, checked.sentence(facts)])
        ),
        prose=() if rows is None else prose.of(rows),
        tables=tuple(table for table in (tables.aa_table(results), control, checked.table(facts)) if table is not None),
    )


def _cpu_section(results: Results, part: Slice, name: str, short: str, title: str, prose: Prose) -> Section:
    operations = [o for o in ("encode", "decode") if o in set(part.rows["operation"])]
    levels = plots.thinned(sorted(part.rows[part.axis].unique()), most=6)  # the tables have them all
    panels = {operation: _ratio_rows(part, operation, levels) for operation in operations}
    panels = {operation: frame for operation, frame in panels.items() if len(frame)}
    figures: tuple[Figure, ...] = ()
    if panels:
        figures = (
            Figure(
                name=name,
                svg=plots.ratios(panels, f"CPU time relative to {BASE}", results.noise),
                alt=f"CPU time relative to {BASE}. {tables.cpu_sentence(results, part)}",
                caption=f"Rows: {AXES[part.axis].label}. Bars: 95 % interval of the paired ratio; "
                f"shaded: what {BASE} against itself shows ({part.setting}).",
            ),
        )
    shown = [table for operation in operations for table in tables.cpu_tables(part, operation, name)]
    return Section(
        name=name,
        short=short,
        title=title,
        means=tables.cpu_sentence(results, part),
        prose=prose.of(part.rows),
        figures=figures,
        tables=tuple(shown),
    )


def _ratio_rows(part: Slice, operation: str, levels: Sequence[float]) -> Frame:
    """One row a level and format, v2 left out: label, format, median, low, high."""
    one = Slice(axis=part.axis, rows=part.rows[part.rows["operation"] == operation], fixed=part.fixed)
    formats = set(pictured(one.pivot("ratio")).columns) - {BASE}
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


def _claims() -> Section:
    checked = [claims.table(name) for name in claims.CLAIMS]
    total = sum(len(each.rows) for each in checked)
    differing = sum(len(each.differing) for each in checked)
    return Section(
        name="claims",
        short="Published figures",
        title="Do the published figures hold?",
        means=f"{differing} of {total} figures in Kafka's own proposals differ from the bytes that the formats "
        "write; the reason stands beside each.",
        tables=tuple(each.to_table() for each in checked),
        wrap=True,
    )


def _failures(results: Results) -> Section:
    table = tables.failures(results)
    return Section(
        name="failures",
        short="What is missing",
        title="What is missing?",
        means=tables.failures_sentence(results),
        tables=() if table is None else (table,),
        wrap=True,
    )
