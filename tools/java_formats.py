"""A JVM with the Java implementation of v2, v3, v3-headers-first and columnar. Requests and answers are lines of JSON.

tools/java/formats is written from docs/formats.md and docs/columnar.md, on Kafka's own buffers, varints and codecs.
tools/java/kafka-VERSION has what differs between versions of Kafka.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kfbench.records import Records
from tools import jvm

HERE: Final = Path(__file__).resolve().parent / "java"
POM: Final = HERE / "pom.xml"
FORMATS: Final = ("v2", "v3", "v3-headers-first", "columnar")
CODECS: Final = ("none", "lz4", "zstd")
VERSIONS: Final = {"4.4": "4.4.0", "3.9": "3.9.2"}
"""The versions of Kafka that the Java code is built on, by the end of the name of their source folder."""

Spec = dict[str, Any]


class JavaRefusesError(Exception):
    """The Java reader or writer refuses bytes by an exception of Kafka's. This error has the same message."""


class Built(NamedTuple):
    """The folders of compiled classes and of the jars that they need."""

    classes: Path
    jars: Path

    @property
    def class_path(self) -> list[Path | str]:
        return [self.classes, f"{self.jars}/*"]


def record_spec(records: Records, i: int) -> Spec:
    """Return a record as the Java reader and writer have it. Bytes are hexadecimal."""
    return {
        "offset": int(records.offsets[i]),
        "timestamp": int(records.timestamps_ms[i]),
        "key": _hexed(records.key(i)),
        "value": _hexed(records.value(i)),
        "headers": [[key, _hexed(value)] for key, value in records.headers(i)],
    }


def _hexed(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


def built(line: str, folders: Sequence[str] = ("formats",), fetch: Callable[..., Path] = jvm.fetched) -> Built:
    """Fetch the jars of Kafka and compile the Java code. Both are cached.

    line: a key of VERSIONS; folders: the source folders besides that of the line. Raises ToolError.
    """
    jars = fetch(POM, {"kafka.version": VERSIONS[line]})
    sources = [path for folder in (*folders, f"kafka-{line}") for path in sorted((HERE / folder).glob("*.java"))]
    return Built(jvm.compiled(sources, jars), jars)


class JavaFormats(jvm.JsonServer):
    """A JVM that writes and reads batches. line: a key of VERSIONS."""

    def __init__(self, line: str, fetch: Callable[..., Path] = jvm.fetched) -> None:
        super().__init__(jvm.java("kfbench.Server", class_path=built(line, fetch=fetch).class_path))
        self.version: str = self._ask(op="version")["kafka"]

    def _ask(self, **request: Any) -> Spec:
        answer: Spec = self.send(request)
        if "refused" in answer:
            raise JavaRefusesError(answer["refused"])
        if "failed" in answer:
            raise jvm.ToolError(f"the Java program fails: {answer['failed']}")
        return answer

    def write(self, name: str, codec: str, batches: Sequence[Spec]) -> bytes:
        """Return the bytes of batches in the format `name`. `Server.java` documents the specs."""
        return bytes.fromhex(self._ask(op="write", format=name, codec=codec, batches=batches)["bytes"])

    def read(self, data: bytes) -> list[Spec]:
        """Return the header fields and records of each batch. Raises JavaRefusesError."""
        batches: list[Spec] = self._ask(op="read", bytes=data.hex())["batches"]
        return batches
