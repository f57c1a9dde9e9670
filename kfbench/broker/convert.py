"""Convert batches to another format: down for an old reader, or up for the log.

Down-conversion follows Kafka's broker for an old fetch request (`RecordsUtil.downConvert`, until Kafka 4.0):
- Below magic 2 control batches and empty batches are dropped, headers and producer fields are lost, zstd is refused.
- Plain (uncompressed) batches that become v0 or v1 lose the records before `first_offset`. v0 and v1 store each plain
  record as a separate message, and some versions of librdkafka rely on this.
- Below magic 2 a compressed set begins with the offset of its first record. Between magic 2 and 3 the range of offsets
  in the batch header is kept.
- Log append time is kept if the target format has it. Below magic 2 it replaces the producer's times.

Up-conversion follows KIP-724: a compressed set becomes one batch, and each plain message becomes one batch. So replicas
that convert independently have equal batches. Everything that the target format can carry is kept.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64, rows_joined
from kfbench.batches import APPEND_TIME, NO_FIELDS, BatchFields, DecodedLog, EncodedLog, chunks
from kfbench.broker.source import bytes_of, find, of_magic
from kfbench.broker.work import CREATE_TIMES, NewBatches, NewLog, Work, build
from kfbench.codecs import CODECS, Allowance, Dictionary, ZstdDictionary, codec_names
from kfbench.errors import CorruptLog, InvalidRecords, Refused, WouldLose
from kfbench.formats import Entries, Format
from kfbench.kernels.formats import batch_description
from kfbench.kernels.wire.frames import MAGIC_AT
from kfbench.limits import Limits
from kfbench.log.dictionaries import add_stored
from kfbench.log.writing import BatchEncoding, BatchEncodings, chained, check_room, runs
from kfbench.records import Records

HEADER_BYTES: Final = MAGIC_AT + 1  # offset, length and everything up to the magic
_V0, _V1, _V2 = layouts.V0_MESSAGE, layouts.V1_MESSAGE, layouts.V2_HEADER


@dataclass(frozen=True, kw_only=True)
class ConvertResult(NewLog):
    """A converted log.

    Args:
        data: the bytes, uint8[size].
        positions: the byte position of each batch, and the end, int64[batches + 1]. Dropped batches have none.
        converted_records: number of records in batches that were rebuilt (Kafka's `numRecordsConverted`).
    """

    converted_records: int


def convert(
    log: EncodedLog | Any,
    to: Format | str,
    *,
    fmt: Format | str | None = None,
    codec: str | None = None,
    level: int | None = None,
    first_offset: int = 0,
    keep_older: bool = False,
    lossy: bool = False,
    limits: Limits | None = None,
    dictionaries: Iterable[Dictionary] = (),
) -> ConvertResult:
    """Convert a log to another format. Batches that already have it are copied. An incomplete last batch is left out.

    Args:
        to: the format to write.
        fmt: the log's format; None: found by the magic of each batch.
        codec, level: codec and level of rebuilt batches; None: each keeps its codec, but zstd loses its dictionary.
        first_offset: leave out records before this offset in uncompressed batches that become v0 or v1.
        keep_older: True: also copy batches with a smaller magic than `to`, as Kafka's down-conversion does. A reader of
            `to` can read them.
        lossy: leave out properties that the target cannot carry, and count them in `work.losses` (see
            `EncodedLog.losses`). An offset range wider than the records is not a loss.
        dictionaries: zstd dictionaries, in addition to those that stand in the log.

    Raises:
        CorruptLog: damage, or a result whose size without a codec would exceed `limits.log_bytes` of the log.
        Refused: UNSUPPORTED_COMPRESSION_TYPE, UNSUPPORTED_FOR_MESSAGE_FORMAT.
        WouldLose, IllegalCombination: the target cannot carry something, or lacks the codec.
    """
    conversion = Conversion(
        to=find(to),
        fmt=None if fmt is None else find(fmt),
        codec=codec,
        level=level,
        first_offset=first_offset,
        keep_older=keep_older,
        lossy=lossy,
    )
    data = bytes_of(log)
    entries = Entries.of(data)
    entries.errors("raise")
    allowance = Allowance.of(len(data), limits, dictionaries)
    for error in add_stored(data, entries.positions, entries.magics, allowance).values():
        raise error
    pieces = (
        piece
        for lo, hi in chunks(np.diff(entries.positions))
        for piece in conversion.of(data, entries.positions[lo : hi + 1], entries.magics[lo:hi], allowance)
    )
    return _join(pieces, int(entries.positions[-1]))


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """A conversion with the options of `convert`. The method `of` applies it to some batches.

    check: also decode the batches that are only copied, to find their damage.
    """

    to: Format
    fmt: Format | None = None
    codec: str | None = None
    level: int | None = None
    first_offset: int = 0
    keep_older: bool = False
    lossy: bool = False
    check: bool = False
    _has_codec: NDArray[np.bool_] = field(init=False)  # by codec number

    def __post_init__(self) -> None:
        if self.codec is not None:
            self.to.check_codec(self.codec, self.level)
        has_codec = np.array([name in self.to.capabilities.codecs for name in codec_names()])
        object.__setattr__(self, "_has_codec", has_codec)

    def of(
        self, data: Bytes, positions: Int64, magics: NDArray[np.int8], allowance: Allowance, at: int = 0
    ) -> Iterator[ConvertResult]:
        """Convert some batches, and yield the results in pieces.

        A piece of unchanged batches is a view of `data`.

        Args:
            data: the bytes of these batches.
            positions: the byte position of each batch in `data`, and the end, int64[batches + 1].
            magics: the magic of each batch, int8[batches].
            at: the byte position of `data` in the whole log, for errors.
        """
        stays = self.stays(data, positions, magics)
        for first, end in runs(np.where(stays & (not self.check), -1, 2 * magics.astype(np.int64) + stays)):
            cuts, magic = positions[first : end + 1], int(magics[first])
            part, start = data[cuts[0] : cuts[-1]], at + int(cuts[0])
            if not stays[first]:
                yield self._rewrite(part, cuts - cuts[0], magic, allowance, start)
                continue
            if self.check:
                self._read(part, cuts - cuts[0], magic, allowance, start)
            work = Work(untouched=end - first, read_bytes=len(part), written_bytes=len(part))
            yield ConvertResult(data=part, positions=cuts - cuts[0], converted_records=0, work=work)

    def stays(self, data: Bytes, positions: Int64, magics: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return for each batch True if it needs no conversion, bool[batches]."""
        to, fmt = self.to, self.fmt
        if fmt is not None and not fmt.is_told_by_magic:
            return np.full(len(magics), fmt == to)
        if self.keep_older:
            newest = to.magic if to.is_told_by_magic else to.magic - 1
            return (magics >= 0) & (magics <= newest)
        if not to.is_told_by_magic:
            return np.zeros(len(magics), np.bool_)
        same: NDArray[np.bool_] = magics == to.magic
        if to.magic == 3 and fmt != to:
            # Attributes do not show if headers are shared, so a batch with tags counts as another format.
            features = to.features & layouts.V3_FEATURES_MASK
            high, low = (data[positions[:-1][same] + layouts.position(_V2, "attributes") + i] for i in (0, 1))
            found = (high.astype(np.int64) << 8 | low) & layouts.V3_FEATURES_MASK
            same[same] = (found == features) & (not features & layouts.TAGGED_BIT)
        return same

    def _read(self, data: Bytes, positions: Int64, magic: int, allowance: Allowance, at: int) -> DecodedLog:
        fmt = self.fmt or of_magic(magic, at)
        try:
            return fmt.decode_at(data, positions, "raise", allowance)
        except CorruptLog as error:
            raise error.at(at + error.position) from None

    def _rewrite(self, data: Bytes, positions: Int64, magic: int, allowance: Allowance, at: int) -> ConvertResult:
        before_bytes, to = allowance.log_bytes, self.to
        read = self._read(data, positions, magic, allowance, at)
        covered = None
        if to.magic < 2 and to.capabilities.timestamps and read.records.timestamps_ms is not read.create_timestamps_ms:
            covered = read.records.timestamps_ms != read.create_timestamps_ms
        given = _Batches(
            # Kafka's builder writes the times that readers see to v0 and v1. Later headers have room for both times.
            records=read.source_records if to.magic >= 2 else read.records,
            covered=covered,
            bounds=read.bounds,
            fields=_fields_for(_stored_fields(read, data, positions, magic), magic, to),
            codecs=_stored_codecs(read, data, positions, magic),
            positions=at + positions[:-1],
        )
        if to.magic < min(magic, 2):
            given = given.from_offset(self.first_offset)
        is_control = np.broadcast_to(given.fields.rows["is_control"], len(given))
        dropped = is_control & ("is_control" not in to.capabilities.batch_fields)
        number, kinds = self._kinds(given, dropped)
        check_room(to, given.records, given.bounds, given.fields, given.positions, allowance)
        log, recompressed_bytes = given.encode(number, kinds)
        allowance.built_bytes -= max(len(log.data), recompressed_bytes)
        losses = given.losses(to)
        if losses and not self.lossy:
            given.refuse(to)
        sizes, counts = np.diff(log.positions), np.diff(given.bounds)
        rewritten = int(np.count_nonzero(sizes))
        return ConvertResult(
            data=log.data,
            positions=log.positions[np.append(True, sizes > 0)],
            converted_records=int(counts[~dropped].sum()),
            work=Work(
                rewritten=rewritten,
                dropped=len(read) - rewritten,
                read_bytes=len(data),
                written_bytes=len(log.data),
                decompressed_bytes=before_bytes - allowance.log_bytes,
                recompressed_bytes=recompressed_bytes,
                losses=losses,
            ),
        )

    def _kinds(self, given: "_Batches", dropped: NDArray[np.bool_]) -> BatchEncodings:
        """Return format, codec and level for each batch. dropped bool[batches]: batches that the result leaves out."""
        codecs = np.where(given.codecs == ZstdDictionary.id, CODECS["zstd"].id, given.codecs)
        if self.codec is None:
            unknown = np.flatnonzero(~dropped & ~self._has_codec[codecs])
            if len(unknown):
                promise = "Down-conversion of zstandard-compressed batches is not supported"
                raise Refused("UNSUPPORTED_COMPRESSION_TYPE", int(given.positions[unknown[0]]), promise)
        else:
            codecs = np.full(len(given), codec_names().index(self.codec))
        codecs = np.where(dropped | (given.bounds[1:] == given.bounds[:-1]), 0, codecs)
        found = np.flatnonzero(np.bincount(codecs, minlength=len(codec_names())))
        number = np.zeros(len(codec_names()), np.int64)
        number[found] = np.arange(len(found))
        kinds = [
            BatchEncoding(fmt=self.to, codec=codec_names()[codec], level=self.level if codec else None)
            for codec in found
        ]
        return BatchEncodings(number[codecs], kinds)


@dataclass(frozen=True, kw_only=True)
class _Batches:
    """The decoded batches to convert.

    covered bool[records]: True where the result stores an append time instead of the producer's time; None: nowhere.
    """

    records: Records
    covered: NDArray[np.bool_] | None
    bounds: Int64
    fields: BatchFields
    codecs: NDArray[np.integer[Any]]
    positions: Int64

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def from_offset(self, offset: int) -> "_Batches":
        """Remove the records before `offset` from batches without a codec.

        Batches that lose all their records are removed, too.
        """
        counts = np.diff(self.bounds)
        wanted = (self.records.offsets >= offset) | np.repeat(self.codecs != 0, counts)
        if wanted.all():
            return self
        before = np.append(0, np.cumsum(wanted))[self.bounds]
        left = np.flatnonzero((np.diff(before) > 0) | (counts == 0))
        return _Batches(
            records=self.records.take(np.flatnonzero(wanted)),
            covered=None if self.covered is None else self.covered[wanted],
            bounds=before[np.append(0, left + 1)],
            fields=self.fields.take(left),
            codecs=self.codecs[left],
            positions=self.positions[left],
        )

    def part(self, first: int, end: int) -> "_Batches":
        start, stop = self.bounds[first], self.bounds[end]
        return _Batches(
            records=self.records.part(start, stop),
            covered=None if self.covered is None else self.covered[start:stop],
            bounds=self.bounds[first : end + 1] - start,
            fields=self.fields.part(first, end),
            codecs=self.codecs[first:end],
            positions=self.positions[first:end],
        )

    def encode(self, number: Int64, kinds: list[BatchEncoding]) -> NewBatches:
        """Encode the batches. Raise Refused for the first batch that the target format cannot store."""
        try:
            return build(self.records, self.bounds, self.fields, number, kinds, lossy=True)
        except InvalidRecords as error:
            if len(self) == 1:
                position = int(self.positions[0])
                raise Refused("UNSUPPORTED_FOR_MESSAGE_FORMAT", position, str(error)) from None
            for b in range(len(self)):
                self.part(b, b + 1).encode(number[b : b + 1], kinds)
            raise

    def losses(self, to: Format) -> dict[str, int]:
        covered = 0 if self.covered is None else int(np.count_nonzero(self.covered))
        return to.losses(self.records, self.bounds, self.fields) | ({CREATE_TIMES: covered} if covered else {})

    def refuse(self, to: Format) -> None:
        """Raise WouldLose with the position and the losses of the first batch that loses anything."""
        first, end = 0, len(self)
        while end - first > 1:
            middle = (first + end) // 2
            if self.part(first, middle).losses(to):
                end = middle
            else:
                first = middle
        one = self.part(first, end)
        losses = ", ".join(f"{name} ({n:,})" for name, n in one.losses(to).items())
        promise = f"{to.name} cannot carry {losses}; lossy=True leaves that out"
        raise WouldLose(f"batch at byte {one.positions[0]}: {promise}")


def _join(pieces: Iterable[ConvertResult], size_bytes: int) -> ConvertResult:
    """Join the pieces of a result. Each piece is freed after it was copied.

    size_bytes: the size of the whole log before the conversion. It is used to guess the size of the result.
    """
    pieces = iter(pieces)
    first_two = list(islice(pieces, 2))
    if len(first_two) == 1 and not first_two[0].work.untouched:  # an untouched piece is a view of the given log
        return first_two[0]
    data, at, bounds, records, work = np.empty(0, np.uint8), 0, [np.zeros(1, np.int64)], 0, Work()
    for piece in chain(first_two, pieces):
        bounds.append(piece.positions)
        records, work = records + piece.converted_records, work + piece.work
        end = at + len(piece.data)
        if end > len(data):  # reserve room for all pieces, if they grow like those before
            guess = end + int(1.05 * end * (size_bytes / work.read_bytes - 1))
            larger = np.empty(max(end, min(guess, max(2 * len(data), size_bytes + size_bytes // 4))), np.uint8)
            larger[:at] = data[:at]
            data = larger
        data[at:end], at = piece.data, end
    return ConvertResult(data=data[:at], positions=chained(bounds), converted_records=records, work=work)


def _stored_codecs(log: DecodedLog, data: Bytes, positions: Int64, magic: int) -> NDArray[np.integer[Any]]:
    """Return the number of each batch's codec."""
    if log.format_name is not None:  # enriched, kip98
        codecs: NDArray[np.integer[Any]] = log.batch_rows["codec"]
        return codecs
    at = layouts.position(_V2, "attributes") + 1 if magic >= 2 else layouts.position(_V0, "attributes")
    return data[positions[:-1] + at] & layouts.CODEC_MASK


def _stored_fields(log: DecodedLog, data: Bytes, positions: Int64, magic: int) -> BatchFields:
    """Return the header fields of all batches. In v0 and v1 these are only append times."""
    if log.format_name is not None:  # enriched, kip98
        return log.batch_fields
    starts = positions[:-1]
    if magic >= 2:
        rows = np.zeros(len(starts), NO_FIELDS.rows.dtype)
        batch_description.read_fields(data, positions, magic, rows)
        return BatchFields.trusted(rows, data)
    if magic == 0:
        return NO_FIELDS
    appended = np.flatnonzero(data[starts + layouts.position(_V1, "attributes")] & layouts.TIMESTAMP_TYPE_BIT)
    if not len(appended):
        return NO_FIELDS
    rows = np.repeat(NO_FIELDS.rows, len(starts))
    stamps = data[starts[appended, None] + layouts.position(_V1, "timestamp_ms") + np.arange(8)]
    rows["timestamp_type"][appended] = APPEND_TIME
    rows["append_time_ms"][appended] = stamps.view(">i8")[:, 0]
    return BatchFields.trusted(rows)


def _fields_for(fields: BatchFields, magic: int, to: Format) -> BatchFields:
    """Return the header fields that are valid in the target format.

    The others become UNSET, so that the encoder computes them.
    """
    if fields is NO_FIELDS:
        return fields
    rows = rows_joined([fields.rows])
    if min(magic, to.magic) < 2:
        for name in ("base_offset", "last_offset", "base_timestamp_ms", "max_timestamp_ms"):
            rows[name] = layouts.UNSET
    known = to.capabilities.batch_fields
    if "tagged_fields" not in known:  # the format stores the append time as the maximum timestamp
        rows["max_timestamp_ms"][rows["timestamp_type"] == APPEND_TIME] = layouts.UNSET
    if "delete_horizon_ms" not in known:
        rows["base_timestamp_ms"][rows["delete_horizon_ms"] != layouts.NO_TIMESTAMP] = layouts.UNSET
    return BatchFields.trusted(rows, fields.tags)
