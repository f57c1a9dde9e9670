"""What a what-if says of a data dir: topics, what was left out and how much, samples, other batches, a month."""

from dataclasses import replace
from pathlib import Path

import pytest

from kfbench.sources import Skipped
from kfbench.whatif import text
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import what_if
from kfbench.whatif.break_even import Crossing
from kfbench.whatif.rebatch import BATCHINGS, Batching, batchings_of
from kfbench.whatif.text import render_text
from tests.recorded import FOLDER

GARBAGE = b"no log at all\n" * 40


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("data")
    for place, name in (
        ("orders-0/00000000000000000000.log", "telemetry.log"),
        ("orders-1/00000000000000000000.log", "telemetry.log"),
        ("orders-1/00000000000000000300.log", "service-headers.log"),
        ("payments-0/00000000000000000000.log", "transactions.log"),
        ("orders-1/00000000000000000000.index", "edges.log"),
        ("orders-2.0f6b7b9c2d6e4c560f6b7b9c2d6e4c56-delete/00000000000000000000.log", "edges.log"),
    ):
        path = root / place
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((FOLDER / name).read_bytes())
    (root / "payments-1").mkdir()
    (root / "payments-1" / "00000000000000000000.log").write_bytes(GARBAGE)
    return root


@pytest.fixture(scope="module")
def found(data_dir: Path) -> WhatIf:
    return what_if(data_dir, ["v1", "v2", "v3"], ["none", "lz4"], sample_bytes=20_000, rate_mb_s=3.0)


def blocks(found: WhatIf) -> dict[str, list[str]]:
    """By the first words of each."""
    each = [block.splitlines() for block in render_text(found).split("\n\n")]
    return {block[0].partition(" ")[0]: block for block in each}


def test_what_was_left_out_is_a_share_of_the_bytes(found: WhatIf, data_dir: Path) -> None:
    read = blocks(found)["file"]
    total = sum(path.stat().st_size for path in data_dir.glob("[op]*-[01]/*.log"))
    assert (found.data_bytes, found.lost_bytes) == (total, len(GARBAGE))
    assert f"left out: {100 * len(GARBAGE) / total:.2f} % of {total:,} bytes; the result is about the rest" in read
    edges_bytes = (FOLDER / "edges.log").stat().st_size
    assert (
        f"not looked at: deleted partitions: 1 ({edges_bytes:,} bytes); offset indexes: 1 ({edges_bytes:,} bytes)"
        in read
    )
    assert any(line.startswith("2 topics together: orders, payments; ") for line in read)
    assert any("payments-1" in line and line.endswith("nothing readable") for line in read)
    values = found.to_dict()
    assert values["lost_share"] == len(GARBAGE) / total and values["lost_bytes"] == len(GARBAGE)
    assert [each["reason"] for each in values["skipped"]] == ["offset indexes", "deleted partitions"]


