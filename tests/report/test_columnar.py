"""The section of columnar agrees with its rows. No other section uses these rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.errors import RunError
from kfbench.measure.columns import counts_text
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.floor import FLOOR
from kfbench.measure.kinds.cpu import READINGS
from kfbench.report.data.axes import REFERENCE
from kfbench.report.data.classes import Verdicts
from kfbench.report.data.named import Named
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.files import files_of
from kfbench.report.page import page
from kfbench.report.section import Block, has_cells
from kfbench.report.topics import verdict
from kfbench.report.topics.columnar import tables
from kfbench.report.topics.columnar.measured import NAME, RIVALS, Columnar
from kfbench.tables import Table, plain_columns
from tests.report.columns import column, results_of, row_of, sections_of, some
from tests.report.workload_rows import Row, workload_rows
from tests.runs import stored

RECORDS, PAYLOAD = 1_000, 100
METADATA = {"v2": 10, "v3": 9, "v3-headers-first": 7, NAME: 2, FLOOR: 1}  # bytes of metadata per record
COLUMNS = {NAME: 1.5, FLOOR: 0.5}  # of these, bytes outside batch headers
SMALLER = {"none": 1.0, "snappy": 0.5, "zstd": 0.25}  # compressed size divided by plain size
TIME = {"v2": 1.0, "v3": 1.1, "v3-headers-first": 1.2, NAME: 0.5}
SLOW = ("kv-etc", "encode")  # here columnar takes twice v2's time
LARGE = ("kv-etc", 100, "snappy")  # here columnar takes 20 % more bytes
ROUNDS = 9


def common(workload: str, batch: int | None, **of: Any) -> Row:
    return {
        "cell_id": f"{workload}-by-{batch}", "grid": "columnar-block", "workload": workload, "variant": "default",
        "batch_size": batch, "seed": 1, "codec": "none", "codec_version": "1", "host": "here", "status": "ok",
        "records": RECORDS,
    } | of  # fmt: skip


def counted(workload: str, batch: int | None, name: str, codec: str) -> Row:
    size = int(RECORDS * (PAYLOAD + METADATA[name]) * SMALLER[codec])
    if name == NAME and (workload, batch, codec) == LARGE:
        size = int(1.2 * RECORDS * (PAYLOAD + METADATA["v2"]) * SMALLER[codec])
    found: Row = {"format": name, "batches": RECORDS // (batch or 5), "size_bytes": size}
    found["payload_bytes"] = RECORDS * PAYLOAD
    if codec == "none":  # half of the payload is headers, stored once in columnar
        headers = RECORDS * PAYLOAD // 2 if name != NAME else 7
        columns = int(RECORDS * COLUMNS.get(name, METADATA[name] / 2))
        fields = {"batch_header.magic" if name != FLOOR else "batch_header": RECORDS * METADATA[name] - columns}
        fields |= dict.fromkeys(("header_key_length", "key", "header_key"), 0)  # the explorer reads them
        fields |= {"timestamp": columns, "value": RECORDS * PAYLOAD // 2, "header_value": headers}
        found |= {"overhead_bytes": size - RECORDS * PAYLOAD, "field_bytes": counts_text(fields)}
    return found


def timed(workload: str, name: str, operation: str, arm: str = "measure") -> Row:
    once = 1_000 * (2.0 if name == NAME and (workload, operation) == SLOW else TIME[name])
    rounds = np.random.default_rng(len(workload + name + operation + arm)).normal(once, once / 500, ROUNDS)
    ns = [int(each * 100) for each in rounds]
    return {"format": name, "operation": operation, "arm": arm, "inner_loops": 1, "cpu_ns": ns, "wall_ns": ns}


def columnar_rows() -> list[Row]:
    found: list[Row] = []
    for workload in ("kv-ycsb", "kv-etc"):
        for batch in (None, 1, 100):
            for codec in SMALLER if batch == 100 else ["none"]:
                at = common(workload, batch, kind="bytes", codec=codec)
                found += [at | counted(workload, batch, name, codec) for name in METADATA if name != FLOOR]
            floor = counted(workload, batch, FLOOR, "none")
            found.append(common(workload, batch, kind=FLOOR) | floor)
        for kind, operation in (*(("cpu", each) for each in OPERATIONS), *READINGS.items()):
            at = common(workload, 100, kind=kind, cache="resident" if kind == "cpu" else None)
            found += [at | timed(workload, name, operation) for name in TIME if name != "v3-headers-first"]
            found.append(at | timed(workload, "v2", operation, "aa"))
        for path in ("append", "compact"):
            at = common(workload, 100, kind="broker")
            found += [at | timed(workload, name, path) for name in ("v2", "v3", NAME)]
            elsewhere = timed(workload, NAME, path) | {"cpu_ns": [1] * ROUNDS, "host": "there"}
            found.append(at | elsewhere | {"cell_id": f"{workload}-elsewhere"})
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return results_of(tmp_path_factory.mktemp("columnar"), [*workload_rows(), *columnar_rows()])


@pytest.fixture(scope="module")
def found(results: Results) -> Columnar:
    return Columnar(results)


@pytest.mark.usefixtures("drawn")
def test_no_other_section_has_any_of_it(results: Results, tmp_path: Path) -> None:
    with_it, without = Named(results), Named(results_of(tmp_path, workload_rows()))
    assert NAME not in results.formats and not (results.all["format"] == NAME).any()
    own = {sizes.label for sizes in without.sizes}
    assert [sizes for sizes in with_it.sizes if sizes.label in own] == without.sizes
    verdicts = Verdicts(results, with_it, Paths(results))
    table = some(verdict.verdict_table(verdicts))
    assert NAME not in verdicts.formats and NAME not in str((table.columns, table.rows))
    assert not set(READINGS) & set(results.all["kind"])
    sections = sections_of(results, Block(name="columnar-block", title="t", analysis="about columnar"))
    assert [(block.title, block.analysis) for block in sections[NAME].blocks] == [("t", "about columnar")]
    assert not any("about columnar" in section.prose for section in sections.values())
    for name in sections.keys() - {NAME, "failures"}:
        tables_of = [table for table in (*sections[name].tables, *sections[name].more) if table.name != "overview"]
        texts = [table.to_text().replace(table.notes[0] if table.notes else "", "") for table in tables_of]
        assert NAME not in "".join(texts)


def test_metadata_is_what_is_no_payload_and_stands_next_to_the_floor(found: Columnar) -> None:
    table = some(tables.metadata_table(found))
    assert column(table, "batches") == ["own", "1", "100"] * 2
    for workload in ("kv-ycsb", "kv-etc"):
        row = row_of(table, workload=workload, batches="100")
        assert {name: row[f"{name} (bytes)"] for name in METADATA} == METADATA
        assert (row["v3 (× v2)"], row["columnar (× v2)"], row["floor (× v2)"]) == (0.9, 0.2, 0.1)
        assert row["columnar above the floor (bytes)"] == 1
        assert (row["columns of columnar (bytes)"], row["their entropy (bytes)"]) == (1.5, 0.5)
    ((panel, dots),) = tables.metadata_panels(found).items()
    assert panel == "100 records per batch" and set(dots["format"]) == {"v3", NAME, FLOOR}


def test_bytes_stand_by_workload_and_codec(found: Columnar) -> None:
    by_name = {table.name: table for table in tables.bytes_tables(found)}
    assert list(by_name) == [
        "columnar-bytes-own", "columnar-bytes-100", "columnar-bytes-100-others", "columnar-bytes-1"
    ]  # fmt: skip
    at_100, others = by_name["columnar-bytes-100"], by_name["columnar-bytes-100-others"]
    assert row_of(at_100, workload="kv-ycsb")["columnar, zstd (× v2)"] == pytest.approx(102 / 110)
    assert row_of(others, workload="kv-etc")["columnar, snappy (× v2)"] == pytest.approx(1.2)
    for table in by_name.values():  # columnar's columns come first, because a page may cut off the right
        is_own = [NAME in column.name for column in table.columns[1:]]
        assert is_own == sorted(is_own, reverse=True)
    row = row_of(some(tables.means_table(found)), codec="snappy")
    assert row["columnar (× v2)"] == pytest.approx((1.2 * 102 / 110) ** 0.5) and row["workloads"] == 2
    assert row["columnar, least–most"] == f"{102 / 110:.3f}–1.200"
    assert set(tables.bytes_panels(found)) == {"no codec"}


def test_cpu_times_are_ratios_round_by_round_on_the_host_with_most_rows(found: Columnar) -> None:
    by_name = tables.times_tables(found)
    wanted = {
        "columnar-cpu": OPERATIONS,
        "columnar-readings": READINGS.values(),
        "columnar-paths": ("append", "compact"),
    }
    for name, operations in wanted.items():
        row = row_of(by_name[name], workload="kv-ycsb")
        medians = [row[f"{operation}, columnar (× v2)"].median for operation in operations]
        assert medians == pytest.approx([0.5] * len(medians), rel=0.01)
    slow = row_of(by_name["columnar-cpu"], workload="kv-etc")["encode, columnar (× v2)"]
    assert slow.median == pytest.approx(2, rel=0.01)
    for operations in (OPERATIONS, tuple(READINGS.values())):
        assert tuple(tables.times_panels(found, operations)) == operations
    assert found.pictured_batch == 100


def test_every_cell_in_which_it_loses_is_listed_and_counted(found: Columnar) -> None:
    table = tables.losses_table(found)
    assert [row[:5] for row in table.rows] == [
        ("bytes", "kv-etc", "100 records per batch", "snappy", "v2"),
        ("bytes", "kv-etc", "100 records per batch", "snappy", "v3"),
        ("bytes", "kv-etc", "100 records per batch", "snappy", "v3-headers-first"),
        ("encode", "kv-etc", "100 records per batch", "no codec", "v2"),
        ("encode", "kv-etc", "100 records per batch", "no codec", "v3"),
    ]
    counts = tables.loss_counts_table(found)  # 2 workloads, each in 3 batch sizes and under 2 codecs
    assert row_of(counts, what="bytes") == {
        "what": "bytes",
        **{f"{words} {rival} (cells)": count for rival in RIVALS for words, count in (("more than", 1), ("vs", 10))},
    }
    assert (row := row_of(counts, what="encode"))["more than v2 (cells)"] == 1 and row["vs v2 (cells)"] == 2
    assert row["vs v3-headers-first (cells)"] is None  # it was not timed
    others = [row for row in counts.rows if row[0] not in ("bytes", "encode")]
    assert sum(int(str(row[2])) for row in others) == 12 and not any(row[1] for row in others)


@pytest.mark.usefixtures("drawn")
def test_the_card_of_the_front_page_has_the_number_of_the_section(tmp_path: Path) -> None:
    built = page(results_of(tmp_path, [*workload_rows(), *columnar_rows()]), [])
    (section,) = [section for section in built.sections if section.name == NAME]
    (card,) = [card for card in built.front.cards if card.link == f"{section.chapter}.html#t-{NAME}-means"]
    assert card.number == "−7.3 %"


def test_what_v2_reads_against_itself_is_no_loss(tmp_path: Path) -> None:
    """columnar takes twice the time to encode one workload, which is no loss here.

    v2's second timing (the A/A arm) of encode takes three times as long as its first.
    """
    rows = columnar_rows()
    for row in rows:
        if row.get("arm") == "aa" and row["operation"] == "encode":
            row["cpu_ns"] = [3 * ns for ns in row["cpu_ns"]]
    found = Columnar(results_of(tmp_path, [*workload_rows(), *rows]))
    assert found.noise["encode"][1] > 2 > 1.1 > found.noise["decode"][1]
    assert {loss.what for loss in found.losses} == {"bytes"}


POINTS = {10: 0.5, 100: 0.9}  # bytes per value -> columnar's bytes divided by v2's


def grid_rows(formats: Sequence[str]) -> list[Row]:
    found: list[Row] = []
    for value, ratio in POINTS.items():
        for batch in (1, 100):
            point = {**REFERENCE, "batch_size": batch, "value_bytes": value}
            of_cell: Row = common("grid", batch) | point | {"cell_id": f"grid-{value}-{batch}", "variant": None}
            for name in formats:
                size = int(RECORDS * 200 * (ratio if name == NAME else 1))
                counts: Row = {"batches": RECORDS // batch, "size_bytes": size, "payload_bytes": RECORDS * 90}
                counts |= {"overhead_bytes": size - RECORDS * 90, "field_bytes": counts_text({"length": size})}
                found.append(of_cell | {"kind": "bytes", "format": name, "losses": "{}"} | counts)
            arms = [(name, "measure") for name in formats] + [("v2", "aa")]
            of_times = of_cell | {"kind": "cpu", "cache": "resident"}
            found += [of_times | timed("grid", name, op, arm) for name, arm in arms for op in OPERATIONS]
    return found


@pytest.mark.parametrize("formats", [("v2", NAME), ("v2", "v3", NAME)])
def test_a_sweep_of_the_grid_has_it_too(tmp_path: Path, formats: tuple[str, ...]) -> None:
    of_grid = results_of(tmp_path, grid_rows(formats))
    built = page(of_grid, [Block(name="columnar-block", title="t", analysis="about columnar")])
    sections = {section.name: section for section in built.sections}
    own = sections[NAME]
    at_100 = {table.name: table for table in own.tables}["columnar-bytes-100"]
    times = {(each.at.label, each.at.batch, each.operation): each.of[NAME] for each in Columnar(of_grid).times}
    for value, ratio in POINTS.items():
        label = f"grid: value {value} bytes"
        assert row_of(at_100, workload=label)["columnar, no codec (× v2)"] == ratio
        assert times[label, 100, "encode"].median == pytest.approx(0.5, rel=0.01)
    assert not own.blocks and any("about columnar" in section.prose for section in built.sections)
    for section in built.sections:
        by_name = {table.name: table for table in (*section.tables, *section.more)}
        assert all(table.rows and len(table.columns) > 1 for table in by_name.values())
        for figure in section.figures:
            numbers = [figure.numbers] if isinstance(figure.numbers, str) else figure.numbers.values()
            assert by_name.keys() >= set(numbers)


@pytest.mark.usefixtures("drawn")
def test_why_it_has_no_section_is_the_true_reason(tmp_path: Path) -> None:
    rows = [row for row in grid_rows(("v3", NAME)) if row["kind"] == "bytes"]
    alone = stored(tmp_path / "alone", [row for row in rows if row["format"] == NAME])
    with pytest.raises(RunError, match="no v2"):
        dict(files_of(alone))


def test_a_table_of_dashes_alone_is_none() -> None:
    columns = plain_columns("records per batch", "codec", "v2")
    made = {
        "dashes": Table(name="dashes", caption="", columns=columns, rows=((1, "lz4 1", None), (10, "lz4 1", None))),
        "names": Table(name="names", caption="", columns=columns[:1], rows=((1,), (10,))),
        "nothing": Table(name="nothing", caption="", columns=columns, rows=()),
        "numbers": Table(name="numbers", caption="", columns=columns, rows=((1, "lz4 1", 0.5), (10, "lz4 1", None))),
        "words": Table(name="words", caption="", columns=columns, rows=((1, "lz4 1", "v2"),)),
    }
    assert [name for name, table in made.items() if has_cells(table)] == ["numbers", "words"]
