"""The answer of `kfbench what-if` as a page: from the values of its JSON, which lies beside it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.migration.bills import GB
from kfbench.report.publish import html, place
from kfbench.report.render import look, plots
from kfbench.report.render.tables import Cell, Column, Table, listed
from kfbench.report.sections import Figure
from kfbench.report.topics import breakdown
from kfbench.whatif.break_even import Crossing
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.record_times import moment

MOST_NAMES: Final = 10
DAY_MS: Final = 86_400_000
MOST_SOURCES: Final = 50  # rows; more are summed by topic

Answer = Mapping[str, Any]
HEADLINES: Final = {
    "today": "What Kafka has today",
    "proposed": "Proposed, and in no Kafka",
    "own": "This project's own, which nobody has proposed",
}


def publish(found: Answer, out: Path) -> Path:
    """Renders an answer (`WhatIf.to_dict`) into a new folder under `out`, which is returned."""
    files = dict(render(found))
    return place(files, out, f"what-if-{datetime.now(UTC):%Y-%m-%d}")


def render(found: Answer) -> Iterator[tuple[str, bytes]]:
    """(path in the report, bytes) of every file."""
    names = list(found["breakdown"])
    figures = tuple(_figures(found))
    page = {
        "title": f"What if: {_what(found)}",
        "subtitle": f"{found['now_bytes']:,} bytes and {found['records']:,} records, as read.",
        "lead": lead(found),
        "notes": list(_notes(found)),
        "head_table": sizes(found),
        "figures": figures,
        "tables": [
            (title, table)
            for title, table in (
                ("In other batches", rebatched(found)),
                ("Overhead", overhead(found)),
                ("Break-even", break_even(found)),
                ("A month at this rate", months(found)),
                ("Where each byte goes", fields(found)),
                ("Where the overhead goes", breakdown.group_table(_groups(found), name="groups")),
                ("What was read", sources(found)),
            )
            if table.rows
        ],
    }
    yield "index.html", html(page, names, "what-if.html").encode()
    yield "what-if.json", (json.dumps(found, indent=2) + "\n").encode()
    for figure in figures:
        yield f"figures/{figure.name}.svg", figure.svg.encode()


def _what(found: Answer) -> str:
    topics = [Path(topic).name for topic in found["topics"]]
    if len(topics) > 3:
        return f"{len(topics)} topics"
    return listed(topics)


def lead(found: Answer) -> str:
    """The fewest bytes of what can be had today, then of what is proposed and loses nothing, then of what nobody but
    this project has proposed: as recorded, and in other batches."""
    said = {name: "; ".join(map(_would_take, found["headline"][name])) for name in HEADLINES}
    return " ".join(f"{HEADLINES[name]}: {each}." for name, each in said.items() if each)


def _would_take(arm: Mapping[str, Any]) -> str:
    batches = f" in batches of {_batching(arm['batching'])}" if arm["batching"] else ""
    words = f"{arm['format']} with {_codec(arm)}{batches}, {arm['size_bytes']:,} bytes, {_saved(arm, 'saving')}"
    if arm["format"] == BASE_FORMAT or arm["saving_against_v2"] is None:
        return words
    return f"{words} ({_saved(arm, 'saving_against_v2')} than {BASE_FORMAT} with the same codec)"


def _notes(found: Answer) -> Iterator[str]:
    if found["lost_bytes"]:
        yield f"Left out: {100 * found['lost_share']:.2f} % of the bytes, damaged or unreadable; the rest is analysed."
    if found["assumed_batching"]:
        names = [Path(name).name for name in found["assumed_of"]]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield f"No batches in {', '.join(names[:MOST_NAMES])}{more}; assumed: {_batching(found['assumed_batching'])}."
    ahead = sum(source["ahead"] for source in found["sources"])
    if ahead:
        yield f"Records far ahead of those that follow: {ahead:,}; their times move no clock in other batches."
    if found["rows_as_records"]:
        yield f"Rows as records: {found['rows_as_records']}."
    sample = found["sample"]
    if sample and sample["plain_bytes"] < sample["of_bytes"]:
        share = 100 * sample["plain_bytes"] / sample["of_bytes"]
        yield (
            f"Bytes under a codec are estimated from {share:.2f} % of the batches ({sample['plain_bytes']:,} bytes, "
            f"seed {sample['seed']}); sizes without a codec are of everything."
        )
        errors = [(arm["size_bytes"], arm["error_bytes"]) for arm in (*found["sizes"], *found["rebatched"])]
        worst = max((error / size for size, error in errors if size and error), default=None)
        if worst is not None:
            yield f"Standard error of an estimate: {100 * worst:.2f} % at most."
        if any(size and error is None for size, error in errors):
            yield "Where one stretch of batches was drawn, the error is unknown."
    if found["payload_left_out"]:
        yield f"Not the same data: {listed(found['payload_left_out'])} cannot carry headers."


def _codec(arm: Mapping[str, Any]) -> str:
    return "no codec" if arm["codec"] == "none" else str(arm["codec"])


def _saved(arm: Mapping[str, Any], of: str) -> str:
    share = 100 * arm[of]
    return f"{share:.1f} % less" if share >= 0 else f"{-share:.1f} % more"


def _batching(batching: Mapping[str, Any]) -> str:
    return Batching(**batching).words


def _by_codec(arms: Sequence[Mapping[str, Any]], value: str) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """The codecs, and format -> {codec: value}."""
    rows: dict[str, dict[str, Any]] = {}
    for arm in arms:
        rows.setdefault(arm["format"], {})[arm["codec"]] = arm[value]
    return list(dict.fromkeys(arm["codec"] for arm in arms)), rows


def sizes(found: Answer) -> Table:
    """Bytes in each format under each codec, and what is saved of the bytes now."""
    codecs, rows = _by_codec(found["sizes"], "size_bytes")
    _, savings = _by_codec(found["sizes"], "saving")
    columns = [Column(name="format", swatch=True)]
    columns += [Column(name=codec, unit="bytes") for codec in codecs]
    columns += [Column(name=codec, unit="% saved", digits=1) for codec in codecs]
    body: list[tuple[Cell, ...]] = []
    for name, row in rows.items():
        saved = [_percent(savings[name].get(codec)) for codec in codecs]
        body.append((name, *(row.get(codec) for codec in codecs), *saved))
    return Table(
        name="sizes",
        caption=f"Bytes in each format and codec, {_as_now(found)}; {found['base_bytes']:,} {found['base_words']}",
        columns=tuple(columns),
        rows=tuple(body),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _as_now(found: Answer) -> str:
    """Which batches sizes are of."""
    return _batching(found["assumed_batching"]) if found["assumed_batching"] else "batches as they are"


def rebatched(found: Answer) -> Table:
    """The same records in other batches: formats that were put through the codecs; the JSON has all others."""
    codecs = list(dict.fromkeys(arm["codec"] for arm in found["rebatched"]))
    rows: dict[tuple[float, int, str], dict[str, Mapping[str, Any]]] = {}
    for arm in found["rebatched"]:
        key = arm["batching"]["linger_ms"], arm["batching"]["batch_size_bytes"], arm["format"]
        rows.setdefault(key, {})[arm["codec"]] = arm
    body: list[tuple[Cell, ...]] = []
    for (linger_ms, size_bytes, name), arms in rows.items():
        if len(arms) == 1 < len(codecs):
            continue
        a_batch = found["sent_records"] / max(next(iter(arms.values()))["batches"], 1)
        sizes = [arms[codec]["size_bytes"] if codec in arms else None for codec in codecs]
        saved = [_percent(arms[codec]["saving"]) if codec in arms else None for codec in codecs]
        body.append((name, linger_ms, size_bytes, a_batch, *sizes, *saved))
    return Table(
        name="rebatched",
        caption=f"Bytes in batches that other producers would make; {found['base_bytes']:,} {found['base_words']}",
        columns=(
            Column(name="format", swatch=True),
            Column(name="linger", unit="ms", digits=0),
            Column(name="batch.size", unit="bytes"),
            Column(name="records", unit="a batch", digits=1),
            *(Column(name=codec, unit="bytes") for codec in codecs),
            *(Column(name=codec, unit="% saved", digits=1) for codec in codecs),
        ),
        rows=tuple(body),
        notes=(
            "batch.size counts uncompressed bytes: a producer that compresses fits more into a batch.",
            "Each producer id is a producer; records without one come from one.",
        ),
    )


def overhead(found: Answer) -> Table:
    """Bytes a record beside the payload in batches of so many: what the picture draws."""
    names = list(found["breakdown"])
    return Table(
        name="overhead",
        caption="Bytes a record beside keys, values and headers, in batches of so many of these records; no codec",
        columns=(Column(name="records a batch"), *(Column(name=name, unit="bytes") for name in names)),
        rows=tuple(
            (int(level), *(row.get(name) for name in names)) for level, row in found["overhead_a_record"].items()
        ),
    )


def break_even(found: Answer) -> Table:
    """From how many records a batch on a format takes fewer bytes than another."""
    rows: dict[str, dict[str, str]] = {}
    for each in found["break_even"]:
        rows.setdefault(each["format"], {})[each["other"]] = Crossing(**each).words
    others = list(dict.fromkeys(other for row in rows.values() for other in row))
    last = max(map(int, found["overhead_a_record"]), default=0)
    return Table(
        name="break-even",
        caption="Records a batch from which a format takes fewer bytes beside the payload, without a codec",
        columns=(Column(name="format", swatch=True), *(Column(name=f"than {other}") for other in others)),
        rows=tuple((name, *(row.get(other) for other in others)) for name, row in rows.items()),
        notes=(f"On these records, all batches alike, up to {last:,}; 11-12: not at 10, at 12.",),
    )


def months(found: Answer) -> Table:
    """What a month costs in each format and codec, and what is saved; the JSON has the bytes too."""
    codecs, costs = _by_codec([arm for arm in found["sizes"] if arm["month"]], "month")
    _, savings = _by_codec(found["sizes"], "saving_a_month")
    body = [
        (
            name,
            *(row[codec]["total"] if codec in row else None for codec in codecs),
            *(savings[name].get(codec) for codec in codecs),
        )
        for name, row in costs.items()
    ]
    traffic, prices = found["traffic"], found["prices"]
    rate = found["rate"] or {"bytes_a_day": 0, "told_by": "nobody", "streams": []}
    told = "the records' timestamps" if rate["told_by"] == "timestamps" else "the user"
    at_rate = (
        f"{rate['bytes_a_day'] / GB:,.3f} GB a day {found['base_words']}, by {told}; read {traffic['fan_out']:g} times"
    )
    kept = f"kept {traffic['replication']} times for {traffic['retention_days']:g} days"
    asked = f"{prices['storage_gb_month']:g} $ a GB and month, {prices['network_gb']:g} $ a GB in or out of a broker"
    return Table(
        name="month",
        caption="Storage and network a month, and what is saved; below 0: costs more",
        columns=(
            Column(name="format", swatch=True),
            *(Column(name=codec, unit="US$") for codec in codecs),
            *(Column(name=codec, unit="US$ saved") for codec in codecs),
        ),
        rows=tuple(body),
        notes=(f"{at_rate}; {kept}.", f"Assumed unless given: {asked}.", *map(_stream, rate["streams"][:MOST_NAMES])),
    )


def _stream(stream: Mapping[str, Any]) -> str:
    """What a rate is worked out from."""
    times = f"times {moment(stream['first_ms'])} to {moment(stream['last_ms'])}"
    bulk = f"{moment(stream['bulk_first_ms'])} to {moment(stream['bulk_last_ms'])}"
    days = (stream["bulk_last_ms"] - stream["bulk_first_ms"]) / DAY_MS
    name, a_day = Path(stream["name"]).name, stream["bytes_a_day"] / GB
    strange = f"; {stream['strange']:,} records with a time that no clock shows" if stream["strange"] else ""
    return f"{name}: {a_day:,.3f} GB a day; {times}; counted, without the ends: {bulk} ({days:,.2f} days){strange}."


def fields(found: Answer) -> Table:
    """Where each byte goes without a codec."""
    names = list(found["breakdown"])
    every = dict.fromkeys(part for name in names for part in found["breakdown"][name])
    rows = [(part, *(found["breakdown"][name].get(part) or None for name in names)) for part in every]
    return Table(
        name="fields",
        caption=f"Bytes without a codec, {_as_now(found)}",
        columns=(Column(name="field"), *(Column(name=name, unit="bytes") for name in names)),
        rows=tuple(row for row in rows if any(row[1:])),
    )


def sources(found: Answer) -> Table:
    """What was read: file by file, or by topic where there are many."""
    each = found["sources"]
    many = len(each) > MOST_SOURCES
    rows: dict[str, list[int]] = {}
    for source in each:
        name = (source["topic"] or source["path"]) if many else source["path"]
        numbers = [1, *(source[column] for column in ("size_bytes", "sound_bytes", "batches", "records"))]
        rows[name] = [a + b for a, b in zip(rows.get(name, [0] * 5), numbers, strict=True)]
    skipped: dict[str, list[int]] = {}
    for other in found["skipped"]:
        skipped.setdefault(other["reason"], []).append(other["size_bytes"])
    return Table(
        name="sources",
        caption="By topic" if many else "By file",
        columns=(
            Column(name="topic" if many else "file"),
            Column(name="files"),
            Column(name="size", unit="bytes"),
            Column(name="read", unit="bytes"),
            Column(name="batches"),
            Column(name="records"),
        ),
        rows=tuple((name, *numbers) for name, numbers in rows.items()),
        notes=tuple(f"Not read: {len(s):,} × {reason} ({sum(s):,} bytes)." for reason, s in sorted(skipped.items())),
    )


def _figures(found: Answer) -> Iterator[Figure]:
    names = [name for name in look.STYLES if name in found["breakdown"]]
    levels = {int(level): row for level, row in found["overhead_a_record"].items()}
    table = pd.DataFrame.from_dict(levels, orient="index")[names] if levels else pd.DataFrame()
    if len(table) > 1 and (table > 0).all(axis=None):
        yield Figure(
            name="overhead",
            svg=plots.overhead(table),
            alt="Bytes a record beside the payload over records a batch, on these records.",
            caption="These records in batches of so many: bytes a record beside keys, values and headers; no codec.",
            numbers="overhead",
        )
    if panels := _groups(found):
        yield Figure(
            name="fields",
            svg=plots.stacked(panels),
            alt=f"Overhead in bytes a record by group of fields, {_as_now(found)}.",
            caption=f"Where the overhead goes, {_as_now(found)}; every field stands in the table beneath.",
            numbers="groups",
        )


def _groups(found: Answer) -> dict[str, pd.DataFrame]:
    """Which batches -> bytes a record by format and group of fields; empty where no format is drawn."""
    groups: dict[str, dict[str, float]] = {}
    for name in (name for name in look.STYLES if name in found["breakdown"]):
        for part, size_bytes in found["breakdown"][name].items():
            if group := plots.group_of(part):
                row = groups.setdefault(name, {})
                row[group] = row.get(group, 0.0) + size_bytes / max(found["records"], 1)
    return {_as_now(found): pd.DataFrame.from_dict(groups, orient="index")} if groups else {}
