"""CPU ratios by machine: where do v3, v3-headers-first and columnar differ between processors?

The files are those of datasets/machines (`kfbench contribute`). Each ratio is of two times of one machine.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Final, get_args

from kfbench.machines.file import MachineFile, MachineFiles, Operation, RatioKey, Sizes, read_folder
from kfbench.report.data.axes import GRID
from kfbench.report.data.shown_formats import HEADERS_FIRST, NEW
from kfbench.report.data.views import Views
from kfbench.report.data.words import codec_words
from kfbench.report.section import Answer
from kfbench.report.topics.columnar.measured import NAME as COLUMNAR
from kfbench.report.topics.control import NO_TIMES
from kfbench.report.topics.java import side_of_one
from kfbench.tables import Cell, Column, Interval, Table, listed, plain_columns
from kfbench.text import counted

COMPARED: Final = (NEW, HEADERS_FIRST, COLUMNAR)
LARGE_FACTOR: Final = 1.1  # ratios of two machines that differ by more than this factor
MOST_SHOWN: Final = 12  # ratios in the table of differences
SPLIT, FURTHER = "side of 1", "more than 10 %"
OPERATIONS: Final = get_args(Operation)
NO_FILES: Final = "no file of a machine is stored (kfbench contribute)"
RATIOS: Final = (
    "A ratio is a format's CPU time relative to v2's on the same machine, in caches. Ratios that differ by more than "
    "10 % have intervals that do not overlap. All ratios are in datasets/machines."
)
ONLY: Final = (
    '"Only" means that kernels were compiled for fewer instructions than the processor has. The codecs still use them.'
)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A ratio on several machines. of: machine -> its ratio, if it has one. code: machine -> hash of its code."""

    key: RatioKey
    of: Mapping[str, Interval]
    code: Mapping[str, str]

    @cached_property
    def pairs(self) -> list[tuple[Interval, Interval]]:
        """The ratios of each two machines with the same code, in both orders."""
        return [
            (self.of[one], self.of[other])
            for one, other in permutations(self.of, 2)
            if self.code[one] == self.code[other]
        ]

    @property
    def is_split(self) -> bool:
        """True if two intervals lie on different sides of 1."""
        return any(side_of_one(one) > 0 > side_of_one(other) for one, other in self.pairs)

    @property
    def is_far(self) -> bool:
        """True if the medians of two machines differ by more than LARGE_FACTOR, and their intervals do not overlap."""
        return any(one.median > LARGE_FACTOR * other.median and one.low > other.high for one, other in self.pairs)

    @property
    def factor(self) -> float:
        """The largest median divided by the smallest."""
        medians = [each.median for each in self.of.values()]
        return max(medians) / min(medians)

    @property
    def word(self) -> str:
        return SPLIT if self.is_split else FURTHER if self.is_far else ""


def compared(files: Mapping[str, MachineFile]) -> list[Compared]:
    """Return the ratios of the formats COMPARED that two machines have. If there is one machine: all of its ratios."""
    found: dict[RatioKey, dict[str, Interval]] = defaultdict(dict)
    for machine, file in files.items():
        for ratio in file.ratios:
            if ratio.format in COMPARED:
                found[ratio.key][machine] = Interval(median=ratio.median, low=ratio.low, high=ratio.high)
    code = {machine: file.code or machine for machine, file in files.items()}
    least = min(2, len(files))
    return [
        Compared(key=key, of=found[key], code=code) for key in sorted(found, key=_order) if len(found[key]) >= least
    ]


def _order(key: RatioKey) -> tuple[object, ...]:
    place = OPERATIONS.index(key.operation), COMPARED.index(key.format)
    return *place, key.workload != GRID, key.workload, key.codec != "none", key.codec, key.level or 0, _batch(key)


def _batch(key: RatioKey) -> int:
    return -1 if key.batch_size is None else key.batch_size


def differences_sentence(every: Sequence[Compared], machine_count: int) -> str:
    """Count the ratios in which machines disagree, by format."""
    if machine_count < 2:
        return "Only one machine has a file, so there is nothing to compare."
    both = [each for each in every if each.pairs]
    if not both:
        return f"No two of the {machine_count} machines measured a common ratio with the same code of kfbench."
    split, far = ([each for each in both if each.word == word] for word in (SPLIT, FURTHER))
    return (
        f"{counted(len(both), 'ratio')} can be compared between machines. "
        f"Intervals lie on different sides of 1 in {len(split)}.{_by_format(split)} "
        f"In {len(far)} more, ratios differ by more than 10 %.{_by_format(far)}"
    )


