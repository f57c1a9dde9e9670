"""The work of `kfbench migrate`: compute the cost of moving to another record format, phase by phase.

Costs are measured on this machine, on nine generated sets of records or on your log. Shares of clients and prices turn
costs into loads and bills (see `bills`).
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple

import msgspec

from kfbench.errors import IllegalCombination, KfbenchError, Refused
from kfbench.log.damage import Damage
from kfbench.measure.verify import Unverified
from kfbench.migration.bills import BreakEven, Costs, Load, break_even, loads
from kfbench.migration.measure import measure_costs
from kfbench.migration.plans import MatrixRow, Plan, check_codec, matrix, refuses_idempotent
from kfbench.migration.subjects import (
    SampleLimits,
    Subject,
    codec_of,
    find_logs,
    generated_subjects,
    log_subject,
    without_producers,
)
from kfbench.money import Prices, Traffic
from kfbench.sources.folder import NothingToRead

# At these sizes the fixed cost of a conversion (0.1 ms and more) is a few percent, and a plan takes about 10 s.
COMPRESSED: Final = SampleLimits(size_bytes=2 << 20, batches=512, records=10_240)
SAMPLES: Final[Mapping[str, SampleLimits]] = {
    "none": SampleLimits(size_bytes=4 << 20, batches=20_480),
    "gzip": SampleLimits(size_bytes=256 << 10, batches=512, records=5_120),
}

ONLY_CPU: Final = Prices(cpu_core_hour=1.0, storage_gb_month=0.0, network_gb=0.0)
DEFAULT_CODEC: Final = "lz4"
MOST_TOPICS: Final = 4  # the number of topics that are measured, the largest ones; each takes about 10 s

Track = Callable[[Sequence[Any], str], Iterable[Any]]


@dataclass(frozen=True, kw_only=True)
class MigratedSubject:
    """The results for one set of measured records (a subject) in all phases of a plan.

    Args:
        about: a description of the records.
        left_out: descriptions of the parts of a log that are not measured.
        costs: the measured costs of each operation.
        loads: the load of each phase, by name.
        by_conversion: the share of old consumers at which savings of storage and network equal the CPU costs of
            down-conversion.
        by_bill: the share at which the whole bills are equal.
        by_cpu: the share at which the CPU costs of all operations are equal, without bytes.
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
    """The answer for one plan, with the given shares and prices.

    Args:
        codec: the codec of the first subject; `Costs.codec` has the codec of each.
        damage: path of a file -> the damage in the part that was read.
        unmeasured: the topics that were not measured, with the reason.
        unread: a line for each file that could not be read, and for each topic that a broker would refuse.
    """

    plan: Plan
    codec: str
    traffic: Traffic
    prices: Prices
    rows: tuple[MatrixRow, ...]
    subjects: tuple[MigratedSubject, ...]
    damage: Mapping[str, tuple[Damage, ...]] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return values for JSON. Loads are per GiB produced, in the plan's old format. Savings are in US $."""
        return {
            "plan": self.plan.name,
            "summary": self.plan.summary,
            "codec": self.codec,
            "traffic": asdict(self.traffic),
            "prices": asdict(self.prices),
            "phases": msgspec.to_builtins(self.plan.phases),
            "matrix": [row.to_dict() for row in self.rows],
            "subjects": [subject.to_dict() for subject in self.subjects],
            "damaged": [asdict(each) for damage in self.damage.values() for each in damage],
            "unmeasured": list(self.unmeasured),
            "unread": list(self.unread),
        }


