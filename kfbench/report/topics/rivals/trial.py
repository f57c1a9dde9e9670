"""An earlier trial of the same comparison: its bytes per record, beside those of the run.

The trial took user-activity with seed 7, one-shot zstd 3, no producer state and about 50 batches of 1 or 10 records.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.rivals import CODEC, COLUMNAR, OPAQUE, Key, Rivals
from kfbench.report.data.words import percent
from kfbench.tables import Column, Table, plain_columns

WORKLOAD: Final = "user-activity"
BATCHES: Final = (1, 10, 100, 1_000, 10_000)  # records per batch
EXPLAINED: Final = 0.05  # larger differences need a reason
FEW: Final = "the trial took about 50 batches of seed 7, with smaller records"
STATE: Final = "the trial had no producer state"
ARROW_SCHEMA: Final = "other settings: the trial kept the Arrow schema and compressed each page"
PER_BUFFER: Final = "other settings: the trial compressed each buffer and kept all columns"


class Tried(NamedTuple):
    """Figures of the trial. sizes: bytes per record, by BATCHES. reasons: why the run may differ by more than 5 %."""

    sizes: tuple[float, ...]
    reasons: tuple[str, ...]


TRIED: Final = {
    BASE_FORMAT: Tried((234, 83.7, 42.0, 33.3, 29.8), (FEW,)),
    COLUMNAR: Tried((189, 71.0, 33.7, 26.6, 24.3), (FEW, STATE)),
    "parquet-best": Tried((1_604, 225, 54.5, 31.4, 28.4), (ARROW_SCHEMA,)),
    "arrow-ipc-bare": Tried((1_043, 163, 48.3, 32.1, 28.8), (PER_BUFFER,)),
}


class Difference(NamedTuple):
    """Bytes per record in the trial and in the run. change: relative to the trial."""

    name: str
    batch: int
    tried: float
    size: float

    @property
    def change(self) -> float:
        return self.size / self.tried - 1

    @property
    def is_large(self) -> bool:
        return abs(self.change) > EXPLAINED


def differences(found: Rivals) -> Iterator[Difference]:
    for name, tried in TRIED.items():
        for batch, of_trial in zip(BATCHES, tried.sizes, strict=True):
            size = found.size(OPAQUE, WORKLOAD, batch, name)
            if size is not None:
                yield Difference(name, batch, of_trial, size)


def trial_sentences(found: Rivals) -> tuple[str, ...]:
    """Say where Kafka's formats differ from the trial by more than 5 %, and why."""
    large = [each for each in differences(found) if each.is_large and each.name in (BASE_FORMAT, COLUMNAR)]
    if not large:
        return ()
    counts = {batch: found.batch_counts.get(Key(OPAQUE, WORKLOAD, batch, CODEC, BASE_FORMAT)) for batch in BATCHES}
    parts = [f"{each.name} {each.tried:.0f} ({each.size:.0f} here)" for each in large if each.batch == large[0].batch]
    first = f"Bytes per record in an earlier trial, in batches of {large[0].batch}: {', '.join(parts)}."
    why = (
        "It took about 50 batches of seed 7, with smaller records than most, and no producer state. "
        f"This run took {counts[large[0].batch]} of another seed."
    )
    return (f"{first} {why}",)


def trial_table(found: Rivals) -> Table:
    return Table(
        name="rivals-trial",
        caption=f"An earlier trial and this run: bytes per record of {WORKLOAD}, {CODEC} 3",
        columns=(
            *plain_columns("container", "records per batch"),
            Column(name="trial", digits=1),
            Column(name="this run", digits=1),
            *plain_columns("difference", "reason"),
        ),
        rows=tuple(
            (
                each.name,
                each.batch,
                each.tried,
                each.size,
                percent(each.change),
                "; ".join(TRIED[each.name].reasons) if each.is_large else None,
            )
            for each in differences(found)
        ),
        notes=("Differences above 5 % have a reason. The trial had seed 7 and one-shot zstd.",),
    )
