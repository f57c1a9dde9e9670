"""Workloads by name: each answers a question of its own, and its numbers have sources (datasets/workloads/*.toml)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from kfbench.errors import InvalidConfig
from kfbench.shipped import DATASETS
from kfbench.workloads import _file
from kfbench.workloads._batching import in_batches_of
from kfbench.workloads._model import Model
from kfbench.workloads._workload import BLOCK_RECORDS, Description, Sample

FILES: Final = DATASETS / "workloads"
DEFAULT: Final = "default"


@dataclass(frozen=True, kw_only=True)
class NamedWorkload:
    """A workload of the catalogue, or a variant of it: what it does stands in its file. Raises InvalidConfig.

    batch_size: records a batch, in place of the batches that the workload makes of the same records.
    """

    name: str
    variant: str = DEFAULT
    batch_size: int | None = None

    def __post_init__(self) -> None:
        if self.batch_size is not None and not (
            isinstance(self.batch_size, int) and 1 <= self.batch_size <= BLOCK_RECORDS
        ):
            raise InvalidConfig(f"batch_size: {self.batch_size!r} is not 1 to {BLOCK_RECORDS}")
        if self.variant != DEFAULT:
            _ = self.model

    @property
    def file(self) -> Path:
        return FILES / f"{self.name}.toml"

    @property
    def model(self) -> Model:
        return _file.load(self.file, None if self.variant == DEFAULT else self.variant)

    @property
    def summary(self) -> str:
        return _file.prose(self.file).summary

    @property
    def workload_class(self) -> str:
        """The row of a report's verdict that the workload counts in; its own name where the file names no class."""
        return _file.prose(self.file).class_ or self.name

    @property
    def variants(self) -> tuple[str, ...]:
        """The default first."""
        return (DEFAULT, *_file.variants(self.file))

    def describe(self) -> Description:
        """All variants are in it, whichever this one is. Raises InvalidConfig for a file that no sweep would take."""
        prose = _file.prose(self.file)
        for variant in self.variants:
            _ = NamedWorkload(name=self.name, variant=variant).model
        return Description(
            question=prose.question,
            story=prose.story.strip(),
            variants=self.variants,
            assumptions=tuple(prose.assumptions),
            parameters=tuple(_file.parameters(self.file)),
        )

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """The records start ... start + records - 1; a slice may begin and end inside a batch."""
        if self.batch_size is None:
            return self.model.sample(records=records, seed=seed, start=start)
        return in_batches_of(_own(replace(self, batch_size=None), records, seed, start), self.batch_size, start)


@lru_cache(maxsize=1)
def _own(workload: NamedWorkload, records: int, seed: int, start: int) -> Sample:
    """Points that differ in their batches alone come one after another, and share their records."""
    return workload.generate(records=records, seed=seed, start=start)


WORKLOADS: Final[Mapping[str, NamedWorkload]] = {
    path.stem: NamedWorkload(name=path.stem) for path in sorted(FILES.glob("*.toml"))
}
