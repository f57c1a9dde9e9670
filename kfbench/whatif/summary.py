"""The summary of a what-if: the log now, what Kafka can do today, and what a new format would add.

A terminal and a page show these tables first. The row marked "best" has the fewest bytes of all rows in its table.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kfbench.formats import BASE_FORMAT, PROPOSED, SHIPPED
from kfbench.tables import Cell, Column, Table, plain_columns
from kfbench.text import shortened
from kfbench.whatif.answer import Arm, TopicAnswer, WhatIf, smallest
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.source import saving

MOST_TOPICS: Final = 6  # rows; the others are one row together
MOST_BATCHINGS: Final = 3
NAME_WIDTH: Final = 26  # characters of a topic's name
AS_RECORDED: Final = "as recorded"


class Choice(NamedTuple):
    """A way to store the records in v2. cpu_ms_per_mb: None where it was not measured."""

    size_bytes: int
    is_other: bool
    codec: str
    batches: str
    cpu_ms_per_mb: float | None


def summary_tables(answer: WhatIf) -> Iterator[Table]:
    """Yield the tables of the summary. The topics come first, where there are several."""
    if len(answer.by_topic) > 1:
        yield topics_table(answer)
    yield today_table(answer)
    if len(answer.breakdown) > 1:
        yield new_formats_table(answer)


def log_line(answer: WhatIf) -> str:
    """Return one line about the log as it is now."""
    topics = answer.topics
    name = shortened(topics[0], NAME_WIDTH) if len(topics) == 1 else f"{len(topics):,} topics"
    batches = sum(source.batches for source in answer.sources)
    kinds = dict.fromkeys(kind for source in answer.sources for kind in source.kinds)
    per_batch = f"{answer.records / max(batches, 1):,.1f} per batch"
    words = [f"{answer.base_bytes:,} bytes {answer.base_words}", f"{answer.records:,} records", per_batch]
    words += [", ".join(kinds)] if 0 < len(kinds) <= 2 else []
    return f"{name}: {', '.join(words)}"


def topics_table(answer: WhatIf) -> Table:
    """Return a row per topic; MOST_TOPICS at most, the largest first."""
    shown = answer.by_topic if len(answer.by_topic) <= MOST_TOPICS else answer.by_topic[: MOST_TOPICS - 1]
    rows: list[tuple[Cell, ...]] = [
        (
            shortened(each.topic, NAME_WIDTH),
            each.base_bytes,
            each.records / max(each.batches, 1),
            change_words(each.saving),
            _best_words(each),
        )
        for each in shown
    ]
    rest = answer.by_topic[len(shown) :]
    if rest:
        size_bytes = sum(each.base_bytes for each in rest)
        per_batch = sum(each.records for each in rest) / max(sum(each.batches for each in rest), 1)
        rows.append((f"{len(rest):,} others", size_bytes, per_batch, None, "--table all-topics"))
    return Table(
        name="topics",
        caption="Topics, and the best that Kafka can do today for each",
        columns=(
            Column(name="topic"),
            Column(name="bytes now"),
            Column(name="per batch", digits=1),
            Column(name="change"),
            Column(name="with"),
        ),
        rows=tuple(rows),
    )


def all_topics_table(answer: WhatIf) -> Table:
    """Return a row for every topic."""
    rows = [
        (each.topic, each.base_bytes, each.records, each.batches, each.best.size_bytes, change_words(each.saving),
         _best_words(each))
        for each in answer.by_topic
    ]  # fmt: skip
    return Table(
        name="all-topics",
        caption="Every topic, and the best that Kafka can do today for it",
        columns=plain_columns("topic", "bytes now", "records", "batches", "bytes then", "change", "with"),
        rows=tuple(rows),
    )


def _best_words(topic: TopicAnswer) -> str:
    if topic.best.size_bytes is None:
        return "not sampled: --all"
    if topic.best.batching is None:
        return topic.best.codec
    return f"{topic.best.codec}, {topic.best.batching.short_words}"


def today_table(answer: WhatIf) -> Table:
    """Return what v2 takes by codec, level and batches, smallest first, and what the log takes now."""
    rows: list[tuple[Cell, ...]] = []
    for i, choice in enumerate(sorted(_choices(answer))):
        month = answer.month(choice.size_bytes)
        marks = ["best"] * (i == 0) + ["now"] * (not choice.is_other)
        rows.append(
            (
                ", ".join(marks),
                choice.codec,
                choice.batches,
                choice.size_bytes,
                change_words(saving(choice.size_bytes, answer.base_bytes)) if choice.is_other else "",
                None if month is None else month.total,
                choice.cpu_ms_per_mb,
            )
        )
    return Table(
        name="today",
        caption=f"What Kafka can do today ({BASE_FORMAT})",
        columns=(
            *plain_columns("", "codec", "batches", "bytes", "change", "US$/month"),
            Column(name="CPU ms/MB", digits=1),
        ),
        rows=tuple(rows),
    )


def _choices(answer: WhatIf) -> Iterator[Choice]:
    """Yield the log now, v2 in the same batches, its best level, and the best codec in each of the other batches."""
    codecs_now = {kind.rpartition(" ")[2] for source in answer.sources for kind in source.kinds}
    if answer.assumed is None:
        codec = next(iter(codecs_now)) if len(codecs_now) == 1 else "mixed"
        yield Choice(answer.base_bytes, False, codec, AS_RECORDED, None)
    of_default = {each.codec: each.cpu_ms_per_mb for each in answer.levels if each.is_default}
    known = [arm for arm in answer.arms if arm.format == BASE_FORMAT and arm.size_bytes is not None]
    others = [arm for arm in answer.rebatched if arm.format == BASE_FORMAT and arm.size_bytes is not None]
    groups: dict[Batching | None, list[Arm]] = {}
    for arm in others:
        if arm.batching != answer.assumed:
            groups.setdefault(arm.batching, []).append(arm)
    best_of_batching = sorted(map(smallest, groups.values()), key=lambda arm: arm.size_bytes or 0)
    now = answer.base_bytes if answer.assumed is None else None
    for arm in (*known, *best_of_batching[:MOST_BATCHINGS]):
        if arm.size_bytes == now and arm.batching is None and arm.codec in codecs_now:
            continue  # the row of the log now
        codec, batches = _codec_words(arm.codec, arm.level), batches_words(answer, arm)
        yield Choice(arm.size_bytes or 0, True, codec, batches, of_default.get(arm.codec))
    levels = [
        Choice(level.size_bytes, True, _codec_words(level.codec, level.level), _recorded(answer), level.cpu_ms_per_mb)
        for level in answer.levels
        if level.size_bytes is not None
    ]
    if levels and min(levels).size_bytes < min(arm.size_bytes or 0 for arm in known):
        yield min(levels)


def batches_words(answer: WhatIf, arm: Arm) -> str:
    return _recorded(answer) if arm.batching is None else arm.batching.short_words


def _recorded(answer: WhatIf) -> str:
    return AS_RECORDED if answer.assumed is None else answer.assumed.short_words


def _codec_words(codec: str, level: int | None) -> str:
    return codec if level is None else f"{codec} {level}"


def new_formats_table(answer: WhatIf) -> Table:
    """Return what each other format would save of v2 with the codec of `WhatIf.best`, in its batches where known."""
    best = answer.best
    rows: list[tuple[Cell, ...]] = []
    for name in answer.breakdown:
        arms = [arm for arm in (*answer.arms, *answer.rebatched) if arm.format == name and arm.size_bytes is not None]
        same = [arm for arm in arms if (arm.codec, arm.batching) == (best.codec, best.batching)]
        arms = same or [arm for arm in arms if arm.batching is None]
        if name == BASE_FORMAT or not arms:
            continue
        arm = smallest(arms)
        status = "Kafka's" if name in SHIPPED else "proposed" if name in PROPOSED else "kfbench's"
        change = change_words(answer.saving_against_v2(arm))
        codec = _codec_words(arm.codec, arm.level)
        rows.append((name, status, codec, batches_words(answer, arm), arm.size_bytes, change))
    losing = [name for name, *_ in rows if answer.losses[str(name)]]
    return Table(
        name="new-formats",
        caption=f"What a new format would add: change from {BASE_FORMAT} with the same codec and batches",
        columns=(Column(name="format", swatch=True), *plain_columns("status", "codec", "batches", "bytes", "change")),
        rows=tuple(sorted(rows, key=_size_of)),
        notes=tuple(f"{name} cannot carry {', '.join(answer.losses[str(name)])}." for name in losing),
    )


def _size_of(row: tuple[Cell, ...]) -> int:
    size_bytes = row[4]
    assert isinstance(size_bytes, int)
    return size_bytes


def change_words(saving: float | None) -> str:
    """Return a saved share in words."""
    if saving is None:
        return "–"
    if abs(saving) < 0.0005:
        return "no change"
    return f"{100 * saving:.1f} % less" if saving > 0 else f"costs {-100 * saving:.1f} % more"
