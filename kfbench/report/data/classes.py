"""The classes of workloads of one run: mean bytes and CPU time of each format, and the winners.

A class is a group of workloads of the catalogue, such as "Small batches". Its numbers are geometric means over the
default variants of its workloads, each with the same weight. A format has a number only if all workloads of the class
have one. A format that loses a field of the records has numbers, but cannot win.
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

# The order of the classes. Other classes come after them. The TOML file of a workload names its class.
CLASS_ORDER: Final = (
    "One record per batch", "Small batches", "Large batches", "Record headers", "Transactions", "After compaction",
    "Values of 1 KB", "Values of 64 KB",
)  # fmt: skip
NOT_MEASURED: Final = "not measured"


class Absent(NamedTuple):
    """Formats that have no number of bytes in some classes of workloads, and the reason (`why`)."""

    why: str
    formats: tuple[str, ...]
    classes: list[str]


class Untimed(NamedTuple):
    """Operations that have no CPU time in some classes of workloads, and the reason (`why`)."""

    why: str
    classes: tuple[str, ...]
    operations: list[str]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The results of one class of workloads in one run.

    Args:
        name: the name of the class.
        workloads: the measured workloads of the class.
        batches: the least and the greatest number of records per batch.
        members: codec -> bytes per record of each workload.
        under: codec -> the means over the workloads. A codec is absent if the workloads have no format in common.
        cpu: (operation, format) -> CPU time relative to v2, without a codec.
        again: operation -> v2's CPU time relative to itself (A/A).
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
        """Return the least and the greatest ratio of a workload to v2; None unless each workload has a ratio."""
        if self.ratio(codec, name) is None:
            return None
        ratios = [ratio for each in self.members[codec] if (ratio := each.ratio(name)) is not None]
        return Band(min(ratios), max(ratios))

    def winners(self, codec: str) -> tuple[str, ...]:
        """Return the smallest formats under a codec that lose no field of the records.

        If v2 is one of them, return v2 alone.
        """
        return self.under[codec].winners if codec in self.under else ()

    def smaller(self, codec: str) -> list[str]:
        """Return the smallest formats under a codec that lose no field of the records; empty if v2 is one of them."""
        return [name for name in self.winners(codec) if name != BASE_FORMAT]


class Verdicts:
    """The results of all classes of workloads in one run, in the order of CLASS_ORDER.

    A workload that is not in the catalogue is a class by itself.
    """

    def __init__(self, results: Results, named: Named, paths: Paths) -> None:
        self._results, self._named = results, named
        self._times = Times(results, named, paths)
        self.codecs = named.shown_codecs

    @cached_property
    def noise(self) -> Mapping[str, Band]:
        """operation -> the middle 95 % of v2's CPU time relative to itself (A/A). There is one value per class.

        Each operation has its own noise, because a noisy append says nothing about encode.
        """
        medians = {
            operation: [each.again[operation].median for each in self.classes if operation in each.again]
            for operation in TIMED
        }
        return {operation: band for operation, found in medians.items() if (band := middle_95(found))}

    def workloads(self, codec: str) -> list[Sizes]:
        """Return the sizes of single workloads under a codec, not joined to classes."""
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
        """The formats that were measured on at least one workload, in the order of the report."""
        return in_order(name for codec in self.codecs for each in self._named.under(codec) for name in each.of)

    @cached_property
    def research_formats(self) -> list[str]:
        """The measured research formats. The report shows them in a separate section."""
        return in_order(RESEARCH & set(self._results.research["format"]))

    @cached_property
    def shown(self) -> list[str]:
        """The formats of the first table: v0 to v3, and the smallest other format over all classes of workloads."""
        means = {name: self._mean_ratio(name) for name in self.formats if name not in MAIN}
        known = {name: mean for name, mean in means.items() if mean is not None}
        best = min(known, key=lambda name: known[name], default=None)
        return [name for name in self.formats if name in MAIN or name == best]

    def _mean_ratio(self, name: str) -> float | None:
        """Return the mean over all classes of workloads of bytes relative to v2, under the first codec.

        Return None unless the format has a ratio in each class and loses no field in any class.
        """
        first = self.codecs[0]
        ratios = [each.ratio(first, name) for each in self.classes]
        known = [ratio for ratio in ratios if ratio is not None]
        is_whole = len(known) == len(ratios) > 0 and not any(each.under[first].lost[name] for each in self.classes)
        return geometric_mean(known) if is_whole else None

    @cached_property
    def lost(self) -> dict[str, list[str]]:
        """Shown format -> the fields that it loses in any class of workloads without a codec.

        Formats without losses are absent.
        """
        by_class = [each.under[self.codecs[0]].lost for each in self.classes if self.codecs[0] in each.under]
        lost = {name: list(dict.fromkeys(what for of in by_class for what in of.get(name, ()))) for name in self.shown}
        return {name: what for name, what in lost.items() if what}

    @cached_property
    def alone(self) -> dict[str, list[str]]:
        """The names of the classes in which v2 is the only measured format that keeps all fields, by codec."""
        found: dict[str, list[str]] = {}
        for each in self.classes:
            for codec, sizes in each.under.items():
                if BASE_FORMAT in sizes.of and not sizes.winners:
                    found.setdefault(codec, []).append(each.name)
        return found

    @cached_property
    def absent(self) -> list[Absent]:
        """The formats without bytes in some class of workloads, and the reasons.

        Without a codec, these are the shown formats. Under a codec, only v2 and v3 are listed, and only for classes
        without a winner.
        """
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
        """Return the reasons why a format has no bytes for some of these workloads."""
        there = {each.workload for each in self._named.under(codec) if name in each.of}
        absent = [each for each in workloads if each not in there]
        return list(dict.fromkeys(self._reasons.get((each, codec, name), NOT_MEASURED) for each in absent))

    @cached_property
    def _reasons(self) -> dict[tuple[str, str, str], str]:
        """The reason for a missing number of bytes. The keys are (workload, codec, format); only default variants."""
        rows = self._results.every
        rows = rows[(rows["kind"] == "bytes") & (rows["status"] != "ok") & is_default_in_caches(rows)]
        keys = zip(rows["workload"], codecs_of(rows), rows["format"], strict=True)
        return dict(zip(keys, reasons(rows), strict=True))

    @cached_property
    def winners(self) -> list[str]:
        """The formats other than v2 that are the smallest in any class of workloads under any codec."""
        return in_order(name for each in self.classes for codec in self.codecs for name in each.smaller(codec))

    @cached_property
    def named_formats(self) -> list[str]:
        """The formats that the verdict names: those of its first table, and the smallest format of each class."""
        return in_order([*self.shown, *self.winners])

    @cached_property
    def limits(self) -> dict[str, str]:
        """Winning (smallest) format that cannot carry everything that v2 can -> a sentence about its limits."""
        return {name: note for name in self.winners if (note := limits(name, BASE_FORMAT))}

    @cached_property
    def timed_under(self) -> set[str]:
        """The codecs with which at least one named workload was timed."""
        rows = self._results.every
        rows = rows[rows["kind"].isin(["cpu", "broker"]) & (rows["workload"] != "grid") & (rows["status"] == "ok")]
        return set(codecs_of(rows))

    def untimed(self, names: Callable[[Verdict], Iterable[str]]) -> list[Untimed]:
        """Return the operations without a CPU time, with the classes of workloads and the reasons.

        names: a function from a class to the formats that should have a time in it.
        """
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
        batches = [each.records_per_batch for found in members.values() for each in found]
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
    """Yield each codec with the geometric means over all workloads of a class.

    Only formats that were measured on all workloads have a mean.

    Args:
        name: the name of the class.
        workloads: the number of its workloads. A codec with fewer measured workloads is skipped.
        members: codec -> the sizes of each workload.
    """
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
                records_per_batch=geometric_mean([each.records_per_batch for each in found]),
                of={each: geometric_mean([sizes.of[each] for sizes in found]) for each in formats},
                lost={
                    each: tuple(dict.fromkeys(what for sizes in found for what in sizes.lost[each])) for each in formats
                },
            ),
        )
