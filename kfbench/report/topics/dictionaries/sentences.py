"""Sentences about topic dictionaries. A sentence is empty if its numbers are missing."""

from collections.abc import Sequence
from statistics import median
from typing import Final

from kfbench.dictionary_sizes import SIZE_BYTES
from kfbench.formats import BASE_FORMAT
from kfbench.report.data.dictionaries import (
    CHARGED_BYTES,
    COLUMNAR,
    GROUPS,
    KINDS,
    LEVEL,
    SHARE,
    TRAINED,
    Dictionaries,
    Gain,
    Group,
    TimeKey,
    at_words,
    geometric_mean_of,
    group_of,
    kib,
    mean_time,
    part_ratio,
)
from kfbench.report.data.words import span, upper_first
from kfbench.tables import number
from kfbench.text import counted

DICTIONARY_OPERATIONS: Final = ("compress", "decompress")
BASE: Final = f"{BASE_FORMAT} + zstd {LEVEL}"
LITTLE: Final = 0.01  # a dictionary that saves less than this share does not pay
SMALL_BATCH: Final = 10  # records per batch of the headline
CHARGED: Final = f"{CHARGED_BYTES // 1_000_000} MB"
HOW: Final = (
    "A dictionary is trained on the first half of a topic. Only the second half is measured.",
    f"Each number is relative to the bytes of {BASE} on the same batches.",
    f"A dictionary is charged: its stored bytes are spread over {CHARGED} of the topic in {BASE}.",
)
FLATTERING: Final = (
    "The named workloads flatter a dictionary. They come from generators, and generators do not drift. "
    "Read their numbers as an upper bound."
)
NO_PAYLOADS: Final = (
    f"A {BASE_FORMAT} broker decompresses each produced batch to check its records. "
    f"A broker of {COLUMNAR} need not open payloads. So many live dictionaries do not slow it down."
)


def lead(found: Dictionaries) -> Group:
    """Return the group of the headline: real data, if there is any."""
    return found.groups[0]


def headline_sentence(found: Dictionaries) -> str:
    """Give the bytes of columnar with a dictionary, at each batch size of the lead group."""
    group, kind = lead(found), KINDS[-1]
    means = {batch: found.mean(kind, group, batch) for batch in _by_interest(found.batches(group))}
    sentences = [
        f"{upper_first(at_words(batch))} it takes {mean:.2f} ×."
        if i
        else f"{upper_first(at_words(batch))}, {kind.label} takes {mean:.2f} × the bytes of {BASE}."
        for i, (batch, mean) in enumerate(means.items())
        if mean
    ]
    topics = len(found.topics(group, next(iter(means))))
    return " ".join([*sentences, f"These are geometric means of {topics} topics of {group.words}."])


def headline_batch(found: Dictionaries) -> int:
    return _by_interest(found.batches(lead(found)))[0]


def _by_interest(batches: Sequence[int]) -> list[int]:
    """Put the batch size of the headline first."""
    return sorted(batches, key=lambda batch: (batch != SMALL_BATCH, batch))


def base_format_sentence(found: Dictionaries) -> str:
    """Give the bytes of v2 with a dictionary, in the lead group."""
    group, kind = lead(found), KINDS[0]
    means = [(batch, found.mean(kind, group, batch)) for batch in found.batches(group)]
    return " ".join(
        f"{upper_first(at_words(batch))}, {kind.label} takes {mean:.2f} ×." for batch, mean in means if mean
    )


def losses_sentence(found: Dictionaries) -> str:
    """Count the sets in which a dictionary does not pay, and name the worst one."""
    gains = found.gains
    lost = [gain for gain in gains if gain.ratio > 1]
    little = [gain for gain in gains if 1 - LITTLE < gain.ratio <= 1]
    worst = max(gains, key=lambda gain: gain.ratio)
    return (
        f"A dictionary takes more bytes in {len(lost)} of {len(gains)} sets. "
        f"It saves less than {100 * LITTLE:.0f} % in {len(little)} more. "
        f"The worst set takes {worst.ratio:.3f} ×: {set_words(worst)}."
    )


def set_words(gain: Gain) -> str:
    each = gain.set
    return f"{each.format} on {each.workload} {at_words(each.batch)}"


def pays_sentence(found: Dictionaries) -> str:
    """Give the log size from which a dictionary pays, in the lead group."""
    group = lead(found)
    sentences = []
    for batch in found.batches(group):
        sizes = [gain.pays_from_bytes for gain in found.gains if gain.set.group is group and gain.set.batch == batch]
        paying = [size for size in sizes if size is not None]
        if paying:
            kb = number(round(median(paying) / 1000))
            sentences.append(f"{upper_first(at_words(batch))}, the median dictionary pays from a log of {kb} KB on.")
    return " ".join([*sentences, f"Log sizes are those of {group.words} in {BASE}."]) if sentences else ""


def size_sentence(found: Dictionaries) -> str:
    """Name the size of dictionary with the fewest bytes, in the lead group."""
    group, kind = lead(found), KINDS[-1]
    sizes = sorted({key.size_bytes for key in found.sizes if key.dictionary == kind.dictionary})
    best: dict[int, str] = {}
    for batch in found.batches(group):
        means = {size: mean for size in sizes if (mean := found.mean(kind, group, batch, size))}
        if len(means) > 1:
            best[batch] = kib(min(means, key=lambda size: means[size]))
    if not best:
        return ""
    where = {at_words(batch): size for batch, size in best.items()}
    if len(set(best.values())) == 1:
        where = {"at each batch size": next(iter(best.values()))}
    sentences = [f"{upper_first(at)}, a dictionary of {size} takes the fewest bytes." for at, size in where.items()]
    return " ".join([*sentences, f"This is {kind.label} on {group.words}."])


