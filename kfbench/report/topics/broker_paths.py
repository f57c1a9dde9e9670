"""The tables of the broker's paths, and the sentences and verdicts that their rows add up to.

All formats of one path were timed in the same interleaved rounds: a ratio between two of them is paired, with its
interval. Two paths were timed apart: between them only medians are compared, and only on one host.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.paths import PATHS, Path
from kfbench.report.data.results import AXES, MAIN, Results, in_order, level, paired, per_call, setting
from kfbench.report.data.seeds import of_all_seeds, once
from kfbench.report.render.frames import Frame
from kfbench.report.render.tables import Cell, Column, Interval, Table, listed, number
from kfbench.report.render.words import codecs_of

GIB: Final = 1 << 30
SHOWN: Final = (*MAIN, "v3-headers-first")  # in pictures and open tables; the others' tables are folded away
APPEND: Final = "append"
BESIDE_APPEND: Final = "broker-paths"  # a table
# What became of the batches that came in, in the words of kfbench.broker.work.
DONE: Final = {
    "batches_untouched": "untouched",
    "batches_in_place": "in place",
    "batches_shifted": "shifted",
    "batches_rewritten": "rewritten",
    "batches_dropped": "dropped",
}
UNTOUCHED: Final = ("untouched", "zero-copy", "nothing")
COUNTED: Final = {
    "read_bytes": "read",
    "written_bytes": "written",
    "decompressed_bytes": "decompressed",
    "recompressed_bytes": "recompressed",
}


CONVERSION: Final = "convert"
APPEND_CONVERSION: Final = "append-convert"


class Paths:
    """The broker rows of one run: errors and combinations left out by rule among them, A/A arms apart."""

    def __init__(self, results: Results) -> None:
        rows = results.all[results.all["kind"] == "broker"]
        self.one_host = bool(rows.loc[(rows["status"] == "ok") & (rows["arm"] != "aa"), "host"].nunique() == 1)
        rows = of_all_seeds(once(rows))
        rows = rows.assign(
            to=rows["to_format"].fillna("").astype(str),
            with_codec=codecs_of(rows),
        )
        self._axes = [axis for axis in results.axes if rows[axis].notna().any()]
        self.rows = self._sorted(rows[rows["arm"] != "aa"])
        self._aa = rows[(rows["arm"] == "aa") & (rows["status"] == "ok")]
        self._by = {self._key(row): row for row in self._each if row.status == "ok"}
        self._ratios: dict[tuple[int, int], Interval] = {}
        self._results = results
        self._references: dict[str, str] = {}

    def _sorted(self, rows: Frame) -> Frame:
        formats = {name: i for i, name in enumerate(in_order([*rows["format"], *rows["to"]]))}
        order = pd.DataFrame(
            {
                **{axis: rows[axis].astype(str) if axis == "payload" else rows[axis] for axis in self._axes},
                "packed": rows["codec"] != "none",
                "codec": rows["with_codec"],
                "to": rows["to"].map(formats),
                "format": rows["format"].map(formats),
            }
        )
        return rows.loc[order.sort_values(list(order.columns), kind="stable").index]

    @staticmethod
    def _key(row: Any) -> tuple[str, str, str, str, str]:
        return row.cell_id, row.with_codec, row.operation, row.format, row.to

    @cached_property
    def _each(self) -> list[Any]:
        """The rows as tuples: made once, for pandas takes long to make them."""
        return list(self.rows.itertuples())

    def of(self, *operations: str) -> list[Any]:
        """The rows of these paths, in order: workload, codec, target, format."""
        return [row for row in self._each if row.operation in operations]

    def shown(self, *operations: str) -> list[Any]:
        """Of these, the rows of the cell nearest to the reference."""
        return [row for row in self.of(*operations) if row.cell_id == self.reference(row.operation)]

    def reference(self, operation: str) -> str:
        """The cell of this path that is shown: of those measured the one nearest to the reference point."""
        if operation not in self._references:
            rows = self.rows[self.rows["operation"] == operation]
            ok = rows[rows["status"] == "ok"]
            on_grid = ok[ok["workload"] == "grid"]
            first = next(each for each in (self._results.nearest(on_grid), ok, rows) if len(each))
            self._references[operation] = str(first["cell_id"].iloc[0])
        return self._references[operation]

    @cached_property
    def operations(self) -> list[str]:
        """The paths of this run: those that the report knows in its own order, then the others."""
        found = sorted(set(self.rows["operation"].dropna()))
        return [name for name in PATHS if name in found] + [name for name in found if name not in PATHS]

    @cached_property
    def formats(self) -> list[str]:
        return in_order(self.rows["format"])

    def within(self, section: str) -> list[str]:
        """The paths that a section of the report tells of; one that the report does not know stands with its kin."""
        return [name for name in self.operations if known(name).section == section]

    def setting(self, operation: str) -> str:
        """Where the axes of the cell that is shown stand, in words."""
        row = self.shown(operation)[0]
        if row.workload != "grid":
            return str(row.workload)
        return setting({axis: getattr(row, axis) for axis in self._axes})

    @cached_property
    def noise(self) -> tuple[float, float] | None:
        """What calls itself equal: the middle 95 % of what a base reads against itself."""
        measured = ((row, self._by.get(self._key(row))) for row in self._aa.itertuples())
        medians = [self.paired(row, base).median for row, base in measured if base is not None]
        if not medians:
            return None
        low, high = np.percentile(medians, [2.5, 97.5])
        return float(min(low, 1.0)), float(max(high, 1.0))

    def paired(self, row: Any, base: Any) -> Interval:
        """CPU time of one row / the other's, round by round."""
        key = row.Index, base.Index
        if key not in self._ratios:
            self._ratios[key] = paired(row, base)
        return self._ratios[key]

    def ratio(self, row: Any) -> Interval | None:
        """CPU time against v2 on the same path, in the same rounds; None without v2."""
        base = self._by.get((row.cell_id, row.with_codec, row.operation, BASE_FORMAT, row.to))
        if base is None or row.status != "ok":
            return None
        return Interval(median=1.0, low=1.0, high=1.0) if row.format == BASE_FORMAT else self.paired(row, base)

    def to_append(self, row: Any) -> float | None:
        """Median CPU time a record against that of v2's append; None on several hosts."""
        base = self._by.get((row.cell_id, row.with_codec, APPEND, BASE_FORMAT, ""))
        if base is None or row.status != "ok" or not self.one_host:
            return None
        return ns_per_record(row) / ns_per_record(base)

    def find(self, cell_id: str, with_codec: str, operation: str, name: str, to: str = "") -> Any:
        """The measured row, or None."""
        return self._by.get((cell_id, with_codec, operation, name, to))

    def against(
        self, name: str, base: str, operation: str = APPEND, to: str = "", base_operation: str | None = None
    ) -> Iterator[tuple[Any, Any]]:
        """(row, base's row) of every cell and codec in which both were measured."""
        for row in self.of(operation):
            if row.format == name and row.to == to and row.status == "ok":
                other = self._by.get((row.cell_id, row.with_codec, base_operation or operation, base, to))
                if other is not None:
                    yield row, other

    def axes_of(self, rows: Sequence[Any]) -> list[str]:
        """The axes on which the cells of these rows differ; the workload, too, where there are several."""
        return [
            axis
            for axis in ("workload", *self._axes)
            if len({at for row in rows if not pd.isna(at := getattr(row, axis))}) > 1
        ]


