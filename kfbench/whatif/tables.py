"""The tables of a what-if, which a terminal and a page show, and the text for a terminal."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any, Final, NamedTuple

from kfbench.formats import BASE_FORMAT
from kfbench.present.table import Cell, Column, Table, plain_columns
from kfbench.records import PAYLOAD
from kfbench.text import count_words
from kfbench.whatif.answer import AS_RECORDED, LogSize, WhatIf
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.notes import answer_notes, month_notes, rate_notes, source_notes
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.summary import all_topics_table, log_line, summary_tables
from kfbench.whatif.sums import StoredSource

OF_RECORDS: Final = ("timestamps", "milliseconds", "headers")  # losses counted per record; all others per batch
MOST_FILES: Final = 20  # files with one row each; more files are summed by topic
FORMAT: Final = Column(name="format", swatch=True)

WIDTH: Final = 100
SUMMARY_LINES: Final = 40
FEWEST_NOTES: Final = 3  # lines of notes that are shown in any case
NOTES: Final = "notes"  # the name that asks for every line of notes
TABLES: Final = (
    "all-topics", "sources", "sizes", "savings", "savings-of-v2", "losses", "levels", "fields", "overhead-bytes",
    "rebatched", "rebatched-savings", *WHATIF_TABLES, "break-even", "month", "month-saved",
)  # fmt: skip
MORE: Final = "More: --table NAME (sizes, levels, fields, …, all), {options}--out DIR, --json, --format all."


class TableSection(NamedTuple):
    """Tables under one title."""

    title: str
    tables: list[Table]

    @property
    def name(self) -> str:
        """The anchor of the section in a page."""
        return self.title.lower().replace(" ", "-")


def render_text(answer: WhatIf, names: Sequence[str] = ()) -> str:
    """Return a summary of at most SUMMARY_LINES lines, then the tables with these names.

    The name "notes" asks for every line of the summary's notes, "all" for these and every table.
    """
    wanted = [table for table in tables(answer) if "all" in names or table.name in names]
    has_all_notes = bool({NOTES, "all"} & {*names})
    return "\n\n".join([_summary(answer, has_all_notes), *(table.to_text() for table in wanted)])


def tables(answer: WhatIf) -> list[Table]:
    """Return all tables except the summary, in the order in which they are shown."""
    return [all_topics_table(answer), *(table for section in sections(answer) for table in section.tables)]


def render_first(answer: WhatIf) -> str:
    """Return the beginning of the summary: the log now, and its tables. An answer of v2 alone has the first of them."""
    tables = "\n\n".join(table.to_text() for table in summary_tables(answer))
    return "\n".join([*wrap(log_line(answer), WIDTH), "", tables])


def _summary(answer: WhatIf, has_all_notes: bool) -> str:
    lines = [*render_first(answer).split("\n"), ""]
    whole: Any = {"break_long_words": False, "break_on_hyphens": False}  # paths
    for name in answer.more:
        lines += wrap(WHATIF_TABLES[name].line(answer), WIDTH, subsequent_indent="  ")
    notes = [
        line
        for note in (*answer_notes(answer), *rate_notes(answer), *source_notes(answer))
        for line in wrap(note, WIDTH, subsequent_indent="  ", **whole)
    ]
    room = max(SUMMARY_LINES - len(lines) - 2, FEWEST_NOTES)
    hidden = len(notes) - room
    if hidden > 0 and not has_all_notes:
        notes = [*notes[: room - 1], f"and {count_words(hidden + 1, 'line')} more: --table {NOTES}"]
    options = "" if answer.is_fingerprint else "".join(f"--{name}, " for name in WHATIF_TABLES)
    more = MORE.format(options=options)
    return "\n".join([*lines, *notes, more])


def sections(answer: WhatIf) -> Iterator[TableSection]:
    """Yield all tables except the summary, in the order in which they are shown."""
    yield TableSection("What was read", [source_table(answer)])
    yield TableSection("In each format and codec", [*size_tables(answer), loss_table(answer)])
    if answer.levels:
        yield TableSection("At other levels", [levels_table(answer)])
    yield TableSection("Where each byte goes", [field_table(answer), overhead_table(answer)])
    if answer.rebatched:
        yield TableSection("In other batches", [*rebatched_tables(answer)])
    own = AS_RECORDED if answer.assumed is None else answer.assumed.short_words
    for name in answer.more:
        yield TableSection(WHATIF_TABLES[name].title, [*WHATIF_TABLES[name].tables(answer, own)])
    if answer.break_even:
        yield TableSection("Break-even", [break_even_table(answer)])
    if answer.rate is not None:
        yield TableSection("A month at this rate", [*month_tables(answer)])


def source_table(answer: WhatIf) -> Table:
    """Return a table of the sources that were read: a row per file.

    If there are more than MOST_FILES files, it has a row per topic.
    """
    is_by_topic = len(answer.sources) > MOST_FILES
    groups: dict[str, list[StoredSource]] = {}
    for source in answer.sources:
        groups.setdefault(source.stream if is_by_topic else source.path, []).append(source)
    rows: list[tuple[Cell, ...]] = []
    for name, parts in groups.items():
        sums = [sum(getattr(part, field) for part in parts) for field in ("sound_bytes", "batches", "records")]
        files = sum(part.files for part in parts)
        partitions = None if answer.is_fingerprint else len({part.partition for part in parts})
        rows.append((name, partitions, files, *sums, _kinds(parts)))
    is_by_topic = is_by_topic or answer.is_fingerprint
    names = ("topic" if is_by_topic else "file", "partitions", "files", "bytes now", "batches", "records")
    return Table(
        name="sources",
        caption=f"What was read, by {names[0]}",
        columns=plain_columns(*names, "format and codec now"),
        rows=tuple(rows),
        notes=tuple(source_notes(answer)),
    )


def _kinds(parts: list[StoredSource]) -> str:
    kinds: Counter[str] = Counter()
    for part in parts:
        kinds.update(part.kinds)
    if not kinds:
        return "no batches" if any(part.records for part in parts) else "nothing readable"
    return ", ".join(f"{kind} ({batches:,})" if len(kinds) > 1 else kind for kind, batches in sorted(kinds.items()))


def size_tables(answer: WhatIf) -> Iterator[Table]:
    """Yield three tables by format and codec: bytes, savings of the bytes now, savings of v2 with the same codec."""
    levels = dict.fromkeys(f"{arm.codec} {arm.level}" for arm in answer.arms if arm.level is not None)
    notes = [f"Levels: {', '.join(levels)}."] if levels else []
    if answer.illegal:
        notes.append("; ".join(f"{name} has no {codec}" for name, codec in answer.illegal) + ".")
    yield _by_codec(answer, "sizes", f"Bytes, {answer.batches_words}", lambda arm: arm.size_bytes, notes)
    of_base = f"% saved of the {answer.base_bytes:,} bytes {answer.base_words}; below 0: takes more"
    yield _by_codec(answer, "savings", of_base, lambda arm: _percentage(answer.saving(arm)), digits=1)
    of_v2 = f"% saved of what {BASE_FORMAT} takes with the same codec"
    yield _by_codec(answer, "savings-of-v2", of_v2, lambda arm: _percentage(answer.saving_against_v2(arm)), digits=1)


def levels_table(answer: WhatIf) -> Table:
    """Return the size of v2 at every level of the codecs that have levels, in the log's own batches."""
    rows: list[tuple[Cell, ...]] = []
    for each in answer.levels:
        default_bytes, words = answer.size(BASE_FORMAT, each.codec), ""
        share = None if each.size_bytes is None or not default_bytes else 100 * each.size_bytes / default_bytes
        if each.is_default:
            words = "Kafka's default: lz4's fast mode" if each.codec == "lz4" else "Kafka's default"
        rows.append((each.codec, each.level, each.size_bytes, share, each.cpu_ms_per_mb, words))
    machine = "the machine that made the fingerprint" if answer.is_fingerprint else "this machine"
    return Table(
        name="levels",
        caption=f"{BASE_FORMAT} at other levels, {answer.batches_words}",
        columns=(
            *plain_columns("codec", "level", "bytes"),
            *plain_columns("of the default level's bytes (%)", "CPU (ms per MB)", digits=1),
            Column(name="note"),
        ),
        rows=tuple(rows),
        notes=(f"CPU: one thread of {machine} encodes 1,000,000 bytes of plain v2. Kafka: KIP-390.",),
    )


