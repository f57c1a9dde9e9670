"""The verdict's numbers are those of the stored rows at exactly the settings that its words name.

The expected numbers are computed here from measurements.parquet, not through the code of the report.
"""

import re
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest

from kfbench.report.data.results import Results
from kfbench.report.data.views import Views
from kfbench.report.topics.claims import claims_answer
from kfbench.store import open_run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COG: Final = r'<!--cog\n.*?front\("(?P<report>.*?)"\).*?cog-->\n'
BLOCK: Final = re.compile(COG + r"(?P<text>.*?)<!--end-->", re.DOTALL)
POINT: Final = {
    "workload": "grid", "key_bytes": 16, "value_bytes": 100, "timestamp_spread_ms": 0, "headers": 0, "null_share": 0,
    "offset_stride": 1, "base_timestamp_ms": 1_767_225_600_000, "producer": False, "append_time": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    report = BLOCK.search(README)
    assert report is not None
    rows = pd.read_parquet(ROOT / report["report"] / "measurements.parquet")
    return rows[rows["status"] == "ok"]


@pytest.fixture(scope="module")
def words() -> str:
    """The verdict and its ranges in README.md, without emphasis."""
    block = BLOCK.search(README)
    assert block is not None
    return block["text"].replace("**", "")


def where(rows: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    return rows


def size(rows: pd.DataFrame, name: str, batch: int, codec: str, payload: str = "template") -> float:
    found = where(rows, kind="bytes", format=name, batch_size=batch, codec=codec, payload=payload, **POINT)
    found = found if codec == "none" else where(found, level=3)
    (one,) = set(found["size_bytes"] / found["records"])
    return float(one)


def cpu(rows: pd.DataFrame, operation: str) -> float:
    """Return the median over rounds of v3's time divided by v2's: one record per batch, no codec, in caches."""
    timed = where(
        rows, kind="cpu", operation=operation, batch_size=1, codec="none", payload="template", cache="resident",
        arm="measure", **POINT,
    )  # fmt: skip
    new, old = (where(timed, format=name).iloc[0] for name in ("v3", "v2"))
    return ratio_of(new, old)


def ratio_of(new: Any, old: Any) -> float:
    return float(np.median(np.array(new.cpu_ns) / new.inner_loops / (np.array(old.cpu_ns) / old.inner_loops)))


def percent(share: float, digits: int) -> str:
    return f"{100 * share:.{digits}f} %".replace("-", "−")


def more_or_less(ratio: float) -> str:
    return f"{percent(abs(ratio - 1), 0)} {'more' if ratio > 1 else 'less'}"


def test_each_number_of_the_verdict_has_the_scope_of_its_words(rows: pd.DataFrame, words: str) -> None:
    lone, full = size(rows, "v2", 1, "none"), size(rows, "v2", 100, "zstd")
    of_random = size(rows, "v2", 100, "zstd", "random") / size(rows, "v2", 1, "none", "random")
    alone = 1 - size(rows, "v3", 1, "none") / lone
    among = 1 - size(rows, "v3", 100, "none") / size(rows, "v2", 100, "none")
    for said, number in (
        (r"zstd save (\S+ %) of this record", percent(1 - full / lone, 0)),
        (r"A new format saves (\S+ %)", percent(alone, 0)),
        (r"random bytes: (\S+ %)", percent(1 - of_random, 0)),
        (r"v3 .* saves (\S+ %) alone in its batch", percent(alone, 1)),
        (r"Among 100: (\S+ %)", percent(among, 1)),
        (r"Among 100: .*, under zstd (\S+ %)", percent(1 - size(rows, "v3", 100, "zstd") / full, 1)),
        (r"Alone, encoding takes (\S+ % \S+) CPU", more_or_less(cpu(rows, "encode"))),
        (r"decoding (\S+ % \S+)\.", more_or_less(cpu(rows, "decode"))),
    ):
        assert re.findall(said, words) == [number], said


def test_the_ranges_over_the_workloads_are_those_of_the_rows(rows: pd.DataFrame, words: str) -> None:
    named = rows[(rows["kind"] == "bytes") & rows["grid"].isin(["columnar", "columnar-codecs", "workloads"])]
    keys = ["workload", "grid", "batch_size", "codec", "format"]
    totals = named.groupby(keys, dropna=False)[["size_bytes", "records"]].sum().reset_index()
    totals["size"] = totals["size_bytes"] / totals["records"]

    def sizes(**wanted: Any) -> "pd.Series[float]":
        return where(totals, **wanted).set_index("workload")["size"]

    lone = sizes(grid="columnar", batch_size=1, codec="none", format="v2")
    own = {
        codec: 1 - sizes(grid="workloads", codec=codec, format="v3") / sizes(grid="workloads", codec=codec, format="v2")
        for codec in ("none", "zstd")
    }
    both = 1 - sizes(grid="columnar-codecs", batch_size=100, codec="zstd", format="v2") / lone
    for said, savings in (
        (r"Over (\d+) workloads it is (\S+) to (\S+) %, (\S+) % in the median", both),
        (r"Over (\d+) workloads in their own batches, v3 saves (\S+) to (\S+) %, (\S+) % in the median", own["none"]),
        (r"Under zstd 3 it saves (\S+) to (\S+) %, (\S+) % in the median", own["zstd"]),
    ):
        shares = savings.dropna().tolist()
        expected = [percent(each, 1).removesuffix(" %") for each in (min(shares), max(shares), median(shares))]
        (found,) = re.findall(said, words)
        assert list(found[-3:]) == expected and found[:-3] in ((), (str(len(shares)),)), said


def test_what_v3_saves_per_batch_is_what_it_saves_besides_a_byte_per_record(rows: pd.DataFrame, words: str) -> None:
    plain = where(rows, kind="bytes", workload="grid", codec="none", base_timestamp_ms=POINT["base_timestamp_ms"])
    v2, v3 = (where(plain, format=name).drop_duplicates("cell_id").set_index("cell_id") for name in ("v2", "v3"))
    saved = ((v2["size_bytes"] - v3["size_bytes"] - v3["records"]) / v3["batches"]).dropna()
    is_small = v3["batch_size"].reindex(saved.index) <= 50
    said = r"one byte per record and (\d+) to (\d+) per batch \(above 50 records, (\d+) to (\d+)\)"
    (found,) = re.findall(said, words)
    assert [*map(int, found)] == [
        end for part in (saved[is_small], saved[~is_small]) for end in (part.min(), part.max())
    ]


def test_the_cpu_of_lone_records_is_the_geometric_mean_over_their_workloads(rows: pd.DataFrame) -> None:
    files = [*(ROOT / "datasets" / "workloads").glob("*.toml")]
    of_class = [path.stem for path in files if 'class = "One record per batch"' in path.read_text(encoding="utf-8")]
    named = rows[rows["workload"].isin(of_class) & (rows["variant"].fillna("default") == "default")]
    named = named[named["batch_size"].isna() & (named["cache"] != "cold")]
    ratios: dict[str, list[float]] = {"encode": [], "decode": [], "append": []}
    for operation, found in ratios.items():
        timed = where(named, operation=operation, codec="none", arm="measure")
        for workload in of_class:
            new, old = (where(timed, workload=workload, format=name).iloc[0] for name in ("v3", "v2"))
            found.append(ratio_of(new, old))
    report = open_run(ROOT / "reports" / "2026-11-24.20")
    (prose,) = claims_answer(Views(Results(report.measurements()))).prose
    expected = [
        f"{operation} {more_or_less(float(np.exp(np.log(found).mean())))}" for operation, found in ratios.items()
    ]
    assert f"in {len(of_class)} workloads" in prose
    assert re.findall(r"(?:encode|decode|append) \S+ % \w+", prose) == expected
