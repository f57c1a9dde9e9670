"""Write and read the header columns of magic 5 and their payload (docs/columnar.md)."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.reference.model import Message, RefusedError
from tests.reference.varint import unsigned
from tests.research.columnar.reference_columns import (
    INT32_MAX,
    Reader,
    column,
    length_code,
    lengths_column,
    packed,
    read_column,
    read_lengths,
)

BY_RECORD, BY_POSITION = 0, 1
HEX_TEMPLATE, PLAIN = 254, 255  # forms; a smaller number but 0 is the number of distinct values of a dictionary
DIGITS = b"0123456789abcdef"
TRIED_VALUES = 32  # most values of a dictionary that our encoder writes
# Defaults of kfbench.Limits
BATCH_HEADERS = 1 << 24
BATCH_BYTES = 256 << 20
LOG_EXPANSION = 256

Headers = tuple[tuple[str, bytes | None], ...]


# Writing


class Encoded(NamedTuple):
    """The columns of all record headers, and their bytes in the payload before compression."""

    columns: bytes
    payload: bytes


def encode_headers(messages: Sequence[Message]) -> Encoded:
    rows = [[(key.encode(), value) for key, value in message.headers] for message in messages]
    if len(messages) > 1 and len({tuple(key for key, _ in row) for row in rows}) == 1:
        return _headers_by_position(rows)
    flat = [header for row in rows for header in row]
    payload = b"".join(key + (value or b"") for key, value in flat)
    counts = [len(row) for row in rows]
    columns = unsigned(counts[0]) if len(rows) == 1 else struct.pack(">B", BY_RECORD) + column(counts, "lengths")
    columns += b"".join(unsigned(len(key)) + unsigned(length_code(value)) for key, value in flat)
    return Encoded(columns, payload)


def _headers_by_position(rows: Sequence[Sequence[tuple[bytes, bytes | None]]]) -> Encoded:
    metadata = struct.pack(">B", BY_POSITION) + unsigned(len(rows[0]))
    payload = b""
    for position in zip(*rows, strict=True):
        key = position[0][0]
        values = [value for _, value in position]
        form, described, content = min(_forms(values), key=lambda form: len(form.columns) + len(form.payload))
        metadata += unsigned(len(key)) + struct.pack(">B", form) + described
        payload += key + content
    return Encoded(metadata, payload)


class Form(NamedTuple):
    """One way to store the values of the header at one position: its number, columns and payload bytes."""

    number: int
    columns: bytes
    payload: bytes


def _forms(values: Sequence[bytes | None]) -> list[Form]:
    distinct = list(dict.fromkeys(values))  # order of first appearance
    metadata = b"".join(unsigned(length_code(value)) for value in distinct)
    metadata += packed([distinct.index(value) for value in values], (len(distinct) - 1).bit_length())
    dictionary = Form(len(distinct), metadata, b"".join(value or b"" for value in distinct))
    if len(distinct) == 1:
        return [dictionary]
    found = [Form(PLAIN, lengths_column(values), b"".join(value or b"" for value in values))]
    if len(distinct) <= TRIED_VALUES:
        found.append(dictionary)
    texts = [value for value in values if value is not None]
    if None not in values and len({len(text) for text in texts}) == 1:
        varies = [len(set(characters)) > 1 for characters in zip(*texts, strict=True)]
        digits = [[text[k] for k in range(len(text)) if varies[k]] for text in texts]
        if all(digit in DIGITS for row in digits for digit in row):
            found.append(_hex_template(texts[0], varies, digits))
    return found


def _hex_template(text: bytes, varies: Sequence[bool], digits: Sequence[Sequence[int]]) -> Form:
    metadata = unsigned(len(text)) + packed([int(each) for each in varies], 1)
    nibbles = [DIGITS.index(digit) for row in digits for digit in row]
    nibbles += [0] * (len(nibbles) % 2)
    constant = bytes(text[k] for k in range(len(text)) if not varies[k])
    packed_digits = bytes(high << 4 | low for high, low in zip(nibbles[::2], nibbles[1::2], strict=True))
    return Form(HEX_TEMPLATE, metadata, constant + packed_digits)


# Reading

# A function that reads the headers of all records from the payload. `read_headers` returns it after the columns.
HeadersOf = Callable[[Reader], list[Headers]]


def read_headers(reader: Reader, count: int, log_bytes: int) -> HeadersOf:
    mode = reader.byte() if count > 1 else BY_RECORD
    if mode == BY_POSITION:
        return _read_positions(reader, count, log_bytes)
    if mode != BY_RECORD:
        raise RefusedError(f"headers of mode {mode}")
    numbers = read_column(reader, count, "lengths") if count > 1 else [reader.number()]
    if max(numbers) > INT32_MAX:
        raise RefusedError("number of headers")
    _check_number(sum(numbers))
    return _rows_of(numbers, [(reader.length(), reader.nullable_length()) for _ in range(sum(numbers))])


def _check_number(number: int) -> None:
    if not 1 <= number <= BATCH_HEADERS:
        raise RefusedError(f"{number} headers")


def _rows_of(numbers: Sequence[int], lengths: Sequence[tuple[int, int | None]]) -> HeadersOf:
    def headers_of(payload: Reader) -> list[Headers]:
        found = [(_text(payload.take(key)), payload.content(value)) for key, value in lengths]
        rows, start = [], 0
        for number in numbers:
            rows.append(tuple(found[start : start + number]))
            start += number
        return rows

    return headers_of


def _text(key: bytes) -> str:
    return key.decode(errors="replace")


def _read_positions(reader: Reader, count: int, log_bytes: int) -> HeadersOf:
    number = reader.number()
    _check_number(number * count)
    positions = []
    expanded = 0
    for _ in range(number):
        key_length = reader.length()
        values = _read_form(reader, count)
        positions.append((key_length, values.read))
        expanded += count * key_length + values.shared_bytes
        if expanded > BATCH_BYTES + LOG_EXPANSION * log_bytes:
            raise RefusedError(f"headers of {expanded} bytes")

    def headers_of(payload: Reader) -> list[Headers]:
        columns = []
        for key_length, values_of in positions:
            key = _text(payload.take(key_length))
            columns.append([(key, value) for value in values_of(payload)])
        return list(zip(*columns, strict=True))

    return headers_of


_ValuesOf = Callable[[Reader], list[bytes | None]]


class Values(NamedTuple):
    """The header values at one position. shared_bytes: bytes of all records' values, if these are stored only once."""

    read: _ValuesOf
    """Return the values, read from the payload."""
    shared_bytes: int


