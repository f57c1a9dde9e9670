"""Damage in a log: the bytes that were left out, and the reason."""

import os
import stat
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from kfbench.batches import DecodedLog
from kfbench.errors import CorruptLog, KfbenchError, MissingDictionary


@dataclass(frozen=True, kw_only=True)
class Damage:
    """Bytes of a file that could not be read: `size_bytes` bytes from `position` on.

    They end at the next batch that can be read, or at the file's end. field: the name of the wrong field. promise: the
    rule that the bytes break.
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


def segment_size(path: str | os.PathLike[str]) -> int:
    """Return the size of a segment file in bytes. Raise KfbenchError if there is no file, or the path is a folder."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise KfbenchError(f"{os.fspath(path)}: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        raise KfbenchError(f"{os.fspath(path)}: a folder; a segment file in it is wanted (00000000000000000000.log)")
    return status.st_size
