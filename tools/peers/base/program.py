"""The base of peers that run in a process of their own, which times one sample per request.

Requests and answers are described in tools/java/KafkaArms.java and tools/peers/go-arms/arms.go.
"""

import select
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np

from kfbench.layouts import NULL_LENGTH
from kfbench.measure.cpu import OPERATIONS, CallTimes
from kfbench.present.stored_times import KAFKA_FORMATS
from kfbench.records import Records
from tools.peers.base.arm import Arm, Differs, PeerEnded, Task
from tools.peers.base.differences import unequal_bytes

PATIENCE_S: Final = 120.0  # for a part of an answer


class Process(NamedTuple):
    """A running program: its pipes, the system's folder with one subfolder per thread, and a function that ends it."""

    requests: IO[bytes]
    answers: RawIOBase
    threads: Path
    kill: Callable[[], None]


class Written(NamedTuple):
    """The output of a program for the records of a task in one format."""

    log: bytes
    entries: bytes  # the records that it read from the log, in the encoding of the function `entries`
    total: int  # the sum that the timed read computed, to be compared with the function `total`


class Program:
    """A peer in a process of its own. It gets requests and sends answers through pipes.

    Args:
        formats: the formats that it writes and reads, in the order of its answers.
        times_on_first_thread: False if the timed calls run on another thread than the process's first.
    """

    def __init__(
        self,
        name: str,
        formats: Sequence[str],
        warm_up_s: tuple[float, float],
        process: Process,
        times_on_first_thread: bool = True,
    ) -> None:
        """Read the program's machine and version from the pipe. Raises PeerEnded."""
        self.name, self.warm_up_s = name, warm_up_s
        self._formats = tuple(formats)
        self._requests, self._answers, self._threads, self._kill = process
        self._times_on_first_thread = times_on_first_thread
        self.machine: str | None = self._string()
        self.version = self._string()

    def arms(self, task: Task) -> Iterator[Arm]:
        for name, written in self.written(task).items():
            verify(self.name, name, written, task)
        for name in self._formats:
            for operation in OPERATIONS:
                request = struct.pack(">cbb", b"S", OPERATIONS.index(operation), KAFKA_FORMATS.index(name))
                yield Arm(
                    peer=self.name,
                    format=name,
                    operation=operation,
                    sample=lambda calls, request=request: self._sample(request, calls),  # type: ignore[misc]
                )

    def written(self, task: Task) -> dict[str, Written]:
        """Send the records of the task. Return the output by format. Raises PeerEnded."""
        self._request(b"R" + struct.pack(">ii", len(task.records), task.batch_size) + entries(task.records))
        return {name: Written(self._sized(), self._sized(), *self._longs(1)) for name in self._formats}

    def other_threads(self) -> float | None:
        """Return the CPU time of all threads but the timed one, as a share of the timed one's, since the program began.

        In Go they are the collector's. None if the timed thread is unknown, or the system does not tell.
        """
        if not self._times_on_first_thread:
            return None
        try:
            spent_ns = {task.name: int((task / "schedstat").read_text().split()[0]) for task in self._threads.iterdir()}
        except (OSError, ValueError, IndexError):
            return None
        first_ns = spent_ns.pop(self._threads.parent.name)
        return sum(spent_ns.values()) / first_ns

    def _sample(self, request: bytes, calls: int) -> CallTimes:
        self._request(request + struct.pack(">i", calls))
        return CallTimes(*self._longs(2))

    def _request(self, request: bytes) -> None:
        try:
            self._requests.write(request)
            self._requests.flush()
        except BrokenPipeError:
            raise PeerEnded(self.name, "has ended: it accepts no request") from None

    def _answer(self, size_bytes: int) -> bytes:
        found = bytearray()
        while len(found) < size_bytes:
            if not select.select([self._answers], [], [], PATIENCE_S)[0]:
                self._kill()
                raise PeerEnded(self.name, f"gave no answer for {PATIENCE_S:.0f} s, and was ended")
            if not (part := self._answers.read(size_bytes - len(found))):
                raise PeerEnded(self.name, "has ended: its answer is cut short")
            found += part
        return bytes(found)

    def _longs(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f">{count}q", self._answer(8 * count))

    def _sized(self) -> bytes:
        return self._answer(*struct.unpack(">i", self._answer(4)))

    def _string(self) -> str:
        (length,) = struct.unpack(">H", self._answer(2))
        return self._answer(length).decode()


def verify(peer: str, name: str, written: Written, task: Task) -> None:
    """Raise Differs unless the peer wrote the same bytes as we do and read the same records as we do.

    name: the format; written: the output of the peer for the task.
    """
    if written.log != task.logs[name]:
        raise Differs(
            f"{name}: {peer} writes other bytes than ours: {unequal_bytes(name, written.log, task.logs[name])}"
        )
    records = task.read(name)
    if written.entries != entries(records):
        raise Differs(f"{name}: {peer} reads other records than were written")
    if written.total != total(records):
        raise Differs(f"{name}: the timed read of {peer} sees other records than were written")


def entries(records: Records) -> bytes:
    """Encode records for a request.

    Per record: offset, timestamp, length of the key, key, length of the value, value. The length of a null is -1.
    """
    parts = []
    for i, (offset, timestamp) in enumerate(zip(records.offsets.tolist(), records.timestamps_ms.tolist(), strict=True)):
        payload = (records.key(i), records.value(i))
        parts.append(struct.pack(">qq", offset, timestamp))
        parts += [struct.pack(">i", NULL_LENGTH if item is None else len(item)) + (item or b"") for item in payload]
    return b"".join(parts)


def total(records: Records) -> int:
    """Return the sum of all offsets, timestamps, key lengths and value lengths. Programs compute it as a long."""
    shapes = records.shapes
    columns = (shapes.offsets, shapes.timestamps_ms, shapes.key_lengths, shapes.value_lengths)
    return int(sum(column.sum(dtype=np.int64) for column in columns))


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Process]:
    """Start a process, and yield its pipes and threads. Closing its input at the end makes the process end."""
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        try:
            yield Process(process.stdin, process.stdout.raw, Path(f"/proc/{process.pid}/task"), process.kill)  # type: ignore[attr-defined]
        finally:
            with suppress(BrokenPipeError):  # the program did not read a request
                process.stdin.close()
