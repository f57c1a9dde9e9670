"""Compute digests of everything that kernels write, size and read for fixed inputs, also damaged ones.

The program prints them as JSON. test_interpreted.py compares compiled kernels with the same kernels run as plain
Python.
"""

import gc
import hashlib
import json
import random
import sys
from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np

from kfbench import FORMATS, KfbenchError, Records
from kfbench.batches import BatchFields, DecodedLog
from kfbench.formats import Format
from kfbench.kernels import COMPILED, jit
from tests.common import records_of
from tests.formats.fuzz import INTERESTING, sealed
from tests.reference.model import Message
from tests.strategies import NOW_MS
from tests.templates import cases

EDGES = [-1, 0, 1, 2**31, 2**33, 2**62, 2**63 - 1, NOW_MS]
LENGTHS = [0, 1, 8, 31, 32, 33, 63, 64, 65, 128, 129, 200]
DAMAGED = 12  # damaged batches per format and codec


def inputs(name: str, rng: random.Random) -> Iterator[Records]:
    """Yield two sets of 30 records: the first with timestamps close together, the second with extreme timestamps."""
    fmt = FORMATS[name]
    for extreme in (False, True):
        messages = []
        for i in range(30):
            key, value = (None if rng.random() < 0.2 else rng.randbytes(rng.choice(LENGTHS)) for _ in range(2))
            pairs = tuple((rng.choice(["", "a", "é" * 20]), value) for _ in range(rng.randrange(4)))
            stamp = rng.choice(EDGES) if extreme else NOW_MS + rng.randrange(-9000, 9000)
            offset = 3 * i + (2**30 if i > 20 else 0)
            can = fmt.capabilities
            messages.append(
                Message(
                    offset=offset,
                    timestamp_ms=stamp if can.timestamps else -1,
                    key=key,
                    value=value,
                    headers=pairs if can.headers and i > 3 else (),
                )
            )
        yield records_of(messages)


def damaged(batch: bytes, name: str, rng: random.Random) -> bytes:
    changed = bytearray(batch)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(17, len(changed))] = rng.choice([*INTERESTING, rng.randrange(256)])
    if rng.random() < 0.2:
        del changed[rng.randrange(20, len(changed)) :]
    return sealed(bytes(changed), name) if rng.random() < 0.9 else bytes(changed)


def contents_of(log: DecodedLog) -> list[Any]:
    """Return everything that a reader found in a log, as plain Python values."""
    messages = [(log.records.key(i), log.records.value(i), log.records.headers(i)) for i in range(len(log.records))]
    columns = log.records.timestamps_ms, log.records.offsets, log.create_timestamps_ms, log.bounds
    return [
        messages,
        *(column.tolist() for column in columns),
        log.batch_rows.tolist(),
        [str(error) for error in log.errors],
        log.trailing_bytes,
    ]


def digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def read(fmt: Format, data: bytes) -> list[Any]:
    try:
        return contents_of(fmt.decode(data, on_error="skip"))
    except KfbenchError as error:
        return [type(error).__name__, str(error)]


def digests(name: str) -> dict[str, str]:
    fmt, rng, found = FORMATS[name], random.Random(name), {}
    fields: list[BatchFields | None] = [None]
    if "producer_id" in fmt.capabilities.batch_fields:
        fields.append(BatchFields(producer_id=[1, 2, 3], base_sequence=2**31 - 2, append_time_ms=[-1, 5, 9]))
    for k, records in enumerate(inputs(name, rng)):
        for f, given in enumerate(fields):
            for codec in fmt.capabilities.codecs[:2]:
                label = f"{name} {codec} records {k} fields {f}"
                log = fmt.encode(records, [0, 1, 20, 30], codec, batch_fields=given, lossy=True)
                data = bytes(log)
                found[f"{label} bytes"] = digest(data)
                found[f"{label} read"] = digest(read(fmt, data))
                batches = [data[start:end] for start, end in zip(log.positions[:-1], log.positions[1:], strict=True)]
                for d in range(DAMAGED):
                    bad = damaged(rng.choice(batches), name, rng)
                    found[f"{label} damaged {d}"] = digest(read(fmt, batches[0] + bad + batches[-1]))
            sizes = fmt.size(records, [0, 1, 20, 30], given), fmt.breakdown(records, [0, 1, 20, 30], given)
            found[f"{name} sizes {k} fields {f}"] = digest((sizes[0].tolist(), sizes[1]))
    return found


def filled() -> dict[str, str]:
    """Return digests of the texts that templates (patterns with placeholders) write."""
    return {
        f"template {name}": digest([part.tobytes() for part in template.fill(3, 5, numbers, lengths, keys=keys)])
        for name, template, numbers, lengths, keys in cases()
    }


if __name__ == "__main__":
    vars(jit)["COMPILE_S_PER_BYTE"] = inf  # without KFBENCH_COMPILE nothing is compiled
    everything = {key: value for name in FORMATS for key, value in digests(name).items()} | filled()
    compiled = COMPILED and any(each.overloads for each in gc.get_objects() if isinstance(each, jit._Kernel))
    json.dump({"compiled": compiled, "numpy": np.__version__, "digests": everything}, sys.stdout)
