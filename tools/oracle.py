"""Compare this tree's answers with those of a base commit, and print the differences.

usage: python -m tools.oracle BASE

Both trees answer the same questions in environments of their own:

- the identity, seed and order of the cells of every profile
- the exact columns of the rows of smoke, and of default's kinds bytes and floor
- the `--json` of inspect, what-if, migrate, table and verify on recorded logs

The base's worktree, environment and answers are kept in a cache folder. The base answers twice: what differs between
both, such as a CPU time, is not compared. The exit status is 1 if anything differs. This program leaves the tree with
the last of the redesigns that it guards.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import pyarrow.parquet as pq

from kfbench.measure.schema import DETERMINISTIC, IDENTITY

ROOT: Final = Path(__file__).resolve().parents[1]
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kfbench-oracle"
TABLES: Final = ("enriched", "kip31", "kip98", "kip931")
SHOWN: Final = 40
CELLS_OF: Final = "cells of "  # the question with a profile's cells: their places by what identifies them

Answers = dict[str, Any]  # a question, or a place in its answer -> a text, a number, a truth value or None

# It prints a line per cell. It runs in both trees, so it imports as little as it can.
CELLS: Final = """
import sys
from kfbench.sweep.definition.profile import load_profile
for cell in load_profile(sys.argv[1]).cells:
    print(cell.kind, cell.cell_id, cell.seed, cell.codec, cell.level, cell.path, cell.to, *cell.formats)
"""


def tree_of(base: str) -> Path:
    """Return a worktree of the base with an environment, made once."""
    commit = _git("rev-parse", "--verify", f"{base}^{{commit}}").strip()
    place = CACHE / commit / "tree"
    if not (place / ".venv" / "bin" / "kfbench").exists():
        _git("worktree", "prune")
        if not place.exists():
            _git("worktree", "add", "--quiet", "--detach", str(place), commit)
        subprocess.run(["make", "--silent", "setup"], cwd=place, check=True)
    return place


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def base_answers(tree: Path) -> Answers:
    """Return the answers of the base that repeat. They are asked twice, and kept for this version of the program."""
    kept = tree.with_name(f"answers-{crc32(Path(__file__).read_bytes()):08x}.json")
    if not kept.exists():
        first, second = answers(tree, tree), answers(tree, tree)
        same = {key: value for key, value in first.items() if second.get(key, not value) == value}
        kept.write_text(json.dumps(same), encoding="utf-8")
    found: Answers = json.loads(kept.read_text(encoding="utf-8"))
    return found


def answers(tree: Path, base: Path) -> Answers:
    """Ask a tree all questions about the logs and profiles of the base, several at once."""
    profiles = sorted(path.stem for path in (base / "datasets" / "sweeps").glob("*.toml"))
    with tempfile.TemporaryDirectory() as out, ThreadPoolExecutor(2) as pool:
        asked = {f"{CELLS_OF}{name}": pool.submit(_run, tree, "-c", CELLS, name) for name in profiles}
        asked |= {
            " ".join(words): pool.submit(_run, tree, "-m", "kfbench", *words, "--json") for words in _commands(base)
        }
        found = dict[str, Any]()
        for question, answer in asked.items():
            text = answer.result()
            if question.startswith(CELLS_OF):
                found |= {f"{question} · {line}": place for place, line in enumerate(text.splitlines())}
            else:
                found |= flat(question, _parsed(text))
        for words in (["smoke"], ["default", "--filter", "kind=bytes,floor"]):
            run = _run(tree, "-m", "kfbench", "sweep", *words, "--out", out).splitlines()[-1]
            found |= rows(words[0], Path(run)) if Path(run).is_dir() else {f"sweep {words[0]}": run}
    return found


def _commands(base: Path) -> Iterator[list[str]]:
    recorded = Path("datasets") / "recorded"
    for log in (str(recorded / path.name) for path in sorted((base / recorded).glob("*.log"))):
        yield ["inspect", log, "--batches"]
        yield ["what-if", log, "--all", "--linger-ms", "5", "--rate-mb-s", "1"]
    for name in ("activity-v0-none.log", "activity-v1-lz4.log", "changelog.log"):
        for plan in ("kip31", "kip724", "v3"):
            yield ["migrate", str(recorded / name), "--plan", plan]
    for table in TABLES:
        yield ["table", table]
    yield ["verify", "smoke"]


def _run(tree: Path, *words: str) -> str:
    """Run Python in a tree. Return what it prints, without the tree's place, and the status after it unless 0."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    python = tree / ".venv" / "bin" / "python"
    done = subprocess.run([python, *words], cwd=tree, env=environment, capture_output=True, text=True)
    text = done.stdout or done.stderr.strip().rpartition("\n")[2]
    return text.replace(f"{tree}/", "") + (f"\nstatus {done.returncode}" if done.returncode else "")


def _parsed(text: str) -> Any:
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError:
        return text
    return [value, text[end:].strip()]


def flat(place: str, value: Any) -> Answers:
    """Return the leaves of JSON by their places, such as `inspect a.log: 0.batches.3.crc`."""
    if isinstance(value, Mapping):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    else:
        return {place: value}
    found = Answers() if items else {place: str(value)}
    for key, each in items:
        found |= flat(f"{place} · {key}", each)
    return found


def rows(profile: str, run: Path) -> Answers:
    """Return the exact columns of each row, by its identity."""
    table = pq.read_table(run / "measurements")
    names = [name for name in DETERMINISTIC if name in table.column_names and name not in IDENTITY]
    keys = [name for name in IDENTITY if name in table.column_names]
    found = {}
    for row in table.to_pylist():
        key = " ".join(str(row[name]) for name in keys if row[name] is not None)
        found[f"{profile} · {key}"] = json.dumps({name: row[name] for name in names if row[name] is not None})
    return found


def differences(base: Answers, here: Answers) -> Iterator[str]:
    """Yield a text per answer of the base that is gone or differs. Cells differ if their order does."""
    for key, value in base.items():
        if key not in here:
            yield f"gone: {key}: {value!r}"
        elif here[key] != value and not key.startswith(CELLS_OF):
            yield f"differs: {key}: {value!r} -> {here[key]!r}"
    cells = [key for key in base if key.startswith(CELLS_OF) and key in here]
    before, now = (sorted(cells, key=lambda key: (key.partition(" · ")[0], of[key])) for of in (base, here))
    yield from (f"order: {was} -> {found}" for was, found in zip(before, now, strict=True) if was != found)


def main(base: str) -> None:
    tree = tree_of(base)
    known, found = base_answers(tree), answers(ROOT, tree)
    lines = list(differences(known, found))
    for line in islice(lines, SHOWN):
        print(line[:400])
    new = len(found.keys() - known.keys())
    print(f"{len(known):,} answers of {base}: {len(lines):,} differ or are gone; {new:,} are new or did not repeat")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
