"""The named workloads of one run: what each format makes of them, under each codec, and which is the smallest.

The formats of a workload got the same records in the same batches. A format that cannot carry headers, transactions,
control batches or delete horizons was left out by rule. Other losses (times, producer ids) make a format smaller, and
are printed beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import COLD, Arm, arms_of, middle_95, one_per_arm, paired
from kfbench.report.data.axes import GRID
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import in_order
from kfbench.tables import Interval, listed
from kfbench.workloads.catalogue import DEFAULT
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE

TIE: Final = 0.01  # sizes within one percent of each other are a tie
NONE, BEST_KNOWN = "none", "zstd"  # the codecs of open tables, of the verdict and of the figure
NO_WORKLOADS: Final = "no bytes of named workloads"
TIE_WITH_BASE: Final = f"tie with {BASE_FORMAT}"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of one workload or variant under one codec.

    of: format -> bytes per record. lost: format -> the fields that it could not keep, in words.
    """

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
        """The smallest of the formats that lose nothing, and those that tie with it; v2 alone where it is one of them.

        Empty unless v2 and another of them have sizes: else nothing was compared.
        """
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
        rows = results.all[(results.all["workload"] != GRID) & results.all["kind"].isin(["bytes", "cpu"])]
        rows = rows[rows["cache"] != COLD]
        rows = rows[rows["status"] == "ok"]
        self.seeds = int(rows.groupby("cell_id")["seed"].nunique().max()) if len(rows) else 0
        self.arms = arms_of(one_per_arm(rows))

    @cached_property
    def sizes(self) -> list[Sizes]:
        """The sizes by codec (none first), workload and variant."""
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
        """The codecs of the verdict and the figure: none, and zstd at each level measured."""
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
        """The middle 95 % of what v2 reads against itself."""
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
    """Return True for rows of workloads in the caches: neither of the grid nor of a variant."""
    return (
        (rows["workload"] != GRID) & (rows["variant"].isna() | (rows["variant"] == DEFAULT)) & ~(rows["cache"] == COLD)
    )


def _place(each: Sizes) -> tuple[str, int, str]:
    """Variants in the order of their file; those that it no longer has come last."""
    known = CATALOGUE[each.workload].variants if each.workload in CATALOGUE else ()
    return each.workload, known.index(each.variant) if each.variant in known else len(known), each.variant


def codec_words(with_codec: str) -> str:
    return "no codec" if with_codec == NONE else with_codec
