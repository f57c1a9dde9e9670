"""The report quotes published claims, computes the real values, and gives a reason for each difference."""

import json
import subprocess
import sys

import pytest

from kfbench.claims import DOCUMENTS
from kfbench.claims import kip98 as kip98_claims
from kfbench.claims import table as table_of
from kfbench.claims.claim import CheckedClaim, ClaimsTable
from kfbench.claims.example import KIP_931_WRITTEN_MS
from kfbench.errors import InvalidConfig
from tests.reference import enriched, kip98, v01, v23
from tests.reference.model import Message
from tests.reference.varint import unsigned as uvarint
from tests.reference.varint import zigzag


@pytest.fixture(scope="module")
def checked() -> dict[str, ClaimsTable]:
    return {name: table_of(name) for name in DOCUMENTS}


def find(table: ClaimsTable, words: str) -> CheckedClaim:
    (found,) = [row for row in table.rows if words in row.claim + "."]  # the pattern of "of 1." must not match "of 10."
    return found


def messages(count: int, step_ms: int, key_bytes: int = 100, value_bytes: int = 1024) -> list[Message]:
    start = KIP_931_WRITTEN_MS
    return [
        Message(offset=i, timestamp_ms=start + i * step_ms, key=b"k" * key_bytes, value=b"v" * value_bytes)
        for i in range(count)
    ]


def overhead(data: bytes, count: int) -> int:
    return len(data) - count * (100 + 1024)


@pytest.mark.parametrize("count", kip98_claims.BATCHES)
def test_kip98_batches_are_those_of_the_reference_codecs(checked: dict[str, ClaimsTable], count: int) -> None:
    table = checked["kip98"]
    old = find(table, f"old format, overhead of {count} ").values
    new = find(table, f"new format, overhead of a batch of {count}.")
    for step in (1, 64):
        assert new.values[f"kip98_{step}ms_apart"] == overhead(kip98.encode(messages(count, step)), count)
        assert new.values[f"v2_{step}ms_apart"] == overhead(v23.encode("v2", messages(count, step)), count)
        assert str(new.values[f"v2_{step}ms_apart"]) in new.shipped.split()
    assert old["v1"] == overhead(v01.encode(1, messages(count, 1)), count)


def test_kip98_real_bytes_are_those_that_have_been_worked_out_by_hand(checked: dict[str, ClaimsTable]) -> None:
    new = [find(checked["kip98"], f"new format, overhead of a batch of {n}.") for n in (1, 3, 10, 50, 100)]
    assert [row.values["kip98_1ms_apart"] for row in new] == [59, 71, 113, 353, 689]
    assert [row.values["kip98_64ms_apart"] for row in new] == [59, 73, 122, 402, 752]


def test_kip98_counts_each_figure_once_against_the_texts_own_layout(checked: dict[str, ClaimsTable]) -> None:
    table = checked["kip98"]
    assert (len(table.differing), len(table.rows)) == (5, 13) and "5 of 13" in table.summary
    batches = [row for row in table.rows if row.claim.startswith("new format, overhead of a batch")]
    assert [row.published for row in batches] == ["60", "74", "123", "403", "745"]
    assert [row.holds for row in batches] == [False, False, False, False, True]
    assert batches[-1].real == "689 to 752" and "53 + 100*7 is 753" in batches[-1].why
    assert all(row.holds for row in table.rows if row.claim.startswith("old format"))
    header = find(table, "overhead of the message set")
    assert (header.holds, header.real, header.shipped) == (True, "53", "61")
    assert find(table, "each additional").holds


def test_kip98_extremes_are_real_records(checked: dict[str, ClaimsTable]) -> None:
    found = find(checked["kip98"], "new format, per-message").values
    assert found["v2_least"] == len(b"length, attributes, 2 deltas, 2 lengths, count".split(b",")) + 2
    assert found["kip98_least"] == len(b"length, attributes, timestamp delta, offset delta".split(b","))
    length, key = 2**28 + 2**28 + 27, 2**28
    common = [b"a", zigzag(2**63 - 1)]
    widest = [*common, zigzag(length), zigzag(2**31 - 1), zigzag(key), zigzag(2**28), b"c"]
    assert found["v2_most"] == sum(map(len, widest))
    assert found["kip98_most"] == sum(map(len, [*common, uvarint(length), uvarint(2**31 - 1), uvarint(key)]))


