"""Results of one run that several sections of the report use. Each is computed once."""

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Final

from kfbench.report.data.classes import Verdicts
from kfbench.report.data.dictionaries import Dictionaries
from kfbench.report.data.joined import DICTIONARY, INSTRUCTIONS, RIVALS, Joined
from kfbench.report.data.named import Named
from kfbench.report.data.noise import Facts
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.data.rivals import Rivals

NONE_JOINED: Final[Mapping[str, Joined]] = MappingProxyType({})


class Views:
    """The rows of one run, and the results computed from them that several sections use.

    noise_facts: the noise checks from the run's manifest. joined: the runs of other profiles, by profile.
    """

    def __init__(
        self, results: Results, noise_facts: Facts | None = None, joined: Mapping[str, Joined] = NONE_JOINED
    ) -> None:
        self.results, self.noise_facts, self._joined = results, noise_facts, joined

    @cached_property
    def dictionaries(self) -> Dictionaries | None:
        joined = self._joined.get(DICTIONARY)
        return Dictionaries(joined) if joined else None

    @cached_property
    def rivals(self) -> Rivals | None:
        joined = self._joined.get(RIVALS)
        return Rivals(joined) if joined else None

    @property
    def counted(self) -> Joined | None:
        """The run that counted instructions."""
        return self._joined.get(INSTRUCTIONS)

    @cached_property
    def named(self) -> Named:
        return Named(self.results)

    @cached_property
    def paths(self) -> Paths:
        return Paths(self.results)

    @cached_property
    def verdicts(self) -> Verdicts:
        return Verdicts(self.results, self.named, self.paths)
