"""Format text for people: tables in columns, counts with nouns, percentages, ranges of numbers, bytes, names."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

SHOWN_CHARACTERS: Final = 48  # the longest text that `preview` shows
# C0, DEL, C1, invisible and bidirectional controls, separators of lines, and surrogates (in Python's strings: the bytes
# of a file name that is not UTF-8). A terminal would obey them, or show another order than that of the characters.
CONTROLS: Final = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
NAME_BYTES: Final = range(0xDC80, 0xDD00)  # surrogates that stand for the bytes 0x80 to 0xFF (`os.fsdecode`)


def printable(text: str) -> str:
    """Escape control characters as in a Python string: \\x1b, \\n, \\u202e.

    A byte of a file name that is not UTF-8 becomes \\xe9, for example.
    """
    return CONTROLS.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Escape control characters, except line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number - 0xDC00:02x}" if number in NAME_BYTES else repr(found[0])[1:-1]


def text_table(rows: Iterable[Sequence[str]], right: Iterable[int] = (), has_rule: bool = False) -> list[str]:
    """Align rows in columns. Return one line of text per row.

    right: indices of the columns that are aligned to the right. has_rule: a line of dashes follows the first row. If a
    row has fewer cells than others, its last cell is a remark. A remark may be wider than its column. Control
    characters in cells are escaped.
    """
    table, right_columns = [tuple(map(printable, row)) for row in rows], set(right)
    column_count = max(map(len, table))
    widths = [
        max(len(row[column]) for row in table if len(row) > column + (len(row) < column_count))
        for column in range(column_count)
    ]

    def aligned_cell(row: Sequence[str], column: int) -> str:
        if len(row) < column_count and column == len(row) - 1:
            return row[column]
        return row[column].rjust(widths[column]) if column in right_columns else row[column].ljust(widths[column])

    lines = ["  ".join(aligned_cell(row, column) for column in range(len(row))).rstrip() for row in table]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]] if has_rule else lines


def count_words(count: float, noun: str) -> str:
    """Return a number with its noun in singular or plural: "1 byte", "1,000 batches", "2.5 times"."""
    plural = "es" if noun.endswith(("ch", "s")) else "s"
    number = f"{count:,}" if isinstance(count, int) else f"{count:g}"
    return f"{number} {noun}{'' if count == 1 else plural}"


def size_words(size_bytes: int) -> str:
    """Return a number of bytes: "64 MiB" if it is a whole number of MiB, else "30,000 bytes"."""
    return f"{size_bytes >> 20:,} MiB" if size_bytes and not size_bytes % (1 << 20) else count_words(size_bytes, "byte")


def shortened(text: str, width: int) -> str:
    """Return the text if it has at most `width` characters. Otherwise return an ellipsis and its last characters."""
    return text if len(text) <= width else f"…{text[1 - width :]}"


def cut(text: str, width: int) -> str:
    """Return the text if it has at most `width` characters. Otherwise return its first characters and an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"


def percent(share: float, digits: int | None = 1) -> str:
    """Format a share as a percentage: 0.125 is "12.5 %". Zero never has a minus sign.

    digits: the number of decimals. None: as many as the number has, up to six significant digits in all.
    """
    return f"{100 * share:z{'g' if digits is None else f'.{digits}f'}} %"


def number_range(values: Iterable[float], spec: str = ".2f", separator: str = " to ") -> str:
    """Return the smallest and the largest of `values`: "0.98 to 1.02". Return one number if both read the same: "1.00".

    spec: the format specification of a number.
    """
    numbers = list(values)
    return separator.join(dict.fromkeys(format(value, spec) for value in (min(numbers), max(numbers))))


def preview(data: bytes | None) -> str:
    """Return the number of bytes and the beginning of their text, for example `5 B 'hello'`. None is "null".

    Bytes that are not UTF-8 or contain a zero byte are shown in hexadecimal. At most SHOWN_CHARACTERS characters are
    shown.
    """
    if data is None:
        return "null"
    if not data:
        return "0 B"
    try:
        text = data.hex() if b"\0" in data else repr(data.decode()[:SHOWN_CHARACTERS])
    except UnicodeDecodeError:
        text = data[:SHOWN_CHARACTERS].hex()
    if len(text) > SHOWN_CHARACTERS:
        text = text[: SHOWN_CHARACTERS - 3] + "..."
    return f"{len(data)} B {text}"
