"""Count the instructions of an operation or a broker path in several formats, on the same records.

A process under callgrind counts (`kfbench.measure.callgrind`). It is kept, because it takes some 20 s to start.
"""

import ctypes
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, cast, get_args

import numpy as np

from kfbench.batches import plan
from kfbench.errors import IllegalCombination
from kfbench.formats import FORMATS, Format
from kfbench.kernels.jit import before_compiling, compiled_only
from kfbench.measure.callgrind import (
    ENVIRONMENT,
    KERNELS,
    CallCounts,
    command,
    count_calls,
    read_counts,
    why_not_counted,
)
from kfbench.measure.child import ChildProgram, call_under, end_child, sendable
from kfbench.measure.cpu import Arm, Operation
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.format_arms import prepare, why_no_fetch
from kfbench.measure.path_arms import prepare_path
from kfbench.measure.paths import PATHS
from kfbench.measure.verify import verify_records
from kfbench.records import Records

LOADED_FORMATS: Final = ("v2", "v3")
PR_SET_PDEATHSIG: Final = 1  # of prctl
COUNTED_OPERATIONS: Final = (*get_args(Operation), *(name for name, path in PATHS.items() if not path.converts))
_COMPILER: Final = ChildProgram("the compiler of kernels", environment=tuple(KERNELS.items()))


class NotCompiled(Exception):
    """A kernel is not in the cache. To compile it under valgrind would take minutes."""


