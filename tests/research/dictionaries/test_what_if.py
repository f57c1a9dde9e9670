"""Topic dictionaries in what-if: trained on the past, tested on the rest, charged, and honest where they do not pay."""

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kfbench import FORMATS, Records
from kfbench.log import dictionary_batch
from kfbench.research.dictionaries.saving import (
    DETAIL_LEVELS,
    DETAIL_RECORDS,
    DETAIL_SIZES,
    LEVEL,
    SMALL_SIZE_BYTES,
    DictionaryAnswer,
    dictionary_answer,
)
from kfbench.research.dictionaries.saving_tables import dictionary_tables
from kfbench.sources import Part, find
from kfbench.whatif import stretches as stretch_sample
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import what_if
from kfbench.whatif.more import TopicBytes
from kfbench.whatif.question import Question
from kfbench.whatif.stretches import LogStretch, halves_by_topic
from kfbench.whatif.sums import LogSums
from kfbench.whatif.tables import SUMMARY_LINES, WIDTH, render_text
from kfbench.whatif.tally import tally
from tests.dictionary_samples import records
from tests.recorded import FOLDER

NAMES = ("v2", "columnar")


def write(folder: Path, given: Records, per_batch: int = 10) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir())):020}.log"
    path.write_bytes(bytes(FORMATS["v2"].encode(given, per_batch, "lz4")))
    return path


def question(*topics: str) -> Question:
    return Question(arms=(("v2", "zstd"), ("columnar", "zstd")), stretch_shares=dict.fromkeys(topics, 1.0))


