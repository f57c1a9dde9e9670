"""The named workloads: one per TOML file in datasets/workloads, which gives a source for each of its numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from kfbench.shipped import DATASETS
from kfbench.workloads.base import Description, Sample, check_batch_size
from kfbench.workloads.named import file as toml
from kfbench.workloads.named.batching import rebatch
from kfbench.workloads.named.file import WorkloadModel
from kfbench.workloads.named.sampling import sample

FILES: Final = DATASETS / "workloads"
DEFAULT: Final = "default"


@dataclass(frozen=True, kw_only=True)
class NamedWorkload:
    """A workload that a TOML file defines, or a variant of it. Raises InvalidConfig.

    Args:
        name: the file's name without .toml.
        variant: the name of a variant in the file.
        batch_size: records per batch; None: the batches that the file describes. The records are the same in both.
    """

    name: str
    variant: str = DEFAULT
    batch_size: int | None = None

    def __post_init__(self) -> None:
        if self.batch_size is not None:
            check_batch_size(self.batch_size)
        if self.variant != DEFAULT:
            _ = self.model

    @property
    def file(self) -> Path:
        return FILES / f"{self.name}.toml"

    @property
    def model(self) -> WorkloadModel:
        return toml.load(self.file, None if self.variant == DEFAULT else self.variant)

    @property
    def summary(self) -> str:
        return toml.prose(self.file).summary

    @property
    def workload_class(self) -> str:
        """The row in a report's verdict table that includes this workload: the file's key `class`, else its name."""
        return toml.prose(self.file).class_ or self.name

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of all variants, the default first."""
        return (DEFAULT, *toml.prose(self.file).variant)

    def describe(self) -> Description:
        """Describe the workload and all its variants. Raises InvalidConfig if the file or a variant is invalid."""
        prose = toml.prose(self.file)
        for variant in self.variants:
            _ = NamedWorkload(name=self.name, variant=variant).model
        return Description(
            question=prose.question,
            story=prose.story.strip(),
            variants=self.variants,
            assumptions=tuple(prose.assumptions),
            parameters=tuple(toml.parameters(self.file)),
        )

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """Return the records with the numbers start to start + records - 1. They may begin and end inside a batch."""
        if self.batch_size is None:
            return sample(self.model, records=records, seed=seed, start=start)
        own = _with_own_batches(replace(self, batch_size=None), records, seed, start)
        return rebatch(own, self.batch_size, start)


@lru_cache(maxsize=1)
def _with_own_batches(workload: NamedWorkload, records: int, seed: int, start: int) -> Sample:
    """Generate records in the batches that the workload's file describes.

    The last sample is cached, because a sweep often needs the same records in several batch sizes, one after another.
    """
    return workload.generate(records=records, seed=seed, start=start)


WORKLOADS: Final[Mapping[str, NamedWorkload]] = {
    path.stem: NamedWorkload(name=path.stem) for path in sorted(FILES.glob("*.toml"))
}
