"""What a broker's conversions from format to format cost, add and leave out."""

from collections.abc import Callable, Sequence

from kfbench.report.data.arms import Arm
from kfbench.report.data.paths import CONVERSION, Paths, growth, s_per_gib, span
from kfbench.report.data.shown_formats import MAIN, in_order
from kfbench.report.render.tables import Column, Table, listed
from kfbench.report.topics.broker_paths import losses_or_reason


def tables(paths: Paths) -> tuple[list[Table], list[Table]]:
    """CPU and bytes of each pair of formats, in the cell nearest to the reference: without a codec, and with each."""
    rows = paths.shown(CONVERSION)
    plain: list[Table] = []
    packed: list[Table] = []
    for codec in dict.fromkeys(row.with_codec for row in rows):
        part = [row for row in rows if row.with_codec == codec]
        where = f"{codec}; {paths.setting(CONVERSION)}" if codec != "none" else paths.setting(CONVERSION)
        found = plain if codec == "none" else packed
        if paths.one_host:
            found.append(
                _matrix(part, s_per_gib, f"broker-convert-cpu-{codec}", f"CPU seconds a GiB that comes in ({where})")
            )
        found.append(_matrix(part, growth, f"broker-convert-bytes-{codec}", f"bytes out / bytes in ({where})"))
    return plain, packed


def _matrix(rows: Sequence[Arm], value: Callable[[Arm], float], name: str, caption: str) -> Table:
    """One row a format that comes in, one column a format that comes out; a pair without numbers says why not."""
    cells = {(row.format, row.to_format): value(row) if row.status == "ok" else str(row.status) for row in rows}
    targets = in_order(to for _, to in cells)
    return Table(
        name=name.replace(" ", "-"),
        caption=f"Convert, from row to column: {caption}",
        columns=(Column(name="from", swatch=True), *(Column(name=to) for to in targets)),
        rows=tuple((name, *(cells.get((name, to)) for to in targets)) for name in in_order(name for name, _ in cells)),
    )


def losses(paths: Paths) -> Table | None:
    """What each conversion cannot keep or why it is not done, over all cells; pairs that lose nothing stay out."""
    told: dict[tuple[str, str, str], list[str]] = {}
    for row in paths.of(CONVERSION):
        if words := losses_or_reason(row, counted=False):
            told.setdefault((row.format, row.to_format, words), []).append(row.with_codec)
    if not told:
        return None
    return Table(
        name="broker-convert-losses",
        caption="What a conversion leaves out, or why it is not done",
        columns=(
            Column(name="from", swatch=True),
            Column(name="to"),
            Column(name="codecs"),
            Column(name="lost, or why not"),
        ),
        rows=tuple(
            (name, to, listed(list(dict.fromkeys(codecs))), words) for (name, to, words), codecs in told.items()
        ),
    )


def sentence(paths: Paths) -> str:
    """The span of what conversions between the released formats and v3 cost a GiB, without a codec and with one."""
    rows = [row for row in paths.of(CONVERSION) if row.status == "ok" and {row.format, row.to_format} <= set(MAIN)]
    said = []
    for words, chosen in (
        ("without a codec", [row for row in rows if row.codec == "none"]),
        ("with one", [row for row in rows if row.codec != "none"]),
    ):
        if chosen and paths.one_host:
            grown = span([growth(row) for row in chosen])
            cost = span([s_per_gib(row) for row in chosen], 1)
            said.append(f"{words} {cost} CPU seconds a GiB and makes {grown} times as many bytes")
    return f"A conversion between v0, v1, v2 and v3 takes {'; '.join(said)}." if said else ""
