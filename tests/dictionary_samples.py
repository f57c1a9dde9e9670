"""Dictionaries and records for tests. Records of the same kind compress well with the dictionary."""

from kfbench import FORMATS, Dictionary, Records, train_dictionary
from kfbench.log import dictionary_batch
from tests.strategies import NOW_MS


def lines(first: int, end: int, host: str = "a") -> list[bytes]:
    return [
        b'{"host":"%s-%d","level":"%s","path":"/api/v1/items/%d","status":%d,"took_ms":%d}'
        % (host.encode(), i % 13, (b"info", b"warn", b"error")[i % 7 % 3], i * 7919 % 100_003, 200 + i % 5, i * i % 997)
        for i in range(first, end)
    ]


def records(first: int, end: int, host: str = "a") -> Records:
    values = lines(first, end, host)
    times = [NOW_MS + 20 * i for i in range(first, end)]
    return Records.from_lists(values, keys=[value[9:14] for value in values], timestamps_ms=times)


TRAINED: Dictionary = train_dictionary(records(0, 4_000), size_bytes=4_096)
OTHER: Dictionary = train_dictionary(records(0, 4_000, "b"), size_bytes=4_096)  # the same number, for another topic
RAW = Dictionary(number=300, data=b"".join(lines(0, 60)), is_raw=True)
BY_NAME = {"trained": TRAINED, "raw": RAW}
RECORDS = records(5_000, 5_060)


def body(name: str, dictionary: Dictionary | None = TRAINED, records: Records = RECORDS) -> bytes:
    """Return batches of 10 records, compressed with the dictionary. Without one: with plain zstd."""
    return bytes(FORMATS[name].encode(records, 10, codec="zstd", dictionary=dictionary))


def segment(name: str, dictionary: Dictionary = TRAINED, records: Records = RECORDS) -> bytes:
    """Return a segment as a leader begins it: its first batch stores the dictionary, at the offset before the others.

    Where the records begin at 0, that offset is 0, too.
    """
    offset = max(int(records.offsets[0]) - 1, 0)
    return bytes(dictionary_batch(dictionary, name, offset)) + body(name, dictionary, records)
