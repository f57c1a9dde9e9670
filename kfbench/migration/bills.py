"""Loads and bills of all brokers of a cluster in each phase of a migration plan (`plans`).

- Cost: CPU time and bytes of one operation, from `measure` or from the rows of a run.
- Load: CPU time and bytes of all brokers in one phase. It is computed from costs, and from the shares of old clients.
  Work for replicas and for all consumers is included.
- Bill: a load multiplied by prices (`kfbench.money`).
- Break-even: the share of old consumers at which the bills of two phases are equal.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, Self

from kfbench.errors import InvalidConfig
from kfbench.measure.cpu import Interval
from kfbench.migration.plans import (
    ZERO_COPY,
    BrokerAction,
    Operation,
    Phase,
    Plan,
    fetching,
    on_fetch,
    on_produce,
    splits,
)
from kfbench.money import Bill, Prices, Traffic, bill

GIB: Final = 2**30


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The measured cost of one operation on one log.

    Args:
        source_bytes: size of its input.
        target_bytes: size of its output.
        cpu_ns: thread CPU time of one call, the median over the rounds.
        span_ns: the low and the high end of the 95 % interval of cpu_ns, or None.
        ratio: CPU time divided by that of the plan's first operation in the same rounds.
        losses: the number of items of each kind that the operation removed, see `EncodedLog.losses`.
    """

    source_bytes: int
    target_bytes: int
    cpu_ns: float
    span_ns: tuple[float, float] | None = None
    ratio: Interval | None = None
    losses: Mapping[str, int] = field(default_factory=dict)

    @property
    def cpu_s_per_gib(self) -> float:
        """CPU seconds per GiB of input."""
        return self.cpu_ns / 1e9 * GIB / self.source_bytes

    @property
    def bytes_ratio(self) -> float:
        """Output bytes per input byte."""
        return self.target_bytes / self.source_bytes


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The costs of a plan's operations on the same records.

    Args:
        codec: the codec of all logs.
        size_bytes: the size of these records in each format.
        control: the first operation timed against itself. The interval must include 1.0.
    """

    codec: str
    size_bytes: Mapping[str, int]
    operations: Mapping[Operation, Cost]
    control: Interval | None = None

    def of(self, operation: Operation) -> Cost:
        """Return the cost of an operation. Raise InvalidConfig if it was not measured."""
        if operation not in self.operations:
            path, source, target = operation
            raise InvalidConfig(f"{path} of {source}{f' to {target}' if target != source else ''} was not measured")
        return self.operations[operation]

    def at(self, end: Literal[0, 1]) -> "Costs":
        """Return the same costs, with the low (0) or the high (1) end of its interval as each CPU time."""
        operations = {
            operation: replace(cost, cpu_ns=cost.span_ns[end]) if cost.span_ns else cost
            for operation, cost in self.operations.items()
        }
        return replace(self, operations=operations)

    def to_dict(self) -> dict[str, Any]:
        operations = [
            operation._asdict() | asdict(cost) | {"cpu_s_per_gib": cost.cpu_s_per_gib, "bytes_ratio": cost.bytes_ratio}
            for operation, cost in self.operations.items()
        ]
        return {"codec": self.codec, "size_bytes": dict(self.size_bytes), "control": self.control} | {
            "operations": operations
        }


@dataclass(frozen=True, kw_only=True)
class Load:
    """The work of all brokers per GiB produced, including the work for replicas and for all consumers.

    "A GiB produced" is the records that take one GiB in the plan's old format. They are the same records in every
    phase.

    Args:
        append_cpu_s: CPU seconds of appends.
        fetch_cpu_s: CPU seconds of fetches.
        down_convert_cpu_s: the part of fetch_cpu_s for consumers' fetches that are not zero-copy.
        in_bytes: bytes from producers to leaders, and from leaders to followers.
        out_bytes: bytes to consumers and followers. So replicated bytes count at both ends.
        zero_copy_bytes: the part of out_bytes that is sent as stored.
        disk_bytes: bytes stored by all replicas.
        refused_produced: share of the records that producers send and that brokers refuse.
        refused_fetched: share of the records that consumers request and that brokers refuse.
    """

    append_cpu_s: float = 0.0
    fetch_cpu_s: float = 0.0
    down_convert_cpu_s: float = 0.0
    in_bytes: float = 0.0
    out_bytes: float = 0.0
    zero_copy_bytes: float = 0.0
    disk_bytes: float = 0.0
    refused_produced: float = 0.0
    refused_fetched: float = 0.0

    @property
    def cpu_s(self) -> float:
        return self.append_cpu_s + self.fetch_cpu_s

    @property
    def refuses(self) -> bool:
        """True if some requests are refused. The bill is lower then, although nothing is saved."""
        return self.refused_produced > 0 or self.refused_fetched > 0

    @property
    def zero_copy_share(self) -> float | None:
        """The share of out_bytes that is zero-copy; None: no bytes go out."""
        return self.zero_copy_bytes / self.out_bytes if self.out_bytes else None

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    def __mul__(self, share: float) -> Self:
        return type(self)(**{name: value * share for name, value in vars(self).items()})

    def bill(self, traffic: Traffic, prices: Prices) -> Bill:
        """Return the bill for CPU time, disks during the retention, and network. Refused requests cost nothing."""
        return bill(
            cpu_s=self.cpu_s,
            disk_bytes=self.disk_bytes,
            network_bytes=self.in_bytes + self.out_bytes,
            traffic=traffic,
            prices=prices,
        )

    def to_dict(self) -> dict[str, float | None]:
        return vars(self) | {"cpu_s": self.cpu_s, "zero_copy_share": self.zero_copy_share}


def load(plan: Plan, phase: Phase, costs: Costs, traffic: Traffic) -> Load:
    """Return the load of all brokers in one phase; for a canary phase, the load of the canary alone.

    In the phase `plan.before` all clients are old.
    """
    if phase.only_old or phase.name == plan.before:
        traffic = replace(traffic, old_producers=1.0, old_consumers=1.0)
    old_scale = GIB / costs.size_bytes[plan.old]
    total, stored_bytes = Load(), 0.0
    for producer, share in _client_shares(plan, traffic.old_producers):
        cell = on_produce(phase, producer, costs.codec)
        if cell.format is None:
            total += Load(refused_produced=share)
            continue
        cost = costs.of(Operation("append", cell.spoken, phase.writes))
        stored_bytes += share * old_scale * cost.target_bytes
        total += Load(append_cpu_s=cost.cpu_ns / 1e9, in_bytes=cost.source_bytes) * (share * old_scale)
    total += Load(disk_bytes=stored_bytes)
    fresh = stored_bytes / costs.size_bytes[phase.writes]
    follower = on_fetch(phase, phase.writes, plan.old if phase.only_old else phase.knows, costs.codec)
    copies = _fetch_load(follower, phase.writes, costs) * (fresh * (traffic.replication - 1))
    total += copies + Load(in_bytes=copies.out_bytes, disk_bytes=copies.out_bytes)  # followers write what they fetch
    for consumer, share in _client_shares(plan, traffic.old_consumers):
        for is_old, part, scale in ((False, 1 - traffic.old_data, fresh), (True, traffic.old_data, old_scale)):
            upgraded = is_old and phase.forces
            stored = plan.old if is_old and not upgraded else phase.writes
            cell = on_fetch(phase, stored, consumer, costs.codec)
            if cell.format is None:
                total += Load(refused_fetched=share * part)
            elif part:
                one = _upgraded_load(plan, cell, stored, costs) if upgraded else _fetch_load(cell, stored, costs)
                one = one if cell.action in ZERO_COPY else replace(one, down_convert_cpu_s=one.fetch_cpu_s)
                total += one * (share * part * scale * traffic.fan_out)
    return total


def _client_shares(plan: Plan, old_share: float) -> list[tuple[str, float]]:
    """Return the old and the new clients' format, each with the share of these clients. A share of 0 is left out."""
    return [(name, share) for name, share in ((plan.old, old_share), (plan.new, 1 - old_share)) if share]


