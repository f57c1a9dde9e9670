"""docs/dictionaries.md agrees with the code and the reference: fields, numbers, and every byte of its example."""

import re
from pathlib import Path

from kfbench import Dictionary, layouts
from kfbench.codecs import CODECS, ZstdDictionary, dictionary
from kfbench.codecs.zstd_dictionary import FRAMES
from kfbench.log import dictionaries, dictionary_batch
from kfbench.sources.log import HEAD_BYTES
from tests.common import numbers_in
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
    sizes = [len(dictionary_batch(example, name).data) for name in ("v2", "columnar")]
    for number in (len(data), len(plain), len(payload), len(CODECS["zstd"].compress(plain)), *sizes):
        assert number in numbers_in(TEXT)
    assert example.sha256[:4].hex() in TEXT


def test_layouts_and_numbers_are_the_codes() -> None:
    assert (reference.MOST_BYTES, reference.DICTIONARY_MAGIC) == (dictionary.MOST_BYTES, dictionary.MAGIC)
    assert (reference.KEY, ZstdDictionary.id) == (dictionaries.KEY, layouts.LAST_CODEC)
    for number in (
        f"{dictionary.LEAST_BYTES} to {dictionary.MOST_BYTES:,} bytes",
        f"fewer than {dictionaries.LEAST_BYTES} bytes",
        f"first {HEAD_BYTES >> 10} KiB",
        f"{FRAMES.most_bytes >> 20} MiB",
        f"{dictionaries.MOST_DICTIONARIES},",
        dictionary.MAGIC.hex(),
    ):
        assert number in TEXT
    assert tables(PAGE, "A compressed batch")[0][1][1] == f"{dictionary.CHECK_BYTES} bytes"
    key, value = tables(PAGE, "A dictionary in a log")
    assert [row[1] for row in key] == ["i16", "i16"]
    assert key[1][2].startswith(f"{layouts.CONTROL_DICTIONARY}.")
    assert [row[1] for row in value] == ["i16", "i32", "32 bytes", ""] and dictionaries.VALUE.size == 38
