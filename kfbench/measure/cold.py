"""Time calls on cold data: data that is in no CPU cache when the call begins.

The timed calls work on many copies of the same data, one copy after another. Before a copy is used again, other calls
use memory of TIMES the size of the last-level cache. So the caches no longer contain this copy. Each sample is one
call. With more calls per sample, a format could use its first copy again too early.

Three things exist only once, so they may be in a cache:

- memory that a call allocates (positions, columns of a decoded log);
- the state of a codec;
- the header fields of batches.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.errors import MissingTool
from kfbench.formats import Format
from kfbench.measure.container import available_bytes
from kfbench.measure.cpu import Arm, Operation
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.environment import last_level_cache_bytes
from kfbench.measure.format_arms import output_room
from kfbench.measure.verify import Unverified
from kfbench.records import Records

TIMES: Final = 2
UNKNOWN_CACHE_BYTES: Final = 64 << 20
_LINE_BYTES: Final = 64


@dataclass(frozen=True, kw_only=True)
class Rotating:
    """Timed calls (arms) that rotate through copies of the data.

    Args:
        arms: one timed call per format. Each sample must be one call.
        rotated_bytes: the total size in bytes of all copies. All arms together rotate through them.
    """

    arms: list[Arm]
    rotated_bytes: int


@dataclass(frozen=True, kw_only=True)
class _Place:
    """One copy of the records, and the output buffer for encoding this copy."""

    records: Records
    bounds: Int64
    out: Bytes


def prepare_cold(
    formats: Sequence[Format],
    logs: Sequence[Bytes],
    operation: Operation,
    source: EncodeInput,
    least_bytes: int | None = None,
) -> Rotating:
    """Return one timed call (arm) per format, for data that is in no cache.

    The calls are those of `format_arms.prepare`, but they rotate through at least `least_bytes` of memory.

    Args:
        formats: the formats to time.
        logs: the encoded log of each format.
        operation: "decode" decodes the logs. With any other operation, the calls encode.
        source: the records and how to encode them.
        least_bytes: None: TIMES the size of the last-level cache.

    Raises MissingTool if `least_bytes` is more than half of the host's free memory.
    """
    if least_bytes is None:
        least_bytes = TIMES * (last_level_cache_bytes() or UNKNOWN_CACHE_BYTES)
    free_bytes = available_bytes()
    if least_bytes > free_bytes // 2:
        raise MissingTool(
            f"cold caches need {least_bytes >> 20} MiB, and may use half of the {free_bytes >> 20} MiB that are free: "
            "free some memory, or measure resident caches only"
        )
    if operation == "decode":
        return _decoding(formats, logs, least_bytes)
    return _encoding(formats, logs, source, least_bytes)


def _encoding(formats: Sequence[Format], logs: Sequence[Bytes], source: EncodeInput, least_bytes: int) -> Rotating:
    """Return calls that encode. Each call takes the next copy of the records, and writes to the buffer of this copy.

    All formats share the copies and their buffers.
    """
    records, bounds = source.records.pack(), source.bounds
    codec, level, batch_fields = source.codec, source.level, source.batch_fields
    room, written_bytes = output_room(logs, records, bounds), [len(log) for log in logs]
    place_bytes = sum(column.nbytes for column in (*records.columns, bounds)) + min(written_bytes)
    places = max(2, -(-least_bytes // place_bytes))
    ring = deque(_place(records, bounds, room, max(written_bytes)) for _ in range(places))

    def arm(fmt: Format, log: Bytes) -> Arm:
        def call() -> EncodedLog:
            ring.rotate(-1)
            place = ring[-1]
            return fmt.encode(place.records, place.bounds, codec, level, batch_fields, lossy=True, out=place.out)

        def verify() -> None:
            out = ring[0].out  # of the next call
            out.fill(0)
            if call().positions[-1] != len(log) or not np.array_equal(out[: len(log)], log):
                raise Unverified("encode into the timed buffers wrote other bytes than were verified")

        return Arm(call=call, verify=verify)

    arms = [arm(fmt, log) for fmt, log in zip(formats, logs, strict=True)]
    return Rotating(arms=arms, rotated_bytes=len(ring) * place_bytes)


def _place(records: Records, bounds: Int64, room: int, written_bytes: int) -> _Place:
    place = _Place(records=records.copied(), bounds=bounds.copy(), out=np.empty(room, np.uint8))
    place.out[:written_bytes] = 0  # allocate its pages before anything is timed
    _ = place.records.columns
    return place


def _decoding(formats: Sequence[Format], logs: Sequence[Bytes], least_bytes: int) -> Rotating:
    """Return calls that decode. Each call decodes the next copy of its format's log.

    All copies are in one buffer. The buffer consists of laps, and each lap has one copy of every format's log. So all
    formats rotate at the same pace, and none has a better place in memory.
    """
    starts = np.zeros(len(logs) + 1, np.int64)
    np.cumsum([-(-len(log) // _LINE_BYTES) * _LINE_BYTES for log in logs], out=starts[1:])
    lap_bytes = int(starts[-1])
    laps = np.empty((max(2, -(-least_bytes // lap_bytes)), lap_bytes), np.uint8)

    def arm(fmt: Format, log: Bytes, start: int) -> Arm:
        copies = laps[:, start : start + len(log)]
        copies[:] = log
        following = cycle(copies)

        def verify() -> None:
            if not np.array_equal(copies, np.broadcast_to(log, copies.shape)):
                raise Unverified("decode changed the bytes that it reads")

        return Arm(call=lambda: fmt.decode(next(following)), verify=verify)

    arms = [arm(fmt, log, start) for fmt, log, start in zip(formats, logs, starts[:-1].tolist(), strict=True)]
    return Rotating(arms=arms, rotated_bytes=laps.nbytes)
