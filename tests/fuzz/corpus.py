"""Seeds of the fuzzers: single valid batches of each format, plain and compressed.

Some come from golden vectors that Apache Kafka's classes wrote, in datasets/golden and in the folder KFBENCH_GOLDEN.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kfbench import FORMATS, Dictionary, KfbenchError, read_log
from kfbench.batches import BatchFields, DecodedLog
from kfbench.codecs import CODECS, LEGACY_LZ4, Codec, ZstdDictionary
from kfbench.formats import Entries, Format
from kfbench.limits import Limits
from kfbench.log import dictionary_batch
from kfbench.records import Records
from tests.common import batch_fields_of, records_of
from tests.dictionary_samples import BY_NAME
from tests.fuzz import mutate
from tests.kernels.results import inputs
from tests.research.columnar import cases as columnar_cases
from tests.research.columnar import reference as columnar
from tests.strategies import Case

ROOT = Path(__file__).parents[2]
COLUMNAR_SEEDS = 400  # columnar batches that are drawn; those that are too large are dropped
LARGEST_BYTES = 2048  # in a larger batch most damage would hit the payload
GUIDED_BYTES, GUIDED_SEEDS = 1024, 60  # largest input of the guided fuzzer in bytes, and number of its seeds per format
DICTIONARIES = tuple(BY_NAME.values())
LIMITS = Limits(batch_bytes=1 << 20, batch_records=1 << 14, batch_headers=1 << 14, field_bytes=1 << 18)


def layout(name: str) -> int:
    """Return the layout in `mutate` of the format's checksum."""
    checksum = FORMATS[name].checksum
    return mutate.LAYOUTS[checksum.covers_from] if checksum else mutate.UNCHECKED


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
        found |= dict.fromkeys([*columnar_shapes(), *_compressed_columnar_shapes(fmt)])
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
def columnar_shapes() -> list[bytes]:
    """Return small plain columnar batches with all kinds of columns, headers and optional fields."""
    found = [columnar.encode(*columnar_cases.drawn(seed)) for seed in range(COLUMNAR_SEEDS)]
    found += [columnar.encode([], replace(fields, base_offset=5)) for fields in columnar_cases.FIELDS]
    return [batch for batch in found if len(batch) < GUIDED_BYTES]


def _compressed_columnar_shapes(fmt: Format) -> Iterator[bytes]:
    codecs = fmt.capabilities.codecs[1:]
    for seed in range(COLUMNAR_SEEDS):
        messages, fields = columnar_cases.drawn(seed)
        case = Case(batches=(messages,), fields=(fields,))
        yield bytes(
            fmt.encode(records_of(messages), [0, len(messages)], codecs[seed % 4], batch_fields=batch_fields_of(case))
        )


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


def packed(parts: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    return np.frombuffer(b"".join(parts), np.uint8), np.cumsum([0, *map(len, parts)]).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class CompressedBatch:
    """A compressed batch whose payload can be replaced."""

    codec: Codec
    header: bytes
    layout: int
    section: bytes  # the payload before compression

    def with_section(self, section: bytes) -> bytes:
        """Return the batch with `section`, compressed, as its payload. Length and checksum are correct."""
        payload = self.codec.compress(section)
        header = self.header
        if self.layout == mutate.MESSAGE:
            header = header[:-4] + len(payload).to_bytes(4, "big")
        data = np.zeros(len(header) + len(payload), np.uint8)
        data[:] = np.frombuffer(header + payload, np.uint8)
        mutate.seal(data, 0, len(data), self.layout)
        return data.tobytes()


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
                        yield CompressedBatch(codec=codec, header=batch[:header], layout=layout(name), section=section)
                        break
