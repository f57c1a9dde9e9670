"""The chapter about dictionaries: its numbers computed apart, and the run that it joins."""

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kfbench.report.data import joined
from kfbench.report.data.dictionaries import LINES, Dictionaries
from kfbench.report.data.joined import DICTIONARY, FOLDER, joined_run
from kfbench.report.files import files_of
from kfbench.report.topics.dictionaries import cpu_tables, sentences, tables
from kfbench.shipped import DATASETS
from kfbench.store import Run, open_run
from kfbench.tables import Interval, Table

JOINS = True
SHIPPED = DATASETS / FOLDER / DICTIONARY


@pytest.fixture(scope="module")
def shipped() -> Run:
    return open_run(SHIPPED)


@pytest.fixture(scope="module")
def lines(shipped: Run) -> pd.DataFrame:
    found = shipped.measurements()
    return found[(found["status"] == "ok") & found["workload"].str.startswith("lines-") & (found["level"] == 3)]


@pytest.fixture(scope="module")
def found(shipped: Run) -> Dictionaries:
    measured = joined_run(shipped, DICTIONARY)
    assert measured is not None and measured.is_own
    return Dictionaries(measured)


def by(table: Table, *key: Any) -> tuple[Any, ...]:
    (row,) = [row for row in table.rows if row[: len(key)] == key]
    return row[len(key) :]


def test_bytes_are_charged_means_over_topics(lines: pd.DataFrame, found: Dictionaries) -> None:
    sizes = lines[(lines["grid"] == "dictionary-lines") & (lines["trained_share"] == 0.5) & (lines["batch_size"] == 10)]
    base = sizes[(sizes["format"] == "v2") & (sizes["dictionary"] == "plain")].set_index("workload")["size_bytes"]
    expected = []
    for name, dictionary in (("v2", "trained"), ("columnar", "plain"), ("columnar", "trained")):
        is_wanted = (sizes["format"] == name) & (sizes["dictionary"] == dictionary)
        part = sizes[is_wanted & (sizes["dictionary_size_bytes"].fillna(32768) == 32768)].set_index("workload")
        ratios = part["size_bytes"] / base + part["dictionary_stored_bytes"].fillna(0) / 1e7
        assert len(ratios) == len(base)
        expected.append(float(np.exp(np.log(ratios).mean())))
    row = by(tables.means_table(found), LINES.words, "10 records per batch")
    assert row == (len(base), *map(pytest.approx, expected))
    assert f"{expected[2]:.2f}" in sentences.headline_sentence(found)
    assert f"{expected[0]:.2f}" in sentences.base_format_sentence(found)


def test_cpu_is_paired_with_plain_zstd_of_the_same_rounds(lines: pd.DataFrame, found: Dictionaries) -> None:
    times = lines[(lines["grid"] == "dictionary-lines-cpu") & (lines["format"] == "v2") & (lines["batch_size"] == 10)]
    times = times[(times["operation"] == "compress") & (times["arm"] == "measure")].set_index("workload")
    plain, trained = times[times["dictionary"] == "plain"], times[times["dictionary_size_bytes"] == 32768]

    def ratios(of: pd.DataFrame) -> list[float]:
        return [
            float(np.median(of["cpu_ns"][topic] / plain["cpu_ns"][topic]))
            * float(plain["inner_loops"][topic] / of["inner_loops"][topic])
            for topic in plain.index
        ]

    medians, table = ratios(trained), cpu_tables.cpu_table(found)
    compress, _ = by(table, LINES.words, "v2", "32 KiB", "10 records per batch")
    assert compress == pytest.approx(float(np.exp(np.mean(np.log(medians)))))
    lean, _ = by(table, LINES.words, "v2", "none, lean frame", "10 records per batch")
    assert lean == pytest.approx(float(np.exp(np.mean(np.log(ratios(times[times["dictionary"] == "lean"]))))))
    assert f"{compress:.2f} ×" in sentences.cpu_sentence(found)
    interval, _ = by(cpu_tables.cpu_topics_table(found), str(plain.index[0]), "10 records per batch", "v2")
    assert isinstance(interval, Interval) and interval.median == pytest.approx(medians[0])


