"""What each choice in columnar's layout is worth, in bytes: the tables of docs/adr/0007 and following.

usage: python -m tools.columnar.choices [--stored]

Takes the catalogue's workloads with seed 0, their records in batches of 1, 10 and 100 whatever the workload's own are,
and lets the slow reference codec write them (tests/reference/columnar.py): some seconds on one core. Writes
datasets/columnar/choices.json, and from it the tables of the decisions; --stored writes these alone. Nothing is timed:
all but the compressed bytes, which depend on the codecs' builds, is the same everywhere.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from math import prod
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any, Final, Literal, get_args

from kfbench.codecs import CODECS
from kfbench.workloads import WORKLOADS
from kfbench.workloads.catalogue import NamedWorkload
from tests.common import messages_of
from tests.reference import columnar
from tests.reference.model import Fields, Message
from tests.reference.records import common_headers
from tests.reference.varint import unsigned, zigzag
from tools.block import Block

ROOT: Final = Path(__file__).resolve().parents[2]
STORED: Final = ROOT / "datasets" / "columnar" / "choices.json"
DECISIONS: Final = ROOT / "docs" / "adr"
BATCHES: Final = {1: 200, 10: 50, 100: 10}  # of so many records: how many of them
MOST_BYTES: Final = 8 << 20  # of payload in a cell; a batch at the least
NAMES: Final = [name for name, each in WORKLOADS.items() if isinstance(each, NamedWorkload)]
Row = dict[str, Any]
Widen = Callable[[int], int]
Sizes = dict[str, int]
# What a column has: some kinds are for some natures alone. Codes are of lengths, where some are null.
Nature = Literal["ages", "offsets", "lengths", "codes"]
Column = tuple[list[int], Nature]
EVERY: Final[frozenset[Nature]] = frozenset(get_args(Nature))
SLOPED: Final[frozenset[Nature]] = frozenset({"ages", "offsets"})  # these may be told from their neighbours
RICE: Final = frozenset({"rice", "rice delta"})
KINDS: Final = (
    "bits", "base", "slope", "delta", "patched", "patched delta", "rice", "rice delta", "dictionary",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Batches of one workload, all of `size` records."""

    workload: str
    size: int
    batches: Sequence[Sequence[Message]]
    fields: Fields

    @property
    def records(self) -> int:
        return self.size * len(self.batches)


