"""Programs in Java, Go and Rust as timed peers: they write our bytes, read our records, and are timed in our rounds."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from shutil import which
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from kfbench.formats import FORMATS
from kfbench.present.stored_times import KAFKA_FORMATS
from kfbench.records import Records
from tests.oracle.client import OLDER, VERSIONS
from tools.builds import ToolError, UnreachableError
from tools.peers import franz_go, java, kafka_go, kafka_protocol, rskafka
from tools.peers.base.arm import Absent, Differs, Task, logs
from tools.peers.base.differences import RARE, rare_differences
from tools.peers.base.measuring import cells, measured, task
from tools.peers.base.program import Program, verify
from tools.peers.base.toolchains import GO, PEERS, RUST, Toolchain, built
from tools.peers.kfbench import Kfbench

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


class PeerProgram(NamedTuple):
    """machine: a pattern of what it says of its machine. toolchain: None for Java, which Maven fetches."""

    module: ModuleType
    machine: str
    toolchain: Toolchain | None = None


KAFKA = "Kafka's Java"
PROGRAMS = {
    KAFKA: PeerProgram(java, r"\S.* VM \S+ \(-Xmx512m; \w.*\)"),
    "franz-go": PeerProgram(franz_go, r"go1\..+", GO),
    "kafka-go": PeerProgram(kafka_go, r"go1\..+", GO),
    "kafka-protocol": PeerProgram(kafka_protocol, r"rustc 1\..+", RUST),
    "rskafka": PeerProgram(rskafka, r"rustc 1\..+", RUST),
}
# records -> what the peer's output differs in; see docs/peers.md
KNOWN = {
    "franz-go": {"times after the year 2262": "reads other records than were written"},
    "kafka-go": {
        "time 0": "base_timestamp_ms is",
        "times after the year 2262": "base_timestamp_ms is",
    },
    "kafka-protocol": {"times that go back": "base_timestamp_ms is 900 instead of 1000"},
    "rskafka": {},
}
LOCKS = {"go": ("go.sum", "/{name} {version} h1:"), "rust": ("Cargo.lock", 'name = "{name}"\nversion = "{version}"\n')}


@pytest.fixture(scope="module", params=PROGRAMS)
def peer(request: pytest.FixtureRequest) -> Iterator[Program]:
    module, _, toolchain = PROGRAMS[request.param]
    with ExitStack() as stack:
        if toolchain:
            missing = [each for each in (toolchain.compiler[0], toolchain.build[0]) if not which(each)]
            if missing:
                pytest.skip(f"needs {' and '.join(missing)} on PATH")
            try:
                built(PEERS / f"{toolchain.language}-{request.param}", toolchain)
            except UnreachableError as error:
                pytest.skip(f"a registry is out of reach: {error}")
        started = stack.enter_context(module.start())
        if not toolchain:
            started.warm_up_s = (0.0, 0.2)
        yield started


def given(number: int) -> Task:
    return task(replace(cells()[number], records=205))  # the last batch is shorter


def formats(peer: Program) -> tuple[str, ...]:
    return KAFKA_FORMATS if peer.name == KAFKA else ("v2",)


@pytest.mark.parametrize("number", range(9))
def test_bytes_and_records_are_ours(peer: Program, number: int) -> None:
    whole = given(number)
    arms = [(arm.format, arm.operation) for arm in peer.arms(whole)]
    assert arms == list(product(formats(peer), ("encode", "decode")))
    theirs = FORMATS["v2"].decode(peer.written(whole)["v2"].log)  # and we read what they wrote
    assert theirs.records == whole.records and len(theirs) == -(-205 // whole.batch_size)


def test_the_version_is_pinned_and_the_machine_named(peer: Program) -> None:
    _, machine, toolchain = PROGRAMS[peer.name]
    assert peer.machine and re.fullmatch(machine, peer.machine)
    if not toolchain:
        assert peer.version == VERSIONS[OLDER]
        return
    file, line = LOCKS[toolchain.language]
    lock = (PEERS / f"{toolchain.language}-{peer.name}" / file).read_text(encoding="utf-8")
    assert line.format(name=peer.name, version=peer.version) in lock


def test_it_is_timed_in_our_rounds(peer: Program) -> None:
    found = [each for each in measured([Kfbench(), peer], given(4), 3, seed=0).timed if each.arm.peer == peer.name]
    arms = {(each.arm.operation, each.arm.format, each.arm.again) for each in found}
    timed = [*product(formats(peer), [False]), ("v2", True)]
    assert arms == {(operation, *each) for operation in ("encode", "decode") for each in timed}
    for each in found:
        assert each.cpu_ns.min() > 0
        if peer.name == KAFKA:
            assert each.warm_up_rounds > 0
        else:
            assert (each.cpu_ns <= each.wall_ns + 1_000_000).all()


def test_more_calls_take_more_time(peer: Program) -> None:
    arm, *_ = peer.arms(task(cells()[4]))
    one, ten = (min(arm.sample(calls).cpu_ns for _ in range(5)) for calls in (1, 10))
    assert ten > 3 * one or peer.name == KAFKA  # the JVM compiles meanwhile


def test_only_go_has_other_threads(peer: Program) -> None:
    share = peer.other_threads()
    if share is None:
        pytest.skip("this system does not tell the CPU time of threads, or the timed thread is unknown")
    assert (share > 0) == (peer.name in ("franz-go", "kafka-go"))


@pytest.mark.parametrize("peer", KNOWN, indirect=True)
def test_differences_on_rare_records_are_the_known_ones(peer: Program) -> None:
    found = {each.records: each.difference for name in RARE for each in rare_differences([peer], name)}
    assert found.keys() == KNOWN[peer.name].keys() <= RARE.keys()
    for records, words in KNOWN[peer.name].items():
        assert found[records].startswith(f"v2: {peer.name} ") and words in found[records]


def test_other_bytes_than_ours_are_refused(peer: Program) -> None:
    whole = given(4)
    fewer = logs(whole.records.take(range(204)), whole.batch_size)
    for name in formats(peer):
        for other in (whole.logs[name][:-1] + bytes([whole.logs[name][-1] ^ 1]), fewer[name]):
            with pytest.raises(Differs, match=f"{name}: {peer.name} writes other bytes than ours"):
                list(peer.arms(replace(whole, logs=whole.logs | {name: other})))
    assert list(peer.arms(whole))  # nothing is left in the pipe from the earlier answers


@pytest.mark.parametrize("peer", [KAFKA], indirect=True)
def test_other_records_than_ours_are_refused(peer: Program) -> None:
    whole = given(4)
    records, written = whole.records, peer.written(whole)
    others = {
        "offsets": records.at_offsets(records.offsets + 1),
        "times": records.at_times(records.timestamps_ms + 1),
        "payload": records.take(np.arange(205)[::-1]).at_offsets(records.offsets),
        "fewer": records.take(np.arange(204)),
    }
    for name, (change, other) in product(KAFKA_FORMATS, others.items()):
        if (name, change) == ("v0", "times"):  # v0 has no timestamps
            verify(peer.name, name, written[name], replace(whole, records=other))
            continue
        with pytest.raises(Differs, match=f"^{name}: {KAFKA} reads other records than were written"):
            verify(peer.name, name, written[name], replace(whole, records=other))
        with pytest.raises(Differs, match=f"^{name}: the timed read of {KAFKA} sees other records than were written"):
            verify(peer.name, name, written[name]._replace(total=written[name].total + 1), whole)


@pytest.mark.parametrize("peer", [KAFKA], indirect=True)
def test_nulls_are_read_back(peer: Program) -> None:
    records = Records.from_lists(timestamps_ms=[5, 6], keys=[None, b"k"], values=[b"", None])
    assert len(list(peer.arms(Task(records=records, batch_size=2, logs=logs(records, 2))))) == 6


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [("JAVA_TOOL_OPTIONS", "-XX:+NoSuchOption", "Kafka's Java has ended"), ("PATH", "", "java")],
)
def test_a_jvm_that_does_not_start_is_absent(
    variable: str, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with java.start():
        monkeypatch.setenv(variable, value)
        with pytest.raises(Absent, match=reason), java.start():
            pass


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_ends_during_a_measurement_is_one_line(name: str) -> None:
    module, _, toolchain = PROGRAMS[name]
    if toolchain and not which(toolchain.build[0]):
        pytest.skip(f"needs {toolchain.build[0]} on PATH")
    with module.start() as started:
        arm, *_ = started.arms(given(0))
        started._request(b"?")  # an unknown request ends the program
        for _ in range(2):  # first while a request is under way, then without one
            with pytest.raises(ToolError, match=f"{name} has ended"):
                arm.sample(1)
        with pytest.raises(ToolError, match=f"{name} has ended"):
            started.written(given(8))
