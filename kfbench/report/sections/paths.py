"""What a broker does with batches: what each path costs, whether the proposals are right, and what follows."""

from collections.abc import Sequence

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.results import Results
from kfbench.report.render import plots
from kfbench.report.render.tables import Table
from kfbench.report.sections.prose import Prose
from kfbench.report.sections.section import Figure, Missing, Section, apart
from kfbench.report.topics import broker_paths, conversions, holes, migration, prefix, proposals


def prefix_of_a_batch(results: Results, prose: Prose) -> Section | Missing:
    title = "What does reading offsets and times from the prefix save, and what does it give up?"
    if results.prefixes.empty:
        return Missing(what=title, why="no prefix was timed beside its whole")
    return Section(
        name="prefix",
        short="Prefix",
        title=title,
        means=prefix.sentence(results),
        prose=prose.of(results.prefixes),
        tables=(*prefix.tables(results), prefix.lost_table()),
    )


def _path_tables(paths: broker_paths.Paths, operations: Sequence[str]) -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    """Tables of the formats that most ask for, and those to fold away: the other formats, the other workloads."""
    shown = [table for each in operations for table in broker_paths.path_tables(paths, each, shown=True)]
    folded = [table for each in operations for table in broker_paths.path_tables(paths, each, shown=False)]
    folded += [table for each in operations if (table := broker_paths.ratio_table(paths, each)) is not None]
    return tuple(shown), tuple(folded)


def appended(paths: broker_paths.Paths, prose: Prose) -> Section | Missing:
    title = "What does a format cost the broker?"
    operations = paths.within("append")
    if not operations:
        return Missing(what=title, why="no append or fetch of a broker")
    figures, missing = apart([_beside_append(paths)])
    shown, folded = _path_tables(paths, operations)
    argued, beside = broker_paths.argued(paths), broker_paths.beside_append(paths)
    return Section(
        name="broker",
        short="Broker",
        title=title,
        means=" ".join(filter(None, [broker_paths.sentence(paths), broker_paths.noise_sentence(paths)])),
        prose=prose.paths(operations),
        figures=figures,
        tables=tuple(filter(None, (argued, beside, *shown))),
        more=folded,
        missing=missing,
    )


def _beside_append(paths: broker_paths.Paths) -> Figure | Missing:
    panels = broker_paths.pictured(paths)
    if not panels:
        return Missing(
            what=f"Broker paths beside {BASE_FORMAT}'s append", why=f"no {BASE_FORMAT} append, or paths of two hosts"
        )
    return Figure(
        name="broker",
        svg=plots.paths(panels, f"CPU time relative to {BASE_FORMAT}'s append with the same codec"),
        alt=f"CPU time of each broker path by format, relative to {BASE_FORMAT}'s append. "
        f"{broker_paths.sentence(paths)}",
        caption=f"Each path beside {BASE_FORMAT}'s append, one panel a codec ({paths.setting(broker_paths.APPEND)}). "
        "Paths are timed apart: read differences of a few percent in the tables, where formats are paired.",
        numbers=broker_paths.BESIDE_APPEND,
    )


def argued(paths: broker_paths.Paths) -> Section | Missing:
    title = "Are the proposals right about the broker?"
    table = proposals.table(paths, [migration.LAST_WORD])
    if table is None:
        return Missing(what=title, why="no path of a broker that a proposal speaks of")
    return Section(
        name="broker-claims",
        short="Proposals",
        title=title,
        means=proposals.sentence(table),
        tables=(table,),
        wrap=True,
    )


def converted(paths: broker_paths.Paths, prose: Prose) -> Section | Missing:
    title = "What does a conversion cost?"
    operations = paths.within("convert")
    if not operations:
        return Missing(what=title, why="no conversion by a broker")
    losses = conversions.losses(paths)
    shown, folded = _path_tables(paths, [name for name in operations if name != broker_paths.CONVERSION])
    plain, packed = conversions.tables(paths)
    return Section(
        name="broker-convert",
        short="Conversions",
        title=title,
        means=conversions.sentence(paths),
        prose=prose.paths(operations),
        tables=(*plain, *shown, *([losses] if losses else [])),
        more=(*packed, *folded),
    )


def migrated(paths: broker_paths.Paths) -> Section | Missing:
    title = "What does a migration cost, and when does it pay?"
    shown, folded = migration.tables(paths)
    if not shown:
        return Missing(what=title, why="no append and conversion of a broker that make up a migration")
    return Section(
        name="broker-migrate",
        short="Migration",
        title=title,
        means=migration.sentence(paths),
        prose=(migration.assumed(),),
        tables=tuple(shown),
        more=tuple(folded),
    )


def kept(paths: broker_paths.Paths, prose: Prose) -> Section | Missing:
    title = "What does it cost to compact, mirror, seek and expire?"
    operations = paths.within("keep")
    if not operations:
        return Missing(what=title, why="no compaction, mirroring, seek or expiry by a broker")
    shown, folded = _path_tables(paths, operations)
    left = holes.table(paths)
    return Section(
        name="broker-keep",
        short="Compaction, mirrors, seeks",
        title=title,
        means=broker_paths.keep_sentence(paths),
        prose=prose.paths(operations),
        tables=(*shown, *([left] if left else [])),
        more=folded,
    )
