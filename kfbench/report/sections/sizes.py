"""Bytes: over batch size and every other axis, field by field, and under codecs."""

from collections.abc import Iterable, Sequence

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import lost_of
from kfbench.report.data.axes import AXES
from kfbench.report.data.results import Results, Slice
from kfbench.report.data.shown_formats import PICTURED, pictured
from kfbench.report.render import plots
from kfbench.report.render.tables import listed, number
from kfbench.report.render.words import batch_words
from kfbench.report.sections.prose import Prose
from kfbench.report.sections.section import Figure, Missing, Section, apart
from kfbench.report.topics import axis, break_even, breakdown, compressed, floors, reference, winners
from kfbench.report.topics.workloads import BEST_KNOWN, NONE

# Where one more byte is needed: zig-zag varints of 1, 2 and 3 bytes end at 63, 8,191 and 1,048,575.
BYTE_STEPS = {64.0: "64", 8192.0: "8,192"}
MILLISECOND_STEPS = {64.0: "64 ms", 8192.0: "8.2 s", 1_048_576.0: "17 min", 86_400_000.0: "1 day"}
STEPPED = ("timestamp_spread_ms", "key_bytes")
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
NO_BATCH_SIZES = "no bytes without a codec at two batch sizes"


def overhead(results: Results, formats: Sequence[str]) -> Figure | Missing:
    """The one picture of the first screen. formats: those of its table; the usual ones where it has none."""
    part = results.over_batch_size
    if part is None:
        return Missing(what="Overhead over batch size", why=NO_BATCH_SIZES)
    every = part.pivot("overhead_per_record")
    frame = every[[name for name in every.columns if name in formats]] if formats else pictured(every)
    floor = _floor(results, part)
    if floor is None:
        below, ends = "The metadata floor is not drawn: this run has none at these points.", _ends(frame)
    else:
        below = f"Floor: {floors.parts(_floors(results, part))}{_beneath(frame, floor, part.rows)}."
        ends = f"{_ends(frame)}; {_ends(floor.to_frame('the floor'))}"
    return Figure(
        name="overhead",
        svg=plots.overhead(frame, floor=floor),
        alt=f"Overhead in bytes a record over batch size, one line a format: {ends}",
        caption=f"Overhead: bytes a record beyond keys, values and headers, uncompressed ({part.setting}). "
        f"Both axes are logarithmic. {below}",
        numbers="overhead",
    )


def _floor(results: Results, part: Slice) -> pd.DataFrame | None:
    """The metadata floor of the cells of a slice, as far as it has one: a series over its levels."""
    rows, cells = _floors(results, part), part.rows.drop_duplicates("cell_id").set_index("cell_id")[part.axis]
    found = pd.Series(rows["overhead_per_record"].to_numpy(), index=rows["cell_id"].map(cells)).sort_index()
    return found.astype(float) if len(found) > 1 else None


