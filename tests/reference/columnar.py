"""Magic 4, columnar: a lean header, a column for each thing that records have, then their payload (docs/columnar.md).

baseOffset i64, length i32, partitionLeaderEpoch i32, magic i8, crc u32 (CRC-32C of attributes..end), attributes u16,
    maxTimestamp i48, [producerId i64, producerEpoch i16, baseSequence i32], count uvarint, [lastOffsetDelta uvarint],
    [extensions], [ages], [offset deltas], [key lengths], [value lengths], [headers], payload
attribute bits: 0-2 codec, 3 append time, 4 transactional, 5 control, 6 delete horizon, 7 producer state, 8 ages,
    9 offsets, 10 key lengths, 11 nulls among them, 12 value lengths, 13 nulls among them, 14 headers, 15 extensions
column: descriptor u8 (kind in bits 6-7, width code in bits 0-5), what the kind has, values packed from bit 0 up
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import crc32c

from tests.reference import codecs
from tests.reference.model import (
    CODEC_NAMES,
    NO_TIMESTAMP,
    UNSET,
    Batch,
    Fields,
    Message,
    RefusedError,
    check_control,
    signed,
)
from tests.reference.varint import read_unsigned, read_zigzag, unsigned, zigzag

MAGIC = 4
FIXED_BYTES = 29
CODEC, APPEND_TIME, TRANSACTIONAL, CONTROL, HORIZON = 7, 1 << 3, 1 << 4, 1 << 5, 1 << 6
PRODUCER, AGES, OFFSETS = 1 << 7, 1 << 8, 1 << 9
KEYS, NULL_KEYS, VALUES, NULL_VALUES = 1 << 10, 1 << 11, 1 << 12, 1 << 13
HEADERS, EXTENSIONS = 1 << 14, 1 << 15
BASE_TIMESTAMP, DELETE_HORIZON, ANCHOR, WIDE_MAX_TIMESTAMP, BY_ROWS = range(5)
EXTENSION_BYTES = (8, 8, 8, 8, 0)
BITS, FRAME, SLOPE, OTHER = range(4)
DELTA, PATCHED, PATCHED_DELTA, RICE, RICE_DELTA, COLUMN_DICTIONARY = range(6)
BY_RECORD, BY_POSITION = 0, 1
CONSTANT, PLAIN, PLAIN_WITH_NULLS, DICTIONARY, HEX_TEMPLATE = range(5)
DIGITS = b"0123456789abcdef"
WIDEST, WHOLE, WHOLE_CODE = 56, 64, 63  # widths of 57 to 63 are written as 64, whose code is 63
TRIED_VALUES, MOST_VALUES = 32, 256  # of a header's dictionary: by our encoder, by a reader
TRIED_COLUMN_VALUES, MOST_COLUMN_VALUES = 16, 255  # of a column's
INT32_MAX = 2**31 - 1
# The defaults of kfbench.Limits
BATCH_RECORDS = BATCH_HEADERS = 1 << 24
FIELD_BYTES = BATCH_BYTES = 256 << 20
LOG_EXPANSION = 256

Headers = tuple[tuple[str, bytes | None], ...]
# What a column holds. Codes are lengths that may be null; numbers of headers are lengths.
Nature = Literal["ages", "offsets", "lengths", "codes"]


# Integers


def _wrapped(value: int) -> int:
    """An int64, of arithmetic modulo 2**64."""
    return signed(value, 64)


def _above(value: int, base: int) -> int:
    """value - base as a uint64."""
    return (value - base) & (2**64 - 1)


def _width(values: Sequence[int]) -> int:
    bits = max(values, default=0).bit_length()
    return bits if bits <= WIDEST else WHOLE


def _width_code(width: int) -> int:
    return WHOLE_CODE if width == WHOLE else width


def _packed(values: Sequence[int], width: int) -> bytes:
    stream = 0
    for i, value in enumerate(values):
        stream |= value << (i * width)
    return stream.to_bytes(-(-len(values) * width // 8), "little")


def _length(content: bytes | None) -> bytes:
    """0 for null, else one more than the length."""
    return unsigned(0 if content is None else len(content) + 1)


# Columns


def _smallest(candidates: Sequence[bytes]) -> bytes:
    return min(candidates, key=len)  # the first of equals


def _descriptor(kind: int, low: int) -> bytes:
    return struct.pack(">B", kind << 6 | low)


def column(values: Sequence[int], nature: Nature) -> bytes:
    """The smallest form of two values or more; with quotients only where that saves an eighth."""
    candidates = []
    least = min(values)
    if least >= 0:
        width = _width(values)
        candidates.append(_descriptor(BITS, _width_code(width)) + _packed(values, width))
    above = [_above(value, least) for value in values]
    width = _width(above)
    candidates.append(_descriptor(FRAME, _width_code(width)) + zigzag(least) + _packed(above, width))
    if nature in ("lengths", "codes"):
        candidates += _patched(PATCHED, b"", least, above)
        candidates += _dictionary(least, above)
        quick = _smallest(candidates)
        return quick if nature == "codes" else _with_quotients(quick, _rice(RICE, b"", least, above))

    slope = _wrapped(values[-1] - values[0]) // (len(values) - 1)
    if len(values) >= 3 and slope:
        levels = [_wrapped(value - i * slope) for i, value in enumerate(values)]
        lowest = min(levels)
        over = [_above(level, lowest) for level in levels]
        width = _width(over)
        front = _descriptor(SLOPE, _width_code(width)) + zigzag(lowest) + zigzag(slope)
        candidates.append(front + _packed(over, width))
    steps = _steps(values, nature)
    shortest = min(steps)
    beyond = [_above(step, shortest) for step in steps]
    width = _width(beyond)
    first = zigzag(values[0])
    front = _descriptor(OTHER, DELTA) + struct.pack(">B", _width_code(width)) + first + zigzag(shortest)
    candidates.append(front + _packed(beyond, width))
    candidates += _patched(PATCHED, b"", least, above)
    candidates += _patched(PATCHED_DELTA, first, shortest, beyond)
    coded = _rice(RICE, b"", least, above) + _rice(RICE_DELTA, first, shortest, beyond)
    return _with_quotients(_smallest(candidates), coded)


def _steps(values: Sequence[int], nature: Nature) -> list[int]:
    """From each value to the next: what it rises, or falls in ages."""
    rises = [_wrapped(after - before) for before, after in pairwise(values)]
    return [_wrapped(-rise) for rise in rises] if nature == "ages" else rises


def _patched(form: int, first: bytes, base: int, above: Sequence[int]) -> list[bytes]:
    """The best of that form, if it is worth a try."""
    most = max(above).bit_length()
    mean = sum(above) // len(above)
    if most < (3 if len(above) < 16 else 4) + mean.bit_length() and most + len(above).bit_length() <= 63:
        return []
    widths = range(min(most - 1, WIDEST), -1, -1)
    return [_smallest([patched(form, first, base, above, width) for width in widths])]


def patched(form: int, first: bytes, base: int, above: Sequence[int], width: int) -> bytes:
    """A column whose packed values lack the bits from `width` on; those that have any are patched."""
    low = [value & ((1 << width) - 1) for value in above]
    at = [i for i, value in enumerate(above) if value >> width]
    return (
        _descriptor(OTHER, form)
        + struct.pack(">B", width)
        + first
        + zigzag(base)
        + _packed(low, width)
        + unsigned(len(at))
        + _packed(at, (len(above) - 1).bit_length())
        + b"".join(unsigned(above[i] >> width) for i in at)
    )


def _with_quotients(quick: bytes, coded: Sequence[bytes]) -> bytes:
    """One of `coded` where it is worth its time, else `quick`."""
    return _smallest([quick, *(each for each in coded if 8 * len(each) <= 7 * len(quick))])


def _rice(form: int, first: bytes, base: int, above: Sequence[int]) -> list[bytes]:
    """The one of that form, if it is worth a try."""
    most, mean = max(above).bit_length(), (sum(above) // len(above)).bit_length()
    if most < 2 + mean or most + len(above).bit_length() > 63:
        return []
    return [rice(form, first, base, above, min(max(mean - 1, 0), WIDEST))]


def rice(form: int, first: bytes, base: int, above: Sequence[int], width: int) -> bytes:
    """A column whose packed values lack the bits from `width` on; a quotient of each has them."""
    low = [value & ((1 << width) - 1) for value in above]
    front = _descriptor(OTHER, form) + struct.pack(">B", width) + first + zigzag(base)
    return front + _packed(low, width) + _quotients([value >> width for value in above])


def _quotients(values: Sequence[int]) -> bytes:
    """Each as many zeros, and a one."""
    stream, bits = 0, 0
    for value in values:
        bits += value + 1
        stream |= 1 << (bits - 1)
    return stream.to_bytes(-(-bits // 8), "little")


def _dictionary(base: int, above: Sequence[int]) -> list[bytes]:
    """The one of these values, if it is worth a try."""
    distinct = list(dict.fromkeys(above))  # in order of first appearance
    if max(above).bit_length() < 4 or not 2 <= len(distinct) <= TRIED_COLUMN_VALUES:
        return []
    return [dictionary(base, distinct, [distinct.index(value) for value in above])]


def dictionary(base: int, distinct: Sequence[int], indexes: Sequence[int]) -> bytes:
    """distinct: what the dictionary's values are above the base."""
    width = _width(distinct)
    front = _descriptor(OTHER, COLUMN_DICTIONARY) + struct.pack(">B", _width_code(width)) + zigzag(base)
    front += struct.pack(">B", len(distinct)) + _packed(distinct, width)
    return front + _packed(indexes, (len(distinct) - 1).bit_length())


