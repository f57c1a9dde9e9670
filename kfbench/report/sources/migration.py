"""The brokers' load and bill in each phase of a migration, and the share of old consumers at which it pays.

Rules, shares and prices are those of `kfbench.migration`. Costs are the CPU times and bytes of a run's broker paths.
They were timed in different rounds, so loads and bills are sums of medians without an interval.
"""

from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.errors import IllegalCombination, InvalidConfig
from kfbench.measure.cpu import Interval, paired_ratio
from kfbench.migration import bills, plans
from kfbench.migration.bills import BreakEven, Cost, Costs
from kfbench.migration.plans import Operation, Plan
from kfbench.money import Prices, Traffic
from kfbench.present.arms import StoredArm
from kfbench.present.rows import Runs
from kfbench.present.table import number
from kfbench.report.sources.broker import APPEND, CONVERSION, BrokerArms

TRAFFIC: Final = Traffic()
PRICES: Final = Prices()
ALL_OLD: Final = replace(TRAFFIC, old_producers=1.0, old_consumers=1.0)  # all clients are old, as before the migration
GIB_IN_TIB: Final = 1024
# Operation of a plan -> the path that measures it. "convert" measures fetches that convert, and forced upgrades.
MEASURED_AS: Final = {"append": APPEND, "zero-copy": "fetch", "down-convert": CONVERSION, "upgrade": CONVERSION}
SHARES: Final = ("old_producers", "old_consumers", "old_data", "canary_leaders")  # from 0 to 1
NO_COSTS: Final = (InvalidConfig, IllegalCombination, KeyError)

SHARES_DRAWN: Final = range(0, 101, 10)
LOADS: Final = [
    "plan", "batch_size", "with_codec", "phase", "append_cpu", "fetch_cpu", "out", "on_disk", "zero_copy",
    "refused_produced", "refused_fetched", "bill", "reason",
]  # fmt: skip
BREAK_EVENS: Final = ["plan", "batch_size", "with_codec", "share", "pays", "without", "with_all"]


def costs_of(broker: BrokerArms, plan: Plan, at: StoredArm) -> Costs:
    """Return the measured costs of a plan's operations on the workload and codec of a measurement.

    Raises IllegalCombination if the plan cannot use the codec.
    """
    found: dict[Operation, Cost] = {}
    sizes: dict[str, int] = {}
    operations = plans.operations(plan, at.codec)
    for operation in operations:
        to_format = "" if operation.source == operation.target else operation.target
        path = MEASURED_AS.get(operation.path, "")
        path = "append-convert" if to_format and path == APPEND else path
        if arm := broker.find(at, path, operation.source, to_format):
            sizes[operation.source] = int(arm.source_bytes)
            found[operation] = _cost(arm.ns_per_call, arm.source_bytes, arm.size_bytes)
    for operation in operations:
        if operation.path == "zero-copy" and operation not in found and operation.source in sizes:
            # A fetch that reads no byte costs its call. Take the median over the fetches of other logs.
            calls = [float(np.median(arm.ns_per_call)) for arm in broker.of((operation.source,), "fetch")]
            if calls:
                found[operation] = _cost(np.array(calls), *[sizes[operation.source]] * 2)
    return Costs(codec=at.codec, size_bytes=sizes, operations=found)


def _cost(times: Any, source_bytes: float, target_bytes: float) -> Cost:
    cpu_ns, low, high = paired_ratio(times, np.ones(len(times)))
    return Cost(source_bytes=int(source_bytes), target_bytes=int(target_bytes), cpu_ns=cpu_ns, span_ns=(low, high))


def break_evens(broker: BrokerArms, plan: Plan) -> list[tuple[StoredArm, BreakEven | str]]:
    """Return the break-even of each workload and codec, or the reason for none."""
    found: list[tuple[StoredArm, BreakEven | str]] = []
    for arm in broker.cells():
        try:
            found.append((arm, bills.break_even(plan, costs_of(broker, plan, arm), TRAFFIC, PRICES)))
        except NO_COSTS as error:
            found.append((arm, _reason(error)))
    return found


