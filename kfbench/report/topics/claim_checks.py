"""Check the claims of Kafka's proposals against the measured broker paths of a run.

Each check returns the measured numbers as text, and True or False for each case. A case is a workload, codec and
format. If the run lacks the rows for a check, there are no cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kfbench.formats import BASE_FORMAT
from kfbench.migration import plans
from kfbench.report.data.arms import Arm, ties
from kfbench.report.data.paths import APPEND, CONVERSION, Paths, growth, work_words, works_words, written_per_batch
from kfbench.report.data.shown_formats import HEADERS_FIRST, MAIN, NEW, OLD
from kfbench.report.data.words import span
from kfbench.report.topics import migration
from kfbench.tables import number


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of checking a claim.

    measured: the measured numbers as text. truths: True or False for each case.
    """

    measured: str
    truths: Sequence[bool]

    @property
    def verdict(self) -> str:
        true = sum(self.truths)
        if true == len(self.truths):
            return "yes"
        return f"in {true} of {len(self.truths)} cases" if true else "NO"


def _rows(paths: Paths, names: Sequence[str], *operations: str, packed: bool = False) -> list[Arm]:
    """Return the successful measurements of these formats on these paths, without conversions.

    packed: return only measurements under a codec.
    """
    return [
        row
        for row in paths.of(*operations)
        if row.status == "ok" and row.format in names and not row.to_format and not (packed and row.codec == "none")
    ]


def _per_record(rows: Sequence[Arm], name: str) -> str:
    return span([getattr(row, name) / row.records for row in rows], 1)


def _cpu_words(paths: Paths, pairs: Sequence[tuple[Arm, Arm]]) -> str:
    return span([paths.paired(new, old).median for new, old in pairs])


def _cheaper(paths: Paths, pairs: Sequence[tuple[Arm, Arm]]) -> list[bool]:
    """Return True for each pair whose first measurement takes less CPU time than the second, beyond the run's noise."""
    ratios = [paths.paired(new, old) for new, old in pairs]
    return [ratio.high < 1 and not ties(ratio, paths.noise) for ratio in ratios]


def kip31_bytes(paths: Paths) -> Found:
    rows, old = _rows(paths, ["v1"], APPEND, packed=True), _rows(paths, ["v0"], APPEND, packed=True)
    measured = f"v1 recompresses {_per_record(rows, 'recompressed_bytes')} bytes per record"
    measured += f", v0 {_per_record(old, 'recompressed_bytes')}" if old else ""
    return Found(measured=measured, truths=[row.recompressed_bytes == 0 for row in rows])


def kip31_cpu(paths: Paths) -> Found:
    pairs = [pair for pair in paths.against("v1", "v0") if pair[0].codec != "none"]
    return Found(measured=f"v1's append CPU is {_cpu_words(paths, pairs)} × v0's", truths=_cheaper(paths, pairs))


def kip31_zero_copy(paths: Paths) -> Found:
    rows = _rows(paths, paths.formats, "fetch")
    touched = [row.written_bytes + row.decompressed_bytes for row in rows]
    return Found(
        measured=f"{sum(work_words(row) == 'zero-copy' for row in rows)} of {len(rows)} logs are handed on as they "
        f"are, with {span(touched, 0)} bytes written or decompressed",
        truths=[work_words(row) == "zero-copy" and not bytes_ for row, bytes_ in zip(rows, touched, strict=True)],
    )


ENRICHED: Final = ("enriched", "enriched-ms")


def enriched_append(paths: Paths) -> Found:
    rows = _rows(paths, ENRICHED, APPEND, packed=True)
    return Found(
        measured=f"{_per_record(rows, 'decompressed_bytes')} bytes per record are decompressed, "
        f"{_per_record(rows, 'recompressed_bytes')} recompressed",
        truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows],
    )


def enriched_mirror(paths: Paths) -> Found:
    rows = _rows(paths, ENRICHED, "mirror-look", packed=True)
    others = _rows(paths, [BASE_FORMAT], "mirror-look", packed=True)
    measured = f"{_per_record(rows, 'decompressed_bytes')} bytes per record are decompressed"
    measured += (
        f"; in {BASE_FORMAT}, which has no such flag, {_per_record(others, 'decompressed_bytes')}" if others else ""
    )
    return Found(measured=measured, truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows])


def enriched_merge(paths: Paths) -> Found:
    """Check whether merging decompresses or recompresses bytes. Only logs with merged message sets count."""
    rows = [row for row in _rows(paths, ENRICHED, "compact-merge", packed=True) if row.batches_rewritten > 0]
    cpu = f" Merging takes {span([row.ns_per_record for row in rows], 0)} ns per record." if paths.one_host else ""
    return Found(
        measured=f"{_per_record(rows, 'decompressed_bytes')} bytes per record are decompressed, "
        f"{_per_record(rows, 'recompressed_bytes')} recompressed. "
        f"The output is {span([growth(row) for row in rows])} × the input in bytes.{cpu}",
        truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows],
    )


