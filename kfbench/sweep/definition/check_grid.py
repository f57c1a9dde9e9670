"""Check one [[grid]] block of a sweep: names are known, lists are not empty, and keys do not contradict each other."""

from collections.abc import Iterator
from itertools import chain
from math import prod
from typing import Final, NamedTuple

from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.cpu import OPERATIONS, READINGS
from kfbench.measure.paths import PATHS
from kfbench.measure.prefix import has_prefix
from kfbench.sweep.definition.points import named_workloads
from kfbench.sweep.definition.rival_kinds import names_of, rival_problems
from kfbench.sweep.definition.sweep_file import DictionarySettings, Grid, Kind, ModelSettings, check_settings
from kfbench.workloads import BLOCK_RECORDS, WORKLOADS
from kfbench.workloads.recorded.topics import TOPICS

DICTIONARY_KINDS: Final = frozenset({"dictionary", "dictionary-cpu"})
MAX_CELLS: Final = 100_000  # per block: checking them takes 20 s, measuring them an hour or more


class CodecLevel(NamedTuple):
    """A codec and its level. level: None if the codec has no levels."""

    codec: str
    level: int | None


class PathTarget(NamedTuple):
    """A broker path and the format that it converts to; None if it does not convert."""

    path: str
    to: str | None


def check_grid(where: str, grid: Grid, model: ModelSettings, dictionary: DictionarySettings) -> list[CodecLevel]:
    """Check a [[grid]] block and return its codecs, each with each of its levels. Raises InvalidConfig.

    Args:
        where: the file and the block, for messages.
        model, dictionary: the settings that the block uses, its own or those of its file.
    """
    for problem in chain(
        _format_problems(grid), _path_problems(grid), _kind_problems(grid), _workload_problems(grid),
        _dictionary_problems(grid, dictionary.preceded_by), rival_problems(grid),
    ):  # fmt: skip
        raise InvalidConfig(f"{where}: {problem}")
    check_settings(where, grid, ("bytes", "cpu", "model", "dictionary", "rivals", "instructions"))
    if negative := [seed for seed in grid.seeds if seed < 0]:
        raise InvalidConfig(f"{where}: seeds: {negative[0]} is negative")
    codecs = _codec_levels(where, grid)
    kinds = len(set(grid.measure) - {"broker", "model", "floor", "instructions"})
    kinds += sum(len(targets(grid, kind)) for kind in ("broker", "instructions") if kind in grid.measure)
    bases = len(named_workloads(f"{where}: workloads", grid.workloads)) or 1
    points = bases * prod(map(len, grid.axes.values()))
    slices = -(-model.records // max(model.cell_records, BLOCK_RECORDS)) if "model" in grid.measure else 0
    cells = points * (kinds * len(codecs) + slices + ("floor" in grid.measure)) * max(len(set(grid.seeds)), 1)
    if cells > MAX_CELLS:
        raise InvalidConfig(f"{where}: axes: {cells:,} cells, but a block may have {MAX_CELLS:,}: use fewer levels")
    return codecs


def targets(grid: Grid, kind: Kind) -> list[PathTarget]:
    """Return what a kind measures by name, without duplicates: broker paths, for "instructions" also operations.

    A path that converts appears once per target format. Other kinds have one target without a name.
    """
    if kind not in ("broker", "instructions"):
        return [PathTarget("", None)]
    counted = OPERATIONS if grid.operations is None else grid.operations
    operations = dict.fromkeys(counted if kind == "instructions" else ())
    return [PathTarget(operation, None) for operation in operations] + [
        PathTarget(path, to)
        for path in dict.fromkeys(grid.paths)
        for to in (dict.fromkeys(grid.to) if PATHS[path].converts else (None,))
    ]


def _unknown_format(key: str, name: str) -> str:
    return f"{key}: no format {name!r} (formats: {', '.join(FORMATS)})"


def _format_problems(grid: Grid) -> Iterator[str]:
    for key in ("measure", "formats"):
        if not getattr(grid, key):
            yield f"{key}: empty"
    for name in grid.formats:
        for kind in grid.measure:
            if name not in (known := names_of(kind)):
                yield (
                    f"formats: no format {name!r} in {kind} cells (formats: {', '.join(known)})"
                    if (known != tuple(FORMATS))
                    else _unknown_format("formats", name)
                )
        if grid.formats.count(name) > 1:
            yield f"formats: {name!r} is listed twice"


def _path_problems(grid: Grid) -> Iterator[str]:
    if "broker" in grid.measure and not grid.paths:
        yield 'paths: measure = ["broker"] needs paths'
    if grid.paths and not {"broker", "instructions"} & set(grid.measure):
        yield 'paths: they need measure = ["broker"] or ["instructions"]'
    if "instructions" in grid.measure and grid.operations == () and not grid.paths:
        yield 'operations: measure = ["instructions"] needs operations or paths'
    if "instructions" not in grid.measure and grid.operations is not None:
        yield 'operations: they need measure = ["instructions"]'
    for path in grid.paths:
        if path not in PATHS:
            yield f"paths: no path {path!r} (paths: {', '.join(PATHS)})"
    converting = [path for path in grid.paths if path in PATHS and PATHS[path].converts]
    if bool(converting) != bool(grid.to):
        yield "to: " + (f"{converting[0]} needs formats" if converting else "no path converts")
    for name in grid.to:
        if name not in FORMATS:
            yield _unknown_format("to", name)
        if grid.formats == [name]:
            yield f"to: {name} is the only format of the block, so there is nothing to convert"


def _kind_problems(grid: Grid) -> Iterator[str]:
    formats, measured = [(name, FORMATS[name]) for name in grid.formats if name in FORMATS], set(grid.measure)
    without_codec = set(grid.codecs) == {"none"}
    if "model" in measured:
        if not without_codec:
            yield "codecs: the size model has no payload to compress"
        if unsized := [name for name, fmt in formats if not fmt.capabilities.sizes_from_shapes]:
            yield f"formats: sizes of {unsized[0]} depend on the contents of headers, which the size model has not"
    if "prefix" in measured:
        if without := [name for name, fmt in formats if not has_prefix(fmt)]:
            yield f"formats: {without[0]} does not store headers first, so it has no prefix to read"
        if "none" in grid.codecs:
            yield "codecs.none: prefix cells need a codec: they compare how much is decompressed"
    for kind in sorted(measured & DICTIONARY_KINDS):
        if others := grid.codecs.keys() - {"zstd"}:
            yield f"codecs.{min(others)}: {kind} cells need zstd, the only codec with dictionaries"
        if without := [name for name, fmt in formats if not fmt.capabilities.dictionaries]:
            yield f"formats: {without[0]} has no dictionaries"
    for timed in ("cpu", *READINGS):
        if timed in measured and BASE_FORMAT not in grid.formats:
            yield f"formats: {timed} cells need {BASE_FORMAT}, the base of every ratio"
    if "record" in measured and not without_codec:
        yield "codecs: record cells take no codec: a codec cannot decompress one record alone"


def _workload_problems(grid: Grid) -> Iterator[str]:
    if grid.workload not in WORKLOADS:
        yield f"workload: no {grid.workload!r} (workloads: {', '.join(WORKLOADS)})"
    if grid.workloads and grid.workload != "grid":
        yield "workloads: they replace workload: give only one of the two"
    if grid.workloads and (others := grid.axes.keys() - {"batch_size"}):
        yield f"axes: named workloads have no {min(others)!r} (axes: batch_size)"


def _dictionary_problems(grid: Grid, before: str) -> Iterator[str]:
    """Find problems of the setting `preceded_by`. before: its value."""
    if not before or not DICTIONARY_KINDS & set(grid.measure):
        return
    for name in (before, *(grid.workloads or [grid.workload])):
        if name not in TOPICS or TOPICS[name].batch_size is None:
            yield f"dictionary.preceded_by: {name!r} is no name of lines or public data (lines-*, public-*)"
    if before in grid.workloads:
        yield f"dictionary.preceded_by: {before} cannot precede itself"


def _codec_levels(where: str, grid: Grid) -> list[CodecLevel]:
    codecs: dict[CodecLevel, None] = {}
    for codec, levels in grid.codecs.items():
        try:
            if codec not in CODECS:
                raise IllegalCombination(f"no codec {codec!r} (codecs: {', '.join(CODECS)})")
            wanted: list[int | None] = [*levels] or [None]
            codecs |= dict.fromkeys(CodecLevel(codec, CODECS[codec].check_level(level)) for level in wanted)
            if grid.illegal == "refuse":
                for name in FORMATS.keys() & {*grid.formats, *grid.to}:
                    FORMATS[name].check_codec(codec)
        except IllegalCombination as error:
            raise InvalidConfig(f"{where}: codecs.{codec}: {error}") from None
    return list(codecs)
