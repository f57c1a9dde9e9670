"""columnar, this project's research format, beside v2, v3, headers first and the metadata floor: bytes, CPU, losses.

Its rows stand here and nowhere else (`results.RESEARCH`), those of the grid among them: the other sections are about
formats that Kafka has or was proposed.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS, READINGS
from kfbench.measure.floor import FLOOR
from kfbench.report.data.results import AXES, COLD, CPU_DIGITS, Results, in_order, level, middle, paired, ties
from kfbench.report.data.seeds import of_all_seeds, once
from kfbench.report.render.frames import Frame
from kfbench.report.render.tables import Cell, Column, Interval, Ranked, Table, listed, number
from kfbench.report.render.words import batch_words, codecs_of
from kfbench.report.topics.workloads import BEST_KNOWN, NONE, codec_words
from kfbench.workloads.catalogue import DEFAULT

NAME: Final = "columnar"
GRID: Final = "grid"
LAYOUT: Final = (
    f"{NAME} is this project's research format, which no client or broker reads. Its batch is a short header, then a "
    "packed column each for times, offsets, lengths and what there is of headers, then all keys, all values and all "
    "bytes of headers; a codec compresses only these last three."
)
BESIDE: Final = ("v3", "v3-headers-first", NAME)
RIVALS: Final = (BASE_FORMAT, "v3", "v3-headers-first")  # where columnar loses against one of them is listed
WORK: Final = (*OPERATIONS, *READINGS.values())
DOES: Final[Mapping[str, str]] = dict(
    zip(
        WORK,
        (
            "encode",
            "decode",
            "read offsets and times",
            "read times without the CRC",
            "read one record",
        ),
        strict=True,
    )
)
CELL: Final = ("batch", "with_codec", "label")
COUNTED: Final = ("records", "batches", "size_bytes", "field_bytes")
# Beside its times, for a saving that gives up checks is no plain one.
NOT_LOOKED_AT: Final = (
    (
        f"Of headers {NAME}'s decode-metadata reads how many there are: columns of headers that break a promise, and a "
        f"payload of another size than its lengths say, are left to decode. {BASE_FORMAT} walks through all headers."
    ),
    (
        f"read-times takes no CRC: of a record {BASE_FORMAT} reads the length, time and offset, of a batch {NAME} "
        "its first "
        "two columns, and what is broken behind them is left to decode. v3-headers-first reads all its metadata."
    ),
    f"fetch-record was timed without headers: a batch that has any {NAME} reads whole, which {BASE_FORMAT} need not.",
)
HEADER_PARTS: Final = "batch_header"  # and what is behind a dot
PAYLOAD: Final = ("key", "value", "header_key", "header_value")  # parts of a breakdown that are no metadata


@dataclass(frozen=True, kw_only=True)
class Bytes:
    """One workload under one codec, in batches of `batch` records (0: its own); bytes a record of each format.

    metadata: all that is no key, value or header, without a codec alone, and the floor's; columns: what of it is no
    batch header.
    """

    label: str
    place: int  # among the labels, in their order
    batch: int
    records_a_batch: float
    with_codec: str
    of: Mapping[str, float]
    metadata: Mapping[str, float]
    columns: Mapping[str, float]

    def ratio(self, name: str, base: str = BASE_FORMAT) -> float | None:
        return self.of[name] / self.of[base] if {name, base} <= self.of.keys() else None


@dataclass(frozen=True, kw_only=True)
class Times:
    """One operation, or path of a broker, on one workload: CPU time against v2 and, of columnar, against each rival,
    round by round."""

    label: str
    place: int
    batch: int
    with_codec: str
    operation: str
    of: Mapping[str, Interval]
    against: Mapping[str, Interval]
    again: Interval | None  # v2 against itself


class Columnar:
    """The rows of one run in whose cells columnar was measured."""

    def __init__(self, results: Results) -> None:
        rows = of_all_seeds(once(results.research[results.research["status"] == "ok"]))
        cells = rows.loc[rows["format"] == NAME, "cell_id"]
        rows = rows[rows["cell_id"].isin(cells)]
        self.axes = [axis for axis in results.axes if axis != "batch_size"]
        self.rows = rows.assign(
            label=self._labels(rows), batch=rows["batch_size"].fillna(0).astype(int), with_codec=codecs_of(rows)
        )
        points = self.rows.sort_values(["workload", *self.axes, "label"], na_position="first", kind="stable")
        self.places = {label: place for place, label in enumerate(points["label"].unique())}

    def _labels(self, rows: Frame) -> Frame:
        """A workload's name, and of the grid what varies in it beside the batches."""
        variants = rows["variant"].fillna(DEFAULT).astype(str)
        labels = rows["workload"].where(variants == DEFAULT, rows["workload"] + "/" + variants).astype(str)
        on_grid = rows["workload"] == GRID
        grid = rows[on_grid]
        varied = [axis for axis in self.axes if grid[axis].nunique(dropna=False) > 1]
        points = zip(*(grid[axis] for axis in varied), strict=True) if varied else ()
        if varied:
            labels[on_grid] = [f"{GRID}: {_point(varied, point)}" for point in points]
        return labels.where(rows["cache"].fillna("") != COLD, labels + ", cold")

    @property
    def blocks(self) -> Frame:
        """Its own rows of named workloads, by which the blocks that are about it are known: one of the grid is about
        other formats too."""
        return self.rows[(self.rows["format"] == NAME) & (self.rows["workload"] != GRID)]

    @cached_property
    def bytes(self) -> list[Bytes]:
        """By batch, codec and workload; own batches first, and no codec."""
        rows = self.rows[self.rows["kind"] == "bytes"][[*CELL, "cell_id", "format", *COUNTED]]  # whole rows are slow
        floors = self.rows[self.rows["kind"] == FLOOR].set_index("cell_id")
        found = []
        for (batch, codec, label), part in rows.groupby([*CELL], sort=True):
            by = {row.format: row for row in part.itertuples()}
            if not {NAME, BASE_FORMAT} <= by.keys():
                continue
            of_metadata = dict(by) if codec == NONE else {}
            if codec == NONE and (cell := part["cell_id"].iloc[0]) in floors.index:
                of_metadata[FLOOR] = floors.loc[cell]
            found.append(
                Bytes(
                    label=str(label),
                    place=self.places[str(label)],
                    batch=int(batch),
                    records_a_batch=float(by[BASE_FORMAT].records / by[BASE_FORMAT].batches),
                    with_codec=str(codec),
                    of={name: float(by[name].size_bytes / by[name].records) for name in in_order(by)},
                    metadata={name: sum(_metadata(row).values()) for name, row in of_metadata.items()},
                    columns={name: _columns(row) for name, row in of_metadata.items()},
                )
            )
        return sorted(found, key=lambda each: (each.batch, each.with_codec != NONE, each.with_codec, each.place))

    @cached_property
    def times(self) -> list[Times]:
        """By operation, codec, batch and workload."""
        rows = self.rows[self.rows["kind"].isin(["cpu", *READINGS, "broker"])]
        rows = rows[(rows["kind"] == "broker") | rows["operation"].isin(WORK)]  # an older run may have timed others
        rows = rows[rows["host"] == rows["host"].mode().get(0)]  # a path's times may be of several
        rows = rows[[*CELL, "operation", "format", "arm", "cpu_ns", "inner_loops"]]
        found = []
        for (label, batch, codec, operation), part in rows.groupby(["label", "batch", "with_codec", "operation"]):
            arms = {(row.format, row.arm): row for row in part.itertuples()}
            of = {name: row for (name, arm), row in arms.items() if arm == "measure"}
            if not {NAME, BASE_FORMAT} <= of.keys():
                continue
            again = arms.get((BASE_FORMAT, "aa"))
            found.append(
                Times(
                    label=str(label),
                    place=self.places[str(label)],
                    batch=int(batch),
                    with_codec=str(codec),
                    operation=str(operation),
                    of={name: paired(of[name], of[BASE_FORMAT]) for name in in_order(of) if name != BASE_FORMAT},
                    against={name: paired(of[NAME], of[name]) for name in RIVALS if name in of},
                    again=paired(again, of[BASE_FORMAT]) if again is not None else None,
                )
            )
        place = {str(operation): i for i, operation in enumerate(WORK)}
        return sorted(
            found,
            key=lambda each: (
                place.get(each.operation, len(place)),
                each.operation,
                each.with_codec != NONE,
                each.with_codec,
                each.place,
                each.batch,
            ),
        )

    @cached_property
    def noise(self) -> Mapping[str, tuple[float, float]]:
        """operation -> what v2 reads against itself: the middle 95 %."""
        medians: dict[str, list[float]] = {}
        for each in self.times:
            if each.again is not None:
                medians.setdefault(each.operation, []).append(each.again.median)
        return {operation: zone for operation, found in medians.items() if (zone := middle(found))}

    @cached_property
    def codecs(self) -> list[str]:
        return sorted({each.with_codec for each in self.bytes}, key=lambda codec: (codec != NONE, codec))

    @cached_property
    def losses(self) -> list["Loss"]:
        """Every one, of bytes first."""
        return list(_losses(self))

    def under(self, codec: str, batch: int) -> list[Bytes]:
        return [each for each in self.bytes if (each.with_codec, each.batch) == (codec, batch)]

    @cached_property
    def batches(self) -> list[int]:
        """The workloads' own (0), which all of them have; then the largest first."""
        return sorted({each.batch for each in self.bytes}, key=lambda batch: (batch != 0, -batch))


