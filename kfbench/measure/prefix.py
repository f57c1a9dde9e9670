"""Prefix reading: offsets and times of a compressed batch whose headers come first, against decompressing all of it.

The batch's CRC covers the compressed bytes and is checked either way. What a reader of the prefix gives up is LOST.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields, EncodedLog
from kfbench.codecs import CODECS, Allowance, Codec, Stream
from kfbench.formats import Format
from kfbench.formats._reading import Reading
from kfbench.measure.cpu import Arm, Samples, measure, paired_ratio, warm_up
from kfbench.measure.verify import Unverified
from kfbench.records import Records
from kfbench.uvarint import MOST_BYTES, get_uvarint

LOST: Final[Mapping[str, str]] = {
    "undecodable payload": "compressed bytes behind the prefix that the codec refuses, or that are missing",
    "codec checksum": "the codec's own checksum, where its stream has one: it stands at the end",
    "payload size": "keys, values and headers that are shorter or longer together than their lengths say",
    "size limit": "a payload that decompresses past the limit; it is not decompressed, so it does no harm either",
    "control records": "control records that no reader may act on: their key and value are payload",
}


@dataclass(frozen=True, kw_only=True)
class Prefixes:
    """A log's batches, read whole and by their prefix. Byte counts are over all batches, and of what the codec covers.

    CPU: codec is the codec alone, reader the format's decode_metadata against its decode; (median, low, high) of
    prefix / whole, as `paired_ratio` has them. aa: the codec's whole decompression against itself.
    """

    batches: int
    compressed_bytes: int
    compressed_bytes_taken: int
    plain_bytes: int
    plain_bytes_made: int  # in blocks where the codec has them
    plain_bytes_wanted: int
    codec_cpu: tuple[float, float, float]
    reader_cpu: tuple[float, float, float]
    aa_cpu: tuple[float, float, float]


def measure_prefixes(
    fmt: Format,
    records: Records,
    bounds: Int64,
    codec_name: str,
    level: int | None = None,
    batch_fields: BatchFields = NO_FIELDS,
    *,
    rounds: int,
    sample_ns: int,
    seed: int,
) -> Prefixes:
    """Raises Unverified where the prefix says something else than the whole."""
    codec = CODECS[codec_name]
    log = fmt.encode(records, bounds, codec_name, level, batch_fields)
    payloads = compressed_payloads(fmt, log)
    wanted = [_wanted_bytes(codec, payload) for payload in payloads]
    streams = [codec.stream(payload) for payload in payloads]
    for stream, payload, size in zip(streams, payloads, wanted, strict=True):
        if _read(stream, size) != codec.decompress(payload)[:size]:
            raise Unverified(f"{codec_name}: a prefix differs from the whole")
    _verify(fmt, log)

    def whole() -> None:
        for payload in payloads:
            codec.decompress(payload)

    def prefix() -> None:
        for payload, size in zip(payloads, wanted, strict=True):
            _read(codec.stream(payload), size)

    calls = [whole, whole, prefix, lambda: fmt.decode(log), lambda: fmt.decode_metadata(log)]
    arms = [Arm(call=call, before=_nothing, verify=_nothing) for call in calls]
    for arm in arms:
        warm_up(arm)
    base, again, part, decode, metadata = measure(arms, 0, rounds, sample_ns, seed)
    return Prefixes(
        batches=len(log),
        compressed_bytes=sum(map(len, payloads)),
        compressed_bytes_taken=sum(stream.taken_bytes for stream in streams),
        plain_bytes=sum(len(codec.decompress(payload)) for payload in payloads),
        plain_bytes_made=sum(stream.plain_bytes for stream in streams),
        plain_bytes_wanted=sum(wanted),
        codec_cpu=_ratio(part, base),
        reader_cpu=_ratio(metadata, decode),
        aa_cpu=_ratio(again, base),
    )


def compressed_payloads(fmt: Format, log: EncodedLog) -> list[memoryview]:
    """What the codec made of each batch."""
    read = Reading(log.data, log.positions, fmt.magic, "raise", Allowance.of(len(log.data), None))
    view = log.data.data
    return [view[start:end] for start, end in zip(read.starts, read.ends, strict=True) if start < end]


def _wanted_bytes(codec: Codec, payload: memoryview) -> int:
    size, at = get_uvarint(codec.stream(payload).read(MOST_BYTES))
    return at + size


def _read(stream: Stream, size: int) -> bytes:
    """As a reader has to: it learns from the first bytes how many it wants."""
    head = stream.read(MOST_BYTES)
    return head[:size] + stream.read(size - len(head))


def _verify(fmt: Format, log: EncodedLog) -> None:
    metadata, shapes = fmt.decode_metadata(log), fmt.decode(log).records.shapes
    for name in ("offsets", "timestamps_ms", "key_lengths", "value_lengths"):
        if not np.array_equal(getattr(metadata, name), getattr(shapes, name)):
            raise Unverified(f"{fmt.name}: {name} read from the prefix differ from the decoded ones")


def _ratio(arm: Samples, base: Samples) -> tuple[float, float, float]:
    return paired_ratio(arm.cpu_ns, base.cpu_ns)


def _nothing() -> None:
    pass
