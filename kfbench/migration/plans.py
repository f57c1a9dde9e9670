"""Plans of a migration between record formats (`plans.toml`), and the broker's actions in each of their phases.

The matrix (format on disk × producer × consumer) lists conversions, zero-copy, refusals and losses. Nothing is measured
or encoded here.

Clients and brokers are named by the newest record format that they know. A client of Kafka 0.10.2 or later asks the
broker for its request versions (KIP-35, KIP-97), and uses no newer format. An older client does not ask, and is refused
if the broker does not know its format.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import product
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS

# The request versions that carry each format (Kafka's ProduceRequest and FetchRequest). v3 has none yet.
PRODUCE_API: Final[Mapping[str, str]] = {"v0": "0-1", "v1": "2", "v2": "3+", "v3": "to come"}
FETCH_API: Final[Mapping[str, str]] = {"v0": "0-1", "v1": "2-3", "v2": "4+", "v3": "to come"}

Action = Literal[
    "in place",  # produce: offsets are set in the batch header
    "recompress",  # produce: the same format; decompressed, rewritten, compressed again
    "up-convert",  # produce
    "down-convert",  # produce and fetch
    "zero-copy",  # fetch: bytes are sent as stored on disk
    "scan",  # fetch: zero-copy after reading the magic of every batch
    "copy",  # fetch: nothing is converted, but the broker reads all bytes to find out that this is so
    "refused",
    "unreadable",  # fetch: the broker no longer reads the format on disk
]
PathName = Literal["append", "zero-copy", "scan", "copy", "down-convert", "upgrade", "down-convert upgraded"]

ZERO_COPY: Final[tuple[Action, ...]] = ("zero-copy", "scan")


class Phase(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of brokers in one phase of a plan. Formats are given by name.

    Args:
        source: the section of a KIP that describes these settings.
        writes: the format in which new records are stored.
        knows: the newest format that the broker knows.
        stored: all formats that may be on disk, including older data.
        least_produced, least_fetched: the oldest format that producers and consumers may use.
        least_read: the oldest format on disk that the broker still reads.
        scans: for a reader older than `writes`, the broker reads the magic of each batch. It sends stored bytes
            (zero-copy) if the reader knows all of them. False: this reader gets no zero-copy.
        negotiates: clients ask the broker for its request versions.
        only_old: all clients and followers use the old format. So it is on a canary, a broker that tries the new format
            first.
        forces: stored data is upgraded once, at start-up.
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


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The phases of a migration from format `old` to `new`.

    Args:
        formats: all formats in the plan.
        before, goal: the names of the two phases whose bills are compared. In `before` all clients are old.
        rest: the name of the phase of all other brokers, while one broker is a canary.
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

    def clients(self, phase: Phase) -> tuple[str, ...]:
        """Return the newest format of each kind of client in a phase."""
        return (self.old,) if phase.only_old else self.formats

    def phase(self, name: str) -> Phase:
        """Return the phase with this name. Raise InvalidConfig if there is none."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        raise InvalidConfig(f"{self.name}: no phase {name!r} (phases: {', '.join(each.name for each in self.phases)})")


_TEXT: Final = files("kfbench.migration").joinpath("plans.toml").read_text(encoding="utf-8")
PLANS: Final[Mapping[str, Plan]] = MappingProxyType(
    {name: msgspec.convert(row | {"name": name}, Plan) for name, row in tomllib.loads(_TEXT).items()}
)


class Operation(NamedTuple):
    """A path of a broker that is measured, from one format to another.

    "down-convert upgraded" is a fetch by a reader of `target`, of stored data that a forced upgrade made from `source`.
    """

    path: PathName
    source: str
    target: str


@dataclass(frozen=True, kw_only=True)
class BrokerAction:
    """The action of a broker on one request.

    Args:
        spoken: the format of the request.
        format: the format of the data that is stored or delivered; None: there is no data.
        lost: properties that the action removes from records that have them.
        error: Kafka's name of the refusal.
        idempotent: the error for idempotent and transactional producers, if other producers are served.
    """

    action: Action
    spoken: str
    format: str | None = None
    lost: tuple[str, ...] = ()
    error: str | None = None
    idempotent: str | None = None


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    """A row of the matrix: the actions for one producer and one consumer. stored: the format of the fetched data."""

    phase: str
    stored: str
    producer: str
    consumer: str
    produce: BrokerAction
    fetch: BrokerAction

    @property
    def zero_copy(self) -> bool:
        return self.fetch.action in ZERO_COPY

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"zero_copy": self.zero_copy}


def find(name: str) -> Plan:
    """Return the plan with this name. Raise InvalidConfig if there is none."""
    if name not in PLANS:
        raise InvalidConfig(f"no plan {name!r} (plans: {', '.join(PLANS)})")
    return PLANS[name]