def _lengths(contents: Sequence[bytes | None], has_nulls: bool) -> bytes:
    """The column of two lengths or more, or of the codes of those that may be null."""
    lengths = [len(content) for content in contents if content is not None]
    if not has_nulls:
        return column(lengths, "lengths")
    least = min(lengths, default=0)
    codes = [0 if content is None else len(content) - least + 1 for content in contents]
    return unsigned(least) + column(codes, "codes")


def _field_lengths(contents: Sequence[bytes | None]) -> bytes:
    """Of keys or values, not all of which are null."""
    if len(contents) > 1:
        return _lengths(contents, None in contents)
    (content,) = contents
    assert content is not None
    return unsigned(len(content))


def _numbers(values: Sequence[int], nature: Literal["ages", "offsets"]) -> bytes:
    return column(values, nature) if len(values) > 1 else zigzag(values[0])


# Headers


def _headers(messages: Sequence[Message]) -> tuple[bytes, bytes]:
    """Metadata and payload."""
    rows = [[(key.encode(), value) for key, value in message.headers] for message in messages]
    flat = [header for row in rows for header in row]
    payload = b"".join(key + (value or b"") for key, value in flat)
    if len(messages) == 1:
        return unsigned(len(flat)) + b"".join(unsigned(len(key)) + _length(value) for key, value in flat), payload
    if len({tuple(key for key, _ in row) for row in rows}) == 1:
        return _headers_by_position(rows)
    metadata = struct.pack(">B", BY_RECORD) + column([len(row) for row in rows], "lengths")
    if len(flat) == 1:
        ((key, value),) = flat
        return metadata + unsigned(len(key)) + _length(value), payload
    values = [value for _, value in flat]
    has_nulls = None in values
    metadata += _lengths([key for key, _ in flat], has_nulls=False)
    metadata += struct.pack(">B", has_nulls) + _lengths(values, has_nulls)
    return metadata, payload


