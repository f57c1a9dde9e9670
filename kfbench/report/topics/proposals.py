"""What the proposals say of a broker, beside what a run's rows say of it. No verdict stands here: each is computed.

A claim holds if every case bears it out, a case being a workload and codec of the run and what else the claim is about.
"""

from collections.abc import Callable, Sequence
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
from kfbench.report.data.shown_formats import MAIN
from kfbench.report.render.tables import Table, number, plain_columns
from kfbench.report.section import Missing, Section

BY_CONSTRUCTION: Final = "by construction"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the rows say of one claim. truths: whether it holds, one item a case."""

    measured: str
    truths: Sequence[bool]

    @property
    def verdict(self) -> str:
        held = sum(self.truths)
        if held == len(self.truths):
            return "yes"
        return f"in {held} of {len(self.truths)} cases" if held else "NO"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a proposal says of a broker. find: None where the run has no rows to judge by; because: printed when the
    claim does not hold everywhere; by_construction: a row that said otherwise would not have been measured."""

    source: str
    words: str
    find: Callable[[Paths], Found | None]
    because: str = ""
    by_construction: bool = False

    def verdict(self, found: Found) -> str:
        return f"yes, {BY_CONSTRUCTION}" if self.by_construction and found.verdict == "yes" else found.verdict


def _rows(paths: Paths, names: Sequence[str], *operations: str, packed: bool = False) -> list[Arm]:
    """Measured rows of these formats on these paths, which keep the format; packed: under a codec only."""
    return [
        row
        for row in paths.of(*operations)
        if row.status == "ok" and row.format in names and not row.to_format and not (packed and row.codec == "none")
    ]


def _a_record(rows: Sequence[Arm], name: str) -> str:
    return span([float(getattr(row, name)) / float(row.records) for row in rows], 1)


def _by_codec(paths: Paths, pairs: Sequence[tuple[Arm, Arm]]) -> str:
    """gzip 6 0.40 to 0.52, zstd 3 0.61 to 0.70"""
    ratios: dict[str, list[float]] = {}
    for new, old in pairs:
        ratios.setdefault(new.with_codec, []).append(paths.paired(new, old).median)
    return ", ".join(f"{codec} {span(each)}" for codec, each in ratios.items())


def _cheaper(paths: Paths, pairs: Sequence[tuple[Arm, Arm]]) -> list[bool]:
    """Whether each takes less CPU than its base, by more than the run's noise."""
    ratios = [paths.paired(new, old) for new, old in pairs]
    return [ratio.high < 1 and not ties(ratio, paths.noise) for ratio in ratios]


def _kip31_bytes(paths: Paths) -> Found | None:
    rows, old = _rows(paths, ["v1"], APPEND, packed=True), _rows(paths, ["v0"], APPEND, packed=True)
    if not rows:
        return None
    measured = f"v1 recompresses {_a_record(rows, 'recompressed_bytes')} bytes a record"
    measured += f", v0 {_a_record(old, 'recompressed_bytes')}" if old else ""
    return Found(measured=measured, truths=[row.recompressed_bytes == 0 for row in rows])


def _kip31_cpu(paths: Paths) -> Found | None:
    pairs = [pair for pair in paths.against("v1", "v0") if pair[0].codec != "none"]
    if not pairs:
        return None
    return Found(measured=f"CPU of v1's append / v0's: {_by_codec(paths, pairs)}", truths=_cheaper(paths, pairs))


def _kip31_zero_copy(paths: Paths) -> Found | None:
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


def _enriched_append(paths: Paths) -> Found | None:
    rows = _rows(paths, ENRICHED, APPEND, packed=True)
    if not rows:
        return None
    return Found(
        measured=f"{_a_record(rows, 'decompressed_bytes')} bytes a record are decompressed, "
        f"{_a_record(rows, 'recompressed_bytes')} recompressed",
        truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows],
    )


def _enriched_mirror(paths: Paths) -> Found | None:
    rows = _rows(paths, ENRICHED, "mirror-look", packed=True)
    if not rows:
        return None
    others = _rows(paths, [BASE_FORMAT], "mirror-look", packed=True)
    measured = f"{_a_record(rows, 'decompressed_bytes')} bytes a record are decompressed"
    measured += (
        f"; in {BASE_FORMAT}, which has no such flag, {_a_record(others, 'decompressed_bytes')}" if others else ""
    )
    return Found(measured=measured, truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows])


def _enriched_merge(paths: Paths) -> Found | None:
    """Over logs in which sets were merged."""
    rows = [row for row in _rows(paths, ENRICHED, "compact-merge", packed=True) if row.batches_rewritten > 0]
    if not rows:
        return None
    cpu = f", and takes {span([row.ns_per_record for row in rows], 0)} ns a record" if paths.one_host else ""
    return Found(
        measured=f"{_a_record(rows, 'decompressed_bytes')} bytes a record are decompressed, "
        f"{_a_record(rows, 'recompressed_bytes')} recompressed; it leaves {span([growth(row) for row in rows])} of the "
        f"bytes{cpu}",
        truths=[row.decompressed_bytes == row.recompressed_bytes == 0 for row in rows],
    )


