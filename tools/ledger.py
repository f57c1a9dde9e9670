"""The ledger: bytes and instructions per record of some sixty cells, a line each, kept in ledger.csv beside the code.

Its history is the history of the cost: a commit that changes a cell by more than .5 % renews the ledger.

usage: python -m tools.ledger           write ledger.csv
       python -m tools.ledger --check   compare with ledger.csv, if this machine can; fail if a number differs
"""

import argparse
import csv
import hashlib
import platform
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from kfbench.measure.callgrind import FEATURES, PROCESSOR, valgrind_version, why_not_counted
from kfbench.measure.container import workers
from kfbench.measure.instructions import per_record
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.task import measure_cell

ROOT: Final = Path(__file__).resolve().parents[1]
LEDGER: Final = ROOT / "benchmarks" / "ledger.csv"
SWEEP: Final = ROOT / "benchmarks" / "ledger.toml"
LOCK: Final = ROOT / "requirements.lock"
TOLERANCE: Final = 0.005
PROCESS_BYTES: Final = 1 << 30  # the memory of a process under valgrind

KEY: Final = ("format", "batch_size", "codec", "operation")
NUMBERS: Final = ("bytes_per_record", "instructions_per_record")

Key = tuple[str, ...]
Lines = Mapping[Key, tuple[float, ...]]  # KEY -> NUMBERS


class Ledger(NamedTuple):
    """header: what counts depend on besides the code, a text each."""

    header: Mapping[str, str]
    lines: Lines


def header() -> dict[str, str]:
    """Return what counts depend on besides the code: never the host, but what it runs."""
    return {
        "valgrind": valgrind_version(),
        "processor": f"{PROCESSOR} {FEATURES}",
        "python": platform.python_version(),
        "lock": hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16],
    }


def measure() -> Lines:
    """Measure the cells of ledger.toml on all cores."""
    wanted = load_profile(SWEEP).cells
    with ProcessPoolExecutor(workers(PROCESS_BYTES), mp_context=get_context("spawn")) as pool:
        try:
            rows = [row for found in pool.map(measure_cell, wanted) for row in found]
        except OSError as error:  # valgrind was killed
            raise SystemExit(str(error)) from None
    if absent := [row["error"] for row in rows if row["status"] != "ok"]:
        raise SystemExit(absent[0])
    of_bytes, lines = dict[Key, float](), dict[Key, tuple[float, ...]]()
    for row in rows:
        key = row["format"], str(row["batch_size"]), row["codec"]
        if row["kind"] == "bytes":
            of_bytes[key] = row["size_bytes"] / row["records"]
        else:
            count = per_record(row["kernel_instructions"], row["counted_records"])
            lines[*key, row["operation"]] = of_bytes[key], count
    return lines


def read(path: Path) -> Ledger:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    facts = {row[0].removeprefix("# "): row[1] for row in rows if row[0].startswith("# ")}
    body = rows[len(facts) + 1 :]
    return Ledger(facts, {tuple(row[: len(KEY)]): tuple(map(float, row[len(KEY) :])) for row in body})


def write(path: Path, ledger: Ledger) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerows((f"# {name}", fact) for name, fact in ledger.header.items())
        out.writerow((*KEY, *NUMBERS))
        out.writerows((*key, *(f"{number:.4f}" for number in ledger.lines[key])) for key in sorted(ledger.lines))


def differences(stored: Lines, found: Lines) -> Iterator[str]:
    """Yield a text for each number that differs by more than TOLERANCE, and each line that only one of the two has."""
    for key in sorted(stored.keys() | found.keys()):
        if key not in stored or key not in found:
            yield f"{' '.join(key)}: only in {'ledger.csv' if key in stored else 'the code'}"
            continue
        for name, old, new in zip(NUMBERS, stored[key], found[key], strict=True):
            if abs(new - old) > TOLERANCE * old:
                yield f"{' '.join(key)}: {name} {old:,.2f} -> {new:,.2f} ({new / old - 1:+.2%})"


def check(stored: Ledger) -> None:
    """Compare with the ledger. Raises SystemExit if a number differs; says why if it cannot be compared here."""
    here = header()
    if reason := why_not_counted() or next(
        (f"it is of {key} {fact}, not {here.get(key)}" for key, fact in stored.header.items() if here.get(key) != fact),
        None,
    ):
        print(f"SKIPPED ledger: {reason}")
        return
    found = list(differences(stored.lines, measure()))
    print(f"{len(stored.lines)} cells of the ledger compared, {len(found)} numbers differ by more than {TOLERANCE:.1%}")
    if found:
        raise SystemExit("\n".join([*found, "renew the ledger in the same commit: make ledger"]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.ledger", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the ledger, instead of writing it")
    if parser.parse_args().check:
        check(read(LEDGER))
    elif reason := why_not_counted():
        raise SystemExit(reason)
    else:
        write(LEDGER, Ledger(header(), measure()))
        print(f"{LEDGER.name}: {len(read(LEDGER).lines)} cells")


if __name__ == "__main__":
    main()
