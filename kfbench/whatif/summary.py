"""The summary of a what-if: the log now, the best that Kafka can do today, and the gain of a new format.

A terminal and a page show these tables first. The row marked "best" has the fewest bytes of
all rows in its table that Kafka can store.
"""

from collections.abc import Iterable, Iterator
from math import hypot
from typing import Final, NamedTuple

from kfbench.codecs import ZstdDictionary
from kfbench.formats import BASE_FORMAT, FORMATS, PROPOSED, SHIPPED
from kfbench.present.table import Cell, Column, Mark, Table, plain_columns
from kfbench.text import count_words, percent, shortened
from kfbench.whatif.answer import AS_RECORDED, Level, LogSize, TopicAnswer, WhatIf, saving, smallest
from kfbench.whatif.rebatch import Batching

MOST_TOPICS: Final = 5  # rows; the others are one row together
MOST_BATCHINGS: Final = 3
MOST_FORMATS: Final = 5
MOST_UNTOLD: Final = 0.1  # the share of bytes without a rate above which a note says so
MOST_CHOICES: Final = 9  # rows of the table of today; larger ones stand in `sizes` and `rebatched`
NAME_WIDTH: Final = 26  # characters of a topic's name
VARIES: Final = "varies"  # each topic has its own codec
NO_CHANGE: Final = 0.0005  # a smaller share of bytes is no change


class V2Choice(NamedTuple):
    """A way to store the records in v2.

    Args:
        is_other: False: this is how the log is stored now.
        batches: a description of the batches.
        cpu_ms_per_mb: CPU time in ms per 10**6 bytes; None: it was not measured.
        dollars: US$ per month; None: they follow from size_bytes.
        error_bytes: see `LogSize`.
    """

    size_bytes: int
    is_other: bool
    codec: str
    batches: str
    cpu_ms_per_mb: float | None
    dollars: float | None = None
    error_bytes: int | None = 0


def summary_tables(answer: WhatIf) -> Iterator[Table]:
    """Yield the tables of the summary. The table of topics comes first, if there are several topics."""
    if len(answer.by_topic) > 1:
        yield topics_table(answer)
    yield today_table(answer)
    if len(answer.breakdown) > 1:
        yield new_formats_table(answer)


def log_line(answer: WhatIf) -> str:
    """Return one line about the log as it is now."""
    topics, empty = len(answer.by_topic), len(answer.topics) - len(answer.by_topic)
    name = shortened(answer.topics[0], NAME_WIDTH) if len(answer.topics) == 1 else count_words(topics, "topic")
    name += f" ({empty:,} without records)" if empty else ""
    batches = sum(source.batches for source in answer.sources)
    kinds = dict.fromkeys(kind for source in answer.sources for kind in source.kinds)
    per_batch = f"{answer.records / max(batches, 1):,.1f} per batch"
    size = f"{count_words(answer.base_bytes, 'byte')} {answer.base_words}"
    words = [size, count_words(answer.records, "record"), per_batch]
    return f"{name}: {', '.join([*words, *kinds] if len(kinds) == 1 else words)}"


def topics_table(answer: WhatIf) -> Table:
    """Return a table with a row per topic, at most MOST_TOPICS rows, the largest topic first."""
    shown = answer.by_topic if len(answer.by_topic) <= MOST_TOPICS else answer.by_topic[: MOST_TOPICS - 1]
    rows: list[tuple[Cell, ...]] = [
        (
            shortened(each.topic, NAME_WIDTH),
            each.base_bytes,
            each.records / max(each.batches, 1),
            _topic_change(each),
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
            *plain_columns("topic", "bytes now"),
            Column(name="per batch", digits=1),
            *plain_columns("change", "with"),
        ),
        rows=tuple(rows),
    )


def all_topics_table(answer: WhatIf) -> Table:
    """Return a table with a row for every topic."""
    rows = [
        (each.topic, each.base_bytes, each.records, each.batches, each.least_bytes, _topic_change(each),
         _best_words(each))
        for each in answer.by_topic
    ]  # fmt: skip
    return Table(
        name="all-topics",
        caption="Every topic, and the best that Kafka can do today for it",
        columns=plain_columns("topic", "bytes now", "records", "batches", "bytes then", "change", "with"),
        rows=tuple(rows),
    )


def _topic_change(topic: TopicAnswer) -> str:
    words = change_words(max(topic.saving, 0.0) if topic.saving is not None else None)
    return f"about {words}" if topic.best.is_estimate and (topic.saving or 0.0) >= NO_CHANGE else words


