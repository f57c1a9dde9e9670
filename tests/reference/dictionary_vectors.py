"""Write datasets/dictionaries with the reference codecs: `python -m tests.reference.dictionary_vectors`.

The files have the form of datasets/golden. Frames are compressed by zstandard with other options than kfbench uses, so
other versions of it write other bytes.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from tests.reference import dictionaries, log, v23
from tests.reference.model import Batch, Fields, Message
from tests.research.columnar import reference as columnar

FOLDER = Path(__file__).parents[2] / "datasets" / "dictionaries"
NOON_MS = 1_700_000_000_000


class Writer(NamedTuple):
    """The reference functions of one format. encode: a whole batch; plain: what a codec compresses; around: a batch."""

    encode: Callable[..., bytes]
    plain: Callable[..., bytes]
    around: Callable[..., bytes]


class Case(NamedTuple):
    """A log, and the number of its first batch that a reader refuses; None: it reads all."""

    name: str
    data: bytes
    refused: int | None = None


WRITERS = {
    name: Writer(partial(v23.encode, name), partial(v23.records_section, name), partial(v23.batch, name))
    for name in ("v2", "v3", "v3-full")
} | {"columnar": Writer(columnar.encode, columnar.payload_section, columnar.batch)}


def value(i: int) -> bytes:
    return b'{"level":"info","service":"orders-%d","text":"order %d placed","ms":%d}' % (
        i % 5,
        i * 7919 % 9973,
        i % 331,
    )


def messages(first: int, count: int) -> list[Message]:
    return [
        Message(offset=i, timestamp_ms=NOON_MS + 15 * i, key=b"order-%d" % (i * 7919 % 9973), value=value(i))
        for i in range(first, first + count)
    ]


TRAINED = zstandard.train_dictionary(1_024, [b"".join(map(value, range(i, i + 10))) for i in range(0, 3_000, 10)])
RAW = b"".join(map(value, range(8)))


def stored(name: str, number: int, data: bytes, offset: int = 0, content: bytes | None = None) -> bytes:
    content = dictionaries.stored_value(number, data) if content is None else content
    record = Message(offset=offset, timestamp_ms=-1, key=dictionaries.KEY, value=content)
    return WRITERS[name].encode([record], Fields(is_control=True))


def compressed(
    name: str, number: int, data: bytes, first: int, count: int, change: Callable[[bytes], bytes] = bytes
) -> bytes:
    """Return a batch. change: what to do to its payload."""
    writer, records = WRITERS[name], messages(first, count)
    payload = dictionaries.compress(writer.plain(messages=records, fields=Fields()), number, data)
    return writer.around(messages=records, fields=Fields(), codec="zstd-dictionary", payload=change(payload))


def cases() -> Iterator[Case]:
    trained = TRAINED.as_bytes()
    for name in WRITERS:
        for kind, number, data in (("trained", 1, trained), ("raw", 300, RAW)):
            batches = [compressed(name, number, data, first, count) for first, count in ((1, 1), (2, 4), (6, 30))]
            yield Case(f"{name}_{kind}", stored(name, number, data) + b"".join(batches))
    head, batch = stored("v2", 1, trained), partial(compressed, "v2", 1, trained, 1, 4)
    yield Case("two_dictionaries", head + stored("columnar", 2, RAW) + batch() + compressed("columnar", 2, RAW, 5, 4))
    yield Case("two_copies", head + batch() + head + batch())
    yield Case("blocks_without_compression", head + batch(change=lambda _: _plain_blocks(trained)))
    for name, change in (
        ("number_2", lambda payload: b"\2" + payload[1:]),
        ("another_check", lambda payload: payload[:3] + bytes([payload[3] ^ 1]) + payload[4:]),
        ("no_frame", lambda payload: payload[:4]),
        ("content_size", lambda payload: payload[:4] + b"\x20" + payload[5:]),
        ("cut_short", lambda payload: payload[:-1]),
        ("bytes_after_the_frame", lambda payload: payload + b"\0"),
        ("a_magic", lambda payload: payload[:4] + dictionaries.FRAME_MAGIC + payload[4:]),
    ):
        yield Case(name, head + batch() + batch(change=change), 2)
    yield Case("no_dictionary", batch(), 0)
    yield Case("one_number_twice", head + batch() + stored("v2", 1, RAW), 2)
    good = dictionaries.stored_value(1, trained)
    for name, content in (
        ("stored_version_1", b"\0\1" + good[2:]),
        ("stored_number_0", good[:2] + bytes(4) + good[6:]),
        ("stored_another_sha256", good[:6] + bytes(32) + good[38:]),
        ("stored_cut_short", good[:-5]),
        ("stored_too_large", dictionaries.stored_value(1, bytes(dictionaries.MOST_BYTES + 1))),
        ("stored_damaged_tables", dictionaries.stored_value(1, trained[:8] + b"\xff" * 40 + trained[48:])),
    ):
        yield Case(name, stored("v2", 1, trained, content=content) + batch(), 0)


def _plain_blocks(data: bytes) -> bytes:
    return dictionaries.uncompressed(WRITERS["v2"].plain(messages=messages(1, 4), fields=Fields()), 1, data)


def sidecar(case: Case) -> dict[str, Any]:
    """Return the values of the batches before the refused one, as the reference reads them."""
    dictionaries.known.clear()
    batches, at = list[Batch](), 0
    while at < len(case.data) and len(batches) != case.refused:
        batches.append(log.decode_by_magic(case.data, at))
        for message in batches[-1].messages if batches[-1].is_control else ():
            number, data = dictionaries.read_stored(message.key or b"", message.value or b"")
            dictionaries.known[number] = data
        at += batches[-1].size_bytes
    category, error = ("dictionary", None) if case.refused is None else ("corrupt", {"batch": case.refused})
    return {
        "name": case.name, "category": category, "byteExact": False, "size": len(case.data),
        "sha256": hashlib.sha256(case.data).hexdigest(), "validBytes": at, "trailingBytes": 0,
        "error": error and error | {"message": case.name.replace("_", " ")}, "batches": [*map(described, batches)],
    }  # fmt: skip


def described(batch: Batch) -> dict[str, Any]:
    return {
        "position": batch.position, "size": batch.size_bytes, "magic": batch.magic, "crc": batch.crc,
        "compression": batch.codec, "baseOffset": batch.base_offset, "lastOffset": batch.last_offset,
        "count": len(batch.messages), "isControlBatch": batch.is_control, "decompressedSize": len(batch.raw),
        "decompressedSha256": hashlib.sha256(batch.raw).hexdigest(),
        "records": [
            {"offset": each.offset, "timestamp": each.timestamp_ms, "headers": [],
             "key": each.key and each.key.hex(), "value": each.value and each.value.hex()}
            for each in batch.messages
        ],
    }  # fmt: skip


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    entries = []
    for case in cases():
        found = sidecar(case)
        (FOLDER / f"{case.name}.bin").write_bytes(case.data)
        (FOLDER / f"{case.name}.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
        entries.append({name: found[name] for name in ("name", "category", "size", "sha256")})
    (FOLDER / "index.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
