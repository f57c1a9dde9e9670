"""Tables about topic dictionaries."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

import pandas as pd

from kfbench.dictionary_sizes import SIZE_BYTES
from kfbench.formats import BASE_FORMAT
from kfbench.report.data.dictionaries import (
    COLUMNAR,
    FORMATS,
    KINDS,
    LEVEL,
    OWN,
    PLAIN,
    RAW,
    TRAINED,
    Dictionaries,
    Group,
    Key,
    Kind,
    Size,
    batches_words,
    group_of,
    kib,
    levels,
    part_ratio,
)
from kfbench.report.topics.dictionaries.sentences import BASE, CHARGED, LITTLE, SMALL_BATCH, lead
from kfbench.tables import Cell, Column, Table, plain_columns

MEANS: Final = "dictionaries-means"
WITH: Final = [kind for kind in KINDS if kind.dictionary == TRAINED]
CHARGE_NOTE: Final = f"A dictionary's stored bytes are charged over {CHARGED} of the topic in {BASE}."


def means_frame(found: Dictionaries, group: Group) -> pd.DataFrame:
    """Return the mean ratios of a group. The figure draws them: a row per kind, a column per batch size."""
    return pd.DataFrame(
        {
            batches_words(batch): {kind.label: found.mean(kind, group, batch) for kind in KINDS}
            for batch in found.batches(group)
        }
    )


def means_table(found: Dictionaries) -> Table:
    return Table(
        name=MEANS,
        caption=f"Bytes relative to {BASE}, geometric means over topics",
        columns=(*plain_columns("data", "batches", "topics"), *plain_columns(*_ratio_labels(), digits=3)),
        rows=tuple(
            (
                group.words,
                batches_words(batch),
                len(found.topics(group, batch)),
                *(found.mean(kind, group, batch) for kind in KINDS),
            )
            for group in found.groups
            for batch in found.batches(group)
        ),
        notes=(f"Dictionaries of {kib(SIZE_BYTES)} at level {LEVEL}. {CHARGE_NOTE}",),
    )


def _ratio_labels() -> list[str]:
    return [f"{kind.label} (×)" for kind in KINDS]


def topics_table(found: Dictionaries, group: Group) -> Table:
    """Return a table with each topic of a group; of named workloads, in their own batches only."""
    body: list[tuple[Cell, ...]] = []
    batches = found.batches(group)
    for batch in batches[:1] if batches[0] == OWN else batches:
        for workload in found.topics(group, batch):
            sizes = [found.size(kind, workload, batch) for kind in WITH]
            stored = [size.stored_bytes if size else None for size in sizes]
            ratios = [found.ratio(kind, workload, batch) for kind in KINDS]
            base = found.base(workload, batch)
            body.append((batches_words(batch), workload, base.size_bytes if base else None, *ratios, *stored))
    return Table(
        name=f"dictionaries-{group.words.replace(' ', '-')}",
        caption=f"Each topic of {group.words}: bytes relative to {BASE}",
        columns=(
            *plain_columns("batches", "topic", f"{BASE} (bytes)"),
            *plain_columns(*_ratio_labels(), digits=3),
            *(Column(name=f"stored in {kind.format}", unit="bytes") for kind in WITH),
        ),
        rows=tuple(body),
        notes=(CHARGE_NOTE,),
    )


def losses_table(found: Dictionaries) -> Table:
    lost = sorted((gain for gain in found.gains if gain.ratio > 1 - LITTLE), key=lambda gain: -gain.ratio)
    return Table(
        name="dictionaries-losses",
        caption=f"Where a dictionary does not pay: it saves less than {100 * LITTLE:.0f} %",
        columns=(
            *plain_columns("topic", "batches", "format"),
            *plain_columns("with a dictionary (× without)", digits=3),
            *plain_columns("stored (bytes)"),
            *plain_columns("pays from (MB)", digits=1),
        ),
        rows=tuple(
            (
                gain.set.workload,
                batches_words(gain.set.batch),
                gain.set.format,
                gain.ratio,
                gain.stored_bytes,
                None if gain.pays_from_bytes is None else gain.pays_from_bytes / 1e6,
            )
            for gain in lost
        ),
        notes=(
            "Without: the same format under zstd or without a codec, whichever takes fewer bytes.",
            f"{CHARGE_NOTE} Log sizes are those in {BASE}. A dash: no log is large enough.",
        ),
    )


def pays_table(found: Dictionaries) -> Table:
    """Return a table of the log sizes from which dictionaries pay."""
    body: list[tuple[Cell, ...]] = []
    for group in found.groups:
        for batch in found.batches(group):
            for name in FORMATS:
                at = (group, batch, name)
                gains = [gain for gain in found.gains if (gain.set.group, gain.set.batch, gain.set.format) == at]
                sizes = [gain.pays_from_bytes / 1000 for gain in gains if gain.pays_from_bytes is not None]
                middle, most = (median(sizes), max(sizes)) if sizes else (None, None)
                never = len(gains) - len(sizes)
                body.append((group.words, batches_words(batch), name, len(gains), middle, most, never))
    return Table(
        name="dictionaries-pays",
        caption=f"The log size from which a dictionary pays, in {BASE}",
        columns=plain_columns(
            "data", "batches", "format", "topics", "median (KB)", "most (KB)", "never (topics)", digits=0
        ),
        rows=tuple(body),
        notes=("It is the stored bytes, divided by the share that the dictionary saves.",),
    )


def sizes_table(found: Dictionaries) -> Table:
    """Return a table of bytes by size of the dictionary, in the lead group."""
    asked = sorted({(key.dictionary, key.size_bytes) for key in found.sizes if key.dictionary in (TRAINED, RAW)})
    sizes = [(TRAINED, size) for kind, size in asked if kind == TRAINED] + [each for each in asked if each[0] == RAW]
    rows = [
        (
            f"{dictionary} {kib(size)}",
            *_means(found, [kind._replace(dictionary=dictionary) for kind in WITH], size, LEVEL),
        )
        for dictionary, size in sizes
    ]
    rows = [row for row in rows if any(row[1:])]  # other groups have more sizes
    return _varied(found, "dictionaries-sizes", "size of the dictionary", "dictionary", rows, WITH)


def levels_table(found: Dictionaries) -> Table:
    """Return a table of bytes by level, in the lead group. All are relative to level 3."""
    kinds = [Kind(BASE_FORMAT, BASE_FORMAT, PLAIN), *KINDS]
    group = lead(found)
    own = [key for key in found.sizes if group_of(key.workload) is group]
    rows = [(level, *_means(found, kinds, SIZE_BYTES, level)) for level in levels(own)]
    return _varied(found, "dictionaries-levels", "level", "level", rows, kinds)


def _means(found: Dictionaries, kinds: Sequence[Kind], size_bytes: int, level: int) -> Iterator[float | None]:
    group = lead(found)
    for kind in kinds:
        for batch in found.batches(group):
            yield found.mean(kind, group, batch, size_bytes, level)


def _varied(
    found: Dictionaries, name: str, what: str, first: str, rows: Sequence[tuple[Cell, ...]], kinds: list[Kind]
) -> Table:
    group = lead(found)
    labels = [f"{kind.label}, {batches_words(batch)}" for kind in kinds for batch in found.batches(group)]
    return Table(
        name=name,
        caption=f"Bytes by {what}: {group.words}, relative to {BASE}",
        columns=(*plain_columns(first), *plain_columns(*(f"{label} (×)" for label in labels), digits=3)),
        rows=tuple(rows),
        notes=(f"Geometric means over topics. {CHARGE_NOTE}",),
    )


def training_table(found: Dictionaries) -> Table:
    """Return a table of training time and memory by size and level."""
    made: dict[tuple[int, int], list[Any]] = {}
    for key, size in found.sizes.items():
        if key.dictionary == TRAINED:
            made.setdefault((key.size_bytes, key.level), []).append(size)
    body: list[tuple[Cell, ...]] = []
    for (size_bytes, level), sizes in sorted(made.items()):
        times = [size.training_s_per_mb for size in sizes if size.training_s_per_mb is not None]
        memory = [size.memory_bytes / 1000 for size in sizes]
        training = (median(times), max(times)) if times else (None, None)
        body.append((kib(size_bytes), level, len(sizes), *training, median(memory), max(memory)))
    return Table(
        name="dictionaries-training",
        caption="CPU time of training and memory, by size and level",
        columns=(
            *plain_columns("dictionary", "level", "sets"),
            *plain_columns("training, median (s per MB)", "most (s per MB)", digits=3),
            *plain_columns("memory, median (KB)", "most (KB)", digits=0),
        ),
        rows=tuple(body),
        notes=(
            "Training is timed once per dictionary, per MB of samples. It does not depend on the level.",
            "Memory is that of one topic in a writer: the digested dictionary with its context, estimated by zstd.",
        ),
    )


def age_table(found: Dictionaries, group: Group) -> Table:
    """Return a table of each part behind the split in columnar, relative to plain zstd."""
    keys = [key for key in found.ages if group_of(key.workload) is group and key.format == COLUMNAR]
    caption = f"Bytes of each part after training, relative to plain zstd: {group.words}"
    return _parts_table(f"dictionaries-age-{group.words.replace(' ', '-')}", caption, found.ages, keys)


def change_table(found: Dictionaries) -> Table:
    """Return a table of the topics whose records change at their middle, in batches of the headline's size."""
    keys = [key for key in found.changes if key.batch in (OWN, SMALL_BATCH)]
    caption = "Bytes after the records of a topic changed at its middle, relative to plain zstd"
    return _parts_table("dictionaries-change", caption, found.changes, keys)


def _parts_table(name: str, caption: str, sizes: Mapping[Key, Size], keys: Sequence[Key]) -> Table:
    keys = [key for key in keys if key.dictionary == TRAINED]
    parts = range(1, max((key.part for key in keys), default=0) + 1)
    body: list[tuple[Cell, ...]] = []
    for key in sorted({key._replace(part=1) for key in keys}):
        ratios = [part_ratio(sizes, key._replace(part=part)) for part in parts]
        body.append((key.workload, batches_words(key.batch), key.format, 100 * key.share, *ratios))
    return Table(
        name=name,
        caption=caption,
        columns=(
            *plain_columns("topic", "batches", "format"),
            *plain_columns("trained on (%)", digits=0),
            *plain_columns(*(f"part {part} (×)" for part in parts), digits=3),
        ),
        rows=tuple(body),
        notes=("The parts behind the split have about as many batches. Stored bytes are not charged here.",),
    )
