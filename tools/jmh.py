"""Time v2, v3, v3-headers-first and columnar with JMH: `make jmh`, or `python -m tools.jmh [--cells claimed]`.

v2 runs on Kafka's classes, the others on those of tools/java/formats. v2-own is v2 in the code of that folder. JMH
stops unless the bytes of each cell equal ours. Then our kernels are timed on the same batches.

datasets/second-opinion/jmh.json stores one run per version of Kafka and selection of cells. A run with another number
of forks, and a smoke run, must go to a file of its own (--out).
"""

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from scipy import stats

from kfbench.arrays import Int64
from kfbench.batches import BatchFields
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.cpu import Samples, measure, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.environment import environment
from kfbench.measure.format_arms import prepare
from kfbench.measure.host_lock import HostLockHeld, HostLockUnusable
from kfbench.measure.path_arms import measure_path
from kfbench.measure.verify import Unverified, verify_records
from kfbench.present.stored_times import AA, AGAIN, CLAIMED, JMH_FILE, NOISY, OUR_OPERATIONS, OWN, OurOperation
from kfbench.records import Records
from kfbench.workloads.grid import GridPoint
from tools import builds, java_formats, jvm
from tools.java_formats import CODECS, VERSIONS
from tools.peers.base.measuring import holding_host

OPERATIONS: Final = ("write", "iterate", "skim", "validate", "lookup")
NAMES: Final = ("v2", OWN, *java_formats.FORMATS[1:])
WRITES: Final = {OWN: "v2", AGAIN: "v2"}  # the format of an arm with another name
SIZES: Final = (1, 10, 50, 200)
BATCHES: Final = 32  # different batches per cell, timed in turn
SPREAD_MS: Final = 1000
JVM_OPTIONS: Final = ("-Xms1g", "-Xmx1g")
CONFIDENCE: Final = 0.95
LEAST_FORKS: Final = 3
LISTS: Final = ("rows", "ours")
OUR_RECORDS: Final = 8192  # a call on 32 small batches would mostly time Python
OUR_ROUNDS: Final = 33
OUR_SAMPLE_NS: Final = 300_000
PRODUCER_ID: Final = 4711
PRODUCER: Final = BatchFields(producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=0)
ALLOCATED: Final = "gc.alloc.rate.norm"  # JMH's name for bytes per operation


class Block(NamedTuple):
    """Cells that one start of JMH times: every combination of these values."""

    operations: Sequence[str]
    names: Sequence[str]
    codecs: Sequence[str]
    sizes: Sequence[int]

    def __len__(self) -> int:
        return len(self.operations) * len(self.names) * len(self.codecs) * len(self.sizes)


class Plan(NamedTuple):
    """The number of JVMs (forks), and of warm-up and timed iterations of one second, per cell."""

    forks: int
    warm_ups: int
    iterations: int


