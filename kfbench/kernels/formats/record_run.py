"""RecordRun: the arguments of a kernel that reads the records of one batch."""

from typing import NamedTuple


class RecordRun(NamedTuple):
    """The position of a batch's records, the output rows for them, and the batch header fields that readers need.

    Fields are int64 except is_append.
    """

    start: int  # the uncompressed records are source[start:end]
    end: int
    payload_end: int  # `end`, or `sealing.NEVER` if only the metadata was decompressed
    row: int  # the first row to fill
    count: int
    attribute_bytes: int  # the size of each record's attributes, 0 or 1
    base_offset: int
    base_time_ms: int
    is_append: bool  # readers return the append time instead of the create times
    append_time_ms: int
    shared: int  # the number of headers per record in tag 1
    most_bytes: int  # the size limit of a header key or value
