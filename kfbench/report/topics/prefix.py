"""What reading offsets and times from the prefix of a batch saves, and what it gives up."""

from kfbench.measure.prefix import LOST
from kfbench.report.data.results import AXES, Results, in_order, level
from kfbench.report.render.frames import Frame
from kfbench.report.render.tables import Column, Table, listed, number
from kfbench.report.render.words import codecs_of, percent


def tables(results: Results) -> list[Table]:
    """One a format: what the prefix takes of the whole."""
    rows = results.prefixes
    rows = rows.assign(arm=codecs_of(rows))
    varied = [axis for axis in results.axes if rows[axis].nunique() > 1] or ["batch_size"]
    found = []
    for name in in_order(rows["format"]):
        part = rows[rows["format"] == name].sort_values([*varied, "codec", "level"], kind="stable")
        body = tuple(
            (
                *(level(axis, getattr(row, axis)) for axis in varied),
                row.arm,
                row.plain_bytes / row.batches,
                row.metadata_bytes / row.batches,
                row.made_bytes / row.batches,
                row.made_bytes / row.plain_bytes,
                row.taken_share,
                row.decompress,
                row.read,
            )
            for row in part.itertuples()
        )
        found.append(
            Table(
                name=f"prefix-{name}",
                caption=f"{name}: offsets and times from the prefix of each batch",
                columns=(
                    *(AXES[axis] for axis in varied),
                    Column(name="codec"),
                    Column(name="plain", unit="bytes a batch", digits=0),
                    Column(name="metadata of it", unit="bytes a batch", digits=0),
                    Column(name="decompressed", unit="bytes a batch", digits=0),
                    Column(name="decompressed", unit="× plain", digits=3),
                    Column(name="compressed bytes taken", unit="× all", digits=3),
                    Column(name="codec CPU", unit="× whole", digits=3),
                    Column(name="reader CPU", unit="× whole", digits=3),
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


def sentence(results: Results) -> str:
    """What is saved where a batch is more than one block of its codec, and what it costs where it is not."""
    rows = results.prefixes
    saving = rows[rows["made_bytes"] < rows["plain_bytes"]]
    whole = rows[rows["made_bytes"] == rows["plain_bytes"]]
    said = []
    if not saving.empty:
        shares = saving["made_bytes"] / saving["plain_bytes"]
        said.append(
            f"In {len(saving)} of {len(rows)} cases less than the whole is decompressed: {percent(shares.min())} to "
            f"{percent(shares.max())} of the plain bytes, for {_span(saving['decompress'])} times the codec's CPU "
            f"time and {_span(saving['read'])} times the reader's"
        )
    if not whole.empty:
        most = int((whole["plain_bytes"] / whole["batches"]).max())
        said.append(
            f"In {len(whole)} of {len(rows)} ({listed(sorted(set(whole['codec'])))}, batches of up to {number(most)} "
            f"plain bytes) the prefix ends in the last block of its codec and all is decompressed: there it takes "
            f"{_span(whole['decompress'])} times the codec's CPU time and {_span(whole['read'])} times the reader's"
        )
    dearer = [sum(ratio.low > 1 for ratio in rows[name]) for name in ("decompress", "read")]
    said.append(
        f"The prefix is dearer than the whole, its interval above 1, in {dearer[0]} cases for the codec and "
        f"{dearer[1]} for the reader; the whole against itself reads {_span(rows['aa'], 3)}"
    )
    return ". ".join(said) + "."


def _span(ratios: Frame, digits: int = 2) -> str:
    medians = [ratio.median for ratio in ratios]
    return f"{min(medians):.{digits}f} to {max(medians):.{digits}f}"