@dataclass(frozen=True, kw_only=True)
class CountRequest:
    """An operation or a broker path to count, and its records.

    Args:
        operation: an operation of `cpu.Operation`, or a broker path of `PATHS`.
        make_source: makes the records, in two batches or more, and how to encode them. It is called in the fork that
            counts.
        to: the name of the format that the path converts to.
        seed: the seed for the records that a path changes.
    """

    operation: str
    make_source: Callable[[], EncodeInput]
    to: str | None = None
    seed: int = 0

    def halves(self) -> list[EncodeInput]:
        """Return the first half of the batches, and all. What a record takes is the difference of both counts."""
        source = self.make_source()
        return [source.between(0, source.batches // 2), source]

    def arm(self, fmt: Format, source: EncodeInput) -> Arm:
        if self.operation in PATHS:
            return prepare_path(PATHS[self.operation], fmt, FORMATS[self.to] if self.to else None, source, self.seed)
        (arm,) = prepare([fmt], [source.encode(fmt).data], cast(Operation, self.operation), source)
        return arm

    def arms(self, names: Sequence[str]) -> list[Arm]:
        halves = self.halves()
        return [self.arm(FORMATS[name], source) for name in names for source in halves]


def count_instructions(
    counted: CountRequest, names: Sequence[str]
) -> Mapping[str, tuple[CallCounts, CallCounts] | Exception]:
    """Count each format's call, once with the first half of the batches and once with all.

    Formats are counted together, because switching callgrind on takes long. If that fails, each is counted alone. A
    format that fails has its error: LibraryEnded if valgrind crashed.
    """
    try:
        try:
            return _counts(counted, names)
        except NotCompiled:
            call_under(_COMPILER, _compile, counted, names)
            return _counts(counted, names)
    except Exception as error:
        if len(names) > 1 and not isinstance(error, (OSError, MemoryError)):  # of a busy host
            return {name: found for each in names for name, found in count_instructions(counted, [each]).items()}
        return dict.fromkeys(names, error)
    finally:
        end_child(_COMPILER)


def _counts(counted: CountRequest, names: Sequence[str]) -> dict[str, tuple[CallCounts, CallCounts] | Exception]:
    folder = _folder(os.getpid())
    try:
        folder.mkdir(mode=0o700)
        call_under(valgrind(folder), _count_in_fork, counted, names)
        counts = read_counts(folder, 2 * len(names))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return dict(zip(names, zip(counts[::2], counts[1::2], strict=True), strict=True))


def valgrind(folder: Path) -> ChildProgram:
    return ChildProgram("valgrind", command(folder), tuple(ENVIRONMENT.items()))


@lru_cache
def _folder(process: int) -> Path:  # noqa: ARG001
    """Return the path of a folder that does not exist, in which callgrind writes during a call of this process."""
    folder = Path(tempfile.mkdtemp(prefix="kfbench-instructions-"))
    folder.rmdir()
    return folder


def _count_in_fork(counted: CountRequest, names: Sequence[str]) -> None:
    """Count in a fork of this process, which runs under valgrind.

    The layout of memory moves some counts of Python and NumPy. A fork's does not depend on earlier counts.
    """
    with before_compiling(_refuse), compiled_only():
        _load_kernels()
    fork = get_context("fork")
    here, there = fork.Pipe(duplex=False)
    process = fork.Process(target=_count, args=(there, counted, names))
    process.start()
    there.close()
    try:
        error = here.recv()
    except EOFError:  # this process ends as its fork has ended
        process.join()
        code = process.exitcode or 0
        os.kill(os.getpid(), -code if code < 0 else signal.SIGABRT)
    process.join()
    if error:
        raise error


def _count(there: Connection, counted: CountRequest, names: Sequence[str]) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # it ends with its parent
    os.urandom = bytes  # zeros, for the secret seed of compaction's table of keys
    try:
        with before_compiling(_refuse), compiled_only():
            count_calls(counted.arms(names))
    except Exception as error:
        there.send(sendable(error))
    else:
        there.send(None)


def _refuse() -> None:
    raise NotCompiled("a kernel is not compiled for the processor that instructions are counted on")


@lru_cache
def _load_kernels() -> None:
    """Load the kernels that most counts need, always the same ones. Loading the first takes valgrind 7 s."""
    records = Records.from_lists([b"value"] * 4, keys=[b"key"] * 4, timestamps_ms=[1, 2, 3, 4])
    for name in LOADED_FORMATS:
        log = FORMATS[name].encode(records, np.array([0, 2, 4]))
        FORMATS[name].decode(log.data)


def _compile(counted: CountRequest, names: Sequence[str]) -> None:
    """Compile the kernels of a count and verify what they write, in a process that does not run under valgrind."""
    with compiled_only():
        _load_kernels()
        source = counted.make_source()
        for fmt in (FORMATS[name] for name in names):
            verify_records(fmt, source, source.encode(fmt))
        for arm in counted.arms(names):
            arm.before()
            arm.call()
            arm.verify()


def instructions_per_record(
    format: str,  # noqa: A002
    operation: str,
    records: Records,
    *,
    batch_size: int,
    codec: str = "none",
    level: int | None = None,
) -> float:
    """Count the instructions that a record takes in a format, without those of the codec's library and of Python.

    A process under valgrind counts. It takes some 20 s to start, and is kept until this process ends.

    Args:
        format: the name of the format.
        operation: "encode", "decode", "decode-metadata", "read-times", "fetch-record", "sizes", or a broker path that
            converts to no other format, such as "append".
        records: the records, more than one batch of them.
        batch_size: records per batch.
        codec, level: the codec.

    Raises IllegalCombination if the format does not have the operation under the codec, or instructions cannot be
    counted here;
    LibraryEnded if valgrind crashes, and ChildKilled if something else ends it.
    """
    bounds = plan(len(records), batch_size)
    if format not in FORMATS:
        raise IllegalCombination(f"no format {format!r} (formats: {', '.join(FORMATS)})")
    if operation not in COUNTED_OPERATIONS:
        raise IllegalCombination(f"no operation {operation!r} (operations: {', '.join(COUNTED_OPERATIONS)})")
    FORMATS[format].check_codec(codec, level)
    one_batch = "one batch only" if len(bounds) < 3 else None
    if reason := why_not_counted() or one_batch or why_no_operation(FORMATS[format], operation, codec):
        raise IllegalCombination(reason)
    make_source = partial(EncodeInput, records=records, bounds=bounds, codec=codec, level=level)
    counted = CountRequest(operation=operation, make_source=make_source)
    found = count_instructions(counted, [format])[format]
    if isinstance(found, Exception):
        raise found
    return per_record([call.kernel_instructions for call in found], [len(half.records) for half in counted.halves()])


def why_no_operation(fmt: Format, operation: str, codec: str) -> str | None:
    """Return the reason why a format does not have an operation under a codec; None if it has."""
    if operation == "sizes" and codec != "none":
        return "sizes are computed from lengths, without a codec"
    if operation == "fetch-record":
        return "a codec cannot decompress one record alone" if codec != "none" else why_no_fetch(fmt)
    return None


def per_record(counts: Sequence[int], records: Sequence[int]) -> float:
    """Return what a record takes: the difference of both calls, divided by the records of the second half."""
    return (counts[1] - counts[0]) / (records[1] - records[0])
