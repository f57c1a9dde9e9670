"""Program that runs every kernel on buffers next to protected memory pages.

One byte read or written outside kills the process, so test_bounds.py starts it. With NUMBA_DISABLE_JIT=1, kernels are
plain Python (see `interpreted`), which also checks every array index.
"""

import ctypes
import itertools
import mmap
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfbench import FORMATS, Records, kernels
from kfbench.batches import BatchFields
from kfbench.broker.mirror import mirror
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.formats import Entries, Format
from kfbench.formats.base import reading, short_log
from kfbench.kernels.wire.crc import copy_and_crc32, copy_and_crc32c
from kfbench.research.columnar import format as columnar
from kfbench.research.columnar import reader as columnar_reading
from tests.common import MESSAGES, records_of
from tests.fetching import is_fetched
from tests.reference.model import Message
from tests.research.columnar import cases as columnar_cases
from tests.strategies import NOW_MS
from tests.templates import cases

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)
PROT_NONE = 0
# Plain Python checks both ends of each array, and is 20 times slower.
ENDS = (False, True) if kernels.COMPILED else (False,)  # values of `at_the_start`
FREE: dict[int, list[mmap.mmap]] = defaultdict(list)  # areas that are not in use, by their number of open pages
USED: list[tuple[int, mmap.mmap]] = []


