"""Parts of the rows of a cell, and the records that it measures."""

from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from kfbench.batches import NO_FIELDS
from kfbench.log.segment import join_records
from kfbench.measure.cpu import READINGS, Samples
from kfbench.measure.dictionary_cpu import DICTIONARY_OPERATIONS
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.rivals_cpu import EACH, RIVAL_OPERATIONS
from kfbench.measure.schema import Row
from kfbench.sweep.definition.cell import Cell
from kfbench.sweep.run.estimate import operations_of
from kfbench.sweep.run.time_limit import TookTooLong
from kfbench.workloads import Sample, Workload
from kfbench.workloads.recorded.public import NotFetched
from kfbench.workloads.recorded.topics import TOPICS

# Errors of a busy host. Measuring a cell reads and writes no file, so an OSError comes from the host.
BUSY: Final = (TookTooLong, MemoryError, OSError)


def error_text(error: BaseException) -> str:
    """Return an error as one line: its class and message. The path in an OSError is left out, because hosts differ."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{type(error).__name__}: {' '.join(words.split())}"


@lru_cache(maxsize=2)
def sample_at(workload: Workload, records: int, seed: int) -> Sample:
    """Generate records. The last two samples are cached, because measurements of other codecs use the same records."""
    return workload.generate(records=records, seed=seed)


def sample_of(cell: Cell) -> Sample:
    """Return the cell's records, behind as many of the topic that precedes them (`DictionarySettings.preceded_by`)."""
    if cell.dictionary is None or not cell.dictionary.preceded_by:
        return sample_at(cell.workload, cell.records, cell.seed)
    first = TOPICS[cell.dictionary.preceded_by]
    count = min(cell.records, first.recorded)
    batch_size = cell.axes["batch_size"]
    parts = [sample_at(each, count, cell.seed) for each in (replace(first, batch_size=batch_size), cell.workload)]
    records = join_records([part.records for part in parts])
    records = records.at_offsets(np.arange(len(records)))
    bounds = np.append(parts[0].bounds, count + parts[1].bounds[1:])
    return Sample(shapes=records.shapes, bounds=bounds, batch_fields=NO_FIELDS, payload=lambda: records)


def encode_input(cell: Cell, sample: Sample) -> EncodeInput:
    return EncodeInput(
        records=sample.records,
        bounds=sample.bounds,
        codec=cell.codec,
        level=cell.level,
        batch_fields=sample.batch_fields,
    )


def times_of(cell: Cell, times: Samples) -> Row:
    return {
        "status": "ok",
        "records": cell.records,
        "inner_loops": times.inner_loops,
        "cpu_ns": times.cpu_ns.tolist(),
        "wall_ns": times.wall_ns.tolist(),
    }


def parts_of(cell: Cell) -> list[Row]:
    """Return the columns in which the rows of one format differ, for each row. They name what is measured."""
    match cell.kind:
        case kind if kind == "cpu" or kind in READINGS:
            return [{"arm": "measure", "operation": operation} for operation in operations_of(cell)]
        case "dictionary-cpu":
            return [{"arm": "measure", "operation": operation} for operation in DICTIONARY_OPERATIONS]
        case "rivals-cpu":
            return [{"arm": EACH, "operation": operation} for operation in RIVAL_OPERATIONS]
        case "broker" | "instructions":
            return [{"arm": "measure", "operation": cell.path, "to_format": cell.to}]
        case "model":
            return [{"start": cell.start, "records": cell.records}]
        case _:
            return [{}]


def skipped(name: str, reason: str) -> Row:
    return {"format": name, "status": "skipped", "error": reason}


def failed(cell: Cell, name: str, error: Exception | str) -> Row:
    """Return the row of a format that has failed. Raises the error if it is one of a busy host."""
    if isinstance(error, str):
        return {"format": name, "status": "error", "error": f"{cell.title}: {name}: {error}"}
    if isinstance(error, BUSY):
        raise error
    if isinstance(error, NotFetched):
        return skipped(name, str(error))
    return {"format": name, "status": "error", "error": f"{cell.title}: {name}: {error_text(error)}"}
