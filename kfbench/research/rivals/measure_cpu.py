"""CPU time of rivals against v2 and columnar, on the same batches.

The arms of one operation are timed in the same rounds. Rivals are called once per batch. Kafka's formats are timed in
two ways: once per batch too (arm "each"), and with all batches in one call (arm "together"), which costs less Python.
The base is v2, once per batch. It is timed twice (arm "aa").

A rival that searches the smallest of several settings is timed with the setting that it found for the batch, which
favours rivals. Its arm "search" encodes with the search.

The CPU time is that of the process, because a library may work in threads of its own. pyarrow's threads are off.

Both sides write and check the CRC-32C of a batch in `encode` and `decode`. Both read times and single records without
it. Kafka's formats fetch a record without its headers. Where they have no such reader (under a codec; columnar also
with headers), they decode the batch first. Each sample starts with a call that is not timed. Otherwise an arm that
follows a slow one would pay for cold caches.
"""

import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from kfbench.arrays import Bytes, Int64
from kfbench.errors import CorruptLog, IllegalCombination
from kfbench.formats import BASE_FORMAT, FORMATS, Format
from kfbench.measure.columns import Row
from kfbench.measure.cpu import Arm, Samples, measure, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.format_arms import output_room
from kfbench.measure.verify import Unverified, verify_metadata, verify_records
from kfbench.records import Records
from kfbench.research.rivals import Rival
from kfbench.research.rivals.base import SmallestRival
from kfbench.research.rivals.envelope import ENVELOPE_BYTES, open_sealed, seal
from kfbench.research.rivals.measure import (
    RivalBatch,
    RivalFailed,
    encode_batch,
    is_record,
    library_errors,
    rival_batches,
    verify_batch,
)

RivalOperation = Literal["encode", "decode", "read-times", "fetch-record"]
RIVAL_OPERATIONS: Final[tuple[RivalOperation, ...]] = ("encode", "decode", "read-times", "fetch-record")
EACH: Final = "each"
TOGETHER: Final = "together"
SEARCH: Final = "search"
CLOCK: Final = time.process_time_ns  # of all arms; a library's threads count
CLOCK_NAME: Final = "process"  # in the result table
_OWN_ALLOCATOR: Final = frozenset({"vortex-data"})  # Rust's, which nobody counts
_POOLS: Final = list[pa.MemoryPool]()  # never freed, because a library may keep a buffer of a pool

Call = Callable[[], object]


class _Calls(NamedTuple):
    """The calls of one arm, one after another. verify: raises an error if they give a wrong result."""

    calls: list[Call]
    verify: Call
    allocating: list[Call] | None = None  # the same work with an output of their own; None: `calls` have it


@dataclass(kw_only=True)
class RivalArm:
    """The result of one arm. columns: its columns of the result table. error: the reason if it has no samples."""

    columns: Row
    calls: _Calls | None = None
    samples: Samples | None = None
    error: Exception | None = None
    own_allocator: bool = False


class RivalInput:
    """The records of a cell in every arm, encoded and verified.

    failed: per name of an arm, the error of its encoding or verification.
    """

    def __init__(self, formats: Sequence[Format], rivals: Sequence[Rival], source: EncodeInput) -> None:
        self.source = source
        self.batches = rival_batches(source)
        self.indices = np.random.default_rng(0).integers(0, np.diff(source.bounds)).tolist()
        self.formats = {fmt.name: fmt for fmt in formats}
        self.rivals: dict[str, Rival] = {}
        self.failed: dict[str, Exception] = {}
        self.logs = {name: source.encode(fmt) for name, fmt in self.formats.items()}
        for name, log in self.logs.items():
            verify_records(FORMATS[name], source, log)
        self.sealed: dict[str, list[bytes]] = {}
        self.buffer = np.empty(
            output_room([log.data for log in self.logs.values()], source.records, source.bounds), np.uint8
        )
        for rival in rivals:
            try:
                rival.check_codec(source.codec)
                with library_errors():
                    sealed = [encode_batch(rival, batch, source.codec, source.level) for batch in self.batches]
                    for batch, data in zip(self.batches, sealed, strict=True):
                        verify_batch(rival, batch, data)
            except (IllegalCombination, RivalFailed) as error:
                self.failed[rival.name] = error
            else:
                self.rivals[rival.name], self.sealed[rival.name] = rival, sealed


