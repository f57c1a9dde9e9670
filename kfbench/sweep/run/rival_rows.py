"""Measure one cell of a kind with rivals. A rival that fails, or is not installed, gets rows with the reason.

Measuring is done in a child process (see `child`). A library that ends it gives rows with this error.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from typing import Final

from kfbench.errors import IllegalCombination
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.bytes import measure_size
from kfbench.measure.child import LibraryEnded, call_in_child
from kfbench.measure.noise import counted_since, host_counters, yardstick_ns
from kfbench.measure.rivals import measure_rival
from kfbench.measure.rivals_cpu import CLOCK_NAME, EACH, RIVAL_OPERATIONS, RivalInput, Timing, time_rivals
from kfbench.measure.schema import Row
from kfbench.rivals import Rival, missing, rivals
from kfbench.sweep.definition.cell import Cell
from kfbench.sweep.definition.legality import illegal
from kfbench.sweep.run.cell_rows import encode_input, error_text, failed, parts_of, sample_of, skipped, times_of

INSTALL: Final = "pip install 'kfbench[rivals]'"


def missing_note(names: Iterable[str]) -> str | None:
    """Return a line about the arms with these names that are not installed here; None: there are none."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return None  # without an import of the libraries, which takes time in each sweep
    if found := [name for name in wanted if name in missing()]:
        return f"not installed: {', '.join(found)} (skipped rows); to install: {INSTALL}"
    return None


def _with_codecs(rows_of: Callable[[Cell], Iterable[Row]]) -> Callable[[Cell], Iterator[Row]]:
    """Add the codec's version and level of a rival's library. Those of the cell are kfbench's."""

    @wraps(rows_of)
    def rows(cell: Cell) -> Iterator[Row]:
        for row in rows_of(cell):
            name = row["format"]
            yield row if name in FORMATS else row | _codec_of(cell, name)

    return rows


def _codec_of(cell: Cell, name: str) -> Row:
    rival = rivals().get(name)
    return {
        "codec_version": rival.codec_version(cell.codec) if rival else None,
        "library_level": rival.library_level(cell.codec, cell.level) if rival else None,
    }


@_with_codecs
def rival_rows(cell: Cell) -> Iterator[Row]:
    """Measure the sizes of opaque payload: each rival, and Kafka's formats on the same records."""
    for name in cell.formats:
        if name in FORMATS:
            yield _format_row_in_child(cell, name)
        elif name in missing():
            yield skipped(name, missing()[name])
        else:
            rival = rivals()[name]
            try:
                yield call_in_child(_rival_row, cell, rival)
            except LibraryEnded as error:
                yield {"arm": rival.setting} | failed(cell, name, str(error))


def _format_row_in_child(cell: Cell, name: str) -> Row:
    """Measure a format of Kafka's. If the child ends, an earlier call of a library did it, so a new child measures."""
    try:
        return call_in_child(_format_row, cell, name)
    except LibraryEnded:
        return call_in_child(_format_row, cell, name)


def _format_row(cell: Cell, name: str) -> Row:
    try:
        sample = sample_of(cell)
        if reason := illegal(name, sample, cell.codec):
            return skipped(name, reason)
        return {"format": name, "status": "ok"} | measure_size(FORMATS[name], encode_input(cell, sample))
    except Exception as error:
        return failed(cell, name, error)


def _rival_row(cell: Cell, rival: Rival) -> Row:
    common: Row = {"arm": rival.setting}
    try:
        row = measure_rival(rival, encode_input(cell, sample_of(cell)))
    except IllegalCombination as error:
        return common | skipped(rival.name, error_text(error))
    except Exception as error:
        return common | failed(cell, rival.name, error)
    return common | {"format": rival.name, "status": "ok"} | row


@_with_codecs
def rival_cpu_rows(cell: Cell) -> Iterator[Row]:
    """Time the operations of rivals and of Kafka's formats on the same batches. The base is v2, once per batch.

    All arms share their rounds in the child process. If a library ends it, each rival is tried alone. Those that end
    their process get rows with this error, and the others are timed.
    """
    absent = missing()
    for name in cell.formats:
        if name in absent:
            yield from (skipped(name, absent[name]) | part for part in parts_of(cell))
    here = [name for name in cell.formats if name not in absent]
    try:
        yield from _timed_in_child(cell, here)
    except LibraryEnded:
        ended = {name: error for name in here if name in rivals() and (error := _ending_alone(cell, name))}
        yield from (failed(cell, name, error) | part for name, error in ended.items() for part in parts_of(cell))
        yield from _timed_in_child(cell, [name for name in here if name not in ended])


def _timed_in_child(cell: Cell, names: Sequence[str]) -> list[Row]:
    return call_in_child(_watched_rows, cell, names, [rivals()[name] for name in names if name in rivals()])


def _ending_alone(cell: Cell, name: str) -> str | None:
    """Return how a rival ends its process when it is measured alone, with v2; None: it does not."""
    try:
        _timed_in_child(cell, [BASE_FORMAT, name])
    except LibraryEnded as error:
        return str(error)
    return None


def _watched_rows(cell: Cell, names: Sequence[str], arms: Sequence[Rival]) -> list[Row]:
    """Return the rows of a CPU cell with the noise of this process's host: the parent's own CPU time is another's."""
    yardstick, before = {"yardstick_ns": yardstick_ns()}, host_counters()
    rows = list(_cpu_rows(cell, names, arms))
    watched = yardstick | counted_since(before)
    return [watched | row for row in rows]


def _cpu_rows(cell: Cell, names: Sequence[str], rivals: Sequence[Rival]) -> Iterator[Row]:
    try:
        sample = sample_of(cell)
        source = encode_input(cell, sample)
        legal = []
        for name in (each for each in names if each in FORMATS):
            if why := illegal(name, sample, cell.codec):
                yield from (skipped(name, why) | part for part in parts_of(cell))
            else:
                legal.append(name)
        given = RivalInput([FORMATS[name] for name in legal], rivals, source)
    except Exception as error:
        yield from (failed(cell, name, error) | part for name in names for part in parts_of(cell))
        return
    for name, reason in given.failed.items():
        is_illegal = isinstance(reason, IllegalCombination)
        row = skipped(name, error_text(reason)) if is_illegal else failed(cell, name, reason)
        yield from (row | part for part in parts_of(cell))
    timing = Timing(rounds=cell.rounds, sample_ns=cell.sample_us * 1_000)
    for operation in RIVAL_OPERATIONS:
        try:
            arms = time_rivals(given, operation, timing)
        except Exception as error:
            left = [name for name in names if name not in given.failed]
            yield from (failed(cell, name, error) | {"arm": EACH, "operation": operation} for name in left)
            continue
        for arm in arms:
            row = {"format": arm.columns["format"], "batches": cell.batches, "cpu_clock": CLOCK_NAME}
            if arm.samples is None:
                row |= failed(cell, arm.columns["format"], arm.error or "it was not timed")
            else:
                row |= times_of(cell, arm.samples)
            yield row | arm.columns