def _read_form(reader: Reader, count: int) -> Values:
    form = reader.byte()
    if form == HEX_TEMPLATE:
        return _read_template(reader, count)
    if form == PLAIN:
        return Values(_chosen(read_lengths(reader, count), range(count)), 0)
    if not form:
        raise RefusedError("header of form 0")
    lengths = [reader.nullable_length() for _ in range(form)]
    chosen = reader.packed(count, (form - 1).bit_length())
    if max(chosen) >= form:
        raise RefusedError(f"index {max(chosen)} of {form}")
    return Values(_chosen(lengths, chosen), sum(lengths[i] or 0 for i in chosen))


def _chosen(lengths: Sequence[int | None], chosen: Sequence[int]) -> _ValuesOf:
    def values_of(payload: Reader) -> list[bytes | None]:
        contents = [payload.content(length) for length in lengths]
        return [contents[i] for i in chosen]

    return values_of


def _read_template(reader: Reader, count: int) -> Values:
    length = reader.length()
    if not length:
        raise RefusedError("template of no characters")
    varies = reader.packed(length, 1)
    varying = sum(varies)
    if not varying:
        raise RefusedError("template of no digits")

    def values_of(payload: Reader) -> list[bytes | None]:
        constant = iter(payload.take(length - varying))
        template = [0 if each else next(constant) for each in varies]
        nibbles = [nibble for byte in payload.take(-(-count * varying // 2)) for nibble in (byte >> 4, byte & 15)]
        if count * varying % 2 and nibbles.pop():
            raise RefusedError("padding")
        digits = (DIGITS[nibble] for nibble in nibbles)
        return [bytes(next(digits) if varies[k] else template[k] for k in range(length)) for _ in range(count)]

    return Values(values_of, count * length)
