"""The front page of a report: its answer in a few sentences, and some numbers as cards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT, PROPOSED, RESEARCH, SHIPPED
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.noise import TIMED_KINDS
from kfbench.report.data.arms import one_per_arm
from kfbench.report.data.axes import HEADLINE_BATCHES, setting, with_settings
from kfbench.report.data.capability import is_our_own, lacking
from kfbench.report.data.joined import DICTIONARY, RIVALS
from kfbench.report.data.named import BEST_KNOWN, NONE, Sizes, codec_words, under_words
from kfbench.report.data.results import Results, Slice, as_cell
from kfbench.report.data.shown_formats import MAIN, NEW, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words, codecs_of, lower_first, percent, record_words, span, upper_first
from kfbench.report.topics import second_opinion
from kfbench.report.topics.columnar import measured
from kfbench.report.topics.cpu import cpu_slice
from kfbench.report.topics.dictionaries import section as dictionaries
from kfbench.report.topics.dictionaries.sentences import headline_sentence
from kfbench.report.topics.dictionaries.tables import MEANS
from kfbench.report.topics.rivals import sentences as rivals
from kfbench.report.topics.rivals.tables import MEANS as RIVAL_MEANS
from kfbench.report.topics.workloads import size_table_name
from kfbench.tables import Column, Table, listed, number

CARD_BATCHES: Final = (1, 100)
MOST_CARDS: Final = 6
PAYS, LITTLE = 0.05, 0.01  # v3 "pays" above the first share of all bytes, and "changes little" below the second


class Card(NamedTuple):
    """A number of the front page. link: the page and anchor of its evidence."""

    number: str
    words: str
    link: str


@dataclass(frozen=True, kw_only=True)
class Front:
    """The words of the front page.

    Args:
        lead: what v3 saves, and its CPU time.
        worth: v3's CPU time in Java, and for whom v3 is worth it; empty if nothing can be said.
        cards: some numbers of the report.
        table: the overhead of the formats that the verdict shows; None if the run has no sizes over the batch size.
        counts: how many sizes and times the run has.
    """

    lead: str
    worth: str
    cards: tuple[Card, ...]
    table: Table | None
    counts: str


def front(run: Views) -> Front:
    shares, cpu = _saved_shares(run.results.over_batch_size), _cpu_ratios(run)
    worth = "" if shares is None else _worth_sentence(shares, cpu)
    return Front(
        lead=" ".join(filter(None, (_bytes_sentence(run, shares), _cpu_sentence(cpu)))),
        worth=" ".join(filter(None, (_java_sentence(cpu), worth, _smallest_sentence(run)))),
        cards=tuple(islice(_cards(run, shares, cpu), MOST_CARDS)),
        table=_overhead_table(run),
        counts=_counts(run.results),
    )


def _saved_shares(part: Slice | None) -> pd.Series | None:
    """Return the share of all bytes that v3 saves of v2, by batch size; None if the slice lacks one of the two."""
    sizes = None if part is None else part.pivot("size_per_record")
    return None if sizes is None or not {BASE_FORMAT, NEW} <= set(sizes) else 1 - sizes[NEW] / sizes[BASE_FORMAT]


def _bytes_sentence(run: Views, shares: pd.Series | None) -> str:
    part = run.results.over_batch_size
    if part is None:
        if run.dictionaries and run.dictionaries.is_own and run.dictionaries.groups:
            return headline_sentence(run.dictionaries)
        if run.rivals and run.rivals.is_own and run.rivals.arms:
            return " ".join((rivals.lead_sentence(run.rivals), rivals.losses_sentence(run.rivals)))
        alone = run.verdicts.research_formats
        return f"This run has no sizes over the batch size{f'; it measures {listed(alone)}' if alone else ''}."
    if shares is None:
        names = [*part.pivot("size_per_record").columns, *run.verdicts.research_formats]
        return f"This run compares {listed(list(names))}."
    first = shares.index[0]
    return (
        f"With {_values_words(part)} and no codec, {NEW} saves {percent(shares[first])} of {BASE_FORMAT}'s bytes at "
        f"{batch_words(first)}."
    )


def _values_words(part: Slice, payload: str = "") -> str:
    words = setting({"value_bytes": part.fixed["value_bytes"]})
    return words.replace(" ", f" {payload} ") if payload else words


class CpuRatios(NamedTuple):
    """v3's CPU time relative to v2, by operation.

    by: what the ratios of an operation differ in. most: a sentence about the largest one.
    """

    by: str
    of: dict[str, list[float]]
    most: str = ""

    @property
    def all(self) -> list[float]:
        return [ratio for ratios in self.of.values() for ratio in ratios]


def _cpu_ratios(run: Views) -> CpuRatios:
    """Return the ratios by class of workloads; by batch size of the grid if the run has no times of workloads."""
    classes = run.verdicts.classes
    of_classes = {
        operation: [time.mean.median for each in classes if (time := each.cpu.get((operation, NEW)))]
        for operation in OPERATIONS
    }
    if any(of_classes.values()):
        timed = [(time.mean.median, each.name) for each in classes for name in OPERATIONS
                 if (time := each.cpu.get((name, NEW)))]  # fmt: skip
        most = f" The most is for “{lower_first(max(timed)[1])}”."
        return CpuRatios("class of workload", {name: ratios for name, ratios in of_classes.items() if ratios}, most)
    part = None if run.results.cpu.empty else cpu_slice(run.results, "batch_size")
    if part is None:
        return CpuRatios("", {})
    rows = part.rows[part.rows["format"] == NEW]
    of_grid = {
        operation: [ratio.median for ratio in rows.loc[rows["operation"] == operation, "ratio"] if ratio is not None]
        for operation in OPERATIONS
    }
    return CpuRatios("batch size", {name: ratios for name, ratios in of_grid.items() if ratios})


def _cpu_sentence(cpu: CpuRatios) -> str:
    words = f"By {cpu.by}, {listed(list(cpu.of))} of {NEW} takes {span(cpu.all)} × {BASE_FORMAT}'s CPU time"
    return f"{words}.{cpu.most}" if cpu.of else ""


def _java_sentence(cpu: CpuRatios) -> str:
    found = second_opinion.load() if cpu.of else None
    return second_opinion.front_sentence(found.claimed) if found and found.claimed else ""


def _worth_sentence(shares: pd.Series, cpu: CpuRatios) -> str:
    """Say up to which batch size v3 saves 5 % or more, and from which on less than 1 %."""
    pays, little = shares.index[shares >= PAYS], shares.index[shares < LITTLE]
    most_cpu = max(cpu.all, default=1.0)
    sentences = []
    if len(pays):
        up_to = "up to " if pays[-1] > 1 else ""
        if_cpu = ", if bytes matter more than CPU" if most_cpu > 1 + PAYS else ""
        sentences.append(
            f"Of {BASE_FORMAT} and {NEW}, take {NEW} for batches of {up_to}{record_words(pays[-1])}{if_cpu}."
        )
    if len(little):
        sentences.append(f"With these records it saves less than {percent(LITTLE)} from {batch_words(little[0])} on.")
    return " ".join(sentences) or f"{NEW} saves between {percent(LITTLE)} and {percent(PAYS)} at every batch size."


def _smallest_sentence(run: Views) -> str:
    """Name the smallest format of the first class of workloads, without a codec and under zstd."""
    for each in run.verdicts.classes[:1]:
        won = {under_words(codec): found for codec in run.verdicts.codecs if (found := each.winners(codec))}
        names = {under: " or ".join(_with_owner(name) for name in found) + _lack(found) for under, found in won.items()}
        if names:
            first, *others = names
            later = (f"{upper_first(under)} it is {names[under]}." for under in others)
            sentence = f"For {lower_first(each.name)}, the smallest {first} is {names[first]}."
            return " ".join((sentence, *_smaller_sentences(each.under[run.verdicts.codecs[0]]), *later))
    return ""


def _smaller_sentences(sizes: Sizes) -> Iterator[str]:
    """Name the formats that are smaller still, because they lose something of the records."""
    for name in sizes.at_a_loss:
        yield f"{name} is smaller still, but loses {listed(sizes.lost[name])}."


def _with_owner(name: str) -> str:
    return f"{name} (our own)" if is_our_own(name) else name


def _lack(winners: Sequence[str]) -> str:
    """Name the first thing of v2 that a winner cannot carry."""
    missing = [field for name in winners for field in lacking(name, BASE_FORMAT)]
    return f", which has no {missing[0]}" if missing else ""


def _cards(run: Views, shares: pd.Series | None, cpu: CpuRatios) -> Iterator[Card]:
    part = run.results.over_batch_size
    against = f"{NEW} against {BASE_FORMAT}"
    plain = [
        Card(
            percent(-shares[size]),
            f"{against}: {batch_words(size)}, {_values_words(part)}, no codec",
            "bytes.html#t-ratio",
        )
        for size in CARD_BATCHES
        if part is not None and shares is not None and size in shares.index
    ]
    yield from plain[:1]
    codec = _best_codec(run)
    rows = run.results.grid_bytes
    under = run.results.along(rows[pd.Series(codecs_of(rows), rows.index) == codec], "batch_size")
    packed = _saved_shares(under)
    if under is not None and packed is not None and CARD_BATCHES[-1] in packed.index:
        values = _values_words(under, str(under.fixed["payload"]))
        words = f"{against}: {batch_words(CARD_BATCHES[-1])}, {values}, {codec}"
        yield Card(percent(-packed[CARD_BATCHES[-1]]), words, "compression.html#t-codecs-ratio")
    yield from _columnar_card(run.results)
    if headline := dictionaries.card(run):
        yield Card(*headline, f"{dictionaries.CHAPTER}.html#t-{MEANS}")
    if run.rivals and run.rivals.is_own and (of_rivals := rivals.card(run.rivals)):
        yield Card(*of_rivals, f"{RIVALS}.html#t-{RIVAL_MEANS}")
    if cpu.of:
        words = f"CPU time of {against}: {listed(list(cpu.of))}, by {cpu.by}"
        link = "bytes.html#verdict" if run.verdicts.classes else "cpu.html#cpu-batch-size"
        yield Card(f"{span(cpu.all)}×", words, link)
    yield from plain[1:]
    yield from _median_card(run.verdicts.workloads(codec), NEW, f"bytes.html#t-{size_table_name(codec)}")


def _columnar_card(results: Results) -> Iterator[Card]:
    if mean := measured.Columnar(results).headline:
        where = f"{codec_words(mean.codec)}, {measured.batches_words(mean.batch)}"
        words = f"{measured.NAME} (research) against {BASE_FORMAT}: {where}, mean of {len(mean.labels)} workloads"
        yield Card(percent(mean.ratio - 1), words, f"floor.html#t-{measured.NAME}-means")


def _overhead_table(run: Views) -> Table | None:
    part = run.results.over_batch_size
    if part is None:
        return None
    every = run.results.research
    is_here = (every["kind"] == "bytes") & (every["status"] == "ok") & every["cell_id"].isin(part.rows["cell_id"])
    rows = one_per_arm(every[is_here & (every["codec"] == NONE)])
    rows = rows.assign(overhead=rows["overhead_bytes"] / rows["records"])
    overhead = rows.pivot(index="batch_size", columns="format", values="overhead")
    batches = [size for size in HEADLINE_BATCHES if size in overhead.index]
    shown = {*(run.verdicts.shown or MAIN), *run.verdicts.research_formats}
    return Table(
        name="front",
        caption=with_settings(
            "Overhead: bytes per record beyond keys, values and headers, by records per batch", part.setting
        ),
        columns=(
            Column(name="format"),
            Column(name="what it is"),
            *(Column(name=number(size), digits=2) for size in batches),
        ),
        rows=tuple(
            (name, _origin(name), *(as_cell(overhead.at[size, name]) for size in batches))
            for name in in_order(overhead.columns)
            if name in shown
        ),
    )


def _origin(name: str) -> str:
    if name in SHIPPED:
        return "in Kafka"
    if name in PROPOSED:
        return "proposed, not in Kafka"
    return "our research format" if name in RESEARCH else "ours"


def _median_card(sizes: list[Sizes], name: str, link: str) -> Iterator[Card]:
    ratios = [ratio for each in sizes if (ratio := each.ratio(name))]
    if ratios:
        words = f"{name} against {BASE_FORMAT}: {sizes[0].with_codec}, median of {len(ratios)} workloads in own batches"
        yield Card(percent(median(ratios) - 1), words, link)


def _best_codec(run: Views) -> str:
    return next((codec for codec in run.verdicts.codecs if codec.startswith(BEST_KNOWN)), BEST_KNOWN)


def _counts(results: Results) -> str:
    """Count the numbers of each sort that the run has."""
    rows = results.every[results.every["status"] == "ok"]
    kinds, is_timed, arms = rows["kind"], rows["kind"].isin(TIMED_KINDS), rows["arm"]
    is_rival = kinds.str.startswith(RIVALS)
    counts = {
        "exact sizes": (kinds == "bytes").sum(),
        "sizes with dictionaries": (kinds.str.startswith(DICTIONARY) & ~is_timed).sum(),
        "sizes of rivals": (is_rival & ~is_timed).sum(),
        "CPU times": (is_timed & ((arms == "measure") | (is_rival & (arms != "aa")))).sum(),
    }
    return ", ".join(f"{number(int(count))} {words}" for words, count in counts.items() if count) or "No numbers"
