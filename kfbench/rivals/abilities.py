"""The table of abilities: what a broker or client can do with a batch of each format, and what shows it.

Rivals have their documented settings and stand in v2's header (see `envelope`). A container that is compressed as
a whole, as in the best settings, cannot be read in part. Each entry has a test of tests/rivals/test_abilities.py that
tries it, or the section of a document.
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
        source: a page of ours with its section ("columnar.md#in-place"), or the name and section of a foreign
            document; empty: the ability's test shows it.
    """

    answer: Answer
    note: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Ability:
    """A row of the table.

    Args:
        tests: the ids of tests in tests/rivals/test_abilities.py, with NAME for the format. Empty: all entries have a
            source.
    """

    name: str
    words: str
    entries: dict[Format, Entry]
    tests: tuple[str, ...] = ()

    def tests_of(self, name: Format) -> tuple[str, ...]:
        """Return the ids of the tests that try this entry; none if a document shows it."""
        return () if self.entries[name].source else tuple(test.replace("NAME", name) for test in self.tests)


def _row(v2: Entry, columnar: Entry, *rivals: Entry) -> dict[Format, Entry]:
    """Return the entries of a row. rivals: one entry for all rivals, or one each in the order of `FORMATS`."""
    each = rivals * len(ARMS) if len(rivals) == 1 else rivals
    return dict(zip(FORMATS, (v2, columnar, *each), strict=True))


YES: Final = Entry(answer="yes")
NO: Final = Entry(answer="no")
_BY_ENVELOPE: Final = Entry(answer="yes", note="v2's header")
_IN_PLACE: Final = Entry(answer="partly", note="create times may be lost", source="columnar.md#in-place")
_WITHOUT_CODEC: Final = Entry(answer="partly", note="without a codec")

ABILITIES: Final = (
    Ability(
        name="offsets",
        words="assign offsets in place",
        tests=("test_offsets_are_assigned_in_the_header[NAME]",),
        entries=_row(YES, YES, _BY_ENVELOPE),
    ),
    Ability(
        name="append-time",
        words="set the append time in place",
        tests=("test_the_append_time_is_set_in_the_header[NAME]",),
        entries=_row(YES, _IN_PLACE, _BY_ENVELOPE),
    ),
    Ability(
        name="validate",
        words="check offsets and times without decompressing the payload",
        tests=("test_offsets_and_times_are_read_beside_damage[validate-NAME]",),
        entries=_row(NO, YES, YES, YES, NO, YES, YES),
    ),
    Ability(
        name="find-time",
        words="find an offset by time without decompressing the payload",
        tests=("test_offsets_and_times_are_read_beside_damage[find-time-NAME]",),
        entries=_row(NO, YES, YES, YES, NO, YES, YES),
    ),
    Ability(
        name="compact",
        words="read keys without values, to compact",
        tests=("test_keys_are_read_beside_damage[NAME]",),
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
        tests=("test_a_record_is_fetched_beside_damage[NAME]",),
        entries=_row(NO, _WITHOUT_CODEC, NO, _WITHOUT_CODEC, NO, Entry(answer="partly", note="without zstd"), YES),
    ),
    Ability(
        name="zero-copy",
        words="return values without a copy, without a codec",
        tests=("test_a_value_is_a_view_of_the_batch[NAME]",),
        entries=_row(YES, YES, NO, YES, NO, NO, NO),
    ),
    Ability(
        name="extension",
        words="read a batch with an unknown column",
        tests=("test_an_unknown_column_is_ignored[NAME]",),
        entries=_row(
            Entry(answer="no", source="formats.md#v2-batch"),
            Entry(answer="no", note="refused", source="columnar.md#extensions"),
            YES,
        ),
    ),
    Ability(
        name="limits",
        words="limits for hostile input in its documents",
        entries=_row(
            Entry(answer="partly", note="size only", source="Kafka documentation, “Broker Configs”, message.max.bytes"),
            Entry(answer="yes", source="columnar.md#hostile-input"),
            Entry(
                answer="partly",
                note="best effort",
                source="parquet-java, SECURITY.md, “Threat model”",
            ),
            Entry(
                answer="no",
                note="caller validates",
                source="Arrow documentation, “Security Considerations”, “Columnar Format”, “Invalid data”",
            ),
            Entry(
                answer="partly",
                note="in Java",
                source="Avro 1.12.0 Java API, class SystemLimitException",
            ),
            Entry(
                answer="no",
                note="none found",
                source="Vortex, crate vortex-flatbuffers, module footer",
            ),
            Entry(answer="no", note="none found", source="Lance documentation, “Format”, “File format”"),
        ),
    ),
)


def ability(name: str) -> Ability:
    return next(each for each in ABILITIES if each.name == name)
