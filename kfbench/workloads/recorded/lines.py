"""Workloads of recorded lines: log lines that real software wrote, in datasets/lines. One workload per topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from kfbench.batches import BatchFields
from kfbench.errors import InvalidConfig
from kfbench.log import read_log
from kfbench.records import Records
from kfbench.shipped import DATASETS
from kfbench.workloads.base.workload import BLOCK_RECORDS, Description, Sample, check_slice

FOLDER: Final = DATASETS / "lines"
PREFIX: Final = "lines-"


@dataclass(frozen=True, kw_only=True)
class RecordedLines:
    """The lines of one recorded topic, in the order and with the times of the recording. The seed changes nothing.

    Args:
        name: "lines-" and the name of the file in datasets/lines without .log.
        batch_size: records per batch. Raises InvalidConfig.
    """

    name: str
    batch_size: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.batch_size, int) or not 1 <= self.batch_size <= BLOCK_RECORDS:
            raise InvalidConfig(f"batch_size: {self.batch_size!r} is not 1 to {BLOCK_RECORDS}")

    @property
    def summary(self) -> str:
        return "log lines of real software, one line per record, without keys"

    @property
    def recorded(self) -> int:
        """The number of lines."""
        return len(_lines(self.name))

    def describe(self) -> Description:
        return Description(
            question="How do formats and codecs do on real log lines?",
            story=f"The topic {self.name.removeprefix(PREFIX)} of datasets/lines, whose README names the software.",
            variants=("default",),
            assumptions=("batches have equal sizes",),
            parameters=(),
        )

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """Return the lines with the numbers start to start + records - 1. Raises InvalidConfig if there are fewer."""
        check_slice(records, seed, start)
        lines = _lines(self.name)
        if start + records > len(lines):
            raise InvalidConfig(f"{self.name}: {start + records} records are wanted, {len(lines)} were recorded")
        part = lines.part(start, start + records)
        inner = np.arange(-start % self.batch_size or self.batch_size, records, self.batch_size)
        bounds = np.concatenate([[0], inner, [records]]) if records else np.zeros(1, np.int64)
        return Sample(shapes=part.shapes, bounds=bounds, batch_fields=BatchFields(), payload=lambda: part)


@lru_cache(maxsize=2)
def _lines(name: str) -> Records:
    log = read_log(FOLDER / f"{name.removeprefix(PREFIX)}.log").records
    return log.at_offsets(np.arange(len(log)))


LINES: Final[Mapping[str, RecordedLines]] = {
    f"{PREFIX}{path.stem}": RecordedLines(name=f"{PREFIX}{path.stem}") for path in sorted(FOLDER.glob("*.log"))
}
