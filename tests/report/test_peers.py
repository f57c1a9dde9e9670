"""The table of peers (other implementations) and ours: the values of the stored file, and its machine."""

from pathlib import Path

import pytest

from kfbench.report.data.results import Results
from kfbench.report.topics import java, peers
from kfbench.report.topics.peers import FILE, JAVA, LIMIT, OURS
from tests.common import numbers_in
from tests.report.columns import sections_of, some
from tests.report.peers_file import BASES, V0, write_peers


def test_times_of_all_are_in_multiples_of_ours(tmp_path: Path) -> None:
    found = write_peers(tmp_path)
    told = peers.peers_table(found)
    assert [column.name for column in told.columns[4:]] == ["kfbench", LIMIT, "aiokafka 3.9.1", f"{JAVA} 3.9.1"]
    assert [row[:4] for row in told.rows] == [
        (operation, name, 10, 100) for operation in ("encode", "decode") for name in ("v0", "v1", "v2")
    ]
    ratios = {(row[0], row[1]): [cell and cell.median for cell in row[5:]] for row in told.rows}  # type: ignore[union-attr]
    assert ratios["encode", "v2"] == pytest.approx([0.5, 9, 10], rel=1e-3)
    assert ratios["decode", "v1"][0] is None and ratios["decode", "v1"][1:] == pytest.approx([9, 10], rel=1e-3)


def test_the_sentences_have_the_ends_of_the_ratios_and_count_faster_rows(tmp_path: Path) -> None:
    found = write_peers(tmp_path)
    others = [BASES[peer] / BASES[OURS] for peer in BASES if peer not in (OURS, LIMIT)]
    assert numbers_in(peers.peers_sentence(found)) == pytest.approx(2 * [min(others), max(others)], abs=0.01)
    assert numbers_in(peers.faster_sentence(found)) == [6]  # rows; none is faster
    faster = write_peers(tmp_path, ours_v0=V0 / 10, java_base=0.04)  # of v0, ours takes 0.25 times Java's time
    assert numbers_in(peers.faster_sentence(faster)) == pytest.approx([4, 6, 4, 0.4], abs=0.01)


def test_a_peer_that_was_not_there_has_no_column(
    tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = write_peers(tmp_path, without=JAVA)
    assert java.pairs(found) == [] and java.java_table(found, []) is None
    assert JAVA not in {column.name for column in peers.peers_table(found).columns}
    monkeypatch.setattr(peers, "load", lambda: found)
    section = sections_of(results)["cpu-peers"]
    assert [table.name for table in section.tables] == ["peers"] and JAVA not in section.means


def test_an_implementation_with_other_bytes_is_a_row(
    tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert peers.differences_table(write_peers(tmp_path)) is None
    row = {"peer": "slow-client", "records": "time 0", "difference": "v2: slow-client writes other bytes than ours"}
    found = write_peers(tmp_path, differences=[row])
    monkeypatch.setattr(peers, "load", lambda: found)
    tables = {table.name: table for table in sections_of(results)["cpu-peers"].tables}
    assert tables["peer-differences"].rows == (tuple(row.values()),)


def test_an_aa_arm_that_was_called_more_often_reads_one(tmp_path: Path) -> None:
    found = write_peers(tmp_path, cells=3, loops_again=3)
    assert not found.noise and found.again(JAVA) == pytest.approx([1] * 6, rel=1e-3)


def test_nothing_measured_is_no_section(tmp_path: Path, results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    assert peers.load(tmp_path / "none.json") is None
    monkeypatch.setattr(peers, "load", lambda: None)
    assert "cpu-peers" not in sections_of(results)


def test_what_is_committed_reads_and_names_its_machine(results: Results) -> None:
    found = some(peers.load(FILE))
    assert found.host.startswith("host-") and len(java.pairs(found)) == 36
    assert JAVA in found.versions and JAVA in found.machines
    section = sections_of(results)["cpu-peers"]
    assert found.cpu in section.tables[0].notes[0] and len(section.tables[0].rows) == 54