def _metadata(row: Any) -> dict[str, float]:
    """Bytes a record by part."""
    parts: dict[str, int] = json.loads(row.field_bytes)
    return {name: size / int(row.records) for name, size in parts.items() if name not in PAYLOAD}


def _columns(row: Any) -> float:
    return sum(size for name, size in _metadata(row).items() if not name.startswith(HEADER_PARTS))


def _point(axes: Sequence[str], values: Sequence[Any]) -> str:
    """value 100 bytes, timestamp spread 0 ms"""
    words = []
    for axis, value in zip(axes, values, strict=True):
        shown = level(axis, value)
        words.append(f"{AXES[axis].name} {number(shown)} {'' if isinstance(shown, str) else AXES[axis].unit}".strip())
    return ", ".join(words)


def of_batches(batch: int) -> str:
    return batch_words(batch) if batch else "own batches"


# --- Bytes


def metadata_table(found: Columnar) -> Table | None:
    """Bytes of metadata a record by workload and batch, beside the floor."""
    every = [each for each in found.bytes if FLOOR in each.metadata]
    if not every:
        return None
    names = [name for name in (NAME, FLOOR, BASE_FORMAT, *BESIDE[:-1]) if any(name in each.metadata for each in every)]
    return Table(
        name="columnar-metadata",
        caption="Bytes of metadata a record: all but keys, values and headers, without a codec",
        columns=(
            Column(name="workload"),
            Column(name="batches"),
            Column(name=NAME, unit=f"× {BASE_FORMAT}", digits=3),
            Column(name=f"{NAME} above the floor", unit="bytes"),
            Column(name=f"columns of {NAME}", unit="bytes"),
            Column(name="their entropy", unit="bytes"),
            *(Column(name=name, unit="bytes") for name in names),
            *(
                Column(name=name, unit=f"× {BASE_FORMAT}", digits=3)
                for name in names
                if name not in (NAME, BASE_FORMAT)
            ),
            Column(name="records a batch", digits=1),
        ),
        rows=tuple(
            (
                each.label,
                "own" if not each.batch else number(each.batch),
                _over(each.metadata, NAME),
                each.metadata[NAME] - each.metadata[FLOOR],
                each.columns[NAME],
                each.columns[FLOOR],
                *(each.metadata.get(name) for name in names),
                *(_over(each.metadata, name) for name in names if name not in (NAME, BASE_FORMAT)),
                each.records_a_batch,
            )
            for each in sorted(every, key=lambda each: (each.place, each.batch))
        ),
        notes=(
            (
                f"The floor: a batch header of {NAME}'s size, and the entropy of all columns in these records. It is "
                "too low where values hardly ever recur: n times that all differ have log2(n) bits each, no more."
            ),
            "A time beside the latest (append time, delete horizon) takes 6 bytes there, and 10 or 11 in columnar.",
            f"Header keys and values are no metadata, also where {NAME} stores them once for a batch.",
        ),
    )


