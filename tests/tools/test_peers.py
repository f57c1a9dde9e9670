"""Every peer (other implementation) must write our bytes and read our records before it is timed."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kfbench.formats import FORMATS as OURS
from kfbench.measure.cpu import CallTimes
from kfbench.measure.host_lock import HostLockHeld, host_lock
from kfbench.present.stored_times import KAFKA_FORMATS
from kfbench.records import Records
from tools.peers import __main__ as command
from tools.peers import aiokafka, discover, kafka_python, kfbench, limit
from tools.peers.base import program
from tools.peers.base.arm import Absent, Arm, Differs, Peer, Task, logs
from tools.peers.base.differences import RARE, rare_differences, unequal_bytes
from tools.peers.base.measuring import NO_FASTER, cells, holding_host, measured, task, warm_up
from tools.peers.base.program import Program, running
from tools.peers.base.python_client import PythonClient, starting, without_epochs
from tools.peers.kfbench import Kfbench
from tools.peers.limit import Limit


@pytest.fixture(scope="module")
def given() -> Task:
    return task(replace(cells()[4], records=50))


@pytest.fixture(scope="module")
def clients() -> Iterator[list[Peer]]:
    pytest.importorskip("aiokafka")
    pytest.importorskip("kafka")
    with aiokafka.start() as one, kafka_python.start() as other:
        yield [one, other]


def test_every_file_is_a_peer_and_ours_comes_first() -> None:
    files = {path.stem for path in Path(command.__file__).parent.glob("[!_]*.py")}
    assert list(discover())[:2] == ["kfbench", "limit"] and set(discover()) == files


def test_cells_are_those_of_the_default_profile() -> None:
    found = [(cell.axes["batch_size"], cell.axes["value_bytes"]) for cell in cells()]
    assert found == [(batch, value) for batch in (1, 10, 100) for value in (10, 100, 1000)]
    assert all(cell.formats == KAFKA_FORMATS and cell.codec == "none" for cell in cells())


def test_every_arm_is_timed_in_every_round(given: Task, clients: list[Peer]) -> None:
    found = measured([Kfbench(), Limit(), *clients], given, rounds=3, seed=0).timed
    named = [(each.arm.operation, each.arm.peer, each.arm.format) for each in found if not each.arm.again]
    peers = ("kfbench", "limit", "aiokafka", "kafka-python")
    assert named == [
        (operation, peer, name)
        for operation in ("encode", "decode")
        for peer in peers
        for name in KAFKA_FORMATS
        if (operation, peer) != ("decode", "limit")
    ]
    again = [(each.arm.operation, each.arm.peer) for each in found if each.arm.again]
    assert again == [(operation, peer) for operation, peer, name in named if name == "v2"]
    for each in found:
        assert each.cpu_ns.shape == each.wall_ns.shape == (3,) and each.cpu_ns.min() > 0 and each.inner_loops >= 1


OTHERS: dict[str, Callable[[Records], Records]] = {
    "offsets": lambda records: records.at_offsets(records.offsets + 1),
    "times": lambda records: records.at_times(records.timestamps_ms + 1),
    "payload": lambda records: records.take(np.arange(len(records))[::-1]).at_offsets(records.offsets),
    "fewer": lambda records: records.take(np.arange(len(records) - 1)),
}


def reading(log: Callable[[str], bytes], given: Task) -> PythonClient:
    """Return the peer kafka-python with a faulty reader.

    The reader gets the bytes log(name) in place of those passed to it.
    """
    batches = pytest.importorskip("kafka.record.default_records").DefaultRecordBatchBuilder
    messages = pytest.importorskip("kafka.record.legacy_records").LegacyRecordBatchBuilder
    reader = pytest.importorskip("kafka.record.memory_records").MemoryRecords
    names = {given.logs[name]: name for name in KAFKA_FORMATS}
    return PythonClient("kafka-python", batches, messages, lambda data: reader(log(names[data])))


@pytest.mark.parametrize("name", KAFKA_FORMATS)
@pytest.mark.parametrize("what", OTHERS)
def test_a_client_that_writes_or_reads_something_else_is_not_timed(
    given: Task, clients: list[Peer], what: str, name: str
) -> None:
    other = given.logs | {name: logs(OTHERS[what](given.records), 10)[name]}
    writers = [(peer, replace(given, logs=other), "writes other bytes") for peer in [*clients, Kfbench()]]
    reader = reading(lambda asked: other[asked], given)
    for peer, task_of_peer, words in [*writers, (reader, given, "reads other records than were written")]:
        if (name, what) == ("v0", "times"):  # v0 has no timestamps
            assert len(list(peer.arms(task_of_peer))) == 6
        else:
            with pytest.raises(Differs, match=f"^{name}: {peer.name}.* {words}"):
                list(peer.arms(task_of_peer))


def test_a_client_that_does_not_accept_our_checksums_is_not_timed(given: Task) -> None:
    log = given.logs["v2"]
    starts = [*OURS["v2"].decode(log).batches["position"], len(log)]
    epoch_and_checksum = slice(starts[1] + 12, starts[1] + 21)
    damaged = bytearray(log)
    damaged[epoch_and_checksum.stop - 1] ^= 1
    peer = reading(lambda asked: bytes(damaged) if asked == "v2" else given.logs[asked], given)
    with pytest.raises(Differs, match="kafka-python refuses a checksum of ours"):
        list(peer.arms(given))


def test_what_we_read_is_compared_as_well(given: Task) -> None:
    records = Records.from_lists(timestamps_ms=[1, 2], values=[b"a", b"b"], headers=[[("k", b"v")], []])
    lost = Task(records=records, batch_size=2, logs=logs(records, 2))  # v0 cannot store the header, so its log lacks it
    with pytest.raises(Differs, match=r"^v0: kfbench's timed call reads other records than were written"):
        list(Kfbench().arms(lost))


def test_a_peer_that_differs_is_not_timed_and_its_difference_is_kept(given: Task, clients: list[Peer]) -> None:
    lost = reading(lambda asked: b"", given)
    timed, (difference,) = measured([Kfbench(), lost], given, rounds=3, seed=0, records="some")
    assert {each.arm.peer for each in timed} == {"kfbench"}
    assert difference == ("kafka-python", "some", "v0: kafka-python reads other records than were written")
    other = replace(given, logs=given.logs | {"v2": logs(OTHERS["times"](given.records), 10)["v2"]})
    with pytest.raises(Differs, match=r"^v2: kfbench's timed call writes other bytes"):
        measured([*clients, Kfbench()], other, rounds=3, seed=0)


def test_rare_records_are_written_alike_in_python(clients: list[Peer]) -> None:
    for name in RARE:
        assert rare_differences([Kfbench(), Limit(), *clients], name) == []


def test_the_differing_fields_of_a_header_are_named(given: Task) -> None:
    ours = given.logs["v2"]
    first, second = (int(at) for at in OURS["v2"].decode(ours).batches["position"].iloc[:2])
    theirs = bytearray(ours)
    theirs[second + 17 : second + 21] = b"\0\0\0\0"  # the checksum
    theirs[second + 43 : second + 51] = (7).to_bytes(8, "big")
    assert unequal_bytes("v2", bytes(theirs), ours) == "producer_id is 7 instead of -1"
    theirs = bytearray(ours)
    theirs[second - 1] ^= 1
    assert first == 0 and unequal_bytes("v2", bytes(theirs), ours).endswith(f"unequal from byte {second - 1} on")
    assert unequal_bytes("v1", b"", given.logs["v1"]).startswith(f"0 instead of {len(given.logs['v1'])} bytes")


@pytest.mark.parametrize("name", KAFKA_FORMATS)
def test_a_limit_that_does_not_make_the_log_is_not_timed(given: Task, name: str) -> None:
    longer = replace(given, logs=given.logs | {name: given.logs[name] + bytes(5)})  # no checksum covers these
    with pytest.raises(Differs, match=f"^{name}: the limit copies or checksums other bytes"):
        list(Limit().arms(longer))


def test_only_the_epochs_of_batches_may_differ(given: Task) -> None:
    log = given.logs["v2"]
    at = int(OURS["v2"].decode(log).batches["position"].iloc[1])
    for byte in range(at, at + 30):
        changed = bytearray(log)
        changed[byte] ^= 1
        is_length = at + 8 <= byte < at + 12  # a wrong length: later batches seem to start elsewhere
        same = not is_length and without_epochs(bytes(changed), "v2") == without_epochs(log, "v2")
        assert same == (at + 12 <= byte < at + 16)


@pytest.mark.parametrize(
    ("name", "path"), [("numpy", "nowhere.A"), ("numpy", "numpy.nowhere"), ("nowhere", "numpy.array")]
)
def test_what_is_not_installed_or_of_another_version_is_absent(name: str, path: str) -> None:
    with (
        pytest.raises(Absent, match=r"nowhere.*pip install 'kfbench\[peers\]"),
        starting(name, batches=path, messages=path, reader=path)(),
    ):
        pass


def test_waiting_for_the_host_lock_shows_its_holder_and_ends() -> None:
    said: list[str] = []
    with (
        host_lock(),
        pytest.raises(HostLockHeld, match="measures on this host"),
        holding_host(said.append, patience_s=0.06),
    ):
        pytest.fail("two have a turn")
    (line,) = said
    assert line.endswith("measures on this host: waiting for a turn, 0.001 minutes at most")
    with holding_host(said.append):
        assert len(said) <= 2  # a test that ran before may have printed a line


def test_warm_up_ends_when_nothing_gets_faster_or_time_is_up() -> None:
    times = iter([1000, 500, 495, *[490] * 10 * NO_FASTER])
    arm = Arm(peer="p", format="v2", operation="encode", sample=lambda _: CallTimes(next(times), 0))
    assert warm_up([arm], 0.0, 60.0) == 2 + NO_FASTER
    assert warm_up([arm], 0.0, 0.0) == 0


ENDING = """
import sys, struct, time
for word in ("a machine", "1.0"):
    sys.stdout.buffer.write(struct.pack(">H", len(word)) + word.encode())
