"""columnar, this project's research format, beside v2, v3, headers first and the metadata floor: bytes, CPU, losses.

Its rows stand here and nowhere else (`results.RESEARCH`): the other sections are about formats that Kafka has or was
proposed.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.measure.cpu import OPERATIONS, READINGS
from kfbench.measure.floor import FLOOR
from kfbench.report.render import Cell, Column, Interval, Table, listed, number
from kfbench.report.results import BASE, Frame, Results, in_order, middle, paired
from kfbench.report.seeds import of_all_seeds, once
from kfbench.report.words import batch_words, codecs_of
from kfbench.report.workloads import BEST_KNOWN, NONE, codec_words
from kfbench.workloads.catalogue import DEFAULT

NAME: Final = "columnar"
BESIDE: Final = ("v3", "v3-headers-first", NAME)
RIVALS: Final = (BASE, "v3", "v3-headers-first")  # where columnar loses against one of them is listed
WORK: Final = (*OPERATIONS, *READINGS.values())
DOES: Final = dict(
    zip(
        WORK,
        (
            "encode",
            "decode",
            "read offsets and times alone",
            "read them without the CRC",
            "read one record of a batch",
        ),
        strict=True,
    )
)
PANELS: Final = dict(zip(WORK, (*OPERATIONS, *READINGS), strict=True))  # short: there are five beside one another
CELL: Final = ("batch", "with_codec", "label")
COUNTED: Final = ("records", "batches", "size_bytes", "field_bytes")
# Beside its times, for a saving that gives up checks is no plain one.
NOT_LOOKED_AT: Final = (
    (
        f"Of headers {NAME}'s decode-metadata and lookup-metadata read how many there are: columns of headers that "
        "break a promise, and a payload of another size than its lengths say, are left to decode. "
        f"{BASE} walks through all headers."
    ),
    f"fetch-record was timed without headers: a batch that has any {NAME} reads whole, which {BASE} need not.",
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
    batch: int
    records_a_batch: float
    with_codec: str
    of: Mapping[str, float]
    metadata: Mapping[str, float]
    columns: Mapping[str, float]

    def ratio(self, name: str, base: str = BASE) -> float | None:
        return self.of[name] / self.of[base] if {name, base} <= self.of.keys() else None


@dataclass(frozen=True, kw_only=True)
class Times:
    """One operation, or path of a broker, on one workload: CPU time against v2 and, of columnar, against each rival,
    round by round."""

    label: str
    batch: int
    with_codec: str
    operation: str
    of: Mapping[str, Interval]
    against: Mapping[str, Interval]
    again: Interval | None  # v2 against itself


class Columnar:
    """The rows of one run in whose cells columnar was measured."""

    def __init__(self, results: Results) -> None:
        rows = results.research[results.research["workload"] != "grid"]
        rows = of_all_seeds(once(rows[rows["status"] == "ok"]))
        cells = rows.loc[rows["format"] == NAME, "cell_id"]
        rows = rows[rows["cell_id"].isin(cells)]
        variants = rows["variant"].fillna(DEFAULT).astype(str)
        self.rows = rows.assign(
            label=rows["workload"].where(variants == DEFAULT, rows["workload"] + "/" + variants),
            batch=rows["batch_size"].fillna(0).astype(int),
            with_codec=codecs_of(rows),
        )

    @property
    def blocks(self) -> Frame:
        """Rows of the blocks that measured it."""
        return self.rows[self.rows["format"] == NAME]

    @cached_property
    def bytes(self) -> list[Bytes]:
        """By batch, codec and workload; own batches first, and no codec."""
        rows = self.rows[self.rows["kind"] == "bytes"][[*CELL, "cell_id", "format", *COUNTED]]  # whole rows are slow
        floors = self.rows[self.rows["kind"] == FLOOR].set_index("cell_id")
        found = []
        for (batch, codec, label), part in rows.groupby([*CELL], sort=True):
            by = {row.format: row for row in part.itertuples()}
            if not {NAME, BASE} <= by.keys():
                continue
            of_metadata = dict(by) if codec == NONE else {}
            if codec == NONE and (cell := part["cell_id"].iloc[0]) in floors.index:
                of_metadata[FLOOR] = floors.loc[cell]
            found.append(
                Bytes(
                    label=str(label),
                    batch=int(batch),
                    records_a_batch=float(by[BASE].records / by[BASE].batches),
                    with_codec=str(codec),
                    of={name: float(by[name].size_bytes / by[name].records) for name in in_order(by)},
                    metadata={name: sum(_metadata(row).values()) for name, row in of_metadata.items()},
                    columns={name: _columns(row) for name, row in of_metadata.items()},
                )
            )
        return sorted(found, key=lambda each: (each.batch, each.with_codec != NONE, each.with_codec, each.label))

    @cached_property
    def times(self) -> list[Times]:
        """By operation, codec, batch and workload."""
        rows = self.rows[self.rows["kind"].isin(["cpu", *READINGS, "broker"])]
        rows = rows[rows["host"] == rows["host"].mode().get(0)]  # a path's times may be of several
        rows = rows[[*CELL, "operation", "format", "arm", "cpu_ns", "inner_loops"]]
        found = []
        for (label, batch, codec, operation), part in rows.groupby(["label", "batch", "with_codec", "operation"]):
            arms = {(row.format, row.arm): row for row in part.itertuples()}
            of = {name: row for (name, arm), row in arms.items() if arm == "measure"}
            if not {NAME, BASE} <= of.keys():
                continue
            again = arms.get((BASE, "aa"))
            found.append(
                Times(
                    label=str(label),
                    batch=int(batch),
                    with_codec=str(codec),
                    operation=str(operation),
                    of={name: paired(of[name], of[BASE]) for name in in_order(of) if name != BASE},
                    against={name: paired(of[NAME], of[name]) for name in RIVALS if name in of},
                    again=paired(again, of[BASE]) if again is not None else None,
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
                each.label,
                each.batch,
            ),
        )

    @cached_property
    def noise(self) -> tuple[float, float] | None:
        return middle([each.again.median for each in self.times if each.again is not None])

    @cached_property
    def codecs(self) -> list[str]:
        return sorted({each.with_codec for each in self.bytes}, key=lambda codec: (codec != NONE, codec))

    def under(self, codec: str, batch: int) -> list[Bytes]:
        return [each for each in self.bytes if (each.with_codec, each.batch) == (codec, batch)]

    @cached_property
    def batches(self) -> list[int]:
        """The one that most codecs were measured in comes first, of these the largest."""
        found = {
            each.batch: len({one.with_codec for one in self.bytes if one.batch == each.batch}) for each in self.bytes
        }
        return sorted(found, key=lambda batch: (-found[batch], -batch))


def _metadata(row: Any) -> dict[str, float]:
    """Bytes a record by part."""
    parts: dict[str, int] = json.loads(row.field_bytes)
    return {name: size / int(row.records) for name, size in parts.items() if name not in PAYLOAD}


def _columns(row: Any) -> float:
    return sum(size for name, size in _metadata(row).items() if not name.startswith(HEADER_PARTS))


def of_batches(batch: int) -> str:
    return batch_words(batch) if batch else "own batches"


# --- Bytes


def metadata_table(found: Columnar) -> Table | None:
    """Bytes of metadata a record by workload and batch, beside the floor."""
    every = [each for each in found.bytes if FLOOR in each.metadata]
    if not every:
        return None
    names = [name for name in (BASE, *BESIDE, FLOOR) if any(name in each.metadata for each in every)]
    return Table(
        name="columnar-metadata",
        caption="Bytes of metadata a record: all but keys, values and headers, without a codec",
        columns=(
            Column(name="workload"),
            Column(name="batches"),
            Column(name="records a batch", digits=1),
            *(Column(name=name, unit="bytes") for name in names),
            *(Column(name=name, unit=f"× {BASE}", digits=3) for name in names if name != BASE),
            Column(name=f"{NAME} above the floor", unit="bytes"),
            Column(name=f"columns of {NAME}", unit="bytes"),
            Column(name="their entropy", unit="bytes"),
        ),
        rows=tuple(
            (
                each.label,
                "own" if not each.batch else number(each.batch),
                each.records_a_batch,
                *(each.metadata.get(name) for name in names),
                *(_over(each.metadata, name) for name in names if name != BASE),
                each.metadata[NAME] - each.metadata[FLOOR],
                each.columns[NAME],
                each.columns[FLOOR],
            )
            for each in sorted(every, key=lambda each: (each.label, each.batch))
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
    return of[name] / of[BASE] if {name, BASE} <= of.keys() else None


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
    """All bytes against v2's by workload and codec: one table for each size of batches."""
    return [_bytes_table(found, batch) for batch in found.batches]