def _best_words(topic: TopicAnswer) -> str:
    if topic.best.size_bytes is None:
        return "not sampled: --all"
    if topic.best.size_bytes >= topic.base_bytes:
        return "as now"
    if topic.best.batching is None:
        return topic.best.codec
    return f"{topic.best.codec}, {topic.best.batching.short_words}"


def today_table(answer: WhatIf) -> Table:
    """Return a table of the log's size in v2 by codec, level and batches, the smallest first.

    It has a row for the log as it is stored now.
    """
    rows: list[tuple[Cell, ...]] = []
    choices, best = sorted(_choices(answer)), best_choice(answer)
    shown = [*choices[:MOST_CHOICES], *(each for each in choices[MOST_CHOICES:] if not each.is_other)]
    for choice in shown:
        marks = ["best", *_doubt(best, choices)] * (choice == best) + ["now"] * (not choice.is_other)
        marks += ["not in Kafka"] * (not _is_in_kafka(choice))
        rows.append(
            (
                choice.codec,
                choice.batches,
                Mark(", ".join(marks)),
                choice.size_bytes,
                change_words(saving(choice.size_bytes, answer.base_bytes)) if choice.is_other else "",
                dollars_of(answer, choice),
                choice.cpu_ms_per_mb,
            )
        )
    untold_bytes = 0 if answer.rate is None else answer.rate.untold_bytes
    untold = f"US$/month: {untold_bytes:,} of {answer.base_bytes:,} bytes have no rate; the rest stands for all."
    return Table(
        name="today",
        caption=f"What Kafka can do today ({BASE_FORMAT})",
        columns=(
            *plain_columns("codec", "batches", "mark", "bytes", "change", "US$/month"),
            Column(name="CPU ms/MB", digits=1),
        ),
        rows=tuple(rows),
        notes=(untold,) if untold_bytes > MOST_UNTOLD * answer.base_bytes else (),
    )


def best_choice(answer: WhatIf) -> V2Choice:
    """Return the choice with the fewest bytes that Kafka can store. It may be the log now."""
    return min(filter(_is_in_kafka, _choices(answer)))


def _doubt(best: V2Choice, choices: Iterable[V2Choice]) -> list[str]:
    """Return a word if the best size is an estimate: another choice is within the error, or not."""
    if best.error_bytes == 0:
        return []
    others = [each for each in choices if each != best and _is_in_kafka(each)]
    errors = [hypot(each.error_bytes or 0, best.error_bytes or 0) for each in others]
    is_near = any(each.size_bytes - best.size_bytes <= error for each, error in zip(others, errors, strict=True))
    return ["undecided" if is_near else "estimated"]


def _is_in_kafka(choice: V2Choice) -> bool:
    return choice.codec != ZstdDictionary.name


def dollars_of(answer: WhatIf, choice: V2Choice | None = None) -> float | None:
    """Return the US$ per month of a choice, or of the log now. None: the rate is unknown."""
    month = answer.month(None if choice is None else choice.size_bytes)
    if month is None:
        return None
    return month.total if choice is None or choice.dollars is None else choice.dollars


def _choices(answer: WhatIf) -> Iterator[V2Choice]:
    """Yield the log now, v2 in its batches, its best level, the best in other batches, and the best of each topic."""
    codecs_now = answer.codecs_now
    if codecs_now:
        codec = next(iter(codecs_now)) if len(codecs_now) == 1 else "mixed"
        yield V2Choice(answer.base_bytes, False, codec, recorded_words(answer), None)
    cpu_of = {each.codec: each.cpu_ms_per_mb for each in answer.levels if each.is_default}
    known = [arm for arm in answer.arms if arm.format == BASE_FORMAT and arm.size_bytes is not None]
    for arm in known:
        if codecs_now != {arm.codec} or arm.size_bytes != answer.base_bytes:  # else it is the row of the log now
            yield _choice_of(answer, arm, cpu_of.get(arm.codec))
    groups: dict[Batching | None, list[LogSize]] = {}
    for arm in answer.rebatched:
        is_other = bool(codecs_now) or arm.batching != answer.assumed
        if arm.format == BASE_FORMAT and arm.size_bytes is not None and is_other:
            groups.setdefault(arm.batching, []).append(arm)
    for arm in sorted(map(smallest, groups.values()), key=lambda arm: arm.size_bytes or 0)[:MOST_BATCHINGS]:
        yield _choice_of(answer, arm)
    levels = [level for level in answer.levels if level.size_bytes is not None]
    if levels:
        best = min(levels, key=lambda level: (level.size_bytes, level.level))  # of equals the lowest takes least CPU
        if (best.size_bytes or 0) < min(arm.size_bytes or 0 for arm in known):
            yield _choice_of(answer, best, best.cpu_ms_per_mb)
    sizes = [each.least_bytes for each in answer.by_topic]
    if len(sizes) > 1 and None not in sizes:
        months = [answer.month_of_topic(each, each.least_bytes or 0) for each in answer.by_topic]
        # If a topic has no rate, the total's rate stands for all topics, as in the other rows.
        dollars = sum(month.total for month in months if month) if all(months) else None
        errors = [each.best.error_bytes for each in answer.by_topic]
        error = None if None in errors else round(hypot(*(each or 0 for each in errors)))
        yield V2Choice(sum(size or 0 for size in sizes), True, VARIES, "best per topic", None, dollars, error)


