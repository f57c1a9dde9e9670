"""Tables about columnar, and the numbers of its figures: metadata, all bytes, CPU time and losses."""

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.floor import FLOOR
from kfbench.measure.kinds.cpu import READINGS
from kfbench.report.data.arms import CPU_DIGITS
from kfbench.report.data.axes import GRID
from kfbench.report.data.named import NONE, codec_words, under_words
from kfbench.report.data.shown_formats import HEADERS_FIRST, NEW, in_order
from kfbench.report.topics.columnar.measured import (
    COMPARED,
    NAME,
    OWN,
    RIVALS,
    TIMED,
    At,
    Columnar,
    batches_words,
    extreme_ratios,
    extremes_words,
    is_pictured,
    mean_ratio,
)
from kfbench.tables import Cell, Column, Interval, Ranked, Table, listed, number, plain_columns

TO_BASE: Final = f"× {BASE_FORMAT}"
# Printed below the times, because leaving out checks saves a part of the time.
NOT_CHECKED: Final = (
    (
        f"In {NAME}, decode-metadata reads only the number of headers. It does not see damaged columns of headers. It "
        f"does not see a payload whose size differs from the lengths. Decode sees both. {BASE_FORMAT} walks through "
        "all headers."
    ),
    (
        f"No CRC is computed by read-times. It reads the length, time and offset of each record of {BASE_FORMAT}. Of "
        f"a batch of {NAME} it reads the first two columns. Only decode sees damage after them. {HEADERS_FIRST} reads "
        "all its metadata."
    ),
    f"Records of fetch-record had no headers. {NAME} reads a batch with headers as a whole, {BASE_FORMAT} does not.",
)


def metadata_table(columnar: Columnar) -> Table | None:
    """Return a table of metadata in bytes per record, with a row per workload and batch size.

    It also has the metadata floor: a lower limit, computed from entropy.
    """
    rows = [sizes for sizes in columnar.sizes if FLOOR in sizes.metadata]
    if not rows:
        return None
    rows.sort(key=lambda sizes: (sizes.at.place, sizes.at.batch))
    order = (NAME, FLOOR, BASE_FORMAT, *COMPARED[1:])
    names = [name for name in order if any(name in sizes.metadata for sizes in rows)]
    others = [name for name in names if name not in (NAME, BASE_FORMAT)]
    return Table(
        name="columnar-metadata",
        caption="Bytes of metadata per record: all but keys, values and headers, without a codec",
        columns=(
            *plain_columns("workload", "batches"),
            Column(name=NAME, unit=TO_BASE, digits=3),
            *plain_columns(f"{NAME} above the floor (bytes)", f"columns of {NAME} (bytes)", "their entropy (bytes)"),
            *(Column(name=name, unit="bytes") for name in names),
            *(Column(name=name, unit=TO_BASE, digits=3) for name in others),
            Column(name="records per batch", digits=1),
        ),
        rows=tuple(
            (
                sizes.at.label,
                _batch_cell(sizes.at),
                sizes.metadata_ratio(NAME),
                sizes.metadata[NAME] - sizes.metadata[FLOOR],
                sizes.columns[NAME],
                sizes.columns[FLOOR],
                *(sizes.metadata.get(name) for name in names),
                *(sizes.metadata_ratio(name) for name in others),
                sizes.records_per_batch,
            )
            for sizes in rows
        ),
        notes=(
            (
                f"The floor: a batch header of {NAME}'s size, and the entropy of all columns in these records. It is "
                "too low where values rarely recur: n different times count as log2(n) bits each."
            ),
            (
                "A time other than the latest (append time, delete horizon) takes 6 bytes in the floor. It takes 10 "
                "or 11 in columnar."
            ),
            f"Header keys and values are not metadata, even where {NAME} stores them once per batch.",
        ),
    )


def _batch_cell(at: At) -> str:
    return number(at.batch) if at.batch else "own"


def metadata_panels(columnar: Columnar) -> dict[str, pd.DataFrame]:
    """Return metadata relative to v2 for a figure, at the largest batch size for which a metadata floor was computed.

    The result has one item: the panel's title -> frame with columns label, format, median.
    """
    batch = max((sizes.at.batch for sizes in columnar.sizes if FLOOR in sizes.metadata), default=OWN)
    dots = [
        (sizes.at.label, name, sizes.metadata_ratio(name))
        for sizes in columnar.under(NONE, batch)
        for name in (NEW, NAME, FLOOR)
        if FLOOR in sizes.metadata and name in sizes.metadata
    ]
    return {batches_words(batch): pd.DataFrame(dots, columns=["label", "format", "median"])} if dots else {}