def enriched_expire(paths: Paths) -> Found:
    heads = {(row.cell_id, row.with_codec, row.format): row for row in _rows(paths, paths.formats, "expire-head")}
    rows = _rows(paths, paths.formats, "expire")
    pairs = [(row, head) for row in rows if (head := heads.get((row.cell_id, row.with_codec, row.format))) is not None]
    by_segment, by_head = (span([growth(pair[side]) for pair in pairs]) for side in (0, 1))
    return Found(
        measured=f"by segment, {by_segment} of the bytes stay. With the next one's head cut off, {by_head} stay",
        truths=[head.size_bytes < row.size_bytes for row, head in pairs],
    )


def kip98_in_place(paths: Paths) -> Found:
    rows = _rows(paths, [BASE_FORMAT], APPEND, "append-time")
    written = span([written_per_batch(row) for row in rows], 0)
    return Found(
        measured=f"{BASE_FORMAT}: {works_words(rows)}, {written} bytes written per batch",
        truths=[work_words(row) == "in place" for row in rows],
    )


def kip98_fixed(paths: Paths) -> Found:
    """Check the claim on v3, whose header has a variable size. It holds if bytes after the header have moved."""
    rows = _rows(paths, [NEW], "append-time")
    return Found(
        measured=f"v3, whose header varies: {works_words(rows)}, "
        f"{span([written_per_batch(row) for row in rows], 0)} bytes written per batch",
        truths=[row.batches_shifted > 0 for row in rows],
    )


def _first(paths: Paths) -> list[tuple[Arm, Arm]]:
    return [pair for pair in paths.against(HEADERS_FIRST, BASE_FORMAT) if pair[0].codec != "none"]


def kip931_whole(paths: Paths) -> Found:
    rows = _rows(paths, [BASE_FORMAT], APPEND, packed=True)
    return Found(
        measured=f"{BASE_FORMAT}'s append decompresses {_per_record(rows, 'decompressed_bytes')} bytes per record",
        truths=[row.decompressed_bytes > 0 for row in rows],
    )


def kip931_prefix(paths: Paths) -> Found:
    pairs = [pair for pair in _first(paths) if pair[1].decompressed_bytes]
    shares = [new.decompressed_bytes / old.decompressed_bytes for new, old in pairs]
    return Found(
        measured=f"headers-first decompresses {span(shares)} of what {BASE_FORMAT} does",
        truths=[each < 1 for each in shares],
    )


def kip931_cpu(paths: Paths) -> Found:
    pairs = _first(paths)
    return Found(
        measured=f"its append CPU is {_cpu_words(paths, pairs)} × {BASE_FORMAT}'s", truths=_cheaper(paths, pairs)
    )


def _conversions(paths: Paths, name: str, to: str) -> list[Arm]:
    return [row for row in paths.of(CONVERSION) if (row.format, row.to_format, row.status) == (name, to, "ok")]


def kip724_down(paths: Paths) -> Found:
    up = {(row.cell_id, row.with_codec): row for row in _conversions(paths, "v1", BASE_FORMAT)}
    down = [row for row in _conversions(paths, BASE_FORMAT, "v1") if (row.cell_id, row.with_codec) in up]
    if not paths.one_host:
        down = []
    ratios = [row.ns_per_record / up[row.cell_id, row.with_codec].ns_per_record for row in down]
    equal = paths.noise.high if paths.noise else 1.0
    memory = [(row.extra_bytes + row.size_bytes) / row.source_bytes for row in (*down, *up.values())]
    return Found(
        measured=f"The CPU per record of {BASE_FORMAT} to v1 is {span(ratios)} × that of v1 to {BASE_FORMAT}. "
        f"The memory of both is {span(memory)} × the input, with the output.",
        truths=[ratio > equal for ratio in ratios],
    )


def kip724_scan(paths: Paths) -> Found:
    rows = _rows(paths, MAIN, "fetch-scan")
    looked = [row.read_bytes / row.batches_untouched for row in rows]
    ns = [row.ns_per_record * row.records / row.batches_untouched for row in rows]
    measured = f"it reads {span(looked, 0)} bytes per batch"
    if ns and paths.one_host:
        measured += f". It takes {number(min(ns), 0)} ns per batch or more, with its share of the call"
    return Found(measured=measured, truths=[each > 0 for each in looked])


def kip724_blind(paths: Paths) -> Found:
    rows = _rows(paths, MAIN, "fetch")
    read = [row.read_bytes for row in rows]
    return Found(measured=f"{span(read, 0)} bytes are read", truths=[not each for each in read])


def kip724_single(paths: Paths) -> Found:
    rows = [row for name in OLD for row in _conversions(paths, name, BASE_FORMAT) if row.codec == "none"]
    ratios = [growth(row) for row in rows]
    measured = f"the output is {span(ratios)} × the plain messages in bytes"
    return Found(measured=measured, truths=[ratio > 1 for ratio in ratios])


def kip931_discarded(paths: Paths) -> Found:
    cases = migration.break_evens(paths, plans.find(NEW)) if paths.one_host else []
    found = [each for _, each in cases if not isinstance(each, str)]
    measured = f"{NEW} {'. It '.join(migration.pays_words(found))}"
    return Found(measured=measured, truths=[each.pays == "always" for each in found])
