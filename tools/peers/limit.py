"""The limit: no encoder can be faster than a copy of the finished batches and the computation of their checksums."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from kfbench import formats
from kfbench.arrays import Bytes
from kfbench.formats import BASE_FORMAT
from kfbench.kernels.wire.crc import copy_and_crc32, copy_and_crc32c
from kfbench.layouts import V2_HEADER, position
from kfbench.present.stored_times import KAFKA_FORMATS, LIMIT
from tools.peers.base.arm import Arm, Differs, Task, sampling

MAGIC_AT, ATTRIBUTES_AT = position(V2_HEADER, "magic"), position(V2_HEADER, "attributes")


def copying(name: str, log: Bytes, out: Bytes) -> Callable[[], object]:
    """Return a function that copies a log's batches to `out` and returns the xor of all checksums.

    name: the format of the log.
    """
    starts = formats.FORMATS[name].decode(log).batches["position"].to_numpy().astype(np.int64)
    copy, at = (copy_and_crc32c, ATTRIBUTES_AT) if name == BASE_FORMAT else (copy_and_crc32, MAGIC_AT)
    return partial(copy, np.append(starts, len(log)), log, at, out)


class Limit:
    """The limit as a peer: it computes one CRC-32 per message in v0 and v1, one CRC-32C per batch in v2.

    It times only the operation "encode".
    """

    name = LIMIT
    version = "copy and checksum"
    machine: str | None = None
    warm_up_s = (0.0, 0.2)

    def arms(self, task: Task) -> Iterator[Arm]:
        for name in KAFKA_FORMATS:
            data = np.frombuffer(task.logs[name], np.uint8)
            checksums = formats.FORMATS[name].decode(data).batches["crc"].to_numpy()
            out = np.zeros_like(data)
            call = copying(name, data, out)
            if call() != np.bitwise_xor.reduce(checksums) or not np.array_equal(out, data):
                raise Differs(f"{name}: the limit copies or checksums other bytes")
            yield Arm(peer=self.name, format=name, operation="encode", sample=sampling(call))


@contextmanager
def start() -> Iterator[Limit]:
    yield Limit()
