"""Read columnar batches in three steps: uncompressed columns, decompression, positions of keys and values."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import BATCH
from kfbench.codecs import Allowance
from kfbench.formats.base.damage import BatchDamage, Bodies, OnError
from kfbench.formats.base.reading import NO_HEADERS, Index, Reading, ReadScope, header_room
from kfbench.kernels.wire import status
from kfbench.records import Records
from kfbench.research.columnar.kernels import (
    batch_header,
    columns,
    header_reading,
    reading,
    templates,
)

NOTHING: Final = np.zeros(0, np.uint8)


class ColumnarReading(Reading):
    """Reader of columnar batches (magic 5). Call `read`."""

    def __init__(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, check_crcs: bool = True
    ) -> None:
        self.data, self.positions, self.allowance, self.check_crcs = data, positions, allowance, check_crcs
        self.damage = BatchDamage(positions, on_error)
        batches = len(positions) - 1
        self.counts = np.empty(batches, np.int64)
        records, largest, self.two_clocks, self.any_headers = reading.survey(
            data, positions, allowance.limits.batch_records, allowance.log_records, check_crcs, self.counts,
            self.damage.state,
        )  # fmt: skip
        room = records + columns.GROUP  # kernels write whole groups
        self.index, self.scratch = Index(room, self.two_clocks), np.empty(largest + columns.GROUP, np.int64)
        self.header_bounds = np.empty(room + 1 if self.any_headers else 0, np.int64)
        self.bounds = np.empty(batches + 1, np.int64)
        self.header_columns, self.totals = np.empty(batches, np.int64), np.empty(batches, np.int64)
        # Per batch: bytes of all headers, and of the header values that templates produce and the log does not store.
        self.header_totals, self.template_bytes = np.zeros(batches, np.int64), np.zeros(batches, np.int64)
        self.codecs = np.empty(batches, np.int8)
        self.source, self.bodies, self.ends = data, self.header_columns, positions[1:]
        self.plain_starts: Int64 | None = None
        self.headers, self.header_data = NO_HEADERS, data
        self.header_bytes_left = allowance.log_header_bytes
        self.index_bytes = 0
        self.has_payload = False

    def _read_index(self, with_payload: bool) -> None:
        """Read everything that no codec covers, except for the columns of headers."""
        limits = self.allowance.limits
        most = limits.field_bytes, limits.batch_headers, self.allowance.log_headers
        self.index_bytes = reading.index(
            self.data, self.positions, self.counts, most, self.check_crcs, self.two_clocks, with_payload, self.scratch,
            self.damage.state, self.index.columns, self.header_bounds, self.header_columns, self.totals, self.codecs,
            self.bounds,
        )  # fmt: skip

    def read(self, part: ReadScope) -> None:
        """Read offsets, timestamps and lengths, and for a part beyond "metadata" the other columns or everything.

        Columns are read first, so that the payload of a batch with damaged columns is not decompressed. "columns" is
        all that no codec covers. It checks the size of an uncompressed payload and the padding of its templates (text
        with placeholders), too.
        """
        self.has_payload = part == "all"
        self._read_index(with_payload=self.has_payload)
        if part == "columns":
            self._read_headers()
        elif self.has_payload and (self.any_headers or np.count_nonzero(self.codecs)):
            self._read_payload()
        n = int(self.bounds[-1])
        self.index.cut(n)
        self.header_bounds = self.header_bounds[: n + 1] if self.any_headers else np.zeros(n + 1, np.int64)
        self.allowance.log_records -= n
        self.allowance.log_headers -= int(self.header_bounds[n])
        self.allowance.log_header_bytes = self.header_bytes_left

    def _read_payload(self) -> None:
        damaged_before = len(self.damage)
        self._read_headers()
        if np.count_nonzero(self.codecs):
            self._decompress()
        self._place_payload()
        if len(self.damage) > damaged_before:  # their records are among the others: read again without them
            self._read_index(with_payload=False)
            self._read_headers()
            self._place_payload()

    def _decompress(self) -> None:
        """Decompress the payloads.

        A payload may not grow beyond the sum of the lengths that its batch's columns state.
        """
        stops = np.where(self.damage.state == status.SOUND, self.ends, self.bodies)
        bodies, limit_bytes = Bodies(self.data, self.bodies, stops, self.codecs), self.totals + self.header_totals
        self.source, self.plain_starts, self.ends = self.damage.plain(bodies, self.allowance, limit_bytes=limit_bytes)

    @property
    def starts(self) -> Int64:  # type: ignore[override]
        """The byte of `source` at which the uncompressed payload of each batch begins, int64[batches]."""
        return self.bodies if self.plain_starts is None else self.plain_starts

    def _read_headers(self) -> None:
        if self.any_headers:
            limits, headers = self.allowance.limits, int(self.header_bounds[self.bounds[-1]])
            # Room for all headers at once: finding the largest batch would take longer, and untouched memory is free.
            values = np.empty(max(len(self.scratch), headers + columns.GROUP), np.int64)
            room = values, np.empty(2 * header_reading.MOST_VALUES, np.int64)
            self.headers, self.bodies = header_room(headers), self.header_columns.copy()
            self.out_bytes, self.most_digits, self.header_bytes_left = header_reading.index(
                self.data, self.positions, self.bounds, self.header_bounds, self.header_columns, self.totals,
                limits.field_bytes, self.allowance.log_header_bytes, room, self.damage.state, self.codecs, self.bodies,
                self.header_totals, self.template_bytes, tuple(self.headers),
            )  # fmt: skip

    def _place_payload(self) -> None:
        """Find the position of each key, value and header in `source`.

        Build the header values that templates produce.
        """
        reading.place(
            self.data, self.positions, self.source, self.starts, self.ends, self.bounds, self.totals,
            self.header_totals, self.damage.state, self.index.columns,
        )  # fmt: skip
        if not self.any_headers:
            return
        self.header_data, out, digits = self.source, NOTHING, NOTHING
        if size := self.out_bytes:  # one buffer for all values of the log that templates produce
            if self.damage:  # damaged batches may claim a larger size than they have, so count only the others
                size = int((self.header_totals + self.template_bytes)[self.damage.state == status.SOUND].sum())
            out = np.empty(size + templates.SLACK, np.uint8)
            digits = np.empty(min(self.most_digits, size) + templates.SLACK, np.uint8)
            self.header_data = read_only(out[:size])
        header_reading.place(
            self.data, self.source, self.starts, self.ends, self.bounds, self.header_bounds, self.header_columns,
            self.totals, self.template_bytes, digits, self.damage.state, tuple(self.headers), out,
        )  # fmt: skip

    def records(self) -> Records:
        return self.index.records(self.source, self.header_bounds, self.headers, self.header_data)

    def rows(self, records: Records, bounds: Int64) -> NDArray[np.void]:
        """Return the fields of each undamaged batch as one row (dtype `BATCH`).

        `canonical` is not set, because it depends on the encoder: `ColumnarFormat._rows` sets it.
        """
        rows = np.zeros(len(self.sound), BATCH)
        batch_header.describe(
            self.data, self.positions, self.starts, self.ends, bounds, self.index.created, self.sound, rows
        )
        return rows

    @property
    def is_metadata(self) -> bool:
        return not self.has_payload

    @property
    def plain_bytes(self) -> int:
        return self.index_bytes
