"""The answer of `kfbench what-if` as an HTML page, with a JSON file next to it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.report.data.shown_formats import in_order
from kfbench.report.files import html
from kfbench.report.publish import place
from kfbench.report.render import look, plots
from kfbench.report.section import Figure
from kfbench.report.topics import breakdown
from kfbench.report.topics.explorer.data import Content, explorer_parts, format_sets
from kfbench.report.topics.explorer.measured import Numbers, mean_settings
from kfbench.report.topics.explorer.rules import STOPS, equal_records
from kfbench.tables import listed
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.headline import cards, lead_sentences
from kfbench.whatif.month import DAY_S, MB
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.notes import answer_notes
from kfbench.whatif.summary import MOST_TOPICS, all_topics_table, log_line, summary_tables
from kfbench.whatif.tables import Section, sections, uniform_table

THIS_LOG: Final = "this log"
MOST_RECORDS: Final = 100_000  # per batch, for the choice of a time span
MOST_NAMES: Final = 3  # the largest number of topics that the title names


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
        traffic=answer.traffic,
        prices=answer.prices,
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
