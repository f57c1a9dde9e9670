"""From one record format to the next while clients of both are there: what a broker does, phase by phase.

A matrix (format on disk × producer × consumer) says which conversions run, where zero-copy is kept, what is refused
and what is lost. With measured costs, shares of old clients and prices it becomes a load and a bill for each phase, and
the share of old consumers at which the new format stops to pay. Pure: nothing is measured or encoded here.

Clients and brokers are named by the newest record format that they know. A client of Kafka 0.10.2 or later asks which
requests the broker takes (KIP-35, KIP-97) and speaks no newer format; an older one is refused.

Sources: KIP-31 "Compatibility, Deprecation, and Migration Plan" (two phases and a canary, v0 to v1); KIP-724 (3.0 and
4.0, v0 and v1 to v2, forced upgrade); KIP-931 says only that old consumers are down-converted for as before, so a
rollout of v3 takes KIP-31's two phases.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Self

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS

GIB: Final = 2**30
GB: Final = 10**9
DAYS_A_MONTH: Final = 365.25 / 12

# Which versions of a request carry which format (Kafka's ProduceRequest and FetchRequest); v3 has none yet.
PRODUCE_API: Final[Mapping[str, str]] = {"v0": "0-1", "v1": "2", "v2": "3+", "v3": "to come"}
FETCH_API: Final[Mapping[str, str]] = {"v0": "0-1", "v1": "2-3", "v2": "4+", "v3": "to come"}

Action = Literal[
    "in place",  # produce: offsets are set where they stand
    "recompress",  # produce: the same format, decompressed, rewritten, compressed again
    "up-convert",  # produce
    "down-convert",  # produce and fetch
    "zero-copy",  # fetch: bytes go out as they lie on disk
    "scan",  # fetch: zero-copy, once the magic of every batch has been looked at
    "copy",  # fetch: nothing needs converting, but all of it was read to see that
    "refused",
    "unreadable",  # fetch: the broker no longer reads what is on disk
]
PathName = Literal["append", "zero-copy", "scan", "copy", "down-convert", "upgrade", "down-convert upgraded"]


ZERO_COPY: Final[tuple[Action, ...]] = ("zero-copy", "scan")


@dataclass(frozen=True, kw_only=True)
class Phase:
    """How brokers are set up for a while. Formats by name.

    writes: what clients' records become on disk; knows: the newest that the broker knows; stored: all that may lie on
    disk, data from before included; least_*: the oldest that a producer or consumer may speak, that is still read from
    disk. scans: batches are looked at before a reader that is older than `writes` costs zero-copy; else it always does.
    only_old: clients and followers all speak the old format (a canary). forces: stored data is upgraded once, at
    start-up.
    """

    name: str
    source: str
    summary: str
    writes: str
    knows: str
    stored: tuple[str, ...]
    least_produced: str = "v0"
    least_fetched: str = "v0"
    least_read: str = "v0"
    scans: bool = False
    negotiates: bool = True
    only_old: bool = False
    forces: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The phases of a migration from `old` to `new`. formats: all that matter to it.

    before, goal: the phases whose bills are set against each other; in `before` all clients are old. rest: what the
    other brokers do beside a canary.
    """

    name: str
    summary: str
    old: str
    new: str
    formats: tuple[str, ...]
    phases: tuple[Phase, ...]
    before: str
    goal: str
    rest: str | None = None

    def phase(self, name: str) -> Phase:
        """Raises InvalidConfig."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        raise InvalidConfig(f"{self.name}: no phase {name!r} (phases: {', '.join(each.name for each in self.phases)})")


def _two_phases(name: str, summary: str, old: str, new: str, source: str, negotiates: bool) -> Plan:
    """KIP-31's procedure: first all brokers know the new format, then, once consumers do, it goes to disk."""
    both = (old, new)
    phases = (
        Phase(
            name="before",
            source=source,
            summary=f"brokers know {old} only",
            writes=old,
            knows=old,
            stored=(old,),
            negotiates=negotiates,
        ),
        Phase(
            name="phase 1",
            source=f"{source} Phase 1",
            summary=f"brokers know {new} and keep {old} on disk; consumers, then producers are upgraded",
            writes=old,
            knows=new,
            stored=(old,),
        ),
        Phase(
            name="canary",
            source=f"{source} To canary a broker",
            summary=f"one broker writes {new}; clients and followers still speak {old}",
            writes=new,
            knows=new,
            stored=both,
            only_old=True,
        ),
        Phase(
            name="phase 2",
            source=f"{source} Phase 2",
            summary=f"brokers write {new}, after most of the consumers are upgraded",
            writes=new,
            knows=new,
            stored=both,
        ),
    )
    return Plan(
        name=name,
        summary=summary,
        old=old,
        new=new,
        formats=both,
        phases=phases,
        before="before",
        goal="phase 2",
        rest="phase 1",
    )


