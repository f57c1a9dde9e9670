"""The section about CPU time against bytes. The front has the formats that no other format beats in both."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import Band, lost_of
from kfbench.report.data.axes import setting, with_settings
from kfbench.report.data.capability import lacking
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import NEW, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure
from kfbench.tables import Cell, Column, Interval, Table, listed, plain_columns

Place = Literal["front", "beaten", "lossy"]
IS_ON_FRONT: Final[dict[Place, str]] = {"front": "yes", "beaten": "no", "lossy": "not compared"}
RULE: Final = (
    "Formats that lose nothing of these records are compared, the fewest bytes first. A format joins the front if it "
    "takes less CPU time than all in the front with fewer bytes. It must not take more than those with as many bytes. "
    "The others are beaten. Times differ if their intervals are disjoint and their ratio is beyond "
    f"{BASE_FORMAT}'s to itself."
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The bytes and the CPU time of a format on one workload setting, both relative to v2.

    Args:
        lost: the fields of these records that the format could not carry.
        lacking: what v2 can carry and this format cannot, although these records do not need it.
    """

    format: str
    bytes_ratio: float
    cpu: Interval
    lost: tuple[str, ...]
    lacking: tuple[str, ...]

    @property
    def is_dearer(self) -> bool:
        """True if the format takes more bytes than v2, and the whole interval of its CPU ratio is above 1."""
        return self.bytes_ratio > 1 and self.cpu.low > 1

    @property
    def words(self) -> str:
        """The name of the format with its losses, for example: v0, without times."""
        return f"{self.format}, without {listed(self.lost)}" if self.lost else self.format


@dataclass(frozen=True, kw_only=True)
class Point(Measured):
    """A format on one workload setting, with the result of the comparison: on the front, beaten or lossy.

    The front has the formats that no other format beats in both bytes and CPU time.
    """

    place: Place


@dataclass(frozen=True, kw_only=True)
class Front:
    """All formats for one operation on one workload setting, sorted by bytes, the fewest first."""

    operation: str
    batch_size: int
    setting: str
    points: tuple[Point, ...]

    @property
    def on_it(self) -> list[str]:
        return [point.format for point in self.points if point.place == "front"]


def fronts(results: Results) -> list[Front]:
    """Compare bytes and CPU time of the formats on two workload settings, for encode and for decode.

    One setting is nearest to the grid's defaults, the other has the smallest batches. The result is empty without CPU
    times and bytes.
    """
    rows = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["arm"] == "measure")]
    if rows.empty:
        return []
    least = rows["batch_size"].min()
    cells = {
        str(cell["cell_id"].iloc[0]): cell
        for cell in (results.nearest(rows), results.nearest(rows[rows["batch_size"] == least], batch_size=least))
    }
    return [found for cell in cells.values() for found in _of_cell(results, results.with_ratios(cell))]


def _of_cell(results: Results, cell: pd.DataFrame) -> list[Front]:
    at = cell.iloc[0]
    sizes = results.uncompressed
    for axis in results.axes:
        sizes = sizes[sizes[axis] == at[axis]]
    by_format = {row.format: row for row in sizes.itertuples()}
    found = []
    for operation in OPERATIONS:
        measured = [
            Measured(
                format=row.format,
                bytes_ratio=by_format[row.format].size_per_record / by_format[BASE_FORMAT].size_per_record,
                cpu=row.ratio,
                lost=(lost := lost_of(by_format[row.format].losses)),
                lacking=tuple(what for what in lacking(row.format, BASE_FORMAT) if what not in lost),
            )
            for row in cell[cell["operation"] == operation].itertuples()
            if isinstance(row.ratio, Interval) and {row.format, BASE_FORMAT} <= by_format.keys()
        ]
        if len(measured) > 1:
            found.append(
                Front(
                    operation=operation,
                    batch_size=int(at["batch_size"]),
                    setting=setting({axis: at[axis] for axis in results.axes}),
                    points=tuple(_placed(measured, results.noise)),
                )
            )
    return found


def _placed(measured: Iterable[Measured], noise: Band | None) -> Iterator[Point]:
    """Compare the formats as RULE describes. Yield each with its place: on the front, beaten or lossy.

    The formats with the fewest bytes come first.
    """
    front: list[Measured] = []
    for each in sorted(measured, key=lambda each: (each.bytes_ratio, each.cpu.median, each.format)):
        if each.lost:
            yield Point(**vars(each), place="lossy")
        elif all(
            _is_less(each.cpu, other.cpu, noise)
            if other.bytes_ratio < each.bytes_ratio
            else not _is_less(other.cpu, each.cpu, noise)
            for other in front
        ):
            front.append(each)
            yield Point(**vars(each), place="front")
        else:
            yield Point(**vars(each), place="beaten")


