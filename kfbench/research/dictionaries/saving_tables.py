"""A sentence and tables about what topic dictionaries would save."""

from collections.abc import Iterator

from kfbench.formats import BASE_FORMAT
from kfbench.limits import LEAST_TRAINING_BYTES, RAW_BYTES
from kfbench.present.table import Cell, Column, Table, listed, plain_columns
from kfbench.research.dictionaries.saving import (
    DETAIL_LEVELS,
    LEAST_TEST_BYTES,
    LEVEL,
    DictionaryAnswer,
    DictionarySaving,
)
from kfbench.text import count_words, percent
from kfbench.whatif.answer import AS_RECORDED, WhatIf, saving
from kfbench.whatif.summary import less_or_more

LEAST_SHARE = 0.0005  # a smaller saving is none


def dictionary_bytes(answer: WhatIf, found: DictionarySaving) -> int:
    """Return the size of the whole log with topic dictionaries. Topics that were not sampled keep plain zstd."""
    return zstd_bytes(answer, found) - found.saved_bytes


def zstd_bytes(answer: WhatIf, found: DictionarySaving) -> int:
    """Return the size of the whole log under zstd without dictionaries, in the same format."""
    return answer.size(found.format, "zstd") or found.zstd_bytes


def dictionary_line(answer: WhatIf, found: DictionaryAnswer) -> str:
    """Return the saving of each format for the first screen, or why there is none."""
    if current := sorted({number for each in found.topics for number in each.current}):
        return _current_words(found, current)
    if not found.has_answer:
        sampled_bytes = sum(each.train_bytes + each.test_bytes for each in found.topics if each.format == BASE_FORMAT)
        topics = "the topic" if found.all_topics == 1 else f"{found.sampled_topics:,} topics"
        return (
            f"Topic dictionary: too few bytes to tell ({sampled_bytes:,} of plain {BASE_FORMAT} in {topics}; "
            f"{2 * LEAST_TEST_BYTES:,} are needed in one)."
        )
    if not any(_pays(answer, each) for each in found.savings):
        tested = [each for each in found.topics if each.format == BASE_FORMAT and each.stored_bytes]
        stored_bytes = sum(each.stored_bytes for each in tested)
        gained = sum(each.saved_bytes + each.stored_bytes for each in tested)
        would = f"saves {gained:,}" if gained >= 0 else f"makes the batches {-gained:,} larger"
        return (
            f"Topic dictionary: no saving in these batches: in {BASE_FORMAT} it takes {stored_bytes:,} bytes and "
            f"{would}." + ("" if answer.is_fingerprint else " --dictionary tries smaller ones.")
        )
    saved, now = [], []
    for each in found.savings:
        size_bytes, share = dictionary_bytes(answer, each), "nothing"
        if _pays(answer, each):
            share = percent(saving(size_bytes, zstd_bytes(answer, each)))
            now.append(f"{each.format} {less_or_more(saving(size_bytes, answer.base_bytes))}")
        saved.append(f"{share} of {each.format} + zstd {LEVEL}")
    most = max(each.topics for each in found.savings)
    topics = "" if most == found.all_topics else f" in {most:,} of {found.all_topics:,} topics"
    return f"A topic dictionary{topics} saves {listed(saved)}. Against now: {', '.join(now)}."


def _current_words(found: DictionaryAnswer, numbers: list[int]) -> str:
    """Compare the dictionaries that the log has with new ones, on the same batches."""
    noun = "dictionary" if len(numbers) == 1 else "dictionaries"
    size_bytes = max((each.size_bytes for each in found.topics), default=0)
    new = f"{'a new one' if len(numbers) == 1 else 'new ones'} of {size_bytes:,} bytes"
    saved = [
        f"{percent(each.current_saving or 0.0)} of {each.format} + zstd {LEVEL} "
        f"({new}: {percent(each.saving_against_zstd)})"
        for each in found.savings
    ]
    return (
        f"The log has {noun} {listed(list(map(str, numbers)))}, saving {listed(saved)}. Unlike a new one, it may have "
        "been trained on the tested records."
    )


def _pays(answer: WhatIf, each: DictionarySaving) -> bool:
    return saving(dictionary_bytes(answer, each), zstd_bytes(answer, each)) >= LEAST_SHARE


def dictionary_tables(found: DictionaryAnswer, recorded: str = AS_RECORDED) -> Iterator[Table]:
    """Yield a table with a row per topic and format. Where details were asked for, yield their table first.

    recorded: a description of the log's own batches.
    """
    if found.details:
        yield _details_table(found, recorded)
    rows = [
        (
            each.topic,
            each.format,
            each.kind,
            each.size_bytes,
            each.train_bytes,
            each.test_bytes,
            each.zstd_bytes or None,
            each.stored_bytes,
            each.saved_bytes,
            ", ".join(map(str, each.current)) or "-",
            None if each.current_bytes is None else each.zstd_bytes - each.current_bytes,
        )
        for each in found.topics
    ]
    notes = [
        "The oldest half of a sample trains, the rest tests. Saved bytes are of the whole topic, after what is stored."
    ]
    if found.sampled_topics < found.all_topics:
        notes.append(f"{found.all_topics - found.sampled_topics:,} smaller topics were not sampled and keep zstd.")
    yield Table(
        name="dictionary",
        caption=f"A zstd dictionary per topic, level {LEVEL}, in the batches of the sizes above",
        columns=plain_columns(
            "topic", "format", "kind", "size (bytes)", "trained on (bytes)", "tested on (bytes)", "zstd (bytes)",
            "stored (bytes)", "saved (bytes)", "has now", "saved now (bytes)",
        ),
        rows=tuple(rows),
        notes=tuple(notes),
    )  # fmt: skip


def _details_table(found: DictionaryAnswer, recorded: str) -> Table:
    """Return a row per batching and size, with the saved percentage per format and level."""
    formats = list(dict.fromkeys(each.format for each in found.details))
    cells: dict[tuple[str, str], dict[tuple[str, int], float]] = {}
    for each in found.details:
        batches = recorded if each.records_per_batch is None else count_words(each.records_per_batch, "record")
        at = each.format, each.level
        if each.current_saving is not None:
            cells.setdefault((batches, "as now"), {})[at] = 100 * each.current_saving
        size = f"{(each.dictionary_size_bytes or 0) >> 10} KiB"
        cells.setdefault((batches, size), {})[at] = 100 * each.saving_against_zstd
    has_current = any(each.current_saving is not None for each in found.details)
    keys = [(name, level) for name in formats for level in DETAIL_LEVELS]
    rows: list[tuple[Cell, ...]] = [(*key, *(row.get(at) for at in keys)) for key, row in cells.items()]
    return Table(
        name="dictionary-details",
        caption="% saved by topic dictionaries of what zstd takes in the same format, batches and level",
        columns=(
            Column(name="batches"),
            Column(name="dictionary"),
            *(Column(name=f"{name} {level}", digits=1) for name, level in keys),
        ),
        rows=tuple(rows),
        notes=(
            "A column is a format and a level. The stored dictionaries are charged.",
            "Topics where a dictionary does not pay keep zstd.",
            *(["as now: with the dictionary that each topic has."] if has_current else []),
            f"Raw dictionaries of at most {RAW_BYTES:,} bytes where fewer than {LEAST_TRAINING_BYTES:,} bytes train.",
        ),
    )
