"""Further lines and tables of a what-if, by packages that register them (entry points `kfbench.whatif_tables`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kfbench.plugins import Registry

if TYPE_CHECKING:
    from kfbench.present.table import Table
    from kfbench.whatif.answer import WhatIf
    from kfbench.whatif.stretches import LogStretch


class TopicBytes(NamedTuple):
    """A topic as a whole.

    plain_bytes: in uncompressed v2. files: of the topic. dictionary_bytes: of the dictionaries that stand in the topic
    now.
    """

    plain_bytes: int
    files: int
    dictionary_bytes: int = 0


class RecordSample(NamedTuple):
    """The sample of records for further questions of a what-if.

    Args:
        stretches: consecutive batches, with their records.
        topics: all topics with records, by name.
        formats: the formats of the what-if.
        arms: its pairs of format and codec.
    """

    stretches: Sequence[LogStretch]
    topics: Mapping[str, TopicBytes]
    formats: Sequence[str]
    arms: Sequence[tuple[str, str]]


class WhatIfTable:
    """A further question about a log: its answer is a line of the summary, tables, and a key of --json.

    Args:
        name: the key; also an option of `kfbench what-if`, which asks for more details.
        help: what the option does.
        title: of the tables' section.
        table_names: the tables that the option shows.
        answer_type: the dataclass of an answer, which a fingerprint has, too.
    """

    name: str
    help: str
    title: str
    table_names: Sequence[str] = ()

    @property
    def answer_type(self) -> type:
        raise NotImplementedError

    def answer(self, sample: RecordSample, with_details: bool) -> Any | None:
        """Return the answer, or None if there is none for these formats and codecs."""
        raise NotImplementedError

    def line(self, found: WhatIf) -> str:
        """Return the line of the summary."""
        raise NotImplementedError

    def tables(self, found: WhatIf, recorded: str) -> Iterator[Table]:
        """Yield the tables. recorded: a description of the log's own batches."""
        yield from ()

    def to_dict(self, found: WhatIf) -> dict[str, Any]:
        """Return the answer for JSON."""
        return asdict(found.more[self.name])

    def of_formats(self, answer: Any, formats: Sequence[str]) -> Any:
        """Return the part of an answer that is about these formats."""
        return answer

    def renamed(self, answer: Any, topics: Mapping[str, str]) -> Any | None:
        """Return the answer with other names of topics, and without anything that tells the records or the people.

        None: a fingerprint leaves it out.
        """
        return None

    def topics(self, answer: Any) -> set[str]:
        """Return the names of the topics in an answer."""
        return set()


WHATIF_TABLES: Final[Registry[WhatIfTable]] = Registry("whatif_tables", "WHATIF_TABLES", WhatIfTable)
