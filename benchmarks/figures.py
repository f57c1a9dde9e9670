"""The speed figures that kfbench is held to, measured here and now: `python -m benchmarks.figures [--json]`.

Exit status: 0 every target is met, 3 one is missed, 1 there is nothing to compare.

Public calls, one process, one thread, checksums included; key 16 bytes, value 100 bytes, 100 records a batch unless a
line says otherwise. The arms of a comparison run interleaved in a fresh random order every round; times are thread CPU
time; each ratio is the median of the rounds' own ratios. What an arm writes is compared with what it stands beside,
byte for byte, before anything is timed. The peer is aiokafka's Cython code, which works on Python objects, one record a
call; the limit is a copy of the finished batches and their checksum, no more.
"""

import argparse
import gc
import json
import random
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from aiokafka.record._crecords import MemoryRecords

from kfbench import FORMATS, BatchFields, Records
from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.broker.append import append
from kfbench.codecs import CODECS, Allowance
from kfbench.formats._reading import Reading
from kfbench.kernels.crc import crc32c_of
from kfbench.layouts import V2_HEADER
from kfbench.measure.broker import measure_path
from kfbench.measure.cpu import paired_ratio
from kfbench.measure.environment import environment
from kfbench.measure.tally import Question, tally
from kfbench.sources import find as find_sources
from kfbench.sweep.whatif import BATCHINGS, RECODED, SAMPLE_BYTES
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads._arrivals import Poisson, Sine, times_us
from kfbench.workloads._distributions import GeneralisedPareto, draw_lengths
from kfbench.workloads._keys import Keys
from kfbench.workloads._templates import Template
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.grid import GridPoint
from tools.peers.ours import copying
from tools.peers.python import Row, aiokafka

BATCH = 100
KEY_BYTES, VALUE_BYTES = 16, 100
RESIDENT = 4000  # records a call: payload, columns and output are 1.2 MB, so they stay in a cache
LARGE_VALUE_BYTES, LARGE_RECORDS = 1024, 2000  # 2 MB in, 2 MB out
VALIDATED = 20_000  # of which a call's own cost is a small part
MANY = 1_000_000
BROKER_BYTES, BROKER_CODEC_BYTES = 1 << 20, 1 << 17  # keys and values that a call appends
LARGE_BATCH = 500
POPULAR_KEYS = 1_000_000
DRAW_NS = (5, 20, 20, 20)
FILLED_BYTES = 200
TEMPLATES = {
    "a JSON event": '{"id":"<8x>","time":"<time iso>","type":"<page_view|item_list|check_out>","user":"u-<$u key:6d>",'
    '"path":"/<items|carts>/<$ of 99:4d>","ms":<int 3..900 low>,"note":"<text>"}',
    "a log line": "<time iso> <INFO |WARN > [http-8080-<$ of 12:2d>] <orders.Orders|web.Cart>: <$ of 24:text> took "
    "<int 1..2000 low> ms, trace <16x>",
    "upper-case letters": "<A>",
}
RECORDED = Path(__file__).parents[1] / "datasets" / "recorded"
ASKED_LOGS = ("service-headers.log", "activity-lz4.log", "activity-none.log", "transactions.log")
ASKED_BYTES = 8 << 20
NOW_MS = 1_700_000_000_000
ROUND_NS = 3_000_000  # an arm repeats its call until a round takes about this long
MISSED = "MISSED"
V2_HEADER_BYTES = V2_HEADER.itemsize

