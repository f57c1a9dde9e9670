"""Read JSON files of kfbench that name their kind and the version of their layout."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from kfbench.errors import KfbenchError

T = TypeVar("T")


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
        return found


class _Head(Struct):
    kind: str
    schema: int
    kfbench: str = "?"