def bytes_tables(columnar: Columnar) -> list[Table]:
    """Return tables of all bytes relative to v2 by workload, two per batch size.

    The first table has the codecs of the figures, the second the others. One table would be wider than a page.
    """
    pairs = [(batch, pictured) for batch in columnar.batches for pictured in (True, False)]
    return [table for pair in pairs if (table := _bytes_table(columnar, *pair)) is not None]


def _bytes_table(columnar: Columnar, batch: int, pictured: bool) -> Table | None:
    codecs = [codec for codec in columnar.codecs if columnar.under(codec, batch) and is_pictured(codec) == pictured]
    by = {codec: {sizes.at.label: sizes for sizes in columnar.under(codec, batch)} for codec in codecs}
    if not by:
        return None
    names = [name for name in COMPARED if any(name in sizes.of for of in by.values() for sizes in of.values())]
    shown = [(name, codec) for name in names for codec in codecs]
    labels = {label for of in by.values() for label in of}
    return Table(
        name=bytes_table_name(batch, pictured),
        caption=f"All bytes, payload too, relative to {BASE_FORMAT} with the same codec: {batches_words(batch)}",
        columns=(
            Column(name="workload"),
            *(Column(name=f"{name}, {codec_words(codec)}", unit=TO_BASE, digits=3) for name, codec in shown),
        ),
        rows=tuple(
            (label, *(by[codec][label].ratio(name) if label in by[codec] else None for name, codec in shown))
            for label in sorted(labels, key=lambda label: columnar.places[label])
        ),
    )


def bytes_table_name(batch: int, pictured: bool = True) -> str:
    return f"columnar-bytes-{batch or 'own'}{'' if pictured else '-others'}"


def bytes_panels(columnar: Columnar) -> dict[str, pd.DataFrame]:
    """Return bytes relative to v2 for a figure, one panel per codec, at the first batch size of `batches`."""
    panels = {}
    for codec in filter(is_pictured, columnar.codecs if columnar.batches else ()):
        dots = [
            (sizes.at.label, name, ratio)
            for sizes in columnar.under(codec, columnar.batches[0])
            for name in (NEW, HEADERS_FIRST, NAME)
            if (ratio := sizes.ratio(name)) is not None
        ]
        if dots:
            panels[codec_words(codec)] = pd.DataFrame(dots, columns=["label", "format", "median"])
    return panels


def means_table(columnar: Columnar) -> Table | None:
    """Return a table of geometric means over workloads, with a row per codec and batch size."""
    names = [name for name in COMPARED if any(name in sizes.of for sizes in columnar.sizes)]
    body: list[tuple[Cell, ...]] = []
    for codec in columnar.codecs:
        for batch in sorted(columnar.batches):
            if not (sizes := columnar.under(codec, batch)):
                continue
            means = [mean_ratio(sizes, name) for name in names]
            ends = extreme_ratios(sizes)
            span = Ranked(extremes_words(ends, 3), ends.low)
            body.append((codec_words(codec), batches_words(batch), len(sizes), means[0], span, *means[1:]))
    if not body:
        return None
    return Table(
        name="columnar-means",
        caption=f"All bytes relative to {BASE_FORMAT} with the same codec, geometric mean over workloads",
        columns=(
            *plain_columns("codec", "batches", "workloads"),
            Column(name=NAME, unit=TO_BASE, digits=3),
            Column(name=f"{NAME}, least–most"),
            *(Column(name=name, unit=TO_BASE, digits=3) for name in names[1:]),
        ),
        rows=tuple(body),
    )


def times_tables(columnar: Columnar) -> dict[str, Table]:
    """Return the tables of CPU time by their names: encode and decode, readers of a part, and broker paths."""
    paths = tuple(dict.fromkeys(times.operation for times in columnar.times if times.operation not in TIMED))
    readings = tuple(READINGS.values())
    entries: tuple[tuple[str, Sequence[str], str, Sequence[str]], ...] = (
        ("columnar-cpu", OPERATIONS, f"CPU time to encode and decode relative to {BASE_FORMAT}, round by round", ()),
        (
            "columnar-readings",
            readings,
            f"CPU time to read a part relative to {BASE_FORMAT}, round by round",
            NOT_CHECKED,
        ),
        ("columnar-paths", paths, f"CPU time of a broker's paths relative to {BASE_FORMAT}", ()),
    )
    tables = [_times_table(columnar, operations, name, caption, notes) for name, operations, caption, notes in entries]
    return {table.name: table for table in tables if table is not None}


