"""Write a table into docs/what-if.md: bytes at the levels of KIP-390, as published and on recorded logs.

usage: python -m tools.kip390_page              write the table
       python -m tools.kip390_page FILE...      print it for text files: a line is a record, 100 records per batch

Sizes are of whole logs in v2, in the batches of each log. They depend on bytes only, so a second run gives the same.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.log import read_log
from kfbench.records import Records
from tools.block import Block

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "what-if.md"
BLOCK: Final = Block(page=PAGE, name="KIP-390", by="`python -m tools.kip390_page`")
RECORDED: Final = ("activity-none", "service-headers", "telemetry")
LINES_PER_BATCH: Final = 100

PUBLISHED_NONE: Final = 5_659_454_754
PUBLISHED: Final = {
    ("gzip", 1): 1_787_505_238,
    ("gzip", 6): 1_644_280_629,
    ("gzip", 9): 1_643_517_758,
    ("lz4", 1): 2_211_346_795,
    ("lz4", 9): 2_184_022_257,
    ("lz4", 17): 2_178_643_665,
    ("zstd", -5): 1_997_500_892,
    ("zstd", 1): 1_521_783_958,
    ("zstd", 3): 1_494_620_615,
    ("zstd", 12): 1_458_150_768,
    ("zstd", 18): 1_492_015_424,
}  # bytes of one topic, from the table of KIP-390


class Log(NamedTuple):
    """Records and their batches: batch b has the records bounds[b] to bounds[b + 1] - 1."""

    name: str
    records: Records
    bounds: Sequence[int]


def recorded(name: str) -> Log:
    log = read_log(ROOT / "datasets" / "recorded" / f"{name}.log")
    return Log(name, log.records, log.bounds.tolist())


def lines_of(path: Path) -> Log:
    records = Records.from_lists(path.read_bytes().splitlines())
    return Log(path.stem, records, [*range(0, len(records), LINES_PER_BATCH), len(records)])


def shares(log: Log) -> list[float]:
    """Return the size at each level of PUBLISHED, as a share of the size without a codec."""
    base = FORMATS[BASE_FORMAT]
    plain = len(base.encode(log.records, log.bounds).data)
    return [len(base.encode(log.records, log.bounds, *arm).data) / plain for arm in PUBLISHED]


def table(logs: Sequence[Log]) -> str:
    """Return the sizes as shares of the size without a codec, in Markdown: a row per codec and level."""
    columns = [[size / PUBLISHED_NONE for size in PUBLISHED.values()], *map(shares, logs)]
    lines = [
        f"| Codec, level | KIP-390 | {' | '.join(log.name for log in logs)} |",
        "| --- |" + " ---: |" * len(columns),
    ]
    for i, (codec, level) in enumerate(PUBLISHED):
        lines.append(f"| {codec} {level} | {' | '.join(f'{100 * column[i]:.1f} %' for column in columns)} |")
    return "\n".join(lines)


def main(paths: Sequence[str]) -> None:
    if paths:
        print(table([lines_of(Path(path)) for path in paths]))
    else:
        BLOCK.write(table([recorded(name) for name in RECORDED]))


if __name__ == "__main__":
    main(sys.argv[1:])
