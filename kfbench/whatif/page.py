"""The answer of `kfbench what-if` as an HTML page, with a JSON file next to it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from kfbench.formats import BASE_FORMAT, FORMATS, SHIPPED
from kfbench.money import month_facts
from kfbench.present import look
from kfbench.present.calculator.data import (
    NONE,
    Content,
    Numbers,
    explorer_parts,
    format_sets,
    mean_settings,
    script_json,
)
from kfbench.present.calculator.rules import STOPS, equal_records
from kfbench.present.names import in_order
from kfbench.present.page import html, place
from kfbench.present.table import Column, Table, listed, plain_columns
from kfbench.present.views import table_json
from kfbench.text import percent
from kfbench.whatif.answer import WhatIf, saving
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.notes import answer_notes
from kfbench.whatif.rate import DAY_S, MB
from kfbench.whatif.summary import (
    MOST_TOPICS,
    NO_CHANGE,
    VARIES,
    V2Choice,
    all_topics_table,
    best_choice,
    codec_words,
    dollars_of,
    less_or_more,
    log_line,
    new_format_arms,
    recorded_words,
    summary_tables,
)
from kfbench.whatif.tables import TableSection, sections

THIS_LOG: Final = "this log"
MOST_RECORDS: Final = 100_000  # per batch, for the choice of a time span
MOST_NAMES: Final = 3  # the largest number of topics that the title names


def publish(answer: WhatIf, out: Path) -> Path:
    """Render an answer into a new folder under `out`; return the folder."""
    return place(dict(render(answer)), out, f"what-if-{datetime.now(UTC):%Y-%m-%d}")


def render(answer: WhatIf) -> Iterator[tuple[str, bytes]]:
    """Yield every file of the report: its path in the report and its bytes."""
    topics = [Path(topic).name for topic in answer.topics]
    page = {
        "title": f"What if: {listed(topics) if len(topics) <= MOST_NAMES else f'{len(topics)} topics'}",
        "subtitle": log_line(answer),
        "lead": list(lead_sentences(answer)),
        "summary": list(summary_tables(answer)),
        "notes": [*(WHATIF_TABLES[name].line(answer) for name in answer.more), *answer_notes(answer)],
        "views": Markup(script_json(shown)) if (shown := views_json(answer)) else "",
        "page": {"plain": None},
        "explorer": explorer_parts(explorer_content(answer)),
        "sections": [
            *([TableSection("Every topic", [all_topics_table(answer)])] if len(answer.by_topic) > MOST_TOPICS else []),
            *sections(answer),
            TableSection("Overhead", [each for each in (overhead_table(answer), groups_table(answer)) if each.rows]),
        ],
    }
    yield "index.html", html(page, list(answer.breakdown), "what-if.html").encode()
    yield "what-if.json", (json.dumps(answer.to_dict(), indent=2) + "\n").encode()


def lead_sentences(answer: WhatIf) -> Iterator[str]:
    """Yield what the log takes now, and what would help most."""
    now, best = dollars_of(answer), best_choice(answer)
    cost = "" if now is None else f", at {now:,.2f} US$ per month"
    subject = "The log takes" if len(answer.by_topic) == 1 else "All topics together take"
    yield f"{subject} {answer.base_bytes:,} bytes {answer.base_words}{cost}."
    saved = saving(best.size_bytes, answer.base_bytes)
    if saved < NO_CHANGE:
        yield "Of what Kafka can do today, nothing takes fewer bytes."
    else:
        about = "about " if best.error_bytes != 0 else ""
        yield f"Of what Kafka can do today, {_choice_words(answer, best)} saves most: {about}{percent(saved)}."
    # The smallest of the formats that Kafka does not have, and that lose nothing of this log.
    new = [arm for arm in new_format_arms(answer) if arm.format not in SHIPPED and not answer.losses.get(arm.format)]
    share = (answer.saving_against_v2(new[0]) or 0.0) if new else 0.0
    if share >= NO_CHANGE:
        codec = "without a codec" if new[0].codec == "none" else f"under {codec_words(new[0])}"
        yield f"A new format, {new[0].format}, takes {percent(share)} less than {BASE_FORMAT} {codec}."
        yield f"Against now, that is {less_or_more(saving(new[0].size_bytes or 0, answer.base_bytes))}."


def _choice_words(answer: WhatIf, choice: V2Choice) -> str:
    if not choice.is_other:
        return "as now"
    if choice.codec == VARIES:
        return "the best choice for each topic"
    codec = "no codec" if choice.codec == "none" else choice.codec
    return codec if choice.batches == recorded_words(answer) else f"{codec} in batches of {choice.batches}"


def views_json(answer: WhatIf) -> dict[str, Any] | None:
    """Return the rows of two questions for the page's script: what fuller batches save, and where the overhead goes."""
    overhead, groups = overhead_table(answer), groups_table(answer)
    cite = {"source": f"kfbench what-if of {listed(answer.topics)}", "revision": "", "table": ""}
    presets: list[dict[str, Any]] = []
    if len(answer.breakdown) > 1 and overhead.rows:
        presets.append(
            {
                "id": "batches", "title": "What would fuller batches save?", "view": "overhead", "drawing": "line",
                "x": "batch_size", "series": "format", "chips": ["format"], "metric": "overhead",
                "is_log": all(size > 0 for row in answer.overhead.values() for size in row.values()),
                "caption": f"{overhead.caption}.",
            }
        )  # fmt: skip
    if groups.rows:
        names = [column.name for column in groups.columns[2:-1]]
        presets.append(
            {
                "id": "fields", "title": "Where does the overhead go?", "view": "groups", "drawing": "bars",
                "label": ["format"], "metric": "all overhead", "beside": names, "base": {"format": BASE_FORMAT},
                "order": "descending", "caption": "Bytes per record. Every field stands in a table below.",
            }
        )  # fmt: skip
    views = {
        "overhead": table_json(overhead, ("batch_size", "format"), cite | {"table": overhead.name}),
        "groups": table_json(groups, ("batches", "format"), cite | {"table": groups.name}),
    }
    return {"views": views, "presets": presets} if presets else None


