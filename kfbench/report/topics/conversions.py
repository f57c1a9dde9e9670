"""Conversions: what a broker's conversion from format to format costs, adds and leaves out."""

from collections.abc import Callable, Sequence

from kfbench.report.data.arms import Arm
from kfbench.report.data.paths import CONVERSION, Paths, growth, s_per_gib, span
from kfbench.report.data.shown_formats import MAIN, in_order
from kfbench.report.section import Missing, Section
from kfbench.report.topics.broker_paths import folded_tables, losses_or_reason, path_texts, shown_tables
from kfbench.tables import Column, Table, listed, plain_columns


def conversion_tables(paths: Paths) -> tuple[list[Table], list[Table]]:
    """Return CPU and bytes of each pair of formats: the tables without a codec, and those with each.

    All are of the cell nearest to the reference.
    """
    rows = paths.shown(CONVERSION)
    plain: list[Table] = []
    packed: list[Table] = []
    for codec in dict.fromkeys(row.with_codec for row in rows):
        part = [row for row in rows if row.with_codec == codec]
        where = f"{codec}; {paths.setting(CONVERSION)}" if codec != "none" else paths.setting(CONVERSION)
        found = plain if codec == "none" else packed
        if paths.one_host:
            found.append(
                _matrix(part, s_per_gib, f"broker-convert-cpu-{codec}", f"CPU seconds per GiB that comes in ({where})")
            )
        found.append(_matrix(part, growth, f"broker-convert-bytes-{codec}", f"bytes out / bytes in ({where})"))
    return plain, packed


def _matrix(rows: Sequence[Arm], value: Callable[[Arm], float], name: str, caption: str) -> Table:
    """Return one row a format that comes in, one column a format that comes out.

    A pair without numbers says why.
    """
    cells = {(row.format, row.to_format): value(row) if row.status == "ok" else str(row.status) for row in rows}
    targets = in_order(to for _, to in cells)
    return Table(
        name=name.replace(" ", "-"),
        caption=f"Convert, from row to column: {caption}",
        columns=(Column(name="from", swatch=True), *plain_columns(*targets)),
        rows=tuple((name, *(cells.get((name, to)) for to in targets)) for name in in_order(name for name, _ in cells)),
    )


def losses_table(paths: Paths) -> Table | None:
    """Return what each conversion cannot keep, or why it is not done; pairs that lose nothing stay out."""
    codecs: dict[tuple[str, str, str], list[str]] = {}
    for row in paths.of(CONVERSION):
        if words := losses_or_reason(row, counted=False):
            codecs.setdefault((row.format, row.to_format, words), []).append(row.with_codec)
    if not codecs:
        return None
    return Table(
        name="broker-convert-losses",
        caption="What a conversion leaves out, or why it is not done",
        columns=(
            Column(name="from", swatch=True),
            *plain_columns("to", "codecs", "lost, or why not"),
        ),
        rows=tuple(
            (name, to, listed(list(dict.fromkeys(names))), words) for (name, to, words), names in codecs.items()
        ),
    )


def conversions_sentence(paths: Paths) -> str:
    """Say what conversions between the released formats and v3 cost per GiB, without a codec and with one."""
    rows = [row for row in paths.of(CONVERSION) if row.status == "ok" and {row.format, row.to_format} <= set(MAIN)]
    parts = []
    for words, chosen in (
        ("without a codec", [row for row in rows if row.codec == "none"]),
        ("with one", [row for row in rows if row.codec != "none"]),
    ):
        if chosen and paths.one_host:
            grown = span([growth(row) for row in chosen])
            cost = span([s_per_gib(row) for row in chosen], 1)
            parts.append(f"{words} {cost} CPU seconds per GiB and makes {grown} times as many bytes")
    return f"A conversion between {listed(list(MAIN))} takes {'; '.join(parts)}." if parts else ""


def conversions_section(paths: Paths) -> Section | Missing:
    title = "What does a conversion cost?"
    operations = paths.within("convert")
    if not operations:
        return Missing(what=title, why="no conversion by a broker")
    losses = losses_table(paths)
    others = [name for name in operations if name != CONVERSION]
    plain, packed = conversion_tables(paths)
    return Section(
        name="broker-convert",
        short="Conversions",
        title=title,
        means=conversions_sentence(paths),
        texts=path_texts(paths, operations),
        tables=(*plain, *shown_tables(paths, others), *([losses] if losses else [])),
        more=(*packed, *folded_tables(paths, others)),
    )
