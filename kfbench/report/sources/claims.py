"""Claims of Kafka's proposals: their published figures beside the real bytes, and their sentences about a broker.

The texts of the claims about a broker are in claims.toml. A claim holds if every case confirms it. A case is one
workload and codec of the run, in the formats of the claim. Runs with times of several hosts have no such claims.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Final

import msgspec
import pandas as pd

from kfbench.claims import DOCUMENTS, table
from kfbench.migration import plans
from kfbench.present.arms import StoredArm, ties, work_words
from kfbench.present.names import MAIN
from kfbench.present.rows import Runs
from kfbench.present.table import listed, number
from kfbench.report.sources.broker import APPEND, BrokerArms
from kfbench.report.sources.migration import break_evens
from kfbench.text import number_range

V0, V1, V2, V3, FIRST = "v0", "v1", "v2", "v3", "v3-headers-first"
ENRICHED: Final = ("enriched", "enriched-ms")
BATCHES: Final = ("batches_untouched", "batches_in_place", "batches_shifted", "batches_rewritten", "batches_dropped")

COLUMNS: Final = ["document", "claim", "published", "real", "holds", "shipped", "because", "differs"]

Found = tuple[dict[str, object], Sequence[bool]]  # the numbers of the text, and True or False for each case


def claims(_: Runs) -> pd.DataFrame:
    """Return the published figures of Kafka's proposals, and the bytes that the formats write.

    differs: 1 if the published figure is wrong, else 0.
    """
    checked = [table(name) for name in DOCUMENTS]
    rows = [
        (
            each.name,
            row.claim,
            row.published,
            row.real,
            "yes" if row.holds else "NO",
            row.shipped,
            row.why.replace("`", ""),  # no code in a table
            int(not row.holds),
        )
        for each in checked
        for row in each.rows
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


class BrokerClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence of a proposal about a broker.

    measured: the text with the measured numbers. by_construction: the path does so by design, and is verified.
    """

    proposal: str
    claim: str
    measured: str
    because: str = ""
    by_construction: bool = False


def broker_claims(runs: Runs) -> pd.DataFrame:
    """Return the claims about a broker with the measured numbers over all workloads and codecs, and the verdicts."""
    text = files(__package__).joinpath("claims.toml").read_text(encoding="utf-8")
    texts = msgspec.convert(tomllib.loads(text), dict[str, BrokerClaim])
    broker, found = BrokerArms(runs.own), []
    for name, claim in texts.items() if broker.one_host else ():
        numbers, truths = CHECKS[name](broker)
        if truths:
            verdict = _verdict(truths)
            holds = f"{verdict}, by construction" if claim.by_construction and verdict == "yes" else verdict
            because = "" if verdict == "yes" else claim.because
            found.append((claim.proposal, claim.claim, claim.measured.format_map(numbers), holds, because))
    return pd.DataFrame(found, columns=["proposal", "claim", "measured", "holds", "because"])


def _verdict(truths: Sequence[bool]) -> str:
    true = sum(truths)
    if true == len(truths):
        return "yes"
    return f"in {true} of {len(truths)} cases" if true else "NO"


def _span(values: Iterable[float], digits: int = 2) -> str:
    known = list(values)
    return number_range(known, f",.{digits}f") if known else ""


def _per_record(arms: Sequence[StoredArm], name: str) -> str:
    return _span((getattr(arm, name) / arm.records for arm in arms), 1)


def _growth(arm: StoredArm) -> float:
    return arm.size_bytes / arm.source_bytes


def _work(arms: Sequence[StoredArm]) -> dict[str, object]:
    """Return what happens to the batches, and the bytes that are written for each of them."""
    batches = [sum(count for name in BATCHES if (count := getattr(arm, name)) > 0) for arm in arms]
    written = [arm.written_bytes / count if count else 0.0 for arm, count in zip(arms, batches, strict=True)]
    return {"work": listed(list(dict.fromkeys(map(work_words, arms)))), "written": _span(written, 0)}


def _unpacked(arms: Sequence[StoredArm]) -> Found:
    """Return the bytes that are decompressed and recompressed. It is true if there are none."""
    numbers = {name: _per_record(arms, f"{name}_bytes") for name in ("decompressed", "recompressed")}
    return {**numbers}, [arm.decompressed_bytes == arm.recompressed_bytes == 0 for arm in arms]


def _cheaper(broker: BrokerArms, name: str, base: str) -> Found:
    """Compare the CPU time of appends. It is true where it is less, beyond the noise of a base against itself."""
    ratios = [broker.ratio(new, old) for new, old in broker.against(name, base)]
    truths = [ratio.high < 1 and not ties(ratio, broker.noise) for ratio in ratios]
    return {"ratio": _span(ratio.median for ratio in ratios)}, truths


def _kip31_bytes(broker: BrokerArms) -> Found:
    new, old = (broker.of((name,), APPEND, packed=True) for name in (V1, V0))
    numbers = {"new": _per_record(new, "recompressed_bytes"), "old": _per_record(old, "recompressed_bytes")}
    return {**numbers}, [arm.recompressed_bytes == 0 for arm in new]


def _kip31_zero_copy(broker: BrokerArms) -> Found:
    arms = broker.of((), "fetch")
    touched = [arm.written_bytes + arm.decompressed_bytes for arm in arms]
    truths = [work_words(arm) == "zero-copy" for arm in arms]
    numbers = {"zero_copy": sum(truths), "logs": len(arms), "touched": _span(touched, 0)}
    return {**numbers}, [truth and not count for truth, count in zip(truths, touched, strict=True)]


