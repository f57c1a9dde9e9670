"""The question that every part is asked: formats, codecs, other batches, and the share that is sampled."""

from dataclasses import dataclass
from hashlib import blake2b

from kfbench.errors import InvalidConfig
from kfbench.sources import Part
from kfbench.whatif.rebatch import Batching


@dataclass(frozen=True, kw_only=True)
class Question:
    """The work on each part. It is small, because it travels with every task.

    arms: pairs of format and codec for the batches as recorded. batchings: other batches for the same records, sized in
    every format and, for `recoded` formats, under every codec. assumed: the batches of sources that have none. share:
    of the stretches, goes through the codecs. always: key of the part whose first stretch is always drawn.
    """

    arms: tuple[tuple[str, str], ...]
    batchings: tuple[Batching, ...] = ()
    recoded: tuple[str, ...] = ()
    assumed: Batching | None = None
    share: float = 1.0
    seed: int = 0
    always: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidConfig(f"share: {self.share} is not above 0 and at most 1")

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.arms))

    @property
    def coded(self) -> list[tuple[str, str]]:
        """The arms with a codec."""
        return [(name, codec) for name, codec in self.arms if codec != "none"]

    def draws(self, part: Part, stream: object, number: int, times: int = 1) -> bool:
        """Return whether the sample holds stretch `number` of a stream of the part. times: multiplies the share."""
        share = min(self.share * times, 1.0)
        if share == 1 or (not number and part.key == self.always):
            return True
        where = f"{self.seed}/{part.key}/{stream}/{number}".encode()
        return int.from_bytes(blake2b(where, digest_size=8).digest(), "big") < share * 2**64


def draw_order(part: Part, seed: int) -> bytes:
    """The key by which parts are ordered to choose `Question.always`; empty parts come last."""
    return bytes([not part.size_bytes]) + blake2b(f"{seed}/{part.key}".encode(), digest_size=8).digest()
