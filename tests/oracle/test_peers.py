"""Apache Kafka's own writer and reader as one of the peers: a sample at a time, and only of our bytes."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tools.peers.arm import Differs, Task
from tools.peers.java import Java, java
from tools.peers.measuring import cells, measured, task
from tools.peers.ours import Kfbench

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def peer() -> Iterator[Java]:
    with java() as started:
        started.warm_up_s = (0.0, 0.2)
        yield started


def given(number: int) -> Task:
    return task(replace(cells()[number], records=200))


def test_java_writes_our_bytes_and_is_timed_in_our_rounds(peer: Java) -> None:
    assert peer.version == "3.9.1" and peer.java
    for number in (0, 8):  # one JVM, one cell after the other
        found = [each for each in measured([Kfbench(), peer], given(number), 3, seed=0) if each.arm.peer == peer.name]
        assert [(each.arm.operation, each.arm.format) for each in found] == [
            (operation, name) for operation in ("encode", "decode") for name in ("v0", "v1", "v2")
        ]
        for each in found:
            assert each.cpu_ns.min() > 0 and each.warm_up_rounds > 0


def test_other_bytes_than_ours_are_refused(peer: Java) -> None:
    whole = given(4)
    for name, log in whole.logs.items():
        damaged = replace(whole, logs=whole.logs | {name: log[:-1] + bytes([log[-1] ^ 1])})
        with pytest.raises(Differs, match=f"{name}: Kafka's Java writes other bytes than ours"):
            list(peer.arms(damaged))
        assert list(peer.arms(whole))  # what it had still to say of the other is not taken for an answer