def test_kip931_varints_have_the_limits_of_zigzag(checked: dict[str, ClaimsTable]) -> None:
    table = checked["kip931"]
    for width in (2, 3):
        biggest = int(find(table, f"{width}-byte varint").values["v3"])
        assert [len(zigzag(biggest)), len(zigzag(biggest + 1))] == [width, width + 1]
        unsigned = find(table, f"{width}-byte varint").values
        assert unsigned["v3_unsigned"] == unsigned["published"]
    assert find(table, "16 seconds").values["v3"] == len(zigzag(16_000))
    last = int(find(table, "base timestamp").values["last_ms_of_as_few_bytes"])
    assert [len(zigzag(last)), len(zigzag(last + 1))] == [6, 7]
    assert "2039-09-07" in find(table, "base timestamp").why


def test_kip931_savings_are_those_of_the_reference_codec(checked: dict[str, ClaimsTable]) -> None:
    table = checked["kip931"]
    spread = [
        Message(offset=i, timestamp_ms=KIP_931_WRITTEN_MS + round(i * 16_000 / 99), key=None, value=b"")
        for i in range(100)
    ]
    saved = len(v23.encode("v2", spread)) - len(v23.encode("v3-header-only", spread))
    assert find(table, "saved on a batch header").values["v3_header_only"] == saved
    v2, header_only = (len(v23.encode(name, messages(1, 0))) for name in ("v2", "v3-header-only"))
    assert find(table, "saved on a batch header").values["v3_header_only_one_record"] == v2 - header_only
    assert find(table, "record count").values["v3"] == 4


def test_kip31_reads_offsets_off_the_bytes(checked: dict[str, ClaimsTable]) -> None:
    table = checked["kip31"]
    assert find(table, "relative offsets").holds
    assert find(table, "(Proposed Changes)").values == {"v1": 1002}
    assert not find(table, "(Public Interfaces)").holds
    moved = find(table, "rewrites the wrapper").values
    assert moved["v0"] > moved["v1"] == 0


def test_enriched_is_measured_in_real_bytes(checked: dict[str, ClaimsTable]) -> None:
    table = checked["enriched"]
    assert not find(table, "starts with").holds
    best = find(table, "best case")
    one = messages(1, 0)
    assert best.holds and best.values == {"v0": 26, "v1": 34, "enriched": overhead(enriched.encode("enriched", one), 1)}
    tag = len(enriched.encode("enriched-ms", one)) - len(enriched.encode("enriched", one))
    times, tags = table.remarks
    assert "keeps 1," in times and "keeps 1,000 " in times and f" {tag} bytes" in times
    assert f" {len(enriched.tags_field({32: 3, 33: 1, 34: 0})) - 4} bytes" in tags
    assert [row.claim for row in table.differing] == ["an entry starts with"]


def test_enriched_sets_count_from_their_first_offset(checked: dict[str, ClaimsTable]) -> None:
    table = checked["enriched"]
    assert find(table, "offset of a compressed set").values == {"enriched": 1000}
    assert find(table, "inner messages").real == "0, 1, 2"
    moved = find(table, "to assign offsets").values
    assert moved["v0"] > moved["enriched"] == 0


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_difference_has_a_reason_in_each_view(name: str, checked: dict[str, ClaimsTable]) -> None:
    table = checked[name]
    assert table.differing
    for row in table.differing:
        assert row.why, row.claim
        assert row.why in table.to_text()
        assert row.why in table.to_table().to_html() or "&" in row.why or "'" in row.why
    assert json.loads(json.dumps(table.to_dict()))["rows"][0]["claim"] == table.rows[0].claim
    assert table.to_text().count(" NO") == len(table.differing)


def test_an_unknown_table_names_the_known_ones() -> None:
    with pytest.raises(InvalidConfig, match="kip98, kip931, kip31, enriched"):
        table_of("kip99")


def test_tables_load_no_library_for_tables() -> None:
    """`kfbench table` loads none, so that it answers at once."""
    code = (
        "import sys; from kfbench.claims import table; table('kip98').to_text();"
        "print([m for m in ('pandas', 'pyspark', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
