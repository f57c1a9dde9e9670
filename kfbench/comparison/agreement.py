"""How far two runs agree on CPU: every arm's ratio to its base in both, and how far that moved.

Ratios are of the same rounds, so that a slower day does not move them. Another host does: formats gain differently from
another core or cache. Arms of two hosts are not compared; the ratios of BESIDE stand side by side. A base that got
slower makes all others look faster; what it took itself tells the two apart.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import bdtrc

from kfbench.comparison.change import OUTSIDE, Estimate, Verdict, change, together, verdict
from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import paired_ratio
from kfbench.measure.schema import ARM, ROUNDS, ROUNDS_PREFIX

Key: TypeAlias = tuple[Any, ...]
Row: TypeAlias = dict[str, Any]
Pair: TypeAlias = tuple[Row, Row]  # of the first run, of the second
What: TypeAlias = tuple[str, str]  # kind and operation
Name: TypeAlias = tuple[bool, str, str, str]  # A/A or not, kind, operation, format

RESIDENT: Final = "resident"  # what a run from before `cache` measured
AA: Final = "aa"
LEAST_CELLS: Final = 6  # the median of fewer may lie outside all of them in more than 5 of 100
BESIDE: Final = ("v3", "columnar")  # what is asked of another machine first: do these still win over BASE_FORMAT?
USUAL: Final = 95  # of 100 A/A arms moved no further: what moved no further either is noise


class Moved(NamedTuple):
    """One arm of both runs: its ratio to the base of its rounds, and after / before."""

    row: Mapping[str, Any]
    before: Estimate
    after: Estimate
    change: Estimate
    verdict: Verdict

    @property
    def difference(self) -> float:
        return abs(self.change.median - 1)


@dataclass(frozen=True, kw_only=True)
class Group:
    """The arms of one kind, operation and format, the least change first. change: of the median cell; None: too few.

    verdict: slower where the median cell is (among few cells: each of them), or where many more cells are slower than
    faster, of those that moved further than A/A arms do."""

    kind: str
    operation: str
    format: str
    is_aa: bool
    cells: tuple[Moved, ...]
    change: Estimate | None
    verdict: Verdict

    @cached_property
    def median_difference(self) -> float:
        return float(np.median([each.difference for each in self.cells]))

    def median(self, run: str) -> float:
        """Of the ratios `before` or `after`."""
        return float(np.median([getattr(each, run).median for each in self.cells]))


@dataclass(frozen=True, kw_only=True)
class Base:
    """What a base itself took. change: ns a record, after / before, the median cell; yardstick: the same of the host's,
    None unless both runs have it; unmoved: formats and operations that read faster against it and took as long as ever.

    verdict: slower where change / yardstick is, and there are such unmoved ones: else it may be the machine's day,
    which a neighbour makes longer for one format than for another."""

    kind: str
    operation: str
    formats: tuple[str, ...]
    change: float
    yardstick: float | None
    unmoved: tuple[tuple[str, str], ...]
    verdict: Verdict


class Beside(NamedTuple):
    """A format's time over v2's on two hosts, shown and not judged. before, after: the median cell in each run."""

    kind: str
    operation: str
    format: str
    cells: int
    before: float
    after: float


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """groups: A/A arms last. arms: of both runs, bases and A/A among them. Not compared: hosts, (first, second) -> arms
    of two hosts; resized, arms of another number of records. beside: ratios of arms of two hosts."""

    groups: tuple[Group, ...]
    arms: tuple[int, int]
    hosts: Mapping[tuple[str, str], int]
    resized: int
    bases: tuple[Base, ...]
    beside: tuple[Beside, ...]

    @property
    def judged(self) -> Iterator[Group]:
        return (group for group in self.groups if not group.is_aa)


def keys(table: pa.Table, names: Sequence[str]) -> list[Key]:
    """The values of these columns, row by row; caches are resident where nobody said otherwise."""
    columns = [
        pc.fill_null(table[name], RESIDENT).to_pylist() if name == "cache" else table[name].to_pylist()
        for name in names
    ]
    return list(zip(*columns, strict=True))


def agreement(before: pa.Table, after: pa.Table, threshold: float) -> Agreement:
    """Of the timed rows of two runs, kfbench.measure.schema.SCHEMA. threshold: of a ratio's change, .03 for 3 %."""
    matched = _match(_arms(before), _arms(after))
    groups = _groups(matched, threshold)
    return Agreement(
        groups=groups,
        arms=matched.arms,
        hosts=matched.hosts,
        resized=matched.resized,
        bases=_bases(matched, groups, threshold),
        beside=tuple(_beside(*name, pairs) for name, pairs in matched.of_two_hosts.items()),
    )


