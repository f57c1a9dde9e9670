"""Files that are neither logs nor tables are refused in one line that says what they are. Their bytes decide."""

import bz2
import gzip
import io
import json
import lzma
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import crc32c
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import zstandard

from kfbench.errors import KfbenchError
from kfbench.sources import find
from kfbench.sources.columns import Columns
from kfbench.sources.foreign_files import hint
from kfbench.whatif.question import Question
from kfbench.whatif.tally import tally_all
from tests.recorded import FOLDER
from tests.sources.rows import chunks, messages, written

TABLE = pa.table({"id": [1, 2], "v": ["a", "b"]})
CSV = b"id,v\n1,a\n2,b\n"
LINES = b'{"id":1,"v":"a"}\n{"id":2,"v":"b"}\n'
ROWS = [json.loads(line) for line in LINES.splitlines()]


def arrow_bytes(write: Callable[[pa.Table, io.BytesIO], object]) -> bytes:
    write(TABLE, sink := io.BytesIO())
    return sink.getvalue()


def arrow_file(table: pa.Table, sink: io.BytesIO) -> None:
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def arrow_stream(table: pa.Table, sink: io.BytesIO) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def zipped(name: str) -> bytes:
    with zipfile.ZipFile(sink := io.BytesIO(), "w") as archive:
        archive.writestr(name, CSV)
    return sink.getvalue()


def tarred() -> bytes:
    with tarfile.open(fileobj=(sink := io.BytesIO()), mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.csv"), io.BytesIO())
    return sink.getvalue()


def lz4_frame(data: bytes) -> bytes:
    return bytes(pa.compress(data, "lz4", asbytes=True))


def redpanda_batch(offset: int, payload: bytes) -> bytes:
    """Return a batch as Redpanda stores it: a little-endian header of 61 bytes, its checksum first."""
    times = 1_767_225_600_000, 1_767_225_600_000
    header = struct.pack("<iqbIhiqqqhii", 61 + len(payload), offset, 1, 7, 0, 0, *times, -1, -1, -1, 1)
    return struct.pack("<I", crc32c.crc32c(header)) + header + payload


PARQUET = arrow_bytes(pq.write_table)
FILES = {
    "xz": (lzma.compress(CSV), "xz"),
    "xlsx": (zipped("xl/workbook.xml"), "spreadsheet"),
    "zip": (zipped("a.csv"), "zip"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4" + bytes(40), "7z"),
    "rar": (b"Rar!\x1a\x07\x01\x00" + bytes(40), "RAR"),
    "xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(40), "Excel"),
    "tar": (tarred(), "tar"),
    "orc": (arrow_bytes(pyarrow.orc.write_table), "ORC"),
    "avro": (b"Obj\x01\x04\x16avro.schema", "Avro"),
    "arrow": (arrow_bytes(arrow_file), "Arrow"),
    "arrows": (arrow_bytes(arrow_stream), "Arrow"),
    "feather": (arrow_bytes(pyarrow.feather.write_feather), "Feather"),
    "sqlite": (b"SQLite format 3\0" + bytes(80), "SQLite"),
}


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.{}", "t.csv.{}", "t"])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_another_kind_is_named_whatever_its_suffix(tmp_path: Path, kind: str, name: str) -> None:
    content, word = FILES[kind]
    path = written(tmp_path / name.format(kind), content)
    with pytest.raises(KfbenchError) as raised:
        find([path])
    told = str(raised.value)
    assert told.startswith(f"{path}: is ") and word in told and "\n" not in told


SEGMENT = (FOLDER / "telemetry.log").read_bytes()
NO_SEGMENTS = FILES | {
    "gzip": (gzip.compress(SEGMENT), "gzip"),
    "bz2": (bz2.compress(SEGMENT), "bzip2"),
    "lz4": (lz4_frame(SEGMENT), "lz4"),
    "zstd": (zstandard.compress(SEGMENT), "zstd"),
    "redpanda": (b"".join(redpanda_batch(i, b"x" * 40) for i in range(9)), "Redpanda"),
}


@pytest.mark.parametrize("kind", NO_SEGMENTS)
def test_a_file_of_another_kind_is_no_segment(tmp_path: Path, kind: str) -> None:
    content, word = NO_SEGMENTS[kind]
    [part] = find([written(tmp_path / "t.log", content)]).parts
    with pytest.raises(KfbenchError, match=f"^is .*{word}"):
        list(part.chunks())
    (source,) = tally_all([part], Question(arms=(("v2", "none"),))).sources
    assert word in str(source.unreadable) and not source.batches


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("t.csv", CSV.decode().encode("utf-16"), "UTF-16"),
        ("t.csv", CSV.decode().encode("utf-16-le"), "UTF-16"),
        ("t.jsonl", LINES.decode().encode("utf-16-be"), "UTF-16"),
        ("t.jsonl", b"\xff\xfe" + '{"ключ":1}\n'.encode("utf-16-le"), "UTF-16"),
        ("t.csv.gz", gzip.compress(CSV.decode().encode("utf-16"), mtime=0), "UTF-16"),
        ("t.csv", CSV.decode().encode("utf-32"), "UTF-32"),
        ("t.json", json.dumps(ROWS, indent=2).encode(), "array"),
        ("t.json", b"\xef\xbb\xbf\r\n" + json.dumps(ROWS, indent="\t").encode(), "array"),
        ("t.json", json.dumps(ROWS).encode(), "array"),
        ("t.json", json.dumps(ROWS * 9000).encode(), "array"),
        ("t.jsonl", b"[\n" + LINES.replace(b"}\n{", b"},\n{") + b"]\n", "array"),
        ("t.json", b"".join(json.dumps(row, indent=4).encode() for row in ROWS), "pretty-printed"),
        ("t.json.zst", zstandard.compress(json.dumps(ROWS, indent=2).encode()), "array"),
        ("t.csv", PARQUET, "Parquet"),
        ("t.parquet.gz", gzip.compress(PARQUET, mtime=0), "Parquet"),
        ("t.parquet", gzip.compress(PARQUET, mtime=0), "Parquet"),
        ("t.parquet", CSV, "Parquet"),
        ("t.parquet", PARQUET[:-4], "Parquet"),
        ("t.csv", b"<!DOCTYPE html>\n<html><body>Sign in</body></html>", "web page"),
    ],
)  # fmt: skip
def test_text_of_another_kind_is_named(tmp_path: Path, name: str, content: bytes, word: str) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(KfbenchError) as raised:
        find([path])
    assert str(raised.value).startswith(f"{path}: ") and word in str(raised.value)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.csv.gz", "t.json.bz2"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, zstandard.compress, lz4_frame])
