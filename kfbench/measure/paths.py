"""Broker paths: one path on the log of every format, interleaved, with what it read, wrote, rewrote and lost.

What a path gives is verified before it is timed, and compared with that once more afterwards. Counters are the path's
own (`Work`); memory is what tracemalloc sees of one call that nobody times.
"""

import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import BatchFields, EncodedLog
from kfbench.broker import Work
from kfbench.broker.append import Appended, append
from kfbench.broker.compact import compact
from kfbench.broker.convert import convert
from kfbench.broker.expire import By, Expired, expire
from kfbench.broker.fetch import Fetched, Scan, fetch
from kfbench.broker.mirror import Mirrored, mirror
from kfbench.broker.seek import Found, seek_offset, seek_time
from kfbench.broker.time_index import INTERVAL_BYTES
from kfbench.formats import BASE_FORMAT, Entries, Format
from kfbench.layouts import NULL_LENGTH
from kfbench.measure.cpu import Arm, Samples, measure, warm_up
from kfbench.measure.schema import counts_text
from kfbench.measure.verify import Unverified, carried, verify_log, verify_records
from kfbench.records import Records, Shapes

BATCHES: Final = ("untouched", "in_place", "shifted", "rewritten", "dropped")
BYTES: Final = ("read_bytes", "written_bytes", "decompressed_bytes", "recompressed_bytes")


BASE_OFFSET: Final = 1_000_000  # of what is appended
APPEND_DELAY_MS: Final = 100  # the broker's clock after the newest record: more than a delta of one byte holds
PARTITIONS: Final = 4  # that a mirror writes to, where it has to look for keys
SEGMENTS: Final = 4  # of a log that expires
KEY_USES: Final = 2  # records a key where the log is compacted
MERGE_BYTES: Final = 16_384  # keys and values of a batch that others were merged into: batch.size by default


class Result(Protocol):
    """What every path gives."""

    @property
    def work(self) -> Work: ...


@dataclass(frozen=True, kw_only=True)
class Given:
    """What comes into a path: a log, where a path may write to it, and what it was encoded from."""

    fmt: Format
    to: Format | None
    log: EncodedLog
    records: Records
    bounds: Int64
    codec: str
    level: int | None
    batch_fields: BatchFields
    seed: int


@dataclass(frozen=True, kw_only=True)
class Task:
    """A path on one log. check raises Unverified, given what the call gave; data: the bytes that came out, if any."""

    call: Callable[[], Result]
    check: Callable[[Any], None]
    data: Callable[[Any], Bytes | None] = attrgetter("data")