def _fetch_load(cell: BrokerAction, stored: str, costs: Costs) -> Load:
    cost = costs.of(fetching(cell, stored))
    zero_copy_bytes = cost.target_bytes if cell.action in ZERO_COPY else 0
    return Load(fetch_cpu_s=cost.cpu_ns / 1e9, out_bytes=cost.target_bytes, zero_copy_bytes=zero_copy_bytes)


def _upgraded_load(plan: Plan, cell: BrokerAction, stored: str, costs: Costs) -> Load:
    """Return the load of one fetch of the whole measured log after a forced upgrade, with its size then."""
    if cell.action not in ZERO_COPY:
        if not splits(plan, costs.codec):
            return _fetch_load(cell, stored, costs)
        cost = costs.of(Operation("down-convert upgraded", plan.old, plan.old))
        return Load(fetch_cpu_s=cost.cpu_ns / 1e9, out_bytes=cost.target_bytes)
    fresh, upgrade = costs.of(fetching(cell, stored)), costs.of(Operation("upgrade", plan.old, stored))
    size_bytes = upgrade.target_bytes
    cpu_s = fresh.cpu_ns / 1e9 * size_bytes / fresh.source_bytes
    return Load(fetch_cpu_s=cpu_s, out_bytes=size_bytes, zero_copy_bytes=size_bytes)


