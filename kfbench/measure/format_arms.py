"""The functions that are timed for each format (its arms): encode, decode, and readers of a part of a log."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from kfbench.arrays import Bytes, Int64
from kfbench.errors import IllegalCombination
from kfbench.formats import Entries, Format
from kfbench.measure.cpu import Arm, Operation
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.verify import Unverified, verify_metadata
from kfbench.records import Records

ROOM_PER_ITEM: Final = 128


def prepare(formats: Sequence[Format], logs: Sequence[Bytes], operation: Operation, source: EncodeInput) -> list[Arm]:
    """Return one arm per format. The same format may appear twice.

    All arms share one buffer. With a buffer per arm, each buffer would have its own place in the caches. Then two arms
    of the same format would differ by a few percent.

    Args:
        formats: the formats to time.
        logs: the verified log of each format.
        operation: the kind of call.
        source: the records, and how to encode them.
    """
    buffer = np.empty(output_room(logs, source.records, source.bounds), np.uint8)
    make_arm = _MAKE_ARM[operation]
    return [make_arm(fmt, log, source, buffer) for fmt, log in zip(formats, logs, strict=True)]


def output_room(logs: Sequence[Bytes], records: Records, bounds: Int64) -> int:
    """Return the size of a buffer in bytes that is large enough for any of the logs.

    It is enough even if every varint has its greatest length. So encode can skip computing the exact size first.
    """
    return max(map(len, logs)) + ROOM_PER_ITEM * (len(records) + records.shapes.header_count + len(bounds))


def why_no_fetch(fmt: Format) -> str | None:
    """Return the reason why the format cannot read a single record of a batch; None if it can."""
    try:
        fmt.fetch(b"", np.zeros(1, np.int64), [])
    except IllegalCombination as error:
        return str(error)
    return None


def _encode_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:
    call = source.encoder(fmt, buffer)

    def verify() -> None:
        buffer.fill(0)  # an earlier arm may have left the same bytes
        if call().positions[-1] != len(log) or not np.array_equal(buffer[: len(log)], log):
            raise Unverified("encode into the timed buffer wrote other bytes than were verified")

    return Arm(call=call, verify=verify)


def _reading_arm(log: Bytes, view: Bytes, call: Callable[[], object], verify: Callable[[], None]) -> Arm:
    """Return a timed call that reads `view`, a part of the shared buffer.

    Before each sample, the log is copied to `view`.
    """
    return Arm(call=call, before=lambda: np.copyto(view, log), verify=verify)


def _decode_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:  # noqa: ARG001
    view = buffer[: len(log)]

    def verify() -> None:
        if not np.array_equal(view, log):
            raise Unverified("decode changed the bytes that it reads")

    return _reading_arm(log, view, lambda: fmt.decode(view), verify)


def _decode_metadata_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:
    """Return a timed call that reads offsets, timestamps and lengths with the cheapest reader of the format."""
    if not fmt.has_metadata_reader:  # then `decode_metadata` decodes the whole log
        return _decode_arm(fmt, log, source, buffer)
    view = buffer[: len(log)]
    return _reading_arm(
        log,
        view,
        lambda: fmt.decode_metadata(view),
        lambda: verify_metadata(fmt, fmt.decode_metadata(view), fmt.decode(view).records.shapes),
    )


def _read_times_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:  # noqa: ARG001
    """Return a timed call that reads offsets and timestamps without checking the CRC.

    A broker does this to find the record for a timestamp or an offset.
    """
    view, positions = buffer[: len(log)], Entries.of(log).positions
    return _reading_arm(
        log,
        view,
        lambda: fmt.read_times(view, positions),
        lambda: verify_metadata(fmt, fmt.read_times(view, positions), fmt.decode(view).records.shapes),
    )


def _fetch_record_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:
    """Return a timed call that reads one random record of each batch. All calls read the same records."""
    view, positions = buffer[: len(log)], Entries.of(log).positions
    bounds = source.bounds
    indices = np.random.default_rng(0).integers(0, np.diff(bounds))

    def verify() -> None:
        fetched, wanted = fmt.fetch(view, positions, indices), fmt.decode(view).records.take(bounds[:-1] + indices)
        if _without_headers(fetched) != _without_headers(wanted):
            raise Unverified(f"{fmt.name}: records fetched by themselves differ from the decoded ones")

    return _reading_arm(log, view, lambda: fmt.fetch(view, positions, indices), verify)


def _sizes_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:  # noqa: ARG001
    """Return a call that computes the size of each batch from the lengths of its records, without their payload."""
    shapes = source.records.shapes

    def verify() -> None:
        if fmt.size(shapes, source.bounds, source.batch_fields).sum() != len(log):
            raise Unverified(f"{fmt.name}: the computed sizes differ from those of the log")

    return Arm(call=lambda: fmt.size(shapes, source.bounds, source.batch_fields), verify=verify)


def _without_headers(records: Records) -> list[bytes]:
    """Return offsets, timestamps, keys and values of records as bytes, for a comparison. `fetch` reads only these."""
    shapes, packed = records.shapes, records.pack()
    columns = shapes.offsets, shapes.timestamps_ms, shapes.key_lengths, shapes.value_lengths
    return [column.tobytes() for column in (*columns, packed.key_data, packed.value_data)]


_MAKE_ARM: Final[Mapping[Operation, Callable[[Format, Bytes, EncodeInput, Bytes], Arm]]] = {
    "encode": _encode_arm,
    "decode": _decode_arm,
    "decode-metadata": _decode_metadata_arm,
    "read-times": _read_times_arm,
    "fetch-record": _fetch_record_arm,
    "sizes": _sizes_arm,
}
