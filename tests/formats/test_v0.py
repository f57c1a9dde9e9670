"""v0 against the reference, and what is peculiar to its wrappers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Records
from tests import strategies
from tests.common import check_against_reference, check_codec_against_reference, messages_of
from tests.formats import messages as shared
from tests.formats.fuzz import check_agrees_with_reference, mutations
from tests.reference import lz4, v01
from tests.strategies import Case

V0 = FORMATS["v0"]


@given(strategies.legacy_cases("v0"))
def test_the_bytes_are_the_references(case: Case) -> None:
    check_against_reference("v0", case)


@pytest.mark.compiled_only
@pytest.mark.parametrize("codec", shared.CODECS)
@given(case=strategies.legacy_cases("v0", max_batches=2))
def test_the_decompressed_bytes_are_the_references(codec: str, case: Case) -> None:
    check_codec_against_reference("v0", case, codec)


def test_a_message_by_hand() -> None:
    data = V0.encode(Records.from_lists([None], keys=[b"k"], offsets=[5])).data.tobytes()
    assert data == bytes.fromhex("0000000000000005 0000000f 908204f6 00 00 00000001 6b ffffffff")


def test_26_bytes_a_record() -> None:
    shared.check_overhead("v0")


def test_a_wrapper_of_one() -> None:
    shared.check_single_record_wrapper("v0")


def test_what_a_wrapper_may_not_be() -> None:
    shared.check_refusals("v0")


def test_lengths_that_do_not_add_up() -> None:
    shared.check_broken_lengths("v0")


def test_an_inner_set_that_is_cut_short() -> None:
    shared.check_cut_inner_set("v0")


def test_inner_offsets_are_absolute_whatever_the_wrapper_says() -> None:
    records = Records.from_lists([b"a", b"b"], offsets=[100, 103])
    back = V0.decode(V0.encode(records, codec="gzip", batch_fields=BatchFields(last_offset=5000)))
    assert back.records.offsets.tolist() == [100, 103]
    assert back.batches["last_offset"].tolist() == [5000]


def test_the_lz4_header_checksum_is_wrong_as_kafkas_was() -> None:
    data = V0.encode(Records.from_lists([b"x" * 500] * 3), codec="lz4").data.tobytes()
    frame = lz4.read_frame(data[26:])
    assert frame.header_checksum == lz4.header_checksum(frame.descriptor, magic=0)


@pytest.mark.parametrize("magic", [0, 2])
def test_either_lz4_header_checksum_is_read(magic: int) -> None:
    messages = shared.small("v0")
    payload = lz4.compress(v01.inner_set(0, messages), magic)
    assert messages_of(V0.decode(v01.wrapper(0, "lz4", messages, payload)).records) == messages


@given(st.data())
def test_changed_bytes_read_as_the_reference_reads_them(data: st.DataObject) -> None:
    messages = data.draw(strategies.message_lists(min_size=1, max_size=1, headers=False, timestamped=False))
    check_agrees_with_reference(data.draw(mutations(v01.plain(0, messages))))