def _kip724() -> Plan:
    old, every = ("v0", "v1"), ("v0", "v1", "v2")
    v3_0 = Phase(
        name="3.0",
        source="KIP-724 Apache Kafka 3.0",
        summary="all writes are v2, old clients are converted for, without looking at what is on disk",
        writes="v2",
        knows="v2",
        stored=every,
    )
    before = Phase(
        name="before 3.0",
        source="KIP-724 Motivation",
        summary="log.message.format.version keeps v1 on disk",
        writes="v1",
        knows="v2",
        stored=old,
        scans=True,
    )
    phases = (
        before,
        replace(
            before,
            name="before 3.0, v2",
            summary="log.message.format.version at its default: v2; batches are looked at for old readers",
            writes="v2",
            stored=every,
        ),
        v3_0,
        replace(
            v3_0,
            name="3.0, forced upgrade",
            source="KIP-724 log.record.version.force.upgrade",
            summary="at start-up all segments become v2: compressed sets one batch each, plain messages one each",
            stored=("v2",),
            forces=True,
        ),
        replace(
            v3_0,
            name="4.0",
            source="KIP-724 Apache Kafka 4.0",
            summary="produce 2 and fetch 3 or lower are refused; v0 and v1 on disk go out as they are",
            least_produced="v2",
            least_fetched="v2",
        ),
        replace(
            v3_0,
            name="after 4.0",
            source="KIP-724 Future Work",
            summary="v0 and v1 are no longer read from disk: the forced upgrade has to come first",
            least_produced="v2",
            least_fetched="v2",
            least_read="v2",
        ),
    )
    return Plan(
        name="kip724",
        summary="v0 and v1 to v2 in Kafka 3.0 and 4.0 (KIP-724)",
        old="v1",
        new="v2",
        formats=every,
        phases=phases,
        before="before 3.0",
        goal="3.0",
    )


def _v3() -> Plan:
    plan = _two_phases("v3", "v2 to v3 (KIP-931) in KIP-31's two phases", "v2", "v3", "KIP-931", negotiates=True)
    forced = replace(
        plan.phase("phase 2"),
        name="phase 2, forced upgrade",
        source="KIP-724 log.record.version.force.upgrade",
        summary="at start-up all segments become v3, which the KIP foresees for newer formats",
        stored=("v3",),
        forces=True,
    )
    return replace(plan, phases=(*plan.phases, forced))


PLANS: Final[Mapping[str, Plan]] = MappingProxyType(
    {
        plan.name: plan
        for plan in (
            _two_phases("kip31", "v0 to v1 in two phases (KIP-31)", "v0", "v1", "KIP-31", negotiates=False),
            _kip724(),
            _v3(),
        )
    }
)


class Operation(NamedTuple):
    """One path from one format to another: what is measured.

    "down-convert upgraded": a fetch, by a reader of `target`, of what a forced upgrade made of data in `source`.
    """

    path: PathName
    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What a broker does with one request. format: what is stored, or delivered; None where nothing is.

    spoken: the format of the request. lost: what the step leaves out where there is any; error: Kafka's name for it.
    idempotent: the error that idempotent and transactional producers get, where others are served.
    """

    action: Action
    spoken: str
    format: str | None = None
    lost: tuple[str, ...] = ()
    error: str | None = None
    idempotent: str | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One combination of the matrix. stored: the format of the data that is fetched."""

    phase: str
    stored: str
    producer: str
    consumer: str
    produce: Cell
    fetch: Cell

    @property
    def zero_copy(self) -> bool:
        return self.fetch.action in ZERO_COPY

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"zero_copy": self.zero_copy}


