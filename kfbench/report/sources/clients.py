"""Stored times of other implementations, and of Kafka's formats in Java, beside those of kfbench.

Both files were measured apart from any run (`make peers`, `make jmh`), perhaps on another machine. So none of their
times is compared with a time of a run.
"""

from collections.abc import Callable, Iterator
from statistics import geometric_mean
from typing import Any

import numpy as np
import pandas as pd

from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import CONFIDENCE, Interval, binomial_cdf, paired_ratio
from kfbench.present.names import codec_words
from kfbench.present.rows import Runs
from kfbench.present.stored_times import (
    AGAIN,
    CLAIMED,
    LIMIT,
    NOISY,
    OUR_OPERATIONS,
    OURS,
    OWN,
    JavaRow,
    JmhRun,
    jmh_runs,
    load_peers,
)


def peers(_: Runs) -> pd.DataFrame:
    """Return the CPU time of each implementation, operation, format and size of batch and value.

    ns: per record. to_ours, to_fastest: ratios. rank: by the mean of to_fastest over all sizes in v2.
    role: "ours", "limit" or "other". The limit has no rank, and is not the fastest.
    other_threads: CPU time of the process's other threads, as a share of the timed thread's.
    The frame's attribute `manifest` says when and where they were measured.
    """
    found = load_peers()
    if found is None:
        return pd.DataFrame()
    rows: list[dict[str, Any]] = []
    for arm in found.ns:
        if arm.again:
            continue
        beside = [each for each in found.ns if each[1:] == arm[1:] and each.peer != LIMIT]
        fastest = min(beside, key=lambda each: float(np.median(found.ns[each])))
        version = found.versions.get(arm.peer, "") if arm.peer != LIMIT else ""
        rows.append(
            {
                "implementation": arm.peer,
                "version": version,
                "title": f"{arm.peer} {version}".strip(),
                "other_threads": found.other_threads.get(arm.peer, 0.0),
                "role": {OURS: "ours", LIMIT: "limit"}.get(arm.peer, "other"),
                "operation": arm.operation,
                "format": arm.format,
                "batch_size": arm.batch_size,
                "value_bytes": arm.value_bytes,
                "ns": float(np.median(found.ns[arm])),
                "to_ours": found.ratio(arm, arm._replace(peer=OURS)) if arm.peer != OURS else 1.0,
                "to_fastest": found.ratio(arm, fastest) if arm != fastest else 1.0,
            }
        )
    frame = pd.DataFrame(rows)
    frame.attrs["manifest"] = found.manifest
    return frame.assign(rank=_ranks(frame))


def _ranks(frame: pd.DataFrame) -> list[int]:
    """Return the rank of each row's implementation among those of its operation, from 1; 0 for the limit."""
    of_base = frame[(frame["format"] == BASE_FORMAT) & (frame["role"] != "limit")]
    means = of_base.groupby(["operation", "implementation"])["to_fastest"].agg(
        lambda ratios: geometric_mean(each.median if isinstance(each, Interval) else each for each in ratios)
    )
    ranks = means.groupby("operation").rank(method="first").astype(int).to_dict()
    return [ranks.get(key, 0) for key in zip(frame["operation"], frame["implementation"], strict=True)]


def peer_differences(_: Runs) -> pd.DataFrame:
    """Return the implementations whose output differs from ours for some records. They are not timed on these."""
    found = load_peers()
    rows = [(each.peer, each.records, each.difference) for each in (found.differences if found else ())]
    frame = pd.DataFrame(rows, columns=["implementation", "records", "difference"])
    frame.attrs["manifest"] = found and found.manifest
    return frame


def second_opinion(_: Runs) -> pd.DataFrame:
    """Return the time of each format relative to v2, in Java and in our kernels, in the cells behind claims.

    Columns: java: relative to v2 in the same Java code; to_kafka: to Kafka's own classes for v2; ours: of our kernels;
    verdict: which of the two find the format dearer than v2; allocated: bytes that Java allocates per record.
    """
    return _java(CLAIMED, _opinions)


