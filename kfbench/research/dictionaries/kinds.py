"""The kinds "dictionary" and "dictionary-cpu": sizes with zstd dictionaries of a topic, and the codec's time."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from kfbench.batches import NO_FIELDS
from kfbench.codecs.dictionary import MOST_BYTES
from kfbench.errors import IllegalCombination, InvalidDictionary
from kfbench.formats import FORMATS
from kfbench.limits import SIZE_BYTES
from kfbench.log.segment import join_records
from kfbench.measure.cell import Cell
from kfbench.measure.columns import INT32, INT64, TEXT, Row, added
from kfbench.measure.kinds.base import (
    CellCosts,
    GridBlock,
    GridPlan,
    Kind,
    RemovedKind,
    Unavailable,
    error_text,
    legal_input,
    sample_at,
    times_of,
)
from kfbench.research.dictionaries.cpu import DICTIONARY_OPERATIONS, measure_codecs
from kfbench.research.dictionaries.sizes import measure_dictionaries
from kfbench.workloads import Sample
from kfbench.workloads.recorded import TOPICS

# Fitted to a run of the profile `dictionary` of 2026-11-25, on two cores of an AMD EPYC.
_CELL_S: Final = 0.05
_RECORD_NS: Final = 420  # encoding, verifying and making samples
_CPU_FORMAT_S: Final = 0.2  # training, and compressing for the sizes, in one format
_TRAINED_BYTES_PER_S: Final = 3e7
_DIGEST_S: Final = 1e-3  # making, checking and digesting a copy of a dictionary


class DictionarySettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The settings of the kinds "dictionary" and "dictionary-cpu".

    Args:
        records, payload_bytes: the size of the topic, as in BytesSettings.
        size_bytes: the largest size of each dictionary.
        trained_share: shares of the topic's records, from its beginning, that dictionaries are trained on. The rest is
            measured. The kind "dictionary-cpu" uses the first one.
        parts: the rest is measured in this many equal parts, to show how a dictionary ages.
        training_batch: the records per batch in training.
        preceded_by: a recorded topic, such as "lines-jvm-gc", whose first records come before those of the workload.
            So the topic changes in the middle.
        live: the number of dictionaries that the batches of "dictionary-cpu" use in turn.
        rounds, sample_us: as in CpuSettings.
    """

    records: int = 16_384
    payload_bytes: int = 2 << 20
    size_bytes: tuple[int, ...] = (SIZE_BYTES,)
    trained_share: tuple[float, ...] = (0.5,)
    parts: int = 1
    training_batch: int = 10
    preceded_by: str = ""
    live: tuple[int, ...] = (1,)
    rounds: int = 19
    sample_us: int = 300


_COLUMNS: Final = (
    added(
        "dictionary",
        TEXT,
        "",
        "none: without a codec; plain: the codec alone; lean: zstd in codec 5's frame without a dictionary; "
        "trained: a trained dictionary; raw: the newest 8 KiB before the split as dictionary; policy: dictionaries "
        "that the policy of docs/proposals/topic-dictionaries.md chooses",
        is_identity=True,
    ),
    added("dictionary_size_bytes", INT32, "bytes", "largest size that was asked for", is_identity=True),
    added(
        "trained_share",
        pa.float64(),
        "",
        "share of the topic before the split: training sees it, measuring does not; 0: no split",
        is_identity=True,
    ),
    added("part", INT32, "", "which of the equal parts after the split was measured, from 1", is_identity=True),
    added("live", INT32, "dictionaries", "dictionaries that batches use in turn in one process", is_identity=True),
    added(
        "dictionary_stored_bytes",
        INT64,
        "bytes",
        "size of the control batches that store the dictionaries; size_bytes does not include it",
    ),
    added(
        "dictionary_memory_bytes",
        INT64,
        "bytes",
        "estimated memory of the digested dictionary and its context, for compression",
    ),
    added("trained_records", INT64, "records", "records that the dictionary was made from"),
    added("trained_bytes", INT64, "bytes", "samples that the dictionary was made from"),
    added("training_ns", INT64, "ns", "thread CPU time of training once, without making the samples", is_measured=True),
    added("dictionary_switches", INT32, "", "policy: changes between dictionaries, plain zstd and no codec"),
)


class _WithDictionaries(Kind):
    section = "dictionary"
    settings = DictionarySettings
    ranges = {"size_bytes": (256, MOST_BYTES), "trained_share": (0.01, 0.99), "live": (1, 1_024)}
    columns = _COLUMNS
    has_own_blocks = True

    def problems(self, block: GridBlock, settings: DictionarySettings) -> Iterator[str]:
        if others := block.codecs.keys() - {"zstd"}:
            yield f"codecs.{min(others)}: {self.name} cells need zstd, the only codec with dictionaries"
        formats = [name for name in block.formats if name in FORMATS]
        if without := [name for name in formats if not FORMATS[name].capabilities.dictionaries]:
            yield f"formats: {without[0]} has no dictionaries"
        if not (before := settings.preceded_by):
            return
        for name in (before, *(block.workloads or [block.workload])):
            if name not in TOPICS or TOPICS[name].batch_size is None:
                yield f"dictionary.preceded_by: {name!r} is no name of lines or public data (lines-*, public-*)"
        if before in block.workloads:
            yield f"dictionary.preceded_by: {before} cannot precede itself"

    def settle(self, cell: Cell, plan: GridPlan) -> Cell:
        return replace(cell, settings=plan.settings)


