"""The registry of broker paths: their titles, their work on a log and the records that they need."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal

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

KEY_USES: Final = 2  # records per key where the log is compacted


def _unchanged(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    return records


def _reused_keys(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    """Give each record the key of one of the first, at random. 43 of 100 records are then the last of their key."""
    n = len(records)
    drawn = np.random.default_rng(seed).integers(0, max(n // KEY_USES, 1), n)
    shapes = replace(records.shapes, key_lengths=records.shapes.key_lengths[drawn])
    return replace(records, shapes=shapes, key_starts=records.key_starts[drawn])


def _ascending_times(records: Records, bounds: Int64, seed: int) -> Records:  # noqa: ARG001
    """Begin each batch a second after the one before ends: enriched stores whole seconds."""
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


@dataclass(frozen=True, kw_only=True)
class Path:
    """A broker path.

    Args:
        title: the path as the report names it.
        section: the section of the report that shows it.
        task: makes the work on one log, and the check of its result.
        records: makes the records to encode from the workload's records, their batch bounds and a seed.
        missing: returns why a format with such records lacks the path; None if it has the path.
        converts: the path writes another format.
        changes_input: a call changes its input, so each sample is one call.
        is_per_call: figures are per call and not per record, because a call finds one record or passes bytes on.
    """

    name: str
    title: str
    section: Literal["append", "convert", "keep"]
    task: Callable[[PathInput], Task]
    records: Callable[[Records, Int64, int], Records] = _unchanged
    missing: Callable[[Format, Shapes], str | None] = _nothing_missing
    converts: bool = False
    changes_input: bool = False
    is_per_call: bool = False


PATHS: Final[Mapping[str, Path]] = {
    path.name: path
    for path in (
        Path(
            name="append",
            title="Append: validate, assign offsets",
            section="append",
            task=append_task,
            changes_input=True,
        ),
        Path(
            name="append-time",
            title="Append with log append time",
            section="append",
            task=partial(append_task, timestamp_type="append"),
            missing=_no_append_time,
            changes_input=True,
        ),
        Path(
            name="fetch",
            title="Fetch by a reader of the same format",
            section="append",
            task=partial(fetch_task, scan="never"),
            is_per_call=True,
        ),
        Path(
            name="fetch-scan",
            title="Fetch, after a look at the magic of each batch",
            section="append",
            task=partial(fetch_task, scan="batches"),
            is_per_call=True,
        ),
        Path(name="convert", title="Convert", section="convert", task=convert_task, converts=True),
        Path(
            name="append-convert",
            title="Append into a log of another format",
            section="convert",
            task=append_convert_task,
            converts=True,
        ),
        Path(
            name="compact",
            title="Compact: keep the latest of each key",
            section="keep",
            task=compact_task,
            records=_reused_keys,
            missing=_no_keys,
        ),
        Path(
            name="compact-merge",
            title="Compact, and merge what stays into larger batches",
            section="keep",
            task=partial(compact_task, merge_bytes=MERGE_BYTES),
            missing=_no_keys,
        ),
        Path(
            name="mirror",
            title="Mirror: decompress and recompress",
            section="keep",
            task=partial(mirror_task, pass_through=False),
        ),
        Path(name="mirror-through", title="Mirror: pass through", section="keep", task=mirror_task),
        Path(
            name="mirror-look",
            title="Mirror: pass on what has no key, after a look",
            section="keep",
            task=partial(mirror_task, partitions=PARTITIONS),
            records=_without_keys,
        ),
        Path(
            name="seek-offset",
            title="Seek by offset",
            section="keep",
            task=seek_offset_task,
            records=_ascending_times,
            is_per_call=True,
        ),
        Path(
            name="seek-time",
            title="Seek by time",
            section="keep",
            task=seek_time_task,
            records=_ascending_times,
            missing=_no_timestamps,
            is_per_call=True,
        ),
        Path(
            name="expire",
            title="Expire by time: whole segments",
            section="keep",
            task=partial(expire_task, by="segment"),
            records=_ascending_times,
            missing=_no_timestamps,
            is_per_call=True,
        ),
        Path(
            name="expire-head",
            title="Expire by time: whole segments, and the head of the next",
            section="keep",
            task=partial(expire_task, by="head"),
            records=_ascending_times,
            missing=_no_timestamps,
            is_per_call=True,
        ),
    )
}
