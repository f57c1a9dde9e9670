"""The section that compares figures published in Kafka's proposals with the bytes that the formats write."""

from collections.abc import Iterator
from typing import Final

import pandas as pd

from kfbench.claims import documents
from kfbench.claims.claim import ClaimsTable
from kfbench.claims.kip98 import BATCHES
from kfbench.report.data.class_times import TIMED
from kfbench.report.data.shown_formats import NEW
from kfbench.report.data.views import Views
from kfbench.report.data.words import more_or_less
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure
from kfbench.tables import Column, Table

KIP98: Final = "kip98"
LONE_RECORDS: Final = "One record per batch"
LONE: Final = (
    "KIP-931's v3 in {count} workloads with one record per batch, without a codec. "
    "Its CPU time against v2's: encode {encode}, decode {decode}, append {append} (geometric means)."
)
PUBLISHED: Final = "KIP-98, published"


def claims_answer(run: Views) -> Answer:
    checked = [documents.table(name) for name in documents.CLAIMS]
    total = sum(len(document.rows) for document in checked)
    overheads = kip98_overheads(next(document for document in checked if document.name == KIP98))
    differing = sum(len(document.differing) for document in checked)
    return Answer(
        means=f"{differing} of {total} figures in Kafka's own proposals differ from the bytes that the formats "
        "write. Each table gives the reasons.",
        prose=tuple(_lone_records(run)),
        figures=(kip98_figure(overheads),),
        tables=tuple(document.to_table() for document in checked),
        more=(kip98_table(overheads),),
        wrap=True,
    )


def _lone_records(run: Views) -> Iterator[str]:
    """Give v3's CPU time in the workloads of one record per batch, if the run timed all three operations there."""
    for each in run.verdicts.classes:
        times = {operation: each.cpu.get((operation, NEW)) for operation in TIMED}
        if each.name == LONE_RECORDS and all(times.values()):
            words = {operation: more_or_less(time.mean) for operation, time in times.items() if time}
            yield LONE.format(count=len(each.workloads), **words)


def kip98_overheads(document: ClaimsTable) -> pd.DataFrame:
    """Return overhead in bytes per record: as KIP-98 published it, of its layout, of v1 and of the released v2.

    A row per batch size. Records are 1 ms apart.
    """
    old, new = document.rows[: len(BATCHES)], document.rows[len(BATCHES) : 2 * len(BATCHES)]
    lines = {
        "v1": [row.values["v1"] for row in old],
        "v2": [row.values["v2_1ms_apart"] for row in new],
        KIP98: [row.values["kip98_1ms_apart"] for row in new],
        PUBLISHED: [row.values["published"] for row in new],
    }
    frame = pd.DataFrame(lines, index=list(BATCHES), dtype=float)
    return frame.div(frame.index, axis=0)


def kip98_table(frame: pd.DataFrame) -> Table:
    return Table(
        name="claims-kip98",
        caption="KIP-98: overhead in bytes per record, with records 1 ms apart",
        columns=(Column(name="records per batch"), *(Column(name=name, digits=2) for name in frame)),
        rows=tuple((int(size), *map(float, frame.loc[size])) for size in frame.index),
    )


def kip98_figure(frame: pd.DataFrame) -> Figure:
    first, last = frame.index[0], frame.index[-1]
    ends = "; ".join(f"{name} {frame.at[first, name]:.2f} and {frame.at[last, name]:.2f}" for name in frame)
    return Figure(
        name="claims-kip98",
        svg=plots.overhead(frame),
        alt=f"Overhead in bytes per record at {first} and {last} records per batch: {ends}",
        caption="The overhead that KIP-98 published, and the bytes of its layout, of v1 and of the released v2. "
        "Records are 1 ms apart. Both axes are logarithmic.",
        numbers="claims-kip98",
    )
