"""Decode damaged containers in child processes, and store how often each library ends in which way.

usage: rivals_damage.py                  writes docs/rivals-damage.json
       rivals_damage.py ARM FIRST END    a child: prints one JSON line per damaged container

A batch's CRC-32C finds accidents. It does not find a producer that computes it over a hostile container. So the damage
here is under a right CRC. v2 and columnar get the same damage, in the bytes that their CRC covers, and a new CRC.

An error is any Python exception, of the library or of `Records`. Containers have no codec, so damage reaches their
structure. Changed payload bytes give wrong records in every format.
"""

import json
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from tempfile import TemporaryFile
from typing import IO, Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from kfbench.formats import FORMATS
from kfbench.layouts import V2_HEADER
from kfbench.records import Records
from kfbench.rivals import rivals
from kfbench.rivals.arrow_ipc import ArrowIpc
from kfbench.rivals.base import from_table, relative

STORED: Final = Path(__file__).resolve().parents[1] / "docs" / "rivals-damage.json"
COUNT: Final = 900
BASES: Final = ("v2", "columnar")
VALIDATED: Final = "arrow-ipc, validated"
KINDS: Final = ("truncated", "bit flipped", "edge integer")
OUTCOMES: Final = ("same", "wrong", "error", "panic", "crash", "hang")
HANG_S: Final = 20
START_S: Final = 300
"""The time in which a child imports its library and compiles kernels."""
READY: Final = "ready"
MEMORY_BYTES: Final = 2 << 30
"""The address space that a child may add to what it has after its imports."""
_EDGES: Final = (0, 1, 0x7F, 0xFF, 0x7FFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF)
_CRC_AT: Final = int(V2_HEADER.fields["crc"][1])  # type: ignore[index]
_LENGTH_AT: Final = int(V2_HEADER.fields["length"][1])  # type: ignore[index]
_LENGTH_END: Final = _LENGTH_AT + V2_HEADER["length"].itemsize
_COVERED_AT: Final = _CRC_AT + V2_HEADER["crc"].itemsize


