"""Batches of each format for the fuzzers: single valid ones, plain and compressed, and the damaged ones made of them.

Some come from golden vectors that Apache Kafka's classes wrote, in datasets/golden and in the folder KFBENCH_GOLDEN.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import cycle, pairwise
from pathlib import Path
from typing import NamedTuple

from kfbench import FORMATS, Dictionary, KfbenchError, read_log
from kfbench.batches import BatchFields, DecodedLog
from kfbench.codecs import CODECS, LEGACY_LZ4, Codec, ZstdDictionary
from kfbench.formats import Entries, Format
from kfbench.limits import Limits
from kfbench.log import dictionary_batch
from kfbench.records import Records
from tests.common import batch_fields_of, records_of
from tests.dictionary_samples import BY_NAME
from tests.formats.fuzz import NUMBERS, damaged, sealed
from tests.kernels.results import inputs
from tests.research.columnar import cases as columnar_cases
from tests.strategies import Case

ROOT = Path(__file__).parents[2]
COLUMNAR_SEEDS = 400  # columnar batches that are drawn; those that are too large are dropped
LARGEST_BYTES = 2048  # in a larger batch most damage would hit the payload
GUIDED_BYTES, GUIDED_SEEDS = 1024, 60  # largest input of the guided fuzzer in bytes, and number of its seeds per format
RECOMPRESS_EVERY = 20  # one batch in 20 is damaged before compression
SHORTEST_BYTES = 21  # that have a length and a checksum
DICTIONARIES = tuple(BY_NAME.values())
LIMITS = Limits(batch_bytes=1 << 20, batch_records=1 << 14, batch_headers=1 << 14, field_bytes=1 << 18)


def golden_data() -> list[bytes]:
    further = os.environ.get("KFBENCH_GOLDEN")
    folders = [ROOT / "datasets" / "golden", *([Path(further)] if further else [])]
    return list(dict.fromkeys(path.read_bytes() for folder in folders for path in sorted(folder.glob("*.bin"))))


@cache
def golden_logs() -> list[tuple[bytes, DecodedLog]]:
    return [(data, read_log(data, on_error="skip")) for data in golden_data()]


def batches(name: str) -> list[bytes]:
    """Return distinct batches of the format, plain and compressed, of at most LARGEST_BYTES bytes each."""
    fmt, found = FORMATS[name], dict[bytes, None]()
    ours = name not in ("v0", "v1", "v2")
    for number, (data, log) in enumerate(golden_logs()):
        rows = log.batch_rows
        if not ours:
            for row in rows[rows["magic"] == fmt.magic]:
                found[data[row["position"] : row["position"] + row["size_bytes"]]] = None
        elif len(rows) and len(data) < 8 * LARGEST_BYTES:
            codec = fmt.capabilities.codecs[1 if number % 4 == 0 else 0]
            found |= _encoded(fmt, log.source_records, log.bounds, codec)
    rng = random.Random(name)
    for codec, dictionary in _codecs(fmt):
        for records in inputs(name, rng):
            found |= _encoded(fmt, records, [0, 1, 2, 3, 5, 10, 11, 12, 20, 25, 30], codec, dictionary)
    if "tagged_fields" in fmt.capabilities.batch_fields:
        # If one byte changes, tag 8 or 300 becomes tag 1. In an empty batch no record reads that tag.
        fields = BatchFields(tagged_fields={7: b"\x02\x02a\x02b", 8: bytes(8), 300: b""})
        for records, bounds in ((Records.from_lists([]), [0, 0]), (Records.from_lists([b"v"] * 2), [0, 1, 2])):
            tagged = fmt.encode(records, bounds, batch_fields=fields)
            found |= {tagged.data[start:end].tobytes(): None for start, end in pairwise(tagged.positions.tolist())}
    if name == "columnar":
        found |= dict.fromkeys([*columnar_shapes(), *columnar_shapes(fmt.capabilities.codecs[1:])])
    return [batch for batch in found if len(batch) <= LARGEST_BYTES]


def segments() -> list[bytes]:
    """Return small logs that begin with a dictionary, for `read_log`."""
    small = Dictionary(number=2, data=b"".join(b"record %d of a log" % i for i in range(8)), is_raw=True)
    records = Records.from_lists([b"record %d of another log" % i for i in range(6)])
    return [
        bytes(dictionary_batch(small, name)) + bytes(FORMATS[name].encode(records, 3, "zstd", dictionary=small))
        for name in ("v2", "v3-full", "columnar")
    ]


def guided_batches(name: str) -> list[bytes]:
    """Return the seeds of the coverage-guided fuzzer: some of `batches`, and all of `columnar_shapes` for columnar."""
    found = sorted((batch for batch in batches(name) if len(batch) < GUIDED_BYTES), key=len)
    return [*found[:: len(found) // GUIDED_SEEDS + 1], *(columnar_shapes() if name == "columnar" else [])]


@cache
def columnar_shapes(codecs: tuple[str, ...] = ("none",)) -> list[bytes]:
    """Return small columnar batches of all kinds of columns, headers and fields, under the codecs in turn."""
    drawn = [columnar_cases.drawn(seed) for seed in range(COLUMNAR_SEEDS)]
    drawn += [((), replace(fields, base_offset=5, last_offset=5)) for fields in columnar_cases.FIELDS]
    found = []
    for (messages, fields), codec in zip(drawn, cycle(codecs), strict=False):
        given = batch_fields_of(Case(batches=(messages,), fields=(fields,)))
        log = FORMATS["columnar"].encode(records_of(messages), [0, len(messages)], codec, batch_fields=given)
        found.append(bytes(log))
    return [batch for batch in found if len(batch) < GUIDED_BYTES]


def _codecs(fmt: Format) -> list[tuple[str, Dictionary | None]]:
    """Return the codecs of the format, and zstd once more with each dictionary."""
    plain = [(codec, None) for codec in fmt.capabilities.codecs]
    return [*plain, *(("zstd", each) for each in DICTIONARIES if fmt.capabilities.dictionaries)]


def _encoded(
    fmt: Format, records: Records, bounds: object, codec: str, dictionary: Dictionary | None = None
) -> dict[bytes, None]:
    try:
        log = fmt.encode(records, bounds, codec, lossy=True, dictionary=dictionary)  # type: ignore[arg-type]
    except KfbenchError:  # the format cannot carry it: invalid control batch, or offsets too far apart
        return {}
    positions = Entries.of(log.data).positions  # in v0 and v1 each plain message has its own position
    return {log.data[start:end].tobytes(): None for start, end in pairwise(positions.tolist())}


class CompressedBatch(NamedTuple):
    """A compressed batch whose payload can be replaced."""

    name: str
    codec: Codec
    header: bytes
    section: bytes
    """The payload before compression."""

    def with_section(self, section: bytes) -> bytes:
        """Return the batch with `section`, compressed, as its payload. Lengths and checksum are correct."""
        payload = self.codec.compress(section)
        header = self.header
        if FORMATS[self.name].holds_messages:
            header = header[:-4] + len(payload).to_bytes(4, "big")
        return sealed(header + payload, self.name)


def compressed_batches(name: str) -> Iterator[CompressedBatch]:
    """Yield compressed batches of different records, several per codec of the format."""
    fmt, rng = FORMATS[name], random.Random(name)
    for codec_name, dictionary in _codecs(fmt)[1:]:
        codec = LEGACY_LZ4 if name == "v0" and codec_name == "lz4" else CODECS[codec_name]
        codec = ZstdDictionary.of(dictionary) if dictionary else codec
        for records in inputs(name, rng):
            for batch in _encoded(fmt, records, [0, 1, 3, 8, 20, 30], codec_name, dictionary):
                size = int(fmt.decode(batch, dictionaries=DICTIONARIES).batch_rows["records_size_bytes"][0])
                for header in range(26, len(batch)):
                    try:
                        section = codec.decompress(batch[header:], LIMITS.batch_bytes)
                    except KfbenchError:
                        continue
                    if len(section) == size and size <= LARGEST_BYTES:
                        yield CompressedBatch(name, codec, batch[:header], section)
                        break


def with_sound_messages(section: bytes) -> bytes:
    """Return an inner set with the checksums of its messages corrected, up to the first with a wrong size."""
    out, at = b"", 0
    while len(section) - at >= 18 and section[at + 16] < 2:
        end = at + 12 + int.from_bytes(section[at + 8 : at + 12], "big")
        if not at + 26 <= end <= len(section):
            break
        out += sealed(section[at:end])
        at = end
    return out + section[at:]


class DamageSource:
    """A generator of damaged batches of one format. Equal seed and number give equal logs on every machine.

    One in RECOMPRESS_EVERY is damaged before it is compressed. Of the others one in sixteen each has neither length nor
    checksum corrected, a wrong length, or a bit flipped after both were. One in eight follows a sound batch, and one in
    eight is followed by one.

    first: the byte position from which on bytes are damaged. Unless it is 0, lengths are right.
    """

    def __init__(self, name: str, seed: int, recompress_every: int = RECOMPRESS_EVERY, first: int = 0) -> None:
        self.name, self.seed, self.recompress_every, self.first = name, seed, recompress_every, first
        self.batches, self.compressed = batches(name), list(compressed_batches(name))

    def damage(self, number: int) -> bytes:
        draw = random.Random(f"{self.name} {self.seed} {number}")
        if self.compressed and number % self.recompress_every == 0:
            whole = draw.choice(self.compressed)
            section = damaged(draw, whole.section, 0, draw.choice(self.compressed).section)
            is_sound = FORMATS[self.name].holds_messages and draw.randrange(4)
            return whole.with_section(with_sound_messages(section) if is_sound else section)
        batch = damaged(draw, draw.choice(self.batches), self.first, draw.choice(self.batches))
        kind = draw.randrange(16)
        if (kind or self.first) and len(batch) > SHORTEST_BYTES:
            batch = sealed(batch, self.name)
            if kind == 1 and not self.first:
                batch = batch[:8] + draw.choice(NUMBERS).to_bytes(16, "big", signed=True)[-4:] + batch[12:]
            elif kind == 2:
                at = draw.randrange(self.first, len(batch))
                batch = batch[:at] + bytes([batch[at] ^ 1]) + batch[at + 1 :]
        before, after = (b"" if draw.randrange(8) else draw.choice(self.batches) for _ in range(2))
        return before + batch + after
