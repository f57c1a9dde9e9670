# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What does a record cost, by batch size?
#
# Overhead is what a format adds to keys, values and headers. v0 and v1 pay it message by message; v2 and v3 pay most of it
# once a batch. So the first question to ask of a topic is how many records its batches have.
#
# *How to read it*: bytes are exact, and the same on every machine. A format is worth its change where its line lies below
# the others' at **your** records a batch (`kfbench inspect` tells).
#
# *What would change the answer*: a codec, which takes most of what repeats in a batch (last table); keys, values and spans of time
# for which lengths and deltas need more bytes; payload so large that no format matters.

# %% tags=["parameters"]
RUN = None  # a report or a run, such as "../reports/2026-11-24.1"; None: the newest report
CODEC, FORMATS = "lz4", ["v0", "v1", "v2", "v3"]  # of the last table

# %%
from pathlib import Path

import pandas as pd
from IPython.display import SVG, Markdown

from kfbench.report.topics import break_even
from kfbench.report.render import plots
from kfbench.report.publish import newest
from kfbench.report.data.results import REFERENCE, Results
from kfbench.report.render.words import codec_words
from kfbench.store import open_run

run = open_run(RUN or newest(Path("../reports")))
results = Results(run.measurements())
Markdown(f"{run.path.name}: profile `{run.manifest['profile']}`, `{run.manifest['command']}`")

# %% [markdown]
# ## Without a codec
# One line a format; both axes are logarithmic. `results.along` is the slice through the reference point; `results.slices` has all
# others.

# %%
part = results.along(results.uncompressed, "batch_size")
overhead = part.pivot("overhead_per_record")
SVG(plots.overhead(overhead))

# %%
Markdown(f"Overhead in bytes a record ({part.setting}):")

# %% [markdown]
# *floor*, where the run has it: a lean header of 29 bytes and a count a batch, and the entropy of the columns of lengths, times and
# offsets (docs/methodology.md).

# %%
floors = results.floors.set_index("cell_id")["overhead_per_record"]
cells = part.rows.groupby("batch_size")["cell_id"].first()
overhead.assign(floor=cells.map(floors)).dropna(axis=1, how="all").round(2)

# %% [markdown]
# ## Where the lines cross
# From how many records a batch a format is smaller than another, here and over every setting of the run.

# %%
crossings = break_even.table(results)
pd.DataFrame(crossings.rows, columns=[column.label for column in crossings.columns])

# %%
Markdown(break_even.sentence(results))

# %% [markdown]
# ## Under a codec
# All bytes relative to v2 under the same codec and level: what of the difference is left once repetition is gone. Set `CODEC` above.

# %%
packed = results.grid_bytes[(results.grid_bytes["codec"] == CODEC) & results.grid_bytes["format"].isin(FORMATS)]
for axis, value in REFERENCE.items():
    if axis != "batch_size":
        packed = packed[packed[axis] == value]
packed = packed.assign(codec=[codec_words(row.codec, row.level) for row in packed.itertuples()])
sizes = packed.pivot_table(index=["codec", "batch_size"], columns="format", values="size_per_record")
sizes.div(sizes["v2"], axis=0).round(3) if len(sizes) else Markdown(f"This run has no {CODEC} at the reference point.")
