"""Measure one cell of a kind with dictionaries. A format that fails, or cannot be measured, gets rows with a reason."""

from collections.abc import Iterator

from kfbench.errors import IllegalCombination, InvalidDictionary
from kfbench.formats import FORMATS
from kfbench.measure.dictionary import measure_dictionaries
from kfbench.measure.dictionary_cpu import measure_codecs
from kfbench.measure.schema import Row
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


def _reasons(cell: Cell, name: str, error: Exception) -> Iterator[Row]:
    """Yield the rows of a format that has failed. A topic that is too small for a dictionary is skipped."""
    is_too_small = isinstance(error, InvalidDictionary | IllegalCombination)
    row = skipped(name, error_text(error)) if is_too_small else failed(cell, name, error)
    yield from (row | part for part in parts_of(cell))
