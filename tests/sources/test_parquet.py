"""Parquet files: values are read back, a damaged row group loses only its own rows, memory stays bounded."""

import base64
import pickle
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench.errors import KfbenchError
from kfbench.sources import parquet_file
from kfbench.sources.columns import Columns
from kfbench.sources.tables import find
from tests.common import records_of
from tests.reference.model import Message
from tests.sources.rows import chunks, count, damage_of, messages, only, parquet
from tests.strategies import message_lists


def renumbered(given: Sequence[Message]) -> list[Message]:
    """Return the messages as a table can store them: offsets count from 0, and timestamps are not negative."""
    return [
        Message(offset=i, timestamp_ms=max(m.timestamp_ms, 0) // 2, key=m.key, value=m.value, headers=m.headers)
        for i, m in enumerate(given)
    ]


@settings(max_examples=25)
@given(message_lists(min_size=1).map(renumbered), st.integers(1, 4))
def test_records_that_were_written_as_parquet_come_out(
    tmp_path_factory: pytest.TempPathFactory, given: list[Message], group: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "records.parquet"
    pq.write_table(records_of(given).to_arrow(), path, row_group_size=group)
    columns = Columns(key="key", value="value", timestamp="timestamp_ms", headers="headers")
    found = chunks(path, columns)
    assert messages(found) == given and not damage_of(found)
    assert sum(each.size_bytes for each in found) == sum(
        pq.read_metadata(path).row_group(i).column(j).total_compressed_size
        for i in range(pq.read_metadata(path).num_row_groups)
        for j in range(pq.read_metadata(path).num_columns)
    )


def test_a_damaged_row_group_is_left_out_and_the_next_is_read(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "t.parquet", {"v": [base64.b64encode(bytes([i])) * 50 for i in range(200)]},
        row_group_size=50, compression="zstd", use_dictionary=False, column_encoding="PLAIN",
    )  # fmt: skip
    file = pq.read_metadata(path)
    column = file.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    end = column.data_page_offset + column.total_compressed_size
    data[end - 200 : end] = bytes(200)
    path.write_bytes(data)
    found = chunks(path, Columns(value="v"))
    assert count(found) == 150
    [damage] = damage_of(found)
    assert (damage.position, damage.field, damage.size_bytes) == (51, "row group 1", column.total_compressed_size)
    assert damage.promise.endswith("(50 rows)")


def test_a_large_parquet_file_is_several_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path / "t.parquet", {"v": list(range(1000))}, row_group_size=100)
    whole = messages(chunks(path, Columns(value="v")))
    size = pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    monkeypatch.setattr(parquet_file, "SHARE_BYTES", 3 * size)
    parts = find(path, Columns(value="v")).parts
    assert 3 <= len(parts) <= 5 and len({part.key for part in parts}) == len(parts)
    assert {part.name for part in parts} == {str(path)}
    found = [chunk for part in parts for chunk in pickle.loads(pickle.dumps(part)).chunks()]
    assert [each.value for each in messages(found)] == [each.value for each in whole]


def test_rows_of_a_dictionary_are_few_at_a_time_whatever_an_entry_takes(tmp_path: Path) -> None:
    entry = pa.DictionaryArray.from_arrays(pa.array([0] * 60, pa.int32()), ["x" * (16 << 20)])
    path = parquet(tmp_path / "t.parquet", {"v": entry}, compression="zstd", store_schema=False)
    assert path.stat().st_size < 1 << 20
    before = pa.total_allocated_bytes()
    first = next(iter(only(path, Columns(value="v")).chunks()))
    assert first.records.shapes.payload_bytes == 16 << 20
    assert pa.total_allocated_bytes() - before < 400 << 20
    group = pq.read_metadata(path).row_group(0)
    assert parquet_file._entry_bytes(group.column(0), str(path)) == (16 << 20) + 4
    small = parquet(tmp_path / "u.parquet", {"v": [str(i % 7) for i in range(1000)]})
    assert parquet_file._entry_bytes(pq.read_metadata(small).row_group(0).column(0), str(small)) == 7 * (4 + 1)


def test_chunks_are_bounded_whatever_the_dictionary_stands_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("columns", "parquet_file"):
        monkeypatch.setattr(f"kfbench.sources.{each}.CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(parquet_file, "DECODED_BYTES", 4 << 20)
    path = parquet(tmp_path / "t.parquet", {"v": ["x" * 100_000, "y" * 100_000] * 300}, compression="zstd")
    assert path.stat().st_size < 200_000
    before = pa.total_allocated_bytes()
    sizes, most_bytes = [], 0
    for chunk in only(path, Columns(value="v")).chunks():
        sizes.append(chunk.records.shapes.payload_bytes)
        most_bytes = max(most_bytes, pa.total_allocated_bytes() - before)
    assert sum(sizes) == 60_000_000 and max(sizes) <= 1 << 20
    assert most_bytes < 16 << 20


def test_int96_times_of_every_year(tmp_path: Path) -> None:
    times = [datetime.fromisoformat(each) for each in ("9999-12-31T23:59:59.999999", "2026-01-01T01:02:03.000004")]
    path = parquet(tmp_path / "t.parquet", {"t": times}, use_deprecated_int96_timestamps=True)
    found = messages(chunks(path, Columns(value="t", timestamp="t")))
    assert [each.timestamp_ms for each in found] == [253_402_300_799_999, 1_767_229_323_000]
    assert [each.value for each in found] == [b"9999-12-31T23:59:59.999999", b"2026-01-01T01:02:03.000004"]


def test_names_that_are_not_utf8_are_refused_in_one_line(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64()), pa.field(b"caf\xe9", pa.int64())])
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1])] * 2, schema=schema), path)
    with pytest.raises(KfbenchError) as raised:
        find(path, Columns(key="id"))
    assert str(raised.value).startswith(f"{path}: ") and "UTF-8" in str(raised.value)


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    """Arrow does not check the text of a Parquet file. Rows as JSON are UTF-8; keys and values are any bytes."""
    texts = pa.StringArray.from_buffers(3, *pa.array([b"a", b"\xe9", b"c"]).buffers()[1:])
    path = parquet(tmp_path / "t.parquet", {"v": texts, "t": ["1", "2", "3"]})
    assert [each.key for each in messages(chunks(path, Columns(key="v", value="t")))] == [b"a", b"\xe9", b"c"]
    for columns in (Columns(timestamp="v"), Columns(headers="v"), Columns(partition="v")):
        found = chunks(path, replace(columns, value="t"))
        assert not count(found) and [each.position for each in damage_of(found)] == [1]
    assert [each.value for each in messages(chunks(path, Columns()))] == [b'{"v":"a","t":"1"}', b'{"v":"c","t":"3"}']
