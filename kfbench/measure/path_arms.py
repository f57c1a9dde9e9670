"""Time broker paths (such as append or compact): one path on the logs of all formats, interleaved.

The result of a path is verified before the timing. After the timing, another call must give the same result. The path
counts its own work (`Work`: bytes read, bytes written, losses). tracemalloc measures the peak memory of one extra call.
"""

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from kfbench.arrays import Bytes, read_only
from kfbench.batches import EncodedLog
from kfbench.broker import Work
from kfbench.formats import BASE_FORMAT, Entries, Format
from kfbench.measure.columns import counts_text
from kfbench.measure.cpu import ONE_CALL, Arm, Samples, measure, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.paths import PATHS, BrokerPath, PathInput
from kfbench.measure.verify import Unverified, verify_records

BATCH_COUNTERS: Final = ("untouched", "in_place", "shifted", "rewritten", "dropped")
BYTE_COUNTERS: Final = ("read_bytes", "written_bytes", "decompressed_bytes", "recompressed_bytes")


@dataclass(kw_only=True)
class PathArm:
    """The measurement of one broker path on the log of one format.

    Args:
        arm: "measure", or "aa" for the base, timed a second time.
        columns: the work of one call, as columns of the result table.
        samples: the times; None after an error.
        error: the reason why there are no times.
    """

    format: str
    arm: str = "measure"
    columns: dict[str, Any] = field(default_factory=dict)
    samples: Samples | None = None
    error: Exception | None = None


def measure_path(
    name: str,
    formats: Sequence[Format],
    to: Format | None,
    source: EncodeInput,
    *,
    rounds: int,
    sample_ns: int,
    seed: int,
) -> list[PathArm]:
    """Measure a broker path on the records in each format.

    Return one measurement per format, then the A/A arm: the base, timed a second time. The base is BASE_FORMAT. If
    BASE_FORMAT fails or is missing, the base is the first format that can be timed. A format that fails has an error
    and no times. Without any timed format there is no A/A arm.

    Args:
        name: the name of the path.
        formats: the formats of the logs that the path reads.
        to: the format that the path converts to; None for a path that does not convert.
        source: the records of the workload. A path may change them before they are encoded (`BrokerPath.records`).
        rounds, sample_ns: see `cpu.measure`.
        seed: the seed for the records that a path changes (`BrokerPath.records`).
    """
    path = PATHS[name]
    source = replace(source, records=path.records(source.records, source.bounds, seed))
    arms_of_path = [PathArm(format=fmt.name) for fmt in formats]
    logs = dict[int, EncodedLog]()
    for i, fmt in enumerate(formats):
        try:
            log = source.encode(fmt)
            verify_records(fmt, source, log)
            logs[i] = log
        except Exception as error:
            arms_of_path[i].error = error
    # All arms share one buffer (see format_arms.prepare): with a buffer per arm, an A/A arm would be a few percent off.
    buffer = np.empty(max((len(log.data) for log in logs.values()), default=0), np.uint8)
    arms: dict[int, Arm] = {}
    for i, log in logs.items():
        shared = replace(log, data=buffer[: len(log.data)])
        given = PathInput(fmt=formats[i], to=to, log=shared, source=source)
        try:
            arm, columns = _verified(path, given, log.data)
            calls = warm_up(arm)
            arm.before()
            columns |= {"extra_bytes": _extra_bytes(arm.call, shared.data), "warm_up_calls": calls}
            arms[i], arms_of_path[i].columns = arm, columns
        except Exception as error:
            arms_of_path[i].error = error
    timed = [arms_of_path[i] for i in arms]
    if timed:
        base = next((i for i, each in enumerate(timed) if each.format == BASE_FORMAT), 0)
        second_base = replace(timed[base], arm="aa")
        calls_twice = [*arms.values(), [*arms.values()][base]]
        samples = measure(calls_twice, base, rounds, ONE_CALL if path.changes_input else sample_ns)
        for path_arm, arm, times in zip([*timed, second_base], calls_twice, samples, strict=True):
            try:
                arm.verify()
            except Exception as error:
                path_arm.error = error
            else:
                path_arm.samples = times
        arms_of_path.append(second_base)
    return arms_of_path


def prepare_path(path: BrokerPath, fmt: Format, to: Format | None, source: EncodeInput, seed: int) -> Arm:
    """Return the call of a broker path on the records in one format, verified once. See `measure_path`."""
    source = replace(source, records=path.records(source.records, source.bounds, seed))
    log = source.encode(fmt)
    given = PathInput(fmt=fmt, to=to, log=replace(log, data=np.empty_like(log.data)), source=source)
    return _verified(path, given, log.data)[0]


def _verified(path: BrokerPath, given: PathInput, source: Bytes) -> tuple[Arm, dict[str, Any]]:
    """Verify a path on one log. Return the call to time, and the work of one call as columns.

    source: the original bytes of the log. They are copied over the log of `given` before each sample. Raises Unverified
    if a result is wrong.
    """
    task = path.task(given)
    view = given.log.data

    def before() -> None:
        np.copyto(view, source)

    def output(result: Any) -> object:
        data = task.data(result)
        return result if data is None else data.tobytes()

    before()
    first = task.call()
    task.check(first)
    verified, out = output(first), task.data(first)

    def verify() -> None:
        before()
        if output(task.call()) != verified:
            raise Unverified(f"{given.fmt.name}: another call gave other bytes than were verified")
        if not path.changes_input and not np.array_equal(view, source):
            raise Unverified(f"{given.fmt.name}: the path changed the bytes that it reads")

    return Arm(call=task.call, before=before, verify=verify), {
        **_work_columns(first.work, source),
        "source_bytes": len(source),
        "size_bytes": None if out is None else len(out),
        "converted_records": getattr(first, "converted_records", 0),
    }


def _work_columns(work: Work, source: Bytes) -> dict[str, Any]:
    if not work.batches:  # the path passed all batches on without reading them, so it counted none
        work = replace(work, untouched=len(Entries.of(read_only(source)).magics))
    return (
        {"batches": work.batches, "losses": counts_text(work.losses)}
        | {f"batches_{name}": getattr(work, name) for name in BATCH_COUNTERS}
        | {name: getattr(work, name) for name in BYTE_COUNTERS}
    )


def _extra_bytes(call: Callable[[], Any], source: Bytes) -> int:
    """Return the peak memory of one call in bytes, without the arrays of its result."""
    tracemalloc.start()
    try:
        result = call()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    arrays = [value for value in vars(result).values() if isinstance(value, np.ndarray)]
    result_bytes = sum(array.nbytes for array in arrays if not np.may_share_memory(array, source))
    return max(peak - result_bytes, 0)
