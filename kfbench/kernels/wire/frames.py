"""Walking a log: every format starts with an offset and a length, and has its magic at byte 16."""

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, move, prefetch

LENGTH_AT = layouts.position(layouts.ENTRY, "length")
START = layouts.ENTRY.itemsize
MIN_LENGTH, MAGIC_AT = layouts.MIN_LENGTH, layouts.MAGIC_AT
AHEAD, LINES, LINE_BYTES = 8, 4, 64  # entries, and cache lines of each: a header and columns of 50 records
STREAM_BEGIN, STREAM_BYTES = 256, 640  # bytes behind a record's start; the longest record that is worth it


@leaf
def ask_ahead(data, positions, b):
    """Ask for the entry that will be read soon: entries lie kilobytes apart, where no CPU expects the next one."""
    ahead = positions[min(b + AHEAD, len(positions) - 1)]
    for k in range(LINES):
        prefetch(data, ahead + LINE_BYTES * k)


@leaf
def ask_on(data, at, size):
    """Ask for what lies behind a record of `size` bytes, of which few are read; nothing for more than STREAM_BYTES.

    The next records will be about as long. All their lines come sooner than the few that are wanted would come one
    after another.
    """
    for k in range(0, size if size <= STREAM_BYTES else 0, LINE_BYTES):
        prefetch(data, at + STREAM_BEGIN + k)


@kernel
def walk(data, positions, magics):
    """Find the entries of a log. An incomplete last entry is no error.

    Fills positions int64[entries + 1] and magics int8[entries], as far as there is room in them.
    Returns (number of entries, position of the end, whether a bad length is there).
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
    """Return whether `walk` finds these positions, or a run of them: each entry ends where its length says."""
    if len(positions) == 0 or not 0 <= positions[0] <= len(data):
        return False
    for b in range(len(positions) - 1):
        ask_ahead(data, positions, b)
        at, end = positions[b], positions[b + 1]
        if not 0 <= at < end <= len(data):  # before they are subtracted
            return False
        if end - at < START + MIN_LENGTH or get_i32(data, at + LENGTH_AT) + START != end - at:
            return False
    return True


@kernel
def scatter(data, starts, ends, targets, out):
    """Copy each entry data[starts[i]:ends[i]] to targets[i] of `out`."""
    for i in range(len(targets)):
        move(out, targets[i], data, starts[i], ends[i] - starts[i])
