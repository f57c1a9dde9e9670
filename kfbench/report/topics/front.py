"""The front page of a report: its answer in a few sentences, and up to six numbers as cards."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT, PROPOSED, RESEARCH, SHIPPED
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import one_per_arm
from kfbench.report.data.axes import HEADLINE_BATCHES
from kfbench.report.data.named import BEST_KNOWN, NONE, Sizes
from kfbench.report.data.results import Results, as_cell
from kfbench.report.data.shown_formats import MAIN, NEW, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words, percent, span
from kfbench.report.topics.columnar import measured
from kfbench.report.topics.cpu import cpu_slice
from kfbench.tables import Column, Table, listed, number

CARD_BATCHES: Final = (1, 100)
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
        lead: the verdict in two sentences.
        worth: for whom v3 is worth it; empty if the run cannot say.
        cards: at most six numbers.
        table: the overhead of six formats; None if the run has no sizes over the batch size.
        counts: how many sizes and times the run has.
    """

    lead: str
    worth: str
    cards: tuple[Card, ...]
    table: Table | None
    counts: str


def front(run: Views) -> Front:
    shares = _saved_shares(run.results)
    return Front(
        lead=" ".join(filter(None, (_bytes_sentence(run, shares), _cpu_sentence(run.results)))),
        worth="" if shares is None else _worth_sentence(shares),
        cards=tuple(_cards(run, shares)),
        table=_overhead_table(run),
        counts=_counts(run.results),
    )


def _saved_shares(results: Results) -> pd.Series | None:
    """Return the share of all bytes that v3 saves of v2, by batch size; None if the run lacks one of the two."""
    part = results.over_batch_size
    sizes = None if part is None else part.pivot("size_per_record")
    return None if sizes is None or not {BASE_FORMAT, NEW} <= set(sizes) else 1 - sizes[NEW] / sizes[BASE_FORMAT]


def _bytes_sentence(run: Views, shares: pd.Series | None) -> str:
    part = run.results.over_batch_size
    if part is None:
        alone = run.verdicts.research_formats
        return f"This run has no sizes over the batch size{f'; it measures {listed(alone)}' if alone else ''}."
    if shares is None:
        names = [*part.pivot("size_per_record").columns, *run.verdicts.research_formats]
        return f"This run compares {listed(list(names))}."
    first, last = shares.index[0], shares.index[-1]
    return (
        f"{NEW}'s compact header saves {percent(shares[first])} of {BASE_FORMAT}'s bytes at {batch_words(first)}, and "
        f"{percent(shares[last])} at {batch_words(last)}."
    )


def _cpu_ratios(results: Results) -> dict[str, list[float]]:
    """Return v3's CPU time relative to v2 at each batch size, by operation. Operations without times are left out."""
    part = None if results.cpu.empty else cpu_slice(results, "batch_size")
    if part is None:
        return {}
    rows = part.rows[part.rows["format"] == NEW]
    found = {
        operation: [ratio.median for ratio in rows.loc[rows["operation"] == operation, "ratio"] if ratio is not None]
        for operation in OPERATIONS
    }
    return {operation: ratios for operation, ratios in found.items() if ratios}


def _cpu_sentence(results: Results) -> str:
    parts = [f"{span(ratios)}× {BASE_FORMAT}'s to {operation}" for operation, ratios in _cpu_ratios(results).items()]
    return f"By batch size, its CPU time is {listed(parts)}." if parts else ""


def _worth_sentence(shares: pd.Series) -> str:
    """Say up to which batch size v3 saves 5 % or more, and from which on less than 1 %."""
    pays, little = shares.index[shares >= PAYS], shares.index[shares < LITTLE]
    sentences = [
        f"{NEW} is worth it up to {batch_words(pays[-1])}: it saves {percent(PAYS)} or more." if len(pays) else ""
    ]
    if len(little):
        sentences.append(f"From {batch_words(little[0])} on it saves less than {percent(LITTLE)}.")
    return " ".join(filter(None, sentences)) or f"{NEW} saves between {percent(LITTLE)} and {percent(PAYS)} everywhere."


def _cards(run: Views, shares: pd.Series | None) -> Iterator[Card]:
    if shares is not None:
        for size in CARD_BATCHES:
            if size in shares.index:
                yield Card(percent(-shares[size]), f"{NEW}'s bytes at {batch_words(size)}", "bytes.html#batch-size")
    if ratios := _cpu_ratios(run.results):
        words = f"{NEW}'s CPU time against {BASE_FORMAT}, {listed(list(ratios))}, by batch size"
        yield Card(f"{span([each for found in ratios.values() for each in found])}×", words, "cpu.html#cpu-batch-size")
    yield from _mean_card(run.verdicts.workloads(_best_codec(run)), NEW, "compression.html#compressed")
    columnar = measured.Columnar(run.results)
    batch = columnar.pictured_batch
    sizes = columnar.under(_best_codec(run), batch)
    if sizes and (mean := measured.mean_ratio(sizes, measured.NAME)):
        where = f"{_best_codec(run)}, {measured.batches_words(batch)}, {len(sizes)} workloads"
        yield Card(percent(mean - 1), f"{measured.NAME} (research) under {where}", f"floor.html#{measured.NAME}")


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
        caption=f"Overhead: bytes per record beyond keys, values and headers, by records per batch ({part.setting})",
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


def _mean_card(sizes: list[Sizes], name: str, link: str) -> Iterator[Card]:
    ratios = [ratio for each in sizes if (ratio := each.ratio(name))]
    if ratios:
        mean = pd.Series(ratios).median()
        words = f"{name} under {sizes[0].with_codec}, median of {len(ratios)} workloads in their own batches"
        yield Card(percent(mean - 1), words, link)


def _best_codec(run: Views) -> str:
    return next((codec for codec in run.verdicts.codecs if codec.startswith(BEST_KNOWN)), BEST_KNOWN)


def _counts(results: Results) -> str:
    rows = results.every[results.every["status"] == "ok"]
    timed = rows["kind"].isin(["cpu", "broker", "prefix"]) & (rows["arm"] == "measure")
    sizes = int((rows["kind"] == "bytes").sum())
    return f"{number(sizes)} exact sizes, {number(int(timed.sum()))} CPU times"
