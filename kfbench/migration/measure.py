"""Measured costs of a migration's operations: on the same records, interleaved, verified before they are timed.

An append is a leader's work on producers' requests in its request buffer. Zero-copy is a fetch that returns a view of
the log. The kernel's work on the way to disk and network is not measured.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.batches import NO_FIELDS, BatchFields, EncodedLog
from kfbench.broker.append import append
from kfbench.broker.convert import convert
from kfbench.broker.fetch import Fetched, fetch
from kfbench.formats import FORMATS
from kfbench.log.writing import chained
from kfbench.measure.cpu import ONE_CALL, Arm, measure, paired_ratio
from kfbench.measure.verify import Unverified, carried, verify_log, verify_records
from kfbench.migration.bills import Cost, Costs
from kfbench.migration.plans import Operation, PathName, Plan, operations
from kfbench.records import Records

ROUNDS: Final = 7
FETCH_BYTES: Final = 1 << 20  # max.partition.fetch.bytes by default
BASE_OFFSET: Final = 1_000_000  # not the producer's 0, so that the broker has something to set

UNTOUCHED: Final[tuple[PathName, ...]] = ("zero-copy", "scan", "copy")

Given = tuple[Records, Int64, BatchFields]


class Source(NamedTuple):
    """The log that an operation is given. times: how often it holds the measured log (1.0: once)."""

    log: EncodedLog
    times: float


class Prepared(NamedTuple):
    """An operation that is ready to be timed, the size of its result and its losses."""

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
    seed: int = 0,
) -> Costs:
    """Measure a plan's operations on these records, in batches as producers send them (offsets from 0, no holes).

    A sample is one call: give enough records that its fixed cost does not show. Raises Unverified where a path gives
    other records than it should, IllegalCombination, and Refused where a broker does not take the records.
    """
    given = records, bounds, batch_fields
    logs = {}
    for name in plan.formats:
        fmt = FORMATS[name]
        logs[name] = fmt.encode(records, bounds, codec, None, batch_fields, lossy=True)
        verify_records(fmt, *given, logs[name])
    wanted = operations(plan, codec)
    sources = {operation: _source(operation, logs, plan.new) for operation in wanted}
    # One buffer for all, as in cpu.prepare: with a buffer each, an arm against itself reads a few percent off.
    buffer = np.empty(max(len(source.log.data) for source in sources.values()), np.uint8)
    prepared = [_prepare(operation, sources[operation].log, given, buffer) for operation in wanted]
    arms = [each.arm for each in prepared]
    for arm in arms:
        arm.verify()
    samples = measure([*arms, arms[0]], 0, rounds, ONE_CALL, seed)  # an append changes its input
    base_ns = samples[0].cpu_ns
    costs = {}
    for operation, ready, sample in zip(wanted, prepared, samples, strict=False):
        log, times = sources[operation]
        cpu_ns, low_ns, high_ns = paired_ratio(sample.cpu_ns / times, np.ones(rounds))
        costs[operation] = Cost(
            source_bytes=round(len(log.data) / times),
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


def _source(operation: Operation, logs: Mapping[str, EncodedLog], new: str) -> Source:
    """Return the log that an operation is given.

    A fetch that converts nothing is all fixed cost: it gets as many bytes as a consumer's fetch.
    """
    log = logs[operation.source]
    if operation.path == "down-convert upgraded":
        return Source(convert(log, new).encoded, 1.0)
    if operation.path not in UNTOUCHED:
        return Source(log, 1.0)
    times = -(-FETCH_BYTES // len(log.data))
    positions = chained([log.positions] * times)
    positions = positions[: np.searchsorted(positions, FETCH_BYTES) + 1]
    data = np.tile(log.data, times)[: positions[-1]]
    return Source(EncodedLog(data=data, positions=positions), len(data) / len(log.data))


def _prepare(operation: Operation, source: EncodedLog, given: Given, buffer: Bytes) -> Prepared:
    """Call and verify an operation. Raise Unverified."""
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
            raise Unverified(f"{_title(operation)}: another call gave other bytes than were verified")

    return Prepared(Arm(call=call, before=before, verify=verify), len(data), dict(done.work.losses))


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


def _verify_untouched(operation: Operation, done: Fetched, source: EncodedLog) -> None:
    """Raise Unverified where a path that converts nothing changed a byte."""
    work = done.work
    if work.untouched != work.batches or not np.array_equal(done.data, source.data):
        raise Unverified(f"{_title(operation)}: {work.batches - work.untouched} of {work.batches} batches were touched")
    if done.zero_copy != (operation.path != "copy"):
        raise Unverified(f"{_title(operation)}: the fetch was {'' if done.zero_copy else 'not '}zero-copy")


def _verify(operation: Operation, data: Bytes, given: Given) -> None:
    """Raise Unverified unless the bytes are a log of these records, except for what a format cannot carry."""
    path, source, target = operation
    fmt = FORMATS[target]
    _, bounds, batch_fields = given
    expected = carried(fmt, carried(FORMATS[source], *given), bounds, batch_fields)
    first = BASE_OFFSET if path == "append" else 0
    expected = replace(expected, shapes=replace(expected.shapes, offsets=expected.shapes.offsets + first))
    verify_log(_title(operation), fmt, data, expected)
