"""Compress a sample of v2 at every level of each codec. It is small, so this happens after all parts have been read."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from kfbench.arrays import Int64
from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.whatif.estimate import Drawn
from kfbench.whatif.rebatch import Batches
from kfbench.whatif.sums import Tally
from kfbench.whatif.tally import Run, coded_sizes


def at_levels(sums: Tally, levels: Iterable[tuple[str, int]], run: Run = map) -> Tally:
    """Return the sums with those of `Tally.level_stretches` at each level. The stretches are left out.

    Args:
        levels: pairs of codec and level.
        run: calls the codecs. It works like `map`.
    """
    if not sums.level_stretches:
        return sums
    for each in sums.level_stretches:
        each.freeze()
    stretches = [_Stretch(each, FORMATS[BASE_FORMAT].size(*each)) for each in sums.level_stretches]
    pairs = list(levels)
    slowest_first = sorted(pairs, key=lambda pair: -pair[1])  # so that threads end together
    codecs = [*dict.fromkeys(codec for codec, _ in pairs)]
    defaults = dict(zip(codecs, run(_code, [_Job(stretches, codec, None) for codec in codecs]), strict=True))
    coded = dict(zip(slowest_first, run(_code, [_Job(stretches, *pair) for pair in slowest_first]), strict=True))
    return replace(
        sums,
        levels={
            (codec, level): reduce(Drawn.plus, map(Drawn.of, defaults[codec].sizes, coded[codec, level].sizes))
            for codec, level in pairs
        },
        level_plain_bytes=sum(int(each.plain.sum()) for each in stretches),
        level_cpu_ns=Counter({pair: each.cpu_ns for pair, each in coded.items()}),
        level_stretches=(),
    )


class _Stretch(NamedTuple):
    """Consecutive batches, and the bytes of each in uncompressed v2, int64[batches]."""

    batches: Batches
    plain: Int64


class _Job(NamedTuple):
    """Stretches to compress at a level of a codec. None: its default level."""

    stretches: list[_Stretch]
    codec: str
    level: int | None


class _Coded(NamedTuple):
    """The bytes of each stretch at a level, and the CPU time of all."""

    sizes: list[int]
    cpu_ns: int


def _code(job: _Job) -> _Coded:
    # Make the level's context before the time is taken. That of zstd 19 has 90 MiB, and takes longer than a stretch.
    CODECS[job.codec].compress(b"0", job.level)
    since_ns = time.thread_time_ns()
    sizes = [
        int(coded_sizes(each.batches, BASE_FORMAT, job.codec, job.level, each.plain).sum()) for each in job.stretches
    ]
    return _Coded(sizes, time.thread_time_ns() - since_ns)
