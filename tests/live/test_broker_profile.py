"""A real broker is recorded under load, and its samples are attributed to parts of its CPU time."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from tools import jvm
from tools.broker_profile import session
from tools.broker_profile.parts import CODEC, FORMAT, LOG, NETWORK, REQUESTS, TLS, is_append, is_validation, part_of
from tools.broker_profile.session import PARTITIONS, Absent, Plan, Recorded, Setting, Tools
from tools.broker_profile.stacks import cpu_time, read_stacks
from tools.broker_profile.threads import used

pytestmark = [pytest.mark.broker, pytest.mark.slow]

SETTING = Setting("TLS", "lz4", 100)
PLAN = Plan(rounds_per_s=20, warm_up_s=4, measure_s=5)


@pytest.fixture(scope="module")
def programs(fetched: Callable[[Path], Path]) -> Tools:
    try:
        java = session.profiling_jdk()
    except Absent as why:
        pytest.skip(str(why))
    jars = fetched(session.POM)
    return Tools(jars=jars, classes=jvm.compiled(session.SOURCES, jars), java=java)


@pytest.fixture(scope="module")
def recorded(programs: Tools, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return session.record(SETTING, programs, tmp_path_factory.mktemp("profile"), PLAN)


def test_the_load_is_the_planned_one(recorded: Recorded) -> None:
    assert session.check_batches(recorded.segment, SETTING) > 1_000
    with pytest.raises(session.Unsteady):
        session.check_batches(recorded.segment, SETTING._replace(codec="zstd"))
    seconds = (recorded.end.time_ns - recorded.begin.time_ns) / 1e9
    most = seconds * PLAN.rounds_per_s * PARTITIONS * SETTING.batch_size
    sent, *read = recorded.counts
    assert 0 < sent < 1.5 * most  # not more than planned, but perhaps less on a busy machine
    assert len(read) == session.CONSUMERS and min(read) > 0


def test_all_cpu_time_is_attributed(recorded: Recorded, programs: Tools) -> None:
    begin, end = recorded.begin, recorded.end
    stacks, _, biased = read_stacks(recorded.file, begin.time_ns, end.time_ns, programs.classes, programs.java)
    threads = used(begin, end)
    found = cpu_time(stacks, threads)
    assert sum(found.parts_ns.values()) == pytest.approx(sum(thread.cpu_ns for thread in threads.values()), rel=1e-3)
    assert {NETWORK, REQUESTS} <= found.parts_ns.keys()
    assert sum(found.validation_ns.values()) <= found.append_ns < sum(found.parts_ns.values())
    assert biased < sum(stack.samples for stack in stacks)


def test_all_work_of_a_broker_is_found(recorded: Recorded, programs: Tools) -> None:
    # With the warm-up, in which the producer sends as fast as it can, there are samples enough.
    stacks = read_stacks(recorded.file, 0, recorded.end.time_ns, programs.classes, programs.java).stacks
    assert {FORMAT, CODEC, NETWORK, TLS, REQUESTS, LOG} <= {part_of(stack.frames) for stack in stacks}
    assert {FORMAT, CODEC} <= {part_of(stack.frames) for stack in stacks if is_validation(stack.frames)}
    assert all(is_append(stack.frames) for stack in stacks if is_validation(stack.frames))


def test_the_reader_sees_the_samples_that_jfr_prints(recorded: Recorded, programs: Tools) -> None:
    begin_ns, end_ns = recorded.begin.time_ns, recorded.begin.time_ns + 1_000_000_000
    jfr = str(programs.java / "bin" / "jfr")
    command = [jfr, "print", "--json", "--events", "jdk.CPUTimeSample", str(recorded.file)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=120)
    printed: Counter[tuple[int, str]] = Counter()
    for event in json.loads(done.stdout)["recording"]["events"]:
        values = event["values"]
        started, fraction = values["startTime"].removesuffix("Z").split(".")
        at_ns = int(datetime.fromisoformat(f"{started}+00:00").timestamp()) * 10**9 + int(fraction.ljust(9, "0"))
        if begin_ns <= at_ns < end_ns:
            frames = (values["stackTrace"] or {"frames": []})["frames"]
            top = frames[0]["method"] if frames else None
            name = f"{top['type']['name'].replace('/', '.')}.{top['name']}" if top else ""
            printed[values["eventThread"]["osThreadId"], name] += 1
    read: Counter[tuple[int, str]] = Counter()
    for stack in read_stacks(recorded.file, begin_ns, end_ns, programs.classes, programs.java).stacks:
        read[stack.thread, stack.frames[0] if stack.frames else ""] += stack.samples
    assert read == printed and printed


def test_samples_divide_cpu_time_between_java_and_the_kernel(programs: Tools, tmp_path: Path) -> None:
    file, recording = tmp_path / "file", tmp_path / "split.jfr"
    file.write_bytes(bytes(1 << 20))
    classes = jvm.compiled([Path(__file__).parent / "KnownSplit.java"], programs.jars)
    options = f"-XX:StartFlightRecording=settings={session.EVENTS},filename={recording}"
    java = programs.java / "bin" / "java"
    command = jvm.java("-Xlog:disable", options, "profile.KnownSplit", file, class_path=[classes], program=java)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", timeout=120)
    begin_ms, end_ms, computing_ns, reading_ns = map(int, done.stdout.split("\n")[-2].split())
    samples: Counter[str] = Counter()
    found = read_stacks(recording, begin_ms * 10**6, end_ms * 10**6, programs.classes, programs.java)
    for stack in found.stacks:
        frames = " ".join(stack.frames)
        samples["reading" if ".pread" in frames else "computing" if "KnownSplit.compute" in frames else "rest"] += (
            stack.samples
        )
    share = samples["computing"] / (samples["computing"] + samples["reading"])
    assert share == pytest.approx(computing_ns / (computing_ns + reading_ns), abs=0.12)
    assert samples.total() > 100 and samples["rest"] < 0.2 * samples.total()
