"""The sentences of a what-if: limits of the answer, parts that were not read, and the rate behind a month's cost."""

from collections.abc import Iterable, Iterator
from typing import Final

from kfbench.formats import BASE_FORMAT
from kfbench.money import GB, PRICES_ASSUMED
from kfbench.present.table import listed
from kfbench.text import count_words, percent
from kfbench.whatif.answer import Level, LogSize, WhatIf
from kfbench.whatif.rate import TopicRate
from kfbench.whatif.rebatch import AHEAD_MS
from kfbench.whatif.record_times import SYMBOLS, moment
from kfbench.whatif.sums import StoredSource

MOST_DAMAGE_LINES: Final = 20
MOST_NAMES: Final = 10  # the largest number of topics or files that a line names
SPAN_UNITS_S: Final = (("days", 86_400), ("hours", 3_600))


def answer_notes(answer: WhatIf) -> Iterator[str]:
    """Yield sentences about the subject of the answer, its assumptions and its exactness."""
    if answer.lost_bytes:
        share = percent(answer.lost_bytes / answer.data_bytes, 2)
        yield f"Left out: {share} of {answer.data_bytes:,} bytes, damaged or unreadable; the result is about the rest."
    if answer.assumed is not None:
        yield f"No batches in {_names(answer.assumed_of)}; assumed: {answer.assumed.words}."
    yield from _time_notes(answer)
    if answer.columns is not None:
        yield f"Rows as records: {answer.columns.words}."
    yield from _sample_notes(answer)
    if answer.without_headers:
        yield f"Not the same data: {listed(answer.without_headers)} cannot carry headers."
    if any(arm.format not in answer.compressed_formats for arm in answer.rebatched):
        yield f"In other batches codecs were tried with {', '.join(answer.compressed_formats)}; --format names others."
    if answer.rate is None:
        why = "times of unknown unit" if answer.unit_doubts else "no topic's timestamps span a minute"
        yield f"A month: unknown rate ({why}); --rate-mb-s: the megabytes per second {answer.base_words}."


def _time_notes(answer: WhatIf) -> Iterator[str]:
    """Yield the unit of timestamps by topic if it is not ms, or was given, or is unknown."""
    topics: dict[str, list[str]] = {}
    for each in answer.by_topic:
        if each.timestamp_unit is not None and (each.timestamp_unit != "ms" or each.timestamp_unit_from == "option"):
            unit, is_given = SYMBOLS[each.timestamp_unit], each.timestamp_unit_from == "option"
            words = f"read as {unit}, as given" if is_given else f"look like {unit}, read as {unit}"
            topics.setdefault(words, []).append(each.topic)
    for words, names in topics.items():
        yield f"Times {words}{'' if len(names) == len(answer.by_topic) else f': {_names(names)}'}."
    if doubts := answer.unit_doubts:
        yield f"No other batches and no rate by times, which have an unknown unit: {_names(doubts)}."
    if seconds := [each.topic for each in answer.by_topic if each.timestamp_unit == "s" and answer.assumed is None]:
        yield f"Times in seconds tell no batches by a linger.ms below 1,000: {_names(seconds)}."
    batchings = {answer.assumed, *(arm.batching for arm in answer.rebatched)}
    coarse = [each.topic for each in answer.by_topic if each.has_whole_seconds]
    if coarse and any(each is not None and each.linger_ms < 1000 for each in batchings):
        yield f"Times are whole seconds, so a linger.ms below 1,000 joins all of a second: {_names(coarse)}."


def _sample_notes(answer: WhatIf) -> Iterator[str]:
    """Yield the size of the sample, and the largest standard error, relative to its size."""
    sample = answer.sample
    if sample is None or not sample.is_partial:
        return
    share = percent(sample.plain_bytes / sample.of_bytes, 2)
    compressed = f"{sample.plain_bytes:,} of {sample.of_bytes:,} bytes of plain {BASE_FORMAT} ({share})"
    stretches = f"{count_words(sample.stretches, 'stretch')} of batches"
    if answer.is_fingerprint:
        yield f"Codecs: estimated from {compressed}, {stretches}. Without a codec: of everything."
    else:
        seed = f"by seed {sample.seed}"
        yield f"Codecs: estimated from {compressed}, {stretches} {seed}. Without a codec: of everything (--all: both)."
        if any(arm.size_bytes is None for arm in answer.arms):
            yield "No stretch was drawn: there is no estimate (--all: everything)."
    arms: tuple[LogSize | Level, ...] = (*answer.arms, *answer.rebatched, *answer.levels)
    known = [(arm.size_bytes, arm.error_bytes) for arm in arms if arm.size_bytes]
    worst = max((error_bytes / size_bytes for size_bytes, error_bytes in known if error_bytes), default=None)
    if worst is not None:
        yield f"Standard error of an estimate: {percent(worst, 2)} at most."
    if any(error_bytes is None for _, error_bytes in known):
        yield "Where one stretch was drawn, the error is unknown."


def source_notes(answer: WhatIf) -> Iterator[str]:
    """Yield damage by place, skipped files with the reason, and remarks on the interpretation of records."""
    damage = [line for source in answer.sources for line in _damage_lines(source)]
    yield from damage[:MOST_DAMAGE_LINES]
    if len(damage) > MOST_DAMAGE_LINES:
        yield f"and {count_words(len(damage) - MOST_DAMAGE_LINES, 'line')} more of damage (--json has them)"
    yield from _skipped_notes(answer)
    if any({"v0 none", "v1 none"} & source.kinds.keys() for source in answer.sources):
        yield "Plain v0 and v1 messages stand alone: each is a batch of one, as an upgrade writes them."
    if ahead := sum(source.ahead for source in answer.sources):
        records = f"{count_words(ahead, 'record')} over {AHEAD_MS // 60_000} minutes ahead of most of those that follow"
        yield f"{records}: their times move no clock in other batches."


