"""The arms of formats: encode, decode, and readers of a part of a log."""

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
    """Return an arm for each format; one format may appear twice. logs: the verified log of each format.

    All arms share one buffer. If each arm had its own buffer, each buffer would keep its place in the caches, and an
    A/A arm would be a few percent off.
    """
    buffer = np.empty(output_room(logs, source.records, source.bounds), np.uint8)
    make_arm = _MAKE_ARM[operation]
    return [make_arm(fmt, log, source, buffer) for fmt, log in zip(formats, logs, strict=True)]


def output_room(logs: Sequence[Bytes], records: Records, bounds: Int64) -> int:
    """Return the size of a buffer that holds any of the logs, even with every varint at its longest.

    With such a buffer, encode does not compute sizes first.
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
    """Return an arm that encodes into the shared buffer."""
    call = source.encoder(fmt, buffer)

    def verify() -> None:
        buffer.fill(0)  # another arm's bytes may be the same
        if call().positions[-1] != len(log) or not np.array_equal(buffer[: len(log)], log):
            raise Unverified("encode into the timed buffer wrote other bytes than were verified")

    return Arm(call=call, verify=verify)


def _reading_arm(log: Bytes, view: Bytes, call: Callable[[], object], verify: Callable[[], None]) -> Arm:
    """Return an arm that reads `view`, a part of the shared buffer. The log is copied to `view` before each sample."""
    return Arm(call=call, before=lambda: np.copyto(view, log), verify=verify)


def _decode_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:  # noqa: ARG001
    """Return an arm that decodes the log to columns."""
    view = buffer[: len(log)]

    def verify() -> None:
        if not np.array_equal(view, log):
            raise Unverified("decode changed the bytes that it reads")

    return _reading_arm(log, view, lambda: fmt.decode(view), verify)


def _decode_metadata_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:
    """Return an arm that reads offsets, times and lengths in the cheapest way that the format has."""
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
    """Return an arm that reads offsets and times without the CRC, as a broker does to look up a time or an offset."""
    view, positions = buffer[: len(log)], Entries.of(log).positions
    return _reading_arm(
        log,
        view,
        lambda: fmt.read_times(view, positions),
        lambda: verify_metadata(fmt, fmt.read_times(view, positions), fmt.decode(view).records.shapes),
    )


def _fetch_record_arm(fmt: Format, log: Bytes, source: EncodeInput, buffer: Bytes) -> Arm:
    """Return an arm that reads one record of each batch. The records are drawn at random before any call."""
    view, positions = buffer[: len(log)], Entries.of(log).positions
    bounds = source.bounds
    indices = np.random.default_rng(0).integers(0, np.diff(bounds))

    def verify() -> None:
        fetched, wanted = fmt.fetch(view, positions, indices), fmt.decode(view).records.take(bounds[:-1] + indices)
        if _without_headers(fetched) != _without_headers(wanted):
            raise Unverified(f"{fmt.name}: records fetched by themselves differ from the decoded ones")

    return _reading_arm(log, view, lambda: fmt.fetch(view, positions, indices), verify)


def _without_headers(records: Records) -> list[bytes]:
    """Return the parts of records that `fetch` reads, for a comparison: offsets, times, keys and values."""
    shapes, packed = records.shapes, records.packed()
    columns = shapes.offsets, shapes.timestamps_ms, shapes.key_lengths, shapes.value_lengths
    return [column.tobytes() for column in (*columns, packed.key_data, packed.value_data)]


_MAKE_ARM: Final[Mapping[Operation, Callable[[Format, Bytes, EncodeInput, Bytes], Arm]]] = {
    "encode": _encode_arm,
    "decode": _decode_arm,
    "decode-metadata": _decode_metadata_arm,
    "read-times": _read_times_arm,
    "fetch-record": _fetch_record_arm,
}
