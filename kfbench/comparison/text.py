"""A comparison of two runs as text for a terminal. A is the first run, B the second."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from kfbench.comparison.agreement import ArmChange, ArmGroup
from kfbench.comparison.compare import ChangedValue, Comparison, LoneCell, Value, about, filled_columns
from kfbench.comparison.timed_arms import operation_words
from kfbench.measure.columns import StoredRow
from kfbench.measure.kinds import KINDS
from kfbench.present.names import GRID, REFERENCE, batch_words, codec_words, level
from kfbench.present.table import Cell, Table, listed, number, plain_columns
from kfbench.text import cut, percent

SHOWN: Final = 20  # the largest number of slower cells that are shown; --json has all
LONGEST: Final = 60
_WORDS: Final = {  # the axes in the text of `setting`, in this order
    "batch_size": "",
    "key_bytes": "{}-byte keys",
    "value_bytes": "{}-byte values",
    "timestamp_spread_ms": "{} ms timestamp spread",
    "headers": "{} headers per record",
}


def comparison_text(found: Comparison) -> str:
    """Return the facts, the tables and, in the last lines, the verdict."""
    return "\n\n".join([*_paragraphs(found), "\n".join(_verdict(found))])


def _paragraphs(found: Comparison) -> Iterator[str]:
    yield "\n".join(f"{name}  {_about(about(run))}" for name, run in zip("AB", found.runs, strict=True))
    noise = {name: run.manifest.get("noise") or {} for name, run in zip("AB", found.runs, strict=True)}
    if noisy := [f"{name} is noisy: {seen}" for name, each in noise.items() for seen in each.get("seen", [])]:
        yield "\n".join(noisy)
    if found.facts:
        facts = [f"  {fact.name}: {_words(fact.before)} -> {_words(fact.after)}" for fact in found.facts]
        yield "\n".join(["A and B also differ in", *facts])
    yield "\n".join(_exact(found))
    if found.changed:
        yield _changes(found.changed).to_text()
    if any(found.lone):
        yield _lone_cells(found.lone).to_text()
    if hosts := found.cpu.matched.hosts:
        pairs = [f"{a} in A and {b} in B ({number(arms)} arms)" for (a, b), arms in sorted(hosts.items())]
        yield f"CPU times of two hosts are not compared: {listed(pairs)}."
        if found.cpu.host_ratios:
            yield Table(
                name="host-ratios",
                caption="CPU on two hosts: ratio to v2 on each, the median cell, not judged",
                columns=(*plain_columns("kind", "operation", "format", "cells"), *plain_columns("A", "B", digits=3)),
                rows=tuple(tuple(each) for each in found.cpu.host_ratios),
            ).to_text()
    if found.cpu.groups:
        yield _operations(found).to_text()
        yield _formats(found).to_text()
    if found.slower_cells:
        yield _slower(found).to_text()


def _about(run: dict[str, Any]) -> str:
    revision = (run["git_revision"] or "unknown")[:12]
    return f"{run['path']}: {run['profile']}, {run['started'][:16]}, revision {revision}, {listed(run['hosts'] or [])}"


def _exact(found: Comparison) -> Iterator[str]:
    rows = {repr(each.row) for each in found.changed}
    if rows:
        yield f"Exact columns: {number(len(found.changed))} values of {number(len(rows))} rows are not the same."
    else:
        yield f"Exact columns: the same in all {number(found.rows)} rows that both have."
    if found.mended:
        yield f"{number(len(found.mended))} rows are numbers in B and were errors in A."
    if found.resized:
        yield f"{number(found.resized)} rows have another number of records in B and are not compared."


def _changes(changed: Sequence[ChangedValue]) -> Table:
    """Return a table of changed values with one row per block of the sweep's definition and column.

    A table row shows the measured row whose value changed most.
    """
    groups: dict[tuple[str, str, str], list[ChangedValue]] = defaultdict(list)
    for each in changed:
        groups[each.row.kind, each.row.grid, each.column].append(each)

    def line(name: tuple[str, str, str], each: list[ChangedValue]) -> tuple[Cell, ...]:
        most = max(each, key=_distance)
        values = _differing_parts([most.before, most.after])
        cells = (each if each is None or isinstance(each, int | float) else _words(each) for each in values)
        return (*name, len(each), cell_words(most.row), most.row.format, _arm(most.row), *cells)

    names = ("kind", "block", "column", "rows", "the row that changed most", "format", "codec, operation", "A", "B")
    return Table(
        name="changed",
        caption="Exact columns that changed",
        columns=plain_columns(*names),
        rows=tuple(line(name, each) for name, each in sorted(groups.items())),
    )


def _distance(each: ChangedValue) -> float:
    """Return the size of the change divided by the first value; 1 unless both values are integers."""
    if isinstance(each.before, int) and isinstance(each.after, int):
        return abs(each.after - each.before) / max(abs(each.before), 1)
    return 1.0


def _differing_parts(values: list[Value]) -> list[Value]:
    """Return two values of a column. If both are JSON objects, only their differing entries are returned."""
    texts = [value for value in values if isinstance(value, str) and value.startswith("{")]
    if len(texts) < 2:
        return values
    one, other = (msgspec.json.decode(text, type=dict[str, int]) for text in texts)
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    return [", ".join(f"{name} {counts.get(name, 0)}" for name in names) for counts in (one, other)]


def _words(value: Any) -> str:
    return "none" if value is None else cut(str(value), LONGEST)


def cell_words(row: StoredRow) -> str:
    """Return the workload of a row; for a row of the grid, its settings."""
    if row.workload != GRID:
        return f"{row.workload} ({row.variant})" if row.variant else row.workload
    return setting(filled_columns(row))


def _arm(row: StoredRow) -> str:
    codec = codec_words(row.codec, row.level)
    return f"{codec}, {operation_words(row)}" if row.operation else codec


def _lone_cells(lone: tuple[Sequence[LoneCell], Sequence[LoneCell]]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for run, cells in zip("AB", lone, strict=True):
        blocks: dict[tuple[str, str], list[LoneCell]] = defaultdict(list)
        for each in cells:
            blocks[each.row.kind, each.row.grid].append(each)
        for name, found in sorted(blocks.items()):
            formats = {name for each in found for name in each.formats}
            one = f"{cell_words(found[0].row)}; {_arm(found[0].row)}"
            lines.append((run, *name, len(found), sum(each.rows for each in found), len(formats), one))
    names = ("only in", "kind", "block", "cells", "rows", "formats", "one of them")
    return Table(
        name="lone",
        caption="Cells of only one run (--json lists all)",
        columns=plain_columns(*names),
        rows=tuple(lines),
    )


def _operations(found: Comparison) -> Table:
    """Return a table with one row per kind and operation, for all formats together.

    It also shows the A/A arms, which time the base a second time.
    """
    judged: dict[tuple[str, str], list[ArmGroup]] = defaultdict(list)
    for group in found.cpu.judged:
        judged[group.kind, group.operation].append(group)
    aa = {(group.kind, group.operation): group for group in found.cpu.groups if group.is_aa}
    bases = {(base.kind, base.operation): base for base in found.cpu.bases}

    def line(name: tuple[str, str], groups: list[ArmGroup]) -> tuple[Cell, ...]:
        arms = [each for group in groups for each in group.cells]
        differences = [100 * each.difference for each in arms]
        counts = [sum(each.verdict == kind for each in arms) for kind in ("slower", "faster", "unclear")]
        noise = 100 * aa[name].median_difference if name in aa else None
        median, most = (float(each) for each in np.percentile(differences, [50, 95]))
        base = bases.get(name)
        base_change = (base.change, base.yardstick) if base else (None, None)
        return (*name, len(arms), *counts, median, most, noise, *base_change)

    resized = found.cpu.matched.resized
    columns = (
        *plain_columns("kind", "operation", "arms", "slower", "faster", "unclear"),
        *plain_columns("median |B/A − 1| (%)", "95 of 100 within (%)", "A/A median (%)"),
        *plain_columns("base itself, B/A", "yardstick, B/A", digits=3),
    )
    return Table(
        name="operations",
        caption="CPU: how far ratios to the base moved; slower and faster ones are beyond "
        + percent(found.threshold, digits=None),
        columns=columns,
        rows=tuple(line(name, groups) for name, groups in sorted(judged.items())),
        notes=(f"{number(resized)} arms of another number of records in B are left out.",) if resized else (),
    )


def _formats(found: Comparison) -> Table:
    """Return a table with one row per format and operation.

    It has all rows of headline kinds, such as cpu; other rows only if their verdict is "slower" or "faster".
    """
    headline = {name for name, kind in KINDS.items() if kind.is_headline}
    groups = [each for each in found.cpu.judged if each.kind in headline or each.verdict in ("slower", "faster")]
    return Table(
        name="formats",
        caption="CPU: ratio to the base by format, the median cell",
        columns=(
            *plain_columns("kind", "operation", "format", "cells", "slower", "faster"),
            *plain_columns("A", "B", "B / A", digits=3),
            *plain_columns("median |B/A − 1| (%)", "verdict"),
        ),
        rows=tuple(map(_line, groups)),
    )


def _line(group: ArmGroup) -> tuple[Cell, ...]:
    ratios = group.median_before, group.median_after, group.change
    counts = (sum(each.verdict == kind for each in group.cells) for kind in ("slower", "faster"))
    where = group.kind, group.operation, group.format, len(group.cells)
    return (*where, *counts, *ratios, 100 * group.median_difference, group.verdict)


def _slower(found: Comparison) -> Table:
    arms = found.slower_cells

    def line(each: ArmChange) -> tuple[Cell, ...]:
        return (cell_words(each.row), _arm(each.row), each.row.format, each.before, each.after, each.change)

    return Table(
        name="slower",
        caption=f"Cells slower by more than {percent(found.threshold, None)}, {min(len(arms), SHOWN)} of {len(arms)}",
        columns=(*plain_columns("cell", "codec, operation", "format"), *plain_columns("A", "B", "B / A", digits=3)),
        rows=tuple(map(line, arms[:SHOWN])),
    )


def _verdict(found: Comparison) -> Iterator[str]:
    if not found.is_regression:
        yield "No regression." if found.cpu_left_out is None else "No regression in the exact columns."
    if found.changed:
        yield "Regression: exact columns are not the same."
    if found.missing:
        yield f"Regression: {number(len(found.missing))} cells, or some of their formats, are missing in B."
    if groups := found.slower_groups:
        names = listed([f"{each.format} ({each.operation})" for each in groups])
        yield f"Regression: slower by more than {percent(found.threshold, None)}: {names}."
    for base in found.slower_bases:
        yardstick = "" if base.yardstick is None else f" (the host's yardstick {base.yardstick:.3f})"
        others = listed([f"{name} ({operation})" for name, operation in base.unmoved])
        yield (
            f"Regression: the base itself is slower: {listed(base.formats)} ({base.operation}) took {base.change:.3f} "
            f"times as long{yardstick}. Against it {others} read faster, although they took as long as before."
        )
    if found.cpu_left_out is not None:
        yield f"CPU was not compared: {found.cpu_left_out}."


def setting(point: Mapping[str, Any]) -> str:
    """Return a description of a point, for example: 100 records per batch, 16-byte keys."""
    words = []
    for axis, pattern in _WORDS.items():
        value = point.get(axis)
        if value is None or (axis == "headers" and value == 0):
            continue
        if axis == "batch_size":
            words.append(batch_words(value))
        elif axis == "timestamp_spread_ms" and value == 0:
            words.append("equal timestamps")
        elif (shown := level(axis, value)) == "null":
            words.append(pattern.replace("-byte", "").format("null"))
        else:
            words.append(pattern.format(number(shown)))
    payload = point.get("payload", REFERENCE["payload"])
    if payload != REFERENCE["payload"]:
        words.append(f"{payload} payload")
    return ", ".join(words)
