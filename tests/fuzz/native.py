"""The fuzzer of compiled readers, a program. It puts each damaged batch next to a memory page that cannot be read.

A read outside the batch kills the process, and so does one that takes HANG_S. An allocation above ROOM_BYTES raises
MemoryError. run.py starts the program. `--seed SEED --first NUMBER` repeats one damaged batch.
"""

import argparse
import itertools
import json
import mmap
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfbench import FORMATS, KfbenchError, write_log
from kfbench.batches import DecodedLog, EncodedLog
from kfbench.broker.append import append
from kfbench.errors import CorruptLog
from kfbench.formats import Entries, Format
from kfbench.formats.base.short_log import read_short
from kfbench.layouts import CODEC_MASK, CONTROL_BIT, HEADERS_FIRST_BIT
from tests.fetching import is_fetched
from tests.fuzz.corpus import DICTIONARIES, LIMITS, RECOMPRESS_EVERY, DamageSource
from tests.kernels.within_bounds import guarded

ROOM_BYTES = 256 << 20  # bytes a reader may allocate; half of it is zstd's largest window
CAPACITY = 1 << 16  # largest damaged log in bytes; seeds are far smaller
ATTRIBUTES, UNSEEN = 22, CODEC_MASK | CONTROL_BIT  # byte position; attribute bits that can hide damage from append
READ: dict[str, Any] = {"limits": LIMITS, "dictionaries": DICTIONARIES}
HANG_S = 120
HANG_BEFORE_S = 900  # for all that comes before the first input: seeds, imports, kernels that are compiled
REENCODE_EVERY = 64  # one batch in 64 is encoded again after it was read


class BrokenPromise(Exception):
    """A reader broke a promise without crashing."""


class Places:
    """Two buffers next to unreadable pages.

    A batch put into the first ends at such a page; in the second it starts after one.
    """

    def __init__(self) -> None:
        self.ends, self.begins = guarded(CAPACITY), guarded(CAPACITY, at_the_start=True)

    def put(self, data: bytes, at_the_start: bool) -> NDArray[np.uint8]:
        place = self.begins[: len(data)] if at_the_start else self.ends[len(self.ends) - len(data) :]
        place[:] = np.frombuffer(data, np.uint8)
        return place


def check(name: str, data: NDArray[np.uint8], again: bool) -> list[str]:
    """Read the damaged log with every reader.

    Return the field name of each error. Raise Fault if a reader breaks a promise.

    again: also encode the decoded records again.
    """
    log = FORMATS[name].decode(data, on_error="skip", **READ)
    check_short(name, log, data)
    rows, records = log.batch_rows, log.records
    if len(rows) != len(log) or rows["count"].sum() != len(records):
        raise BrokenPromise("header rows and records disagree")
    shapes = records.shapes
    for starts, lengths, buffer in (
        (records.key_starts, shapes.key_lengths, records.key_data),
        (records.value_starts, shapes.value_lengths, records.value_data),
        (records.header_key_starts, shapes.header_key_lengths, records.header_key_data),
        (records.header_value_starts, shapes.header_value_lengths, records.header_value_data),
    ):
        if ((lengths > 0) & ((starts < 0) | (starts > len(buffer) - lengths))).any():
            raise BrokenPromise("a field lies outside its buffer")
    if again or FORMATS[name].features & HEADERS_FIRST_BIT:
        prefix = FORMATS[name].decode_metadata(data, on_error="skip", **READ)
        # decode_metadata checks less and may accept more. If both accept, their columns are equal.
        if not log.errors and not (
            np.array_equal(prefix.offsets, shapes.offsets)
            and np.array_equal(prefix.timestamps_ms, shapes.timestamps_ms)
        ):
            raise BrokenPromise("decode_metadata and decode differ")
        bare = FORMATS[name].decode_metadata(data, on_error="skip", **READ, check_crcs=False)
        if not prefix.errors and not np.array_equal(prefix.offsets, bare.offsets):
            raise BrokenPromise("decode_metadata differs with and without checksums")
    check_times(FORMATS[name], log, data)
    if again and len(log):
        check_rewritten(name, log, data)
    if "key_length" in FORMATS[name].bare_parts:
        check_columns(FORMATS[name], log, data)
    return [error.field for error in log.errors]


def check_short(name: str, log: DecodedLog, data: NDArray[np.uint8]) -> None:
    """Check that the reader of short logs accepts only logs without damage, and returns the same records."""
    if type(FORMATS[name]).decode is Format.decode:
        return
    short = read_short(data, FORMATS[name].magic)
    if short is None or any("limits." in str(error) for error in log.errors):
        return
    if log.errors or log.trailing_bytes or short.records != log.records:
        raise BrokenPromise("the reader of short logs differs")


