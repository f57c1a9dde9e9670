"""The section about migrating a fleet to a new format: the brokers' work per phase, and when the new format pays.

Rules, shares and prices are those of kfbench.migration.plans and bills. Costs are measured in this run. All paths of a
cell were timed on one host, but in different rounds. So loads and bills are sums of medians without an interval. For
the interval of a break-even, all CPU times are taken at the same end of their intervals.
"""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Final

import numpy as np

from kfbench.errors import IllegalCombination, InvalidConfig
from kfbench.measure.cpu import paired_ratio
from kfbench.migration import bills, plans
from kfbench.migration.bills import BreakEven, Cost, Costs, Prices, Traffic
from kfbench.migration.plans import Operation, Plan
from kfbench.report.data.arms import Arm
from kfbench.report.data.axes import with_settings
from kfbench.report.data.paths import APPEND, APPEND_CONVERSION, CONVERSION, Paths, key_cells, key_columns
from kfbench.report.data.views import Views
from kfbench.report.section import Answer
from kfbench.tables import Cell, Column, Interval, Table, number, plain_columns

TRAFFIC: Final = Traffic()
PRICES: Final = Prices()
ALL_OLD: Final = replace(TRAFFIC, old_producers=1.0, old_consumers=1.0)  # all clients are old, as before the migration
TIB_IN_GIB: Final = 1024
# Operation of a plan -> the broker path that measures it. "convert" measures fetches that convert and forced upgrades:
# it makes one batch per plain message. An append makes one batch per request. No path measures "copy".
MEASURED_AS: Final = {"zero-copy": "fetch", "down-convert": CONVERSION, "upgrade": CONVERSION}
SHARES: Final = ("old_producers", "old_consumers", "old_data", "canary_leaders")  # fractions from 0 to 1
ASSUMED: Final = (
    "Shares and prices are assumed, not measured: the last open table has them. Before the migration all clients are "
    "old. A fetch that converts costs as much as its conversion. A zero-copy fetch costs its call, whatever its size. "
    "The command kfbench migrate answers for other shares and prices."
)


def costs_of(paths: Paths, plan: Plan, cell_id: str, with_codec: str, codec: str) -> Costs:
    """Return the measured costs of a plan's operations on one workload setting (cell).

    Raises IllegalCombination if the plan cannot use the codec.
    """
    found: dict[Operation, Cost] = {}
    sizes: dict[str, int] = {}
    for operation in plans.operations(plan, codec):
        row = _measured(paths, cell_id, with_codec, operation)
        if row is not None:
            found[operation] = _cost(row)
            sizes[operation.source] = int(row.source_bytes)
    for operation in plans.operations(plan, codec):
        if operation.path == "zero-copy" and operation not in found and operation.source in sizes:
            found |= _handed_on(paths, operation, sizes[operation.source])
    return Costs(codec=codec, size_bytes=sizes, operations=found)


def _measured(paths: Paths, cell_id: str, with_codec: str, operation: Operation) -> Arm | None:
    to_format = "" if operation.source == operation.target else operation.target
    append = APPEND_CONVERSION if to_format else APPEND
    path = append if operation.path == "append" else MEASURED_AS.get(operation.path, "")
    return paths.find(cell_id, with_codec, path, operation.source, to_format)


def _cost(row: Arm) -> Cost:
    times = row.ns_per_call
    cpu_ns, low, high = paired_ratio(times, np.ones(len(times)))
    return Cost(
        source_bytes=int(row.source_bytes), target_bytes=int(row.size_bytes), cpu_ns=cpu_ns, span_ns=(low, high)
    )


def _handed_on(paths: Paths, operation: Operation, size_bytes: int) -> dict[Operation, Cost]:
    """Return the cost of a fetch that reads no byte of the log.

    Its CPU time is the median over fetches of other logs of the same format. size_bytes: the size of this log.
    """
    rows = [row for row in paths.of("fetch") if row.format == operation.source and row.status == "ok"]
    if not rows:
        return {}
    calls = [_cost(row).cpu_ns for row in rows]
    cpu_ns, low, high = paired_ratio(calls, np.ones(len(calls)))
    return {operation: Cost(source_bytes=size_bytes, target_bytes=size_bytes, cpu_ns=cpu_ns, span_ns=(low, high))}


