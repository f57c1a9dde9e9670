"""Kafka's Java writer and reader as a timed peer (another implementation).

It takes one sample at a time, and only of bytes equal to ours.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from kfbench.present.stored_times import KAFKA_FORMATS
from kfbench.records import Records
from tools import jvm
from tools.peers import java
from tools.peers.base.arm import Absent, Differs, Task, logs
from tools.peers.base.measuring import cells, measured, task
from tools.peers.base.program import Program, Written, verify
from tools.peers.kfbench import Kfbench

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def peer() -> Iterator[Program]:
    with java.start() as started:
        started.warm_up_s = (0.0, 0.2)
        yield started


def given(number: int) -> Task:
    return task(replace(cells()[number], records=200))


def test_java_writes_our_bytes_and_is_timed_in_our_rounds(peer: Program) -> None:
    assert peer.version == "3.9.1"
    assert peer.machine and re.fullmatch(r"\S.* VM \S+ \(-Xmx512m; \w.*\)", peer.machine)
    for number in (0, 8):  # both cells run in the same JVM
        found = [
            each
            for each in measured([Kfbench(), peer], given(number), 3, seed=0).timed
            if each.arm.peer == peer.name and not each.arm.again
        ]
        assert [(each.arm.operation, each.arm.format) for each in found] == [
            (operation, name) for operation in ("encode", "decode") for name in ("v0", "v1", "v2")
        ]
        for each in found:
            assert each.cpu_ns.min() > 0 and each.warm_up_rounds > 0


def test_other_bytes_than_ours_are_refused(peer: Program) -> None:
    whole = given(4)
    for name, log in whole.logs.items():
        damaged = replace(whole, logs=whole.logs | {name: log[:-1] + bytes([log[-1] ^ 1])})
        with pytest.raises(Differs, match=f"{name}: Kafka's Java writes other bytes than ours"):
            list(peer.arms(damaged))
        assert list(peer.arms(whole))  # nothing is left in the pipe from the earlier answer


@pytest.fixture(scope="module")
def written(peer: Program) -> dict[str, Written]:
    return peer.written(given(4))


@pytest.mark.parametrize("name", KAFKA_FORMATS)
def test_other_records_than_ours_are_refused(peer: Program, written: dict[str, Written], name: str) -> None:
    whole = given(4)
    verify(peer.name, name, written[name], whole)
    records = whole.records
    others = {
        "offsets": records.at_offsets(records.offsets + 1),
        "times": records.at_times(records.timestamps_ms + 1),
        "payload": records.take(np.arange(200)[::-1]).at_offsets(records.offsets),
        "fewer": records.take(np.arange(199)),
    }
    for change, other in others.items():
        if (name, change) == ("v0", "times"):  # v0 has no timestamps
            verify(peer.name, name, written[name], replace(whole, records=other))
        else:
            with pytest.raises(Differs, match=f"^{name}: Kafka's Java reads other records than were written"):
                verify(peer.name, name, written[name], replace(whole, records=other))
    with pytest.raises(Differs, match=f"^{name}: the timed read of Kafka's Java sees other records than were written"):
        verify(peer.name, name, written[name]._replace(total=written[name].total + 1), whole)


def test_nulls_are_read_back(peer: Program) -> None:
    records = Records.from_lists(timestamps_ms=[5, 6], keys=[None, b"k"], values=[b"", None])
    nulls = Task(records=records, batch_size=2, logs=logs(records, 2))
    assert len(list(peer.arms(nulls))) == 6


def test_a_jvm_that_does_not_start_is_absent(peer: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:+NoSuchOption")
        with pytest.raises(Absent, match=r"Kafka's Java has ended"), java.start():
            pass
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        with pytest.raises(Absent, match="java"), java.start():
            pass


def test_a_jvm_that_ends_during_a_measurement_is_one_line() -> None:
    with java.start() as started:
        (arm, *_) = started.arms(given(0))
        started._request(b"?")  # an unknown request ends the JVM
        for _ in range(2):  # first while a request is under way, then without one
            with pytest.raises(jvm.ToolError, match="Kafka's Java has ended"):
                arm.sample(1)
        with pytest.raises(jvm.ToolError, match="Kafka's Java has ended"):
            started.written(given(8))