def _bytes_table(found: Columnar, batch: int) -> Table:
    codecs = [codec for codec in found.codecs if found.under(codec, batch)]
    by = {codec: {each.label: each for each in found.under(codec, batch)} for codec in codecs}
    names = [name for name in BESIDE if any(name in each.of for of in by.values() for each in of.values())]
    labels = sorted({label for of in by.values() for label in of})
    return Table(
        name=_bytes_name(batch),
        caption=f"All bytes, payload too, relative to {BASE} with the same codec: {of_batches(batch)}",
        columns=(
            Column(name="workload"),
            *(
                Column(name=f"{name}, {codec_words(codec)}", unit=f"× {BASE}", digits=3)
                for codec in codecs
                for name in names
            ),
        ),
        rows=tuple(
            (
                label,
                *(by[codec][label].ratio(name) if label in by[codec] else None for codec in codecs for name in names),
            )
            for label in labels
        ),
    )


def _bytes_name(batch: int) -> str:
    return f"columnar-bytes-{batch or 'own'}"


def means_table(found: Columnar) -> Table | None:
    """Geometric means over workloads by codec and batch."""
    body: list[tuple[Cell, ...]] = []
    for codec in found.codecs:
        for batch in sorted(found.batches):
            every = found.under(codec, batch)
            if every:
                body.append(
                    (codec_words(codec), of_batches(batch), len(every), *(_mean(every, name) for name in BESIDE))
                )
    return (
        Table(
            name="columnar-means",
            caption=f"All bytes relative to {BASE} with the same codec, geometric mean over workloads",
            columns=(
                Column(name="codec"),
                Column(name="batches"),
                Column(name="workloads"),
                *(Column(name=name, unit=f"× {BASE}", digits=3) for name in BESIDE),
            ),
            rows=tuple(body),
        )
        if body
        else None
    )


