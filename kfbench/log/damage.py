"""Damage in a log: the bytes that were left out, and why."""

import os
import stat
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

from kfbench.batches import DecodedLog
from kfbench.errors import CorruptLog, KfbenchError


@dataclass(frozen=True, kw_only=True)
class Damage:
    """Bytes of a file that could not be read: from `position` to the next batch, or to the end."""

    position: int
    size_bytes: int
    field: str
    promise: str

    @classmethod
    def of(cls, error: CorruptLog, size_bytes: int) -> Self:
        return cls(position=error.position, size_bytes=size_bytes, field=error.field, promise=error.promise)

    def words(self, unit: str = "byte") -> str:
        """Return the place, the field and the broken promise. unit: the unit of positions."""
        where = f"batch at byte {self.position}" if unit == "byte" else f"{unit} {self.position}"
        return f"{where}: {self.field}: {self.promise}"


def damage_of(log: DecodedLog, size_bytes: int) -> tuple[Damage, ...]:
    """Return the damage of a log of `size_bytes` that was read with on_error="skip", in the file's order."""
    starts = {*log.batch_rows["position"].tolist(), *(error.position for error in log.errors)}
    ends = dict(pairwise([*sorted(starts), size_bytes - log.trailing_bytes]))
    errors = sorted(log.errors, key=lambda error: error.position)
    return tuple(Damage.of(error, ends[error.position] - error.position) for error in errors)


def segment_size(path: str | os.PathLike[str]) -> int:
    """Return the size of a segment file. Raise KfbenchError if there is no such file, or it is a folder."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise KfbenchError(f"{os.fspath(path)}: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        raise KfbenchError(f"{os.fspath(path)}: a folder; a segment file in it is wanted (00000000000000000000.log)")
    return status.st_size
