"""docs/dictionaries.md agrees with the code and the reference: fields, numbers, and every byte of its example."""

import re
from pathlib import Path

from kfbench import Dictionary, layouts
from kfbench.codecs import CODECS, Zstd, ZstdDictionary, dictionary
from kfbench.codecs.zstd_dictionary import FRAMES
from kfbench.log import dictionaries, dictionary_batch
from kfbench.sources.log import HEAD_BYTES
from tests.page_tables import tables
from tests.reference import dictionaries as reference

PAGE = (Path(__file__).parents[3] / "docs" / "dictionaries.md").read_text(encoding="utf-8")
TEXT = re.sub(r"\s+", " ", PAGE)


def quoted(start: str) -> bytes:
    found = re.search(rf"`({start}[^`]*)`", PAGE)
    assert found
    return found[1].encode()


def test_every_byte_of_the_example() -> None:
    data, plain = (quoted(r'\{"level":"info","service":"orders","text":"order ' + word) for word in ("placed", "17"))
    example, rows, at = Dictionary(number=1, data=data, is_raw=True), tables(PAGE, "An example")[0], 0
    for row in rows:
        assert int(row[0]) == at, row
        at += len(bytes.fromhex(row[1]))
    payload = bytes.fromhex("".join(row[1] for row in rows))
    assert ZstdDictionary.of(example).compress(plain) == payload
    assert reference.decompress(payload, {1: data}) == plain
    stored = [len(dictionary_batch(example, name).data) for name in ("v2", "columnar")]
    kafkas = len(CODECS["zstd"].compress(plain))
    assert f"{len(data)} bytes. Its SHA-256 begins with `{example.sha256[:4].hex()}`. The {len(plain)} bytes" in TEXT
    assert f"become {len(payload)}. Kafka's zstd makes {kafkas} of them" in TEXT
    assert f"takes {stored[0]} bytes in v2 and {stored[1]} in columnar" in TEXT


def test_numbers() -> None:
    for number in (dictionary.MOST_BYTES, reference.MOST_BYTES):
        assert f"{dictionary.LEAST_BYTES} to {number:,} bytes" in TEXT
    assert f"magic `{dictionary.MAGIC.hex()}`" in TEXT
    assert reference.DICTIONARY_MAGIC == dictionary.MAGIC
    assert dictionary.MOST_NUMBER == 2**31 - 1
    assert f"Codec {ZstdDictionary.id} in the attributes" in TEXT
    assert ZstdDictionary.id == layouts.LAST_CODEC
    assert tables(PAGE, "A compressed batch")[0][1][1] == f"{dictionary.CHECK_BYTES} bytes"
    assert Zstd.WINDOW_BYTES == 2**27
    key, value = tables(PAGE, "A dictionary in a log")
    assert [row[1] for row in key] == ["i16", "i16"]
    assert key[1][2].startswith(f"{layouts.CONTROL_DICTIONARY}.")
    assert dictionaries.KEY == reference.KEY
    assert [row[1] for row in value] == ["i16", "i32", "32 bytes", ""]
    assert dictionaries.VALUE.size == 38
    assert f"fewer than {dictionaries.LEAST_BYTES} bytes" in TEXT
    assert f"| dictionaries of one reader | {dictionaries.MOST_DICTIONARIES}," in PAGE
    assert f"first {HEAD_BYTES >> 10} KiB" in TEXT
    assert f"up to {FRAMES.most_bytes >> 20} MiB" in TEXT