def _beneath(frame: pd.DataFrame, floor: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Which lines cross the floor, and what those formats lose of these records."""
    words = []
    for name in frame:
        below = [batch_words(size) for size in floor.index if frame.at[size, name] < floor[size]]
        lost = list(dict.fromkeys(what for each in rows[rows["format"] == name]["losses"] for what in lost_of(each)))
        if below:
            words.append(f"{name}{f' (without {listed(lost)})' if lost else ''} at {listed(below)}")
    return f"; the header's size is a choice, and below it lies {listed(words)}" if words else ""


def _floors(results: Results, part: Slice) -> pd.DataFrame:
    return results.floors[results.floors["cell_id"].isin(part.rows["cell_id"])]


def _ends(frame: pd.DataFrame) -> str:
    words = []
    for name in frame:
        (first, start), (last, end) = axis.ends(frame[name])
        words.append(f"{name} {start:.1f} at {first} and {end:.1f} at {last}")
    return "; ".join(words)


def batch_size(results: Results, prose: Prose) -> Section | Missing:
    title = "What does a record cost, by batch size?"
    part = results.over_batch_size
    formats = reference.table(results)
    if part is None or formats is None:
        return Missing(what=title, why=NO_BATCH_SIZES)
    return Section(
        name="batch-size",
        short="Batch size",
        title=title,
        means=axis.overhead_sentence(part),
        prose=prose.of(part.rows),
        tables=(
            formats,
            axis.table(
                part,
                "overhead_per_record",
                name="overhead",
                caption="Overhead, bytes a record, uncompressed",
                floor=_floor(results, part),
            ),
            axis.ratio_table(
                part, "size_per_record", name="ratio", caption=f"All bytes, payload too, relative to {BASE_FORMAT}"
            ),
        ),
    )


def first_batch(results: Results) -> Section | Missing:
    title = "From which batch size does a newer format pay?"
    table = break_even.table(results)
    part = results.over_batch_size
    if table is None or part is None:
        return Missing(what=title, why=NO_BATCH_SIZES)
    if not table.rows:
        return Missing(what=title, why="no two of Kafka's formats or proposals beside one another over batch size")
    figures, missing = apart([_relative(part)])
    ratios = axis.ratio_table(
        part, "overhead_per_record", name="break-even-ratio", caption=f"Overhead relative to {BASE_FORMAT}"
    )
    return Section(
        name="break-even",
        short="Break-even",
        title=title,
        means=break_even.sentence(results),
        figures=figures,
        tables=(table, *([ratios] if figures else [])),
        missing=missing,
    )


def smallest(results: Results, prose: Prose) -> Section | Missing:
    title = "Which of v0 to v3 wins where batches and values change together?"
    maps = winners.maps(results)
    if not maps:
        return Missing(what=title, why=f"no {BASE_FORMAT} beside another format over batch size and value size at once")
    return Section(
        name="break-even-map",
        short="Break-even maps",
        title=title,
        means=winners.sentence(maps),
        prose=tuple(text for each in maps if each.codec != NONE for text in prose.of(each.rows)),
        figures=tuple(map(_map, maps)),
        tables=tuple(map(winners.table, maps)),
        more=tuple(map(winners.ratio_table, maps)),
        missing=()
        if any(each.codec != NONE for each in maps)
        else (Missing(what=f"{title} Under {BEST_KNOWN}", why=f"no such bytes under {BEST_KNOWN}"),),
    )


def _map(found: winners.Map) -> Figure:
    name = winners.table(found).name
    return Figure(
        name=name,
        svg=plots.winners(winners.pictured(found), AXES["value_bytes"].label, AXES["batch_size"].label),
        alt=f"A map of batch size and value size with the smallest format in each cell. {winners.sentence([found])}",
        caption=f"Of {listed(found.formats)} the smallest that loses nothing and what it saves of the bytes of "
        f"{BASE_FORMAT}, "
        f"payload too ({found.setting}). The stronger the colour, the more; grey: {BASE_FORMAT} takes at most 1 % "
        "more.",
        numbers=name,
    )


def _relative(part: Slice) -> Figure | Missing:
    overhead = pictured(part.pivot("overhead_per_record"))
    if BASE_FORMAT not in overhead:
        return Missing(what=f"Overhead relative to {BASE_FORMAT}", why=f"no {BASE_FORMAT} over batch size")
    ratios = overhead.div(overhead[BASE_FORMAT], axis=0)
    return Figure(
        name="break-even",
        svg=plots.break_even(ratios),
        alt=f"Overhead relative to {BASE_FORMAT} over batch size: {_ends(ratios)}",
        caption=f"Below 1× a format has less overhead than {BASE_FORMAT} ({part.setting}).",
        numbers="break-even-ratio",
    )


def one_by_one(results: Results, prose: Prose) -> Iterable[Section | Missing]:
    """Every other axis, all others standing still."""
    for name, *words in ONE_AXIS:
        yield _one_axis(results, prose, name, *words)


def _one_axis(results: Results, prose: Prose, moved: str, name: str, short: str, title: str) -> Section | Missing:
    part = results.along(results.uncompressed, moved) if moved in results.axes else None
    if part is None:
        return Missing(what=title, why=f"no bytes without a codec at two levels of one axis: {AXES[moved].name}")
    figures, missing = apart([_steps(part, name)] if moved in STEPPED else [])
    return Section(
        name=name,
        short=short,
        title=title,
        means=axis.step_sentence(part),
        prose=prose.of(part.rows),
        figures=figures,
        tables=(axis.table(part, "overhead_per_record", name=name, caption="Overhead, bytes a record, uncompressed"),),
        missing=missing,
    )


def _steps(part: Slice, name: str) -> Figure | Missing:
    frame = pictured(part.pivot("overhead_per_record"))
    numeric = frame.loc[frame.index >= 0, axis.moving(frame)]  # null is not a length; a flat line needs no picture
    label, is_time = AXES[part.axis].label, part.axis == "timestamp_spread_ms"
    if numeric.empty:
        return Missing(what=f"Overhead over {label}", why="no format's overhead depends on it at the levels measured")
    return Figure(
        name=name,
        svg=plots.steps(
            numeric, MILLISECOND_STEPS if is_time else BYTE_STEPS, "timestamp spread" if is_time else label
        ),
        alt=f"Overhead in bytes a record over {label}: {_ends(numeric)}",
        caption=f"Dotted: where a zig-zag varint needs one byte more ({part.setting}).",
        numbers=name,
    )


def fields(results: Results) -> Section | Missing:
    title = "Where do the bytes go?"
    found = {size: frame for size in (1, 100) if (frame := breakdown.fields(results, size)) is not None}
    if not found:
        return Missing(what=title, why="no bytes by field in batches of 1 or 100")
    panels = {f"batch of {number(int(size))}": breakdown.groups(frame) for size, frame in found.items()}
    groups = breakdown.group_table(panels, name="fields-groups")
    words = "; ".join(
        f"{panel}: " + ", ".join(f"{name} {total:.1f}" for name, total in frame.sum(axis=1).items())
        for panel, frame in panels.items()
    )
    return Section(
        name="fields",
        short="Fields",
        title=title,
        means=breakdown.sentence(found),
        figures=(
            Figure(
                name="fields",
                svg=plots.stacked(panels),
                alt=f"Overhead in bytes a record by group of fields. {words}",
                caption="Overhead by group of fields; every field stands in the tables beneath.",
                numbers=groups.name,
            ),
        ),
        tables=(groups, *(breakdown.table(frame, size) for size, frame in found.items())),
    )


def under_codecs(results: Results, prose: Prose) -> Section | Missing:
    title = "What is left of it under compression?"
    shown = compressed.shown(results)
    if shown.empty:
        return Missing(what=title, why="no bytes with a codec")
    ratios = compressed.table(
        shown, "to_base", name="codecs-ratio", caption=f"Relative to {BASE_FORMAT} with the same codec", digits=4
    )
    figures, missing = apart([_codecs(shown, [column.name for column in ratios.columns if column.name in PICTURED])])
    return Section(
        name="compressed",
        short="Compression",
        title=title,
        means=compressed.sentence(shown),
        prose=prose.of(shown[shown["codec"] != "none"]),
        figures=figures,
        tables=(
            compressed.table(shown, "size_per_record", name="codecs", caption="Bytes a record, payload too", digits=2),
            ratios,
        ),
        more=(
            compressed.table(
                shown,
                "to_plain",
                name="codecs-plain",
                caption="Relative to the same format uncompressed",
                digits=3,
            ),
        ),
        missing=missing,
    )


def _codecs(shown: pd.DataFrame, formats: Sequence[str]) -> Figure | Missing:
    panels = {}
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
    panels = {panel: frame for panel, frame in panels.items() if len(frame)}
    if not panels:
        return Missing(
            what="Compressed size by codec and format", why=f"no {BASE_FORMAT} with a codec beside another format"
        )
    return Figure(
        name="compressed",
        svg=plots.ratios(panels, f"bytes relative to {BASE_FORMAT}, same codec"),
        alt=f"Compressed bytes relative to {BASE_FORMAT} by codec. {compressed.sentence(shown)}",
        caption=f"Left of 1× a format takes fewer bytes than {BASE_FORMAT} with the same codec and level.",
        numbers="codecs-ratio",
    )
