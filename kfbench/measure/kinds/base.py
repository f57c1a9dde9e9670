"""The class Kind, and what kinds of measurement share: the records of a cell, rows of failures, costs."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct, field

from kfbench.broker.source import find
from kfbench.errors import IllegalCombination
from kfbench.formats import FORMATS
from kfbench.measure.cell import Cell
from kfbench.measure.columns import ResultColumn, Row
from kfbench.measure.cpu import Operation, Samples
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.paths import PATHS
from kfbench.workloads import Sample, Workload
from kfbench.workloads.recorded import NotFetched

Illegal = Literal["refuse", "skip"]
DIFFER_IN_A_ROUND: Final = ("format", "arm")
# A log without these batch header fields means something else to readers, so a format must be able to store them. A
# format may lose other fields.
NEEDED: Final = {
    "is_transactional": "transactions",
    "is_control": "control batches",
    "delete_horizon_ms": "delete horizons",
}
NOT_SENT: Final = frozenset({"is_control", "last_offset", "delete_horizon_ms"})

T = TypeVar("T")


class TookTooLong(BaseException):
    """The time limit of a cell has passed.

    It is a BaseException, because the limited code may catch every Exception and continue.
    """


class Unavailable(Exception):
    """A format does not have the measurement. Its rows are skipped, with this reason."""


# Errors of a busy host. Measuring a cell reads and writes no file, so an OSError comes from the host.
BUSY: Final = (TookTooLong, MemoryError, OSError)


class Amount(NamedTuple):
    """The wanted size of a measurement: about `records` records, and at most `payload_bytes` bytes of payload.

    batches: at most this number of batches.
    """

    records: int
    payload_bytes: int
    batches: int = sys.maxsize


class Extent(NamedTuple):
    records: int
    batches: int
    payload_bytes: int


class CodecLevel(NamedTuple):
    """A codec and its level. level: None if the codec has no levels."""

    codec: str
    level: int | None


class PathTarget(NamedTuple):
    """A broker path or an operation, and the format that the path converts to; None if it does not convert."""

    path: str
    to: str | None


class GridBlock(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A [[grid]] block: each combination of axis levels, codecs and codec levels is measured in each of its formats.

    A block in a file may also have tables with the settings of kinds. They replace those of the file.

    Args:
        measure: the kinds of measurement.
        axes: the values (levels) of each axis, a parameter of the workload. Named workloads have one axis, batch_size.
            Without it they have the batches that their file describes.
        workload: a family of workloads, used unless `workloads` is given.
        workloads: named workloads (datasets/workloads). "NAME" is the default variant, "NAME/VARIANT" another one. Both
            may be patterns: "*" matches the default variant of every workload, "*/*" every variant.
        seeds: replace the seed of the file. Each cell is repeated for each seed.
        codecs: the levels of each codec. An empty list means the default level.
        paths: the broker paths, such as "append", for kinds that measure paths.
        operations: what is counted beside the broker paths; None: encode and decode.
        to: the target formats of the paths that convert.
        illegal: what happens if a format does not support a cell, for example zstd or headers in v0 and v1. With
            "refuse", the sweep is invalid. With "skip", the result has a row with the reason.
    """

    name: str
    title: str
    analysis: str
    measure: list[str]
    formats: list[str]
    axes: dict[str, list[Any]] = {}
    workload: str = "grid"
    workloads: list[str] = []
    seeds: list[int] = []
    codecs: dict[str, list[int]] = field(default_factory=lambda: {"none": []})
    paths: list[str] = []
    operations: tuple[Operation, ...] | None = None
    to: list[str] = []
    illegal: Illegal = "refuse"


class GridPlan(NamedTuple):
    """A [[grid]] block with a kind's settings, of which the kind makes its cells.

    Args:
        where: the file and the block, for messages.
        settings: the kind's settings of the block, or else of its file.
        extent: chooses the whole batches that fit an amount.
    """

    where: str
    block: GridBlock
    settings: Any
    codecs: Sequence[CodecLevel]
    extent: Callable[[Amount], Extent]


