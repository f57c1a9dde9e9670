"""The section that compares figures published in Kafka's proposals with the bytes that the formats write."""

from kfbench.claims import documents
from kfbench.report.section import Answer


def claims_answer() -> Answer:
    checked = [documents.table(name) for name in documents.CLAIMS]
    total = sum(len(document.rows) for document in checked)
    differing = sum(len(document.differing) for document in checked)
    return Answer(
        means=f"{differing} of {total} figures in Kafka's own proposals differ from the bytes that the formats "
        "write; the reason stands beside each.",
        tables=tuple(document.to_table() for document in checked),
        wrap=True,
    )
