"""The peer kfbench, our own formats: encode into a reused buffer, decode to columns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from kfbench import __version__, formats
from kfbench.batches import DecodedLog, EncodedLog
from kfbench.measure.format_arms import output_room
from kfbench.present.stored_times import OURS
from tools.peers.base.arm import Arm, Differs, Task, sampling


class Kfbench:
    """Our own formats as a peer, to be timed like the others."""

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
            out.fill(0)  # otherwise another format may have left the same bytes
            if bytes(encode(name)()) != log:
                raise Differs(f"{name}: {self.name}'s timed call writes other bytes")
            if decode(name)().records != task.read(name):
                raise Differs(f"{name}: {self.name}'s timed call reads other records than were written")
            yield Arm(peer=self.name, format=name, operation="encode", sample=sampling(encode(name)))
            yield Arm(peer=self.name, format=name, operation="decode", sample=sampling(decode(name)))


@contextmanager
def start() -> Iterator[Kfbench]:
    yield Kfbench()
