"""kfbench itself, and the limit: a copy of the finished batches and their checksums, no more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from kfbench import __version__
from kfbench.formats import FORMATS as OURS
from kfbench.kernels.limit import copy_and_crc32, copy_and_crc32c
from kfbench.layouts import V2_HEADER, position
from kfbench.measure.cpu import output_room, timed
from kfbench.records import Records
from tools.peers.arm import BASE, FORMATS, Arm, Differs, Task, Times

MAGIC_AT, ATTRIBUTES_AT = position(V2_HEADER, "magic"), position(V2_HEADER, "attributes")


def logs(records: Records, batch_size: int) -> dict[str, bytes]:
    return {name: bytes(OURS[name].encode(records, batch_size, lossy=True)) for name in FORMATS}


def sampling(call: Callable[[], object]) -> Callable[[int], Times]:
    return lambda calls: Times(*timed(call, calls))


class Kfbench:
    """Encodes into a reused buffer; decodes to columns."""

    name = "kfbench"
    version = __version__
    warm_up_s = (0.0, 0.2)

    def arms(self, task: Task) -> Iterator[Arm]:
        bounds = np.append(np.arange(0, len(task.records), task.batch_size), len(task.records))
        views = {name: np.frombuffer(log, np.uint8) for name, log in task.logs.items()}
        out = np.empty(output_room(list(views.values()), task.records, bounds), np.uint8)

        def encode(name: str) -> Callable[[], object]:
            return lambda: OURS[name].encode(task.records, bounds, lossy=True, out=out)

        def decode(name: str) -> Callable[[], object]:
            return lambda: OURS[name].decode(views[name])

        for name, log in task.logs.items():
            encode(name)()
            if out[: len(log)].tobytes() != log:
                raise Differs(f"{name}: the timed call writes other bytes")
            yield Arm(peer=self.name, format=name, operation="encode", sample=sampling(encode(name)))
            yield Arm(peer=self.name, format=name, operation="decode", sample=sampling(decode(name)))


class Limit:
    """v0 and v1 have a CRC-32 a message, v2 a CRC-32C a batch."""

    name = "limit"
    version = "copy and checksum"
    warm_up_s = (0.0, 0.2)

    def arms(self, task: Task) -> Iterator[Arm]:
        for name in FORMATS:
            data = np.frombuffer(task.logs[name], np.uint8)
            starts = OURS[name].decode(data).batches["position"].to_numpy().astype(np.int64)
            positions, out = np.append(starts, len(data)), np.zeros_like(data)
            copy, at = (copy_and_crc32c, ATTRIBUTES_AT) if name == BASE else (copy_and_crc32, MAGIC_AT)

            def call(positions=positions, data=data, at=at, out=out, copy=copy) -> object:  # type: ignore[no-untyped-def]
                return copy(positions, data, at, out)

            call()
            if out.tobytes() != task.logs[name]:
                raise Differs(f"{name}: the limit writes other bytes")
            yield Arm(peer=self.name, format=name, operation="encode", sample=sampling(call))


@contextmanager
def kfbench() -> Iterator[Kfbench]:
    yield Kfbench()


@contextmanager
def limit() -> Iterator[Limit]:
    yield Limit()
