"""The content of one log segment for `kfbench inspect`: batches, damage and, on request, records."""

import base64
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from kfbench.batches import DecodedLog
from kfbench.errors import CorruptLog, KfbenchError
from kfbench.log.segment import read_log
from kfbench.log.tail import CUT_OFF, is_last, names_in_folder_of, nothing_in, tail_kind
from kfbench.text import counted, text_table

# `ControlRecordType`: the second int16 of a control record's key.
CONTROL_TYPES: Final[Mapping[int, str]] = {
    0: "abort",
    1: "commit",
    2: "leader change",
    3: "snapshot header",
    4: "snapshot footer",
    5: "kraft version",
    6: "kraft voters",
}
TITLES: Final = "position bytes magic codec offsets records newest(UTC) epoch producer flags".split()
NUMBERS: Final = {TITLES.index(title) for title in "position bytes magic records epoch".split()}
SHOWN_CHARACTERS: Final = 48  # of each key, value or header value
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Damage:
    """Bytes of a file that could not be read: from `position` to the next batch, or to the end."""

    position: int
    size_bytes: int
    field: str
    promise: str

    @classmethod
    def of(cls, error: CorruptLog, size_bytes: int) -> Self:
        return cls(position=error.position, size_bytes=size_bytes, field=error.field, promise=error.promise)

    def words(self, unit: str = "byte") -> str:
        """Return the place, the field and the broken promise. unit: the unit of positions."""
        where = f"batch at byte {self.position}" if unit == "byte" else f"{unit} {self.position}"
        return f"{where}: {self.field}: {self.promise}"