@dataclass(frozen=True, kw_only=True)
class _Matched:
    """The arms of two runs that can be compared, and how many cannot. pairs: A/A and others against their base.

    of_two_hosts: pairs that were measured on two hosts, by kind, operation and format."""

    pairs: Mapping[Name, Sequence[Pair]]
    bases: Mapping[What, Sequence[Pair]]
    of_two_hosts: Mapping[tuple[str, str, str], Sequence[Pair]]
    arms: tuple[int, int]
    hosts: Mapping[tuple[str, str], int]
    resized: int

    @property
    def judged(self) -> int:
        """Groups that get a verdict, for which chance has to be allowed."""
        return max(sum(not is_aa for is_aa, *_ in self.pairs), 1)


def _match(first: Mapping[Key, Row], second: Mapping[Key, Row]) -> _Matched:
    hosts: dict[tuple[str, str], int] = defaultdict(int)
    resized = 0
    pairs: dict[Name, list[Pair]] = defaultdict(list)
    bases: dict[What, list[Pair]] = defaultdict(list)
    of_two_hosts: dict[tuple[str, str, str], list[Pair]] = defaultdict(list)
    for key in [key for key in first if key in second]:  # in one order: resamples of cells depend on it
        there, here = first[key], second[key]
        if there["host"] != here["host"]:
            hosts[there["host"], here["host"]] += 1
            has_base = there["base"]["format"] == here["base"]["format"] == BASE_FORMAT
            if has_base and there["format"] in BESIDE and there["arm"] != AA and there["records"] == here["records"]:
                of_two_hosts[*_what(there), there["format"]].append((there, here))
        elif there["records"] != here["records"]:
            resized += 1
        elif there["base"] is there:
            bases[_what(there)].append((there, here))
        else:
            pairs[there["arm"] == AA, *_what(there), there["format"]].append((there, here))
    return _Matched(
        pairs=dict(sorted(pairs.items(), key=itemgetter(0))),
        bases=dict(sorted(bases.items())),
        of_two_hosts=dict(sorted(of_two_hosts.items())),
        arms=(len(first), len(second)),
        hosts=dict(sorted(hosts.items())),
        resized=resized,
    )


def _groups(matched: _Matched, threshold: float) -> tuple[Group, ...]:
    arms = max(sum(len(found) for (is_aa, *_), found in matched.pairs.items() if not is_aa), 1)
    cells = {
        name: sorted((_moved(*pair, arms, threshold) for pair in found), key=lambda each: each.change.median)
        for name, found in matched.pairs.items()
    }
    noise = _noise(cells)
    return tuple(
        Group(
            kind=name[1],
            operation=name[2],
            format=name[3],
            is_aa=name[0],
            cells=tuple(each),
            change=_of_all(each) if len(each) >= LEAST_CELLS else None,
            verdict=_verdict(each, matched.judged, threshold, noise.get(_what(each[0].row["base"]))),
        )
        for name, each in cells.items()
    )


def _beside(kind: str, operation: str, name: str, pairs: Sequence[Pair]) -> Beside:
    before, after = (float(np.median([_median_ratio(row) for row in rows])) for rows in zip(*pairs, strict=True))
    return Beside(kind, operation, name, len(pairs), before, after)


def _median_ratio(row: Row) -> float:
    """Return the median of `_ratio`, without its interval."""
    return float(np.median(_per_record_ns(row) / _per_record_ns(row["base"])))


def _moved(there: Row, here: Row, arms: int, threshold: float) -> Moved:
    """One of so many arms."""
    before, after = (_ratio(row) for row in (there, here))
    found = change(before, after)
    return Moved(there, before, after, found, verdict(together(found, arms), threshold))


def _bases(matched: _Matched, groups: Sequence[Group], threshold: float) -> tuple[Base, ...]:
    against: dict[What, dict[Name, Sequence[Pair]]] = defaultdict(dict)
    for group in groups:
        if group.verdict == "faster" and not group.is_aa:  # the base once more tells nothing from the machine's day
            name = group.is_aa, group.kind, group.operation, group.format
            pairs = matched.pairs[name]
            against[_what(pairs[0][0]["base"])][name] = pairs
    return tuple(_base(what, found, against[what], matched.judged, threshold) for what, found in matched.bases.items())


def _what(row: Row) -> What:
    return row["kind"], operation(row)


def _noise(cells: Mapping[Name, Sequence[Moved]]) -> dict[What, float]:
    """By the base's kind and operation: how far, as a logarithm, all but a few of its A/A arms moved at most."""
    found: dict[What, list[float]] = defaultdict(list)
    for (is_aa, *_), moved in cells.items():
        if is_aa:
            found[_what(moved[0].row["base"])] += [_distance(each) for each in moved]
    return {what: float(np.percentile(distances, USUAL, method="higher")) for what, distances in found.items()}


def _distance(each: Moved) -> float:
    return abs(log(each.change.median))