def _over(of: Mapping[str, float], name: str) -> float | None:
    return of[name] / of[BASE_FORMAT] if {name, BASE_FORMAT} <= of.keys() else None


def pictured_metadata(found: Columnar) -> dict[str, Frame]:
    """Metadata against v2's in the largest batches that all workloads were put into: label, format, median."""
    batch = max((each.batch for each in found.bytes if FLOOR in each.metadata), default=0)
    dots = [
        (each.label, name, _over(each.metadata, name))
        for each in found.under(NONE, batch)
        for name in ("v3", NAME, FLOOR)
        if FLOOR in each.metadata and name in each.metadata
    ]
    return {of_batches(batch): pd.DataFrame(dots, columns=["label", "format", "median"])} if dots else {}


def bytes_tables(found: Columnar) -> list[Table]:
    """All bytes against v2's by workload: for each size of batches one without a codec and under that of the pictures,
    and one of the other codecs. Together they are wider than a page."""
    tables = [(batch, pictured) for batch in found.batches for pictured in (True, False)]
    return [table for each in tables if (table := _bytes_table(found, *each)) is not None]


def _bytes_table(found: Columnar, batch: int, pictured: bool) -> Table | None:
    codecs = [each for each in found.codecs if found.under(each, batch) and _is_pictured(each) == pictured]
    by = {codec: {each.label: each for each in found.under(codec, batch)} for codec in codecs}
    every = [each for of in by.values() for each in of.values()]
    names = [name for name in (NAME, *BESIDE[:-1]) if any(name in each.of for each in every)]
    shown = [(name, codec) for name in names for codec in codecs]
    if not every:
        return None
    return Table(
        name=bytes_name(batch, pictured),
        caption=f"All bytes, payload too, relative to {BASE_FORMAT} with the same codec: {of_batches(batch)}",
        columns=(
            Column(name="workload"),
            *(Column(name=f"{name}, {codec_words(codec)}", unit=f"× {BASE_FORMAT}", digits=3) for name, codec in shown),
        ),
        rows=tuple(
            (label, *(by[codec][label].ratio(name) if label in by[codec] else None for name, codec in shown))
            for label in sorted({each.label for each in every}, key=lambda label: found.places[label])
        ),
    )