def key_columns(axes: Sequence[str]) -> tuple[Column, ...]:
    """The columns that tell one cell and codec from another."""
    return (*(AXES.get(axis) or Column(name=axis) for axis in axes), Column(name="codec"))


def key_cells(axes: Sequence[str], row: Any) -> tuple[Cell, ...]:
    return (*(None if pd.isna(at := getattr(row, axis)) else level(axis, at) for axis in axes), str(row.with_codec))


def ns_per_record(row: Any) -> float:
    return float(pd.Series(per_call(row)).median()) / float(row.records)


def s_per_gib(row: Any) -> float:
    """CPU seconds for each GiB that comes in."""
    return ns_per_record(row) * float(row.records) / 1e9 / float(row.source_bytes) * GIB


def known(operation: str) -> Path:
    """Return the path. An unknown name is its own title, in the section of the path that its first word names."""
    if operation in PATHS:
        return PATHS[operation]
    kin = PATHS.get(operation.partition("-")[0], PATHS["compact"])
    return replace(kin, title=operation.replace("-", " ").capitalize())


def done(row: Any) -> str:
    """What became of the batches: one word if it is the same for all of them."""
    if row.status != "ok":
        return str(row.status)
    counts = {word: int(at) for name, word in DONE.items() if pd.notna(at := getattr(row, name)) and at}
    if not counts.keys() - {"untouched"} and str(row.operation).startswith("fetch"):
        return "zero-copy"  # seen to be fit, or not even looked at
    if len(counts) < 2:
        return next(iter(counts), "nothing")
    total = sum(counts.values())
    return ", ".join(f"{word} {100 * count / total:.0f} %" for word, count in counts.items())