def guarded(size: int, at_the_start: bool = False) -> NDArray[np.uint8]:
    """Return `size` writeable bytes between two protected pages. They are valid until `release`.

    They touch the second page, or the first if `at_the_start`.
    """
    pages = -(-size // PAGE) or 1
    area = FREE[pages].pop() if FREE[pages] else new_area(pages)
    USED.append((pages, area))
    start = PAGE if at_the_start else (pages + 1) * PAGE - size
    return np.frombuffer(area, np.uint8)[start : start + size]


def new_area(pages: int) -> mmap.mmap:
    area = mmap.mmap(-1, (pages + 2) * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for page in (0, pages + 1):
        if LIBC.mprotect(ctypes.c_void_p(address + page * PAGE), PAGE, PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
    return area


def release() -> None:
    """Let `guarded` use all areas again."""
    for pages, area in USED:
        FREE[pages].append(area)
    USED.clear()


def moved(data: Any, at_the_start: bool = False) -> NDArray[np.uint8]:
    plain = np.frombuffer(bytes(data), np.uint8)
    place = guarded(len(plain), at_the_start)
    place[:] = plain
    return place


def samples(rng: random.Random, fmt: Format) -> Iterator[Records]:
    """Yield sets of records whose payload lengths are around the block sizes of the kernels, then random mixtures."""
    headers = fmt.capabilities.headers
    for length in [0, 1, 7, 8, 15, 16, 17, 30, 31, 32, 33, 34, 48, 63, 64, 65, 66, 95, 96, 97, 127, 128, 129, 300]:
        pairs: tuple[tuple[str, bytes | None], ...] = (("h" * (length % 40), bytes(length)),) if headers else ()
        yield records_of([Message(offset=i, key=bytes(length), value=b"v" * length, headers=pairs) for i in range(3)])
    for length in range(1, 71, 3) if headers else ():
        digits = [f"{rng.getrandbits(4 * length):0{length}x}".encode() for _ in range(rng.choice([3, 40]))]
        values = [digits[i] if i < len(digits) else rng.choice(digits) for i in range(rng.choice([9, 24, 40]))]
        yield records_of(
            [Message(offset=i, headers=(("h", value), ("g", values[0]))) for i, value in enumerate(values)]
        )
    for _ in range(8):
        messages = []
        for i in range(rng.randrange(12)):
            key, value = (None if rng.random() < 0.2 else bytes(rng.randrange(70)) for _ in range(2))
            pairs = tuple(("x" * rng.randrange(9), value) for _ in range(rng.randrange(4) if headers else 0))
            stamp = NOW_MS + rng.randrange(-9000, 9000) if fmt.capabilities.timestamps else -1
            stamp -= 0 if fmt.capabilities.milliseconds else stamp % 1000
            messages.append(Message(offset=i, timestamp_ms=stamp, key=key, value=value, headers=pairs))
        yield records_of(messages)
    for _ in range(60 if fmt.name == "columnar" else 0):  # records for every kind of column
        yield records_of(columnar_cases.drawn(rng.randrange(1000))[0])


def in_guarded_memory(records: Records) -> Records:
    """Return the same records in buffers that end at a protected page."""
    return replace(
        records,
        key_data=moved(records.key_data),
        value_data=moved(records.value_data),
        header_key_data=moved(records.header_key_data),
        header_value_data=moved(records.header_value_data),
    )


class GuardedRooms:
    """Stand-in for NumPy in kernel modules: `empty` and `zeros` return arrays that end at a protected page."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, shape: int | tuple[int, ...], kind: Any) -> NDArray[Any]:
        made: NDArray[Any] = guarded(int(np.prod(shape)) * np.dtype(kind).itemsize).view(kind).reshape(shape)
        return made

    def zeros(self, number: int, kind: Any) -> NDArray[Any]:
        made = self.empty(number, kind)
        made[:] = 0
        return made


def check(name: str, rng: random.Random) -> None:
    fmt = FORMATS[name]
    for module in (columnar, columnar_reading, reading, short_log):
        vars(module)["np"] = GuardedRooms()
    for records in samples(rng, fmt):
        size = max(2, len(records) // 2)
        expected = bytes(fmt.encode(records, size))
        given = in_guarded_memory(records)
        for at_the_start in ENDS:
            log = fmt.encode(given, size, out=guarded(len(expected), at_the_start))
            assert bytes(log) == expected
            back = fmt.decode(moved(expected, at_the_start))
            assert back.records == records
            assert len(back.batches) == len(back)
            parts_of(fmt, moved(expected, at_the_start))
        assert fmt.size(given, size).sum() == len(expected)
        assert sum(fmt.breakdown(given, size).values()) == len(expected)
        measure = copy_and_crc32 if name in MESSAGES else copy_and_crc32c
        measure(log.positions, moved(expected), 16, guarded(len(expected)))
        if fmt.has_broker_paths:
            mirror(moved(expected), fmt, partitions=3)
        release()
    if fmt.capabilities.empty_batches:
        fields = BatchFields(base_offset=[5, 7], last_offset=[6, 9])
        assert len(fmt.decode(moved(fmt.encode(Records.from_lists([]), [0, 0, 0], batch_fields=fields)))) == 2


def parts_of(fmt: Format, data: NDArray[np.uint8]) -> None:
    """Read single records, timestamps only, and metadata without checksums."""
    positions = Entries.of(data).positions
    for at in (len(data), len(data) - 5):  # 2nd: far below; the distance modulo 2**64 looks valid
        with suppress(InvalidRecords):
            fmt.read_times(data, np.array([at, -(2**63)]))
            raise AssertionError("positions outside the data are taken")
    for start, end in itertools.pairwise(positions.tolist()):
        for number in (0, 1, 7):
            is_fetched(fmt, data, start, end, number)
    with suppress(CorruptLog):
        fmt.read_times(data, positions)
    fmt.decode_metadata(data, on_error="skip", check_crcs=False)


def check_templates() -> None:
    """Fill templates into buffers that are as small as the kernel allows."""
    for _, template, numbers, lengths, keys in cases():
        expected, _ = template.fill(3, 5, numbers, lengths, keys=keys)
        for at_the_start in ENDS:
            text = moved(template._bytes, at_the_start)
            text.flags.writeable = False
            room = guarded(template.room_bytes(len(expected)), at_the_start)
            made, _ = replace(template, _bytes=text).fill(3, 5, numbers, lengths, keys=keys, out=room)
            assert bytes(made) == bytes(expected)
        release()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        check_templates() if name == "templates" else check(name, random.Random(name))
        sys.stdout.write(f"within bounds: {name}\n")
