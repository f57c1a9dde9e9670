from dataclasses import fields

import pyarrow as pa
import pytest

from kfbench.measure.kinds import KINDS
from kfbench.measure.schema import (
    ADDED,
    ARM,
    CELL,
    COLUMNS,
    DETERMINISTIC,
    IDENTITY,
    SCHEMA,
    SCHEMA_VERSION,
    SELF,
    WORKLOAD_COLUMNS,
    table,
)
from kfbench.workloads.grid import GridPoint


def test_every_column_says_what_it_means_in_the_file_itself() -> None:
    for field, column in zip(SCHEMA, COLUMNS, strict=True):
        assert field.metadata[b"meaning"].decode() == column.meaning != ""
        assert field.metadata[b"unit"].decode() == column.unit
    assert SCHEMA.metadata[b"kfbench_schema_version"] == str(SCHEMA_VERSION).encode()


def test_a_comparison_lists_all_times_of_encoding_and_decoding() -> None:
    assert [kind.name for kind in KINDS.values() if kind.is_headline] == ["cpu"]


def test_names_are_there_once_and_carry_their_unit() -> None:
    assert len(set(SCHEMA.names)) == len(COLUMNS)
    for column in COLUMNS:
        for suffix, unit in (("_ms", "ms"), ("_ns", "ns"), ("_bytes", "bytes")):
            assert not column.name.endswith(suffix) or column.unit == unit


def test_every_axis_of_the_grid_has_a_column_that_holds_it() -> None:
    arrow = {int: pa.types.is_integer, float: pa.types.is_floating, str: pa.types.is_string, bool: pa.types.is_boolean}
    types = {column.name: column.type for column in WORKLOAD_COLUMNS}
    for axis in fields(GridPoint):
        assert arrow[type(axis.default)](types[axis.name])


def test_times_and_hosts_are_not_deterministic() -> None:
    measured = set(SCHEMA.names) - set(DETERMINISTIC)
    assert {
        "host",
        "inner_loops",
        "cpu_ns",
        "wall_ns",
        "warm_up_calls",
        "yardstick_ns",
        "generate_ns",
        "extra_bytes",
    } <= measured
    assert "training_ns" in measured
    assert not measured & {"cell_id", "codec_version", "size_bytes", "cache", "start"}


def test_what_tells_rows_apart_is_the_same_on_any_day_and_knows_the_seed() -> None:
    assert set(IDENTITY) <= set(DETERMINISTIC) and len(set(IDENTITY)) == len(IDENTITY)
    for part in (ARM, SELF, CELL):
        assert set(part) < set(IDENTITY) and {"kind", "cell_id", "seed", "codec", "level"} <= set(part)


ROW = {"seed": 1} | dict.fromkeys("kind cell_id status grid workload format codec".split(), "x")


def test_only_columns_that_may_be_null_were_added_later() -> None:
    assert {column.name for column in COLUMNS if column.nullable} >= ADDED
    assert not ADDED & {"codec", "level", "size_bytes", "cpu_ns"}


def test_absent_columns_are_null() -> None:
    made = table([ROW | {"size_bytes": 3}])
    assert made.schema.equals(SCHEMA)
    assert made["size_bytes"].to_pylist() == [3] and made["cpu_ns"].to_pylist() == [None]


def test_a_column_that_is_not_in_the_schema_is_refused() -> None:
    with pytest.raises(KeyError, match="sizes"):
        table([ROW | {"sizes": 3}])