def check_codec(plan: Plan, codec: str) -> None:
    """Raise IllegalCombination for a codec that a format of the plan does not have."""
    for name in plan.formats:
        FORMATS[name].check_codec(codec)


def on_produce(phase: Phase, producer: str, codec: str) -> BrokerAction:
    """Return the broker's action on a produce request. producer: the newest format that the producer knows."""
    spoken = _spoken(phase, producer)
    if _index(spoken) > _index(phase.knows) or _index(spoken) < _index(phase.least_produced):
        return BrokerAction(action="refused", spoken=spoken, error="UNSUPPORTED_VERSION")
    if codec not in FORMATS[phase.writes].capabilities.codecs:
        return BrokerAction(action="refused", spoken=spoken, error="UNSUPPORTED_COMPRESSION_TYPE")
    step = _index(phase.writes) - _index(spoken)
    if step == 0:
        # The inner offsets of v0 are absolute: setting them changes the compressed bytes.
        action: Action = "recompress" if spoken == "v0" and codec != "none" else "in place"
    else:
        action = "up-convert" if step > 0 else "down-convert"
    losses = lost(spoken, phase.writes)
    # As in Kafka's LogValidator, a broker refuses to store records without their producer id.
    error = "UNSUPPORTED_FOR_MESSAGE_FORMAT" if "producer_id" in losses else None
    return BrokerAction(action=action, spoken=spoken, format=phase.writes, lost=losses, idempotent=error)


def refuses_idempotent(plan: Plan) -> bool:
    """Return True if brokers refuse idempotent and transactional producers in some phase of the plan."""
    return any("producer_id" in FORMATS[phase.writes].capabilities.missing for phase in plan.phases)


def on_fetch(phase: Phase, stored: str, consumer: str, codec: str) -> BrokerAction:
    """Return the broker's action on a fetch of data in format `stored`. consumer: the newest format that it knows."""
    spoken = _spoken(phase, consumer)
    if _index(spoken) > _index(phase.knows) or _index(spoken) < _index(phase.least_fetched):
        return BrokerAction(action="refused", spoken=spoken, error="UNSUPPORTED_VERSION")
    if _index(stored) < _index(phase.least_read):
        return BrokerAction(action="unreadable", spoken=spoken)
    if _index(stored) > _index(spoken):
        if codec not in FORMATS[spoken].capabilities.codecs:
            return BrokerAction(action="refused", spoken=spoken, error="UNSUPPORTED_COMPRESSION_TYPE")
        return BrokerAction(action="down-convert", spoken=spoken, format=spoken, lost=lost(stored, spoken))
    if _index(spoken) >= _index(phase.writes):
        return BrokerAction(action="zero-copy", spoken=spoken, format=stored)
    # The reader knows the stored format, but only a broker that reads the magic of batches finds that out.
    return BrokerAction(action="scan" if phase.scans else "copy", spoken=spoken, format=stored)


def _spoken(phase: Phase, client: str) -> str:
    return min(client, phase.knows, key=_index) if phase.negotiates else client


def _index(name: str) -> int:
    return FORMATS[name].magic


def lost(source: str, target: str) -> tuple[str, ...]:
    """Return the properties that `source` can carry and `target` cannot."""
    missing_before = FORMATS[source].capabilities.missing
    return tuple(name for name in FORMATS[target].capabilities.missing if name not in missing_before)


def matrix(plan: Plan, codec: str = "none") -> tuple[MatrixRow, ...]:
    """Return all rows: phase × format on disk × producer × consumer.

    Raise IllegalCombination if a format of the plan lacks the codec.
    """
    check_codec(plan, codec)
    return tuple(
        MatrixRow(
            phase=phase.name,
            stored=stored,
            producer=producer,
            consumer=consumer,
            produce=on_produce(phase, producer, codec),
            fetch=on_fetch(phase, stored, consumer, codec),
        )
        for phase in plan.phases
        for stored in phase.stored
        for producer, consumer in product(plan.clients(phase), repeat=2)
    )


def operations(plan: Plan, codec: str = "none") -> tuple[Operation, ...]:
    """Return the operations whose costs the plan's loads are computed from.

    The first one, an append in the old format, is the base: the other CPU times are divided by its time.
    """
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


def fetching(cell: BrokerAction, stored: str) -> Operation:
    """Return the operation of a fetch that is not refused. stored: the format on disk."""
    assert cell.action in ("zero-copy", "scan", "copy", "down-convert")
    # The cost of zero-copy and of a scan does not depend on the reader.
    return Operation(cell.action, stored, stored if cell.action in ZERO_COPY else cell.spoken)


def splits(plan: Plan, codec: str) -> bool:
    """Return True if a forced upgrade makes one batch of each old record. These batches cost more than new ones."""
    return codec == "none" and _index(plan.old) < 2
