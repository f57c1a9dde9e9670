"""The classes of workloads of one run: mean bytes and CPU time of each format, and the winners.

A class is a question that several workloads of the catalogue ask. Its numbers are geometric means over the default
variants of its workloads, each with the same weight. A format has a number only if all workloads of the class have one.
A
format that loses something has numbers, but wins nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean
from typing import Final, NamedTuple

from kfbench.formats import BASE_FORMAT, RESEARCH
from kfbench.report.data.arms import Band, middle_95
from kfbench.report.data.capability import limits
from kfbench.report.data.class_times import TIMED, ClassTime, Times
from kfbench.report.data.named import Named, Sizes, is_default_in_caches
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results, reasons
from kfbench.report.data.shown_formats import MAIN, NEW, in_order
from kfbench.report.data.words import codecs_of
from kfbench.tables import Interval, number
from kfbench.workloads.catalogue import DEFAULT
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE

# The order of the classes; a class of another name follows them. A workload names its class in its TOML.
CLASS_ORDER: Final = (
    "One record per batch", "Small batches", "Large batches", "Record headers", "Transactions", "After compaction",
    "Values of 1 KB", "Values of 64 KB",
)  # fmt: skip
NOT_MEASURED: Final = "not measured"


class Absent(NamedTuple):
    """Formats without bytes in some classes, and the reason."""

    why: str
    formats: tuple[str, ...]
    classes: list[str]


class Untimed(NamedTuple):
    """Operations without a CPU time in some classes, and the reason."""

    why: str
    classes: tuple[str, ...]
    operations: list[str]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A class in one run.

    Args:
        workloads: the measured workloads of the class.
        batches: least and greatest number of records per batch.
        members: codec -> the bytes per record of each workload.
        under: codec -> their means, if all workloads have some format in common.
        cpu: (operation, format) -> CPU time relative to v2's, without a codec.
        again: operation -> v2's CPU time relative to itself.
    """

    name: str
    workloads: tuple[str, ...]
    batches: tuple[float, float]
    members: Mapping[str, tuple[Sizes, ...]]
    under: Mapping[str, Sizes]
    cpu: Mapping[tuple[str, str], ClassTime]
    again: Mapping[str, Interval]

    @property
    def records_per_batch(self) -> str:
        least, most = (number(each, 0) for each in self.batches)
        return least if least == most else f"{least}–{most}"

    def ratio(self, codec: str, name: str) -> float | None:
        return self.under[codec].ratio(name) if codec in self.under else None

    def span(self, codec: str, name: str) -> Band | None:
        """Return the least and the greatest ratio of the workloads; None unless each has one."""
        if self.ratio(codec, name) is None:
            return None
        ratios = [ratio for each in self.members[codec] if (ratio := each.ratio(name)) is not None]
        return Band(min(ratios), max(ratios))

    def winners(self, codec: str) -> tuple[str, ...]:
        """Return `Sizes.winners` under a codec."""
        return self.under[codec].winners if codec in self.under else ()

    def smaller(self, codec: str) -> list[str]:
        """Return the winners other than v2."""
        return [name for name in self.winners(codec) if name != BASE_FORMAT]


