"""The front page of a report: a verdict in a few sentences, its range over the workloads, and some numbers as cards.

The sentences are written by hand. Each number comes from the rows of exactly the settings that its sentence names. A
sentence whose rows the run lacks is left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.axes import GRID, REFERENCE
from kfbench.report.data.joined import DICTIONARY, RIVALS
from kfbench.report.data.named import NONE, codec_words
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import NEW
from kfbench.report.data.views import Views
from kfbench.report.data.words import codecs_of, more_or_less, percent, span
from kfbench.report.topics.columnar import measured
from kfbench.report.topics.dictionaries import section as dictionaries
from kfbench.report.topics.dictionaries.sentences import headline_sentence
from kfbench.report.topics.dictionaries.tables import MEANS
from kfbench.report.topics.rivals import sentences as rivals
from kfbench.report.topics.rivals.tables import MEANS as RIVAL_MEANS
from kfbench.tables import listed, number
from kfbench.text import counted, number_range

MOST_CARDS: Final = 6
HEADLINE: Final = ("Fuller batches and zstd save {both} of this record. A new format saves {new}.",)
VERDICT: Final = (
    "16-byte key, 100 bytes of generated text (random bytes: {random}).",
    "KIP-931's v3 (not in Kafka) saves {alone} alone in its batch.",
    "Among 100: {among}, under zstd {packed}.",
    "Alone, encoding takes {encode} CPU, decoding {decode}.",
)
RANGES: Final = (
    "The {both} are from one record per batch without a codec to 100 under zstd 3.",
    "Over {both_count} workloads it is {both_range}, {both_median} in the median.",
    "Over {plain_count} workloads in their own batches, v3 saves {plain_range}, {plain_median} in the median.",
    "Under zstd 3 it saves {packed_range}, {packed_median} in the median.",
    "v3 saves one byte per record and {few} per batch (above 50 records, {many}).",
)

FEW, SMALL, MANY, ZSTD, TEXT = 1, 50, 100, "zstd 3", REFERENCE["payload"]
Size = tuple[str, int, str, str]  # format, records per batch, codec, payload; the other axes have the grid's defaults
LONE, FULL = (BASE_FORMAT, FEW, NONE, TEXT), (BASE_FORMAT, MANY, ZSTD, TEXT)
SAVINGS: Final[Mapping[str, tuple[Size, Size, int]]] = {
    "both": (FULL, LONE, 0),
    "new": ((NEW, FEW, NONE, TEXT), LONE, 0),
    "random": ((BASE_FORMAT, MANY, ZSTD, "random"), (BASE_FORMAT, FEW, NONE, "random"), 0),
    "alone": ((NEW, FEW, NONE, TEXT), LONE, 1),
    "among": ((NEW, MANY, NONE, TEXT), (BASE_FORMAT, MANY, NONE, TEXT), 1),
    "packed": ((NEW, MANY, ZSTD, TEXT), FULL, 1),
}
"""Name of a saving -> the new size, the size that it is a share of, and the decimals of the percentage."""


class Card(NamedTuple):
    """A number of the front page. link: the page and anchor of its evidence."""

    number: str
    words: str
    link: str


@dataclass(frozen=True, kw_only=True)
class Front:
    """The words of the front page.

    Args:
        headline: what fuller batches, a codec and a new format save; empty if the run lacks one of these sizes.
        lead: the verdict after the headline, or what the run has instead.
        ranges: the least, the greatest and the median saving over the workloads; empty without workloads.
        cards: some numbers of the report.
        counts: how many sizes and times the run has.
    """

    headline: str
    lead: str
    ranges: str
    cards: tuple[Card, ...]
    counts: str


def front(run: Views) -> Front:
    savings = dict(_savings(run.results))
    numbers = {name: percent(saving, SAVINGS[name][2]) for name, saving in savings.items()}
    numbers |= dict(_times(run.results))
    return Front(
        headline=_filled(HEADLINE, numbers),
        lead=_filled(VERDICT, numbers) or _otherwise(run),
        ranges=_filled(RANGES, numbers | dict(_ranges(run)) | dict(_per_batch(run.results))),
        cards=tuple(islice(_cards(run, savings), MOST_CARDS)),
        counts=_counts(run.results),
    )


def _filled(sentences: Sequence[str], numbers: Mapping[str, str]) -> str:
    """Fill the numbers into the sentences. A sentence without one of its numbers is left out."""
    filled = []
    for sentence in sentences:
        with suppress(KeyError):
            filled.append(sentence.format_map(numbers))
    return " ".join(filled)


def _savings(results: Results) -> Iterator[tuple[str, float]]:
    """Yield the name of each saving of which the run has both sizes, and the saved share."""
    rows = _at_reference(results, results.grid_bytes, free=("batch_size", "payload"))
    keys = zip(rows["format"], rows["batch_size"].astype(int), codecs_of(rows), rows["payload"], strict=True)
    sizes: dict[Size, float] = dict(zip(keys, rows["size_per_record"], strict=True))
    for name, (new, old, _) in SAVINGS.items():
        if new in sizes and old in sizes:
            yield name, 1 - sizes[new] / sizes[old]


def _times(results: Results) -> Iterator[tuple[str, str]]:
    """Yield the operations, and how much more or less CPU time than v2 they take of v3, one record per batch."""
    if results.cpu.empty:
        return
    rows = _at_reference(results, results.cpu, free=("batch_size",))
    is_lone = (rows["batch_size"] == FEW) & (rows["codec"] == NONE)
    rows = results.with_ratios(rows[is_lone & (rows["format"] == NEW) & (rows["arm"] == "measure")])
    for operation, ratio in zip(rows["operation"], rows["ratio"], strict=True):
        if ratio is not None:
            yield operation, more_or_less(ratio)


def _at_reference(results: Results, rows: pd.DataFrame, free: Sequence[str]) -> pd.DataFrame:
    """Return the rows at the grid's default of each axis, except the axes in `free`."""
    fixed = [axis for axis in results.axes if axis not in free]
    return rows[(rows[fixed] == pd.Series({axis: REFERENCE[axis] for axis in fixed})).all(axis=1)]


