"""Set offsets, times and checksums in place, in the requests of an append that are not rebuilt."""

from typing import NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.broker.requests import Run
from kfbench.broker.topic import Topic
from kfbench.broker.work import Work
from kfbench.formats import BrokerFields, Offsets


class Piece(NamedTuple):
    """Some requests of an append in a separate buffer.

    Args:
        requests: their numbers, rising.
        positions: the byte position of each in `data`, and the end.
        work: counters of writing them.
    """

    requests: Int64
    data: Bytes
    positions: Int64
    work: Work


class Assigned(NamedTuple):
    """The result of `assign`. moved: requests whose size changed and that are in a new buffer; None: there are none."""

    work: Work
    moved: Piece | None


def assign(run: Run, bases: Int64, topic: Topic, target: Bytes) -> Assigned:
    """Set the broker's fields in the requests that are not rebuilt.

    Args:
        bases: the first offset of each request in the run.
        target: the buffer that is changed.
    """
    columns, positions, times = run.columns, run.columns.positions, topic.times(run.latest_ms)
    appending, offsets, chosen, piece = columns.fmt.appending, _offsets(run, bases), run.stays, None
    if not run.is_one_each:
        chosen = np.repeat(chosen, np.diff(run.bounds))
    growth = appending.growth(columns.data, positions, times)
    if growth is not None and len(grown := np.flatnonzero(chosen & (growth != 0))):
        piece = _moved(run, offsets, grown, growth[grown], topic)
        chosen = chosen.copy()
        chosen[grown] = False
    done = appending.assign(target, positions, BrokerFields(offsets, topic.epoch, times), chosen)
    in_place = int(np.count_nonzero(chosen))
    size = positions[-1] - positions[0] if in_place == len(chosen) else np.diff(positions)[chosen].sum()
    work = Work(in_place=in_place, read_bytes=int(size) + done.checksum_bytes, written_bytes=done.written_bytes)
    return Assigned(work, piece)


def _offsets(run: Run, bases: Int64) -> Offsets:
    """Return the first offset of each batch, and the offset after its last. bases: the first offset of each request."""
    if run.is_one_each:
        return Offsets(bases, bases + run.counts)
    bounds = run.columns.bounds
    shift = np.repeat(bases - run.record_bounds[:-1], np.diff(run.bounds))
    return Offsets(bounds[:-1] + shift, bounds[1:] + shift)


def _moved(run: Run, offsets: Offsets, grown: Int64, growth: Int64, topic: Topic) -> Piece:
    """Set the fields in a new buffer, for batches whose size changes with the maximum timestamp.

    Here each batch is one request.

    Args:
        grown: the numbers of these batches.
        growth: the number of bytes that each grows; negative: it shrinks.
    """
    columns, times = run.columns, topic.times(run.latest_ms[grown])
    starts, stops = columns.positions[grown], columns.positions[grown + 1]
    appending = columns.fmt.appending
    data, positions = appending.moved(columns.data, starts, stops, times, growth)
    own_offsets, everything = Offsets(offsets.bases[grown], offsets.ends[grown]), np.ones(len(grown), np.bool_)
    fields = BrokerFields(own_offsets, topic.epoch, times)
    done = appending.assign(data, positions, fields, everything, is_moved=True)
    work = Work(
        shifted=len(grown), read_bytes=int((stops - starts).sum()) + done.checksum_bytes, written_bytes=len(data)
    )
    return Piece(run.first + grown, data, positions, work)
