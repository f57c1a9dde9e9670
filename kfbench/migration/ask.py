"""What a migration to another record format costs, phase by phase. The answer of `kfbench migrate`.

Costs are measured on this machine, on records of several shapes or on a log of one's own; shares and prices turn them
into loads and bills (`broker.bills`).
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.errors import KfbenchError, Refused
from kfbench.log.inspect import Damage, segment_size
from kfbench.log.segment import join_records
from kfbench.log.tail import nothing_in
from kfbench.migration.bills import (
    GIB,
    ONLY_CPU,
    PRICES_ASSUMED,
    BreakEven,
    Costs,
    Load,
    Prices,
    Traffic,
    break_even,
    loads,
)
from kfbench.migration.measure import ROUNDS, measure_costs
from kfbench.migration.plans import (
    FETCH_API,
    PRODUCE_API,
    Cell,
    Operation,
    Phase,
    Plan,
    Row,
    check_codec,
    lost,
    matrix,
    on_fetch,
    on_produce,
    refuses_idempotent,
)
from kfbench.records import Records
from kfbench.sources.log import find
from kfbench.text import counted, percent, text_table
from kfbench.workloads.grid import GridPoint

VALUE_BYTES: Final = (10, 100, 1_024)
BATCH_SIZES: Final = (1, 10, 100)
# What producers set: brokers set the rest.
OF_PRODUCERS: Final = ("producer_id", "producer_epoch", "base_sequence", "is_transactional")

Track = Callable[[Sequence[Any], str], Iterable[Any]]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """How much is measured with, at most. size_bytes: of keys and values."""

    size_bytes: int
    batches: int
    records: int = 20_480
    rounds: int = ROUNDS


# Such that the fixed cost of a conversion, 0.1 ms and more, is a few hundredths of it, and a plan takes about 10 s.
PLAIN: Final = Sample(size_bytes=4 << 20, batches=20_480)
COMPRESSED: Final = Sample(size_bytes=2 << 20, batches=512, records=10_240)
SLOW: Final = Sample(size_bytes=256 << 10, batches=512, records=5_120, rounds=5)
SAMPLES: Final[Mapping[str, Sample]] = {"none": PLAIN, "gzip": SLOW}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Records to measure with, batches as producers sent them. about: what they are; left_out: what not, in words;
    damage: what of it could not be read."""

    name: str
    about: str
    records: Records
    bounds: Int64
    batch_fields: BatchFields
    left_out: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Migrated:
    """One subject through all phases. by_*: up to which share of old consumers the new format pays.

    by_conversion: down-conversion against storage and network; by_bill: the whole bill; by_cpu: all CPU, no bytes.
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
            "loads": {name: each.to_dict() for name, each in self.loads.items()},
            "break_even": asdict(self.by_conversion),
            "break_even_bill": asdict(self.by_bill),
            "break_even_cpu": asdict(self.by_cpu),
        }


@dataclass(frozen=True, kw_only=True)
class Migration:
    """A plan under given shares and prices. to_text(): tables for people; to_dict(): values for JSON.

    damage: of the log that was measured, as far as it was read."""

    plan: Plan
    codec: str
    traffic: Traffic
    prices: Prices
    rows: tuple[Row, ...]
    subjects: tuple[Migrated, ...]
    damage: tuple[Damage, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Loads are per GiB produced, in the plan's old format; bills and savings in dollars."""
        return {
            "plan": self.plan.name,
            "summary": self.plan.summary,
            "codec": self.codec,
            "traffic": asdict(self.traffic),
            "prices": asdict(self.prices),
            "phases": [asdict(phase) for phase in self.plan.phases],
            "matrix": [row.to_dict() for row in self.rows],
            "subjects": [subject.to_dict() for subject in self.subjects],
            "damaged": [asdict(each) for each in self.damage],
        }

    def to_text(self) -> str:
        """What is assumed, each phase's matrix and load, what single steps cost, and where the new format pays."""
        return "\n\n".join("\n".join(block) for block in self._blocks())

    def _blocks(self) -> Iterator[list[str]]:
        yield self._given()
        for phase in self.plan.phases:
            yield phase_matrix(self.plan, phase, self.codec)
            yield self._loads(phase)
            if phase.forces:
                yield self._upgrade(phase)
        yield self._steps()
        yield self._break_even()

    def _given(self) -> list[str]:
        traffic, prices, old = self.traffic, self.prices, self.plan.old
        clients = [f"{name} (produce {PRODUCE_API[name]}, fetch {FETCH_API[name]})" for name in self.plan.formats]
        old_clients = [
            f"{percent(traffic.old_producers)} of the records produced",
            f"{percent(traffic.old_consumers)} of those fetched",
        ]
        kept = [
            f"each record is read {traffic.fan_out:g} times",
            f"kept {traffic.replication} times for {traffic.retention_days:g} days",
            f"{percent(traffic.old_data)} of those fetched are from before",
            f"{percent(traffic.canary_leaders)} of the leaders are on the canary",
        ]
        asked = [
            f"{prices.cpu_core_hour:g} $ a core hour",
            f"{prices.storage_gb_month:g} $ a GB and month",
            f"{prices.network_gb:g} $ a GB in or out",
        ]
        lines = [
            f"{self.plan.name}: {self.plan.summary}; codec {self.codec}",
            f"clients, by the newest format that they know: {', '.join(clients)}",
            f"{old} clients: {', '.join(old_clients)}; {', '.join(kept)}",
            f"prices, assumed ({PRICES_ASSUMED}) unless given: {', '.join(asked)}",
            f"a GiB produced: as many records as take a GiB in {old}, the same ones in every phase",
            "in: from producers, and by followers from leaders; out: to consumers and followers",
            "CPU: brokers' thread time, as on this machine",
            f"in {self.plan.before!r} all clients are {old}",
        ]
        for source, target in _steps_down(self.rows):
            if gone := lost(source, target):
                lines.append(f"{source} to {target} loses, where there are any: {', '.join(gone)}")
        lines += [f"{each.name}: measured without {what}" for each in self.subjects for what in each.left_out]
        return lines

    def _loads(self, phase: Phase) -> list[str]:
        """A canary has two loads: its own and the cluster's."""
        found = []
        for name in self.subjects[0].loads:
            if name == phase.name or name.startswith(f"{phase.name}: "):
                part = name.removeprefix(phase.name).lstrip(": ")
                titles = ["append CPU s", "fetch CPU s", "GiB in", "GiB out", "GiB on disk", "zero-copy", "refused"]
                rows = [[f"a GiB produced{', ' + part if part else ''}", *titles]]
                rows += [[each.name, *_load_cells(each.loads[name])] for each in self.subjects]
                found += text_table(rows, right=range(1, len(rows[0])))
        return found

    def _upgrade(self, phase: Phase) -> list[str]:
        """What the start-up takes, once."""
        sources = [name for name in self.plan.formats if name != phase.writes]
        rows = [["once, a GiB on disk", *(f"of {name}: {what}" for name in sources for what in ("CPU s", "GiB after"))]]
        for each in self.subjects:
            costs = [each.costs.of(Operation("upgrade", name, phase.writes)) for name in sources]
            cells = [(f"{cost.cpu_s_per_gib:.2f}", f"{cost.bytes_ratio:.3f}") for cost in costs]
            rows.append([each.name, *chain.from_iterable(cells)])
        return text_table(rows, right=range(1, len(rows[0])))

    def _steps(self) -> list[str]:
        """What each operation takes on its own."""
        names = [each.name for each in self.subjects]
        rows = [["CPU seconds a GiB that comes in", *names]]
        for operation in self.subjects[0].costs.operations:
            each = [subject.costs.of(operation).cpu_s_per_gib for subject in self.subjects]
            between = f"{operation.source} to {operation.target}" if operation.source != operation.target else ""
            rows.append([f"{operation.path} {between or operation.source}", *(f"{number:.2f}" for number in each)])
        controls = [subject.costs.control[0] for subject in self.subjects if subject.costs.control]
        base = next(iter(self.subjects[0].costs.operations))
        said = f"{min(controls):.3f} to {max(controls):.3f}"
        return [
            *text_table(rows, right=range(1, len(names) + 1)),
            f"{base.path} {base.source} against itself, which should read 1: {said}",
        ]

    def _break_even(self) -> list[str]:
        old, new = self.plan.old, self.plan.new
        titles = [
            f"{new} bytes / {old}'s",
            "pays",
            "saved, no old consumers",
            "saved, all old",
            "other CPU saved",
            "pays by the whole bill",
            "by CPU alone",
        ]
        rows = [[f"{new} against {old}", *titles]]
        for each in self.subjects:
            size, found = each.costs.size_bytes, each.by_conversion
            other = each.by_bill.saved_without - found.saved_without
            saved = [f"{number * 1_024:+.4f} $/TiB" for number in (found.saved_without, found.saved_with_all, other)]
            ratio = f"{size[new] / size[old]:.4f}"
            rows.append([each.name, ratio, _pays(found), *saved, _pays(each.by_bill), _pays(each.by_cpu)])
        return [
            *text_table(rows, right=range(1, len(rows[0]))),
            f"{self.plan.goal!r} against {self.plan.before!r}, by share of old consumers; clients' CPU is not counted",
            "pays, saved: storage and network against the CPU of down-conversions for old consumers, and nothing else",
            "in brackets: the shares that CPU times at the ends of their 95 % intervals over the rounds leave open",
            "other CPU: appends, up-conversions for old producers among them, and zero-copy; it is in the whole bill",
        ]


