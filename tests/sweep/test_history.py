"""A run that already has CPU times is resumed only on the same host with the same hardware."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kfbench.errors import RunError
from kfbench.measure.schema import SCHEMA, table
from kfbench.store import check_resumable, create_run, resume_run
from kfbench.sweep.definition.profile import Profile
from kfbench.sweep.run.history import MACHINE, RunHistory, timed_on
from kfbench.sweep.run.task import failed_rows, measure_cell
from tests.sweep.profiles import block, load_in

SETTINGS = "bytes = {records = 20}\ncpu = {records = 20, rounds = 1, sample_us = 1}\n"
HERE: dict[str, Any] = dict.fromkeys(MACHINE, "a")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Return a profile of two cells that are timed, and two that are not."""
    return load_in(tmp_path_factory.mktemp("profile"), SETTINGS, block(formats='["v2"]', measure='["bytes", "cpu"]'))


def rows_of(profile: Profile, kinds: str, hosts: str) -> pa.Table:
    """Measure the first cell of each kind. Return the rows, with the given host names."""
    cells = [next(cell for cell in profile.cells if cell.kind == kind) for kind in kinds.split()]
    return table(
        row | {"host": on} for cell, on in zip(cells, hosts.split(), strict=True) for row in measure_cell(cell)
    )


def test_any_host_may_time_what_none_has_timed(profile: Profile) -> None:
    found = rows_of(profile, "bytes", "there")
    assert timed_on(Path("run"), found, profile, {"there": HERE}, {"here": HERE}) is None
    timed = next(cell for cell in profile.cells if cell.kind == "cpu")
    failed = table(failed_rows(timed, "error", "out of ideas", "there"))
    assert timed_on(Path("run"), failed, profile, {"there": HERE}, {"here": HERE}) is None


def test_the_host_that_timed_goes_on(profile: Profile) -> None:
    found = rows_of(profile, "bytes cpu", "elsewhere there")
    assert timed_on(Path("run"), found, profile, {"there": HERE}, {"here": HERE, "there": HERE}) == "there"
    assert timed_on(Path("run"), found, profile, {}, {"there": HERE}) == "there"  # older facts are not stored


def test_another_host_or_another_machine_of_its_name_is_refused(profile: Profile) -> None:
    found = rows_of(profile, "cpu", "there")
    with pytest.raises(RunError, match=r"run: .* there \(a\), .* here, other: "):
        timed_on(Path("run"), found, profile, {"there": HERE}, {"here": HERE, "other": HERE})
    for name in MACHINE:
        with pytest.raises(
            RunError, match=f"run: there has timed cells, and is another machine now: {name}: a then, b"
        ):
            timed_on(Path("run"), found, profile, {"there": HERE}, {"there": HERE | {name: "b"}})
    mixed = pa.concat_tables([found, rows_of(profile, "cpu", "other")])
    with pytest.raises(RunError, match="run: cells were timed on other and there"):
        timed_on(Path("run"), mixed, profile, {}, {"there": HERE, "other": HERE})


def test_any_host_may_finish_what_has_nothing_left_to_time(profile: Profile) -> None:
    cells = tuple(cell for cell in profile.cells if cell.kind == "bytes") + profile.cells[-1:]
    assert cells[-1].kind == "cpu"
    found = table(row | {"host": "there"} for row in measure_cell(cells[-1]))
    assert timed_on(Path("run"), found, replace(profile, cells=cells), {}, {"here": HERE}) is None


def test_sessions_add_to_what_a_run_knows_of_hosts_and_stages(profile: Profile, tmp_path: Path) -> None:
    met = {"first": HERE}
    with create_run(tmp_path, {}) as writer:
        history = RunHistory(writer, met)
        assert check_resumable(writer.path, {})["host_facts"] == met
        met["second"] = HERE  # an executor on another host replaced a lost one
        history.add_rows(rows_of(profile, "bytes", "second"))
        assert set(check_resumable(writer.path, {})["host_facts"]) == {"first", "second"}
        history.add_stage({"kind": "bytes"})
    with resume_run(writer.path, {}, {}) as writer:
        again = RunHistory(writer, {"third": HERE})
        again.add_stage({"kind": "bytes"})
        again.add_rows(SCHEMA.empty_table())
    manifest = check_resumable(writer.path, {})
    assert manifest["stages"] == [{"session": 0, "kind": "bytes"}, {"session": 1, "kind": "bytes"}]
    assert set(manifest["host_facts"]) == set(again.hosts) == {"first", "second", "third"}
    assert again.stages == manifest["stages"]


@pytest.mark.parametrize(("kind", "told"), [("cpu", "a"), ("bytes", "b")])
def test_host_facts_are_those_of_the_timing(profile: Profile, tmp_path: Path, kind: str, told: str) -> None:
    """The run is resumed on another machine with the same host name.

    Stored host facts stay if CPU times were measured, else they are replaced.
    """
    with create_run(tmp_path, {}) as writer:
        RunHistory(writer, {"there": HERE}).add_rows(rows_of(profile, kind, "there"))
    with resume_run(writer.path, {}, {}) as writer:
        assert RunHistory(writer, {"there": HERE | {"cpu": "b"}}).hosts["there"]["cpu"] == told
    assert check_resumable(writer.path, {})["host_facts"]["there"]["cpu"] == told
