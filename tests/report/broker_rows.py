"""Made-up rows of broker measurements: two workloads and three codecs, with costs by the rules below."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from kfbench.present.rows import Runs
from tests.present.made import runs_of

FORMATS = ("v0", "v1", "v2", "v3", "v3-headers-first", "enriched")
CODECS = (("none", None), ("gzip", 6), ("zstd", 3))
BATCHES = (10, 100)
ROUNDS = 7
RECORDS = 1000
PLAIN_BYTES = 120_000
SIZES = {"v0": 130_000, "v1": 138_000, "v2": 122_000, "v3": 120_500, "v3-headers-first": 120_500, "enriched": 146_000}
# CPU time per record of v2's append without a codec is 1 unit.
UNIT_NS = 20.0
CODEC_COST = {"none": 0.0, "gzip": 40.0, "zstd": 8.0}  # units to compress a record; to decompress takes a fifth

Row = dict[str, Any]


def broker_rows() -> list[Row]:
    """Return one row per cell, codec, broker path, format and target, and one A/A row (v2 timed again) per path."""
    return [row for batch in BATCHES for codec in CODECS for row in _cell(batch, *codec)]


def changed(change: Callable[[Row], object]) -> Runs:
    """Return a run of broker paths after `change` has edited each row in place."""
    rows = broker_rows()
    for row in rows:
        change(row)
    return runs_of(rows)


def _cell(batch_size: int, codec: str, level: int | None) -> Iterator[Row]:
    common: Row = {
        "kind": "broker", "cell_id": f"broker-{batch_size}", "grid": "broker", "workload": "grid", "seed": 1,
        "batch_size": batch_size, "key_bytes": 16, "value_bytes": 100, "timestamp_spread_ms": 0, "headers": 0,
        "payload": "template", "null_share": 0.0, "header_key_bytes": 12, "header_value_bytes": 20, "offset_stride": 1,
        "base_timestamp_ms": 1_767_225_600_000, "producer": False, "append_time": False, "codec": codec, "level": level,
        "codec_version": "1", "host": "here", "arm": "measure",
    }  # fmt: skip
    batches = RECORDS // batch_size
    for operation in (
        "append",
        "append-time",
        "fetch",
        "fetch-scan",
        "mirror",
        "mirror-through",
        "mirror-look",
        "compact",
        "compact-merge",
        "seek-offset",
        "expire",
        "expire-head",
    ):
        for name in FORMATS:
            if codec == "zstd" and name in ("v0", "v1", "enriched"):
                yield common | {
                    "operation": operation, "format": name, "status": "skipped", "error": f"{name} has no zstd",
                }  # fmt: skip
            elif operation == "mirror-through" and name == "v0":
                yield common | {
                    "operation": operation, "format": name, "status": "error", "error": "AssertionError: it broke",
                }  # fmt: skip
            else:
                row = common | _path(operation, name, codec, batches)
                yield row
                if name == "v2":
                    yield row | {"arm": "aa", "cpu_ns": _times(row["cpu_ns"][0], "aa")}
    for name in FORMATS[:4]:
        for to in FORMATS[:4]:
            if name != to:
                convert = common | {"operation": "convert", "format": name, "to_format": to}
                if codec == "zstd" and {name, to} & {"v0", "v1"}:
                    missing = min(each for each in (name, to) if each in ("v0", "v1"))
                    yield convert | {"status": "skipped", "error": f"{missing} has no zstd"}
                else:
                    yield convert | _conversion(name, to, codec, batches)
                    yield convert | _conversion(name, to, codec, batches, "append-convert")


def _path(operation: str, name: str, codec: str, batches: int) -> Row:
    packed = codec != "none"
    opens = packed and operation in ("append", "append-time", "mirror", "compact", "compact-merge")
    opens |= packed and operation == "mirror-look" and name != "enriched"
    closes = packed and (
        (operation.startswith("append") and name == "v0") or operation in ("mirror", "compact", "compact-merge")
    )
    plain = PLAIN_BYTES * packed
    share = 0.4 if name == "v3-headers-first" and operation.startswith("append") else 1.0
    if operation in ("fetch", "fetch-scan", "mirror-through", "mirror-look", "seek-offset", "expire"):
        done = "batches_untouched"
    elif closes:
        done = "batches_rewritten"
    elif operation == "append-time" and name.startswith("v3"):
        done = "batches_shifted"
    else:
        done = "batches_in_place"
    size_bytes = SIZES[name] // (2 if operation in ("expire-head", "compact-merge") else 1)
    units = 1.0 + opens * share * CODEC_COST[codec] / 5 + closes * CODEC_COST[codec] + (name in ("v0", "v1"))
    if done == "batches_untouched":
        units = 0.01
    return {
        "operation": operation,
        "format": name,
        done: batches * (operation != "fetch"),  # a fetch looks at no batch
        "read_bytes": 0 if operation == "fetch" else 17 * batches if operation == "fetch-scan" else SIZES[name],
        "written_bytes": SIZES[name] if closes else 0 if done == "batches_untouched" else 20 * batches,
        "decompressed_bytes": int(opens * plain * share),
        "recompressed_bytes": int(closes * plain),
        "losses": "{}",
    } | _measured(SIZES[name], size_bytes, units, batches, operation + name)


def _conversion(name: str, to: str, codec: str, batches: int, operation: str = "convert") -> Row:
    """Return the row of a conversion.

    `convert` makes a batch of one record from each plain message. `append` does not.
    """
    packed = codec != "none"
    units = 4.0 + (name > to) + 1.2 * CODEC_COST[codec] + 2 * (operation != "convert")
    is_single = operation == "convert" and not packed and name < "v2" <= to
    size_bytes = SIZES[to] * 3 // 2 if is_single else SIZES[to]
    return {
        "operation": operation,
        "batches_rewritten": batches,
        "read_bytes": SIZES[name],
        "written_bytes": size_bytes,
        "decompressed_bytes": PLAIN_BYTES * packed,
        "recompressed_bytes": PLAIN_BYTES * packed,
        "converted_records": RECORDS,
        "losses": '{"timestamps":1000}' if to == "v0" else "{}",
    } | _measured(SIZES[name], size_bytes, units, batches, name + to)


def _measured(source_bytes: int, size_bytes: int, units: float, batches: int, what: str) -> Row:
    return {
        "status": "ok",
        "records": RECORDS,
        "batches": batches,
        "source_bytes": source_bytes,
        "size_bytes": size_bytes,
        "extra_bytes": 4096,
        "inner_loops": 2,
        "cpu_ns": _times(int(units * UNIT_NS * RECORDS * 2), what),
        "wall_ns": [1] * ROUNDS,
    }


def _times(ns: int, what: str) -> list[int]:
    random = np.random.default_rng(sum(what.encode()))
    return [int(ns * (1 + each)) + 1 for each in random.uniform(-0.01, 0.01, ROUNDS)]
