"""The section about reading offsets and timestamps from the beginning of a batch (its prefix).

It shows the work that a reader saves, and the checks that it skips.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kfbench.measure.kinds.prefix import LOST
from kfbench.report.data.arms import Arm, arms_of, paired
from kfbench.report.data.axes import AXES, level
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import percent, span
from kfbench.report.section import Answer, Texts
from kfbench.tables import Column, Interval, Table, plain_columns


@dataclass(frozen=True, kw_only=True)
class PrefixTimes:
    """The prefixes of all batches on one workload setting, format and codec, compared with the whole batches.

    Args:
        whole, prefix: the measurements of decompressing with the codec alone.
        decompress: CPU ratio of the prefix to the whole, for the codec alone.
        read: CPU ratio of the prefix to the whole, for the format's reader.
        again: CPU ratio of decompressing the whole to itself (A/A).
    """

    whole: Arm
    prefix: Arm
    decompress: Interval
    read: Interval
    again: Interval

    @property
    def decompressed_share(self) -> float:
        return self.prefix.plain_bytes / self.whole.plain_bytes

    @property
    def is_all(self) -> bool:
        """True if the whole batches had to be decompressed, because the prefix ends in the last block of the codec."""
        return self.prefix.plain_bytes == self.whole.plain_bytes


def prefix_times(results: Results) -> list[PrefixTimes]:
    """Return the comparison of prefix and whole for each workload setting, format, codec and level."""
    cells: dict[tuple[str, str, str], dict[tuple[str, str], Arm]] = {}
    for arm in arms_of(results.grid_arms("prefix")):
        cells.setdefault((arm.cell_id, arm.format, arm.with_codec), {})[arm.operation, arm.arm] = arm
    found = []
    for arms in cells.values():
        whole, prefix = arms["decompress", "measure"], arms["decompress-prefix", "measure"]
        found.append(
            PrefixTimes(
                whole=whole,
                prefix=prefix,
                decompress=paired(prefix, whole),
                read=paired(arms["decode-metadata", "measure"], arms["decode", "measure"]),
                again=paired(arms["decompress", "aa"], whole),
            )
        )
    return found


def prefix_tables(results: Results, times: Sequence[PrefixTimes]) -> list[Table]:
    """Return one table per format: the work of decompressing and reading only the beginning of each batch (the prefix).

    The numbers are relative to the whole batch.
    """
    varied = [axis for axis in results.axes if len({row.whole.point[axis] for row in times}) > 1] or ["batch_size"]
    found = []
    for name in in_order(row.whole.format for row in times):
        part = [row for row in times if row.whole.format == name]
        part.sort(key=lambda row: ([row.whole.point[axis] for axis in varied], row.whole.codec, row.whole.level))
        body = tuple(
            (
                *(level(axis, row.whole.point[axis]) for axis in varied),
                row.whole.with_codec,
                row.whole.plain_bytes / row.whole.batches,
                row.whole.metadata_bytes / row.whole.batches,
                row.prefix.plain_bytes / row.whole.batches,
                row.decompressed_share,
                row.prefix.compressed_bytes / row.whole.compressed_bytes,
                row.decompress,
                row.read,
            )
            for row in part
        )
        found.append(
            Table(
                name=f"prefix-{name}",
                caption=f"{name}: offsets and times from the prefix of each batch",
                columns=(
                    *(AXES[axis] for axis in varied),
                    Column(name="codec"),
                    *plain_columns("plain (bytes per batch)", "metadata of it (bytes per batch)", digits=0),
                    *plain_columns("decompressed (bytes per batch)", digits=0),
                    *plain_columns("decompressed (× plain)", "compressed bytes taken (× all)", digits=3),
                    *plain_columns("codec CPU (× whole)", "reader CPU (× whole)", digits=3),
                ),
                rows=body,
                notes=("Codec: the library alone. Reader: decode_metadata against decode, CRC included in both.",),
            )
        )
    return found


def lost_table() -> Table:
    return Table(
        name="prefix-lost",
        caption="Checks that a reader of the prefix gives up",
        columns=(Column(name="check"), Column(name="what goes unseen")),
        rows=tuple(LOST.items()),
    )


def prefix_sentence(times: Sequence[PrefixTimes]) -> str:
    """Describe how much time is saved if only a part of the batch is decompressed, and the cost if all of it is."""
    part, whole = [row for row in times if not row.is_all], [row for row in times if row.is_all]
    sentences = []
    if part:
        shares = [row.decompressed_share for row in part]
        sentences += [
            f"In {len(part)} of {len(times)} cases a part is decompressed.",
            f"This part is {percent(min(shares))} to {percent(max(shares))} of the plain bytes.",
            f"There the reader's CPU is {_reader(part)} × that for the whole.",
        ]
    if whole:
        sentences += [
            f"In {len(whole)} of {len(times)} cases all is decompressed: the prefix ends in its codec's last block.",
            f"There the reader's CPU is {_reader(whole)} ×.",
        ]
    dearer = sum(row.decompress.low > 1 for row in times), sum(row.read.low > 1 for row in times)
    return " ".join(
        [
            *sentences,
            f"The prefix costs the reader more than the whole in {dearer[1]} cases (interval above 1).",
            f"It costs the codec more in {dearer[0]} cases.",
            f"The whole against itself is {span([row.again.median for row in times], 3)}.",
        ]
    )


def _reader(times: Sequence[PrefixTimes]) -> str:
    return span([row.read.median for row in times])


def prefix_answer(run: Views) -> Answer | str:
    times = prefix_times(run.results)
    if not times:
        return "no prefix was timed beside its whole"
    return Answer(
        means=prefix_sentence(times),
        texts=Texts(rows=run.results.grid_arms("prefix")),
        tables=(*prefix_tables(run.results, times), lost_table()),
    )
