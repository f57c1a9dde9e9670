"""The section of compressed bytes agrees with the rows."""

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.results import Results
from kfbench.report.topics import compressed
from tests.report.columns import column


def test_codecs_stand_next_to_uncompressed_bytes(results: Results) -> None:
    shown = compressed.compressed_rows(results)
    table = compressed.codecs_table(shown, "size_per_record", name="c", caption="c", digits=2)
    assert [row[:2] for row in table.rows] == [
        (1, "none"), (1, "gzip 6"), (1, "zstd 3"), (10, "none"), (10, "gzip 6"), (10, "zstd 3"),
    ]  # fmt: skip
    v1 = dict(zip([row[:2] for row in table.rows], column(table, "v1"), strict=True))
    assert v1[10, "zstd 3"] is None
    assert v1[10, "gzip 6"] is not None
    ratios = compressed.codecs_table(shown, "to_base", name="c", caption="c", digits=4)
    assert BASE_FORMAT not in [c.name for c in ratios.columns]
