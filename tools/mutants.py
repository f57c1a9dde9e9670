"""Run the mutants of tests/mutants.toml: apply one fault at a time, and see whether the tests of its subject fail.

usage: python -m tools.mutants [NUMBER ...]     NUMBER: a mutant's row, counted from 1; without any, all mutants

Two mutants run at a time, each in a copy of the tree. First, the tests must pass without a fault. The exit status is 1
if a mutant survives. Most tests run kernels as plain Python, because a fault in one would compile all of them again.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
COPIES: Final = 2
LIMIT_S: Final = 300
SLOW: Final = ("measure", "present", "report", "sources", "sweep", "whatif")  # as plain Python
COMPILED: Final = tuple(f"tests/{name}/" for name in SLOW)
QUICK: Final = (
    "not (matrix or slow or thorough or compiled_only or cluster or faults or browser or oracle or broker or spark)"
)


class Mutant(NamedTuple):
    """A fault: the text `old`, which occurs once in the file, becomes `new`. number: its row, counted from 1."""

    number: int
    file: str
    function: str
    old: str
    new: str
    promise: str
    tests: tuple[str, ...]


def read_mutants() -> list[Mutant]:
    rows = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    return [Mutant(number=number, **row | {"tests": tuple(row["tests"])}) for number, row in enumerate(rows, 1)]


def is_stale(mutant: Mutant) -> bool:
    """Return True unless the text to replace occurs exactly once in its file."""
    path = ROOT / mutant.file
    return not path.is_file() or path.read_text(encoding="utf-8").count(mutant.old) != 1


def copy_tree(target: Path) -> Path:
    """Copy the files that Git does not ignore."""
    listed = subprocess.check_output(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, text=True)
    for name in listed.split("\0"):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def do_tests_fail(tree: Path, tests: tuple[str, ...]) -> bool:
    """Return True if a test fails or cannot be collected, a process crashes, or all together take too long."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-m", QUICK, *tests]
    is_plain = not any(test.startswith(COMPILED) for test in tests)
    own = {"PYTHONPATH": str(tree), "NUMBA_DISABLE_JIT": str(int(is_plain)), "KFBENCH_CACHE_DIR": str(tree.parent)}
    try:
        done = subprocess.run(command, cwd=tree, env=os.environ | own, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def is_killed(trees: SimpleQueue[Path], mutant: Mutant) -> bool:
    """Apply the fault to a copy that is free, run its tests, restore the file, and print a line."""
    tree, start = trees.get(), time.monotonic()
    path = tree / mutant.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        is_failed = do_tests_fail(tree, mutant.tests)
    finally:
        path.write_text(text, encoding="utf-8")
        trees.put(tree)
    verdict = f"{'killed' if is_failed else 'SURVIVED':8} {time.monotonic() - start:4.0f} s"
    print(f"{mutant.number:2} {verdict}  {mutant.file}:{mutant.function}  {mutant.promise}", flush=True)
    return is_failed


def main(*numbers: str) -> None:
    mutants = read_mutants()
    if stale := [str(mutant.number) for mutant in mutants if is_stale(mutant)]:
        raise SystemExit(f"the text to replace does not occur exactly once in the file: mutants {', '.join(stale)}")
    chosen = [mutants[int(number) - 1] for number in numbers] or mutants
    tests, trees = list(dict.fromkeys(mutant.tests for mutant in chosen)), SimpleQueue[Path]()
    with tempfile.TemporaryDirectory(prefix="kfbench-mutants-") as folder, ThreadPoolExecutor(COPIES) as pool:
        for copy in range(COPIES):
            trees.put(copy_tree(tree := Path(folder, str(copy))))
        for names, is_failed in zip(tests, pool.map(partial(do_tests_fail, tree), tests), strict=True):
            if is_failed:
                raise SystemExit(f"these tests fail without a fault: {' '.join(names)}")
        killed = sum(pool.map(partial(is_killed, trees), chosen))
    print(f"{killed} of {len(chosen)} mutants killed")
    sys.exit(killed < len(chosen))


if __name__ == "__main__":
    main(*sys.argv[1:])