def _mean(every: Sequence[Bytes], name: str) -> float | None:
    ratios = [ratio for each in every if (ratio := each.ratio(name)) is not None]
    return geometric_mean(ratios) if len(ratios) == len(every) else None


def pictured_bytes(found: Columnar) -> dict[str, Frame]:
    """Bytes against v2's in the batches that most codecs have, a panel without a codec and one under the codec of the
    other pictures: label, format, median."""
    panels = {}
    for codec in found.codecs if found.batches else ():
        if codec.partition(" ")[0] not in (NONE, BEST_KNOWN):
            continue
        dots = [
            (each.label, name, ratio)
            for each in found.under(codec, found.batches[0])
            for name in BESIDE
            if (ratio := each.ratio(name)) is not None
        ]
        if dots:
            panels[codec_words(codec)] = pd.DataFrame(dots, columns=["label", "format", "median"])
    return panels


# --- CPU


def cpu_table(found: Columnar) -> Table | None:
    return _times_table(
        found,
        WORK,
        "columnar-cpu",
        f"CPU time relative to {BASE}, round by round",
        *([f"{BASE} against itself reads {_span(found.noise, 3)}."] if found.noise else []),
        *NOT_LOOKED_AT,
    )


def paths_table(found: Columnar) -> Table | None:
    paths = list(dict.fromkeys(each.operation for each in found.times if each.operation not in WORK))
    return _times_table(found, paths, "columnar-paths", f"CPU time of a broker's paths relative to {BASE}")


def _times_table(found: Columnar, operations: Sequence[str], name: str, caption: str, *notes: str) -> Table | None:
    times = [each for each in found.times if each.operation in operations]
    if not times:
        return None
    names = {
        operation: in_order({n for each in times if each.operation == operation for n in each.of})
        for operation in operations
    }
    shown = [(operation, name) for operation in operations for name in names[operation]]
    cells: dict[tuple[str, int, str], dict[tuple[str, str], Interval]] = {}
    for each in times:
        of = cells.setdefault((each.label, each.batch, each.with_codec), {})
        of.update({(each.operation, name): ratio for name, ratio in each.of.items()})
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(name="workload"),
            Column(name="batches"),
            Column(name="codec"),
            *(Column(name=f"{operation}, {name}", unit=f"× {BASE}") for operation, name in shown),
        ),
        rows=tuple(
            (label, "own" if not batch else number(batch), codec_words(codec), *(of.get(each) for each in shown))
            for (label, batch, codec), of in sorted(cells.items(), key=lambda item: (item[0][2] != NONE, item[0]))
        ),
        notes=notes,
    )


def pictured_batch(found: Columnar) -> int:
    """The largest batches in which all that was timed was timed without a codec."""
    plain = [each for each in found.times if each.with_codec == NONE]
    timed = [{each.batch for each in plain if each.operation == operation} for operation in WORK]
    return max(set.intersection(*filter(None, timed)), default=0) if plain else 0


def pictured_cpu(found: Columnar) -> dict[str, Frame]:
    """In these batches, without a codec, one panel an operation: label, format, median, low, high."""
    panels, batch = {}, pictured_batch(found)
    for operation in WORK:
        bars = [
            (each.label, name, ratio.median, ratio.low, ratio.high)
            for each in found.times
            if (each.operation, each.with_codec, each.batch) == (operation, NONE, batch)
            for name, ratio in each.of.items()
        ]
        if bars:
            panels[PANELS[operation]] = pd.DataFrame(bars, columns=["label", "format", "median", "low", "high"])
    return panels