def phases_table(paths: Paths, plan: Plan) -> Table | None:
    """Return a table of the brokers' load and bill, with a row per phase and codec.

    It uses the default shares of clients, and the workload setting nearest to the grid's defaults.
    """
    body: list[tuple[Cell, ...]] = []
    for row in _cells(paths):
        if row.cell_id != paths.reference(CONVERSION):
            continue
        try:
            costs = costs_of(paths, plan, row.cell_id, row.with_codec, row.codec)
            loads = bills.loads(plan, costs, TRAFFIC)
            loads[plan.before] = bills.load(plan, plan.phase(plan.before), costs, ALL_OLD)
        except (InvalidConfig, IllegalCombination, KeyError) as error:
            body.append((None, row.with_codec, *[None] * 8, _reason(error)))
            continue
        for name, load in loads.items():
            total = None if load.refuses else bills.bill(load, TRAFFIC, PRICES).total * TIB_IN_GIB
            share = load.zero_copy_share
            gib = (load.out_bytes / bills.GIB, load.disk_bytes / bills.GIB)
            refused = (100 * load.refused_produced, 100 * load.refused_fetched)
            zero_copy = None if share is None else 100 * share
            body.append(
                (name, row.with_codec, load.append_cpu_s, load.fetch_cpu_s, *gib, zero_copy, *refused, total, "")
            )
    if all(row[0] is None for row in body):
        return None
    return Table(
        name=f"broker-migrate-{plan.name}",
        caption=with_settings(
            f"{plan.summary}: brokers' load for each GiB produced, in {plan.old}", paths.setting(CONVERSION)
        ),
        columns=(
            *plain_columns("phase", "codec", "append CPU (s)", "fetch CPU (s)", "out (GiB)", "on disk (GiB)"),
            *plain_columns("zero-copy (% of out)", "refused (% produced)", "refused (% fetched)", digits=0),
            *plain_columns("bill (US$ per TiB)", "why not measured"),
        ),
        rows=tuple(body),
        notes=("A phase that refuses any client has no bill, because refused data is no saving.",),
    )


def assumptions_table() -> Table:
    """Return a table of the assumed shares and prices."""
    traffic = {
        name: f"{100 * value:g} %" if name in SHARES else f"{value:g}" for name, value in asdict(TRAFFIC).items()
    }
    prices = {name: f"US$ {value:g}" for name, value in asdict(PRICES).items()}
    return Table(
        name="broker-migrate-assumed",
        caption=f"Assumed shares of clients, traffic, and prices of {bills.PRICES_ASSUMED}",
        columns=plain_columns("assumption", "value"),
        rows=tuple((name.replace("_", " "), value) for name, value in (traffic | prices).items()),
    )


def actions_table(plan: Plan) -> Table:
    """Return a table of the brokers' actions in each phase, for old and new clients, without a codec."""
    rows = []
    for phase in plan.phases:
        clients = (plan.old,) if phase.only_old else (plan.old, plan.new)
        produced = {name: plans.on_produce(phase, name, "none") for name in clients}
        fetched = {name: plans.on_fetch(phase, phase.writes, name, "none") for name in clients}
        cells = [
            (found[name].error or found[name].action) if name in found else None
            for found in (produced, fetched)
            for name in (plan.old, plan.new)
        ]
        rows.append((phase.name, phase.writes, *cells, phase.summary))
    return Table(
        name=f"broker-migrate-{plan.name}-actions",
        caption=f"{plan.summary}: actions of brokers in each phase, without a codec",
        columns=(
            *plain_columns("phase", "written", f"{plan.old} producer", f"{plan.new} producer"),
            *plain_columns(f"{plan.old} consumer", f"{plan.new} consumer", "brokers"),
        ),
        rows=tuple(rows),
    )


def _cells(paths: Paths) -> Iterator[Arm]:
    """Yield one measurement per workload setting and codec in which a conversion was tried."""
    return iter({(row.cell_id, row.with_codec): row for row in paths.of(CONVERSION)}.values())


def _reason(error: Exception) -> str:
    return f"{error.args[0]} was not measured" if isinstance(error, KeyError) else str(error)


