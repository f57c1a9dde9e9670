"""Walking a log: every format starts with an offset and a length, and has its magic at byte 16."""

from kfbench import layouts
from kfbench.kernels._jit import kernel
from kfbench.kernels.intrinsics import get_i8, get_i32

LENGTH_AT = layouts.position(layouts.ENTRY, "length")
START = layouts.ENTRY.itemsize
MIN_LENGTH, MAGIC_AT = layouts.MIN_LENGTH, layouts.MAGIC_AT


@kernel
def count(data):
    """(entries, where the walk stopped, whether a length stopped it). An incomplete last entry is no error."""
    at, entries, size = 0, 0, len(data)
    while size - at >= START:
        length = int(get_i32(data, at + LENGTH_AT))
        if length < MIN_LENGTH:
            return entries, at, True
        if length > size - at - START:
            break
        at += START + length
        entries += 1
    return entries, at, False


@kernel
def walk(data, positions, magics):
    """Fills positions int64[entries + 1] and magics int8[entries]; the entries are those that `count` found."""
    at = 0
    for i in range(len(magics)):
        positions[i] = at
        magics[i] = get_i8(data, at + MAGIC_AT)
        at += START + int(get_i32(data, at + LENGTH_AT))
    positions[len(magics)] = at
