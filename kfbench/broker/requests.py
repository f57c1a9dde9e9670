"""Split the input of an append into produce requests, read them, and check them against the topic's rules."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import EncodedLog
from kfbench.broker.source import of_magic
from kfbench.broker.topic import TopicSettings
from kfbench.broker.validation import INVALID_RECORD, check, claimed_times, read
from kfbench.codecs import CODEC_NAMES, CODECS, Allowance
from kfbench.errors import CorruptLog, IllegalCombination, Refused
from kfbench.formats import Entries, Format, Reading
from kfbench.kernels.broker import request_checks
from kfbench.layouts import CODEC_MASK, CONTROL_BIT, HEADERS_FIRST_BIT, TAGGED_BIT, V3_FEATURES_MASK
from kfbench.log.writing import runs


class Requests(NamedTuple):
    """Produce requests in one buffer.

    Args:
        data: the bytes of all requests.
        entries: the batches, plain messages and compressed sets in `data`.
        firsts: the number of the first entry of each request, and the end, int64[requests + 1].
        traits: attribute bits of each request's first entry, int64[requests]: its codec, its control flag, and its
            features of v3.
    """

    data: Bytes
    entries: Entries
    firsts: Int64
    traits: Int64


@dataclass(frozen=True, kw_only=True)
class Run:
    """Consecutive valid requests of one format.

    Args:
        fmt, read: their format, and the reader of their batches and records.
        timestamps_ms: the timestamp of each record. An append time that a producer claims is ignored.
        decompressed_bytes: number of bytes that were decompressed.
        bounds: the number of the first batch of each request, and the end, int64[requests + 1].
        record_bounds: the number of the first record of each request, and the end, int64[requests + 1].
        to: the log's format.
        codecs: the number of the codec that each request gets in the log, int64[requests].
        latest_ms: the largest timestamp of each batch.
        stays: bool[requests]. False: the request is rebuilt.
        first: the number of the first request among all requests of the append.
    """

    fmt: Format
    read: Reading
    timestamps_ms: Int64
    decompressed_bytes: int
    bounds: Int64
    record_bounds: Int64
    to: Format
    codecs: Int64
    latest_ms: Int64
    stays: NDArray[np.bool_]
    first: int

    @property
    def counts(self) -> Int64:
        """The number of records in each request."""
        return self.record_bounds[1:] - self.record_bounds[:-1]

    @property
    def is_one_each(self) -> bool:
        """True if each request is one batch. A request of plain messages may have several."""
        return len(self.bounds) == len(self.read.positions)


def split(log: EncodedLog | Any, data: Bytes, source: Format | None) -> Requests:
    """Split the bytes into requests. Raise CorruptLog and Refused.

    source: the format of the requests; None: found by their magic.
    """
    entries = Entries.of(data)
    entries.errors("raise")
    positions = log.positions if isinstance(log, EncodedLog) else entries.positions[[0, -1]]
    firsts, traits = np.empty(len(positions), np.int64), np.empty(len(positions) - 1, np.int64)
    layout = 0 if source is None or source.is_told_by_magic else source.appending.kind  # 0: the magic says it
    problem, entry = request_checks.split(data, entries.positions, entries.magics, layout, positions, firsts, traits)
    at = int(entries.positions[entry])
    if problem == request_checks.INSIDE_BATCH:
        raise CorruptLog(at, "length", "a request ends inside this batch")
    if problem == request_checks.NO_BATCH:
        raise Refused(INVALID_RECORD, at, "record batch has no batches at all")
    if problem == request_checks.OTHER_MAGIC:
        promise = f"batch magic {entries.magics[entry]} is not the same as the first batch's magic byte"
        raise Refused(INVALID_RECORD, at, promise)
    if problem == request_checks.TOO_MANY:
        raise Refused(INVALID_RECORD, at, "compressed outer record has more than one batch")
    return Requests(data, entries, firsts, traits)


def checked_runs(requests: Requests, source: Format | None, topic: TopicSettings, allowance: Allowance) -> list[Run]:
    """Read and check all requests. Return them as runs of one format. Raise CorruptLog and Refused."""
    entries, firsts, traits = requests.entries, requests.firsts, requests.traits
    found: list[Run] = []
    layouts = traits & ~(CODEC_MASK | CONTROL_BIT)
    for lo, hi in runs(layouts) if (layouts != layouts[:1]).any() or not len(layouts) else [(0, len(layouts))]:
        at, magic = int(entries.positions[firsts[lo]]), int(entries.magics[firsts[lo]])
        fmt = source or of_magic(magic, at, for_append=True)
        to = topic.format_for(fmt)
        codecs = topic.codecs(traits[lo:hi])
        no_zstd = to.holds_messages and not fmt.holds_messages
        if no_zstd and (zstd := np.flatnonzero(codecs >= CODECS["zstd"].id)).size:
            promise = f"zstd cannot be used with a magic below 2, but {to.name} is the log's format"
            at = int(entries.positions[firsts[lo + zstd[0]]])
            raise Refused("UNSUPPORTED_COMPRESSION_TYPE", at, promise)
        if topic.codec is not None and (codecs == topic.codec).any():
            to.check_codec(CODEC_NAMES[topic.codec], topic.level)
        features = int(traits[lo]) & V3_FEATURES_MASK
        own_codecs = traits[lo:hi] & CODEC_MASK
        is_same = (codecs == own_codecs) & (topic.to is None or _is_same_format(fmt, to, features, source is None))
        if fmt.appending.has_absolute_offsets:
            is_same &= own_codecs == 0
        if fmt.appending.is_only_path and (topic.is_append or not is_same.all()):
            raise IllegalCombination(f"{fmt.name}: append sets offsets, but no append time, format or codec")
        # Only the metadata of requests that are not rebuilt is needed, if it can be read without the payload.
        for first, end in runs(is_same) if features & HEADERS_FIRST_BIT else [(0, hi - lo)]:
            part = slice(lo + first, lo + end)
            found.append(_checked(requests, part, fmt, to, is_same[first:end], topic, allowance))
    return found


def _is_same_format(fmt: Format, to: Format, features: int, is_guessed: bool) -> bool:
    """Return True if batches of `fmt` with these features (attribute bits of v3) already have the log's format `to`.

    is_guessed: `fmt` was found by the magic, and another format may have the same magic.
    """
    if is_guessed and to.is_told_by_magic and to.magic == fmt.magic:
        # Attributes do not show if headers are shared, so a batch with tags counts as another format.
        return not features & TAGGED_BIT and features == to.features & V3_FEATURES_MASK
    return to is fmt and features == to.features & V3_FEATURES_MASK


def _checked(
    requests: Requests,
    part: slice,
    fmt: Format,
    to: Format,
    is_same: NDArray[np.bool_],
    topic: TopicSettings,
    allowance: Allowance,
) -> Run:
    """Read and check some requests of one format, and decide which are rebuilt.

    Args:
        part: the numbers of the requests.
        is_same: True if format and codec already equal the log's, bool[requests].
    """
    traits, data = requests.traits[part], requests.data
    firsts = requests.firsts[part.start : part.stop + 1]
    bounds = firsts - firsts[0]
    positions = requests.entries.positions[firsts[0] : firsts[-1] + 1]
    before = replace(allowance)
    found = read(fmt, data, positions, not is_same.all(), allowance, topic)
    times_ms, decompressed_bytes = claimed_times(found), before.log_bytes - allowance.log_bytes
    latest_ms, in_order = check(fmt, found, times_ms, decompressed_bytes > 0, topic)
    codecs, stays = topic.codecs(traits), is_same
    if fmt.appending.is_only_path and not in_order.all():
        promise = f"offsets do not rise by one, or the largest create time is not the maximum of the {fmt.name} batch"
        raise Refused(INVALID_RECORD, int(positions[np.argmin(in_order)]), promise)
    if not in_order.all():  # batches without a codec are set in place
        is_ignored = (traits & CODEC_MASK == 0) & ~(topic.is_plain_marker(traits))
        in_order = in_order[bounds[:-1]] | is_ignored
        stays = is_same & in_order
        if topic.codec:
            codecs = np.where(in_order, codecs, topic.codec)
        if found.is_metadata and not stays.all():  # now the payload is needed
            allowance.read_again(before)
            found = read(fmt, data, positions, True, allowance, topic)
            decompressed_bytes += before.log_bytes - allowance.log_bytes
    return Run(
        fmt=fmt,
        read=found,
        timestamps_ms=times_ms,
        decompressed_bytes=decompressed_bytes,
        bounds=bounds,
        record_bounds=found.bounds if len(bounds) == len(positions) else found.bounds[bounds],
        to=to,
        codecs=codecs,
        latest_ms=latest_ms,
        stays=stays,
        first=part.start,
    )
