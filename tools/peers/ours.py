"""kfbench itself, and the limit: a copy of the finished batches and their checksums, no more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from kfbench import __version__, formats
from kfbench.arrays import Bytes
from kfbench.batches import DecodedLog, EncodedLog
from kfbench.formats import BASE_FORMAT
from kfbench.kernels.wire.copy_and_crc import copy_and_crc32, copy_and_crc32c
from kfbench.layouts import V2_HEADER, position
from kfbench.measure.cpu import timed
from kfbench.measure.format_arms import output_room
from kfbench.records import Records
from kfbench.report.topics.peers import FORMATS, LIMIT, OURS
from tools.peers.arm import Arm, Differs, Task, Times

MAGIC_AT, ATTRIBUTES_AT = position(V2_HEADER, "magic"), position(V2_HEADER, "attributes")


def logs(records: Records, batch_size: int) -> dict[str, bytes]:
    return {name: bytes(formats.FORMATS[name].encode(records, batch_size, lossy=True)) for name in FORMATS}


def sampling(call: Callable[[], object]) -> Callable[[int], Times]:
    return lambda calls: Times(*timed(call, calls))


def copying(name: str, log: Bytes, out: Bytes) -> Callable[[], object]:
    """The limit's call: a log's batches copied to the beginning of `out`, and all their checksums as one (xor)."""
    starts = formats.FORMATS[name].decode(log).batches["position"].to_numpy().astype(np.int64)
    copy, at = (copy_and_crc32c, ATTRIBUTES_AT) if name == BASE_FORMAT else (copy_and_crc32, MAGIC_AT)
    return partial(copy, np.append(starts, len(log)), log, at, out)


class Kfbench:
    """Encodes into a reused buffer; decodes to columns."""

    name = OURS
    version = __version__
    machine: str | None = None
    warm_up_s = (0.0, 0.2)

    def arms(self, task: Task) -> Iterator[Arm]:
        bounds = np.append(np.arange(0, len(task.records), task.batch_size), len(task.records))
        views = {name: np.frombuffer(log, np.uint8) for name, log in task.logs.items()}
        out = np.empty(output_room(list(views.values()), task.records, bounds), np.uint8)

        def encode(name: str) -> Callable[[], EncodedLog]:
            return lambda: formats.FORMATS[name].encode(task.records, bounds, lossy=True, out=out)

        def decode(name: str) -> Callable[[], DecodedLog]:
            return lambda: formats.FORMATS[name].decode(views[name])

        for name, log in task.logs.items():
            out.fill(0)  # another format's bytes may be the same
            if bytes(encode(name)()) != log:
                raise Differs(f"{name}: {self.name}'s timed call writes other bytes")
            if decode(name)().records != task.read(name):
                raise Differs(f"{name}: {self.name}'s timed call reads other records than were written")
            yield Arm(peer=self.name, format=name, operation="encode", sample=sampling(encode(name)))
            yield Arm(peer=self.name, format=name, operation="decode", sample=sampling(decode(name)))


class Limit:
    """v0 and v1 have a CRC-32 a message, v2 a CRC-32C a batch."""

    name = LIMIT
    version = "copy and checksum"
    machine: str | None = None
    warm_up_s = (0.0, 0.2)

    def arms(self, task: Task) -> Iterator[Arm]:
        for name in FORMATS:
            data = np.frombuffer(task.logs[name], np.uint8)
            checksums = formats.FORMATS[name].decode(data).batches["crc"].to_numpy()
            out = np.zeros_like(data)
            call = copying(name, data, out)
            if call() != np.bitwise_xor.reduce(checksums) or not np.array_equal(out, data):
                raise Differs(f"{name}: the limit copies or checksums other bytes")
            yield Arm(peer=self.name, format=name, operation="encode", sample=sampling(call))


@contextmanager
def kfbench() -> Iterator[Kfbench]:
    yield Kfbench()


@contextmanager
def limit() -> Iterator[Limit]:
    yield Limit()
