"""One [[grid]] block of a sweep: check it, and list its workloads.

Names must be known, lists must not be empty, and keys must not contradict each other. The workloads are a family or
named workloads, at each combination of axis levels.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain, product
from math import prod
from typing import Any, Final

from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.layouts import NULL_LENGTH
from kfbench.measure.cell import axes_of
from kfbench.measure.kinds import KINDS
from kfbench.measure.kinds.base import CodecLevel, Kind
from kfbench.measure.paths import PATHS
from kfbench.plugins import hint_of
from kfbench.sweep.definition.sweep_file import Grid, SweepFile, check_level, check_settings, settings_of
from kfbench.workloads import WORKLOADS, NoSuchPoint, Workload
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.recorded import TOPICS, RecordedTopic

MAX_CELLS: Final = 100_000  # per block: checking them takes 20 s, measuring them an hour or more


def check_grid(where: str, grid: Grid, file: SweepFile) -> list[CodecLevel]:
    """Check a [[grid]] block and return its codecs, each with each of its levels. Raises InvalidConfig.

    where: the file and the block, for messages. file: the block's file, for settings that it does not have.
    """
    if not grid.measure:
        raise InvalidConfig(f"{where}: measure: empty")
    if unknown := [name for name in grid.measure if name not in KINDS]:
        raise InvalidConfig(f"{where}: measure: {_unknown('kind', unknown[0], KINDS)}")
    kinds = [KINDS[name] for name in dict.fromkeys(grid.measure)]
    of_kinds = (problem for kind in kinds for problem in kind.problems(grid, settings_of(kind, grid, file)))
    problems = _format_problems(grid, kinds), _path_problems(grid, kinds), of_kinds, _workload_problems(grid)
    for problem in chain(*problems):
        raise InvalidConfig(f"{where}: {problem}")
    check_settings(where, grid)
    if negative := [seed for seed in grid.seeds if seed < 0]:
        raise InvalidConfig(f"{where}: seeds: {negative[0]} is negative")
    codecs = _codec_levels(where, grid)
    bases = len(named_workloads(f"{where}: workloads", grid.workloads)) or 1
    points = bases * prod(map(len, grid.axes.values())) * max(len(set(grid.seeds)), 1)
    cells = points * sum(kind.cells_per_point(grid, settings_of(kind, grid, file), len(codecs)) for kind in kinds)
    if cells > MAX_CELLS:
        raise InvalidConfig(f"{where}: axes: {cells:,} cells, but a block may have {MAX_CELLS:,}: use fewer levels")
    return codecs


def _unknown(what: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return what is wrong with a name, the nearest right one, and who may have more. where: where it is wrong."""
    known = list(known)
    hint = hint_of(name, known)
    return f"no {what} {name!r}{where} ({what}s: {', '.join(known)}{f'; {hint}' if hint else ''})"


def _format_problems(grid: Grid, kinds: Sequence[Kind]) -> Iterator[str]:
    if not grid.formats:
        yield "formats: empty"
    for name in grid.formats:
        for kind in kinds:
            if name not in (known := kind.names()):
                of_kind = "" if tuple(known) == tuple(FORMATS) else f" in {kind.name} cells"
                yield f"formats: {_unknown('format', name, known, of_kind)}"
        if grid.formats.count(name) > 1:
            yield f"formats: {name!r} is listed twice"
    for kind in kinds:
        if kind.needs_base and BASE_FORMAT not in grid.formats:
            yield f"formats: {kind.name} cells need {BASE_FORMAT}, the base of every ratio"


def _path_problems(grid: Grid, kinds: Sequence[Kind]) -> Iterator[str]:
    if grid.paths and not any(kind.has_targets for kind in kinds):
        yield f"paths: they need measure = {_any_of(kind for kind in KINDS.values() if kind.has_targets)}"
    if grid.operations is not None and not any(kind.counts_operations for kind in kinds):
        yield f"operations: they need measure = {_any_of(kind for kind in KINDS.values() if kind.counts_operations)}"
    for path in grid.paths:
        if path not in PATHS:
            yield f"paths: {_unknown('path', path, PATHS)}"
    converting = [path for path in grid.paths if path in PATHS and PATHS[path].converts]
    if bool(converting) != bool(grid.to):
        yield "to: " + (f"{converting[0]} needs formats" if converting else "no path converts")
    for name in grid.to:
        if name not in FORMATS:
            yield f"to: {_unknown('format', name, FORMATS)}"
        if grid.formats == [name]:
            yield f"to: {name} is the only format of the block, so there is nothing to convert"


def _any_of(kinds: Iterable[Kind]) -> str:
    return " or ".join(f'["{kind.name}"]' for kind in kinds)


def _workload_problems(grid: Grid) -> Iterator[str]:
    if grid.workload not in WORKLOADS:
        yield f"workload: no {grid.workload!r} (workloads: {', '.join(WORKLOADS)})"
    if grid.workloads and grid.workload != "grid":
        yield "workloads: they replace workload: give only one of the two"
    if grid.workloads and (others := grid.axes.keys() - {"batch_size"}):
        yield f"axes: named workloads have no {min(others)!r} (axes: batch_size)"


def _codec_levels(where: str, grid: Grid) -> list[CodecLevel]:
    codecs: dict[CodecLevel, None] = {}
    for codec, levels in grid.codecs.items():
        try:
            if codec not in CODECS:
                raise IllegalCombination(_unknown("codec", codec, CODECS))
            wanted: list[int | None] = [*levels] or [None]
            codecs |= dict.fromkeys(CodecLevel(codec, CODECS[codec].check_level(level)) for level in wanted)
            if grid.illegal == "refuse":
                for name in FORMATS.keys() & {*grid.formats, *grid.to}:
                    FORMATS[name].check_codec(codec)
        except IllegalCombination as error:
            raise InvalidConfig(f"{where}: codecs.{codec}: {error}") from None
    return list(codecs)


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