def _is_less(one: Interval, other: Interval, noise: Band | None) -> bool:
    """Return True if the intervals do not overlap, and the ratio of the medians is below the noise.

    The noise is the range of v2's ratios to itself (A/A); without it, the ratio must be below 1.
    """
    return one.high < other.low and one.median / other.median < (noise.low if noise else 1.0)


def pareto_table(found: Sequence[Front]) -> Table | None:
    """Return a table with a row per batch size and format, and columns for encode and decode."""
    if not found:
        return None
    by_batch: dict[int, dict[str, Front]] = {}
    for front in found:
        by_batch.setdefault(front.batch_size, {})[front.operation] = front
    body: list[tuple[Cell, ...]] = []
    for batch_size, of in by_batch.items():
        named = {operation: {point.format: point for point in front.points} for operation, front in of.items()}
        sizes = {point.format: point.bytes_ratio for front in of.values() for point in front.points}
        for name in in_order(sizes):
            points = [named.get(operation, {}).get(name) for operation in OPERATIONS]
            cells = [
                cell for point in points for cell in ((point.cpu, IS_ON_FRONT[point.place]) if point else (None, None))
            ]
            lost = next((listed(point.lost) or None, listed(point.lacking) or None) for point in points if point)
            body.append((batch_size, name, sizes[name], *cells, *lost))
    return Table(
        name="pareto",
        caption=with_settings(
            f"Bytes and CPU time relative to {BASE_FORMAT}", *dict.fromkeys(front.setting for front in found)
        ),
        columns=(
            Column(name="records per batch"),
            Column(name="format", swatch=True),
            Column(name="all bytes", unit=f"× {BASE_FORMAT}", digits=3),
            *(
                column
                for operation in OPERATIONS
                for column in (
                    Column(name=f"{operation} CPU", unit=f"× {BASE_FORMAT}"),
                    Column(name="on the front", unit=operation),
                )
            ),
            *plain_columns("loses (these records)", "has no (for other records)"),
        ),
        rows=tuple(body),
        notes=(RULE, f"Has no: of what {BASE_FORMAT} has, by the format's own capabilities."),
    )


def pareto_panels(found: Sequence[Front]) -> dict[str, pd.DataFrame]:
    """Return the frames of the figure's panels by title.

    The column `beyond` is True for formats that the figure names but does not draw (`Measured.is_dearer`).
    """
    return {
        f"{front.operation}, {batch_words(front.batch_size)}": pd.DataFrame(
            {
                "format": [point.format for point in front.points],
                "lost": [listed(point.lost) for point in front.points],
                "bytes": [point.bytes_ratio for point in front.points],
                "median": [point.cpu.median for point in front.points],
                "low": [point.cpu.low for point in front.points],
                "high": [point.cpu.high for point in front.points],
                "front": [point.place == "front" for point in front.points],
                "beyond": [point.is_dearer for point in front.points],
            }
        )
        for front in found
    }


def pareto_sentence(found: Sequence[Front]) -> str:
    """Name the formats on the fronts, count the fronts of v2 and v3, and name the formats that are not compared.

    The front has the formats that no other format beats in both bytes and CPU time.
    """
    if not found:
        return ""
    points = [point for front in found for point in front.points]
    on_fronts = in_order({name for front in found for name in front.on_it})
    sentences = [
        f"On the fronts of bytes and CPU: {listed(on_fronts)}.",
        *(
            f"Of {len(found)} fronts, {name} is on {sum(name in front.on_it for front in found)}."
            for name in (BASE_FORMAT, NEW)
        ),
    ]
    if unable := in_order({point.format for point in points if point.place == "front" and point.lacking}):
        sentences.append(f"No room for all that {BASE_FORMAT} has: {listed(unable)}.")
    if lossy := {point.format: point.words for point in points if point.lost}:
        sentences.append(f"Not compared: {'; '.join(lossy[name] for name in in_order(lossy))}.")
    return " ".join(sentences)


def pareto_answer(run: Views) -> Answer | str:
    found = fronts(run.results)
    table = pareto_table(found)
    if table is None:
        return "no CPU times and bytes without a codec in one cell, v2 among them"
    figure = Figure(
        name="pareto",
        svg=plots.pareto(
            pareto_panels(found),
            f"all bytes relative to {BASE_FORMAT}",
            f"CPU relative to {BASE_FORMAT}",
            run.results.noise,
        ),
        alt=f"Bytes and CPU time of each format relative to {BASE_FORMAT}. {pareto_sentence(found)}",
        caption=f"Down and to the left is better. Dotted: the front. {RULE} Hollow: loses something, and is not "
        "compared. Grey: its name stands next to it. Grey formats behind the front are only in the table. Bars: 95 % "
        f"interval. Shaded: {BASE_FORMAT}'s ratios to itself.",
        numbers=table.name,
    )
    return Answer(means=pareto_sentence(found), figures=(figure,), tables=(table,))
