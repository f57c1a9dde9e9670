"""The answer of `kfbench what-if` as an HTML page, with a JSON file next to it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.migration.bills import month_facts
from kfbench.present import look
from kfbench.present.calculator.data import Content, Numbers, explorer_parts, format_sets, mean_settings
from kfbench.present.calculator.rules import STOPS, equal_records
from kfbench.present.declaration import FigureView
from kfbench.present.drawings import draw
from kfbench.present.folder import place
from kfbench.present.names import in_order
from kfbench.present.page import Figure, html
from kfbench.present.table import Column, Table, listed, plain_columns
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.headline import cards, lead_sentences
from kfbench.whatif.month import DAY_S, MB
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.notes import answer_notes
from kfbench.whatif.summary import MOST_TOPICS, all_topics_table, log_line, summary_tables
from kfbench.whatif.tables import Section, sections, uniform_table

THIS_LOG: Final = "this log"
OVERHEAD: Final = FigureView(
    name="overhead",
    drawing="lines",
    tables=["overhead"],
    alt="Bytes per record beside the payload over records per batch, on these records.",
    caption="These records in batches of so many: bytes per record beside keys, values and headers; no codec.",
)
FIELDS: Final = FigureView(
    name="fields",
    drawing="stacked",
    tables=["groups"],
    alt="Overhead in bytes per record by group of fields.",
    caption="Where the overhead goes; every field stands in the table beneath.",
)
MOST_RECORDS: Final = 100_000  # per batch, for the choice of a time span
MOST_NAMES: Final = 3  # the largest number of topics that the title names


def publish(answer: WhatIf, out: Path) -> Path:
    """Render an answer into a new folder under `out`; return the folder."""
    return place(dict(render(answer)), out, f"what-if-{datetime.now(UTC):%Y-%m-%d}")


def render(answer: WhatIf) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the report: its path in the report and its bytes."""
    figures = tuple(_figures(answer))
    topics = [Path(topic).name for topic in answer.topics]
    figure_tables = [uniform_table(answer), groups_table(answer)]
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
    overhead, groups = uniform_table(answer), groups_table(answer)
    sizes = [cell for row in overhead.rows for cell in row[1:] if isinstance(cell, int | float)]
    if len(answer.breakdown) > 1 and sizes and min(sizes) > 0:
        yield from filter(None, [draw(OVERHEAD, [overhead])])
    if groups.rows:
        yield from filter(None, [draw(FIELDS, [groups])])


def groups_table(answer: WhatIf) -> Table:
    """Return the overhead by group of fields, in bytes per record, of each format that figures draw."""
    drawn = [name for name in look.STYLES if name in answer.breakdown]
    of_formats: dict[str, dict[str, float]] = {}
    for name in drawn:
        of_format = of_formats.setdefault(name, {})
        for field, size_bytes in answer.breakdown[name].items():
            if group := look.group_of(field):
                of_format[group] = of_format.get(group, 0.0) + size_bytes / max(answer.records, 1)
    shown = [group for group in look.GROUPS if any(group in of_format for of_format in of_formats.values())]
    return Table(
        name="groups",
        caption="Overhead by group of fields, bytes per record",
        columns=(
            Column(name="batches"),
            Column(name="format", swatch=True),
            *plain_columns(*shown),
            Column(name="all overhead"),
        ),
        rows=tuple(
            (answer.batches_words, name, *(of_format.get(group) for group in shown), sum(of_format.values()))
            for name, of_format in of_formats.items()
        ),
    )


def explorer_content(answer: WhatIf) -> Content:
    """Return what the explorer of this log shows: the means of its records first, and its bytes as a workload."""
    settings = log_settings(answer)
    first = settings | {"workload": THIS_LOG}
    if answer.rate is not None:  # the explorer starts without a codec
        plain_share = sum(answer.breakdown[BASE_FORMAT].values()) / answer.base_bytes
        first["mb_per_s"] = float(f"{answer.rate.bytes_a_day * plain_share / DAY_S / MB:.4g}")
    sizes: Numbers = {}
    for arm in answer.arms:
        if arm.size_bytes is not None:
            sizes.setdefault(arm.codec, {})[arm.format] = round(arm.size_bytes / max(answer.records, 1), 4)
    return Content(
        workloads=[{"name": THIS_LOG, "settings": settings, "bytes": sizes, "cpu": {}}],
        sets={"This log's formats": in_order(answer.breakdown), **format_sets()},
        first=first,
        is_sampled=answer.sample is not None and answer.sample.is_partial,
        month=month_facts(answer.traffic, answer.prices),
    )


def log_settings(answer: WhatIf) -> Numbers:
    """Return the means of the log's records as settings of the explorer."""
    fields, records = answer.breakdown[BASE_FORMAT], max(answer.records, 1)
    settings = mean_settings(fields, records, max(sum(source.batches for source in answer.sources), 1))
    settings["span_ms"] = _span_ms(fields["timestamp_delta"] / records, settings["records"])
    if not settings["headers"]:  # their lengths have no mean
        settings = {name: value for name, value in settings.items() if not name.startswith("header_")}
    return settings


def _span_ms(delta_bytes: float, records: int) -> int:
    """Return the shortest time span of a batch, of the slider's stops, whose times in v2 take about these bytes.

    delta_bytes: the bytes of timestamp deltas per record.
    """
    count = min(records, MOST_RECORDS)

    def difference(span_ms: int) -> float:
        times = FORMATS[BASE_FORMAT].breakdown(equal_records(count, span_ms), count)["timestamp_delta"]
        return abs(times / count - delta_bytes)

    return min(STOPS["span_ms"], key=difference)
