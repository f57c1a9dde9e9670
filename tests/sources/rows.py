"""Write tables in every file type for tests, and read them as records."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.errors import KfbenchError
from kfbench.log.damage import Damage
from kfbench.sources.columns import Columns
from kfbench.sources.part import Chunk
from kfbench.sources.tables import TableFile, find
from tests.common import messages_of
from tests.reference.model import Message


def only(path: Path, columns: Columns) -> TableFile:
    [part] = find(path, columns).parts
    assert isinstance(part, TableFile)
    return part


def chunks(path: Path, columns: Columns) -> list[Chunk]:
    part = only(path, columns)
    found = list(part.chunks())
    size_bytes = sum(each.size_bytes for each in found) + sum(each.size_bytes for each in damage_of(found))
    assert size_bytes == part.size_bytes if part.kind != "parquet" else size_bytes <= part.size_bytes
    assert all(each.bounds is None for each in found)
    assert [offset for each in found for offset in each.records.offsets] == list(range(count(found)))
    return found


def chunks_until_error(part: TableFile) -> tuple[list[Chunk], Exception]:
    """Read chunks of records until an error. Return the chunks and the error."""
    found = []
    try:
        for chunk in part.chunks():
            found.append(chunk)  # noqa: PERF402
    except (KfbenchError, OSError) as error:
        return found, error
    raise AssertionError("no error")


def count(found: Iterable[Chunk]) -> int:
    return sum(len(each.records) for each in found)


def messages(found: Iterable[Chunk]) -> list[Message]:
    return [message for each in found for message in messages_of(each.records)]


def values(path: Path, columns: Columns) -> list[bytes | None]:
    return [message.value for message in messages(chunks(path, columns))]


def damage_of(found: Iterable[Chunk]) -> list[Damage]:
    return [each for chunk in found for each in chunk.damage]


def lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def quoted(cell: object) -> str:
    """Return a value as a CSV cell. An empty text gets quotes, which distinguish it from null."""
    return "" if cell is None else str(cell) if isinstance(cell, int) else '"' + str(cell).replace('"', '""') + '"'
