"""The section about compressed bytes of each format. Axes other than the batch size have the grid's default values."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.axes import HEADLINE_BATCHES, setting
from kfbench.report.data.results import Results, as_cell
from kfbench.report.data.shown_formats import NEW, PICTURED, worth_a_column
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words, percent
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing, Texts
from kfbench.tables import Column, Table, number, plain_columns


def compressed_answer(run: Views) -> Answer | str:
    rows = compressed_rows(run.results)
    if rows.empty:
        return "no bytes with a codec"
    ratio_caption = f"Relative to {BASE_FORMAT} with the same codec"
    ratios = codecs_table(rows, "to_base", name="codecs-ratio", caption=ratio_caption, digits=4)
    plain_caption = "Relative to the same format uncompressed"
    return Answer(
        means=compressed_sentence(rows),
        texts=Texts(rows=rows[rows["codec"] != "none"]),
        figures=(codecs_figure(rows, [column.name for column in ratios.columns if column.name in PICTURED]),),
        tables=(
            codecs_table(rows, "size_per_record", name="codecs", caption="Bytes per record, payload too", digits=2),
            ratios,
        ),
        more=(codecs_table(rows, "to_plain", name="codecs-plain", caption=plain_caption, digits=3),),
    )


def compressed_rows(results: Results) -> pd.DataFrame:
    """Return the sizes with and without a codec, at the batch sizes measured with codecs.

    The other axes are nearest to the grid's defaults. Added columns: to_base, the bytes relative to v2 under the same
    codec; to_plain, the bytes relative to the same format without a codec.
    """
    rows = results.grid_bytes
    with_codec = rows[rows["codec"] != "none"]
    if with_codec.empty:
        return with_codec
    sizes = sorted(with_codec["batch_size"].unique())
    if len(sizes) > len(HEADLINE_BATCHES):
        sizes = [size for size in sizes if size in HEADLINE_BATCHES]
    cells = [results.nearest(with_codec[with_codec["batch_size"] == s], batch_size=s)["cell_id"].iloc[0] for s in sizes]
    rows = rows[rows["cell_id"].isin(cells)]
    to_base = _relative(rows, rows[rows["format"] == BASE_FORMAT], ["cell_id", "with_codec"])
    to_plain = _relative(rows, rows[rows["codec"] == "none"], ["cell_id", "format"])
    return rows.assign(to_base=to_base, to_plain=to_plain)


def _relative(rows: pd.DataFrame, base: pd.DataFrame, keys: list[str]) -> list[float]:
    """Divide the size of each row by that of the base row with the same keys. The result is NaN without a base row."""
    sizes = base.set_index(keys)["size_per_record"].to_dict()
    points = zip(*(rows[key] for key in keys), strict=True)
    return [size / sizes.get(point, np.nan) for point, size in zip(points, rows["size_per_record"], strict=True)]


def codecs_table(rows: pd.DataFrame, column: str, *, name: str, caption: str, digits: int) -> Table:
    """Return a table of one column of the rows, with a row per batch size and codec, and a column per format."""
    if column == "to_base":
        rows = rows[rows["format"] != BASE_FORMAT]
    pivot = rows.pivot(index=["batch_size", "with_codec"], columns="format", values=column)
    pivot = pivot[worth_a_column(pivot)]
    order = list(dict.fromkeys(rows.sort_values(["codec", "level"], kind="stable")["with_codec"]))
    order.sort(key=lambda codec: codec != "none")
    index = sorted(pivot.index, key=lambda key: (key[0], order.index(key[1])))
    note = "Compressed bytes depend on the codec's build: the versions stand under Environment."
    return Table(
        name=name,
        caption=caption,
        columns=(*plain_columns("records per batch", "codec"), *(Column(name=f, digits=digits) for f in pivot.columns)),
        rows=tuple((int(size), codec, *map(as_cell, pivot.loc[(size, codec)])) for size, codec in index),
        notes=(note,) if column == "size_per_record" else (),
    )


def compressed_sentence(rows: pd.DataFrame) -> str:
    """Give the least and the greatest ratio of v3's compressed bytes to v2's."""
    rows = rows[(rows["format"] == NEW) & (rows["codec"] != "none") & rows["to_base"].notna()]
    if rows.empty:
        return ""
    best, worst = (rows.loc[rows["to_base"].idxmin()], rows.loc[rows["to_base"].idxmax()])
    values = setting({"value_bytes": best["value_bytes"]})
    return (
        f"With {values}, {NEW} changes {BASE_FORMAT}'s bytes under the same codec by {percent(best['to_base'] - 1)} to "
        f"{percent(worst['to_base'] - 1)}. The best is {best['with_codec']} at {batch_words(best['batch_size'])}. "
        f"The worst is {worst['with_codec']} at {batch_words(worst['batch_size'])}."
    )


def codecs_figure(rows: pd.DataFrame, formats: Sequence[str]) -> Figure | Missing:
    panels = {}
    sizes = sorted(rows["batch_size"].unique())
    for size in sizes if len(sizes) <= 3 else (sizes[0], sizes[len(sizes) // 2], sizes[-1]):
        part = rows[(rows["batch_size"] == size) & rows["format"].isin(formats) & rows["to_base"].notna()]
        part = part.assign(packed=part["codec"] != "none").sort_values(["packed", "codec", "level"], kind="stable")
        if len(part):
            panel = part.rename(columns={"with_codec": "label", "to_base": "median"})[["label", "format", "median"]]
            panels[f"batch of {number(int(size))}"] = panel.assign(low=np.nan, high=np.nan)
    if not panels:
        return Missing(
            what="Compressed size by codec and format",
            why=f"no bytes of {BASE_FORMAT} and of another format with a codec",
        )
    return Figure(
        name="compressed",
        svg=plots.ratios(panels, f"bytes relative to {BASE_FORMAT}, same codec"),
        alt=f"Compressed bytes relative to {BASE_FORMAT} by codec. {compressed_sentence(rows)}",
        caption=f"Left of 1× a format takes fewer bytes than {BASE_FORMAT} with the same codec and level.",
        numbers="codecs-ratio",
    )
