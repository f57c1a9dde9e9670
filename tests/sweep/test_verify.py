"""`verify` checks each cell (measurement) of a sweep.

It counts passed checks. A failed check is one line that names its place.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from kfbench.batches import DecodedLog
from kfbench.errors import InvalidConfig
from kfbench.formats import FORMATS
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure.golden.vectors import GOLDEN
from kfbench.sweep.definition.profile import Profile, load_profile
from kfbench.sweep.run import verify as verification
from kfbench.sweep.run.verify import RECORDS_PER_CELL, verify
from tests.sweep.profiles import MODEL, Load, block
from tests.vectors import write_vectors

SWEEP = (
    "[cpu]\nrecords = 4000\n",
    block(
        'illegal = "skip"\naxes = { batch_size = [1, 300, 2000], headers = [0, 1], producer = [true] }',
        name="plain", formats='["v1", "v2"]', measure='["bytes", "cpu", "floor"]',
    ),
    block(
        "codecs = { gzip = [1, 9], zstd = [] }\naxes = { batch_size = [300], producer = [true] }",
        name="codecs", formats='["v2", "v3"]',
    ),
)  # fmt: skip


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return write_vectors(tmp_path / "golden")


@pytest.fixture
def profile(load: Load) -> Profile:
    return load(*SWEEP)


def test_every_cell_format_and_codec_is_checked_and_counted(profile: Profile, golden: Path) -> None:
    found = verify(profile, golden)
    assert not found.failures
    assert found.vectors == 1
    assert found.cells == 6 + 3  # bytes and CPU cells with equal records count once; floors have no format
    columns = "format", "size", "breakdown", "round trip", "gzip", "zstd", "cannot have", "failed"
    assert [tuple(row[name] for name in columns) for row in found.sweep.rows()] == [
        ("v1", 3, 3, 3, None, None, 3, 0), ("v2", 6, 6, 6, 2, 1, 0, 0), ("v3", 1, 1, 1, 2, 1, 0, 0)
    ]  # fmt: skip
    assert found.golden.rows() == [
        {"format": "empty", "sha256": 1, "fields": 1, "checksums": 1, "same bytes": 1, "failed": 0}
    ]


def test_no_cell_has_more_records_than_it_says(profile: Profile, golden: Path) -> None:
    found = verify(profile, golden)
    sizes = {batch: batch * -(-RECORDS_PER_CELL // batch) for batch in (1, 300, 2000)}  # rounded up to whole batches
    assert found.records == 2 * sum(sizes.values()) + 3 * sizes[300]
    assert any(cell.records > 2000 for cell in profile.cells)
    assert found.to_dict()["profile"]["most_records_a_cell"] == RECORDS_PER_CELL


class Broken(BatchedFormat):
    """A v2 format with a faulty reader.

    It reads wrong offsets in batches of 300 records, and no producer epoch in batches of 2,000.
    """

    def decode(self, data: Any, *args: Any, **options: Any) -> DecodedLog:
        log = super().decode(data, *args, **options)
        records, size = log.records, len(log.records) // len(log)
        if size == 2000:
            rows = log.batch_rows.copy()
            rows["producer_epoch"] = -1
            return replace(log, rows=lambda: rows)
        if size != 300:
            return log
        offsets = records.offsets.copy()
        offsets[301] += 1
        return replace(log, records=replace(records, shapes=replace(records.shapes, offsets=offsets)))


def test_what_fails_is_named_with_cell_format_check_and_place(
    profile: Profile, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(name="v2", magic=2, summary="broken")
    monkeypatch.setattr(verification, "FORMATS", MappingProxyType({**FORMATS, "v2": broken}))
    found = verify(profile, golden)
    lines = [failure.line for failure in found.failures]
    wrong = r"batch_size 300.*: offsets differ: item 301 was 301, 302 was read"
    assert [bool(re.search(wrong, line)) for line in lines] == ["batch_size 300" in line for line in lines]
    assert sorted(failure.check for failure in found.failures) == ["gzip", "gzip", *["round trip"] * 4, "zstd"]
    assert all(re.search(r"cell [0-9a-f]{16} \(grid: batch_size \d+, .*\): v2: ", line) for line in lines)
    epochs = [line for line in lines if "batch_size 2000" in line]
    assert len(epochs) == 2
    assert all("producer_epoch differs after encode and decode: batch 0 has 0, -1 was read" in line for line in epochs)
    (row,) = [row for row in found.sweep.rows() if row["format"] == "v2"]
    assert (row["round trip"], row["failed"]) == (2, 7)


class Falling(BatchedFormat):
    def breakdown(self, *args: Any, **options: Any) -> dict[str, int]:
        raise ZeroDivisionError("by\nzero")


def test_a_check_that_falls_over_has_not_held_and_costs_no_other(
    profile: Profile, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    falling = Falling(name="v3", magic=3, summary="falling", features=FORMATS["v3"].features)
    monkeypatch.setattr(verification, "FORMATS", MappingProxyType({**FORMATS, "v3": falling}))
    (failure,) = verify(profile, golden).failures
    assert failure.line.endswith(": v3: breakdown: ZeroDivisionError: by zero")


def test_it_says_how_far_it_is(profile: Profile, golden: Path) -> None:
    seen: list[tuple[int, str]] = []

    def track(items: Sequence[Any], what: str) -> Iterable[Any]:
        seen.append((len(items), what))
        return items

    verify(profile, golden, track)
    assert seen == [(1, "golden vectors"), (9, "cells of sweep")]


def test_cells_of_the_size_model_are_left_to_themselves(profile: Profile, golden: Path, load: Load) -> None:
    model = block('workloads = ["large-payload"]', name="m", **MODEL)
    found, without = verify(load(*SWEEP, model), golden), verify(profile, golden)
    assert (found.cells, found.records, found.failures) == (without.cells, without.records, without.failures)


def test_no_folder_of_vectors(profile: Profile, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"nowhere.*golden vectors"):
        verify(profile, tmp_path / "nowhere")


@pytest.mark.slow
@pytest.mark.thorough
def test_the_smoke_profile_holds() -> None:
    found = verify(load_profile("smoke"), GOLDEN)
    assert not [failure.line for failure in found.failures]
