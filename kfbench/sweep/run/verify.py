"""Check the formats on golden vectors (logs that Apache Kafka's own classes wrote) and on every cell of a profile.

A cell is checked with its own records, batches and batch header fields, in each of its formats, under
its codec and level. Encoded records must decode to the same records and fields. Without a codec, `size` must be the
number of bytes written for every batch, and `breakdown` must add up to it. Only the first whole batches of a cell are
checked, with about 1,024 records (RECORDS_PER_CELL).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

from kfbench.codecs import CODECS
from kfbench.formats import FORMATS, Format
from kfbench.measure.cell import Cell
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.golden.checks import CHECKS as GOLDEN_CHECKS
from kfbench.measure.golden.checks import check_vector
from kfbench.measure.golden.vectors import GOLDEN, vectors
from kfbench.measure.kinds import kind_of
from kfbench.measure.kinds.base import encode_input, illegal
from kfbench.measure.verify import CheckOutcome, Unverified, verify_breakdown, verify_records, verify_size
from kfbench.sweep.definition.profile import Profile, whole_batches

RECORDS_PER_CELL: Final = 1_024
CHECKS: Final = {
    "size": "size is the number of bytes that encode wrote, for every batch",
    "breakdown": "breakdown adds up to those bytes, its keys and values to the payload",
    "round trip": "decode returns the encoded records and header fields, except for what the format cannot carry; "
    "a second witness (crc32c, binascii) computes the same checksum for every batch",
} | {name: "the round trip under that codec" for name in CODECS if name != "none"}

T = TypeVar("T")
Track = Callable[[Sequence[T], str], Iterable[T]]  # yields the items and shows the progress


@dataclass(kw_only=True)
class CheckResults:
    """The results of checks.

    Args:
        checks: the meaning of each check, by its name.
        passed: the number of passes, by format and check.
        failures: the failed checks.
        skipped: the number of cells that a format does not support, by format.
    """

    checks: Mapping[str, str]
    passed: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[CheckOutcome] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: CheckOutcome) -> None:
        if outcome.problem:
            self.failures.append(outcome)
        else:
            self.passed[outcome.format, outcome.check] += 1

    @property
    def total(self) -> int:
        return self.passed.total() + len(self.failures)

    @property
    def legend(self) -> list[str]:
        """Lines that explain the checks. Checks with the same meaning share a line."""
        names: dict[str, list[str]] = {}
        for check, meaning in self.checks.items():
            names.setdefault(meaning, []).append(check)
        return [f"  {', '.join(checks)}: {meaning}" for meaning, checks in names.items()]

    def to_dict(self) -> dict[str, Any]:
        return {"checks": dict(self.checks), "formats": self.rows()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per format: passes of each check (None: it was not made), skipped cells, failures."""
        failed = Counter(outcome.format for outcome in self.failures)
        done = {check for _, check in self.passed} | {outcome.check for outcome in self.failures}
        checks = [check for check in self.checks if check in done]
        names = dict.fromkeys([*(name for name, _ in self.passed), *failed, *self.skipped])
        return [
            {"format": name}
            | {check: self.passed.get((name, check)) for check in checks}
            | ({"cannot have": self.skipped[name]} if self.skipped else {})
            | {"failed": failed[name]}
            for name in names
        ]


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The answer of `kfbench verify`.

    Args:
        golden_folder, vectors, golden: the folder, number and check results of the golden vectors.
        profile, cells, records, sweep: the name, number of cells, number of records, and check results
            of the profile.
    """

    profile: str
    golden_folder: str
    vectors: int
    cells: int
    records: int
    golden: CheckResults
    sweep: CheckResults

    @property
    def failures(self) -> list[CheckOutcome]:
        return [*self.golden.failures, *self.sweep.failures]

    @property
    def results_by_title(self) -> dict[str, CheckResults]:
        return {
            f"golden vectors of Apache Kafka's own classes: {self.vectors:,} ({self.golden_folder})": self.golden,
            f"cells of the profile {self.profile}: {self.cells:,}, with {self.records:,} records "
            f"(at most {RECORDS_PER_CELL:,} per cell, or one batch)": self.sweep,
        }

    @property
    def summary(self) -> str:
        checks = self.golden.total + self.sweep.total
        return f"{checks:,} checks: {checks - len(self.failures):,} hold, {len(self.failures):,} failed"

    def to_dict(self) -> dict[str, Any]:
        return {
            "golden": {"folder": self.golden_folder, "vectors": self.vectors, **self.golden.to_dict()},
            "profile": {
                "name": self.profile,
                "cells": self.cells,
                "records": self.records,
                "most_records_a_cell": RECORDS_PER_CELL,
                **self.sweep.to_dict(),
            },
            "checks": self.golden.total + self.sweep.total,
            "failures": [asdict(outcome) for outcome in self.failures],
        }


def verify(profile: Profile, golden: Path = GOLDEN, track: Track[Any] = lambda items, _: items) -> Verification:
    """Check every golden vector in the folder `golden` and every cell of the profile.

    track: a function of items and a caption that yields the items and shows the progress. Raises InvalidConfig if the
    folder is missing.
    """
    golden_results, sweep_results, records = CheckResults(checks=GOLDEN_CHECKS), CheckResults(checks=CHECKS), 0
    entries = vectors(golden)
    for entry in track(entries, "golden vectors"):
        for outcome in check_vector(golden, entry):
            golden_results.add(outcome)
    cells = _distinct(profile.cells)
    plain: set[tuple[str, str]] = set()
    for cell in track(cells, f"cells of {profile.name}"):
        records += cell.records
        for found in _check_cell(cell, plain, sweep_results.skipped):
            sweep_results.add(found)
    return Verification(
        profile=profile.name,
        golden_folder=str(golden),
        vectors=len(entries),
        cells=len(cells),
        records=records,
        golden=golden_results,
        sweep=sweep_results,
    )


def _distinct(cells: Iterable[Cell]) -> list[Cell]:
    """Merge cells that have the same workload, codec and level, and reduce them to about RECORDS_PER_CELL records.

    Cells of kinds without `is_verified` are left out: they verify sizes themselves when they run, or have no format.
    """
    found: dict[tuple[object, ...], Cell] = {}
    for cell in cells:
        if not kind_of(cell).is_verified:
            continue
        key = (cell.cell_id, cell.codec, cell.level)
        same = found.get(key)
        formats = tuple(dict.fromkeys((*(same.formats if same else ()), *cell.formats)))
        most = whole_batches(cell.workload, cell.seed, RECORDS_PER_CELL)
        found[key] = replace(cell, formats=formats, records=min(most, max(cell.records, same.records if same else 0)))
    return list(found.values())


def _check_cell(cell: Cell, plain: set[tuple[str, str]], skipped: Counter[str]) -> Iterator[CheckOutcome]:
    """Check a cell in each of its formats, and yield the outcome of each check.

    plain: pairs of cell id and format that were checked without a codec. skipped: the number of cells that a format
    does not support. This function adds to both.
    """
    sample = cell.workload.generate(records=cell.records, seed=cell.seed)
    source = encode_input(cell, sample)
    for name in cell.formats:
        if illegal(name, sample, cell.codec):
            skipped[name] += 1
            continue
        is_first = (cell.cell_id, name) not in plain
        promises = _promises(FORMATS[name], replace(source, codec="none", level=None)) if is_first else {}
        if cell.codec != "none":
            promises[cell.codec] = _promises(FORMATS[name], source)["round trip"]
        plain.add((cell.cell_id, name))
        for check, verify_promise in promises.items():
            problem = ""
            try:
                verify_promise()
            except Unverified as error:
                problem = str(error)
            except Exception as error:  # a crash is a failed check, and the other checks go on
                problem = " ".join(f"{type(error).__name__}: {error}".split("\n"))
            yield CheckOutcome(check=check, format=name, subject=cell.title, problem=problem)


def _promises(fmt: Format, source: EncodeInput) -> dict[str, Callable[[], None]]:
    """Return the checks of a format by name; those but the last need records without a codec. A failed check raises."""
    log = cache(partial(source.encode, fmt))
    parts = partial(fmt.breakdown, source.records, source.bounds, source.batch_fields)
    return {
        "size": lambda: verify_size(fmt, source, log()),
        "breakdown": lambda: verify_breakdown(fmt, parts(), source.records, log()),
        "round trip": lambda: verify_records(fmt, source, log()),
    }
