"""Damage that a reading kernel can find in a batch: a number, the field, and the promise that it breaks."""

from typing import Final

SOUND: Final = 0
SIZE: Final = 1
CRC: Final = 2
CODEC: Final = 3
ATTRIBUTES: Final = 4
COUNT: Final = 5
RECORD_LENGTH: Final = 6
TIMESTAMP_DELTA: Final = 7
OFFSET_DELTA: Final = 8
KEY_LENGTH: Final = 9
VALUE_LENGTH: Final = 10
HEADER_COUNT: Final = 11
HEADER_KEY_LENGTH: Final = 12
HEADER_VALUE_LENGTH: Final = 13
TRAILING: Final = 14
MAGIC: Final = 15
WRAPPER_VALUE: Final = 16
EMPTY_SET: Final = 17
NESTED: Final = 18
WRAPPER_OFFSET: Final = 19
INNER_CRC: Final = 20
COMPRESSED: Final = 21
BATCH_HEADER: Final = 22
TAGS: Final = 23
SHARED_HEADERS: Final = 24
METADATA: Final = 25
CONTROL_RECORD: Final = 26
LIMIT_RECORDS: Final = 27
LIMIT_HEADERS: Final = 28
LIMIT_FIELD: Final = 29
MESSAGE_TYPE: Final = 30
TAGS_LENGTH: Final = 31
TAG: Final = 32
MESSAGE_COUNT: Final = 33
NULL_VALUE: Final = 34
RECORD_ATTRIBUTES: Final = 35
EXTENSIONS: Final = 36
COLUMN: Final = 37
PADDING: Final = 38
PATCHES: Final = 39
COLUMN_OFFSET: Final = 40
COLUMN_LENGTH: Final = 41
HEADER_COLUMNS: Final = 42
PAYLOAD: Final = 43
EMPTY_BATCH: Final = 44
LIMIT_LOG_RECORDS: Final = 45
LIMIT_LOG_HEADER_BYTES: Final = 46
NO_SUCH_RECORD: Final = 47  # no promise of the log: the caller asked for it
NOT_FETCHED: Final = 48
LIMIT_LOG_HEADERS: Final = 49

PROMISES: Final[dict[int, tuple[str, str]]] = {
    SIZE: ("length", "smaller than the format's own header"),
    CRC: ("crc", "the stored checksum is not that of the bytes"),
    CODEC: ("attributes", "names a codec that this format does not have"),
    ATTRIBUTES: ("attributes", "bits are set that this format does not know"),
    COUNT: ("count", "negative, or more records than the bytes can hold"),
    RECORD_LENGTH: ("record length", "negative, beyond the batch, or not what the record's fields take"),
    TIMESTAMP_DELTA: ("timestamp delta", "not a varlong inside its record"),
    OFFSET_DELTA: ("offset delta", "not a varint inside its record"),
    KEY_LENGTH: ("key length", "beyond its record"),
    VALUE_LENGTH: ("value length", "beyond its record"),
    HEADER_COUNT: ("header count", "negative, or more headers than the record can hold"),
    HEADER_KEY_LENGTH: ("header key length", "negative or beyond the record"),
    HEADER_VALUE_LENGTH: ("header value length", "beyond its record"),
    TRAILING: ("count", "bytes are left after the last record"),
    MAGIC: ("magic", "not the version that is read here"),
    WRAPPER_VALUE: ("value", "a compressed message needs a value"),
    EMPTY_SET: ("value", "a compressed message set holds no message"),
    NESTED: ("attributes", "a compressed message inside a compressed message"),
    WRAPPER_OFFSET: ("offset", "a wrapper's offset is below its last inner message's, and not 0"),
    INNER_CRC: ("crc", "the stored checksum of an inner message is not that of its bytes"),
    COMPRESSED: ("records", "cannot be decompressed"),
    BATCH_HEADER: ("batch header", "a varint runs past the batch"),
    TAGS: ("tagged fields", "past the batch, not in rising order, or tag 0 is not of 8 bytes"),
    SHARED_HEADERS: ("tagged fields", "tag 1 does not hold the headers that it claims"),
    METADATA: ("metadata length", "beyond the batch, or not what the records' metadata takes"),
    CONTROL_RECORD: ("control record", "the key or the marker's value is too short, or its version negative"),
    LIMIT_RECORDS: ("count", "more records than limits.batch_records"),
    LIMIT_HEADERS: ("header count", "more headers in a batch than limits.batch_headers"),
    LIMIT_FIELD: ("length", "a key, value or header longer than limits.field_bytes"),
    MESSAGE_TYPE: ("attributes", "names a message type that this format does not have"),
    TAGS_LENGTH: ("tags length", "below -1 or beyond its message"),
    TAG: ("tags", "a tag runs past their length"),
    MESSAGE_COUNT: ("tags", "another number of messages than the set holds"),
    RECORD_ATTRIBUTES: ("record attributes", "bits are set that this format does not know"),
    NULL_VALUE: ("record length", "bytes are left where the value is null"),
    EXTENSIONS: ("extensions", "past the batch, not in rising order, unknown, of another size, or not as bit 6 says"),
    COLUMN: ("column", "a kind or width that there is not, or past the batch"),
    PADDING: ("padding", "a bit behind its last value is set"),
    PATCHES: ("patches", "they do not rise, lie outside it, are 0 or do not fit 64 bits"),
    COLUMN_OFFSET: ("offset delta", "does not fit an int32"),
    COLUMN_LENGTH: ("column length", "negative or above an int32"),
    HEADER_COLUMNS: ("headers", "not as their mode or form has them, or none"),
    PAYLOAD: ("payload", "not the bytes that the lengths add up to"),
    EMPTY_BATCH: ("attributes", "columns in a batch without records, or no last offset"),
    LIMIT_LOG_RECORDS: ("count", "more records in all than limits.log_expansion allows a log of this size"),
    NOT_FETCHED: ("attributes", "a codec, or headers before the payload: only the whole batch can be read"),
    LIMIT_LOG_HEADERS: ("header count", "more headers in all than limits.log_expansion allows a log of this size"),
    LIMIT_LOG_HEADER_BYTES: ("headers", "more bytes in all than limits.log_expansion allows a log of this size"),
}
