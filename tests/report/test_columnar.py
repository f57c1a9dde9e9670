"""columnar's section follows from its rows, and no other section has any of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.measure.cpu import OPERATIONS, READINGS
from kfbench.measure.floor import FLOOR
from kfbench.measure.schema import counts_text
from kfbench.report import columnar, verdict
from kfbench.report.broker import Paths
from kfbench.report.columnar import NAME, Columnar
from kfbench.report.render import Interval
from kfbench.report.results import Results
from kfbench.report.sections import page
from kfbench.report.sections.prose import Block
from kfbench.report.workloads import Named
from tests.report.broker_rows import column, row_of
from tests.report.workload_rows import Row, workload_rows
from tests.runs import stored

RECORDS, PAYLOAD = 1_000, 100
METADATA = {"v2": 10, "v3": 9, "v3-headers-first": 7, NAME: 2, FLOOR: 1}  # bytes a record
COLUMNS = {NAME: 1.5, FLOOR: 0.5}  # what of it is no batch header
SMALLER = {"none": 1.0, "snappy": 0.5, "zstd": 0.25}  # what a codec leaves
TIME = {"v2": 1.0, "v3": 1.1, "v3-headers-first": 1.2, NAME: 0.5}
SLOW = ("kv-etc", "encode")  # where columnar takes twice the time of v2
LARGE = ("kv-etc", 100, "snappy")  # and a fifth more bytes
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
    if codec == "none":  # half of the payload are headers, which columnar has once
        headers = RECORDS * PAYLOAD // 2 if name != NAME else 7
        columns = int(RECORDS * COLUMNS.get(name, METADATA[name] / 2))
        fields = {"batch_header.magic" if name != FLOOR else "batch_header": RECORDS * METADATA[name] - columns}
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
    rows = [*workload_rows(), *columnar_rows()]
    return Results(stored(tmp_path_factory.mktemp("columnar"), rows).measurements())


@pytest.fixture(scope="module")
def found(results: Results) -> Columnar:
    return Columnar(results)


def test_no_other_section_has_any_of_it(results: Results, tmp_path: Path) -> None:
    alone = Results(stored(tmp_path, workload_rows()).measurements())
    with_it, without = Named(results), Named(alone)
    assert NAME not in results.formats and not (results.all["format"] == NAME).any()
    own = {each.label for each in without.sizes}
    assert [each for each in with_it.sizes if each.label in own] == without.sizes
    verdicts = verdict.Verdicts(results, with_it, Paths(results))
    table = verdict.table(verdicts)
    assert table is not None and NAME not in verdicts.formats and NAME not in str((table.columns, table.rows))
    but = "no other format was measured on these workloads but columnar, which nobody proposes"
    but += " and has a section of its own"
    assert but in table.notes[0] and not any(NAME in note for note in table.notes[1:])
    assert not set(READINGS) & set(results.all["kind"])
    sections = page(results, [Block(name="columnar-block", title="t", analysis="about columnar")]).sections
    (mine,) = [each for each in sections if each.name == "columnar"]
    assert mine.prose == ("about columnar",) and not any(each.prose == mine.prose for each in sections if each != mine)
    for section in sections:
        tables = [table.to_text() for table in (*section.tables, *section.more)]
        said = "".join([section.means, *tables]).replace(mine.title, "").replace(but, "")
        assert section is mine or NAME not in said


def test_metadata_is_what_is_no_payload_and_stands_beside_the_floor(found: Columnar) -> None:
    table = columnar.metadata_table(found)
    assert table is not None
    assert column(table, "batches") == ["own", "1", "100"] * 2
    for workload in ("kv-ycsb", "kv-etc"):
        row = row_of(table, workload=workload, batches="100")
        assert {name: row[f"{name} (bytes)"] for name in METADATA} == METADATA
        assert (row["v3 (× v2)"], row["columnar (× v2)"], row["floor (× v2)"]) == (0.9, 0.2, 0.1)
        assert row["columnar above the floor (bytes)"] == 1
        assert (row["columns of columnar (bytes)"], row["their entropy (bytes)"]) == (1.5, 0.5)
    ((panel, dots),) = columnar.pictured_metadata(found).items()
    assert panel == "100 records a batch" and set(dots["format"]) == {"v3", NAME, FLOOR}


def test_bytes_are_told_by_workload_and_codec(found: Columnar) -> None:
    first, *others = columnar.bytes_tables(found)
    assert first.name == "columnar-bytes-100" and {each.name for each in others} == {
        "columnar-bytes-1", "columnar-bytes-own"
    }  # fmt: skip
    assert row_of(first, workload="kv-ycsb")["columnar, zstd (× v2)"] == pytest.approx(102 / 110)
    assert row_of(first, workload="kv-etc")["columnar, snappy (× v2)"] == pytest.approx(1.2)
    means = columnar.means_table(found)
    assert means is not None
    row = row_of(means, codec="snappy")
    assert row["columnar (× v2)"] == pytest.approx((1.2 * 102 / 110) ** 0.5) and row["workloads"] == 2
    assert set(columnar.pictured_bytes(found)) == {"no codec", "zstd"}


def test_cpu_times_are_ratios_round_by_round(found: Columnar) -> None:
    table = columnar.cpu_table(found)
    assert table is not None
    row = row_of(table, workload="kv-ycsb")
    for operation in (*OPERATIONS, *READINGS.values()):
        ratio = row[f"{operation}, columnar (× v2)"]
        assert isinstance(ratio, Interval) and ratio.median == pytest.approx(0.5, rel=0.01)
    slow = row_of(table, workload="kv-etc")["encode, columnar (× v2)"]
    assert isinstance(slow, Interval) and slow.median == pytest.approx(2, rel=0.01)
    panels = columnar.pictured_cpu(found)
    assert list(panels) == [*OPERATIONS, *READINGS] and columnar.pictured_batch(found) == 100


def test_every_cell_in_which_it_loses_is_listed(found: Columnar) -> None:
    table = columnar.losses_table(found)
    assert [row[:5] for row in table.rows] == [
        ("bytes", "kv-etc", "100 records a batch", "snappy", "v2"),
        ("bytes", "kv-etc", "100 records a batch", "snappy", "v3"),
        ("bytes", "kv-etc", "100 records a batch", "snappy", "v3-headers-first"),
        ("encode", "kv-etc", "100 records a batch", "no codec", "v2"),
        ("encode", "kv-etc", "100 records a batch", "no codec", "v3"),
    ]
    # 2 workloads, each in 3 batches and under 2 more codecs; headers first was not timed
    none = [f"0 of 2 by {each}" for each in (*columnar.WORK[1:], "append")]
    rest = f"1 of 10 by bytes, 1 of 2 by encode, {', '.join(none)} and 0 of 2 by compact."
    assert table.notes[:3] == (
        f"Cells in which columnar takes more than v2: {rest}",
        f"Cells in which columnar takes more than v3: {rest}",
        "Cells in which columnar takes more than v3-headers-first: 1 of 10 by bytes.",
    )


def test_sentences_say_what_the_tables_come_to(found: Columnar) -> None:
    said = columnar.sentence(found)
    assert "takes more than v2: 1 of 10 by bytes, 1 of 2 by encode" in said
    assert "11 % (v3), 33 % (v3-headers-first) and 89 % (columnar) of what v2 has above it is saved" in said
    assert "columnar stays 1.00 to 1.00 bytes a record above it" in said
    assert "Its columns alone take 3.00 times their entropy, 100 records a batch." in said
    assert "no codec: 1.00 (0.50 to 2.00) to encode, 0.50 (0.50 to 0.50) to decode" in said
    for one in (columnar.metadata_sentence, columnar.bytes_sentence, columnar.cpu_sentence):
        assert one(found) in said


def test_paths_of_a_broker_are_of_the_host_that_timed_the_rest(found: Columnar) -> None:
    table = columnar.paths_table(found)
    assert table is not None
    row = row_of(table, workload="kv-etc")
    for path in ("append", "compact"):
        ratio = row[f"{path}, columnar (× v2)"]
        assert isinstance(ratio, Interval) and ratio.median == pytest.approx(0.5, rel=0.01)


def test_a_run_without_it_says_so(tmp_path: Path) -> None:
    without = Results(stored(tmp_path, workload_rows()).measurements())
    sections = page(without, []).sections
    assert not any(each.name == "columnar" for each in sections)
    (missing,) = [each for each in sections if each.name == "failures"]
    assert "columnar was not measured" in str(missing.tables)
