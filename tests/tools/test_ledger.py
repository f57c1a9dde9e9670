"""The ledger is compared where its header holds, a number that differs fails, and its numbers are those of the API."""

from pathlib import Path

import pytest

from kfbench import instructions_per_record
from kfbench.measure.callgrind import why_not_counted
from kfbench.workloads.grid import GridPoint
from tools import ledger
from tools.ledger import LEDGER, Key, Ledger, Lines, check, differences, header, read, write

KEY: Key = ("v2", "10", "none", "encode")
STORED: Lines = {KEY: (134.5, 200.0), ("v3", "10", "none", "encode"): (130.0, 210.0)}


def test_a_ledger_is_read_as_written(tmp_path: Path) -> None:
    write(tmp_path / "ledger.csv", Ledger(header(), STORED))
    assert read(tmp_path / "ledger.csv") == Ledger(header(), STORED)
    write(tmp_path / "again.csv", read(LEDGER))
    assert (tmp_path / "again.csv").read_bytes() == LEDGER.read_bytes()


@pytest.mark.parametrize(
    ("found", "numbers"),
    [
        ({KEY: (134.5, 200.9)}, 0),
        ({KEY: (134.5, 201.1)}, 1),
        ({KEY: (133.0, 198.9)}, 2),
        ({("v4", *KEY[1:]): (1.0, 1.0)}, 1),
    ],
)
def test_more_than_half_a_percent_is_a_difference(found: Lines, numbers: int) -> None:
    assert len(list(differences(STORED, {**STORED, **found}))) == numbers
    assert len(list(differences(found, {}))) == 1


def test_a_difference_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ledger, "why_not_counted", lambda: None)
    monkeypatch.setattr(ledger, "measure", lambda: STORED)
    check(Ledger(header(), STORED))
    monkeypatch.setattr(ledger, "measure", lambda: {**STORED, KEY: (134.5, 202.0)})
    with pytest.raises(SystemExit, match=r"200\.00 -> 202\.00"):
        check(Ledger(header(), STORED))
    check(Ledger(header() | {"valgrind": "valgrind-0.1"}, STORED))
    assert "SKIPPED ledger: it is of valgrind valgrind-0.1" in capsys.readouterr().out


@pytest.mark.skipif(why_not_counted() is not None, reason=why_not_counted() or "")
@pytest.mark.slow
def test_the_committed_numbers_are_those_of_the_api() -> None:
    stored = read(LEDGER)
    if stored.header != header():
        pytest.skip("the ledger is of another valgrind, Python or lock")
    records = GridPoint(batch_size=10).generate(records=4_000, seed=3).records
    for key in (KEY, ("v3", "10", "none", "decode")):
        name, batch_size, _, operation = key
        found = instructions_per_record(name, operation, records, batch_size=int(batch_size))
        assert found == pytest.approx(stored.lines[key][1], rel=0.005)
