"""The input of a broker operation: an encoded log, or the bytes of a real one."""

from typing import Any

from kfbench.arrays import Bytes, as_bytes
from kfbench.batches import EncodedLog
from kfbench.errors import IllegalCombination
from kfbench.formats import BY_MAGIC, FORMATS, Format, unknown_magic


def bytes_of(log: EncodedLog | Any) -> Bytes:
    """Return the log's bytes without copying them. Raise InvalidRecords."""
    return as_bytes("log", log.data if isinstance(log, EncodedLog) else log)


def find(fmt: Format | str, *, for_append: bool = False) -> Format:
    """Return a format by its name, or the given format.

    Raise IllegalCombination for an unknown name, and for a format that brokers' operations do not support.

    for_append: also return a format whose only broker path is `append`.
    """
    if not isinstance(fmt, Format):
        if fmt not in FORMATS:
            raise IllegalCombination(f"{fmt}: no such format (formats: {', '.join(FORMATS)})")
        fmt = FORMATS[fmt]
    if fmt.appending.is_only_path and not for_append:  # `appending` raises for a format without broker paths
        raise IllegalCombination(f"no path for {fmt.name}: it is a research format; append is the only one")
    return fmt


def of_magic(magic: int, position: int, *, for_append: bool = False) -> Format:
    """Return the format that this magic identifies. position: the byte of the log at which its batch starts.

    Raise CorruptLog for an unknown magic, and IllegalCombination as `find` does.
    """
    if magic not in BY_MAGIC:
        raise unknown_magic(magic, position)
    return find(BY_MAGIC[magic], for_append=for_append)
