"""The envelope is v2's header: its length and CRC are right, and damage is found."""

from itertools import pairwise

import numpy as np
import pytest

from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.formats import FORMATS, Entries
from kfbench.layouts import V2_HEADER
from kfbench.measure.verify import wrong_checksum
from kfbench.records import Records
from kfbench.research.rivals.envelope import ENVELOPE_BYTES, headers_of, open_sealed, seal
from kfbench.workloads.catalogue import WORKLOADS

RECORDS = Records.from_lists([b"a", b"b"], offsets=[5, 9], timestamps_ms=[10, 7])
(HEADER,) = headers_of(RECORDS, np.array([0, 2]))


@pytest.mark.parametrize("container", [b"", b"container"])
def test_a_sealed_container_is_an_entry_with_the_right_checksum(container: bytes) -> None:
    sealed = seal(container, HEADER)
    assert len(sealed) == ENVELOPE_BYTES + len(container)
    assert Entries.of(np.frombuffer(sealed, np.uint8)).positions.tolist() == [0, len(sealed)]
    assert wrong_checksum(sealed, FORMATS["v2"]) is None
    assert open_sealed(sealed) == container


def test_the_header_holds_offsets_times_and_count() -> None:
    (row,) = np.frombuffer(seal(b"container", HEADER), V2_HEADER, count=1)
    assert (row["base_offset"], row["last_offset_delta"], row["count"]) == (5, 4, 2)
    assert (row["base_timestamp_ms"], row["max_timestamp_ms"], row["attributes"]) == (10, 10, 0)


def test_each_header_holds_the_fields_of_its_batch() -> None:
    """A log of v2 is its headers with their records, with the producer's state in each header."""
    sample = WORKLOADS["user-activity"].generate(records=300, seed=7)
    log = FORMATS["v2"].encode(sample.records, sample.bounds, batch_fields=sample.batch_fields)
    headers = headers_of(sample.records, sample.bounds, sample.batch_fields)
    assert len(headers) == len(log) > 1
    bodies = [log.data[at + ENVELOPE_BYTES : end].tobytes() for at, end in pairwise(log.positions.tolist())]
    assert b"".join(map(seal, bodies, headers)) == log.data.tobytes()
    assert [np.frombuffer(header, V2_HEADER)["base_sequence"][0] for header in headers[:2]] == [0, sample.bounds[1]]


def test_v2s_own_records_give_v2s_own_bytes() -> None:
    batch = FORMATS["v2"].encode(RECORDS).data.tobytes()
    assert seal(batch[ENVELOPE_BYTES:], HEADER) == batch


@pytest.mark.parametrize(("at", "field"), [(11, "length"), (18, "crc"), (22, "crc"), (-1, "crc")])
def test_damage_is_found(at: int, field: str) -> None:
    damaged = bytearray(seal(b"container", HEADER))
    damaged[at] ^= 1
    with pytest.raises(CorruptLog) as caught:
        open_sealed(bytes(damaged))
    assert (caught.value.position, caught.value.field) == (0, field)


def test_a_short_batch_and_a_wrong_header_are_refused() -> None:
    with pytest.raises(CorruptLog):
        open_sealed(HEADER[:-1])
    with pytest.raises(InvalidRecords):
        seal(b"", HEADER[:-1])
