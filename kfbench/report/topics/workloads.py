"""The named workloads of one run: what each format makes of them, under each codec, and which is the smallest.

The formats of a workload got the same records in the same batches. A format that cannot carry headers, transactions,
control batches or delete horizons was left out by rule; what else it loses (times, producer ids) makes it smaller, and
is said beside it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import COLD, Arm, arms_of, first_of_blocks, middle_95, one_per_arm, paired
from kfbench.report.data.capability import limits
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import MAIN, in_order
from kfbench.report.render.tables import Cell, Column, Interval, Table, listed, number
from kfbench.report.render.words import codecs_of
from kfbench.workloads.catalogue import DEFAULT
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE

SEEDS: Final = "Bytes are those of all seeds together, and so are the rounds of CPU time"
TIE: Final = 0.01  # sizes within one percent of each other are a tie
NONE, BEST_KNOWN = "none", "zstd"  # the codecs of open tables, of the verdict and of the figure
TIE_WITH_BASE: Final = f"tie with {BASE_FORMAT}"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """One workload or variant under one codec. of: format -> bytes a record; lost: format -> what it could not keep."""

    workload: str
    variant: str
    with_codec: str
    records_a_batch: float
    of: Mapping[str, float]
    lost: Mapping[str, tuple[str, ...]]

    @property
    def label(self) -> str:
        return self.workload if self.variant == DEFAULT else f"{self.workload}/{self.variant}"

    def ratio(self, name: str) -> float | None:
        """Bytes against v2's; None where one of them was not measured."""
        return self.of[name] / self.of[BASE_FORMAT] if {name, BASE_FORMAT} <= self.of.keys() else None

    @property
    def smallest(self) -> list[str]:
        """The smallest format and those that tie with it."""
        return _smallest(self.of)

    @property
    def whole(self) -> dict[str, float]:
        """The formats that lose nothing."""
        return {name: size for name, size in self.of.items() if not self.lost[name]}

    @property
    def smallest_whole(self) -> list[str]:
        """The smallest of these, and those that tie with it."""
        return _smallest(self.whole)

    @property
    def winners(self) -> tuple[str, ...]:
        """Of the formats that lose nothing the smallest and those that tie with it; v2 alone where it is one of them.
        Empty unless v2 and another one of them have sizes: nothing was compared."""
        if BASE_FORMAT not in self.whole or len(self.whole) < 2:
            return ()
        return (BASE_FORMAT,) if BASE_FORMAT in self.smallest_whole else tuple(self.smallest_whole)

    @property
    def is_tie(self) -> bool:
        """v2 is among the smallest, and not alone."""
        return self.winners == (BASE_FORMAT,) and len(self.smallest_whole) > 1

    @property
    def at_a_loss(self) -> list[str]:
        """The formats that lose something and take fewer bytes than any that loses nothing, by more than TIE."""
        return smaller_than_all(self.whole, {name: size for name, size in self.of.items() if self.lost[name]})

    @property
    def winner(self) -> str:
        """The smallest in words, with what it loses; all formats alike is a tie."""
        if len(self.smallest) == len(self.of) > 1:
            return "tie"
        lost = list(dict.fromkeys(what for name in self.smallest for what in self.lost[name]))
        return listed(self.smallest) + (f", without {listed(lost)}" if lost else "")

    @property
    def whole_winner(self) -> str:
        return "tie" if len(self.smallest_whole) == len(self.whole) > 1 else listed(self.smallest_whole)


def smaller_than_all(whole: Mapping[str, float], others: Mapping[str, float]) -> list[str]:
    least = min(whole.values(), default=0.0)
    return [name for name, size in others.items() if size * (1 + TIE) < least]


def _smallest(sizes: Mapping[str, float]) -> list[str]:
    least = min(sizes.values(), default=0.0)
    return [name for name, size in sizes.items() if size <= least * (1 + TIE)]