def _reason(error: Exception) -> str:
    return f"{error.args[0]} was not measured" if isinstance(error, KeyError) else str(error)


def migration(runs: Runs) -> pd.DataFrame:
    """Return the brokers' load per GiB produced in each phase, by plan, workload and codec.

    A phase that refuses any client has no bill, because refused data is no saving. Runs of several hosts have no rows.
    """
    broker, found = BrokerArms(runs.own), []
    for plan in plans.PLANS.values() if broker.one_host else ():
        for arm in broker.cells():
            at = {"plan": plan.name, "batch_size": arm.point["batch_size"], "with_codec": arm.with_codec}
            try:
                costs = costs_of(broker, plan, arm)
                loads = bills.loads(plan, costs, TRAFFIC)
                loads[plan.before] = bills.load(plan, plan.phase(plan.before), costs, ALL_OLD)
            except NO_COSTS as error:
                found.append({**at, "phase": None, "reason": _reason(error)})
                continue
            found += [{**at, "phase": name, **_numbers(load), "reason": ""} for name, load in loads.items()]
    return pd.DataFrame(found, columns=LOADS)


def _numbers(load: bills.Load) -> dict[str, float | None]:
    share = load.zero_copy_share
    return {
        "append_cpu": load.append_cpu_s,
        "fetch_cpu": load.fetch_cpu_s,
        "out": load.out_bytes / bills.GIB,
        "on_disk": load.disk_bytes / bills.GIB,
        "zero_copy": None if share is None else 100 * share,
        "refused_produced": 100 * load.refused_produced,
        "refused_fetched": 100 * load.refused_fetched,
        "bill": None if load.refuses else load.bill(TRAFFIC, PRICES).total * GIB_IN_TIB,
    }


def migration_break_even(runs: Runs) -> pd.DataFrame:
    """Return, by plan, workload and codec, the share of old consumers at which conversions cost what is saved.

    For the interval, all CPU times are taken at the same end of their intervals.
    """
    broker, found = BrokerArms(runs.own), []
    for plan in plans.PLANS.values() if broker.one_host else ():
        for arm, each in break_evens(broker, plan):
            at = {"plan": plan.name, "batch_size": arm.point["batch_size"], "with_codec": arm.with_codec}
            if isinstance(each, str):
                found.append({**at, "pays": each})
                continue
            share = each.share if each.share is None else 100 * each.share
            pays = each.pays if share is None else f"{each.pays} {number(share, 0 if share >= 10 else 1)} %"
            if share is not None and each.span is not None:
                at["share"] = Interval(median=share, low=100 * each.span[0], high=100 * each.span[1])
            saved = {"without": each.saved_without * GIB_IN_TIB, "with_all": each.saved_with_all * GIB_IN_TIB}
            found.append({"share": share, **at, "pays": pays, **saved})
    return pd.DataFrame(found, columns=BREAK_EVENS)


def migration_curve(runs: Runs) -> pd.DataFrame:
    """Return what a plan saves in US$ per TiB by the share of old consumers in percent, in which a bill is linear."""
    broker, found = BrokerArms(runs.own), []
    for plan in plans.PLANS.values() if broker.one_host else ():
        for arm, each in break_evens(broker, plan):
            if isinstance(each, str):
                continue
            for share in SHARES_DRAWN:
                saved = each.saved_without + (each.saved_with_all - each.saved_without) * share / 100
                found.append((plan.name, arm.point["batch_size"], arm.with_codec, share, saved * GIB_IN_TIB))
    return pd.DataFrame(found, columns=["plan", "batch_size", "with_codec", "share", "saved"])


def migration_assumed(_: Runs) -> pd.DataFrame:
    """Return the assumed shares of clients, traffic and prices."""
    traffic = {
        name: f"{100 * value:g} %" if name in SHARES else f"{value:g}" for name, value in asdict(TRAFFIC).items()
    }
    prices = {name: f"US$ {value:g}" for name, value in asdict(PRICES).items()}
    rows = [(name.replace("_", " "), value) for name, value in (traffic | prices).items()]
    return pd.DataFrame(rows, columns=["assumption", "value"])
