"""CPU: thread time beside wall time, all formats of a cell interleaved, raw samples kept.

Every round calls each arm once in a fresh random order, so that what drifts (clock, neighbours, caches) hits all
alike; a mere rotation keeps each arm's predecessor, whose data are then warm. One arm is the base once more (A/A):
it must read 1.0, and says how far the rest can be trusted.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import NO_FIELDS, BatchFields, DecodedMetadata, DecodedTimes, EncodedLog
from kfbench.errors import IllegalCombination
from kfbench.formats import Entries, Format
from kfbench.measure.verify import Unverified, verify_metadata
from kfbench.records import Records

Operation = Literal["encode", "decode", "decode-metadata", "read-times", "fetch-record"]
OPERATIONS: Final[tuple[Operation, ...]] = ("encode", "decode")
# Readers that do not want all: by the kind of cell that they are timed in, one to each.
READINGS: Final[Mapping[str, Operation]] = {
    "metadata": "decode-metadata",
    "lookup": "read-times",
    "record": "fetch-record",
}
CACHES: Final = ("resident", "cold")
LEAST_WARM_UP_CALLS: Final = 3
MOST_WARM_UP_CALLS: Final = 30
MOST_WARM_UP_NS: Final = 200_000_000
STILL_FASTER: Final = 0.02
MAX_INNER_LOOPS: Final = 10_000
CONFIDENCE: Final = 0.95
RESAMPLES: Final = 2_000
ROOM_AN_ITEM: Final = 128


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The times of one arm: int64[rounds], each of `inner_loops` calls. Round i of all arms belongs together."""

    inner_loops: int
    cpu_ns: NDArray[np.int64]
    wall_ns: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Arm:
    """What is timed, what is put in place before each sample without being timed, and whether it does its work.

    verify raises Unverified unless the timed call itself leaves the verified bytes in the buffer.
    """

    call: Callable[[], object]
    before: Callable[[], object]
    verify: Callable[[], None]


def prepare(
    formats: Sequence[Format],
    logs: Sequence[Bytes],
    operation: Operation,
    records: Records,
    bounds: Int64,
    codec: str = "none",
    level: int | None = None,
    batch_fields: BatchFields = NO_FIELDS,
) -> list[Arm]:
    """An arm for each of the formats (one may be there twice): encode into a reused buffer, decode to columns, read
    offsets, times and lengths alone by the format's cheapest way to them, offsets and times without the CRC, as a
    broker does that looks one up, or a record of each batch, drawn beforehand.

    logs: what each format is known to make of the records, verified by whoever calls.
    All arms work in one and the same buffer: where each has its own, its place in the caches stays with it through
    every round, and an A/A arm reads a few percent off.
    """
    buffer = np.empty(output_room(logs, records, bounds), np.uint8)

    def encode(fmt: Format, log: Bytes) -> Arm:
        def call() -> EncodedLog:
            return fmt.encode(records, bounds, codec, level, batch_fields, lossy=True, out=buffer)

        def verify() -> None:
            buffer.fill(0)  # another arm's bytes may be the same
            if call().positions[-1] != len(log) or not np.array_equal(buffer[: len(log)], log):
                raise Unverified("encode into the timed buffer wrote other bytes than were verified")

        return Arm(call=call, before=lambda: None, verify=verify)

    def decode(fmt: Format, log: Bytes) -> Arm:
        view = buffer[: len(log)]

        def verify() -> None:
            if not np.array_equal(view, log):
                raise Unverified("decode changed the bytes that it reads")

        return Arm(call=lambda: fmt.decode(view), before=lambda: np.copyto(view, log), verify=verify)

    def decode_metadata(fmt: Format, log: Bytes) -> Arm:
        if not fmt.has_metadata_reader:  # `decode_metadata` decodes all
            return decode(fmt, log)
        view = buffer[: len(log)]

        def call() -> DecodedMetadata:
            return fmt.decode_metadata(view)

        def verify() -> None:
            verify_metadata(fmt, call(), fmt.decode(view).records.shapes)

        return Arm(call=call, before=lambda: np.copyto(view, log), verify=verify)

    def read_times(fmt: Format, log: Bytes) -> Arm:
        view, positions = buffer[: len(log)], Entries.of(log).positions

        def call() -> DecodedTimes:
            return fmt.read_times(view, positions)

        def verify() -> None:
            verify_metadata(fmt, call(), fmt.decode(view).records.shapes)

        return Arm(call=call, before=lambda: np.copyto(view, log), verify=verify)

    def fetch_record(fmt: Format, log: Bytes) -> Arm:
        view, positions = buffer[: len(log)], Entries.of(log).positions
        indices = np.random.default_rng(0).integers(0, np.diff(bounds))

        def verify() -> None:
            found, wanted = fmt.fetch(view, positions, indices), fmt.decode(view).records.take(bounds[:-1] + indices)
            if _without_headers(found) != _without_headers(wanted):
                raise Unverified(f"{fmt.name}: records fetched by themselves differ from the decoded ones")

        return Arm(call=lambda: fmt.fetch(view, positions, indices), before=lambda: np.copyto(view, log), verify=verify)

    arms: dict[Operation, Callable[[Format, Bytes], Arm]] = {
        "encode": encode,
        "decode": decode,
        "decode-metadata": decode_metadata,
        "read-times": read_times,
        "fetch-record": fetch_record,
    }
    arm = arms[operation]
    return [arm(fmt, log) for fmt, log in zip(formats, logs, strict=True)]


