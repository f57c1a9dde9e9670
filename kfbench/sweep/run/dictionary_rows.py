"""Measure one cell of a kind with dictionaries. A format that fails, or cannot be measured, gets rows with a reason."""

from collections.abc import Iterator

from kfbench.errors import IllegalCombination, InvalidDictionary
from kfbench.formats import FORMATS
from kfbench.measure.dictionary import measure_dictionaries
from kfbench.measure.dictionary_broker import measure_dictionary_paths
from kfbench.measure.dictionary_codecs import measure_other_codecs
from kfbench.measure.dictionary_cpu import measure_codecs
from kfbench.measure.schema import Row
from kfbench.measure.verify import Unverified
from kfbench.sweep.definition.cell import Cell
from kfbench.sweep.definition.legality import illegal
from kfbench.sweep.run.cell_rows import encode_input, error_text, failed, parts_of, sample_of, skipped, times_of


def dictionary_rows(cell: Cell) -> Iterator[Row]:
    """Measure sizes without a codec, with plain zstd and with dictionaries, in each format."""
    settings = cell.dictionary
    assert settings is not None
    for name in cell.formats:
        try:
            sample = sample_of(cell)
            if reason := illegal(name, sample, cell.codec):
                yield skipped(name, reason)
                continue
            rows = measure_dictionaries(
                FORMATS[name],
                encode_input(cell, sample),
                sizes_bytes=settings.size_bytes,
                shares=settings.trained_share,
                parts=settings.parts,
                training_batch=settings.training_batch,
            )
            yield from ({"format": name} | row for row in list(rows))
        except Exception as error:
            yield failed(cell, name, error)


def dictionary_codec_rows(cell: Cell) -> Iterator[Row]:
    """Measure sizes under other codecs, alone and with the same dictionary, in each format."""
    settings = cell.dictionary
    assert settings is not None
    for name in cell.formats:
        try:
            sample = sample_of(cell)
            rows = measure_other_codecs(
                FORMATS[name],
                encode_input(cell, sample),
                size_bytes=settings.size_bytes[0],
                share=settings.trained_share[0],
                training_batch=settings.training_batch,
            )
            yield from ({"format": name} | row for row in list(rows))
        except Exception as error:
            yield from _reasons(cell, name, error)


def dictionary_cpu_rows(cell: Cell) -> Iterator[Row]:
    """Time the codec alone, plain and with dictionaries. Formats are timed separately, because bodies differ."""
    settings = cell.dictionary
    assert settings is not None
    for name in cell.formats:
        try:
            sample = sample_of(cell)
            if reason := illegal(name, sample, cell.codec):
                yield from (skipped(name, reason) | part for part in parts_of(cell))
                continue
            arms = measure_codecs(
                FORMATS[name],
                encode_input(cell, sample),
                sizes_bytes=settings.size_bytes,
                share=settings.trained_share[0],
                training_batch=settings.training_batch,
                live=settings.live,
                rounds=cell.rounds,
                sample_ns=cell.sample_us * 1_000,
            )
            found = [{"format": name} | times_of(cell, arm.samples) | arm.columns for arm in arms]
        except Exception as error:
            found = list(_reasons(cell, name, error))
        yield from found


def dictionary_broker_rows(cell: Cell) -> Iterator[Row]:
    """Time broker paths, with plain zstd and with a dictionary. The base is v2 with plain zstd."""
    settings = cell.dictionary
    assert settings is not None
    try:
        sample = sample_of(cell)
        arms = measure_dictionary_paths(
            [FORMATS[name] for name in cell.formats],
            encode_input(cell, sample),
            size_bytes=settings.size_bytes[0],
            share=settings.trained_share[0],
            training_batch=settings.training_batch,
            rounds=cell.rounds,
            sample_ns=cell.sample_us * 1_000,
            seed=cell.seed,
        )
        for path, arm in arms:
            row: Row = {"format": arm.format, "arm": arm.arm, "operation": path, "dictionary": "plain"}
            if arm.dictionary is not None:
                row |= {"dictionary": "trained", "dictionary_size_bytes": settings.size_bytes[0]}
                row["trained_share"] = settings.trained_share[0]
            if arm.samples is None:
                yield row | failed(cell, arm.format, arm.error or Unverified("it was not timed"))
            else:
                yield row | arm.columns | times_of(cell, arm.samples) | {"records": arm.records}
    except Exception as error:
        for name in cell.formats:
            yield from _reasons(cell, name, error)


def _reasons(cell: Cell, name: str, error: Exception) -> Iterator[Row]:
    """Yield the rows of a format that has failed. A topic that is too small for a dictionary is skipped."""
    is_too_small = isinstance(error, InvalidDictionary | IllegalCombination)
    row = skipped(name, error_text(error)) if is_too_small else failed(cell, name, error)
    yield from (row | part for part in parts_of(cell))
