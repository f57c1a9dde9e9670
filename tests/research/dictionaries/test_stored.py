"""what-if on logs that have dictionaries already: they are no records, and new ones are compared with them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, Records
from kfbench.errors import KfbenchError
from kfbench.log import dictionary_batch
from kfbench.research.dictionaries.saving_tables import dictionary_tables
from kfbench.sources import find
from kfbench.whatif.answer import AS_RECORDED, WhatIf
from kfbench.whatif.ask import what_if
from kfbench.whatif.stretches import without_dictionaries
from kfbench.whatif.summary import best_choice, today_table
from tests.dictionary_samples import RAW, TRAINED, body, records, segment
from tests.recorded import FOLDER

STORED_BYTES = len(dictionary_batch(TRAINED, "v2", 4_999).data)


def of_log(first: int, end: int) -> Records:
    return records(first, end).at_offsets(np.arange(first, end))


def asked(folder: Path, data: bytes, **options: Any) -> WhatIf:
    folder = folder / "orders-0"
    folder.mkdir(exist_ok=True)
    (folder / "00000000000000005000.log").write_bytes(data)
    return what_if(folder, ["v2", "columnar"], ("none", "zstd"), batchings=[], **options)


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> WhatIf:
    """Ask about 2,000 records in 200 batches that name dictionary 1, which stands in front of them."""
    return asked(tmp_path_factory.mktemp("log"), segment("v2", TRAINED, of_log(5_000, 7_000)))


def test_a_stored_dictionary_is_no_record_and_its_bytes_have_a_field(answer: WhatIf) -> None:
    [source] = answer.sources
    assert (source.records, source.batches, source.dictionary_bytes) == (2_000, 200, STORED_BYTES)
    assert source.sound_bytes == source.size_bytes == STORED_BYTES + len(body("v2", TRAINED, of_log(5_000, 7_000)))
    assert source.payload_bytes == of_log(5_000, 7_000).shapes.payload_bytes
    values: Any = answer.to_dict()
    assert values["sources"][0]["dictionary_bytes"] == STORED_BYTES
    assert values["records"] == values["sent_records"] == 2_000


def test_sizes_in_other_codecs_are_without_the_dictionary(answer: WhatIf) -> None:
    given = of_log(5_000, 7_000)
    for name in ("v2", "columnar"):
        assert answer.size(name, "none") == len(FORMATS[name].encode(given, 10).data)
        assert answer.size(name, "zstd") == len(FORMATS[name].encode(given, 10, "zstd").data)


def test_the_codec_now_is_named(answer: WhatIf) -> None:
    [source] = answer.sources
    assert source.kinds == {"v2 zstd-dictionary": 200}
    rows = today_table(answer).rows
    [now] = [row for row in rows if "now" in str(row[2])]
    assert now[0] == "zstd-dictionary" and now[3] == answer.now_bytes


def test_the_best_is_something_that_kafka_can_store(answer: WhatIf) -> None:
    marks = {str(row[0]): str(row[2]) for row in today_table(answer).rows if row[2]}
    assert marks.pop("zstd-dictionary") == "now, not in Kafka"
    assert [*marks.values()] == ["best"] and best_choice(answer).codec == next(iter(marks))


def test_a_new_dictionary_is_compared_with_the_stored_one(answer: WhatIf) -> None:
    assert "dictionary" in answer.more
    for row, total in zip(answer.more["dictionary"].topics, answer.more["dictionary"].savings, strict=True):
        assert row.current == (1,) and row.current_bytes == total.current_bytes
        times = row.zstd_bytes / row.zstd_test_bytes
        tested = FORMATS[row.format].encode(of_log(6_000, 7_000), 10, "zstd", dictionary=TRAINED)
        assert row.current_bytes == pytest.approx(len(tested.data) * times + STORED_BYTES, rel=0.02)
        assert total.current_saving is not None and 0.2 < total.current_saving < 0.8


def test_a_log_without_a_dictionary_has_nothing_to_compare(tmp_path: Path) -> None:
    answer = asked(tmp_path, body("v2", None, of_log(5_000, 7_000)))
    assert "dictionary" in answer.more
    assert {each.current_bytes for each in answer.more["dictionary"].savings} == {None}
    assert {each.current for each in answer.more["dictionary"].topics} == {()}
    assert answer.sources[0].dictionary_bytes == 0


def test_all_dictionaries_of_a_log_are_named(tmp_path: Path) -> None:
    older, newer = segment("v2", RAW, of_log(5_000, 6_000)), segment("v2", TRAINED, of_log(6_001, 7_500))
    answer = asked(tmp_path, older + newer)
    [source] = answer.sources
    assert (source.records, source.kinds) == (2_499, {"v2 zstd-dictionary": 250})
    assert source.dictionary_bytes == STORED_BYTES + len(dictionary_batch(RAW, "v2", 4_999).data)
    assert "dictionary" in answer.more
    assert {number for each in answer.more["dictionary"].topics for number in each.current} <= {1, 300}


@pytest.mark.thorough
def test_details_have_a_row_for_the_stored_dictionary(tmp_path: Path) -> None:
    answer = asked(tmp_path, segment("v2", TRAINED, of_log(5_000, 7_000)), details=["dictionary"])
    assert "dictionary" in answer.more
    table, topics = dictionary_tables(answer.more["dictionary"])
    now = {str(row[0]): row[2:] for row in table.rows if row[1] == "as now"}
    assert [*now] == [AS_RECORDED, "1 record", "10 records", "100 records"]
    assert all(0 <= float(str(cell)) < 100 for row in now.values() for cell in row if float(str(cell)) >= 0)
    # The log has 10 records per batch.
    assert now[AS_RECORDED] == pytest.approx(now["10 records"], abs=0.5)
    assert {row[-2] for row in topics.rows} == {"1"}


def test_a_file_with_a_dictionary_only_has_no_answer(tmp_path: Path) -> None:
    with pytest.raises(KfbenchError, match="dictionaries only"):
        asked(tmp_path, bytes(dictionary_batch(TRAINED)))


def test_other_control_batches_stay(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000005000.log"
    path.write_bytes(segment("v2", TRAINED, of_log(5_000, 5_050)))
    [chunk] = find([path]).parts[0].chunks()
    found = without_dictionaries(chunk)
    assert found.chunk.records.values() == of_log(5_000, 5_050).values()
    assert (found.size_bytes, found.numbers.tolist()) == (STORED_BYTES, [1] * 5)
    assert found.dictionary_of(0) == TRAINED
    for chunk in find([FOLDER / "transactions.log"]).parts[0].chunks():
        assert chunk.log is not None and chunk.log.batch_rows["is_control"].any()
        assert without_dictionaries(chunk).chunk is chunk


def test_a_log_without_its_dictionary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.log").write_bytes(body("v2", TRAINED, of_log(5_000, 5_100)))
    with pytest.raises(KfbenchError, match="number 1 is missing"):
        what_if(tmp_path / "cut.log", ["v2"])
