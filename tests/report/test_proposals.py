"""Verdicts on the claims of proposals agree with the rows."""

from pathlib import Path
from typing import Any

import pytest

from kfbench.report.data.paths import Paths
from kfbench.report.topics import proposals
from kfbench.report.topics.claim_checks import Found
from tests.report.broker_rows import changed
from tests.report.columns import column, row_of

Row = dict[str, Any]


def verdicts(paths: Paths) -> dict[str, str]:
    table = proposals.proposals_table(paths)
    assert table is not None
    return dict(zip(map(str, column(table, "claim")), map(str, column(table, "holds")), strict=True))


def test_claims_are_judged_by_the_rows(paths: Paths, tmp_path: Path) -> None:
    now = verdicts(paths)
    no_recompression = next(words for words in now if "no need to re-compress" in words)
    whole_set = next(words for words in now if "Merging message sets" in words)
    fixed = next(words for words in now if "It is the fixed size" in words)
    closed = next(words for words in now if "the mirror does not need to decompress" in words)
    assert (now[no_recompression], now[whole_set], now[fixed], now[closed]) == ("yes", "NO", "yes", "yes")

    def otherwise(row: Row) -> None:
        if row["status"] == "ok" and row["operation"] == "append" and row["format"] == "v1" and row["batch_size"] == 10:
            row["recompressed_bytes"] = 1
        if row["status"] == "ok" and row["operation"] == "compact-merge":
            row["decompressed_bytes"] = row["recompressed_bytes"] = 0
        if row["status"] == "ok" and row["operation"] == "mirror-look":
            row["decompressed_bytes"] = 1
        if row["operation"] == "append-time" and row.pop("batches_shifted", 0):
            row["batches_in_place"] = 1

    then = verdicts(changed(tmp_path, otherwise))
    assert (then[no_recompression], then[whole_set], then[fixed]) == ("in 1 of 2 cases", "yes", "NO")
    assert then[closed] == "NO"


def test_a_scan_that_reads_nothing_is_none(paths: Paths, tmp_path: Path) -> None:
    scan = next(words for words in verdicts(paths) if "additional scan" in words)
    table = proposals.proposals_table(paths)
    assert table is not None
    assert "it reads 17 bytes per batch" in row_of(table, claim=scan)["measured"]

    def blind(row: Row) -> None:
        if row["operation"] == "fetch-scan" and row["status"] == "ok":
            row["read_bytes"] = 0

    assert verdicts(paths)[scan] == "yes"
    assert verdicts(changed(tmp_path, blind))[scan] != "yes"


def test_a_difference_within_the_noise_is_no_saving(paths: Paths, tmp_path: Path) -> None:
    saved = "That is an optimization"
    assert verdicts(paths)[saved] == "yes"

    def like_v2(row: Row) -> None:
        if row["status"] == "ok" and row["operation"] == "append":
            row["cpu_ns"] = [100] * 7

    assert verdicts(changed(tmp_path, like_v2))[saved] == "NO"


def test_a_head_that_frees_nothing_is_no_gain(paths: Paths, tmp_path: Path) -> None:
    head = next(words for words in verdicts(paths) if "head of a segment" in words)
    assert verdicts(paths)[head] == "yes"

    def useless(row: Row) -> None:
        if row["operation"] == "expire-head" and row["status"] == "ok":
            row["size_bytes"] = row["source_bytes"]

    assert verdicts(changed(tmp_path, useless))[head] == "NO"


def test_a_verdict_counts_its_cases() -> None:
    assert Found(measured="", truths=[True, True]).verdict == "yes"
    assert Found(measured="", truths=[True, False]).verdict == "in 1 of 2 cases"
    assert Found(measured="", truths=[False]).verdict == "NO"


def test_a_reason_is_given_only_where_a_claim_does_not_hold(paths: Paths) -> None:
    table = proposals.proposals_table(paths)
    assert table is not None
    because = {claim.words: claim.because for claim in proposals.CLAIMS}
    for row in table.rows:
        assert row[4] == ("" if str(row[3]).startswith("yes") else because[str(row[1])])


def test_what_no_row_could_deny_is_labelled(paths: Paths, tmp_path: Path) -> None:
    now = verdicts(paths)
    built = {words for words, verdict in now.items() if verdict == "yes, by construction"}
    assert built == {
        "To a consumer that supports the format on disk the broker sends with zero-copy transfer",
        "It does away with that scan",
    }

    def touched(row: Row) -> None:
        if row["operation"] == "fetch" and row["status"] == "ok":
            row["read_bytes"] = row["written_bytes"] = 1

    then = verdicts(changed(tmp_path, touched))
    assert {then[words] for words in built} == {"NO"}


def test_sets_that_were_not_merged_say_nothing_of_merging(paths: Paths, tmp_path: Path) -> None:
    (merging,) = [words for words in verdicts(paths) if "Merging message sets" in words]

    def untouched(row: Row) -> None:
        if row["operation"] == "compact-merge" and row.pop("batches_rewritten", 0):
            row["batches_untouched"] = 100

    assert merging not in verdicts(changed(tmp_path, untouched))


@pytest.mark.parametrize(("times", "verdict"), [(1.2, "yes"), (1.005, "NO")])
def test_conversions_are_compared_by_the_record_and_beyond_the_noise(
    times: float, verdict: str, tmp_path: Path
) -> None:
    """Conversions are compared by CPU time per record.

    Per GiB, v2 would seem dearer, because a GiB has more records of v2 than of v1.
    """

    def to_record(row: Row) -> None:
        if row["operation"] == "convert" and row["status"] == "ok":
            is_down = (row["format"], row["to_format"]) == ("v2", "v1")
            row["cpu_ns"] = [round(100_000 * times) if is_down else 100_000] * 7
            row["source_bytes"] = 1_000 if is_down else 100_000
        if row["arm"] == "aa":
            row["cpu_ns"] = [round(each * 1.01) for each in row["cpu_ns"]]

    found = verdicts(changed(tmp_path, to_record))
    assert found["Up-conversion and (especially) down-conversion have measurable impact"] == verdict
