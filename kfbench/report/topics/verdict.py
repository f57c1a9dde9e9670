"""The first screen: which format is the smallest for which class of workload, and what v3 and the winners cost in CPU.

A class is a question that several workloads of the catalogue ask. What it takes is the geometric mean over its
workloads, as they are, each of the same weight, and a format has a number where all of them have it: one that cannot
carry the headers of one workload is not compared over the others. One that loses something has its numbers beside
those that do not, and wins nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean
from types import MappingProxyType
from typing import Final, TypeAlias

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.report.data.arms import CPU_DIGITS, middle_95, ties
from kfbench.report.data.capability import is_our_own, lacking, limits
from kfbench.report.data.named import NO_WORKLOADS, NONE, TIE, Named, Sizes, as_they_stand
from kfbench.report.data.paths import Paths, span
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import MAIN, RESEARCH, in_order
from kfbench.report.render.tables import Cell, Column, Interval, Ranked, Table, listed, number
from kfbench.report.render.words import codecs_of
from kfbench.report.section import Missing, Section
from kfbench.report.topics.class_times import TIMED, ClassTime, Times
from kfbench.report.topics.failures import reason
from kfbench.report.topics.workloads import without
from kfbench.workloads.catalogue import DEFAULT
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE

NEW: Final = "v3"  # what sentences speak of: it is what one would move to
# The order of the classes; a class of another name follows them. A workload names its class in its TOML.
CLASS_ORDER: Final = (
    "One record a batch", "Small batches", "Large batches", "Record headers", "Transactions", "After compaction",
    "Values of 1 KB", "Values of 64 KB",
)  # fmt: skip
READING: Final = (
    "A class is a question that several workloads ask; they need not answer it alike. Bytes and CPU are geometric "
    "means over these workloads, as they are, each of the same weight; least and most of them stand beside the mean. A "
    "format that cannot carry one of them has no number. A CPU interval joins those of the workloads: it says how far "
    "the rounds were apart, and nothing of other workloads. Every workload stands on its own further down."
)
NOT_MEASURED: Final = "not measured"
LIMITED: Final = "†"  # beside a winner that has no room for all that v2 has


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One class in one run. workloads: those of it that the run has; members: codec -> the bytes a record of each of
    them; under: codec -> their means, where all have some format; cpu: (operation, format) -> CPU time against v2's,
    without a codec; again: operation -> v2's own against itself."""

    name: str
    workloads: tuple[str, ...]
    batches: tuple[float, float]
    members: Mapping[str, tuple[Sizes, ...]]
    under: Mapping[str, Sizes]
    cpu: Mapping[tuple[str, str], ClassTime]
    again: Mapping[str, Interval]

    @property
    def records_a_batch(self) -> str:
        least, most = (number(each, 0) for each in self.batches)
        return least if least == most else f"{least}–{most}"

    def ratio(self, codec: str, name: str) -> float | None:
        return self.under[codec].ratio(name) if codec in self.under else None

    def span(self, codec: str, name: str) -> tuple[float, float] | None:
        """The least and the most of its workloads; None unless each has a ratio."""
        if self.ratio(codec, name) is None:
            return None
        ratios = [ratio for each in self.members[codec] if (ratio := each.ratio(name)) is not None]
        return min(ratios), max(ratios)

    def winners(self, codec: str) -> tuple[str, ...]:
        """As Sizes.winners."""
        return self.under[codec].winners if codec in self.under else ()

    def smaller(self, codec: str) -> list[str]:
        """The winners other than v2."""
        return [name for name in self.winners(codec) if name != BASE_FORMAT]