class Kernels(NamedTuple):
    """The kernels that measuring a cell needs, beside those that encode, decode and size.

    Args:
        readings: the operations that read a part of a log, by format.
        path: the broker path; empty if there is none.
    """

    readings: Mapping[str, Sequence[Operation]] = {}
    path: str = ""


class Attempts(NamedTuple, Generic[T]):
    """The results of a function by format, and the rows of the formats for which it failed."""

    results: dict[str, T]
    failures: dict[str, list[Row]]


class Kind:
    """A kind of measurement: what is measured of a cell, and all that a sweep must know of it.

    Args:
        name: the name in the key `measure` of a sweep and in the column `kind`.
        section: the TOML table with its settings, in a sweep file and in each of its blocks.
        settings: the class of these settings. Kinds with the same section share it.
        ranges: the least and largest number of settings that are lists.
        columns: the columns of the result table that no other kind has.
        meanings: what a shared column means for this kind.
        is_timed: True if its cells run one at a time, and wait for the host lock.
        has_cold_mode: True if each call may wait for its data from memory.
        rides_on: the kind in whose stage its cells run, made with the same records; "" for a stage of its own.
        has_own_blocks: True if blocks do not share cells, because each has its own settings.
        has_slices: True if cells are parts of one workload. Their first record and their number identify them.
        has_targets: True if a cell measures one broker path or operation, which its rows name in `operation`.
        counts_operations: True if the key `operations` of a block says what it counts.
        can_divide: True if each format of a cell may be measured apart from the others.
        needs_base: True if v2 must be among the formats, because every ratio is to it.
        is_verified: True if `kfbench verify` checks the records of its cells.
        is_headline: True if a comparison of two runs lists all its times, not only those that differ.
        differ_in_a_round: the columns in which arms of the same rounds differ.
        most_batch_bytes: the largest batch in v2; None: what a broker accepts.
    """

    name: str
    section: str
    settings: type[Struct]
    ranges: Mapping[str, tuple[float, float]] = {}
    columns: Sequence[ResultColumn] = ()
    meanings: Mapping[str, str] = {}
    is_timed: bool = False
    has_cold_mode: bool = False
    rides_on: str = ""
    has_own_blocks: bool = False
    has_slices: bool = False
    has_targets: bool = False
    counts_operations: bool = False
    can_divide: bool = False
    needs_base: bool = False
    is_verified: bool = True
    is_headline: bool = False
    differ_in_a_round: Sequence[str] = DIFFER_IN_A_ROUND
    most_batch_bytes: int | None = None

    def names(self) -> Sequence[str]:
        """Return what the key `formats` of a block may name."""
        return tuple(FORMATS)

    def problems(self, block: GridBlock, settings: Any) -> Iterator[str]:
        """Yield why the kind cannot measure the block: the key, and what is wrong."""
        return iter(())

    def targets(self, block: GridBlock) -> list[PathTarget]:
        """Return what the kind measures by name, without duplicates; one target without a name if there is nothing."""
        return [PathTarget("", None)]

    def amount(self, settings: Any, codec: str) -> Amount:
        """Return the size of a cell. Settings may have a smaller payload for cells with a codec."""
        payload_bytes = settings.payload_bytes
        if codec != "none":
            payload_bytes = getattr(settings, "codec_payload_bytes", payload_bytes)
        return Amount(settings.records, payload_bytes)

    def cells_per_point(self, block: GridBlock, settings: Any, codecs: int) -> int:
        """Return the number of cells for one workload and seed."""
        return codecs * len(self.targets(block))

    def settle(self, cell: Cell, plan: GridPlan) -> Cell:
        """Return the cell with its settings, such as rounds. Raises InvalidConfig."""
        return cell

    def cells(self, cell: Cell, plan: GridPlan) -> Iterator[Cell]:
        """Yield the cells of one workload and seed, with their sizes and formats."""
        cell = self.settle(cell, plan)
        for (codec, level), (path, to) in product(plan.codecs, self.targets(plan.block)):
            extent = plan.extent(self.amount(plan.settings, codec))
            formats = tuple(name for name in plan.block.formats if name != to)
            yield replace(cell, codec=codec, level=level, path=path, to=to, formats=formats, **extent._asdict())

    def rows(self, cell: Cell) -> Iterator[Row]:
        """Measure a cell, and yield its rows. A format that fails gets rows with its error.

        Formats are measured one after another. A kind that measures them together replaces this.
        """
        apart = self.attempt(cell, lambda name: list(self.rows_of_format(cell, name)))
        for name in cell.formats:
            yield from ({"format": name, "status": "ok"} | row for row in apart.results.get(name, ()))
            yield from apart.failures.get(name, ())

    def rows_of_format(self, cell: Cell, name: str) -> Iterable[Row]:
        """Measure a cell in one format. Its row needs neither the name nor a status."""
        raise NotImplementedError

    def attempt(self, cell: Cell, function: Callable[[str], T]) -> Attempts[T]:
        """Call a function for each format of a cell. Raises the errors in BUSY, and keeps all others as rows."""
        attempts = Attempts[T]({}, {})
        for name in cell.formats:
            try:
                attempts.results[name] = function(name)
            except Exception as error:
                attempts.failures[name] = self.failures(cell, name, error)
        return attempts

    def failures(self, cell: Cell, name: str, error: Exception) -> list[Row]:
        return [failed(cell, name, error) | key for key in self.row_keys(cell)]

    def row_keys(self, cell: Cell) -> list[Row]:
        """Return the columns in which the rows of one format differ, for each row. They name what is measured."""
        return [{}]

    def estimate_s(self, cell: Cell) -> float:
        """Return about how many seconds a cell takes when its kernels are compiled."""
        raise NotImplementedError

    def kernels(self, cell: Cell) -> Kernels | None:
        """Return what to compile before a cell is measured; None: nothing."""
        return Kernels()

    def note(self, cells: Sequence[Cell]) -> str | None:
        """Return a line to say before these cells are measured, such as what is not installed here; None: nothing.

        cells: all cells of this kind, perhaps none.
        """
        return None