def java_codecs(_: Runs) -> pd.DataFrame:
    """Return the time (ns) per record of Kafka's own classes for v2, by operation, codec and records per batch."""
    return _java("all", _codec_times)


def _java(cells: str, rows_of: Callable[[JmhRun], Iterator[dict[str, Any]]]) -> pd.DataFrame:
    """Return rows of the newest Kafka that a selection of cells was timed on. The attribute `manifest` is the run's."""
    runs = [run for run in jmh_runs() if run.cells == cells]
    newest = max(runs, key=lambda run: [*map(int, run.kafka.split("."))], default=None)
    frame = pd.DataFrame(rows_of(newest) if newest else ())
    frame.attrs["manifest"] = newest.manifest if newest else None
    return frame


def _codec_times(run: JmhRun) -> Iterator[dict[str, Any]]:
    for row in run.rows:
        if row.format == BASE_FORMAT and row.operation in ("write", "iterate"):
            mean, low, high = (ns / row.records for ns in (row.ns_per_op, *row.ns_per_op_interval))
            yield {
                "operation": row.operation,
                "with_codec": codec_words(row.codec, CODECS[row.codec].default_level),
                "batch_size": row.records,
                "ns": Interval(median=mean, low=low, high=high),
            }


def _opinions(run: JmhRun) -> Iterator[dict[str, Any]]:
    java = {(row.operation, row.codec, row.records, row.format): row for row in run.rows}
    ours = {(row.operation, row.codec, row.records, row.format): row for row in run.ours}
    for (operation, codec, records, name), row in java.items():
        if name in (BASE_FORMAT, OWN, AGAIN) or operation not in OUR_OPERATIONS:
            continue
        own, kafka = (java_ratio(row, java[operation, codec, records, each]) for each in (OWN, BASE_FORMAT))
        times = [ours[OUR_OPERATIONS[operation], codec, records, each] for each in (name, BASE_FORMAT)]
        ns, base_ns = (np.array(each.cpu_ns) / each.records_per_sample for each in times)
        ratio = paired_ratio(ns, base_ns)
        is_noisy = (own.high - own.low) / 2 > NOISY * own.median
        yield {
            "operation": operation,
            "with_codec": codec,
            "batch_size": records,
            "format": name,
            "java": own,
            "to_kafka": kafka,
            "ours": ratio,
            "verdict": _verdict(own, kafka, ratio) + (" (noisy)" if is_noisy else ""),
            "allocated": row.bytes_per_record,
        }


def java_ratio(row: JavaRow, base: JavaRow) -> Interval:
    """Return the ratio of two times, paired by round: in a round, each has one JVM, within a minute.

    The interval is that of the sign test. With seven rounds it is their lowest and highest ratio (98 %). A bootstrap of
    so few rounds would be too narrow. Fewer than six rounds cannot reach 95 %.
    """
    ratios = np.sort(np.array(row.fork_ns) / np.array(base.fork_ns))
    # The probability that the median is below the lowest ratio, the second lowest, and so on.
    below = binomial_cdf(len(ratios), 0.5)
    at = max(int(np.searchsorted(below, (1 - CONFIDENCE) / 2)) - 1, 0)
    return Interval(median=float(np.median(ratios)), low=float(ratios[at]), high=float(ratios[-1 - at]))


def _verdict(java: Interval, to_kafka: Interval, ours: Interval) -> str:
    """Return whether Java and our kernels agree on which format is dearer.

    It is undecided if an interval holds 1, or if Kafka's own v2 as the base gives another answer.
    """
    side = _side_of_one(java)
    if side == 0 or _side_of_one(to_kafka) != side or _side_of_one(ours) == 0:
        return "undecided"
    return "agree" if _side_of_one(ours) == side else "differ"


def _side_of_one(ratio: Interval) -> int:
    return (ratio.low > 1) - (ratio.high < 1)