def lost(row: Any, *, counted: bool = True) -> str:
    """Why there is no measurement, or what the path could not keep, and how many of it."""
    if row.status != "ok":
        return "" if pd.isna(row.error) else str(row.error)
    losses = json.loads(row.losses) if isinstance(row.losses, str) else {}
    words = {name.replace("_", " "): number(count) for name, count in losses.items() if count}
    return ", ".join(f"{name} {count}" if counted else name for name, count in words.items())


# --- One path


def path_tables(paths: Paths, operation: str, *, shown: bool) -> list[Table]:
    """What a path does with each format and codec, in the cell nearest to the reference. shown: of the formats of open
    tables, or of the others. An empty list where there are none."""
    rows = [row for row in paths.shown(operation) if (row.format in SHOWN) == shown]
    return [_path_table(paths, rows, operation, "" if shown else "-others")] if rows else []


def _path_table(paths: Paths, rows: Sequence[Any], operation: str, suffix: str) -> Table:
    by_call = known(operation).is_per_call
    by = "call" if by_call else "record"
    converts = any(row.to for row in rows)
    body = []
    for row in rows:
        ok = row.status == "ok"
        count = 1 if by_call or not ok else float(row.records)
        ns = ns_per_record(row) * float(row.records) / count if ok and paths.one_host else None
        body.append(
            (
                row.format,
                *([row.to or None] if converts else []),
                row.with_codec,
                done(row),
                paths.ratio(row),
                *([] if by_call else [paths.to_append(row)]),
                ns,
                None if not ok or pd.isna(row.size_bytes) else float(row.size_bytes) / float(row.source_bytes),
                *(_counted(getattr(row, name), count) for name in COUNTED),
                _counted(row.extra_bytes, 1024),
                lost(row),
            )
        )
    return Table(
        name=f"broker-{operation}{suffix}",
        caption=f"{known(operation).title} ({paths.setting(operation)})",
        columns=(
            Column(name="format", swatch=True),
            *([Column(name="to")] if converts else []),
            Column(name="codec"),
            Column(name="batches"),
            Column(name="CPU", unit=f"× {BASE_FORMAT}"),
            *([] if by_call else [Column(name="CPU", unit=f"× {BASE_FORMAT} append")]),
            Column(name="CPU", unit=f"ns a {by}", digits=0 if by_call else 1),
            Column(name="out", unit="× bytes in", digits=3),
            *(Column(name=word, unit=f"bytes a {by}", digits=0 if by_call else 1) for word in COUNTED.values()),
            Column(name="extra memory", unit="KiB", digits=0),
            Column(name="lost, or why not measured"),
        ),
        rows=tuple(body),
    )


def _counted(value: Any, count: float) -> float | None:
    return None if pd.isna(value) else float(value) / count


