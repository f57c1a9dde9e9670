"""The tables and notes of a what-if for a broker's data folder: topics, omissions, samples, other batches, a month."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kfbench.codecs import CODECS
from kfbench.present.table import Cell, Table
from kfbench.sources import Columns
from kfbench.whatif import tables
from kfbench.whatif.answer import OWN, TODAY, CodecSample, WhatIf
from kfbench.whatif.ask import what_if
from kfbench.whatif.notes import answer_notes
from kfbench.whatif.rebatch import BATCHINGS, Batching
from kfbench.whatif.tables import source_table
from tests.recorded import FOLDER

GARBAGE = b"no log at all\n" * 40
CHOSEN: dict[str, Any] = {"formats": ["v1", "v2", "v3"], "codecs": ["none", "lz4"]}


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
def answer(data_dir: Path) -> WhatIf:
    return what_if(data_dir, **CHOSEN, sample_bytes=20_000, rate_mb_s=3.0)


def shown(answer: WhatIf) -> dict[str, Table]:
    """Return all tables of the answer by name."""
    return {table.name: table for section in tables.sections(answer) for table in section.tables}


def by_format(table: Table) -> dict[Cell, tuple[Cell, ...]]:
    return {row[0]: row[1:] for row in table.rows}


def test_what_was_left_out_is_a_share_of_the_bytes(answer: WhatIf, data_dir: Path) -> None:
    total = sum(path.stat().st_size for path in data_dir.glob("[op]*-[01]/*.log"))
    assert (answer.data_bytes, answer.lost_bytes) == (total, len(GARBAGE))
    read = source_table(answer)
    assert next(row for row in read.rows if "payments-1" in str(row[0]))[-1] == "nothing readable"
    values = answer.to_dict()
    assert values["lost_share"] == len(GARBAGE) / total and values["lost_bytes"] == len(GARBAGE)
    assert [each["reason"] for each in values["skipped"]] == ["offset indexes", "deleted partitions"]


def test_many_files_are_summed_by_topic(answer: WhatIf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_FILES", 4)
    rows = by_format(source_table(answer))
    orders_bytes = sum(source.sound_bytes for source in answer.sources if source.topic == "orders")
    assert rows["orders"][:3] == (2, 3, orders_bytes) and rows["payments"][:2] == (2, 2)


def test_a_sample_is_part_of_the_bytes_and_the_whole_is_exact(answer: WhatIf) -> None:
    sample = answer.sample
    assert sample is not None and 0 < sample.plain_bytes < sample.of_bytes and sample.stretches >= 1
    whole = what_if([Path(source.path) for source in answer.sources], **CHOSEN, sample_bytes=None)
    assert whole.sample is not None and whole.sample.plain_bytes == whole.sample.of_bytes == sample.of_bytes
    for one, other in zip(answer.arms, whole.arms, strict=True):
        assert other.error_bytes == 0
        if one.codec == "none":
            assert one == other
        else:
            assert one.size_bytes and other.size_bytes and one.error_bytes != 0
            assert abs(one.size_bytes / other.size_bytes - 1) < 0.5


def test_without_a_sample_there_is_no_estimate() -> None:
    found = what_if(FOLDER / "telemetry.log", ["v2", "v3"], ["none", "lz4"], batchings=[Batching(5, 1000)])
    without = [
        tuple(replace(arm, size_bytes=None, error_bytes=None) if arm.codec == "lz4" else arm for arm in arms)
        for arms in (found.arms, found.rebatched)
    ]
    sample = CodecSample(share=0.1, seed=0, plain_bytes=0, of_bytes=100, stretches=0)
    nothing = replace(found, arms=without[0], rebatched=without[1], sample=sample)
    values = nothing.to_dict()
    for arm in (*values["sizes"], *values["rebatched"]):
        missing = arm["codec"] == "lz4"
        assert (arm["saving"] is None) == (arm["saving_a_month"] is None) == missing
    assert {row[-1] for name in ("sizes", "savings", "rebatched") for row in shown(nothing)[name].rows} == {None}


def test_a_copy_gives_the_same_sample(answer: WhatIf, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data_dir)
    there = what_if(["payments-1", "payments-0", "orders-1", "orders-0"], **CHOSEN, sample_bytes=20_000)
    assert (there.arms, there.rebatched, there.sample) == (answer.arms, answer.rebatched, answer.sample)


def test_each_format_and_codec_has_its_cell() -> None:
    found = what_if([FOLDER / "service-headers.log", FOLDER / "activity-lz4.log"], ["v1", "v3"])
    table = shown(found)
    assert [column.name for column in table["sizes"].columns] == ["format", *CODECS]
    for name, cells in by_format(table["sizes"]).items():
        assert cells == tuple(found.size(str(name), codec) for codec in CODECS)
    arms = {(arm.format, arm.codec): arm for arm in found.arms}
    zstd, plain = arms["v3", "zstd"], found.base_bytes
    assert zstd.size_bytes is not None
    assert by_format(table["savings"])["v3"][-1] == pytest.approx(100 * (1 - zstd.size_bytes / plain))
    against = 100 * (1 - zstd.size_bytes / (found.size("v2", "zstd") or 1))
    assert by_format(table["savings-of-v2"])["v3"][-1] == pytest.approx(against)
    assert by_format(table["savings"])["v1"][-1] is None  # v1 does not support zstd
    losses = by_format(table["losses"])
    assert str(losses["v1"][0]).startswith("396 headers;") and losses["v3"] == ("nothing is lost",)
    assert [row[-3:] for row in table["sources"].rows] == [(20, 120, "v2 none"), (30, 600, "v2 lz4")]


def test_formats_compete_in_other_batches_if_they_were_tried_there() -> None:
    path = FOLDER / "activity-lz4.log"
    few, chosen = what_if(path, codecs=["none", "zstd"]), what_if(path, ["v2", "columnar"], ["none", "zstd"])
    every = what_if(path, "all", codecs=["none", "zstd"])
    assert few.compressed_formats == ("v2", "v3", "columnar", "v3-headers-first")
    assert (
        chosen.compressed_formats == ("v2", "columnar")
        and [arm.format for arm in chosen.headline[OWN]] == ["columnar"] * 2
    )
    assert set(every.compressed_formats) == {"v2", "v3", "columnar"} and any(
        "--format" in note for note in answer_notes(every)
    )
    assert not any("--format" in note for note in answer_notes(few))
    for found in (few, chosen, every):
        for arms in found.headline.values():
            for arm in arms:
                assert arm.size_bytes == min(
                    other.size_bytes or 0
                    for other in (found.arms if arm.batching is None else found.rebatched)
                    if other.format == arm.format and other.batching in (None, *BATCHINGS)
                )


def test_assumed_batches_are_no_other_batches(tmp_path: Path) -> None:
    rows = tmp_path / "events.jsonl"
    rows.write_text("".join(f'{{"id": {i}, "at": {1_700_000_000_000 + i}}}\n' for i in range(500)))
    one, two = Batching(5.0, 16 << 10), Batching(100.0, 256 << 10)
    for batchings in ([one], [one, two]):
        found = what_if(rows, ["v2", "v3"], ["none"], batchings=batchings, columns=Columns(timestamp="at"))
        assert found.assumed == one
        assert [arm.batching for arm in found.headline[TODAY]] == [None, two][: len(batchings)]
