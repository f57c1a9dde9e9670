"""The peer Apache Kafka: its own writer and reader in a JVM, which times one sample per request.

tools/java/KafkaArms.java is the program in the JVM.
"""

import struct
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np

from kfbench.layouts import NULL_LENGTH
from kfbench.measure.cpu import OPERATIONS, CallTimes
from kfbench.records import Records
from kfbench.report.topics.peers import FORMATS, JAVA
from tools import jvm
from tools.peers.base.arm import Absent, Arm, Differs, Task

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = (ROOT / "tools" / "java" / "KafkaArms.java",)
POM: Final = ROOT / "tests" / "oracle" / "pom.xml"


class Written(NamedTuple):
    """The output of Java for the records of a task in one format."""

    log: bytes
    entries: bytes  # the records that Java read from the log, in the encoding of the function `entries`
    total: int  # the sum that the timed read computed, to be compared with the function `total`


class Java:
    """The peer in a JVM. It gets requests and sends answers through pipes."""

    name = JAVA
    warm_up_s = (2.0, 8.0)  # the JVM compiles during the warm-up

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        """Read the name of the JVM and the version of Kafka from the pipe. Raises ToolError if the JVM ends before."""
        self._requests, self._answers = requests, answers
        self.machine: str | None = self._string()
        self.version = self._string()

    def arms(self, task: Task) -> Iterator[Arm]:
        for name, written in self.written(task).items():
            verify(name, written, task)
        for name in FORMATS:
            for operation in OPERATIONS:
                request = struct.pack(">cbb", b"S", OPERATIONS.index(operation), FORMATS.index(name))
                yield Arm(
                    peer=self.name,
                    format=name,
                    operation=operation,
                    sample=lambda calls, request=request: self._sample(request, calls),  # type: ignore[misc]
                )

    def written(self, task: Task) -> dict[str, Written]:
        """Send the records of the task to Java. Return its output by format. Raises ToolError if the JVM has ended."""
        self._request(b"R" + struct.pack(">ii", len(task.records), task.batch_size) + entries(task.records))
        return {name: Written(self._sized(), self._sized(), *self._longs(1)) for name in FORMATS}

    def _sample(self, request: bytes, calls: int) -> CallTimes:
        self._request(request + struct.pack(">i", calls))
        return CallTimes(*self._longs(2))

    def _request(self, request: bytes) -> None:
        try:
            self._requests.write(request)
            self._requests.flush()
        except BrokenPipeError:
            raise jvm.ToolError(f"{JAVA} has ended: it accepts no request") from None

    def _answer(self, size_bytes: int) -> bytes:
        found = self._answers.read(size_bytes)
        if len(found) < size_bytes:
            raise jvm.ToolError(f"{JAVA} has ended: its answer is cut short")
        return found

    def _longs(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f">{count}q", self._answer(8 * count))

    def _sized(self) -> bytes:
        return self._answer(*struct.unpack(">i", self._answer(4)))

    def _string(self) -> str:
        (length,) = struct.unpack(">H", self._answer(2))
        return self._answer(length).decode()


def verify(name: str, written: Written, task: Task) -> None:
    """Raise Differs unless Java wrote the same bytes as we do and read the same records as we do.

    name: the format; written: the output of Java for the task.
    """
    if written.log != task.logs[name]:
        raise Differs(f"{name}: {JAVA} writes other bytes than ours")
    records = task.read(name)
    if written.entries != entries(records):
        raise Differs(f"{name}: {JAVA} reads other records than were written")
    if written.total != total(records):
        raise Differs(f"{name}: the timed read of {JAVA} sees other records than were written")


def entries(records: Records) -> bytes:
    """Encode records for a request to Java.

    Per record: offset, timestamp, length of the key, key, length of the value, value. The length of a null is -1.
    """
    parts = []
    for i, (offset, timestamp) in enumerate(zip(records.offsets.tolist(), records.timestamps_ms.tolist(), strict=True)):
        payload = (records.key(i), records.value(i))
        parts.append(struct.pack(">qq", offset, timestamp))
        parts += [struct.pack(">i", NULL_LENGTH if item is None else len(item)) + (item or b"") for item in payload]
    return b"".join(parts)


def total(records: Records) -> int:
    """Return the sum of all offsets, timestamps, key lengths and value lengths. Java computes it as a long."""
    shapes = records.shapes
    columns = (shapes.offsets, shapes.timestamps_ms, shapes.key_lengths, shapes.value_lengths)
    return int(sum(column.sum(dtype=np.int64) for column in columns))


@contextmanager
def start() -> Iterator[Java]:
    """Run the JVM while the `with` body runs.

    Raises Absent if there is no JDK or Maven, if Maven cannot reach its registry, or if the JVM does not start.
    """
    with ExitStack() as stack:
        try:
            jars = jvm.fetched(POM)
            command = jvm.java("timing.KafkaArms", class_path=[jvm.compiled(SOURCES, jars), f"{jars}/*"])
            started = Java(*stack.enter_context(_process(command)))
        except (jvm.ToolError, OSError) as error:
            raise Absent(str(error)) from None
        yield started


@contextmanager
def _process(command: Sequence[str]) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Start a process, and yield its standard input and output. Closing its input at the end makes the process end."""
    with subprocess.Popen(command, env=jvm.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        try:
            yield process.stdin, process.stdout
        finally:
            with suppress(BrokenPipeError):  # the JVM did not read a request
                process.stdin.close()
