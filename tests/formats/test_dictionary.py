"""zstd with a dictionary, in every format that has it: round trips, the reference, damage, limits, missing ones."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, Dictionary, Limits, Records, read_log
from kfbench.errors import CorruptLog, IllegalCombination, InvalidDictionary, KfbenchError, MissingDictionary
from tests import strategies
from tests.common import REFERENCES, batch_fields_of, bounds_of, check_decoded, records_of, reference_decode
from tests.dictionary_samples import BY_NAME, OTHER, RAW, RECORDS, TRAINED
from tests.formats.fuzz import check_agrees_with_reference, mutations
from tests.reference import dictionaries as reference

NAMES = [name for name, fmt in FORMATS.items() if fmt.capabilities.dictionaries]
every_format = pytest.mark.parametrize("name", NAMES)
every_kind = pytest.mark.parametrize("kind", BY_NAME)
SOME = pytest.mark.parametrize("name", ["v2", "v3-full", "columnar"])


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "known", {each.number: each.data for each in BY_NAME.values()})


def encoded(name: str, dictionary: Dictionary = TRAINED, batch_size: int = 10, level: int | None = None) -> bytes:
    return bytes(FORMATS[name].encode(RECORDS, batch_size, codec="zstd", level=level, dictionary=dictionary))


@every_format
@every_kind
@given(data=st.data())
def test_the_reference_reads_ours(name: str, kind: str, data: st.DataObject) -> None:
    fmt, case, dictionary = FORMATS[name], data.draw(strategies.cases_of(name, max_batches=2)), BY_NAME[kind]
    log = fmt.encode(
        records_of(case.messages), bounds_of(case), "zstd", None, batch_fields_of(case), dictionary=dictionary
    )
    batches, _ = reference_decode(name, bytes(log))
    back = fmt.decode(log, dictionaries=[dictionary])
    check_decoded(back, batches)
    assert back.source_records == records_of(case.messages)
    for (start, end), messages, fields, batch in zip(
        pairwise(log.positions.tolist()), case.batches, case.fields, batches, strict=True
    ):
        if not messages or not batch.raw:
            continue
        assert batch.raw == REFERENCES[name].plain(messages=messages, fields=fields)
        around = partial(REFERENCES[name].around, messages=messages, fields=fields, codec="zstd-dictionary")
        payload = log.data[start:end].tobytes()[len(around(payload=b"")) :]
        assert log.data[start:end].tobytes() == around(payload=payload)
        assert payload.startswith(reference.head(dictionary.number, dictionary.data))


@every_format
@every_kind
@given(data=st.data())
def test_we_read_the_references(name: str, kind: str, data: st.DataObject) -> None:
    """Frames of another writer: another level, and blocks without compression."""
    dictionary, write = BY_NAME[kind], data.draw(st.sampled_from([reference.compress, reference.uncompressed]))
    messages, fields = data.draw(strategies.batches_of(name, min_size=1))
    section = REFERENCES[name].plain(messages=messages, fields=fields)
    payload = write(section, dictionary.number, dictionary.data)
    batch = REFERENCES[name].around(messages=messages, fields=fields, codec="zstd-dictionary", payload=payload)
    back = FORMATS[name].decode(batch, dictionaries=[dictionary])
    check_decoded(back, reference_decode(name, batch)[0])
    assert back.batches["dictionary"].tolist() == [dictionary.number]


@every_format
def test_each_reader_takes_dictionaries(name: str) -> None:
    fmt, log = FORMATS[name], FORMATS[name].encode(RECORDS, 7, codec="zstd", dictionary=TRAINED)
    plain = fmt.encode(RECORDS, 7, codec="zstd")
    assert len(log.data) < 0.8 * len(plain.data)
    known, whole = [RAW, TRAINED], fmt.decode(plain)
    back = fmt.decode(log, dictionaries=known)
    assert back.records == RECORDS
    assert dict(back.dictionaries) == {1: TRAINED, 300: RAW}
    assert set(back.batches["codec"]) == {"zstd-dictionary"}
    assert set(back.batches["dictionary"]) == {1}
    assert set(whole.batches["dictionary"]) == {-1}
    seen = fmt.decode_metadata(log, dictionaries=known)
    assert np.array_equal(seen.value_lengths, RECORDS.shapes.value_lengths)
    assert seen.bounds.tolist() == whole.bounds.tolist()
    times = fmt.read_times(log, log.positions, dictionaries=known)
    assert np.array_equal(times.timestamps_ms, RECORDS.timestamps_ms)
    if "key_length" in fmt.bare_parts:  # columnar needs no dictionary to read these
        assert np.array_equal(fmt.decode_metadata(log).offsets, seen.offsets)
        assert np.array_equal(fmt.read_times(log, log.positions).offsets, times.offsets)


@SOME
@pytest.mark.parametrize("wrong", [TRAINED, 1, None], ids=["a dictionary", "a number", "nothing"])
def test_a_list_of_dictionaries_is_wanted(name: str, wrong: Any) -> None:
    log = FORMATS[name].encode(RECORDS, 10, codec="zstd", dictionary=TRAINED)
    for read in (FORMATS[name].decode, read_log):
        with pytest.raises(InvalidDictionary, match="dictionaries: a list"):
            read(log, dictionaries=wrong)


@every_format
def test_a_missing_dictionary(name: str) -> None:
    fmt, log = FORMATS[name], FORMATS[name].encode(RECORDS, 20, codec="zstd", dictionary=TRAINED)
    for known in ([], [RAW], [replace(TRAINED, number=2)]):
        with pytest.raises(MissingDictionary, match="number 1") as refusal:
            fmt.decode(log, dictionaries=known)
        assert (refusal.value.position, refusal.value.field, refusal.value.number) == (0, "dictionary", 1)
        back = fmt.decode(log, on_error="skip", dictionaries=known)
        assert len(back) == len(back.records) == 0
        assert [error.position for error in back.errors] == log.positions[:-1].tolist()
        assert all(isinstance(error, MissingDictionary) for error in back.errors)


@every_format
@pytest.mark.parametrize("wrong", [OTHER, replace(RAW, number=1), Dictionary(number=1, data=RAW.data[1:], is_raw=True)])
def test_a_wrong_dictionary_of_the_same_number_is_refused(name: str, wrong: Dictionary) -> None:
    written = replace(RAW, number=1) if wrong.is_raw and wrong.data != RAW.data else TRAINED
    back = FORMATS[name].decode(encoded(name, written), on_error="skip", dictionaries=[wrong])
    assert len(back.records) == 0
    assert len(back.errors) == 6
    assert all(isinstance(error, MissingDictionary) and error.number == 1 for error in back.errors)


def test_illegal_combinations() -> None:
    for name, fmt in FORMATS.items():
        for codec in fmt.capabilities.codecs:
            if name in NAMES and codec == "zstd":
                continue
            with pytest.raises(IllegalCombination):
                fmt.encode(RECORDS, 10, codec=codec, dictionary=TRAINED, lossy=True)
    for codec in ("zstd-dictionary", "5"):
        with pytest.raises(IllegalCombination):
            FORMATS["v2"].encode(RECORDS, 10, codec=codec, dictionary=TRAINED)
    with pytest.raises(IllegalCombination):
        FORMATS["v2"].encode(RECORDS, 10, codec="zstd", level=23, dictionary=TRAINED)
    with pytest.raises(InvalidDictionary):
        FORMATS["v2"].encode(RECORDS, 10, codec="zstd", dictionary=TRAINED.data)  # type: ignore[arg-type]
    with pytest.raises(InvalidDictionary):
        FORMATS["v2"].decode(encoded("v2"), dictionaries=[TRAINED, OTHER])
    assert FORMATS["v2"].decode(encoded("v2"), dictionaries=[TRAINED, replace(TRAINED)]).records == RECORDS


@SOME
@every_kind
@given(data=st.data())
def test_changed_bytes_read_as_the_reference_reads_them(name: str, kind: str, data: st.DataObject) -> None:
    """Damage a batch but correct its checksum: the dictionary number, the check and the frame are hit, too."""
    batch = bytes(FORMATS[name].encode(RECORDS.part(0, 3), 3, codec="zstd", dictionary=BY_NAME[kind]))
    changed = data.draw(mutations(batch, name))
    check_agrees_with_reference(changed, name, BY_NAME.values())


@SOME
def test_limits_hold(name: str) -> None:
    """A dictionary lets few bytes become many. Neither a batch nor a log grows past its limit."""
    bomb = Records.from_lists([bytes(1 << 20)] * 8)
    batch = FORMATS[name].encode(bomb, 8, codec="zstd", dictionary=TRAINED)
    assert len(batch.data) < 3_000
    assert FORMATS[name].decode(batch, dictionaries=[TRAINED]).records == bomb
    for limits in (Limits(batch_bytes=1 << 22), Limits(batch_bytes=1 << 20, log_expansion=100)):
        with pytest.raises(CorruptLog):
            FORMATS[name].decode(batch, dictionaries=[TRAINED], limits=limits)


def test_columnar_without_a_payload_names_no_dictionary() -> None:
    empty = Records.from_lists([b""] * 3)
    log = FORMATS["columnar"].encode(empty, 3, codec="zstd", dictionary=TRAINED)
    back = FORMATS["columnar"].decode(log)
    assert back.records == empty
    assert back.batches["dictionary"].tolist() == [-1]


def test_a_single_record_cannot_be_fetched() -> None:
    for name in ("v2", "columnar"):
        log = FORMATS[name].encode(RECORDS, 10, codec="zstd", dictionary=TRAINED)
        with pytest.raises(KfbenchError):
            FORMATS[name].fetch(log, log.positions, [0] * len(log))