def level_sentence(found: Dictionaries) -> str:
    """Compare the highest level with the usual one."""
    group, kind = lead(found), KINDS[-1]
    highest = max((key.level for key in found.sizes if key.workload.startswith(group.prefix)), default=LEVEL)
    sentences = []
    for batch in found.batches(group) if highest > LEVEL else ():
        usual, high = found.mean(kind, group, batch), found.mean(kind, group, batch, level=highest)
        if usual and high:
            sentences.append(
                f"Level {highest} takes {high / usual:.2f} × the bytes of level {LEVEL} {at_words(batch)}."
            )
    return " ".join(sentences)


def training_sentence(found: Dictionaries) -> str:
    times = [size.training_s_per_mb for size in found.sizes.values() if size.training_s_per_mb is not None]
    usual = TRAINED, SIZE_BYTES, LEVEL
    memory = [
        size.memory_bytes for key, size in found.sizes.items() if (key.dictionary, key.size_bytes, key.level) == usual
    ]
    sentences = []
    if times:
        sentences.append(f"Training takes {median(times):.3f} s of CPU per MB of samples, in the median.")
    if memory:
        sentences.append(
            f"A dictionary of {kib(SIZE_BYTES)} takes {median(memory) / 1e6:.2f} MB of memory at level {LEVEL}."
        )
        sentences.append("That is the digested dictionary with its context, per topic.")
    return " ".join(sentences)


def cpu_sentence(found: Dictionaries) -> str:
    """Give the codec's CPU time with a dictionary, in the first group that has times."""
    group = found.time_groups[0]
    sentences: list[str] = []
    for operation in DICTIONARY_OPERATIONS:
        for batch in sorted({key.batch for key in found.times}):
            if mean := mean_time(found.times, group, TimeKey("", batch, BASE_FORMAT, operation)):
                does = f"to {operation} with a dictionary takes" if not sentences else f"to {operation} takes"
                sentences.append(f"{upper_first(at_words(batch))}, {does} {mean:.2f} × plain zstd's CPU.")
    sentences.append(f"These are geometric means on {group.words} in {BASE_FORMAT}, level {LEVEL}.")
    return " ".join([*sentences, again_sentence(found)])


def again_sentence(found: Dictionaries) -> str:
    """Give the noise: plain zstd against itself."""
    if (noise := found.noise) is None:
        return ""
    return f"The middle 95 % of plain zstd against itself is {span(noise)} × (A/A)."


def live_sentence(found: Dictionaries) -> str:
    """Give the number of live dictionaries from which v2's codec takes more CPU with them than without."""
    counts = sorted({key.live for key in found.live_times})
    sentences = []
    for operation in DICTIONARY_OPERATIONS:
        for batch in sorted({key.batch for key in found.live_times}):
            at = TimeKey("", batch, BASE_FORMAT, operation)
            means = {live: mean_time(found.live_times, None, at._replace(live=live)) for live in counts}
            loss = next((live for live, mean in means.items() if mean and mean > 1), None)
            where = f"{upper_first(at_words(batch))}, to {operation} takes"
            if loss is None:
                sentences.append(f"{where} less than plain zstd up to {counts[-1]} live dictionaries.")
            else:
                noun = "dictionary" if loss == 1 else "dictionaries"
                sentences.append(f"{where} more than plain zstd from {loss} live {noun} on ({means[loss]:.2f} ×).")
    return " ".join(sentences)


def age_sentence(found: Dictionaries) -> str:
    """Compare the last part behind the split with the first one, for the dictionary that saw the least."""
    keys = [key for key in found.ages if key.dictionary == TRAINED and key.format == COLUMNAR]
    groups = [group for group in GROUPS if any(group_of(key.workload) is group for key in keys)]
    if not groups:
        return ""
    keys = [key for key in keys if group_of(key.workload) is groups[0]]
    share, last = min(key.share for key in keys), max(key.part for key in keys)
    first = [key for key in keys if (key.part, key.share) == (1, share)]
    drift = geometric_mean_of(
        _quotient(part_ratio(found.ages, key._replace(part=last)), part_ratio(found.ages, key)) for key in first
    )
    if drift is None:
        return ""
    return (
        f"A dictionary of the first {100 * share:.0f} % of a topic was measured on {last} later parts. "
        f"In the last part, its ratio to plain zstd is {drift:.2f} × that of the first part. "
        f"This is the geometric mean of {counted(len(first), 'topic')} of {groups[0].words}. {change_sentence(found)}"
    ).rstrip()


def change_sentence(found: Dictionaries) -> str:
    """Give the saving that is left after the records of a topic changed, in the middle of the topic."""
    keys = [key for key in found.changes if key.dictionary == TRAINED and key.part == 1 and key.share == SHARE]
    ratios = [ratio for key in keys if (ratio := part_ratio(found.changes, key))]
    if not ratios:
        return ""
    return (
        f"After the records of a topic changed, the old dictionary left {min(ratios):.2f} to {max(ratios):.2f} × the "
        "bytes of plain zstd."
    )


def _quotient(last: float | None, first: float | None) -> float | None:
    return last / first if last and first else None