def month_tables(answer: WhatIf) -> Iterator[Table]:
    """Yield two tables by format and codec: the cost of a month in US$, and the US$ saved per month."""
    costs = f"Storage and network per month, US$, {answer.batches_words}"
    yield _by_codec(answer, "month", costs, lambda arm: month.total if (month := answer.month_of(arm)) else None)
    yield _by_codec(
        answer, "month-saved", "US$ saved per month; below 0: costs more", answer.dollars_saved, month_notes(answer)
    )


def _by_codec(
    answer: WhatIf,
    name: str,
    caption: str,
    value: Callable[[LogSize], Cell],
    notes: Iterable[str] = (),
    digits: int = 2,
) -> Table:
    """Return a table with a row per format and a column per codec. value: computes a table cell from a size."""
    codecs = list(dict.fromkeys(arm.codec for arm in answer.arms))
    cells = {(arm.format, arm.codec): value(arm) for arm in answer.arms}
    return Table(
        name=name,
        caption=caption,
        columns=(FORMAT, *plain_columns(*codecs, digits=digits)),
        rows=tuple((fmt, *(cells.get((fmt, codec)) for codec in codecs)) for fmt in answer.breakdown),
        notes=tuple(notes),
    )


def _percentage(share: float | None) -> float | None:
    return None if share is None else 100 * share


