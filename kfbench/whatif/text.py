"""The answer of `kfbench what-if` as tables for people."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kfbench.formats import BASE_FORMAT
from kfbench.migration.bills import GB, PRICES_ASSUMED
from kfbench.records import PAYLOAD
from kfbench.sources import Skipped
from kfbench.text import counted, percent, text_table
from kfbench.whatif.answer import Arm, WhatIf
from kfbench.whatif.month import Stream
from kfbench.whatif.rebatch import AHEAD_MS, Batching
from kfbench.whatif.record_times import moment
from kfbench.whatif.source import Source, saving

OF_RECORDS: Final = ("timestamps", "milliseconds", "headers")  # losses counted in records' items; others are of batches
MOST_FILES: Final = 20  # one line each; more are summed by topic
MOST_LINES: Final = 20  # of damage
UNITS: Final = ((86_400, "days"), (3_600, "hours"))
MOST_NAMES: Final = 10  # of topics and files in a line


def render_text(found: WhatIf) -> str:
    """What was read, the fewest bytes of what there is and of what is proposed, the bytes in each format and codec,
    what is saved and lost, where the bytes go, other batches, from where on a format pays, and what a month costs."""
    return "\n\n".join("\n".join(block) for block in _blocks(found))


def _blocks(found: WhatIf) -> Iterator[list[str]]:
    yield _read(found)
    base = found.base_bytes
    held = f"the {base:,} bytes {found.base_words}"
    yield _headline(found, held)
    yield _sizes(found)
    yield [f"saved of {held}", *_matrix(found, lambda size, _: percent(saving(size, base)))]
    of_base = {arm.codec: arm.size_bytes for arm in found.arms if arm.format == BASE_FORMAT}
    against_base = _matrix(found, lambda size, codec: _against(size, of_base[codec]))
    if any(found.leaves_out(name) for name in found.breakdown):
        against_base.append("* leaves out a part of the payload (see below): not the same data")
    yield [f"saved of what {BASE_FORMAT} takes with the same codec", *against_base]
    yield _lost(found)
    yield _parts(found)
    if len(found.breakdown) > 1:
        yield _saved_by_field(found)
    if found.rebatched:
        yield _rebatched(found, held)
    if found.break_even:
        yield _break_even(found)
    yield _month(found)


def _read(found: WhatIf) -> list[str]:
    sources = found.sources
    lines = _by_file(sources) if len(sources) <= MOST_FILES else _by_topic(sources)
    damage = list(_damage(sources))
    lines += damage[:MOST_LINES]
    if len(damage) > MOST_LINES:
        lines.append(f"and {counted(len(damage) - MOST_LINES, 'line')} more of damage (--json has them)")
    lines += _unread(found.skipped)
    if found.lost_bytes:
        share = percent(found.lost_bytes / found.data_bytes, 2)
        lines.append(f"left out: {share} of {found.data_bytes:,} bytes; the result is about the rest")
    reasons: dict[str, list[int]] = {}
    for each in found.skipped:
        if not each.is_data:
            reasons.setdefault(each.reason, []).append(each.size_bytes)
    if reasons:
        words = [f"{why}: {len(sizes):,} ({counted(sum(sizes), 'byte')})" for why, sizes in sorted(reasons.items())]
        lines.append(f"not looked at: {'; '.join(words)}")
    if any("other replica" in each.reason for each in found.skipped):
        lines.append(
            "segments of other replicas are not read: each partition once, and --replication counts its copies"
        )
    if len(found.topics) > 1:
        what = "topics" if all(source.topic for source in sources) else "topics, files or folders"
        together = f"{len(found.topics)} {what} together: {_names(found.topics)}"
        lines.append(f"{together}; give one's folders alone for its own answer")
    if any({"v0 none", "v1 none"} & source.kinds.keys() for source in sources):
        lines.append("plain v0 and v1 messages stand alone: each is a batch of one, as an upgrade writes them")
    if found.assumed is not None:
        lines.append(f"no batches in {_names(found.assumed_of)}; assumed: {found.assumed.words}")
    ahead = sum(source.ahead for source in sources)
    if ahead:
        what = f"{counted(ahead, 'record')} over {AHEAD_MS // 60_000} minutes ahead of most of those that follow"
        lines.append(f"{what}: their times move no clock in other batches")
    if found.columns is not None:
        lines.append(f"rows as records: {found.columns.words}")
    return lines


def _unread(skipped: Iterable[Skipped]) -> Iterator[str]:
    """A line each, or one for many of one reason."""
    paths: dict[str, list[str]] = {}
    for each in skipped:
        if each.is_data:
            paths.setdefault(each.reason, []).append(each.path)
    for reason, of_reason in paths.items():
        if len(of_reason) > MOST_NAMES:
            yield f"{len(of_reason):,} not read: {reason}: {_names(of_reason)}"
        else:
            yield from (f"{path}: not read: {reason}" for path in of_reason)


def _names(names: Iterable[str]) -> str:
    first = list(names)
    more = f" and {len(first) - MOST_NAMES} more" if len(first) > MOST_NAMES else ""
    return f"{', '.join(first[:MOST_NAMES])}{more}"


def _by_file(sources: Iterable[Source]) -> list[str]:
    rows = [["file", "bytes now", "batches", "records", "format and codec now"]]
    for source in sources:
        kinds = [f"{kind} ({batches:,})" if len(source.kinds) > 1 else kind for kind, batches in source.kinds.items()]
        counts = [f"{number:,}" for number in (source.sound_bytes, source.batches, source.records)]
        rows.append([source.path, *counts, ", ".join(kinds) or ("-" if source.records else "nothing readable")])
    return text_table(rows, right={1, 2, 3})


def _by_topic(sources: Iterable[Source]) -> list[str]:
    topics: dict[str, list[Source]] = {}
    for source in sources:
        topics.setdefault(source.stream, []).append(source)
    rows = [["topic", "partitions", "files", "bytes now", "batches", "records", "format and codec now"]]
    for topic, parts in topics.items():
        kinds: dict[str, int] = {}
        for part in parts:
            for kind, batches in part.kinds.items():
                kinds[kind] = kinds.get(kind, 0) + batches
        numbers = [len({part.partition for part in parts}), len(parts)]
        numbers += [sum(getattr(part, name) for part in parts) for name in ("sound_bytes", "batches", "records")]
        words = ", ".join(f"{kind} ({batches:,})" for kind, batches in sorted(kinds.items()))
        rows.append([topic, *(f"{number:,}" for number in numbers), words or "nothing readable"])
    return text_table(rows, right=range(1, 6))


def _damage(sources: Iterable[Source]) -> Iterator[str]:
    for source in sources:
        for each in source.damage:
            what = f"left out {counted(each.size_bytes, 'byte')} from {source.unit} {each.position:,}"
            yield f"{source.path}: {what}: {each.field}: {each.promise}"
        if source.damaged_places > len(source.damage):
            yield f"{source.path}: {source.damaged_places - len(source.damage):,} more places like these"
        if source.trailing_bytes:
            what = f"left out an incomplete batch of {counted(source.trailing_bytes, 'byte')} at the end"
            yield f"{source.path}: {what} (cut off, or its length is damaged: what follows is not searched)"
        if source.unreadable:
            yield f"{source.path}: not read to its end: {source.unreadable}"


HEADLINES: Final = {"today": "can be had today", "proposed": "proposed, in no Kafka", "own": "this project's own"}


def _headline(found: WhatIf, held: str) -> list[str]:
    rows = [["fewest bytes", "batches", "format", "codec", "bytes", f"saved of {held}"]]
    for name, arms in found.headline.items():
        for arm in arms:
            batches = "as recorded" if found.assumed is None else found.assumed.words
            batches = batches if arm.batching is None else arm.batching.words
            size = arm.size_bytes or 0
            share = percent(saving(size, found.base_bytes))
            rows.append([HEADLINES[name], batches, arm.format, arm.codec, f"{size:,}", share])
    lines = text_table(rows, right={4, 5})
    if any(arm.format not in found.recoded for arm in found.rebatched):
        lines.append(f"in other batches codecs were tried with {', '.join(found.recoded)}; --format names others")
    return lines


def _sizes(found: WhatIf) -> list[str]:
    levels = dict.fromkeys(f"{arm.codec} {arm.level}" for arm in found.arms if arm.level is not None)
    batches = "batches as recorded" if found.assumed is None else found.assumed.words
    lines = [f"bytes, {batches}" + (f"; levels: {', '.join(levels)}" if levels else "")]
    lines += _matrix(found, lambda size, _: f"{size:,}")
    if found.illegal:
        lines.append("-: " + "; ".join(f"{name} has no {codec}" for name, codec in found.illegal))
    sample = found.sample
    if sample is not None and sample.plain_bytes < sample.of_bytes:
        share = percent(sample.plain_bytes / max(sample.of_bytes, 1), 2)
        drawn = f"{sample.plain_bytes:,} of {sample.of_bytes:,} bytes of plain {BASE_FORMAT} ({share})"
        stretches = f"{counted(sample.stretches, 'stretch')} of batches by seed {sample.seed}"
        lines.append(f"codecs: estimated from {drawn}, {stretches}; without a codec: of everything (--all: both)")
        if any(arm.size_bytes is None for arm in found.arms):
            lines.append("-: no stretch was drawn that tells (--all: everything)")
        lines += error_words((arm.size_bytes, arm.error_bytes) for arm in found.arms)
    return lines


def error_words(estimates: Iterable[tuple[int | None, int | None]]) -> list[str]:
    """What is known of the errors of (bytes, their standard error)."""
    told = [(size, error) for size, error in estimates if size]
    worst = max((error / size for size, error in told if error), default=None)
    words = [] if worst is None else [f"standard error of an estimate: {percent(worst, 2)} at most"]
    if any(error is None for _, error in told):
        words.append("one stretch: its error is unknown")
    return words


def _against(size: int, base: int | None) -> str:
    return "-" if base is None else percent(saving(size, base))


def _matrix(found: WhatIf, cell: Callable[[int, str], str]) -> list[str]:
    codecs = list(dict.fromkeys(arm.codec for arm in found.arms))
    rows = [["format", *codecs]]
    for name in found.breakdown:
        sizes = [(found.size(name, codec), codec) for codec in codecs]
        rows.append([marked(found, name), *("-" if size is None else cell(size, codec) for size, codec in sizes)])
    return text_table(rows, right=range(1, len(codecs) + 1))


def marked(found: WhatIf, name: str) -> str:
    """A format's name, with a mark where it carries less payload than there is."""
    return name + (" *" if found.leaves_out(name) else "")