def _by_format(some: Sequence[Compared]) -> str:
    counts = Counter(each.key.format for each in some)
    words = ", ".join(f"{counts[name]} are of {name}" for name in COMPARED if counts[name])
    return f" Of these, {words}." if words else ""


def sizes_sentence(files: Mapping[str, MachineFile]) -> str:
    """Say whether machines that measured the same sizes with the same code got the same."""
    same: Counter[tuple[str, ...]] = Counter()
    differing = list[str]()
    for codec, of_cells in _measured_alike(files):
        if len({each.sizes for each in of_cells.values()}) == 1:
            same[tuple(of_cells)] += next(iter(of_cells.values())).rows
        else:
            libraries = [f"{name} ({files[name].machine.codecs.get(codec, 'unknown')})" for name in of_cells]
            differing.append(f"The exact sizes under {codec} differ between {listed(libraries)}.")
    agreeing = [f"The {rows:,} exact sizes of {listed(names)} are the same." for names, rows in same.items()]
    if not agreeing and not differing and len(files) > 1:
        return "No two machines measured the same sizes with the same code."
    return " ".join([*differing, *agreeing])


def _measured_alike(files: Mapping[str, MachineFile]) -> Iterator[tuple[str, dict[str, Sizes]]]:
    """Yield a codec, and machine -> its sizes, for machines that measured the same cells with the same code."""
    found: dict[tuple[str, str, str], dict[str, Sizes]] = defaultdict(dict)
    for machine, file in files.items():
        for each in file.sizes:
            found[each.codec, each.cells, file.code or machine][machine] = each
    yield from ((codec, of_cells) for (codec, *_), of_cells in found.items() if len(of_cells) > 1)


def damaged_sentence(damaged: Mapping[str, str]) -> str:
    return " ".join(f"{name} is left out, because it cannot be read: {why}." for name, why in damaged.items())


def machines_table(files: Mapping[str, MachineFile]) -> Table:
    return Table(
        name="machines",
        caption="The machines",
        columns=plain_columns("machine", "processor", "kernels use", "failed noise checks"),
        rows=tuple(_machine_row(name, file) for name, file in files.items()),
    )


def _machine_row(name: str, file: MachineFile) -> tuple[Cell, ...]:
    machine = file.machine
    processor = machine.cpu + (f" ({machine.cpu_model})" if machine.cpu_model else "")
    return name, processor, machine.instructions.words, ", ".join(file.noise.failed) or "none"


def differences_table(every: Sequence[Compared], machines: Sequence[str]) -> Table | None:
    """Return the medians of ratios on different sides of 1, with a column per machine; None without any.

    The table has the MOST_SHOWN ratios that differ most.
    """
    split = [each for each in every if each.is_split]
    if not split:
        return None
    split.sort(key=lambda each: -each.factor)
    left_out = len(split) - MOST_SHOWN
    return Table(
        name="machines-differences",
        caption="Ratios on different sides of 1 (medians)",
        columns=(
            *plain_columns("operation", "format", "codec", "workload", "records per batch"),
            *(Column(name=machine, unit="×") for machine in machines),
        ),
        rows=tuple(_ratio_row(each, machines) for each in split[:MOST_SHOWN]),
        notes=(f"{left_out:,} other ratios are on different sides too; they differ less.",) if left_out > 0 else (),
    )


def _ratio_row(each: Compared, machines: Sequence[str]) -> tuple[Cell, ...]:
    key = each.key
    batch = "its own" if key.batch_size is None else key.batch_size
    place = key.operation, key.format, codec_words(key.codec, key.level), key.workload, batch
    medians = (each.of[machine].median if machine in each.of else None for machine in machines)
    return *place, *medians


def answer_of(found: MachineFiles) -> Answer | str:
    """Return the section about these files; the reason if none of them can be read."""
    files = found.sound
    if not files:
        return damaged_sentence(found.damaged).rstrip(".") or NO_FILES
    every = compared(files)
    sentences = (
        differences_sentence(every, len(files)),
        sizes_sentence(files),
        damaged_sentence(found.damaged),
    )
    return Answer(
        means=" ".join(filter(None, sentences)),
        prose=(RATIOS, ONLY),
        tables=(machines_table(files), differences_table(every, [*files])),
    )


def machines_answer(run: Views) -> Answer | str:
    return NO_TIMES if run.results.cpu.empty else answer_of(read_folder())
