"""Entries of a log: batches or messages. In every format, each starts with offset and length; byte 16 is the magic."""

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf, skimming
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, move, prefetch

LENGTH_AT = layouts.position(layouts.ENTRY, "length")
START = layouts.ENTRY.itemsize
MIN_LENGTH, MAGIC_AT = layouts.MIN_LENGTH, layouts.MAGIC_AT
# Number of entries to prefetch ahead; cache lines per entry (a header and the columns of 50 records); bytes per line.
AHEAD, LINES, LINE_BYTES = 8, 4, 64
STREAM_BEGIN, STREAM_BYTES = 256, 640  # prefetch distance in bytes, and the largest record that profits


@leaf
def ask_ahead(data, positions, b):
    """Prefetch the begin of entry b + AHEAD. Entries are kilobytes apart, so the CPU cannot predict their positions."""
    ahead = positions[min(b + AHEAD, len(positions) - 1)]
    for k in range(LINES):
        prefetch(data, ahead + LINE_BYTES * k)


@leaf
def ask_on(data, at, size):
    """Prefetch bytes that follow a record of `size` bytes. It is for readers that read few bytes per record.

    The next records are probably as long. Fetching all their cache lines ahead is faster than waiting for the few that
    are needed. Do nothing for records of more than STREAM_BYTES.
    """
    for k in range(0, size if size <= STREAM_BYTES else 0, LINE_BYTES):
        prefetch(data, at + STREAM_BEGIN + k)


@skimming
@kernel
def walk(data, positions, magics):
    """Find the entries of a log. An incomplete last entry is no error.

    Fill positions, int64[entries + 1], with byte positions and magics, int8[entries]. Entries beyond the size of these
    arrays are only counted. Return the number of entries, the position after the last complete one, and whether the
    length at that position is too small.
    """
    at, entries, size, room = 0, 0, len(data), len(magics)
    stopped = False
    while size - at >= START:
        length = int(get_i32(data, at + LENGTH_AT))
        if length < MIN_LENGTH:
            stopped = True
            break
        if length > size - at - START:
            break
        if entries < room:
            positions[entries] = at
            magics[entries] = get_i8(data, at + MAGIC_AT)
        at += START + length
        entries += 1
    if entries <= room:
        positions[entries] = at
    return entries, at, stopped


@kernel
def are_entries(data, positions):
    """Return whether `positions` are entries of `data` one after another. The length of each must lead to the next."""
    if len(positions) == 0 or not 0 <= positions[0] <= len(data):
        return False
    for b in range(len(positions) - 1):
        ask_ahead(data, positions, b)
        at, end = positions[b], positions[b + 1]
        if not 0 <= at < end <= len(data):  # before the subtraction, which could overflow
            return False
        if end - at < START + MIN_LENGTH or get_i32(data, at + LENGTH_AT) + START != end - at:
            return False
    return True


@kernel
def are_bounds(bounds, records):
    """Return whether int64 `bounds` rise from 0 to `records`. Neighbours may be equal."""
    last = len(bounds) - 1
    if last < 0 or bounds[0] != 0 or bounds[last] != records:
        return False
    for b in range(last):
        if bounds[b] > bounds[b + 1]:
            return False
    return True


@kernel
def scatter(data, starts, ends, targets, out):
    """Copy each entry data[starts[i]:ends[i]] to position targets[i] of `out`."""
    for i in range(len(targets)):
        move(out, targets[i], data, starts[i], ends[i] - starts[i])
