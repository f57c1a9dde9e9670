"""The answer of `kfbench what-if` as an HTML page, with a JSON file next to it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from kfbench.report.files import html
from kfbench.report.publish import place
from kfbench.report.render import look, plots
from kfbench.report.section import Figure
from kfbench.report.topics import breakdown
from kfbench.report.topics.explorer.data import explorer_parts
from kfbench.tables import listed
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.headline import cards, lead_sentences
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.notes import answer_notes
from kfbench.whatif.page_explorer import explorer_content
from kfbench.whatif.summary import MOST_TOPICS, all_topics_table, log_line, summary_tables
from kfbench.whatif.tables import Section, sections, uniform_table

MOST_NAMES = 3  # the largest number of topics that the title names


def publish(answer: WhatIf, out: Path) -> Path:
    """Render an answer into a new folder under `out`; return the folder."""
    return place(dict(render(answer)), out, f"what-if-{datetime.now(UTC):%Y-%m-%d}")


def render(answer: WhatIf) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the report: its path in the report and its bytes."""
    figures = tuple(_figures(answer))
    topics = [Path(topic).name for topic in answer.topics]
    figure_tables = [uniform_table(answer), breakdown.groups_table(field_groups(answer), name="groups")]
    page = {
        "title": f"What if: {listed(topics) if len(topics) <= MOST_NAMES else f'{len(topics)} topics'}",
        "subtitle": log_line(answer),
        "lead": list(lead_sentences(answer)),
        "cards": list(cards(answer)),
        "summary": list(summary_tables(answer)),
        "notes": [*(WHATIF_TABLES[name].line(answer) for name in answer.more), *answer_notes(answer)],
        "figures": figures,
        "explorer": explorer_parts(explorer_content(answer)),
        "sections": [
            *([Section("Every topic", [all_topics_table(answer)])] if len(answer.by_topic) > MOST_TOPICS else []),
            *sections(answer),
            Section("Numbers of the figures", [table for table in figure_tables if table.rows]),
        ],
    }
    yield "index.html", html(page, list(answer.breakdown), "what-if.html").encode()
    yield "what-if.json", (json.dumps(answer.to_dict(), indent=2) + "\n").encode()
    for figure in figures:
        yield f"figures/{figure.name}.svg", figure.svg.encode()


def _figures(answer: WhatIf) -> Iterator[Figure]:
    overhead = pd.DataFrame(dict(answer.overhead)).T
    drawn = overhead[[name for name in look.STYLES if name in overhead]]
    if len(drawn) > 1 and (drawn > 0).all(axis=None):
        yield Figure(
            name="overhead",
            svg=plots.overhead(drawn),
            alt="Bytes per record beside the payload over records per batch, on these records.",
            caption="These records in batches of so many: bytes per record beside keys, values and headers; no codec.",
            numbers="overhead",
        )
    if panels := field_groups(answer):
        yield Figure(
            name="fields",
            svg=plots.stacked(panels),
            alt=f"Overhead in bytes per record by group of fields, {answer.batches_words}.",
            caption=f"Where the overhead goes, {answer.batches_words}; every field stands in the table beneath.",
            numbers="groups",
        )


def field_groups(answer: WhatIf) -> dict[str, pd.DataFrame]:
    """Return the data of the figure that shows the overhead by group of fields.

    The key describes the batches. The table has a row per format and a column per group, in bytes per record. Without a
    format that can be drawn, the result is empty.
    """
    drawn = [name for name in look.STYLES if name in answer.breakdown]
    fields = pd.DataFrame({name: answer.breakdown[name] for name in drawn}) / max(answer.records, 1)
    if fields.empty:
        return {}
    return {answer.batches_words: fields.groupby([plots.group_of(field) for field in fields.index]).sum(min_count=1).T}
