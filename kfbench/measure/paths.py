"""The list of broker paths (`PATHS`): one entry per kind of work that a broker does on a log.

An entry has a title, the records that the path needs, and its task: the call that is timed, and the check of its
result. A check raises Unverified unless the result has exactly the expected records, offsets and timestamps.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.broker import Work
from kfbench.broker.append import append
from kfbench.broker.compact import compact
from kfbench.broker.convert import convert
from kfbench.broker.expire import By, ExpireResult, expire
from kfbench.broker.fetch import FetchResult, Scan, fetch
from kfbench.broker.mirror import mirror
from kfbench.broker.seek import SeekResult, seek_offset, seek_time
from kfbench.broker.time_index import INTERVAL_BYTES
from kfbench.formats import Format
from kfbench.layouts import NULL_LENGTH
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.verify import Unverified, verify_log
from kfbench.records import Records, Shapes

BASE_OFFSET: Final = 1_000_000  # first offset in the log; the producer sends 0, so the broker must change it
APPEND_DELAY_MS: Final = 100  # broker's clock minus the newest timestamp: too large for a one-byte delta
PARTITIONS: Final = 4  # partitions of the destination, if the mirror must look for keys
SEGMENTS: Final = 4  # segments of a log that expires
MERGE_BYTES: Final = 16_384  # most bytes of keys and values in a merged batch: Kafka's default of batch.size
KEY_USES: Final = 2  # records per key in a log that is compacted


class PathResult(Protocol):
    @property
    def work(self) -> Work: ...


@dataclass(frozen=True, kw_only=True)
class PathInput:
    """The log that a broker path works on, and the records that are in it.

    Args:
        fmt: the format of the log.
        to: the format that a conversion writes; None for other paths.
        log: the log that the path reads.
        source: the records that were encoded to this log.
    """

    fmt: Format
    to: Format | None
    log: EncodedLog
    source: EncodeInput

    @property
    def target(self) -> Format:
        """The format that a conversion writes. Only conversions have one."""
        assert self.to is not None
        return self.to

    def read_back(self) -> Records:
        """Return the records without the fields that the log's format cannot carry."""
        return self.source.records_in(self.fmt)

    def converted(self) -> Records:
        """Return the records without the fields that the log's format or the target format cannot carry."""
        return replace(self.source, records=self.read_back()).records_in(self.target)

    def verify_output(self, data: Any, expected: Records, fmt: Format | None = None) -> None:
        """Raise Unverified unless the bytes are a log of exactly the expected records.

        fmt: the format of the bytes; None: the format of the input log.
        """
        fmt = fmt or self.fmt
        verify_log(fmt.name, fmt, data, expected)


@dataclass(frozen=True, kw_only=True)
class PathTask:
    """A broker path on one log, ready to be called, timed and checked.

    Args:
        call: runs the path once, and returns the result.
        check: raises Unverified for a wrong result.
        data: returns the bytes that a result contains; None for a search, which writes no bytes.
    """

    call: Callable[[], PathResult]
    check: Callable[[Any], None]
    data: Callable[[Any], Bytes | None] = attrgetter("data")


def with_shapes(records: Records, **columns: NDArray[Any]) -> Records:
    """Return the records with other columns in their shapes. Example: with_shapes(records, offsets=offsets)."""
    return replace(records, shapes=replace(records.shapes, **columns))


def append_task(given: PathInput, timestamp_type: Literal["create", "append"] = "create") -> PathTask:
    """Append each batch as one produce request. The path sets the offsets inside the buffer of the request."""
    records = given.read_back()
    now_ms = int(records.timestamps_ms.max(initial=0)) + APPEND_DELAY_MS
    expected = with_shapes(records, offsets=BASE_OFFSET + np.arange(len(records)))
    if timestamp_type == "append":
        expected = with_shapes(expected, timestamps_ms=np.full(len(records), now_ms))

    call = partial(
        append, given.log, given.fmt, base_offset=BASE_OFFSET, timestamp_type=timestamp_type, now_ms=now_ms,
        from_zero=False, in_place=True,
    )  # fmt: skip
    return PathTask(call=call, check=lambda result: given.verify_output(result.data, expected))


