"""Read JSON files of kfbench that name their kind and the version of their layout. Some have a checksum."""

import hashlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from kfbench.errors import KfbenchError

T = TypeVar("T")

MOST_EXACT: Final = 1 << 53
"""Up to this size, floats have all integers."""


def checksum(data: bytes) -> str:
    """Return the SHA-256 of a JSON object's values without `sha256`, in hexadecimal.

    It does not depend on white space, on the order of names, or on the way to write a number.
    """
    values: dict[str, Any] = _VALUES.decode(data)
    values.pop("sha256", None)
    return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < MOST_EXACT else number


_VALUES: Final = msgspec.json.Decoder(float_hook=_number)


@dataclass(frozen=True, kw_only=True)
class JsonLayout(Generic[T]):
    """The layout of a file.

    Args:
        struct: the Struct of the whole file, or of the part that is wanted. Its tag is the kind.
        kind: the kind, as the file names it.
        schema: the version of the layout that is read.
        noun: what the file is, for error messages.
        error: the class of the errors that are raised.
        broken: yields a text for each contradiction that the types allow.
    """

    struct: type[T]
    kind: str
    schema: int
    noun: str
    error: type[KfbenchError]
    broken: Callable[[T], Iterator[str]]

    def read(self, path: Path, most_bytes: int) -> T:
        """Read and check a file of at most `most_bytes`. Errors begin with the path."""
        try:
            if path.stat().st_size > most_bytes:
                raise self.error(f"{path}: larger than {most_bytes:,} bytes")
            data = path.read_bytes()
        except OSError as error:
            raise self.error(f"{path}: {error.strerror}") from None
        return self.parsed(data, f"{path}: ")

    def parsed(self, data: bytes, where: str = "") -> T:
        """Parse and check the text of a file. where: the beginning of errors."""
        try:
            return self._parsed(data.removeprefix(BOM_UTF8))
        except self.error as error:
            raise self.error(f"{where}{error}") from None

    def _parsed(self, data: bytes) -> T:
        try:
            head = msgspec.json.decode(data, type=_Head)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self.error(f"no {self.noun} of kfbench: {error}") from None
        if head.kind != self.kind:
            raise self.error(f"no {self.noun} of kfbench: its kind is {head.kind!r}")
        if head.schema != self.schema:
            raise self.error(
                f"has schema {head.schema}, written by kfbench {head.kfbench}; this kfbench reads schema {self.schema}"
            )
        try:
            found = msgspec.json.decode(data, type=self.struct)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self.error(str(error)) from None
        if problem := next(self.broken(found), None):
            raise self.error(problem)
        if head.sha256 is not None and head.sha256 != checksum(data):
            raise self.error("a value was changed: the SHA-256 of all values is not that in `sha256`")
        return found


class _Head(Struct):
    kind: str
    schema: int
    kfbench: str = "?"
    sha256: str | None = None
