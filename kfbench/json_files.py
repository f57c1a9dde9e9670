"""Read JSON files of kfbench that name their kind and the version of their layout. Some have a checksum."""

import hashlib
import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from kfbench.errors import KfbenchError

T = TypeVar("T")


def _integer_if_whole(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number


_VALUES: Final = msgspec.json.Decoder(float_hook=_integer_if_whole)


def with_checksum(data: bytes) -> bytes:
    """Return a JSON object with `sha256` as its last value, the checksum of the others."""
    return data.removesuffix(b"}") + f',"sha256":"{values_checksum(_VALUES.decode(data))}"}}'.encode()


def values_checksum(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of values as ASCII JSON with sorted names and without white space, in hexadecimal.

    Floats are written as Python's `repr` does, but whole ones as integers.
    """
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


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
        has_checksum: True if the file has `sha256`, the checksum of its other values.
    """

    struct: type[T]
    kind: str
    schema: int
    noun: str
    error: type[KfbenchError]
    broken: Callable[[T], Iterator[str]]
    has_checksum: bool = False

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
            values = _VALUES.decode(data)
            head = msgspec.convert(values, _Head)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self.error(f"no {self.noun} of kfbench: {error}") from None
        if head.kind != self.kind:
            raise self.error(f"no {self.noun} of kfbench: its kind is {head.kind!r}")
        if head.schema != self.schema:
            raise self.error(
                f"has schema {head.schema}, written by kfbench {head.kfbench}; this kfbench reads schema {self.schema}"
            )
        checksum = values.pop("sha256", None) if self.has_checksum else None
        try:
            found = msgspec.convert(values, self.struct)
            is_changed = self.has_checksum and checksum != values_checksum(values)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self.error(str(error)) from None
        if problem := next(self.broken(found), None):
            raise self.error(problem)
        if is_changed:
            raise self.error("a value was changed: `sha256` is not the checksum of the others")
        return found


class _Head(Struct):
    kind: str
    schema: int
    kfbench: str = "?"
