"""Estimate the seconds that a cell takes when its kernels are compiled already.

The constants were fitted to the times of cells in the run ESTIMATED_FROM. The constants of codec levels that this run
does not have were fitted to some cells of the profile `full`. Those of dictionaries were fitted to a run of the profile
`dictionary` of 2026-11-25, on two cores of an AMD EPYC. Those of rivals were fitted to some cells of the profile
`rivals`. A test compares the estimates with a newer run.
"""

from typing import Final

from kfbench.measure.callgrind import COUNTED_CALLS
from kfbench.measure.cpu import OPERATIONS, READINGS, Operation
from kfbench.measure.prefix import ARMS
from kfbench.measure.rivals_cpu import RIVAL_OPERATIONS
from kfbench.sweep.definition.cell import Cell

ESTIMATED_FROM: Final = "run 2026-11-22.4 (reports/README.md)"
ESTIMATED_ON: Final = "two cores of an Intel Xeon where little else ran"
# Bytes before compression / (seconds of compressing once and decompressing once), in MB/s, by codec and level.
_MB_PER_S: Final = {
    ("none", None): 8_000, ("gzip", 1): 100, ("gzip", 6): 100, ("gzip", 9): 20, ("lz4", 1): 140, ("lz4", 17): 17,
    ("zstd", 9): 170, ("zstd", 19): 5,
}  # fmt: skip
_OTHER_MB_PER_S: Final = 1_500
_US_PER_BATCH: Final = {"none": 0.05, "gzip": 13}
_OTHER_US_PER_BATCH: Final = 6
_RECORD_NS: Final = 15  # encoding or decoding in a format without a codec
_METADATA_BYTES: Final = 30  # per record
_WARM_UP_CALLS: Final = 8
_SAMPLE: Final = 1.1  # a sample takes this multiple of its shortest time, because it is a whole number of calls
_BYTES_FORMAT_S: Final = 1.3e-3
_BYTES_RECORD_NS: Final = 130  # encoding, decoding and comparing all fields
_CPU_S: Final = 0.08
_COLD_S: Final = 0.9
_COLD_BATCH_US: Final = 1.4
_PREFIX_S: Final = 0.1
_BROKER_S: Final = 0.05
_BROKER_BYTES_PER_S: Final = 2e9
_MODEL_S: Final = 0.1
_MODEL_RECORD_NS: Final = 70  # generating a record
_MODEL_FORMAT_NS: Final = 6  # computing the size of a record in one format
_FLOOR_S: Final = 4e-4
_FLOOR_RECORD_NS: Final = 150  # generating a record and counting its values for the entropy

_DICTIONARY_S: Final = 0.05
_DICTIONARY_RECORD_NS: Final = 420  # encoding, verifying and making samples
_DICTIONARY_CPU_S: Final = 0.2  # training, and compressing for the sizes, in one format
_TRAINED_BYTES_PER_S: Final = 3e7
_DIGEST_S: Final = 1e-3  # making, checking and digesting a copy of a dictionary

_INSTRUCTIONS_S: Final = 1.5  # in one format: making the records, switching callgrind on and off
_CALLGRIND_SLOWER: Final = 50

_RIVAL_CELL_S: Final = 0.02
_RIVAL_BATCH_S: Final = 1.7e-3  # in one arm
_RIVAL_RECORD_S: Final = 1.1e-5
_RIVAL_CPU_S: Final = 1.0
_RIVAL_CALL_S: Final = 5e-4  # one call per batch, in the mean over all arms and operations
_RIVAL_CALL_RECORD_S: Final = 3e-6


def operations_of(cell: Cell) -> tuple[Operation, ...]:
    """Return the operations, such as encode and decode, that a CPU cell times in each format."""
    return (READINGS[cell.kind],) if cell.kind in READINGS else OPERATIONS


def estimate_s(cell: Cell) -> float:
    """Estimate the seconds that a cell takes.

    The estimate decides how cells are grouped into tasks, which cells exceed the budget, and the time limit of a cell.
    """
    payload, rounds = cell.payload_bytes + _METADATA_BYTES * cell.records, cell.rounds + _WARM_UP_CALLS
    speed = _MB_PER_S.get((cell.codec, cell.level), _OTHER_MB_PER_S) * 1e6
    codec_s = payload / speed + cell.batches * _US_PER_BATCH.get(cell.codec, _OTHER_US_PER_BATCH) * 1e-6
    plain_s, sample_s = cell.records * _RECORD_NS * 1e-9, _SAMPLE * cell.sample_us * 1e-6
    match cell.kind:
        case "model":
            return _MODEL_S + cell.records * (_MODEL_RECORD_NS + len(cell.formats) * _MODEL_FORMAT_NS) * 1e-9
        case "floor":
            return _FLOOR_S + cell.records * _FLOOR_RECORD_NS * 1e-9
        case "bytes":
            return len(cell.formats) * (_BYTES_FORMAT_S + cell.records * _BYTES_RECORD_NS * 1e-9 + codec_s)
        case "broker":  # in the worst case the records are decompressed and compressed again
            once_s = codec_s + plain_s + payload / _BROKER_BYTES_PER_S
            return _BROKER_S + (len(cell.formats) + 1) * rounds * max(once_s, sample_s)
        case "dictionary":
            assert cell.dictionary is not None
            sizes, shares = len(cell.dictionary.size_bytes), len(cell.dictionary.trained_share)
            logs = shares * (sizes + 3) / 2 + 2
            trained_s = shares * sizes * payload / _TRAINED_BYTES_PER_S
            once_s = cell.records * _DICTIONARY_RECORD_NS * 1e-9 + codec_s
            return _DICTIONARY_S + len(cell.formats) * (logs * once_s + trained_s)
        case "dictionary-cpu":
            assert cell.dictionary is not None
            arms, lives = len(cell.dictionary.size_bytes) + 3, cell.dictionary.live
            once_s = max(codec_s / 4, sample_s)
            timed_s = sum(arms * (2 * rounds * once_s + live * _DIGEST_S) for live in lives)
            return len(cell.formats) * (_DICTIONARY_CPU_S + timed_s)
        case "rivals-cpu":
            arms = len(RIVAL_OPERATIONS) * (len(cell.formats) + 3)
            return _RIVAL_CPU_S + arms * 2 * rounds * (
                cell.batches * _RIVAL_CALL_S + cell.records * _RIVAL_CALL_RECORD_S
            )
        case "rivals":
            arm_s = cell.batches * _RIVAL_BATCH_S + cell.records * _RIVAL_RECORD_S
            return _RIVAL_CELL_S + len(cell.formats) * arm_s
        case "instructions":
            calls = 1.5 * (COUNTED_CALLS + 1)  # a call for half of the records takes half as long
            return len(cell.formats) * (_INSTRUCTIONS_S + calls * _CALLGRIND_SLOWER * (codec_s + plain_s))
        case "prefix":
            return _PREFIX_S + ARMS * len(cell.formats) * rounds * max(codec_s / 4, sample_s)
    arms = len(operations_of(cell)) * (len(cell.formats) + 1)
    if cell.cache == "cold":
        return _COLD_S + arms * rounds * (codec_s + plain_s + cell.batches * _COLD_BATCH_US * 1e-6)
    return _CPU_S + arms * rounds * max(codec_s / 2 + plain_s, sample_s)
