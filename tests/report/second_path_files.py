"""Compute the tables of stored files a second time: other implementations, and Kafka's formats in Java.

The formulas are those of docs/terms.md. Each function returns a table: the key cells of a row -> column -> number.
"""

import json
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

import numpy as np
from scipy.stats import binom

from tests.report.second_path_times import SHARE, Interval, Numbers, interval, numbers, spreads

CLIENTS: Final = "Implementations of Kafka's formats: CPU"
PEERS_NOISE: Final = "Noisy run: 2 of 5 noise checks passed"  # of the shipped file
JAVA: Final = "Formats in Java: JMH on Kafka 4.4.0"
OURS: Final = {"write": "encode", "iterate": "decode", "lookup": "read-times", "validate": "append"}


def _arms_of(file: dict[str, Any]) -> list[dict[tuple[str, ...], tuple[list[int], int]]]:
    """Return for each cell: peer, operation, format and arm -> times, and calls per time."""
    return [
        {
            (arm["peer"], arm["operation"], arm["format"], arm["arm"]): (arm["cpu_ns"], arm["inner_loops"])
            for arm in cell["arms"]
        }
        for cell in file["cells"]
    ]


def clients(path: Path) -> Numbers:
    """Return the implementations of v2 from fastest to slowest: geometric means over the sizes of batches and values.

    The fastest of a size has the least median time there.
    """
    file = json.loads(path.read_bytes())
    table: Numbers = {}
    for operation in ("encode", "decode"):
        found: dict[str, list[tuple[float, float]]] = {}  # implementation -> × fastest and × kfbench of each size
        at_100: dict[str, float] = {}
        for cell, arms in zip(file["cells"], _arms_of(file), strict=True):
            times = {
                key[0]: np.array(ns) / loops / cell["records"]
                for key, (ns, loops) in arms.items()
                if key[1:] == (operation, "v2", "measure") and key[0] != "limit"
            }
            fastest = min(times, key=lambda name: float(np.median(times[name])))
            for name, ns in times.items():
                to_fastest, to_ours = (float(np.median(ns / times[base])) for base in (fastest, "kfbench"))
                found.setdefault(name, []).append((to_fastest, to_ours))
                if (cell["batch_size"], cell["value_bytes"]) == (100, 100):
                    at_100[name] = float(np.median(ns))
        means = {
            name: [exp(fmean(map(log, each))) for each in zip(*ratios, strict=True)] for name, ratios in found.items()
        }
        for rank, name in enumerate(sorted(means, key=lambda name: means[name][0]), 1):
            table[operation, str(rank), name, file["peers"].get(name, "")] = {
                "mean × fastest": means[name][0],
                "mean × kfbench": means[name][1],
                "least × kfbench": min(to_ours for _, to_ours in found[name]),
                "most × kfbench": max(to_ours for _, to_ours in found[name]),
                "ns, 100 x 100 bytes": at_100[name],
                "sizes": len(found[name]),
            }
    return table


def peer_differences(path: Path) -> Numbers:
    rows = json.loads(path.read_bytes())["differences"]
    return {(row["peer"], row["records"]): {"difference": row["difference"]} for row in rows}


def _spread(cells: list[dict[tuple[str, ...], tuple[list[int], int]]]) -> float:
    again = [
        [np.round(np.array(ns) / loops) for ns, loops in (found, arms[*key[:3], "measure"])]
        for arms in cells
        for key, found in arms.items()
        if key[3] == "aa"
    ]
    return spreads(("cpu", second / first) for second, first in again).get("cpu", 0.0)


def peers(path: Path) -> Numbers:
    """Return the time of kfbench in ns per record, and of the other implementations in multiples of it."""
    file = json.loads(path.read_bytes())
    titles = {name: name if name == "limit" else f"{name} {version}" for name, version in file["peers"].items()}
    cells = _arms_of(file)
    spread = _spread(cells)
    table: Numbers = {}
    for cell, arms in zip(file["cells"], cells, strict=True):
        for (peer, operation, name, arm), (ns, loops) in arms.items():
            ours_ns, our_loops = arms["kfbench", operation, name, "measure"]
            row = table.setdefault((operation, name, str(cell["batch_size"]), str(cell["value_bytes"])), {})
            if peer == "kfbench" and arm == "measure":
                row["kfbench ns per record"] = median(ns) / loops / cell["records"]
            elif arm == "measure":
                ratios = np.array(ns) / loops / (np.array(ours_ns) / our_loops)
                row |= numbers(f"{titles[peer]} ×", interval(ratios, spread))
    return table


def client_cells(path: Path) -> Numbers:
    """Return the time of each implementation of v2 in ns per record, and in multiples of the fastest's."""
    file = json.loads(path.read_bytes())
    cells = _arms_of(file)
    spread = _spread(cells)
    table: Numbers = {}
    for cell, arms in zip(file["cells"], cells, strict=True):
        for operation in ("encode", "decode"):
            times = {
                key[0]: np.array(ns) / loops / cell["records"]
                for key, (ns, loops) in arms.items()
                if key[1:] == (operation, "v2", "measure")
            }
            fastest = min(times.keys() - {"limit"}, key=lambda name: float(np.median(times[name])))
            for name, ns in times.items():
                ratio = (1.0,) if name == fastest else interval(ns / times[fastest], spread)
                table[operation, str(cell["batch_size"]), str(cell["value_bytes"]), name] = {
                    "ns per record ns": float(np.median(ns)),
                    **numbers("× fastest ×", ratio),
                }
    return table