def _ranges(run: Views) -> Iterator[tuple[str, str]]:
    """Yield the number of workloads, the range and the median of three savings over the workloads."""
    lone, full = (_workload_sizes(run.results, *each) for each in ((FEW, NONE), (MANY, ZSTD)))
    ratios = {"both": [full[workload] / lone[workload] for workload in lone if workload in full]}
    for name, codec in (("plain", NONE), ("packed", ZSTD)):
        ratios[name] = [ratio for each in run.verdicts.workloads(codec) if (ratio := each.ratio(NEW))]
    for name, of_name in ratios.items():
        if savings := [1 - ratio for ratio in of_name]:
            least, most = (percent(end(savings)).removesuffix(" %") for end in (min, max))
            yield f"{name}_count", str(len(savings))
            yield f"{name}_range", f"{least} to {most} %"
            yield f"{name}_median", percent(median(savings))


def _workload_sizes(results: Results, batch_size: int, codec: str) -> dict[str, float]:
    """Return the bytes per record of v2 by workload, in batches of equal size under a codec."""
    rows = results.research
    rows = rows[(rows["kind"] == "bytes") & (rows["status"] == "ok") & (rows["format"] == BASE_FORMAT)]
    rows = rows[(rows["workload"] != GRID) & (rows["batch_size"] == batch_size)]
    rows = rows.assign(codec=codecs_of(rows))
    totals = rows[rows["codec"] == codec].groupby("workload")[["size_bytes", "records"]].sum()
    sizes: dict[str, float] = (totals["size_bytes"] / totals["records"]).to_dict()
    return sizes


def _per_batch(results: Results) -> Iterator[tuple[str, str]]:
    """Yield the bytes that v3 saves per batch besides one per record: with up to 50 records, and with more."""
    rows = results.uncompressed
    rows = rows[rows["base_timestamp_ms"] == REFERENCE["base_timestamp_ms"]]
    old, new = (rows[rows["format"] == name].set_index("cell_id") for name in (BASE_FORMAT, NEW))
    saved = ((old["size_bytes"] - new["size_bytes"] - new["records"]) / new["batches"]).dropna()
    is_small = new["batch_size"].reindex(saved.index) <= SMALL
    for name, part in ("few", saved[is_small]), ("many", saved[~is_small]):
        if len(part):
            yield name, number_range(part, ".0f")


def _otherwise(run: Views) -> str:
    """Say what a run has that has none of the verdict's numbers."""
    if run.dictionaries and run.dictionaries.is_own and run.dictionaries.groups:
        return headline_sentence(run.dictionaries)
    if run.rivals and run.rivals.is_own and run.rivals.arms:
        return " ".join((rivals.lead_sentence(run.rivals), rivals.losses_sentence(run.rivals)))
    names = [*run.results.formats, *run.verdicts.research_formats]
    return f"This run compares {listed(names)}."


def _cards(run: Views, savings: Mapping[str, float]) -> Iterator[Card]:
    against = f"{NEW} against {BASE_FORMAT}"
    if "alone" in savings:
        words = f"{against}: one record per batch, 100-byte values, no codec"
        yield Card(percent(-savings["alone"]), words, "bytes.html#t-ratio")
    if "packed" in savings:
        words = f"{against}: {MANY} records per batch, 100-byte template values, {ZSTD}"
        yield Card(percent(-savings["packed"]), words, "compression.html#t-codecs-ratio")
    if mean := measured.Columnar(run.results).headline:
        where = f"{codec_words(mean.codec)}, {measured.batches_words(mean.batch)}"
        workloads = counted(len(mean.labels), "workload")
        words = f"{measured.NAME} (research) against {BASE_FORMAT}: {where}, mean of {workloads}"
        yield Card(percent(mean.ratio - 1), words, f"floor.html#t-{measured.NAME}-means")
    if headline := dictionaries.card(run):
        yield Card(*headline, f"{dictionaries.CHAPTER}.html#t-{MEANS}")
    if run.rivals and run.rivals.is_own and (of_rivals := rivals.card(run.rivals)):
        yield Card(*of_rivals, f"{RIVALS}.html#t-{RIVAL_MEANS}")
    classes = [each.cpu for each in run.verdicts.classes]
    if ratios := [of[name, NEW].mean.median for of in classes for name in OPERATIONS if (name, NEW) in of]:
        words = f"CPU time of {against}: {listed(list(OPERATIONS))}, by class of workload"
        yield Card(f"{span(ratios)}×", words, "bytes.html#verdict")


def _counts(results: Results) -> str:
    """Count the numbers of each sort that the run has."""
    rows = results.every[results.every["status"] == "ok"]
    kinds, is_timed, arms = rows["kind"], rows["arm"].notna() & rows["cpu_ns"].notna(), rows["arm"]
    is_rival = kinds.str.startswith(RIVALS)
    counts = {
        "exact sizes": (kinds == "bytes").sum(),
        "sizes with dictionaries": (kinds.str.startswith(DICTIONARY) & ~is_timed).sum(),
        "sizes of rivals": (kinds == RIVALS).sum(),
        "CPU times": (is_timed & ((arms == "measure") | (is_rival & (arms != "aa")))).sum(),
    }
    return ", ".join(f"{number(int(count))} {words}" for words, count in counts.items() if count) or "No numbers"
