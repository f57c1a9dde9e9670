"""The list of broker paths (`PATHS`): one entry per kind of work that a broker does on a log.

An entry has a title, the call to time, and the records that the path needs.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from kfbench.arrays import Int64
from kfbench.formats import Format
from kfbench.layouts import NULL_LENGTH
from kfbench.measure.path_tasks import (
    MERGE_BYTES,
    PARTITIONS,
    PathInput,
    Task,
    append_convert_task,
    append_task,
    compact_task,
    convert_task,
    expire_task,
    fetch_task,
    mirror_task,
    seek_offset_task,
    seek_time_task,
    with_shapes,
)
from kfbench.records import Records, Shapes

KEY_USES: Final = 2  # records per key in a log that is compacted


def _unchanged(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    return records


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


def _nothing_missing(fmt: Format, shapes: Shapes) -> str | None:  # noqa: ARG001
    return None


def _no_append_time(fmt: Format, shapes: Shapes) -> str | None:  # noqa: ARG001
    return None if "append_time_ms" in fmt.capabilities.batch_fields else f"{fmt.name} has no log append time"


def _no_keys(fmt: Format, shapes: Shapes) -> str | None:  # noqa: ARG001
    return "records without a key are not compacted" if np.any(shapes.key_lengths == NULL_LENGTH) else None


def _no_timestamps(fmt: Format, shapes: Shapes) -> str | None:
    if not shapes.timestamp_count:
        return "records without a timestamp have no place in time"
    return None if fmt.capabilities.timestamps else f"{fmt.name} has no timestamps"


@dataclass(frozen=True)
class Path:
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
    task: Callable[[PathInput], Task]
    _: KW_ONLY
    records: Callable[[Records, Int64, int], Records] = _unchanged
    missing: Callable[[Format, Shapes], str | None] = _nothing_missing
    converts: bool = False
    changes_input: bool = False
    is_per_call: bool = False


_BY_TIME: Final[Any] = {"records": _ascending_times, "missing": _no_timestamps, "is_per_call": True}
_PATHS: Final = (
    Path("append", "Append: validate, assign offsets", "append", append_task, changes_input=True),
    Path(
        "append-time",
        "Append with log append time",
        "append",
        partial(append_task, timestamp_type="append"),
        missing=_no_append_time,
        changes_input=True,
    ),
    Path(
        "fetch", "Fetch by a reader of the same format", "append", partial(fetch_task, scan="never"), is_per_call=True
    ),
    Path(
        "fetch-scan",
        "Fetch, after a look at the magic of each batch",
        "append",
        partial(fetch_task, scan="batches"),
        is_per_call=True,
    ),
    Path("convert", "Convert", "convert", convert_task, converts=True),
    Path("append-convert", "Append into a log of another format", "convert", append_convert_task, converts=True),
    Path(
        "compact",
        "Compact: keep the latest of each key",
        "keep",
        compact_task,
        records=_reused_keys,
        missing=_no_keys,
    ),
    Path(
        "compact-merge",
        "Compact, and merge what stays into larger batches",
        "keep",
        partial(compact_task, merge_bytes=MERGE_BYTES),
        missing=_no_keys,
    ),
    Path("mirror", "Mirror: decompress and recompress", "keep", partial(mirror_task, pass_through=False)),
    Path("mirror-through", "Mirror: pass through", "keep", mirror_task),
    Path(
        "mirror-look",
        "Mirror: pass on what has no key, after a look",
        "keep",
        partial(mirror_task, partitions=PARTITIONS),
        records=_without_keys,
    ),
    Path("seek-offset", "Seek by offset", "keep", seek_offset_task, records=_ascending_times, is_per_call=True),
    Path("seek-time", "Seek by time", "keep", seek_time_task, **_BY_TIME),
    Path("expire", "Expire by time: whole segments", "keep", partial(expire_task, by="segment"), **_BY_TIME),
    Path(
        "expire-head",
        "Expire by time: whole segments, and the head of the next",
        "keep",
        partial(expire_task, by="head"),
        **_BY_TIME,
    ),
)
PATHS: Final[Mapping[str, Path]] = {path.name: path for path in _PATHS}
