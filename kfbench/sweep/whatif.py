"""What real log segments would take in other formats and codecs. The answer of `kfbench what-if`.

Batches stay as they were recorded: the same records under the same headers, encoded anew. Compressed bytes
are those of our codecs at their default levels. A producer's level and library are not in its log, so v2
with the codec that a segment has may differ from the bytes now; formats are therefore set against v2 too,
codec by codec.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise, product
from typing import Any, Final, Literal

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import BatchFields, DecodedLog
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig, KfbenchError
from kfbench.formats import FORMATS
from kfbench.log import read_log
from kfbench.log.inspect import Damage, aligned, counted, damage_of, segment_size
from kfbench.records import Records

BASE: Final = "v2"
PAYLOAD: Final = ("key", "value", "header_key", "header_value")
OF_RECORDS: Final = ("timestamps", "headers")  # losses counted in records' items; all others are of batches
PIECE_BYTES: Final = 16 << 20  # encoded at a time: a segment of a GiB would otherwise stand in memory several times


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file as it is now. sound_bytes: the batches that could be read; the result is about these."""

    path: str
    size_bytes: int
    sound_bytes: int
    batches: int
    records: int
    payload_bytes: int
    kinds: Mapping[str, int]  # "v2 lz4" -> batches
    damage: tuple[Damage, ...]
    trailing_bytes: int


