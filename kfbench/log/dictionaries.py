"""Dictionaries in a log: control batches with one record. docs/dictionaries.md.

Key: version i16 (0), type i16 (7). Value: version i16 (0), number i32, SHA-256 of the dictionary (32 bytes), and the
dictionary as a zstd frame, to the end of the value.

A dictionary file is a log segment with one such batch, so every reader of logs reads it, and a segment may begin with
it. Its record has the header `trained-on`, which is JSON: format, batch_size, records, size_bytes. Readers need no
header, and the wire form in docs/dictionaries.md does not have it.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64, ranges, read_only
from kfbench.batches import BatchFields, DecodedLog, EncodedLog
from kfbench.codecs import CODECS, Allowance, Dictionary, TrainedOn, Undecodable, ZstdDictionary
from kfbench.codecs.dictionary import MAGIC, MOST_BYTES
from kfbench.errors import CorruptLog, InvalidDictionary
from kfbench.formats import BASE_FORMAT, BY_MAGIC, FORMATS, Format
from kfbench.limits import Limits
from kfbench.records import Records

KEY: Final = struct.pack(">hh", 0, layouts.CONTROL_DICTIONARY)
HEADER: Final = "trained-on"
VALUE: Final = struct.Struct(">hi32s")  # version, number, SHA-256
MOST_DICTIONARIES: Final = 256  # of one reader: 32 MiB at most, whatever a log claims
LEAST_BYTES: Final = 80  # a batch with a dictionary is larger, so that transaction markers need not be read
MAGICS: Final = [magic for magic in BY_MAGIC if magic >= 2]
ATTRIBUTES_LOW_AT: Final = layouts.position(layouts.V2_HEADER, "attributes") + 1  # also in v3


def dictionary_batch(
    dictionary: Dictionary, fmt: Format | str = BASE_FORMAT, offset: int = 0, timestamp_ms: int = layouts.NO_TIMESTAMP
) -> EncodedLog:
    """Return the control batch that stores a dictionary in a log.

    fmt: the format of the batch; it must have control batches. offset: the offset of its only record.
    """
    return _control_batch(dictionary, FORMATS[fmt] if isinstance(fmt, str) else fmt, offset, timestamp_ms, [])


def dictionary_file(dictionary: Dictionary, fmt: Format) -> EncodedLog:
    """Return the content of a dictionary file: a control batch in this format."""
    on = dictionary.trained_on
    headers = [] if on is None else [(HEADER, json.dumps(asdict(on)).encode())]
    return _control_batch(dictionary, fmt, 0, layouts.NO_TIMESTAMP, headers)


def _control_batch(
    dictionary: Dictionary, fmt: Format, offset: int, timestamp_ms: int, headers: list[tuple[str, bytes]]
) -> EncodedLog:
    value = VALUE.pack(0, dictionary.number, dictionary.sha256) + dictionary.packed
    records = Records.from_lists([value], [KEY], [timestamp_ms], [headers], [offset])
    return fmt.encode(records, 1, batch_fields=BatchFields(is_control=True))


def add_stored(data: Bytes, positions: Int64, magics: NDArray[np.int8], allowance: Allowance) -> dict[int, CorruptLog]:
    """Give the dictionaries that stand in a log to the allowance of its reader, in addition to those that it has.

    positions, magics: those of the entries of `data`, see `Entries`. Return one error per entry with a damaged
    dictionary, or with a second dictionary of the same number. Batches with other damage are left to the reader.
    """
    found, damaged = dict(allowance.dictionary_codec.dictionaries), dict[int, CorruptLog]()
    for entry, value in sorted(stored_values(data, positions, magics, allowance.limits)):
        try:
            _add(value, found, allowance)
        except (InvalidDictionary, Undecodable) as error:
            damaged[entry] = CorruptLog(int(positions[entry]), "dictionary", str(error))
    allowance.dictionary_codec = ZstdDictionary(found)
    return damaged


def dictionary_batches(log: DecodedLog) -> list[int]:
    """Return the indices of the control batches that store dictionaries."""
    return [batch for batch, record in _stored_records(log) if record == log.bounds[batch]]


def stored_dictionaries(log: DecodedLog) -> Iterator[Dictionary]:
    """Yield the dictionaries that stand in a decoded log, in its order, with the samples that their headers name."""
    for _, i in _stored_records(log):
        value = log.records.value(i) or b""
        found = log.dictionaries.get(VALUE.unpack_from(value)[1]) if len(value) >= VALUE.size else None
        if found is not None:
            yield replace(found, trained_on=_trained_on(dict(log.records.headers(i)).get(HEADER)))


def stored_values(
    data: Bytes, positions: Int64, magics: NDArray[np.int8], limits: Limits
) -> Iterator[tuple[int, bytes]]:
    """Yield (entry, value) of each record with a dictionary. Damaged batches have none."""
    starts = positions[:-1]
    may_hold = np.flatnonzero(data[starts + ATTRIBUTES_LOW_AT] & layouts.CONTROL_BIT)  # every entry has this byte
    sizes = positions[may_hold + 1] - starts[may_hold]
    is_chosen = np.isin(magics[may_hold], MAGICS) & (sizes >= LEAST_BYTES)
    may_hold, sizes = may_hold[is_chosen], sizes[is_chosen]
    for magic in np.unique(magics[may_hold]).tolist():
        is_chosen = magics[may_hold] == magic
        chosen, lengths = may_hold[is_chosen], sizes[is_chosen]
        copies, cuts = data[ranges(starts[chosen], lengths)], np.append(0, np.cumsum(lengths))
        log = BY_MAGIC[magic].decode_at(read_only(copies), read_only(cuts), "skip", Allowance.of(len(copies), limits))
        batches = np.searchsorted(cuts, log.batch_rows["position"])
        for batch, i in _stored_records(log):
            yield int(chosen[batches[batch]]), log.records.value(i) or b""


def _stored_records(log: DecodedLog) -> Iterator[tuple[int, int]]:
    """Yield the index of the batch and of the record for each record in a control batch that has the key KEY."""
    for batch in np.flatnonzero(log.batch_rows["is_control"]).tolist():
        for i in range(int(log.bounds[batch]), int(log.bounds[batch + 1])):
            if (log.records.key(i) or b"").startswith(KEY):
                yield batch, i


def _add(value: bytes, found: dict[int, Dictionary], allowance: Allowance) -> None:
    """Add the dictionary in the value of a record to those that were found. Raises InvalidDictionary, Undecodable."""
    if len(value) < VALUE.size:
        raise InvalidDictionary(f"{len(value)} bytes, where {VALUE.size} and a frame are wanted")
    version, number, digest = VALUE.unpack_from(value)
    if version:
        raise InvalidDictionary(f"version {version} is unknown")
    if number not in found and len(found) >= MOST_DICTIONARIES:
        raise InvalidDictionary(f"number {number}: more than {MOST_DICTIONARIES} dictionaries")
    data = allowance.decompress(CODECS["zstd"], value[VALUE.size :], MOST_BYTES)
    if sha256(data).digest() != digest:
        raise InvalidDictionary(f"number {number}: the bytes do not have the SHA-256 that is stored with them")
    if number not in found:
        found[number] = Dictionary(number=number, data=data, is_raw=not data.startswith(MAGIC))
    elif found[number].sha256 != digest:
        raise InvalidDictionary(f"number {number} is that of another dictionary")


def _trained_on(header: bytes | None) -> TrainedOn | None:
    """Read a header. It is hostile input and only shown, so anything unexpected counts as no header."""
    try:
        found = msgspec.json.decode(header or b"null", type=TrainedOn)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    has_numbers = min(found.records, found.size_bytes) >= 0 and (found.batch_size is None or found.batch_size > 0)
    return found if has_numbers and len(found.format) <= 40 and found.format.isprintable() else None
