"""The script that prints the speed figures: what it compares is equal, and its verdicts follow its targets."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aiokafka")

from benchmarks import figures
from kfbench.codecs import CODECS
from kfbench.errors import Refused
from kfbench.measure import broker
from kfbench.workloads.catalogue import WORKLOADS

ROOT = Path(__file__).parents[1]
RECORDS = 300


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RESIDENT", "LARGE_RECORDS", "MANY", "VALIDATED", "BLOCK_RECORDS"):
        monkeypatch.setattr(figures, name, RECORDS)
    for name in ("BROKER_BYTES", "BROKER_CODEC_BYTES", "LARGE_BATCH"):
        monkeypatch.setattr(figures, name, 20)
    monkeypatch.setattr(figures, "ROUND_NS", 1)


def test_every_comparison_runs_and_has_its_target() -> None:
    """Each arm's bytes are compared before they are timed; a difference ends the script."""
    found = [
        *figures.encode_figures(2),
        *figures.limit_figures(2),
        *figures.decode_figures(2),
        *figures.many_figures(2),
    ]
    assert all(figure.measured > 0 for figure in found)
    assert [figure.target for figure in found] == [10, 6, 1.03, None, 1.2, None, 6, 6, 400]
    told = "\n".join(figures.lines(found))
    assert all(figure.name in told for figure in found)


def test_a_broker_s_figures_are_there_for_each_codec() -> None:
    found = list(figures.append_figures(3))
    assert all(figure.measured > 0 for figure in found)
    names = [figure.name for figure in found]
    for codec in CODECS:
        assert (f"v1 append against v0, {codec}" in names) == (codec != "zstd")
        assert f"headers-first append against v2, {codec}" in names
        assert (f"headers-first append against v2, {codec}, 20 x 1 KiB a batch" in names) == (codec != "none")
    in_place = [figure for figure in found if figure.unit == "bytes"]
    assert [(figure.measured, figure.target, figure.verdict) for figure in in_place] == [(12, 61, "met")] * len(CODECS)


def test_figures_of_what_if_stand_beside_a_plain_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "ASKED_BYTES", 300_000)
    plain, with_codecs = figures.what_if_figures(2)
    assert min(plain.measured, with_codecs.measured) > 0 and plain.target is with_codecs.target is None
    assert plain.detail == with_codecs.detail and plain.detail.startswith("a plain read: ")


def test_figures_of_draws_have_their_targets() -> None:
    found = list(figures.draw_figures(2))
    assert all(figure.measured > 0 for figure in found)
    assert [(figure.target, figure.at_least) for figure in found] == [(5, False), (20, False), (20, False), (20, False)]


def test_figures_of_templates_have_their_target() -> None:
    found = list(figures.template_figures(1))
    assert all(figure.measured > 0 for figure in found)
    assert [(figure.target, figure.at_least) for figure in found] == [(300, True)] * 3


def test_the_figure_of_workloads_is_the_slowest_one_s() -> None:
    (found,) = figures.workload_figures(1)
    assert found.measured > 0 and (found.target, found.at_least) == (20, True)
    told = [each.rsplit(" ", 1) for each in found.detail.split(", ")]
    assert {name for name, _ in told} == set(WORKLOADS)
    assert found.name.endswith(f", {told[0][0]}") and f"{found.measured:.0f}" == told[0][1]


def test_the_target_of_validation_says_what_it_stands_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "VALIDATED", 2 * RECORDS)
    small, large = figures.validation_figures(2)
    assert (small.target, large.target) == (None, 2)
    assert f"the target stands on {2 * RECORDS} records a call" in small.detail
    assert "target" not in large.detail


def test_an_append_that_fails_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Refused("INVALID_RECORD", 7, "no such thing")

    monkeypatch.setattr(broker, "append", refuse)
    with pytest.raises(SystemExit, match=r"append of v0, none: .*INVALID_RECORD: no such thing"):
        list(figures.append_figures(1))


def test_different_bytes_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = figures.aiokafka_writes
    monkeypatch.setattr(
        figures, "aiokafka_writes", lambda name, rows: theirs(name, rows[:-1] if name == "v1" else rows)
    )
    with pytest.raises(SystemExit, match="v1: our bytes are not the peer's"):
        list(figures.encode_figures(1))


def test_verdicts() -> None:
    least = figures.Figure(name="n", measured=10.0, unit="x", target=10)
    most = dataclasses.replace(least, at_least=False)
    assert [dataclasses.replace(least, measured=m).verdict for m in (9.99, 10.0, 10.01)] == ["MISSED", "met", "met"]
    assert [dataclasses.replace(most, measured=m).verdict for m in (9.99, 10.0, 10.01)] == ["met", "met", "MISSED"]
    assert dataclasses.replace(least, target=None).verdict == ""


@pytest.mark.parametrize(("measured", "status"), [(10.0, 0), (9.99, 3)])
def test_a_missed_target_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], measured: float, status: int
) -> None:
    for name in [name for name in vars(figures) if name.endswith("_figures")]:
        one = [figures.Figure(name=name, measured=measured if name == "limit_figures" else 10.0, unit="x", target=10)]
        monkeypatch.setattr(figures, name, lambda _rounds, one=one: one)
    monkeypatch.setattr(sys, "argv", ["figures.py"])
    assert figures.main() == status
    assert ("MISSED" in capsys.readouterr().out) == (status == 3)


def test_ratios_are_paired() -> None:
    """A slow round slows both arms, and does not count."""
    assert figures.ratio([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]) == 2.0


def test_it_is_a_program() -> None:
    command = [sys.executable, "-m", "benchmarks.figures", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--json" in done.stdout
