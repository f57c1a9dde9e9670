"""A slow reference of `mirror`: Kafka's default partitioner, and the records that each partition gets."""

from collections.abc import Sequence
from dataclasses import replace

from tests.reference.model import Batch, Message


def murmur2(key: bytes) -> int:
    """Return Kafka's `Utils.murmur2` hash of a key, as an unsigned 32-bit number."""
    most, mixer = 2**32 - 1, 0x5BD1E995
    h = 0x9747B28C ^ len(key)
    whole = len(key) - len(key) % 4
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * mixer & most
        h = (h * mixer & most) ^ ((k ^ k >> 24) * mixer & most)
    if key[whole:]:
        h = (h ^ int.from_bytes(key[whole:], "little")) * mixer & most
    h = (h ^ h >> 13) * mixer & most
    return h ^ h >> 15


def expected_records(batches: Sequence[Batch], partitions: int) -> list[list[Message]]:
    """Return the records of each partition. They have the timestamps that readers see, and the offset 0."""
    found: list[list[Message]] = [[] for _ in range(partitions)]
    aborted = aborted_batches(batches)
    for number, batch in enumerate(batches):
        if batch.is_control or number in aborted:
            continue
        for message, stamp in zip(batch.messages, batch.read_timestamps_ms(), strict=True):
            if message.key is None or partitions == 1:
                where = number % partitions
            else:
                where = (murmur2(message.key) & 0x7FFFFFFF) % partitions
            found[where].append(replace(message, timestamp_ms=stamp, offset=0))
    return found


def aborted_batches(batches: Sequence[Batch]) -> set[int]:
    """Return the indexes of batches of aborted transactions: the next marker of their producer is ABORT."""
    undecided: dict[int, list[int]] = {}
    aborted: set[int] = set()
    for number, batch in enumerate(batches):
        if batch.producer_id == -1:
            continue
        if not batch.is_control:
            if batch.is_transactional:
                undecided.setdefault(batch.producer_id, []).append(number)
            continue
        kind = (batch.messages[0].key or b"")[2:4] if batch.messages else b""
        if kind == b"\0\0":
            aborted.update(undecided.pop(batch.producer_id, []))
        elif kind == b"\0\1":
            undecided.pop(batch.producer_id, None)
    return aborted
