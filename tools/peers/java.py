"""Apache Kafka's own writer and reader, in a JVM that answers a sample at a time (tools/java/KafkaArms.java)."""

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from kfbench.layouts import NULL_LENGTH
from kfbench.measure.cpu import OPERATIONS
from kfbench.records import Records
from tools import jvm
from tools.peers.arm import FORMATS, Absent, Arm, Differs, Task, Times

ROOT: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = (ROOT / "tools" / "java" / "KafkaArms.java",)
POM: Final = ROOT / "tests" / "oracle" / "pom.xml"


class Java:
    name = "Kafka's Java"
    warm_up_s = (2.0, 8.0)  # until the compiler has done what it will

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests, self._answers = requests, answers
        self.java, kafka = (self._string() for _ in range(2))
        self.version = kafka

    def arms(self, task: Task) -> Iterator[Arm]:
        self._ask(b"R" + b"".join(entries(task.records, task.batch_size)))
        logs = {name: self._answer(*struct.unpack(">i", self._answer(4))) for name in FORMATS}
        for name, log in logs.items():
            if log != task.logs[name]:
                raise Differs(f"{name}: Kafka's Java writes other bytes than ours")
        for name in FORMATS:
            for operation in OPERATIONS:
                asked = struct.pack(">cbb", b"S", OPERATIONS.index(operation), FORMATS.index(name))
                yield Arm(
                    peer=self.name,
                    format=name,
                    operation=operation,
                    sample=lambda calls, asked=asked: self._sample(asked, calls),  # type: ignore[misc]
                )

    def _sample(self, asked: bytes, calls: int) -> Times:
        self._ask(asked + struct.pack(">i", calls))
        return Times(*struct.unpack(">qq", self._answer(16)))

    def _ask(self, request: bytes) -> None:
        self._requests.write(request)
        self._requests.flush()

    def _answer(self, size_bytes: int) -> bytes:
        found = self._answers.read(size_bytes)
        if len(found) < size_bytes:
            raise jvm.ToolError("Kafka's Java ended in the middle of an answer")
        return found

    def _string(self) -> str:
        (length,) = struct.unpack(">H", self._answer(2))
        return self._answer(length).decode()


def entries(records: Records, batch_size: int) -> Iterator[bytes]:
    yield struct.pack(">ii", len(records), batch_size)
    for i, (offset, timestamp) in enumerate(zip(records.offsets.tolist(), records.timestamps_ms.tolist(), strict=True)):
        yield struct.pack(">qq", offset, timestamp)
        for item in (records.key(i), records.value(i)):
            yield struct.pack(">i", NULL_LENGTH) if item is None else struct.pack(">i", len(item)) + item


@contextmanager
def java() -> Iterator[Java]:
    """Raises Absent where there is no JDK, no Maven or no registry."""
    try:
        jars = jvm.fetched(POM)
        command = jvm.java("timing.KafkaArms", class_path=[jvm.compiled(SOURCES, jars), f"{jars}/*"])
    except jvm.ToolError as error:
        raise Absent(str(error)) from None
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        try:
            yield Java(process.stdin, process.stdout)
        finally:
            process.stdin.close()