def time_rivals(given: RivalInput, operation: RivalOperation, rounds: int, sample_ns: int) -> list[RivalArm]:
    """Time one operation of all arms in the same rounds. An arm that fails has its error.

    rounds, sample_ns: as in `kfbench.measure.cpu.measure`.
    """
    arms = []
    for name, fmt in given.formats.items():
        for way in (EACH, TOGETHER):
            columns = {"format": name, "arm": way, "operation": operation}
            arms.append(RivalArm(columns=columns, calls=_format_calls(fmt, operation, way, given)))
    for name, rival in given.rivals.items():
        columns = {"format": name, "operation": operation, "library": f"{rival.needs} {rival.version()}"}
        is_unseen = rival.needs in _OWN_ALLOCATOR
        for way in (EACH, SEARCH) if operation == "encode" and isinstance(rival, SmallestRival) else (EACH,):
            arm = RivalArm(columns=columns | {"arm": way}, own_allocator=is_unseen)
            try:
                with library_errors():
                    arm.calls = _rival_calls(rival, operation, way, given)
            except RivalFailed as error:
                arm.error = error
            arms.append(arm)
    timed: list[tuple[RivalArm, Arm]] = []
    for arm in arms:
        if arm.calls is None:
            continue
        call = _in_a_row(arm.calls.calls)
        made = Arm(call=call, before=call, verify=_in_a_row([arm.calls.verify]))
        try:
            with library_errors():
                arm.columns["warm_up_calls"] = warm_up(made, CLOCK)
                if not arm.own_allocator:
                    arm.columns["call_bytes"] = peak_bytes(_in_a_row(arm.calls.allocating or arm.calls.calls))
        except RivalFailed as error:
            arm.error = error
        else:
            timed.append((arm, made))
    base = next(i for i, (arm, _) in enumerate(timed) if arm.columns["format"] == BASE_FORMAT)
    again = RivalArm(columns=timed[base][0].columns | {"arm": "aa"})
    timed.append((again, timed[base][1]))
    with library_errors():
        samples = measure([made for _, made in timed], base, rounds, sample_ns, CLOCK)
    for (arm, _), found in zip(timed, samples, strict=True):
        arm.samples = found
    return [*arms, again]


def _in_a_row(calls: Sequence[Call]) -> Callable[[], None]:
    def call() -> None:
        for each in calls:
            each()

    return call


def _rival_calls(rival: Rival, operation: RivalOperation, way: str, given: RivalInput) -> _Calls:
    sealed = given.sealed[rival.name]

    def check() -> None:
        for batch, data, i in zip(given.batches, sealed, given.indices, strict=True):
            verify_batch(rival, batch, data)
            if not is_record(rival.fetch(data[ENVELOPE_BYTES:], i), batch.records, i):
                raise Unverified(f"{rival.name}: record {i} differs")

    calls = [
        _rival_call(rival, operation, way == SEARCH, batch, data, i, given.source)
        for batch, data, i in zip(given.batches, sealed, given.indices, strict=True)
    ]

    def check_encoded() -> None:
        if [call() for call in calls] != sealed:
            raise Unverified(f"{rival.name}: encode wrote other bytes than were verified")

    return _Calls(calls, check_encoded if operation == "encode" else check)