def _headers_by_position(rows: Sequence[Sequence[tuple[bytes, bytes | None]]]) -> tuple[bytes, bytes]:
    metadata = struct.pack(">B", BY_POSITION) + unsigned(len(rows[0]))
    payload = b""
    for position in zip(*rows, strict=True):
        key = position[0][0]
        values = [value for _, value in position]
        form, described, content = min(_forms(values), key=lambda each: len(each[1]) + len(each[2]))
        metadata += unsigned(len(key)) + struct.pack(">B", form) + described
        payload += key + content
    return metadata, payload


def _forms(values: Sequence[bytes | None]) -> list[tuple[int, bytes, bytes]]:
    """The forms that these values can have: number, metadata, payload."""
    distinct = list(dict.fromkeys(values))  # in order of first appearance
    if len(distinct) == 1:
        return [(CONSTANT, _length(values[0]), values[0] or b"")]
    form = PLAIN_WITH_NULLS if None in values else PLAIN
    found = [(form, _lengths(values, form == PLAIN_WITH_NULLS), b"".join(value or b"" for value in values))]
    if len(distinct) <= TRIED_VALUES:
        metadata = unsigned(len(distinct)) + b"".join(map(_length, distinct))
        metadata += _packed([distinct.index(value) for value in values], (len(distinct) - 1).bit_length())
        found.append((DICTIONARY, metadata, b"".join(value or b"" for value in distinct)))
    texts = [value for value in values if value is not None]
    if form == PLAIN and len({len(text) for text in texts}) == 1:
        varies = [len(set(characters)) > 1 for characters in zip(*texts, strict=True)]
        digits = [[text[k] for k in range(len(text)) if varies[k]] for text in texts]
        if all(digit in DIGITS for row in digits for digit in row):
            found.append((HEX_TEMPLATE, *_hex_template(texts[0], varies, digits)))
    return found


