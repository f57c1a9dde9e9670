"""The section about the named workloads: bytes of each format under each codec, and the smallest format."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import first_of_blocks
from kfbench.report.data.axes import GRID
from kfbench.report.data.capability import limits
from kfbench.report.data.named import NO_WORKLOADS, TIE, Named, Sizes, codec_words, under_words
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import NEW, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import codecs_of, cpu_range_sentence, span
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing, Texts
from kfbench.report.topics import floors
from kfbench.report.topics.overview import overview, overview_figure, overview_table
from kfbench.tables import Cell, Column, Table, listed, number, plain_columns
from kfbench.workloads.catalogue import DEFAULT
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE

SEEDS: Final = "Bytes are those of all seeds together, and so are the rounds of CPU time"


def smallest_table(named: Named) -> Table:
    """Return a table with a row per workload: its question, and the format with the fewest bytes.

    If this format loses something on any workload, a further column has the smallest format that loses nothing.
    """
    by = {codec: {each.workload: each for each in named.under(codec)} for codec in named.shown_codecs}
    workloads = list(dict.fromkeys(name for found in by.values() for name in found))
    winners: dict[str, list[Cell]] = {}
    for codec, found in by.items():
        each = [found.get(name) for name in workloads]
        smallest = [one.winner if one else None for one in each]
        whole = [one.whole_winner if one else None for one in each]
        winners[f"smallest, {codec_words(codec)}"] = [*smallest]
        if whole != smallest:
            winners[f"smallest that loses nothing, {codec_words(codec)}"] = [*whole]
    body = []
    for i, name in enumerate(workloads):
        first = next(found[name] for found in by.values() if name in found)
        question = CATALOGUE[name].describe().question if name in CATALOGUE else None
        body.append((name, question, first.records_per_batch, *(words[i] for words in winners.values())))
    return Table(
        name="workloads",
        caption="The smallest format for each workload",
        columns=(
            *plain_columns("workload", "question"),
            Column(name="records per batch", digits=1),
            *(Column(name=name) for name in winners),
        ),
        rows=tuple(body),
        notes=(
            f"Formats within {100 * TIE:.0f} % of the smallest share its place; all of them: a tie.",
            *filter(
                None,
                (limits(name, BASE_FORMAT) for name in in_order(won for each in named.sizes for won in each.winners)),
            ),
            *([f"{SEEDS} (up to {named.seeds})."] if named.seeds > 1 else []),
        ),
    )


class SizeTables(NamedTuple):
    """The tables of bytes per workload: those that the report shows open, and those that it shows folded."""

    shown: list[Table]
    folded: list[Table]


def size_table_name(codec: str, suffix: str = "") -> str:
    """Return the name of the table with the bytes of all workloads under a codec."""
    return f"workloads{suffix}-{codec}".replace(" ", "-")


def size_tables(named: Named) -> SizeTables:
    """Return tables of bytes with a row per workload and a column per format, one table per codec.

    Variants of workloads and other codecs are in folded tables.
    """
    shown = [_sizes_table(named.under(codec), codec, "") for codec in named.shown_codecs]
    folded = [
        _sizes_table(found, codec, "-variants")
        for codec in named.codecs
        if (found := named.under(codec, variants=True))
    ]
    folded += [_sizes_table(named.under(codec), codec, "") for codec in named.codecs if codec not in named.shown_codecs]
    return SizeTables([table for table in shown if table.rows], [table for table in folded if table.rows])


def _sizes_table(found: Sequence[Sizes], codec: str, suffix: str) -> Table:
    formats = in_order(name for each in found for name in each.of)
    others = [name for name in formats if name != BASE_FORMAT]
    what = "Variants" if suffix else "Workloads"
    return Table(
        name=size_table_name(codec, suffix),
        caption=f"{what}: bytes per record, payload too, and relative to {BASE_FORMAT} ({codec_words(codec)})",
        columns=(
            Column(name="workload"),
            Column(name="records per batch", digits=1),
            *(Column(name=name, unit="bytes") for name in formats),
            *(Column(name=name, unit=f"× {BASE_FORMAT}", digits=3) for name in others),
            Column(name="smallest"),
        ),
        rows=tuple(
            (
                each.label,
                each.records_per_batch,
                *(each.of.get(name) for name in formats),
                *(each.ratio(name) for name in others),
                each.winner,
            )
            for each in found
        ),
        notes=tuple(_median_note(found)),
    )


def _median_note(found: Sequence[Sizes]) -> Iterator[str]:
    ratios = [ratio for each in found if (ratio := each.ratio(NEW))]
    if ratios:
        yield f"Median of {len(ratios)} rows: {NEW} {median(ratios):.3f} × {BASE_FORMAT}."


def cpu_table(named: Named) -> Table | None:
    """Return a table of CPU time relative to v2, with a row per workload and a column per operation and format."""
    if not named.cpu:
        return None
    formats = in_order(name for _, _, name in named.cpu)
    return Table(
        name="workloads-cpu",
        caption=f"Workloads: CPU time relative to {BASE_FORMAT}, no codec",
        columns=(
            Column(name="workload"),
            *(
                Column(name=f"{operation}, {name}", unit=f"× {BASE_FORMAT}")
                for operation in OPERATIONS
                for name in formats
            ),
        ),
        rows=tuple(
            (workload, *(named.cpu.get((workload, operation, name)) for operation in OPERATIONS for name in formats))
            for workload in dict.fromkeys(where for where, _, _ in named.cpu)
        ),
    )


def seed_table(results: Results, new: str = NEW) -> Table | None:
    """Return a table that shows how much the ratio of v3's bytes to v2's differs between seeds, with a row per codec.

    Return None if no workload was measured with several seeds.
    """
    rows = results.ok[(results.ok["kind"] == "bytes") & results.ok["format"].isin([BASE_FORMAT, new])]
    rows = rows[rows.groupby("cell_id")["seed"].transform("nunique") > 1]
    if rows.empty:
        return None
    rows = first_of_blocks(rows)
    rows = rows.assign(with_codec=codecs_of(rows))
    sizes = rows.pivot(index=["with_codec", "cell_id", "seed"], columns="format", values="size_bytes").dropna()
    ratios = (sizes[new] / sizes[BASE_FORMAT]).groupby(["with_codec", "cell_id"]).agg(["count", "min", "max"])
    ratios = ratios[ratios["count"] > 1].assign(spread=ratios["max"] - ratios["min"])
    named = rows.drop_duplicates("cell_id").set_index("cell_id")[["workload", "variant"]].astype("object")
    body = []
    for codec, part in ratios.groupby(level="with_codec"):
        worst = named.loc[part["spread"].idxmax()[1]]
        plain = pd.isna(worst["variant"]) or worst["variant"] == DEFAULT
        where = worst["workload"] if plain else f"{worst['workload']}/{worst['variant']}"
        spread = part["spread"]
        body.append((str(codec), len(part), int(part["count"].max()), spread.median(), spread.max(), str(where)))
    return Table(
        name="seeds",
        caption=f"{new} against {BASE_FORMAT}: how far the ratio of bytes moves from seed to seed",
        columns=(
            *plain_columns("codec", "cells", "seeds"),
            *plain_columns(f"median cell (× {BASE_FORMAT})", f"worst cell (× {BASE_FORMAT})", digits=5),
            Column(name="which is of"),
        ),
        rows=tuple(body),
        notes=("Largest less smallest ratio of a cell. Other seeds are other records of the same workload.",),
    )


def workloads_sentence(named: Named, new: str = NEW) -> str:
    """Compare the bytes of v3 with those of v2 over all workloads, under each codec."""
    return " ".join(filter(None, (_bytes_sentence(named.under(codec), codec, new) for codec in named.shown_codecs)))


def workloads_cpu_sentence(named: Named, new: str = NEW) -> str:
    """Compare the CPU time of v3 with that of v2 over all workloads, without a codec."""
    sentences = []
    for operation in OPERATIONS:
        medians = [ratio.median for (_, each, name), ratio in named.cpu.items() if (each, name) == (operation, new)]
        if medians:
            sentences.append(cpu_range_sentence(new, operation, medians))
    if sentences and named.noise:
        sentences.append(f"On these workloads, {BASE_FORMAT} against itself is {span(named.noise)}.")
    return " ".join(sentences)


def _bytes_sentence(found: Sequence[Sizes], codec: str, new: str) -> str:
    ratios = {each.workload: ratio for each in found if (ratio := each.ratio(new)) is not None}
    if not ratios:
        return ""
    smaller = sum(ratio < 1 - TIE for ratio in ratios.values())
    larger = [name for name, ratio in ratios.items() if ratio > 1 + TIE]
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    return (
        f"{under_words(codec).capitalize()}, {new} saves more than {100 * TIE:.0f} % of {BASE_FORMAT}'s bytes for "
        f"{smaller} of {number(len(ratios))} workloads. It ties for {len(ratios) - smaller - len(larger)}. "
        f"Its bytes are {ratios[least]:.3f} ({least}) to {ratios[most]:.3f} ({most}) × {BASE_FORMAT}'s."
        + (f" They are more for {listed(larger)}." if larger else "")
    )


def without(found: Sequence[Sizes], name: str) -> str:
    """Return a format with the fields that it loses on these workloads, for example: v0, without times."""
    return f"{name}, without {listed(list(dict.fromkeys(what for each in found for what in each.lost[name])))}"


def bytes_panels(named: Named) -> dict[str, pd.DataFrame]:
    """Return bytes relative to v2 for a figure, one panel per codec. Workloads with the largest savings come first."""
    panels = {}
    first = {each.workload: each.ratio(NEW) or 1.0 for each in named.under(named.shown_codecs[0])}
    for codec in named.shown_codecs:
        found = sorted(named.under(codec), key=lambda each: (first.get(each.workload, 1.0), each.workload))
        dots = [
            (each.workload, name, ratio)
            for each in found
            for name in each.of
            if name != BASE_FORMAT and (ratio := each.ratio(name)) is not None
        ]
        if dots:
            panels[codec_words(codec)] = pd.DataFrame(dots, columns=["label", "format", "median"])
    return panels


def workloads_answer(run: Views) -> Answer | str:
    results, named = run.results, run.named
    if not named.sizes:
        return NO_WORKLOADS
    shown, folded = size_tables(named)
    gaps = floors.gaps(results, named)
    floor_table, variants = floors.floors_table(gaps), floors.floors_table(gaps, variants=True)
    stored = results.all[(results.all["workload"] != GRID) & results.all["kind"].isin(["bytes", "cpu"])]
    frames = overview(run)
    no_floors = () if floor_table else (Missing(what="Metadata floor of the workloads", why=floors.NO_FLOORS),)
    return Answer(
        means=workloads_sentence(named),
        prose=tuple(filter(None, (workloads_cpu_sentence(named), floors.floors_sentence(gaps)))),
        texts=Texts(rows=stored, of="any"),
        figures=(bytes_figure(named), *([overview_figure(frames)] if frames else []), *no_floors),
        tables=(smallest_table(named), *shown, floor_table, cpu_table(named)),
        more=(*([overview_table(frames)] if frames else []), *folded, variants, seed_table(results)),
        wrap=True,
    )


def bytes_figure(named: Named) -> Figure | Missing:
    panels = bytes_panels(named)
    if not panels:
        return Missing(what="Bytes of each workload by format", why=f"no bytes of {BASE_FORMAT} and of another format")
    return Figure(
        name="workloads",
        svg=plots.paths(panels, f"bytes relative to {BASE_FORMAT}, same codec", row_height=0.3),
        alt=f"Bytes of each workload by format, relative to {BASE_FORMAT}. {workloads_sentence(named)}",
        caption=f"Left of 1× a format takes fewer bytes than {BASE_FORMAT} with the same codec. No dot: the format "
        "cannot carry the records, or has no such codec.",
        numbers={
            panel: size_table_name(codec) for codec in named.shown_codecs if (panel := codec_words(codec)) in panels
        },
    )
