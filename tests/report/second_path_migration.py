"""Compute the loads, the bills and the break-even of a migration to v3 a second time.

The formulas are those of docs/terms.md, the phases those of KIP-31: all brokers learn the new format, then write it.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import duckdb

from tests.report.second_path_times import Numbers, interval, numbers

GIB: Final = 2**30
OLD_PRODUCERS, OLD_CONSUMERS, FAN_OUT, REPLICATION, RETENTION_DAYS, CANARY = 0.1, 0.2, 3, 3, 7, 0.05
CORE_HOUR, GB_MONTH, NETWORK_GB = 0.04, 0.08, 0.01  # US$
LOW, MEDIAN, HIGH = 1, 0, 2  # which end of an interval


def migration(database: duckdb.DuckDBPyConnection, old: str = "v2", new: str = "v3") -> Numbers:
    """Return the brokers' loads and bills in KIP-31's two phases, per GiB produced in the old format."""
    return {
        (codec, phase): {
            "append CPU s": load["append"],
            "fetch CPU s": load["fetch"],
            "out GiB": load["out"] / GIB,
            "on disk GiB": load["disk"] / GIB,
            "zero-copy % of out": 100 * load["zero-copy"] / load["out"],
            "refused % produced": 0.0,
            "refused % fetched": 0.0,
            "bill US$ per TiB": _bill(load) * 1024,
        }
        for codec, costs in _costs(database, old, new).items()
        for phase, load in _loads(costs, old, new)
    }


def assumptions() -> Numbers:
    """Return the assumed shares, counts and prices as words."""
    shares = {"old producers": OLD_PRODUCERS, "old consumers": OLD_CONSUMERS, "old data": 0.0, "canary leaders": CANARY}
    counts = {"fan out": FAN_OUT, "replication": REPLICATION, "retention days": RETENTION_DAYS}
    prices = {"cpu core hour": CORE_HOUR, "storage gb month": GB_MONTH, "network gb": NETWORK_GB}
    words = {name: f"{100 * share:g} %" for name, share in shares.items()} | {
        name: f"{n:g}" for name, n in counts.items()
    }
    return {
        (name,): {"value": word} for name, word in (words | {name: f"US$ {n:g}" for name, n in prices.items()}).items()
    }


def _costs(database: duckdb.DuckDBPyConnection, old: str, new: str, end: int = MEDIAN) -> dict[str, "Costs"]:
    """Return the costs of a broker's paths by codec. A fetch that was not measured costs the median of the others.

    end: the end of its interval that is taken as a CPU time.
    """
    rows = database.execute(
        "SELECT with_codec, operation, format, coalesce(to_format, format), source_bytes, size_bytes, ns, records "
        "FROM arms WHERE kind = 'broker' AND arm = 'measure' AND workload = 'grid' "
        "AND axes_moved = [] AND operation IN ('append', 'append-convert', 'convert')"
    ).fetchall()
    calls = database.execute(
        "SELECT format, median(median_of(ns) * records) / 1e9 FROM arms "
        "WHERE operation = 'fetch' AND arm = 'measure' GROUP BY format"
    ).fetchall()
    found: dict[str, Costs] = {}
    for codec in sorted({row[0] for row in rows if row[1:4] == ("append-convert", old, new)}):
        costs = {
            (what.partition("-")[0], source, to): [*sizes, interval(ns)[end] * records / 1e9]
            for own, what, source, to, *sizes, ns, records in rows
            if own == codec
        }
        bytes_of = {name: costs["append", name, name][0] for name in (old, new)}
        found[codec] = costs | {
            ("fetch", name, name): [bytes_of[name]] * 2 + [s] for name, s in calls if name in bytes_of
        }
    return found


def break_even(database: duckdb.DuckDBPyConnection, old: str = "v2", new: str = "v3") -> Numbers:
    """Return the share of old consumers at which the bills of both formats are equal, with the ends of its interval.

    A bill is linear in that share. A cell without an append of the old format has none.
    """
    cells = database.execute(
        "SELECT DISTINCT batch_size, with_codec FROM every WHERE kind = 'broker' AND operation = 'convert'"
    ).fetchall()
    table: Numbers = {(str(size), codec): {f"{new} pays": f"append of {old} was not measured"} for size, codec in cells}
    ends = [savings(database, old, new, end) for end in (MEDIAN, HIGH, LOW)]
    for codec, (without, with_all) in ends[0].items():
        row = table["100", codec] = {
            f"{new} pays": "always",
            "saved without old consumers US$ per TiB": without * 1024,
            "saved with none but old US$ per TiB": with_all * 1024,
        }
        if with_all < 0 <= without:
            shares = [100 * saved[codec][0] / (saved[codec][0] - saved[codec][1]) for saved in ends]
            row |= numbers("old consumers %", shares)
            row[f"{new} pays"] = f"below {shares[0]:.{0 if shares[0] >= 10 else 1}f} %"
    return table


def curve(database: duckdb.DuckDBPyConnection) -> Numbers:
    """Return what v3's bill saves by the share of old consumers, which is a line from none to all of them."""
    return {
        (codec, str(percent)): {"saved US$": (without + (with_all - without) * percent / 100) * 1024}
        for codec, (without, with_all) in savings(database).items()
        for percent in range(0, 101, 10)
    }


