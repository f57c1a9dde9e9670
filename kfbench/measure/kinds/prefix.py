"""The kind "prefix": reading only the beginning of a compressed batch, against reading whole batches."""

from collections.abc import Iterator
from typing import Any, Final

from kfbench.formats import FORMATS
from kfbench.measure.cell import Cell
from kfbench.measure.columns import INT64, Row, added
from kfbench.measure.kinds.base import Block, Costs, Kernels, failed, sample_of, times_of
from kfbench.measure.kinds.cpu import TimedKind
from kfbench.measure.prefix import ARMS, has_prefix, measure_prefixes
from kfbench.measure.verify import verify_records

_CELL_S: Final = 0.1


class Prefix(TimedKind):
    name = "prefix"
    columns = (
        added("compressed_bytes", INT64, "bytes", "compressed bytes that were read"),
        added("plain_bytes", INT64, "bytes", "bytes that were decompressed from them"),
        added("metadata_bytes", INT64, "bytes", "plain bytes that offsets, timestamps and lengths need"),
    )
    meanings = {
        "operation": "decompress or decompress-prefix (codec alone), decode or decode-metadata",
        "arm": "the base is decompress",
        "inner_loops": "the same for all arms of a cell and format",
    }
    differ_in_a_round = ("operation", "arm")  # its arms are operations of one format

    def problems(self, block: Block, settings: Any) -> Iterator[str]:
        formats = [name for name in block.formats if name in FORMATS]
        if without := [name for name in formats if not has_prefix(FORMATS[name])]:
            yield f"formats: {without[0]} does not store headers first, so it has no prefix to read"
        if "none" in block.codecs:
            yield "codecs.none: prefix cells need a codec: they compare how much is decompressed"

    def rows(self, cell: Cell) -> Iterator[Row]:
        """Time reading only the prefix of each format's batches, and reading whole batches.

        The prefix has the offsets, times and lengths of a batch's records. Formats are timed separately, because the
        prefix of a format is compared with whole batches of the same format.
        """
        for name in cell.formats:
            try:
                sample = sample_of(cell)
                log = FORMATS[name].encode(sample.records, sample.bounds, cell.codec, cell.level, sample.batch_fields)
                verify_records(FORMATS[name], sample.records, sample.bounds, sample.batch_fields, log)
                sample_ns = cell.sample_us * 1_000
                arms = measure_prefixes(FORMATS[name], log, cell.codec, rounds=cell.rounds, sample_ns=sample_ns)
            except Exception as error:
                yield failed(cell, name, error)
                continue
            for arm in arms:
                yield {
                    "format": name,
                    "operation": arm.operation,
                    "arm": arm.arm,
                    "batches": len(log),
                    "compressed_bytes": arm.compressed_bytes,
                    "plain_bytes": arm.plain_bytes,
                    "metadata_bytes": arm.metadata_bytes,
                } | times_of(cell, arm.samples)

    def estimate_s(self, cell: Cell) -> float:
        costs = Costs.of(cell)
        return _CELL_S + ARMS * len(cell.formats) * costs.rounds * max(costs.codec_s / 4, costs.sample_s)

    def kernels(self, cell: Cell) -> Kernels | None:
        return Kernels({name: ("decode-metadata",) for name in cell.formats if has_prefix(FORMATS[name])})


KINDS: Final = (Prefix(),)