def cells(names: Sequence[str] = NAMES) -> Iterator[Cell]:
    for name in names:
        wanted = max(size * number for size, number in BATCHES.items())
        sample = WORKLOADS[name].generate(records=wanted, seed=0)
        row = sample.batch_fields.rows[0]
        fields = Fields()
        if row["producer_id"] >= 0:
            fields = Fields(producer_id=int(row["producer_id"]), producer_epoch=0, base_sequence=0)
        mean = max(1, sample.shapes.payload_bytes // wanted)
        records = sample.records.part(0, max(100, min(wanted, MOST_BYTES // mean)))
        messages = messages_of(records)
        for size, number in BATCHES.items():
            number = min(number, len(messages) // size)
            yield Cell(
                workload=name,
                size=size,
                batches=[messages[i * size : (i + 1) * size] for i in range(number)],
                fields=fields,
            )


# What a column takes


def bits_of(values: Sequence[int], widen: Widen) -> int:
    return widen(max(values).bit_length())


def plain_width(bits: int) -> int:
    return bits if bits <= columnar.WIDEST else columnar.WHOLE


def whole_bytes(bits: int) -> int:
    """Widths that a processor loads: 0, 8, 16, 32 or 64 bits."""
    return next(width for width in (0, 8, 16, 32, 64) if bits <= width)


def packed_bytes(number: int, width: int) -> int:
    return -(-number * width // 8)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What an encoder has and tries; by default what docs/columnar.md says."""

    widen: Widen = plain_width
    patches: bool = True
    patches_always: bool = False  # where the rule has them untried, too
    rice: frozenset[Nature] = EVERY - {"codes"}
    rice_eighths: int = 7  # of the smallest other kind, at most
    rice_widths: bool = False  # all of them tried, and not the one
    running_sums: bool = False  # Elias and Fano's code in the place of Rice's
    dictionary: int = 16  # values at most
    ages_fall: bool = True  # their steps are taken off


COLUMNAR: Final = Rules()


def chosen(values: Sequence[int], nature: Nature, rules: Rules = COLUMNAR) -> tuple[str, int]:
    """The kind that a column has, and its bytes: the smallest, but Rice's code only where it is small enough."""
    sizes = kinds(values, nature, rules)
    other = min((kind for kind in sizes if kind not in RICE), key=sizes.__getitem__)
    rice = min((kind for kind in sizes if kind in RICE), key=sizes.__getitem__, default=other)
    kind = rice if 8 * sizes[rice] <= rules.rice_eighths * sizes[other] else other
    return kind, sizes[kind]


def smallest(values: Sequence[int], nature: Nature, rules: Rules = COLUMNAR) -> int:
    return chosen(values, nature, rules)[1]


def kinds(values: Sequence[int], nature: Nature, rules: Rules = COLUMNAR) -> Sizes:
    """Bytes of a column in each kind that is tried."""
    number, least = len(values), min(values)
    above = [value - least for value in values]
    found = {}
    if least >= 0:
        found["bits"] = 1 + packed_bytes(number, bits_of(values, rules.widen))
    found["base"] = 1 + len(zigzag(least)) + packed_bytes(number, bits_of(above, rules.widen))
    front = 2 + len(zigzag(least))
    if nature not in SLOPED:
        found |= {kind: front + size for kind, size in uneven(above, nature, rules).items()}
        return found | dictionary(values, front, rules)
    slope = (values[-1] - values[0]) // (number - 1)
    levels = [value - i * slope for i, value in enumerate(values)]
    lowest = min(levels)
    if number >= 3 and slope:
        width = bits_of([level - lowest for level in levels], rules.widen)
        found["slope"] = 1 + len(zigzag(lowest) + zigzag(slope)) + packed_bytes(number, width)
    steps = steps_of(values, nature, rules)
    shortest = min(steps)
    beyond = [step - shortest for step in steps]
    behind_first = 2 + len(zigzag(values[0]) + zigzag(shortest))
    found["delta"] = behind_first + packed_bytes(number - 1, bits_of(beyond, rules.widen))
    found |= {kind: front + size for kind, size in uneven(above, nature, rules).items()}
    return found | {f"{kind} delta": behind_first + size for kind, size in uneven(beyond, nature, rules).items()}


def steps_of(values: Sequence[int], nature: Nature, rules: Rules = COLUMNAR) -> list[int]:
    sign = -1 if nature == "ages" and rules.ages_fall else 1
    return [sign * (after - before) for before, after in pairwise(values)]


def uneven(above: Sequence[int], nature: Nature, rules: Rules) -> Sizes:
    """Bytes behind the base, in the kinds whose width is less than the largest value's."""
    found = {}
    if rules.patches and (rules.patches_always or is_tried(above, 3 if len(above) < 16 else 4) or not is_summed(above)):
        sizes = [patched(above, width) for width in {rules.widen(each) for each in widths_of(above)}]
        found = {"patched": min(size for size in sizes if size)} if any(sizes) else {}
    if nature in rules.rice and is_tried(above, 2) and is_summed(above):
        one = max(0, (sum(above) // len(above)).bit_length() - 1)
        widths = widths_of(above) if rules.rice_widths else [one]
        found["rice"] = min(rice(above, width, rules.running_sums) for width in widths)
    return found


def is_tried(above: Sequence[int], bits: int) -> bool:
    """Whether the largest value has so many bits more than the mean."""
    return max(above).bit_length() >= bits + (sum(above) // len(above)).bit_length()


def is_summed(above: Sequence[int]) -> bool:
    """Whether an int64 holds the sum for certain."""
    return max(above).bit_length() + len(above).bit_length() <= 63


def widths_of(above: Sequence[int]) -> range:
    return range(min(max(above).bit_length(), columnar.WIDEST + 1))


def patched(above: Sequence[int], width: int) -> int:
    """0 where nothing is above that width."""
    high = [value >> width for value in above if value >> width]
    if not high:
        return 0
    at = packed_bytes(len(high), (len(above) - 1).bit_length())
    patches = len(unsigned(len(high))) + at + sum(len(unsigned(each)) for each in high)
    return packed_bytes(len(above), width) + patches


def rice(above: Sequence[int], width: int, running_sums: bool) -> int:
    """running_sums: the quotients are of the sums up to each value, less the quotient before."""
    quotients = sum(above) >> width if running_sums else sum(value >> width for value in above)
    return packed_bytes(len(above), width) + -(-(quotients + len(above)) // 8)


def dictionary(values: Sequence[int], front: int, rules: Rules) -> Sizes:
    number, bits = len(set(values)), (max(values) - min(values)).bit_length()
    if bits < 4 or number > rules.dictionary:
        return {}
    indexes = packed_bytes(len(values), rules.widen((number - 1).bit_length()))
    return {"dictionary": front + 1 + packed_bytes(number, rules.widen(bits)) + indexes}


def columns_of(batch: Sequence[Message]) -> dict[str, Column]:
    """The columns that a batch of two records or more has."""
    latest, base = max(message.timestamp_ms for message in batch), batch[0].offset
    found: dict[str, Column] = {}
    ages = [latest - message.timestamp_ms for message in batch]
    if any(ages):
        found["ages"] = (ages, "ages")
    offsets = [message.offset - base for message in batch]
    if offsets != list(range(len(batch))):
        found["offsets"] = (offsets, "offsets")
    for name, contents in (("keys", [each.key for each in batch]), ("values", [each.value for each in batch])):
        lengths = [len(content) for content in contents if content is not None]
        if len(lengths) == len(contents):
            found[name] = (lengths, "lengths")
        elif lengths:
            found[name] = ([0 if each is None else len(each) - min(lengths) + 1 for each in contents], "codes")
    return found


def every_column(cell: Cell) -> Iterator[Column]:
    for batch in cell.batches:
        yield from columns_of(batch).values()


def with_outliers(batch: Sequence[Message]) -> list[Column]:
    """The same columns with one value of each far above the others: a late record, a hole, a long key and value."""
    found = []
    for name, (values, nature) in columns_of(batch).items():
        far = {"ages": 86_400_000, "offsets": 1_000_000, "keys": 1 << 12, "values": 1 << 20}[name]
        middle = len(values) // 2
        changed = list(values)
        changed[middle] += far
        if name == "offsets":
            changed = [value + far if i >= middle else value for i, value in enumerate(values)]
        found.append((changed, nature))
    return found


# The choices


def compressed_bytes(codec: str, data: bytes) -> int:
    return len(CODECS[codec].compress(data)) if data else 0


def values_first(batch: Sequence[Message]) -> bytes:
    """The payload with all values before all keys."""
    split, keys = columnar.payload_section(batch), sum(len(message.key or b"") for message in batch)
    values = sum(len(message.value or b"") for message in batch)
    return split[keys : keys + values] + split[:keys] + split[keys + values :]


def by_rows(batch: Sequence[Message]) -> bytes:
    """The payload with key and value of a record side by side; header bytes stay behind, where they are."""
    split = columnar.payload_section(batch)
    behind = sum(len(message.key or b"") + len(message.value or b"") for message in batch)
    return b"".join((message.key or b"") + (message.value or b"") for message in batch) + split[behind:]


def codec_rows(every: Sequence[Cell]) -> list[Row]:
    """Of each workload, size and codec: bytes with metadata outside and inside the codec, and in other orders."""
    rows = []
    for cell in every:
        totals, metadata = {codec: [0, 0, 0, 0] for codec in CODECS if codec != "none"}, 0
        for batch in cell.batches:
            payload = columnar.payload_section(batch)
            others = by_rows(batch), values_first(batch)
            front = columnar.batch(batch, cell.fields, "none", b"")
            metadata += len(front)
            lean = columnar.FIXED_BYTES + 14 * (cell.fields != Fields()) + len(unsigned(len(batch)))
            for codec, total in totals.items():
                packed = compressed_bytes(codec, payload)
                total[0] += len(front) + packed
                total[1] += lean + compressed_bytes(codec, front[lean:] + payload)
                for i, other in enumerate(others, 2):
                    total[i] += len(front) + (packed if other == payload else compressed_bytes(codec, other))
        for codec, (outside, inside, rowwise, reversed_) in totals.items():
            rows.append(
                {"workload": cell.workload, "records": cell.size, "codec": codec, "batches": len(cell.batches),
                 "metadata_bytes": metadata, "outside_bytes": outside, "inside_bytes": inside, "by_rows_bytes": rowwise,
                 "values_first_bytes": reversed_}
            )  # fmt: skip
    return rows


BY_RULES: Final = {
    "as_is": COLUMNAR,
    "unpatched": Rules(patches=False),
    "always_patched": Rules(patches_always=True),
    "byte_aligned": Rules(widen=whole_bytes, rice=frozenset()),
    "elias_fano": Rules(running_sums=True),
    "six_kinds": Rules(rice=frozenset(), dictionary=0, ages_fall=False),
    "no_rice": Rules(rice=frozenset()),
    "rice_where_smaller": Rules(rice_eighths=8),
    "rice_of_codes": Rules(rice=EVERY),
    "rice_sloped": Rules(rice=SLOPED),
    "rice_widths": Rules(rice_widths=True),
    "no_dictionary": Rules(dictionary=0),
    "dictionary_of_4": Rules(dictionary=4),
    "dictionary_of_32": Rules(dictionary=32),
    "ages_rise": Rules(ages_fall=False),
}
BESIDE: Final = ("either_sign", "outliers", "outliers_unpatched", "blocks", "cumulative", "fine_slope", "coded")
HEADER_DESIGNS: Final = {
    "as_is": "columnar",
    "no_template": "no template",
    "no_dictionary": "no dictionary",
    "by_record": "by record",
    "common_prefix": "shared ones once",
}


def column_rows(every: Sequence[Cell]) -> list[Row]:
    """Of each workload and size: bytes of all columns (headers apart) as they are and by other designs; of kinds."""
    rows = []
    for cell in every:
        if cell.size == 1:
            continue
        row: Row = dict.fromkeys((*BY_RULES, *BESIDE), 0)
        found: Counter[str] = Counter()
        for values, nature in every_column(cell):
            kind, least = chosen(values, nature)
            found[kind] += 1
            for name, rules in BY_RULES.items():
                row[name] += smallest(values, nature, rules)
            row["either_sign"] += min(least, smallest(values, nature, BY_RULES["ages_rise"]))
            row["blocks"] += min(least, in_blocks(values))
            row["cumulative"] += least if nature in SLOPED else cumulative(values)
            row["fine_slope"] += min(least, fine_slope(values)) if nature in SLOPED else least
            row["coded"] += min(least, coded(values, nature))
        for batch in cell.batches:
            for values, nature in with_outliers(batch):
                row["outliers"] += smallest(values, nature)
                row["outliers_unpatched"] += smallest(values, nature, BY_RULES["unpatched"])
        named = {"workload": cell.workload, "records": cell.size, "batches": len(cell.batches)}
        rows.append({**named, **row, "kinds": dict(found)})
    return rows


def in_blocks(values: Sequence[int], block: int = 32) -> int:
    """A descriptor; then each block of 32 values with a width and a base of its own."""
    size = 1
    for start in range(0, len(values), block):
        part = values[start : start + block]
        width = bits_of([value - min(part) for value in part], plain_width)
        size += 1 + len(zigzag(min(part))) + packed_bytes(len(part), width)
    return size


def cumulative(values: Sequence[int]) -> int:
    """The sums up to each value, by a kind that gives value i without the ones before it."""
    sums, total = [], 0
    for value in values:
        total += value
        sums.append(total)
    return min(size for kind, size in kinds(sums, "offsets").items() if "delta" not in kind and kind not in RICE)


def fine_slope(values: Sequence[int], fraction: int = 16) -> int:
    """Kind 2 with a slope in 65,536ths."""
    slope = ((values[-1] - values[0]) << fraction) // (len(values) - 1)
    levels = [value - (i * slope >> fraction) for i, value in enumerate(values)]
    width = bits_of([level - min(levels) for level in levels], plain_width)
    return 1 + len(zigzag(min(levels)) + zigzag(slope)) + packed_bytes(len(values), width)


def coded(values: Sequence[int], nature: Nature) -> int:
    """By an arithmetic coder that has a table of its own, without what it rounds: of the values, or of bit lengths."""
    sizes = [in_codes(values)]
    if nature in SLOPED:
        sizes.append(len(zigzag(values[0])) + in_codes(steps_of(values, nature)))
    return min(sizes)


def in_codes(values: Sequence[int]) -> int:
    """The smaller of two: a table of values and how often each, or of bit lengths, and the bits below plain."""
    least = min(values)
    above = [value - least for value in values]
    lengths = [value.bit_length() for value in above]
    by_value, by_length = Counter(above), Counter(lengths)
    gaps = sum(len(unsigned(after - before)) for before, after in pairwise(sorted(by_value)))
    values_and_counts = gaps + sum(len(unsigned(number)) for number in by_value.values())
    counts = sum(len(unsigned(by_length[length])) for length in range(max(lengths) + 1))
    plain = sum(max(0, length - 1) for length in lengths)
    tables = (values_and_counts + -(-code_bits(by_value) // 8), counts + -(-(code_bits(by_length) + plain) // 8))
    return 2 + len(zigzag(least)) + min(tables)


def code_bits(numbers: Mapping[int, int]) -> int:
    """What all symbols take where each takes the logarithm of its share, rounded up once."""
    total = sum(numbers.values())
    below: int = (total**total - 1) // prod(number**number for number in numbers.values())
    return below.bit_length()


def header_rows(every: Sequence[Cell]) -> list[Row]:
    """Of each workload that has headers: their bytes, metadata and payload, by several designs; plain, under zstd."""
    rows = []
    for cell in every:
        if cell.size == 1 or not any(message.headers for batch in cell.batches for message in batch):
            continue
        for codec in ("none", "zstd"):
            row: Row = dict.fromkeys(HEADER_DESIGNS, 0)
            for batch in cell.batches:
                for name, (metadata, payload) in header_designs(batch).items():
                    row[name] += len(metadata) + compressed_bytes(codec, payload)
            rows.append(
                {"workload": cell.workload, "records": cell.size, "codec": codec, "batches": len(cell.batches), **row}
            )
    return rows


def header_designs(batch: Sequence[Message]) -> dict[str, tuple[bytes, bytes]]:
    flat = [header for message in batch for header in message.headers]
    shared = common_headers(batch)
    rest = [Message(offset=each.offset, headers=each.headers[len(shared) :]) for each in batch]
    once = b"".join(key.encode() + (value or b"") for key, value in shared)
    named = b"".join(unsigned(len(key.encode())) + unsigned(len(value or b"") + 1) for key, value in shared)
    return {
        "as_is": columnar._headers(batch),
        "no_template": positions(batch, (columnar.HEX_TEMPLATE,)),
        "no_dictionary": positions(batch, (columnar.DICTIONARY,)),
        "by_record": by_record([len(each.headers) for each in batch], flat),
        "common_prefix": joined(
            (unsigned(len(shared)) + named, once),
            by_record([len(each.headers) for each in rest], [header for each in rest for header in each.headers]),
        ),
    }


def joined(*parts: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    return b"".join(metadata for metadata, _ in parts), b"".join(payload for _, payload in parts)


def positions(batch: Sequence[Message], without: tuple[int, ...]) -> tuple[bytes, bytes]:
    """By position with some forms left out; for batches whose records all have the same keys."""
    metadata, payload = b"\1" + unsigned(len(batch[0].headers)), b""
    for position in zip(*(message.headers for message in batch), strict=True):
        key = position[0][0].encode()
        forms = [form for form in columnar._forms([value for _, value in position]) if form[0] not in without]
        number, described, content = min(forms, key=lambda form: len(form[1]) + len(form[2]))
        metadata += unsigned(len(key)) + bytes([number]) + described
        payload += key + content
    return metadata, payload


def by_record(numbers: Sequence[int], flat: Sequence[tuple[str, bytes | None]]) -> tuple[bytes, bytes]:
    """As mode 0 has them: lengths in columns, contents one after another."""
    metadata = b"\0" + columnar.column(numbers, "lengths")
    if len(flat) > 1:
        contents = [value for _, value in flat]
        metadata += columnar._lengths([key.encode() for key, _ in flat], has_nulls=False)
        metadata += b"\0" + columnar._lengths(contents, has_nulls=None in contents)
    return metadata, b"".join(key.encode() + (value or b"") for key, value in flat)


def state_rows() -> list[Row]:
    """Of each workload's own batches: how many have no producer state, and what columnar's metadata comes to."""
    rows = []
    for name in NAMES:
        sample = WORKLOADS[name].generate(records=2_000, seed=0)
        batches = len(sample.bounds) - 1
        stateful = sample.batch_fields.over(batches)["producer_id"] >= 0
        without = int(batches - stateful.sum() * (batches // len(stateful)))
        rows.append({"workload": name, "batches": batches, "without": without, "records": 2_000})
    return rows


# As the decisions show them


def ratios(rows: Sequence[Row], column: str, **where: Any) -> list[float]:
    """Of `column` to what columnar takes."""
    return [
        row[column] / row["outside_bytes"] for row in rows if all(row[key] == value for key, value in where.items())
    ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compared(rows: Sequence[Row], column: str, without: int) -> str:
    lines = []
    for codec in (codec for codec in CODECS if codec != "none"):
        line = [codec]
        for size in BATCHES:
            if size == without:
                continue
            found = ratios(rows, column, codec=codec, records=size)
            worse = sum(ratio > 1 for ratio in found)
            line.append(f"{geometric_mean(found):.3f} ({min(found):.3f} to {max(found):.3f}; larger in {worse})")
        lines.append(line)
    sizes = [size for size in BATCHES if size != without]
    return table(["codec", *(f"{size} record{'s' * (size > 1)} a batch" for size in sizes)], lines)


def each_record(row: Row, column: str) -> float:
    return float(row[column] / (row["records"] * row["batches"]))


def designs(rows: Sequence[Row], named: Mapping[str, str]) -> str:
    """Bytes a record against columnar's: the mean over workloads, and the workloads at either end."""
    lines = [["columnar's columns", *(f"{mean_of(rows, 'as_is', size):.2f}" for size in (10, 100))]]
    for column, what in named.items():
        line = [what]
        for size in (10, 100):
            more = {
                row["workload"]: each_record(row, column) - each_record(row, "as_is")
                for row in rows
                if row["records"] == size
            }
            ends = (
                f"{change(more[name])} {name}"
                for name in (min(more, key=more.__getitem__), max(more, key=more.__getitem__))
            )
            line.append(f"{change(fmean(more.values()))} ({' to '.join(ends)})" if any(more.values()) else "0")
        lines.append(line)
    return table(["bytes a record, mean (least to most)", "10 records", "100 records"], lines)


def change(value: float) -> str:
    return "0" if abs(value) < 0.005 else f"{value:+.2f}"


def mean_of(rows: Sequence[Row], column: str, size: int) -> float:
    """Bytes a record, the mean of the workloads."""
    return fmean(each_record(row, column) for row in rows if row["records"] == size)


def anchors(codecs: Sequence[Row]) -> str:
    """What the latest time of a batch takes by three designs, and what it is of all metadata of a batch of one."""
    overhead = mean_of([row for row in codecs if row["codec"] == "zstd"], "metadata_bytes", 1)
    years = (2026, 2040)
    times = [int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000) for year in years]
    lines = []
    for what, sizes, in_place in (
        ("i64, as in v2", [8, 8], "yes"),
        ("i48", [6, 6], "yes"),
        ("zigzag", [len(zigzag(time)) for time in times], "no: another time may take another byte"),
    ):
        rest = overhead - 6
        lines.append([what, *map(str, sizes), f"{sizes[0] / (rest + sizes[0]):.0%}", in_place])
    shares = "of all metadata, 1 record"
    return table(["bytes", *(f"in {year}" for year in years), shares, "an append time can be set in place"], lines)


def states(rows: Sequence[Row]) -> str:
    head = ["workload", "batches", "without producer state", "bytes saved a record"]
    return table(
        head,
        [
            [
                row["workload"],
                f"{row['batches']:,}",
                f"{row['without']:,}",
                f"{14 * row['without'] / row['records']:.1f}",
            ]
            for row in rows
            if row["without"]
        ],
    )


def header_table(rows: Sequence[Row]) -> str:
    return table(
        ["header bytes a record", "codec", *HEADER_DESIGNS.values()],
        [
            [
                f"{row['workload']}, {row['records']}",
                row["codec"],
                *(f"{each_record(row, name):.1f}" for name in HEADER_DESIGNS),
            ]
            for row in rows
        ],
    )


def tables(stored: Mapping[str, Any]) -> dict[str, str]:
    """By the number of the decision."""
    codecs, columns = stored["codecs"], stored["columns"]
    totals: dict[int, dict[str, int]] = {10: {}, 100: {}}
    for row in columns:
        for kind, number in row["kinds"].items():
            totals[row["records"]][kind] = totals[row["records"]].get(kind, 0) + number
    shares = [
        [kind, *(f"{totals[size].get(kind, 0) / sum(totals[size].values()):.1%}" for size in (10, 100))]
        for kind in KINDS
    ]
    outliers = [
        [what, *(f"{mean_of(columns, column, size):.2f}" for size in (10, 100))]
        for column, what in (
            ("as_is", "as the workloads are, with patches"),
            ("unpatched", "without patches"),
            ("always_patched", "with patches tried everywhere"),
            ("outliers", "one value far off in each column of a batch, with patches"),
            ("outliers_unpatched", "without patches"),
        )
    ]
    return {
        "0007": compared(codecs, "inside_bytes", without=0),
        "0008": f"By rows:\n\n{compared(codecs, 'by_rows_bytes', without=1)}\n\nAll values, then all keys:\n\n"
        + compared(codecs, "values_first_bytes", without=1),
        "0009": table(["bytes a record, mean of workloads", "10 records", "100 records"], outliers)
        + "\n\n"
        + table(["kind", "columns at 10 records", "at 100"], shares),
        "0010": designs(
            columns,
            {
                "byte_aligned": "widths of 0, 8, 16, 32 or 64 bits only, without rice",
                "blocks": "blocks of 32 values with a base and width each, where smaller",
                "cumulative": "lengths as sums, to reach record i at once",
                "fine_slope": "slopes in 65,536ths, where smaller",
                "elias_fano": "Elias-Fano in place of rice",
                "coded": "an arithmetic coder and its table, where smaller",
            },
        ),
        "0011": states(stored["state"]),
        "0012": anchors(codecs),
        "0013": header_table(stored["headers"]),
        "0014": designs(
            columns,
            {
                "six_kinds": "six kinds, and steps of ages that rise",
                "no_rice": "without rice and rice delta",
                "rice_where_smaller": "rice wherever smaller, but for codes",
                "rice_of_codes": "rice for codes, too",
                "rice_sloped": "rice for ages and offsets alone",
                "rice_widths": "the best width for rice, of all",
                "no_dictionary": "without the dictionary",
                "dictionary_of_4": "a dictionary of up to 4 values",
                "dictionary_of_32": "a dictionary of up to 32 values",
                "ages_rise": "steps of ages that rise",
                "either_sign": "steps of ages that rise or fall, the smaller",
            },
        ),
    }


def blocks() -> dict[str, Block]:
    """Where each table stands."""
    return {
        number: Block(page=next(DECISIONS.glob(f"{number}-*.md")), name="figures", by="tools/columnar/choices.py")
        for number in ("0007", "0008", "0009", "0010", "0011", "0012", "0013", "0014")
    }


def measured() -> dict[str, Any]:
    every = list(cells())
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "libraries": {name: codec.version for name, codec in CODECS.items() if name != "none"},
        "codecs": codec_rows(every),
        "columns": column_rows(every),
        "headers": header_rows(every),
        "state": state_rows(),
    }


def main() -> None:
    if sys.argv[1:] not in ([], ["--stored"]):
        raise SystemExit(__doc__)
    if not sys.argv[1:]:
        found = measured()
        parts = ",\n".join(f" {json.dumps(name)}: {lines(value)}" for name, value in found.items())
        STORED.write_text("{\n" + parts + "\n}\n", encoding="utf-8")
    written = tables(json.loads(STORED.read_text(encoding="utf-8")))
    for number, block in blocks().items():
        block.write(written[number])


def lines(value: Any) -> str:
    """Rows one beneath the other, so that a diff shows the ones that changed."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(f"  {json.dumps(row)}" for row in value) + "\n ]"


if __name__ == "__main__":
    main()
