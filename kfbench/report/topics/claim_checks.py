"""Checks of the proposals' claims against a run's rows of broker paths.

Each returns what was measured and whether the claim holds, case by case; None where the run has no rows to judge by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import Arm, ties
from kfbench.report.data.paths import (
    APPEND,
    CONVERSION,
    Paths,
    growth,
    span,
    work_words,
    works_words,
    written_per_batch,
)
from kfbench.report.data.shown_formats import HEADERS_FIRST, MAIN, NEW, OLD
from kfbench.tables import number


@dataclass(frozen=True, kw_only=True)
class Found:
    """The rows' answer to a claim. truths: whether it holds, case by case."""

    measured: str
    truths: Sequence[bool]

    @property
    def verdict(self) -> str:
        held = sum(self.truths)
        if held == len(self.truths):
            return "yes"
        return f"in {held} of {len(self.truths)} cases" if held else "NO"


def _rows(paths: Paths, names: Sequence[str], *operations: str, packed: bool = False) -> list[Arm]:
    """Return measured arms of these formats on these paths, without conversions. packed: under a codec only."""
    return [
        row
        for row in paths.of(*operations)
        if row.status == "ok" and row.format in names and not row.to_format and not (packed and row.codec == "none")
    ]


def _per_record(rows: Sequence[Arm], name: str) -> str:
    return span([float(getattr(row, name)) / float(row.records) for row in rows], 1)


def _by_codec(paths: Paths, pairs: Sequence[tuple[Arm, Arm]]) -> str:
    """Return the ratios of CPU time by codec: gzip 6 0.40 to 0.52, zstd 3 0.61 to 0.70."""
    ratios: dict[str, list[float]] = {}
    for new, old in pairs:
        ratios.setdefault(new.with_codec, []).append(paths.paired(new, old).median)
    return ", ".join(f"{codec} {span(each)}" for codec, each in ratios.items())


def _cheaper(paths: Paths, pairs: Sequence[tuple[Arm, Arm]]) -> list[bool]:
    """Return whether each takes less CPU than its base, by more than the run's noise."""
    ratios = [paths.paired(new, old) for new, old in pairs]
    return [ratio.high < 1 and not ties(ratio, paths.noise) for ratio in ratios]


def kip31_bytes(paths: Paths) -> Found | None:
    rows, old = _rows(paths, ["v1"], APPEND, packed=True), _rows(paths, ["v0"], APPEND, packed=True)
    if not rows:
        return None
    measured = f"v1 recompresses {_per_record(rows, 'recompressed_bytes')} bytes per record"
    measured += f", v0 {_per_record(old, 'recompressed_bytes')}" if old else ""
    return Found(measured=measured, truths=[row.recompressed_bytes == 0 for row in rows])


def kip31_cpu(paths: Paths) -> Found | None:
    pairs = [pair for pair in paths.against("v1", "v0") if pair[0].codec != "none"]
    if not pairs:
        return None
    return Found(measured=f"CPU of v1's append / v0's: {_by_codec(paths, pairs)}", truths=_cheaper(paths, pairs))


def kip31_zero_copy(paths: Paths) -> Found | None:
    rows = _rows(paths, paths.formats, "fetch")
    if not rows:
        return None
    touched = [float(row.written_bytes + row.decompressed_bytes) for row in rows]
    return Found(
        measured=f"{sum(work_words(row) == 'zero-copy' for row in rows)} of {len(rows)} logs are handed on as they "
        f"are, with {span(touched, 0)} bytes written or decompressed",
        truths=[work_words(row) == "zero-copy" and not bytes_ for row, bytes_ in zip(rows, touched, strict=True)],
    )


ENRICHED: Final = ("enriched", "enriched-ms")


def enriched_append(paths: Paths) -> Found | None:
    rows = _rows(paths, ENRICHED, APPEND, packed=True)
    if not rows:
        return None
    return Found(
        measured=f"{_per_record(rows, 'decompressed_bytes')} bytes per record are decompressed, "
        f"{_per_record(rows, 'recompressed_bytes')} recompressed",
        truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows],
    )


def enriched_mirror(paths: Paths) -> Found | None:
    rows = _rows(paths, ENRICHED, "mirror-look", packed=True)
    if not rows:
        return None
    others = _rows(paths, [BASE_FORMAT], "mirror-look", packed=True)
    measured = f"{_per_record(rows, 'decompressed_bytes')} bytes per record are decompressed"
    measured += (
        f"; in {BASE_FORMAT}, which has no such flag, {_per_record(others, 'decompressed_bytes')}" if others else ""
    )
    return Found(measured=measured, truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows])


def enriched_merge(paths: Paths) -> Found | None:
    """Check logs in which sets were merged."""
    rows = [row for row in _rows(paths, ENRICHED, "compact-merge", packed=True) if row.batches_rewritten > 0]
    if not rows:
        return None
    cpu = f", and takes {span([row.ns_per_record for row in rows], 0)} ns per record" if paths.one_host else ""
    return Found(
        measured=f"{_per_record(rows, 'decompressed_bytes')} bytes per record are decompressed, "
        f"{_per_record(rows, 'recompressed_bytes')} recompressed; {span([growth(row) for row in rows])} of the bytes "
        f"are left{cpu}",
        truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows],
    )


