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
# # What does a span of time in a batch cost?
#
# v2 and v3 store a record's timestamp as a delta to the batch's first, a zig-zag varint: one byte up to 63 ms, two up to 8.2 s,
# three up to 17 minutes. A long linger, a slow topic or a replay of old events spreads a batch's timestamps, and every record
# pays the step. v1 stores eight bytes whatever they say, v0 none.
#
# *How to read it*: bytes are exact. The spread is from the first to the last timestamp of a batch; between them timestamps rise evenly,
# so that in a batch that spans an hour some records still have short deltas.
#
# *What would change the answer*: timestamps that bunch together or go back; a batch of one record, which has no spread; a codec (last
# table), to which spread timestamps are the least compressible of a batch's fields.

# %% tags=["parameters"]
RUN = None  # a report or a run, such as "../reports/2026-11-24.1"; None: the newest report
FORMAT = "v2"  # of the second and third table
STEPS = {64: "64 ms", 8192: "8.2 s", 1_048_576: "17 min"}  # where a zig-zag varint needs one byte more

# %%
from pathlib import Path

from IPython.display import SVG, Markdown

from kfbench.report.topics import axis
from kfbench.report.render import plots
from kfbench.report.publish import newest
from kfbench.report.data.results import REFERENCE, Results
from kfbench.report.render.words import codec_words
from kfbench.store import open_run

run = open_run(RUN or newest(Path("../reports")))
results = Results(run.measurements())
Markdown(f"{run.path.name}: profile `{run.manifest['profile']}`, `{run.manifest['command']}`")

# %% [markdown]
# ## Overhead over the spread
# The formats whose overhead depends on it; the dotted lines are the varint's steps.

# %%
part = results.along(results.uncompressed, "timestamp_spread_ms")
overhead = part.pivot("overhead_per_record")
SVG(plots.steps(overhead[axis.moving(overhead)], STEPS, "timestamp spread"))

# %%
Markdown(f"Overhead in bytes a record ({part.setting}). {axis.step_sentence(part)}")

# %%
overhead.round(2)

# %% [markdown]
# ## Batch size and spread together
# Overhead of `FORMAT` in bytes a record: the batch's header becomes small as batches grow, the deltas do not.


# %%
def at_reference(rows):
    """The rows in which all axes but batch size and spread are at the reference point."""
    for name, value in REFERENCE.items():
        if name not in ("batch_size", "timestamp_spread_ms"):
            rows = rows[rows[name] == value]
    return rows[rows["format"] == FORMAT]


plain = at_reference(results.uncompressed)
plain.pivot_table(index="batch_size", columns="timestamp_spread_ms", values="overhead_per_record").round(2)

# %% [markdown]
# ## Under a codec
# All bytes a record of `FORMAT`. Against the column of equal timestamps: what the spread costs once a codec has seen it.

# %%
packed = at_reference(results.grid_bytes)
packed = packed.assign(codec=[codec_words(row.codec, row.level) for row in packed.itertuples()])
sizes = packed.pivot_table(index=["codec", "batch_size"], columns="timestamp_spread_ms", values="size_per_record")
spreads = sizes.count(axis=1)
sizes = sizes[spreads == spreads.max()].dropna(axis=1)  # where the most spreads were measured
sizes.round(1)

# %%
sizes.sub(sizes[0], axis=0).round(2)