def _hex_template(text: bytes, varies: Sequence[bool], digits: Sequence[Sequence[int]]) -> tuple[bytes, bytes]:
    metadata = unsigned(len(text)) + _packed([int(each) for each in varies], 1)
    nibbles = [DIGITS.index(digit) for row in digits for digit in row]
    nibbles += [0] * (len(nibbles) % 2)
    constant = bytes(text[k] for k in range(len(text)) if not varies[k])
    return metadata, constant + bytes(high << 4 | low for high, low in zip(nibbles[::2], nibbles[1::2], strict=True))


# Batches


def _bases(messages: Sequence[Message], fields: Fields) -> tuple[int, int, int, int]:
    """base offset, last offset, base timestamp, max timestamp."""
    base_offset = fields.base_offset if fields.base_offset is not None else messages[0].offset
    last_offset = fields.last_offset
    if last_offset is None:
        last_offset = messages[-1].offset if messages else base_offset
    base_timestamp = _default_base_timestamp(messages, fields.delete_horizon_ms)
    if fields.base_timestamp_ms is not None and fields.delete_horizon_ms is None:
        base_timestamp = fields.base_timestamp_ms
    max_timestamp = _latest(messages)
    if fields.append_time_ms is not None and fields.readers_see_append_time:
        max_timestamp = fields.append_time_ms
    if fields.max_timestamp_ms is not None:
        max_timestamp = fields.max_timestamp_ms
    return base_offset, last_offset, base_timestamp, max_timestamp


def _default_base_timestamp(messages: Sequence[Message], delete_horizon_ms: int | None) -> int:
    if delete_horizon_ms is not None:
        return delete_horizon_ms
    return messages[0].timestamp_ms if messages else NO_TIMESTAMP


def _latest(messages: Sequence[Message]) -> int:
    return max((message.timestamp_ms for message in messages), default=NO_TIMESTAMP)


def payload_section(messages: Sequence[Message]) -> bytes:
    """What a codec covers: all keys, all values, all header bytes."""
    keys = b"".join(message.key or b"" for message in messages)
    values = b"".join(message.value or b"" for message in messages)
    return keys + values + (_headers(messages)[1] if any(message.headers for message in messages) else b"")


def batch(messages: Sequence[Message], fields: Fields, codec: str, payload: bytes) -> bytes:
    """The batch around `payload`, the compressed payload section of `messages`."""
    if fields.is_control:
        check_control(messages)
    base_offset, last_offset, base_timestamp, max_timestamp = _bases(messages, fields)
    attributes = CODEC_NAMES.index(codec) if messages else 0
    attributes |= APPEND_TIME if fields.readers_see_append_time else 0
    attributes |= TRANSACTIONAL if fields.is_transactional else 0
    attributes |= CONTROL if fields.is_control else 0

    extensions = {}
    if base_timestamp != _default_base_timestamp(messages, fields.delete_horizon_ms):
        extensions[BASE_TIMESTAMP] = struct.pack(">q", base_timestamp)
    if fields.delete_horizon_ms is not None:
        attributes |= HORIZON
        extensions[DELETE_HORIZON] = struct.pack(">q", fields.delete_horizon_ms)
    anchor = _latest(messages)
    is_known = any(message.timestamp_ms != NO_TIMESTAMP for message in messages)
    if is_known if attributes & APPEND_TIME else messages and anchor != max_timestamp:
        extensions[ANCHOR] = struct.pack(">q", anchor)
    short_max_timestamp = max_timestamp
    if not -(2**47) <= max_timestamp < 2**47:
        extensions[WIDE_MAX_TIMESTAMP] = struct.pack(">q", max_timestamp)
        short_max_timestamp = 0

    producer = b""
    if (fields.producer_id, fields.producer_epoch, fields.base_sequence) != (-1, -1, -1):
        attributes |= PRODUCER
        producer = struct.pack(">qhi", fields.producer_id, fields.producer_epoch, fields.base_sequence)

    columns, last_delta = b"", b""
    ages = [_wrapped(anchor - message.timestamp_ms) for message in messages]
    if any(ages):
        attributes |= AGES
        columns += _numbers(ages, "ages")
    deltas = [message.offset - base_offset for message in messages]
    if any(not -(2**31) <= delta <= INT32_MAX for delta in [*deltas, last_offset - base_offset]):
        raise RefusedError("an offset is further than an int32 from the base offset")
    if not messages or deltas != list(range(len(messages))) or last_offset - base_offset != len(messages) - 1:
        attributes |= OFFSETS
        last_delta = unsigned((last_offset - base_offset) & 0xFFFFFFFF)
        columns += _numbers(deltas, "offsets") if messages else b""
    for bit, null_bit, contents in (
        (KEYS, NULL_KEYS, [message.key for message in messages]),
        (VALUES, NULL_VALUES, [message.value for message in messages]),
    ):
        if any(content is not None for content in contents):
            attributes |= bit | (null_bit if None in contents else 0)
            columns += _field_lengths(contents)
    if any(message.headers for message in messages):
        attributes |= HEADERS
        columns += _headers(messages)[0]

    extended = b""
    if extensions:
        attributes |= EXTENSIONS
        extended = unsigned(len(extensions))
        extended += b"".join(
            unsigned(tag) + unsigned(len(extensions[tag])) + extensions[tag] for tag in sorted(extensions)
        )

    covered = struct.pack(">H", attributes)
    covered += struct.pack(">q", short_max_timestamp)[2:]
    covered += producer
    covered += unsigned(len(messages))
    covered += last_delta
    covered += extended
    covered += columns
    covered += payload
    tail = struct.pack(">ibI", fields.partition_leader_epoch, MAGIC, crc32c.crc32c(covered)) + covered
    return struct.pack(">qi", base_offset, len(tail)) + tail


