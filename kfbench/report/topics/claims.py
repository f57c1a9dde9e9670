"""The section of published figures."""

from kfbench.claims import documents
from kfbench.report.section import Section


def claims_section() -> Section:
    checked = [documents.table(name) for name in documents.CLAIMS]
    total = sum(len(document.rows) for document in checked)
    differing = sum(len(document.differing) for document in checked)
    return Section(
        name="claims",
        short="Published figures",
        title="Do the published figures hold?",
        means=f"{differing} of {total} figures in Kafka's own proposals differ from the bytes that the formats "
        "write; the reason stands beside each.",
        tables=tuple(document.to_table() for document in checked),
        wrap=True,
    )