def phase_matrix(plan: Plan, phase: Phase, codec: str) -> list[str]:
    """What a phase is, and what brokers do in it for each client, as lines."""
    rows = [["client", "produce", *(f"fetch of {stored}" for stored in phase.stored)]]
    for client in [plan.old] if phase.only_old else plan.formats:
        fetches = [_words(on_fetch(phase, stored, client, codec)) for stored in phase.stored]
        rows.append([client, _words(on_produce(phase, client, codec)), *fetches])
    return [f"{phase.name} ({phase.source}): {phase.summary}", *text_table(rows)]


def migrate(
    plan: Plan,
    codec: str,
    traffic: Traffic,
    prices: Prices,
    source: str | os.PathLike[str] | None = None,
    track: Track = lambda items, _: items,
) -> Migration:
    """Measures the plan's operations on a log segment, or on nine shapes of records, and works out its phases.

    Takes the records of the log's first batches, at most 4 MiB, without control batches, offsets from 0, and
    repeats those of a short log; reads no further. Leaves out damage, and producer ids where the plan writes what
    cannot carry them: brokers refuse such producers. Raises IllegalCombination (a codec that a format of the plan does
    not have), KfbenchError (no such file, nothing readable in it, records that a broker refuses), Unverified.
    """
    check_codec(plan, codec)
    sample = SAMPLES.get(codec, COMPRESSED)
    subjects = _shapes(sample) if source is None else [_of_log(source, sample)]
    done = []
    for each in track(subjects, f"measuring {plan.name}"):
        subject = without_producers(each) if refuses_idempotent(plan) else each
        try:
            costs = measure_costs(
                plan, subject.records, subject.bounds, codec, subject.batch_fields, rounds=sample.rounds
            )
        except Refused as error:
            where = subject.name if source is None else os.fspath(source)
            what = f"{error.error}: {error.promise}"
            raise KfbenchError(f"{where}: plan {plan.name}: a broker refuses these records: {what}") from None
        done.append(
            Migrated(
                name=subject.name,
                about=subject.about,
                left_out=subject.left_out,
                costs=costs,
                loads=loads(plan, costs, traffic),
                by_conversion=break_even(plan, costs, traffic, prices),
                by_bill=break_even(plan, costs, traffic, prices, "everything"),
                by_cpu=break_even(plan, costs, traffic, ONLY_CPU, "everything"),
            )
        )
    return Migration(
        plan=plan,
        codec=codec,
        traffic=traffic,
        prices=prices,
        rows=matrix(plan, codec),
        subjects=tuple(done),
        damage=tuple(each for subject in subjects for each in subject.damage),
    )