class RemovedKind(NamedTuple):
    """A kind that kfbench no longer measures. Stored runs may have its rows. Fields: see Kind."""

    name: str
    columns: Sequence[ResultColumn] = ()
    meanings: Mapping[str, str] = {}
    differ_in_a_round: Sequence[str] = DIFFER_IN_A_ROUND


@lru_cache(maxsize=2)
def sample_at(workload: Workload, records: int, seed: int) -> Sample:
    """Generate records. The last two samples are cached, because measurements of other codecs use the same records."""
    return workload.generate(records=records, seed=seed)


def sample_of(cell: Cell) -> Sample:
    return sample_at(cell.workload, cell.records, cell.seed)


def encode_input(cell: Cell, sample: Sample) -> EncodeInput:
    return EncodeInput(
        records=sample.records,
        bounds=sample.bounds,
        codec=cell.codec,
        level=cell.level,
        batch_fields=sample.batch_fields,
    )


def legal_input(cell: Cell, name: str, sample: Sample | None = None) -> EncodeInput:
    """Return the cell's records, or those of `sample`, for a format. Raises Unavailable for an `illegal` one."""
    sample = sample or sample_of(cell)
    if reason := illegal(name, sample, cell.codec, cell.path if cell.path in PATHS else "", cell.to):
        raise Unavailable(reason)
    return encode_input(cell, sample)