def _enriched_mirror(broker: BrokerArms) -> Found:
    numbers, truths = _unpacked(broker.of(ENRICHED, "mirror-look", packed=True))
    return {**numbers, "v2": _per_record(broker.of((V2,), "mirror-look", packed=True), "decompressed_bytes")}, truths


def _enriched_merge(broker: BrokerArms) -> Found:
    """Check logs with merged message sets only."""
    arms = [arm for arm in broker.of(ENRICHED, "compact-merge", packed=True) if arm.batches_rewritten > 0]
    numbers, truths = _unpacked(arms)
    ns = _span((arm.ns_per_record for arm in arms), 0)
    return {**numbers, "growth": _span(map(_growth, arms)), "ns": ns}, truths


def _enriched_expire(broker: BrokerArms) -> Found:
    arms = broker.of((), "expire")
    pairs = [(arm, head) for arm in arms if (head := broker.find(arm, "expire-head", arm.format))]
    numbers = {"segment": _span(_growth(arm) for arm, _ in pairs), "head": _span(_growth(head) for _, head in pairs)}
    return {**numbers}, [head.size_bytes < arm.size_bytes for arm, head in pairs]


def _kip98_in_place(broker: BrokerArms) -> Found:
    arms = broker.of((V2,), APPEND, "append-time")
    return _work(arms), [work_words(arm) == "in place" for arm in arms]


def _kip98_fixed(broker: BrokerArms) -> Found:
    """Check the claim on v3, whose header has a variable size. It is true if bytes after the header have moved."""
    arms = broker.of((V3,), "append-time")
    return _work(arms), [arm.batches_shifted > 0 for arm in arms]


def _kip931_whole(broker: BrokerArms) -> Found:
    arms = broker.of((V2,), APPEND, packed=True)
    return {"decompressed": _per_record(arms, "decompressed_bytes")}, [arm.decompressed_bytes > 0 for arm in arms]


def _kip931_prefix(broker: BrokerArms) -> Found:
    pairs = [pair for pair in broker.against(FIRST, V2) if pair[1].decompressed_bytes]
    shares = [new.decompressed_bytes / old.decompressed_bytes for new, old in pairs]
    return {"share": _span(shares)}, [share < 1 for share in shares]


def _kip724_down(broker: BrokerArms) -> Found:
    """Compare conversions down and up. They were timed in different rounds, so the ratio must be beyond the noise."""
    up = {(arm.cell_id, arm.with_codec): arm for arm in broker.conversions(V1, V2)}
    down = [arm for arm in broker.conversions(V2, V1) if (arm.cell_id, arm.with_codec) in up]
    ratios = [arm.ns_per_record / up[arm.cell_id, arm.with_codec].ns_per_record for arm in down]
    memory = [(arm.extra_bytes + arm.size_bytes) / arm.source_bytes for arm in (*down, *up.values())]
    equal = broker.noise.high if broker.noise else 1.0
    return {"ratio": _span(ratios), "memory": _span(memory)}, [ratio > equal for ratio in ratios]


def _kip724_scan(broker: BrokerArms) -> Found:
    arms = broker.of(MAIN, "fetch-scan")
    read = [arm.read_bytes / arm.batches_untouched for arm in arms]
    ns = min((arm.ns_per_record * arm.records / arm.batches_untouched for arm in arms), default=0.0)
    return {"read": _span(read, 0), "ns": number(ns, 0)}, [each > 0 for each in read]


def _kip724_blind(broker: BrokerArms) -> Found:
    read = [arm.read_bytes for arm in broker.of(MAIN, "fetch")]
    return {"read": _span(read, 0)}, [not each for each in read]


def _kip724_single(broker: BrokerArms) -> Found:
    arms = [arm for name in (V0, V1) for arm in broker.conversions(name, V2) if arm.codec == "none"]
    return {"growth": _span(map(_growth, arms))}, [_growth(arm) > 1 for arm in arms]


def _kip931_discarded(broker: BrokerArms) -> Found:
    found = [each for _, each in break_evens(broker, plans.find(V3)) if not isinstance(each, str)]
    shares = [100 * each.share for each in found if each.pays == "below" and each.share is not None]
    share = _span(shares, 0 if min(shares) >= 10 else 1) if shares else "–"
    always = [each.pays == "always" for each in found]
    return {"share": share, "below": len(shares), "always": sum(always), "cases": len(found)}, always


CHECKS: Final[Mapping[str, Callable[[BrokerArms], Found]]] = {
    "kip31_bytes": _kip31_bytes,
    "kip31_cpu": lambda broker: _cheaper(broker, V1, V0),
    "kip31_zero_copy": _kip31_zero_copy,
    "enriched_append": lambda broker: _unpacked(broker.of(ENRICHED, APPEND, packed=True)),
    "enriched_mirror": _enriched_mirror,
    "enriched_merge": _enriched_merge,
    "enriched_expire": _enriched_expire,
    "kip98_in_place": _kip98_in_place,
    "kip98_fixed": _kip98_fixed,
    "kip931_whole": _kip931_whole,
    "kip931_prefix": _kip931_prefix,
    "kip931_cpu": lambda broker: _cheaper(broker, FIRST, V2),
    "kip724_down": _kip724_down,
    "kip724_scan": _kip724_scan,
    "kip724_blind": _kip724_blind,
    "kip724_single": _kip724_single,
    "kip931_discarded": _kip931_discarded,
}