def find(name: str) -> Plan:
    """A plan by name. Raises InvalidConfig."""
    if name not in PLANS:
        raise InvalidConfig(f"no plan {name!r} (plans: {', '.join(PLANS)})")
    return PLANS[name]


def check_codec(plan: Plan, codec: str) -> None:
    """Raises IllegalCombination for a codec that a format of the plan does not have."""
    for name in plan.formats:
        FORMATS[name].check_codec(codec)


def on_produce(phase: Phase, producer: str, codec: str) -> Cell:
    """What becomes of a request whose producer's newest format is `producer`."""
    spoken = _spoken(phase, producer)
    if _index(spoken) > _index(phase.knows) or _index(spoken) < _index(phase.least_produced):
        return Cell(action="refused", spoken=spoken, error="UNSUPPORTED_VERSION")
    if codec not in FORMATS[phase.writes].capabilities.codecs:
        return Cell(action="refused", spoken=spoken, error="UNSUPPORTED_COMPRESSION_TYPE")
    step = _index(phase.writes) - _index(spoken)
    if step == 0:
        # v0's inner offsets are absolute: setting them changes what was compressed.
        action: Action = "recompress" if spoken == "v0" and codec != "none" else "in place"
    else:
        action = "up-convert" if step > 0 else "down-convert"
    gone = lost(spoken, phase.writes)
    # LogValidator: a producer id is never dropped on the way to disk.
    error = "UNSUPPORTED_FOR_MESSAGE_FORMAT" if "producer_id" in gone else None
    return Cell(action=action, spoken=spoken, format=phase.writes, lost=gone, idempotent=error)


def refuses_idempotent(plan: Plan) -> bool:
    """Whether brokers refuse idempotent and transactional producers in some phase, for what they write there."""
    return any("producer_id" in FORMATS[phase.writes].capabilities.missing for phase in plan.phases)


def on_fetch(phase: Phase, stored: str, consumer: str, codec: str) -> Cell:
    """What a consumer whose newest format is `consumer` gets of data that is stored in one format."""
    spoken = _spoken(phase, consumer)
    if _index(spoken) > _index(phase.knows) or _index(spoken) < _index(phase.least_fetched):
        return Cell(action="refused", spoken=spoken, error="UNSUPPORTED_VERSION")
    if _index(stored) < _index(phase.least_read):
        return Cell(action="unreadable", spoken=spoken)
    if _index(stored) > _index(spoken):
        if codec not in FORMATS[spoken].capabilities.codecs:
            return Cell(action="refused", spoken=spoken, error="UNSUPPORTED_COMPRESSION_TYPE")
        return Cell(action="down-convert", spoken=spoken, format=spoken, lost=lost(stored, spoken))
    if _index(spoken) >= _index(phase.writes):
        return Cell(action="zero-copy", spoken=spoken, format=stored)
    # Data from before is old enough, but only a broker that looks at the batches knows.
    return Cell(action="scan" if phase.scans else "copy", spoken=spoken, format=stored)


def _spoken(phase: Phase, client: str) -> str:
    return min(client, phase.knows, key=_index) if phase.negotiates else client


def _index(name: str) -> int:
    return FORMATS[name].magic


def lost(source: str, target: str) -> tuple[str, ...]:
    """What `target` cannot carry and `source` can: lost where a log has any."""
    had = FORMATS[source].capabilities.missing
    return tuple(what for what in FORMATS[target].capabilities.missing if what not in had)