class Verdicts:
    """The classes of one run, in the order of CLASS_ORDER; a workload that the catalogue lacks is its own class."""

    def __init__(self, results: Results, named: Named, paths: Paths) -> None:
        self._results, self._named = results, named
        self._times = Times(results, named, paths)
        self.codecs = named.shown_codecs

    @cached_property
    def noise(self) -> Mapping[str, tuple[float, float]]:
        """operation -> what v2 reads against itself by class, the middle 95 %: a noisy append is none of encode's."""
        medians = {
            operation: [each.again[operation].median for each in self.classes if operation in each.again]
            for operation in TIMED
        }
        return {operation: zone for operation, found in medians.items() if (zone := middle_95(found))}

    def workloads(self, codec: str) -> list[Sizes]:
        """Each on its own."""
        return self._named.under(codec)

    @cached_property
    def classes(self) -> list[Verdict]:
        found: dict[str, list[str]] = {name: [] for name in CLASS_ORDER}
        for workload in dict.fromkeys(each.workload for codec in self.codecs for each in self._named.under(codec)):
            name = CATALOGUE[workload].workload_class if workload in CATALOGUE else workload
            found.setdefault(name, []).append(workload)
        return [self._verdict(name, workloads) for name, workloads in found.items() if workloads]

    @cached_property
    def formats(self) -> list[str]:
        """Those of any workload, in order."""
        return in_order(name for codec in self.codecs for each in self._named.under(codec) for name in each.of)

    @cached_property
    def apart(self) -> list[str]:
        """Those that were measured beside these, for themselves."""
        return in_order(set(RESEARCH) & set(self._results.research["format"]))

    @cached_property
    def shown(self) -> list[str]:
        """v0 to v3, and of the other formats the one that is the smallest over all classes."""
        means = {name: self._mean_ratio(name) for name in self.formats if name not in MAIN}
        found = {name: mean for name, mean in means.items() if mean is not None}
        best = min(found, key=lambda name: found[name], default=None)
        return [name for name in self.formats if name in MAIN or name == best]

    def _mean_ratio(self, name: str) -> float | None:
        """Of all classes; None unless each has it, and nothing is lost in any."""
        first = self.codecs[0]
        ratios = [each.ratio(first, name) for each in self.classes]
        known = [ratio for ratio in ratios if ratio is not None]
        is_whole = len(known) == len(ratios) > 0 and not any(each.under[first].lost[name] for each in self.classes)
        return geometric_mean(known) if is_whole else None

    @cached_property
    def lost(self) -> dict[str, list[str]]:
        """Of the formats shown those that lose something in some class without a codec, and what."""
        found = [each.under[self.codecs[0]].lost for each in self.classes if self.codecs[0] in each.under]
        lost = {name: list(dict.fromkeys(what for each in found for what in each.get(name, ()))) for name in self.shown}
        return {name: what for name, what in lost.items() if what}

    @cached_property
    def alone(self) -> dict[str, list[str]]:
        """codec -> the classes in which v2 has bytes and nothing to be compared with."""
        found: dict[str, list[str]] = {}
        for each in self.classes:
            for codec, sizes in each.under.items():
                if BASE_FORMAT in sizes.of and not sizes.winners:
                    found.setdefault(codec, []).append(each.name)
        return found

    @cached_property
    def absent(self) -> dict[tuple[str, tuple[str, ...]], list[str]]:
        """(why, which formats) have no bytes -> in which classes: of all formats shown without a codec, and of v2 and
        v3 where a class has no winner under one."""
        found: dict[tuple[str, str], dict[str, None]] = {}  # (why, class) -> formats
        for each in self.classes:
            for codec in self.codecs:
                is_first = codec == self.codecs[0]
                for name in self.shown if is_first else [BASE_FORMAT, NEW] if not each.winners(codec) else []:
                    for why in self._why(codec, each.workloads, name):
                        where = why if is_first else f"{why}, under {codec}"
                        found.setdefault((where, each.name), {})[name] = None
        classes: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (why, each_class), names in found.items():
            classes.setdefault((why, tuple(in_order(names))), []).append(each_class)
        return classes

    def _why(self, codec: str, workloads: Sequence[str], name: str) -> list[str]:
        """What keeps a format from having bytes of all these workloads."""
        there = {each.workload for each in self._named.under(codec) if name in each.of}
        lacking = [each for each in workloads if each not in there]
        return list(dict.fromkeys(self._reasons.get((each, codec, name), NOT_MEASURED) for each in lacking))

    @cached_property
    def _reasons(self) -> dict[tuple[str, str, str], str]:
        """(workload, codec, format) -> why its row is no number. Of workloads as they stand: no variants."""
        rows = self._results.every
        rows = rows[(rows["kind"] == "bytes") & (rows["status"] != "ok") & as_they_stand(rows)]
        rows = rows.assign(with_codec=codecs_of(rows))
        return {(row.workload, row.with_codec, row.format): reason(row) for row in rows.itertuples()}

    @cached_property
    def winners(self) -> list[str]:
        """Of any class, under any codec, other than v2."""
        return in_order(name for each in self.classes for codec in self.codecs for name in each.smaller(codec))

    @cached_property
    def told(self) -> list[str]:
        """Every format that the first screen names: shown, or a winner."""
        return in_order([*self.shown, *self.winners])

    @cached_property
    def limits(self) -> dict[str, str]:
        """The winners that have no room for all that v2 has, and what is said of each."""
        return {name: said for name in self.winners if (said := limits(name, BASE_FORMAT))}

    @cached_property
    def timed_under(self) -> set[str]:
        """The codecs with which any time of a workload was taken."""
        rows = self._results.every
        rows = rows[rows["kind"].isin(["cpu", "broker"]) & (rows["workload"] != "grid") & (rows["status"] == "ok")]
        return set(codecs_of(rows))

    def untimed(self, names: Callable[[Verdict], Iterable[str]]) -> dict[tuple[str, tuple[str, ...]], list[str]]:
        """(why, the classes in which one of their formats that `names` gives has no time) -> which operations."""
        found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for operation in TIMED:
            without: dict[str, dict[str, None]] = {}
            for each in self.classes:
                for name in names(each):
                    if (operation, name) not in each.cpu:
                        without.setdefault(self._times.why(operation, each.workloads, name), {})[each.name] = None
            for why, classes in without.items():
                found.setdefault((why, tuple(classes)), []).append(operation)
        return found

    def _verdict(self, name: str, workloads: Sequence[str]) -> Verdict:
        members = {
            codec: tuple(each for each in self._named.under(codec) if each.workload in workloads)
            for codec in self.codecs
        }
        batches = [each.records_a_batch for found in members.values() for each in found]
        means = {codec: _mean(name, found) for codec, found in members.items() if len(found) == len(workloads)}
        return Verdict(
            name=name,
            workloads=tuple(workloads),
            batches=(min(batches), max(batches)),
            members=members,
            under={codec: mean for codec, mean in means.items() if mean is not None},
            cpu=self._times.of(workloads, [each for each in self.formats if each != BASE_FORMAT]),
            again=self._times.again(workloads),
        )