Arm = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line: `measured` must be at least, or at most, `target`."""

    name: str
    measured: float
    unit: str
    target: float | None = None
    at_least: bool = True
    detail: str = ""

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        met = self.measured >= self.target if self.at_least else self.measured <= self.target
        return "met" if met else MISSED


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The same records as columns and as the Python objects that the peer takes; offsets count from 0 in each batch."""

    records: Records
    rows: list[Row]

    @classmethod
    def of(cls, n: int, value_bytes: int) -> "Sample":
        rng = np.random.default_rng(7)
        keys, values = rng.bytes(n * KEY_BYTES), rng.bytes(n * value_bytes)
        stamps = (NOW_MS + np.sort(rng.integers(0, 1000, (n // BATCH, BATCH)), axis=1)).ravel()
        offsets = np.tile(np.arange(BATCH), n // BATCH)
        rows: list[Row] = [
            (offset, stamp, keys[i * KEY_BYTES : (i + 1) * KEY_BYTES], values[i * value_bytes : (i + 1) * value_bytes])
            for i, (offset, stamp) in enumerate(zip(offsets.tolist(), stamps.tolist(), strict=True))
        ]
        records = Records.from_lists([row[3] for row in rows], [row[2] for row in rows], stamps, offsets=offsets)
        return cls(records=records, rows=rows)


@dataclass(frozen=True, kw_only=True)
class Appends:
    """cpu_ns int64[rounds], one call each, and the counters of a call."""

    cpu_ns: Int64
    did: dict[str, Any]


def aiokafka_writes(name: str, rows: list[Row]) -> Callable[[], list[bytes]]:
    groups = [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]
    with aiokafka() as peer:
        return peer.writer(name, groups)


def aiokafka_reads(data: bytes) -> int:
    """Touches what a consumer needs of each record. Its batch checksum is not asked for; ours is always checked."""
    seen = 0
    records = MemoryRecords(data)
    while records.has_next():
        for record in records.next_batch():
            seen += record.offset >= 0 and (record.timestamp, record.key, record.value) is not None
    return seen


@contextmanager
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def interleaved(arms: dict[str, Arm], records: int, rounds: int) -> dict[str, list[float]]:
    """Nanoseconds a record, one entry a round; entry i of every arm comes from the same round."""
    repeats = {}
    for name, arm in arms.items():
        arm()
        start = time.thread_time_ns()
        arm()
        repeats[name] = max(1, ROUND_NS // max(time.thread_time_ns() - start, 1))
    spent: dict[str, list[float]] = {name: [] for name in arms}
    order, rng = list(arms), random.Random(0)
    with no_collector():
        for _ in range(rounds):
            rng.shuffle(order)
            for name in order:
                arm, count = arms[name], repeats[name]
                start = time.thread_time_ns()
                for _ in range(count):
                    arm()
                spent[name].append((time.thread_time_ns() - start) / count / records)
    return spent


def ratio(numerator: list[float], denominator: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(numerator, denominator, strict=True))


def ns(spent: dict[str, list[float]]) -> str:
    """The arms' medians for the detail of a line."""
    return ", ".join(f"{name} {statistics.median(times):.1f}" for name, times in spent.items()) + " ns a record"


def same(ours: bytes, theirs: list[bytes], what: str) -> None:
    if ours != b"".join(theirs):
        sys.exit(f"{what}: our bytes are not the peer's, so there is nothing to compare")


def roomy(data: Bytes) -> Bytes:
    """A buffer to reuse, past the encoder's upper bound: in a smaller one it has to work out the exact size first."""
    return np.zeros(2 * len(data), np.uint8)


def encode_figures(rounds: int) -> Iterator[Figure]:
    """Cache-resident, into a reused buffer."""
    sample = Sample.of(RESIDENT, VALUE_BYTES)
    v1, v2, v3 = (FORMATS[name] for name in ("v1", "v2", "v3"))
    theirs = {name: aiokafka_writes(name, sample.rows) for name in ("v1", "v2")}
    batch = theirs["v2"]()[0]
    epoch = BatchFields(partition_leader_epoch=int.from_bytes(batch[12:16], "big", signed=True))
    same(bytes(v2.encode(sample.records, BATCH, batch_fields=epoch)), theirs["v2"](), "v2")
    same(bytes(v1.encode(sample.records, BATCH)), theirs["v1"](), "v1")
    outs = {fmt.name: roomy(fmt.encode(sample.records, BATCH).data) for fmt in (v1, v2, v3)}
    arms: dict[str, Arm] = {
        "v2": lambda: v2.encode(sample.records, BATCH, out=outs["v2"]),
        "v2 again": lambda: v2.encode(sample.records, BATCH, out=outs["v2"]),
        "v3": lambda: v3.encode(sample.records, BATCH, out=outs["v3"]),
        "v1": lambda: v1.encode(sample.records, BATCH, out=outs["v1"]),
        "aiokafka v2": theirs["v2"],
        "aiokafka v1": theirs["v1"],
    }
    spent = interleaved(arms, RESIDENT, rounds)
    detail = ns(spent)
    yield Figure(
        name="v2 encode against aiokafka",
        measured=ratio(spent["aiokafka v2"], spent["v2"]),
        unit="x",
        target=10,
        detail=detail,
    )
    yield Figure(
        name="v1 encode against aiokafka", measured=ratio(spent["aiokafka v1"], spent["v1"]), unit="x", target=6
    )
    yield Figure(
        name="v3 encode against v2", measured=ratio(spent["v3"], spent["v2"]), unit="x", target=1.03, at_least=False
    )
    yield Figure(name="v2 against itself (A/A)", measured=ratio(spent["v2 again"], spent["v2"]), unit="x")


def limit_figures(rounds: int) -> Iterator[Figure]:
    """1 KiB values: both arms write into the same buffer, the limit reads the batches that encode wrote."""
    sample = Sample.of(LARGE_RECORDS, LARGE_VALUE_BYTES)
    for name, target in (("v2", 1.2), ("v1", None)):
        fmt = FORMATS[name]
        data = fmt.encode(sample.records, BATCH).data.copy()
        out = roomy(data)
        limit = copying(name, data, out)
        limit()
        if out[: len(data)].tobytes() != bytes(fmt.encode(sample.records, BATCH, out=out)):
            sys.exit(f"{name}: the limit's bytes are not ours")
        arms: dict[str, Arm] = {
            name: partial(fmt.encode, sample.records, BATCH, out=out),
            "limit": limit,
        }
        spent = interleaved(arms, LARGE_RECORDS, rounds)
        yield Figure(
            name=f"{name} encode against copy and checksum, 1 KiB",
            measured=ratio(spent[name], spent["limit"]),
            unit="x",
            target=target,
            at_least=False,
            detail=ns(spent),
        )


def many_figures(rounds: int) -> Iterator[Figure]:
    """10^6 records in one call, into memory that no page of has been touched."""
    sample = Sample.of(MANY, VALUE_BYTES)
    v2 = FORMATS["v2"]
    arms: dict[str, Arm] = {
        "v2": lambda: v2.encode(sample.records, BATCH),
        "aiokafka": aiokafka_writes("v2", sample.rows),
    }
    spent = interleaved(arms, MANY, rounds)
    yield Figure(
        name="v2 encode against aiokafka, 10^6 records, fresh memory",
        measured=ratio(spent["aiokafka"], spent["v2"]),
        unit="x",
        target=6,
        detail=ns(spent),
    )
    shapes = sample.records.shapes
    spent = interleaved({"size": lambda: v2.size(shapes, BATCH)}, MANY, 10 * rounds)
    yield Figure(
        name="v2 size of 10^6 records",
        measured=1e3 / statistics.median(spent["size"]),
        unit="M records/s",
        target=400,
        detail=ns(spent),
    )


def decode_figures(rounds: int) -> Iterator[Figure]:
    sample = Sample.of(RESIDENT, VALUE_BYTES)
    v2 = FORMATS["v2"]
    data = bytes(v2.encode(sample.records, BATCH))
    if v2.decode(data).records != sample.records or aiokafka_reads(data) != RESIDENT:
        sys.exit("the readers disagree")
    array = np.frombuffer(data, np.uint8)
    spent = interleaved({"v2": lambda: v2.decode(array), "aiokafka": lambda: aiokafka_reads(data)}, RESIDENT, rounds)
    yield Figure(
        name="v2 decode to columns against aiokafka's iteration",
        measured=ratio(spent["aiokafka"], spent["v2"]),
        unit="x",
        target=6,
        detail=ns(spent),
    )


def appended(names: Sequence[str], batch: int, value_bytes: int, codec: str, rounds: int) -> dict[str, Appends]:
    """Appends of the same records, interleaved, one batch a request, assigned in the buffer that it came in."""
    timed: dict[str, Appends] = {}
    point = GridPoint(batch_size=batch, value_bytes=value_bytes)
    room = (BROKER_BYTES if codec == "none" else BROKER_CODEC_BYTES) // (batch * (value_bytes + KEY_BYTES))
    sample = point.generate(records=batch * max(room, 1), seed=7)
    found = measure_path(
        "append", [FORMATS[name] for name in names if codec in FORMATS[name].capabilities.codecs], None,
        sample.records, sample.bounds, codec, None, sample.batch_fields, rounds=rounds, sample_ns=1, seed=7,
    )  # fmt: skip
    for each in found:
        if each.samples is None:
            sys.exit(f"append of {each.format}, {codec}: {each.error}")
        if each.arm == "measure":
            timed[each.format] = Appends(cpu_ns=each.samples.cpu_ns, did=each.columns)
    return timed


def append_figures(rounds: int) -> Iterator[Figure]:
    """What a path gives is verified before it is timed, and again afterwards."""
    for codec in CODECS:
        found = appended(("v0", "v1", "v2", "v3-headers-first"), BATCH, VALUE_BYTES, codec, rounds)
        if "v0" in found:
            yield _against(found, "v1", "v0", f"v1 append against v0, {codec}")
        yield _against(found, "v3-headers-first", "v2", f"headers-first append against v2, {codec}")
        if codec != "none":  # far more than a block of any codec
            large = appended(("v2", "v3-headers-first"), LARGE_BATCH, LARGE_VALUE_BYTES, codec, rounds)
            name = f"headers-first append against v2, {codec}, {LARGE_BATCH} x 1 KiB a batch"
            yield _against(large, "v3-headers-first", "v2", name)
        for name in ("v2", "v3-headers-first"):
            work = found[name].did
            if work["batches_in_place"] != work["batches"]:
                sys.exit(f"{name}, {codec}: batches were not assigned in place")
        yield Figure(
            name=f"v2 append, {codec}: bytes set in a batch",
            measured=found["v2"].did["written_bytes"] / found["v2"].did["batches"],
            unit="bytes",
            target=V2_HEADER_BYTES,
            at_least=False,
        )


def _against(found: dict[str, Appends], name: str, base: str, title: str) -> Figure:
    done, whole = (found[each].did["decompressed_bytes"] for each in (name, base))
    return Figure(
        name=title,
        measured=paired_ratio(found[name].cpu_ns, found[base].cpu_ns)[0],
        unit="x",
        detail=f"decompressed {done:,} bytes against {whole:,}" if whole else "",
    )


def validation_figures(rounds: int) -> Iterator[Figure]:
    """The limit: one checksum of all bytes, and the columns of all records, which validation has to look at.

    The target is for what records cost. A call has a fixed cost beside it, a small part of VALIDATED records' and a
    large one of RESIDENT's: that line has no target, and shows what the fixed cost adds.
    """
    v2 = FORMATS["v2"]
    for records, target in ((RESIDENT, None), (VALIDATED, 2)):
        log = v2.encode(Sample.of(records, VALUE_BYTES).records, BATCH)
        log = replace(log, data=log.data.copy())  # each call sets the same offsets, and the next one finds them
        reading = Reading(log.data, log.positions, v2.magic, "raise", Allowance.of(len(log.data), None))
        validate = partial(append, log, v2, base_offset=records, from_zero=False, in_place=True)
        if v2.decode(validate().data).records.offsets.tolist() != list(range(records, 2 * records)):
            sys.exit("append: wrong offsets")
        if len(limit_of_validation(log, reading)) != records:
            sys.exit("the limit does not index every record")
        spent = interleaved({"append": validate, "limit": partial(limit_of_validation, log, reading)}, records, rounds)
        yield Figure(
            name=f"v2 append against CRC-32C and record index, {records:,} records a call",
            measured=ratio(spent["append"], spent["limit"]),
            unit="x",
            target=target,
            at_least=False,
            detail=ns(spent)
            + (
                ""
                if target
                else f"; the target stands on {VALIDATED:,} records a call, where the "
                "fixed cost of a call is a small part"
            ),
        )


def limit_of_validation(log: EncodedLog, reading: Reading) -> Int64:
    crc32c_of(log.data)
    return reading.index()[0].offsets


def draw_figures(rounds: int) -> Iterator[Figure]:
    """What workloads are made of: a block a call."""
    values = GeneralisedPareto(theta=15, sigma=214.476, k=0.348238, whole="floor")
    keys = Keys(cardinality=POPULAR_KEYS, skew=0.99)
    arms: dict[str, Arm] = {
        "a length": lambda: draw_lengths(values, 1, 1, 0, BLOCK_RECORDS),
        f"a key of {POPULAR_KEYS:,} by Zipf": lambda: keys.ids(1, 0, BLOCK_RECORDS),
        "a Poisson arrival": partial(times_us, Poisson(rate_per_s=1_000), 1, 1),
        "an arrival under a sine": partial(
            times_us, Sine(rate_per_s=4_500, amplitude_per_s=1_000, radians_per_s=7.3e-5), 1, 1
        ),
    }
    spent = interleaved(arms, BLOCK_RECORDS, rounds)
    for name, target in zip(arms, DRAW_NS, strict=True):
        yield Figure(
            name=f"drawing {name}",
            measured=statistics.median(spent[name]),
            unit="ns",
            target=target,
            at_least=False,
        )


def template_figures(rounds: int) -> Iterator[Figure]:
    """A block a call, into fresh memory, as workloads fill them."""
    numbers, lengths = np.arange(BLOCK_RECORDS), np.full(BLOCK_RECORDS, FILLED_BYTES, np.int32)
    parsed = {name: Template.parse(text) for name, text in TEMPLATES.items()}
    arms: dict[str, Arm] = {name: partial(each.fill, 1, 1, numbers, lengths) for name, each in parsed.items()}
    spent = interleaved(arms, BLOCK_RECORDS, rounds)
    for name in arms:
        yield Figure(
            name=f"filling {name} of {FILLED_BYTES} bytes",
            measured=1e3 * FILLED_BYTES / statistics.median(spent[name]),
            unit="MB/s",
            target=300,
        )


def workload_figures(rounds: int) -> Iterator[Figure]:
    """Shapes, batches and header fields of a block a call: what a sweep without payload takes."""
    arms: dict[str, Arm] = {
        name: partial(workload.generate, records=BLOCK_RECORDS, seed=1) for name, workload in CATALOGUE.items()
    }
    spent = interleaved(arms, BLOCK_RECORDS, rounds)
    rates = {name: 1e3 / statistics.median(times) for name, times in spent.items()}
    slowest = min(rates, key=lambda name: rates[name])
    yield Figure(
        name=f"shapes of the slowest workload, {slowest}",
        measured=rates[slowest],
        unit="M records/s",
        target=20,
        detail=", ".join(f"{name} {rates[name]:.0f}" for name in sorted(rates, key=lambda name: rates[name])),
    )


def what_if_figures(rounds: int) -> Iterator[Figure]:
    """Recorded batches, read, sized in every format and batching, and a stretch of them put through every codec, beside
    a plain read of the file into memory. What a share of a segment of 1 GiB is asked by default."""
    data = b"".join((RECORDED / name).read_bytes() for name in ASKED_LOGS)
    with TemporaryDirectory() as folder:
        path = Path(folder, "00000000000000000000.log")
        path.write_bytes(data * (ASKED_BYTES // len(data)))
        [part] = find_sources([path]).parts
        every = tuple((fmt.name, codec) for fmt in FORMATS.values() for codec in fmt.capabilities.codecs)
        whole = Question(
            arms=every, batchings=BATCHINGS, recoded=RECODED, share=SAMPLE_BYTES / (1 << 30), always=part.key
        )
        plain = replace(whole, arms=tuple(arm for arm in every if arm[1] == "none"))
        if tally(part, plain).sources[0].sound_bytes != part.size_bytes:
            sys.exit("what-if: a batch was left out")
        arms: dict[str, Arm] = {
            "bytes alone": partial(tally, part, plain),
            "with a sample of codecs": partial(tally, part, whole),
            "read": path.read_bytes,
        }
        spent = interleaved(arms, part.size_bytes, rounds)
    read = f"a plain read: {1e3 / statistics.median(spent.pop('read')):,.0f} MB/s"
    for name, times in spent.items():
        yield Figure(name=f"what-if, {name}", measured=1e3 / statistics.median(times), unit="MB/s", detail=read)


def command_figures(rounds: int) -> Iterator[Figure]:
    """Wall time of the installed command, after one run that is not counted."""
    command = Path(sysconfig.get_path("scripts"), "kfbench")
    for arguments, target in ((["--help"], 0.5), (["table", "kip98"], 2.0)):
        walls = []
        for _ in range(rounds + 1):
            start = time.perf_counter()
            subprocess.run([command, *arguments], check=True, stdout=subprocess.DEVNULL)
            walls.append(time.perf_counter() - start)
        yield Figure(
            name=f"kfbench {' '.join(arguments)}",
            measured=statistics.median(walls[1:]),
            unit="s",
            target=target,
            at_least=False,
        )


def lines(figures: list[Figure]) -> Iterator[str]:
    width = max(len(figure.name) for figure in figures)
    yield f"{'figure':{width}}  {'measured':>18}  {'target':>10}"
    for figure in figures:
        target = "" if figure.target is None else f"{'>=' if figure.at_least else '<='} {figure.target:g}"
        measured = f"{figure.measured:>6.4g} {figure.unit:11}"
        yield f"{figure.name:{width}}  {measured}  {target:>10}  {figure.verdict}".rstrip()
        if figure.detail:
            yield f"  {figure.detail}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Print kfbench's speed figures beside their targets.")
    parser.add_argument("--json", action="store_true", help="figures and environment as JSON")
    parser.add_argument(
        "--rounds", type=int, default=120, help="rounds of the short comparisons (default: %(default)s)"
    )
    options = parser.parse_args()
    few = max(3, options.rounds // 12)
    figures = [
        *encode_figures(options.rounds),
        *limit_figures(options.rounds),
        *decode_figures(options.rounds),
        *many_figures(few),
        *append_figures(few),
        *validation_figures(options.rounds),
        *draw_figures(options.rounds),
        *template_figures(few),
        *workload_figures(few),
        *what_if_figures(max(3, few // 3)),
        *command_figures(few),
    ]
    if options.json:
        told: list[dict[str, Any]] = [asdict(figure) | {"verdict": figure.verdict} for figure in figures]
        print(json.dumps({"figures": told, "environment": environment()}, indent=1))
    else:
        print("\n".join(lines(figures)))
    return 3 if any(figure.verdict == MISSED for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
