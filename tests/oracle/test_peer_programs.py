"""Programs in Go and Rust as timed peers: they write our bytes, read our records, and are timed in our rounds."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from shutil import which
from types import ModuleType

import pytest

from kfbench.formats import FORMATS
from tools.builds import ToolError, UnreachableError
from tools.peers import franz_go, kafka_go, kafka_protocol, rskafka
from tools.peers.base.arm import Differs, Task, logs
from tools.peers.base.differences import RARE, rare_differences
from tools.peers.base.measuring import cells, measured, task
from tools.peers.base.program import Program
from tools.peers.base.toolchains import GO, PEERS, RUST, built
from tools.peers.kfbench import Kfbench

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PROGRAMS = {
    "franz-go": (franz_go, GO),
    "kafka-go": (kafka_go, GO),
    "kafka-protocol": (kafka_protocol, RUST),
    "rskafka": (rskafka, RUST),
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


@pytest.fixture(scope="module", params=PROGRAMS)
def peer(request: pytest.FixtureRequest) -> Iterator[Program]:
    module: ModuleType
    module, toolchain = PROGRAMS[request.param]
    missing = [each for each in (toolchain.compiler[0], toolchain.build[0]) if not which(each)]
    if missing:
        pytest.skip(f"needs {' and '.join(missing)} on PATH")
    with ExitStack() as stack:
        try:
            built(PEERS / f"{toolchain.language}-{request.param}", toolchain)
        except UnreachableError as error:
            pytest.skip(f"a registry is out of reach: {error}")
        yield stack.enter_context(module.start())


def given(number: int) -> Task:
    return task(replace(cells()[number], records=205))  # the last batch is shorter


@pytest.mark.parametrize("number", range(9))
def test_bytes_and_records_are_ours(peer: Program, number: int) -> None:
    whole = given(number)
    assert [(arm.operation, arm.format) for arm in peer.arms(whole)] == [("encode", "v2"), ("decode", "v2")]
    theirs = FORMATS["v2"].decode(peer.written(whole)["v2"].log)  # and we read what they wrote
    assert theirs.records == whole.records and len(theirs) == -(-205 // whole.batch_size)


def test_lock_files_pin_the_version(peer: Program) -> None:
    _, toolchain = PROGRAMS[peer.name]
    folder = PEERS / f"{toolchain.language}-{peer.name}"
    lock = (folder / {"go": "go.sum", "rust": "Cargo.lock"}[toolchain.language]).read_text(encoding="utf-8")
    assert {"go": f"/{peer.name} {peer.version} h1:", "rust": f'name = "{peer.name}"\nversion = "{peer.version}"\n'}[
        toolchain.language
    ] in lock
    assert peer.machine and peer.machine.startswith({"go": "go1.", "rust": "rustc 1."}[toolchain.language])


def test_it_is_timed_in_our_rounds(peer: Program) -> None:
    found = [each for each in measured([Kfbench(), peer], given(4), 3, seed=0).timed if each.arm.peer == peer.name]
    assert [(each.arm.operation, each.arm.again) for each in found] == [
        (operation, again) for operation in ("encode", "decode") for again in (False, True)
    ]
    for each in found:
        assert each.cpu_ns.min() > 0 and (each.cpu_ns <= each.wall_ns + 1_000_000).all()


def test_more_calls_take_more_time(peer: Program) -> None:
    (arm, _) = peer.arms(task(cells()[4]))
    one, ten = (min(arm.sample(calls).cpu_ns for _ in range(5)) for calls in (1, 10))
    assert ten > 3 * one


def test_only_go_has_other_threads(peer: Program) -> None:
    share = peer.other_threads()
    if share is None:
        pytest.skip("this system does not tell the CPU time of threads")
    assert (share > 0) == (peer.name in ("franz-go", "kafka-go"))


def test_differences_on_rare_records_are_the_known_ones(peer: Program) -> None:
    found = {each.records: each.difference for name in RARE for each in rare_differences([peer], name)}
    assert found.keys() == KNOWN[peer.name].keys() <= RARE.keys()
    for records, words in KNOWN[peer.name].items():
        assert found[records].startswith(f"v2: {peer.name} ") and words in found[records]


def test_other_bytes_or_records_are_refused(peer: Program) -> None:
    whole = given(4)
    records = whole.records
    for other in (records.at_times(records.timestamps_ms + 1), records.take(range(204))):
        with pytest.raises(Differs, match=f"v2: {peer.name} writes other bytes than ours"):
            list(peer.arms(replace(whole, logs=logs(other, whole.batch_size))))
    assert list(peer.arms(whole))  # nothing is left in the pipe from the earlier answer


def test_an_unknown_request_ends_the_program() -> None:
    for name, (module, toolchain) in PROGRAMS.items():
        if which(toolchain.build[0]):
            with module.start() as started:
                started._request(b"?")
                with pytest.raises(ToolError, match=f"{name} has ended"):
                    started.written(given(0))
