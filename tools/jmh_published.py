"""Measure a published JMH result of Kafka again: `python -m tools.jmh_published`.

It is the first table of apache/kafka pull request 23477: bytes that an iteration over a v2 batch allocates.
The result goes into datasets/second-opinion/published.json, beside the published numbers.
"""

import argparse
import json
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kfbench.measure.environment import environment
from kfbench.shipped import DATASETS
from tools import java_formats, jvm
from tools.jmh import ALLOCATED, Plan, interval, run_jmh

PUBLISHED_FILE: Final = DATASETS / "second-opinion" / "published.json"
WHOLE, BODILESS = "whole", "withoutBodies"
PUBLISHED: Final[Mapping[tuple[str, str], int]] = {
    ("none", WHOLE): 90_120,
    ("none", BODILESS): 90_120,
    ("gzip", WHOLE): 243_530,
    ("gzip", BODILESS): 32_811,
    ("lz4", WHOLE): 285_592,
    ("lz4", BODILESS): 74_873,
    ("zstd", WHOLE): 359_726,
    ("zstd", BODILESS): 154_769,
}
"""Codec and reading -> allocated bytes per batch, as published."""
KAFKA: Final = "4.4"
CODECS: Final = tuple(dict.fromkeys(codec for codec, _ in PUBLISHED))
PLAN: Final = Plan(1, 3, 5)  # as published


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.jmh_published", description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=PUBLISHED_FILE)
    options = parser.parse_args()
    try:
        run = measured(PLAN)
    except jvm.ToolError as error:
        raise SystemExit(f"jmh_published: {error}") from None
    options.out.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    print(options.out)


def measured(plan: Plan) -> dict[str, Any]:
    """Run the benchmark. Return its facts, and bytes per batch by codec and reading. Raises ToolError."""
    built = java_formats.built(KAFKA, ("formats", "published"))
    with tempfile.TemporaryDirectory() as folder:
        results = run_jmh(built, "IterationBenchmark", {"codec": CODECS}, plan, Path(folder) / "result.json")
    return {
        "kafka": java_formats.VERSIONS[KAFKA],
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "jvm": f"{results[0]['vmName']} {results[0]['vmVersion']}",
        "environment": environment(),
        "rows": [row(result) for result in results],
    }


def row(result: dict[str, Any]) -> dict[str, Any]:
    allocated = interval(result["secondaryMetrics"][ALLOCATED]["rawData"])
    return {
        "codec": result["params"]["codec"],
        "reading": result["benchmark"].rpartition(".")[2],
        "bytes_per_batch": round(allocated.mean, 1),
        "bytes_per_batch_interval": [round(allocated.low, 1), round(allocated.high, 1)],
    }


if __name__ == "__main__":
    main()
