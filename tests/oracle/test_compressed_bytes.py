"""Compare our compressed payloads with Kafka's: how many batches have equal bytes, and the total sizes."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
import zstandard

from kfbench import FORMATS, read_log
from kfbench.codecs import CODECS
from kfbench.records import Records
from kfbench.workloads import WORKLOADS
from tests.common import messages_of
from tests.compressed import MOST_OFF, TEXT, is_exact, payloads
from tests.oracle.client import Kafka
from tests.oracle.generate import LEVELS, record_spec
from tests.recorded import FOLDER, NAMES

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

DEPTHS = {"1 record per batch": 1, "10 records per batch": 10, "100 records per batch": 100}
WORKLOAD_RECORDS, LARGE_RECORDS = 300, 12  # values of the workload large-payload have at least 100 KB
AT_ONCE = 50  # batches per request to the JVM
LIBRARIES = {"gzip": None, "snappy": "snappy-java", "lz4": "lz4-java", "zstd": "zstd-jni"}  # Kafka's, as jars


def sources(source: str) -> Iterator[tuple[Records, list[int]]]:
    """Yield records and the bounds of their batches."""
    if source == "recorded":
        for name in NAMES:
            log = read_log(FOLDER / name)
            yield log.records, sorted(set(log.bounds.tolist()))  # leaves out batches that the cleaner emptied
        return
    for name, workload in WORKLOADS.items():
        if name != "grid":
            wanted = LARGE_RECORDS if name == "large-payload" else WORKLOAD_RECORDS
            records = workload.generate(records=wanted, seed=1).records
            yield records, [*range(0, len(records), DEPTHS[source]), len(records)]


def written(kafka: Kafka, records: Records, bounds: list[int], codec: str) -> bytes:
    """Return the batches that Kafka's builder writes for these records and bounds."""
    messages = messages_of(records)
    specs = [
        {
            "compression": codec,
            "baseOffset": messages[start].offset,
            "records": [record_spec(message) for message in messages[start:end]],
        }
        for start, end in pairwise(bounds)
    ]
    return b"".join(kafka.write(*specs[at : at + AT_ONCE]) for at in range(0, len(specs), AT_ONCE))


@pytest.mark.parametrize("source", ["recorded", *DEPTHS])
@pytest.mark.parametrize("codec", LIBRARIES)
def test_sizes_are_close_to_kafkas(kafka: Kafka, notes: list[str], codec: str, source: str) -> None:
    """Compress all batches of a source with our codec and with Kafka's builder. Add a line to the summary."""
    pairs: list[tuple[bytes, bytes]] = []
    for records, bounds in sources(source):
        both = (bytes(FORMATS["v2"].encode(records, bounds, codec)), written(kafka, records, bounds, codec))
        pairs += zip(*([payload for *_, payload in payloads(log)] for log in both), strict=True)
    identical = sum(ours == kafkas for ours, kafkas in pairs)
    our_bytes, kafkas_bytes = (sum(map(len, side)) for side in zip(*pairs, strict=True))
    off, library = our_bytes / kafkas_bytes - 1, LIBRARIES[codec]
    theirs = f"{library} {kafka.version(library)}" if library else "the JDK's zlib"
    notes.append(
        f"{codec}, {source}: {identical:,} of {len(pairs):,} batches are Kafka's bytes ({identical / len(pairs):.1%}), "
        f"the total {our_bytes:,} of {kafkas_bytes:,} bytes ({off:+.4%}); "
        f"{CODECS[codec].version} compared with {theirs}"
    )
    assert len(pairs) >= len(WORKLOADS)
    if is_exact(codec, kafka.libraries):
        assert identical == len(pairs)
    assert abs(off) <= MOST_OFF[codec]


@pytest.mark.parametrize("codec", LEVELS)
def test_every_level_is_framed_like_kafkas(kafka: Kafka, codec: str) -> None:
    """Inputs include no bytes and several blocks. Compressed bytes must be equal if the library is Kafka's."""
    for level in [None, *LEVELS[codec]]:
        for data in (b"", b"x", TEXT[:1000], TEXT):
            ours, kafkas = CODECS[codec].compress(data, level), kafka.compress(data, codec, level)
            if is_exact(codec, kafka.libraries, level):
                assert ours == kafkas, (level, len(data))
            elif codec == "zstd":
                header = zstandard.frame_header_size(kafkas)
                assert ours[:header] == kafkas[:header]
                assert ours[-3:] == kafkas[-3:]
                assert len(ours) == pytest.approx(len(kafkas), rel=0.05)


@pytest.mark.parametrize("data", [b"", b"x", TEXT], ids=["empty", "one byte", "several blocks"])
def test_snappy_is_framed_like_kafkas(kafka: Kafka, data: bytes) -> None:
    ours, kafkas = CODECS["snappy"].compress(data), kafka.compress(data, "snappy")
    assert ours[:16] == kafkas[:16]
    assert CODECS["snappy"].decompress(kafkas) == data
    assert len(ours) == pytest.approx(len(kafkas), rel=MOST_OFF["snappy"])
