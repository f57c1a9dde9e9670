"""The section about machines: which ratios differ, whether sizes agree, and which files are left out."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kfbench.machines.file import MachineFile, MachineFiles
from kfbench.report.section import Answer
from kfbench.report.topics import machines
from kfbench.report.topics.machines import FURTHER, NO_FILES, SPLIT, Compared, answer_of, compared
from tests.machines.samples import NS, file_of
from tests.report.columns import some


def files(folder: Path, **v3_ns: int) -> dict[str, MachineFile]:
    """Return files of machines. v3_ns: machine -> time of v3, where v2 takes 1,000 ns."""
    return {name: file_of(folder / name, {**NS, "v3": ns}) for name, ns in v3_ns.items()}


def answer(found: Mapping[str, MachineFile], **damaged: str) -> Answer:
    made = answer_of(MachineFiles(dict(found), damaged))
    assert isinstance(made, Answer)
    return made


def v3_of(found: Mapping[str, MachineFile]) -> Compared:
    (ratio,) = (each for each in compared(found) if each.key.format == "v3")
    return ratio


@pytest.mark.parametrize(
    ("one", "other", "word"),
    [
        (1_050, 950, SPLIT),
        (1_500, 600, SPLIT),
        (1_300, 1_100, FURTHER),
        (1_150, 1_100, ""),
        (1_050, 1_000, ""),  # one interval holds 1
        (1_050, 1_050, ""),
    ],
)
def test_machines_disagree_about_the_side_or_by_more_than_a_tenth(
    one: int, other: int, word: str, tmp_path: Path
) -> None:
    assert v3_of(files(tmp_path, a=one, b=other)).word == v3_of(files(tmp_path / "x", a=other, b=one)).word == word


def test_wide_intervals_do_not_differ(tmp_path: Path) -> None:
    found = files(tmp_path, a=1_300, b=1_100)
    for name, file in found.items():
        wide = [msgspec.structs.replace(each, low=0.5 * each.low, high=2 * each.high) for each in file.ratios]
        found[name] = msgspec.structs.replace(file, ratios=wide)
    assert v3_of(found).word == ""


def test_the_third_machine_counts_too(tmp_path: Path) -> None:
    found = files(tmp_path, a=1_050, b=1_060, c=950)
    made = answer(found)
    assert "2 ratios can be compared" in made.means
    assert "different sides of 1 in 1. Of these, 1 are of v3." in made.means and "In 0 more" in made.means
    table = some(made.tables[1])
    assert [column.name for column in table.columns][5:] == ["a", "b", "c"]
    assert [row[:2] for row in table.rows] == [("encode", "v3")]


def test_other_code_is_shown_and_not_compared(tmp_path: Path) -> None:
    found = files(tmp_path, a=1_050, b=950)
    for code in ("1" * 16, None):
        found["b"] = msgspec.structs.replace(found["b"], code=code)
        made = answer(found)
        assert made.tables[1] is None
        assert "No two of the 2 machines" in made.means and "No two machines measured the same sizes" in made.means
    unknown = {name: msgspec.structs.replace(file, code=None) for name, file in found.items()}
    assert not v3_of(unknown).pairs


def test_only_ratios_of_two_machines_are_shown(tmp_path: Path) -> None:
    found = files(tmp_path, a=1_050, b=950)
    found["b"] = msgspec.structs.replace(found["b"], ratios=[each for each in found["b"].ratios if each.format == "v3"])
    assert [each.key.format for each in compared(found)] == ["v3"]
    assert len(compared({"a": found["a"]})) == 2
    assert "Only one machine" in answer({"a": found["a"]}).means


def test_sizes_that_agree_are_counted(tmp_path: Path) -> None:
    assert "The 2 exact sizes of a and b are the same." in answer(files(tmp_path, a=1_050, b=950)).means


def test_sizes_that_differ_are_named_with_the_codec(tmp_path: Path) -> None:
    found = files(tmp_path, a=1_050, b=950)
    wrong = [msgspec.structs.replace(each, codec="zstd", sizes="0" * 64) for each in found["b"].sizes]
    right = [msgspec.structs.replace(each, codec="zstd") for each in found["a"].sizes]
    for name, sizes in (("a", right), ("b", wrong)):
        found[name] = msgspec.structs.replace(found[name], sizes=sizes)
    means = answer(found).means
    assert "The exact sizes under zstd differ between a (zstandard 0.25.0 (zstd 1.5.7)) and b" in means
    assert "are the same" not in means


def test_a_damaged_file_is_named_and_left_out(tmp_path: Path) -> None:
    made = answer_of(MachineFiles(files(tmp_path, a=1_050), {"b.json": "schema: missing"}))
    assert isinstance(made, Answer) and "b.json is left out, because it cannot be read: schema: missing." in made.means
    assert len(some(made.tables[0]).rows) == 1
    assert answer_of(MachineFiles({}, {"b.json": "schema: missing"})) != NO_FILES
    assert answer_of(MachineFiles({}, {})) == NO_FILES


def test_noisy_machines_are_named(tmp_path: Path) -> None:
    found = files(tmp_path, a=1_050, b=950)
    assert some(answer(found).tables[0]).rows[1][-1] == "none"
    noise = msgspec.structs.replace(found["b"].noise, failed=["samples that waited"])
    found["b"] = msgspec.structs.replace(found["b"], noise=noise)
    made = answer(found)
    assert "samples that waited" in str(some(made.tables[0]).rows[1][-1])


def test_a_machine_is_described_with_its_instructions(tmp_path: Path) -> None:
    (row,) = some(answer(files(tmp_path, a=1_050)).tables[0]).rows
    cells: tuple[Any, ...] = row
    assert cells[0] == "a" and "AMD EPYC 9R14" in cells[1] and cells[2] == "AVX2 only (the host has AVX-512)"
    assert cells[-1] == "none"


def test_operations_of_the_file_have_a_place() -> None:
    assert machines.OPERATIONS == ("encode", "decode", "read-times", "append")
