"""The producer and the consumers that load the broker, each in a JVM of its own."""

import struct
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Final

from kfbench.layouts import NULL_LENGTH
from kfbench.workloads import WORKLOADS
from tools import jvm

WORKLOAD, RECORDS, SEED = "user-activity", 5_000, 1
ANSWER_S: Final = 60


@dataclass(frozen=True, kw_only=True)
class Client:
    """A running client, which counts its records."""

    name: str
    process: subprocess.Popen[str]

    def wait_until_ready(self) -> None:
        if (line := self._line()) != "ready":
            raise jvm.ToolError(f"the {self.name} is not ready: {line!r}")

    def count(self, request: str = "count") -> int:
        """Return the number of records that the client has sent or read so far. `pace` is the other request."""
        assert self.process.stdin
        try:
            self.process.stdin.write(f"{request}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise jvm.ToolError(f"the {self.name} has ended") from None
        return int(self._line())

    def _line(self) -> str:
        """Return the next line. Raises TimeoutError, and ToolError if the client has ended."""
        output = self.process.stdout
        assert output
        with DefaultSelector() as selector:
            selector.register(output, EVENT_READ)
            if not selector.select(ANSWER_S):
                raise TimeoutError(f"the {self.name} does not answer within {ANSWER_S} s")
        if not (line := output.readline()):
            raise jvm.ToolError(f"the {self.name} has ended")
        return line.rstrip("\n")


@contextmanager
def client(name: str, classes: Path, jars: Path, *arguments: str | Path) -> Iterator[Client]:
    """Run a client while the `with` body runs. Closing its input at the end makes it end."""
    command = jvm.java("profile.Client", *arguments, class_path=[classes, f"{jars}/*"])
    with subprocess.Popen(
        command, env=jvm.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdin
        try:
            yield Client(name=name, process=process)
            process.stdin.close()
            process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the {name} does not end within {ANSWER_S} s") from None
        finally:
            process.kill()


def write_records(path: Path) -> None:
    """Write the records to send: their number, then length and bytes of each key and value (-1 for null)."""
    records = WORKLOADS[WORKLOAD].generate(records=RECORDS, seed=SEED).records
    items = (item for i in range(len(records)) for item in (records.key(i), records.value(i)))
    parts = (struct.pack(">i", NULL_LENGTH if item is None else len(item)) + bytes(item or b"") for item in items)
    path.write_bytes(struct.pack(">i", len(records)) + b"".join(parts))


def write_properties(path: Path, properties: Mapping[str, object]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()), encoding="utf-8")
    return path
