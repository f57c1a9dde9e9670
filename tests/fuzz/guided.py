"""The coverage-guided fuzzer, a program. The library atheris (libFuzzer) looks for inputs that reach new branches.

Set NUMBA_DISABLE_JIT=1: kernels then run as plain Python, and an access outside an array is an IndexError. The first
byte of an input selects a reader (see `parse`); a batch or a log follows. Arguments after `--` go to libFuzzer.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import atheris
import numpy as np

with atheris.instrument_imports(include=["kfbench.kernels", "kfbench.formats", "kfbench.log", "kfbench.broker"]):
    from kfbench import FORMATS, KfbenchError, kernels, read_log, write_log
    from kfbench.broker import append  # noqa: F401

from tests.formats.fuzz import sealed
from tests.fuzz.corpus import (
    DICTIONARIES,
    GUIDED_BYTES,
    LIMITS,
    SHORTEST_BYTES,
    CompressedBatch,
    compressed_batches,
    golden_data,
    guided_batches,
    segments,
)
from tests.fuzz.native import bound_memory, check
from tests.fuzz.run import SAVED

assert not kernels.COMPILED, "NUMBA_DISABLE_JIT=1 is needed: compiled kernels show no branches"

SEAL, COMPRESS = 0x80, 0x40
LOG = "read_log"
KIND = 0x1F


class Input(NamedTuple):
    reader: str
    """A format, or LOG for `read_log`."""
    log: bytes


class FuzzTarget:
    """The fuzz target: it reads each input and counts accepted and refused inputs per reader."""

    def __init__(self, names: list[str], progress: Any, summary: Path | None) -> None:
        self.names, self.progress, self.summary = names, progress, summary
        self.compressed_batches: dict[str, list[CompressedBatch]] = {
            name: list(compressed_batches(name)) for name in names if name != LOG
        }
        self.found: dict[str, Any] = {name: {"inputs": 0, "accepted": 0, "refused": Counter[str]()} for name in names}
        self.inputs = 0

    def parse(self, data: bytes) -> Input:
        """Return the reader that the first byte selects, and the log made from the other bytes.

        Two bits of the first byte say if the log is compressed, or gets a correct length and checksum.
        """
        if not data:
            return Input(self.names[0], b"")
        order, rest = data[0], data[1:]
        name = self.names[(order & KIND) % len(self.names)]
        if name != LOG and order & COMPRESS and (found := self.compressed_batches[name]):
            return Input(name, found[len(rest) % len(found)].with_section(rest))
        if order & SEAL and len(rest) > SHORTEST_BYTES:
            rest = sealed(rest, name if name != LOG else "")
        return Input(name, rest)

    def __call__(self, data: bytes) -> None:
        self.inputs += 1
        self.progress[0] = self.inputs
        name, log = self.parse(data)
        if name == LOG:
            back = read_log(log, on_error="skip", limits=LIMITS, dictionaries=DICTIONARIES)
            fields = [error.field for error in back.errors]
            if not fields and len(back):
                try:
                    write_log(back)
                except KfbenchError:
                    fields = ["not written again"]
        else:
            fields = check(name, np.frombuffer(log, np.uint8), again=True)
        found = self.found[name]
        found["inputs"] += 1
        found["accepted"] += not fields
        found["refused"].update(set(fields))
        if self.summary and self.inputs % SAVED == 0:  # libFuzzer ends the process without exit handlers
            self.summary.write_text(json.dumps(self.found))


def seeds(names: list[str]) -> list[bytes]:
    found = []
    for number, name in enumerate(names):
        if name == LOG:
            found += [bytes([number]) + log for log in [*golden_data()[::4], *segments()] if len(log) < GUIDED_BYTES]
            continue
        found += [bytes([number | SEAL]) + batch for batch in guided_batches(name)]
        found += [
            bytes([number | COMPRESS]) + each.section
            for each in compressed_batches(name)
            if len(each.section) < GUIDED_BYTES
        ]
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*FORMATS, LOG])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--progress", type=Path)
    parser.add_argument("--summary", type=Path)
    parser.add_argument("--artifacts", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--input", type=Path, help="run only the input in this file, which an earlier run left")
    return parser.parse_args()


if __name__ == "__main__":
    options = arguments()
    progress = np.memmap(options.progress, np.int64, "r+", shape=1) if options.progress else np.zeros(1, np.int64)
    target = FuzzTarget(options.names, progress, options.summary)
    if options.input:
        target(options.input.read_bytes())
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        for k, seed in enumerate(seeds(options.names)):
            Path(folder, f"{k:05}").write_bytes(seed)
        fuzzer_options = {
            "runs": options.runs, "seed": options.seed, "max_len": GUIDED_BYTES, "timeout": 60, "rss_limit_mb": 0,
            "artifact_prefix": f"{options.artifacts}{os.sep}",
        }  # fmt: skip
        bound_memory()
        atheris.Setup([sys.argv[0], *(f"-{name}={value}" for name, value in fuzzer_options.items()), folder], target)
        atheris.Fuzz()