def _times_table(
    columnar: Columnar, operations: Sequence[str], name: str, caption: str, notes: Sequence[str]
) -> Table | None:
    rows = [times for times in columnar.times if times.operation in operations]
    if not rows:
        return None
    timed = {(times.operation, name) for times in rows for name in times.of}
    names = [NAME, *(name for name in in_order(name for _, name in timed) if name != NAME)]
    shown = [(operation, name) for name in names for operation in operations if (operation, name) in timed]
    cells: dict[At, dict[tuple[str, str], Interval]] = {}
    for times in rows:
        ratios = cells.setdefault(times.at, {})
        ratios.update({(times.operation, name): ratio for name, ratio in times.of.items()})
    zones = [
        f"{extremes_words(columnar.noise[operation], CPU_DIGITS)} ({operation})"
        for operation in operations
        if operation in columnar.noise
    ]
    noise = (
        f"The middle 95 % of {BASE_FORMAT} against itself: {listed(zones)}. An interval that reaches into it is a tie."
    )
    return Table(
        name=name,
        caption=caption,
        columns=(
            *plain_columns("workload", "batches", "codec"),
            *(Column(name=f"{operation}, {name}", unit=TO_BASE) for operation, name in shown),
        ),
        rows=tuple(
            (at.label, _batch_cell(at), codec_words(at.with_codec), *(cells[at].get(column) for column in shown))
            for at in sorted(cells, key=lambda at: (at.codec_order, at.place, at.batch))
        ),
        notes=(*([noise] if zones else []), *notes),
    )


def times_panels(columnar: Columnar, operations: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Return CPU times without a codec for a figure, one panel per operation."""
    panels = {}
    for operation in operations:
        bars = [
            (times.at.label, name, ratio.median, ratio.low, ratio.high)
            for times in columnar.timed(operation, NONE)
            for name, ratio in times.of.items()
        ]
        if bars:
            panels[operation] = pd.DataFrame(bars, columns=["label", "format", "median", "low", "high"])
    return panels


def losses_table(columnar: Columnar) -> Table:
    """Return a table of the measurements in which columnar takes more than v2, v3 or headers-first.

    They are measurements of bytes and of CPU time.
    """
    rivals = [rival for rival in RIVALS if columnar.compared(rival)]
    return Table(
        name="columnar-losses",
        caption=f"Where {NAME} loses: every cell in which it takes more than {' or '.join(rivals)}",
        columns=(
            *plain_columns("what", "workload", "batches", "codec", "against"),
            Column(name=NAME, unit="× the other", digits=3),
        ),
        rows=tuple(
            (
                loss.what,
                loss.at.label,
                batches_words(loss.at.batch),
                codec_words(loss.at.with_codec),
                loss.rival,
                loss.ratio,
            )
            for loss in columnar.losses
        ),
        notes=(f"CPU time counts as more if its interval is above 1 and above {BASE_FORMAT}'s ratios to itself.",),
    )


def loss_counts_table(columnar: Columnar) -> Table:
    """Return a table with the number of losses per operation and rival, next to the number of compared cells.

    A loss is a measurement in which columnar takes more than the rival.
    """
    lost = Counter((loss.what, loss.rival) for loss in columnar.losses)
    cells = {rival: found for rival in RIVALS if (found := columnar.compared(rival))}
    return Table(
        name="columnar-loss-counts",
        caption=f"Cells in which {NAME} takes more",
        columns=(
            Column(name="what"),
            *(Column(name=words, unit="cells") for rival in cells for words in (f"more than {rival}", f"vs {rival}")),
        ),
        rows=tuple(
            (what, *(cell for rival, found in cells.items() for cell in (lost[what, rival], found.get(what))))
            for what in dict.fromkeys(what for found in cells.values() for what in found)
        ),
        notes=tuple(_few_cells_notes(columnar)),
    )


def _few_cells_notes(columnar: Columnar) -> Iterator[str]:
    """Name the codecs that were measured at one batch size only, and count the timed workloads."""
    codecs: dict[str, list[str]] = {}
    for codec in columnar.codecs:
        batches = [batch for batch in columnar.batches if columnar.under(codec, batch)]
        if codec != NONE and len(batches) == 1 < len(columnar.batches):
            codecs.setdefault(batches_words(batches[0]), []).append(codec_words(codec))
    for batch, names in codecs.items():
        yield f"Bytes under {listed(names)} were measured at {batch} only."
    timed = [times for times in columnar.times if times.operation in TIMED]
    labels: dict[str, set[str]] = {}
    for times in timed:
        labels.setdefault(times.operation, set()).add(times.at.label)
    if timed:
        counts = sorted({count_words(names) for names in labels.values()})
        under = dict.fromkeys(under_words(times.at.with_codec) for times in timed)
        yield f"CPU times of an operation are of {' or '.join(counts)}, {listed(list(under))}."


def count_words(labels: AbstractSet[str]) -> str:
    """Return the number of workloads and grid points, for example: 18 workloads and 4 points of the grid."""
    points = sum(label.startswith(GRID) for label in labels)
    counts = ((len(labels) - points, "workload", ""), (points, "point", " of the grid"))
    return listed([f"{count} {noun}{'s' * (count != 1)}{suffix}" for count, noun, suffix in counts if count])
