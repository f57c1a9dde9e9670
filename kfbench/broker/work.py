"""What a path has done: counted where it is done, so that a claim such as "in place" rests on more than a timer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Self

CREATE_TIMES: Final = "create timestamps"  # a loss: of producers, where an append time takes their place
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Work:
    """Each batch that is looked at or handed on is counted once: untouched, in place, shifted, rewritten or dropped.

    In v0 and v1 a plain message is a batch. Bytes are those of the log; what the codec makes and takes counts apart.
    A batch that goes into the result by copy is read and written whole, untouched or with fields set in the copy; what
    is read again for a checksum counts again. Not counted: buffers in between, and the copy that spares a caller's
    buffer where a path can also work in it (`append`).
    """

    untouched: int = 0  # batches handed on as they are
    in_place: int = 0  # header fields were set where they stand
    shifted: int = 0  # set, too, but the header's size changed: what follows has moved
    rewritten: int = 0  # built anew
    dropped: int = 0
    read_bytes: int = 0  # of the input: headers alone, or all of it
    written_bytes: int = 0  # fields that were set, bytes that moved, batches that were copied or built
    decompressed_bytes: int = 0  # plain bytes that codecs gave
    recompressed_bytes: int = 0  # plain bytes that codecs took
    losses: Mapping[str, int] = field(default_factory=lambda: _NOTHING)  # as EncodedLog.losses

    @property
    def batches(self) -> int:
        """How many came in."""
        return self.untouched + self.in_place + self.shifted + self.rewritten + self.dropped

    def __add__(self, other: Self) -> Self:
        numbers = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        losses = {name: self.losses.get(name, 0) + other.losses.get(name, 0) for name in {*self.losses, *other.losses}}
        return type(self)(**numbers, losses=dict(sorted(losses.items())))


COUNTERS: Final = tuple(name for name in Work.__dataclass_fields__ if name != "losses")