def _lost(found: WhatIf) -> list[str]:
    lines = [["format", "what it cannot carry"]]
    for name, losses in found.losses.items():
        words = [f"{number:,} {what}" for what, number in losses.items() if what in OF_RECORDS]
        parts = [f"{what} {number:,}" for what, number in losses.items() if what not in OF_RECORDS]
        words += [f"in batches: {', '.join(parts)}"] if parts else []
        lines.append([name, "; ".join(words) or "nothing is lost"])
    return text_table(lines)


def _fields(found: WhatIf) -> list[str]:
    """Those that take a byte in any format, the payload last."""
    every = dict.fromkeys(part for name in (BASE_FORMAT, *found.breakdown) for part in found.breakdown[name])
    taken = [part for part in every if any(parts.get(part) for parts in found.breakdown.values())]
    return sorted(taken, key=PAYLOAD.__contains__)


def _parts(found: WhatIf) -> list[str]:
    names = list(found.breakdown)
    rows = [["where the bytes go, without a codec", *names]]
    for part in _fields(found):
        sizes = [found.breakdown[name].get(part) for name in names]
        rows.append([part, *(f"{size:,}" if size else "-" for size in sizes)])
    totals = {name: sum(parts.values()) for name, parts in found.breakdown.items()}
    overhead = {name: totals[name] - found.payload_of(name) for name in names}
    rows.append(["all", *(f"{totals[name]:,}" for name in names)])
    rows.append(["overhead: all but the payload", *(f"{overhead[name]:,}" for name in names)])
    rows.append(["overhead a record", *(f"{overhead[name] / max(found.records, 1):.2f}" for name in names)])
    return text_table(rows, right=range(1, len(names) + 1))