def _settings(cell: Cell) -> DictionarySettings:
    assert isinstance(cell.settings, DictionarySettings)
    return cell.settings


def topic_of(cell: Cell) -> Sample:
    """Return the cell's records, behind as many of the topic that precedes them (`preceded_by`)."""
    before = _settings(cell).preceded_by
    if not before:
        return sample_at(cell.workload, cell.records, cell.seed)
    first = TOPICS[before]
    count = min(cell.records, first.recorded)
    batch_size = cell.axes["batch_size"]
    parts = [sample_at(each, count, cell.seed) for each in (replace(first, batch_size=batch_size), cell.workload)]
    records = join_records([part.records for part in parts])
    records = records.at_offsets(np.arange(len(records)))
    bounds = np.append(parts[0].bounds, count + parts[1].bounds[1:])
    return Sample(shapes=records.shapes, bounds=bounds, batch_fields=NO_FIELDS, payload=lambda: records)


class DictionarySizes(_WithDictionaries):
    name = "dictionary"

    def rows_of_format(self, cell: Cell, name: str) -> Iterator[Row]:
        """Measure sizes without a codec, with plain zstd and with dictionaries."""
        settings = _settings(cell)
        yield from measure_dictionaries(
            FORMATS[name],
            legal_input(cell, name, topic_of(cell)),
            sizes_bytes=settings.size_bytes,
            shares=settings.trained_share,
            parts=settings.parts,
            training_batch=settings.training_batch,
        )

    def estimate_s(self, cell: Cell) -> float:
        settings, costs = _settings(cell), CellCosts.of(cell)
        sizes, shares = len(settings.size_bytes), len(settings.trained_share)
        logs = shares * (sizes + 3) / 2 + 2
        trained_s = shares * sizes * costs.payload_bytes / _TRAINED_BYTES_PER_S
        once_s = cell.records * _RECORD_NS * 1e-9 + costs.codec_s
        return _CELL_S + len(cell.formats) * (logs * once_s + trained_s)


class DictionaryCpu(_WithDictionaries):
    name = "dictionary-cpu"
    meanings = {"operation": "compress or decompress (codec alone)", "arm": "the base is plain zstd"}
    is_timed = True
    # in one format: plain zstd and zstd with dictionaries of several sizes
    differ_in_a_round = ("arm", "dictionary", "dictionary_size_bytes", "trained_share")

    def settle(self, cell: Cell, plan: GridPlan) -> Cell:
        settings: DictionarySettings = plan.settings
        return replace(cell, settings=settings, rounds=settings.rounds, sample_us=settings.sample_us)

    def rows_of_format(self, cell: Cell, name: str) -> Iterator[Row]:
        """Time the codec alone, plain and with dictionaries. Formats are timed separately, because bodies differ."""
        settings = _settings(cell)
        try:
            arms = measure_codecs(
                FORMATS[name],
                legal_input(cell, name, topic_of(cell)),
                sizes_bytes=settings.size_bytes,
                share=settings.trained_share[0],
                training_batch=settings.training_batch,
                live=settings.live,
                rounds=cell.rounds,
                sample_ns=cell.sample_us * 1_000,
            )
            yield from [times_of(cell, arm.samples) | arm.columns for arm in arms]
        except (InvalidDictionary, IllegalCombination) as error:  # the topic is too small for a dictionary
            raise Unavailable(error_text(error)) from None

    def row_keys(self, cell: Cell) -> list[Row]:
        return [{"arm": "measure", "operation": operation} for operation in DICTIONARY_OPERATIONS]

    def estimate_s(self, cell: Cell) -> float:
        settings, costs = _settings(cell), CellCosts.of(cell)
        arms = len(settings.size_bytes) + 3
        once_s = max(costs.codec_s / 4, costs.sample_s)
        timed_s = sum(arms * (2 * costs.rounds * once_s + live * _DIGEST_S) for live in settings.live)
        return len(cell.formats) * (_CPU_FORMAT_S + timed_s)


KINDS: Final = (DictionarySizes(), DictionaryCpu())
REMOVED_KINDS: Final = (  # measured up to commit d1750749
    RemovedKind(
        "dictionary-codecs",
        columns=_COLUMNS,
        meanings={
            "arm": "stream (zstd as everywhere), lean (codec 5's frame, no dictionary), one-shot (zstd in one call), "
            "gzip, lz4"
        },
    ),
    RemovedKind(
        "dictionary-broker",
        columns=_COLUMNS,
        meanings={"operation": "the path", "arm": "the base is v2 with plain zstd"},
        differ_in_a_round=("format", *DictionaryCpu.differ_in_a_round),
    ),
)