def enriched_expire(paths: Paths) -> Found | None:
    heads = {(row.cell_id, row.with_codec, row.format): row for row in _rows(paths, paths.formats, "expire-head")}
    rows = _rows(paths, paths.formats, "expire")
    pairs = [(row, head) for row in rows if (head := heads.get((row.cell_id, row.with_codec, row.format))) is not None]
    if not pairs:
        return None
    stay = [span([growth(each) for each in side]) for side in zip(*pairs, strict=True)]
    return Found(
        measured=f"{stay[0]} of the bytes stay by segment, {stay[1]} with the next one's head cut off",
        truths=[head.size_bytes < row.size_bytes for row, head in pairs],
    )


def kip98_in_place(paths: Paths) -> Found | None:
    rows = _rows(paths, [BASE_FORMAT], APPEND, "append-time")
    if not rows:
        return None
    written = span([written_per_batch(row) for row in rows], 0)
    return Found(
        measured=f"{BASE_FORMAT} is {works_words(rows)}, {written} bytes written per batch",
        truths=[work_words(row) == "in place" for row in rows],
    )


def kip98_fixed(paths: Paths) -> Found | None:
    """Check whether a header without a fixed size moves the bytes behind it."""
    rows = _rows(paths, [NEW], "append-time")
    if not rows:
        return None
    return Found(
        measured=f"v3, whose header varies, is {works_words(rows)}, "
        f"{span([written_per_batch(row) for row in rows], 0)} bytes written per batch",
        truths=[row.batches_shifted > 0 for row in rows],
    )


def _first(paths: Paths) -> list[tuple[Arm, Arm]]:
    return [pair for pair in paths.against(HEADERS_FIRST, BASE_FORMAT) if pair[0].codec != "none"]


def kip931_whole(paths: Paths) -> Found | None:
    rows = _rows(paths, [BASE_FORMAT], APPEND, packed=True)
    if not rows:
        return None
    return Found(
        measured=f"{BASE_FORMAT}'s append decompresses {_per_record(rows, 'decompressed_bytes')} bytes per record",
        truths=[row.decompressed_bytes > 0 for row in rows],
    )


def kip931_prefix(paths: Paths) -> Found | None:
    pairs = [pair for pair in _first(paths) if pair[1].decompressed_bytes]
    if not pairs:
        return None
    shares = [new.decompressed_bytes / old.decompressed_bytes for new, old in pairs]
    return Found(
        measured=f"headers-first decompresses {span(shares)} of what {BASE_FORMAT} does",
        truths=[each < 1 for each in shares],
    )


def kip931_cpu(paths: Paths) -> Found | None:
    pairs = _first(paths)
    if not pairs:
        return None
    return Found(
        measured=f"CPU of its append / {BASE_FORMAT}'s: {_by_codec(paths, pairs)}", truths=_cheaper(paths, pairs)
    )


def _conversions(paths: Paths, name: str, to: str) -> list[Arm]:
    return [row for row in paths.of(CONVERSION) if (row.format, row.to_format, row.status) == (name, to, "ok")]


def kip724_down(paths: Paths) -> Found | None:
    up = {(row.cell_id, row.with_codec): row for row in _conversions(paths, "v1", BASE_FORMAT)}
    down = [row for row in _conversions(paths, BASE_FORMAT, "v1") if (row.cell_id, row.with_codec) in up]
    if not down or not paths.one_host:
        return None
    ratios = [row.ns_per_record / up[row.cell_id, row.with_codec].ns_per_record for row in down]
    equal = paths.noise[1] if paths.noise else 1.0
    both = [*down, *up.values()]
    memory = [float(row.extra_bytes + row.size_bytes) / float(row.source_bytes) for row in both]
    return Found(
        measured=f"CPU per record of {BASE_FORMAT} to v1 / v1 to {BASE_FORMAT}: {span(ratios)}; memory of both, what "
        "comes out "
        f"included: {span(memory)} × what comes in",
        truths=[ratio > equal for ratio in ratios],
    )


def kip724_scan(paths: Paths) -> Found | None:
    rows = _rows(paths, MAIN, "fetch-scan")
    if not rows:
        return None
    batches = [float(row.batches_untouched) for row in rows]
    looked = [float(row.read_bytes) / count for row, count in zip(rows, batches, strict=True)]
    ns = [row.ns_per_record * float(row.records) / count for row, count in zip(rows, batches, strict=True)]
    measured = f"it reads {span(looked, 0)} bytes per batch"
    measured += f" and takes {number(min(ns), 0)} ns per batch or more, the call shared out" if paths.one_host else ""
    return Found(measured=measured, truths=[each > 0 for each in looked])


def kip724_blind(paths: Paths) -> Found | None:
    rows = _rows(paths, MAIN, "fetch")
    if not rows:
        return None
    read = [float(row.read_bytes) for row in rows]
    return Found(measured=f"{span(read, 0)} bytes are read", truths=[not each for each in read])


def kip724_single(paths: Paths) -> Found | None:
    rows = [row for name in OLD for row in _conversions(paths, name, BASE_FORMAT) if row.codec == "none"]
    if not rows:
        return None
    ratios = [float(row.size_bytes) / float(row.source_bytes) for row in rows]
    return Found(
        measured=f"plain messages become {span(ratios)} times as many bytes", truths=[ratio > 1 for ratio in ratios]
    )
