"""The envelope of a rival's batch: v2's header of 61 bytes, with the container in the place of v2's records.

KIP-1008 places Parquet in a batch in this way. The CRC-32C covers attributes to end, as in v2. The container compresses
itself, so the codec bits of the attributes stay 0.
"""

from typing import Final

import numpy as np
from crc32c import crc32c

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.formats import FORMATS
from kfbench.layouts import V2_HEADER
from kfbench.records import Records

ENVELOPE_BYTES: Final = V2_HEADER.itemsize
_LENGTH_AT: Final = int(V2_HEADER.fields["length"][1])  # type: ignore[index]
_LENGTH_END: Final = _LENGTH_AT + V2_HEADER["length"].itemsize
_CRC_AT: Final = int(V2_HEADER.fields["crc"][1])  # type: ignore[index]
_COVERED_AT: Final = _CRC_AT + V2_HEADER["crc"].itemsize


def headers_of(records: Records, bounds: Int64, batch_fields: BatchFields = NO_FIELDS) -> list[bytes]:
    """Return the header of each of v2's batches, uncompressed. bounds: int64[batches + 1]."""
    log = FORMATS["v2"].encode(records, bounds, batch_fields=batch_fields, lossy=True)
    return [log.data[at : at + ENVELOPE_BYTES].tobytes() for at in log.positions[:-1].tolist()]


def seal(container: bytes, header: bytes) -> bytes:
    """Return header and container as one batch, with a new length and CRC. Raises InvalidRecords.

    header: v2's header, 61 bytes.
    """
    if len(header) != ENVELOPE_BYTES:
        raise InvalidRecords(f"header: {ENVELOPE_BYTES} bytes are wanted, not {len(header)}")
    length = ENVELOPE_BYTES - _LENGTH_END + len(container)
    if length > np.iinfo(np.int32).max:
        raise InvalidRecords(f"container: {len(container)} bytes do not fit a batch")
    crc = crc32c(container, crc32c(header[_COVERED_AT:]))
    return b"".join(
        (
            header[:_LENGTH_AT],
            length.to_bytes(4, "big"),
            header[_LENGTH_END:_CRC_AT],
            crc.to_bytes(4, "big"),
            header[_COVERED_AT:],
            container,
        )
    )


def open_sealed(data: bytes) -> bytes:
    """Check length and CRC of one batch and return its container. Raises CorruptLog."""
    if len(data) < ENVELOPE_BYTES:
        raise CorruptLog(0, "length", f"a batch has at least {ENVELOPE_BYTES} bytes, not {len(data)}")
    if (length := int.from_bytes(data[_LENGTH_AT:_LENGTH_END], "big", signed=True)) != len(data) - _LENGTH_END:
        raise CorruptLog(0, "length", f"{len(data) - _LENGTH_END} bytes follow, not {length}")
    view = memoryview(data)
    if (crc := crc32c(view[_COVERED_AT:])) != (stored := int.from_bytes(data[_CRC_AT:_COVERED_AT], "big")):
        raise CorruptLog(0, "crc", f"the CRC-32C of the bytes is {crc:#010x}, not {stored:#010x}")
    return data[ENVELOPE_BYTES:]