def _enriched_expire(paths: Paths) -> Found | None:
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


def _kip98_in_place(paths: Paths) -> Found | None:
    rows = _rows(paths, [BASE_FORMAT], APPEND, "append-time")
    if not rows:
        return None
    written = span([written_per_batch(row) for row in rows], 0)
    return Found(
        measured=f"{BASE_FORMAT} is {works_words(rows)}, {written} bytes written a batch",
        truths=[work_words(row) == "in place" for row in rows],
    )


def _kip98_fixed(paths: Paths) -> Found | None:
    """Whether a header without a fixed size has to move what follows it."""
    rows = _rows(paths, ["v3"], "append-time")
    if not rows:
        return None
    return Found(
        measured=f"v3, whose header varies, is {works_words(rows)}, "
        f"{span([written_per_batch(row) for row in rows], 0)} bytes written a batch",
        truths=[row.batches_shifted > 0 for row in rows],
    )


def _first(paths: Paths) -> list[tuple[Arm, Arm]]:
    return [pair for pair in paths.against("v3-headers-first", BASE_FORMAT) if pair[0].codec != "none"]


def _kip931_whole(paths: Paths) -> Found | None:
    rows = _rows(paths, [BASE_FORMAT], APPEND, packed=True)
    if not rows:
        return None
    return Found(
        measured=f"{BASE_FORMAT}'s append decompresses {_a_record(rows, 'decompressed_bytes')} bytes a record",
        truths=[row.decompressed_bytes > 0 for row in rows],
    )


def _kip931_prefix(paths: Paths) -> Found | None:
    pairs = [pair for pair in _first(paths) if pair[1].decompressed_bytes]
    if not pairs:
        return None
    shares = [new.decompressed_bytes / old.decompressed_bytes for new, old in pairs]
    return Found(
        measured=f"headers-first decompresses {span(shares)} of what {BASE_FORMAT} does",
        truths=[each < 1 for each in shares],
    )


def _kip931_cpu(paths: Paths) -> Found | None:
    pairs = _first(paths)
    if not pairs:
        return None
    return Found(
        measured=f"CPU of its append / {BASE_FORMAT}'s: {_by_codec(paths, pairs)}", truths=_cheaper(paths, pairs)
    )


def _conversions(paths: Paths, name: str, to: str) -> list[Arm]:
    return [row for row in paths.of(CONVERSION) if (row.format, row.to_format, row.status) == (name, to, "ok")]


def _kip724_down(paths: Paths) -> Found | None:
    up = {(row.cell_id, row.with_codec): row for row in _conversions(paths, "v1", BASE_FORMAT)}
    down = [row for row in _conversions(paths, BASE_FORMAT, "v1") if (row.cell_id, row.with_codec) in up]
    if not down or not paths.one_host:
        return None
    ratios = [row.ns_per_record / up[row.cell_id, row.with_codec].ns_per_record for row in down]
    equal = paths.noise[1] if paths.noise else 1.0
    both = [*down, *up.values()]
    memory = [float(row.extra_bytes + row.size_bytes) / float(row.source_bytes) for row in both]
    return Found(
        measured=f"CPU a record of {BASE_FORMAT} to v1 / v1 to {BASE_FORMAT}: {span(ratios)}; memory of both, what "
        "comes out "
        f"included: {span(memory)} × what comes in",
        truths=[ratio > equal for ratio in ratios],
    )


def _kip724_scan(paths: Paths) -> Found | None:
    rows = _rows(paths, MAIN, "fetch-scan")
    if not rows:
        return None
    batches = [float(row.batches_untouched) for row in rows]
    looked = [float(row.read_bytes) / count for row, count in zip(rows, batches, strict=True)]
    ns = [row.ns_per_record * float(row.records) / count for row, count in zip(rows, batches, strict=True)]
    measured = f"it reads {span(looked, 0)} bytes a batch"
    measured += f" and takes {number(min(ns), 0)} ns a batch or more, the call shared out" if paths.one_host else ""
    return Found(measured=measured, truths=[each > 0 for each in looked])


def _kip724_blind(paths: Paths) -> Found | None:
    rows = _rows(paths, MAIN, "fetch")
    if not rows:
        return None
    read = [float(row.read_bytes) for row in rows]
    return Found(measured=f"{span(read, 0)} bytes are read", truths=[not each for each in read])


def _kip724_single(paths: Paths) -> Found | None:
    rows = [row for name in ("v0", "v1") for row in _conversions(paths, name, BASE_FORMAT) if row.codec == "none"]
    if not rows:
        return None
    ratios = [float(row.size_bytes) / float(row.source_bytes) for row in rows]
    return Found(
        measured=f"plain messages become {span(ratios)} times as many bytes", truths=[ratio > 1 for ratio in ratios]
    )