BLOCKS: Final[Mapping[str, tuple[Block, ...]]] = {
    "all": (
        *(Block((operation,), NAMES, CODECS, SIZES) for operation in OPERATIONS),
        Block(("lookupWhole",), ("v2",), CODECS, SIZES),
    ),
    CLAIMED: (
        *(
            Block((operation,), (*NAMES, AGAIN), ("none",), (size,))
            for operation in ("write", "iterate")
            for size in (1, 50)
        ),
        *(Block((operation,), (*NAMES, AGAIN), ("zstd",), (50,)) for operation in ("validate", "lookup")),
    ),
    "smoke": (Block((*OPERATIONS, "lookupWhole"), (*NAMES, AGAIN), ("zstd",), (10,)),),
}
"""The selections of cells. Those of `claimed` are behind claims of the report, and have v2-own a second time (A/A)."""
PLANS: Final = {"all": Plan(1, 2, 3), CLAIMED: Plan(7, 2, 2), "smoke": Plan(1, 1, 2)}
"""JVMs differ more than the iterations of one, so cells behind claims have many short forks. A block has the formats of
one ratio, so that both sides of it are timed within a minute."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make jmh", description="Time formats in Java with JMH.")
    parser.add_argument("--cells", choices=BLOCKS, default="all")
    parser.add_argument("--kafka", choices=VERSIONS, default=next(iter(VERSIONS)), help="version of Kafka")
    parser.add_argument("--forks", type=int, help="JVMs per cell")
    parser.add_argument("--out", type=Path, help="another file for the run")
    options = parser.parse_args()
    plan = PLANS[options.cells]
    if options.forks:
        plan = plan._replace(forks=options.forks)
    if options.out is None and (options.cells == "smoke" or plan != PLANS[options.cells]):
        parser.error(f"a run with fewer or more samples than planned does not belong in {JMH_FILE}: add --out FILE")
    path: Path = options.out or JMH_FILE
    terminal = Console(stderr=True)

    def say(line: str) -> None:
        terminal.print(line, soft_wrap=True, markup=False)

    try:
        run = measured(options.cells, options.kafka, plan, say, path.with_suffix(".part"))
    except (jvm.ToolError, HostLockHeld, HostLockUnusable, Unverified) as error:
        raise SystemExit(f"make jmh: {error}") from None
    store(run, path)
    path.with_suffix(".part").unlink()
    print(shown(run["rows"]))
    say(f"every cell: {path}")


def measured(cells: str, line: str, plan: Plan, say: Callable[[str], None], part: Path) -> dict[str, Any]:
    """Time a selection of cells. Return the facts and rows of the run.

    cells: a key of BLOCKS; line: a key of VERSIONS; part: a file with the rows so far, until all are there. Raises
    ToolError if JMH or the comparison of bytes fails.
    """
    classes = java_formats.built(line, ("formats", "jmh"))
    began = datetime.now(UTC)
    of_kernels, results = [*ours(cells, say)], dict[str, dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        tasks = Path(folder)
        for size in sorted({size for block in BLOCKS[cells] for size in block.sizes}):
            (tasks / f"{size}.json").write_text(json.dumps(task(size)), encoding="utf-8")
        for fork, block in product(range(plan.forks), BLOCKS[cells]):  # a slow minute then hits all cells
            say(f"fork {fork + 1} of {plan.forks}: {', '.join(block.operations)}: {len(block)} cells")
            with holding_host(say):
                add_fork(results, jmh(classes, block, plan, tasks))
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps([row(each) for each in results.values()]), encoding="utf-8")
    first = next(iter(results.values()))
    return {
        "kafka": VERSIONS[line],
        "cells": cells,
        "measured": began.isoformat(timespec="seconds"),
        "jmh": first["jmhVersion"],
        "jvm": f"{first['vmName']} {first['vmVersion']}",
        "jvm_options": first["jvmArgs"],
        "plan": plan._asdict() | {"iteration_s": 1},
        "records": f"16-byte keys, 100-byte template values, {SPREAD_MS:,} ms per batch, {BATCHES} batches in turn",
        "environment": environment(),
        "rows": [row(result) for result in results.values()],
        "ours": of_kernels,
    }


def add_fork(results: dict[str, dict[str, Any]], fork: Sequence[dict[str, Any]]) -> None:
    """Add the samples of one more JVM to the results of each cell."""
    for result in fork:
        cell = f"{result['benchmark']} {result['params']}"
        if cell not in results:
            results[cell] = result
            continue
        for metric, added in zip(_metrics(results[cell]), _metrics(result), strict=True):
            metric["rawData"] += added["rawData"]


def _metrics(result: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return JMH's time and allocated bytes of a cell. Their `rawData` has a list of samples per JVM."""
    return result["primaryMetric"], result["secondaryMetrics"][ALLOCATED]


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Batches of the same number of records. bounds: int64[batches + 1], the first record of each batch, then all."""

    records: Records
    bounds: Int64

    def repeated(self, least_records: int) -> "Batches":
        """Return the batches one or more times in a row, with at least `least_records` records."""
        count = len(self.records)
        times = -(-least_records // count)
        every = [self.bounds[:-1] + count * i for i in range(times)]
        return Batches(
            records=self.records.take(np.tile(np.arange(count), times)),
            bounds=np.concatenate([*every, [count * times]]),
        )


def timed(operation: OurOperation, codec: str, batches: Batches, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the samples of each format, then those of v2 a second time (A/A), as rows of the result file.

    names: the formats, with v2 first. Raises Unverified if a format does not carry the records.
    """
    many = batches.repeated(OUR_RECORDS)
    source = EncodeInput(records=many.records, bounds=many.bounds, codec=codec, batch_fields=PRODUCER)
    for name, samples in zip((*names, AA), _samples(operation, source, names), strict=True):
        yield {
            "operation": operation,
            "format": name,
            "codec": codec,
            "records": len(batches.records) // (len(batches.bounds) - 1),
            "records_per_sample": len(many.records) * samples.inner_loops,
            "cpu_ns": samples.cpu_ns.tolist(),
        }


