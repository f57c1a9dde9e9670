"""Tables about the codec's CPU time with topic dictionaries."""

from collections.abc import Mapping
from itertools import product

from kfbench.dictionary_sizes import SIZE_BYTES
from kfbench.report.data.dictionaries import (
    FORMATS,
    LEVEL,
    Dictionaries,
    Pair,
    TimeKey,
    batches_words,
    group_of,
    kib,
    mean_time,
)
from kfbench.report.topics.dictionaries.sentences import DICTIONARY_OPERATIONS
from kfbench.tables import Cell, Table, plain_columns


def cpu_table(found: Dictionaries) -> Table:
    """Return a table of the mean CPU ratios with one dictionary in the process, and with the frame alone."""
    arms = ((kib(SIZE_BYTES), SIZE_BYTES, found.times), ("none, lean frame", 0, found.lean_times))
    body = []
    for group, name, (words, size_bytes, times) in product(found.time_groups, FORMATS, arms):
        for batch in _batches(times):
            at = [TimeKey("", batch, name, op, size_bytes) for op in DICTIONARY_OPERATIONS]
            if any(cells := [mean_time(times, group, each) for each in at]):
                body.append((group.words, name, words, batches_words(batch), *cells))
    return Table(
        name="dictionaries-cpu",
        caption="The codec's CPU time with a dictionary, relative to plain zstd on the same batches",
        columns=plain_columns(
            "data", "format", "dictionary", "batches", *(f"{op} (×)" for op in DICTIONARY_OPERATIONS)
        ),
        rows=tuple(body),
        notes=(
            f"Geometric means over topics, level {LEVEL}. Only the codec is timed, in pairs.",
            "The lean frame is that of batches with a dictionary. Its rows show what the frame alone changes.",
        ),
    )


def _batches(times: Mapping[TimeKey, Pair]) -> list[int]:
    return sorted({key.batch for key in times})


def cpu_topics_table(found: Dictionaries) -> Table:
    """Return a table of the CPU ratios of each topic of the first group that has times, with intervals."""
    usual = SIZE_BYTES, LEVEL
    pairs = {key: pair for key, pair in found.times.items() if (key.size_bytes, key.level) == usual}
    first = found.time_groups[0]
    sets = sorted({(key.workload, key.batch, key.format) for key in pairs if group_of(key.workload) is first})
    body: list[tuple[Cell, ...]] = []
    for workload, batch, name in sets:
        each = [pairs.get(TimeKey(workload, batch, name, op)) for op in DICTIONARY_OPERATIONS]
        body.append((workload, batches_words(batch), name, *(pair.interval if pair else None for pair in each)))
    return Table(
        name="dictionaries-cpu-topics",
        caption="The codec's CPU time of each topic, with 95 % intervals",
        columns=plain_columns("topic", "batches", "format", *(f"{op} (×)" for op in DICTIONARY_OPERATIONS)),
        rows=tuple(body),
    )


def cpu_levels_table(found: Dictionaries) -> Table:
    """Return a table of the mean CPU ratios by level, in the first group that has times."""
    group = found.time_groups[0]
    body: list[tuple[Cell, ...]] = []
    for name, level in sorted({(key.format, key.level) for key in found.times}):
        cells = [
            mean_time(found.times, group, TimeKey("", batch, name, op, SIZE_BYTES, level))
            for op in DICTIONARY_OPERATIONS
            for batch in _batches(found.times)
        ]
        body.append((group.words, name, level, *cells))
    labels = [f"{op}, {batches_words(batch)} (×)" for op in DICTIONARY_OPERATIONS for batch in _batches(found.times)]
    return Table(
        name="dictionaries-cpu-levels",
        caption="The codec's CPU time by level, relative to plain zstd of the same level",
        columns=plain_columns("data", "format", "level", *labels),
        rows=tuple(body),
    )


def live_table(found: Dictionaries) -> Table:
    """Return a table of the mean CPU ratios by the number of live dictionaries."""
    counts = sorted({key.live for key in found.live_times})
    keys = [key for key in found.live_times if key.size_bytes == SIZE_BYTES]
    sets = sorted({(key.level != LEVEL, key.format, key.level) for key in keys})
    body: list[tuple[Cell, ...]] = []
    for _, name, level in sets:
        for op in DICTIONARY_OPERATIONS:
            for batch in _batches(found.live_times):
                at = TimeKey("", batch, name, op, SIZE_BYTES, level)
                cells = [mean_time(found.live_times, None, at._replace(live=live)) for live in counts]
                body.append((name, level, op, batches_words(batch), *cells))
    return Table(
        name="dictionaries-live",
        caption="The codec's CPU time by number of live dictionaries, relative to plain zstd",
        columns=plain_columns("format", "level", "operation", "batches", *(f"{live} live (×)" for live in counts)),
        rows=tuple(body),
        notes=(f"Batches use dictionaries of {kib(SIZE_BYTES)} in turn. Geometric means over topics.",),
    )
