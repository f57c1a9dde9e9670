"""The summary of a what-if is short, marks the smallest row, and has one row per topic."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kfbench import read_log
from kfbench.formats import FORMATS
from kfbench.money import month
from kfbench.present.table import Table
from kfbench.sources import Columns
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import LEVELS, MAIN_FORMATS, what_if
from kfbench.whatif.rate import Rate, TopicRate, rate_of_user
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.summary import (
    MOST_TOPICS,
    all_topics_table,
    change_words,
    log_line,
    new_formats_table,
    summary_tables,
    today_table,
    topics_table,
)
from kfbench.whatif.tables import TABLES, WIDTH, levels_table, render_text, tables
from tests.common import numbers_in
from tests.recorded import FOLDER, NAMES

SUMMARY_LINES = 40


def rows_of(table: Table) -> list[dict[str, Any]]:
    return [dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows]


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> WhatIf:
    """Return the what-if answer for ten topics. Nine have one partition, one has two."""
    root = tmp_path_factory.mktemp("topics")
    for i, name in enumerate([*sorted(NAMES)[:10], "activity-none.log"]):
        path = root / (f"topic-{min(i, 9)}-{i // 10}") / "00000000000000000000.log"
        path.parent.mkdir()
        path.write_bytes((FOLDER / name).read_bytes())
    return what_if(root)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_the_marked_row_is_the_smallest_and_the_summary_is_short(name: str) -> None:
    found = what_if(FOLDER / name)
    rows = rows_of(today_table(found))
    [best] = [row for row in rows if "best" in row["mark"]]
    assert best["bytes"] == min(row["bytes"] for row in rows)
    assert [row["bytes"] for row in rows if "now" in row["mark"]] == [found.base_bytes]
    of_v2 = [arm for arm in (*found.arms, *found.rebatched) if arm.format == "v2"]
    assert found.best in of_v2 and found.best.size_bytes == min(arm.size_bytes or 0 for arm in of_v2)
    assert best["bytes"] <= (found.best.size_bytes or 0)
    lines = render_text(found).splitlines()
    assert len(lines) <= SUMMARY_LINES and max(map(len, lines)) <= WIDTH


def test_many_topics_have_a_row_each_and_fit(topics: WhatIf) -> None:
    assert len(topics.by_topic) == 10
    table, *_ = summary_tables(topics)
    rows = rows_of(table)
    assert len(rows) == MOST_TOPICS and sum(row["bytes now"] for row in rows) == topics.now_bytes
    assert [row["bytes now"] for row in rows[:-1]] == sorted((row["bytes now"] for row in rows[:-1]), reverse=True)
    lines = render_text(topics).splitlines()
    assert len(lines) <= SUMMARY_LINES and max(map(len, lines)) <= WIDTH
    for each in topics.by_topic[::3]:
        alone = what_if([source.path for source in topics.sources if source.topic == each.topic], ["v2"])
        assert (each.base_bytes, each.records) == (alone.base_bytes, alone.records)
        assert each.best.size_bytes == alone.best.size_bytes
        assert (each.best.codec, each.best.batching) == (alone.best.codec, alone.best.batching)


def test_formats_are_v2_v3_columnar_and_the_smallest_other_lossless_one() -> None:
    for name in ("service-headers.log", "transactions.log", "activity-v0-none.log"):
        found, every = what_if(FOLDER / name, batchings=[]), what_if(FOLDER / name, "all", batchings=[])
        with_zstd = [each for each in FORMATS if "zstd" in FORMATS[each].capabilities.codecs]
        lossless = [each for each in with_zstd if each not in MAIN_FORMATS and not every.losses[each]]
        sizes = {each: every.size(each, "none") or 0 for each in lossless}
        *main, other = found.breakdown
        assert tuple(main) == MAIN_FORMATS and sizes[other] == min(sizes.values())


def test_a_level_takes_the_bytes_of_its_encoding() -> None:
    found, log = what_if(FOLDER / "activity-lz4.log", ["v2"]), read_log(FOLDER / "activity-lz4.log")
    assert [(each.codec, each.level) for each in found.levels] == [
        (codec, level) for codec, levels in LEVELS.items() for level in levels
    ]
    for each in random.Random(1).sample(found.levels, 8):
        data = FORMATS["v2"].encode(log.source_records, log.bounds, each.codec, each.level, log.batch_fields).data
        assert (each.size_bytes, each.error_bytes) == (len(data), 0)
        assert each.cpu_ms_per_mb > 0
    for each in found.levels:
        if each.is_default:
            assert each.size_bytes == found.size("v2", each.codec)


def test_the_table_of_levels_has_their_bytes_and_shares_of_the_default() -> None:
    found = what_if(FOLDER / "activity-lz4.log", ["v2"])
    default = {each["codec"]: each["size_bytes"] for each in found.to_dict()["sizes"] if each["format"] == "v2"}
    rows = rows_of(levels_table(found))
    for row, each in zip(rows, found.levels, strict=True):
        assert (row["codec"], row["level"], row["bytes"]) == (each.codec, each.level, each.size_bytes)
        assert row["of the default level's bytes"] == pytest.approx(100 * row["bytes"] / default[each.codec])
        assert row["CPU"] == each.cpu_ms_per_mb
    assert {(row["codec"], row["level"]) for row in rows if row["note"]} == {("gzip", 6), ("lz4", 9), ("zstd", 3)}


def test_the_first_line_has_the_bytes_records_and_batches_of_the_log() -> None:
    log = read_log(path := FOLDER / "activity-lz4.log")
    records, batches = len(log.source_records), len(log.batch_rows)
    said = log_line(what_if(path, ["v2"], ["none"])).partition(": ")[2]
    assert numbers_in(said) == [path.stat().st_size, records, round(records / batches, 1)] == [60_721, 600, 20]


def test_new_formats_are_compared_with_v2_in_the_same_codec_and_batches() -> None:
    found = what_if(FOLDER / "service-headers.log")
    for row in rows_of(new_formats_table(found)):
        saving = 1 - row["bytes"] / (found.best.size_bytes or 1)
        assert row["change"] == change_words(saving)


def test_it_goes_to_pandas_and_into_a_notebook() -> None:
    found = what_if(FOLDER / "telemetry.log", ["v2", "v3"], ["none", "lz4"])
    rows = found.to_pandas()
    assert len(rows) == len(found.arms) + len(found.rebatched) and rows["is_best"].sum() == 1
    assert rows[rows["is_best"]]["size_bytes"].item() == found.best.size_bytes
    assert found._repr_html_().count("<tr") == len(rows) + 1


def test_the_names_of_tables_are_those_that_can_be_asked_for(topics: WhatIf) -> None:
    given = replace(topics, rate=rate_of_user(1.0))
    assert tuple(table.name for table in tables(given)) == TABLES


def test_topics_that_need_nothing_are_kept_and_the_best_of_each_is_a_row(topics: WhatIf) -> None:
    [row] = [row for row in rows_of(today_table(topics)) if row["batches"] == "best per topic"]
    best = [min(each.best.size_bytes or 0, each.base_bytes) for each in topics.by_topic]
    assert row["bytes"] == sum(best)
    compressed = next(each for each in topics.by_topic if each.best.size_bytes)
    kept = replace(compressed, best=replace(compressed.best, size_bytes=compressed.base_bytes + 1))
    shown = rows_of(topics_table(replace(topics, by_topic=(kept, compressed))))[0]
    assert (shown["change"], shown["with"]) == ("no change", "as now")


def test_savings_and_dollars_of_a_topic_are_its_own(topics: WhatIf) -> None:
    rates = {"telemetry": 2e9, "other": 1e9}
    one, other, *_ = topics.by_topic
    stream = TopicRate(
        name="", size_bytes=1, first_ms=0, last_ms=1, bulk_first_ms=0, bulk_last_ms=1, strange=0, bytes_a_day=0.0
    )
    streams = tuple(
        replace(stream, name=each.topic, bytes_a_day=rate)
        for each, rate in zip((one, other), rates.values(), strict=True)
    )
    rate = Rate(bytes_a_day=3e9, told_by="timestamps", streams=streams, untold_bytes=topics.base_bytes // 2)
    rated = replace(topics, rate=rate)
    found = rated.to_dict()["by_topic"]
    for each, values in zip(topics.by_topic, found, strict=True):
        assert values["saving"] == values["best"]["saving"] == each.saving
        assert (values["best"]["month"] is None) == (each not in (one, other))
    wanted = [month(2e9, topics.traffic, topics.prices).total, month(1e9, topics.traffic, topics.prices).total]
    shares = [(each.least_bytes or 0) / each.base_bytes for each in (one, other)]
    table = today_table(rated)
    [row] = [row for row in rows_of(table) if row["batches"] == "best per topic"]
    of_all = rated.month(row["bytes"])  # as in the other rows, because some topics have no rate
    assert of_all is not None and row["US$/month"] == of_all.total
    [row] = [
        row for row in rows_of(today_table(replace(rated, by_topic=(one, other)))) if row["batches"] == "best per topic"
    ]
    assert row["US$/month"] == pytest.approx(sum(a * b for a, b in zip(wanted, shares, strict=True)))
    assert found[0]["best"]["saving_a_month"] == pytest.approx(wanted[0] * (one.saving or 0))
    by_user = replace(topics, rate=Rate(bytes_a_day=3e9, told_by="user"))
    shares_of_all = [by_user.month_of_topic(each, each.base_bytes) for each in topics.by_topic]
    assert sum(each.total for each in shares_of_all if each) == pytest.approx(
        month(3e9, topics.traffic, topics.prices).total
    )


def test_no_topic_takes_more_than_now(topics: WhatIf) -> None:
    kept = tuple(replace(each, base_bytes=1) for each in topics.by_topic)
    assert {row["bytes then"] for row in rows_of(all_topics_table(replace(topics, by_topic=kept)))} == {1}


def test_logs_and_tables_together_have_one_row_of_now(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("v,t\n" + "".join(f"{i},{1_700_000_000_000 + i}\n" for i in range(50)))
    columns = Columns(value="v", timestamp="t")
    found = what_if([table, FOLDER / "activity-lz4.log"], ["v2"], batchings=[Batching(5, 1 << 14)], columns=columns)
    rows = rows_of(today_table(found))
    assert [row["bytes"] for row in rows if "now" in row["mark"]] == [found.base_bytes]


def test_an_estimated_best_says_so() -> None:
    found = what_if(FOLDER / "activity-none.log", ["v2"], ["none", "zstd"], batchings=[], sample_bytes=1)
    exact = what_if(FOLDER / "activity-none.log", ["v2"], ["none", "zstd"], batchings=[])

    def mark(answer: WhatIf) -> str:
        [mark] = [row["mark"] for row in rows_of(today_table(answer)) if "best" in row["mark"]]
        return str(mark)

    def with_errors(error_bytes: int) -> WhatIf:
        return replace(exact, levels=tuple(replace(each, error_bytes=error_bytes) for each in exact.levels))

    assert found.best.is_estimate and found.to_dict()["best"]["is_estimate"]
    assert not exact.best.is_estimate and not exact.to_dict()["best"]["is_estimate"]
    assert mark(found) == "best, estimated"  # the error is unknown
    assert mark(with_errors(0)) == "best" and mark(with_errors(1)) == "best, estimated"
    assert mark(with_errors(10_000)) == "best, undecided"


def test_of_levels_with_the_same_bytes_the_lowest_is_shown() -> None:
    found = what_if(FOLDER / "activity-lz4.log", ["v2"], ["zstd"], batchings=[])
    least = min(each.size_bytes or 0 for each in found.levels)
    levels = [replace(each, size_bytes=least) if each.level >= 9 else each for each in found.levels]
    rows = rows_of(today_table(replace(found, levels=tuple(reversed(levels)))))
    assert [row["codec"] for row in rows if row["bytes"] == least] == ["zstd 9"]
