"""docs/columnar.md agrees with the reference codec.

It states bits, column kinds, header forms, and every byte of an example.
"""

import re
from itertools import accumulate
from pathlib import Path

import pytest

from kfbench import FORMATS, Limits, layouts
from kfbench.research.columnar.kernels import batch_header, columns, header_reading
from tests.common import numbers_in
from tests.page_tables import mask_of, tables
from tests.reference import v23
from tests.reference.model import Fields, Message
from tests.reference.varint import unsigned
from tests.research.columnar import reference as columnar
from tests.research.columnar import reference_columns as columnar_columns
from tests.research.columnar import reference_headers as columnar_headers
from tests.research.columnar.batches import batch_of

PAGE = (Path(__file__).parents[3] / "docs" / "columnar.md").read_text(encoding="utf-8")
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
    fields = [[str(layouts.position(batch_header.LAYOUT, name)), name] for name in batch_header.LAYOUT.names or ()]
    assert [row[:2] for row in tables(PAGE, "The batch")[0]] == fields
    names = "PRODUCER AGES OFFSETS KEYS VALUES HEADERS ANCHOR TRANSACTIONAL CONTROL HORIZON"
    own = {name: name for name in names.split()} | {"CODEC": "CODEC_MASK", "APPEND_TIME": "APPEND"}
    own |= {"BASE_TIMESTAMP": "BASE", "WIDE_MAX_TIMESTAMP": "WIDE"}
    assert {name: getattr(columnar, name) for name in own} == {
        name: getattr(batch_header, at) for name, at in own.items()
    }
    assert batch_header.THIS_MAGIC == columnar.MAGIC


def test_every_form_of_header() -> None:
    (few, *_), *rows = tables(PAGE, "Headers")[0]
    assert few == f"1 to {header_reading.MOST_VALUES}"
    for form, name, *_ in rows:
        assert getattr(columnar_headers, name) == getattr(header_reading, name) == int(form)


# Per row of the table of kinds: content and values for which the encoder chooses this kind.
KINDS: list[tuple[columnar_columns.Nature, list[int]]] = [
    ("offsets", [0, 1]),
    ("offsets", [-1, -1]),
    ("lengths", [5] * 20 + [5000]),
    ("ages", [*range(10000, 4999, -500), *range(5000, -1, -500)]),
]


def test_the_table_has_every_kind_of_column() -> None:
    assert len(tables(PAGE, "Columns")[0]) == len(KINDS)


@pytest.mark.parametrize("number", range(len(KINDS)))
def test_fields_after_the_descriptor(number: int) -> None:
    """The fields that the table lists form a valid column. Its values are those in the last cell."""
    kind, name, roles, fields, value = tables(PAGE, "Columns")[0][number]
    nature, values = KINDS[number]
    data = columnar_columns.column(values, nature)
    assert data[0] >> 6 == int(kind) == getattr(columns, {"base": "BASED"}.get(name, name.upper()))
    assert roles == "all" or nature in roles
    reader, width = columnar_columns.Reader(data, 1), data[0] & 63
    found, bits = {"base": 0}, list[int]()
    for field in re.split(r", (?!w\))", fields):
        match field.split():
            case [name, "zigzag"]:
                found[name] = reader.zigzag()
            case ["packed(n,", "w)"]:
                bits = reader.packed(len(values), width)
            case ["packed(n", "-", "1,", "w)"]:
                bits = reader.packed(len(values) - 1, width)
            case ["patches"]:
                for i in reader.packed(reader.number(), (len(bits) - 1).bit_length()):
                    bits[i] += reader.number(64) << width
            case _:
                raise AssertionError(field)
    assert reader.rest() == b""
    if "first" in found:
        assert "x₀ = first" in value
        assert list(accumulate(bits, lambda before, r: before + found["base"] + r, initial=found["first"])) == values
    else:
        assert [found["base"] + r for r in bits] == values


def stated(pattern: str) -> list[float]:
    (sentence,) = re.findall(pattern, TEXT)
    return numbers_in(sentence)


def test_numbers_of_the_page() -> None:
    """Check the sizes of the example, the size of an anchor, and what a few bytes can claim."""
    messages, later, most = example(), Fields(append_time_ms=NOON_MS + 36), Limits().batch_records
    assert stated("v2 takes .* bytes, v3 [0-9]+") == [len(v23.encode(name, messages)) for name in ("v2", "v3")]
    anchor = len(columnar.encode(messages, later)) - len(columnar.encode(messages))
    assert stated("bit 14, which takes . bytes") == [14, anchor]
    claims = {count: batch_of(0, "", unsigned(count).hex()) for count in (1 << 14, most, 2**31 - 1)}
    few = FORMATS["columnar"].decode(claims[1 << 14]).records
    per_record = sum(column.nbytes for column in few.columns) >> 14
    nulls = stated("[0-9]+ bytes are [0-9,]+ records of nulls, .* MB of a reader's columns")
    assert nulls == [len(claims[most]), most, most * per_record // 10**6]
    assert stated("[0-9]+ bytes can claim(?= 2³¹ - 1 records)") == [len(claims[2**31 - 1])]
