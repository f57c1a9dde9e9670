"""Made-up rows of named workloads: sizes, losses and CPU times by the rules below."""

from typing import Any

import numpy as np

Row = dict[str, Any]

FORMATS = ("v0", "v1", "v2", "v3")
RECORDS, ROUNDS = 1_000, 7
PLAIN_BYTES = 100  # bytes of payload per record
OVERHEAD = {"v0": 26, "v1": 34, "v2": 8, "v3": 7}  # bytes per record; batch headers (HEADER) are added
HEADER = {"v0": 0, "v1": 0, "v2": 61, "v3": 49}
LOSSES = {"v0": '{"timestamps":1000,"producer_id":10,"base_sequence":10}', "v1": '{"producer_id":10}'}
# name -> variant -> records per batch. The second workload has headers; the last is not in the catalogue.
WORKLOADS = {
    "cluster-metadata": {"default": 1},
    "service-events": {"default": 10},
    "user-activity": {"default": 5, "rate-10000": 50, "rate-10": 1},
    "forgotten": {"default": 1_000},
}
CPU = {"v0": 2.0, "v1": 2.5, "v2": 1.0, "v3": 1.1}
CODECS = (("none", None), ("gzip", 6), ("zstd", 3))


def size_bytes(name: str, batch: int, codec: str) -> int:
    """Return the encoded size of all RECORDS records in bytes. A codec halves everything except batch headers."""
    return RECORDS * (PLAIN_BYTES + OVERHEAD[name]) // (1 if codec == "none" else 2) + RECORDS // batch * HEADER[name]


def workload_rows() -> list[Row]:
    found: list[Row] = []
    for workload, variants in WORKLOADS.items():
        for variant, batch in variants.items():
            common: Row = {
                "cell_id": f"{workload}-{variant}", "grid": "named", "workload": workload, "variant": variant,
                "seed": 1, "codec_version": "1", "host": "here",
            }  # fmt: skip
            for codec, level in CODECS:
                found += [
                    common | {"kind": "bytes", "codec": codec, "level": level} | _bytes(workload, name, batch, codec)
                    for name in FORMATS
                ]
            for operation in ("encode", "decode"):
                for name, arm in (*((name, "measure") for name in FORMATS), ("v2", "aa")):
                    timed = common | {"kind": "cpu", "grid": "cpu-named", "codec": "none", "operation": operation}
                    timed["cache"] = "resident"
                    found.append(timed | {"arm": arm} | _cpu(workload, name, arm))
    return found


def _missing(workload: str, name: str, codec: str) -> Row | None:
    if name in ("v0", "v1") and (workload == "service-events" or codec == "zstd"):
        why = "headers" if workload == "service-events" else codec
        return {"format": name, "status": "skipped", "error": f"{name} has no {why}"}
    return None


def _bytes(workload: str, name: str, batch: int, codec: str) -> Row:
    size = size_bytes(name, batch, codec)
    return _missing(workload, name, codec) or {
        "format": name, "status": "ok", "records": RECORDS, "batches": RECORDS // batch, "size_bytes": size,
        "payload_bytes": RECORDS * PLAIN_BYTES, "losses": LOSSES.get(name, "{}"),
    }  # fmt: skip


def _cpu(workload: str, name: str, arm: str) -> Row:
    random = np.random.default_rng(sum(f"{workload}{name}{arm}".encode()))
    times = [int(CPU[name] * 10_000 * (1 + each)) for each in random.uniform(-0.01, 0.01, ROUNDS)]
    return _missing(workload, name, "none") or {
        "format": name, "status": "ok", "records": RECORDS, "inner_loops": 2, "cpu_ns": times, "wall_ns": times,
    }  # fmt: skip
