"""The interface of other sums over the records of a source, which are added up together with those of what-if."""

from typing import Protocol, Self

from kfbench.sources import Chunk
from kfbench.whatif.rebatch import Sent


class Collector(Protocol):
    """Sums over the records of a part; `plus` adds up those of several parts."""

    def add(self, chunk: Chunk, of_clients: Sent) -> None:
        """Add a chunk. of_clients: its records without those of control batches."""
        ...

    def plus(self, other: Self) -> Self: ...
