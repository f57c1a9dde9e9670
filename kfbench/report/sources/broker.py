"""The measured broker paths of a run, as typed rows, for sources that combine several of them."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import pandas as pd

from kfbench.measure.cpu import Interval
from kfbench.present.arms import StoredArm, middle_95, time_ratio
from kfbench.present.names import GRID
from kfbench.present.rows import Rows, Runs
from kfbench.present.table import Band, listed
from kfbench.report.sources.noise import to_itself

APPEND: Final = "append"
CONVERSION: Final = "convert"
WHERE: Final = {"kind": "broker", "research": False}


class BrokerArms:
    """The measurements of broker paths. Research formats, and workloads batched for them, are left out.

    Args:
        arms: all measurements, failures too, by workload and codec. Second timings of a base are not included.
        one_host: True if all times were measured on the same host.
    """

    def __init__(self, rows: Rows) -> None:
        arms = [arm for arm in rows.typed({**WHERE, "status": "any"}) if arm.workload == GRID or not _batch_size(arm)]
        self.arms = sorted(arms, key=lambda arm: (_batch_size(arm), arm.cell_id, arm.codec != "none", arm.with_codec))
        self.ok = [arm for arm in self.arms if arm.is_ok]
        self.one_host = len({arm.host for arm in self.ok}) == 1
        self._rows = rows
        self._by_key = {self._key(arm): arm for arm in self.ok}
        self._ratios: dict[tuple[StoredArm, StoredArm], Interval] = {}

    @staticmethod
    def _key(arm: StoredArm) -> tuple[str, ...]:
        return arm.cell_id, arm.with_codec, arm.operation, arm.format, arm.to_format

    def find(self, at: StoredArm, operation: str, name: str, to_format: str = "") -> StoredArm | None:
        """Return another measurement with the workload and codec of `at`; None if there is none."""
        return self._by_key.get((at.cell_id, at.with_codec, operation, name, to_format))

    def of(self, formats: tuple[str, ...], *operations: str, packed: bool = False) -> list[StoredArm]:
        """Return the measurements on these paths that do not convert.

        formats: empty for all formats. packed: only those under a codec.
        """
        return [
            arm
            for arm in self.ok
            if arm.operation in operations
            and (arm.format in formats or not formats)
            and not arm.to_format
            and not (packed and arm.codec == "none")
        ]

    def conversions(self, name: str, to: str) -> list[StoredArm]:
        """Return the conversions from one format to another."""
        return [arm for arm in self.ok if (arm.operation, arm.format, arm.to_format) == (CONVERSION, name, to)]

    def against(self, name: str, base: str, *, packed: bool = True) -> Iterator[tuple[StoredArm, StoredArm]]:
        """Yield the appends of one format, each with that of another on the same workload and codec."""
        for arm in self.of((name,), APPEND, packed=packed):
            if other := self.find(arm, APPEND, base):
                yield arm, other

    def cells(self) -> list[StoredArm]:
        """Return one measurement per workload and codec in which a conversion was tried."""
        return list({(arm.cell_id, arm.with_codec): arm for arm in self.arms if arm.operation == CONVERSION}.values())

    def ratio(self, arm: StoredArm, base: StoredArm) -> Interval:
        """Return the CPU time of a measurement relative to another one of the same path, with its interval."""
        if (arm, base) not in self._ratios:
            self._ratios[arm, base] = time_ratio(arm, base)
        return self._ratios[arm, base]

    @cached_property
    def noise(self) -> Band | None:
        """The middle 95 % of the ratios of a base to itself (A/A)."""
        return middle_95([ratio.median for ratio in to_itself(self._rows, WHERE)["ratio"]])


def _batch_size(arm: StoredArm) -> float:
    return float(arm.point["batch_size"] or 0)


def convert_losses(runs: Runs) -> pd.DataFrame:
    """Return what each conversion leaves out, or why it is not done, with the codecs. Others have no row."""
    codecs: dict[tuple[str, str, str], list[str]] = {}
    for arm in BrokerArms(runs.own).arms:
        lost = [name.replace("_", " ") for name, count in json.loads(arm.losses or "{}").items() if count]
        words = ", ".join(lost) if arm.is_ok else arm.error
        if arm.operation == CONVERSION and words:
            codecs.setdefault((arm.format, arm.to_format, words), []).append(arm.with_codec)
    rows = [(*key, listed(list(dict.fromkeys(names)))) for key, names in codecs.items()]
    return pd.DataFrame(rows, columns=["format", "to_format", "lost", "codecs"])
