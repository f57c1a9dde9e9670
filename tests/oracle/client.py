"""Apache Kafka's record classes in a JVM. Requests and answers are one line of JSON each."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.compressed import Libraries
from tools import jvm

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
OLDER, NEWER = "3.9", "4.4"
VERSIONS = {OLDER: "3.9.1", NEWER: "4.4.0"}
"""The versions of Kafka, by the end of the name of their source folder. OLDER is the last that writes v0 and v1."""
_PACKAGE = r"org\.apache\.kafka\.common"
MOVED = (
    (rf"{_PACKAGE}\.record\.(?!TimestampType)", "org.apache.kafka.common.record.internal."),
    (
        rf"{_PACKAGE}\.utils\.(?=AppInfoParser|BufferSupplier|ByteBufferOutputStream|CloseableIterator|PrimitiveRef)",
        "org.apache.kafka.common.utils.internals.",
    ),
)
"""The packages that Kafka 4.4 moved."""

Spec = dict[str, Any]


class KafkaRefusesError(Exception):
    """Kafka's writer or broker code threw an exception. This error has the same message."""


class Kafka(jvm.JsonServer):
    """A JVM with Kafka's classes. It fetches and compiles what it needs.

    line: a key of VERSIONS. fetch: a function that returns the folder with the jars of a Maven pom file.
    """

    def __init__(self, line: str = OLDER, fetch: Callable[..., Path] = jvm.fetched) -> None:
        self.line = line
        self._jars = fetch(POM, {} if line == OLDER else {"kafka.version": VERSIONS[line]})  # the pom has the older one
        sources = [*sorted(HERE.glob("*.java")), *sorted((HERE / f"kafka-{line}").glob("*.java"))]
        classes = jvm.compiled(sources, self._jars, () if line == OLDER else MOVED)
        super().__init__(jvm.java("oracle.Server", class_path=[classes, f"{self._jars}/*"]))

    def _ask(self, **request: Any) -> Spec:
        answer: Spec = self.send(request)
        if "failed" in answer:
            raise KafkaRefusesError(answer["failed"])
        return answer

    def read(self, data: bytes) -> Spec:
        """Return how Kafka reads `data`.

        The result has the fields of a golden vector's sidecar, without name and spec.
        """
        return self._ask(op="read", bytes=data.hex())

    def write(self, *batches: Spec) -> bytes:
        """Return the bytes that Kafka writes for these specs of batches. `Writer.java` documents the specs."""
        return bytes.fromhex(self._ask(op="write", batches=batches)["bytes"])

    def compress(self, data: bytes, codec: str, level: int | None = None) -> bytes:
        """Compress `data` as Kafka compresses the payload of a batch."""
        answer = self._ask(op="compress", bytes=data.hex(), compression=codec, level=level)
        return bytes.fromhex(answer["bytes"])

    def version(self, library: str) -> str:
        """Return the version of a jar that Kafka's classes use."""
        (jar,) = self._jars.glob(f"{library}-[0-9]*.jar")
        return jar.stem.removeprefix(f"{library}-")

    @property
    def libraries(self) -> Libraries:
        """Return the versions of the compression libraries. That of zstd is (1, 5, 6) for the jar zstd-jni 1.5.6-4."""
        zstd, lz4 = self.version("zstd-jni").partition("-")[0], self.version("lz4-java")
        return Libraries(*(tuple(map(int, version.split("."))) for version in (zstd, lz4)))

    def change(self, op: str, data: bytes, **options: Any) -> tuple[bytes, Spec]:
        """Return the bytes that Kafka's broker makes of `data`, and its notes.

        op: stamp, convert, compact or validate.
        """
        answer = self._ask(op=op, bytes=data.hex(), **options)
        return bytes.fromhex(answer.pop("bytes")), answer

    def change_each(self, op: str, asked: Sequence[tuple[bytes, Spec]]) -> list[tuple[bytes, Spec]]:
        """Run `change` for many pairs of data and options in one request."""
        answers = self.send([{"op": op, "bytes": data.hex()} | options for data, options in asked])
        return [(bytes.fromhex(answer.pop("bytes")), answer) for answer in answers]