class Verdicts:
    """The classes of one run, in the order of CLASS_ORDER. A workload outside the catalogue is its own class."""

    def __init__(self, results: Results, named: Named, paths: Paths) -> None:
        self._results, self._named = results, named
        self._times = Times(results, named, paths)
        self.codecs = named.shown_codecs

    @cached_property
    def noise(self) -> Mapping[str, Band]:
        """operation -> the middle 95 % of v2's CPU time relative to itself, by class.

        Each operation has its own noise, because a noisy append says nothing about encode.
        """
        medians = {
            operation: [each.again[operation].median for each in self.classes if operation in each.again]
            for operation in TIMED
        }
        return {operation: band for operation, found in medians.items() if (band := middle_95(found))}

    def workloads(self, codec: str) -> list[Sizes]:
        """Return the sizes of each workload on its own."""
        return self._named.under(codec)

    @cached_property
    def classes(self) -> list[Verdict]:
        workloads_by_class: dict[str, list[str]] = {name: [] for name in CLASS_ORDER}
        for workload in dict.fromkeys(each.workload for codec in self.codecs for each in self._named.under(codec)):
            name = CATALOGUE[workload].workload_class if workload in CATALOGUE else workload
            workloads_by_class.setdefault(name, []).append(workload)
        return [self._verdict(name, workloads) for name, workloads in workloads_by_class.items() if workloads]

    @cached_property
    def formats(self) -> list[str]:
        """The formats of any workload, in order."""
        return in_order(name for codec in self.codecs for each in self._named.under(codec) for name in each.of)

    @cached_property
    def research_formats(self) -> list[str]:
        """The measured research formats, which have a section of their own."""
        return in_order(RESEARCH & set(self._results.research["format"]))

    @cached_property
    def shown(self) -> list[str]:
        """v0 to v3, and the smallest other format over all classes."""
        means = {name: self._mean_ratio(name) for name in self.formats if name not in MAIN}
        known = {name: mean for name, mean in means.items() if mean is not None}
        best = min(known, key=lambda name: known[name], default=None)
        return [name for name in self.formats if name in MAIN or name == best]

    def _mean_ratio(self, name: str) -> float | None:
        """Return the mean over all classes; None unless each has a ratio and nothing is lost in any."""
        first = self.codecs[0]
        ratios = [each.ratio(first, name) for each in self.classes]
        known = [ratio for ratio in ratios if ratio is not None]
        is_whole = len(known) == len(ratios) > 0 and not any(each.under[first].lost[name] for each in self.classes)
        return geometric_mean(known) if is_whole else None

    @cached_property
    def lost(self) -> dict[str, list[str]]:
        """Shown format -> its losses in any class without a codec; formats without losses are left out."""
        by_class = [each.under[self.codecs[0]].lost for each in self.classes if self.codecs[0] in each.under]
        lost = {name: list(dict.fromkeys(what for of in by_class for what in of.get(name, ()))) for name in self.shown}
        return {name: what for name, what in lost.items() if what}

    @cached_property
    def alone(self) -> dict[str, list[str]]:
        """codec -> the classes in which v2 has bytes and no format to compare with."""
        found: dict[str, list[str]] = {}
        for each in self.classes:
            for codec, sizes in each.under.items():
                if BASE_FORMAT in sizes.of and not sizes.winners:
                    found.setdefault(codec, []).append(each.name)
        return found

    @cached_property
    def absent(self) -> list[Absent]:
        """Formats without bytes: shown ones without a codec; v2 and v3 if a class has no winner under a codec."""
        formats: dict[tuple[str, str], dict[str, None]] = {}  # (why, class) -> formats
        for each in self.classes:
            for codec in self.codecs:
                is_first = codec == self.codecs[0]
                for name in self.shown if is_first else [BASE_FORMAT, NEW] if not each.winners(codec) else []:
                    for why in self._why_absent(codec, each.workloads, name):
                        where = why if is_first else f"{why}, under {codec}"
                        formats.setdefault((where, each.name), {})[name] = None
        classes: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for (why, class_name), names in formats.items():
            classes.setdefault((why, tuple(in_order(names))), []).append(class_name)
        return [Absent(*key, names) for key, names in classes.items()]

    def _why_absent(self, codec: str, workloads: Sequence[str], name: str) -> list[str]:
        """Return why a format has no bytes for some of these workloads."""
        there = {each.workload for each in self._named.under(codec) if name in each.of}
        absent = [each for each in workloads if each not in there]
        return list(dict.fromkeys(self._reasons.get((each, codec, name), NOT_MEASURED) for each in absent))

    @cached_property
    def _reasons(self) -> dict[tuple[str, str, str], str]:
        """(workload, codec, format) -> the reason for a missing number. Variants do not count."""
        rows = self._results.every
        rows = rows[(rows["kind"] == "bytes") & (rows["status"] != "ok") & is_default_in_caches(rows)]
        keys = zip(rows["workload"], codecs_of(rows), rows["format"], strict=True)
        return dict(zip(keys, reasons(rows), strict=True))

    @cached_property
    def winners(self) -> list[str]:
        """The winners of any class under any codec, other than v2."""
        return in_order(name for each in self.classes for codec in self.codecs for name in each.smaller(codec))

    @cached_property
    def named_formats(self) -> list[str]:
        """The formats that the first screen names: those shown, and the winners."""
        return in_order([*self.shown, *self.winners])

    @cached_property
    def limits(self) -> dict[str, str]:
        """Winner that cannot carry all that v2 can -> its caveat."""
        return {name: note for name in self.winners if (note := limits(name, BASE_FORMAT))}

    @cached_property
    def timed_under(self) -> set[str]:
        """The codecs with which any workload was timed."""
        rows = self._results.every
        rows = rows[rows["kind"].isin(["cpu", "broker"]) & (rows["workload"] != "grid") & (rows["status"] == "ok")]
        return set(codecs_of(rows))

    def untimed(self, names: Callable[[Verdict], Iterable[str]]) -> list[Untimed]:
        """Return the operations without a time of some format. names: the formats of a class that should have one."""
        found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        for operation in TIMED:
            classes_by_reason: dict[str, dict[str, None]] = {}
            for each in self.classes:
                for name in names(each):
                    if (operation, name) not in each.cpu:
                        why = self._times.why(operation, each.workloads, name)
                        classes_by_reason.setdefault(why, {})[each.name] = None
            for why, classes in classes_by_reason.items():
                found.setdefault((why, tuple(classes)), []).append(operation)
        return [Untimed(*key, operations) for key, operations in found.items()]

    def _verdict(self, name: str, workloads: Sequence[str]) -> Verdict:
        members = {
            codec: tuple(each for each in self._named.under(codec) if each.workload in workloads)
            for codec in self.codecs
        }
        batches = [each.records_a_batch for found in members.values() for each in found]
        return Verdict(
            name=name,
            workloads=tuple(workloads),
            batches=(min(batches), max(batches)),
            members=members,
            under=dict(_means(name, len(workloads), members)),
            cpu=self._times.of(workloads, [each for each in self.formats if each != BASE_FORMAT]),
            again=self._times.again(workloads),
        )


def _means(name: str, workloads: int, members: Mapping[str, Sequence[Sizes]]) -> Iterator[tuple[str, Sizes]]:
    """Yield each codec with geometric means over all workloads, of the formats that all of them have."""
    for codec, found in members.items():
        formats = [each for each in found[0].of if all(each in sizes.of for sizes in found)] if found else []
        if not formats or len(found) < workloads:
            continue
        yield (
            codec,
            Sizes(
                workload=name,
                variant=DEFAULT,
                with_codec=codec,
                records_a_batch=geometric_mean([each.records_a_batch for each in found]),
                of={each: geometric_mean([sizes.of[each] for sizes in found]) for each in formats},
                lost={
                    each: tuple(dict.fromkeys(what for sizes in found for what in sizes.lost[each])) for each in formats
                },
            ),
        )