def _samples(operation: OurOperation, source: EncodeInput, names: Sequence[str]) -> list[Samples]:
    formats = [FORMATS[name] for name in names]
    logs = [source.encode(fmt) for fmt in formats]
    for fmt, log in zip(formats, logs, strict=True):
        verify_records(fmt, source, log)
    if operation == "append":
        paths = measure_path("append", formats, None, source, rounds=OUR_ROUNDS, sample_ns=OUR_SAMPLE_NS, seed=1)
        for failed in filter(None, (path.error for path in paths)):
            raise failed
        return [path.samples for path in paths if path.samples]
    formats.append(FORMATS[BASE_FORMAT])
    arms = prepare(formats, [log.data for log in (*logs, logs[0])], operation, source)
    for arm in arms:
        warm_up(arm)
    return measure(arms, 0, OUR_ROUNDS, OUR_SAMPLE_NS)


def generated(size: int) -> Batches:
    """Return the batches of a batch size, each with offsets from 0."""
    point = GridPoint(batch_size=size, timestamp_spread_ms=SPREAD_MS if size > 1 else 0)
    sample = point.generate(records=BATCHES * size, seed=1)
    records = sample.records.at_offsets(np.arange(BATCHES * size, dtype=np.int64) % size)
    return Batches(records=records, bounds=np.arange(0, BATCHES * size + 1, size, dtype=np.int64))


def task(size: int) -> dict[str, Any]:
    """Return the batches of a batch size, and the SHA-256 of our bytes by format and codec."""
    records, bounds = (batches := generated(size)).records, batches.bounds
    digests = {}
    for name, codec in product((*NAMES, AGAIN), CODECS):
        log = FORMATS[WRITES.get(name, name)].encode(records, bounds, codec, batch_fields=PRODUCER)
        digests[f"{name} {codec}"] = hashlib.sha256(bytes(log)).hexdigest()
    producer = {"producerId": PRODUCER_ID, "producerEpoch": 0, "baseSequence": 0}
    specs = [
        producer | {"records": [java_formats.record_spec(records, i) for i in range(first, first + size)]}
        for first in bounds[:-1].tolist()
    ]
    return {"batches": specs, "sha256": digests}