class Named:
    """The rows of one run that are not of the grid: bytes and CPU. seeds: the most that a cell has."""

    def __init__(self, results: Results) -> None:
        rows = results.all[(results.all["workload"] != "grid") & results.all["kind"].isin(["bytes", "cpu"])]
        rows = rows[rows["cache"] != COLD]
        rows = rows[rows["status"] == "ok"]
        self.seeds = int(rows.groupby("cell_id")["seed"].nunique().max()) if len(rows) else 0
        self.arms = arms_of(one_per_arm(rows))

    @cached_property
    def sizes(self) -> list[Sizes]:
        """By workload, variant and codec, none first."""
        cells: dict[tuple[str, str, str], dict[str, Arm]] = {}
        for arm in self.arms:
            if arm.kind == "bytes":
                cells.setdefault((arm.workload, arm.variant, arm.with_codec), {})[arm.format] = arm
        found = []
        for (workload, variant, codec), by in cells.items():
            shown = by.get(BASE_FORMAT) or next(iter(by.values()))
            found.append(
                Sizes(
                    workload=workload,
                    variant=variant,
                    with_codec=codec,
                    records_a_batch=shown.records / shown.batches,
                    of={name: by[name].size_bytes / by[name].records for name in in_order(by)},
                    lost={name: arm.lost for name, arm in by.items()},
                )
            )
        return sorted(found, key=lambda each: (each.with_codec != NONE, each.with_codec, _place(each)))

    @cached_property
    def codecs(self) -> list[str]:
        return list(dict.fromkeys(each.with_codec for each in self.sizes))

    @cached_property
    def shown_codecs(self) -> list[str]:
        """Those of the verdict and the figure: none, and zstd at each level measured."""
        return [codec for codec in self.codecs if codec.partition(" ")[0] in (NONE, BEST_KNOWN)] or self.codecs[:1]

    def under(self, codec: str, *, variants: bool = False) -> list[Sizes]:
        """Each workload as it stands, or the variants."""
        return [each for each in self.sizes if each.with_codec == codec and (each.variant != DEFAULT) == variants]

    @cached_property
    def cpu(self) -> dict[tuple[str, str, str], Interval]:
        """(workload, operation, format) -> CPU time against v2 without a codec, round by round."""
        return {(where, operation, name): ratio for where, operation, name, arm, ratio in self._timed if arm != "aa"}

    @cached_property
    def again(self) -> dict[tuple[str, str], Interval]:
        """(workload, operation) -> v2 against itself, without a codec, round by round."""
        return {(where, operation): ratio for where, operation, _, arm, ratio in self._timed if arm == "aa"}

    @cached_property
    def noise(self) -> tuple[float, float] | None:
        """What v2 reads against itself: the middle 95 %."""
        return middle_95([ratio.median for ratio in self.again.values()])

    @cached_property
    def _timed(self) -> list[tuple[str, str, str, str, Interval]]:
        """(workload, operation, format, arm, ratio) of every arm but v2's own that has as many rounds as v2."""
        timed = [arm for arm in self.arms if arm.kind == "cpu" and arm.codec == NONE]
        timed.sort(key=lambda arm: (arm.workload, arm.variant, arm.operation, arm.format, arm.arm))
        bases = {(arm.label, arm.operation): arm for arm in timed if (arm.format, arm.arm) == (BASE_FORMAT, "measure")}
        return [
            (arm.label, arm.operation, arm.format, arm.arm, paired(arm, base))
            for arm in timed
            if (base := bases.get((arm.label, arm.operation))) is not None
            and arm is not base
            and len(arm.cpu_ns) == len(base.cpu_ns)
        ]


def as_they_stand(rows: pd.DataFrame) -> pd.DataFrame:
    """Which rows are of workloads in the caches: neither of the grid nor of a variant."""
    return (
        (rows["workload"] != "grid")
        & (rows["variant"].isna() | (rows["variant"] == DEFAULT))
        & ~(rows["cache"] == COLD)
    )


def _place(each: Sizes) -> tuple[str, int, str]:
    """Variants in the order of their file; those that it no longer has come last."""
    known = CATALOGUE[each.workload].variants if each.workload in CATALOGUE else ()
    return each.workload, known.index(each.variant) if each.variant in known else len(known), each.variant


# --- Tables


