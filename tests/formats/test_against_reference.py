"""Every format writes the bytes of its slow reference, and reads or refuses damaged batches as the reference does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS
from tests import strategies
from tests.common import REFERENCES, check_against_reference, reference_encode
from tests.formats.fuzz import check_agrees_with_reference, check_metadata_without_checksums, mutations
from tests.reference import codecs

every_name = pytest.mark.parametrize("name", FORMATS)
every_codec = pytest.mark.parametrize(
    ("name", "codec"), [(name, codec) for name, fmt in FORMATS.items() for codec in fmt.capabilities.codecs[1:]]
)


@every_name
@given(data=st.data())
def test_the_bytes_are_the_references(name: str, data: st.DataObject) -> None:
    check_against_reference(name, data.draw(strategies.cases_of(name)))


@pytest.mark.compiled_only
@pytest.mark.sampled
@every_codec
@given(data=st.data())
def test_the_decompressed_bytes_are_the_references(name: str, codec: str, data: st.DataObject) -> None:
    check_against_reference(name, data.draw(strategies.cases_of(name, max_batches=2)), codec)


@every_name
@given(data=st.data())
def test_changed_bytes_read_as_the_reference_reads_them(name: str, data: st.DataObject) -> None:
    """Damage batches but correct their checksum. kfbench and the reference both refuse them, or decode equal fields."""
    fmt = FORMATS[name]
    messages, fields = data.draw(strategies.batches_of(name, max_size=1 if fmt.holds_messages else 3))
    changed = data.draw(mutations(reference_encode(name, messages, fields), name))
    check_agrees_with_reference(changed, name)
    if fmt.magic >= 2 and fmt.is_told_by_magic:
        check_metadata_without_checksums(changed, name)


@pytest.mark.sampled
@every_codec
@given(data=st.data())
def test_changed_bytes_inside_a_codec(name: str, codec: str, data: st.DataObject) -> None:
    """Damage the plain bytes of a batch before compression.

    kfbench and the reference both refuse the batch, or decode equal fields.
    """
    fmt, reference = FORMATS[name], REFERENCES[name]
    messages, fields = data.draw(strategies.batches_of(name, min_size=1))
    section = reference.plain(messages=messages, fields=fields)
    if fmt.holds_messages:
        first = int.from_bytes(section[8:12], "big") + 12
        section = data.draw(mutations(section[:first])) + section[first:]
    else:
        plain = reference.encode(messages, fields)
        section = data.draw(mutations(plain, name))[len(plain) - len(section) :]
    payload = codecs.compress(codec, section, fmt.magic)
    batch = reference.around(messages=messages, fields=fields, codec=codec, payload=payload)
    check_agrees_with_reference(batch, name)
    if fmt.magic >= 2 and fmt.is_told_by_magic:
        check_metadata_without_checksums(batch, name)