def matrix(plan: Plan, codec: str = "none") -> tuple[Row, ...]:
    """Every phase × format on disk × producer × consumer. Raises IllegalCombination."""
    check_codec(plan, codec)
    return tuple(
        Row(
            phase=phase.name,
            stored=stored,
            producer=producer,
            consumer=consumer,
            produce=on_produce(phase, producer, codec),
            fetch=on_fetch(phase, stored, consumer, codec),
        )
        for phase in plan.phases
        for stored in phase.stored
        for producer, consumer in _clients(plan, phase)
    )


def _clients(plan: Plan, phase: Phase) -> Iterator[tuple[str, str]]:
    names = [plan.old] if phase.only_old else plan.formats
    return ((producer, consumer) for producer in names for consumer in names)


def operations(plan: Plan, codec: str = "none") -> tuple[Operation, ...]:
    """What has to be measured for the plan's loads. The first is what was there before: the base of ratios."""
    found = [Operation("append", plan.old, plan.old)]
    for row in matrix(plan, codec):
        phase = plan.phase(row.phase)
        if row.produce.format:
            found.append(Operation("append", row.produce.spoken, phase.writes))
        if row.fetch.format:
            found.append(_fetching(row.fetch, row.stored))
        if phase.forces:
            found += [Operation("upgrade", name, phase.writes) for name in plan.formats if name != phase.writes]
            if _splits(plan, codec):
                found.append(Operation("down-convert upgraded", plan.old, plan.old))
    return tuple(dict.fromkeys(found))


def _fetching(cell: Cell, stored: str) -> Operation:
    assert cell.action in ("zero-copy", "scan", "copy", "down-convert")
    # Zero-copy does not depend on who reads, nor does looking at every batch.
    return Operation(cell.action, stored, stored if cell.action in ZERO_COPY else cell.spoken)


def _splits(plan: Plan, codec: str) -> bool:
    """Whether a forced upgrade makes one batch of each old record: what it costs is then not what fresh data does."""
    return codec == "none" and _index(plan.old) < 2


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One operation on one log, as measured. losses: as EncodedLog.losses.

    ratio: CPU time against the plan's first operation in the same rounds (median and its 95 % interval).
    """

    source_bytes: int
    target_bytes: int
    cpu_ns: float  # thread CPU time, median
    ratio: tuple[float, float, float] | None = None
    losses: Mapping[str, int] = field(default_factory=dict)

    @property
    def cpu_s_per_gib(self) -> float:
        """CPU seconds per GiB that comes in."""
        return self.cpu_ns / 1e9 * GIB / self.source_bytes

    @property
    def bytes_ratio(self) -> float:
        """Bytes out for each that comes in."""
        return self.target_bytes / self.source_bytes


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What the operations of a plan cost on the same records. size_bytes: those records in each format."""

    codec: str
    size_bytes: Mapping[str, int]
    operations: Mapping[Operation, Cost]
    control: tuple[float, float, float] | None = None  # the first operation against itself: must hold 1.0

    def of(self, operation: Operation) -> Cost:
        """Raises InvalidConfig."""
        if operation not in self.operations:
            raise InvalidConfig(f"no cost of {operation.path} {operation.source} to {operation.target}")
        return self.operations[operation]

    def to_dict(self) -> dict[str, Any]:
        each = [
            operation._asdict() | asdict(cost) | {"cpu_s_per_gib": cost.cpu_s_per_gib, "bytes_ratio": cost.bytes_ratio}
            for operation, cost in self.operations.items()
        ]
        return {"codec": self.codec, "size_bytes": dict(self.size_bytes), "control": self.control, "operations": each}


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Who is there and what is kept. Shares from 0 to 1. Raises InvalidConfig, naming the field.

    old_producers: of the records produced; old_consumers: of the records fetched; fan_out: consumers that read each
    record; replication: copies of each, the leader's included; old_data: share of the records fetched that are from
    before the plan's writes changed; canary_leaders: share of the leaders on the canary.
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
    """US dollars. The defaults are assumptions of PRICES_ASSUMED, in the range of public clouds' list prices: replace
    them by one's own. GB is 10**9 bytes. Raises InvalidConfig, naming the field."""

    cpu_core_hour: float = 0.04
    storage_gb_month: float = 0.08
    network_gb: float = 0.01

    def __post_init__(self) -> None:
        _check_numbers(self, {})


