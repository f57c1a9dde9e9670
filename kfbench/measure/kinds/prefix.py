"""The kind "prefix": reading only the beginning of a compressed batch (the prefix), against reading whole batches.

The prefix has all offsets, timestamps and lengths. The format must store the headers of all records before their
payload. The batch's CRC covers the compressed bytes, so a reader can check it with or without the payload. LOST lists
the checks that a reader of the prefix cannot make.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kfbench.batches import EncodedLog
from kfbench.codecs import CODECS, Codec, Stream
from kfbench.formats import FORMATS, Format
from kfbench.layouts import HEADERS_FIRST_BIT
from kfbench.measure.cell import Cell
from kfbench.measure.columns import INT64, Row, added
from kfbench.measure.cpu import Arm, Samples, measure, warm_up
from kfbench.measure.kinds.base import CellCosts, GridBlock, Kernels, encode_input, sample_of, times_of
from kfbench.measure.kinds.cpu import TimedKind
from kfbench.measure.verify import Unverified, verify_metadata, verify_records
from kfbench.varints import UVARINT_BYTES, get_uvarint

ARMS: Final = 5
_CELL_S: Final = 0.1

LOST: Final[Mapping[str, str]] = {
    "undecodable payload": "compressed bytes after the prefix that the codec refuses, or that are missing",
    "codec checksum": "the codec's own checksum, where its stream has one: it is at the end",
    "payload size": "keys, values and headers whose total size differs from their lengths",
    "size limit": "a payload that decompresses past the limit; it is not decompressed, so it does no harm",
    "control records": "control records that no reader may act on: their key and value are payload",
}


class PrefixKind(TimedKind):
    name = "prefix"
    columns = (
        added("compressed_bytes", INT64, "bytes", "compressed bytes that were read"),
        # may exceed metadata_bytes, because most codecs decompress whole blocks
        added("plain_bytes", INT64, "bytes", "bytes that were decompressed from them"),
        added("metadata_bytes", INT64, "bytes", "plain bytes that offsets, timestamps and lengths need"),
    )
    meanings = {
        "operation": "decompress or decompress-prefix (codec alone), decode or decode-metadata",
        "arm": "the base is decompress",
        "inner_loops": "the same for all arms of a cell and format",
    }
    differ_in_a_round = ("operation", "arm")  # its arms are operations of one format

    def problems(self, block: GridBlock, settings: Any) -> Iterator[str]:
        formats = [name for name in block.formats if name in FORMATS]
        if without := [name for name in formats if not has_prefix(FORMATS[name])]:
            yield f"formats: {without[0]} does not store headers first, so it has no prefix to read"
        if "none" in block.codecs:
            yield "codecs.none: prefix cells need a codec: they compare how much is decompressed"

    def rows_of_format(self, cell: Cell, name: str) -> Iterator[Row]:
        """Time reading only the prefix of each format's batches, and reading whole batches.

        The prefix has the offsets, times and lengths of a batch's records. Formats are timed separately, because the
        prefix of a format is compared with whole batches of the same format.
        """
        fmt, source = FORMATS[name], encode_input(cell, sample_of(cell))
        log = source.encode(fmt)
        verify_records(fmt, source, log)
        for row, times in measure_prefixes(fmt, log, cell.codec, rounds=cell.rounds, sample_ns=cell.sample_us * 1_000):
            yield {"batches": len(log)} | row | times_of(cell, times)

    def estimate_s(self, cell: Cell) -> float:
        costs = CellCosts.of(cell)
        return _CELL_S + ARMS * len(cell.formats) * costs.rounds * max(costs.codec_s / 4, costs.sample_s)

    def kernels(self, cell: Cell) -> Kernels | None:
        return Kernels({name: ("decode-metadata",) for name in cell.formats if has_prefix(FORMATS[name])})


def has_prefix(fmt: Format) -> bool:
    return bool(fmt.features & HEADERS_FIRST_BIT)


def measure_prefixes(
    fmt: Format, log: EncodedLog, codec_name: str, *, rounds: int, sample_ns: int
) -> list[tuple[Row, Samples]]:
    """Verify and time four operations: decompress and decode, each on the prefixes and on the whole payloads.

    Return the columns and the times of each operation. Numbers of bytes are sums over all batches, without batch
    headers. `decompress` is timed a second time, to show the noise (A/A). Raises Unverified in two cases:

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
    metadata = fmt.decode_metadata(log)
    verify_metadata(fmt, metadata, fmt.decode(log).records.shapes)
    if metadata.plain_bytes != made:
        raise Unverified(
            f"{fmt.name}: {metadata.plain_bytes} bytes made to read the metadata, {made} by the codec alone"
        )

    def decompress() -> None:
        for payload in payloads:
            codec.decompress(payload)

    def decompress_prefix() -> None:
        for payload, size in zip(payloads, wanted, strict=True):
            _read(codec.stream(payload), size)

    whole = {"compressed_bytes": sum(map(len, payloads)), "plain_bytes": sum(map(len, plain))}
    prefix = {"compressed_bytes": sum(stream.taken_bytes for stream in streams), "plain_bytes": made}
    timed: list[tuple[str, str, Row, Callable[[], object]]] = [
        ("decompress", "measure", whole, decompress),
        ("decompress", "aa", whole, decompress),
        ("decompress-prefix", "measure", prefix, decompress_prefix),
        ("decode", "measure", whole, lambda: fmt.decode(log)),
        ("decode-metadata", "measure", prefix, lambda: fmt.decode_metadata(log)),
    ]
    arms = [Arm(call=call) for *_, call in timed]
    for arm in arms:
        warm_up(arm)
    common = {"metadata_bytes": sum(wanted)}
    rows = [common | {"operation": operation, "arm": arm} | read for operation, arm, read, _ in timed]
    return list(zip(rows, measure(arms, 0, rounds, sample_ns), strict=True))


def _wanted_bytes(codec: Codec, payload: memoryview) -> int:
    size, at = get_uvarint(codec.stream(payload).read(UVARINT_BYTES))
    return at + size


def _read(stream: Stream, size: int) -> bytes:
    """Read `size` bytes in two steps, as a real reader does.

    The reader does not know `size` in advance. It finds `size` in the first UVARINT_BYTES bytes.
    """
    head = stream.read(UVARINT_BYTES)
    return head[:size] + stream.read(size - len(head))


KINDS: Final = (PrefixKind(),)
