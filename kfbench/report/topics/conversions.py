"""The section about a broker's conversions from format to format: CPU time, bytes and losses."""

from collections.abc import Callable, Sequence

from kfbench.report.data.arms import Arm
from kfbench.report.data.axes import with_settings
from kfbench.report.data.paths import CONVERSION, Paths, growth, s_per_gib
from kfbench.report.data.shown_formats import MAIN, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import span
from kfbench.report.section import Answer
from kfbench.report.topics.broker_paths import folded_tables, losses_or_reason, path_texts, shown_tables
from kfbench.tables import Column, Table, listed, plain_columns


def conversion_tables(paths: Paths, codec: str) -> list[Table]:
    """Return tables of CPU time and of bytes for each pair of formats under a codec.

    They show the workload setting nearest to the grid's defaults. The table of CPU time is left out if the run has
    several hosts.
    """
    rows = [row for row in paths.shown(CONVERSION) if row.with_codec == codec]
    if not rows:
        return []
    where = f"{'' if codec == 'none' else f'{codec}, '}{paths.setting(CONVERSION)}"
    cpu_caption = with_settings("Convert, from row to column: CPU seconds per GiB that comes in", where)
    size_caption = with_settings("Convert, from row to column: bytes out / bytes in", where)
    cpu = _matrix(rows, s_per_gib, f"broker-convert-cpu-{codec}", cpu_caption)
    size = _matrix(rows, growth, f"broker-convert-bytes-{codec}", size_caption)
    return [cpu, size] if paths.one_host else [size]


def _matrix(rows: Sequence[Arm], value: Callable[[Arm], float], name: str, caption: str) -> Table:
    """Return a table with a row per source format and a column per target format.

    A pair without a number shows its status, such as "skipped".
    """
    cells = {(row.format, row.to_format): value(row) if row.status == "ok" else str(row.status) for row in rows}
    targets = in_order(to for _, to in cells)
    return Table(
        name=name.replace(" ", "-"),
        caption=caption,
        columns=(Column(name="from", swatch=True), *plain_columns(*targets)),
        rows=tuple((name, *(cells.get((name, to)) for to in targets)) for name in in_order(name for name, _ in cells)),
    )


def losses_table(paths: Paths) -> Table | None:
    """Return a table of the fields that each conversion loses, or the reason why it was not measured.

    Conversions without losses are left out.
    """
    codecs: dict[tuple[str, str, str], list[str]] = {}
    for row in paths.of(CONVERSION):
        if words := losses_or_reason(row, counted=False):
            codecs.setdefault((row.format, row.to_format, words), []).append(row.with_codec)
    if not codecs:
        return None
    return Table(
        name="broker-convert-losses",
        caption="What a conversion leaves out, or why it is not done",
        columns=(Column(name="from", swatch=True), *plain_columns("to", "codecs", "lost, or why not")),
        rows=tuple(
            (name, to, listed(list(dict.fromkeys(names))), words) for (name, to, words), names in codecs.items()
        ),
    )


def conversions_sentence(paths: Paths) -> str:
    """Give the CPU time per GiB and the growth of conversions between v0, v1, v2 and v3, without and with a codec."""
    rows = [row for row in paths.of(CONVERSION) if row.status == "ok" and {row.format, row.to_format} <= set(MAIN)]
    sentences = []
    for words, chosen in (
        ("Without a codec", [row for row in rows if row.codec == "none"]),
        ("With a codec", [row for row in rows if row.codec != "none"]),
    ):
        if chosen and paths.one_host:
            cost, grown = span([s_per_gib(row) for row in chosen], 1), span([growth(row) for row in chosen])
            sentences.append(f"{words}, a conversion takes {cost} CPU seconds per GiB.")
            sentences.append(f"The output is {grown} × the input in bytes.")
    return " ".join(sentences)


def conversions_answer(run: Views) -> Answer | str:
    paths = run.paths
    operations = paths.within("convert")
    if not operations:
        return "no conversion by a broker"
    others = [name for name in operations if name != CONVERSION]
    codecs = dict.fromkeys(row.with_codec for row in paths.shown(CONVERSION))
    packed = [table for codec in codecs if codec != "none" for table in conversion_tables(paths, codec)]
    return Answer(
        means=conversions_sentence(paths),
        texts=path_texts(paths, operations),
        tables=(*conversion_tables(paths, "none"), *shown_tables(paths, others), losses_table(paths)),
        more=(*packed, *folded_tables(paths, others)),
    )
