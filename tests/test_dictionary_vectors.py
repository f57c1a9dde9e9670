"""kfbench reads datasets/dictionaries, which the reference wrote, and refuses its damaged logs at the same batch."""

import json
from pathlib import Path

import pytest

from kfbench import read_log
from kfbench.errors import CorruptLog, MissingDictionary
from kfbench.measure.golden.checks import check_vector
from kfbench.measure.golden.vectors import vectors

FOLDER = Path(__file__).parents[1] / "datasets" / "dictionaries"
ENTRIES = {entry["name"]: entry for entry in vectors(FOLDER)}
NAMING_NONE = {"number_2": 2, "another_check": 1, "no_dictionary": 1}


def test_the_folder_is_whole() -> None:
    files = {f"{name}.{kind}" for name in ENTRIES for kind in ("bin", "json")}
    assert {path.name for path in FOLDER.iterdir()} == {*files, "index.json", "README.md"}
    assert sum(entry["category"] == "corrupt" for entry in ENTRIES.values()) >= 15
    assert {f"{name}_{kind}" for name in ("v2", "v3", "v3-full", "columnar") for kind in ("trained", "raw")} < {
        *ENTRIES
    }


@pytest.mark.parametrize("name", ENTRIES)
def test_a_vector(name: str) -> None:
    outcomes = list(check_vector(FOLDER, ENTRIES[name]))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    checks = {outcome.check for outcome in outcomes}
    assert checks == ({"sha256", "refused"} if ENTRIES[name]["category"] == "corrupt" else
                      {"sha256", "fields", "checksums", "same records"})  # fmt: skip


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry["category"] == "corrupt"])
def test_the_error_of_a_damaged_log(name: str) -> None:
    with pytest.raises(CorruptLog) as refusal:
        read_log(FOLDER / f"{name}.bin")
    error = refusal.value
    assert error.source == str(FOLDER / f"{name}.bin")
    assert error.field == ("dictionary" if name in NAMING_NONE or name.startswith(("stored", "one")) else "records")
    if name in NAMING_NONE:
        assert isinstance(error, MissingDictionary)
        assert error.number == NAMING_NONE[name]
    assert json.loads((FOLDER / f"{name}.json").read_text())["error"]["message"]
