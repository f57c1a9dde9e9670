"""Run as a program: damaged batches of one format through `decode`, compiled, each alone against an unreadable page.

A read past the end, or before the beginning, kills the process; so does an allocation past ROOM_BYTES. run.py starts
it, watches its progress, and says which damage to look at: `--seed SEED --first NUMBER` does that one again.
"""

import argparse
import itertools
import json
import mmap
import resource
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
from kfbench.broker.batch_headers import headers
from kfbench.broker.mirror import mirror
from kfbench.errors import CorruptLog
from kfbench.formats import Entries, Format
from kfbench.layouts import CODEC_MASK, CONTROL_BIT, HEADERS_FIRST_BIT
from tests.fetching import is_fetched
from tests.fuzz import mutate
from tests.fuzz.corpus import LIMITS, Wrapping, batches, layout, packed, wrappings
from tests.kernels.within_bounds import guarded

ROOM_BYTES = 256 << 20  # for all that is allocated while damage is read; zstd's largest window alone takes half
RECOMPRESSED = 20  # one in so many has its records damaged before they are compressed
ATTRIBUTES, UNSEEN = 22, CODEC_MASK | CONTROL_BIT  # of a columnar batch: the low byte, and what hides damage
NOW: dict[str, Any] = {}
APPEND_TIME: dict[str, Any] = {"timestamp_type": "append", "now_ms": 1_700_000_000_000}
REENCODED = 64  # one in so many of those that are read is written again


class Fault(Exception):
    """A promise that a reader broke without crashing."""


class Source:
    """Damage by number: the same for the same seed."""

    def __init__(self, name: str, seed: int) -> None:
        self.seed, self.layout = seed, layout(name)
        self.seeds, self.bounds = packed(batches(name))
        self.wrappings: list[Wrapping] = list(wrappings(name))
        self.sections = [packed([each.section]) for each in self.wrappings]
        self.out = np.zeros(mutate.CAPACITY, np.uint8)

    def damage(self, number: int) -> NDArray[np.uint8]:
        if self.wrappings and number % RECOMPRESSED == 0:
            which = number // RECOMPRESSED % len(self.wrappings)
            seeds, bounds = self.sections[which]
            size = mutate.mutated(seeds, bounds, mutate.UNSEALED, self.seed, number, self.out)
            return np.frombuffer(self.wrappings[which].around(self.out[:size].tobytes()), np.uint8)
        size = mutate.mutated(self.seeds, self.bounds, self.layout, self.seed, number, self.out)
        return self.out[:size]


class Places:
    """Room that ends at a page which cannot be read, and room that begins behind one."""

    def __init__(self) -> None:
        self.ends, self.begins = guarded(mutate.CAPACITY), guarded(mutate.CAPACITY, at_the_start=True)

    def put(self, data: NDArray[np.uint8], at_the_start: bool) -> NDArray[np.uint8]:
        place = self.begins[: len(data)] if at_the_start else self.ends[len(self.ends) - len(data) :]
        place[:] = data
        return place


def check(name: str, data: NDArray[np.uint8], again: bool) -> list[str]:
    """What was refused in it, by field. Raises Fault."""
    log = FORMATS[name].decode(data, on_error="skip", limits=LIMITS)
    rows, records = log.batch_rows, log.records
    if len(rows) != len(log) or rows["count"].sum() != len(records):
        raise Fault("header rows and records disagree")
    shapes = records.shapes
    for starts, lengths, buffer in (
        (records.key_starts, shapes.key_lengths, records.key_data),
        (records.value_starts, shapes.value_lengths, records.value_data),
        (records.header_key_starts, shapes.header_key_lengths, records.header_key_data),
        (records.header_value_starts, shapes.header_value_lengths, records.header_value_data),
    ):
        if mutate.outside(starts, lengths, len(buffer)):
            raise Fault("a field lies outside its buffer")
    if again or FORMATS[name].features & HEADERS_FIRST_BIT:
        prefix = FORMATS[name].decode_metadata(data, on_error="skip", limits=LIMITS)
        # It sees less, so it may read more; what both read is the same.
        if not log.errors and not (
            np.array_equal(prefix.offsets, shapes.offsets)
            and np.array_equal(prefix.timestamps_ms, shapes.timestamps_ms)
        ):
            raise Fault("the prefix says otherwise")
        bare = FORMATS[name].decode_metadata(data, on_error="skip", limits=LIMITS, check_crcs=False)
        if not prefix.errors and not np.array_equal(prefix.offsets, bare.offsets):
            raise Fault("without its checksum it says otherwise")
    times(FORMATS[name], log, data)
    if again and len(log):
        written_again(name, log, data)
    if FORMATS[name].has_bare_metadata:
        other_paths(FORMATS[name], log, data)
    return [error.field for error in log.errors]