def _mean(name: str, found: Sequence[Sizes]) -> Sizes | None:
    """Geometric means over workloads, of the formats that all of them have; None where there is no such format."""
    formats = [each for each in found[0].of if all(each in sizes.of for sizes in found)]
    if not formats:
        return None
    return Sizes(
        workload=name,
        variant=DEFAULT,
        with_codec=found[0].with_codec,
        records_a_batch=geometric_mean([each.records_a_batch for each in found]),
        of={each: geometric_mean([sizes.of[each] for sizes in found]) for each in formats},
        lost={each: tuple(dict.fromkeys(what for sizes in found for what in sizes.lost[each])) for each in formats},
    )


def verdict_table(verdicts: Verdicts) -> Table | None:
    """One row a class: who is the smallest, and bytes of each format. None without named workloads."""
    if not verdicts.classes:
        return None
    first = verdicts.codecs[0]
    others = [name for name in verdicts.shown if name != BASE_FORMAT]
    timed = TIMED if NEW in verdicts.shown and first == NONE else ()
    body: list[tuple[Cell, ...]] = []
    for each in verdicts.classes:
        sizes = each.under.get(first)
        body.append(
            (
                each.name,
                *(_winners(verdicts, each, codec) for codec in verdicts.codecs),
                sizes.of.get(BASE_FORMAT) if sizes else None,
                *(each.ratio(first, name) for name in others),
                *(_cpu(each, operation, NEW) for operation in timed),
            )
        )
    return Table(
        name="verdict",
        caption=f"Which format for which workload ({_words(first)}): bytes"
        + (f", and CPU time of {NEW}," if timed else "")
        + f" against {BASE_FORMAT}",
        columns=(
            Column(name="workload class"),
            *(Column(name="winner", unit=_words(codec)) for codec in verdicts.codecs),
            Column(name=BASE_FORMAT, unit="bytes", digits=1),
            *(Column(name=name, unit=f"× {BASE_FORMAT}", digits=3) for name in others),
            *(Column(name=f"{NEW} {each}", unit=f"× {BASE_FORMAT} CPU", digits=CPU_DIGITS) for each in timed),
        ),
        rows=tuple(body),
        notes=tuple(_notes(verdicts)),
    )


