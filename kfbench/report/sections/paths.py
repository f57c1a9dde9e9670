"""What a broker does with batches: what each path costs, whether the proposals are right, and what follows."""

from collections.abc import Sequence

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.paths import APPEND, CONVERSION, Paths
from kfbench.report.data.results import Results
from kfbench.report.render import plots
from kfbench.report.render.tables import Table
from kfbench.report.sections.prose import Prose
from kfbench.report.sections.section import Figure, Missing, Section, apart
from kfbench.report.topics import broker_paths, conversions, holes, migration, prefix, proposals


def prefix_of_a_batch(results: Results, prose: Prose) -> Section | Missing:
    title = "What does reading offsets and times from the prefix save, and what does it give up?"
    times = prefix.prefix_times(results)
    if not times:
        return Missing(what=title, why="no prefix was timed beside its whole")
    return Section(
        name="prefix",
        short="Prefix",
        title=title,
        means=prefix.prefix_sentence(times),
        prose=prose.of(results.grid_arms("prefix")),
        tables=(*prefix.prefix_tables(results, times), prefix.lost_table()),
    )


def _path_tables(paths: Paths, operations: Sequence[str]) -> tuple[tuple[Table, ...], tuple[Table, ...]]:
    """Tables of the formats that most ask for, and those to fold away: the other formats, the other workloads."""
    shown = [broker_paths.path_table(paths, each, shown=True) for each in operations]
    folded = [broker_paths.path_table(paths, each, shown=False) for each in operations]
    folded += [broker_paths.ratio_table(paths, each) for each in operations]
    return tuple(filter(None, shown)), tuple(filter(None, folded))


def appended(paths: Paths, prose: Prose) -> Section | Missing:
    title = "What does a format cost the broker?"
    operations = paths.within("append")
    if not operations:
        return Missing(what=title, why="no append or fetch of a broker")
    figures, missing = apart([_beside_append(paths)])
    shown, folded = _path_tables(paths, operations)
    argued, beside = broker_paths.argued_table(paths), broker_paths.beside_append_table(paths)
    return Section(
        name="broker",
        short="Broker",
        title=title,
        means=" ".join(filter(None, [broker_paths.append_sentence(paths), broker_paths.noise_sentence(paths)])),
        prose=prose.paths(operations),
        figures=figures,
        tables=tuple(filter(None, (argued, beside, *shown))),
        more=folded,
        missing=missing,
    )


def _beside_append(paths: Paths) -> Figure | Missing:
    panels = broker_paths.panels_beside_append(paths)
    if not panels:
        return Missing(
            what=f"Broker paths beside {BASE_FORMAT}'s append", why=f"no {BASE_FORMAT} append, or paths of two hosts"
        )
    return Figure(
        name="broker",
        svg=plots.paths(panels, f"CPU time relative to {BASE_FORMAT}'s append with the same codec"),
        alt=f"CPU time of each broker path by format, relative to {BASE_FORMAT}'s append. "
        f"{broker_paths.append_sentence(paths)}",
        caption=f"Each path beside {BASE_FORMAT}'s append, one panel a codec ({paths.setting(APPEND)}). "
        "Paths are timed apart: read differences of a few percent in the tables, where formats are paired.",
        numbers=broker_paths.BESIDE_APPEND,
    )


def argued(paths: Paths) -> Section | Missing:
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


def converted(paths: Paths, prose: Prose) -> Section | Missing:
    title = "What does a conversion cost?"
    operations = paths.within("convert")
    if not operations:
        return Missing(what=title, why="no conversion by a broker")
    losses = conversions.losses(paths)
    shown, folded = _path_tables(paths, [name for name in operations if name != CONVERSION])
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


def migrated(paths: Paths) -> Section | Missing:
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


def kept(paths: Paths, prose: Prose) -> Section | Missing:
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