def ours(cells: str, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Time our kernels on the cells of a selection, and yield the rows."""
    asked = {
        (OUR_OPERATIONS[operation], codec, size)
        for block in BLOCKS[cells]
        for operation, codec, size in product(block.operations, block.codecs, block.sizes)
        if operation in OUR_OPERATIONS
    }
    say(f"kfbench: {len(asked)} cells")
    with holding_host(say):
        for operation, codec, size in sorted(asked):
            yield from timed(operation, codec, generated(size), java_formats.FORMATS)


def jmh(built: java_formats.Built, block: Block, plan: Plan, tasks: Path) -> list[dict[str, Any]]:
    """Run JMH on a block of cells, with one JVM per cell. Return its results. Raises ToolError."""
    result = tasks / "result.json"
    arguments: list[str | Path] = [f"FormatsBenchmark.({'|'.join(block.operations)})$"]
    axes: dict[str, Sequence[object]] = {
        "format": block.names,
        "codec": block.codecs,
        "records": block.sizes,
        "tasks": [tasks],
    }
    for name, values in axes.items():
        arguments += ["-p", f"{name}={','.join(map(str, values))}"]
    arguments += ["-f", "1", "-wi", str(plan.warm_ups), "-i", str(plan.iterations), "-w", "1s", "-r", "1s"]
    arguments += ["-jvmArgs", " ".join(JVM_OPTIONS), "-prof", "gc", "-foe", "true", "-rf", "json", "-rff", result]
    status, output = builds.run(
        jvm.java("org.openjdk.jmh.Main", *arguments, class_path=built.class_path), jvm.environment()
    )
    if status:
        raise jvm.ToolError(f"JMH ends with status {status}: {output[-2000:]}")
    found: list[dict[str, Any]] = json.loads(result.read_text(encoding="utf-8"))
    if len(found) != len(block):
        raise jvm.ToolError(f"JMH has {len(found)} results for {len(block)} cells")
    return found


class Interval(NamedTuple):
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float


def interval(forks: Sequence[Sequence[float]], confidence: float = CONFIDENCE) -> Interval:
    """Return Student's interval of the mean. forks: the samples of each JVM.

    With at least three JVMs it is that of their means, because JVMs differ more than the iterations of one. Else it is
    that of all iterations, as JMH computes it (for 99.9 %).
    """
    samples = [float(np.mean(fork)) for fork in forks] if len(forks) >= LEAST_FORKS else np.concatenate(forks)
    mean = float(np.mean(samples))
    half = float(stats.t.ppf((1 + confidence) / 2, len(samples) - 1)) * float(stats.sem(samples))
    return Interval(mean, mean - half, mean + half)


def row(result: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a result of JMH."""
    parameters = result["params"]
    forks, allocations = (metric["rawData"] for metric in _metrics(result))
    time, allocated = interval(forks), interval(allocations)
    records = int(parameters["records"])
    return {
        "operation": result["benchmark"].rpartition(".")[2],
        "format": parameters["format"],
        "codec": parameters["codec"],
        "records": records,
        "ns_per_op": round(time.mean, 2),
        "ns_per_op_interval": [round(time.low, 2), round(time.high, 2)],
        "ns_per_record": round(time.mean / records, 3),
        "bytes_per_op": round(allocated.mean, 1),
        "bytes_per_op_interval": [round(allocated.low, 1), round(allocated.high, 1)],
        "bytes_per_record": round(allocated.mean / records, 2),
        "forks": len(forks),
        "fork_ns": [round(float(np.mean(fork)), 2) for fork in forks],
        "samples": sum(map(len, forks)),
        "noisy": (time.high - time.low) / 2 > NOISY * time.mean,
    }


def store(run: dict[str, Any], path: Path) -> None:
    """Write the run into the file, in the place of an earlier one with the same version of Kafka and cells."""
    stored = json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []
    key = (run["kafka"], run["cells"])
    runs = [each for each in stored if (each["kafka"], each["cells"]) != key] + [run]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"runs": [\n' + ",\n".join(map(text, runs)) + "]}\n", encoding="utf-8")


def text(run: dict[str, Any]) -> str:
    """Return the JSON text of a run, with one line per fact and per row."""
    facts = [f"{json.dumps(name)}: {json.dumps(run[name])}" for name in run if name not in LISTS]
    for name in LISTS:
        rows = ",\n  ".join(json.dumps(each, separators=(",", ":")) for each in run[name])
        facts.append(f"{json.dumps(name)}: [\n  {rows}]")
    return "{" + ",\n ".join(facts) + "}"


def shown(rows: Sequence[dict[str, Any]]) -> str:
    """Return a table of ns per record, a column per format."""
    table = pd.DataFrame(rows).pivot_table("ns_per_record", ["operation", "codec", "records"], "format", sort=False)
    return f"ns per record\n{table.to_string(float_format='{:,.1f}'.format, na_rep='')}"


if __name__ == "__main__":
    main()
