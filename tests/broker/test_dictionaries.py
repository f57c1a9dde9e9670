"""Broker paths of batches with a dictionary. Append needs it to validate v2, and not for columnar."""

from typing import Any

import pytest

from kfbench import FORMATS, EncodedLog, Records, read_log
from kfbench.broker.append import append
from kfbench.broker.compact import compact
from kfbench.broker.mirror import mirror
from kfbench.broker.seek import SeekResult, seek_time
from kfbench.errors import MissingDictionary, Refused
from tests.dictionary_samples import RECORDS, TRAINED, segment
from tests.strategies import NOW_MS

LATER_MS = NOW_MS + 10**9
KNOWN: dict[str, Any] = {"dictionaries": [TRAINED]}


def requests(name: str, records: Records = RECORDS) -> EncodedLog:
    return FORMATS[name].encode(records, 10, codec="zstd", dictionary=TRAINED)


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_append_in_place(name: str) -> None:
    given: dict[str, Any] = {"base_offset": 1_000, "from_zero": False, "now_ms": LATER_MS}
    done = append(requests(name), name, **given, **KNOWN)
    back = read_log(done.data, **KNOWN)
    assert back.records.offsets.tolist() == list(range(1_000, 1_060))
    assert set(back.batches["codec"]) == {"zstd-dictionary"}
    if name == "columnar":
        assert append(requests(name), name, **given).data.tobytes() == done.data.tobytes()
    else:
        with pytest.raises(MissingDictionary) as refusal:
            append(requests(name), name, **given)
        assert (refusal.value.number, refusal.value.position) == (1, 0)


def test_a_rebuilt_request_is_plain_zstd() -> None:
    done = append(requests("v2"), "v2", to="v3", from_zero=False, now_ms=LATER_MS, **KNOWN)
    assert set(read_log(done.data).batches["codec"]) == {"zstd"}
    with pytest.raises(Refused) as refusal:
        append(requests("v2"), "v2", to="v1", from_zero=False, now_ms=LATER_MS, lossy=True, **KNOWN)
    assert refusal.value.error == "UNSUPPORTED_COMPRESSION_TYPE"


def test_compaction_keeps_the_dictionary_of_the_segment() -> None:
    back = read_log(compact(segment("v2"), now_ms=LATER_MS).data)
    assert set(back.dictionaries) == {1}
    assert set(back.batches["dictionary"]) == {-1, 1}
    keys = [back.records.key(i) for i in range(1, len(back.records))]
    assert len(set(keys)) == len(keys) > 5


def test_mirror_and_seek() -> None:
    log = requests("v2")
    made = mirror(log, "v2", partitions=2, batch_size=7, pass_through=False, **KNOWN)
    back = read_log(made.data)
    assert len(back.records) == len(RECORDS)
    assert set(back.batches["codec"]) == {"zstd"}
    wanted = int(RECORDS.timestamps_ms[33])
    found = seek_time(log, wanted, fmt="v2", **KNOWN)
    assert isinstance(found, SeekResult)
    assert (found.offset, found.timestamp_ms) == (int(RECORDS.offsets[33]), wanted)
