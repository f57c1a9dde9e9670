"""Read the CPU samples of a JFR recording, and weigh them with the CPU time of their threads."""

import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tools import jvm
from tools.broker_profile.parts import OTHER, UNKNOWN, is_append, is_validation, part_of, part_of_thread
from tools.broker_profile.threads import Thread

READ_S: Final = 120


class Stack(NamedTuple):
    """Samples of one thread with the same frames. frames: CLASS.METHOD with the top first."""

    samples: int
    thread: int
    frames: tuple[str, ...]


class Recording(NamedTuple):
    """The samples of a recording. biased: how many of them were taken at the next safepoint."""

    stacks: list[Stack]
    lost: int
    biased: int


@dataclass(kw_only=True)
class CpuTime:
    """A broker's CPU time by part.

    Args:
        parts_ns: all of it.
        validation_ns: the share of `parts_ns` in which the records of arriving batches were checked.
        append_ns: the CPU time of all appends to a log, which includes validation.
    """

    parts_ns: Counter[str] = field(default_factory=Counter)
    validation_ns: Counter[str] = field(default_factory=Counter)
    append_ns: int = 0


def read_stacks(recording: Path, begin_ns: int, end_ns: int, classes: Path, java: Path) -> Recording:
    """Read the samples between two times (ns since 1970).

    classes: the folder with the compiled Stacks.java. java: the home of a JDK with `jdk.CPUTimeSample`.
    Raises ToolError and TimeoutError.
    """
    command = jvm.java(
        "profile.Stacks", recording, str(begin_ns), str(end_ns), class_path=[classes], program=java / "bin" / "java"
    )
    try:
        done = subprocess.run(command, env=jvm.environment(), stdout=subprocess.PIPE, encoding="utf-8", timeout=READ_S)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"the recording is not read within {READ_S} s") from None
    if done.returncode:
        raise jvm.ToolError(f"the reader of the recording ends with status {done.returncode}")
    return parse(done.stdout)


def parse(text: str) -> Recording:
    """Parse the output of Stacks.java."""
    lost, biased, *lines = text.splitlines()
    stacks = []
    for line in lines:
        samples, thread, frames = line.split("\t")
        stacks.append(Stack(int(samples), int(thread), tuple(frames.split(";")) if frames else ()))
    return Recording(stacks, int(lost.removeprefix("lost\t")), int(biased.removeprefix("biased\t")))


def cpu_time(stacks: Iterable[Stack], threads: Mapping[int, Thread]) -> CpuTime:
    """Divide the CPU time of each thread in the ratio of its samples.

    So a sample counts as much CPU time as its thread used per sample. The time of the JVM's own threads, and of threads
    without samples, goes to one part. Samples of threads that ended are ignored.
    """
    by_thread: dict[int, list[Stack]] = {}
    for stack in stacks:
        by_thread.setdefault(stack.thread, []).append(stack)
    found = CpuTime()
    for number, thread in threads.items():
        own, part = by_thread.get(number, []), part_of_thread(thread.name)
        if not own or part != OTHER:
            found.parts_ns[part] += thread.cpu_ns
            continue
        per_sample_ns = thread.cpu_ns / sum(stack.samples for stack in own)
        for stack in own:
            cpu_ns, part = round(stack.samples * per_sample_ns), part_of(stack.frames)
            found.parts_ns[part] += cpu_ns
            if is_validation(stack.frames):
                found.validation_ns[part] += cpu_ns
            if is_append(stack.frames):
                found.append_ns += cpu_ns
    return found


def unresolved(stacks: Iterable[Stack]) -> int:
    return sum(stack.samples for stack in stacks if part_of(stack.frames) == UNKNOWN)
