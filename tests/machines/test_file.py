"""A damaged file of a machine is refused with one line that names the place."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kfbench.machines.file import FOLDER, MOST_BYTES, InvalidMachineFile, read_file, read_folder, to_json
from tests.machines.samples import file_of, ratio_of

Change = Callable[[dict[str, Any]], object]


def changed(folder: Path, change: Change) -> Path:
    content = json.loads(to_json(file_of(folder)))
    change(content)
    path = folder / "machine.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda c: c.update(schema=2, kfbench="9.9"),
            "has schema 2, written by kfbench 9.9; this kfbench reads schema 1",
        ),
        (lambda c: c.update(kind="kfbench fingerprint"), "no machine file of kfbench"),
        (lambda c: c.pop("schema"), "no machine file of kfbench"),
        (lambda c: c.update(host="anna"), "unknown field `host`"),
        (lambda c: c["machine"].update(user="anna"), "unknown field `user`"),
        (lambda c: c["machine"].update(cpu="anna-laptop"), r"\$.machine.cpu"),
        (lambda c: c["machine"].update(cpu="Intel /home/anna"), r"\$.machine.cpu"),
        (lambda c: c["machine"].update(architecture="anna"), "machine.architecture: 'anna'"),
        (lambda c: c["machine"]["caches"].update(anna="1K"), "machine.caches: 'anna'"),
        (lambda c: c["machine"]["packages"].update(numpy="2.4.6+anna"), r"\$.machine.packages"),
        (lambda c: c["machine"]["instructions"].update(vectors="AVX1024"), r"\$.machine.instructions.vectors"),
        (lambda c: c.update(date="2026-11-24T08:00:15"), r"\$.date"),
        (lambda c: c.update(profile="Secret Topic"), r"\$.profile"),
        (lambda c: c.update(ratios=[]), r"\$.ratios"),
        (lambda c: c["ratios"].append(c["ratios"][0]), r"ratios\[2\]: appears twice"),
        (lambda c: c["ratios"][0].update(low=9.0), r"ratios\[0\]: 0.4\d* is not within its interval"),
        (lambda c: c["ratios"][0].update(median=-1), r"\$.ratios\[0\].median"),
        (lambda c: c["ratios"][0].update(format="v2"), r"ratios\[0\]: 'v2' is no format"),
        (lambda c: c["ratios"][0].update(format="v9"), r"ratios\[0\]: 'v9' is no format"),
        (lambda c: c["ratios"][0].update(codec="brotli"), r"ratios\[0\]: no codec 'brotli'"),
        (lambda c: c["ratios"][0].update(operation="sort"), r"\$.ratios\[0\].operation"),
        (lambda c: c["sizes"].append(c["sizes"][0]), "sizes: a codec appears twice"),
        (lambda c: c["sizes"][0].update(codec="brotli"), "sizes: no codec 'brotli'"),
        (lambda c: c["sizes"][0].update(sizes="abc"), r"\$.sizes\[0\].sizes"),
        (lambda c: c["noise"].update(failed=["swing"] * 9), "more checks failed than were made"),
        (lambda c: c["noise"].update(failed=["/home/anna"]), r"\$.noise.failed"),
    ],
)
def test_damage_is_refused_with_its_place(change: Change, words: str, tmp_path: Path) -> None:
    path = changed(tmp_path, change)
    with pytest.raises(InvalidMachineFile, match=words) as caught:
        read_file(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"kind": "kfbench machine"}'])
def test_other_bytes_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    path.write_bytes(data)
    with pytest.raises(InvalidMachineFile, match="no machine file of kfbench"):
        read_file(path)


def test_a_missing_or_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidMachineFile, match="No such file"):
        read_file(tmp_path / "absent.json")
    with (tmp_path / "huge.json").open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)
    with pytest.raises(InvalidMachineFile, match="larger than"):
        read_file(tmp_path / "huge.json")


def test_nothing_is_written_that_no_reader_accepts(tmp_path: Path) -> None:
    found = file_of(tmp_path)
    wrong = msgspec.structs.replace(ratio_of(found, "v3"), low=5.0)
    with pytest.raises(InvalidMachineFile, match="not within its interval"):
        to_json(msgspec.structs.replace(found, ratios=[wrong]))


def test_a_folder_names_its_damaged_files(tmp_path: Path) -> None:
    path = changed(tmp_path, lambda content: content.pop("ratios"))
    path.with_name("b.json").write_bytes(to_json(file_of(tmp_path)))
    path.with_name("README.md").write_text("not a machine")
    found = read_folder(tmp_path)
    assert [*found.sound] == ["b"] and [*found.damaged] == ["machine.json"]
    assert "ratios" in found.damaged["machine.json"] and str(tmp_path) not in found.damaged["machine.json"]


def test_all_shipped_files_are_sound() -> None:
    found = read_folder()
    assert not found.damaged and {f"{name}.json" for name in found.sound} == {
        path.name for path in FOLDER.glob("*.json")
    }