@dataclass(frozen=True, kw_only=True)
class Arm:
    """The bytes of all sound batches in one format under one codec."""

    format: str
    codec: str
    level: int | None
    codec_version: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """Bytes now and in every format and codec. to_text(): tables for people; to_dict(): values for JSON.

    breakdown: format -> {field: bytes}, uncompressed; losses: format -> {what it cannot carry: how many};
    illegal: the pairs of format and codec that were asked for and that no Kafka version has.
    """

    sources: tuple[Source, ...]
    arms: tuple[Arm, ...]
    breakdown: Mapping[str, Mapping[str, int]]
    losses: Mapping[str, Mapping[str, int]]
    illegal: tuple[tuple[str, str], ...]

    @property
    def now_bytes(self) -> int:
        return sum(source.sound_bytes for source in self.sources)

    @property
    def records(self) -> int:
        return sum(source.records for source in self.sources)

    @property
    def payload_bytes(self) -> int:
        return sum(source.payload_bytes for source in self.sources)

    def size(self, format_name: str, codec: str) -> int | None:
        """The bytes of one arm; None where the format has no such codec."""
        return next((arm.size_bytes for arm in self.arms if (arm.format, arm.codec) == (format_name, codec)), None)

    def to_dict(self) -> dict[str, Any]:
        """Savings are shares of the bytes now, and of v2's under the same codec; below 0: it takes more."""
        arms = []
        for arm in self.arms:
            base = self.size(BASE, arm.codec)
            against_base = None if base is None else _saving(arm.size_bytes, base)
            arms.append(
                asdict(arm) | {"saving": _saving(arm.size_bytes, self.now_bytes), "saving_against_v2": against_base}
            )
        return {
            "sources": [
                asdict(source) | {"damage": [asdict(each) for each in source.damage]} for source in self.sources
            ],
            "now_bytes": self.now_bytes,
            "records": self.records,
            "payload_bytes": self.payload_bytes,
            "sizes": arms,
            "illegal": [{"format": name, "codec": codec} for name, codec in self.illegal],
            "losses": {name: dict(losses) for name, losses in self.losses.items()},
            "breakdown": {name: dict(parts) for name, parts in self.breakdown.items()},
        }

    def to_text(self) -> str:
        """What was read, the bytes in each format and codec, what is saved and lost, where the bytes go."""
        return "\n\n".join("\n".join(block) for block in self._blocks())

    def _blocks(self) -> Iterator[list[str]]:
        yield self._read()
        now, base = self.now_bytes, {codec: self.size(BASE, codec) or 0 for codec in self._codecs}
        levels = dict.fromkeys(f"{arm.codec} {arm.level}" for arm in self.arms if arm.level is not None)
        title = "bytes, batches as recorded" + (f"; levels: {', '.join(levels)}" if levels else "")
        without = ["-: " + "; ".join(f"{name} has no {codec}" for name, codec in self.illegal)] if self.illegal else []
        yield [title, *self._matrix(lambda size, _: f"{size:,}"), *without]
        yield [f"saved of the {now:,} bytes now", *self._matrix(lambda size, _: _percent(_saving(size, now)))]
        against_base = self._matrix(lambda size, codec: _percent(_saving(size, base[codec])))
        if any(self._marks.values()):
            against_base.append("* leaves out a part of the payload (see below): not the same data")
        yield [f"saved of what {BASE} takes with the same codec", *against_base]
        yield self._lost()
        yield self._parts()
        if len(self.breakdown) > 1:
            yield self._saved_by_field()

    @property
    def _codecs(self) -> list[str]:
        return list(dict.fromkeys(arm.codec for arm in self.arms))

    @property
    def _marks(self) -> dict[str, str]:
        """A mark for each format that carries less payload than there is."""
        return {name: " *" if self._payload(name) < self.payload_bytes else "" for name in self.breakdown}

    def _payload(self, name: str) -> int:
        return sum(self.breakdown[name].get(field, 0) for field in PAYLOAD)

    def _read(self) -> list[str]:
        rows = [["file", "bytes now", "batches", "records", "format and codec now"]]
        for source in self.sources:
            kinds = [
                f"{kind} ({batches:,})" if len(source.kinds) > 1 else kind for kind, batches in source.kinds.items()
            ]
            counts = [f"{number:,}" for number in (source.sound_bytes, source.batches, source.records)]
            rows.append([source.path, *counts, ", ".join(kinds) or "nothing readable"])
        lines = aligned(rows, right={1, 2, 3})
        for source in self.sources:
            for each in source.damage:
                what = f"left out {counted(each.size_bytes, 'byte')} from byte {each.position:,}"
                lines.append(f"{source.path}: {what}: {each.field}: {each.promise}")
            if source.trailing_bytes:
                what = f"left out an incomplete batch of {counted(source.trailing_bytes, 'byte')} at the end"
                lines.append(f"{source.path}: {what} (cut off, or its length is damaged: what follows is not searched)")
        if any({"v0 none", "v1 none"} & source.kinds.keys() for source in self.sources):
            lines.append("plain v0 and v1 messages stand alone: each is a batch of one, as an upgrade writes them")
        return lines

    def _matrix(self, cell: Callable[[int, str], str]) -> list[str]:
        codecs, marks = self._codecs, self._marks
        rows = [["format", *codecs]]
        for name in self.breakdown:
            sizes = [(self.size(name, codec), codec) for codec in codecs]
            rows.append([name + marks[name], *("-" if size is None else cell(size, codec) for size, codec in sizes)])
        return aligned(rows, right=range(1, len(codecs) + 1))

    def _lost(self) -> list[str]:
        lines = [["format", "what it cannot carry"]]
        for name, losses in self.losses.items():
            words = [f"{number:,} {what}" for what, number in losses.items() if what in OF_RECORDS]
            fields = [f"{what} {number:,}" for what, number in losses.items() if what not in OF_RECORDS]
            words += [f"in batches: {', '.join(fields)}"] if fields else []
            lines.append([name, "; ".join(words) or "nothing is lost"])
        return aligned(lines)

    @property
    def _fields(self) -> list[str]:
        """Those that take a byte in any format, the payload last."""
        every = dict.fromkeys(field for name in (BASE, *self.breakdown) for field in self.breakdown[name])
        taken = [field for field in every if any(parts.get(field) for parts in self.breakdown.values())]
        return sorted(taken, key=PAYLOAD.__contains__)

    def _parts(self) -> list[str]:
        names = list(self.breakdown)
        rows = [["where the bytes go, without a codec", *names]]
        for field in self._fields:
            sizes = [self.breakdown[name].get(field) for name in names]
            rows.append([field, *(f"{size:,}" if size else "-" for size in sizes)])
        totals = {name: sum(parts.values()) for name, parts in self.breakdown.items()}
        overhead = {name: totals[name] - self._payload(name) for name in names}
        rows.append(["all", *(f"{totals[name]:,}" for name in names)])
        rows.append(["overhead: all but the payload", *(f"{overhead[name]:,}" for name in names)])
        rows.append(["overhead a record", *(f"{overhead[name] / max(self.records, 1):.2f}" for name in names)])
        return aligned(rows, right=range(1, len(names) + 1))

    def _saved_by_field(self) -> list[str]:
        rows = [["format", "bytes", f"saved of {BASE} without a codec, by field (below 0: takes more)"]]
        base, marks = self.breakdown[BASE], self._marks
        for name, parts in self.breakdown.items():
            if name == BASE:
                continue
            saved: dict[str, int] = {}
            for field in self._fields:
                # A format without a batch header saves it as a whole.
                shown = field if field in parts or field not in base else field.partition(".")[0]
                saved[shown] = saved.get(shown, 0) + base.get(field, 0) - parts.get(field, 0)
            words = [f"{field} {number:,}" for field, number in saved.items() if number]
            rows.append([name + marks[name], f"{sum(saved.values()):,}", ", ".join(words)])
        return aligned(rows, right={1})