def migrate(
    plan: Plan,
    codec: str | None,
    traffic: Traffic,
    prices: Prices,
    sources: Sequence[str | os.PathLike[str]] = (),
    track: Track = lambda items, _: items,
) -> Migration:
    """Measure the plan's operations on your logs, or on nine generated sets of records, and compute its phases.

    The MOST_TOPICS largest topics are measured. Of each the first batches are used: at most 4 MiB, without control
    batches, with offsets from 0. A short log is repeated. Damage is left out. If the plan writes a format without
    producer ids, they are left out too, because brokers then refuse producers with ids.

    Args:
        codec: None: for each topic the codec of most of its batches; for the nine shapes DEFAULT_CODEC.
        sources: segments, and folders with segments in them. None given: the nine shapes.

    Raises:
        IllegalCombination: a format of the plan lacks the codec.
        KfbenchError: all sources are missing, without anything readable, or of records that a broker refuses.
        Unverified: an operation returns wrong records.
    """
    if codec:
        check_codec(plan, codec)
    if sources:
        given = _log_subjects(plan, codec, sources)
    else:
        codec = codec or DEFAULT_CODEC
        given = _FoundSubjects(
            [replace(each, codec=codec) for each in generated_subjects(SAMPLES.get(codec, COMPRESSED))]
        )
    subjects = [without_producers(each) if refuses_idempotent(plan) else each for each in given.subjects]
    answers: list[MigratedSubject] = []
    refused: dict[str, KfbenchError] = {}
    for subject in track(subjects, f"measuring {plan.name}"):
        try:
            answers.append(_migrate_subject(plan, subject, traffic, prices))
        except Unverified:
            raise
        except KfbenchError as error:
            refused[subject.name] = error
    if not answers:
        raise next(iter(refused.values()))
    return Migration(
        plan=plan,
        codec=answers[0].costs.codec,
        traffic=traffic,
        prices=prices,
        rows=matrix(plan, answers[0].costs.codec),
        subjects=tuple(answers),
        damage={file: damage for subject in subjects for file, damage in subject.damage.items()},
        unmeasured=(*given.unmeasured, *(f"{name} ({error})" for name, error in refused.items())),
        unread=(*given.unread, *map(str, refused.values())),
    )


class _FoundSubjects(NamedTuple):
    """Subjects to measure, the topics that are not measured with the reason, and files that cannot be read."""

    subjects: list[Subject]
    unmeasured: Sequence[str] = ()
    unread: tuple[str, ...] = ()


def _log_subjects(plan: Plan, codec: str | None, sources: Sequence[str | os.PathLike[str]]) -> _FoundSubjects:
    """Read the largest topics. One that cannot be measured does not hide the others; raise its error if all cannot."""
    logs, named = find_logs(sources), {os.fspath(source) for source in sources}
    subjects: list[Subject] = []
    unmeasured: list[str] = []
    unread = list(logs.unread)
    first_error: KfbenchError | None = None
    for name, segments in logs.topics.items():
        if len(subjects) == MOST_TOPICS:
            unmeasured.append(f"{name} (smaller)")
            continue
        of_topic = codec or codec_of(segments)
        try:
            check_codec(plan, of_topic)
            subjects.append(log_subject(name, segments, SAMPLES.get(of_topic, COMPRESSED), of_topic))
        except IllegalCombination as error:
            first_error = first_error or IllegalCombination(f"{error}: give another one by --codec")
            unmeasured.append(f"{name} ({error})")
        except KfbenchError as error:
            first_error = first_error or error
            unmeasured.append(f"{name} ({error})")
            if not isinstance(error, NothingToRead) or any(segment.name in named for segment in segments):
                unread.append(str(error))
    if not subjects and first_error is not None:
        raise first_error
    return _FoundSubjects(subjects, unmeasured, tuple(unread))


def _migrate_subject(plan: Plan, subject: Subject, traffic: Traffic, prices: Prices) -> MigratedSubject:
    rounds = SAMPLES.get(subject.codec, COMPRESSED).rounds
    try:
        costs = measure_costs(plan, subject.records, subject.bounds, subject.codec, subject.batch_fields, rounds=rounds)
    except Refused as error:
        reason = f"{error.error}: {error.promise}"
        raise KfbenchError(
            f"{subject.source or subject.name}: plan {plan.name}: a broker refuses these records: {reason}"
        ) from None
    return MigratedSubject(
        name=subject.name,
        about=subject.about,
        left_out=subject.left_out,
        costs=costs,
        loads=loads(plan, costs, traffic),
        by_conversion=break_even(plan, costs, traffic, prices),
        by_bill=break_even(plan, costs, traffic, prices, "everything"),
        by_cpu=break_even(plan, costs, traffic, ONLY_CPU, "everything"),
    )