def costs_table(verdicts: Verdicts) -> Table | None:
    """One row a class and winner without a codec: what it costs, timed so. None where no other format than v2 wins."""
    rows = [(each, name) for each in verdicts.classes for name in each.smaller(NONE)]
    if not rows:
        return None
    return Table(
        name="verdict-cpu",
        caption=f"What the winners cost: CPU time without a codec, relative to {BASE_FORMAT}",
        columns=(
            Column(name="workload class"),
            Column(name="winner", unit=_words(NONE)),
            *(Column(name=operation, unit=f"× {BASE_FORMAT} CPU", digits=CPU_DIGITS) for operation in TIMED),
        ),
        rows=tuple(
            (
                each.name,
                _marked(verdicts, name),
                *(_cpu(each, operation, name) for operation in TIMED),
            )
            for each, name in rows
        ),
        notes=tuple(_cpu_notes(verdicts)),
    )


def _winners(verdicts: Verdicts, each: Verdict, codec: str) -> str | None:
    if codec in each.under and each.under[codec].is_tie:
        return f"tie with {BASE_FORMAT}"
    return listed([_marked(verdicts, name) for name in each.winners(codec)]) or None


def _marked(verdicts: Verdicts, name: str) -> str:
    return f"{name} {LIMITED}" if name in verdicts.limits else name


def _notes(verdicts: Verdicts) -> Iterator[str]:
    first, *packed = verdicts.codecs
    apart = f"; {listed(verdicts.apart)} has a section of its own" if verdicts.apart else ""
    yield (
        f"Compared: {listed(verdicts.formats)}{apart}; no other was measured on these workloads. Winner: the fewest "
        f"bytes of those that lose nothing; {100 * TIE:.0f} % more shares the place, {BASE_FORMAT} within it is a tie."
    )
    for said in verdicts.limits.values():
        yield f"{LIMITED} {said}"
    for name in filter(is_our_own, verdicts.told):
        yield f"{name} is this project's own, in no proposal's text: {FORMATS[name].summary}."
    yield from filter(None, (_packed(verdicts, codec, first) for codec in packed))
    if verdicts.lost:
        losing = listed([f"{name} ({listed(what)})" for name, what in verdicts.lost.items()])
        yield f"Not compared where it loses something of the records of a class: {losing}."
    for (why, names), classes in verdicts.absent.items():
        nothing = f"; without {BASE_FORMAT} nothing is compared" if BASE_FORMAT in names else ""
        yield f"No bytes of {listed(names)} for {_which(verdicts, classes)}: {why}{nothing}."
    for codec, classes in verdicts.alone.items():
        why = f"no format but {BASE_FORMAT} that loses nothing"
        yield f"No winner ({_words(codec)}) for {_which(verdicts, classes)}: {why}."
    if NEW in verdicts.shown and first == NONE:
        yield f"A CPU interval that {_tie_words(verdicts)} is a tie."
        yield from _untimed_notes(verdicts, verdicts.untimed(lambda _: [NEW]), f" of {NEW}", _untimed_winners(verdicts))


def _cpu_notes(verdicts: Verdicts) -> Iterator[str]:
    yield f"Left out where {BASE_FORMAT} wins or ties. An interval that {_tie_words(verdicts)} is a tie."
    for codec in verdicts.codecs:
        more = {
            each.name: [name for name in each.smaller(codec) if name not in each.smaller(NONE)]
            for each in verdicts.classes
        }
        if names := in_order(name for found in more.values() for name in found):
            where = _which(verdicts, [each for each, found in more.items() if found])
            why = f"not timed under {codec}" if codec not in verdicts.timed_under else "timed further below"
            yield f"Winners under {codec} alone are left out ({listed(names)} for {where}): {why}."
    yield from _untimed_notes(verdicts, _untimed_winners(verdicts))


Untimed: TypeAlias = Mapping[tuple[str, tuple[str, ...]], list[str]]


def _untimed_winners(verdicts: Verdicts) -> Untimed:
    return verdicts.untimed(lambda each: each.smaller(NONE))


def _untimed_notes(
    verdicts: Verdicts, untimed: Untimed, of: str = "", said: Untimed = MappingProxyType({})
) -> Iterator[str]:
    """said: what the table of the winners' cost says as well, which is not said twice."""
    for (why, classes), operations in untimed.items():
        if said.get((why, classes)) != operations:
            yield f"No {listed(operations)}{of} for {_which(verdicts, classes)}: {why}."


def _packed(verdicts: Verdicts, codec: str, plain: str) -> str:
    """Which of the formats shown do not have this codec, and where what wins under it is no smaller for it."""
    name = codec.partition(" ")[0]
    without = [each for each in verdicts.shown if name in lacking(each, BASE_FORMAT)]
    larger = [
        f"{_lower(each.name)} ({_least(each, codec)}; {_least(each, plain)})"
        for each in verdicts.classes
        if _is_larger(each, codec, plain)
    ]
    said = [f"{listed(without)} {'has' if len(without) == 1 else 'have'} no {name}."] if without else []
    if larger:
        said.append(f"Under {codec} the smallest takes more bytes than without a codec for {listed(larger)}.")
    return " ".join(said)