CLAIMS: Final = (
    Claim(
        source="KIP-31",
        words="Since the broker only needs to update the message-set header, there is no need to re-compress",
        find=_kip31_bytes,
        because="inner offsets that are not 0, 1, 2, … are reassigned, which rewrites the set",
    ),
    Claim(
        source="KIP-31",
        words="Decompressing, assigning offsets and recompressing cause additional CPU cost, which this avoids",
        find=_kip31_cpu,
        because="both decompress, and both check a CRC-32 a message",
    ),
    Claim(
        source="KIP-31",
        words="To a consumer that supports the format on disk the broker sends with zero-copy transfer",
        find=_kip31_zero_copy,
        by_construction=True,
    ),
    Claim(
        source="Enriched metadata (KAFKA-527)",
        words="The broker only needs to set the wrapped message's offset: no decompression, no recompression",
        find=_enriched_append,
        because="to check the messages within, the broker has to open the set; it does not close it anew",
    ),
    Claim(
        source="Enriched metadata (KAFKA-1001)",
        words="Where no message has a key, the mirror does not need to decompress",
        find=_enriched_mirror,
    ),
    Claim(
        source="Enriched metadata (KAFKA-881, KAFKA-979)",
        words="Merging message sets just needs to remember the starting offset and to change the relative offsets",
        find=_enriched_merge,
        because="relative offsets stand in the messages, under the codec: to change one is to recompress the set",
    ),
    Claim(
        source="Enriched metadata (KAFKA-881, KAFKA-979)",
        words="By an index of times the head of a segment can go that is not old enough as a whole",
        find=_enriched_expire,
        because="no index entry stands between the old records and the first young one: the sets are few and large",
    ),
    Claim(
        source="KIP-98",
        words="A message set header of fixed size allows in-place offset and timestamp assignment on the broker",
        find=_kip98_in_place,
        because="what is not in place was rewritten",
    ),
    Claim(
        source="KIP-98",
        words="It is the fixed size that allows it",
        find=_kip98_fixed,
        because="the variable field has the same number of bytes before and after, and nothing moves",
    ),
    Claim(
        source="KIP-931, additional proposal",
        words="To validate a compressed batch the broker has to decompress all of it",
        find=_kip931_whole,
    ),
    Claim(
        source="KIP-931, additional proposal",
        words="With the headers of all messages first it decompresses the prefix only",
        find=_kip931_prefix,
        because="a codec is decompressed by the block, and the prefix ends in the last one",
    ),
    Claim(
        source="KIP-931, additional proposal",
        words="That is an optimization",
        find=_kip931_cpu,
        because="where the prefix ends in the last block nothing is saved; the CRC covers all of the batch either way",
    ),
    Claim(
        source="KIP-724",
        words="Up-conversion and (especially) down-conversion have measurable impact",
        find=_kip724_down,
        because="down-conversion is not the dearer of the two there",
    ),
    Claim(
        source="KIP-724",
        words="To see whether a reader is too old takes an additional scan of the batches",
        find=_kip724_scan,
    ),
    Claim(
        source="KIP-724",
        words="It does away with that scan",
        find=_kip724_blind,
        by_construction=True,
    ),
    Claim(
        source="KIP-724",
        words="v2 is slightly less efficient than v0 and v1 when single record batches are used",
        find=_kip724_single,
    ),
)


def proposals_table(paths: Paths, more: Sequence[Claim] = ()) -> Table | None:
    """What the proposals say of a broker, beside what this run's rows say of it, over all its cells."""
    body = []
    for claim in (*CLAIMS, *more):
        found = claim.find(paths)
        if found is not None and found.truths:
            because = "" if found.verdict == "yes" else claim.because
            body.append((claim.source, claim.words, found.measured, claim.verdict(found), because))
    if not body:
        return None
    return Table(
        name="broker-claims",
        caption="What the proposals say of a broker, and what this run measures: every workload and codec that it has",
        columns=plain_columns("proposal", "claim", "measured", "holds", "because"),
        rows=tuple(body),
        notes=(
            f"CPU is less where the interval is below 1 and outside what {BASE_FORMAT} reads against itself.",
            "Up and down were timed apart: there the ratio of medians a record has to be outside it.",
            f"{BY_CONSTRUCTION.capitalize()}: the path is written to do so, and is verified before it is measured.",
        ),
    )


def proposals_sentence(found: Table) -> str:
    verdicts = [str(row[3]) for row in found.rows]
    right, wrong = sum(each.startswith("yes") for each in verdicts), verdicts.count("NO")
    built = sum(each.endswith(BY_CONSTRUCTION) for each in verdicts)
    return (
        f"Of {len(verdicts)} claims {right} hold in every workload and codec of this run"
        + (f" ({built} of them {BY_CONSTRUCTION})" if built else "")
        + f", {wrong} in none and {len(verdicts) - right - wrong} in some."
    )


def proposals_section(paths: Paths, more: Sequence[Claim] = ()) -> Section | Missing:
    title = "Are the proposals right about the broker?"
    table = proposals_table(paths, more)
    if table is None:
        return Missing(what=title, why="no path of a broker that a proposal speaks of")
    return Section(
        name="broker-claims",
        short="Proposals",
        title=title,
        means=proposals_sentence(table),
        tables=(table,),
        wrap=True,
    )
