"""CPU time of zstd with a dictionary against zstd alone, on the same batches: the codec, without the format.

Plain zstd is flushed before it is closed, as Kafka does; a lean frame is not. So lean frames without a dictionary are
timed, too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final, Literal

import numpy as np

from kfbench.codecs import CODECS, Codec, Dictionary, Zstd, ZstdDictionary
from kfbench.codecs.zstd_dictionary import FRAMES, LeanFrames
from kfbench.formats import Format
from kfbench.measure.columns import Row
from kfbench.measure.cpu import Arm, Samples, measure, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.verify import Unverified
from kfbench.research.dictionaries.sizes import split_topic, trained

Operation = Literal["compress", "decompress"]
DICTIONARY_OPERATIONS: Final[tuple[Operation, ...]] = ("compress", "decompress")


@dataclass(frozen=True, kw_only=True)
class TimedArm:
    """The samples of one arm. columns: its columns of the result table."""

    columns: Row
    samples: Samples


@dataclass(frozen=True, kw_only=True)
class _Bodies:
    """What the codec compresses: one item per batch."""

    plain: list[bytes]
    records: int


def measure_codecs(
    fmt: Format,
    source: EncodeInput,
    *,
    sizes_bytes: Sequence[int],
    share: float,
    training_batch: int,
    live: Sequence[int],
    rounds: int,
    sample_ns: int,
) -> Iterator[TimedArm]:
    """Time the codec on the batches behind the split, plain and with a dictionary of each size. Calls alternate.

    With several live dictionaries, batch i uses dictionary i modulo their number. They have the same size and nearly
    the same content, but memory of their own. Plain zstd is the base; it is timed twice (A/A). `dictionary="lean"` is
    the frame of codec 5 without a dictionary. Raises Unverified, InvalidDictionary, IllegalCombination.
    """
    split = split_topic(source.bounds, share, 1)
    made = {size: trained(source, fmt, split, size, training_batch) for size in sizes_bytes}
    rest = source.behind(split.first)
    plain, counts = fmt.plain_bodies(rest.records, rest.bounds), np.diff(rest.bounds).tolist()
    kept_bytes = FRAMES.most_bytes
    try:
        FRAMES.most_bytes = 4 << 30  # a dictionary must not be digested again in each call
        for number in live:
            wanted = max(len(plain), number)
            bodies = _Bodies(plain=list(islice(cycle(plain), wanted)), records=sum(islice(cycle(counts), wanted)))
            lean = LeanFrames(None, source.level or Zstd.default_level)
            codecs: list[tuple[Row, list[Codec]]] = [
                ({"dictionary": "plain"}, [CODECS["zstd"]]),
                ({"dictionary": "lean"}, [lean]),
            ]
            for size, each in made.items():
                columns = {"dictionary": "trained", "dictionary_size_bytes": size, "trained_share": share}
                copies: list[Codec] = [ZstdDictionary.of(copy) for copy in _copies(each.dictionary, number)]
                codecs.append((columns | each.columns, copies))
            codecs.append(({"dictionary": "plain", "arm": "aa"}, [CODECS["zstd"]]))
            for operation in DICTIONARY_OPERATIONS:
                arms = [_arm(operation, users, bodies, source.level) for _, users in codecs]
                for arm in arms:
                    warm_up(arm)
                found = measure(arms, 0, rounds, sample_ns)
                for (columns, users), samples in zip(codecs, found, strict=True):
                    common = {
                        "arm": "measure", "operation": operation, "live": number, "records": bodies.records,
                        "batches": len(bodies.plain), "plain_bytes": sum(map(len, bodies.plain)),
                        "compressed_bytes": sum(map(len, _compressed(users, bodies, source.level))),
                    }  # fmt: skip
                    yield TimedArm(columns=common | columns, samples=samples)
            FRAMES.clear()
    finally:
        FRAMES.most_bytes = kept_bytes
        FRAMES.clear()


def _copies(dictionary: Dictionary, count: int) -> list[Dictionary]:
    """Return `count` dictionaries that differ in four bytes at the middle of their content."""
    middle = len(dictionary.data) // 2
    head, tail = dictionary.data[:middle], dictionary.data[middle + 4 :]
    others = (head + i.to_bytes(4, "big") + tail for i in range(1, count))
    return [dictionary, *(Dictionary(number=dictionary.number, data=data) for data in others)]


def _compressed(users: Sequence[Codec], bodies: _Bodies, level: int | None) -> list[bytes]:
    return [codec.compress(body, level) for codec, body in zip(cycle(users), bodies.plain, strict=False)]


def _arm(operation: Operation, users: Sequence[Codec], bodies: _Bodies, level: int | None) -> Arm:
    """Return the call that compresses or decompresses all batches, one after another."""
    compressed = _compressed(users, bodies, level)
    calls: list[tuple[Callable[..., bytes], bytes]]
    if operation == "compress":
        calls = [(codec.compress, body) for codec, body in zip(cycle(users), bodies.plain, strict=False)]

        def call() -> None:
            for compress, body in calls:
                compress(body, level)

    else:
        calls = [(codec.decompress, payload) for codec, payload in zip(cycle(users), compressed, strict=False)]

        def call() -> None:
            for decompress, payload in calls:
                decompress(payload)

    def verify() -> None:
        back = [codec.decompress(payload) for codec, payload in zip(cycle(users), compressed, strict=False)]
        if back != bodies.plain:
            raise Unverified(f"{users[0].name}: a batch differs after compressing and decompressing")

    return Arm(call=call, verify=verify)
