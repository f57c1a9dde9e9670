"""Metadata columns: each packer returns the columns it was given, and its size is what it wrote."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.batch_plan import plan
from kfbench.formats import FORMATS
from kfbench.measure.floor import floor
from kfbench.records import Records
from kfbench.rivals import metadata_columns
from kfbench.rivals.metadata_columns import PACKERS, Packer, columns_of, metadata_sizes, values_of_varints, varints
from kfbench.rivals.sizes import RivalSize
from kfbench.workloads.catalogue import WORKLOADS

NOT_INSTALLED = metadata_columns.missing()
EVERYTHING = Records.from_lists(
    [b"value", None, b""],
    keys=[None, b"key", b""],
    timestamps_ms=[2**40, 5, -1],
    headers=[[("a", b"1"), ("a", None)], [], [("b", b"")]],
    offsets=[7, 9, 2**30],
)


def packers() -> list[Any]:
    return [
        pytest.param(
            packer,
            id=f"{packer.name} {packer.setting}",
            marks=pytest.mark.skipif(packer.name in NOT_INSTALLED, reason=NOT_INSTALLED.get(packer.name, "")),
        )
        for packer in PACKERS
    ]


def sizes_of(rows: list[RivalSize]) -> dict[tuple[str, str], int]:
    assert not [row for row in rows if row.error]
    return {(row.name, row.setting): row.size_bytes for row in rows if row.size_bytes is not None}


@pytest.mark.parametrize("packer", packers())
@pytest.mark.parametrize("values", [[5], [-1] * 300, [-(2**63), 2**63 - 1, 0], list(range(0, 9_000, 9))])
def test_a_column_of_any_integers_survives(packer: Packer, values: list[int]) -> None:
    assert packer.pack({"key_length": np.array(values, np.int64)}) > 0


@pytest.mark.parametrize("packer", packers())
def test_nothing_to_store_takes_no_bytes(packer: Packer) -> None:
    assert packer.pack({}) == 0


def test_columns_hold_all_metadata() -> None:
    columns = {name: values.tolist() for name, values in columns_of(EVERYTHING.shapes).items()}
    assert columns == {
        "offset_delta": [0, 2, 2**30 - 7],
        "timestamp_delta": [0, 5 - 2**40, -1 - 2**40],
        "key_length": [-1, 3, 0],
        "value_length": [5, -1, 0],
        "header_count": [2, 0, 1],
        "header_key_length": [1, 1, 1],
        "header_value_length": [1, -1, 0],
    }


def test_a_column_that_a_bit_can_replace_is_left_out() -> None:
    assert columns_of(Records.from_lists([None, None], timestamps_ms=[3, 3]).shapes) == {}


def test_all_packers_survive_all_metadata() -> None:
    assert len(sizes_of(metadata_sizes(EVERYTHING, np.array([0, 1, 1, 3])))) > 4


def test_columnar_is_compared_with_the_same_columns_and_the_floor() -> None:
    records = WORKLOADS["user-activity"].generate(records=500, seed=7).records
    bounds = plan(500, 100)
    columnar = sizes_of(metadata_sizes(records, bounds))["columnar", "best"]
    parts = FORMATS["columnar"].breakdown(records, bounds)
    assert columnar == parts["timestamp_age"] + parts["key_length"] + parts["value_length"]
    found = floor(records.shapes, bounds)
    assert columnar > sum(found.field_bytes[name] for name in found.bits)


def test_a_packer_that_loses_something_is_a_row_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_columns, "values_of_varints", lambda data: np.zeros(len(data), np.int64))
    rows = [row for row in metadata_sizes(EVERYTHING, np.array([0, 3])) if row.name == "zstd-varint"]
    assert [(row.size_bytes, row.records, row.batches) for row in rows] == [(None, 3, 1)] * 2
    assert all(row.error for row in rows)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_varints_survive(values: list[int]) -> None:
    column = np.array(values, np.int64)
    assert values_of_varints(varints(column)).tolist() == values


def test_varints_are_those_of_v2() -> None:
    assert varints(np.array([0, -1, 1, 64, -(2**63)])).tobytes() == b"\0\1\2\x80\1" + b"\xff" * 9 + b"\1"
