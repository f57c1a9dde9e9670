"""Rows of kinds that kfbench no longer measures, and manifests of older reports, are read like all others.

tests/data/removed-kinds.parquet has 200 rows of each of REMOVED_KINDS, as they were stored:

- rivals-metadata, rivals-json and rivals-stream are of datasets/joined/rivals at commit d1750749, a run of 2026-11-26
  (code f737988a). Every fourth or fifth row is here, over all blocks.
- dictionary-codecs and dictionary-broker are of datasets/joined/dictionary at commit d1750749, a run of 2026-11-26
  (code c2ea6d8b). Of dictionary-codecs every fourth or fifth row is here. Of dictionary-broker the first 200 are here,
  because its rows are timed in rounds. The run lacks the columns library_level and call_bytes.

The manifests are those of reports/2026-11-23.4 (code 5a1860ad) and reports/2026-11-24.1 (code 2478e80d).
"""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kfbench.comparison.compare import compare
from kfbench.measure.kinds import KINDS, REMOVED_KINDS
from kfbench.measure.schema import IDENTITY, SCHEMA
from kfbench.report.build import all_views
from kfbench.report.files import report_of
from kfbench.store import Run, open_run
from tests.cli.command import Run as Command
from tests.cli.conftest import kfbench as kfbench
from tests.report.conftest import joins_nothing as joins_nothing
from tests.report.workload_rows import workload_rows
from tests.runs import stored

DATA: Final = Path(__file__).parents[1] / "data"
ROWS: Final = DATA / "removed-kinds.parquet"
MANIFESTS: Final = sorted(DATA.glob("manifest-*.json"))
EACH: Final = 200


def removed_run(folder: Path, manifest: Path = MANIFESTS[0], **facts: Any) -> Run:
    """Return a run with the stored rows and an older manifest, in which only the number of rows differs."""
    folder.mkdir()
    shutil.copy(ROWS, folder / "measurements.parquet")
    changes = {"rows": EACH * len(REMOVED_KINDS)} | facts
    (folder / "manifest.json").write_text(json.dumps(json.loads(manifest.read_bytes()) | changes))
    return open_run(folder)


def test_the_data_have_every_removed_kind() -> None:
    assert Counter(pq.read_table(ROWS)["kind"].to_pylist()) == dict.fromkeys(REMOVED_KINDS, EACH)
    assert not REMOVED_KINDS & KINDS.keys()
    assert [path.name for path in MANIFESTS] == ["manifest-2478e80d.json", "manifest-5a1860ad.json"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: str(path.stem))
def test_rows_and_manifests_are_read_as_they_were_stored(tmp_path: Path, manifest: Path) -> None:
    wanted = pq.read_table(ROWS)
    wanted = wanted.sort_by([(name, "ascending") for name in IDENTITY if name in wanted.column_names])
    run = removed_run(tmp_path / "run", manifest)
    assert run.table.schema.equals(SCHEMA)
    for name in SCHEMA.names:
        values = wanted[name] if name in wanted.column_names else pa.nulls(len(wanted), SCHEMA.field(name).type)
        assert run.table[name].to_pylist() == values.to_pylist(), name
    assert set(wanted.column_names) <= set(SCHEMA.names)
    assert run.manifest == json.loads(manifest.read_bytes()) | {"rows": len(wanted)}


def test_values_survive_in_pandas(tmp_path: Path) -> None:
    found = removed_run(tmp_path / "run").measurements()
    stored_sizes = pq.read_table(ROWS, columns=["kind", "size_bytes"]).to_pandas()
    assert found.groupby("kind")["size_bytes"].sum().equals(stored_sizes.groupby("kind")["size_bytes"].sum())
    assert found.loc[found["kind"] == "dictionary-broker", "cpu_ns"].map(len).min() > 1


def test_runs_of_removed_kinds_are_compared(tmp_path: Path, kfbench: Command) -> None:
    first, second = removed_run(tmp_path / "first"), removed_run(tmp_path / "second")
    found = compare(first.path, second.path, threshold=0.03)
    assert found.rows == EACH * len(REMOVED_KINDS) and not found.is_regression and not found.missing
    assert {group.kind for group in found.cpu.judged} == {"dictionary-broker"}
    assert all(each.before.median == each.after.median for group in found.cpu.judged for each in group.cells)
    done = kfbench("compare", first.path, second.path)
    assert done.out.endswith("No regression.\n") and "the same in all 1,000 rows" in done.out


def tables_of(run: Run) -> dict[str, Any]:
    """Return the cells of all tables of a run's report, without the lists of what is missing."""
    return {name: table for name, table in report_of(run).json.items() if name not in ("missing", "failures")}


@pytest.mark.slow
def test_a_report_has_no_section_and_no_table_of_them(tmp_path: Path, kfbench: Command) -> None:
    """Only tables of stored files and of the manifest are left, such as times of other implementations."""
    run = removed_run(tmp_path / "run", filter=["kind=" + ",".join(sorted(REMOVED_KINDS))])
    java = {"second_opinion", "java_codecs"}
    stored_files = {"claims", "peers", "peer_differences", "migration_assumed", "checks", "measured_runs", *java}
    views = {table.name: table.source for view in all_views() for table in view.tables}
    assert {views[name] for name in tables_of(run)} <= stored_files
    done = kfbench("report", run.path, "--out", tmp_path)
    assert not {"research.html"} & {file.name for file in Path(done.out.strip()).parent.iterdir()}


@pytest.mark.slow
def test_tables_of_other_rows_do_not_change(tmp_path: Path) -> None:
    others = workload_rows()
    alone = stored(tmp_path / "alone", others)
    both = stored(tmp_path / "both", [*others, *pq.read_table(ROWS).to_pylist()])
    assert tables_of(both) == tables_of(alone) and len(tables_of(alone)) > 10
