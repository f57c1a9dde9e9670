"""Sizes of gzip, lz4 and one-shot zstd with a dictionary. Each arm is verified and keeps Kafka's frames."""

import numpy as np
import pytest

from kfbench import FORMATS, Dictionary
from kfbench.codecs.dictionary_arms import DICTIONARY_ARMS, dictionary_arm
from kfbench.measure.dictionary import split_topic, trained
from kfbench.measure.dictionary_codecs import measure_other_codecs
from tests.measure.test_dictionary import a_topic

LEAN_SAVES = 4 + 3  # bytes a batch: the magic and the empty block at the end
RAW = Dictionary(number=1, data=b"the same words in every record, " * 4, is_raw=True)


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_sizes_are_those_of_encoded_logs(name: str) -> None:
    source, fmt = a_topic(), FORMATS[name]
    rows = list(measure_other_codecs(fmt, source, size_bytes=4_096, share=0.5, training_batch=10))
    found = {(row["arm"], row["dictionary"]): row for row in rows}
    both = [(arm, kind) for arm in DICTIONARY_ARMS for kind in ("plain", "trained")]
    assert [*found] == [each for each in both if each != ("lean", "trained")]
    split = split_topic(source.bounds, 0.5, 1)
    dictionary = trained(source, fmt, split, 4_096, 10).dictionary
    rest = source.behind(split.first)
    for arm, codec, level in (("stream", "zstd", 3), ("gzip", "gzip", None), ("lz4", "lz4", None)):
        log = fmt.encode(rest.records, rest.bounds, codec, level, rest.batch_fields)
        assert found[arm, "plain"]["size_bytes"] == len(log.data)
    log = fmt.encode(rest.records, rest.bounds, "zstd", 3, rest.batch_fields, dictionary=dictionary)
    assert found["stream", "trained"]["size_bytes"] == len(log.data)
    batches = len(rest.bounds) - 1
    assert found["stream", "plain"]["size_bytes"] - found["lean", "plain"]["size_bytes"] == batches * LEAN_SAVES
    for arm in ("stream", "one-shot", "gzip", "lz4"):
        row = found[arm, "trained"]
        assert row["size_bytes"] < found[arm, "plain"]["size_bytes"] and row["records"] == len(rest.records)
        assert row["dictionary_size_bytes"] == 4_096 and row["dictionary_stored_bytes"] > 0


@pytest.mark.parametrize("size", [0, 1, 100, 70_000, 200_000])
@pytest.mark.parametrize("dictionary", [None, RAW], ids=["plain", "dictionary"])
@pytest.mark.parametrize("name", [arm for arm in DICTIONARY_ARMS if arm != "lean"])
def test_arms_give_the_bytes_back(name: str, dictionary: Dictionary | None, size: int) -> None:
    random = np.random.default_rng(1).integers(0, 256, size // 2, np.uint8).tobytes()
    body = random + (b"the same words in every record, " * 7_000)[: size - len(random)]
    arm = dictionary_arm(name, 3, dictionary)
    payload = arm.compress(body)
    assert arm.decompress(payload, len(body)) == body
    assert dictionary is None or payload.startswith(dictionary.head)


@pytest.mark.parametrize("size", [0, 1, 100, 200_000])
def test_a_lean_frame_is_kafkas_without_magic_and_empty_block(size: int) -> None:
    body = (b"the same words in every record, " * 7_000)[:size]
    lean, kafka = (dictionary_arm(name, 3, None) for name in ("lean", "stream"))
    payload = lean.compress(body)
    assert lean.decompress(payload, size) == body
    assert len(kafka.compress(body)) - len(payload) == (LEAN_SAVES if size else 4)
