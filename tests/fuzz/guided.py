"""Run as a program, with NUMBA_DISABLE_JIT=1: inputs that atheris (libFuzzer) breeds for the branches they reach.

Every kernel is its plain-Python twin, so an access outside an array is an IndexError. An input is a byte that says what
to do with the rest (see `told_to`), then a batch or a log. Arguments after `--` go to libFuzzer.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import atheris
import numpy as np

with atheris.instrument_imports(include=["kfbench.kernels", "kfbench.formats", "kfbench.log", "kfbench.broker"]):
    from kfbench import FORMATS, KfbenchError, kernels, read_log, write_log
    from kfbench.broker import append, mirror  # noqa: F401

from tests.fuzz import mutate
from tests.fuzz.corpus import LIMITS, LONGEST, Wrapping, golden_files, layout, short, wrappings
from tests.fuzz.native import bound_memory, check

assert not kernels.COMPILED, "NUMBA_DISABLE_JIT=1 is needed: compiled kernels show no branches"

SEAL, COMPRESS = 0x80, 0x40
SAVED = 50  # inputs; run.py asks for a multiple of it
LOG = "read_log"
KIND = 0x1F


class Target:
    """What to read, by number: each format's `decode` and `read_log`; and what its inputs were found to be."""

    def __init__(self, names: list[str], progress: Any, summary: Path | None) -> None:
        self.names, self.progress, self.summary = names, progress, summary
        self.wrappings: dict[str, list[Wrapping]] = {name: list(wrappings(name)) for name in names if name != LOG}
        self.found: dict[str, Any] = {name: {"inputs": 0, "accepted": 0, "refused": Counter[str]()} for name in names}
        self.inputs = 0

    def told_to(self, data: bytes) -> tuple[str, bytes]:
        """(what reads it, the log): sealed, or compressed and sealed, if the first byte says so."""
        if not data:
            return self.names[0], b""
        order, rest = data[0], data[1:]
        name = self.names[(order & KIND) % len(self.names)]
        if name != LOG and order & COMPRESS and (found := self.wrappings[name]):
            return name, found[len(rest) % len(found)].around(rest)
        if order & SEAL and len(rest) > 21:
            place = np.frombuffer(bytearray(rest), np.uint8)
            mutate.seal(place, 0, len(place), layout(name) if name != LOG else mutate.BATCH if rest[16] > 1 else 0)
            rest = place.tobytes()
        return name, rest

    def __call__(self, data: bytes) -> None:
        self.inputs += 1
        self.progress[0] = self.inputs
        name, log = self.told_to(data)
        if name == LOG:
            back = read_log(log, on_error="skip", limits=LIMITS)
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
        if self.summary and self.inputs % SAVED == 0:  # libFuzzer ends the process itself
            self.summary.write_text(json.dumps(self.found))


def seeds(names: list[str]) -> list[bytes]:
    found = []
    for number, name in enumerate(names):
        if name == LOG:
            found += [bytes([number]) + log for log in golden_files()[::4] if len(log) < LONGEST]
            continue
        found += [bytes([number | SEAL]) + batch for batch in short(name)]
        found += [bytes([number | COMPRESS]) + each.section for each in wrappings(name) if len(each.section) < LONGEST]
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*FORMATS, LOG])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--progress", type=Path)
    parser.add_argument("--summary", type=Path)
    parser.add_argument("--artifacts", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--input", type=Path, help="a file that an earlier run left: that one again")
    return parser.parse_args()


if __name__ == "__main__":
    asked = arguments()
    progress = np.memmap(asked.progress, np.int64, "r+", shape=1) if asked.progress else np.zeros(1, np.int64)
    target = Target(asked.names, progress, asked.summary)
    if asked.input:
        target(asked.input.read_bytes())
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        for k, seed in enumerate(seeds(asked.names)):
            Path(folder, f"{k:05}").write_bytes(seed)
        options = {
            "runs": asked.runs, "seed": asked.seed, "max_len": LONGEST, "timeout": 60, "rss_limit_mb": 0,
            "artifact_prefix": f"{asked.artifacts}{os.sep}",
        }  # fmt: skip
        bound_memory()
        atheris.Setup([sys.argv[0], *(f"-{name}={value}" for name, value in options.items()), folder], target)
        atheris.Fuzz()