def check_times(fmt: Format, log: DecodedLog, data: NDArray[np.uint8]) -> None:
    """Check that `read_times` accepts what `decode` accepts and returns equal columns. `read_times` may accept more."""
    positions = Entries.of(data).positions
    try:
        seen = fmt.read_times(data, positions, **READ)
    except CorruptLog as error:
        if not log.errors:
            raise BrokenPromise("read_times refuses what decode reads") from error
        return
    if not log.errors:
        offsets, times_ms = log.records.offsets, log.records.timestamps_ms
        if not (np.array_equal(seen.offsets, offsets) and np.array_equal(seen.timestamps_ms, times_ms)):
            raise BrokenPromise("read_times and decode differ")


def check_columns(fmt: Format, log: DecodedLog, data: NDArray[np.uint8]) -> None:
    """Check the readers of columns without payload, such as append.

    They raise only KfbenchError and accept nothing that `decode` refuses.
    """
    is_sound = not log.errors
    if refused(fmt.decode, data, **READ) == is_sound:
        raise BrokenPromise("on_error raise and skip differ")
    if refused(fmt.decode_metadata, data, **READ) and is_sound:
        raise BrokenPromise("decode_metadata refuses what decode reads")
    refused(fmt.decode_metadata, data, **READ, check_crcs=False)
    entries = Entries.of(data)
    starts = entries.positions[:-1]
    if entries.trailing_bytes or not len(starts):
        return
    is_plain = is_sound and not log.batch_rows["codec"].any() and not log.records.shapes.has_headers
    for b, (start, end) in enumerate(itertools.pairwise(entries.positions.tolist())):
        count = int(log.bounds[b + 1] - log.bounds[b]) if is_sound else 8  # a scan does not know this count
        for index in {0, count // 2, count - 1} if count else ():
            if not is_fetched(fmt, data, start, end, index) and is_plain:
                raise BrokenPromise("a record that can be read cannot be fetched")
    sent = EncodedLog(data=data, positions=entries.positions)
    # append neither decompresses payloads nor reads control records
    is_hidden = bool((data[starts + ATTRIBUTES] & UNSEEN).any())
    is_refused = refused(append, sent, fmt, origin="coordinator", from_zero=False, limits=LIMITS)
    if not (is_refused or is_sound or is_hidden):
        raise BrokenPromise("append accepts what decode refuses")


def refused(call: Callable[..., object], *given: Any, **options: Any) -> bool:
    try:
        call(*given, **options)
    except KfbenchError:
        return True
    return False


def check_rewritten(name: str, log: DecodedLog, data: NDArray[np.uint8]) -> None:
    """Encode the decoded records again. Plain and canonical batches must get the same bytes."""
    fmt, rows = FORMATS[name], log.batch_rows
    try:
        if fmt.magic == 3:  # attribute bits show which v3 format wrote it
            again = write_log(log)
        else:
            again = fmt.encode(log.source_records, log.bounds, batch_fields=log.batch_fields, lossy=True)
    except KfbenchError:
        return
    plain = rows["canonical"].all() and not rows["codec"].any() and not log.errors
    if plain and bytes(again) != data.tobytes()[: len(data) - log.trailing_bytes]:
        raise BrokenPromise("a canonical batch is written with other bytes")


def bound_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, used + ROOM_BYTES))


def run(names: list[str], seed: int, first: int, count: int, progress: Any) -> dict[str, Any]:
    """Read damaged batches `first` to `first + count - 1` of each format.

    Return per format the accepted inputs and the refusals by field. Raise Fault.
    """
    signal.alarm(HANG_BEFORE_S)
    places, sources = Places(), {name: DamageSource(name, seed) for name in names}
    for name, source in sources.items():  # compile and import everything before memory is limited
        for number in range(4 * RECOMPRESS_EVERY):
            check(name, np.frombuffer(source.damage(number), np.uint8), again=True)
    bound_memory()
    found = {}
    for name, source in sources.items():
        accepted, refused = 0, Counter[str]()
        for number in range(first, first + count):
            progress[0] = number
            signal.alarm(HANG_S)
            data = places.put(source.damage(number), at_the_start=number % 8 == 7)
            try:
                fields = check(name, data, again=number % REENCODE_EVERY == 0)
            except Exception as error:
                raise BrokenPromise(f"{name}, seed {seed}, number {number}: {type(error).__name__}: {error}") from error
            accepted += not fields
            refused.update(set(fields))
        found[name] = {"inputs": count, "accepted": accepted, "refused": dict(refused.most_common())}
    return found


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(FORMATS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--progress", type=Path, help="a file of 8 bytes for the number of the current input")
    options = parser.parse_args(argv)
    # Shared memory survives a crash of this process.
    progress = np.memmap(options.progress, np.int64, "r+", shape=1) if options.progress else np.zeros(1, np.int64)
    json.dump(run(options.names, options.seed, options.first, options.count, progress), sys.stdout)


if __name__ == "__main__":
    main()
