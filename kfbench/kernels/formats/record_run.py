"""The records of one batch as a reading kernel finds them."""

from typing import NamedTuple


class RecordRun(NamedTuple):
    """The place of a batch's records, the rows that they fill, and what the header says; int64 each but is_append."""

    start: int  # the plain records, source[start:end]
    end: int
    payload_end: int  # `end`, or `sealing.NEVER` where only the metadata was decompressed
    row: int  # the first one to be filled
    count: int
    attribute_bytes: int  # what each record's attributes take, 0 or 1
    base_offset: int
    base_time_ms: int
    is_append: bool  # readers give the append time
    append_time_ms: int
    shared: int  # headers that tag 1 has for each record
    most_bytes: int  # that a header key or value may have
