"""Numbers that hand-written pages quote are those of the stored data."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kfbench.present.fields import fill_fields
from kfbench.report.build import Report
from kfbench.report.files import report_of
from kfbench.store import open_run
from tests.runs import committed_reports
from tools.pages import ten_bars

ROOT = Path(__file__).parents[1]
# Kafka's pull request 23477: bytes that an iteration over a v2 batch allocates, with bodies and without.
PUBLISHED = {
    "none": (90_120, 90_120), "gzip": (243_530, 32_811), "lz4": (285_592, 74_873), "zstd": (359_726, 154_769)
}  # fmt: skip
ROW = r"\| {} \|(?: [^|]*\|){{{}}} ([\d.,]+) "  # of a table: the number after the row's name and some cells


@cache
def stored(run: str) -> pd.DataFrame:
    """Return the rows without an error, of batches that are as large as wanted."""
    rows = pd.read_parquet(ROOT / "datasets" / "joined" / run / "measurements.parquet")
    return rows[(rows["status"] == "ok") & ~(rows["records"] / rows["batches"] < 0.9 * rows["batch_size"])]


@cache
def rivals() -> pd.DataFrame:
    """Return the bytes per record: a row per codec, workload and batch size, a column per format."""
    rows = stored("rivals")[stored("rivals")["kind"] == "rivals"]
    rows = rows.assign(size=rows["size_bytes"] / rows["records"], batch=rows["batch_size"].fillna(0))
    return rows.pivot_table(index=["codec", "workload", "batch"], columns="format", values="size")


def size(name: str, batch: int) -> float:
    return float(rivals().loc[("zstd", "user-activity", batch), name])


def removed(kind: str, name: str, batch: int) -> float:
    """Return the mean over seeds of the bytes per record of a removed kind, with the smallest settings."""
    rows = stored("rivals")
    rows = rows[(rows["kind"] == kind) & (rows["format"] == name) & (rows["batch_size"] == batch)]
    rows = rows[(rows["workload"] == "user-activity") & (rows["arm"] == "best")]
    return float((rows["size_bytes"] / rows["records"]).mean())


def relative(codec: str) -> pd.DataFrame:
    """Return the bytes of each rival relative to columnar's."""
    sizes = rivals().loc[codec]
    return sizes.drop(columns=["v2", "columnar"]).div(sizes["columnar"], axis=0)


def cpu(run: str, column: str, one: str, base: str, **where: Any) -> float:
    """Return the CPU time of one value of a column relative to another: the mean of the workloads' medians."""
    rows = stored(run)[(stored(run)[[*where]] == list(where.values())).all(axis=1)].set_index([column, "workload"])
    ns = rows["cpu_ns"] / rows["inner_loops"]
    return float(np.exp(np.mean([np.log(np.median(ns[one, each] / ns[base, each])) for each in ns[one].index])))


def on_broker(operation: str, batch: int) -> float:
    where = {"kind": "dictionary-broker", "format": "v2", "arm": "measure", "operation": operation, "batch_size": batch}
    return cpu("dictionary", "dictionary", "trained", "plain", **where)


def to_encode(name: str, codec: str) -> float:
    where = {"kind": "rivals-cpu", "arm": "each", "operation": "encode", "batch_size": 1_000, "codec": codec}
    return cpu("rivals", "format", name, "v2", **where)


def in_java(kafka: str, base: str, end: Callable[[list[float]], float], name: str = "v3") -> float:
    """Return an end of the range of time relative to `base`: medians over JVMs, of batches without a codec."""
    runs = json.loads((ROOT / "datasets/second-opinion/jmh.json").read_text())["runs"]
    (run,) = (each for each in runs if (each["kafka"], each["cells"]) == (kafka, "claimed"))
    rows = pd.DataFrame([row for row in run["rows"] if row["codec"] == "none"])
    ns = rows.set_index(["format", "operation", "records"])["fork_ns"].map(np.array)
    cells = [(operation, records) for operation in ("write", "iterate") for records in (1, 50)]
    return end([float(np.median(ns[name, *cell] / ns[base, *cell])) for cell in cells])


def farthest_from_published() -> float:
    """Return the largest difference of Java's allocated bytes from those of Kafka's pull request, in percent."""
    rows = json.loads((ROOT / "datasets/second-opinion/published.json").read_text())["rows"]
    found = pd.DataFrame(rows).pivot(index="codec", columns="reading", values="bytes_per_batch")
    published = pd.DataFrame(PUBLISHED, index=["whole", "withoutBodies"]).T
    assert found.shape == published.shape
    return float(100 * (found / published - 1).abs().max(axis=None))


