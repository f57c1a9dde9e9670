"""Time the arms (timed calls) of all peers. Each round times every arm once, in a new random order."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.formats import BASE_FORMAT
from kfbench.kernels.jit import no_garbage_collection
from kfbench.measure.cell import Cell
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.host_lock import WAIT_S, HostLockHeld, host_lock, waiting_line
from kfbench.present.stored_times import KAFKA_FORMATS
from kfbench.sweep.definition.profile import load_profile
from tools.peers.base.arm import Arm, Peer, Task, logs
from tools.peers.base.differences import Difference, equal_arms

POINTS: Final = {"batch_size": (1, 10, 100), "value_bytes": (10, 100, 1000), "key_bytes": (16,)}
BLOCK: Final = "cpu-value"
SAMPLE_NS: Final = 1_000_000
NO_FASTER: Final = 100  # a peer is warm after this number of rounds without a faster call
STILL_FASTER: Final = 0.02  # a call counts as faster if it takes at least this share less time


@dataclass(frozen=True, kw_only=True)
class Timed:
    """The times of an arm, one sample per round. All arms of an operation are timed in the same rounds.

    Args:
        warm_up_rounds: the number of rounds before the timed ones.
        inner_loops: the number of calls per sample.
        cpu_ns, wall_ns: int64[rounds], the CPU and wall time of `inner_loops` calls.
    """

    arm: Arm
    warm_up_rounds: int
    inner_loops: int
    cpu_ns: NDArray[np.int64]
    wall_ns: NDArray[np.int64]


class Measured(NamedTuple):
    """The times of one cell, and the differences of peers that were not timed."""

    timed: list[Timed]
    differences: list[Difference]


@cache
def cells() -> tuple[Cell, ...]:
    """Return the cells (recipes for records) to time: those of the default profile's block BLOCK with axes in POINTS.

    They have the formats that Kafka writes. Their payload is the same as in the runs of reports.
    """
    found = [
        replace(cell, formats=KAFKA_FORMATS, grids={BLOCK: KAFKA_FORMATS})
        for cell in load_profile("default").cells
        if BLOCK in cell.grids and all(cell.axes[axis] in levels for axis, levels in POINTS.items())
    ]
    return tuple(sorted(found, key=lambda cell: (cell.axes["batch_size"], cell.axes["value_bytes"])))


def task(cell: Cell) -> Task:
    """Generate the cell's records and encode them in our formats. Each batch has offsets from 0, as in a producer."""
    sample = cell.workload.generate(records=cell.records, seed=cell.seed)
    size = int(cell.axes["batch_size"])
    records = sample.records.at_offsets(np.arange(cell.records, dtype=np.int64) % size)
    return Task(records=records, batch_size=size, logs=logs(records, size))


def measured(peers: Sequence[Peer], given: Task, rounds: int, seed: int, records: str = "") -> Measured:
    """Time all arms of all peers on a task's records, described by `records`.

    A peer that writes other bytes or reads other records than we do is not timed. Raises Differs, before anything is
    timed, if our own output or the limit's differs.
    """
    arms, differences = equal_arms(peers, given, records)
    found: list[Timed] = []
    for operation in OPERATIONS:
        warm_up_rounds: dict[str, int] = {}
        timed: list[Arm] = []
        for peer in peers:
            own = [arm for arm in arms.get(peer.name, ()) if arm.operation == operation]
            if not own:
                continue
            own += [replace(arm, again=True) for arm in own if arm.format == BASE_FORMAT]
            warm_up_rounds[peer.name] = warm_up(own, *peer.warm_up_s)
            timed += own
        found += _rounds(timed, warm_up_rounds, rounds, seed)
    return Measured(found, differences)


def warm_up(arms: Sequence[Arm], least_s: float, most_s: float) -> int:
    """Call all arms in rounds until no call gets faster for 100 rounds (NO_FASTER). Return the number of rounds.

    The warm-up takes at least `least_s` seconds. It ends after `most_s` seconds in any case.
    """
    began, fastest = time.monotonic(), [np.inf] * len(arms)
    rounds = quiet = 0
    while (spent_s := time.monotonic() - began) < most_s and (quiet < NO_FASTER or spent_s < least_s):
        rounds, quiet = rounds + 1, quiet + 1
        for i, arm in enumerate(arms):
            cpu_ns = arm.sample(1).cpu_ns
            if cpu_ns < fastest[i] * (1 - STILL_FASTER):
                fastest[i], quiet = cpu_ns, 0
    return rounds


def _rounds(arms: Sequence[Arm], warm_up_rounds: Mapping[str, int], rounds: int, seed: int) -> list[Timed]:
    random = np.random.default_rng(seed)
    loops = [int(-(-SAMPLE_NS // max(1, min(arm.sample(1).wall_ns for _ in range(3))))) for arm in arms]
    cpu_ns, wall_ns = (np.zeros((len(arms), rounds), np.int64) for _ in range(2))
    with no_garbage_collection():
        for i in range(rounds):
            for j in random.permutation(len(arms)).tolist():
                cpu_ns[j, i], wall_ns[j, i] = arms[j].sample(loops[j])
    return [
        Timed(
            arm=arm,
            warm_up_rounds=warm_up_rounds[arm.peer],
            inner_loops=loops[j],
            cpu_ns=cpu_ns[j],
            wall_ns=wall_ns[j],
        )
        for j, arm in enumerate(arms)
    ]


@contextmanager
def holding_host(say: Callable[[str], None], patience_s: float = WAIT_S) -> Iterator[None]:
    """Hold the host lock while the `with` body runs, so that no other timing disturbs ours.

    If another process holds it, show the holder with `say`, and wait. Raises HostLockHeld after `patience_s` seconds,
    and HostLockUnusable.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(host_lock(0))
        except HostLockHeld as why:
            say(waiting_line(why, patience_s))
            stack.enter_context(host_lock(patience_s))
        yield
