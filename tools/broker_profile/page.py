"""Write the generated parts of docs/broker-profile.md from the stored runs."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from tools.block import Block
from tools.broker_profile.parts import BY_BYTES, CODEC, CRC, DIRECT, EXCLUDED, FORMAT, JIT, PARTS, TABLE
from tools.broker_profile.session import SETTINGS, Setting, setting_of

ROOT: Final = Path(__file__).resolve().parents[2]
FILE: Final = ROOT / "datasets" / "second-opinion" / "broker-profile.json"
PAGE: Final = ROOT / "docs" / "broker-profile.md"
BY: Final = "`make profile` from datasets/second-opinion/broker-profile.json"
ANSWER: Final = Block(page=PAGE, name="answer", by=BY)
DIRECT_TABLE: Final = Block(page=PAGE, name="format, codec and CRC", by=BY)
ALL_TABLE: Final = Block(page=PAGE, name="all parts", by=BY)
RUN: Final = Block(page=PAGE, name="run", by=BY)
RULES: Final = Block(page=PAGE, name="rules", by="`make profile` from tools/broker_profile/parts.py")
NOT_RUN: Final = "No run is stored. `make profile` makes one."
OPENED: Final = (FORMAT, CODEC)
"""The parts of validation that columnar's check without decompression could save. The CRC stays."""

PUBLISHED_PERCENT: Final = 75
"""The share of validation in the CPU time of `appendAsLeader`, as pull request 13135 reports it."""

Row = Mapping[str, Any]
Share = Callable[[Row], float]


class Spread(NamedTuple):
    """The lowest, median and highest share of a setting's runs, in percent."""

    low: float
    mid: float
    high: float

    def __str__(self) -> str:
        return f"{self.mid:.1f} ({self.low:.1f}–{self.high:.1f})"


class Stored:
    """The stored runs."""

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self.facts = stored
        self.rows: Sequence[Row] = stored["runs"]
        self.by_setting: dict[Setting, list[Row]] = {
            setting: rows for setting in SETTINGS if (rows := [row for row in self.rows if setting_of(row) == setting])
        }

    def spread(self, setting: Setting, share: Share) -> Spread:
        shares = sorted(100 * share(row) for row in self.by_setting[setting])
        return Spread(shares[0], median(shares), shares[-1])

    def range_of(self, share: Share, settings: Iterable[Setting] | None = None) -> tuple[float, float]:
        """Return the lowest and highest median of all settings, in percent."""
        found = [self.spread(setting, share).mid for setting in settings or self.by_setting]
        return min(found), max(found)

    def highest(self, share: Share) -> Setting:
        return max(self.by_setting, key=lambda setting: self.spread(setting, share).mid)


def counted_ns(row: Row) -> int:
    """Return the CPU time that shares refer to: all but the JIT compiler's and JFR's."""
    return sum(cpu_ns for part, cpu_ns in row["parts_ns"].items() if part not in EXCLUDED)


def share_of(*parts: str) -> Share:
    return lambda row: sum(row["parts_ns"].get(part, 0) for part in parts) / counted_ns(row)


def validation_share(row: Row) -> float:
    """Return the share that validation without decompression could save."""
    return float(sum(row["validation_ns"].get(part, 0) for part in OPENED) / counted_ns(row))


def validation_of_append(row: Row) -> float:
    return float(sum(row["validation_ns"].values()) / row["append_ns"]) if row["append_ns"] else 0.0


def answer(stored: Stored) -> str:
    direct = share_of(*DIRECT)
    low, high = stored.range_of(direct)
    highest = max(stored.spread(setting, direct).high for setting in stored.by_setting)
    return f"""At this load, **{low:.1f} % to {high:.1f} %** of the broker's CPU time depends on the record format.
This is the code of the format, the codec and the CRC. In these runs, a format could not save more by its own code.
The largest share is that of {words(stored.highest(direct))}.
All shares are medians of a setting's runs, so they do not add up. The highest single run has {highest:.1f} %.

- **The format alone**, without codec and CRC: {between(stored.range_of(share_of(FORMAT)))}.
- **Validation without decompression**, as columnar allows, saves at most {between(compressed(stored))} with a codec.
  It is the codec and the iteration of records while a batch arrives.
- **Work that follows the bytes** (network, TLS, log and index): {between(stored.range_of(share_of(*BY_BYTES)))}.
  A format that is 10 % smaller saves at most a tenth of it.
- **Validation within appends**, with a codec: {between(compressed(stored, validation_of_append))} of their CPU time.
  Pull request 13135 (KAFKA-14633) reports {PUBLISHED_PERCENT} % for a compressed workload of its own."""


