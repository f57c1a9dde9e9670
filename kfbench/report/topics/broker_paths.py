"""Sections about broker paths: append and fetch, and work on stored logs (compact, mirror, seek, expire)."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from kfbench.broker.compact import sizes_with_holes
from kfbench.claims.example import KIP_931_WRITTEN_MS
from kfbench.formats import BASE_FORMAT
from kfbench.layouts import DAY_MS, NO_TIMESTAMP
from kfbench.records import Records
from kfbench.report.data.arms import Arm
from kfbench.report.data.axes import with_settings
from kfbench.report.data.paths import (
    APPEND,
    WORK,
    ZERO_COPY,
    Paths,
    growth,
    key_cells,
    key_columns,
    path_of,
    work_words,
)
from kfbench.report.data.shown_formats import HEADERS_FIRST, MAIN, NEW, OLD, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import cpu_range_sentence, span
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing, Texts
from kfbench.tables import Cell, Column, Table, number, plain_columns

SHOWN: Final = (*MAIN, HEADERS_FIRST)  # formats in pictures and open tables; tables of other formats are folded
PATHS_TABLE: Final = "broker-paths"  # the name of the table with the numbers of the figure
UNTOUCHED: Final = (WORK["batches_untouched"], ZERO_COPY, "nothing")
HOLES: Final = (1, 2, 10, 100)  # 10: one of 10 records remains after compaction
COUNTED: Final = {
    "read_bytes": "read",
    "written_bytes": "written",
    "decompressed_bytes": "decompressed",
    "recompressed_bytes": "recompressed",
}


def holes_table(paths: Paths) -> Table | None:
    """Return a table of overhead per record in batches of 100 records, after some of the records are removed.

    The numbers are computed from the formats, not measured. They equal the bytes that compaction writes without a
    codec.
    """
    if not any(operation.startswith("compact") for operation in paths.operations):
        return None
    count = 1_000
    records = Records.from_lists(
        [b"v" * 100] * count, keys=[b"k" * 16] * count, timestamps_ms=[KIP_931_WRITTEN_MS + i for i in range(count)]
    )
    body: list[tuple[Cell, ...]] = []
    for step in HOLES:
        keep = np.arange(count) % step == step - 1
        survivors = int(keep.sum())
        for horizon_ms in (NO_TIMESTAMP, KIP_931_WRITTEN_MS + DAY_MS):
            sizes = [sizes_with_holes(name, records, 100, keep, horizon_ms).sum() for name in paths.formats]
            over = [float(size) / survivors - 116 for size in sizes]
            body.append((f"1 in {step}" if step > 1 else "all", horizon_ms != NO_TIMESTAMP, *over))
    return Table(
        name="broker-holes",
        caption="Holes: overhead after compaction of batches of 100, bytes per record, computed without a codec",
        columns=plain_columns("kept", "delete horizon", *paths.formats),
        rows=tuple(body),
        notes=(
            "16-byte keys, 100-byte values, records 1 ms apart. Batches are not merged: a header is shared by fewer.",
            "A delete horizon replaces the base timestamp, and timestamp deltas count from it: here one day.",
        ),
    )


def path_table(paths: Paths, operation: str, *, shown: bool) -> Table | None:
    """Return a table with the cost and work of one broker path, with a row per format and codec.

    It shows the workload setting nearest to the grid's defaults. shown: True for the formats of open tables (SHOWN),
    False for all others. Return None if none of these formats was tried.
    """
    arms = [arm for arm in paths.shown(operation) if (arm.format in SHOWN) == shown]
    if not arms:
        return None
    by_call = path_of(operation).is_per_call
    by, digits = ("call", 0) if by_call else ("record", 1)
    converts = any(arm.to_format for arm in arms)
    body = []
    for arm in arms:
        count = 1 if by_call or not arm.is_ok else arm.records
        body.append(
            (
                arm.format,
                *([arm.to_format or None] if converts else []),
                arm.with_codec,
                work_words(arm),
                paths.ratio(arm),
                *([] if by_call else [paths.to_append(arm)]),
                arm.ns_per_record * arm.records / count if arm.is_ok and paths.one_host else None,
                _per(growth(arm), 1),
                *(_per(getattr(arm, name), count) for name in COUNTED),
                _per(arm.extra_bytes, 1024),
                losses_or_reason(arm),
            )
        )
    return Table(
        name=f"broker-{operation}{'' if shown else '-others'}",
        caption=with_settings(path_of(operation).title, paths.setting(operation)),
        columns=(
            Column(name="format", swatch=True),
            *([Column(name="to")] if converts else []),
            *plain_columns("codec", "batches", f"CPU (× {BASE_FORMAT})"),
            *([] if by_call else [Column(name="CPU", unit=f"× {BASE_FORMAT} append")]),
            Column(name="CPU", unit=f"ns per {by}", digits=digits),
            Column(name="out", unit="× bytes in", digits=3),
            *(Column(name=word, unit=f"bytes per {by}", digits=digits) for word in COUNTED.values()),
            Column(name="extra memory", unit="KiB", digits=0),
            Column(name="lost, or why not measured"),
        ),
        rows=tuple(body),
    )


def _per(value: float, count: float) -> float | None:
    return None if np.isnan(value) else value / count


def losses_or_reason(arm: Arm, *, counted: bool = True) -> str:
    """Return the reason why there is no measurement. If there is one, return the fields that were lost.

    counted: True adds the number of lost items to each field.
    """
    if not arm.is_ok:
        return arm.error
    losses = json.loads(arm.losses or "{}")
    words = {name.replace("_", " "): number(count) for name, count in losses.items() if count}
    return ", ".join(f"{name} {count}" if counted else name for name, count in words.items())


def ratio_table(paths: Paths, operation: str) -> Table | None:
    """Return a table of CPU time relative to v2 on one path: a row per workload setting and codec, a column per format.

    Return None if there is only one setting, if the path changes no batch (seeks excepted), or if it converts.
    """
    arms = paths.of(operation)
    is_work = any(arm.is_ok and not arm.to_format and work_words(arm) not in UNTOUCHED for arm in arms)
    if not is_work and not operation.startswith("seek"):
        return None
    axes = paths.axes_of(arms)
    cells: dict[tuple[str, str], dict[str, Arm]] = {}
    for arm in arms:
        cells.setdefault((arm.cell_id, arm.with_codec), {})[arm.format] = arm
    formats = [name for name in in_order(arm.format for arm in arms) if name != BASE_FORMAT]
    body = []
    for by_format in cells.values():
        ratios = [paths.ratio(by_format[name]) if name in by_format else None for name in formats]
        if any(ratios):
            body.append((*key_cells(axes, next(iter(by_format.values()))), *ratios))
    if len({cell for cell, _ in cells}) < 2 or not body:
        return None
    return Table(
        name=f"broker-{operation}-workloads",
        caption=f"{path_of(operation).title}: CPU time relative to {BASE_FORMAT}, by workload",
        columns=(*key_columns(axes), *plain_columns(*formats)),
        rows=tuple(body),
    )


def append_ratio_panels(paths: Paths) -> dict[str, pd.DataFrame]:
    """Return the CPU time of each path and format relative to v2's append. codec -> frame for a panel of the figure.

    The columns of a frame are label (the path), format and median. Paths that change no batch are left out: their times
    are too small for a logarithmic axis.
    """
    if APPEND not in paths.operations:
        return {}
    panels: dict[str, list[tuple[str, str, float]]] = {}
    for operation in paths.operations:
        for arm in paths.of(operation):
            ratio = paths.to_append(arm)
            is_shown = arm.cell_id == paths.reference(APPEND) and arm.format in SHOWN and not arm.to_format
            is_work = not path_of(operation).is_per_call and work_words(arm) not in UNTOUCHED
            if ratio is not None and is_shown and is_work:
                panels.setdefault(arm.with_codec, []).append((operation, arm.format, ratio))
    codecs = dict.fromkeys(arm.with_codec for arm in paths.shown(APPEND))
    return {
        codec: pd.DataFrame(panels[codec], columns=["label", "format", "median"]) for codec in codecs if codec in panels
    }


def append_ratio_table(paths: Paths) -> Table | None:
    """Return a table with the numbers of the figure: a row per codec and path, a column per format."""
    panels = append_ratio_panels(paths)
    if not panels:
        return None
    formats = in_order(name for frame in panels.values() for name in frame["format"])
    body: list[tuple[Cell, ...]] = []
    for codec, frame in panels.items():
        ratios = {(label, name): median for label, name, median in frame.itertuples(index=False)}
        body += [
            (codec, operation, *(ratios.get((operation, name)) for name in formats))
            for operation in dict.fromkeys(frame["label"])
        ]
    return Table(
        name=PATHS_TABLE,
        caption=with_settings(
            f"CPU time per record of each path relative to {BASE_FORMAT}'s append with the same codec",
            paths.setting(APPEND),
        ),
        columns=plain_columns("codec", "path", *formats),
        rows=tuple(body),
        notes=("Medians of paths that were timed in different rounds.",),
    )


def append_sentence(paths: Paths) -> str:
    """Compare the CPU time of an append in v3 and v2, in v1 and v0, and in v3-headers-first and v2."""
    v0, v1 = OLD

    def ratios(name: str, base: str, *, packed: bool) -> list[float]:
        pairs = paths.against(name, base)
        return [paths.paired(new, old).median for new, old in pairs if not packed or new.codec != "none"]

    sentences = []
    if found := ratios(NEW, BASE_FORMAT, packed=False):
        sentences.append(cpu_range_sentence(NEW, APPEND, found))
    if found := ratios(v1, v0, packed=True):
        sentences.append(f"With a codec, {v1}'s append CPU is {span(found)} × {v0}'s.")
    if found := ratios(HEADERS_FIRST, BASE_FORMAT, packed=True):
        sentences.append(f"With a codec, {HEADERS_FIRST}'s append CPU is {span(found)} × {BASE_FORMAT}'s.")
    return " ".join(sentences)


def noise_sentence(paths: Paths) -> str:
    return f"On these paths, a base against itself is {span(paths.noise)}." if paths.noise else ""


def argued_table(paths: Paths) -> Table | None:
    """Return a table about two arguments, by workload and codec.

    KIP-31 compares appends of v1 with v0, KIP-931 appends of headers-first with v2.
    """
    v0, v1 = OLD
    old = {(new.cell_id, new.with_codec): (new, base) for new, base in paths.against(v1, v0)}
    first = {(new.cell_id, new.with_codec): (new, base) for new, base in paths.against(HEADERS_FIRST, BASE_FORMAT)}
    axes = paths.axes_of(paths.of(APPEND))
    body = []
    for cell, arm in {(arm.cell_id, arm.with_codec): arm for arm in paths.of(APPEND)}.items():
        if cell in old or cell in first:
            body.append(
                (
                    *key_cells(axes, arm),
                    *_argued_cells(paths, old.get(cell), "recompressed_bytes"),
                    *_argued_cells(paths, first.get(cell), "decompressed_bytes"),
                )
            )
    if not body:
        return None
    return Table(
        name="broker-argued",
        caption=f"Append: {v1} against {v0} (KIP-31), and headers-first against {BASE_FORMAT} (KIP-931), by workload "
        "and codec",
        columns=(
            *key_columns(axes),
            Column(name=f"{v1} CPU", unit=f"× {v0}"),
            *plain_columns(f"{v0} recompresses (bytes per record)", f"{v1} recompresses (bytes per record)", digits=1),
            Column(name="headers-first CPU", unit=f"× {BASE_FORMAT}"),
            Column(name=f"{BASE_FORMAT} decompresses", unit="bytes per record", digits=1),
            Column(name="headers-first decompresses", unit="bytes per record", digits=1),
        ),
        rows=tuple(body),
    )


def _argued_cells(paths: Paths, pair: tuple[Arm, Arm] | None, counted: str) -> tuple[Cell, ...]:
    """Return the CPU ratio of the new to the old format, then bytes per record of the old and of the new format.

    counted: the column with the number of bytes.
    """
    if pair is None:
        return None, None, None
    new, old = pair
    return paths.paired(new, old), getattr(old, counted) / old.records, getattr(new, counted) / new.records


def keep_sentence(paths: Paths) -> str:
    """Compare the CPU time of v3 and v2. Count decompressed logs, and give the share of a log that a seek reads."""
    operations = paths.within("keep")
    sentences = []
    ratios = [ratio.median for arm in paths.of(*operations) if arm.format == NEW and (ratio := paths.ratio(arm))]
    if ratios:
        sentences.append(f"On these paths, {NEW}'s CPU is {span(ratios)} × {BASE_FORMAT}'s.")
    for operation in ("compact", "mirror-through"):
        packed = [arm for arm in paths.of(operation) if arm.is_ok and arm.codec != "none"]
        if packed:
            opened = sum(arm.decompressed_bytes > 0 for arm in packed)
            sentences.append(f"With a codec, {operation} decompresses {opened} of {len(packed)} logs.")
    shares = [100 * arm.read_bytes / arm.source_bytes for arm in paths.of("seek-offset", "seek-time") if arm.is_ok]
    if shares:
        sentences.append(f"A seek reads {span(shares, 1)} % of the log.")
    return " ".join(sentences)


def path_texts(paths: Paths, operations: Sequence[str]) -> Texts:
    """Select the explanations of the blocks of the sweep that measured these paths."""
    return Texts(rows=paths.stored[paths.stored["operation"].isin(operations)], of="any")


def shown_tables(paths: Paths, operations: Sequence[str]) -> Iterator[Table | None]:
    """Yield a table per path with the formats in SHOWN."""
    yield from (path_table(paths, operation, shown=True) for operation in operations)


def folded_tables(paths: Paths, operations: Sequence[str]) -> tuple[Table | None, ...]:
    """Return the tables of the formats that are not in SHOWN, then the tables that compare workloads."""
    others = [path_table(paths, operation, shown=False) for operation in operations]
    return (*others, *(ratio_table(paths, operation) for operation in operations))


def append_answer(run: Views) -> Answer | str:
    paths = run.paths
    operations = paths.within("append")
    if not operations:
        return "no append or fetch of a broker"
    return Answer(
        means=" ".join(filter(None, [append_sentence(paths), noise_sentence(paths)])),
        texts=path_texts(paths, operations),
        figures=(append_ratio_figure(paths),),
        tables=(argued_table(paths), append_ratio_table(paths), *shown_tables(paths, operations)),
        more=folded_tables(paths, operations),
    )


def append_ratio_figure(paths: Paths) -> Figure | Missing:
    panels = append_ratio_panels(paths)
    if not panels:
        return Missing(
            what=f"Broker paths beside {BASE_FORMAT}'s append", why=f"no {BASE_FORMAT} append, or paths of two hosts"
        )
    return Figure(
        name="broker",
        svg=plots.paths(panels, f"CPU time relative to {BASE_FORMAT}'s append with the same codec"),
        alt=f"CPU time of each broker path by format, relative to {BASE_FORMAT}'s append. {append_sentence(paths)}",
        caption=with_settings(
            f"Each path relative to {BASE_FORMAT}'s append, one panel per codec", paths.setting(APPEND)
        )
        + " Paths are timed in different rounds. For differences of a few percent read the tables, where formats are "
        "paired.",
        numbers=PATHS_TABLE,
    )


def keep_answer(run: Views) -> Answer | str:
    paths = run.paths
    operations = paths.within("keep")
    if not operations:
        return "no compaction, mirroring, seek or expiry by a broker"
    return Answer(
        means=keep_sentence(paths),
        texts=path_texts(paths, operations),
        tables=(*shown_tables(paths, operations), holes_table(paths)),
        more=folded_tables(paths, operations),
    )