def _shapes(most: Sample) -> list[Subject]:
    found = []
    for value_bytes in VALUE_BYTES:
        for batch_size in BATCH_SIZES:
            point = GridPoint(value_bytes=value_bytes, batch_size=batch_size, timestamp_spread_ms=batch_size - 1)
            batches = most.size_bytes // (batch_size * (point.value_bytes + point.key_bytes))
            batches = min(max(batches, 1), most.batches, most.records // batch_size)
            sample = point.generate(records=batch_size * batches, seed=1)
            found.append(
                Subject(
                    name=f"{value_bytes} B × {batch_size}",
                    about=f"values of {value_bytes} bytes, keys of {point.key_bytes}, {batch_size} records a batch",
                    records=sample.records,
                    bounds=sample.bounds,
                    batch_fields=sample.batch_fields,
                )
            )
    return found


def without_producers(subject: Subject) -> Subject:
    """The subject as producers that are not idempotent send it."""
    count = int((subject.batch_fields.rows["producer_id"] >= 0).sum())
    if not count:
        return subject
    what = (
        f"the producer ids of {counted(count, 'batch')}: idempotent and transactional producers are refused in phases "
        "that write v0 or v1"
    )
    return replace(subject, batch_fields=NO_FIELDS, left_out=(*subject.left_out, what))


def _of_log(path: str | os.PathLike[str], most: Sample) -> Subject:
    """The first batches of clients that have records, of which no more is read; damage among them is left out."""
    name = os.fspath(path)
    segment_size(path)
    found = find(path)
    if not found.parts:
        raise KfbenchError(f"{name}: {found.skipped[0].reason}")
    parts: list[Records] = []
    counts = [np.zeros(0, np.int64)]
    of_producers: dict[str, list[Any]] = {field: [] for field in OF_PRODUCERS}
    damage: list[Damage] = []
    size_bytes = batches = records = 0
    is_log = False
    try:
        for chunk in found.parts[0].chunks():
            damage += chunk.damage
            bounds = chunk.bounds if chunk.bounds is not None else np.zeros(1, np.int64)
            is_log |= len(bounds) > 1
            rows = np.broadcast_to(chunk.fields.over(len(bounds) - 1), len(bounds) - 1)
            sizes = _payload_bytes(chunk.records, bounds)
            left = most.size_bytes - size_bytes, most.batches - batches, most.records - records
            wanted = _first(np.flatnonzero(~rows["is_control"] & (np.diff(bounds) > 0)), sizes, np.diff(bounds), *left)
            batch = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
            parts.append(chunk.records.take(np.flatnonzero(np.isin(batch, wanted))))
            counts.append(np.diff(bounds)[wanted])
            for field, values in of_producers.items():
                values.append(rows[field][wanted])
            size_bytes, batches = size_bytes + int(sizes[wanted].sum()), batches + len(wanted)
            records += len(parts[-1])
            if size_bytes >= most.size_bytes or batches == most.batches or records >= most.records:
                break
    except (KfbenchError, OSError) as error:
        raise KfbenchError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    if not batches:
        raise KfbenchError(f"{name}: {_nothing(found.parts[0].size_bytes, damage, is_log)}")
    # As often as it takes for the fixed cost of a call not to show.
    once = join_records(parts)
    room = most.size_bytes / max(once.shapes.payload_bytes, 1), most.batches / batches, most.records / records
    times = max(int(min(room)), 1)
    taken = once.take(np.tile(np.arange(records), times))
    columns: dict[str, Any] = {field: np.tile(np.concatenate(of), times) for field, of in of_producers.items()}
    what = f"{counted(records, 'record')} in {counted(batches, 'batch')} of {name}"
    lost_bytes = sum(each.size_bytes for each in damage)
    return Subject(
        name=Path(path).name,
        about=f"{what}, {times} times over" if times > 1 else what,
        records=replace(taken, shapes=replace(taken.shapes, offsets=np.arange(len(taken)))),
        bounds=np.append(0, np.cumsum(np.tile(np.concatenate(counts), times))),
        batch_fields=BatchFields(**columns),
        left_out=(f"{counted(lost_bytes, 'byte')} of damage: {damage[0].words()}",) if damage else (),
        damage=tuple(damage),
    )


def _payload_bytes(records: Records, bounds: Int64) -> Int64:
    """Of the keys and values of each batch."""
    shapes = records.shapes
    each = np.maximum(shapes.key_lengths, 0).astype(np.int64) + np.maximum(shapes.value_lengths, 0)
    return np.diff(np.append(0, np.cumsum(each))[bounds])


def _first(batches: Int64, sizes: Int64, counts: Int64, size_bytes: int, most: int, records: int) -> Int64:
    """Those of the batches that begin before so many bytes, batches and records are there."""
    before = [np.cumsum(column[batches]) - column[batches] for column in (sizes, counts)]
    return batches[(before[0] < size_bytes) & (before[1] < records)][:most]


def _nothing(size_bytes: int, damage: Sequence[Damage], is_log: bool) -> str:
    if damage:
        return f"no batch can be read: {damage[0].words()}"
    return f"no batch of a client in {counted(size_bytes, 'byte')}" if is_log else nothing_in(size_bytes)


def _steps_down(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """The conversions of a matrix that may lose something."""
    produced = [(row.produce.spoken, row.produce.format) for row in rows]
    fetched = [(row.stored, row.fetch.format) for row in rows]
    return sorted({(source, target) for source, target in (*produced, *fetched) if target and target < source})


def _words(cell: Cell) -> str:
    if cell.error:
        return f"{cell.action} ({cell.error})"
    words = f"{cell.action} to {cell.format}" if cell.action.endswith("convert") else cell.action
    return f"{words}; idempotent: refused ({cell.idempotent})" if cell.idempotent else words


def _load_cells(found: Load) -> list[str]:
    share = found.zero_copy_share
    refused = [
        f"{percent(part)} of {what}"
        for part, what in ((found.refused_produced, "produce"), (found.refused_fetched, "fetch"))
        if part
    ]
    return [
        f"{found.append_cpu_s:.2f}",
        f"{found.fetch_cpu_s:.2f}",
        *(f"{size / GIB:.3f}" for size in (found.in_bytes, found.out_bytes, found.disk_bytes)),
        "-" if share is None else percent(share),
        ", ".join(refused) or "-",
    ]


def _pays(found: BreakEven) -> str:
    """As many digits as a run of rounds can tell: below 9.1 % (8.2 to 10), above 24 %, always (open: 97 to 100 %)."""
    share, *span = (f"{100 * each:.{0 if each >= 0.1 else 1}f}" for each in (found.share or 0, *(found.span or ())))
    between = " to ".join(span)
    if found.share is None:
        return found.pays + (f" (open: {between} %)" if span else "")
    return f"{found.pays} {share} %" + (f" ({between})" if span else "")
