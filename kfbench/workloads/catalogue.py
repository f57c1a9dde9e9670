"""Workloads by name: each answers a question of its own, and its numbers have sources (datasets/workloads/*.toml)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kfbench.shipped import DATASETS
from kfbench.workloads import _file
from kfbench.workloads._model import Model
from kfbench.workloads._workload import Description, Sample

FILES: Final = DATASETS / "workloads"
DEFAULT: Final = "default"


@dataclass(frozen=True, kw_only=True)
class NamedWorkload:
    """A workload of the catalogue, or a variant of it: what it does stands in its file. Raises InvalidConfig."""

    name: str
    variant: str = DEFAULT

    def __post_init__(self) -> None:
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
    def variants(self) -> tuple[str, ...]:
        """The default first."""
        return (DEFAULT, *_file.variants(self.file))

    def describe(self) -> Description:
        """All variants are in it, whichever this one is."""
        prose = _file.prose(self.file)
        return Description(
            question=prose.question,
            story=prose.story.strip(),
            variants=self.variants,
            assumptions=tuple(prose.assumptions),
            parameters=tuple(_file.parameters(self.file)),
        )

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """The records start ... start + records - 1; a slice may begin and end inside a batch."""
        return self.model.sample(records=records, seed=seed, start=start)


WORKLOADS: Final[Mapping[str, NamedWorkload]] = {
    path.stem: NamedWorkload(name=path.stem) for path in sorted(FILES.glob("*.toml"))
}
