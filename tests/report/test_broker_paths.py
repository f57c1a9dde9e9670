"""Tables of broker measurements agree with the rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.report.data.paths import WORK, Paths, path_of, work_words
from kfbench.report.data.results import Results
from kfbench.report.topics import broker_paths, conversions, proposals
from kfbench.store import Run
from kfbench.tables import Interval
from tests.report.broker_rows import CODECS, broker_rows, changed
from tests.report.columns import column, results_of, row_of, sections_of, some

Row = dict[str, Any]


def test_a_path_table_is_what_the_rows_say(paths: Paths) -> None:
    table = some(broker_paths.path_table(paths, "append", shown=True))
    assert set(column(table, "format")) == set(broker_paths.SHOWN)
    row = row_of(table, format="v0", codec="gzip 6")
    assert row["batches"] == "rewritten"
    assert row["recompressed (bytes per record)"] == 120.0
    assert row["extra memory (KiB)"] == 4.0
    assert isinstance(row["CPU (× v2)"], Interval)
    assert row["CPU (× v2)"].median == pytest.approx(row["CPU (× v2 append)"], rel=0.02)
    assert row_of(table, format="v2", codec="gzip 6")["batches"] == "in place"
    others = some(broker_paths.path_table(paths, "append", shown=False))
    assert set(column(others, "format")) == {"enriched"}


def test_a_ratio_is_paired_with_the_same_path_and_codec(paths: Paths) -> None:
    rows = {(r.format, r.with_codec): r for r in paths.of("append") if r.cell_id == paths.reference("append")}
    ratio = some(paths.ratio(rows["v3", "gzip 6"]))
    by_round = np.array(rows["v3", "gzip 6"].cpu_ns) / np.array(rows["v2", "gzip 6"].cpu_ns)
    assert ratio.median == pytest.approx(np.median(by_round))


def test_what_failed_or_was_left_out_is_shown_with_its_reason(paths: Paths) -> None:
    append = some(broker_paths.path_table(paths, "append", shown=True))
    row = row_of(append, format="v0", codec="zstd 3")
    assert (row["batches"], row["lost, or why not measured"]) == ("skipped", "v0 has no zstd")
    assert row["CPU (× v2)"] is None
    through = some(broker_paths.path_table(paths, "mirror-through", shown=True))
    row = row_of(through, format="v0", codec="none")
    assert (row["batches"], row["lost, or why not measured"]) == ("error", "AssertionError: it broke")


def test_every_row_has_its_place_in_a_table_even_on_a_path_of_another_name(tmp_path: Path) -> None:
    def rename(row: Row) -> None:
        row["operation"] = {"compact": "compact-holes", "mirror": "shred"}.get(row["operation"], row["operation"])

    found = changed(tmp_path, rename)
    assert {"compact-holes", "shred"} <= set(found.within("keep"))
    assert path_of("compact-holes").title == "Compact holes"
    table = some(broker_paths.path_table(found, "shred", shown=True))
    assert len(table.rows) == len(CODECS) * 5


def test_a_run_in_which_every_path_failed_says_why(tmp_path: Path) -> None:
    def fail(row: Row) -> None:
        row |= {"status": "error", "error": "all is broken"}

    found = changed(tmp_path, fail)
    table = some(broker_paths.path_table(found, "append", shown=True))
    assert set(column(table, "lost, or why not measured")) == {"all is broken"}
    assert proposals.proposals_table(found) is None
    assert broker_paths.argued_table(found) is None
    assert broker_paths.append_ratio_panels(found) == {}
    assert found.noise is None


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"batches_in_place": 4}, "in place"),
        ({"batches_in_place": 3, "batches_rewritten": 1}, "in place 75 %, rewritten 25 %"),
        ({"batches_untouched": 4}, "zero-copy"),
        ({}, "zero-copy"),
    ],
)
def test_what_became_of_the_batches_is_put_into_words(tmp_path: Path, counts: Row, words: str) -> None:
    def set_counts(row: Row) -> None:
        row |= dict.fromkeys(WORK, 0) | counts

    found = changed(tmp_path, set_counts)
    (row,) = [
        row for row in found.of("fetch") if (row.format, row.with_codec, row.cell_id) == ("v2", "none", "broker-10")
    ]
    assert work_words(row) == words


def test_a_path_that_was_measured_elsewhere_is_shown_where_it_was(tmp_path: Path) -> None:
    """Blocks of a sweep measure different paths at different axes.

    Each path is shown with the cell in which it was measured.
    """

    def move(row: Row) -> None:
        if row["operation"] == "seek-offset":
            row |= {"cell_id": f"seek-{row['batch_size']}", "timestamp_spread_ms": 8192}

    found = changed(tmp_path, move)
    seek = some(broker_paths.path_table(found, "seek-offset", shown=True))
    append = some(broker_paths.path_table(found, "append", shown=True))
    assert "8,192 ms" in seek.caption and "8,192 ms" not in append.caption
    assert len(seek.rows) == len(append.rows)
    table = some(broker_paths.ratio_table(found, "append"))
    assert [c.name for c in table.columns][:2] == [
        "records per batch",
        "codec",
    ]  # the axis of seek-offset is not shown for append


def test_a_lookup_is_stated_by_the_call(paths: Paths) -> None:
    table = some(broker_paths.path_table(paths, "seek-offset", shown=True))
    labels = [c.label for c in table.columns]
    assert "CPU (ns per call)" in labels and "CPU (× v2 append)" not in labels
    assert row_of(table, format="v2", codec="none")["read (bytes per call)"] == 122_000


def test_the_ratios_argued_with_stand_next_to_the_bytes(paths: Paths) -> None:
    table = some(broker_paths.argued_table(paths))
    assert len(table.rows) == 2 * len(CODECS)
    row = row_of(table, **{"records per batch": 10, "codec": "gzip 6"})
    assert (row["v0 recompresses (bytes per record)"], row["v1 recompresses (bytes per record)"]) == (120.0, 0.0)
    assert (row["v2 decompresses (bytes per record)"], row["headers-first decompresses (bytes per record)"]) == (
        120,
        48,
    )
    assert row["v1 CPU (× v0)"].median == pytest.approx(0.2, rel=0.05)
    assert row_of(table, **{"records per batch": 10, "codec": "zstd 3"})["v1 CPU (× v0)"] is None


def test_the_figure_leaves_out_what_touches_nothing(paths: Paths) -> None:
    panels = broker_paths.append_ratio_panels(paths)
    assert list(panels) == ["none", "gzip 6", "zstd 3"]
    assert set(panels["gzip 6"]["label"]) == {"append", "append-time", "compact", "compact-merge", "mirror"}
    base = panels["gzip 6"].query("label == 'append' and format == 'v2'")
    assert base["median"].tolist() == [1.0]


def test_times_of_two_hosts_are_not_compared_across_paths(tmp_path: Path) -> None:
    def elsewhere(row: Row) -> None:
        if row["operation"] == "fetch":
            row["host"] = "there"

    found = changed(tmp_path, elsewhere)
    table = some(broker_paths.path_table(found, "fetch", shown=True))
    assert set(column(table, "CPU (ns per call)")) == {None}
    table = some(broker_paths.path_table(found, "mirror", shown=True))
    assert set(column(table, "CPU (ns per record)")) == set(column(table, "CPU (× v2 append)")) == {None}
    assert broker_paths.append_ratio_panels(found) == {}
    assert [table.name for table in conversions.conversion_tables(found, "none")] == ["broker-convert-bytes-none"]


def test_the_page_has_a_section_for_what_was_measured_and_none_for_what_was_not(
    broker_run: Run, results: Results, tmp_path: Path
) -> None:
    found = sections_of(Results(broker_run.measurements()))
    assert {"broker", "broker-claims", "broker-convert", "broker-migrate", "broker-keep"} <= set(found)
    assert all(section.means for name, section in found.items() if name.startswith("broker"))
    assert [figure.name for figure in found["broker"].figures] == ["broker"]
    assert found["broker"].tables  # the numbers of a figure are in tables below it
    names = [table.name for section in found.values() for table in (*section.tables, *section.more)]
    assert len(names) == len(set(names))
    assert not any(name.startswith("broker") for name in sections_of(results))
    only_append = results_of(tmp_path, [row for row in broker_rows() if row["operation"] == "append"])
    assert {name for name in sections_of(only_append) if name.startswith("broker")} == {"broker", "broker-claims"}
