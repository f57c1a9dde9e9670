"""Find the keys and values of record headers in the uncompressed payload, and expand hex templates to values.

A hex template stores values of one length that differ only in hex digits. It has the shared characters once.
"""

import numpy as np

from kfbench.kernels.formats.columnar.columns import U1
from kfbench.kernels.formats.columnar.header_forms import BY_POSITION
from kfbench.kernels.formats.columnar.header_reading import Headers
from kfbench.kernels.formats.columnar.template_reading import expand
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_u8, move
from kfbench.kernels.wire import status


@leaf
def _expand_templates(data, source, at, n, first, stride, template_bytes, digits, headers, out, to):
    """Expand the hex templates of a batch to out[to:to + template_bytes]. Return whether all padding bits are 0.

    Args:
        data uint8[], source uint8[]: the log, and the buffer with the uncompressed payload
        at: position of the header bytes of the batch in `source`
        n: number of records
        first, stride uint64: the first header, and the number of headers per record
        template_bytes: size of the expanded values in bytes
        digits uint8[]: scratch
        headers: the Headers, whose starts are relative to to + template_bytes
        out uint8[], to: the values are written from `to` on, the last header position first
    """
    base, is_sound = to + template_bytes, True
    for k in range(np.uint64(1), stride + U1):
        h = first + stride - k
        if headers.value_starts[h] < 0:
            payload = at + headers.key_starts[h] + np.int64(headers.key_lengths[h])
            length, has_padding = expand(data, -1 - headers.value_starts[h], n, source, payload, out, to, digits)
            is_sound &= has_padding
            headers.value_starts[h] = to - base
            to += n * length
    return is_sound


@kernel
def place(data, source, starts, ends, bounds, header_bounds, header_columns, totals, template_bytes, digits, state,
          headers, out):  # fmt: skip
    """Turn the starts of header keys and values into absolute positions in `source`.

    They were relative to the header bytes of each batch. If `out` is not empty, values get positions in `out` instead.
    A damaged batch gets its state.

    Args:
        source uint8[], starts, ends int64[batches]: source[starts[b]:ends[b]] is the uncompressed payload of batch b
        digits uint8[]: scratch with room for the `max_digits` of `header_reading.index`, and SLACK
        out uint8[]: room for the template values and header bytes of all undamaged batches, and SLACK; or empty
        data, bounds, header_bounds, header_columns, totals, template_bytes, state, headers: as in
            `header_reading.index`
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
            base = to + template_bytes[b]
            if template_bytes[b] and not _expand_templates(
                data, source, at, n, first, stride, template_bytes[b], digits, found, out, to
            ):
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