def append_convert_task(given: PathInput) -> PathTask:
    """Append produce requests of one format to a log of another format. Each request becomes one batch of the log."""
    expected = given.converted()
    expected = with_shapes(expected, offsets=BASE_OFFSET + np.arange(len(expected)))
    call = partial(append, given.log, given.fmt, to=given.target, base_offset=BASE_OFFSET, from_zero=False, lossy=True)
    return PathTask(call=call, check=lambda result: given.verify_output(result.data, expected, given.target))


def fetch_task(given: PathInput, scan: Scan) -> PathTask:
    """Fetch for a reader that wants the format of the log, so no batch is converted.

    With scan="never", the broker reads no byte of the log (KIP-724).
    """

    def check(result: FetchResult) -> None:
        if not result.zero_copy or not np.shares_memory(result.data, given.log.data):
            raise Unverified(f"{given.fmt.name}: the bytes that are sent are not those of the log")
        given.verify_output(result.data, given.read_back())

    return PathTask(call=partial(fetch, given.log, given.fmt, fmt=given.fmt, scan=scan), check=check)


def convert_task(given: PathInput) -> PathTask:
    """Convert the whole log to another format."""
    expected = given.converted()
    return PathTask(
        call=lambda: convert(given.log, given.target, fmt=given.fmt, lossy=True),
        check=lambda result: given.verify_output(result.data, expected, given.target),
    )


def compact_task(given: PathInput, merge_bytes: int = 0) -> PathTask:
    """Compact the log: keep only the last record of each key.

    merge_bytes: merge the remaining batches up to this size in bytes of keys and values; 0: do not merge.
    """
    records = given.read_back()
    keys = records.to_arrow()["key"].combine_chunks().dictionary_encode().indices.to_numpy()
    _, from_end = np.unique(keys[::-1], return_index=True)  # index from the end of each key's last record
    expected = records.take(np.sort(len(keys) - 1 - from_end))
    now_ms = int(records.timestamps_ms.max(initial=0)) + APPEND_DELAY_MS
    return PathTask(
        call=lambda: compact(given.log, fmt=given.fmt, now_ms=now_ms, merge_bytes=merge_bytes),
        check=lambda result: given.verify_output(result.data, expected),
    )


def mirror_task(given: PathInput, partitions: int = 1, *, pass_through: bool = True) -> PathTask:
    """Mirror the log to one or several partitions of another cluster.

    Records keep their order within each partition, and get offsets as a producer assigns them. Plain messages of v0 and
    v1, and message sets of v0, keep their old offsets when they are passed through. The destination ignores these
    offsets.

    pass_through: copy batches without changes; False: decompress and recompress all of them.
    """
    records, bounds = given.read_back(), given.source.bounds
    batch_size = int(np.diff(bounds).max(initial=1))
    is_plain = given.fmt.magic < 2 and given.source.codec == "none"  # each message is a batch
    numbers = np.arange(len(records))
    batch = numbers if is_plain else np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    if not pass_through:
        offsets = numbers % batch_size
    elif is_plain or given.fmt.magic == 0:
        offsets = records.offsets
    else:
        offsets = numbers - bounds[batch]
    expected = with_shapes(records, offsets=offsets).take(np.argsort(batch % partitions, kind="stable"))
    call = partial(
        mirror, given.log, given.fmt, partitions=partitions, pass_through=pass_through, batch_size=batch_size,
        first_offset=int(records.offsets[0]) if len(records) else 0,
        codec=given.source.codec, level=given.source.level,
    )  # fmt: skip
    return PathTask(call=call, check=lambda result: given.verify_output(result.data, expected))