def _choice_of(answer: WhatIf, of: LogSize | Level, cpu_ms_per_mb: float | None = None) -> V2Choice:
    batches = batches_words(answer, of) if isinstance(of, LogSize) else recorded_words(answer)
    return V2Choice(of.size_bytes or 0, True, codec_words(of), batches, cpu_ms_per_mb, error_bytes=of.error_bytes)


def batches_words(answer: WhatIf, arm: LogSize) -> str:
    return recorded_words(answer) if arm.batching is None else arm.batching.short_words


def recorded_words(answer: WhatIf) -> str:
    if answer.assumed is None:
        return AS_RECORDED
    has_log = any(source.kinds for source in answer.sources)
    return f"recorded, or {answer.assumed.short_words}" if has_log else answer.assumed.short_words


def codec_words(of: LogSize | Level) -> str:
    return of.codec if of.level is None else f"{of.codec} {of.level}"


def new_format_arms(answer: WhatIf) -> list[LogSize]:
    """Return the sizes of other formats with the codec of `WhatIf.best`, in its batches where known, smallest first."""
    best = answer.best
    chosen: list[LogSize] = []
    for name in answer.breakdown:
        arms = [
            arm
            for arm in (*answer.arms, *answer.rebatched)
            if (arm.format, arm.codec) == (name, best.codec) and arm.size_bytes is not None
        ]
        if name != BASE_FORMAT:
            in_same = [arm for arm in arms if arm.batching == best.batching]
            chosen += in_same or [arm for arm in arms if arm.batching is None]
    return sorted(chosen, key=lambda arm: arm.size_bytes or 0)


def new_formats_table(answer: WhatIf) -> Table:
    """Return what other formats would save of v2 (see `new_format_arms`)."""
    chosen = new_format_arms(answer)
    status = {**dict.fromkeys(PROPOSED, "proposed"), **dict.fromkeys(SHIPPED, "Kafka's")}
    rows = [
        (
            arm.format,
            status.get(arm.format) or f"{FORMATS.package(arm.format)}'s",
            codec_words(arm),
            batches_words(answer, arm),
            arm.size_bytes,
            change_words(answer.saving_against_v2(arm)),
        )
        for arm in chosen
    ]
    hidden = len(rows) - MOST_FORMATS
    losing = [arm.format for arm in chosen[:MOST_FORMATS] if answer.losses[arm.format]]
    return Table(
        name="new-formats",
        caption=f"What a new format would add: change from {BASE_FORMAT} with the same codec and batches",
        columns=(Column(name="format", swatch=True), *plain_columns("status", "codec", "batches", "bytes", "change")),
        rows=tuple(rows[:MOST_FORMATS]),
        notes=(
            *([f"Some lose a part of the records (--table losses): {', '.join(losing)}."] if losing else []),
            *([f"{hidden} more: --table savings-of-v2"] if hidden > 0 else []),
        ),
    )


def less_or_more(share: float) -> str:
    """Return a saved share in words: "12.5 % less", or "12.5 % more" for a share below 0."""
    return f"{percent(abs(share))} {'less' if share >= 0 else 'more'}"


def change_words(saving: float | None) -> str:
    """Return a saved share in words."""
    if saving is None:
        return "–"
    if abs(saving) < NO_CHANGE:
        return "no change"
    return f"{100 * saving:.1f} % less" if saving > 0 else f"costs {-100 * saving:.1f} % more"