def _without_headers(records: Records) -> list[bytes]:
    """What fetch gives of records, to be compared."""
    shapes, packed = records.shapes, records.packed()
    columns = shapes.offsets, shapes.timestamps_ms, shapes.key_lengths, shapes.value_lengths
    return [column.tobytes() for column in (*columns, packed.key_data, packed.value_data)]


def why_no_fetch(fmt: Format) -> str | None:
    """Why the format cannot read one record of a batch; None if it can."""
    try:
        fmt.fetch(b"", np.zeros(1, np.int64), [])
    except IllegalCombination as error:
        return str(error)
    return None


def output_room(logs: Sequence[Bytes], records: Records, bounds: Int64) -> int:
    """Bytes that hold any of the logs with every varint at its longest: encode then need not work its size out."""
    return max(map(len, logs)) + ROOM_AN_ITEM * (len(records) + records.shapes.header_count + len(bounds))


def warm_up(arm: Arm) -> int:
    """Calls that nobody counts, until they get no faster, and one look at what they did; how many. Raises Unverified.

    They get no faster when neither of the last two took STILL_FASTER less than the fastest before them.
    """
    times_ns: list[int] = []
    while len(times_ns) < LEAST_WARM_UP_CALLS or _still_faster(times_ns):
        arm.before()
        times_ns.append(timed(arm.call, 1)[0])
    arm.verify()
    return len(times_ns)


def _still_faster(times_ns: Sequence[int]) -> bool:
    if len(times_ns) == MOST_WARM_UP_CALLS or sum(times_ns) > MOST_WARM_UP_NS:
        return False
    return min(times_ns[-2:]) < (1 - STILL_FASTER) * min(times_ns[:-2])


def measure(arms: Sequence[Arm], base: int, rounds: int, sample_ns: int, seed: int) -> list[Samples]:
    """Time every arm `rounds` times, each warmed up before; the samples of each, in the order of `arms`.

    A round before the first is not counted: arms warm up one after another, and meet each other's data only there.
    base: the arm whose call is repeated until a sample takes `sample_ns`; the others repeat theirs as often. With a
    sample_ns of 1 each sample is one call, right after its arm's `before`: a call may then change what it reads.
    """
    cpu_ns, wall_ns = (np.zeros((len(arms), rounds), np.int64) for _ in range(2))
    random = np.random.default_rng(seed)
    with no_garbage_collection():
        arms[base].before()
        inner_loops = _calibrate(arms[base].call, sample_ns)
        for i in range(-1, rounds):
            for j in random.permutation(len(arms)).tolist():
                arms[j].before()
                cpu_ns[j, i], wall_ns[j, i] = timed(arms[j].call, inner_loops)  # -1: where the last will be
    return [Samples(inner_loops=inner_loops, cpu_ns=cpu_ns[j], wall_ns=wall_ns[j]) for j in range(len(arms))]


def timed(call: Callable[[], object], inner_loops: int) -> tuple[int, int]:
    """(CPU ns of this thread, wall ns) of so many calls."""
    loops = range(inner_loops)
    wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
    for _ in loops:
        call()
    return time.thread_time_ns() - cpu, time.perf_counter_ns() - wall


def _calibrate(call: Callable[[], object], sample_ns: int) -> int:
    """Calls that take sample_ns together; the same for all arms, so that samples compare as they are."""
    if sample_ns == 1:
        return 1
    once = min(timed(call, 1)[1] for _ in range(5))
    return int(np.clip(-(-sample_ns // max(once, 1)), 1, MAX_INNER_LOOPS))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Nobody's sample pays for it. No collection before either: it takes longer than all the samples."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def paired_ratio(arm_ns: ArrayLike, base_ns: ArrayLike, seed: int = 0) -> tuple[float, float, float]:
    """(median, low, high) of arm / base, round by round; low and high hold the median with CONFIDENCE.

    Pairs cancel what a round has in common, which the ratio of two medians does not. The interval is the percentile
    bootstrap's, as scipy.stats.bootstrap resamples it; of an odd number of rounds it is known without a resample. The
    seed is that of an even number's.
    """
    ratios = np.sort(np.asarray(arm_ns, np.float64) / np.asarray(base_ns, np.float64))
    if len(ratios) % 2:
        low, high = ratios[list(_ranks(len(ratios)))]
        return float(ratios[len(ratios) // 2]), float(low), float(high)
    medians = np.median(ratios[_resamples(len(ratios), seed)], axis=1)
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(np.median(ratios)), float(low), float(high)


@lru_cache(maxsize=64)
def _ranks(rounds: int) -> tuple[int, int]:
    """Which of so many sorted values the bootstrap of their median ends at, counted from 0.

    A resample's median is the k-th value or a smaller one when more than half of the resample is: each of its values is
    with a chance of k / rounds.
    """
    from scipy.special import bdtrc  # 0.1 s, which a worker has no use for

    up_to = bdtrc(rounds // 2, rounds, np.arange(1, rounds + 1) / rounds)
    low, high = np.searchsorted(up_to, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return int(low), int(high)


@lru_cache(maxsize=8)
def _resamples(rounds: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, rounds, (RESAMPLES, rounds))