def _is_pictured(codec: str) -> bool:
    return codec.partition(" ")[0] in (NONE, BEST_KNOWN)


def bytes_name(batch: int, pictured: bool = True) -> str:
    return f"columnar-bytes-{batch or 'own'}{'' if pictured else '-others'}"


def means_table(found: Columnar) -> Table | None:
    """Geometric means over workloads by codec and batch."""
    body: list[tuple[Cell, ...]] = []
    names = [name for name in (NAME, *BESIDE[:-1]) if any(name in each.of for each in found.bytes)]
    for codec in found.codecs:
        for batch in sorted(found.batches):
            every = found.under(codec, batch)
            if every:
                means = [_mean(every, name) for name in names]
                span = Ranked(_span(_ends(every), 3), _ends(every)[0])
                body.append((codec_words(codec), of_batches(batch), len(every), means[0], span, *means[1:]))
    return (
        Table(
            name="columnar-means",
            caption=f"All bytes relative to {BASE_FORMAT} with the same codec, geometric mean over workloads",
            columns=(
                Column(name="codec"),
                Column(name="batches"),
                Column(name="workloads"),
                Column(name=NAME, unit=f"× {BASE_FORMAT}", digits=3),
                Column(name=f"{NAME}, least–most"),
                *(Column(name=name, unit=f"× {BASE_FORMAT}", digits=3) for name in names[1:]),
            ),
            rows=tuple(body),
        )
        if body
        else None
    )


def _mean(every: Sequence[Bytes], name: str) -> float | None:
    ratios = [ratio for each in every if (ratio := each.ratio(name)) is not None]
    return geometric_mean(ratios) if len(ratios) == len(every) else None


def _ends(every: Sequence[Bytes]) -> tuple[float, float]:
    ratios = [ratio for each in every if (ratio := each.ratio(NAME)) is not None]
    return min(ratios), max(ratios)


