"""JSON in typed columns: each value comes back semantically equal, and the schema's bytes are counted apart."""

import json

import numpy as np
import pytest

from kfbench.batch_plan import plan
from kfbench.records import Records
from kfbench.rivals import shredded
from kfbench.rivals.shredded import WITHOUT_SCHEMA, json_object, shredded_sizes, without_nulls
from kfbench.rivals.sizes import RivalSize
from kfbench.workloads.catalogue import WORKLOADS

WITH_JSON = (
    "cdc-debezium", "cloudevents", "connect-internal", "out-of-order", "service-events", "transactional",
    "user-activity",
)  # fmt: skip
MIXED = Records.from_lists(
    [b'{"a": 1, "b": {"c": [1.5, null], "d": "x"}}', b'{"a": null}', b"{}", b"plain", b'{"a": 1, "a": 2}', None, b""],
    keys=[None, b"", b"k", b"\xff", b"k", b"k", b"k"],
    headers=[[("h", None), ("h", b"1")], *[()] * 6],
    timestamps_ms=[9, 5, 5, 5, 5, 5, -1],
    offsets=[3, 4, 7, 8, 9, 10, 12],
)


def sizes_of(rows: list[RivalSize]) -> dict[tuple[str, str], int]:
    assert not [row for row in rows if row.error]
    return {(row.name, row.setting): row.size_bytes for row in rows if row.size_bytes is not None}


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_every_kind_of_value_survives(codec: str) -> None:
    sizes = sizes_of(shredded_sizes(MIXED, np.array([0, 3, 3, 7]), codec))
    assert len(sizes) == 8
    for (name, setting), size_bytes in sizes.items():
        if not setting.endswith(WITHOUT_SCHEMA):
            assert sizes[name, setting + WITHOUT_SCHEMA] < size_bytes
            assert sizes[name, "best"] <= size_bytes


@pytest.mark.parametrize("name", WITH_JSON)
def test_the_json_of_named_workloads_survives(name: str) -> None:
    assert (
        len(sizes_of(shredded_sizes(WORKLOADS[name].generate(records=60, seed=7).records, plan(60, 30), "zstd"))) == 8
    )


def test_a_topic_without_json_objects_has_no_rows() -> None:
    assert not shredded_sizes(Records.from_lists([b"[1]", b"7", None, b"\xff"]), plan(4, 4), "zstd")


def test_members_of_conflicting_types_are_a_row_with_its_error() -> None:
    rows = shredded_sizes(Records.from_lists([b'{"a": 1}', b'{"a": "x"}']), plan(2, 2), "zstd")
    assert len(rows) == 8
    assert all(row.error and row.size_bytes is None for row in rows)


@pytest.mark.parametrize("value", [b'{"a": 1, "a": 1}', b'{"a": NaN}', b'{"a": -Infinity}', b"{", b"[]", b"null", None])
def test_what_typed_columns_cannot_hold_stays_opaque(value: bytes | None) -> None:
    assert json_object(value) is None


def test_only_members_that_are_null_are_ignored_when_values_are_compared() -> None:
    assert without_nulls(json.loads('{"a": null, "b": [null, {"c": null}]}')) == {"b": [None, {}]}


def test_a_container_that_changes_a_value_is_a_row_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    read = shredded._read_parquet
    monkeypatch.setattr(shredded, "_read_parquet", lambda data: read(data)[:-1])
    rows = shredded_sizes(MIXED, plan(7, 7), "zstd")
    assert {row.name for row in rows if row.error} == {"parquet-shredded"}