def _saved_by_field(found: WhatIf) -> list[str]:
    rows = [["format", "bytes", f"saved of {BASE_FORMAT} without a codec, by field (below 0: takes more)"]]
    base = found.breakdown[BASE_FORMAT]
    for name, parts in found.breakdown.items():
        if name == BASE_FORMAT:
            continue
        saved: dict[str, int] = {}
        for part in _fields(found):
            # A format without a batch header saves it as a whole.
            shown = part if part in parts or part not in base else part.partition(".")[0]
            saved[shown] = saved.get(shown, 0) + base.get(part, 0) - parts.get(part, 0)
        words = [f"{part} {number:,}" for part, number in saved.items() if number]
        rows.append([marked(found, name), f"{sum(saved.values()):,}", ", ".join(words)])
    return text_table(rows, right={1})


def _rebatched(found: WhatIf, held: str) -> list[str]:
    """Formats that were put through the codecs; --json has the plain sizes of all others."""
    codecs = list(dict.fromkeys(arm.codec for arm in found.rebatched))
    arms: dict[tuple[Batching, str], dict[str, Arm]] = {}
    for arm in found.rebatched:
        assert arm.batching is not None
        arms.setdefault((arm.batching, arm.format), {})[arm.codec] = arm
    shown = {key: each for key, each in arms.items() if len(each) > 1 or len(codecs) == 1}
    rows = [["linger ms", "batch.size", "records a batch", "format", *codecs]]
    for (batching, name), each in shown.items():
        batches = max(next(iter(each.values())).batches or 0, 1)
        sizes = [arm.size_bytes if arm else None for arm in map(each.get, codecs)]
        cells = ["-" if size is None else f"{size:,} ({percent(saving(size, found.base_bytes))})" for size in sizes]
        how = [f"{batching.linger_ms:g}", f"{batching.batch_size_bytes:,}", f"{found.sent_records / batches:.1f}"]
        rows.append([*how, marked(found, name), *cells])
    errors = error_words((arm.size_bytes, arm.error_bytes) for each in shown.values() for arm in each.values())
    return [
        f"in other batches: bytes, and what is saved of {held}",
        *text_table(rows, right={0, 1, 2, *range(4, 4 + len(codecs))}),
        *errors,
        "batch.size counts uncompressed bytes: a producer that compresses fits more into a batch",
        "each producer id is a producer, and records without one come from one producer",
    ]