def seek_offset_task(given: PathInput) -> PathTask:
    """Find the batch with a given offset. It is the offset of the record two thirds into the log."""
    offsets = given.source.records.offsets
    target = int(offsets[2 * len(offsets) // 3])

    def check(found: SeekResult) -> None:
        there = _batch_at(given, found).offsets
        if not np.any(there == target):
            raise Unverified(
                f"{given.fmt.name}: offset {target} is not in the batch that was found; its offsets are {there}"
            )

    return PathTask(
        call=lambda: _existing(seek_offset(given.log, target, fmt=given.fmt)), check=check, data=lambda _: None
    )


def seek_time_task(given: PathInput) -> PathTask:
    """Find the first record with a given timestamp or a later one.

    It is the timestamp of the record two thirds into the log.
    """
    records = given.read_back()
    target_ms = int(records.timestamps_ms[2 * len(records) // 3])
    first = int(np.argmax(records.timestamps_ms >= target_ms))
    wanted = int(records.offsets[first]), int(records.timestamps_ms[first])

    def check(found: SeekResult) -> None:
        if (found.offset, found.timestamp_ms) != wanted:
            raise Unverified(f"{given.fmt.name}: {found} is not offset {wanted[0]} at {wanted[1]}")
        _batch_at(given, found)

    return PathTask(
        call=lambda: _existing(seek_time(given.log, target_ms, fmt=given.fmt)), check=check, data=lambda _: None
    )


def _existing(found: SeekResult | None) -> SeekResult:
    if found is None:
        raise Unverified("nothing was found")
    return found


def _batch_at(given: PathInput, found: SeekResult) -> Records:
    data = given.log.data[found.position : found.position + found.size_bytes]
    return given.fmt.decode(data).records


def expire_task(given: PathInput, by: By) -> PathTask:
    """Delete the records that are older than the record two thirds into the log. The path reads only headers.

    The log has SEGMENTS segments. by: "segment" deletes whole segments only; "head" also deletes the old batches at the
    beginning of the next segment.
    """
    name, log, bounds = given.fmt.name, given.log, given.source.bounds
    records = given.read_back()
    before_ms = int(records.timestamps_ms[2 * len(records) // 3])
    batches = np.arange(SEGMENTS + 1) * len(log) // SEGMENTS
    segments = [log.data[start:end] for start, end in pairwise(log.positions[batches].tolist())]
    first_records = bounds[batches].tolist()  # index of each segment's first record, then the end
    is_old = (records.timestamps_ms < before_ms).tolist()
    old_segments = next(
        (n for n, (first, end) in enumerate(pairwise(first_records)) if not all(is_old[first:end])), SEGMENTS
    )
    first_kept = first_records[old_segments]
    first_young = next((i for i in range(first_kept, len(is_old)) if not is_old[i]), len(is_old))

    def data_left(result: ExpireResult) -> Bytes:
        return np.concatenate([np.empty(0, np.uint8), *result.segments])

    def check(result: ExpireResult) -> None:
        data = data_left(result)
        first = len(records) - len(given.fmt.decode(data).records)
        given.verify_output(data, records.part(first, len(records)))
        if result.deleted_segments != old_segments or not first_kept <= first <= first_young:
            raise Unverified(
                f"{name}: {result.deleted_segments} segments were deleted, not {old_segments}; the log begins with "
                f"record {first}, and its first young record is {first_young}"
            )
        if by == "segment" and first != first_kept:
            raise Unverified(f"{name}: a part of a segment was deleted")
        if by == "head" and old_segments < SEGMENTS:
            batch = int(np.searchsorted(bounds, first_young, side="right")) - 1
            head_bytes = int(log.positions[batch] - log.positions[batches[old_segments]])
            # The index has an entry per INTERVAL_BYTES, at the end of the batch that crosses the boundary.
            if head_bytes - result.head_bytes > INTERVAL_BYTES + int(np.diff(log.positions).max()):
                raise Unverified(f"{name}: {head_bytes} bytes at the head are old, {result.head_bytes} were deleted")

    return PathTask(call=lambda: expire(segments, before_ms, by, fmt=given.fmt), check=check, data=data_left)


def _reused_keys(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    """Give each record the key of a random record from the first half of the records.

    Then 43 % of the records are the last ones with their key.
    """
    n = len(records)
    drawn = np.random.default_rng(seed).integers(0, max(n // KEY_USES, 1), n)
    shapes = replace(records.shapes, key_lengths=records.shapes.key_lengths[drawn])
    return replace(records, shapes=shapes, key_starts=records.key_starts[drawn])


def _ascending_times(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    """Shift timestamps so that each batch begins at least one second after the end of the batch before.

    The distance is one second, because the format "enriched" stores whole seconds.
    """
    times_ms = records.timestamps_ms
    if not len(times_ms):
        return records
    step_ms = int(times_ms.max() - times_ms.min()) + 1_000
    batch = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return with_shapes(records, timestamps_ms=times_ms + step_ms * batch)


def _without_keys(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    return with_shapes(records, key_lengths=np.full(len(records), NULL_LENGTH, np.int32))


def _no_append_time(fmt: Format, shapes: Shapes) -> str | None:  # noqa: ARG001
    return None if "append_time_ms" in fmt.capabilities.batch_fields else f"{fmt.name} has no log append time"


def _no_keys(fmt: Format, shapes: Shapes) -> str | None:  # noqa: ARG001
    return "records without a key are not compacted" if np.any(shapes.key_lengths == NULL_LENGTH) else None


def _no_timestamps(fmt: Format, shapes: Shapes) -> str | None:
    if not shapes.timestamp_count:
        return "records without a timestamp have no place in time"
    return None if fmt.capabilities.timestamps else f"{fmt.name} has no timestamps"


@dataclass(frozen=True)
class BrokerPath:
    """A broker path: one kind of work that a broker does on a log, such as append, fetch or compact.

    Args:
        name: the name of the path in the result table.
        title: the name of the path in the report.
        section: the section of the report that shows the path.
        task: returns the call to time on one log, and the check of its result.
        records: changes the workload's records before they are encoded. Its parameters are the records, the batch
            bounds and a seed.
        missing: returns the reason why a format cannot take this path with these records; None if it can.
        converts: True if the path writes another format.
        changes_input: True if a call changes its own input. Then each sample is one call.
        is_per_call: True if the report shows figures per call, not per record. These paths find one record, or pass
            bytes on.
    """

    name: str
    title: str
    section: Literal["append", "convert", "keep"]
    task: Callable[[PathInput], PathTask]
    _: KW_ONLY
    records: Callable[[Records, Int64, int], Records] = lambda records, _bounds, _seed: records
    missing: Callable[[Format, Shapes], str | None] = lambda _fmt, _shapes: None
    converts: bool = False
    changes_input: bool = False
    is_per_call: bool = False


_BY_TIME: Final[Any] = {"records": _ascending_times, "missing": _no_timestamps, "is_per_call": True}
_PATHS: Final = (
    BrokerPath("append", "Append: validate, assign offsets", "append", append_task, changes_input=True),
    BrokerPath(
        "append-time",
        "Append with log append time",
        "append",
        partial(append_task, timestamp_type="append"),
        missing=_no_append_time,
        changes_input=True,
    ),
    BrokerPath(
        "fetch", "Fetch by a reader of the same format", "append", partial(fetch_task, scan="never"), is_per_call=True
    ),
    BrokerPath(
        "fetch-scan",
        "Fetch, after a look at the magic of each batch",
        "append",
        partial(fetch_task, scan="batches"),
        is_per_call=True,
    ),
    BrokerPath("convert", "Convert", "convert", convert_task, converts=True),
    BrokerPath("append-convert", "Append into a log of another format", "convert", append_convert_task, converts=True),
    BrokerPath(
        "compact",
        "Compact: keep the latest of each key",
        "keep",
        compact_task,
        records=_reused_keys,
        missing=_no_keys,
    ),
    BrokerPath(
        "compact-merge",
        "Compact, and merge what stays into larger batches",
        "keep",
        partial(compact_task, merge_bytes=MERGE_BYTES),
        missing=_no_keys,
    ),
    BrokerPath("mirror", "Mirror: decompress and recompress", "keep", partial(mirror_task, pass_through=False)),
    BrokerPath("mirror-through", "Mirror: pass through", "keep", mirror_task),
    BrokerPath(
        "mirror-look",
        "Mirror: pass on what has no key, after a look",
        "keep",
        partial(mirror_task, partitions=PARTITIONS),
        records=_without_keys,
    ),
    BrokerPath("seek-offset", "Seek by offset", "keep", seek_offset_task, records=_ascending_times, is_per_call=True),
    BrokerPath("seek-time", "Seek by time", "keep", seek_time_task, **_BY_TIME),
    BrokerPath("expire", "Expire by time: whole segments", "keep", partial(expire_task, by="segment"), **_BY_TIME),
    BrokerPath(
        "expire-head",
        "Expire by time: whole segments, and the head of the next",
        "keep",
        partial(expire_task, by="head"),
        **_BY_TIME,
    ),
)
PATHS: Final[Mapping[str, BrokerPath]] = {path.name: path for path in _PATHS}
