"""The section that compares figures published in Kafka's proposals with the bytes that the formats write."""

from typing import Final

import pandas as pd

from kfbench.claims import documents
from kfbench.claims.claim import ClaimsTable
from kfbench.claims.kip98 import BATCHES
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure
from kfbench.tables import Column, Table

KIP98: Final = "kip98"
PUBLISHED: Final = "KIP-98, published"


def claims_answer() -> Answer:
    checked = [documents.table(name) for name in documents.CLAIMS]
    total = sum(len(document.rows) for document in checked)
    overheads = kip98_overheads(next(document for document in checked if document.name == KIP98))
    differing = sum(len(document.differing) for document in checked)
    return Answer(
        means=f"{differing} of {total} figures in Kafka's own proposals differ from the bytes that the formats "
        "write. Each table gives the reasons.",
        figures=(kip98_figure(overheads),),
        tables=tuple(document.to_table() for document in checked),
        more=(kip98_table(overheads),),
        wrap=True,
    )


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
