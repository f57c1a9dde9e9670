"""From one record format to the next while clients of both are there: what a broker does, phase by phase.

A matrix (format on disk × producer × consumer) says which conversions run, where zero-copy is kept, what is refused
and what is lost. Pure: nothing is measured or encoded here.

Clients and brokers are named by the newest record format that they know. A client of Kafka 0.10.2 or later asks which
requests the broker takes (KIP-35, KIP-97) and speaks no newer format; an older one is refused.

Sources: KIP-31 "Compatibility, Deprecation, and Migration Plan" (two phases and a canary, v0 to v1); KIP-724 (3.0 and
4.0, v0 and v1 to v2, forced upgrade); KIP-931 says only that old consumers are down-converted for as before, so a
rollout of v3 takes KIP-31's two phases.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS

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
            found.append(fetching(row.fetch, row.stored))
        if phase.forces:
            found += [Operation("upgrade", name, phase.writes) for name in plan.formats if name != phase.writes]
            if splits(plan, codec):
                found.append(Operation("down-convert upgraded", plan.old, plan.old))
    return tuple(dict.fromkeys(found))


def fetching(cell: Cell, stored: str) -> Operation:
    """The operation that a served fetch is, of data in `stored`."""
    assert cell.action in ("zero-copy", "scan", "copy", "down-convert")
    # Zero-copy does not depend on who reads, nor does looking at every batch.
    return Operation(cell.action, stored, stored if cell.action in ZERO_COPY else cell.spoken)


def splits(plan: Plan, codec: str) -> bool:
    """Whether a forced upgrade makes one batch of each old record: what it costs is then not what fresh data does."""
    return codec == "none" and _index(plan.old) < 2
