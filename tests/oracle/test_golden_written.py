"""The committed golden vectors equal what Kafka's classes write today."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.client import OLDER, Kafka
from tests.oracle.golden import GOLDEN, write

pytestmark = pytest.mark.oracle

# Fields that depend on the compression library or its error messages.
FROM_LIBRARY = {"size", "sha256", "validBytes", "position", "crc", "message", "cause", "decompressError"}


def same_everywhere(value: Any) -> Any:
    match value:
        case dict():
            return {name: same_everywhere(inner) for name, inner in value.items() if name not in FROM_LIBRARY}
        case list():
            return [same_everywhere(inner) for inner in value]
    return value


@pytest.mark.parametrize("kafka", [OLDER], indirect=True)
def test_a_second_writing_gives_the_same_vectors(kafka: Kafka, tmp_path: Path) -> None:
    write(kafka, tmp_path)
    names = {path.name for path in GOLDEN.iterdir()} - {"README.md"}
    assert {path.name for path in tmp_path.iterdir()} == names
    for name in sorted(name for name in names if name.endswith(".json") and name != "index.json"):
        texts = [(folder / name).read_text(encoding="utf-8") for folder in (GOLDEN, tmp_path)]
        committed, fresh = map(json.loads, texts)
        if committed["byteExact"]:
            assert texts[0] == texts[1]
            data = name.replace(".json", ".bin")
            assert (tmp_path / data).read_bytes() == (GOLDEN / data).read_bytes()
        else:
            assert same_everywhere(fresh) == same_everywhere(committed), name
    index, fresh_index = (json.loads((folder / "index.json").read_text()) for folder in (GOLDEN, tmp_path))
    assert same_everywhere(fresh_index) == same_everywhere(index)