def damage_of(log: DecodedLog, size_bytes: int) -> tuple[Damage, ...]:
    """Return the damage of a log of `size_bytes` that was read with on_error="skip", in the file's order."""
    starts = {*log.batch_rows["position"].tolist(), *(error.position for error in log.errors)}
    ends = dict(pairwise([*sorted(starts), size_bytes - log.trailing_bytes]))
    errors = sorted(log.errors, key=lambda error: error.position)
    return tuple(Damage.of(error, ends[error.position] - error.position) for error in errors)


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The content of a segment. to_text(): a table for people; to_dict(): plain values for JSON.

    trailing_bytes: the size of an incomplete batch that a broker is writing. allocated_bytes: the number of zeros after
    the last batch. Neither is damage (kfbench.log.tail).
    """

    path: str
    size_bytes: int
    log: DecodedLog
    with_records: bool
    damage: tuple[Damage, ...] = ()
    trailing_bytes: int = 0
    allocated_bytes: int = 0

    @property
    def unreadable(self) -> str | None:
        """The reason why the segment has no batch; None: it has a batch, or `damage` gives the reason."""
        if self.damage or len(self.log):
            return None
        return nothing_in(self.size_bytes - self.allocated_bytes)

    def to_dict(self) -> dict[str, Any]:
        """Return the batches in the file's order. Keys and values: see `json_value`."""
        batches = self._batches()
        if self.with_records:
            for batch, span in zip(batches, self._record_ranges(), strict=True):
                batch["records"] = [self._record(i) for i in span]
        return {
            "file": self.path,
            "size_bytes": self.size_bytes,
            "batch_count": len(self.log),
            "record_count": len(self.log.records),
            "magics": {str(magic): count for magic, count in self._counts("magic").items()},
            "codecs": self._counts("codec"),
            "damaged": [asdict(each) for each in self.damage],
            "trailing_bytes": self.trailing_bytes,
            "allocated_bytes": self.allocated_bytes,
            "batches": batches,
        }

    def to_text(self) -> str:
        """Return a summary and one line per batch and per damage, in the file's order.

        with_records: the records of a batch follow its line.
        """
        rows: list[tuple[int, Sequence[str]]] = []
        for batch, span in zip(self._batches(), self._record_ranges(), strict=True):
            rows.append((batch["position"], self._batch_cells(batch, span)))
            if self.with_records:
                rows += [(batch["position"], ("", self._record_text(i))) for i in span]
        for each in self.damage:
            remark = f"DAMAGED, {each.size_bytes:,} bytes left out: {each.field}: {each.promise}"
            rows.append((each.position, (str(each.position), remark)))
        if rest := self._tail_summary:
            at = self.size_bytes - self.trailing_bytes - self.allocated_bytes
            rows.append((at, (str(at), rest)))
        rows.sort(key=lambda row: row[0])
        table = text_table([TITLES, *(cells for _, cells in rows)], right=NUMBERS) if rows else []
        return "\n".join([*self._summary(), "", *table]).rstrip()

    def _batches(self) -> list[dict[str, Any]]:
        return [{str(name): value for name, value in row.items()} for row in self.log.batches.to_dict("records")]

    def _record_ranges(self) -> Iterator[range]:
        return (range(first, last) for first, last in pairwise(self.log.bounds.tolist()))

    def _counts(self, column: str) -> dict[Any, int]:
        return dict(sorted(Counter(self.log.batches[column].tolist()).items()))

    def _summary(self) -> Iterable[str]:
        yield (
            f"{self.path}: {counted(self.size_bytes, 'byte')}, {counted(len(self.log), 'batch')}, "
            f"{counted(len(self.log.records), 'record')}"
        )
        if len(self.log):
            kinds = [f"magic {magic} ({number:,})" for magic, number in self._counts("magic").items()]
            kinds += [f"{codec} ({number:,})" for codec, number in self._counts("codec").items()]
            yield "batches by kind: " + ", ".join(kinds)
        times = self.log.records.timestamps_ms[self.log.records.timestamps_ms >= 0]
        if len(times):
            yield f"times: {utc(int(times.min()))} to {utc(int(times.max()))} UTC"
        yield f"damage: {self._damage_summary}"
        if rest := self._tail_summary:
            yield f"at the end: {rest}"

    @property
    def _damage_summary(self) -> str:
        if self.damage:
            left_out = counted(sum(each.size_bytes for each in self.damage), "byte")
            return f"{left_out} left out in {counted(len(self.damage), 'place')}"
        if not self.trailing_bytes:
            return "none"
        # A truncated copy looks the same as a segment that a broker is writing.
        return f"none before byte {self.size_bytes - self.trailing_bytes:,}" if len(self.log) else str(self.unreadable)

    @property
    def _tail_summary(self) -> str:
        if self.allocated_bytes:
            return f"{counted(self.allocated_bytes, 'byte')} of zeros, allocated ahead"
        if self.trailing_bytes == self.size_bytes and self.log.errors:  # no log: see `unreadable`
            return ""
        if self.trailing_bytes:
            return f"{counted(self.trailing_bytes, 'byte')} of an incomplete batch, being written or cut off"
        return ""

    def _batch_cells(self, batch: Mapping[str, Any], span: range) -> list[str]:
        producer = "-"
        if batch["producer_id"] >= 0:
            producer = f"{batch['producer_id']}/{batch['producer_epoch']}"
            if batch["base_sequence"] >= 0:
                producer += f" {batch['base_sequence']}..{batch['last_sequence']}"
        flags = ["append time"] if batch["timestamp_type"] == "append" else []
        flags += ["transactional"] if batch["is_transactional"] else []
        flags += [f"control: {self._control_type(span)}"] if batch["is_control"] else []
        flags += [f"delete horizon {utc(batch['delete_horizon_ms'])}"] if batch["delete_horizon_ms"] >= 0 else []
        flags += [] if batch["canonical"] else ["not canonical"]
        return [
            str(batch["position"]),
            str(batch["size_bytes"]),
            str(batch["magic"]),
            batch["codec"],
            f"{batch['base_offset']}..{batch['last_offset']}",
            str(batch["count"]),
            utc(batch["max_timestamp_ms"]),
            str(batch["partition_leader_epoch"]) if batch["partition_leader_epoch"] >= 0 else "-",
            producer,
            ", ".join(flags),
        ]

    def _control_type(self, span: range) -> str:
        key = self.log.records.key(span[0]) if span else None
        if key is None or len(key) < 4:
            return "unknown"
        number = int.from_bytes(key[2:4], "big", signed=True)
        return CONTROL_TYPES.get(number, f"unknown type {number}")

    def _record(self, i: int) -> dict[str, Any]:
        records = self.log.records
        return {
            "offset": int(records.offsets[i]),
            "timestamp_ms": int(records.timestamps_ms[i]),
            "key": json_value(records.key(i)),
            "value": json_value(records.value(i)),
            "headers": [[name, json_value(value)] for name, value in records.headers(i)],
        }

    def _record_text(self, i: int) -> str:
        records = self.log.records
        words = [str(records.offsets[i]), utc(int(records.timestamps_ms[i]))]
        words += [f"key {preview(records.key(i))}", f"value {preview(records.value(i))}"]
        if headers := records.headers(i):
            words.append("headers " + ", ".join(f"{name}={preview(value)}" for name, value in headers))
        return "  ".join(words)