def java_codecs(path: Path) -> Numbers:
    """Return the time of Kafka's own v2 in Java in ns per record, of the newest Kafka with all cells."""
    runs = [run for run in json.loads(path.read_bytes())["runs"] if run["cells"] == "all"]
    rows = max(runs, key=lambda run: [int(part) for part in run["kafka"].split(".")])["rows"]
    names = {"none": "none", "lz4": "lz4 9", "zstd": "zstd 3"}
    table: Numbers = {}
    for row in rows:
        if row["format"] == "v2" and row["operation"] in ("write", "iterate"):
            ends = (ns / row["records"] for ns in (row["ns_per_op"], *row["ns_per_op_interval"]))
            columns = (f"{row['records']} per batch ns{end}" for end in ("", " low", " high"))
            key = row["operation"], names[row["codec"]]
            table.setdefault(key, {}).update(zip(columns, ends, strict=True))
    return table


def measured_runs(own: Path, joined: Path, java: Path, peers_file: Path) -> Numbers:
    """Return when and where each run of the report was measured, and if it is quiet by its manifest."""
    manifests = [json.loads((folder / "manifest.json").read_bytes()) for folder in (own, *joined.iterdir())]
    table: Numbers = {(each["profile"],): {"feeds": each["title"], **_place(each, "started")} for each in manifests}
    for run in json.loads(java.read_bytes())["runs"]:
        if run["kafka"] == "4.4.0":
            noisy, count = sum(row["noisy"] for row in run["rows"]), len(run["rows"])
            state = f"{'Noisy' if noisy > count / 2 else 'Quiet'} run: {noisy} of {count} intervals are wider than ±3 %"
            table[f"java, {run['cells']}",] = {"feeds": JAVA, "noise": state, **_place(run, "measured")}
    file = json.loads(peers_file.read_bytes())
    table["clients",] = {"feeds": CLIENTS, "noise": PEERS_NOISE, **_place(file, "measured")}
    for each in manifests:
        passed = [check["passed"] for host in each["noise"]["hosts"].values() for check in host]
        state = "Quiet" if all(passed) else "Noisy"
        table[each["profile"],]["noise"] = f"{state} run: {sum(passed)} of {len(passed)} noise checks passed"
    return table


def _place(facts: dict[str, Any], day: str) -> dict[str, float | str]:
    where = facts["environment"]
    return {"measured": f"{facts[day][:10]}, {where['cpu']} ({where['cpu_model']})"}


def second_opinion(path: Path) -> Numbers:
    """Return Java's and our time of a format relative to v2, of the newest Kafka's cells behind claims."""
    runs = json.loads(path.read_bytes())["runs"]
    newest = max((run["kafka"] for run in runs), key=lambda version: [int(part) for part in version.split(".")])
    run = next(run for run in runs if (run["kafka"], run["cells"]) == (newest, "claimed"))
    java = {(row["operation"], row["codec"], row["records"], row["format"]): row for row in run["rows"]}
    ours = {(row["operation"], row["codec"], row["records"], row["format"]): row["cpu_ns"] for row in run["ours"]}
    table: Numbers = {}
    for (operation, codec, records, name), row in java.items():
        if name not in ("v3", "v3-headers-first", "columnar") or operation not in OURS:
            continue
        cell = operation, codec, records
        own, kafka = (np.array(java[*cell, base]["fork_ns"]) for base in ("v2-own", "v2"))
        kernels, base = (np.array(ours[OURS[operation], codec, records, each]) for each in (name, "v2"))
        java_ratio, to_kafka = (_of_signs(row["fork_ns"] / each) for each in (own, kafka))
        ratio = interval(kernels / base)
        table[operation, codec, str(records), name] = {
            **numbers("Java ×", java_ratio),
            **numbers("kfbench ×", ratio),
            **numbers("Java, to Kafka's own v2 ×", to_kafka),
            "which is dearer": _opinion(java_ratio, to_kafka, ratio),
            "Java allocates bytes per record": row["bytes_per_record"],
        }
    return table


def _of_signs(ratios: Any) -> Interval:
    """Return the median and the interval of the sign test: the ends are ordered ratios, with 95 % or more between."""
    ordered = np.sort(ratios)
    below = binom.cdf(np.arange(len(ordered)), len(ordered), 0.5)
    at = max(int(np.sum(below < (1 - SHARE) / 2)) - 1, 0)
    return Interval(float(np.median(ordered)), float(ordered[at]), float(ordered[-1 - at]))


def _opinion(java: Interval, to_kafka: Interval, ours: Interval) -> str:
    """Return whether both find the same format dearer, and whether Java's half-width is more than 3 %."""
    is_dearer, to_kafka_is, ours_is = (
        None if each.low <= 1 <= each.high else each.low > 1 for each in (java, to_kafka, ours)
    )
    is_sure = is_dearer is not None and to_kafka_is == is_dearer and ours_is is not None
    verdict = "undecided" if not is_sure else "agree" if ours_is == is_dearer else "differ"
    return f"{verdict} (noisy)" if java.high - java.low > 0.06 * java.median else verdict
