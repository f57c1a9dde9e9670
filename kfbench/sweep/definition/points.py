"""List the workloads of a [[grid]] block: a workload family or named workloads, at each combination of axis levels."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from kfbench.errors import InvalidConfig
from kfbench.layouts import NULL_LENGTH
from kfbench.measure.cell import axes_of
from kfbench.sweep.definition.sweep_file import Grid, check_level
from kfbench.workloads import WORKLOADS, NoSuchPoint, Workload
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.recorded.topics import TOPICS, RecordedTopic


def points(where: str, grid: Grid) -> Iterator[Workload]:
    """Yield one workload per combination of the block's axis levels. Raises InvalidConfig.

    Combinations without a meaning are left out: a timestamp spread with one record per batch, or a null share where all
    values are null. where: the file and the [[grid]] block, for messages.
    """
    bases: list[Workload] = [*named_workloads(f"{where}: workloads", grid.workloads)] or [WORKLOADS[grid.workload]]
    known = axes_of(bases[0])
    for axis, levels in grid.axes.items():
        if axis not in known:
            raise InvalidConfig(f"{where}: axes: {grid.workload} has no axis {axis!r} (axes: {', '.join(known)})")
        if not levels:
            raise InvalidConfig(f"{where}: axes.{axis}: empty")
        for level in levels:
            if level != "null" or not axis.endswith("_bytes"):
                check_level(f"{where}: axes.{axis}", known[axis], level)
    for base, point in product(bases, [*product(*grid.axes.values())]):
        try:
            yield _at(base, dict(zip(grid.axes, point, strict=True)))
        except NoSuchPoint:
            continue
        except InvalidConfig as error:
            raise InvalidConfig(f"{where}: axes.{error}") from None


def named_workloads(where: str, patterns: Iterable[str]) -> list[NamedWorkload | RecordedTopic]:
    """Return the named workloads that match the patterns of a key `workloads`, without duplicates.

    A pattern that matches none may match recorded topics, such as "lines-*".

    Raises InvalidConfig for a pattern without a match. where: the place of the key, for messages.
    """
    matching: dict[NamedWorkload | RecordedTopic, None] = {}
    for pattern in patterns:
        name, _, variant = pattern.partition("/")
        named = [each for each in CATALOGUE.values() if fnmatchcase(each.name, name)]
        if not named and not variant:
            topics = [each for each in TOPICS.values() if fnmatchcase(each.name, name)]
            matching |= dict.fromkeys(topics)
            if topics:
                continue
        if not named and pattern.endswith(".json"):
            raise InvalidConfig(
                f"{where}: {pattern}: a fingerprint is no workload any more: "
                "name a workload that is like its topic (kfbench workloads)"
            )
        if not named:
            raise InvalidConfig(f"{where}: no {name!r} in the catalogue ({', '.join(CATALOGUE)})")
        if variant:
            known = [replace(each, variant=other) for each in named for other in each.variants]
            named = [each for each in known if fnmatchcase(each.variant, variant)]
            if not named:
                variants = ", ".join(dict.fromkeys(each.variant for each in known))
                raise InvalidConfig(f"{where}: {name} has no variant {variant!r} (variants: {variants})")
        matching |= dict.fromkeys(named)
    return list(matching)


def _at(base: Workload, axes: Mapping[str, Any]) -> Workload:
    given = {
        axis: NULL_LENGTH if level == "null" and axis.endswith("_bytes") else level for axis, level in axes.items()
    }
    assert is_dataclass(base)
    return replace(base, **given)