def _verdict(cells: Sequence[Moved], groups: int, threshold: float, noise: float | None) -> Verdict:
    """Of a group among `groups`. Single cells do not decide where there are several: between two runs of one code, some
    move far, in both directions. noise: see _noise; None: there is no A/A arm, and nothing to count cells by."""
    seen = Counter(each.verdict for each in cells)
    if len(cells) < LEAST_CELLS:
        return cells[0].verdict if len(seen) == 1 else "unclear"
    found = verdict(together(_of_all(cells), groups), threshold)
    if found in ("within", "unclear") and noise is not None:
        far = Counter(each.verdict for each in cells if _distance(each) > noise)
        ways: tuple[tuple[Verdict, Verdict], ...] = (("slower", "faster"), ("faster", "slower"))
        for one, other in ways:
            # As many of the one and as few of the other come by chance, if either is as likely, once in so many groups.
            if bdtrc(far[one] - 1, far[one] + far[other], 0.5) < OUTSIDE / 2 / groups:
                return one
    return found


def _base(
    what: What, pairs: Sequence[Pair], faster: Mapping[Name, Sequence[Pair]], groups: int, threshold: float
) -> Base:
    """faster: the arms that read faster against this base."""
    yardstick = _yardstick(pairs)
    unmoved = tuple(
        (name, words)
        for (_, _, words, name), each in faster.items()
        # Not those whose interval is too wide to tell: on a noisy day they have slowed down as well, if by less.
        if _own_verdict(each, yardstick, groups, threshold) == "within"
    )
    found = _own_verdict(pairs, yardstick, groups, threshold)
    return Base(
        kind=what[0],
        operation=what[1],
        formats=tuple(sorted({there["format"] for there, _ in pairs})),
        change=float(np.median([_took(here) / _took(there) for there, here in pairs])),
        yardstick=yardstick,
        unmoved=unmoved,
        verdict="unclear" if found == "slower" and not unmoved else found,
    )


def _yardstick(pairs: Sequence[Pair]) -> float | None:
    """By how much longer the yardstick took before the cells of the second run."""
    both = [[row["yardstick_ns"] for row in rows] for rows in zip(*pairs, strict=True)]
    before, after = ([ns for ns in run if ns is not None] for run in both)
    return float(np.median(after) / np.median(before)) if before and after else None


def _own_verdict(pairs: Sequence[Pair], yardstick: float | None, groups: int, threshold: float) -> Verdict:
    """Of what arms took themselves, the yardstick's change taken off."""
    before = [_took(there) * (yardstick or 1.0) for there, _ in pairs]
    after = [_took(here) for _, here in pairs]
    if len(pairs) < LEAST_CELLS:
        seen = {verdict(Estimate(to / of, to / of, to / of), threshold) for of, to in zip(before, after, strict=True)}
        return seen.pop() if len(seen) == 1 else "unclear"
    return verdict(together(Estimate(*paired_ratio(after, before)), groups), threshold)


def _took(row: Row) -> float:
    return float(np.median(_per_record_ns(row)))


def _of_all(cells: Sequence[Moved]) -> Estimate:
    """The change of the median cell."""
    return Estimate(*paired_ratio([each.after.median for each in cells], [each.before.median for each in cells]))


def _ratio(row: Row) -> Estimate:
    return Estimate(*paired_ratio(_per_record_ns(row), _per_record_ns(row["base"])))


def operation(row: Mapping[str, Any]) -> str:
    """encode; convert to v1; encode, cold."""
    words = row["operation"] + (f" to {row['to_format']}" if row["to_format"] else "")
    return words if row["cache"] in (None, RESIDENT) else f"{words}, {row['cache']}"


def _arms(table: pa.Table) -> dict[Key, Row]:
    """Every arm once, with the row of its base in `base`; arms without a base are left out."""
    timed = table.filter(pc.and_(pc.equal(table["status"], "ok"), pc.is_valid(table["arm"])))
    rows = dict(zip(keys(timed, ARM), timed.to_pylist(), strict=True))
    together: dict[Key, list[Row]] = defaultdict(list)
    for row in rows.values():
        names = ROUNDS_PREFIX if row["kind"] == "prefix" else ROUNDS
        together[tuple(row[name] for name in names)].append(row)
    for arms in together.values():
        again = next((row for row in arms if row["arm"] == AA), None)
        for row in arms:
            is_base = again and row["arm"] != AA and (row["format"], row["operation"]) == _named(again)
            if is_base:
                for each in arms:
                    each["base"] = row
    return {key: row for key, row in rows.items() if "base" in row}


def _named(row: Row) -> tuple[str, str]:
    return row["format"], row["operation"]


def _per_record_ns(row: Row) -> np.ndarray:
    found: np.ndarray = np.asarray(row["cpu_ns"], np.float64) / row["inner_loops"] / row["records"]
    return found
