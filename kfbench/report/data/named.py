"""The named workloads of one run: bytes and CPU time of each format, and the smallest format.

A named workload is one of the catalogue, in contrast to the points of the grid. All formats of a workload encoded the
same records in the same batches. A format that cannot carry headers, transactions, control batches or delete horizons
was left out by rule. Other losses (timestamps, producer ids) make a format smaller. They are printed next to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import COLD, Arm, Band, arms_of, middle_95, one_per_arm, paired
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
    """The size of each format on one workload or variant under one codec.

    of: format -> bytes per record. lost: format -> the fields that it could not carry, in words.
    """

    workload: str
    variant: str
    with_codec: str
    records_per_batch: float
    of: Mapping[str, float]
    lost: Mapping[str, tuple[str, ...]]

    @property
    def label(self) -> str:
        return self.workload if self.variant == DEFAULT else f"{self.workload}/{self.variant}"

    def ratio(self, name: str) -> float | None:
        """Return the bytes of a format divided by those of v2; None if one of the two was not measured."""
        return self.of[name] / self.of[BASE_FORMAT] if {name, BASE_FORMAT} <= self.of.keys() else None

    @property
    def smallest(self) -> list[str]:
        """The smallest format, and the formats that are at most TIE (1 %) larger."""
        return _smallest(self.of)

    @property
    def whole(self) -> dict[str, float]:
        """The formats that lose no field of the records -> bytes per record."""
        return {name: size for name, size in self.of.items() if not self.lost[name]}

    @property
    def smallest_whole(self) -> list[str]:
        """The smallest format that loses no field of the records, and the formats that tie with it.

        They lose no field either, and are at most TIE (1 %) larger.
        """
        return _smallest(self.whole)

    @property
    def winners(self) -> tuple[str, ...]:
        """The smallest formats that lose no field of the records; only v2 if v2 is one of them.

        Empty unless v2 and another format lose nothing, because otherwise nothing can be compared.
        """
        if BASE_FORMAT not in self.whole or len(self.whole) < 2:
            return ()
        return (BASE_FORMAT,) if BASE_FORMAT in self.smallest_whole else tuple(self.smallest_whole)

    @property
    def is_tie(self) -> bool:
        """True if v2 and at least one other format are the smallest that lose no field of the records."""
        return self.winners == (BASE_FORMAT,) and len(self.smallest_whole) > 1

    @property
    def at_a_loss(self) -> list[str]:
        """The formats that lose a field of the records, and are smaller than every format that keeps all fields.

        They must be smaller by more than TIE (1 %).
        """
        return smaller_than_all(self.whole, {name: size for name, size in self.of.items() if self.lost[name]})

    @property
    def winner(self) -> str:
        """The smallest formats and their losses in words; "tie" if all formats are the smallest."""
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


class Timed(NamedTuple):
    """A CPU measurement without a codec, and its ratio to v2."""

    arm: Arm
    ratio: Interval


class Named:
    """The measured bytes and CPU times of the named workloads of one run.

    seeds: the greatest number of seeds that were used for a workload.
    """

    def __init__(self, results: Results) -> None:
        rows = results.all[(results.all["workload"] != GRID) & results.all["kind"].isin(["bytes", "cpu"])]
        rows = rows[rows["cache"] != COLD]
        rows = rows[rows["status"] == "ok"]
        self.seeds = int(rows.groupby("cell_id")["seed"].nunique().max()) if len(rows) else 0
        self.arms = arms_of(one_per_arm(rows))

    @cached_property
    def sizes(self) -> list[Sizes]:
        """The sizes of all workloads, sorted by codec (no codec first), workload and variant."""
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
                    records_per_batch=shown.records / shown.batches,
                    of={name: by[name].size_bytes / by[name].records for name in in_order(by)},
                    lost={name: arm.lost for name, arm in by.items()},
                )
            )
        return sorted(
            found,
            key=lambda each: (
                each.with_codec != NONE, each.with_codec, each.workload, _variant_rank(each), each.variant
            ),
        )  # fmt: skip

    @cached_property
    def codecs(self) -> list[str]:
        return list(dict.fromkeys(each.with_codec for each in self.sizes))

    @cached_property
    def shown_codecs(self) -> list[str]:
        """The codecs of the verdict: no codec, and zstd at each measured level."""
        return [codec for codec in self.codecs if codec.partition(" ")[0] in (NONE, BEST_KNOWN)] or self.codecs[:1]

    def under(self, codec: str, *, variants: bool = False) -> list[Sizes]:
        """Return the sizes under a codec, for the default variants; with `variants`, for the other variants only."""
        return [each for each in self.sizes if each.with_codec == codec and (each.variant != DEFAULT) == variants]

    @cached_property
    def cpu(self) -> dict[tuple[str, str, str], Interval]:
        """CPU time relative to v2 without a codec, with its interval. The keys are (workload, operation, format)."""
        timed = (each for each in self._timed if not each.arm.is_aa)
        return {(arm.label, arm.operation, arm.format): ratio for arm, ratio in timed}

    @cached_property
    def again(self) -> dict[tuple[str, str], Interval]:
        """The ratio of v2's second timing (A/A) to its first, without a codec. The keys are (workload, operation)."""
        return {(arm.label, arm.operation): ratio for arm, ratio in self._timed if arm.is_aa}

    @cached_property
    def noise(self) -> Band | None:
        """The middle 95 % of the ratios of v2 to itself (A/A)."""
        return middle_95([ratio.median for ratio in self.again.values()])

    @cached_property
    def _timed(self) -> list[Timed]:
        """The CPU measurements with their ratios to v2, without v2's first timing.

        Measurements with fewer or more rounds than v2 are left out.
        """
        timed = [arm for arm in self.arms if arm.kind == "cpu" and arm.codec == NONE]
        timed.sort(key=lambda arm: (arm.workload, arm.variant, arm.operation, arm.format, arm.arm))
        bases = {(arm.label, arm.operation): arm for arm in timed if (arm.format, arm.arm) == (BASE_FORMAT, "measure")}
        return [
            Timed(arm, paired(arm, base))
            for arm in timed
            if (base := bases.get((arm.label, arm.operation))) is not None
            and arm is not base
            and len(arm.cpu_ns) == len(base.cpu_ns)
        ]


def is_default_in_caches(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a mask: True for rows of named workloads, default variant, that were not timed in cold caches."""
    return (
        (rows["workload"] != GRID) & (rows["variant"].isna() | (rows["variant"] == DEFAULT)) & ~(rows["cache"] == COLD)
    )


def _variant_rank(each: Sizes) -> int:
    """Return the index of the variant in the workload's file. A variant that is no longer in the file comes last."""
    known = CATALOGUE[each.workload].variants if each.workload in CATALOGUE else ()
    return known.index(each.variant) if each.variant in known else len(known)


def under_words(with_codec: str) -> str:
    """Return "without a codec", or, for example, "under zstd 3"."""
    return "without a codec" if with_codec == NONE else f"under {with_codec}"


def codec_words(with_codec: str) -> str:
    return "no codec" if with_codec == NONE else with_codec
