"""The columnar seeds of the fuzzers use every choice that docs/columnar.md offers."""

import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz import corpus
from tests.reference import columnar, columnar_columns, columnar_headers

KINDS = ("bits", "base", "slope", "delta", "patched", "patched delta", "rice", "rice delta", "dictionary")
FORMS = ("constant", "plain", "plain with nulls", "dictionary", "hex template")
EXTENSIONS = ("base timestamp", "delete horizon", "anchor", "wide maximum", "by rows")
MODES = ("of one record", "by record", "by record, one header", "by position")
WANTED = {
    *(f"ages: {kind}" for kind in KINDS if kind not in ("base", "dictionary")),  # the smallest age is 0
    *(f"offsets: {kind}" for kind in KINDS if kind != "dictionary"),
    *(f"lengths: {kind}" for kind in ("bits", "base", "patched", "rice", "dictionary")),
    *(f"codes: {kind}" for kind in ("bits", "patched", "dictionary")),
    *(f"header form: {form}" for form in FORMS),
    *(f"headers {mode}" for mode in MODES),
    *(f"extension: {name}" for name in EXTENSIONS),
    *(f"{order}, {headers}" for order in ("by rows", "by columns") for headers in ("headers", "no headers")),
    *(f"bit {bit}" for bit in range(3, 16) if 1 << bit != columnar.CONTROL),
    "empty",
}


class Seen:
    """Counts of batches that use each choice: kinds of columns, forms of headers, extensions, attribute bits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches, self.here = Counter[str](), set[str]()
        self.role = ""
        for name in ("_read_numbers", "read_lengths", "read_column", "_read_form", "read_headers"):
            for module in (columnar, columnar_columns, columnar_headers):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, self.watched(name, getattr(module, name)))

    def watched(self, name: str, read: Any) -> Any:
        def reads(reader: Any, *given: Any) -> Any:
            byte = reader.data[reader.at]
            if name == "_read_numbers":
                self.role = given[1]
            elif name == "read_lengths":
                self.role = "codes" if given[1] else "lengths"
            elif name == "read_column":
                self.here.add(f"{self.role}: {KINDS[byte >> 6 if byte >> 6 < 3 else 3 + (byte & 63)]}")
            elif name == "_read_form":
                self.here.add(f"header form: {FORMS[byte]}")
            else:
                self.role = "header counts"
                mode = "of one record" if given[0] == 1 else ("by record", "by position")[byte]
                self.here.add(f"headers {mode}")
            return read(reader, *given)

        return reads

    def read(self, data: bytes) -> None:
        self.here = set()
        batch = columnar.decode_one(data, 0)
        (bits,) = struct.unpack_from(">H", data, 21)
        self.here |= {f"bit {bit}" for bit in range(3, 16) if bits >> bit & 1}
        total = sum(len(message.headers) for message in batch.messages)
        if "headers by record" in self.here and total == 1:
            self.here.add("headers by record, one header")
        extensions = set[int]()
        if bits & columnar.EXTENSIONS:
            reader = columnar_columns.Reader(data, columnar.FIXED_BYTES + (14 if bits & columnar.PRODUCER else 0))
            for _ in range(2 if bits & columnar.OFFSETS else 1):
                reader.number()
            extensions = {*columnar._read_extensions(reader)}
        self.here |= {f"extension: {EXTENSIONS[tag]}" for tag in extensions}
        order = "by rows" if columnar.BY_ROWS in extensions else "by columns"
        if any(message.key and message.value for message in batch.messages[1:]):
            self.here.add(f"{order}, {'headers' if total else 'no headers'}")
        if not batch.messages:
            self.here.add("empty")
        self.batches.update(self.here)


@pytest.mark.parametrize("source", [corpus.batches, corpus.guided_batches])
def test_columnar_seeds_hold_every_choice(
    source: Callable[[str], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every choice occurs in the seeds, as the reference reads them.

    Fuzzers find damage only to what their seeds have.
    """
    seen = Seen(monkeypatch)
    for batch in source("columnar"):
        if not batch[22] & columnar.CODEC:
            seen.read(batch)
    assert {name: seen.batches[name] for name in WANTED if seen.batches[name] < 3} == {}


def test_columnar_seeds_under_every_codec() -> None:
    found = Counter(batch[22] & columnar.CODEC for batch in corpus.batches("columnar"))
    assert min(found[codec] for codec in range(6)) > 20