def ratio_table(paths: Paths, operation: str) -> Table | None:
    """CPU against v2 on one path in every cell: one row a cell and codec, one column a format. None where there is but
    one cell, and for a path that touches nothing, or converts."""
    rows = paths.of(operation)
    if all(row.to or done(row) in UNTOUCHED or row.status != "ok" for row in rows) and not operation.startswith("seek"):
        return None
    axes = paths.axes_of(rows)
    cells: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        cells.setdefault((row.cell_id, row.with_codec), {})[row.format] = row
    formats = [name for name in in_order(row.format for row in rows) if name != BASE_FORMAT]
    body = []
    for each in cells.values():
        ratios = [paths.ratio(each[name]) if name in each else None for name in formats]
        if any(ratios):
            body.append((*key_cells(axes, next(iter(each.values()))), *ratios))
    if len({cell for cell, _ in cells}) < 2 or not body:
        return None
    return Table(
        name=f"broker-{operation}-workloads",
        caption=f"{known(operation).title}: CPU time relative to {BASE_FORMAT}, by workload",
        columns=(*key_columns(axes), *(Column(name=name) for name in formats)),
        rows=tuple(body),
    )


def pictured(paths: Paths) -> dict[str, Frame]:
    """Codec -> CPU of each path by format, in units of v2's append: what the figure shows.

    A path that touches nothing has no place on a logarithmic axis: it stays out.
    """
    if APPEND not in paths.operations:
        return {}
    panels: dict[str, list[tuple[str, str, float]]] = {}
    for operation in paths.operations:
        for row in paths.of(operation):
            at = paths.to_append(row)
            if (
                row.cell_id != paths.reference(APPEND)
                or at is None
                or row.to
                or row.format not in SHOWN
                or known(operation).is_per_call
                or done(row) in UNTOUCHED
            ):
                continue
            panels.setdefault(row.with_codec, []).append((operation, row.format, at))
    codecs = dict.fromkeys(row.with_codec for row in paths.shown(APPEND))
    return {
        codec: pd.DataFrame(panels[codec], columns=["label", "format", "median"]) for codec in codecs if codec in panels
    }


def beside_append(paths: Paths) -> Table | None:
    """What the figure draws: one row a codec and path, one column a format. None where there is no figure."""
    panels = pictured(paths)
    if not panels:
        return None
    formats = in_order(name for frame in panels.values() for name in frame["format"])
    body: list[tuple[Cell, ...]] = []
    for codec, frame in panels.items():
        at = {(row.label, row.format): float(row.median) for row in frame.itertuples()}
        body += [
            (codec, operation, *(at.get((operation, name)) for name in formats))
            for operation in dict.fromkeys(frame["label"])
        ]
    return Table(
        name=BESIDE_APPEND,
        caption=f"CPU time a record of each path relative to {BASE_FORMAT}'s append with the same codec "
        f"({paths.setting(APPEND)})",
        columns=(Column(name="codec"), Column(name="path"), *(Column(name=name) for name in formats)),
        rows=tuple(body),
        notes=("Medians of paths that were timed apart.",),
    )


def sentence(paths: Paths) -> str:
    """What append costs in each format, in bytes touched and in CPU."""
    said = []
    packed = [pair for pair in paths.against("v1", "v0") if pair[0].codec != "none"]
    if packed:
        said.append(
            f"With a codec v1's append takes {_times(paths, packed)} times the CPU of v0's, which recompresses "
            f"{_share([old for _, old in packed], 'recompressed_bytes')} of the plain bytes where v1 recompresses "
            f"{_share([new for new, _ in packed], 'recompressed_bytes')}"
        )
    own = [row for row in paths.of(APPEND) if row.format == BASE_FORMAT and row.status == "ok"]
    if own:
        written = span([written_a_batch(row) for row in own], 0)
        said.append(f"Batches of {BASE_FORMAT} are {done_words(own)}, with {written} bytes written in each")
    first = [pair for pair in paths.against("v3-headers-first", BASE_FORMAT) if pair[0].codec != "none"]
    if first:
        shares = [new.decompressed_bytes / old.decompressed_bytes for new, old in first if old.decompressed_bytes]
        said.append(
            f"Headers first decompresses {span(shares)} of what {BASE_FORMAT} does, for {_times(paths, first)} times "
            "its CPU"
        )
    return ". ".join(said) + "." if said else ""


