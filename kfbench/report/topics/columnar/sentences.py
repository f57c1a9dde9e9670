"""Sentences about columnar: metadata, bytes, CPU time and losses. A sentence is empty if its numbers are missing."""

from collections.abc import Mapping
from statistics import geometric_mean
from typing import Final

import numpy as np

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS, READINGS
from kfbench.measure.floor import FLOOR
from kfbench.report.data.arms import CPU_DIGITS, Band
from kfbench.report.data.axes import GRID
from kfbench.report.data.named import under_words
from kfbench.report.data.shown_formats import HEADERS_FIRST, NEW
from kfbench.report.topics.columnar.measured import (
    NAME,
    TIMED,
    Columnar,
    batches_words,
    extreme_ratios,
    extremes_words,
    is_pictured,
    mean_ratio,
)
from kfbench.report.topics.columnar.tables import count_words, few_cells_words, losses_words
from kfbench.tables import listed
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
    """Return the answer of the section: its headline, and a sentence each about bytes, CPU time and losses."""
    sentences = (headline_sentence, bytes_sentence, cpu_sentence, losses_sentence)
    return " ".join(filter(None, (sentence(columnar) for sentence in sentences)))


def headline_sentence(columnar: Columnar) -> str:
    """Give the number of the front page's card."""
    if (mean := columnar.headline) is None:
        return ""
    change = f"{percent(abs(mean.ratio - 1))} {'fewer' if mean.ratio < 1 else 'more'} bytes than {BASE_FORMAT}"
    where = f"{under_words(mean.codec)}, {_at_words(mean.batch)}"
    return f"{NAME} takes {change} {where} (geometric mean of {counted(mean.workloads, 'workload')})."


def metadata_sentence(columnar: Columnar) -> str:
    """Give the share of v2's metadata that each format saves.

    Only metadata above the floor counts. The floor is a lower limit, computed from entropy.
    """
    rows = [sizes for sizes in columnar.sizes if FLOOR in sizes.metadata]
    if not rows:
        return ""
    shares = {
        name: [
            (sizes.metadata[BASE_FORMAT] - sizes.metadata[name]) / (sizes.metadata[BASE_FORMAT] - sizes.metadata[FLOOR])
            for sizes in rows
            if name in sizes.metadata
        ]
        for name in (NEW, HEADERS_FIRST, NAME)
    }
    medians = [f"{100 * float(np.median(saved)):.0f} % ({name})" for name, saved in shares.items() if saved]
    above = [sizes.metadata[NAME] - sizes.metadata[FLOOR] for sizes in rows]
    text = (
        f"The floor is the entropy of a batch's columns and a header of {NAME}'s size. In the median of {len(rows)} "
        f"cells, formats save {listed(medians)} of the bytes that {BASE_FORMAT} has above it; {NAME} stays "
        f"{min(above):.2f} to {max(above):.2f} bytes per record above it."
    )
    batch = max(sizes.at.batch for sizes in rows)
    entropies = [(sizes.columns[NAME], sizes.columns[FLOOR]) for sizes in rows if sizes.at.batch == batch]
    if times := [columns / entropy for columns, entropy in entropies if entropy]:
        text += f" Its columns alone take {float(np.median(times)):.2f} times their entropy, {batches_words(batch)}."
    return text


def bytes_sentence(columnar: Columnar) -> str:
    """Compare all bytes with those of v2, in the workloads' own batches and in the largest batches."""
    parts = list(filter(None, (_bytes_at(columnar, batch) for batch in columnar.batches[:2])))
    means = "payload too, geometric means over workloads and their span"
    return f"Of {BASE_FORMAT}'s bytes {NAME} takes {'; '.join(parts)} ({means})." if parts else ""


def _bytes_at(columnar: Columnar, batch: int) -> str:
    """Return the mean ratios at one batch size as text.

    Example: in own batches (19 workloads) 0.863 (0.548–1.000) under zstd 3.
    """
    by_codec = {codec: sizes for codec in columnar.codecs if (sizes := columnar.under(codec, batch))}
    by_codec = {codec: sizes for codec, sizes in by_codec.items() if is_pictured(codec)} or by_codec
    ratios = [
        f"{mean:.3f}{_brackets(extreme_ratios(sizes), 3)} {under_words(codec)}"
        for codec, sizes in by_codec.items()
        if (mean := mean_ratio(sizes, NAME)) is not None
    ]
    if not ratios:
        return ""
    labels = {each.at.label for sizes in by_codec.values() for each in sizes}
    smaller = {sizes.at.label for sizes in columnar.sizes if 0 < sizes.at.batch < batch}
    missing = sorted(label for label in smaller - labels if not label.startswith(GRID))
    without = f", not {listed(missing)}" if missing else ""
    return f"{_at_words(batch)} ({count_words(labels)}{without}) {listed(ratios)}"


def _at_words(batch: int) -> str:
    return f"at {batches_words(batch)}" if batch else "in own batches"


def cpu_sentence(columnar: Columnar) -> str:
    """Compare CPU time with that of v2, by operation and codec."""
    parts = []
    for codec in dict.fromkeys(times.at.with_codec for times in columnar.times):
        means = []
        for operation in TIMED:
            if medians := [times.of[NAME].median for times in columnar.timed(operation, codec)]:
                mean = geometric_mean(medians)
                ends = _brackets(Band(min(medians), max(medians)), CPU_DIGITS)
                means.append(f"{mean:.{CPU_DIGITS}f}{ends} to {ACTIONS[operation]}")
        if means:
            parts.append(f"{under_words(codec)} {listed(means)}")
    at = _at_words(columnar.pictured_batch)
    return f"Of {BASE_FORMAT}'s CPU time, {at}, it takes {'; '.join(parts)}." if parts else ""


def losses_sentence(columnar: Columnar) -> str:
    counts = losses_words(columnar, BASE_FORMAT)
    few = few_cells_words(columnar)
    return f"Cells in which it takes more than {BASE_FORMAT}: {counts}{few}." if counts else ""


def _brackets(ends: Band, digits: int) -> str:
    """Return the least and the greatest ratio in parentheses; empty if they are equal."""
    return f" ({extremes_words(ends, digits)})" if ends.low < ends.high else ""
