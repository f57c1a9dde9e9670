"""A text has the numbers of declared tables, and a wrong field names its place and the word that was meant."""

from typing import Final

import pytest

from kfbench.errors import InvalidConfig
from kfbench.present.engine import BuiltTable
from kfbench.present.fields import FORMATS, Unmeasured, fill_fields
from tests.present.made import built, cells, counted, failed, rows_of, timed

PLACE: Final = "made.toml: section one"
ROWS: Final = rows_of(
    [
        *(counted(name, size, batch) for batch, sizes in {1: (2000, 1250), 100: (1_234_567, 600)}.items()
          for name, size in zip(("v2", "v3"), sizes, strict=True)),
        counted("v2", 1000, key_bytes=-1), timed("v2", [1000] * 9), timed("v3", [1500] * 9),
        *(counted(name, size, None, workload=workload) for workload, sizes in {"a": (100, 80), "b": (100, 45)}.items()
          for name, size in zip(("v2", "v3"), sizes, strict=True)), counted("v1", 50, None, workload="a"),
        failed(counted("v0", 0)),
    ]
)  # fmt: skip
BASE: Final = {"format": "v2"}
TABLES: Final = {
    "sizes": built(ROWS, where={"kind": "bytes", "population": "grid"}, base=BASE, rows=["batch_size", "key_bytes"]),
    "cpu": built(ROWS, where={"kind": "cpu"}, metrics=["time_ratio"], base=BASE),
    "means": built(
        ROWS, where={"kind": "bytes", "population": "named"}, metrics=["ratio"], base=BASE, rows=["format"],
        columns=[], over=["workload"],
    ),
    "empty": built(ROWS, where={"kind": "broker"}, base=BASE),
}  # fmt: skip

FIELDS: Final = [
    ("sizes.saving[batch_size=1,key_bytes=16,format=v3]:pct0", "38\N{NO-BREAK SPACE}%"),
    ("sizes.saving[batch_size=1,key_bytes=16,format=v3]:pct1", "37.5\N{NO-BREAK SPACE}%"),
    ("sizes.size[batch_size=1, key_bytes=16, format=v2]:bytes1", "200.0 bytes"),
    ("sizes.size[batch_size=100,format=v2]:count0", "123,457"),
    ("sizes.ratio[batch_size=1,format=v3]:x2", "0.62\N{NO-BREAK SPACE}×"),
    ("sizes.size[key_bytes=null,format=v2]:count0", "100"),
    ("cpu.ns[format=v2]:ns0", "100\N{NO-BREAK SPACE}ns"),
    ("cpu.time_ratio[format=v3]:x2", "1.50\N{NO-BREAK SPACE}×"),
    ("cpu.time_ratio[format=v3]:s2", "1.50\N{NO-BREAK SPACE}s"),
    ("cpu.ns[format=v2]:usd2", "US$\N{NO-BREAK SPACE}100.00"),
    ("means.ratio[format=v3]:pct0", "60\N{NO-BREAK SPACE}%"),
    ("means.saving_least[format=v3]:pct0", "20\N{NO-BREAK SPACE}%"),
    ("means.saving_most[format=v3]:pct0", "55\N{NO-BREAK SPACE}%"),
    ("means.saving_count[format=v3]:count0", "2"),
]


def fill(text: str, tables: dict[str, BuiltTable] = TABLES) -> str:
    return fill_fields(text, tables, PLACE)


@pytest.mark.parametrize(("field", "words"), FIELDS)
def test_a_field_becomes_a_number_with_its_unit(field: str, words: str) -> None:
    """v3 saves 37.5 % of 200 bytes. Over two workloads it has 0.8 and 0.45 of v2's bytes: 0.6 in the mean."""
    assert fill(f"It is {{{field}}}, `code`.") == f"It is {words}, `code`."


def test_every_format_is_tried_here() -> None:
    assert {field.rpartition(":")[2] for field, _ in FIELDS} == set(FORMATS)


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ("1 - sizes.ratio[format=v3]:pct1", r"is not a field"),
        ("", r"is not a field"),
        ("size.size[format=v2]:bytes1", r"no table size; did you mean sizes\?"),
        ("sizes.siz[format=v2]:bytes1", r"no metric siz; did you mean size\?"),
        ("sizes.size[fromat=v2]:bytes1", r"no column fromat; did you mean format\?"),
        ("sizes.size[format=v2]:byte", r"no format byte, but pct0, pct1, bytes1"),
        ("sizes.losses[batch_size=1,key_bytes=16,format=v2]:count0", r"losses is a text"),
    ],
)
def test_a_wrong_field_is_an_error_with_file_key_and_the_nearest_word(field: str, why: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"^made\.toml: section one: \{{.*\}}:? {why}"):
        fill(f"It is {{{field}}}.")


@pytest.mark.parametrize(
    "field",
    [
        "sizes.size[format=v1]:bytes1", "sizes.size[batch_size=7,format=v2]:bytes1", "empty.size[format=v2]:bytes1",
        "sizes.size[format=v0]:bytes1", "sizes.ratio[batch_size=100,key_bytes=null]:x2",
    ],
)  # fmt: skip
def test_a_number_that_the_run_lacks_is_not_made_up(field: str) -> None:
    with pytest.raises(Unmeasured, match=r"^made\.toml: section one"):
        fill(f"It is {{{field}}}.")


def test_a_field_of_several_rows_is_an_error() -> None:
    with pytest.raises(InvalidConfig, match="3 arms feed one cell of size"):
        fill("{sizes.size[format=v2]:bytes1}")
    with pytest.raises(InvalidConfig, match="3 cells of ratio have these values; name all columns"):
        fill("{means.ratio[]:pct0}")


def test_a_field_has_the_number_of_the_cell() -> None:
    """v1 has one of two workloads: its mean is a dash in the table, and no number in a text."""
    means = built(ROWS, where={"kind": "bytes", "population": "named"}, metrics=["ratio"], base=BASE,
                  rows=["codec"], over=["workload"])  # fmt: skip
    assert cells(means.table) == {"none": {"v1": None, "v3": pytest.approx(0.6)}}
    with pytest.raises(Unmeasured, match="no number in means at format=v1"):
        fill("{means.ratio[format=v1]:pct0}", {"means": means})
    assert fill("{means.ratio_least[format=v1]:pct0}", {"means": means}) == "50\N{NO-BREAK SPACE}%"
    of_v3 = built(ROWS, where={"kind": "bytes", "population": "named"}, base=BASE, rows=["workload"], columns=[],
                  metrics=[{"metric": "ratio", "of": {"format": "v3"}}])  # fmt: skip
    assert fill("{of.ratio[workload=a]:pct0}", {"of": of_v3}) == "80\N{NO-BREAK SPACE}%"
