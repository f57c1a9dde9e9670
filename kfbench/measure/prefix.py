"""Measure how much a reader saves if it decompresses only the beginning of a batch (the prefix).

The prefix has all offsets, timestamps and lengths. The format must store the headers of all records before their
payload. The batch's CRC covers the compressed bytes, so a reader can check it with or without the payload. LOST lists
the checks that a reader of the prefix cannot make.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kfbench.batches import EncodedLog
from kfbench.codecs import CODECS, Codec, Stream
from kfbench.formats import Format
from kfbench.layouts import HEADERS_FIRST_BIT
from kfbench.measure.cpu import Arm, Samples, measure, warm_up
from kfbench.measure.verify import Unverified, verify_metadata
from kfbench.tagged_fields import UVARINT_BYTES, get_uvarint

# Each operation on the prefix, and its counterpart on the whole payload. The first pair is the codec alone; the second
# pair is the format's reader, which also checks the CRC.
WHOLE: Final = {"decompress-prefix": "decompress", "decode-metadata": "decode"}
AA: Final = "decompress"  # the operation that is timed twice
ARMS: Final = 5

LOST: Final[Mapping[str, str]] = {
    "undecodable payload": "compressed bytes after the prefix that the codec refuses, or that are missing",
    "codec checksum": "the codec's own checksum, where its stream has one: it is at the end",
    "payload size": "keys, values and headers whose total size differs from their lengths",
    "size limit": "a payload that decompresses past the limit; it is not decompressed, so it does no harm",
    "control records": "control records that no reader may act on: their key and value are payload",
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A timed operation on all batches of a log. Numbers of bytes are sums over all batches, without batch headers.

    Args:
        operation: decompress or decompress-prefix (the codec alone), decode or decode-metadata (the format's reader).
        arm: "measure", or "aa" for the base, timed a second time.
        compressed_bytes: the number of compressed bytes that were read.
        plain_bytes: the number of bytes after decompression. It may exceed metadata_bytes, because most codecs
            decompress whole blocks.
        metadata_bytes: the number of decompressed bytes that offsets, timestamps and lengths need.
        samples: the times.
    """

    operation: str
    arm: str
    compressed_bytes: int
    plain_bytes: int
    metadata_bytes: int
    samples: Samples


def has_prefix(fmt: Format) -> bool:
    return bool(fmt.features & HEADERS_FIRST_BIT)


def measure_prefixes(fmt: Format, log: EncodedLog, codec_name: str, *, rounds: int, sample_ns: int) -> list[Measured]:
    """Verify and time four operations: decompress and decode, each on the prefixes and on the whole payloads.

    `decompress` is timed a second time, to show the noise (A/A). Raises Unverified in two cases:

    - the bytes of a decompressed prefix differ from the beginning of the whole payload;
    - metadata read from prefixes differ from the decoded records.
    """
    codec = CODECS[codec_name]
    payloads = fmt.compressed_bodies(log)
    wanted = [_wanted_bytes(codec, payload) for payload in payloads]
    streams = [codec.stream(payload) for payload in payloads]
    plain = [codec.decompress(payload) for payload in payloads]
    for stream, size, all_of_it in zip(streams, wanted, plain, strict=True):
        if _read(stream, size) != all_of_it[:size]:
            raise Unverified(f"{codec_name}: a prefix differs from the whole")
    made = sum(stream.plain_bytes for stream in streams)
    _verify(fmt, log, made)

    def decompress() -> None:
        for payload in payloads:
            codec.decompress(payload)

    def decompress_prefix() -> None:
        for payload, size in zip(payloads, wanted, strict=True):
            _read(codec.stream(payload), size)

    whole = sum(map(len, payloads)), sum(map(len, plain))
    prefix = sum(stream.taken_bytes for stream in streams), made
    timed: list[tuple[str, str, tuple[int, int], Callable[[], object]]] = [
        ("decompress", "measure", whole, decompress),
        ("decompress", "aa", whole, decompress),
        ("decompress-prefix", "measure", prefix, decompress_prefix),
        ("decode", "measure", whole, lambda: fmt.decode(log)),
        ("decode-metadata", "measure", prefix, lambda: fmt.decode_metadata(log)),
    ]
    arms = [Arm(call=call) for *_, call in timed]
    for arm in arms:
        warm_up(arm)
    samples = measure(arms, 0, rounds, sample_ns)
    return [
        Measured(
            operation=operation,
            arm=arm,
            compressed_bytes=taken_bytes,
            plain_bytes=plain_bytes,
            metadata_bytes=sum(wanted),
            samples=each,
        )
        for (operation, arm, (taken_bytes, plain_bytes), _), each in zip(timed, samples, strict=True)
    ]


def _wanted_bytes(codec: Codec, payload: memoryview) -> int:
    size, at = get_uvarint(codec.stream(payload).read(UVARINT_BYTES))
    return at + size


def _read(stream: Stream, size: int) -> bytes:
    """Read `size` bytes in two steps, as a real reader does.

    The reader does not know `size` in advance. It finds `size` in the first UVARINT_BYTES bytes.
    """
    head = stream.read(UVARINT_BYTES)
    return head[:size] + stream.read(size - len(head))


def _verify(fmt: Format, log: EncodedLog, made_bytes: int) -> None:
    metadata = fmt.decode_metadata(log)
    verify_metadata(fmt, metadata, fmt.decode(log).records.shapes)
    if metadata.plain_bytes != made_bytes:
        raise Unverified(
            f"{fmt.name}: {metadata.plain_bytes} bytes made to read the metadata, {made_bytes} by the codec alone"
        )
