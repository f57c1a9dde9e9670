"""What a reader of offsets and times saves where the headers of a batch come first. The answer of `kfbench prefix`."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.measure.prefix import Prefixes, measure_prefixes
from kfbench.workloads.grid import GridPoint

FORMAT: Final = "v3-headers-first"
CODEC_NAMES: Final = tuple(name for name in CODECS if name != "none")  # plain bytes need not be decompressed
# From a batch of one small block of any codec to one of many; at last one that is nearly all headers.
POINTS: Final = tuple(
    GridPoint(batch_size=batch_size, value_bytes=value_bytes, timestamp_spread_ms=100)
    for batch_size, value_bytes in ((10, 100), (100, 100), (100, 1_000), (1_000, 1_000), (1_000, 10))
)
LOG_BYTES: Final = 1 << 20
MOST_BATCHES: Final = 100
ROUNDS: Final = 40
SAMPLE_NS: Final = 1_000_000
SEED: Final = 1


@dataclass(frozen=True, kw_only=True)
class Measured:
    batch_size: int
    value_bytes: int
    codec: str
    prefixes: Prefixes

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "batch_size": self.batch_size,
            "value_bytes": self.value_bytes,
            "codec": self.codec,
            "codec_version": CODECS[self.codec].version,
            **asdict(self.prefixes),
        }


def cells() -> list[tuple[GridPoint, str]]:
    return [(point, codec) for point in POINTS for codec in CODEC_NAMES]


def measure_cells(
    given: Iterable[tuple[GridPoint, str]], rounds: int = ROUNDS, sample_ns: int = SAMPLE_NS
) -> Iterator[Measured]:
    for point, codec in given:
        batch_bytes = point.batch_size * (point.key_bytes + point.value_bytes)
        batches = max(2, min(MOST_BATCHES, LOG_BYTES // batch_bytes))
        sample = point.generate(records=batches * point.batch_size, seed=SEED)
        found = measure_prefixes(
            FORMATS[FORMAT], sample.records, sample.bounds, codec, rounds=rounds, sample_ns=sample_ns, seed=SEED
        )
        yield Measured(batch_size=point.batch_size, value_bytes=point.value_bytes, codec=codec, prefixes=found)
