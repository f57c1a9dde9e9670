"""Damage in a log: bytes that are left out, and offsets that repeat or go back."""

import os
import stat
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kfbench.batches import DecodedLog
from kfbench.errors import CorruptLog, KfbenchError, MissingDictionary
from kfbench.log.dictionaries import dictionary_batches


@dataclass(frozen=True, kw_only=True)
class Damage:
    """Bytes of a file that could not be read: `size_bytes` bytes from `position` on.

    They end at the next batch that can be read, or at the file's end. 0 bytes: a batch is read, but its offsets repeat
    or go back. field: the name of the wrong field. promise: the rule that the bytes break.
    """

    position: int
    size_bytes: int
    field: str
    promise: str

    def words(self, unit: str = "byte") -> str:
        """Return one line: position, field and broken rule. unit: the unit of `position` ("byte", "row", …)."""
        where = f"batch at byte {self.position}" if unit == "byte" else f"{unit} {self.position}"
        return f"{where}: {self.field}: {self.promise}"


@dataclass(frozen=True, kw_only=True)
class WithoutDictionary(Damage):
    """A batch that could not be read because its dictionary is missing. number: the number that the batch names.

    A dictionary of this number may be there, but be a different one.
    """

    number: int


def damage_from(error: CorruptLog, size_bytes: int) -> Damage:
    """Return the damage that an error reports."""
    place: dict[str, Any] = {"position": error.position, "size_bytes": size_bytes}
    if isinstance(error, MissingDictionary):
        return WithoutDictionary(**place, field=error.field, promise=error.promise, number=error.number)
    return Damage(**place, field=error.field, promise=error.promise)


def damage_of(log: DecodedLog, size_bytes: int) -> tuple[Damage, ...]:
    """Return the damage of a log that was read with on_error="skip", in the order of the file.

    size_bytes: the size of the log in bytes.
    """
    starts = {*log.batch_rows["position"].tolist(), *(error.position for error in log.errors)}
    ends = dict(pairwise([*sorted(starts), size_bytes - log.trailing_bytes]))
    errors = sorted(log.errors, key=lambda error: error.position)
    return tuple(damage_from(error, ends[error.position] - error.position) for error in errors)


class OffsetCheck(NamedTuple):
    """The batches whose offsets do not rise, as damage of 0 bytes. first, last: offsets; None: there is no batch."""

    damage: tuple[Damage, ...]
    first: int | None
    last: int | None


def check_offsets(log: DecodedLog, before: int | None) -> OffsetCheck:
    """Find batches whose offsets do not rise, within them or after the previous batch.

    Gaps are no damage, because compaction leaves them. Batches of dictionaries do not count, because one may be put in
    front of any log. before: the last offset before this log; None: unknown.
    """
    rows, offsets, bounds = log.batch_rows, log.records.offsets, log.bounds
    filled = np.flatnonzero(np.diff(bounds))
    first, last = rows["base_offset"].astype(np.int64), rows["last_offset"].astype(np.int64)
    first[filled] = np.minimum(first[filled], offsets[bounds[filled]])
    last[filled] = np.maximum(last[filled], offsets[bounds[filled + 1] - 1])
    kept = np.delete(np.arange(len(rows)), dictionary_batches(log))
    if not len(kept):
        return OffsetCheck((), None, before)
    first, last = first[kept], last[kept]
    ends = np.append(first[0] - 1 if before is None else before, last[:-1])
    back = np.flatnonzero(first <= ends)
    steps = np.flatnonzero(offsets[1:] <= offsets[:-1]) + 1
    owners = np.searchsorted(bounds, steps, "right") - 1
    is_inside = bounds[owners] < steps
    found: dict[int, tuple[int, int]] = {}
    for batches, of_each, previous in (
        (kept[back], first[back], ends[back]),
        (owners[is_inside], offsets[steps[is_inside]], offsets[steps[is_inside] - 1]),
    ):
        for batch, *pair in zip(batches.tolist(), of_each.tolist(), previous.tolist(), strict=True):
            found.setdefault(batch, (pair[0], pair[1]))
    damage = tuple(out_of_order(int(rows["position"][batch]), *found[batch]) for batch in sorted(found))
    return OffsetCheck(damage, int(first[0]), int(last[-1]))


def out_of_order(position: int, offset: int, previous: int) -> Damage:
    """Return the damage of an offset that is not above the previous one."""
    promise = f"{offset} after {previous}: offsets repeat or go back"
    return Damage(position=position, size_bytes=0, field="offset", promise=promise)


def segment_size(path: str | os.PathLike[str]) -> int:
    """Return the size of a segment file in bytes. Raise KfbenchError if there is no file, or the path is a folder."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise KfbenchError(f"{os.fspath(path)}: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        raise KfbenchError(f"{os.fspath(path)}: a folder; a segment file in it is wanted (00000000000000000000.log)")
    return status.st_size
