"""The base of peers that are Python clients. They write one record per call and read one record per iteration.

Reading checks each batch's checksum, like a consumer by default, and accesses the fields that a consumer needs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from typing import Any

from kfbench.formats import BASE_FORMAT
from kfbench.layouts import NO_TIMESTAMP, V2_HEADER, position
from kfbench.present.stored_times import KAFKA_FORMATS
from kfbench.records import Records
from tools.peers.base.arm import Absent, Arm, Differs, Start, Task, sampling
from tools.peers.base.differences import unequal_bytes

# Clients write different leader epochs into v2 batches. The broker overwrites the field, and no checksum covers it.
LENGTH_AT, EPOCH_AT, MAGIC_AT = (position(V2_HEADER, name) for name in ("length", "partition_leader_epoch", "magic"))
NO_LIMIT_BYTES = 1 << 30
NO_PRODUCER = (0, -1, -1, -1)  # not transactional; no producer id, producer epoch and base sequence
Row = tuple[int, int | None, bytes | None, bytes | None]


class PythonClient:
    """A peer made of three classes of a Python client.

    Args:
        batches: the class that builds v2 batches.
        messages: the class that builds v0 and v1 messages.
        reader: the class that reads batches and messages.
    """

    machine: str | None = None
    warm_up_s = (0.0, 0.2)

    def __init__(self, name: str, batches: Any, messages: Any, reader: Any) -> None:
        self.name = name
        self.version = metadata.version(name)
        self._batches, self._messages, self._reader = batches, messages, reader

    def arms(self, task: Task) -> Iterator[Arm]:
        rows = rows_of(task.records)
        groups = [rows[first : first + task.batch_size] for first in range(0, len(rows), task.batch_size)]
        for name in KAFKA_FORMATS:
            log = task.logs[name]
            write = self.writer(name, groups)
            theirs = without_epochs(b"".join(write()), name)
            if theirs != (ours := without_epochs(log, name)):
                raise Differs(f"{name}: {self.name} writes other bytes than ours: {unequal_bytes(name, theirs, ours)}")
            if self._rows(log) != rows_of(task.read(name)) or self._read(log) != len(rows):
                raise Differs(f"{name}: {self.name} reads other records than were written")
            yield Arm(peer=self.name, format=name, operation="encode", sample=sampling(write))
            yield Arm(peer=self.name, format=name, operation="decode", sample=sampling(lambda log=log: self._read(log)))  # type: ignore[misc]

    def writer(self, name: str, groups: list[list[Row]]) -> Callable[[], list[bytes]]:
        """Return a function that builds one batch per group of rows. name: the format."""

        def batches() -> list[bytes]:
            made = []
            for group in groups:
                builder = self._batches(2, 0, *NO_PRODUCER, NO_LIMIT_BYTES)
                append = builder.append
                for offset, timestamp, key, value in group:
                    append(offset, timestamp, key, value, [])
                made.append(builder.build())
            return made

        def messages() -> list[bytes]:
            made, magic = [], KAFKA_FORMATS.index(name)
            for group in groups:
                builder = self._messages(magic, 0, NO_LIMIT_BYTES)
                append = builder.append
                for offset, timestamp, key, value in group:
                    append(offset, timestamp, key, value)
                made.append(builder.build())
            return made

        return batches if name == BASE_FORMAT else messages

    def _read(self, log: bytes) -> int:
        seen, records = 0, self._reader(log)
        while records.has_next():
            batch = records.next_batch()
            if not batch.validate_crc():
                raise Differs(f"{self.name} refuses a checksum of ours")
            for record in batch:
                seen += record.offset >= 0 and (record.timestamp, record.key, record.value) is not None
        return seen

    def _rows(self, log: bytes) -> list[Row]:
        found, records = [], self._reader(log)
        while records.has_next():
            found += [(each.offset, each.timestamp, each.key, each.value) for each in records.next_batch()]
        return found


def rows_of(records: Records) -> list[Row]:
    """Return the records as rows of offset, timestamp (None if missing), key and value, to compare with a client's."""
    times = [None if time == NO_TIMESTAMP else time for time in records.timestamps_ms.tolist()]
    payload = [(records.key(i), records.value(i)) for i in range(len(records))]
    return [(offset, time, *pair) for offset, time, pair in zip(records.offsets.tolist(), times, payload, strict=True)]


def without_epochs(log: bytes, name: str) -> bytes:
    if name != BASE_FORMAT:
        return log
    data, at = bytearray(log), 0
    while at < len(data):
        data[at + EPOCH_AT : at + MAGIC_AT] = bytes(MAGIC_AT - EPOCH_AT)
        at += EPOCH_AT + int.from_bytes(data[at + LENGTH_AT : at + EPOCH_AT], "big")
    return bytes(data)


def starting(name: str, *, batches: str, messages: str, reader: str) -> Start:
    """Return the function `start` of a peer module (see `tools.peers`).

    Args:
        name: the client's name in the package registry.
        batches, messages, reader: the client's classes as "module.Class" (see PythonClient).
    """

    @contextmanager
    def start() -> Iterator[PythonClient]:
        try:
            parts = [each.rpartition(".") for each in (batches, messages, reader)]
            found = PythonClient(name, *(getattr(import_module(module), attribute) for module, _, attribute in parts))
        except (ImportError, AttributeError) as error:  # a version with other class names
            raise Absent(f"{error}; pip install 'kfbench[peers]'") from None
        yield found

    return start
