"""Named workloads, one per file in datasets/workloads. Each answers a question, and its numbers have sources."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from kfbench.errors import InvalidConfig
from kfbench.shipped import DATASETS
from kfbench.workloads.base.workload import BLOCK_RECORDS, Description, Sample
from kfbench.workloads.named import file as toml
from kfbench.workloads.named.batching import rebatch
from kfbench.workloads.named.sampling import sample
from kfbench.workloads.named.tables import Model

FILES: Final = DATASETS / "workloads"
DEFAULT: Final = "default"


@dataclass(frozen=True, kw_only=True)
class NamedWorkload:
    """A workload of the catalogue or a variant of it, as defined in its file. Raises InvalidConfig.

    batch_size: records per batch; None: the workload's own batches. The records are the same.
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
        return toml.load(self.file, None if self.variant == DEFAULT else self.variant)

    @property
    def summary(self) -> str:
        return toml.prose(self.file).summary

    @property
    def workload_class(self) -> str:
        """The row of a report's verdict that the workload counts in; its name if its file has no class."""
        return toml.prose(self.file).class_ or self.name

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of all variants, the default first."""
        return (DEFAULT, *toml.variants(self.file))

    def describe(self) -> Description:
        """Describe the workload with all variants. Raises InvalidConfig if a sweep would refuse its file."""
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
        """Return the records start ... start + records - 1. A slice may begin and end inside a batch."""
        if self.batch_size is None:
            return sample(self.model, records=records, seed=seed, start=start)
        own = _with_own_batches(replace(self, batch_size=None), records, seed, start)
        return rebatch(own, self.batch_size, start)


@lru_cache(maxsize=1)
def _with_own_batches(workload: NamedWorkload, records: int, seed: int, start: int) -> Sample:
    """Generate a sample and keep the last one, because points in a row that differ only in batch size share records."""
    return workload.generate(records=records, seed=seed, start=start)


WORKLOADS: Final[Mapping[str, NamedWorkload]] = {
    path.stem: NamedWorkload(name=path.stem) for path in sorted(FILES.glob("*.toml"))
}
