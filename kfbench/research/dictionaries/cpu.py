"""CPU time of zstd with a dictionary against zstd alone, on the same batches: the codec, without the format.

Plain zstd is flushed before it is closed, as Kafka does; a lean frame is not. So lean frames without a dictionary are
timed, too.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Final, Literal, NamedTuple

import numpy as np

from kfbench.codecs import CODECS, Codec, Dictionary, Zstd, ZstdDictionary
from kfbench.codecs.zstd_dictionary import FRAMES, LeanFrames
from kfbench.formats import Format
from kfbench.measure.columns import Row
from kfbench.measure.cpu import Arm, Samples, measure, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.verify import Unverified
from kfbench.research.dictionaries.sizes import make_dictionary, split_topic, trainer

Operation = Literal["compress", "decompress"]
DICTIONARY_OPERATIONS: Final[tuple[Operation, ...]] = ("compress", "decompress")


class DictionaryArm(NamedTuple):
    """The samples of one arm. columns: its columns of the result table."""

    columns: Row
    samples: Samples


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
) -> Iterator[DictionaryArm]:
    """Time the codec on the batches behind the split, plain and with a dictionary of each size. Calls alternate.

    With several live dictionaries, batch i uses dictionary i modulo their number. They have the same size and nearly
    the same content, but memory of their own. Plain zstd is the base; it is timed twice (A/A). `dictionary="lean"` is
    the frame of codec 5 without a dictionary. Raises Unverified, InvalidDictionary, IllegalCombination.
    """
    level, first = source.level, int(split_topic(source.bounds, share, 1)[0])
    made = {size: make_dictionary(source, fmt, first, training_batch, trainer(size)) for size in sizes_bytes}
    rest = source.behind(first)
    plain, counts = fmt.plain_bodies(rest.records, rest.bounds), np.diff(rest.bounds).tolist()
    kept_bytes = FRAMES.most_bytes
    try:
        FRAMES.most_bytes = 4 << 30  # a dictionary must not be digested again in each call
        for number in live:
            wanted = max(len(plain), number)
            bodies = list(islice(cycle(plain), wanted))
            common: Row = {
                "arm": "measure", "live": number, "records": sum(islice(cycle(counts), wanted)), "batches": wanted,
                "plain_bytes": sum(map(len, bodies)),
            }  # fmt: skip
            codecs: list[tuple[Row, Sequence[Codec]]] = [
                ({"dictionary": "plain"}, [CODECS["zstd"]]),
                ({"dictionary": "lean"}, [LeanFrames(None, level or Zstd.default_level)]),
            ]
            for size, each in made.items():
                columns = {"dictionary": "trained", "dictionary_size_bytes": size, "trained_share": share}
                copies = [ZstdDictionary.of(copy) for copy in _copies(each.dictionary, number)]
                codecs.append((columns | each.columns, copies))
            codecs.append(({"dictionary": "plain", "arm": "aa"}, [CODECS["zstd"]]))
            for operation in DICTIONARY_OPERATIONS:
                arms = [_arm(operation, users, bodies, level) for _, users in codecs]
                for arm in arms:
                    warm_up(arm)
                found = measure(arms, 0, rounds, sample_ns)
                for (columns, users), samples in zip(codecs, found, strict=True):
                    compressed_bytes = sum(map(len, _compress_all(users, bodies, level)))
                    row = common | {"operation": operation, "compressed_bytes": compressed_bytes}
                    yield DictionaryArm(row | columns, samples)
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


def _compress_all(users: Sequence[Codec], bodies: Sequence[bytes], level: int | None) -> list[bytes]:
    return [codec.compress(body, level) for codec, body in zip(cycle(users), bodies, strict=False)]


def _arm(operation: Operation, users: Sequence[Codec], bodies: Sequence[bytes], level: int | None) -> Arm:
    """Return the call that compresses or decompresses all batches, one after another."""
    pairs = list(zip(cycle(users), bodies, _compress_all(users, bodies, level), strict=False))
    compressing = [(codec.compress, body) for codec, body, _ in pairs]
    decompressing = [(codec.decompress, payload) for codec, _, payload in pairs]

    def compress_all() -> None:
        for compress, body in compressing:
            compress(body, level)

    def decompress_all() -> None:
        for decompress, payload in decompressing:
            decompress(payload)

    def verify() -> None:
        if [decompress(payload) for decompress, payload in decompressing] != bodies:
            raise Unverified(f"{users[0].name}: a batch differs after compressing and decompressing")

    return Arm(call=compress_all if operation == "compress" else decompress_all, verify=verify)