def times(fmt: Format, log: DecodedLog, data: NDArray[np.uint8]) -> None:
    """They see less, so they may read more."""
    positions = Entries.of(data).positions
    try:
        seen = fmt.read_times(data, positions, limits=LIMITS)
    except CorruptLog as error:
        if not log.errors:
            raise Fault("times that can be read are refused by themselves") from error
        return
    if not log.errors:
        offsets, times_ms = log.records.offsets, log.records.timestamps_ms
        if not (np.array_equal(seen.offsets, offsets) and np.array_equal(seen.timestamps_ms, times_ms)):
            raise Fault("times by themselves say otherwise")


def other_paths(fmt: Format, log: DecodedLog, data: NDArray[np.uint8]) -> None:
    """All else that reads columns: each refuses with an error of ours, and none takes what `decode` cannot read."""
    is_sound = not log.errors
    if refused(fmt.decode, data, limits=LIMITS) == is_sound:
        raise Fault("raised what is not skipped, or skipped what is not raised")
    if refused(fmt.decode_metadata, data, limits=LIMITS) and is_sound:
        raise Fault("columns that can be read are refused by themselves")
    refused(fmt.decode_metadata, data, limits=LIMITS, check_crcs=False)
    refused(headers, data, fmt)
    refused(mirror, data, fmt, limits=LIMITS)
    entries = Entries.of(data)
    starts = entries.positions[:-1]
    if entries.trailing_bytes or not len(starts):
        return
    is_plain = is_sound and not log.batch_rows["codec"].any() and not log.records.shapes.has_headers
    for b, (start, end) in enumerate(itertools.pairwise(entries.positions.tolist())):
        count = int(log.bounds[b + 1] - log.bounds[b]) if is_sound else 8  # or how many there may be
        for index in {0, count // 2, count - 1} if count else ():
            if not is_fetched(fmt, data, start, end, index) and is_plain:
                raise Fault("a record that can be read cannot be fetched")
    sent = EncodedLog(data=data, positions=entries.positions)
    is_hidden = bool(
        (data[starts + ATTRIBUTES] & UNSEEN).any()
    )  # nobody looks behind a codec, nor into control records
    for options in NOW, APPEND_TIME:
        is_refused = refused(append, sent, fmt, origin="coordinator", from_zero=False, limits=LIMITS, **options)
        if not (is_refused or is_sound or is_hidden):
            raise Fault("appended, but it cannot be read")


def refused(call: Callable[..., object], *given: Any, **options: Any) -> bool:
    try:
        call(*given, **options)
    except KfbenchError:
        return True
    return False


def written_again(name: str, log: DecodedLog, data: NDArray[np.uint8]) -> None:
    """What was read can be written; the same bytes where all of it is plain and canonical."""
    fmt, rows = FORMATS[name], log.batch_rows
    try:
        if fmt.magic == 3:  # read by its attributes, whatever features they name
            again = write_log(log)
        else:
            again = fmt.encode(log.source_records, log.bounds, batch_fields=log.batch_fields, lossy=True)
    except KfbenchError:
        return
    plain = rows["canonical"].all() and not rows["codec"].any() and not log.errors
    if plain and bytes(again) != data.tobytes()[: len(data) - log.trailing_bytes]:
        raise Fault("canonical, but written otherwise")


def bound_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM_BYTES, used + ROOM_BYTES))


def run(names: list[str], seed: int, first: int, count: int, progress: Any) -> dict[str, Any]:
    """By name: how many were accepted, and how many refused by field. Raises Fault."""
    places, sources = Places(), {name: Source(name, seed) for name in names}
    for name, source in sources.items():  # whatever is compiled or imported late
        for number in range(4 * RECOMPRESSED):
            check(name, np.frombuffer(source.damage(number).tobytes(), np.uint8), again=True)
    bound_memory()
    found = {}
    for name, source in sources.items():
        accepted, refused = 0, Counter[str]()
        for number in range(first, first + count):
            progress[0] = number
            data = places.put(source.damage(number), at_the_start=number % 8 == 7)
            try:
                fields = check(name, data, again=number % REENCODED == 0)
            except Exception as error:
                raise Fault(f"{name}, seed {seed}, number {number}: {type(error).__name__}: {error}") from error
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
    parser.add_argument("--progress", type=Path, help="a file of 8 bytes that says which number is being read")
    asked = parser.parse_args(argv)
    # In shared memory, so that it outlives a crash.
    progress = np.memmap(asked.progress, np.int64, "r+", shape=1) if asked.progress else np.zeros(1, np.int64)
    json.dump(run(asked.names, asked.seed, asked.first, asked.count, progress), sys.stdout)


if __name__ == "__main__":
    main()