def savings(
    database: duckdb.DuckDBPyConnection, old: str = "v2", new: str = "v3", end: int = MEDIAN
) -> dict[str, tuple[float, float]]:
    """Return for each codec what the new format's bill saves per GiB, with none and with all of the consumers old.

    Bills are without the CPU time of appends and zero-copy.
    """
    found = {}
    for codec, costs in _costs(database, old, new, end).items():
        before = _load(costs, old, old, {old: 1.0}, {old: 1.0}, old)
        saved = []
        for share in (0.0, 1.0):
            after = _load(
                costs, old, new, {old: OLD_PRODUCERS, new: 1 - OLD_PRODUCERS}, {old: share, new: 1 - share}, new
            )
            size, _, s = costs["convert", new, old]
            after["fetch"] = after["disk"] / REPLICATION / size * share * FAN_OUT * s
            saved.append(_bill({**before, "append": 0.0, "fetch": 0.0}) - _bill({**after, "append": 0.0}))
        found[codec] = (saved[0], saved[1])
    return found


def _bill(load: Mapping[str, float]) -> float:
    """Return US dollars per GiB produced."""
    storage = load["disk"] / 1e9 * RETENTION_DAYS / (365.25 / 12) * GB_MONTH
    return (load["append"] + load["fetch"]) / 3600 * CORE_HOUR + storage + (load["in"] + load["out"]) / 1e9 * NETWORK_GB


Costs = Mapping[tuple[str, str, str], list[float]]  # path, from, to -> bytes in, bytes out, CPU seconds


def _loads(costs: Costs, old: str, new: str) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each phase with its load. Forced upgrades change nothing, because no fetched data is old."""
    consumers = {old: OLD_CONSUMERS, new: 1 - OLD_CONSUMERS}
    producers = {old: OLD_PRODUCERS, new: 1 - OLD_PRODUCERS}
    all_old = {old: 1.0}
    first = _load(costs, old, old, producers, dict.fromkeys([old], 1.0), old)
    canary = _load(costs, old, new, all_old, all_old, old)
    last = _load(costs, old, new, producers, consumers, new)
    yield "before", _load(costs, old, old, all_old, all_old, old)
    yield "phase 1", first
    yield "canary: that broker", canary
    yield "canary: the cluster", {name: CANARY * canary[name] + (1 - CANARY) * first[name] for name in first}
    yield "phase 2", last
    yield "phase 2, forced upgrade", last


def _load(
    costs: Costs, old: str, written: str, produced: Mapping[str, float], read: Mapping[str, float], follower: str
) -> dict[str, float]:
    """Return the load of a phase: sums over its paths of (CPU time and bytes of the path x its share).

    written: the format on disk. produced, read: format of the requests -> their share.
    """
    load = dict.fromkeys(("append", "fetch", "in", "out", "zero-copy", "disk"), 0.0)
    scale = GIB / costs["append", old, old][0]
    for name, share in produced.items():
        bytes_in, stored, s = costs["append", name, written]
        load["append"] += share * scale * s
        load["in"] += share * scale * bytes_in
        load["disk"] += share * scale * stored
    logs = load["disk"] / costs["append", written, written][0]
    copies = [(follower, logs * (REPLICATION - 1)), *((name, logs * share * FAN_OUT) for name, share in read.items())]
    for i, (name, times) in enumerate(copies):
        is_zero_copy = name == written
        _, sent, s = costs["fetch" if is_zero_copy else "convert", written, name]
        load["fetch"] += times * s
        load["out"] += times * sent
        load["zero-copy"] += times * sent * is_zero_copy
        if i == 0:  # followers write what they fetch
            load["in"] += times * sent
            load["disk"] += times * sent
    return load