def encode(messages: Sequence[Message], fields: Fields = UNSET, codec: str = "none") -> bytes:
    payload = payload_section(messages)
    return batch(messages, fields, codec, codecs.compress(codec, payload, 2) if payload else b"")


# Reading


@dataclass
class _Reader:
    """A position in bytes, which every read moves on; none goes past their end."""

    data: bytes
    at: int

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise RefusedError(f"{size} bytes wanted, {len(self.data) - self.at} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def byte(self) -> int:
        return self.take(1)[0]

    def number(self, bits: int = 32) -> int:
        value, self.at = read_unsigned(self.data, self.at, bits)
        return value

    def zigzag(self) -> int:
        value, self.at = read_zigzag(self.data, self.at, 64)
        return value

    def length(self) -> int:
        return _checked_length(self.number())

    def nullable_length(self) -> int | None:
        code = self.number()
        return _checked_length(code - 1) if code else None

    def packed(self, count: int, width: int) -> list[int]:
        stream = int.from_bytes(self.take(-(-count * width // 8)), "little")
        if stream >> (count * width):
            raise RefusedError("padding")
        return [stream >> (i * width) & ((1 << width) - 1) for i in range(count)]

    def quotients(self, count: int) -> list[int]:
        """Up to the end of the byte that has the last one."""
        found: list[int] = []
        zeros = 0
        while len(found) < count:
            byte = self.byte()
            for k in range(8):
                if len(found) == count:
                    if byte >> k:
                        raise RefusedError("padding")
                    break
                zeros += 1
                if byte >> k & 1:
                    found.append(zeros - 1)
                    zeros = 0
        return found

    def content(self, length: int | None) -> bytes | None:
        return None if length is None else self.take(length)


def _checked_length(value: int) -> int:
    if not 0 <= value <= FIELD_BYTES:
        raise RefusedError(f"length {value}")
    return value


def _read_width(code: int, widest: int = WHOLE) -> int:
    width = WHOLE if code == WHOLE_CODE else code
    if WIDEST < code != WHOLE_CODE or width > widest:
        raise RefusedError(f"width code {code}")
    return width


def _read_column(reader: _Reader, count: int, nature: Nature) -> list[int]:
    """Two values or more, as int64s."""
    descriptor = reader.byte()
    kind, low = descriptor >> 6, descriptor & 63
    if kind == BITS:
        return [_wrapped(bits) for bits in reader.packed(count, _read_width(low))]
    if kind == FRAME:
        width, base = _read_width(low), reader.zigzag()
        return [_wrapped(base + bits) for bits in reader.packed(count, width)]
    if kind == SLOPE:
        width, base, slope = _read_width(low), reader.zigzag(), reader.zigzag()
        return [_wrapped(base + i * slope + bits) for i, bits in enumerate(reader.packed(count, width))]
    if low > COLUMN_DICTIONARY:
        raise RefusedError(f"column {descriptor:#04x}")
    width = _read_width(reader.byte(), WHOLE if low in (DELTA, COLUMN_DICTIONARY) else WIDEST)
    first = reader.zigzag() if low in (DELTA, PATCHED_DELTA, RICE_DELTA) else None
    base = reader.zigzag()
    if low == COLUMN_DICTIONARY:
        return [_wrapped(base + value) for value in _read_dictionary(reader, count, width)]
    number = count if first is None else count - 1
    if low == DELTA:
        above = reader.packed(number, width)
    elif low in (PATCHED, PATCHED_DELTA):
        above = _read_patched(reader, number, width)
    else:
        above = [
            bits + (q << width) for bits, q in zip(reader.packed(number, width), reader.quotients(number), strict=True)
        ]
    if first is None:
        return [_wrapped(base + value) for value in above]
    values, sign = [first], -1 if nature == "ages" else 1
    for value in above:
        values.append(_wrapped(values[-1] + sign * (base + value)))
    return values


def _read_patched(reader: _Reader, count: int, width: int) -> list[int]:
    values = reader.packed(count, width)
    patches = reader.number()
    if not 1 <= patches <= count:
        raise RefusedError(f"{patches} patches of {count} values")
    positions = reader.packed(patches, (count - 1).bit_length())
    if any(after <= before for before, after in pairwise(positions)) or positions[-1] >= count:
        raise RefusedError("positions of patches")
    for position in positions:
        high = reader.number(64)
        if not 1 <= high < 1 << (64 - width):
            raise RefusedError(f"patch {high}")
        values[position] |= high << width
    return values


def _read_dictionary(reader: _Reader, count: int, width: int) -> list[int]:
    number = reader.byte()
    if not 2 <= number <= MOST_COLUMN_VALUES:
        raise RefusedError(f"dictionary of {number}")
    distinct = reader.packed(number, width)
    return [distinct[index] for index in _read_indexes(reader, count, number)]


def _read_indexes(reader: _Reader, count: int, number: int) -> list[int]:
    """Into a dictionary of that number of values."""
    indexes = reader.packed(count, (number - 1).bit_length())
    if max(indexes) >= number:
        raise RefusedError(f"index {max(indexes)} of {number}")
    return indexes


def _read_lengths(reader: _Reader, count: int, has_nulls: bool) -> list[int | None]:
    if not has_nulls:
        return [_checked_length(value) for value in _read_column(reader, count, "lengths")]
    least = reader.number()
    if least > INT32_MAX:
        raise RefusedError(f"minimum {least}")
    codes = _read_column(reader, count, "codes")
    if min(codes) < 0:
        raise RefusedError(f"code {min(codes)}")
    return [_checked_length(code - 1 + least) if code else None for code in codes]


def _read_field_lengths(reader: _Reader, attributes: int, bit: int, null_bit: int, count: int) -> list[int | None]:
    if attributes & null_bit and (not attributes & bit or count == 1):
        raise RefusedError(f"attributes {attributes:#06x} of {count}")
    if not attributes & bit:
        return [None] * count
    if count == 1:
        return [reader.length()]
    return _read_lengths(reader, count, bool(attributes & null_bit))


def _read_numbers(reader: _Reader, count: int, nature: Literal["ages", "offsets"]) -> list[int]:
    return _read_column(reader, count, nature) if count > 1 else [reader.zigzag()]


def _read_extensions(reader: _Reader) -> dict[int, bytes]:
    extensions: dict[int, bytes] = {}
    number, before = reader.number(), -1
    if not number:
        raise RefusedError("no extension")
    for _ in range(number):
        tag, size = reader.number(), reader.number()
        if tag <= before or tag > BY_ROWS or size != EXTENSION_BYTES[tag]:
            raise RefusedError(f"extension {tag} of {size} bytes")
        extensions[tag] = reader.take(size)
        before = tag
    return extensions


def _timestamp(extensions: dict[int, bytes], tag: int, default: int) -> int:
    return struct.unpack(">q", extensions[tag])[0] if tag in extensions else default


# Reads the headers' payload, all records': what the headers' metadata comes to.
_HeadersOf = Callable[[_Reader], list[Headers]]


def _read_headers(reader: _Reader, count: int, log_bytes: int) -> _HeadersOf:
    if count == 1:
        number = reader.number()
        _check_number(number)
        return _rows_of([number], [(reader.length(), reader.nullable_length()) for _ in range(number)])
    mode = reader.byte()
    if mode == BY_POSITION:
        return _read_positions(reader, count, log_bytes)
    if mode != BY_RECORD:
        raise RefusedError(f"headers of mode {mode}")
    numbers = _read_column(reader, count, "lengths")
    if not 0 <= min(numbers) <= max(numbers) <= INT32_MAX:
        raise RefusedError("number of headers")
    number = sum(numbers)
    _check_number(number)
    if number == 1:
        return _rows_of(numbers, [(reader.length(), reader.nullable_length())])
    key_lengths = [_checked_length(value) for value in _read_column(reader, number, "lengths")]
    has_nulls = reader.byte()
    if has_nulls > 1:
        raise RefusedError(f"nulls {has_nulls}")
    return _rows_of(numbers, list(zip(key_lengths, _read_lengths(reader, number, bool(has_nulls)), strict=True)))


def _check_number(number: int) -> None:
    if not 1 <= number <= BATCH_HEADERS:
        raise RefusedError(f"{number} headers")


def _rows_of(numbers: Sequence[int], lengths: Sequence[tuple[int, int | None]]) -> _HeadersOf:
    def headers_of(payload: _Reader) -> list[Headers]:
        found = [(_text(payload.take(key)), payload.content(value)) for key, value in lengths]
        rows, start = [], 0
        for number in numbers:
            rows.append(tuple(found[start : start + number]))
            start += number
        return rows

    return headers_of


def _text(key: bytes) -> str:
    return key.decode(errors="replace")


def _read_positions(reader: _Reader, count: int, log_bytes: int) -> _HeadersOf:
    number = reader.number()
    _check_number(number * count)
    positions = []
    expanded = 0
    for _ in range(number):
        key_length = reader.length()
        values_of, value_bytes = _read_form(reader, count)
        positions.append((key_length, values_of))
        expanded += count * key_length + value_bytes
        if expanded > BATCH_BYTES + LOG_EXPANSION * log_bytes:
            raise RefusedError(f"headers of {expanded} bytes")

    def headers_of(payload: _Reader) -> list[Headers]:
        columns = []
        for key_length, values_of in positions:
            key = _text(payload.take(key_length))
            columns.append([(key, value) for value in values_of(payload)])
        return list(zip(*columns, strict=True))

    return headers_of


_ValuesOf = Callable[[_Reader], list[bytes | None]]


def _read_form(reader: _Reader, count: int) -> tuple[_ValuesOf, int]:
    """What reads a position's values in the payload, and how many bytes of them all records have that share some."""
    form = reader.byte()
    if form == HEX_TEMPLATE:
        return _read_template(reader, count)
    if form in (PLAIN, PLAIN_WITH_NULLS):
        return _chosen(_read_lengths(reader, count, form == PLAIN_WITH_NULLS), range(count)), 0
    if form == CONSTANT:
        lengths, chosen = [reader.nullable_length()], [0] * count
    elif form == DICTIONARY:
        number = reader.number()
        if not 2 <= number <= MOST_VALUES:
            raise RefusedError(f"dictionary of {number}")
        lengths = [reader.nullable_length() for _ in range(number)]
        chosen = _read_indexes(reader, count, number)
    else:
        raise RefusedError(f"header of form {form}")
    return _chosen(lengths, chosen), sum(lengths[i] or 0 for i in chosen)


def _chosen(lengths: Sequence[int | None], chosen: Sequence[int]) -> _ValuesOf:
    def values_of(payload: _Reader) -> list[bytes | None]:
        contents = [payload.content(length) for length in lengths]
        return [contents[i] for i in chosen]

    return values_of


def _read_template(reader: _Reader, count: int) -> tuple[_ValuesOf, int]:
    length = reader.length()
    if not length:
        raise RefusedError("template of no characters")
    varies = reader.packed(length, 1)
    varying = sum(varies)
    if not varying:
        raise RefusedError("template of no digits")

    def values_of(payload: _Reader) -> list[bytes | None]:
        constant = iter(payload.take(length - varying))
        template = [0 if each else next(constant) for each in varies]
        nibbles = [nibble for byte in payload.take(-(-count * varying // 2)) for nibble in (byte >> 4, byte & 15)]
        if count * varying % 2 and nibbles.pop():
            raise RefusedError("padding")
        digits = (DIGITS[nibble] for nibble in nibbles)
        return [bytes(next(digits) if varies[k] else template[k] for k in range(length)) for _ in range(count)]

    return values_of, count * length


def decode_one(data: bytes, at: int) -> Batch:
    """The batch at `at`, every promise checked."""
    if len(data) - at < FIXED_BYTES:
        raise RefusedError("no room for the header")
    base_offset, length, leader_epoch, magic, crc, attributes = struct.unpack_from(">qiibIH", data, at)
    end = at + 12 + length
    if magic != MAGIC or length < FIXED_BYTES + 1 - 12 or end > len(data):
        raise RefusedError(f"magic {magic}, length {length}")
    if crc32c.crc32c(data[at + 21 : end]) != crc:
        raise RefusedError("crc")
    if attributes & CODEC >= len(CODEC_NAMES):
        raise RefusedError(f"codec {attributes & CODEC}")

    reader = _Reader(data[:end], at + 23)
    max_timestamp = int.from_bytes(reader.take(6), "big", signed=True)
    producer = struct.unpack(">qhi", reader.take(14)) if attributes & PRODUCER else (-1, -1, -1)
    count = reader.number()
    if count > BATCH_RECORDS:
        raise RefusedError(f"{count} records")
    last_delta = signed(reader.number(), 32) if attributes & OFFSETS else count - 1
    extensions = _read_extensions(reader) if attributes & EXTENSIONS else {}
    if bool(attributes & HORIZON) != (DELETE_HORIZON in extensions):
        raise RefusedError("the bit of the delete horizon and its extension disagree")
    if {BASE_TIMESTAMP, DELETE_HORIZON} <= extensions.keys():
        raise RefusedError("base timestamp and delete horizon")
    max_timestamp = _timestamp(extensions, WIDE_MAX_TIMESTAMP, max_timestamp)
    columns = AGES | KEYS | NULL_KEYS | VALUES | NULL_VALUES | HEADERS
    if not count and (attributes & columns or not attributes & OFFSETS or reader.at < end):
        raise RefusedError(f"empty batch of attributes {attributes:#06x}, {end - reader.at} bytes behind it")

    ages = _read_numbers(reader, count, "ages") if attributes & AGES else [0] * count
    deltas = _read_numbers(reader, count, "offsets") if attributes & OFFSETS and count else list(range(count))
    if any(not -(2**31) <= delta <= INT32_MAX for delta in deltas):
        raise RefusedError("offset delta")
    key_lengths = _read_field_lengths(reader, attributes, KEYS, NULL_KEYS, count)
    value_lengths = _read_field_lengths(reader, attributes, VALUES, NULL_VALUES, count)
    headers_of = _read_headers(reader, count, len(data)) if attributes & HEADERS else None

    raw = reader.rest()
    if raw:
        raw = codecs.decompress(CODEC_NAMES[attributes & CODEC], raw, 2)
    payload = _Reader(raw, 0)
    if BY_ROWS in extensions:
        both = [
            (payload.content(key), payload.content(value))
            for key, value in zip(key_lengths, value_lengths, strict=True)
        ]
        keys, values = [key for key, _ in both], [value for _, value in both]
    else:
        keys = [payload.content(length) for length in key_lengths]
        values = [payload.content(length) for length in value_lengths]
    headers = headers_of(payload) if headers_of else [()] * count
    if payload.at != len(raw):
        raise RefusedError(f"{len(raw) - payload.at} bytes after the payload")

    anchor = _timestamp(extensions, ANCHOR, max_timestamp)
    is_known = ANCHOR in extensions or not attributes & APPEND_TIME
    messages = [
        Message(
            offset=base_offset + deltas[i],
            timestamp_ms=_wrapped(anchor - ages[i]) if is_known else NO_TIMESTAMP,
            key=keys[i],
            value=values[i],
            headers=headers[i],
        )
        for i in range(count)
    ]
    if attributes & CONTROL:
        check_control(messages)
    horizon = _timestamp(extensions, DELETE_HORIZON, NO_TIMESTAMP) if attributes & HORIZON else None
    return Batch(
        position=at, size_bytes=end - at, magic=magic, crc=crc, attributes=attributes,
        base_offset=base_offset, last_offset=base_offset + last_delta, max_timestamp_ms=max_timestamp,
        messages=messages, raw=raw,
        base_timestamp_ms=_timestamp(extensions, BASE_TIMESTAMP, _default_base_timestamp(messages, horizon)),
        partition_leader_epoch=leader_epoch, producer_id=producer[0], producer_epoch=producer[1],
        base_sequence=producer[2], delete_horizon_ms=horizon,
    )  # fmt: skip