PRICES_ASSUMED: Final = "2026-11"


def _check_numbers(holder: Traffic | Prices, limits: Mapping[str, tuple[float, float]]) -> None:
    for name, value in vars(holder).items():
        low, high = limits.get(name, (0, inf))
        if not isfinite(value) or not low <= value <= high:
            wanted = f"{low} to {high}" if high < inf else f"{low} or more"
            raise InvalidConfig(f"{name}: {value} is not {wanted}")


ONLY_CPU: Final = Prices(cpu_core_hour=1.0, storage_gb_month=0.0, network_gb=0.0)


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a GiB produced makes brokers do, all replicas and consumers together.

    "A GiB produced" is so many records as take a GiB in the plan's old format: the same records in every phase. Bytes
    in come from producers to leaders and from leaders to followers, bytes out go to consumers and followers: what is
    replicated counts at both ends. refused: share of the records offered, and asked for by consumers.
    """

    append_cpu_s: float = 0.0
    fetch_cpu_s: float = 0.0
    down_convert_cpu_s: float = 0.0  # of fetch_cpu_s: consumers' fetches that are not zero-copy
    in_bytes: float = 0.0
    out_bytes: float = 0.0
    zero_copy_bytes: float = 0.0  # of out_bytes
    disk_bytes: float = 0.0
    refused_produced: float = 0.0
    refused_fetched: float = 0.0

    @property
    def cpu_s(self) -> float:
        return self.append_cpu_s + self.fetch_cpu_s

    @property
    def zero_copy_share(self) -> float | None:
        """Of the bytes that go out; None where none do."""
        return self.zero_copy_bytes / self.out_bytes if self.out_bytes else None

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    def __mul__(self, share: float) -> Self:
        return type(self)(**{name: value * share for name, value in vars(self).items()})

    def to_dict(self) -> dict[str, float | None]:
        return vars(self) | {"cpu_s": self.cpu_s, "zero_copy_share": self.zero_copy_share}


def load(plan: Plan, phase: Phase, costs: Costs, traffic: Traffic) -> Load:
    """The load of brokers in one phase; of the canary alone where the phase is one. Before, all clients are old."""
    if phase.only_old or phase.name == plan.before:
        traffic = replace(traffic, old_producers=1.0, old_consumers=1.0)
    a_gib = GIB / costs.size_bytes[plan.old]
    total, stored_bytes = Load(), 0.0
    for producer, share in _weighted(plan, traffic.old_producers):
        cell = on_produce(phase, producer, costs.codec)
        if cell.format is None:
            total += Load(refused_produced=share)
            continue
        cost = costs.of(Operation("append", cell.spoken, phase.writes))
        stored_bytes += share * a_gib * cost.target_bytes
        total += Load(append_cpu_s=cost.cpu_ns / 1e9, in_bytes=cost.source_bytes) * (share * a_gib)
    total += Load(disk_bytes=stored_bytes)
    fresh = stored_bytes / costs.size_bytes[phase.writes]
    follower = on_fetch(phase, phase.writes, plan.old if phase.only_old else phase.knows, costs.codec)
    copies = _fetched(follower, phase.writes, costs) * (fresh * (traffic.replication - 1))
    total += copies + Load(in_bytes=copies.out_bytes, disk_bytes=copies.out_bytes)  # followers write what they get
    for consumer, share in _weighted(plan, traffic.old_consumers):
        for is_old, part, scale in ((False, 1 - traffic.old_data, fresh), (True, traffic.old_data, a_gib)):
            upgraded = is_old and phase.forces
            stored = plan.old if is_old and not upgraded else phase.writes
            cell = on_fetch(phase, stored, consumer, costs.codec)
            if cell.format is None:
                total += Load(refused_fetched=share * part)
            elif part:
                found = _upgraded(plan, cell, stored, costs) if upgraded else _fetched(cell, stored, costs)
                found = found if cell.action in ZERO_COPY else replace(found, down_convert_cpu_s=found.fetch_cpu_s)
                total += found * (share * part * scale * traffic.fan_out)
    return total


def _weighted(plan: Plan, old: float) -> list[tuple[str, float]]:
    return [(name, share) for name, share in ((plan.old, old), (plan.new, 1 - old)) if share]


def _fetched(cell: Cell, stored: str, costs: Costs) -> Load:
    """One reading of the measured log."""
    cost = costs.of(_fetching(cell, stored))
    zero_copy_bytes = cost.target_bytes if cell.action in ZERO_COPY else 0
    return Load(fetch_cpu_s=cost.cpu_ns / 1e9, out_bytes=cost.target_bytes, zero_copy_bytes=zero_copy_bytes)


def _upgraded(plan: Plan, cell: Cell, stored: str, costs: Costs) -> Load:
    """One reading of what a forced upgrade made of the measured log: as large as it left it."""
    if cell.action not in ZERO_COPY:
        if not _splits(plan, costs.codec):
            return _fetched(cell, stored, costs)
        cost = costs.of(Operation("down-convert upgraded", plan.old, plan.old))
        return Load(fetch_cpu_s=cost.cpu_ns / 1e9, out_bytes=cost.target_bytes)
    fresh, upgrade = costs.of(_fetching(cell, stored)), costs.of(Operation("upgrade", plan.old, stored))
    size_bytes = upgrade.target_bytes
    cpu_s = fresh.cpu_ns / 1e9 * size_bytes / fresh.source_bytes
    return Load(fetch_cpu_s=cpu_s, out_bytes=size_bytes, zero_copy_bytes=size_bytes)


def loads(plan: Plan, costs: Costs, traffic: Traffic) -> dict[str, Load]:
    """The load of each phase by its name. A canary has two: its own, and that of the whole cluster with it."""
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
class Bill:
    """Dollars per GiB produced."""

    cpu: float
    storage: float
    network: float

    @property
    def total(self) -> float:
        return self.cpu + self.storage + self.network


def bill(found: Load, traffic: Traffic, prices: Prices) -> Bill:
    """CPU as used, bytes on disk for as long as they are kept, bytes in and out."""
    gb_months = found.disk_bytes / GB * traffic.retention_days / DAYS_A_MONTH
    return Bill(
        cpu=found.cpu_s / 3600 * prices.cpu_core_hour,
        storage=gb_months * prices.storage_gb_month,
        network=(found.in_bytes + found.out_bytes) / GB * prices.network_gb,
    )


@dataclass(frozen=True, kw_only=True)
class BreakEven:
    """The share of old consumers at which the new format costs what the old one did; None: it always or never pays.

    pays: on which side of that share it is cheaper. saved_*: dollars per GiB produced without and with old consumers
    only; below 0: it costs more.
    """

    share: float | None
    pays: Literal["always", "never", "below", "above"]
    saved_without: float
    saved_with_all: float


Counted = Literal["down-conversion", "everything"]


def break_even(
    plan: Plan, costs: Costs, traffic: Traffic, prices: Prices, counted: Counted = "down-conversion"
) -> BreakEven:
    """The plan's goal against what was before, when all clients spoke the old format and nothing was converted.

    counted: "down-conversion" sets the CPU that old consumers cost, their fetches that are not zero-copy, against what
    is saved in storage and network, and nothing else: no append, up-conversions for old producers among them, and no
    zero-copy. "everything": the whole bill. The bill is linear in the share of old consumers, so two shares give the
    line.
    """
    then = replace(traffic, old_producers=1.0, old_consumers=1.0)

    def asked(phase: str, given: Traffic) -> float:
        found = load(plan, plan.phase(phase), costs, given)
        if counted == "down-conversion":
            found = replace(found, append_cpu_s=0.0, fetch_cpu_s=found.down_convert_cpu_s)
        return bill(found, given, prices).total

    def saved(share: float) -> float:
        return asked(plan.before, then) - asked(plan.goal, replace(traffic, old_consumers=share))

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
