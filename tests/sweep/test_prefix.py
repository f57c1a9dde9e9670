"""`kfbench prefix`: its cells, and what a row says."""

import json

from kfbench.sweep.prefix import CODEC_NAMES, FORMAT, POINTS, cells, measure_cells


def test_every_codec_at_every_point() -> None:
    assert len(cells()) == len(POINTS) * len(CODEC_NAMES)
    assert CODEC_NAMES == ("gzip", "snappy", "lz4", "zstd")


def test_a_row_is_plain_json() -> None:
    (row,) = measure_cells(cells()[:1], rounds=5, sample_ns=1)
    back = json.loads(json.dumps(row.to_dict()))
    assert (back["format"], back["batch_size"], back["value_bytes"], back["codec"]) == (FORMAT, 10, 100, "gzip")
    assert back["batches"] == 100
    assert back["codec_version"].startswith("zlib ")
    assert len(back["reader_cpu"]) == 3