def test_losses_are_on_equal_footing(shipped: Run, found: Dictionaries) -> None:
    every = shipped.measurements()
    sizes = every[(every["grid"] == "dictionary-batches") & (every["trained_share"] == 0.5) & (every["status"] == "ok")]
    sizes = sizes[(sizes["workload"] == "cluster-metadata") & (sizes["batch_size"] == 1)]
    own = sizes[sizes["format"] == "columnar"].set_index(["dictionary", "dictionary_size_bytes"])
    (base,) = sizes.loc[(sizes["format"] == "v2") & (sizes["dictionary"] == "plain"), "size_bytes"]
    trained = own.loc[("trained", 32768)]
    without = min(own["size_bytes"]["plain"].iloc[0], own["size_bytes"]["none"].iloc[0])
    ratio = (trained["size_bytes"] + trained["dictionary_stored_bytes"] * base / 1e7) / without
    shown = by(tables.losses_table(found), "cluster-metadata", "one record per batch", "columnar")[0]
    assert shown == pytest.approx(ratio) and ratio > 1


def renamed(shipped: Run, rows: pd.DataFrame) -> Dictionaries:
    """Return what a run with these rows alone has."""
    measured = joined.Joined(run=shipped, is_own=True)
    vars(measured)["rows"] = rows
    return Dictionaries(measured)


def test_a_block_about_changed_records_has_a_table(shipped: Run, lines: pd.DataFrame) -> None:
    found = renamed(shipped, lines[lines["grid"] == "dictionary-lines-age"].assign(grid="dictionary-change"))
    assert not found.ages and not found.sizes
    part = lines[(lines["grid"] == "dictionary-lines-age") & (lines["workload"] == "lines-jvm-gc")]
    part = part[(part["format"] == "v2") & (part["trained_share"] == 0.5) & (part["part"] == 2)].set_index("dictionary")
    shown = by(tables.change_table(found), "lines-jvm-gc", "10 records per batch", "v2", 50.0)
    assert shown[1] == pytest.approx(part["size_bytes"]["trained"] / part["size_bytes"]["plain"])


@pytest.mark.usefixtures("drawn")
def test_a_run_of_the_profile_has_the_chapter_from_its_own_rows(shipped: Run) -> None:
    files = dict(files_of(shipped))
    page = files["dictionaries.html"].decode()
    assert "This run was measured" in page and not any(name.startswith(f"{FOLDER}/{DICTIONARY}") for name in files)
    assert {name for name in files if name.endswith(".html")} == {
        "index.html", "cpu.html", "dictionaries.html", "rivals.html", "claims.html", "trust.html",
    }  # fmt: skip


@pytest.mark.usefixtures("drawn")
def test_a_report_joins_the_newest_run_with_its_date_and_machine(run: Run, shipped: Run, tmp_path: Path) -> None:
    files = dict(files_of(run))
    page = files["dictionaries.html"].decode()
    environment = shipped.manifest["environment"]
    for fact in (shipped.manifest["started"][:10], environment["cpu"], "<code>kfbench sweep dictionary</code>"):
        assert fact in page
    assert files["joined/dictionary/manifest.json"] == (SHIPPED / "manifest.json").read_bytes()
    assert "dictionaries.html#t-dictionaries-means" in files["index.html"].decode()
    newer = tmp_path / "runs" / "2099-01-01.1"
    shutil.copytree(SHIPPED, newer)
    manifest = json.loads((newer / "manifest.json").read_bytes()) | {"started": "2099-01-01T00:00:00+00:00"}
    (newer / "manifest.json").write_text(json.dumps(manifest))
    beside = dataclasses.replace(run, path=tmp_path / "runs" / "2099-01-02.1")
    vars(beside)["table"] = run.table
    assert (found := joined_run(beside, DICTIONARY)) is not None and found.run.path == newer
    (newer / "manifest.json").write_text(json.dumps(manifest | {"filter": ["workload=lines-go-test"]}))
    assert (found := joined_run(beside, DICTIONARY)) is not None and found.run.path == SHIPPED


@pytest.mark.usefixtures("drawn")
def test_without_a_stored_run_the_chapter_is_missing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "DATASETS", tmp_path)
    files = dict(files_of(run))
    assert "dictionaries.html" not in files and not any(name.startswith(f"{FOLDER}/{DICTIONARY}") for name in files)
    assert "kfbench sweep dictionary" in files["trust.html"].decode()


@pytest.mark.usefixtures("drawn")
def test_the_figure_draws_the_numbers_of_its_table(found: Dictionaries) -> None:
    drawn = {round(value, 9) for value in tables.means_frame(found, LINES).to_numpy().flat}
    shown = {round(cell, 9) for row in tables.means_table(found).rows for cell in row if isinstance(cell, float)}
    assert drawn <= shown


def test_the_shipped_rows_are_small() -> None:
    assert (SHIPPED / "measurements.parquet").stat().st_size < 400_000
