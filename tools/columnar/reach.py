"""What it takes to reach offsets, times and lengths of compressed batches: columnar against v2 and v3-headers-first.

usage: python -m tools.columnar.reach [--stored]

Batches of 100 records of some workloads, under each codec. v2 decompresses and decodes all; v3-headers-first begins to
decompress a batch; columnar decompresses nothing. All check the CRC of all bytes. They take turns: in each of ROUNDS
rounds each format reads each log once. The median of a thread's CPU time. Writes datasets/columnar/reach.json and its
table in docs/adr/0007; --stored writes the table alone.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from kfbench.batches import EncodedLog
from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.workloads import WORKLOADS
from tools.block import Block

ROOT: Final = Path(__file__).resolve().parents[2]
STORED: Final = ROOT / "datasets" / "columnar" / "reach.json"
DECISION: Final = ROOT / "docs" / "adr" / "0007-metadata-outside-the-codec.md"
WORKLOAD_NAMES: Final = ("consumer-offsets", "user-activity", "cloudevents", "log-shipping")
FORMAT_NAMES: Final = ("v2", "v3-headers-first", "columnar")
RECORDS: Final = 10_000
BATCH: Final = 100
ROUNDS: Final = 15


def timed(read: Callable[[EncodedLog], object], log: EncodedLog) -> int:
    start = time.thread_time_ns()
    read(log)
    return time.thread_time_ns() - start


def rows() -> list[dict[str, Any]]:
    found = []
    for workload in WORKLOAD_NAMES:
        records = WORKLOADS[workload].generate(records=RECORDS, seed=0).records
        for codec in CODECS:
            logs = {name: FORMATS[name].encode(records, BATCH, codec) for name in FORMAT_NAMES}
            taken: dict[str, list[int]] = {name: [] for name in FORMAT_NAMES}
            for turn in range(ROUNDS + 2):
                for name, log in logs.items():
                    took = timed(FORMATS[name].decode_metadata, log)
                    if turn > 1:  # what has to be compiled or cached, has been
                        taken[name].append(took)
            found += [
                {
                    "workload": workload,
                    "codec": codec,
                    "format": name,
                    "ns_per_record": round(median(each) / RECORDS, 2),
                }
                for name, each in taken.items()
            ]
    return found


def table(stored: Sequence[Mapping[str, Any]]) -> str:
    of = {(row["workload"], row["codec"], row["format"]): row["ns_per_record"] for row in stored}
    lines = [["ns a record", "codec", *FORMAT_NAMES], ["---"] * (2 + len(FORMAT_NAMES))]
    lines += [
        [workload, codec, *(f"{of[workload, codec, name]:,.0f}" for name in FORMAT_NAMES)]
        for workload in WORKLOAD_NAMES
        for codec in CODECS
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def block() -> Block:
    return Block(page=DECISION, name="times", by="tools/columnar/reach.py")


def main() -> None:
    if sys.argv[1:] not in ([], ["--stored"]):
        raise SystemExit(__doc__)
    if not sys.argv[1:]:
        parts = ",\n".join(f"  {json.dumps(row)}" for row in rows())
        STORED.write_text(f'{{"rounds": {ROUNDS},\n "rows": [\n{parts}\n ]}}\n', encoding="utf-8")
    block().write(table(json.loads(STORED.read_text(encoding="utf-8"))["rows"]))


if __name__ == "__main__":
    main()
