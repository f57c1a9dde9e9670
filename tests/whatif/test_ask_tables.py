"""`what_if` of tables as input: assumed batches, columns, cost of a month, and rows that cannot be read."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kfbench import read_log
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.sources import Columns
from kfbench.whatif.ask import what_if
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.tables import render_text
from tests.recorded import FOLDER
from tests.strategies import NOW_MS


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_table_has_the_sizes_of_the_log_that_it_came_from(tmp_path: Path, kind: str) -> None:
    records = read_log(FOLDER / "telemetry.log").records
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(records.to_arrow(), path, row_group_size=70)
    else:
        rows = [
            {
                "key": (records.key(i) or b"").decode(),
                "value": (records.value(i) or b"").decode(),
                "timestamp_ms": int(records.timestamps_ms[i]),
            }
            for i in range(len(records))
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = Columns(key="key", value="value", timestamp="timestamp_ms")
    batchings = [Batching(60_000, 1000), Batching(5, 16384)]
    table = what_if(path, ["v2", "v3"], ["none", "lz4"], columns=columns, batchings=batchings)
    log = what_if(FOLDER / "telemetry.log", ["v2", "v3"], ["none", "lz4"], batchings=batchings)
    assert [each.size_bytes for each in table.rebatched] == [each.size_bytes for each in log.rebatched]
    assumed = {(each.format, each.codec): each for each in log.rebatched if each.batching == batchings[0]}
    assert {(each.format, each.codec): each.size_bytes for each in table.arms if each.codec == "none"} == {
        pair: each.size_bytes for pair, each in assumed.items() if each.codec == "none"
    }
    assert table.assumed == batchings[0] and table.columns == columns and table.base_bytes == table.size("v2", "none")
    assert table.to_dict()["columns"]["partition"] is None


def test_each_partition_of_a_table_has_its_batches(tmp_path: Path) -> None:
    def table(partitions: int) -> Path:
        path = tmp_path / f"{partitions}.jsonl"
        path.write_text("".join(json.dumps({"p": i % partitions, "t": NOW_MS + i}) + "\n" for i in range(600)))
        return path

    columns = Columns(partition="p", timestamp="t")
    batchings = [Batching(1000, 1 << 20)]
    batches = [
        what_if(table(partitions), ["v2"], ["none"], columns=columns, batchings=batchings).sources[0].batches
        for partitions in (1, 2, 3)
    ]
    assert batches == [1, 2, 3]


def test_bad_tables_and_rows_are_listed_and_left_out(tmp_path: Path) -> None:
    good, bad, other = tmp_path / "a.jsonl", tmp_path / "b.parquet", tmp_path / "c.csv"
    good.write_text(f'{{"v": "x", "t": {NOW_MS}}}\n{{"v": "y", "t": "soon"}}\n')
    bad.write_text("PAR1 and no more")
    other.write_text("id\n1\n")
    asked = Columns(value="v", timestamp="t")
    found = what_if([good, bad, other], ["v2"], ["none"], columns=asked, batchings=[Batching(5, 1000)])
    text = render_text(found, ["sources"])
    assert found.records == 1 and found.now_bytes + found.lost_bytes == sum(
        path.stat().st_size for path in (good, bad, other)
    )
    assert f"{good}: left out 27 bytes from line 2: column `t`: 'soon' is no time" in text
    assert f"{bad}: not read: " in text and f"{other}: " in text and "no column `v` (columns: id)" in text
    with pytest.raises(InvalidConfig, match=r"a\.jsonl: has no batches: .*--linger-ms and --batch-size"):
        what_if(good, columns=asked)
    document = tmp_path / "d.json"
    document.write_text("{}")
    with pytest.raises(InvalidConfig, match=r"d\.json: has no batches \(it is read as a table, not"):
        what_if(document)


def rows(path: Path, name: str = "v", records: int = 400) -> Path:
    lines = [f"{name}{i % 7},{1_700_000_000_000 + 1_000 * i}\n" for i in range(records)]
    text = "".join(["v,t\n", *lines]).encode()
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    return path


def test_a_month_does_not_depend_on_compression_of_the_table(tmp_path: Path) -> None:
    options: dict[str, Any] = {"columns": Columns(value="v", timestamp="t"), "batchings": [Batching(5, 1000)]}
    plain, packed = (what_if(rows(tmp_path / name), ["v2"], ["none"], **options) for name in ("a.csv", "b.csv.gz"))
    assert plain.now_bytes > 2 * packed.now_bytes
    assert plain.rate is not None and packed.rate is not None
    assert (
        plain.rate.bytes_a_day
        == packed.rate.bytes_a_day
        == pytest.approx((plain.size("v2", "none") or 0) * 86_400 / 400, rel=0.01)
    )
    assert plain.month() == packed.month() == packed.month(packed.size("v2", "none"))


def test_each_table_is_a_topic_and_logs_keep_their_batches(tmp_path: Path) -> None:
    options: dict[str, Any] = {"columns": Columns(value="v", timestamp="t"), "batchings": [Batching(5, 1000)]}
    csv = [rows(tmp_path / "a.csv"), rows(tmp_path / "b.csv", "other")]
    [one, other, both] = [what_if(paths, ["v2"], ["none"], **options) for paths in (csv[:1], csv[1:], csv)]
    assert one.rate and other.rate and both.rate
    assert both.rate.bytes_a_day == pytest.approx(one.rate.bytes_a_day + other.rate.bytes_a_day)
    assert len(both.topics) == len(both.rate.streams) == len(both.by_topic) == 2
    mixed = what_if([csv[0], FOLDER / "activity-lz4.log"], ["v2"], ["none"], **options)
    assert mixed.assumed_of == (str(csv[0]),)
    log_bytes = (FOLDER / "activity-lz4.log").stat().st_size
    assert mixed.base_bytes == one.base_bytes + log_bytes


def test_a_record_far_ahead_is_counted(tmp_path: Path) -> None:
    path = rows(tmp_path / "a.csv")
    path.write_text(path.read_text().replace("1700000100000", "1900000100000"))
    options: dict[str, Any] = {"columns": Columns(value="v", timestamp="t"), "batchings": [Batching(1500, 1000)]}
    found, sound = (
        what_if(path, ["v2"], ["none"], **options),
        what_if(rows(tmp_path / "b.csv"), ["v2"], ["none"], **options),
    )
    assert abs(found.sources[0].batches - sound.sources[0].batches) <= 2
    assert found.rate and sound.rate and found.rate.bytes_a_day == pytest.approx(sound.rate.bytes_a_day, rel=0.05)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("t.jsonl", "\n\n", "no row in it"),
        ("t.csv", "v\n", "no row in it"),
        ("t.csv", "v\nsoon\n", "no row can be read: row 1: column `v`: 'soon' is no time: "),
        ("t.jsonl", '{"w": 1}\n', "no column `v` in lines 1 to 1"),
    ],
)
def test_a_table_without_a_record_is_refused_in_one_line(tmp_path: Path, name: str, content: str, reason: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(KfbenchError) as raised:
        what_if(path, ["v2"], ["none"], columns=Columns(timestamp="v"), batchings=[Batching(5, 1000)])
    assert str(raised.value).startswith(f"{path}: {reason}") and "\n" not in str(raised.value)