def kept(parts: list[Part], *topics: str) -> tuple[LogStretch, ...]:
    return sum((tally(part, question(*topics)) for part in parts), LogSums()).stretches


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two segments of one partition with 4,000 records."""
    folder = tmp_path_factory.mktemp("log") / "orders-0"
    write(folder, records(0, 2_500))
    write(folder, records(2_500, 4_000))
    return folder


@pytest.fixture(scope="module")
def stretches(folder: Path) -> tuple[LogStretch, ...]:
    return kept(list(find([folder]).parts), "orders")


@pytest.fixture(scope="module")
def found(stretches: tuple[LogStretch, ...]) -> DictionaryAnswer:
    whole = TopicBytes(sum(each.plain_bytes for each in stretches), 2)
    return dictionary_answer(stretches, {"orders": whole}, NAMES)


def test_the_first_half_trains_and_the_rest_tests(stretches: tuple[LogStretch, ...]) -> None:
    shuffled = random.Random(1).sample(stretches, len(stretches))
    train, test = halves_by_topic(shuffled)["orders"]
    values = [value for each in (*train, *test) for value in each.batches.records.values()]
    assert values == records(0, 4_000).values()
    sizes = [sum(each.plain_bytes for each in half) for half in (train, test)]
    assert abs(sizes[0] - sizes[1]) <= 2 * max(int(each.sizes.max()) for each in stretches)


def test_each_partition_is_divided(tmp_path: Path) -> None:
    for partition in (0, 1):
        write(tmp_path / f"t-{partition}", records(0, 400, "ab"[partition]))
    train, test = halves_by_topic(kept(list(find([tmp_path]).parts), "t"))["t"]
    assert {each.partition for each in train} == {each.partition for each in test} == {0, 1}


def test_the_tested_bytes_are_those_of_encoded_batches(
    stretches: tuple[LogStretch, ...], found: DictionaryAnswer
) -> None:
    _, test = halves_by_topic(stretches)["orders"]
    for row in found.topics:
        fmt = FORMATS[row.format]
        plain = sum(len(fmt.encode(*each.batches[:2], "zstd", LEVEL, each.batches.fields).data) for each in test)
        assert row.zstd_test_bytes == plain
        assert row.dictionary_test_bytes < 0.8 * plain


def test_stored_dictionaries_are_charged_in_each_file(found: DictionaryAnswer) -> None:
    for row, total in zip(found.topics, found.savings, strict=True):
        times = row.zstd_bytes / row.zstd_test_bytes
        gained = (row.zstd_test_bytes - row.dictionary_test_bytes) * times
        assert row.kind == "trained" and row.size_bytes == SMALL_SIZE_BYTES
        assert row.stored_bytes > 2 * 61 and row.stored_bytes % 2 == 0
        assert row.saved_bytes == pytest.approx(gained - row.stored_bytes, abs=2)
        assert total.saved_bytes == row.saved_bytes and total.stored_bytes == row.stored_bytes


def test_later_records_do_not_change_the_dictionary(
    stretches: tuple[LogStretch, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[bytes] = []

    def store(*arguments: Any) -> Any:
        stored.append(arguments[0].data)
        return dictionary_batch(*arguments)

    monkeypatch.setattr("kfbench.research.dictionaries.saving.dictionary_batch", store)
    halves = halves_by_topic(stretches)["orders"]
    first_test = min(halves.test, key=lambda each: (each.file, each.number))
    changed = [
        replace_records(each) if (each.file, each.number) > (first_test.file, first_test.number) else each
        for each in stretches
    ]
    whole = {"orders": TopicBytes(10**6, 1)}
    dictionary_answer(stretches, whole, ["v2"])
    dictionary_answer(changed, whole, ["v2"])
    assert len(stored) == 2 and stored[0] == stored[1]


def replace_records(stretch: LogStretch) -> LogStretch:
    """Return the stretch with other values of the same sizes."""
    given = stretch.batches.records
    values = [bytes(reversed(value or b"")) for value in given.values()]
    other = Records.from_lists(values, given.keys(), given.timestamps_ms, offsets=given.offsets)
    return stretch._replace(batches=stretch.batches._replace(records=other))


def test_the_answer_depends_neither_on_order_nor_on_pickling(
    stretches: tuple[LogStretch, ...], found: DictionaryAnswer
) -> None:
    other = pickle.loads(pickle.dumps(stretches[::-1]))
    whole = TopicBytes(sum(each.plain_bytes for each in stretches), 2)
    assert dictionary_answer(other, {"orders": whole}, NAMES) == found


def test_the_sample_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretch_sample, "MOST_PART_BYTES", 100_000)
    found = kept(list(find([folder]).parts), "orders")
    assert sum(each.plain_bytes for each in found) <= 2 * 100_000
    last = max(int(each.batches.records.timestamps_ms.max()) for each in found)
    assert last > records(3_000, 3_001).timestamps_ms[0]  # they are spread over the part
    monkeypatch.setattr(stretch_sample, "MOST_BYTES", 130_000)
    halves = halves_by_topic(found)["orders"]
    assert sum(each.plain_bytes for half in halves for each in half) <= 200_000


def test_control_batches_are_not_in_the_sample() -> None:
    [part] = find([FOLDER / "transactions.log"]).parts
    halves = halves_by_topic(kept([part], str(part.name)))[str(part.name)]
    assert halves.train and halves.test
    for each in (*halves.train, *halves.test):
        assert not each.batches.fields.rows["is_control"].any()


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., WhatIf]:
    """Return a function that asks about a log of these records."""
    root = tmp_path_factory.mktemp("asked")

    def ask(given: Records, codecs: tuple[str, ...] = ("none", "zstd"), **options: Any) -> WhatIf:
        folder = root / f"t{len(list(root.iterdir()))}-0"
        return what_if(write(folder, given).parent, ["v2", "columnar"], codecs, batchings=[], **options)

    return ask


@pytest.mark.thorough
def test_savings_are_against_zstd_and_now(asked: Callable[..., WhatIf]) -> None:
    answer = asked(records(0, 6_000))
    shown = render_text(answer).split("\n")
    assert len(shown) <= SUMMARY_LINES and max(map(len, shown)) <= WIDTH
    values: Any = answer.to_dict()["dictionary"]
    for row in values["savings"]:
        zstd_bytes = answer.size(row["format"], "zstd")
        assert zstd_bytes and row["size_bytes"] == zstd_bytes - (row["zstd_bytes"] - row["dictionary_bytes"])
        assert row["zstd_size_bytes"] == zstd_bytes
        assert row["saving"] == 1 - row["size_bytes"] / answer.base_bytes
        assert row["saving_against_zstd"] == 1 - row["size_bytes"] / zstd_bytes > 0.2


def test_random_bytes_have_no_saving(asked: Callable[..., WhatIf]) -> None:
    generator = random.Random(2)
    answer = asked(Records.from_lists([generator.randbytes(4_000) for _ in range(100)]))
    values: Any = answer.to_dict()["dictionary"]
    assert all(row["saving_against_zstd"] < 0.0005 for row in values["savings"])


def test_too_few_bytes_are_no_answer(asked: Callable[..., WhatIf]) -> None:
    answer = asked(records(0, 40))
    assert {row.kind for row in answer.more["dictionary"].topics} == {"too few bytes"}


def test_few_bytes_make_a_raw_dictionary(asked: Callable[..., WhatIf]) -> None:
    found = asked(records(0, 600)).more["dictionary"]
    assert found and {row.kind for row in found.topics} == {"raw"}


def test_without_zstd_there_is_no_answer(asked: Callable[..., WhatIf]) -> None:
    answer = asked(records(0, 600), ("none", "lz4"))
    assert not answer.more and answer.to_dict()["dictionary"] is None


@pytest.mark.thorough
def test_details_have_a_row_per_size_level_and_batching(stretches: tuple[LogStretch, ...]) -> None:
    whole = TopicBytes(sum(each.plain_bytes for each in stretches), 2)
    found = dictionary_answer(stretches, {"orders": whole}, NAMES, with_details=True)
    rows = {
        (each.format, each.records_per_batch, each.dictionary_size_bytes, each.level): each for each in found.details
    }
    assert len(rows) == len(found.details)
    assert len(rows) == len(NAMES) * len(DETAIL_RECORDS) * len(DETAIL_SIZES) * len(DETAIL_LEVELS)
    assert all(each.dictionary_bytes <= each.zstd_bytes for each in found.details)  # where it does not pay: zstd
    for name in NAMES:
        shares = [rows[name, n, 4_096, LEVEL].saving_against_zstd for n in (1, 10, 100)]
        assert min(shares[:2]) > 0.3 and min(shares[:2]) > shares[2]
        assert rows[name, None, 4_096, LEVEL].zstd_bytes == pytest.approx(rows[name, 10, 4_096, LEVEL].zstd_bytes, 0.1)
    table = next(dictionary_tables(found))
    assert len(table.rows) == len(DETAIL_RECORDS) * len(DETAIL_SIZES)
    assert len(table.columns) == 2 + len(NAMES) * len(DETAIL_LEVELS)


def test_small_topics_are_counted_that_were_not_sampled(stretches: tuple[LogStretch, ...]) -> None:
    topics = {"orders": TopicBytes(400_000, 1), "other": TopicBytes(1_000, 1)}
    found = dictionary_answer(stretches, topics, NAMES)
    assert (found.sampled_topics, found.all_topics) == (1, 2)
    *_, table = dictionary_tables(found)
    assert any(note.startswith("1 ") for note in table.notes)