def _break_even(found: WhatIf) -> list[str]:
    rows: dict[str, dict[str, str]] = {}
    for each in found.break_even:
        rows.setdefault(each.format, {})[each.other] = each.words
    others = list(dict.fromkeys(other for row in rows.values() for other in row))
    table = [["fewer bytes from so many records a batch on", *(f"than {other}" for other in others)]]
    table += [[name, *(row.get(other, "-") for other in others)] for name, row in rows.items()]
    lines = [
        *text_table(table, right=range(1, len(others) + 1)),
        f"beside the payload, no codec, all batches alike, up to {max(found.overhead):,}; 11-12: not at 10, at 12",
    ]
    if found.uniform_records < found.sent_records:
        lines.append(f"of {found.uniform_records:,} of the {found.sent_records:,} records, drawn by the same seed")
    return lines


def _month(found: WhatIf) -> list[str]:
    now = found.month()
    if now is None or found.rate is None:
        why = "no topic's timestamps span a minute"
        return [f"a month: unknown rate ({why}); --rate-mb-s: the megabytes a second {found.base_words}"]
    rate, traffic, prices = found.rate, found.traffic, found.prices
    told = "by the records' timestamps" if rate.told_by == "timestamps" else "as given"
    batches = "batches as recorded" if found.assumed is None else found.assumed.words
    kept = f"kept {traffic.replication} times for {traffic.retention_days:g} days, read {traffic.fan_out:g} times"
    asked = f"{prices.storage_gb_month:g} $ a GB and month, {prices.network_gb:g} $ a GB in or out of a broker"
    held = [
        f"{now.stored_bytes / GB:,.3f} GB on disk ({now.storage:,.2f} $)",
        f"{now.network_bytes / GB:,.3f} GB in and out ({now.network:,.2f} $)",
    ]
    lines = [
        f"dollars saved a month, {batches}: {rate.bytes_a_day / GB:,.3f} GB a day {found.base_words}, {told}, {kept}",
        *_matrix(found, lambda size, _: _dollars(now.total - _total(found, size))),
        f"{found.base_words}: {', '.join(held)} a month; below 0: costs more",
        *map(stream_words, rate.streams[:MOST_NAMES]),
        f"prices, assumed ({PRICES_ASSUMED}) unless given: {asked}",
    ]
    if len(rate.streams) > MOST_NAMES:
        lines.append(f"and {len(rate.streams) - MOST_NAMES} more (--json has them)")
    if rate.untold_bytes:
        lines.append(f"{rate.untold_bytes:,} bytes are of topics that span less than a minute: not in the rate")
    for name, arms in found.headline.items():
        for arm in arms:
            if arm.batching is not None and arm.size_bytes is not None:
                saved = _dollars(now.total - _total(found, arm.size_bytes))
                how = f"{arm.batching.words}, {arm.format} and {arm.codec}"
                lines.append(f"{HEADLINES[name]}: with {how}: {saved} $ saved")
    return lines


def stream_words(stream: Stream) -> str:
    """What the rate of a stream is worked out from."""
    words = f"{stream.name}: {stream.bytes_a_day / GB:,.3f} GB a day; times {_span(stream.first_ms, stream.last_ms)}"
    if (stream.first_ms, stream.last_ms) != (stream.bulk_first_ms, stream.bulk_last_ms):
        words += f"; counted, without the ends: {_span(stream.bulk_first_ms, stream.bulk_last_ms)}"
    if stream.strange:
        words += f"; {counted(stream.strange, 'record')} with a time that no clock shows"
    return words


def _span(first_ms: int, last_ms: int) -> str:
    seconds = (last_ms - first_ms) / 1000
    length = next((f"{seconds / unit:,.1f} {name}" for unit, name in UNITS if seconds >= unit), f"{seconds:.1f} s")
    return f"{moment(first_ms)} to {moment(last_ms)} ({length})"


def _total(found: WhatIf, size_bytes: int) -> float:
    of_month = found.month(size_bytes)
    assert of_month is not None
    return of_month.total


def _dollars(amount: float) -> str:
    return f"{amount:z,.2f}"
