"""Broker paths on batches with a dictionary, compared with the same path on the same records in plain zstd.

The base is v2 with plain zstd. A consumer without codec 5 and a mirror need other calls for batches with a dictionary,
so their plain arms pass batches on: `down-convert` and `mirror-renumber`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from kfbench.broker.dictionaries import check_dictionaries, renumber
from kfbench.broker.fetch import fetch
from kfbench.broker.mirror import mirror
from kfbench.broker.work import NewLog, Work
from kfbench.formats import Format
from kfbench.measure.dictionary import split_topic, trained
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.path_arms import FormatKind, PathArm, measure_arms
from kfbench.measure.path_tasks import PathInput, Result, Task, with_shapes
from kfbench.measure.paths import PATHS, Path

OTHER_NUMBER: Final = 200  # at the destination of a mirror; its uvarint has one byte more


def _append_task(given: PathInput) -> Task:
    """Append, after a look at the dictionary that each batch names. A leader refuses those that it does not have."""
    appended = PATHS["append"].task(given)
    if not given.dictionaries:
        return appended

    def call() -> Result:
        check_dictionaries(given.log, given.dictionaries)
        return appended.call()

    return replace(appended, call=call)


def _down_convert_task(given: PathInput) -> Task:
    """Fetch for a consumer that does not know codec 5. Batches of plain zstd are passed on."""
    return Task(
        call=lambda: fetch(
            given.log, given.fmt, fmt=given.fmt, without_dictionaries=True, dictionaries=given.dictionaries
        ),
        check=lambda result: given.verify_output(result.data, given.read_back(), dictionaries=()),
    )


def _renumber_task(given: PathInput) -> Task:
    """Mirror without opening batches, and give the dictionary another number."""
    through = PATHS["mirror-through"].task(given)
    if not given.dictionaries:
        return through
    records, bounds = given.read_back(), given.source.bounds
    offsets = np.arange(len(records)) - np.repeat(bounds[:-1], np.diff(bounds))
    there = [replace(each, number=OTHER_NUMBER) for each in given.dictionaries]

    def call() -> NewLog:
        sent = mirror(given.log, given.fmt, first_offset=int(records.offsets[0]), dictionaries=given.dictionaries)
        moved = renumber(sent.data, {each.number: OTHER_NUMBER for each in given.dictionaries})
        return replace(moved, work=moved.work + Work(read_bytes=sent.work.read_bytes, written_bytes=len(sent.data)))

    expected = with_shapes(records, offsets=offsets)
    return Task(call=call, check=lambda result: given.verify_output(result.data, expected, dictionaries=there))


_PATHS: Final = (
    replace(PATHS["append"], task=_append_task),
    PATHS["seek-time"],
    PATHS["compact"],
    PATHS["mirror"],
    Path("mirror-renumber", "Mirror to another dictionary number", "keep", _renumber_task),
    Path("down-convert", "Fetch by a client without dictionaries", "convert", _down_convert_task),
)
DICTIONARY_PATHS: Final[Mapping[str, Path]] = {path.name: path for path in _PATHS}


def measure_dictionary_paths(
    formats: Sequence[Format],
    source: EncodeInput,
    *,
    size_bytes: int,
    share: float,
    training_batch: int,
    rounds: int,
    sample_ns: int,
    seed: int,
) -> Iterator[tuple[str, PathArm]]:
    """Yield (path, arm): each path on the batches behind the split, plain and with a dictionary. Calls alternate.

    A path that the records do not allow is left out. Raises InvalidDictionary, IllegalCombination.
    """
    split = split_topic(source.bounds, share, 1)
    rest = source.behind(split.first)
    kinds: list[FormatKind] = [(fmt, None) for fmt in formats]
    kinds += [(fmt, trained(source, fmt, split, size_bytes, training_batch).dictionary) for fmt in formats]
    for name, path in DICTIONARY_PATHS.items():
        allowed = [kind for kind in kinds if path.missing(kind[0], rest.records.shapes) is None]
        if allowed:
            for arm in measure_arms(path, allowed, None, rest, rounds=rounds, sample_ns=sample_ns, seed=seed):
                yield name, arm