def _least(each: Verdict, codec: str) -> str:
    """v1 101.9 without a codec"""
    whole = each.under[codec].whole
    name = min(whole, key=lambda name: whole[name])
    return f"{name} {number(whole[name], 1)} {'without a codec' if codec == NONE else f'under {codec}'}"


def _is_larger(each: Verdict, codec: str, than: str) -> bool:
    """By more than a tie."""
    one, other = (each.under[name].whole.values() if name in each.under else () for name in (codec, than))
    return bool(one and other) and min(one) > min(other) * (1 + TIE)


def _tie_words(verdicts: Verdicts) -> str:
    if not verdicts.noise:
        return "holds 1"
    return f"holds 1, or reaches into {_zones(verdicts)}, the middle 95 % of {BASE_FORMAT} against itself by class,"


def _zones(verdicts: Verdicts) -> str:
    """0.98–1.02 (encode) and 0.85–1.22 (append)"""
    return listed(
        [
            f"{number(low, CPU_DIGITS)}–{number(high, CPU_DIGITS)} ({operation})"
            for operation, (low, high) in verdicts.noise.items()
        ]
    )


def _which(verdicts: Verdicts, classes: Sequence[str]) -> str:
    return "any class" if len(classes) == len(verdicts.classes) else listed([_lower(name) for name in classes])


def detail_table(verdicts: Verdicts) -> Table:
    """One row a class and format: bytes under each codec of the verdict, and CPU, each with the least and the most of
    the class's workloads."""
    columns = [Column(name="workload class"), Column(name="format", swatch=True)]
    for codec in map(_words, verdicts.codecs):
        columns += [Column(name=codec, unit="bytes", digits=1), Column(name=codec, unit=f"× {BASE_FORMAT}", digits=3)]
        columns.append(Column(name=f"{codec}, least–most"))
    for operation in TIMED:
        columns.append(Column(name=operation, unit=f"× {BASE_FORMAT} CPU", digits=CPU_DIGITS))
        columns.append(Column(name=f"{operation}, least–most"))
    columns.append(Column(name="bytes", unit=_words(verdicts.codecs[0])))
    body: list[tuple[Cell, ...]] = []
    for each in verdicts.classes:
        for name in verdicts.formats:
            if not any(name in sizes.of for sizes in each.under.values()):
                continue
            cells: list[Cell] = []
            for codec in verdicts.codecs:
                sizes = each.under.get(codec)
                cells += [sizes.of.get(name) if sizes else None, each.ratio(codec, name)]
                cells.append(None if name == BASE_FORMAT else _span(each, each.span(codec, name), 3))
            for operation in TIMED:
                time = each.cpu.get((operation, name))
                span = _span(each, (time.least, time.most) if time else None, CPU_DIGITS)
                cells += [_cpu(each, operation, name), span]
            body.append((each.name, name, *cells, _word(each, name, verdicts.codecs[0])))
    return Table(
        name="verdict-formats",
        caption=f"Every format of every class: bytes a record and CPU time, relative to {BASE_FORMAT}",
        columns=tuple(columns),
        rows=tuple(body),
        notes=("Least–most: of the class's workloads, by medians. A class of one has none.",),
    )


def _span(each: Verdict, span: tuple[float, float] | None, digits: int) -> Cell:
    if span is None or len(each.workloads) == 1:
        return None
    return Ranked(f"{number(span[0], digits)}–{number(span[1], digits)}", span[0])


def _cpu(each: Verdict, operation: str, name: str) -> Cell:
    is_timed = any(timed == operation for timed, _ in each.cpu)
    found = each.cpu.get((operation, name))
    return 1.0 if name == BASE_FORMAT and is_timed else found.mean if found else None


def _word(each: Verdict, name: str, codec: str) -> str:
    sizes = each.under.get(codec)
    if sizes is None or name not in sizes.of:
        return ""
    if sizes.lost[name]:
        return f"without {listed(sizes.lost[name])}"
    if sizes.is_tie:
        return "tie" if name in sizes.smallest_whole else ""
    return "smallest" if name in sizes.winners else ""