def test_many_files_are_summed_by_topic(found: WhatIf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_FILES", 4)
    rows = {line.split()[0]: line.split()[1:] for line in blocks(found)["topic"][1:3]}
    orders = [source for source in found.sources if source.topic == "orders"]
    assert rows["orders"][:2] == ["2", "3"]
    assert rows["orders"][2] == f"{sum(source.sound_bytes for source in orders):,}"
    assert rows["payments"][:2] == ["2", "2"]


def test_much_damage_is_counted(found: WhatIf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "MOST_LINES", 0)
    assert "and 1 line more of damage (--json has them)" in blocks(found)["file"]


def test_a_sample_is_said_and_what_is_exact_too(found: WhatIf) -> None:
    sample = found.sample
    assert sample is not None and 0 < sample.plain_bytes < sample.of_bytes and sample.stretches >= 1
    share = f"{100 * sample.plain_bytes / sample.of_bytes:.2f} %"
    lines = blocks(found)["bytes,"]
    said = f"estimated from {sample.plain_bytes:,} of {sample.of_bytes:,} bytes of plain v2 ({share})"
    assert any(said in line for line in lines)
    whole = what_if(
        [Path(source.path) for source in found.sources], ["v1", "v2", "v3"], ["none", "lz4"], sample_bytes=None
    )
    assert whole.sample is not None and whole.sample.plain_bytes == whole.sample.of_bytes == sample.of_bytes
    assert not any("estimated" in line for line in render_text(whole).splitlines())
    for one, other in zip(found.arms, whole.arms, strict=True):
        assert other.error_bytes == 0
        if one.codec == "none":
            assert one == other
        else:
            assert one.size_bytes and other.size_bytes and one.error_bytes != 0
            assert abs(one.size_bytes / other.size_bytes - 1) < 0.5


def test_the_same_stretches_are_drawn_of_a_copy(found: WhatIf, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data_dir)
    there = what_if(
        ["payments-1", "payments-0", "orders-1", "orders-0"], ["v1", "v2", "v3"], ["none", "lz4"], sample_bytes=20_000
    )
    assert (there.arms, there.rebatched, there.sample) == (found.arms, found.rebatched, found.sample)


def test_other_batches(found: WhatIf) -> None:
    assert {arm.batching for arm in found.rebatched} == set(BATCHINGS)
    lines = blocks(found)["in"]
    assert len([line for line in lines if " error " not in line]) == 2 + len(BATCHINGS) * 3 + 2
    assert any(line.startswith("standard error of an estimate: ") for line in lines)
    by_hand = {(arm.batching, arm.codec): arm for arm in found.rebatched if arm.format == "v3"}
    sizes = [by_hand[batching, "none"].size_bytes or 0 for batching in BATCHINGS]
    assert sizes == sorted(sizes, reverse=True)  # the longer they linger, the fewer bytes
    for batching in BATCHINGS:
        arm = by_hand[batching, "none"]
        line = next(each for each in lines if f"{arm.size_bytes:,} (" in each)
        clients = found.sent_records
        assert line.split()[:4] == [
            f"{batching.linger_ms:g}", f"{batching.batch_size_bytes:,}", f"{clients / (arm.batches or 1):.1f}", "v3"
        ]  # fmt: skip


def test_what_can_be_had_stands_before_what_is_proposed(found: WhatIf) -> None:
    lines = blocks(found)["fewest"]
    assert lines[0].startswith("fewest bytes  ")  # other batches may take more than there are now
    assert [line.partition("  ")[0] for line in lines[1:]] == ["can be had today"] * 2 + ["proposed, in no Kafka"] * 2
    (recorded, _), (proposed, _) = found.headline["today"], found.headline["proposed"]
    assert (recorded.format, recorded.size_bytes) == ("v2", min(found.size("v2", c) or 0 for c in ("none", "lz4")))
    assert (proposed.format, proposed.size_bytes) == ("v3", min(found.size("v3", c) or 0 for c in ("none", "lz4")))
    assert f"{recorded.size_bytes:,}" in lines[1] and f"{proposed.size_bytes:,}" in lines[3]


def test_a_month(found: WhatIf) -> None:
    now, v3 = found.month(), found.month(found.size("v3", "none"))
    assert now is not None and v3 is not None
    lines = blocks(found)["dollars"]
    assert lines[0].startswith(
        "dollars saved a month, batches as recorded: 259.200 GB a day now, as given, kept 3 times"
    )
    row = next(line.split() for line in lines if line.startswith("v3"))
    assert row[1] == f"{now.total - v3.total:,.2f}"
    values = found.to_dict()
    arm = next(each for each in values["sizes"] if (each["format"], each["codec"]) == ("v3", "none"))
    assert arm["saving_a_month"] == now.total - v3.total and arm["month"]["total"] == v3.total
    for line, words, format_ in zip(
        lines[-2:], ("can be had today", "proposed, in no Kafka"), ("v2", "v3"), strict=True
    ):
        of = [arm for arm in found.rebatched if arm.format == format_]
        smallest = min(of, key=lambda arm: arm.size_bytes or 0)
        assert smallest.batching is not None and smallest.batching.linger_ms == 100
        there = found.month(smallest.size_bytes)
        assert there is not None
        named = f"with linger 100 ms and batch.size 262,144, {format_} and {smallest.codec}"
        assert line == f"{words}: {named}: {now.total - there.total:,.2f} $ saved"
    without = what_if(FOLDER / "activity-lz4.log", ["v2"], ["none"], batchings=[Batching(5.0, 1_000)])
    assert without.rate is None and without.to_dict()["month_now"] is None
    assert render_text(without).splitlines()[-1].startswith("a month: unknown rate")


@pytest.mark.parametrize(
    ("after", "at", "words"), [(None, 1, "always"), (1_000, None, "never"), (4, 5, "5"), (20, 30, "21-30")]
)
def test_words_for_break_even(after: int | None, at: int | None, words: str) -> None:
    assert Crossing(format="v3", other="v2", after=after, at=at).words == words


def test_many_files_that_are_not_read_for_one_reason_are_one_line(found: WhatIf) -> None:
    skipped = [Skipped(path=f"{i}.json", size_bytes=1, reason="a table", is_data=True) for i in range(12)]
    text = render_text(replace(found, skipped=(*skipped, Skipped(path="x", size_bytes=1, reason="odd", is_data=True))))
    assert "12 not read: a table: 0.json, 1.json, 2.json" in text and "9.json and 2 more\n" in text
    assert "x: not read: odd" in text
    assert "0.json: not read: a table" in render_text(replace(found, skipped=tuple(skipped[:2])))


def test_batchings_are_all_pairs() -> None:
    assert batchings_of(None, []) is None
    assert batchings_of([1, 2], None) == (Batching(1.0, 16_384), Batching(2.0, 16_384))
    assert batchings_of([5], [1, 2]) == (Batching(5.0, 1), Batching(5.0, 2))