sys.stdout.buffer.flush()
if sys.stdin.buffer.read(1):
    {end}
"""


@pytest.mark.parametrize(
    ("end", "patience_s", "reason"),
    [
        ("pass", 60, "frail has ended: its answer is cut short"),
        ("time.sleep(60)", 0.4, "frail gave no answer for 0 s, and was ended"),
    ],
)
def test_a_program_that_ends_is_started_again_and_its_end_is_kept(
    monkeypatch: pytest.MonkeyPatch, given: Task, end: str, patience_s: float, reason: str
) -> None:
    started = []

    @contextmanager
    def frail() -> Iterator[Peer]:
        with running([sys.executable, "-c", ENDING.format(end=end)], os.environ) as process:
            monkeypatch.setattr(program, "PATIENCE_S", 60)  # Python takes long to start on a busy machine
            started.append(Program("frail", ["v2"], (0.0, 0.1), process))
            monkeypatch.setattr(program, "PATIENCE_S", patience_s)
            yield started[-1]

    monkeypatch.setattr(command, "discover", lambda: {"kfbench": kfbench.start, "frail": frail})
    with ExitStack() as stack:
        peers = command.Peers(stack, pytest.fail)
        for records in ("some", "others"):
            timed, _ = peers.together(records, lambda left: measured(left, given, rounds=3, seed=0))
            assert {each.arm.peer for each in timed} == {"kfbench"}
        assert peers.differences == [("frail", "some", reason), ("frail", "others", reason)]
        assert len(started) == 3 and peers.facts()["machines"] == {"frail": "a machine"}


def test_the_file_has_every_sample_and_the_table_every_peer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def nobody() -> Iterator[Peer]:
        raise Absent("no such thing here")
        yield

    out = tmp_path / "peers" / "cpu.json"
    peers = {"kfbench": kfbench.start, "limit": limit.start, "nobody": nobody}
    monkeypatch.setattr(command, "discover", lambda: peers)
    monkeypatch.setattr(command, "cells", lambda: [replace(cells()[0], records=20)])
    monkeypatch.setattr("sys.argv", ["peers", "--rounds", "3", "--out", str(out)])
    command.main()
    told = json.loads(out.read_text())
    (cell,) = told["cells"]
    assert list(told["peers"]) == ["kfbench", "limit"] and told["environment"]["host"] and told["machines"] == {}
    assert {key: cell[key] for key in ("records", "batch_size", "value_bytes", "key_bytes")} == {
        "records": 20, "batch_size": 1, "value_bytes": 10, "key_bytes": 16,
    }  # fmt: skip
    assert len(cell["arms"]) == 3 * (3 + 1) and told["differences"] == [] and told["other_threads"] == {}
    assert all(len(arm["cpu_ns"]) == len(arm["wall_ns"]) == 3 for arm in cell["arms"])
    printed, err = capsys.readouterr()
    assert "skipped nobody: no such thing here" in err
    assert "kfbench" in printed and "limit" in printed and "(1.00)" in printed
