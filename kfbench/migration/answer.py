"""The answer of `kfbench migrate`: a plan with its measured costs, for given shares of old clients and prices."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kfbench.log.inspect import Damage
from kfbench.migration.bills import BreakEven, Costs, Load, Prices, Traffic
from kfbench.migration.plans import Plan, Row


@dataclass(frozen=True, kw_only=True)
class MigratedSubject:
    """A subject in all phases of a plan.

    Args:
        left_out: parts of a log that are not measured, in words.
        by_conversion: the share of old consumers up to which the new format pays, by down-conversion against storage
            and network.
        by_bill: the same by the whole bill.
        by_cpu: the same by all CPU, without bytes.
    """

    name: str
    about: str
    left_out: tuple[str, ...]
    costs: Costs
    loads: Mapping[str, Load]
    by_conversion: BreakEven
    by_bill: BreakEven
    by_cpu: BreakEven

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "about": self.about,
            "left_out": list(self.left_out),
            "costs": self.costs.to_dict(),
            "loads": {name: load.to_dict() for name, load in self.loads.items()},
            "break_even": asdict(self.by_conversion),
            "break_even_bill": asdict(self.by_bill),
            "break_even_cpu": asdict(self.by_cpu),
        }


@dataclass(frozen=True, kw_only=True)
class Migration:
    """A plan for given shares and prices. damage: of the measured log, as far as it was read."""

    plan: Plan
    codec: str
    traffic: Traffic
    prices: Prices
    rows: tuple[Row, ...]
    subjects: tuple[MigratedSubject, ...]
    damage: tuple[Damage, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON. Loads are per GiB produced, in the plan's old format. Savings are in US $."""
        return {
            "plan": self.plan.name,
            "summary": self.plan.summary,
            "codec": self.codec,
            "traffic": asdict(self.traffic),
            "prices": asdict(self.prices),
            "phases": [asdict(phase) for phase in self.plan.phases],
            "matrix": [row.to_dict() for row in self.rows],
            "subjects": [subject.to_dict() for subject in self.subjects],
            "damaged": [asdict(damage) for damage in self.damage],
        }