def break_evens(paths: Paths, plan: Plan) -> list[tuple[Arm, BreakEven | str]]:
    """Return one item per workload setting and codec: a measurement, and its break-even or the reason for none."""
    found: list[tuple[Arm, BreakEven | str]] = []
    for row in _cells(paths):
        try:
            costs = costs_of(paths, plan, row.cell_id, row.with_codec, row.codec)
            found.append((row, bills.break_even(plan, costs, TRAFFIC, PRICES)))
        except (InvalidConfig, IllegalCombination, KeyError) as error:
            found.append((row, _reason(error)))
    return found


def break_even_table(paths: Paths, plan: Plan) -> Table | None:
    """Return a table with the break-even share of old consumers, per workload setting and codec.

    At this share, converting records for old consumers costs as much as the new format saves.
    """
    found = break_evens(paths, plan)
    if all(isinstance(each, str) for _, each in found):
        return None
    axes = paths.axes_of([row for row, _ in found])
    body: list[tuple[Cell, ...]] = []
    for row, each in found:
        if isinstance(each, str):
            body.append((*key_cells(axes, row), None, each, None, None))
            continue
        share = _share(each)
        saved = (each.saved_without * TIB_IN_GIB, each.saved_with_all * TIB_IN_GIB)
        body.append((*key_cells(axes, row), share, _side(each), *saved))
    return Table(
        name=f"broker-migrate-{plan.name}-break-even",
        caption=f"{plan.summary}: break-even share of old consumers",
        columns=(
            *key_columns(axes),
            Column(name="old consumers", unit="%", digits=1),
            Column(name=f"{plan.new} pays"),
            Column(name="saved without old consumers", unit="US$ per TiB", digits=3),
            Column(name="saved with none but old", unit="US$ per TiB", digits=3),
        ),
        rows=tuple(body),
        notes=(f"At this share, down-conversion costs what {plan.new} on disk saves in storage and network.",),
    )


def _share(found: BreakEven) -> Interval | float | None:
    if found.share is None or found.span is None:
        return None if found.share is None else 100 * found.share
    low, high = found.span
    return Interval(median=100 * found.share, low=100 * low, high=100 * high)


def _side(found: BreakEven) -> str:
    return found.pays if found.share is None else f"{found.pays} {_rough(100 * found.share)} %"


def _rough(percent: float) -> str:
    """Return a percentage with few digits, because CPU times are accurate to a few percent only."""
    return number(percent, 0 if percent >= 10 else 1)


def migration_sentence(paths: Paths) -> str:
    """Give the range of break-even shares for each migration plan.

    A break-even share is the share of old consumers at which the new format costs as much as it saves.
    """
    sentences = []
    for plan in plans.PLANS.values():
        found = [each for _, each in break_evens(paths, plan) if not isinstance(each, str)]
        sentences += [f"A change from {plan.old} to {plan.new} {words}." for words in pays_words(found)]
    return " ".join(sentences)


def pays_words(found: list[BreakEven]) -> list[str]:
    """Return the ranges of break-even shares as text, with an item per side of the break-even.

    Example: pays below 1.0 to 9.0 % of old consumers in 3 of 5 cases; never pays in 2 of 5 cases.
    """
    words = []
    for side in ("below", "above"):
        shares = [100 * each.share for each in found if each.pays == side and each.share is not None]
        if shares:
            ends = " to ".join(dict.fromkeys((_rough(min(shares)), _rough(max(shares)))))
            words.append(f"pays {side} {ends} % of old consumers in {len(shares)} of {len(found)} cases")
    counts = {side: sum(each.pays == side for each in found) for side in ("always", "never")}
    return words + [f"{side} pays in {count} of {len(found)} cases" for side, count in counts.items() if count]


def migration_answer(run: Views) -> Answer | str:
    """Return the section: break-even and phases of each migration plan for which the run has costs.

    The tables of the brokers' actions are folded.
    """
    paths = run.paths
    shown, folded = [], []
    for plan in plans.PLANS.values() if paths.one_host else ():
        tables = [table for table in (break_even_table(paths, plan), phases_table(paths, plan)) if table is not None]
        shown += tables
        folded += [actions_table(plan)] if tables else []
    if not shown:
        return "no append and conversion of a broker that make up a migration"
    return Answer(
        means=migration_sentence(paths), prose=(ASSUMED,), tables=(*shown, assumptions_table()), more=tuple(folded)
    )