def pictured_bytes(found: Columnar) -> dict[str, Frame]:
    """Bytes against v2's in the first of the batches, a panel without a codec and one under the codec of the other
    pictures: label, format, median."""
    panels = {}
    for codec in filter(_is_pictured, found.codecs if found.batches else ()):
        dots = [
            (each.label, name, ratio)
            for each in found.under(codec, found.batches[0])
            for name in BESIDE
            if (ratio := each.ratio(name)) is not None
        ]
        if dots:
            title = f"{codec_words(codec)}, {of_batches(found.batches[0])}"
            panels[title] = pd.DataFrame(dots, columns=["label", "format", "median"])
    return panels


# --- CPU


def cpu_table(found: Columnar) -> Table | None:
    return _times_table(
        found,
        OPERATIONS,
        "columnar-cpu",
        f"CPU time to encode and decode relative to {BASE_FORMAT}, round by round",
        *_noise_notes(found, OPERATIONS),
    )


def readings_table(found: Columnar) -> Table | None:
    operations = tuple(READINGS.values())
    return _times_table(
        found,
        operations,
        "columnar-readings",
        f"CPU time to read a part relative to {BASE_FORMAT}, round by round",
        *_noise_notes(found, operations),
        *NOT_LOOKED_AT,
    )


def paths_table(found: Columnar) -> Table | None:
    paths = list(dict.fromkeys(each.operation for each in found.times if each.operation not in WORK))
    return _times_table(
        found,
        paths,
        "columnar-paths",
        f"CPU time of a broker's paths relative to {BASE_FORMAT}",
        *_noise_notes(found, paths),
    )


def _noise_notes(found: Columnar, operations: Sequence[str]) -> list[str]:
    zones = [f"{_span(found.noise[each], CPU_DIGITS)} ({each})" for each in operations if each in found.noise]
    return [
        f"{BASE_FORMAT} against itself reads, in the middle 95 %, {listed(zones)}: what reaches into it is a tie."
    ] * bool(zones)


def _times_table(found: Columnar, operations: Sequence[str], name: str, caption: str, *notes: str) -> Table | None:
    times = [each for each in found.times if each.operation in operations]
    if not times:
        return None
    timed = {(each.operation, name) for each in times for name in each.of}
    names = [NAME, *(name for name in in_order({name for _, name in timed}) if name != NAME)]
    shown = [(operation, name) for name in names for operation in operations if (operation, name) in timed]
    cells: dict[tuple[bool, str, int, int, str], dict[tuple[str, str], Interval]] = {}
    for each in times:
        of = cells.setdefault((each.with_codec != NONE, each.with_codec, each.place, each.batch, each.label), {})
        of.update({(each.operation, name): ratio for name, ratio in each.of.items()})
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(name="workload"),
            Column(name="batches"),
            Column(name="codec"),
            *(Column(name=f"{operation}, {name}", unit=f"× {BASE_FORMAT}") for operation, name in shown),
        ),
        rows=tuple(
            (label, "own" if not batch else number(batch), codec_words(codec), *(of.get(each) for each in shown))
            for (_, codec, _, batch, label), of in sorted(cells.items(), key=lambda item: item[0])
        ),
        notes=notes,
    )


def pictured_batch(found: Columnar) -> int:
    """The largest batches in which all that was timed was timed without a codec."""
    plain = [each for each in found.times if each.with_codec == NONE]
    timed = [{each.batch for each in plain if each.operation == operation} for operation in WORK]
    return max(set.intersection(*filter(None, timed)), default=0) if plain else 0


def pictured_cpu(found: Columnar, operations: Sequence[str]) -> dict[str, Frame]:
    """In these batches, without a codec, one panel an operation: label, format, median, low, high."""
    panels, batch = {}, pictured_batch(found)
    for operation in operations:
        bars = [
            (each.label, name, ratio.median, ratio.low, ratio.high)
            for each in found.times
            if (each.operation, each.with_codec, each.batch) == (operation, NONE, batch)
            for name, ratio in each.of.items()
        ]
        if bars:
            panels[operation] = pd.DataFrame(bars, columns=["label", "format", "median", "low", "high"])
    return panels