def loss_table(answer: WhatIf) -> Table:
    rows = []
    for name, losses in answer.losses.items():
        words = [f"{count:,} {item}" for item, count in losses.items() if item in OF_RECORDS]
        if of_batches := [f"{field} {count:,}" for field, count in losses.items() if field not in OF_RECORDS]:
            words.append(f"in batches: {', '.join(of_batches)}")
        rows.append((name, "; ".join(words) or "nothing is lost"))
    columns = (FORMAT, Column(name="cannot carry"))
    return Table(name="losses", caption="Losses by format", columns=columns, rows=tuple(rows))


def field_table(answer: WhatIf) -> Table:
    """Return a table of bytes by field and format.

    Fields without bytes are left out. Keys, values and headers come last.
    """
    every = dict.fromkeys(field for name in (BASE_FORMAT, *answer.breakdown) for field in answer.breakdown[name])
    taken = [field for field in every if any(parts.get(field) for parts in answer.breakdown.values())]
    fields = sorted(taken, key=PAYLOAD.__contains__)
    return Table(
        name="fields",
        caption=f"Bytes by field without a codec, {answer.batches_words}",
        columns=(Column(name="field"), *plain_columns(*answer.breakdown)),
        rows=tuple((field, *(parts.get(field) or None for parts in answer.breakdown.values())) for field in fields),
    )


def overhead_table(answer: WhatIf) -> Table:
    """Return a table of the bytes besides keys, values and headers, by format."""
    rows: list[tuple[Cell, ...]] = []
    for name, parts in answer.breakdown.items():
        total_bytes = sum(parts.values())
        overhead_bytes = sum(size_bytes for field, size_bytes in parts.items() if field not in PAYLOAD)
        saved_bytes = sum(answer.breakdown[BASE_FORMAT].values()) - total_bytes
        rows.append((name, total_bytes, overhead_bytes, overhead_bytes / max(answer.records, 1), saved_bytes))
    names = ("bytes", "overhead", "overhead per record", f"saved of {BASE_FORMAT}")
    return Table(
        name="overhead-bytes",
        caption="Overhead without a codec: all bytes but the payload; savings below 0: takes more",
        columns=(FORMAT, *plain_columns(*names)),
        rows=tuple(rows),
    )


def rebatched_tables(answer: WhatIf) -> Iterator[Table]:
    """Yield the tables of bytes and savings in other batches.

    They have only the formats that were compressed in these batches. The option --json has all other formats.
    """
    codecs = list(dict.fromkeys(arm.codec for arm in answer.rebatched))
    groups: dict[tuple[Batching | None, str], dict[str, LogSize]] = {}
    for arm in answer.rebatched:
        if arm.format in answer.compressed_formats:
            groups.setdefault((arm.batching, arm.format), {})[arm.codec] = arm

    def rows(value: Callable[[LogSize], Cell]) -> Iterator[tuple[Cell, ...]]:
        for (batching, name), arms in groups.items():
            assert batching is not None
            linger_ms = round(batching.linger_ms) if batching.linger_ms % 1 == 0 else batching.linger_ms
            per_batch = answer.sent_records / max(next(iter(arms.values())).batches or 0, 1)
            cells = (value(arms[codec]) if codec in arms else None for codec in codecs)
            yield (name, linger_ms, batching.batch_size_bytes, per_batch, *cells)

    columns = (
        FORMAT,
        Column(name="linger", unit="ms", digits=3),
        Column(name="batch.size"),
        *plain_columns("records per batch", *codecs, digits=1),
    )
    yield Table(
        name="rebatched",
        caption="Bytes in batches that other producers would make",
        columns=columns,
        rows=tuple(rows(lambda arm: arm.size_bytes)),
        notes=(
            "batch.size counts uncompressed bytes: a producer that compresses fits more into a batch.",
            "Each producer id is a producer, and records without one come from one producer.",
        ),
    )
    yield Table(
        name="rebatched-savings",
        caption=f"In these batches, % saved of the {answer.base_bytes:,} bytes {answer.base_words}",
        columns=columns,
        rows=tuple(rows(lambda arm: _percentage(answer.saving(arm)))),
    )


def break_even_table(answer: WhatIf) -> Table:
    rows: dict[str, dict[str, str]] = {}
    for each in answer.break_even:
        rows.setdefault(each.format, {})[each.other] = each.words
    others = list(dict.fromkeys(each.other for each in answer.break_even))
    notes = [f"All batches alike, up to {max(answer.overhead, default=0):,}; 11-12: not at 10, at 12."]
    if answer.uniform_records < answer.sent_records:
        notes.append(
            f"Of {answer.uniform_records:,} of the {answer.sent_records:,} records, from all parts of the source."
        )
    return Table(
        name="break-even",
        caption="Records per batch from which a format takes fewer bytes beside the payload, without a codec",
        columns=(FORMAT, *(Column(name=f"than {other}") for other in others)),
        rows=tuple((name, *(row.get(other) for other in others)) for name, row in rows.items()),
        notes=tuple(notes),
    )
