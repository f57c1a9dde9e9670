"""docs/columnar.md agrees with the reference codec.

It states bits, extensions, column kinds, header forms, and every byte of an example.
"""

import re
import struct
import tracemalloc
from itertools import accumulate
from pathlib import Path

import crc32c
import pytest

from kfbench import FORMATS, Limits, layouts
from kfbench.errors import CorruptLog
from tests.page_tables import mask_of, tables
from tests.reference import columnar, columnar_columns, columnar_headers, v23
from tests.reference.model import Fields, Message, RefusedError
from tests.reference.varint import unsigned

PAGE = (Path(__file__).parents[1] / "docs" / "columnar.md").read_text(encoding="utf-8")
TEXT = re.sub(r"\s+", " ", PAGE)
NOON_MS = 1_700_000_000_000
EXAMPLE = "A batch of two"


def example() -> list[Message]:
    """Return the records of the page's example, read from its first table."""
    messages = []
    for offset, time, key, value, *headers in tables(PAGE, EXAMPLE)[0]:
        later = int(time.split()[1]) if time.startswith("+") else 0
        messages.append(
            Message(
                offset=int(offset),
                timestamp_ms=NOON_MS + later,
                key=None if key == "null" else key.encode(),
                value=value.encode(),
                headers=tuple((name, text.encode()) for name, text in zip("v", headers, strict=True)),
            )
        )
    return messages


def test_every_byte_of_the_example() -> None:
    rows, at, messages, fields = tables(PAGE, EXAMPLE)[-1], 0, example(), Fields(partition_leader_epoch=7)
    for row in rows:
        assert int(row[0]) == at, row
        at += len(bytes.fromhex(row[1]))
    data = bytes.fromhex("".join(row[1] for row in rows))
    assert data == columnar.encode(messages, fields)
    assert columnar.decode_one(data, 0).messages == messages
    v2, v3 = (len(v23.encode(name, messages, fields)) for name in ("v2", "v3"))
    assert f"v2 takes {v2} bytes, v3 {v3}" in PAGE


def test_every_field_of_the_header() -> None:
    sizes = {"i64": 8, "i48": 6, "i32": 4, "u32": 4, "u16": 2, "i8": 1}
    at = 0
    for offset, _, kind, _ in tables(PAGE, "The batch")[0]:
        assert int(offset) == at
        at += sizes[kind]
    assert at == columnar.FIXED_BYTES


def test_every_bit_is_the_constant_that_it_names() -> None:
    seen = 0
    for bits, name, _ in tables(PAGE, "Attributes bits")[0]:
        mask = mask_of(bits)
        assert getattr(columnar, name) == mask
        seen |= mask
    assert seen == 0xFFFF


def test_the_kernels_constants() -> None:
    """The page and the kernels declare the layout separately. Their constants are equal."""
    fields = [
        [str(layouts.position(layouts.COLUMNAR_HEADER, name)), name] for name in layouts.COLUMNAR_HEADER.names or ()
    ]
    assert [row[:2] for row in tables(PAGE, "The batch")[0]] == fields
    own = {name: f"{name}_BIT" for name in ("PRODUCER", "AGES", "OFFSETS", "KEYS", "NULL_KEYS", "VALUES", "NULL_VALUES",
                                           "HEADERS", "EXTENSIONS", "TRANSACTIONAL", "CONTROL")}  # fmt: skip
    own |= {"CODEC": "CODEC_MASK", "APPEND_TIME": "TIMESTAMP_TYPE_BIT", "HORIZON": "DELETE_HORIZON_BIT"}
    own |= {name: f"{name}_TAG" for name in ("BASE_TIMESTAMP", "DELETE_HORIZON", "ANCHOR", "BY_ROWS")}
    own |= {"WIDE_MAX_TIMESTAMP": "WIDE_MAXIMUM_TAG"}
    assert {name: getattr(columnar, name) for name in own} == {name: getattr(layouts, at) for name, at in own.items()}


def test_every_extension() -> None:
    rows = tables(PAGE, "Extensions")[0]
    assert [getattr(columnar, name) for _, _, name, _ in rows] == [int(tag) for tag, *_ in rows]
    assert tuple(int(size) for _, size, *_ in rows) == columnar.EXTENSION_BYTES


def test_every_form_of_header() -> None:
    assert [getattr(columnar_headers, name) for _, name, *_ in tables(PAGE, "Headers")[0]] == [0, 1, 2, 3, 4]


# Per kind: its number or whole descriptor byte, content and values for which the encoder chooses this kind.
KINDS: dict[str, tuple[int, columnar_columns.Nature, list[int]]] = {
    "bits": (0, "offsets", [0, 1]),
    "base": (1, "offsets", [-1, -1]),
    "slope": (2, "offsets", [0, 5, 10, 15, 20]),
    "delta": (0xC0, "ages", [(40 - i) ** 2 for i in range(40)]),
    "patched": (0xC1, "lengths", [5] * 20 + [5000]),
    "patched delta": (0xC2, "ages", [*range(138, 118, -1), *range(19, -1, -1)]),
    "rice": (0xC3, "lengths", [0, 1] * 10 + [3] * 18 + [8, 9]),
    "rice delta": (0xC4, "ages", [*range(132, 105, -1), 102, 100]),
    "dictionary": (0xC5, "codes", [5, 300, 47, 5, 300, 5, 5, 5, 5]),
}