def inspect(path: str | os.PathLike[str], records: bool = False) -> Inspection:
    """Read a segment of any magics, damaged or not. records: show the records too.

    Raises KfbenchError if there is no such file, or it is a folder.
    """
    size_bytes = segment_size(path)
    log = read_log(path, on_error="skip")
    ending = _ending(path, size_bytes, log)
    return Inspection(path=os.fspath(path), size_bytes=size_bytes, log=log, with_records=records, **ending._asdict())


class _Ending(NamedTuple):
    """The damage of a segment and the bytes after its last batch. The fields are those of `Inspection`."""

    damage: tuple[Damage, ...]
    trailing_bytes: int = 0
    allocated_bytes: int = 0


def _ending(path: str | os.PathLike[str], size_bytes: int, log: DecodedLog) -> _Ending:
    trailing_bytes = log.trailing_bytes
    # If no byte is readable, `Inspection.unreadable` gives the reason.
    damage = damage_of(log, size_bytes) if trailing_bytes < size_bytes else ()
    is_lost = bool(damage) and damage[-1].position + damage[-1].size_bytes == size_bytes
    end = damage[-1].position if is_lost else size_bytes - trailing_bytes
    if end == size_bytes:
        return _Ending(damage)
    try:
        with FileIO(os.fspath(path)) as file:
            kind = tail_kind(file, end, size_bytes - end, is_last(Path(path).name, names_in_folder_of(path)))
    except OSError as error:
        raise KfbenchError(f"{os.fspath(path)}: {error.strerror}") from None
    if kind == "zeros":
        return _Ending(damage[:-1] if is_lost else damage, allocated_bytes=size_bytes - end)
    if is_lost or kind == "open" or not end:
        return _Ending(damage, trailing_bytes)
    return _Ending((*damage, Damage(position=end, size_bytes=trailing_bytes, field="length", promise=CUT_OFF)))


def segment_size(path: str | os.PathLike[str]) -> int:
    """Return the size of a segment file. Raise KfbenchError if there is no such file, or it is a folder."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise KfbenchError(f"{os.fspath(path)}: {error.strerror}") from None
    if stat.S_ISDIR(status.st_mode):
        raise KfbenchError(f"{os.fspath(path)}: a folder; a segment file in it is wanted (00000000000000000000.log)")
    return status.st_size


def json_value(data: bytes | None) -> str | dict[str, str] | None:
    """Return bytes as a JSON value, without loss: text, or {"base64": ...} if they are not UTF-8."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def preview(data: bytes | None) -> str:
    """Return the size of bytes, and the first SHOWN_CHARACTERS of their text or hexadecimal form."""
    if data is None:
        return "null"
    try:
        text = repr(data.decode()) if b"\0" not in data else data[:SHOWN_CHARACTERS].hex()
    except UnicodeDecodeError:
        text = data[:SHOWN_CHARACTERS].hex()
    if len(text) > SHOWN_CHARACTERS:
        text = text[: SHOWN_CHARACTERS - 3] + "..."
    return f"{len(data)} B {text}" if data else "0 B"


def utc(timestamp_ms: int) -> str:
    """Return milliseconds since 1970 as a date in UTC, or as a number beyond the range of dates. -1 is "-"."""
    if timestamp_ms == -1:
        return "-"
    try:
        return f"{EPOCH + timedelta(milliseconds=timestamp_ms):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    except OverflowError:
        return f"{timestamp_ms} ms"