def verdict(named: Named) -> Table:
    """One row a workload: its question, and which format answers it with the fewest bytes. What loses nothing has a
    column of its own where that is another format."""
    by = {codec: {each.workload: each for each in named.under(codec)} for codec in named.shown_codecs}
    workloads = list(dict.fromkeys(name for found in by.values() for name in found))
    winners: dict[str, list[Cell]] = {}
    for codec, found in by.items():
        each = [found.get(name) for name in workloads]
        smallest = [one.winner if one else None for one in each]
        whole = [one.whole_winner if one else None for one in each]
        winners[f"smallest, {codec_words(codec)}"] = [*smallest]
        if whole != smallest:
            winners[f"smallest that loses nothing, {codec_words(codec)}"] = [*whole]
    body = []
    for i, name in enumerate(workloads):
        first = next(found[name] for found in by.values() if name in found)
        question = CATALOGUE[name].describe().question if name in CATALOGUE else None
        body.append((name, question, first.records_a_batch, *(words[i] for words in winners.values())))
    return Table(
        name="workloads",
        caption="The smallest format for each workload",
        columns=(
            Column(name="workload"),
            Column(name="question"),
            Column(name="records a batch", digits=1),
            *(Column(name=name) for name in winners),
        ),
        rows=tuple(body),
        notes=(
            f"Formats within {100 * TIE:.0f} % of the smallest share its place; all of them: a tie.",
            *filter(
                None,
                (limits(name, BASE_FORMAT) for name in in_order(won for each in named.sizes for won in each.winners)),
            ),
            *([f"{SEEDS} (up to {named.seeds})."] if named.seeds > 1 else []),
        ),
    )


def codec_words(with_codec: str) -> str:
    return "no codec" if with_codec == NONE else with_codec


def table_name(codec: str, suffix: str = "") -> str:
    """The table of bytes by workload under one codec."""
    return f"workloads{suffix}-{codec}".replace(" ", "-")


def size_tables(named: Named) -> tuple[list[Table], list[Table]]:
    """Bytes by workload and format, one table a codec: those to show, and those to fold away."""
    shown = [_sizes_table(named.under(codec), codec, "") for codec in named.shown_codecs]
    folded = [
        _sizes_table(found, codec, "-variants")
        for codec in named.codecs
        if (found := named.under(codec, variants=True))
    ]
    folded += [_sizes_table(named.under(codec), codec, "") for codec in named.codecs if codec not in named.shown_codecs]
    return [table for table in shown if table.rows], [table for table in folded if table.rows]


def _sizes_table(found: Sequence[Sizes], codec: str, suffix: str) -> Table:
    formats = in_order(name for each in found for name in each.of)
    others = [name for name in formats if name != BASE_FORMAT]
    what = "Variants" if suffix else "Workloads"
    return Table(
        name=table_name(codec, suffix),
        caption=f"{what}: bytes a record, payload too, and relative to {BASE_FORMAT} ({codec_words(codec)})",
        columns=(
            Column(name="workload"),
            Column(name="records a batch", digits=1),
            *(Column(name=name, unit="bytes") for name in formats),
            *(Column(name=name, unit=f"× {BASE_FORMAT}", digits=3) for name in others),
            Column(name="smallest"),
        ),
        rows=tuple(
            (
                each.label,
                each.records_a_batch,
                *(each.of.get(name) for name in formats),
                *(each.ratio(name) for name in others),
                each.winner,
            )
            for each in found
        ),
    )


def cpu_table(named: Named) -> Table | None:
    """CPU against v2 by workload, operation and format."""
    if not named.cpu:
        return None
    formats = in_order(name for _, _, name in named.cpu)
    return Table(
        name="workloads-cpu",
        caption=f"Workloads: CPU time relative to {BASE_FORMAT}, no codec",
        columns=(
            Column(name="workload"),
            *(
                Column(name=f"{operation}, {name}", unit=f"× {BASE_FORMAT}")
                for operation in OPERATIONS
                for name in formats
            ),
        ),
        rows=tuple(
            (workload, *(named.cpu.get((workload, operation, name)) for operation in OPERATIONS for name in formats))
            for workload in dict.fromkeys(where for where, _, _ in named.cpu)
        ),
    )


