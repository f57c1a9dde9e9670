"""Time other implementations together with ours: `make peers`, or `python -m tools.peers [--rounds N] [--out FILE]`.

All installed peers are timed. Programs in Go and Rust are built where the machine has the compiler. The limit is timed
too: it copies finished batches and computes their checksums, the least that an encoder must do. For the same records,
each peer must write the same bytes as we do, and read them back. Otherwise it is not timed, and its difference is
stored. So is the end of a program. All samples go into datasets/peers/cpu.json with the facts of the host.
"""

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from kfbench.measure.cell import Cell
from kfbench.measure.cpu import paired_ratio
from kfbench.measure.environment import environment
from kfbench.measure.host_lock import HostLockHeld, HostLockUnusable
from kfbench.present.stored_times import OURS, PEERS_FILE
from tools.builds import ToolError
from tools.peers import discover
from tools.peers.base.arm import Absent, Differs, Peer, PeerEnded
from tools.peers.base.differences import RARE, Difference, rare_differences
from tools.peers.base.measuring import POINTS, Timed, cells, holding_host, measured, task
from tools.peers.base.program import Program

ROUNDS: Final = 49
Result = TypeVar("Result")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make peers", description="Time other implementations together with ours.")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=PEERS_FILE)
    options = parser.parse_args()
    terminal = Console(stderr=True)

    def say(line: str) -> None:
        terminal.print(line, soft_wrap=True, markup=False)

    began, found = datetime.now(UTC), []
    with ExitStack() as stack:
        peers = Peers(stack, say)
        try:
            for name in RARE:
                peers.differences += peers.together(name, lambda left, name=name: rare_differences(left, name))  # type: ignore[misc]
            for i, cell in enumerate(track(cells(), "peers", console=terminal, disable=not terminal.is_terminal)):
                records = f"{cell.axes['batch_size']} per batch, values of {cell.axes['value_bytes']} bytes"
                time_all = partial(measured, given=task(cell), rounds=options.rounds, seed=i, records=records)
                with holding_host(say):
                    timed, of_cell = peers.together(records, time_all)
                found.append((cell, timed))
                peers.differences += of_cell
        except (Differs, ToolError, HostLockHeld, HostLockUnusable) as error:
            raise SystemExit(f"make peers: {error}") from None
        facts = peers.facts() | {"measured": began.isoformat(timespec="seconds"), "environment": environment()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text(facts, found), encoding="utf-8")
    Console(width=None if sys.stdout.isatty() else 170).print(shown(found))
    for each in peers.differences:
        say(f"{each.records}: {each.difference}")
    say(f"every sample: {options.out}")


class Peers:
    """The peers of a run. A program that ends is started again for the next records.

    differences: what peers write or read otherwise than we do, and the records at which a program ended.
    """

    def __init__(self, stack: ExitStack, say: Callable[[str], None]) -> None:
        self.differences: list[Difference] = []
        self._stack, self._say = stack, say
        self._peers: dict[str, Peer] = {}
        for name in discover():
            self._start(name)

    def _start(self, name: str) -> None:
        self._peers.pop(name, None)
        try:
            self._peers[name] = self._stack.enter_context(discover()[name]())
        except Absent as why:
            self._say(f"skipped {name}: {why}")

    def together(self, records: str, run: Callable[[list[Peer]], Result]) -> Result:
        """Return what `run` returns for all peers. If a program ends, repeat it without this peer."""
        left = dict(self._peers)
        while True:
            try:
                return run([*left.values()])
            except PeerEnded as error:
                name = next(name for name, peer in left.items() if peer.name == error.peer)
                self.differences.append(Difference(error.peer, records, str(error)))
                del left[name]
                self._start(name)

    def facts(self) -> dict[str, Any]:
        """Return versions, machines, threads and differences, for the file."""
        peers = [*self._peers.values()]
        programs = [peer for peer in peers if isinstance(peer, Program)]
        return {
            "peers": {peer.name: peer.version for peer in peers},
            "machines": {peer.name: peer.machine for peer in peers if peer.machine},
            "other_threads": {each.name: share for each in programs if (share := each.other_threads()) is not None},
            "differences": [each._asdict() for each in self.differences],
        }


def text(facts: dict[str, Any], found: list[tuple[Cell, list[Timed]]]) -> str:
    """Return the JSON text of the result file. Each arm (one peer, format and operation on one cell) is one line."""
    head = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in facts.items()]
    rows = []
    for cell, arms in found:
        row = json.dumps({"records": cell.records} | {axis: cell.axes[axis] for axis in POINTS})
        lines = ",\n   ".join(json.dumps(_arm_json(each), separators=(",", ":")) for each in arms)
        rows.append(f'{row[:-1]}, "arms": [\n   {lines}]}}')
    return "{" + ",\n ".join(head) + ',\n "cells": [\n  ' + ",\n  ".join(rows) + "]}\n"


def _arm_json(each: Timed) -> dict[str, Any]:
    return {
        "peer": each.arm.peer,
        "operation": each.arm.operation,
        "format": each.arm.format,
        "arm": "aa" if each.arm.again else "measure",
        "warm_up_rounds": each.warm_up_rounds,
        "inner_loops": each.inner_loops,
        "cpu_ns": each.cpu_ns.tolist(),
        "wall_ns": each.wall_ns.tolist(),
    }


def shown(found: list[tuple[Cell, list[Timed]]]) -> Table:
    """Return a table of every peer's CPU time per record in ns, with its ratio to our time in the same rounds."""
    peers = list(dict.fromkeys(each.arm.peer for _, arms in found for each in arms))
    table = Table(
        *("operation", "format", "batch size", "value bytes"), *peers, title="CPU, ns per record (times ours)"
    )
    for cell, arms in found:
        by_arm = {(e.arm.operation, e.arm.format, e.arm.peer): e for e in arms if not e.arm.again}
        for operation, name in dict.fromkeys((key[0], key[1]) for key in by_arm):
            base = _ns(by_arm[operation, name, OURS], cell.records)
            row = []
            for peer in peers:
                if each := by_arm.get((operation, name, peer)):
                    ns = _ns(each, cell.records)
                    row.append(f"{np.median(ns):,.0f} ({paired_ratio(ns, base)[0]:.2f})")
                else:
                    row.append("")
            table.add_row(operation, name, *(str(cell.axes[axis]) for axis in ("batch_size", "value_bytes")), *row)
    return table


def _ns(each: Timed, records: int) -> Any:
    return each.cpu_ns / each.inner_loops / records


if __name__ == "__main__":
    main()