def noise_sentence(paths: Paths) -> str:
    if paths.noise is None:
        return ""
    low, high = paths.noise
    return f"On these paths a base against itself reads {low:.2f} to {high:.2f}."


def _times(paths: Paths, pairs: Sequence[tuple[Any, Any]]) -> str:
    return span([paths.paired(new, old).median for new, old in pairs])


def span(values: Sequence[float], digits: int = 2) -> str:
    """a to b, or a where both read the same."""
    low, high = number(float(min(values)), digits), number(float(max(values)), digits)
    return low if low == high else f"{low} to {high}"


def _share(rows: Sequence[Any], name: str) -> str:
    """Of the plain bytes."""
    shares = [getattr(row, name) / plain for row in rows if (plain := row.decompressed_bytes)]
    return f"{span([100 * share for share in shares], 0)} %" if shares else "nothing"


def written_a_batch(row: Any) -> float:
    batches = sum(float(at) for name in DONE if pd.notna(at := getattr(row, name)))
    return float(row.written_bytes) / batches if batches else 0.0


def done_words(rows: Sequence[Any]) -> str:
    return listed(list(dict.fromkeys(done(row) for row in rows)))


# --- What is argued with


def argued(paths: Paths) -> Table | None:
    """The two ratios that KIP-31 and KIP-931 argue with, by workload and codec."""
    old = {(new.cell_id, new.with_codec): (new, base) for new, base in paths.against("v1", "v0")}
    first = {(new.cell_id, new.with_codec): (new, base) for new, base in paths.against("v3-headers-first", BASE_FORMAT)}
    body = []
    axes = paths.axes_of(paths.of(APPEND))
    for row in {(row.cell_id, row.with_codec): row for row in paths.of(APPEND)}.values():
        one, other = old.get((row.cell_id, row.with_codec)), first.get((row.cell_id, row.with_codec))
        if one or other:
            body.append(
                (
                    *key_cells(axes, row),
                    paths.paired(*one) if one else None,
                    *(_per_record(each, "recompressed_bytes") for each in (one[::-1] if one else (None, None))),
                    paths.paired(*other) if other else None,
                    *(_per_record(each, "decompressed_bytes") for each in (other[::-1] if other else (None, None))),
                )
            )
    if not body:
        return None
    return Table(
        name="broker-argued",
        caption=f"Append: v1 against v0 (KIP-31), and headers-first against {BASE_FORMAT} (KIP-931), by workload and "
        "codec",
        columns=(
            *key_columns(axes),
            Column(name="v1 CPU", unit="× v0"),
            Column(name="v0 recompresses", unit="bytes a record", digits=1),
            Column(name="v1 recompresses", unit="bytes a record", digits=1),
            Column(name="headers-first CPU", unit=f"× {BASE_FORMAT}"),
            Column(name=f"{BASE_FORMAT} decompresses", unit="bytes a record", digits=1),
            Column(name="headers-first decompresses", unit="bytes a record", digits=1),
        ),
        rows=tuple(body),
    )


def _per_record(row: Any, name: str) -> float | None:
    return None if row is None else float(getattr(row, name)) / float(row.records)


# --- Compaction, mirrors, seeks


def keep_sentence(paths: Paths) -> str:
    """Which paths open compressed batches, and how much of a log a seek reads."""
    said = []
    for operation in paths.within("keep"):
        rows = [row for row in paths.of(operation) if row.status == "ok"]
        if rows and known(operation).is_per_call:
            shares = [100 * float(row.read_bytes) / float(row.source_bytes) for row in rows]
            said.append(f"{operation} reads {span(shares, 1)} % of the log")
        elif packed := [row for row in rows if row.codec != "none"]:
            opened = sum(bool(row.decompressed_bytes) for row in packed)
            said.append(f"{operation} opens {opened} of {len(packed)} compressed logs")
    text = "; ".join(said)
    return text[:1].upper() + text[1:] + "." if text else ""
