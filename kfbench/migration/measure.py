"""Measure the costs of a migration's operations. All operations take the same records and are timed interleaved.

Before the timing, the result of each operation is verified. An append is a leader's work on producers' requests in its
request buffer. Zero-copy is a fetch that returns a view of the log. The operating system's work for disk and network is
not measured.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.batches import NO_FIELDS, BatchFields, EncodedLog
from kfbench.broker.append import append
from kfbench.broker.convert import convert
from kfbench.broker.fetch import FetchResult, fetch
from kfbench.formats import FORMATS
from kfbench.log.writing import chained
from kfbench.measure.cpu import ONE_CALL, Arm, measure, paired_ratio
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.paths import BASE_OFFSET
from kfbench.measure.verify import Unverified, verify_log, verify_records
from kfbench.migration.bills import Cost, Costs
from kfbench.migration.plans import Operation, PathName, Plan, operations
from kfbench.records import Records

ROUNDS: Final = 9  # with fewer, a 95 % interval holds the true median less often
FETCH_BYTES: Final = 1 << 20  # the default of max.partition.fetch.bytes

UNTOUCHED: Final[tuple[PathName, ...]] = ("zero-copy", "scan", "copy")


class PreparedOperation(NamedTuple):
    """An operation that is ready to be timed.

    Args:
        arm: the call to time, with its preparation and its check.
        size_bytes: the size of its result.
        losses: the number of items that it removes, by kind.
    """

    arm: Arm
    size_bytes: int
    losses: dict[str, int]


def measure_costs(
    plan: Plan,
    records: Records,
    bounds: Int64,
    codec: str = "none",
    batch_fields: BatchFields = NO_FIELDS,
    *,
    rounds: int = ROUNDS,
) -> Costs:
    """Measure a plan's operations on these records, in batches as producers send them (offsets from 0, no holes).

    One time sample is one call. Use enough records that the fixed cost of a call is a small part of it.

    Raises:
        Unverified: an operation returns wrong records.
        IllegalCombination: a format of the plan lacks the codec.
        Refused: a broker refuses the records.
    """
    given = EncodeInput(records=records, bounds=bounds, codec=codec, batch_fields=batch_fields)
    logs = {}
    for name in plan.formats:
        logs[name] = given.encode(FORMATS[name])
        verify_records(FORMATS[name], given, logs[name])
    wanted = operations(plan, codec)
    sources = {operation: _source(operation, logs, plan.new) for operation in wanted}
    # All calls use one buffer, as in cpu.prepare. With separate buffers, the same call would differ by a few percent.
    buffer = np.empty(max(len(source.data) for source in sources.values()), np.uint8)
    prepared = [_prepare(operation, sources[operation], given, buffer) for operation in wanted]
    arms = [each.arm for each in prepared]
    for arm in arms:
        arm.verify()
    samples = measure([*arms, arms[0]], 0, rounds, ONE_CALL)  # an append changes its input
    base_ns = samples[0].cpu_ns
    costs = {}
    for operation, ready, sample in zip(wanted, prepared, samples, strict=False):
        source_bytes, all_bytes = len(sources[operation].data), len(logs[operation.source].data)
        times = source_bytes / all_bytes if operation.path in UNTOUCHED else 1.0  # how often the records are in it
        cpu_ns, low_ns, high_ns = paired_ratio(sample.cpu_ns / times, np.ones(rounds))
        costs[operation] = Cost(
            source_bytes=round(source_bytes / times),
            target_bytes=round(ready.size_bytes / times),
            cpu_ns=cpu_ns,
            span_ns=(low_ns, high_ns),
            ratio=paired_ratio(sample.cpu_ns / times, base_ns),
            losses=ready.losses,
        )
    return Costs(
        codec=codec,
        size_bytes={name: len(log.data) for name, log in logs.items()},
        operations=costs,
        control=paired_ratio(samples[-1].cpu_ns, base_ns),
    )


def _source(operation: Operation, logs: Mapping[str, EncodedLog], new: str) -> EncodedLog:
    """Return the input of an operation.

    A fetch without conversion has only a fixed cost, so its input is as large as a consumer's usual fetch
    (FETCH_BYTES).
    """
    log = logs[operation.source]
    if operation.path == "down-convert upgraded":
        return convert(log, new).encoded
    if operation.path not in UNTOUCHED:
        return log
    times = -(-FETCH_BYTES // len(log.data))
    positions = chained([log.positions] * times)
    positions = positions[: np.searchsorted(positions, FETCH_BYTES) + 1]
    return EncodedLog(data=np.tile(log.data, times)[: positions[-1]], positions=positions)


def _prepare(operation: Operation, source: EncodedLog, given: EncodeInput, buffer: Bytes) -> PreparedOperation:
    """Call an operation once and verify its result. Raise Unverified if it is wrong."""
    log = EncodedLog(data=buffer[: len(source.data)], positions=source.positions)
    call = _call(operation, log)

    def before() -> None:
        np.copyto(log.data, source.data)

    before()
    done = call()
    data = done.data.copy()
    if operation.path in UNTOUCHED:
        _verify_untouched(operation, done, source)
    else:
        _verify(operation, data, given)

    def verify() -> None:
        before()
        if not np.array_equal(call().data, data):
            raise Unverified(f"{_title(operation)}: another call returned other bytes than the verified ones")

    return PreparedOperation(Arm(call=call, before=before, verify=verify), len(data), dict(done.work.losses))


def _call(operation: Operation, log: EncodedLog) -> Callable[[], Any]:
    path, source, target = operation
    match path:
        case "append":
            return lambda: append(
                log, source, to=target, base_offset=BASE_OFFSET, from_zero=False, in_place=True, lossy=True
            )
        case "zero-copy":
            return lambda: fetch(log, target, fmt=source, scan="never")
        case "scan":
            return lambda: fetch(log, target, scan="batches")
        case "copy" | "down-convert" | "down-convert upgraded":
            return lambda: fetch(log, target, scan="never", lossy=True)
        case _:
            return lambda: convert(log, target)


def _title(operation: Operation) -> str:
    return f"{operation.path} {operation.source} to {operation.target}"


def _verify_untouched(operation: Operation, done: FetchResult, source: EncodedLog) -> None:
    work = done.work
    if work.untouched != work.batches or not np.array_equal(done.data, source.data):
        raise Unverified(f"{_title(operation)}: {work.batches - work.untouched} of {work.batches} batches were touched")
    if done.zero_copy != (operation.path != "copy"):
        raise Unverified(f"{_title(operation)}: the fetch was {'' if done.zero_copy else 'not '}zero-copy")


def _verify(operation: Operation, data: Bytes, given: EncodeInput) -> None:
    """Raise Unverified unless `data` is a log of the given records.

    Properties that the formats cannot carry may be missing.
    """
    path, source, target = operation
    fmt = FORMATS[target]
    expected = replace(given, records=given.records_in(FORMATS[source])).records_in(fmt)
    first = BASE_OFFSET if path == "append" else 0
    expected = replace(expected, shapes=replace(expected.shapes, offsets=expected.shapes.offsets + first))
    verify_log(_title(operation), fmt, data, expected)
