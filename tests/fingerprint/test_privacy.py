"""A fingerprint has no name and nothing of the payload. Planted secrets are searched for in many encodings."""

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import crc32c
import numpy as np
import pytest

from kfbench import BatchFields, Records
from kfbench.codecs import Dictionary
from kfbench.errors import InvalidConfig
from kfbench.fingerprint.file import to_json
from kfbench.fingerprint.measure import fingerprint, number_topics, round_answer
from kfbench.formats import FORMATS
from kfbench.log import dictionary_batch
from kfbench.whatif.rate import Rate, TopicRate
from tests.recorded import FOLDER

KEY, VALUE, HEADER, HEADER_VALUE = b"secret-key-7391", b"secret-value-5521", "secret-header-8842", b"secret-text-6417"
TOPIC = "secret-topic-9035"
PRODUCER_ID, FIRST_MS, OFFSET, DICTIONARY = 918_273_645_546, 1_712_345_678_901, 987_654_321_012, 91_827_364
RECORDS, PER_BATCH = 400, 20
SEED = 123_456_789_123  # the draw depends on names, so a known seed would confirm a guess of them


def encodings(secret: bytes) -> Iterator[bytes]:
    """Yield a secret and its traces: encodings, slices of base64 at each alignment, hashes and checksums."""
    yield from (secret, secret[::-1], secret.hex().encode(), secret.decode().encode("utf-16-le"))
    yield from (separator.join(map(str, secret)).encode() for separator in (",", ", ", ",\n   "))
    for lead in range(3):
        yield base64.b64encode(bytes(lead) + secret)[4:-4]
    for name in ("md5", "sha1", "sha256", "blake2b"):
        digest = hashlib.new(name, secret).digest()
        yield from (digest.hex().encode(), base64.b64encode(digest)[:-4])
    yield str(crc32c.crc32c(secret)).encode()
    yield str(int.from_bytes(secret[:8], "big")).encode()


def planted(folder: Path) -> Path:
    """Write a partition folder of a topic whose names, records, producer, offsets, times and dictionary are secrets.

    Its last batch is damaged, and one record has a time near 1970.
    """
    n = RECORDS
    times_ms = FIRST_MS + np.arange(n) * 1000
    times_ms[7] = 5
    records = Records.from_lists(
        [VALUE if i % 3 else VALUE + b"%d" % (i % 7) for i in range(n)],
        [KEY] * n,
        headers=[[(HEADER, HEADER_VALUE)]] * n,
        timestamps_ms=times_ms,
        offsets=OFFSET + 1 + np.arange(n),
    )
    fields = BatchFields(producer_id=PRODUCER_ID, producer_epoch=1, base_sequence=0)
    dictionary = Dictionary(number=DICTIONARY, data=VALUE * 50, is_raw=True)
    log = FORMATS["v2"].encode(records, range(0, n + 1, PER_BATCH), "zstd", batch_fields=fields, dictionary=dictionary)
    data = bytearray(bytes(dictionary_batch(dictionary, "v2", OFFSET)) + bytes(log))
    data[-3] ^= 1
    partition = folder / f"{TOPIC}-0"
    partition.mkdir()
    (partition / f"{OFFSET:020d}.log").write_bytes(data)
    return partition


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from texts(each)
    elif isinstance(value, str):
        yield value


def test_no_secret_is_in_the_file(tmp_path: Path) -> None:
    made = fingerprint(planted(tmp_path), seed=SEED)
    data = to_json(made.fingerprint)
    (source,) = made.fingerprint.answer.sources
    assert (source.records, source.damaged_places) == (RECORDS - PER_BATCH, 1)
    assert made.answer.sources[0].damage and TOPIC in made.answer.sources[0].path  # the search has something to find
    for secret in (KEY, VALUE, HEADER.encode(), HEADER_VALUE, TOPIC.encode(), str(tmp_path).encode()):
        for trace in encodings(secret):
            assert trace.lower() not in data.lower()
    found = set(numbers(json.loads(data)))
    assert not found & {SEED, PRODUCER_ID, DICTIONARY, *range(OFFSET, OFFSET + RECORDS + 2)}
    for shift in range(24):  # the date, or the number of a bin of a histogram
        first, last = FIRST_MS >> shift, (FIRST_MS + RECORDS * 1000 >> shift) + 1
        assert not [number for number in found if first <= number <= last]
    assert not [number for number in found if FIRST_MS // 1000 <= number <= FIRST_MS // 1000 + RECORDS]
    assert b"secret" not in data


def test_all_texts_are_words_of_kfbench(tmp_path: Path) -> None:
    """Two logs without a common record give fingerprints with the same texts, apart from what formats lose."""
    of_planted, of_other = (
        {
            text
            for text in texts(json.loads(to_json(fingerprint(log).fingerprint)))
            if not re.fullmatch(r"v\d [a-z0-9-]+|raw|trained|too few bytes|[0-9a-f]{64}", text) and text not in FORMATS
        }
        for log in (planted(tmp_path), FOLDER / "service-headers.log")  # too short for a rate
    )
    of_rate = {field.name for field in (*fields(Rate), *fields(TopicRate))} | {"timestamps", "200"}  # 200: a batch size
    assert of_planted - of_other - of_rate == {"producer_id", "producer_epoch", "base_sequence"}  # what v0 and v1 lose


def test_the_order_of_topics_does_not_tell_that_of_their_names(tmp_path: Path) -> None:
    """All lists are in the order of sizes: here the reverse of the names' order. Equal sizes are in a random order."""
    logs = ("activity-none", "activity-lz4", "activity-zstd")  # the largest first
    for name, log in zip(("zzz", "mmm", "aaa"), logs, strict=True):
        (tmp_path / f"{name}-0").mkdir()
        shutil.copy(FOLDER / f"{log}.log", tmp_path / f"{name}-0" / f"{0:020d}.log")
    answer = fingerprint(tmp_path, seed=1).fingerprint.answer
    assert "dictionary" in answer.more
    wanted = ["topic 1", "topic 2", "topic 3"]
    assert [each.path for each in answer.sources] == [each.topic for each in answer.by_topic] == wanted
    assert list(dict.fromkeys(each.topic for each in answer.more["dictionary"].topics)) == wanted
    twins = [replace(answer.sources[0], topic=name, path=name) for name in "abcd"]
    assert len({tuple(number_topics(twins, seed)) for seed in range(20)}) > 10


@pytest.mark.parametrize(
    ("number", "wanted"), [(0, 0), (7, 7), (999, 999), (1_234, 1_230), (99_950, 100_000), (1_712_345, 1_710_000)]
)
def test_spans_have_three_digits(number: int, wanted: int) -> None:
    assert round_answer(number) == wanted


def test_a_table_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "rows.jsonl"
    table.write_text('{"value": "x"}\n')
    with pytest.raises(InvalidConfig, match=r"rows\.jsonl: is a table"):
        fingerprint(table)