def what_if(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    formats: Sequence[str] | None = None,
    codecs: Sequence[str] | None = None,
    on_error: Literal["raise", "skip"] = "skip",
) -> WhatIf:
    """Reads segments and gives their bytes in every format (default: all) under every codec that it has.

    v2 is always there, as the one to compare with. on_error: "raise" the first CorruptLog, or "skip" damaged
    batches, which the result lists. Raises KfbenchError for a file that is not there or is a folder, when
    nothing in any file can be read, and for an unknown format or codec.
    """
    names = _known(formats, FORMATS, "format")
    arms, illegal = _arms(names if BASE in names else [*names, BASE], _known(codecs, CODECS, "codec"), formats)
    names = list(dict.fromkeys(name for name, _ in arms))
    sizes: Counter[tuple[str, str]] = Counter()
    breakdown: dict[str, Counter[str]] = {name: Counter() for name in names}
    losses: dict[str, Counter[str]] = {name: Counter() for name in names}
    sources = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # codecs compress without holding the interpreter
        for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
            size_bytes = segment_size(path)
            log = read_log(path, on_error=on_error)
            sources.append(_source(path, size_bytes, log))
            records, fields = log.source_records, log.batch_fields
            for name in names:
                breakdown[name].update(FORMATS[name].breakdown(records, log.bounds, fields))
                losses[name].update(FORMATS[name].losses(records, log.bounds, fields))
            for piece in _pieces(records, log.bounds, fields):
                sizes.update(dict(zip(arms, pool.map(partial(_size, *piece), arms), strict=True)))
    if not any(source.batches for source in sources):
        raise KfbenchError(_unreadable(sources))
    return WhatIf(
        sources=tuple(sources),
        arms=tuple(_arm(name, codec, sizes[name, codec]) for name, codec in arms),
        breakdown={name: dict(parts) for name, parts in breakdown.items()},
        losses={name: dict(lost) for name, lost in losses.items()},
        illegal=tuple(illegal),
    )


def _known(asked: Sequence[str] | None, there: Mapping[str, object], noun: str) -> list[str]:
    if unknown := [name for name in asked or () if name not in there]:
        raise InvalidConfig(f"no {noun} {unknown[0]!r} ({noun}s: {', '.join(there)})")
    return list(dict.fromkeys(there if asked is None else asked))


Pairs = list[tuple[str, str]]


def _arms(names: list[str], codecs: list[str], asked: Sequence[str] | None) -> tuple[Pairs, Pairs]:
    """The pairs that Kafka allows, and the others. Raises IllegalCombination for a format with none of the codecs."""
    legal = {name: FORMATS[name].capabilities.codecs for name in names}
    for name in asked or ():
        if not set(codecs) & set(legal[name]):
            raise IllegalCombination(f"{name} has no {' or '.join(codecs)} (codecs: {', '.join(legal[name])})")
    pairs = list(product(names, codecs))
    return [(n, c) for n, c in pairs if c in legal[n]], [(n, c) for n, c in pairs if c not in legal[n]]


def _arm(name: str, codec: str, size_bytes: int) -> Arm:
    known = CODECS[codec]
    return Arm(
        format=name,
        codec=codec,
        level=known.default_level,
        codec_version=known.version,
        size_bytes=size_bytes,
    )


def _source(path: str | os.PathLike[str], size_bytes: int, log: DecodedLog) -> Source:
    rows = log.batches
    kinds = Counter(f"v{magic} {codec}" for magic, codec in zip(rows["magic"], rows["codec"], strict=True))
    return Source(
        path=os.fspath(path),
        size_bytes=size_bytes,
        sound_bytes=int(rows["size_bytes"].sum()),
        batches=len(log),
        records=len(log.records),
        payload_bytes=log.records.shapes.payload_bytes,
        kinds=dict(sorted(kinds.items())),
        damage=damage_of(log, size_bytes),
        trailing_bytes=log.trailing_bytes,
    )


def _pieces(records: Records, bounds: Int64, fields: BatchFields) -> Iterator[tuple[Records, Int64, BatchFields]]:
    """The same batches in runs of about PIECE_BYTES."""
    ends = np.cumsum(FORMATS[BASE].size(records, bounds, fields))
    cuts = np.flatnonzero(np.diff(ends // PIECE_BYTES)) + 1
    for first, end in pairwise([0, *cuts.tolist(), len(ends)]):
        part = records.part(bounds[first], bounds[end])
        yield part, bounds[first : end + 1] - bounds[first], fields.part(first, end)


def _size(records: Records, bounds: Int64, fields: BatchFields, arm: tuple[str, str]) -> int:
    name, codec = arm
    plain = FORMATS[name].size(records, bounds, fields)
    if codec == "none":
        return int(plain.sum())
    encoded = FORMATS[name].encode(records, bounds, codec, batch_fields=fields, lossy=True)
    # Kafka compresses neither control batches nor batches without records.
    stay_plain = fields.over(len(plain))["is_control"] | (np.diff(bounds) == 0)
    return int(np.where(stay_plain, plain, np.diff(encoded.positions)).sum())


def _unreadable(sources: Sequence[Source]) -> str:
    if not sources:
        return "no file is given: a segment file is wanted"
    first = sources[0]
    if first.damage:
        at = first.damage[0]
        why = f"no batch can be read: batch at byte {at.position}: {at.field}: {at.promise}"
    elif first.size_bytes:
        why = f"no whole batch in {counted(first.size_bytes, 'byte')}: is this a log segment?"
    else:
        why = "the file is empty"
    others = f" (and nothing in {counted(len(sources) - 1, 'other file')})" if len(sources) > 1 else ""
    return f"{first.path}: {why}{others}"


def _saving(size: int, base: int) -> float:
    return 1 - size / base if base else 0.0


def _percent(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:.1f} %"  # + 0.0: no "-0.0"
