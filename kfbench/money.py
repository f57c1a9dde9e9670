"""Turn bytes into money: the prices of a cluster, its traffic, and the bill for disks, network and CPU time.

What-if bills a log for a month, and a migration bills each of its phases. A page's calculator has the same assumptions.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf, isfinite
from typing import Any, Final

from kfbench.errors import InvalidConfig

GB: Final = 10**9
DAYS_A_MONTH: Final = 365.25 / 12
PRICES_ASSUMED: Final = "2026-11"


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Assumptions about clients, replicas and retention. Shares are from 0 to 1.

    Raises InvalidConfig with the name of a field that is out of range.

    Args:
        old_producers: share of the produced records that come from old producers.
        old_consumers: share of the fetched records that go to old consumers.
        fan_out: number of consumers that read each record.
        replication: number of copies of each record, including the leader's.
        retention_days: number of days that records stay on disk.
        old_data: share of the fetched records that were stored before the plan changed the format on disk.
        canary_leaders: share of the leaders on the canary, a broker that tries the new format before the others.
    """

    old_producers: float = 0.1
    old_consumers: float = 0.2
    fan_out: float = 3.0
    replication: int = 3
    retention_days: float = 7.0
    old_data: float = 0.0
    canary_leaders: float = 0.05

    def __post_init__(self) -> None:
        shares = ("old_producers", "old_consumers", "old_data", "canary_leaders")
        _check_numbers(self, dict.fromkeys(shares, (0, 1)) | {"replication": (1, inf)})


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices in US dollars. GB is 10**9 bytes. Raises InvalidConfig with the name of a field that is out of range.

    The defaults are assumptions of the month PRICES_ASSUMED, in the range of public clouds' list prices.
    """

    cpu_core_hour: float = 0.04
    storage_gb_month: float = 0.08
    network_gb: float = 0.01

    def __post_init__(self) -> None:
        _check_numbers(self, {})


def _check_numbers(holder: Traffic | Prices, limits: Mapping[str, tuple[float, float]]) -> None:
    for name, value in vars(holder).items():
        low, high = limits.get(name, (0, inf))
        if not isfinite(value) or not low <= value <= high:
            wanted = f"{low} to {high}" if high < inf else f"{low} or more"
            raise InvalidConfig(f"{name}: {value} is not {wanted}")


# The assumptions that the calculator of a page shows.
SHOWN: Final = ("fan_out", "replication", "retention_days", "storage_gb_month", "network_gb")


def month_facts(traffic: Traffic | None = None, prices: Prices | None = None) -> dict[str, Any]:
    """Return the assumptions of a month's bill as plain values, for the calculator of a page."""
    assumed = asdict(traffic or Traffic()) | asdict(prices or Prices())
    return {
        "days": DAYS_A_MONTH,
        "assumed": PRICES_ASSUMED if prices in (None, Prices()) else None,
        **{name: value for name, value in assumed.items() if name in SHOWN},
    }


@dataclass(frozen=True, kw_only=True)
class Bill:
    """A bill in US dollars."""

    cpu: float
    storage: float
    network: float

    @property
    def total(self) -> float:
        return self.cpu + self.storage + self.network


def bill(*, disk_bytes: float, network_bytes: float, traffic: Traffic, prices: Prices, cpu_s: float = 0.0) -> Bill:
    """Return the bill for bytes that come in, and stay on disk for the retention.

    Args:
        disk_bytes: bytes that all replicas write.
        network_bytes: bytes in and out of brokers.
        cpu_s: used CPU time in seconds.
    """
    gb_months = disk_bytes / GB * traffic.retention_days / DAYS_A_MONTH
    return Bill(
        cpu=cpu_s / 3600 * prices.cpu_core_hour,
        storage=gb_months * prices.storage_gb_month,
        network=network_bytes / GB * prices.network_gb,
    )


@dataclass(frozen=True, kw_only=True)
class Month:
    """The cost of a log in a month.

    Args:
        stored_bytes: bytes on the disks of all replicas.
        network_bytes: bytes in and out of brokers.
        storage, network: their cost in US$.
    """

    stored_bytes: float
    network_bytes: float
    storage: float
    network: float

    @property
    def total(self) -> float:
        return self.storage + self.network


def month(bytes_a_day: float, traffic: Traffic, prices: Prices) -> Month:
    """Return the cost of a month's storage and network.

    Bytes in go from producers to leaders and from leaders to followers. Bytes out go to consumers and followers. Each
    replica keeps its bytes for the retention.
    """
    produced = bytes_a_day * DAYS_A_MONTH
    copies = produced * (traffic.replication - 1)
    network_bytes = (produced + copies) + (copies + produced * traffic.fan_out)
    found = bill(disk_bytes=produced + copies, network_bytes=network_bytes, traffic=traffic, prices=prices)
    return Month(
        stored_bytes=bytes_a_day * traffic.retention_days * traffic.replication,
        network_bytes=network_bytes,
        storage=found.storage,
        network=found.network,
    )
