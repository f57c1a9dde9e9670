"""The kind "broker": the time and the work of a broker's paths (`kfbench.measure.paths`)."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from kfbench.formats import FORMATS
from kfbench.measure.cell import Cell
from kfbench.measure.columns import INT64, Row, added
from kfbench.measure.kinds.base import CellCosts, GridBlock, Kernels, PathTarget, failed, legal_input, times_of
from kfbench.measure.kinds.cpu import TimedKind
from kfbench.measure.path_arms import measure_path
from kfbench.measure.paths import PATHS
from kfbench.measure.verify import Unverified

_CELL_S: Final = 0.05
_BYTES_PER_S: Final = 2e9


def path_targets(block: GridBlock) -> list[PathTarget]:
    """Return the paths of a block, without duplicates. A path that converts appears once per target format."""
    return [
        PathTarget(path, to)
        for path in dict.fromkeys(block.paths)
        for to in (dict.fromkeys(block.to) if PATHS[path].converts else (None,))
    ]


class BrokerKind(TimedKind):
    name = section = "broker"
    columns = (
        added("source_bytes", INT64, "bytes", "size of the log that came in"),
        added("batches_untouched", INT64, "batches", "handed on as they are"),
        added("batches_in_place", INT64, "batches", "header fields were set where they stand"),
        added(
            "batches_shifted", INT64, "batches", "header fields were set, and the bytes behind the header have moved"
        ),
        added("batches_rewritten", INT64, "batches", "built anew"),
        added("batches_dropped", INT64, "batches", "left out"),
        added("converted_records", INT64, "records", "records that changed their format"),
        added("read_bytes", INT64, "bytes", "bytes read of the log: headers alone, or all of it"),
        added(
            "written_bytes", INT64, "bytes", "fields that were set, bytes that have moved, batches that were built"
        ),
        added("decompressed_bytes", INT64, "bytes", "plain bytes that the codec gave"),
        added("recompressed_bytes", INT64, "bytes", "plain bytes that the codec took"),
        added(  # measured: it includes Python's own objects, some 60 bytes of which differ between processes
            "extra_bytes",
            INT64,
            "bytes",
            "most memory that Python and numpy held during the call, beyond its input and output; memory of the codecs "
            "is not seen",
            is_measured=True,
        ),
    )  # fmt: skip
    meanings = {
        "operation": "the path",
        "arm": "without v2, the base is the first format",
        "batches": "batches that the path met",
        "size_bytes": "size of the result",
    }
    has_targets = True

    def problems(self, block: GridBlock, settings: Any) -> Iterator[str]:
        if not block.paths:
            yield 'paths: measure = ["broker"] needs paths'

    def targets(self, block: GridBlock) -> list[PathTarget]:
        return path_targets(block)

    def rows(self, cell: Cell) -> Iterator[Row]:
        """Time one broker path of all formats in one measurement, in which the formats' calls alternate.

        A format that fails, or does not support the path, gets a row with the reason.
        """
        sources, failures = self.attempt(cell, partial(legal_input, cell))
        yield from chain(*failures.values())
        if not sources:
            return
        formats, to = [FORMATS[name] for name in sources], FORMATS[cell.to] if cell.to else None
        source, sample_ns = next(iter(sources.values())), cell.sample_us * 1_000
        (key,) = self.row_keys(cell)
        for arm in measure_path(
            cell.path, formats, to, source, rounds=cell.rounds, sample_ns=sample_ns, seed=cell.seed
        ):
            row = key | {"format": arm.format, "arm": arm.arm}
            if arm.samples is None:
                yield row | failed(cell, arm.format, arm.error or Unverified("it was not timed"))
            else:
                yield row | arm.columns | times_of(cell, arm.samples)

    def row_keys(self, cell: Cell) -> list[Row]:
        return [{"arm": "measure", "operation": cell.path, "to_format": cell.to}]

    def estimate_s(self, cell: Cell) -> float:
        """In the worst case the records are decompressed and compressed again."""
        costs = CellCosts.of(cell)
        once_s = costs.codec_s + costs.plain_s + costs.payload_bytes / _BYTES_PER_S
        return _CELL_S + (len(cell.formats) + 1) * costs.rounds * max(once_s, costs.sample_s)

    def kernels(self, cell: Cell) -> Kernels | None:
        return Kernels(path="" if cell.to else cell.path)  # a conversion needs only readers and writers of formats


KINDS: Final = (BrokerKind(),)