def _damage_lines(source: StoredSource) -> Iterator[str]:
    for each in source.damage:
        left_out = f"left out {count_words(each.size_bytes, 'byte')} from " if each.size_bytes else ""
        yield f"{source.path}: {left_out}{source.unit} {each.position:,}: {each.field}: {each.promise}"
    if (others := source.damaged_places - len(source.damage)) and source.damage:
        yield f"{source.path}: {count_words(others, 'more place')} like that"
    elif others:
        left_out = f"left out {count_words(source.damaged_bytes, 'byte')} in {count_words(others, 'damaged place')}"
        yield f"{source.path}: {left_out}"
    if source.trailing_bytes:
        left_out = f"left out an incomplete batch of {count_words(source.trailing_bytes, 'byte')} at the end"
        yield f"{source.path}: {left_out} (cut off, or its length is damaged: what follows is not searched)"
    if source.unreadable:
        yield f"{source.path}: not read to its end: {source.unreadable}"


def _skipped_notes(answer: WhatIf) -> Iterator[str]:
    """Yield a line per source that was not read, then one line about files that are no data.

    If more than MOST_NAMES sources have the same reason, they share a line.
    """
    paths: dict[str, list[str]] = {}
    sizes: dict[str, list[int]] = {}
    for each in answer.skipped:
        if each.is_data:
            paths.setdefault(each.reason, []).append(each.path)
        else:
            sizes.setdefault(each.reason, []).append(each.size_bytes)
    for reason, of_reason in paths.items():
        if len(of_reason) > MOST_NAMES:
            yield f"{len(of_reason):,} not read: {reason}: {_names(of_reason)}"
        else:
            yield from (f"{path}: not read: {reason}" for path in of_reason)
    if sizes:
        words = [f"{why}: {len(each):,} ({count_words(sum(each), 'byte')})" for why, each in sorted(sizes.items())]
        yield f"Not looked at: {'; '.join(words)}."
    if any("other replica" in each.reason for each in answer.skipped):
        yield "Segments of other replicas are not read: each partition once, and --replication counts its copies."


def _names(names: Iterable[str]) -> str:
    every = list(names)
    rest = f" and {len(every) - MOST_NAMES} more" if len(every) > MOST_NAMES else ""
    return f"{', '.join(every[:MOST_NAMES])}{rest}"


def rate_notes(answer: WhatIf) -> Iterator[str]:
    """Yield the rate from which a month's cost is computed, and the prices."""
    rate = answer.rate
    if rate is None:
        return
    traffic, prices = answer.traffic, answer.prices
    origin = "by the records' timestamps" if rate.told_by == "timestamps" else "as given"
    kept = f"kept {count_words(traffic.replication, 'time')} for {count_words(traffic.retention_days, 'day')}"
    copies = f"{kept}, read {count_words(traffic.fan_out, 'time')}"
    yield f"{rate.bytes_a_day / GB:,.3f} GB per day {answer.base_words}, {origin}, {copies}."
    price = f"{prices.storage_gb_month:g} $ per GB and month, {prices.network_gb:g} $ per GB in or out of a broker"
    yield f"Prices, assumed ({PRICES_ASSUMED}) unless given: {price}."


def month_notes(answer: WhatIf) -> Iterator[str]:
    """Yield the rate, the prices, the bytes and dollars of a month now, and the time span of each topic."""
    rate, now = answer.rate, answer.month()
    if rate is None or now is None:
        return
    yield from rate_notes(answer)
    disk = f"{now.stored_bytes / GB:,.3f} GB on disk ({now.storage:,.2f} $)"
    network = f"{now.network_bytes / GB:,.3f} GB in and out ({now.network:,.2f} $)"
    yield f"Per month {answer.base_words}: {disk}, {network}."
    for stream in rate.streams[:MOST_NAMES]:
        yield stream_note(stream, rate.is_dated)
    if len(rate.streams) > MOST_NAMES:
        yield f"and {len(rate.streams) - MOST_NAMES} more (--json has them)"
    if rate.untold_bytes:
        yield f"{count_words(rate.untold_bytes, 'byte')} of topics that span less than a minute: not in the rate."


def stream_note(stream: TopicRate, is_dated: bool) -> str:
    """Return the rate of a topic, with the times from which it is computed. is_dated: see `Rate`."""
    span = _span if is_dated else _length
    words = f"{stream.name}: {stream.bytes_a_day / GB:,.3f} GB per day; times {span(stream.first_ms, stream.last_ms)}"
    if (stream.first_ms, stream.last_ms) != (stream.bulk_first_ms, stream.bulk_last_ms):
        words += f"; counted, without the ends: {span(stream.bulk_first_ms, stream.bulk_last_ms)}"
    if stream.strange:
        words += f"; {count_words(stream.strange, 'record')} with a time that no clock shows"
    return words


def _span(first_ms: int, last_ms: int) -> str:
    return f"{moment(first_ms)} to {moment(last_ms)} ({_length(first_ms, last_ms)})"


def _length(first_ms: int, last_ms: int) -> str:
    seconds = (last_ms - first_ms) / 1000
    units = (f"{seconds / unit_s:,.1f} {name}" for name, unit_s in SPAN_UNITS_S if seconds >= unit_s)
    return next(units, f"{seconds:.1f} s")