def test_every_kind_of_column() -> None:
    assert [name for _, name, *_ in tables(PAGE, "Columns")[0]] == list(KINDS)
    for kind, name, *_ in tables(PAGE, "Columns")[0]:
        wanted, nature, values = KINDS[name]
        high, _, low = kind.partition(", low bits ")
        assert wanted == (int(high) << 6 | int(low) if low else int(high)), name
        first = columnar_columns.column(values, nature)[0]
        assert (first if first >> 6 == 3 else first >> 6) == wanted, name
    with pytest.raises(RefusedError, match="column 0xc6"):
        columnar_columns.read_column(columnar_columns.Reader(bytes([0xC6, 0, 0]), 0), 2, "ages")
    assert "3 with low bits 6 to 63 is refused." in TEXT


@pytest.mark.parametrize("row", tables(PAGE, "Columns")[0], ids=lambda row: str(row[1]))
def test_fields_after_the_descriptor(row: list[str]) -> None:
    """The fields that the table lists form a valid column. Its values are those in the last cell."""
    _, nature, values = KINDS[row[1]]
    data = columnar_columns.column(values, nature)
    reader, found = columnar_columns.Reader(data, 1), {"w": data[0] & 63}
    bits: list[int] = []
    for field in re.split(r", (?!w\)|W\()", row[2]):
        match field.split():
            case ["width", "code", "u8"]:
                found["w"] = reader.byte()
            case [name, "zigzag"]:
                found[name] = reader.zigzag()
            case ["d", "u8"]:
                found["d"] = reader.byte()
            case ["packed(d,", "w)"]:
                distinct = reader.packed(found["d"], found["w"])
            case ["packed(n,", "W(d", "-", "1))", "indexes"]:
                bits = [distinct[index] for index in reader.packed(len(values), (found["d"] - 1).bit_length())]
            case ["packed(n,", "w)"]:
                bits = reader.packed(len(values), found["w"])
            case ["packed(n", "-", "1,", "w)"]:
                bits = reader.packed(len(values) - 1, found["w"])
            case ["quotients"]:
                bits = [low + (q << found["w"]) for low, q in zip(bits, reader.quotients(len(bits)), strict=True)]
            case ["patches"]:
                for i in reader.packed(reader.number(), (len(bits) - 1).bit_length()):
                    bits[i] += reader.number(64) << found["w"]
            case _:
                raise AssertionError(field)
    assert reader.rest() == b""
    base, slope = found.get("base", 0), found.get("slope", 0)
    if "first" in found:
        assert "x₀ = first" in row[3]
        assert nature == "ages"
        assert list(accumulate(bits, lambda before, r: before - base - r, initial=found["first"])) == values
    else:
        assert [base + i * slope + r for i, r in enumerate(bits)] == values


def test_columns_that_our_encoder_tries() -> None:
    most, tried = columnar_columns.MOST_VALUES, columnar_columns.TRIED_VALUES
    assert f"*A dictionary* has d values, 2 to {most}, and" in TEXT
    for number, kind in ((tried, 0xC5), (tried + 1, 0x0E)):
        assert columnar_columns.column([1000 * i for i in range(number)] * 6, "lengths")[0] == kind
    assert "8 times its bytes are no more than 7 times those of the smallest other kind" in TEXT


def claim(count: int) -> bytes:
    """Return a batch that claims `count` records without keys, values or other columns."""
    covered = bytes(2) + b"\xff" * 6 + unsigned(count)
    return struct.pack(">qiibI", 0, 9 + len(covered), 0, columnar.MAGIC, crc32c.crc32c(covered)) + covered


def test_34_bytes_that_claim_many_records() -> None:
    """34 bytes that claim too many records are refused before memory is allocated."""
    data, fmt = claim(2**31 - 1), FORMATS["columnar"]
    assert len(data) == 34
    for read in (fmt.decode, fmt.decode_metadata):
        read(claim(1))  # compiling and loading the kernels takes memory, too
        tracemalloc.start()
        try:
            with pytest.raises(CorruptLog, match=r"limits\.batch_records"):
                read(data)
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()


def test_the_most_records_in_33_bytes() -> None:
    """33 bytes can claim 16,777,216 records, the most that the default limit allows."""
    most = Limits().batch_records
    assert most == 2**24
    assert len(claim(most)) == 33
    assert len(FORMATS["columnar"].decode(claim(1000)).records) == 1000
    assert "33 bytes are 16,777,216 records of nulls" in PAGE
    assert "and 805 MB of a reader's columns" in TEXT


def test_bytes_of_an_anchor() -> None:
    """An anchor (stored create-time maximum) as the only extension takes 11 bytes.

    These are the number of extensions, the tag, the size, and 8 bytes of time.
    """
    messages = [Message(offset=0, timestamp_ms=NOON_MS)]
    more = len(columnar.encode(messages, Fields(append_time_ms=NOON_MS + 1))) - len(columnar.encode(messages))
    assert more == 11
    assert f"extension 2, which takes {more} bytes" in TEXT
