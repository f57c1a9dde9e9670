"""`kfbench what-if`: options, sources, exit status and output."""

import json
from pathlib import Path
from typing import Any

import pytest

from kfbench import Records
from kfbench.formats import FORMATS
from kfbench.sources import find
from kfbench.whatif import ask as asking
from tests.cli.command import Run


def test_what_if_prints_every_format_and_codec_that_was_asked_for(kfbench: Run, segment: Path) -> None:
    done = kfbench(
        "what-if", segment, "--format", "v2", "--format", "v3", "--codec", "none", "--codec", "lz4", "--json"
    )
    assert done.status == 0
    arms = {(arm["format"], arm["codec"]): arm["size_bytes"] for arm in json.loads(done.out)["sizes"]}
    assert arms.keys() == {("v2", "none"), ("v2", "lz4"), ("v3", "none"), ("v3", "lz4")}
    assert arms["v2", "none"] == segment.stat().st_size


def test_what_if_of_a_folder_in_other_batches_with_a_page(kfbench: Run, segment: Path, tmp_path: Path) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(segment.read_bytes())
    (folder / "00000000000000000000.index").write_bytes(bytes(10))
    batches = ["--linger-ms", "5", "--linger-ms", "50", "--batch-size", "1000"]
    chosen = ["--format", "v3", "--codec", "lz4", "--all", "--rate-mb-s", "2.5", "--out", tmp_path / "pages"]
    done = kfbench("what-if", folder, *batches, *chosen, "--json")
    assert done.status == 0
    found = json.loads(done.out)
    assert {tuple(arm["batching"].values()) for arm in found["rebatched"]} == {(5.0, 1000), (50.0, 1000)}
    assert found["topics"] == ["orders"] and found["rate"]["bytes_a_day"] == 2.5e6 * 86_400
    assert found["sample"]["share"] == 1.0
    [page] = (tmp_path / "pages").iterdir()
    assert done.err == f"kfbench: the report is {page}\n"
    assert json.loads((page / "what-if.json").read_text()) == found
    assert "orders" in (page / "index.html").read_text()


def test_what_if_accepts_a_segment_deleted_meanwhile(
    kfbench: Run, segment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    for i in range(2):
        (folder / f"{i:020}.log").write_bytes(segment.read_bytes())

    def found_then_gone(*asked: Any) -> Any:
        found = find(*asked)
        (folder / f"{0:020}.log").rename(folder / f"{0:020}.log.deleted")
        return found

    monkeypatch.setattr(asking, "find", found_then_gone)
    done = kfbench("what-if", folder, "--format", "v2", "--codec", "none", "--table", "sources")
    assert (done.status, done.err) == (0, "")
    assert f"{folder / f'{0:020}.log'}: not read to its end: gone meanwhile: deleted or renamed" in done.out


def test_what_if_of_a_table(kfbench: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("id,at,v\n7,2026-01-02,x\n8,2026-01-02T00:00:01Z,yz\n9,late,z\n")
    columns = ["--key", "id", "--timestamp", "at"]
    asked = [*columns, "--linger-ms", "5", "--format", "v2", "--codec", "none", "--json"]
    done = kfbench("what-if", table, *asked, "--value", "v")
    assert done.status == 1 and done.err.startswith(f"kfbench: {table}: row 3: column `at`: 'late' is no time")
    found = json.loads(done.out)
    assert found["records"] == 2 and found["sizes"][0]["size_bytes"] == 61 * 2 + (7 + 1 + 1) + (7 + 1 + 2)
    assert found["columns"] == {"key": "id", "value": "v", "timestamp": "at", "headers": None, "partition": None}
    whole = json.loads(kfbench("what-if", table, *asked, "--value-json").out)
    assert whole["payload_bytes"] == 2 + len(
        '{"id":7,"at":"2026-01-02","v":"x"}{"id":8,"at":"2026-01-02T00:00:01Z","v":"yz"}'
    )
    assert "by --linger-ms and --batch-size" in kfbench("what-if", table, *columns).refused()
    topic = kfbench("what-if", "kafka://127.0.0.1:1/orders.json?from=earliest&to=latest").refused()
    assert "orders.json: has no batches: give those of a producer" in topic
    assert "--value-json: not together with --value" in kfbench(
        "what-if", table, *asked, "--value", "v", "--value-json"
    ).refused(2)


def test_what_if_names_what_it_could_not_read_and_shows_the_rest(kfbench: Run, segment: Path, tmp_path: Path) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    garbage = folder / "00000000000000000000.log"
    garbage.write_bytes(b"x" * 30)
    table = tmp_path / "rows.parquet"
    table.write_bytes(b"PAR1 and no more")
    (folder / "00000000000000000001.log").write_bytes(segment.read_bytes())
    done = kfbench("what-if", folder, table, "--format", "v2", "--codec", "none", "--json")
    assert done.status == 1
    found = json.loads(done.out)
    assert found["now_bytes"] == segment.stat().st_size and found["lost_bytes"] == 30 + 16
    first, second = done.err.splitlines()
    assert first == f"kfbench: {garbage}: no whole batch in 30 bytes: is this a log segment?"
    assert second.startswith(f"kfbench: {table}: ")


def test_what_if_of_a_folder_leaves_out_what_lies_beside_its_segments(kfbench: Run, segment: Path) -> None:
    (segment.parent / f"{segment.name}.json").write_text('{"offset": 0}\n')
    done = kfbench("what-if", segment.parent, "--format", "v2", "--codec", "none", "--table", "sources")
    assert (done.status, done.err) == (0, "")


def test_what_if_of_times_whose_unit_is_unknown(kfbench: Run, tmp_path: Path) -> None:
    chosen = ["--format", "v2", "--codec", "none", "--json"]
    records = Records.from_lists([b"value"] * 50, timestamps_ms=range(1_000, 1_050))
    log, table = tmp_path / "t.log", tmp_path / "t.csv"
    log.write_bytes(bytes(FORMATS["v2"].encode(records, 1)))
    table.write_text("v,t\n" + "".join(f"value,{t}\n" for t in range(1_000, 1_050)))
    done = kfbench("what-if", log, *chosen)
    assert done.status == 1 and done.err.startswith(f"kfbench: {log} (") and done.err.count("\n") == 1
    assert "--timestamp-unit s|ms|us|ns" in done.err
    assert json.loads(done.out)["rebatched"] == [] and json.loads(done.out)["now_bytes"] == log.stat().st_size
    columns = ["--value", "v", "--timestamp", "t", "--linger-ms", "5"]
    assert f"{table} (" in kfbench("what-if", table, *columns, *chosen).refused()
    for source in ([log], [table, *columns]):
        done = kfbench("what-if", *source, *chosen, "--timestamp-unit", "us")
        assert (done.status, done.err) == (0, "") and json.loads(done.out)["timestamp_unit_from"] == "option"
