"""Sentences about columnar: metadata, bytes, CPU time and losses. A sentence is empty if its numbers are missing."""

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Final

import numpy as np

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.floor import FLOOR
from kfbench.measure.kinds.cpu import READINGS
from kfbench.report.data.arms import CPU_DIGITS, Band
from kfbench.report.data.axes import GRID
from kfbench.report.data.named import under_words
from kfbench.report.data.shown_formats import HEADERS_FIRST, NEW
from kfbench.report.data.words import span
from kfbench.report.topics.columnar.measured import (
    NAME,
    Columnar,
    batches_words,
    extremes_words,
    is_pictured,
    mean_ratio,
)
from kfbench.report.topics.columnar.tables import count_words
from kfbench.tables import listed, number
from kfbench.text import counted, percent

LAYOUT: Final = (
    f"{NAME} is this project's research format. No client and no broker reads it. A batch has a short header and "
    "packed columns of times, offsets, lengths and header counts. Then follow all keys, all values and all bytes of "
    "headers. A codec compresses only these last three."
)
ACTIONS: Final[Mapping[str, str]] = {
    **{operation: operation for operation in OPERATIONS},
    READINGS["metadata"]: "read offsets and times",
    READINGS["lookup"]: "read times without the CRC",
    READINGS["record"]: "read one record",
}


def answer(columnar: Columnar) -> str:
    """Return the answer of the section: how low metadata can go, the headline, and the number of losses."""
    parts = (floor_sentence(columnar), headline_sentence(columnar), losses_sentence(columnar))
    return " ".join(filter(None, parts))


def floor_sentence(columnar: Columnar) -> str:
    """Give the metadata floor relative to v2's metadata, and how near the formats come to it (medians)."""
    rows = [sizes for sizes in columnar.sizes if FLOOR in sizes.metadata]
    batch = max((sizes.at.batch for sizes in rows), default=0)
    rows = [sizes for sizes in rows if sizes.at.batch == batch]
    medians = {
        name: float(np.median([ratio for sizes in rows if (ratio := sizes.metadata_ratio(name)) is not None]))
        for name in (FLOOR, NAME, NEW)
        if rows and all(name in sizes.metadata for sizes in rows)
    }
    if FLOOR not in medians:
        return ""
    others = listed([f"{name} takes {medians[name]:.2f} ×" for name in (NAME, NEW) if name in medians])
    return (
        f"Without a codec, metadata could be {medians[FLOOR]:.2f} × {BASE_FORMAT}'s, {_at_words(batch)}. "
        f"Of the formats, {others}. These are medians of {counted(len(rows), 'workload')}."
    )


def headline_sentence(columnar: Columnar) -> str:
    """Give the number of the front page's card."""
    if (mean := columnar.headline) is None:
        return ""
    change = f"{percent(abs(mean.ratio - 1))} {'fewer' if mean.ratio < 1 else 'more'} bytes than {BASE_FORMAT}"
    workloads = f"This is the geometric mean of {count_words(mean.labels)}."
    return f"In all, {NAME} takes {change} {under_words(mean.codec)}, {_at_words(mean.batch)}. {workloads}"


def metadata_sentence(columnar: Columnar) -> str:
    """Give the share of v2's metadata that each format saves.

    Only metadata above the floor counts. The floor is a lower limit, computed from entropy.
    """
    rows = [sizes for sizes in columnar.sizes if FLOOR in sizes.metadata]
    if not rows:
        return ""
    sentences = [
        f"The floor is the entropy of a batch's columns and a header of {NAME}'s size.",
        f"The savings count only what {BASE_FORMAT} has above it, in the median of {counted(len(rows), 'cell')}.",
    ]
    for name in (NEW, HEADERS_FIRST, NAME):
        saved = [
            (sizes.metadata[BASE_FORMAT] - sizes.metadata[name]) / (sizes.metadata[BASE_FORMAT] - sizes.metadata[FLOOR])
            for sizes in rows
            if name in sizes.metadata
        ]
        if saved:
            sentences.append(f"The saving of {name} is {100 * float(np.median(saved)):.0f} %.")
    above = [sizes.metadata[NAME] - sizes.metadata[FLOOR] for sizes in rows]
    sentences.append(f"Above the floor, {NAME} has {span(above)} bytes per record.")
    batch = max(sizes.at.batch for sizes in rows)
    entropies = [(sizes.columns[NAME], sizes.columns[FLOOR]) for sizes in rows if sizes.at.batch == batch]
    if times := [columns / entropy for columns, entropy in entropies if entropy]:
        sentences.append(
            f"Its columns take {float(np.median(times)):.2f} × their entropy in the median, {_at_words(batch)}."
        )
    return " ".join(sentences)


def bytes_sentence(columnar: Columnar) -> str:
    """Compare all bytes with those of v2, in the workloads' own batches and in the largest batches."""
    return " ".join(filter(None, (_bytes_at(columnar, batch) for batch in columnar.batches[:2])))


def _bytes_at(columnar: Columnar, batch: int) -> str:
    """Give the mean ratio at one batch size for each codec of the figures, and the workloads that are missing."""
    by_codec = {codec: sizes for codec in columnar.codecs if (sizes := columnar.under(codec, batch))}
    by_codec = {codec: sizes for codec, sizes in by_codec.items() if is_pictured(codec)} or by_codec
    sentences = []
    for codec, sizes in by_codec.items():
        if (mean := mean_ratio(sizes, NAME)) is not None:
            words = count_words({each.at.label for each in sizes})
            ratio = f"{mean:.3f} × {BASE_FORMAT}'s bytes"
            sentences.append(f"Geometric mean of {words}: {ratio} {under_words(codec)}, {_at_words(batch)}.")
    labels = {each.at.label for sizes in by_codec.values() for each in sizes}
    smaller = {sizes.at.label for sizes in columnar.sizes if 0 < sizes.at.batch < batch}
    missing = sorted(label for label in smaller - labels if not label.startswith(GRID))
    if sentences and missing:
        sentences.append(f"Not measured {_at_words(batch)}: {listed(missing)}.")
    return " ".join(sentences)


def _at_words(batch: int) -> str:
    return f"at {batches_words(batch)}" if batch else "in own batches"


def cpu_sentence(columnar: Columnar, operations: Sequence[str]) -> str:
    """Compare CPU time with that of v2, by operation and codec: the geometric means and ranges over workloads."""
    sentences = []
    for operation in operations:
        for codec in dict.fromkeys(times.at.with_codec for times in columnar.times):
            if medians := [times.of[NAME].median for times in columnar.timed(operation, codec)]:
                mean = f"{geometric_mean(medians):.{CPU_DIGITS}f}"
                ratio = f"{mean}{_brackets(Band(min(medians), max(medians)), CPU_DIGITS)} × {BASE_FORMAT}'s CPU"
                sentences.append(f"To {ACTIONS[operation]}, it takes {ratio} {under_words(codec)}.")
    if sentences:
        sentences.append(
            f"These are geometric means over workloads (least–most), {_at_words(columnar.pictured_batch)}."
        )
    return " ".join(sentences)


def losses_sentence(columnar: Columnar) -> str:
    cells = sum(columnar.compared(BASE_FORMAT).values())
    lost = sum(loss.rival == BASE_FORMAT for loss in columnar.losses)
    return f"It takes more than {BASE_FORMAT} in {lost} of {number(cells)} cells of bytes and CPU." if cells else ""


def _brackets(ends: Band, digits: int) -> str:
    """Return the least and the greatest ratio in parentheses; empty if they are equal."""
    return f" ({extremes_words(ends, digits)})" if ends.low < ends.high else ""
