"""The columnar seeds of the fuzzers use every choice that docs/columnar.md offers."""

import struct
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzz import corpus
from tests.research.columnar import reference as columnar
from tests.research.columnar import reference_columns as columnar_columns
from tests.research.columnar import reference_headers as columnar_headers

KINDS = ("bits", "base", "patched")
FORMS = {254: "hex template", 255: "plain"}
WANTED = {
    *(f"{role}: {kind}" for role in ("ages", "offsets", "lengths") for kind in KINDS),
    *(f"header form: {form}" for form in ("one value", "dictionary", *FORMS.values())),
    *(f"headers {mode}" for mode in ("of one record", "by record", "by position")),
    *(f"bit {bit}" for bit in range(3, 16) if 1 << bit != columnar.CONTROL),
    "empty",
} - {"ages: base"}  # the smallest age is 0


class Seen:
    """Counts of batches that use each choice: kinds of columns, forms of headers, attribute bits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches, self.here = Counter[str](), set[str]()
        for name in ("read_column", "_read_form", "read_headers"):
            for module in (columnar, columnar_columns, columnar_headers):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, self.watched(name, getattr(module, name)))

    def watched(self, name: str, read: Any) -> Any:
        def reads(reader: Any, *given: Any) -> Any:
            byte = reader.data[reader.at]
            if name == "read_column":
                self.here.add(f"{given[1]}: {KINDS[byte >> 6]}")
            elif name == "_read_form":
                self.here.add(f"header form: {FORMS.get(byte, 'one value' if byte == 1 else 'dictionary')}")
            else:
                mode = "of one record" if given[0] == 1 else ("by record", "by position")[byte]
                self.here.add(f"headers {mode}")
            return read(reader, *given)

        return reads

    def read(self, data: bytes) -> None:
        self.here = set()
        batch = columnar.decode_one(data, 0)
        (bits,) = struct.unpack_from(">H", data, 21)
        self.here |= {f"bit {bit}" for bit in range(3, 16) if bits >> bit & 1}
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