def illegal(format_name: str, sample: Sample, codec: str, path: str = "", to: str | None = None) -> str | None:
    """Return the reason why the format cannot store the sample or take the broker path; None if it can.

    `to` is the format that the path converts to. It must support the codec and broker paths, but may lose headers.
    """
    shapes, capabilities = sample.shapes, FORMATS[format_name].capabilities
    if shapes.has_headers and not capabilities.headers:
        return f"{format_name} has no headers"
    for needed, meaning in NEEDED.items():
        if needed in sample.batch_fields.set_fields - capabilities.batch_fields:
            return f"{format_name} has no {meaning}"
    if path:
        first, last = sample.bounds[:-1], sample.bounds[1:] - 1
        has_holes = bool((shapes.offsets[last] - shapes.offsets[first] != last - first).any())
        if sample.batch_fields.set_fields & NOT_SENT or has_holes:
            return f"{path} starts with batches that clients send: no control batches and no compacted batches"
    is_idempotent = "producer_id" in sample.batch_fields.set_fields
    if path == "append-convert" and to and FORMATS[to].holds_messages and is_idempotent:
        return f"a broker refuses to convert idempotent batches to {to}"
    for name in (format_name, to):
        if name and codec not in FORMATS[name].capabilities.codecs:
            return f"{name} has no {codec}"
        if name and path:
            try:
                find(FORMATS[name], for_append=path == "append")
            except IllegalCombination as error:
                return str(error)
    return PATHS[path].missing(FORMATS[format_name], shapes) if path else None


def times_of(cell: Cell, times: Samples) -> Row:
    return {
        "status": "ok",
        "records": cell.records,
        "inner_loops": times.inner_loops,
        "cpu_ns": times.cpu_ns.tolist(),
        "wall_ns": times.wall_ns.tolist(),
    }


def error_text(error: BaseException) -> str:
    """Return an error as one line: its class and message. The path in an OSError is left out, because hosts differ."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"{type(error).__name__}: {' '.join(words.split())}"


def skipped(name: str, reason: str) -> Row:
    return {"format": name, "status": "skipped", "error": reason}


def failed(cell: Cell, name: str, error: Exception | str) -> Row:
    """Return the row of a format that has failed. Raises the error if it is one of a busy host."""
    if isinstance(error, str):
        return {"format": name, "status": "error", "error": f"{cell.title}: {name}: {error}"}
    if isinstance(error, BUSY):
        raise error
    if isinstance(error, NotFetched | Unavailable):
        return skipped(name, str(error))
    return {"format": name, "status": "error", "error": f"{cell.title}: {name}: {error_text(error)}"}


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
# A new context for compressing and one for decompressing, on two cores of an AMD EPYC.
_NEW_CONTEXTS_US: Final[Mapping[tuple[str, int | None], int]] = {
    ("zstd", 1): 17, ("zstd", 3): 27, ("zstd", 9): 150, ("zstd", 19): 50_000,
}  # fmt: skip
_OTHER_NEW_CONTEXTS_US: Final = 1
_RECORD_NS: Final = 15  # encoding or decoding in a format without a codec
_METADATA_BYTES: Final = 30  # per record
_WARM_UP_CALLS: Final = 8
_SAMPLE: Final = 1.1  # a sample takes this multiple of its shortest time, because it is a whole number of calls


class CellCosts(NamedTuple):
    """Estimated seconds of the parts of a cell's measurement.

    The constants were fitted to the run ESTIMATED_FROM; those of codec levels that it does not have, to cells of the
    profile `full`.

    Args:
        payload_bytes: the bytes before compression.
        codec_s: compressing and decompressing all batches once.
        plain_s: encoding or decoding all records once, without a codec.
        sample_s: a sample.
        rounds: the rounds and the calls that warm up.
    """

    payload_bytes: int
    codec_s: float
    plain_s: float
    sample_s: float
    rounds: int

    @classmethod
    def of(cls, cell: Cell) -> "CellCosts":
        payload_bytes = cell.payload_bytes + _METADATA_BYTES * cell.records
        speed = _MB_PER_S.get((cell.codec, cell.level), _OTHER_MB_PER_S) * 1e6
        codec_s = payload_bytes / speed + cell.batches * _US_PER_BATCH.get(cell.codec, _OTHER_US_PER_BATCH) * 1e-6
        if cell.context == "new":
            codec_s += cell.batches * _NEW_CONTEXTS_US.get((cell.codec, cell.level), _OTHER_NEW_CONTEXTS_US) * 1e-6
        return cls(
            payload_bytes=payload_bytes,
            codec_s=codec_s,
            plain_s=cell.records * _RECORD_NS * 1e-9,
            sample_s=_SAMPLE * cell.sample_us * 1e-6,
            rounds=cell.rounds + _WARM_UP_CALLS,
        )
