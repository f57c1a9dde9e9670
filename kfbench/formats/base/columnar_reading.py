"""Reading columnar batches: columns outside the codec, the codec, then where each payload is."""

from functools import cached_property
from typing import Final

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.codecs import Allowance, codec_of
from kfbench.formats.base.damage import Damage, OnError
from kfbench.formats.base.index import NO_HEADERS, Index, header_room
from kfbench.kernels.formats.columnar import columns, reading, record_headers
from kfbench.kernels.wire import status
from kfbench.records import Records

NOTHING: Final = np.zeros(0, np.uint8)


class ColumnarReading:
    """A log of magic 4 on its way to columns."""

    def __init__(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, check_crcs: bool = True
    ) -> None:
        self.data, self.positions, self.allowance, self.check_crcs = data, positions, allowance, check_crcs
        self.damage = Damage(positions, on_error)
        batches = len(positions) - 1
        self.counts = np.empty(batches, np.int64)
        records, largest, self.two_clocks, self.any_headers = reading.survey(
            data, positions, allowance.limits.batch_records, allowance.log_records, check_crcs, self.counts,
            self.damage.state,
        )  # fmt: skip
        room = records + columns.GROUP  # kernels write whole groups
        self.columns, self.scratch = Index(room, self.two_clocks), np.empty(largest + columns.GROUP, np.int64)
        self.header_bounds = np.empty(room + 1 if self.any_headers else 0, np.int64)
        self.bounds = np.empty(batches + 1, np.int64)
        self.header_columns, self.totals = np.empty(batches, np.int64), np.empty(batches, np.int64)
        self.codecs = np.empty(batches, np.int8)
        self.source, self.bodies, self.ends = data, self.header_columns, positions[1:]
        self.plain_starts: Int64 | None = None
        self.headers, self.header_data = NO_HEADERS, data
        self.header_bytes_left = allowance.log_header_bytes

    @cached_property
    def header_totals(self) -> Int64:
        """Bytes of all headers of each batch."""
        return np.zeros(len(self.counts), np.int64)

    @cached_property
    def made(self) -> Int64:
        """Bytes of header values of each batch that are written nowhere."""
        return np.zeros(len(self.counts), np.int64)

    def _index(self, with_payload: bool) -> int:
        """Reads all that is outside the codec but for the headers' own columns; gives its bytes."""
        limits = self.allowance.limits
        most = limits.field_bytes, limits.batch_headers, self.allowance.log_headers
        plain_bytes: int = reading.index(
            self.data, self.positions, self.counts, most, self.check_crcs, self.two_clocks, with_payload, self.scratch,
            self.damage.state, self.columns.columns, self.header_bounds, self.header_columns, self.totals, self.codecs,
            self.bounds,
        )  # fmt: skip
        return plain_bytes

    def read(self) -> None:
        """Reads all. Columns come before the codec, so that the payload of damaged ones is not decompressed."""
        self._index(with_payload=True)
        if self.any_headers or np.count_nonzero(self.codecs):
            self._read_payload()
        self._cut()

    def _read_payload(self) -> None:
        broken = len(self.damage)
        self._index_headers()
        if np.count_nonzero(self.codecs):
            self._decompress()
        self._place()
        if len(self.damage) > broken:  # they have rows among the others': all is read anew without them
            self._index(with_payload=False)
            self._index_headers()
            self._place()

    def _cut(self) -> None:
        n = int(self.bounds[-1])
        self.columns.cut(n)
        self.header_bounds = self.header_bounds[: n + 1] if self.any_headers else np.zeros(n + 1, np.int64)
        self.allowance.log_records -= n
        self.allowance.log_headers -= int(self.header_bounds[n])
        self.allowance.log_header_bytes = self.header_bytes_left

    def _decompress(self) -> None:
        """Makes the payloads plain; none grows beyond what the lengths of its batch add up to."""
        stops = np.where(self.damage.state == status.SOUND, self.ends, self.bodies)
        self.source, self.plain_starts, self.ends = self.damage.plain(
            self.data, self.bodies, stops, self.codecs, codec_of, self.allowance, most=self.totals + self.header_totals
        )

    @property
    def starts(self) -> Int64:
        """Where the plain payload of each batch begins in `source`."""
        return self.bodies if self.plain_starts is None else self.plain_starts

    def read_columns(self) -> int:
        """Reads offsets, times and lengths; gives the bytes of all that was looked at."""
        plain_bytes = self._index(with_payload=False)
        self._cut()
        return plain_bytes

    def read_prefix(self) -> None:
        """Reads all that lies outside the codec; the size of a plain payload is held to the lengths, and the padding of
        its templates is looked at."""
        self._index(with_payload=False)
        self._index_headers()
        self._cut()

    def _index_headers(self) -> None:
        if self.any_headers:
            limits, headers = self.allowance.limits, int(self.header_bounds[self.bounds[-1]])
            # Of all headers at once, untouched beyond the largest batch's: to find that takes longer than to read it
            values = np.empty(max(len(self.scratch), headers + columns.GROUP), np.int64)
            room = values, np.empty(2 * record_headers.MOST_VALUES, np.int64)
            self.headers, self.bodies = header_room(headers), self.header_columns.copy()
            self.out_bytes, self.most_digits, self.header_bytes_left = record_headers.index(
                self.data, self.positions, self.bounds, self.header_bounds, self.header_columns, self.totals,
                limits.field_bytes, self.allowance.log_header_bytes, room, self.damage.state, self.codecs, self.bodies,
                self.header_totals, self.made, self.headers,
            )  # fmt: skip

    def _place(self) -> None:
        reading.place(
            self.data, self.positions, self.source, self.starts, self.ends, self.bounds, self.totals,
            self.header_totals, self.damage.state, self.columns.columns,
        )  # fmt: skip
        if not self.any_headers:
            return
        self.header_data, out, digits = self.source, NOTHING, NOTHING
        if size := self.out_bytes:  # values that are written nowhere: all of the log go into one buffer
            if self.damage:  # batches may claim more than there is room for, and only now it is known which are sound
                size = int((self.header_totals + self.made)[self.damage.state == status.SOUND].sum())
            out = np.empty(size + record_headers.SLACK, np.uint8)
            digits = np.empty(min(self.most_digits, size) + record_headers.SLACK, np.uint8)
            self.header_data = out[:size]
        record_headers.place(
            self.data, self.source, self.starts, self.ends, self.bounds, self.header_bounds, self.header_columns,
            self.totals, self.made, digits, self.damage.state, self.headers, out,
        )  # fmt: skip

    def records(self) -> Records:
        return self.columns.records(self.source, self.header_bounds, self.headers, self.header_data)

    @property
    def sound(self) -> Int64:
        return np.flatnonzero(self.damage.state == status.SOUND)

    @property
    def sound_bounds(self) -> Int64:
        return np.append(self.bounds[:-1][self.damage.state == status.SOUND], self.bounds[-1])