def loads(plan: Plan, costs: Costs, traffic: Traffic) -> dict[str, Load]:
    """Return the load of each phase by name. A canary phase has two: of the canary, and of the whole cluster."""
    found: dict[str, Load] = {}
    for phase in plan.phases:
        own = load(plan, phase, costs, traffic)
        if phase.only_old and plan.rest:
            share = traffic.canary_leaders
            others = load(plan, plan.phase(plan.rest), costs, traffic)
            found[f"{phase.name}: that broker"] = own
            found[f"{phase.name}: the cluster"] = own * share + others * (1 - share)
        else:
            found[phase.name] = own
    return found


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """The share of old consumers at which the new format costs as much as the old one.

    Args:
        share: the share, 0 to 1. None: the new format is always or never cheaper.
        pays: the side of the share on which the new format is cheaper.
        saved_without: US dollars saved per GiB produced when there are no old consumers; negative: it costs more.
        saved_with_all: US dollars saved per GiB produced when all consumers are old.
        span: between these two shares the 95 % intervals of CPU times do not decide which format is cheaper. None:
            there is no undecided share, or there are no intervals.
    """

    share: float | None
    pays: Literal["always", "never", "below", "above"]
    saved_without: float
    saved_with_all: float
    span: tuple[float, float] | None = None


Counted = Literal["down-conversion", "everything"]


def break_even(
    plan: Plan, costs: Costs, traffic: Traffic, prices: Prices, counted: Counted = "down-conversion"
) -> BreakEven:
    """Compare the bills of two phases of a plan: `goal` and `before`.

    In `before` all clients are old and nothing is converted. A bill is linear in the share of old consumers, so its
    values at two shares are enough. Raises InvalidConfig if one of the phases refuses a client.

    counted: "everything" is the whole bill. "down-conversion" counts storage, network and the CPU time of consumers'
    fetches that are not zero-copy. It leaves out zero-copy and appends, including up-conversions for old producers.
    """
    found = _crossing(plan, costs, costs, traffic, prices, counted)
    if not all(cost.span_ns for cost in costs.operations.values()):
        return found
    low, high = costs.at(0), costs.at(1)
    ends = [_crossing(plan, *pair, traffic, prices, counted) for pair in ((low, high), (high, low))]
    if all(end.share is None and end.pays == ends[0].pays for end in ends):
        return found
    # `ends` are the break-evens with the most and the least favourable CPU times. One of them saves at least as much as
    # the other at every share, so they never pay on opposite sides. "Always" or "never" counts as a share of 0 or 1.
    always_at = 0.0 if any(end.pays == "above" for end in (found, *ends)) else 1.0
    shares = [
        (always_at if end.pays == "always" else 1 - always_at) if end.share is None else end.share for end in ends
    ]
    return replace(found, span=(min(shares), max(shares)))


def _crossing(plan: Plan, before: Costs, goal: Costs, traffic: Traffic, prices: Prices, counted: Counted) -> BreakEven:
    """Return the break-even without its span. before, goal: the costs to use for the phases of these names."""
    all_old = replace(traffic, old_producers=1.0, old_consumers=1.0)

    def bill_of(phase: str, costs: Costs, given: Traffic) -> float:
        found = load(plan, plan.phase(phase), costs, given)
        if found.refuses:
            raise InvalidConfig(f"{plan.name}: {phase!r} refuses a part of the traffic, which is not saved")
        if counted == "down-conversion":
            found = replace(found, append_cpu_s=0.0, fetch_cpu_s=found.down_convert_cpu_s)
        return found.bill(given, prices).total

    def saved(share: float) -> float:
        return bill_of(plan.before, before, all_old) - bill_of(plan.goal, goal, replace(traffic, old_consumers=share))

    without, with_all = saved(0.0), saved(1.0)
    if (without >= 0) == (with_all >= 0):
        return BreakEven(
            share=None, pays="always" if without >= 0 else "never", saved_without=without, saved_with_all=with_all
        )
    return BreakEven(
        share=without / (without - with_all),
        pays="below" if without >= 0 else "above",
        saved_without=without,
        saved_with_all=with_all,
    )
