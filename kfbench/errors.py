"""Errors of kfbench.

Each class is named after the rule that was broken. A message is one line that says what to change.
"""

import shlex
import sys
from importlib.util import find_spec
from typing import Final

MODULE_OF_EXTRA: Final = {"sweep": "pyspark", "peers": "kafka"}  # per extra, a module that only it installs


class KfbenchError(Exception):
    """The base class of all errors of kfbench."""


class InvalidRecords(KfbenchError, ValueError):
    """Arrays that do not describe records: a wrong type, lengths that disagree, items outside their buffer."""


class IllegalCombination(KfbenchError, ValueError):
    """A combination that no Kafka version allows (such as zstd in v1), or an operation that a format does not have."""


class WouldLose(KfbenchError, ValueError):
    """The format cannot store a part of the records, and the caller did not pass `lossy=True`."""


class CorruptLog(KfbenchError):
    """A damaged log: some bytes break a rule of the format.

    position: the byte of the log at which the damaged batch starts. field: the name of the wrong field. promise: the
    rule that the batch breaks. source: the log's file name, if there is one.
    """

    def __init__(self, position: int, field: str, promise: str, source: str | None = None) -> None:
        self.position = position
        self.field = field
        self.promise = promise
        self.source = source
        super().__init__(f"{source + ': ' if source else ''}batch at byte {position}: {field}: {promise}")

    def __reduce__(self) -> tuple[type, tuple[int, str, str, str | None]]:
        return type(self), (self.position, self.field, self.promise, self.source)

    def at(self, position: int, source: str | None = None) -> "CorruptLog":
        """Return the same error for another position, such as one in the whole file."""
        return type(self)(position, self.field, self.promise, source)


class MissingDictionary(CorruptLog):
    """A batch that was compressed with a dictionary which the reader does not have.

    number: the dictionary's number in its partition. A dictionary of this number may be there, but be a different one.
    """

    def __init__(self, position: int, number: int, promise: str, source: str | None = None) -> None:
        self.number = number
        super().__init__(position, "dictionary", promise, source)

    def __reduce__(self) -> tuple[type, tuple[int, int, str, str | None]]:  # type: ignore[override]
        return type(self), (self.position, self.number, self.promise, self.source)

    def at(self, position: int, source: str | None = None) -> "CorruptLog":
        return type(self)(position, self.number, self.promise, source)


class InvalidDictionary(KfbenchError, ValueError):
    """Bytes that are no dictionary for zstd, too few samples to train one, or two dictionaries with one number."""


class Refused(KfbenchError):
    """A batch that a broker refuses, with Kafka's reason.

    error: the name of Kafka's error (`Errors` in its protocol), such as INVALID_RECORD. position: the byte of the log
    at which the batch starts. promise: the rule that the batch breaks. source: the log's file name, if there is one.
    """

    def __init__(self, error: str, position: int, promise: str, source: str | None = None) -> None:
        self.error = error
        self.position = position
        self.promise = promise
        self.source = source
        super().__init__(f"{source + ': ' if source else ''}batch at byte {position}: {error}: {promise}")

    def __reduce__(self) -> tuple[type, tuple[str, int, str, str | None]]:
        return type(self), (self.error, self.position, self.promise, self.source)


class InvalidConfig(KfbenchError, ValueError):
    """A TOML file, an option or a column mapping that cannot be used. The message names the file and the key."""


class UnknownTimeUnit(KfbenchError, ValueError):
    """The unit of timestamps is unknown, but batches by linger.ms need it. The message names the option."""


class RunError(KfbenchError):
    """A stored benchmark run that cannot be used: it already exists, is unfinished, or has another schema version."""


class MissingTool(KfbenchError):
    """A program or package that is missing on this machine. The message says how to install it."""


class MissingExtra(MissingTool, ImportError):
    """A package that is missing because it belongs to an optional part of kfbench (an extra), such as Spark.

    extra: the name of the extra, as in `pip install 'kfbench[extra]'`.
    """

    def __init__(self, extra: str) -> None:
        self.extra = extra
        super().__init__(f"needs the extra {extra!r}: {shlex.quote(sys.executable)} -m pip install 'kfbench[{extra}]'")

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.extra,)


def has_extra(name: str) -> bool:
    return find_spec(MODULE_OF_EXTRA[name]) is not None


def require_extra(name: str) -> None:
    """Raise MissingExtra unless the extra is installed."""
    if not has_extra(name):
        raise MissingExtra(name)
