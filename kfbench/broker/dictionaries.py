"""A broker's work on zstd dictionaries: merge segments, renumber batches for a mirror, find a dictionary by number.

None of it decompresses or compresses a payload. Offsets and lengths change, and where a number changes, the checksum.
docs/dictionaries-broker.md.

Stored copies of dictionaries take an offset below the segment's first other batch. So a fetch by offset never returns
them, and replicas write their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import EncodedLog
from kfbench.broker.source import bytes_of, picked
from kfbench.broker.work import NewLog, Work
from kfbench.codecs import Allowance, Dictionary
from kfbench.codecs.dictionary import CHECK_BYTES, MOST_NUMBER
from kfbench.errors import CorruptLog, InvalidRecords, MissingDictionary
from kfbench.formats import BY_MAGIC, Entries
from kfbench.kernels.broker import renumbering
from kfbench.limits import Limits
from kfbench.log.dictionaries import VALUE, add_stored, stored_values, uses_dictionary
from kfbench.uvarint import put_uvarint

HEAD_BYTES: Final = 256 << 10  # the part of a segment that `find_dictionary` reads


class _Log(NamedTuple):
    """The batches of a log and the dictionaries that they name.

    Args:
        starts: the position of the number in each batch, int64[batches]; -1: the batch names no dictionary.
        numbers, sizes: the number, and its size in bytes. -1 and 0: none.
        stored: the number of the dictionary that a batch stores, by batch.
        dictionaries: those that the log stores and those that the caller has, by number.
    """

    data: Bytes
    positions: Int64
    starts: Int64
    numbers: Int64
    sizes: Int64
    stored: dict[int, int]
    dictionaries: Mapping[int, Dictionary]

    @classmethod
    def of(cls, data: Bytes, limits: Limits | None, dictionaries: Iterable[Dictionary] = ()) -> "_Log":
        """Read headers, and columnar's columns. Raises CorruptLog."""
        entries, allowance = Entries.of(data), Allowance.of(len(data), limits, dictionaries)
        entries.errors("raise")
        positions, magics = entries.positions, entries.magics
        for error in add_stored(data, positions, magics, allowance).values():
            raise error
        stored = {
            entry: VALUE.unpack_from(value)[1]
            for entry, value in stored_values(data, positions, magics, allowance.limits)
        }
        starts = np.full(len(magics), -1, np.int64)
        named = np.flatnonzero(uses_dictionary(data, positions, magics))
        for magic in np.unique(magics[named]).tolist():
            if magic not in BY_MAGIC:
                at = int(positions[named[magics[named] == magic][0]])
                raise CorruptLog(at, "magic", f"{magic} is none of {', '.join(map(str, BY_MAGIC))}")
            chosen = named[magics[named] == magic]
            starts[chosen] = _compressed_starts(data, positions, chosen, magic, allowance)
        starts[starts == positions[1:]] = -1  # columnar without payload bytes
        numbers, sizes = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
        renumbering.read_numbers(data, positions, starts, numbers, sizes)
        is_cut = (numbers > 0) & (starts + sizes + CHECK_BYTES > positions[1:])
        if (broken := np.flatnonzero((numbers == 0) | is_cut)).size:
            raise CorruptLog(int(positions[broken[0]]), "records", "zstd-dictionary: no dictionary is named")
        return cls(data, positions, starts, numbers, sizes, stored, allowance.dictionary_codec.dictionaries)


def _compressed_starts(data: Bytes, positions: Int64, chosen: Int64, magic: int, allowance: Allowance) -> Int64:
    """Return the position of the compressed bytes in each of these batches, which have one magic."""
    if len(chosen) == len(positions) - 1:
        return BY_MAGIC[magic].compressed_starts(data, positions, allowance)
    alone = picked(data, positions[chosen], positions[chosen + 1])
    cuts = alone.positions
    try:
        starts = BY_MAGIC[magic].compressed_starts(read_only(alone.data), read_only(cuts), allowance)
    except CorruptLog as error:
        batch = int(np.searchsorted(cuts, error.position, side="right")) - 1
        raise error.at(int(positions[chosen[batch]])) from None
    moved: Int64 = starts - cuts[:-1] + positions[chosen]
    return moved


def merge_segments(segments: Sequence[EncodedLog | Any], limits: Limits | None = None) -> EncodedLog:
    """Join segments to one that begins with exactly the dictionaries that its batches name, each stored once.

    All other batches are copied. A stored copy keeps its offset, or takes the one before the first other batch.
    Payloads are not opened, so only the numbers are compared. An incomplete last batch is left out.

    Raises:
        CorruptLog: damage, or two dictionaries with one number.
        MissingDictionary: no segment stores a dictionary that a batch names. Positions count from the first segment on.
        InvalidRecords: a segment that ends inside a batch has a successor. Or the first batch has offset 0, so there is
            no offset for a dictionary in front of it. A cleaner then starts another segment.
    """
    parts = [bytes_of(segment) for segment in segments]
    for i, part in enumerate(parts[:-1]):
        if trailing := Entries.of(part).trailing_bytes:
            raise InvalidRecords(f"segments: item {i} ends with {trailing} bytes of a batch")
    log = _Log.of(np.concatenate([np.zeros(0, np.uint8), *parts]), limits)
    is_rest = np.ones(len(log.starts), np.bool_)
    is_rest[list(log.stored)] = False
    rest = np.flatnonzero(is_rest)
    named = log.numbers[rest]
    if (missing := np.flatnonzero((named > 0) & ~np.isin(named, list(log.dictionaries)))).size:
        batch = int(missing[0])
        raise MissingDictionary(int(log.positions[rest[batch]]), int(named[batch]), f"number {named[batch]} is missing")
    first_of = {number: entry for entry, number in sorted(log.stored.items(), reverse=True)}
    heads = sorted(first_of[number] for number in np.unique(named[named > 0]).tolist())
    order = np.append(np.array(heads, np.int64), rest)
    merged = picked(log.data, log.positions[order], log.positions[order + 1])
    starts = merged.positions[: len(heads) + 1].tolist()
    before_rest = _base_offset(merged.data, starts[-1]) - 1 if heads else 0
    for at in starts[:-1]:
        offset = min(_base_offset(merged.data, at), before_rest)
        if offset < 0:
            raise InvalidRecords("segments: there is no offset before 0 for a dictionary")
        merged.data[at : at + 8] = np.frombuffer(offset.to_bytes(8, "big"), np.uint8)
    return merged