# --- Where it loses


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A cell in which columnar takes more than another format: bytes, or CPU time that is no tie."""

    what: str
    label: str
    batch: int
    with_codec: str
    against: str
    ratio: float | Interval


def compared(found: Columnar, rival: str) -> dict[str, int]:
    """In how many cells it is compared with a rival, by what is compared."""
    counts = Counter({"bytes": sum(each.ratio(NAME, rival) is not None for each in found.bytes)})
    counts.update(each.operation for each in found.times if rival in each.against)
    return {what: count for what, count in counts.items() if count}


def _losses(found: Columnar) -> Iterator[Loss]:
    """A ratio of CPU times that is a tie (`results.ties`) is none."""
    for size in found.bytes:
        for rival in RIVALS:
            ratio = size.ratio(NAME, rival)
            if ratio is not None and ratio > 1:
                yield Loss(
                    what="bytes",
                    label=size.label,
                    batch=size.batch,
                    with_codec=size.with_codec,
                    against=rival,
                    ratio=ratio,
                )
    for time in found.times:
        for rival, interval in time.against.items():
            if interval.median > 1 and not ties(interval, found.noise.get(time.operation)):
                yield Loss(
                    what=time.operation, label=time.label, batch=time.batch, with_codec=time.with_codec, against=rival,
                    ratio=interval,
                )  # fmt: skip


def losses_table(found: Columnar) -> Table:
    rivals = [rival for rival in RIVALS if compared(found, rival)]
    return Table(
        name="columnar-losses",
        caption=f"Where {NAME} loses: every cell in which it takes more than {' or '.join(rivals)}",
        columns=(
            Column(name="what"),
            Column(name="workload"),
            Column(name="batches"),
            Column(name="codec"),
            Column(name="against"),
            Column(name=NAME, unit="× the other", digits=3),
        ),
        rows=tuple(
            (each.what, each.label, of_batches(each.batch), codec_words(each.with_codec), each.against, each.ratio)
            for each in found.losses
        ),
        notes=(
            *(
                f"Cells in which {NAME} takes more than {rival}: {_lost(found, rival)}{_measured(found)}."
                for rival in rivals
            ),
            f"CPU time takes more where its interval lies above 1, and above what {BASE_FORMAT} reads against itself.",
        ),
    )


# --- Sentences


def sentence(found: Columnar) -> str:
    """What its bytes, its CPU time and its losses come to, one sentence each."""
    return " ".join(filter(None, (bytes_sentence(found), cpu_sentence(found), losses_sentence(found))))


def metadata_sentence(found: Columnar) -> str:
    """How much of what lies above the floor is saved. Empty, as each of these, where nothing was measured."""
    floors = [each for each in found.bytes if FLOOR in each.metadata]
    if not floors:
        return ""
    shares = {
        name: [
            (each.metadata[BASE_FORMAT] - each.metadata[name]) / (each.metadata[BASE_FORMAT] - each.metadata[FLOOR])
            for each in floors
            if name in each.metadata
        ]
        for name in BESIDE
    }
    medians = [f"{100 * float(np.median(each)):.0f} % ({name})" for name, each in shares.items() if each]
    above = [each.metadata[NAME] - each.metadata[FLOOR] for each in floors]
    said = (
        f"The floor is the entropy of a batch's columns behind a header of {NAME}'s own size. In the median of "
        f"{len(floors)} cells {listed(medians)} of what {BASE_FORMAT} has above it is saved; {NAME} stays "
        f"{min(above):.2f} to "
        f"{max(above):.2f} bytes a record above it."
    )
    batch = max(each.batch for each in floors)
    times = [each.columns[NAME] / each.columns[FLOOR] for each in floors if each.batch == batch and each.columns[FLOOR]]
    if times:
        said += f" Its columns alone take {float(np.median(times)):.2f} times their entropy, {of_batches(batch)}."
    return said


def bytes_sentence(found: Columnar) -> str:
    """All bytes against v2's: in own batches and in the largest, without a codec and under that of the pictures."""
    said = list(filter(None, (_bytes_of(found, batch) for batch in found.batches[:2])))
    means = "payload too, geometric means over workloads and their span"
    return f"Of {BASE_FORMAT}'s bytes {NAME} takes {'; '.join(said)} ({means})." if said else ""