def compressed(stored: Stored, share: Share = validation_share) -> tuple[float, float]:
    settings = [setting for setting in stored.by_setting if setting.codec != "none"]
    return stored.range_of(share, settings or None)


def between(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.1f} % to {ends[1]:.1f} %"


def words(setting: Setting) -> str:
    codec = "no codec" if setting.codec == "none" else setting.codec
    return f"{setting.security}, {codec}, {counted('record', setting.batch_size)} per batch"


def counted(noun: str, count: int) -> str:
    return f"{count:,} {noun}" + "s" * (count != 1)


def direct_table(stored: Stored) -> str:
    columns: Mapping[str, Share] = {
        "record format": share_of(FORMAT),
        "codec": share_of(CODEC),
        "CRC": share_of(CRC),
        "sum": share_of(*DIRECT),
        "validation, saved at most": validation_share,
        "validation of append": validation_of_append,
    }
    return table(
        ["share of broker CPU in %: median (lowest–highest)", *columns],
        (
            [words(setting), *(str(stored.spread(setting, each)) for each in columns.values())]
            for setting in stored.by_setting
        ),
    )


def all_table(stored: Stored) -> str:
    return table(
        ["median share of broker CPU in %", *PARTS],
        (
            [words(setting), *(f"{stored.spread(setting, share_of(part)).mid:.1f}" for part in PARTS)]
            for setting in stored.by_setting
        ),
    )


def run_lines(stored: Stored) -> str:
    facts, rows = stored.facts, stored.rows
    machine = facts["environment"]
    samples = [row["samples"] for row in rows]
    lost, biased, unresolved = (sum(row[name] for row in rows) for name in ("lost", "biased", "unresolved"))
    counts = " or ".join(str(count) for count in sorted({len(each) for each in stored.by_setting.values()}))
    busy, jit = ([100 * share(row) for row in rows] for share in (lambda row: row["machine_busy"], share_of(JIT)))
    seconds = median(row["seconds"] for row in rows)
    rate = f"{facts['rounds_per_s']} batches per second and partition"
    return f"""- {facts["measured"][:10]}, {machine["cores"]} cores, {machine["system"]}
{processors(stored)}
- Kafka {facts["kafka"]}, JDK {facts["java"]}
- `{facts["jvm_options"]}`
- Workload {facts["workload"]}, {facts["partitions"]} partitions, {rate}.
- Runs per setting: {counts}, {len(rows)} in all, {seconds:.1f} s each. {len(facts["failed"])} failed.
- {min(samples):,} to {max(samples):,} samples per run. Of all {sum(samples):,}, {unresolved:,} have no stack.
  {biased:,} were taken at the next safepoint. {lost:,} more were lost.
- The machine was {median(busy):.0f} % busy in the median, at most {max(busy):.0f} %.
- The JIT compiler is not counted. Relative to the counted time it had {median(jit):.0f} %, at most {max(jit):.0f} %."""


def processors(stored: Stored) -> str:
    """Return a line per processor, with its settings. That of most settings comes first."""
    found: dict[str, dict[str, None]] = {}
    for row in stored.rows:
        found.setdefault(row["cpu"], {})[words(setting_of(row))] = None
    most, *others = sorted(found, key=lambda cpu: -len(found[cpu]))
    return "\n".join([f"- {most}", *(f"- For {'; '.join(found[cpu])}: {cpu}" for cpu in others)])


def rules_table() -> str:
    rows = [[part, f"`{prefix}`", what] for part, prefix, what in TABLE]
    return table(["part", "frame starts with", "work"], rows).replace("---:", "---")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def blocks(file: Path = FILE) -> list[tuple[Block, str]]:
    """Return each generated part of the page with its text. Without stored runs they say so."""
    found = [(RULES, rules_table())]
    generated = ((ANSWER, answer), (DIRECT_TABLE, direct_table), (ALL_TABLE, all_table), (RUN, run_lines))
    if not file.is_file():
        return [*found, *((block, NOT_RUN) for block, _ in generated)]
    stored = Stored(json.loads(file.read_text(encoding="utf-8")))
    return [*found, *((block, write(stored)) for block, write in generated)]


def write_page() -> None:
    for block, text in blocks():
        block.write(text)