class Ended(NamedTuple):
    """How decoding a damaged container ended. outcome: one of OUTCOMES. cause: the error's type, or the signal."""

    outcome: str
    cause: str


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A container to damage, and the function that decodes it to records."""

    container: bytes
    decode: Callable[[bytes], Records]
    expected: Records


def sample() -> Records:
    """Return 20 small records with keys, headers, nulls, and holes in the offsets. Most bytes are structure."""
    number = range(20)
    return Records.from_lists(
        [b"value-%d" % (i % 7) if i != 5 else None for i in number],
        keys=[b"key-%d" % i if i % 4 else None for i in number],
        headers=[[("trace", b"%08x" % i), ("v", None)] if i % 3 else [] for i in number],
        offsets=[i + (i > 7) for i in number],
        timestamps_ms=[1_767_225_600_000 + i * i for i in number],
    )


def arm(name: str) -> Arm:
    """Return the container of an arm without a codec, where damage reaches the structure."""
    records = sample()
    if name in BASES:
        return _base(name, records)
    if name == VALIDATED:
        rival = rivals()["arrow-ipc"]
        return Arm(
            container=rival.encode(rival.prepare(relative(records)), "none"),
            decode=_validated,
            expected=relative(records),
        )
    rival = rivals()[name]
    container = rival.encode(rival.prepare(relative(records)), "none")
    return Arm(container=container, decode=lambda data: rival.records(rival.decode(data)), expected=relative(records))


def _base(name: str, records: Records) -> Arm:
    format_ = FORMATS[name]
    batch = format_.encode(records, len(records)).data.tobytes()
    head, covered = batch[:_CRC_AT], batch[_COVERED_AT:]

    def decode(damaged: bytes) -> Records:
        length = (len(head) + 4 + len(damaged) - _LENGTH_END).to_bytes(4, "big")
        crc = crc32c(damaged).to_bytes(4, "big")
        batch = head[:_LENGTH_AT] + length + head[_LENGTH_END:] + crc + damaged
        return relative(format_.decode(batch).records)

    return Arm(container=covered, decode=decode, expected=relative(records))


def _validated(data: bytes) -> Records:
    batch = ArrowIpc().decode(data)
    batch.validate(full=True)
    return from_table(pa.table(batch))


def damaged(container: bytes, number: int) -> tuple[str, bytes]:
    """Return the kind of damage and the damaged container. The same number gives the same damage."""
    rng = np.random.default_rng(number)
    kind = KINDS[number % len(KINDS)]
    at = int(rng.integers(len(container)))
    if kind == "truncated":
        return kind, container[:at]
    found = bytearray(container)
    if kind == "bit flipped":
        found[at] ^= 1 << int(rng.integers(8))
    else:
        order: Literal["little", "big"] = "little" if rng.integers(2) else "big"
        found[at : at + 4] = int(rng.choice(_EDGES)).to_bytes(4, order)[: len(container) - at]
    return kind, bytes(found)


def ended(of: Arm, data: bytes) -> Ended:
    """Decode in this process."""
    try:
        return Ended("same" if of.decode(data) == of.expected else "wrong", "")
    except Exception as error:
        return Ended("error", type(error).__name__)
    except BaseException as error:  # a panic in a Rust library is no Exception
        return Ended("panic", type(error).__name__)


def try_all(name: str, count: int) -> dict[str, Counter[Ended]]:
    """Decode `count` damaged containers, and count the outcomes per kind of damage."""
    found: dict[str, Counter[Ended]] = {kind: Counter() for kind in KINDS}
    first = 0
    while first < count:
        for ending in _child(name, first, count):
            found[KINDS[first % len(KINDS)]][ending] += 1
            first += 1
    return found


def _child(name: str, first: int, end: int) -> Iterator[Ended]:
    """Yield the endings that a child reports. The last may be the child's own end, by a signal or after HANG_S."""
    command = [sys.executable, "-m", "tools.rivals_damage", name, str(first), str(end)]
    with (
        TemporaryFile() as stderr,
        subprocess.Popen(command, bufsize=0, stdout=subprocess.PIPE, stderr=stderr) as child,
    ):
        assert child.stdout is not None
        try:
            if _line(child.stdout, START_S) != READY:
                raise RuntimeError(f"{name}: a child ended before its first container")
            for _ in range(first, end):
                line = _line(child.stdout, HANG_S)
                if line is None:
                    yield Ended("hang", f"{HANG_S} s")
                    return
                if not line:
                    code = child.wait()
                    stderr.seek(0)
                    yield Ended("crash", _cause(code, stderr.read().decode(errors="replace")))
                    return
                yield Ended(*json.loads(line))
        finally:
            child.kill()


def _cause(code: int, stderr: str) -> str:
    """Return the signal, and whether the library gave up for want of memory."""
    ending = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    no_memory = "memory allocation" in stderr or "bad_alloc" in stderr
    return f"{ending}, no memory" if no_memory else ending


def _line(pipe: IO[bytes], timeout_s: int) -> str | None:
    """Return the next line; an empty string at the end of the pipe; None after the timeout.

    It waits twice, because both processes may have been stopped during the first wait.
    """
    with DefaultSelector() as selector:
        selector.register(pipe, EVENT_READ)
        is_there = selector.select(timeout_s) or selector.select(timeout_s)
        return pipe.readline().decode().strip() if is_there else None


def report(name: str, first: int, end: int) -> None:
    """Decode damaged containers in this process, which may end in a crash."""
    of = arm(name)
    if ended(of, of.container).outcome != "same":
        raise SystemExit(f"{name}: the container without damage is not read back")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    print(READY, flush=True)
    for number in range(first, end):
        print(json.dumps(ended(of, damaged(of.container, number)[1])), flush=True)


def arms() -> dict[str, str]:
    """Return the package and version per arm that can be tried here."""
    versions = {name: f"{rival.needs} {rival.version()}" for name, rival in rivals().items()}
    return {**dict.fromkeys(BASES, "kfbench"), **versions, VALIDATED: versions["arrow-ipc"]}


def run(count: int) -> dict[str, Any]:
    """Try every arm. Return the stored run."""
    found = {}
    for name, version in arms().items():
        kinds = try_all(name, count)
        counts = {kind: [[*ending, n] for ending, n in sorted(kinds[kind].items())] for kind in KINDS}
        found[name] = {"library": version, "container_bytes": len(arm(name).container), "endings": counts}
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "damaged_per_arm": count,
        "memory_bytes": MEMORY_BYTES,
        "arms": found,
    }


def main() -> None:
    if len(sys.argv) == 4:
        report(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        STORED.write_text(json.dumps(run(COUNT), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