QUOTED: list[tuple[str, str, Callable[[], float]]] = [
    ("why-not-parquet", ROW.format("v2", 0), lambda: size("v2", 1)),
    ("why-not-parquet", ROW.format("columnar", 4), lambda: size("columnar", 10_000)),
    ("why-not-parquet", ROW.format("parquet-best", 5), lambda: (relative("zstd")["parquet-best"] < 1).sum()),
    ("why-not-parquet", r"same codec: zstd (\d+) ", lambda: (relative("zstd").min(axis=1) < 1).sum()),
    ("why-not-parquet", r"parquet-best takes ([\d.]+) × its bytes, cluster", lambda: relative("zstd").min().min()),
    ("why-not-parquet", r"v2 = 1: parquet ([\d.]+) ×", lambda: to_encode("parquet", "none")),
    ("why-not-parquet", r"parquet-best ([\d.]+) × \(zstd\)", lambda: to_encode("parquet-best", "zstd")),
    ("why-not-parquet", r"pcodec [\d.]+, [\d.]+, ([\d.]+)", lambda: removed("rivals-metadata", "pcodec", 100)),
    ("why-not-parquet", r"columns\*\* .*?: Parquet ([\d.]+)", lambda: removed("rivals-json", "parquet-shredded", 1)),
    ("dictionaries", ROW.format("append", 0), lambda: on_broker("append", 1)),
    ("java", r"v3 takes ([\d.]+) to [\d.]+ × v2's time on Kafka 4", lambda: in_java("4.4.0", "v2-own", min)),
    ("java", r"on Kafka 4.4.0, and [\d.]+ to ([\d.]+) × on 3.9.2", lambda: in_java("3.9.2", "v2-own", max)),
    ("java", r"v2 in our Java code takes only ([\d.]+) to", lambda: in_java("4.4.0", "v2", min, "v2-own")),
    ("java", r"largest of eight differences is ([\d.]+) %", farthest_from_published),
]


@pytest.mark.parametrize(("page", "place", "computed"), QUOTED)
def test_a_quoted_number_is_that_of_the_stored_rows(page: str, place: str, computed: Callable[[], float]) -> None:
    text = re.sub(r"\s+", " ", (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8"))
    (quoted,) = re.findall(place, text)
    digits = len(quoted.partition(".")[2])
    assert float(quoted.replace(",", "")) == pytest.approx(computed(), abs=0.51 / 10**digits)


FRONT: list[tuple[str, str]] = [
    (
        "and zstd save {} of this",
        "front-sizes.saving[batch_size=100,payload=template,with_codec=zstd 3,format=v2]:pct0",
    ),
    ("new format saves {}.", "front-sizes.saving[batch_size=1,payload=template,with_codec=none,format=v3]:pct0"),
    ("with random bytes {}.", "front-sizes.saving[batch_size=100,payload=random,with_codec=zstd 3,format=v2]:pct0"),
    ("not in Kafka, saves {} alone", "ratio.saving[batch_size=1,format=v3]:pct1"),
    ("its batch, {} with 100", "ratio.saving[batch_size=100,format=v3]:pct1"),
    ("Decoding it alone takes {} or", "cpu-batch-size-decode.time_ratio[batch_size=1,format=v3]:x2"),
    ("or {} v2's CPU time", "front-cpu.time_ratio[batch_size=1,format=v3,operation=decode]:x2"),
    ("Encoding it takes {} or", "cpu-batch-size-encode.time_ratio[batch_size=1,format=v3]:x2"),
    ("or {}.", "front-cpu.time_ratio[batch_size=1,format=v3,operation=encode]:x2"),
]


VERDICT_WORDS = 60
UNIT = re.compile(r"(?<=\d) (?=(?:%|×|bytes)(?:\W|$))")  # a number with its unit is one word


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(open_run(committed_reports()[-1]))


@pytest.mark.slow
def test_the_verdict_of_the_front_page_is_short(report: Report) -> None:
    verdict = f"{report.pages[0].title} {report.pages[0].lead}".replace("\xa0", " ")
    assert len(UNIT.sub("", verdict).split()) <= VERDICT_WORDS


@pytest.mark.slow
def test_v3_saves_nothing_measurable_in_full_batches_under_zstd(report: Report) -> None:
    field = "{grid-cells.saving[kind=bytes,batch_size=100,value_bytes=100,with_codec=zstd 3,format=v3]:pct0}"
    assert fill_fields(field, report.tables, "") == "0\xa0%"
    rows = stored("codec-cpu").query("kind == 'bytes' and batch_size == 100 and value_bytes == 100")
    sizes = rows.query("codec == 'zstd' and level == 3").groupby("format")["size_bytes"].first()  # two grids have it
    assert abs(1 - sizes["v3"] / sizes["v2"]) < 0.005


@pytest.mark.slow
def test_the_readme_opens_with_numbers_of_the_newest_report(report: Report) -> None:
    opening = re.sub(r"\s+", " ", (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n")[1])
    for words, field in FRONT:  # pages have no line break before a unit, README.md may have
        assert fill_fields(words.format(f"{{{field}}}"), report.tables, "README.md").replace("\xa0", " ") in opening
    others = {"16", "100", "931", "2", "3"}  # sizes of the record, and names
    assert len([each for each in re.findall(r"[\d.]*\d", opening) if each not in others]) == len(FRONT)


@pytest.mark.skipif(not (ROOT / "datasets/joined/codec-cpu").exists(), reason="no run of codec-cpu is shipped yet")
def test_the_picture_of_the_readme_has_the_bytes_of_the_shipped_run(tmp_path: Path) -> None:
    ten_bars(str(tmp_path / "bars.svg"))
    assert (tmp_path / "bars.svg").read_bytes() == (ROOT / "docs" / "ten-bars.svg").read_bytes()
