"""Results of one run that several sections of the report use. Each is computed once."""

from functools import cached_property

from kfbench.report.data.classes import Verdicts
from kfbench.report.data.named import Named
from kfbench.report.data.noise import Facts
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results


class Views:
    """The rows of one run, and the results computed from them that several sections use.

    noise_facts: the noise checks from the run's manifest.
    """

    def __init__(self, results: Results, noise_facts: Facts | None = None) -> None:
        self.results, self.noise_facts = results, noise_facts

    @cached_property
    def named(self) -> Named:
        return Named(self.results)

    @cached_property
    def paths(self) -> Paths:
        return Paths(self.results)

    @cached_property
    def verdicts(self) -> Verdicts:
        return Verdicts(self.results, self.named, self.paths)