def overhead_table(answer: WhatIf) -> Table:
    """Return bytes per record besides keys, values and headers, by records per batch and format."""
    return Table(
        name="overhead",
        caption="Bytes per record beside keys, values and headers, in batches of so many of these records; no codec",
        columns=(Column(name="records per batch"), Column(name="format", swatch=True), Column(name="overhead")),
        rows=tuple((size, name, row[name]) for size, row in answer.overhead.items() for name in answer.breakdown
                   if name in row),
    )  # fmt: skip


def groups_table(answer: WhatIf) -> Table:
    """Return the overhead by group of fields, in bytes per record, of each format."""
    of_formats: dict[str, dict[str, float]] = {}
    for name in in_order(answer.breakdown):
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
    codec = next(iter(answer.codecs_now)) if len(answer.codecs_now) == 1 else NONE
    codec = codec if answer.size(BASE_FORMAT, codec) else NONE
    first = settings | {"workload": THIS_LOG, "codec": codec}
    if answer.rate is not None:
        size_bytes = answer.size(BASE_FORMAT, codec) or sum(answer.breakdown[BASE_FORMAT].values())
        first["mb_per_s"] = float(f"{answer.rate.bytes_a_day * size_bytes / answer.base_bytes / DAY_S / MB:.4g}")
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
    """Return the shortest time span of a batch, of the calculator's stops, whose times in v2 take about these bytes.

    delta_bytes: the bytes of timestamp deltas per record.
    """
    count = min(records, MOST_RECORDS)

    def difference(span_ms: int) -> float:
        times = FORMATS[BASE_FORMAT].breakdown(equal_records(count, span_ms), count)["timestamp_delta"]
        return abs(times / count - delta_bytes)

    return min(STOPS["span_ms"], key=difference)