def classes_table(verdicts: Verdicts) -> Table:
    """Which workloads stand behind each class, and what v2 reads against itself over them."""
    return Table(
        name="verdict-classes",
        caption=f"The workloads of each class; over them CPU time of {BASE_FORMAT} against itself",
        columns=(
            Column(name="workload class"),
            Column(name="records a batch"),
            Column(name="workloads"),
            *(Column(name=operation, unit=f"× {BASE_FORMAT} CPU", digits=CPU_DIGITS) for operation in TIMED),
        ),
        rows=tuple(
            (each.name, each.records_a_batch, listed(each.workloads), *(each.again.get(name) for name in TIMED))
            for each in verdicts.classes
        ),
    )


def verdict_sentence(verdicts: Verdicts) -> str:
    """Over all workloads: how far v3 is from v2, and where v0 or v1 takes fewer bytes."""
    said = []
    for codec in verdicts.codecs:
        ratios = [ratio for each in verdicts.workloads(codec) if (ratio := each.ratio(NEW)) is not None]
        if ratios:
            alike = sum(abs(ratio - 1) <= TIE for ratio in ratios)
            larger = sum(ratio > 1 + TIE for ratio in ratios)
            where = "without a codec" if codec == NONE else f"under {codec}"
            said.append(
                f"{min(ratios):.3f} to {max(ratios):.3f} {where} (within {100 * TIE:.0f} % in {alike} of {len(ratios)}"
                + (f", more in {larger})" if larger else ")")
            )
    if not said:
        return ""
    text = f"By workload {NEW} takes, in times of the bytes of {BASE_FORMAT}, {listed(said)}"
    return "; ".join([text, *_old(verdicts.workloads(verdicts.codecs[0]))]) + "."


def cost_sentence(verdicts: Verdicts) -> str:
    """The least and the most CPU time of what wins without a codec: so they were timed."""
    spans = []
    for operation in TIMED:
        times = [
            time.mean.median
            for each in verdicts.classes
            for name in each.smaller(NONE)
            if (time := each.cpu.get((operation, name)))
        ]
        if times:
            spans.append(f"{span(times)} to {operation}")
    return f"In times of {BASE_FORMAT}'s CPU the winners without a codec take {listed(spans)}." if spans else ""


def _old(found: Sequence[Sizes]) -> Iterator[str]:
    for name in MAIN[: MAIN.index(BASE_FORMAT)]:
        if wins := sum(name in each.winners for each in found):
            yield f"{name} is the smallest in {wins}"
        if losing := [each for each in found if name in each.at_a_loss]:
            yield f"{without(losing, name)}, takes less than any that loses nothing in {len(losing)}"


def cpu_sentence(verdicts: Verdicts) -> str:
    """Where v3 takes more CPU time than v2, and where less: beyond their intervals, and beyond v2 against itself."""
    said = []
    for operation in TIMED:
        ratios = {each.name: time.mean for each in verdicts.classes if (time := each.cpu.get((operation, NEW)))}
        if not ratios:
            continue
        apart = {name: ratio for name, ratio in ratios.items() if not ties(ratio, verdicts.noise.get(operation))}
        parts = []
        for word, medians in (
            ("more", {name: ratio.median for name, ratio in apart.items() if ratio.median > 1}),
            ("less", {name: ratio.median for name, ratio in apart.items() if ratio.median < 1}),
        ):
            if medians:
                parts.append(
                    f"{word} for {listed(list(map(_lower, medians)))} ({span([*medians.values()], CPU_DIGITS)}×)"
                )
        parts.append(f"as much, as far as can be told, in {len(ratios) - len(apart)} of {len(ratios)} classes")
        said.append(f"{NEW} takes {listed(parts)} to {operation}")
    if not said:
        return ""
    text = f"Of CPU time against {BASE_FORMAT}, {'; '.join(said)}."
    if verdicts.noise:
        text += f" By class, {BASE_FORMAT} against itself reads {_zones(verdicts)}, in the middle 95 %."
    return text


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]


def _words(codec: str) -> str:
    return "no codec" if codec == NONE else codec


def classes_section(verdicts: Verdicts) -> Section | Missing:
    if not verdicts.classes:
        return Missing(what="Which format for which class of workload?", why=NO_WORKLOADS)
    return Section(
        name="classes",
        short="Classes",
        title="What stands behind the verdict?",
        means=" ".join(filter(None, (cpu_sentence(verdicts), cost_sentence(verdicts)))),
        prose=(READING,),
        tables=(classes_table(verdicts), detail_table(verdicts)),
    )