def _bytes_of(found: Columnar, batch: int) -> str:
    """in own batches (19 workloads) 0.863 (0.548–1.000) under zstd 3"""
    every = {codec: sizes for codec in found.codecs if (sizes := found.under(codec, batch))}
    every = {codec: sizes for codec, sizes in every.items() if _is_pictured(codec)} or every
    said = [
        f"{mean:.3f}{_between(_ends(sizes), 3)} {_under(codec)}"
        for codec, sizes in every.items()
        if (mean := _mean(sizes, NAME)) is not None
    ]
    there = {each.label for sizes in every.values() for each in sizes}
    others = {each.label for each in found.bytes if 0 < each.batch < batch and not each.label.startswith(GRID)} - there
    without = f", not {listed(sorted(others))}" if others else ""
    return f"{_at(batch)} ({_count(there)}{without}) {listed(said)}" if said else ""


def _at(batch: int) -> str:
    return f"at {of_batches(batch)}" if batch else "in own batches"


def _under(codec: str) -> str:
    return "without a codec" if codec == NONE else f"under {codec}"


def _count(labels: Collection[str]) -> str:
    """18 workloads, 4 points of the grid"""
    points = sum(label.startswith(GRID) for label in labels)
    workloads = len(labels) - points
    said = [f"{workloads} workload{'s' * (workloads != 1)}"] * bool(workloads)
    return listed([*said, *[f"{points} point{'s' * (points != 1)} of the grid"] * bool(points)])


def cpu_sentence(found: Columnar) -> str:
    """Its CPU time against v2's, by operation, without a codec and with each that was timed."""
    batch, said = pictured_batch(found), []
    for codec in dict.fromkeys(each.with_codec for each in found.times):
        means = []
        for operation in WORK:
            every = [
                each.of[NAME].median
                for each in found.times
                if (each.operation, each.with_codec, each.batch) == (operation, codec, batch)
            ]
            if every:
                span = _between((min(every), max(every)), CPU_DIGITS)
                means.append(f"{geometric_mean(every):.{CPU_DIGITS}f}{span} to {DOES[operation]}")
        if means:
            said.append(f"{_under(codec)} {listed(means)}")
    return f"Of {BASE_FORMAT}'s CPU time, {_at(batch)}, it takes {'; '.join(said)}." if said else ""


def losses_sentence(found: Columnar) -> str:
    said = _lost(found, BASE_FORMAT)
    return f"Cells in which it takes more than {BASE_FORMAT}: {said}{_measured(found)}." if said else ""


def _measured(found: Columnar) -> str:
    """What was measured in few cells, so that no count is taken for more than it is."""
    said = []
    few: dict[str, list[str]] = {}
    for codec in found.codecs:
        batches = [batch for batch in found.batches if found.under(codec, batch)]
        if codec != NONE and len(batches) == 1 < len(found.batches):
            few.setdefault(of_batches(batches[0]), []).append(codec_words(codec))
    said += [f"bytes under {listed(codecs)} at {batch} alone" for batch, codecs in few.items()]
    work = [each for each in found.times if each.operation in WORK]
    if work:
        counts = {_count({each.label for each in work if each.operation == one.operation}) for one in work}
        codecs = dict.fromkeys(_under(each.with_codec) for each in work)
        said.append(f"CPU time of an operation on {' or '.join(sorted(counts))}, {listed(list(codecs))}")
    return f" ({'; '.join(said)})" if said else ""


def _lost(found: Columnar, rival: str) -> str:
    """What of what: 3 of 20 by encode and 0 of 40 by decode and append."""
    lost = Counter(each.what for each in found.losses if each.against == rival)
    cells = compared(found, rival)
    said = [f"{lost[what]} of {number(count)} by {what}" for what, count in cells.items() if lost[what]]
    if none := [what for what in cells if not lost[what]]:
        said.append(f"0 of {number(sum(cells[what] for what in none))} by {listed(none)}")
    return "; ".join(said)


def _between(ends: tuple[float, float], digits: int) -> str:
    """The least and the most of several, in brackets."""
    return f" ({_span(ends, digits)})" if ends[0] < ends[1] else ""


def _span(ends: tuple[float, float], digits: int) -> str:
    return f"{ends[0]:.{digits}f}–{ends[1]:.{digits}f}"