def seed_table(results: Results, new: str = "v3") -> Table | None:
    """How far the bytes against v2's differ from seed to seed, codec by codec; None where no cell has several seeds."""
    rows = results.ok[(results.ok["kind"] == "bytes") & results.ok["format"].isin([BASE_FORMAT, new])]
    rows = rows[rows.groupby("cell_id")["seed"].transform("nunique") > 1]
    if rows.empty:
        return None
    rows = first_of_blocks(rows)
    rows = rows.assign(with_codec=codecs_of(rows))
    sizes = rows.pivot(index=["with_codec", "cell_id", "seed"], columns="format", values="size_bytes").dropna()
    ratios = (sizes[new] / sizes[BASE_FORMAT]).groupby(["with_codec", "cell_id"]).agg(["count", "min", "max"])
    ratios = ratios[ratios["count"] > 1].assign(apart=ratios["max"] - ratios["min"])
    named = rows.drop_duplicates("cell_id").set_index("cell_id")[["workload", "variant"]].astype("object")
    body = []
    for codec, part in ratios.groupby(level="with_codec"):
        worst = named.loc[part["apart"].idxmax()[1]]
        plain = pd.isna(worst["variant"]) or worst["variant"] == DEFAULT
        where = worst["workload"] if plain else f"{worst['workload']}/{worst['variant']}"
        apart = part["apart"]
        body.append((str(codec), len(part), int(part["count"].max()), apart.median(), apart.max(), str(where)))
    return Table(
        name="seeds",
        caption=f"{new} against {BASE_FORMAT}: how far the ratio of bytes moves from seed to seed",
        columns=(
            Column(name="codec"),
            Column(name="cells"),
            Column(name="seeds"),
            Column(name="median cell", unit="× v2", digits=5),
            Column(name="worst cell", unit="× v2", digits=5),
            Column(name="which is of"),
        ),
        rows=tuple(body),
        notes=("Largest less smallest ratio of a cell. Other seeds are other records of the same workload.",),
    )


# --- Sentences and the figure


def sentence(named: Named, new: str = "v3") -> str:
    """For whom v3 is smaller than v2, by how much, and what it costs in CPU; which other formats win."""
    said = [text for codec in named.shown_codecs if (text := _bytes_sentence(named.under(codec), codec, new))]
    spans = []
    for operation in OPERATIONS:
        medians = [ratio.median for (_, each, name), ratio in named.cpu.items() if (each, name) == (operation, new)]
        if medians:
            spans.append(f"{min(medians):.2f} to {max(medians):.2f} times the CPU of {BASE_FORMAT} to {operation}")
    if spans:
        text = f"{new} takes {listed(spans)}"
        if named.noise:
            text += (
                f"; on these workloads {BASE_FORMAT} against itself reads {named.noise[0]:.2f} to {named.noise[1]:.2f}"
            )
        said.append(text)
    return ". ".join(said) + "." if said else ""


def _bytes_sentence(found: Sequence[Sizes], codec: str, new: str) -> str:
    ratios = {each.workload: ratio for each in found if (ratio := each.ratio(new)) is not None}
    if not ratios:
        return ""
    smaller = sum(ratio < 1 - TIE for ratio in ratios.values())
    larger = [name for name, ratio in ratios.items() if ratio > 1 + TIE]
    least, most = min(ratios, key=lambda name: ratios[name]), max(ratios, key=lambda name: ratios[name])
    text = (
        f"{'Without a codec' if codec == NONE else f'Under {codec}'} {new} is smaller than {BASE_FORMAT} by more than "
        f"{100 * TIE:.0f} % for {smaller} of {number(len(ratios))} workloads and ties for "
        f"{len(ratios) - smaller - len(larger)}, from {ratios[least]:.3f} times the bytes ({least}) to "
        f"{ratios[most]:.3f} ({most})"
    )
    if larger:
        text += f"; it is larger for {listed(larger)}"
    for old in MAIN[: MAIN.index(BASE_FORMAT)]:
        if wins := [each.workload for each in found if old in each.winners]:
            text += f"; {old} is the smallest for {listed(wins)}"
        if losing := [each for each in found if old in each.at_a_loss]:
            text += f"; {without(losing, old)}, takes less than any that loses nothing for "
            text += listed([each.workload for each in losing])
    return text


def without(found: Sequence[Sizes], name: str) -> str:
    """A format and what it loses over these workloads: v0, without times."""
    return f"{name}, without {listed(list(dict.fromkeys(what for each in found for what in each.lost[name])))}"


def pictured(named: Named) -> dict[str, pd.DataFrame]:
    """Of each codec of the verdict: label, format, median (bytes against v2), the workloads that gain most first."""
    panels = {}
    first = {each.workload: each.ratio("v3") or 1.0 for each in named.under(named.shown_codecs[0])}
    for codec in named.shown_codecs:
        found = sorted(named.under(codec), key=lambda each: (first.get(each.workload, 1.0), each.workload))
        dots = [
            (each.workload, name, ratio)
            for each in found
            for name in each.of
            if name != BASE_FORMAT and (ratio := each.ratio(name)) is not None
        ]
        if dots:
            panels[codec_words(codec)] = pd.DataFrame(dots, columns=["label", "format", "median"])
    return panels