def _base_offset(data: Bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8].tobytes(), "big", signed=True)


def renumber(log: EncodedLog | Any, numbers: Mapping[int, int], limits: Limits | None = None) -> NewLog:
    """Write other dictionary numbers into the batches of a log, as a mirror does. Nothing is compressed again.

    The destination stores its own copy of each dictionary, so batches that store one are dropped. The dictionaries
    themselves must be the same, because each batch has a check of the dictionary's bytes.

    numbers: the new number by the old one. Raises MissingDictionary for a batch whose number has no new one,
    CorruptLog for damage (also of a payload), and InvalidRecords for a number that is out of range or wanted twice.
    """
    for old, new in numbers.items():
        if not (isinstance(new, int) and 1 <= new <= MOST_NUMBER):
            raise InvalidRecords(f"numbers: {old}: 1 to {MOST_NUMBER} is wanted, not {new!r}")
    if len(set(numbers.values())) < len(numbers):
        raise InvalidRecords("numbers: two dictionaries get the same number")
    read = _Log.of(bytes_of(log), limits)
    wanted = read.numbers.copy()
    for old in np.unique(read.numbers[read.numbers > 0]).tolist():
        if old not in numbers:
            at = int(read.positions[int(np.argmax(read.numbers == old))])
            raise MissingDictionary(at, old, f"number {old} has no number at the destination")
        wanted[read.numbers == old] = numbers[old]
    grown = int(sum(len(put_uvarint(numbers[old])) * int((read.numbers == old).sum()) for old in numbers))
    is_named = read.numbers > 0
    out = np.empty(int(read.positions[-1]) + grown - int(read.sizes.sum()), np.uint8)
    positions = np.empty(len(read.positions), np.int64)
    damaged = renumbering.renumber(read.data, read.positions, read.starts, read.sizes, wanted, out, positions)
    if damaged >= 0:
        raise CorruptLog(int(read.positions[damaged]), "crc", "the CRC-32C of the batch is another one")
    kept = EncodedLog(data=out, positions=positions)
    if read.stored:
        kept = _without(kept, list(read.stored))
    named = int(is_named.sum())
    work = Work(
        in_place=named,
        untouched=len(is_named) - named - len(read.stored),
        dropped=len(read.stored),
        read_bytes=int(read.positions[-1]) + int(np.diff(read.positions)[is_named].sum()),
        written_bytes=len(kept.data),
    )
    return NewLog(data=kept.data, positions=kept.positions, work=work)


def _without(log: EncodedLog, dropped: Sequence[int]) -> EncodedLog:
    kept = np.delete(np.arange(len(log.positions) - 1), dropped)
    return picked(log.data, log.positions[kept], log.positions[kept + 1])


def check_dictionaries(log: EncodedLog | Any, dictionaries: Iterable[Dictionary], limits: Limits | None = None) -> None:
    """Raise MissingDictionary for the first batch whose dictionary a leader does not have, or has with other bytes.

    Only the number and the check in front of each payload are compared, and nothing is decompressed. So a leader of
    columnar batches refuses wrong dictionaries as early as one of v2. Raises CorruptLog.

    dictionaries: those of the partition. Those that stand in the log count, too.
    """
    read = _Log.of(bytes_of(log), limits, dictionaries)
    known = read.dictionaries
    named = np.flatnonzero(read.numbers > 0)
    checks = read.data[(read.starts + read.sizes)[named, None] + np.arange(CHECK_BYTES)]
    is_known = np.zeros(len(named), np.bool_)
    for number in np.unique(read.numbers[named]).tolist():
        if number in known:
            wanted = np.frombuffer(known[number].sha256[:CHECK_BYTES], np.uint8)
            is_known |= (read.numbers[named] == number) & (checks == wanted).all(axis=1)
    if not is_known.all():
        i = int(np.argmin(is_known))
        number, check = int(read.numbers[named[i]]), checks[i].tobytes().hex()
        raise MissingDictionary(int(read.positions[named[i]]), number, f"number {number} with check {check} is missing")


def find_dictionary(segment: EncodedLog | Any, number: int, limits: Limits | None = None) -> Dictionary:
    """Return the dictionary with this number, for a consumer that starts in the middle of the segment.

    Only the first 256 KiB (HEAD_BYTES) are read. Raises MissingDictionary, and CorruptLog for a damaged dictionary.
    """
    head = bytes_of(segment)[:HEAD_BYTES]
    entries, allowance = Entries.of(head), Allowance.of(len(head), limits)
    damaged = add_stored(head, entries.positions, entries.magics, allowance)
    found = allowance.dictionary_codec.dictionaries.get(number)
    if found is not None:
        return found
    for error in damaged.values():
        raise error
    raise MissingDictionary(0, number, f"number {number} does not stand at the head of the segment")