# --- Where it loses


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A cell in which columnar takes more than another format: bytes, or CPU time by its whole interval."""

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


def losses(found: Columnar) -> Iterator[Loss]:
    """Every one; a ratio of CPU time whose interval reaches down to 1 is none."""
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
            if interval.low > 1:
                yield Loss(
                    what=time.operation, label=time.label, batch=time.batch, with_codec=time.with_codec, against=rival,
                    ratio=interval,
                )  # fmt: skip


def losses_table(found: Columnar) -> Table:
    return Table(
        name="columnar-losses",
        caption=f"Where {NAME} loses: every cell in which it takes more than {' or '.join(RIVALS)}",
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
            for each in losses(found)
        ),
        notes=(
            *(
                f"Cells in which {NAME} takes more than {rival}: {_lost(found, rival)}."
                for rival in RIVALS
                if compared(found, rival)
            ),
            "CPU time loses where its whole interval is above 1.",
        ),
    )


# --- Sentences


def sentence(found: Columnar) -> str:
    """What its bytes, its CPU time and its losses come to, one sentence each."""
    said = metadata_sentence(found), bytes_sentence(found), cpu_sentence(found), _losses_sentence(found)
    return " ".join(filter(None, said))


def metadata_sentence(found: Columnar) -> str:
    """How much of what lies above the floor is saved. Empty, as each of these, where nothing was measured."""
    floors = [each for each in found.bytes if FLOOR in each.metadata]
    if not floors:
        return ""
    shares = {
        name: [
            (each.metadata[BASE] - each.metadata[name]) / (each.metadata[BASE] - each.metadata[FLOOR])
            for each in floors
            if name in each.metadata
        ]
        for name in BESIDE
    }
    medians = [f"{100 * float(np.median(each)):.0f} % ({name})" for name, each in shares.items() if each]
    above = [each.metadata[NAME] - each.metadata[FLOOR] for each in floors]
    said = (
        f"The floor is the entropy of a batch's columns behind a header of {NAME}'s size. In the median of "
        f"{len(floors)} cells {listed(medians)} of what {BASE} has above it is saved; {NAME} stays {min(above):.2f} to "
        f"{max(above):.2f} bytes a record above it."
    )
    batch = max(each.batch for each in floors)
    times = [each.columns[NAME] / each.columns[FLOOR] for each in floors if each.batch == batch and each.columns[FLOOR]]
    if times:
        said += f" Its columns alone take {float(np.median(times)):.2f} times their entropy, {of_batches(batch)}."
    return said


def bytes_sentence(found: Columnar) -> str:
    """All bytes against v2's, by codec."""
    if not found.batches:
        return ""
    batch = found.batches[0]
    means = {codec: _mean(found.under(codec, batch), NAME) for codec in found.codecs if found.under(codec, batch)}
    said = [f"{mean:.3f} ({codec_words(codec)})" for codec, mean in means.items() if mean is not None]
    there = {each.label for codec in found.codecs for each in found.under(codec, batch)}
    missing = sorted({each.label for each in found.bytes} - there)
    means_of = f"geometric means over {len(there)} workloads, {of_batches(batch)}"
    if missing:
        means_of += f" ({listed(missing)}: none so large)"
    return f"Payload too, {NAME} takes {listed(said)} times the bytes of {BASE}, {means_of}." if said else ""


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
                span = _span((min(every), max(every)), 2)
                means.append(f"{geometric_mean(every):.2f} ({span}) to {DOES[operation]}")
        if means:
            said.append(f"{codec_words(codec)}: {listed(means)}")
    by = f"CPU time of {NAME} against {BASE}'s, geometric means over workloads and their span, {of_batches(batch)}"
    return f"{by}; {'; '.join(said)}." if said else ""


def _losses_sentence(found: Columnar) -> str:
    said = _lost(found, BASE)
    return f"Cells in which {NAME} takes more than {BASE}: {said}." if said else ""


def _lost(found: Columnar, rival: str) -> str:
    """What of what: 3 of 20 by encode."""
    lost = Counter(each.what for each in losses(found) if each.against == rival)
    return listed([f"{lost[what]} of {number(count)} by {what}" for what, count in compared(found, rival).items()])


def _span(ends: tuple[float, float], digits: int) -> str:
    return f"{ends[0]:.{digits}f} to {ends[1]:.{digits}f}"
