"""The question that every part is asked: formats, codecs, other batches, and the share that is sampled."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from kfbench.errors import InvalidConfig
from kfbench.sources import Part
from kfbench.whatif.rebatch import Batching

MOST_TOPICS: Final = 12  # topics with a row of their own, and at least one stretch in the sample


@dataclass(frozen=True, kw_only=True)
class Question:
    """The work on each part. It is small, because it travels with every task.

    Args:
        arms: pairs of format and codec for the batches as recorded.
        batchings: other batches for the same records, sized in every format, and under every codec for `recoded`.
        recoded: the formats that are compressed in other batches too.
        levels: pairs of codec and level. v2 is compressed at each of them, in batches as recorded.
        assumed: the batches of sources that have none.
        share: the share of stretches that is compressed, above 0 and at most 1.
        level_share: the share of stretches that is compressed at every level.
        seed: draws the stretches.
        always: keys of parts whose first stretch is always drawn; at every level only that of the first key.
    """

    arms: tuple[tuple[str, str], ...]
    batchings: tuple[Batching, ...] = ()
    recoded: tuple[str, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()
    assumed: Batching | None = None
    share: float = 1.0
    level_share: float = 1.0
    seed: int = 0
    always: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("share", "level_share"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidConfig(f"{name}: {getattr(self, name)} is not above 0 and at most 1")

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.arms))

    @property
    def coded(self) -> list[tuple[str, str]]:
        """The arms with a codec."""
        return [(name, codec) for name, codec in self.arms if codec != "none"]

    def is_certain(self, part: Part, number: int) -> bool:
        """Return True for a stretch that is drawn whatever the hash says, although others are not."""
        return self.share < 1 and not number and part.key in self.always

    def draws(self, part: Part, stream: object, number: int, times: int = 1) -> bool:
        """Return whether the sample holds stretch `number` of a stream of the part. times: multiplies the share."""
        return self._draws(part, stream, number, min(self.share * times, 1.0), self.always)

    def draws_levels(self, part: Part, number: int) -> bool:
        """Return whether stretch `number` of the batches as recorded is compressed at every level."""
        return bool(self.levels) and self._draws(part, "levels", number, self.level_share, self.always[:1])

    def _draws(self, part: Part, stream: object, number: int, share: float, always: tuple[str, ...]) -> bool:
        if share == 1 or (not number and part.key in always):
            return True
        where = f"{self.seed}/{part.key}/{stream}/{number}".encode()
        return int.from_bytes(blake2b(where, digest_size=8).digest(), "big") < share * 2**64


def always_drawn(parts: Iterable[Part], seed: int) -> tuple[str, ...]:
    """Return the keys for `Question.always`: one part of each of the MOST_TOPICS largest topics, largest first."""
    topics: dict[str, list[Part]] = {}
    for part in parts:
        topics.setdefault(part.topic or part.name, []).append(part)
    largest = sorted(topics.values(), key=lambda each: -sum(part.size_bytes for part in each))[:MOST_TOPICS]
    return tuple(min(each, key=lambda part: _draw_order(part, seed)).key for each in largest)


def _draw_order(part: Part, seed: int) -> tuple[bool, bytes, str]:
    """Order parts by a hash; empty parts come last."""
    return not part.size_bytes, blake2b(f"{seed}/{part.key}".encode(), digest_size=8).digest(), part.key
