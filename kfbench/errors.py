"""Errors, each named after the broken promise. A message is one line that tells the user what to change."""

import shlex
import sys


class KfbenchError(Exception):
    """The base class of all errors of kfbench."""


class InvalidRecords(KfbenchError, ValueError):
    """Arrays that are no records: a wrong type, lengths that disagree, bytes outside a buffer."""


class IllegalCombination(KfbenchError, ValueError):
    """A combination that no Kafka version allows, such as zstd in v1."""


class WouldLose(KfbenchError, ValueError):
    """The format cannot carry something in the records, and `lossy=True` was not given."""


class CorruptLog(KfbenchError):
    """Bytes that break a promise of a log.

    position: byte in the log where the batch starts; field: the wrong field; promise: the rule that the batch breaks.
    """

    def __init__(self, position: int, field: str, promise: str, source: str | None = None) -> None:
        self.position = position
        self.field = field
        self.promise = promise
        self.source = source
        super().__init__(f"{source + ': ' if source else ''}batch at byte {position}: {field}: {promise}")

    def __reduce__(self) -> tuple[type, tuple[int, str, str, str | None]]:
        return type(self), (self.position, self.field, self.promise, self.source)


class Refused(KfbenchError):
    """A batch that a broker refuses, with Kafka's reason.

    error: the name of Kafka's error (`Errors` in its protocol), such as INVALID_RECORD; position: byte in the log where
    the batch starts; promise: the rule that the batch breaks.
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


class RunError(KfbenchError):
    """A stored run that exists already, is unfinished, or has another schema version."""


class MissingTool(KfbenchError):
    """Something that is missing on this machine. The message tells how to get it."""


class MissingExtra(MissingTool, ImportError):
    """A part of kfbench that needs an extra of the installation, such as Spark."""

    def __init__(self, extra: str) -> None:
        self.extra = extra
        super().__init__(f"needs the extra {extra!r}: {shlex.quote(sys.executable)} -m pip install 'kfbench[{extra}]'")

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self.extra,)