def _as_they_are(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    return records


def _nothing_missing(fmt: Format, shapes: Shapes) -> str | None:  # noqa: ARG001
    return None


@dataclass(frozen=True, kw_only=True)
class Path:
    """One broker path. missing: why a format with such records has no such path, None where it has.

    records: what the workload's records are made into before they are encoded. changes_input: a second call would find
    other bytes than the first, so that each sample is one call.
    """

    summary: str
    task: Callable[[Given], Task]
    records: Callable[[Records, Int64, int], Records] = _as_they_are
    missing: Callable[[Format, Shapes], str | None] = _nothing_missing
    converts: bool = False
    changes_input: bool = False


@dataclass(kw_only=True)
class Measured:
    """One arm: columns of the result table, and times, or the error that left it without."""

    format: str
    arm: str = "measure"
    columns: dict[str, Any] = field(default_factory=dict)
    samples: Samples | None = None
    error: Exception | None = None


def measure_path(
    name: str,
    formats: Sequence[Format],
    to: Format | None,
    records: Records,
    bounds: Int64,
    codec: str,
    level: int | None,
    batch_fields: BatchFields,
    *,
    rounds: int,
    sample_ns: int,
    seed: int,
) -> list[Measured]:
    """The path on the records in each format, and its base once more (A/A); a format that fails is left out of it."""
    path = PATHS[name]
    records = path.records(records, bounds, seed)
    found, logs = [Measured(format=fmt.name) for fmt in formats], {}
    for each, fmt in zip(found, formats, strict=True):
        try:
            log = fmt.encode(records, bounds, codec, level, batch_fields, lossy=True)
            verify_records(fmt, records, bounds, batch_fields, log)
            logs[fmt.name] = log
        except Exception as error:
            each.error = error
    # One buffer for all, as in cpu.prepare: where each arm has its own, an A/A reads a few percent off.
    buffer = np.empty(max((len(log.data) for log in logs.values()), default=0), np.uint8)
    arms: dict[str, Arm] = {}
    for each, fmt in zip(found, formats, strict=True):
        if fmt.name not in logs:
            continue
        log = logs[fmt.name]
        given = Given(
            fmt=fmt, to=to, log=replace(log, data=buffer[: len(log.data)]), records=records, bounds=bounds,
            codec=codec, level=level, batch_fields=batch_fields, seed=seed,
        )  # fmt: skip
        try:
            arms[fmt.name], each.columns = _prepared(path, given, log.data)
        except Exception as error:
            each.error = error
    timed = [each for each in found if each.format in arms]
    if timed:
        base = next((each for each in timed if each.format == BASE_FORMAT), timed[0])
        again = replace(base, arm="aa")
        found, timed = [*found, again], [*timed, again]
        at = next(i for i, each in enumerate(timed) if each is base)
        _time(timed, arms, at, rounds, 1 if path.changes_input else sample_ns, seed)
    return found


def _time(
    timed: Sequence[Measured], arms: Mapping[str, Arm], base: int, rounds: int, sample_ns: int, seed: int
) -> None:
    samples = measure([arms[each.format] for each in timed], base, rounds, sample_ns, seed)
    for each, times in zip(timed, samples, strict=True):
        try:
            arms[each.format].verify()
        except Exception as error:
            each.error = error
        else:
            each.samples = times


def _prepared(path: Path, given: Given, source: Bytes) -> tuple[Arm, dict[str, Any]]:
    """The arm, warm, and what one call did. Raises Unverified."""
    task = path.task(given)
    view = given.log.data

    def before() -> None:
        np.copyto(view, source)

    before()
    first = task.call()
    task.check(first)
    verified, out = _output(task, first), task.data(first)

    def verify() -> None:
        before()
        if _output(task, task.call()) != verified:
            raise Unverified(f"{given.fmt.name}: another call gave other bytes than were verified")
        if not path.changes_input and not np.array_equal(view, source):
            raise Unverified(f"{given.fmt.name}: the path changed the bytes that it reads")

    arm = Arm(call=task.call, before=before, verify=verify)
    calls = warm_up(arm)
    before()
    work = first.work
    if not work.batches:  # nobody looked at them, so nobody counted what was handed on
        work = replace(work, untouched=len(Entries.of(read_only(source)).magics))
    columns = (
        {
            "batches": work.batches,
            "source_bytes": len(source),
            "size_bytes": None if out is None else len(out),
            "extra_bytes": _extra_bytes(task.call, view),
            "converted_records": getattr(first, "converted_records", 0),
            "losses": counts_text(work.losses),
            "warm_up_calls": calls,
        }
        | {f"batches_{name}": getattr(work, name) for name in BATCHES}
        | {name: getattr(work, name) for name in BYTES}
    )
    return arm, columns


def _output(task: Task, result: Result) -> object:
    """What must come out the same of every call: bytes, or what was found."""
    data = task.data(result)
    return result if data is None else data.tobytes()


def _no_data(result: Result) -> None:  # noqa: ARG001
    return None


def _extra_bytes(call: Callable[[], Result], source: Bytes) -> int:
    """The most memory that one call holds, beyond the source and the arrays that it gives."""
    tracemalloc.start()
    try:
        result = call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    arrays = [value for value in vars(result).values() if isinstance(value, np.ndarray)]
    made = sum(array.nbytes for array in arrays if not np.may_share_memory(array, source))
    return max(peak - made, 0)


def _read_back(given: Given) -> Records:
    return carried(given.fmt, given.records, given.bounds, given.batch_fields)


def _with(records: Records, **columns: NDArray[Any]) -> Records:
    return replace(records, shapes=replace(records.shapes, **columns))


def _append(given: Given) -> Task:
    return _appending(given, "create")


def _append_time(given: Given) -> Task:
    return _appending(given, "append")


def _appending(given: Given, timestamp_type: Literal["create", "append"]) -> Task:
    """Each batch is a request, and is assigned in the buffer that it came in."""
    records = _read_back(given)
    now_ms = int(records.timestamps_ms.max(initial=0)) + APPEND_DELAY_MS
    expected = _with(records, offsets=BASE_OFFSET + np.arange(len(records)))
    if timestamp_type == "append":
        expected = _with(expected, timestamps_ms=np.full(len(records), now_ms))

    def call() -> Appended:
        return append(
            given.log, given.fmt, base_offset=BASE_OFFSET, timestamp_type=timestamp_type, now_ms=now_ms,
            from_zero=False, in_place=True,
        )  # fmt: skip

    return Task(call=call, check=lambda done: verify_log(given.fmt.name, given.fmt, done.data, expected))


def _append_convert(given: Given) -> Task:
    """Requests of one format for a log of another: the validator builds a batch of each."""
    to = given.to
    assert to is not None
    expected = carried(to, _read_back(given), given.bounds, given.batch_fields)
    expected = _with(expected, offsets=BASE_OFFSET + np.arange(len(expected)))

    def call() -> Appended:
        return append(given.log, given.fmt, to=to, base_offset=BASE_OFFSET, from_zero=False, lossy=True)

    return Task(call=call, check=lambda done: verify_log(to.name, to, done.data, expected))


def _no_append_time(fmt: Format, shapes: Shapes) -> str | None:  # noqa: ARG001
    return None if "append_time_ms" in fmt.capabilities.batch_fields else f"{fmt.name} has no log append time"


def _fetch(given: Given) -> Task:
    """KIP-724: nothing is looked at for a reader that knows what the broker writes."""
    return _fetching(given, "never")


def _fetch_scan(given: Given) -> Task:
    return _fetching(given, "batches")


def _fetching(given: Given, scan: Scan) -> Task:
    def check(done: Fetched) -> None:
        if not done.zero_copy or not np.shares_memory(done.data, given.log.data):
            raise Unverified(f"{given.fmt.name}: the bytes that are sent are not those of the log")
        verify_log(given.fmt.name, given.fmt, done.data, _read_back(given))

    return Task(call=lambda: fetch(given.log, given.fmt, fmt=given.fmt, scan=scan), check=check)


def _convert(given: Given) -> Task:
    to = given.to
    assert to is not None
    expected = carried(to, _read_back(given), given.bounds, given.batch_fields)
    return Task(
        call=lambda: convert(given.log, to, fmt=given.fmt, lossy=True),
        check=lambda done: verify_log(to.name, to, done.data, expected),
    )


def _compact(given: Given) -> Task:
    return _compacting(given)


def _compact_merge(given: Given) -> Task:
    return _compacting(given, MERGE_BYTES)


def _compacting(given: Given, merge_bytes: int = 0) -> Task:
    records = _read_back(given)
    keys = records.to_arrow()["key"].combine_chunks().dictionary_encode().indices.to_numpy()
    _, ages = np.unique(keys[::-1], return_index=True)  # of the last record of each key, counted from the end
    expected = records.take(np.sort(len(keys) - 1 - ages))
    now_ms = int(records.timestamps_ms.max(initial=0)) + APPEND_DELAY_MS
    return Task(
        call=lambda: compact(given.log, fmt=given.fmt, now_ms=now_ms, merge_bytes=merge_bytes),
        check=lambda done: verify_log(given.fmt.name, given.fmt, done.data, expected),
    )


def _keys_used_again(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    """Each record has the key of one of the first, at random: of 100 records 43 have no later one of their key."""
    n = len(records)
    drawn = np.random.default_rng(seed).integers(0, max(n // KEY_USES, 1), n)
    shapes = replace(records.shapes, key_lengths=records.shapes.key_lengths[drawn])
    return replace(records, shapes=shapes, key_starts=records.key_starts[drawn])


def _no_keys(fmt: Format, shapes: Shapes) -> str | None:  # noqa: ARG001
    return "records without a key are not compacted" if np.any(shapes.key_lengths == NULL_LENGTH) else None


def _one_after_another(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    """Each batch begins a second after the one before has ended: enriched has no finer time."""
    times = records.timestamps_ms
    if not len(times):
        return records
    step = int(times.max() - times.min()) + 1_000
    return _with(records, timestamps_ms=times + step * np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)))


def _no_timestamps(fmt: Format, shapes: Shapes) -> str | None:
    if not shapes.timestamp_count:
        return "records without a timestamp have no place in time"
    return None if fmt.capabilities.timestamps else f"{fmt.name} has no timestamps"


def _mirror(given: Given) -> Task:
    return _mirroring(given, 1, pass_through=False)


def _mirror_through(given: Given) -> Task:
    return _mirroring(given, 1)


def _mirror_look(given: Given) -> Task:
    return _mirroring(given, PARTITIONS)


def _mirroring(given: Given, partitions: int, *, pass_through: bool = True) -> Task:
    """Records come out in their order in each partition, with the offsets of a producer; only a message of v0 or v1
    that is handed on, or a set of v0, keeps the old ones, which its destination does not look at."""
    records, batch_size = _read_back(given), int(np.diff(given.bounds).max(initial=1))
    is_plain = given.fmt.magic < 2 and given.codec == "none"  # each message is a batch
    numbers = np.arange(len(records))
    batch = numbers if is_plain else np.repeat(np.arange(len(given.bounds) - 1), np.diff(given.bounds))
    if not pass_through:
        offsets = numbers % batch_size
    elif is_plain or given.fmt.magic == 0:
        offsets = records.offsets
    else:
        offsets = numbers - given.bounds[batch]
    expected = _with(records, offsets=offsets).take(np.argsort(batch % partitions, kind="stable"))

    def call() -> Mirrored:
        return mirror(
            given.log, given.fmt, partitions=partitions, pass_through=pass_through, batch_size=batch_size,
            first_offset=int(records.offsets[0]) if len(records) else 0, codec=given.codec, level=given.level,
        )  # fmt: skip

    def check(done: Mirrored) -> None:
        verify_log(given.fmt.name, given.fmt, done.data, expected)

    return Task(call=call, check=check)


def _without_keys(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    return _with(records, key_lengths=np.full(len(records), NULL_LENGTH, np.int32))


def _seek_offset(given: Given) -> Task:
    """Two thirds into the log."""
    target = int(given.records.offsets[2 * len(given.records) // 3])

    def check(found: Found) -> None:
        offsets = _batch_found(given, found).offsets
        if not np.any(offsets == target):
            raise Unverified(f"{given.fmt.name}: offset {target} is not in the batch that was found, {offsets} are")

    return Task(call=lambda: _found(seek_offset(given.log, target, fmt=given.fmt)), check=check, data=_no_data)


def _seek_time(given: Given) -> Task:
    records = _read_back(given)
    target = int(records.timestamps_ms[2 * len(records) // 3])
    first = int(np.argmax(records.timestamps_ms >= target))
    wanted = int(records.offsets[first]), int(records.timestamps_ms[first])

    def check(found: Found) -> None:
        if (found.offset, found.timestamp_ms) != wanted:
            raise Unverified(f"{given.fmt.name}: {found} is not offset {wanted[0]} at {wanted[1]}")
        _batch_found(given, found)

    return Task(call=lambda: _found(seek_time(given.log, target, fmt=given.fmt)), check=check, data=_no_data)


def _found(found: Found | None) -> Found:
    if found is None:
        raise Unverified("nothing was found")
    return found


def _batch_found(given: Given, found: Found) -> Records:
    return given.fmt.decode(given.log.data[found.position : found.position + found.size_bytes]).records


def _expire(given: Given) -> Task:
    return _expiring(given, "segment")


def _expire_head(given: Given) -> Task:
    return _expiring(given, "head")


def _expiring(given: Given, by: By) -> Task:
    """All that is older than the record two thirds into a log of SEGMENTS segments, told from headers alone."""
    records, view = _read_back(given), given.log.data
    before_ms = int(records.timestamps_ms[2 * len(records) // 3])
    batches = np.arange(SEGMENTS + 1) * len(given.log) // SEGMENTS
    segments = [view[start:end] for start, end in pairwise(given.log.positions[batches].tolist())]
    firsts = given.bounds[batches].tolist()  # the first record of each segment
    old = (records.timestamps_ms < before_ms).tolist()
    gone = next((n for n, (first, end) in enumerate(pairwise(firsts)) if not all(old[first:end])), SEGMENTS)
    first_young = next((i for i in range(firsts[gone], len(old)) if not old[i]), len(old))

    def left(done: Expired) -> Bytes:
        return np.concatenate([np.empty(0, np.uint8), *done.segments])

    def check(done: Expired) -> None:
        held = left(done)
        first = len(records) - len(given.fmt.decode(held).records)
        verify_log(given.fmt.name, given.fmt, held, records.part(first, len(records)))
        if done.deleted_segments != gone or not firsts[gone] <= first <= first_young:
            raise Unverified(
                f"{given.fmt.name}: {gone} segments were to go, {done.deleted_segments} did; it begins with record "
                f"{first}, its first young one is {first_young}"
            )
        if by == "segment" and first != firsts[gone]:
            raise Unverified(f"{given.fmt.name}: a part of a segment went")
        if by == "head" and gone < SEGMENTS:
            batch = int(np.searchsorted(given.bounds, first_young, side="right")) - 1
            head = int(given.log.positions[batch] - given.log.positions[batches[gone]])
            # An entry stands behind each INTERVAL_BYTES, at the end of the batch that reaches across.
            if head - done.head_bytes > INTERVAL_BYTES + int(np.diff(given.log.positions).max()):
                raise Unverified(f"{given.fmt.name}: {head} bytes are old at the head, {done.head_bytes} of them went")

    return Task(call=lambda: expire(segments, before_ms, by, fmt=given.fmt), check=check, data=left)


PATHS: Final[Mapping[str, Path]] = {
    "append": Path(summary="validate, assign offsets", task=_append, changes_input=True),
    "append-time": Path(
        summary="validate, assign offsets and the broker's time",
        task=_append_time,
        missing=_no_append_time,
        changes_input=True,
    ),
    "append-convert": Path(
        summary="validate, and build what goes into a log of another format", task=_append_convert, converts=True
    ),
    "fetch": Path(summary="hand on what a reader of the same version knows", task=_fetch),
    "fetch-scan": Path(summary="the same, after a look at the version of every batch", task=_fetch_scan),
    "convert": Path(summary="another format, for an older reader or a newer log", task=_convert, converts=True),
    "compact": Path(
        summary="keep the latest of each key, of two on average",
        task=_compact,
        records=_keys_used_again,
        missing=_no_keys,
    ),
    "compact-merge": Path(
        summary="keep the latest of each key, and merge what stays into larger batches",
        task=_compact_merge,
        missing=_no_keys,
    ),
    "mirror": Path(summary="take every batch apart and build it again", task=_mirror),
    "mirror-through": Path(summary="pass batches on, all to one partition", task=_mirror_through),
    "mirror-look": Path(
        summary="pass batches on to one of several partitions, where a look says that no record has a key",
        task=_mirror_look,
        records=_without_keys,
    ),
    "seek-offset": Path(
        summary="find an offset two thirds into the log", task=_seek_offset, records=_one_after_another
    ),
    "seek-time": Path(
        summary="find a time two thirds into the log",
        task=_seek_time,
        records=_one_after_another,
        missing=_no_timestamps,
    ),
    "expire": Path(
        summary="let segments go that are older than two thirds of the log",
        task=_expire,
        records=_one_after_another,
        missing=_no_timestamps,
    ),
    "expire-head": Path(
        summary="the same, and the old head of the segment that stays",
        task=_expire_head,
        records=_one_after_another,
        missing=_no_timestamps,
    ),
}
