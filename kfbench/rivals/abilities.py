"""The table of abilities: what a broker or client can do with a batch of each format, and what shows it.

Rivals have their documented settings and stand in v2's header (see `envelope`). A container that is compressed as
a whole, as in the best settings, cannot be read in part. tests/rivals/test_abilities.py tries what can be tried.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

Answer = Literal["yes", "partly", "no"]
Format = Literal["v2", "columnar", "Parquet", "Arrow IPC", "Avro", "Vortex", "Lance"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
ARMS: Final[dict[Format, str]] = {
    "Parquet": "parquet",
    "Arrow IPC": "arrow-ipc",
    "Avro": "avro",
    "Vortex": "vortex",
    "Lance": "lance",
}
"""The arm of `rivals()` that has the documented settings."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The answer for one format.

    Args:
        answer: "yes", "partly" or "no".
        note: the condition, in a few words; may be empty.
        source: a document that shows it; empty: the ability's test shows it.
    """

    answer: Answer
    note: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Ability:
    """A row of the table. test: a test in tests/rivals/test_abilities.py; empty: each entry has a source."""

    name: str
    words: str
    entries: dict[Format, Entry]
    test: str = ""


def _row(v2: Entry, columnar: Entry, *rivals: Entry) -> dict[Format, Entry]:
    """Return the entries of a row. rivals: one entry for all rivals, or one each in the order of `FORMATS`."""
    each = rivals * len(ARMS) if len(rivals) == 1 else rivals
    return dict(zip(FORMATS, (v2, columnar, *each), strict=True))


YES: Final = Entry(answer="yes")
NO: Final = Entry(answer="no")
_BY_ENVELOPE: Final = Entry(answer="yes", note="v2's header")
_WITHOUT_CODEC: Final = Entry(answer="partly", note="without a codec")

ABILITIES: Final = (
    Ability(
        name="offsets",
        words="assign offsets in place",
        test="test_offsets_are_assigned_in_the_header",
        entries=_row(YES, YES, _BY_ENVELOPE),
    ),
    Ability(
        name="append-time",
        words="set the append time in place",
        test="test_the_append_time_is_set_in_the_header",
        entries=_row(YES, Entry(answer="partly", note="create times may be lost"), _BY_ENVELOPE),
    ),
    Ability(
        name="validate",
        words="check offsets and times without decompressing the payload",
        test="test_offsets_and_times_are_read_beside_damage",
        entries=_row(NO, YES, YES, YES, NO, YES, YES),
    ),
    Ability(
        name="find-time",
        words="find an offset by time without decompressing the payload",
        test="test_a_time_is_found_beside_damage",
        entries=_row(NO, YES, YES, YES, NO, YES, YES),
    ),
    Ability(
        name="compact",
        words="read keys without values, to compact",
        test="test_keys_are_read_beside_damage",
        entries=_row(
            NO,
            Entry(answer="partly", note="keys come first", source="columnar.md#in-place"),
            YES,
            YES,
            NO,
            YES,
            YES,
        ),
    ),
    Ability(
        name="fetch",
        words="fetch one record without reading the others",
        test="test_a_record_is_fetched_beside_damage",
        entries=_row(NO, _WITHOUT_CODEC, NO, _WITHOUT_CODEC, NO, Entry(answer="partly", note="without zstd"), YES),
    ),
    Ability(
        name="zero-copy",
        words="return values without a copy, without a codec",
        test="test_a_value_is_a_view_of_the_batch",
        entries=_row(YES, YES, NO, YES, NO, NO, NO),
    ),
    Ability(
        name="extension",
        words="read a batch with an unknown column",
        test="test_an_unknown_column_is_ignored",
        entries=_row(NO, NO, YES),
    ),
    Ability(
        name="limits",
        words="limits for hostile input in its documents",
        entries=_row(
            Entry(answer="partly", note="size only", source="https://kafka.apache.org/documentation/#brokerconfigs"),
            Entry(answer="yes", source="columnar.md#hostile-input"),
            Entry(
                answer="partly",
                note="best effort",
                source="https://github.com/apache/parquet-java/security/policy",
            ),
            Entry(
                answer="no",
                note="caller validates",
                source="https://arrow.apache.org/docs/dev/format/Security.html",
            ),
            Entry(
                answer="partly",
                note="in Java",
                source="https://avro.apache.org/docs/1.12.0/api/java/org/apache/avro/SystemLimitException.html",
            ),
            Entry(
                answer="no",
                note="none found",
                source="https://docs.rs/vortex-flatbuffers/latest/vortex_flatbuffers/footer/index.html",
            ),
            Entry(answer="no", note="none found", source="https://lance.org/format/file/"),
        ),
    ),
)


def ability(name: str) -> Ability:
    return next(each for each in ABILITIES if each.name == name)
