"""The keys and values of headers, found in the plain payload of columnar batches; templates are expanded."""

import numpy as np

from kfbench.kernels.formats.columnar.header_forms import BY_POSITION, ONE
from kfbench.kernels.formats.columnar.header_reading import Headers
from kfbench.kernels.formats.columnar.template_reading import expand
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_u8, move
from kfbench.kernels.wire import status


@leaf
def _expand_templates(data, source, at, n, first, stride, made, digits, headers, out, to):
    """Write the values of a batch's templates to out[to:to + made]. Return whether the digits of all are padded.

    Args:
        data uint8[], source uint8[]: the log, and where the plain payload lies
        at: where the batch's header bytes begin in `source`
        n: number of records
        first, stride uint64: the first header, and the headers per record
        made: bytes of the batch's templates
        digits uint8[]: scratch
        headers: the Headers, whose starts count from to + made
        out uint8[], to: where the values are written, the last position first
    """
    base, is_sound = to + made, True
    for k in range(np.uint64(1), stride + ONE):
        h = first + stride - k
        if headers.value_starts[h] < 0:
            payload = at + headers.key_starts[h] + np.int64(headers.key_lengths[h])
            length, has_padding = expand(data, -1 - headers.value_starts[h], n, source, payload, out, to, digits)
            is_sound &= has_padding
            headers.value_starts[h] = to - base
            to += n * length
    return is_sound


@kernel
def place(data, source, starts, ends, bounds, header_bounds, header_columns, totals, made, digits, state, headers,
          out):  # fmt: skip
    """Turn starts in header bytes into positions: of keys in `source`, of values there or, if `out` has room, in it.

    A batch that breaks a promise gets its state.

    Args:
        source uint8[], starts int64[batches], ends int64[batches]: source[starts[b]:ends[b]] is the plain payload of b
        digits uint8[]: scratch for as many digits as `header_reading.index` returned, and SLACK
        out uint8[]: for the templates and the header bytes of all sound batches, and SLACK
        data, bounds, header_bounds, header_columns, totals, made, state, headers: as in `header_reading.index`
    """
    found = Headers(*headers)
    to = np.int64(0)
    for b in range(len(state)):
        record, n = bounds[b], bounds[b + 1] - bounds[b]
        first, stop = np.uint64(header_bounds[record]), np.uint64(header_bounds[bounds[b + 1]])
        if state[b] != status.SOUND or first == stop:
            continue
        at = starts[b] + totals[b]
        base, stride = at, np.uint64(header_bounds[record + 1]) - first
        if len(out):
            base = to + made[b]
            if made[b] and not _expand_templates(data, source, at, n, first, stride, made[b], digits, found, out, to):
                state[b] = status.PADDING
            move(out, base, source, at, ends[b] - at)
            to = base + ends[b] - at
        if n > 1 and get_u8(data, header_columns[b]) == BY_POSITION:
            for h in range(first, first + stride):
                found.key_starts[h] += at
            for h in range(first + stride, stop):
                found.key_starts[h] = found.key_starts[h - stride]
        else:
            for h in range(first, stop):
                found.key_starts[h] += at
        for h in range(first, stop):
            found.value_starts[h] += base
