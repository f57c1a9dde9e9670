"""The table about reading a prefix (only the start of a payload) agrees with the rows."""

from typing import Any

import pandas as pd
import pytest

from kfbench.report.data.results import Results
from kfbench.report.topics.prefix import prefix_tables, prefix_times
from kfbench.tables import Interval
from tests.report.columns import column


def test_a_prefix_is_stated_in_shares_of_the_whole(rows: list[dict[str, Any]], results: Results) -> None:
    (table,) = prefix_tables(results, prefix_times(results))
    assert table.name == "prefix-v3-full"
    assert column(table, "records per batch") == [10, 10, 100, 100]
    assert column(table, "codec") == ["gzip 6", "zstd 3"] * 2
    shares: list[Any] = [row[5] for row in table.rows]
    assert shares[1] == 1.0 and max(shares[0], shares[2]) < 0.05  # 10 KB are one zstd block; gzip has none
    gzipped = [row for row in rows if row["kind"] == "prefix" and (row["batch_size"], row["codec"]) == (100, "gzip")]
    by = {row["operation"]: row for row in gzipped}
    whole, prefix = by["decode"], by["decode-metadata"]
    found = table.rows[2]
    assert found[2] == whole["plain_bytes"] / whole["batches"] and found[4] == prefix["plain_bytes"] / prefix["batches"]
    ratios = pd.Series(prefix["cpu_ns"]) / pd.Series(whole["cpu_ns"])
    assert isinstance(found[-1], Interval) and found[-1].median == pytest.approx(ratios.median())