def test_compressed_text_is_read_whatever_its_suffix(
    tmp_path: Path, name: str, compress: Callable[[bytes], bytes]
) -> None:
    packed = compress(CSV if ".csv" in name else LINES)
    found = messages(chunks(written(tmp_path / name, packed), Columns(key="id", value="v")))
    assert [(each.key, each.value) for each in found] == [(b"1", b"a"), (b"2", b"b")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", b"ORCID,name\n1,2\n"), ("t.csv", b"Obj,PAR1\n1,2\n"), ("t.csv", b"BZh9,x\n1,2\n"),
        ("t.jsonl", b'[1]\n{"v":1}\n'), ("t.jsonl", LINES), ("t.csv", b"a\0b,c\n1,2\n"), ("t", bytes(100)),
        ("t.log.gz", gzip.compress(bytes(100), mtime=0)), ("t.parquet", PARQUET),
    ],
)  # fmt: skip
def test_other_beginnings_tell_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    kind = {"csv": "csv", "jsonl": "json", "parquet": "parquet"}.get(name.rpartition(".")[2])
    assert hint(written(tmp_path / name, content), kind) == ""


def test_a_file_of_another_kind_does_not_hide_the_others(tmp_path: Path) -> None:
    good, bad = written(tmp_path / "t.csv", CSV), written(tmp_path / "t.xlsx", FILES["xlsx"][0])
    found = find([bad, good], Columns(value="v"))
    assert [part.name for part in found.parts] == [str(good)]
    assert [(each.path, each.is_data, "spreadsheet" in each.reason) for each in found.skipped] == [
        (str(bad), True, True)
    ]
