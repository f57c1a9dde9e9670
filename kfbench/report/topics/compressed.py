"""What a codec leaves of each format at the reference point."""

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.axes import HEADLINE_BATCHES
from kfbench.report.data.results import Results, as_cell
from kfbench.report.data.shown_formats import worth_a_column
from kfbench.report.render.tables import Column, Table
from kfbench.report.render.words import batch_words, codecs_of, percent


def shown(results: Results) -> pd.DataFrame:
    """Rows with a codec at the reference point, for every batch size that the codecs were swept over."""
    rows = results.grid_bytes
    with_codec = rows[rows["codec"] != "none"]
    if with_codec.empty:
        return with_codec
    sizes = sorted(with_codec["batch_size"].unique())
    if len(sizes) > len(HEADLINE_BATCHES):
        sizes = [size for size in sizes if size in HEADLINE_BATCHES]
    cells = [results.nearest(with_codec[with_codec["batch_size"] == s], batch_size=s)["cell_id"].iloc[0] for s in sizes]
    found = rows[rows["cell_id"].isin(cells)].copy()
    found["arm"] = codecs_of(found)
    base = found[found["format"] == BASE_FORMAT].set_index(["cell_id", "arm"])["size_bytes"]
    by_arm = zip(found["cell_id"], found["arm"], found["size_bytes"], strict=True)
    found["to_base"] = [size / base.get((cell_id, arm), np.nan) for cell_id, arm, size in by_arm]
    plain = rows[(rows["codec"] == "none") & rows["cell_id"].isin(cells)].set_index(["cell_id", "format"])["size_bytes"]
    by_format = zip(found["cell_id"], found["format"], found["size_bytes"], strict=True)
    found["to_plain"] = [size / plain.get((cell_id, name), np.nan) for cell_id, name, size in by_format]
    return found


def table(rows: pd.DataFrame, column: str, *, name: str, caption: str, digits: int) -> Table:
    if column == "to_base":
        rows = rows[rows["format"] != BASE_FORMAT]
    pivot = rows.pivot(index=["batch_size", "arm"], columns="format", values=column)
    pivot = pivot[worth_a_column(pivot)]
    order = list(dict.fromkeys(rows.sort_values(["codec", "level"], kind="stable")["arm"]))
    order.sort(key=lambda arm: (arm != "none",))
    index = sorted(pivot.index, key=lambda key: (key[0], order.index(key[1])))
    return Table(
        name=name,
        caption=caption,
        columns=(
            Column(name="records a batch"),
            Column(name="codec"),
            *(Column(name=f, digits=digits) for f in pivot.columns),
        ),
        rows=tuple((int(size), arm, *map(as_cell, pivot.loc[(size, arm)])) for size, arm in index),
        notes=("Compressed bytes depend on the codec's build: the versions stand under Environment.",)
        if column == "size_per_record"
        else (),
    )


def sentence(rows: pd.DataFrame) -> str:
    rows = rows[(rows["format"] == "v3") & (rows["codec"] != "none") & rows["to_base"].notna()]
    if rows.empty:
        return ""
    low, high = rows["to_base"].min() - 1, rows["to_base"].max() - 1
    worst, best = rows.loc[rows["to_base"].idxmax()], rows.loc[rows["to_base"].idxmin()]
    return (
        f"Once compressed, v3 takes {percent(low)} ({best['arm']}, {batch_words(best['batch_size'])}) to "
        f"{percent(high)} ({worst['arm']}, {batch_words(worst['batch_size'])}) more bytes than {BASE_FORMAT} with the "
        "same codec; minus is a saving."
    )