def _rival_call(
    rival: Rival,
    operation: RivalOperation,
    is_search: bool,
    batch: RivalBatch,
    data: bytes,
    i: int,
    source: EncodeInput,
) -> Call:
    """Return the call for one batch. data: the batch as `encode_batch` returned it. i: the record to fetch."""
    container = data[ENVELOPE_BYTES:]
    if operation == "decode":
        return lambda: rival.decode(open_sealed(data))
    if operation == "read-times":
        return lambda: rival.read_times(container)
    if operation == "fetch-record":
        return lambda: rival.fetch(container, i)
    arguments = rival.prepare_table(batch.table), source.codec, source.level
    encode = partial(rival.encode, *arguments) if is_search else rival.encoder(*arguments)
    return lambda: seal(encode(), batch.header)


class _PartLog(NamedTuple):
    """The batches of one call of a format: records, bytes, and the index of the record to fetch in each batch."""

    source: EncodeInput
    data: Bytes
    positions: Int64
    indices: Int64


def _format_calls(fmt: Format, operation: RivalOperation, way: str, given: RivalInput) -> _Calls:
    log, whole = given.logs[fmt.name], given.source
    numbers, ends = np.array(given.indices, np.int64), log.positions
    parts = [_PartLog(whole, log.data, ends, numbers)]
    if way == EACH:
        parts = [
            _PartLog(
                whole.between(b, b + 1),
                log.data[ends[b] : ends[b + 1]],
                ends[b : b + 2] - ends[b],
                numbers[b : b + 1],
            )
            for b in range(len(log))
        ]
    if operation == "encode":
        calls = [part.source.encoder(fmt, given.buffer) for part in parts]

        def check_encoded() -> None:
            for call, part in zip(calls, parts, strict=True):
                given.buffer.fill(0)  # an earlier arm may have left the same bytes
                call()
                if not np.array_equal(given.buffer[: len(part.data)], part.data):
                    raise Unverified(f"{fmt.name}: encode wrote other bytes than were verified")

        return _Calls([*calls], check_encoded, [partial(part.source.encode, fmt) for part in parts])
    if operation == "decode":

        def check_decoded() -> None:
            for part in parts:
                if fmt.decode(part.data).records.values() != part.source.records.values():
                    raise Unverified(f"{fmt.name}: values differ after encode and decode")

        return _Calls([partial(fmt.decode, part.data) for part in parts], check_decoded)
    if operation == "read-times":

        def check_times() -> None:
            for part in parts:
                verify_metadata(fmt, fmt.read_times(part.data, part.positions), fmt.decode(part.data).records.shapes)

        return _Calls([partial(fmt.read_times, part.data, part.positions) for part in parts], check_times)
    fetch = _decode_and_fetch if _needs_decode(fmt, parts[0]) else _fetch

    def check_fetched() -> None:
        for part in parts:
            rows = (part.source.bounds[:-1] + part.indices).tolist()
            if fetch(fmt, part) != _payload(part.source.records, rows):
                raise Unverified(f"{fmt.name}: fetched records differ")

    return _Calls([partial(fetch, fmt, part) for part in parts], check_fetched)


def _needs_decode(fmt: Format, part: _PartLog) -> bool:
    """Return True if the format cannot read single records of these batches."""
    if part.source.records.shapes.has_headers:  # `fetch` would leave them out, and rivals return them
        return True
    try:
        _fetch(fmt, part)
    except (IllegalCombination, CorruptLog):
        return True
    return False


Payload = list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]


def _payload(records: Records, rows: Sequence[int]) -> Payload:
    return [(records.key(i), records.value(i), records.headers(i)) for i in rows]


def _fetch(fmt: Format, part: _PartLog) -> Payload:
    return _payload(fmt.fetch(part.data, part.positions, part.indices), range(len(part.indices)))


def _decode_and_fetch(fmt: Format, part: _PartLog) -> Payload:
    log = fmt.decode(part.data)
    return _payload(log.records, (log.bounds[:-1] + part.indices).tolist())


def peak_bytes(call: Call) -> int:
    """Return the most memory that Python, NumPy and Arrow held during a call, with its output, in bytes.

    It is the sum of two peaks: tracemalloc's, and that of an Arrow memory pool that only this call uses.
    """
    pool, before = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    _POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        call()
        return int(tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0))
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)
