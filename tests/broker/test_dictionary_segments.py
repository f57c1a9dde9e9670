"""Merged segments, a mirror's numbers, clients without codec 5, and consumers that start in the middle."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c

from kfbench import FORMATS, Dictionary, EncodedLog, read_log
from kfbench.broker.compact import compact
from kfbench.broker.dictionaries import check_dictionaries, find_dictionary, merge_segments, renumber
from kfbench.broker.fetch import fetch
from kfbench.broker.mirror import mirror
from kfbench.broker.seek import seek_offset
from kfbench.errors import CorruptLog, InvalidRecords, MissingDictionary
from kfbench.formats import Entries
from kfbench.log import dictionary_batch
from tests import dictionary_samples
from tests.dictionary_samples import OTHER, RAW, RECORDS, TRAINED, body
from tests.strategies import NOW_MS

LATER_MS = NOW_MS + 10**9
SECOND = replace(OTHER, number=2)
formats = pytest.mark.parametrize("name", ["v2", "v3", "v3-full", "columnar"])


def batches(name: str, dictionary: Dictionary | None, first_offset: int) -> bytes:
    return body(name, dictionary, RECORDS.at_offsets(np.arange(len(RECORDS)) + first_offset))


def segment(name: str, dictionary: Dictionary, first_offset: int) -> bytes:
    return dictionary_samples.segment(name, dictionary, RECORDS.at_offsets(np.arange(len(RECORDS)) + first_offset))


@formats
def test_merged_segments_begin_with_the_dictionaries_that_their_batches_name(name: str) -> None:
    segments = [segment(name, TRAINED, 101), segment(name, SECOND, 201), segment(name, TRAINED, 301)]
    segments.append(bytes(dictionary_batch(RAW, name, 400)))  # no batch names it
    merged = read_log(merge_segments(segments))
    assert set(merged.dictionaries) == {1, 2}
    assert merged.batches["is_control"].to_list() == [True, True, *[False] * 18]
    assert merged.batches["base_offset"].to_list()[:3] == [100, 100, 101]
    assert merged.batches["dictionary"].to_list() == [-1, -1, *[1] * 6, *[2] * 6, *[1] * 6]
    assert merged.records.offsets.tolist()[2:] == [*range(101, 161), *range(201, 261), *range(301, 361)]
    values = [RECORDS.value(i) for i in range(60)] * 3
    assert [merged.records.value(i) for i in range(2, 182)] == values


def test_a_merged_segment_is_read_alone_after_compaction() -> None:
    parts = [compact(segment("v2", each, at), now_ms=LATER_MS).data for each, at in ((TRAINED, 101), (SECOND, 201))]
    merged = read_log(merge_segments(parts))
    apart = [read_log(part) for part in parts]
    assert len(merged.records) == sum(len(each.records) for each in apart)
    assert set(merged.dictionaries) == {1, 2}


def test_segments_of_several_formats_merge() -> None:
    merged = read_log(
        merge_segments([segment("columnar", TRAINED, 1), batches("v2", None, 101), segment("v3", SECOND, 201)])
    )
    assert merged.batches["magic"].to_list() == [4, 3, *[4] * 6, *[2] * 6, *[3] * 6]
    assert merged.records.offsets.tolist()[:3] == [0, 0, 1]


def test_refused_merges() -> None:
    with pytest.raises(MissingDictionary) as missing:
        merge_segments([segment("v2", TRAINED, 101), batches("v2", SECOND, 201)])
    assert (missing.value.number, missing.value.position) == (2, len(segment("v2", TRAINED, 101)))
    with pytest.raises(CorruptLog) as twice:
        merge_segments([segment("v2", TRAINED, 101), segment("v2", OTHER, 201)])  # another one with number 1
    assert (twice.value.position, twice.value.field) == (len(segment("v2", TRAINED, 101)), "dictionary")
    with pytest.raises(InvalidRecords, match="offset before 0"):
        merge_segments([batches("v2", None, 0), segment("v2", TRAINED, 201)])
    with pytest.raises(InvalidRecords, match="item 0"):
        merge_segments([segment("v2", TRAINED, 101)[:-1], segment("v2", TRAINED, 201)])
    assert not len(merge_segments([]).data)
    assert not len(merge_segments([bytes(dictionary_batch(TRAINED, "v2"))]).data)


@formats
@pytest.mark.parametrize("new", [5, 127, 128, 2**31 - 1])
def test_a_mirror_rewrites_numbers_and_compresses_nothing(name: str, new: int) -> None:
    sent = mirror(segment(name, TRAINED, 101), name, dictionaries=[TRAINED])
    moved = renumber(sent.data, {1: new})
    at_destination = replace(TRAINED, number=new)
    back = FORMATS[name].decode(moved.data, dictionaries=[at_destination])
    assert [back.records.value(i) for i in range(60)] == [RECORDS.value(i) for i in range(60)]
    assert set(back.batches["dictionary"]) == {new}
    assert (moved.work.in_place, moved.work.decompressed_bytes, moved.work.recompressed_bytes) == (6, 0, 0)
    with pytest.raises(MissingDictionary):
        FORMATS[name].decode(moved.data, dictionaries=[TRAINED])
    with pytest.raises(MissingDictionary):
        FORMATS[name].decode(moved.data, dictionaries=[replace(OTHER, number=new)])
    assert renumber(moved.data, {new: 1}).data.tobytes() == sent.data.tobytes()


def test_renumbering_drops_stored_dictionaries_and_copies_other_batches() -> None:
    log = segment("v2", TRAINED, 101) + batches("columnar", RAW, 201) + batches("v2", None, 301)
    moved = renumber(log, {1: 2, 300: 1})
    assert (moved.work.in_place, moved.work.untouched, moved.work.dropped) == (12, 6, 1)
    assert moved.data.tobytes().endswith(batches("v2", None, 301))
    back = read_log(moved.data, dictionaries=[replace(TRAINED, number=2), replace(RAW, number=1)])
    assert back.batches["dictionary"].to_list() == [*[2] * 6, *[1] * 6, *[-1] * 6]


@pytest.mark.parametrize(
    ("numbers", "error"),
    [({}, MissingDictionary), ({2: 1}, MissingDictionary), ({1: 0}, InvalidRecords), ({1: 3, 2: 3}, InvalidRecords)],
)
def test_refused_numbers(numbers: Mapping[int, int], error: type[Exception]) -> None:
    with pytest.raises(error):
        renumber(segment("v2", TRAINED, 101), numbers)


@pytest.mark.parametrize("head", [b"\xff" * 5, b"\x00"])
def test_a_wrong_number_is_refused(head: bytes) -> None:
    log = bytearray(batches("v2", TRAINED, 0))
    log[61 : 61 + len(head)] = head
    with pytest.raises(CorruptLog) as refusal:
        renumber(bytes(log), {1: 2})
    assert refusal.value.position == 0


@formats
def test_a_mirror_refuses_damage_instead_of_sealing_it(name: str) -> None:
    good = np.frombuffer(batches(name, TRAINED, 0), np.uint8)
    first = int(Entries.of(good).positions[1])
    for bit in np.random.default_rng(7).integers(21 * 8, first * 8, 50).tolist():  # the CRC covers bytes 21 to the end
        bad = good.copy()
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises((CorruptLog, MissingDictionary)) as refusal:
            renumber(bad, {1: 2})
        assert refusal.value.position == 0


@formats
@pytest.mark.parametrize("number", ["8100", "8180808070", "8180808008"])
def test_a_number_has_its_shortest_form_and_31_bits(name: str, number: str) -> None:
    sound = batches(name, TRAINED, 0)
    log = read_log(sound, dictionaries=[TRAINED])
    head = sound.index(TRAINED.head)
    data = bytearray(sound[: int(log.batches["position"][1])])
    data[head : head + 1] = bytes.fromhex(number)
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[17:21] = crc32c(data[21:]).to_bytes(4, "big")
    for call in (
        lambda: FORMATS[name].decode(bytes(data), dictionaries=[TRAINED]),
        lambda: check_dictionaries(bytes(data), [TRAINED]),
        lambda: renumber(bytes(data), {1: 2}),
    ):
        with pytest.raises(CorruptLog) as refusal:
            call()
        assert (type(refusal.value), refusal.value.position) == (CorruptLog, 0)


@formats
def test_a_leader_compares_numbers_and_checks_without_decompressing(name: str) -> None:
    log = batches(name, None, 0) + batches(name, TRAINED, 60)
    check_dictionaries(log, [TRAINED, SECOND])
    check_dictionaries(segment(name, TRAINED, 1), [])
    check_dictionaries(batches(name, None, 0), [])
    for known in ([], [SECOND], [OTHER]):  # OTHER has the same number and other bytes
        with pytest.raises(MissingDictionary) as refusal:
            check_dictionaries(log, known)
        assert (refusal.value.number, refusal.value.position) == (1, len(batches(name, None, 0)))
    with pytest.raises(CorruptLog) as twice:
        check_dictionaries(segment(name, TRAINED, 1), [OTHER])
    assert (twice.value.position, twice.value.field) == (0, "dictionary")


def test_a_payload_that_ends_in_the_check_is_refused() -> None:
    log = bytearray(batches("v2", TRAINED, 0))
    cut = log[:63]
    cut[8:12] = (63 - 12).to_bytes(4, "big")
    with pytest.raises(CorruptLog) as refusal:
        check_dictionaries(bytes(log + cut), [TRAINED])
    assert refusal.value.position == len(log)


@formats
@pytest.mark.parametrize("scan", ["batches", "never"])
def test_a_client_without_the_codec_gets_plain_zstd(name: str, scan: Any) -> None:
    log = segment(name, TRAINED, 101)
    got = fetch(log, name, fmt=name, scan=scan, without_dictionaries=True)
    back = FORMATS[name].decode(got.data)
    assert set(back.batches["codec"]) == {"none", "zstd"}
    assert (got.zero_copy, got.converted_records, len(back.records)) == (False, 60, 61)
    assert back.records.offsets.tolist() == list(range(100, 161))
    plain = batches(name, None, 101)
    untouched = fetch(plain, name, fmt=name, scan=scan, without_dictionaries=True)
    assert untouched.zero_copy
    assert untouched.data.tobytes() == plain
    with pytest.raises(MissingDictionary):
        fetch(batches(name, TRAINED, 101), name, fmt=name, scan=scan, without_dictionaries=True)


@formats
def test_a_consumer_in_the_middle_asks_by_number(name: str) -> None:
    log = segment(name, TRAINED, 101)
    found = seek_offset(log, 135)
    assert found is not None
    rest = EncodedLog(data=np.frombuffer(log, np.uint8)[found.position :], positions=np.zeros(1, np.int64)).data
    with pytest.raises(MissingDictionary) as missing:
        read_log(rest)
    dictionary = find_dictionary(log, missing.value.number)
    assert dictionary == TRAINED
    assert read_log(rest, dictionaries=[dictionary]).records.offsets.tolist() == list(range(131, 161))
    with pytest.raises(MissingDictionary):
        find_dictionary(log, 2)


def test_a_damaged_dictionary_is_not_handed_out() -> None:
    log = bytearray(segment("v2", TRAINED, 101))
    log[len(bytes(dictionary_batch(TRAINED, "v2", 100))) // 2] ^= 1
    with pytest.raises(CorruptLog):
        find_dictionary(bytes(log), 1)
