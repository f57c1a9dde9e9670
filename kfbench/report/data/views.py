"""Results of one run that several sections of the report use. Each is computed once."""

from functools import cached_property

from kfbench.report.data.classes import Verdicts
from kfbench.report.data.dictionaries import Dictionaries
from kfbench.report.data.joined import Joined
from kfbench.report.data.named import Named
from kfbench.report.data.noise import Facts
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results


class Views:
    """The rows of one run, and the results computed from them that several sections use.

    noise_facts: the noise checks from the run's manifest. dictionaries: the run with dictionaries, if there is one.
    """

    def __init__(self, results: Results, noise_facts: Facts | None = None, dictionaries: Joined | None = None) -> None:
        self.results, self.noise_facts, self._joined = results, noise_facts, dictionaries

    @cached_property
    def dictionaries(self) -> Dictionaries | None:
        return Dictionaries(self._joined) if self._joined else None

    @cached_property
    def named(self) -> Named:
        return Named(self.results)

    @cached_property
    def paths(self) -> Paths:
        return Paths(self.results)

    @cached_property
    def verdicts(self) -> Verdicts:
        return Verdicts(self.results, self.named, self.paths)
