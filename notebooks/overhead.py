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
# # What does a record cost, by batch size, key size and timestamp spread?
#
# Overhead is what a format adds to keys, values and headers. v0 and v1 pay a fixed amount per record. v2 and v3 pay for a header once
# per batch, and for a few varints per record: the lengths of key and value, the deltas of offset and timestamp.
#
# *How to read it*: bytes are exact, and the same on every machine. Find the row of your topic: `kfbench inspect` prints the records per
# batch and the times. Values have 100 bytes here, and there are no headers.
#
# *What would change the answer*: a codec (last two tables), which takes most of what repeats in a batch. Larger values, beside which no
# format matters. Timestamps that bunch together or go back: here they rise evenly, with jitter, from the batch's first to its last.

# %% tags=["parameters"]
RUN = None  # a report or a run, such as "../reports/2026-11-24.1"; None: the newest report
FORMATS = ["v0", "v1", "v2", "v3"]
BATCH, KEY, SPREAD = 100, 16, 0  # records per batch, bytes, ms: where an axis is not the one that varies; key -1: null
FORMAT = "v2"  # of the tables of two axes
CODEC, LEVEL = "lz4", 9  # of the last two tables

# %%
from pathlib import Path

from IPython.display import Markdown

from kfbench.report.publish import newest
from kfbench.store import open_run

run = open_run(RUN or newest(Path("../reports")))
rows = run.measurements()
rows = rows[(rows["kind"] == "bytes") & (rows["status"] == "ok") & rows["format"].isin(FORMATS)]
AXES = {"batch_size": BATCH, "key_bytes": KEY, "timestamp_spread_ms": SPREAD}
plain = rows[rows["grid"] == "batch-key-spread"].astype(dict.fromkeys(AXES, int))
plain = plain.assign(overhead=plain["overhead_bytes"] / plain["records"])
Markdown(f"{run.path.name}: profile `{run.manifest['profile']}`, `{run.manifest['command']}`")

# %% [markdown]
# ## By batch size
# Overhead in bytes per record.



# %%
def along(table, axis):
    """The rows in which all other axes are at the values set above. A batch of one record has no spread."""
    for name, value in AXES.items():
        if name != axis:
            table = table[table[name] == value]
    return table


by_batch = along(plain, "batch_size").pivot_table(index="batch_size", columns="format", values="overhead")
by_batch.round(2)

# %%
by_batch.plot(loglog=True, figsize=(6, 3), grid=True, xlabel="records per batch", ylabel="overhead, bytes per record");

# %% [markdown]
# From how many records per batch a format takes fewer bytes than another. Only the batch sizes above were measured. `-`: never.

# %%
smaller = by_batch.apply(lambda other: by_batch.lt(other, axis=0).idxmax().where(by_batch.lt(other, axis=0).any()))
smaller.rename_axis(index="from here on", columns="smaller than").astype("Int64").astype(str).replace("<NA>", "-")

# %% [markdown]
# ## By key size
# A length is a zig-zag varint in v2 and v3: one byte up to 63, two up to 8,191. -1 is a null key.

# %%
along(plain, "key_bytes").pivot_table(index="key_bytes", columns="format", values="overhead").round(2)

# %% [markdown]
# ## By timestamp spread
# Milliseconds from the first to the last timestamp of a batch. A delta in v2 and v3 takes one byte up to 63 ms, two up to 8.2 s, three up
# to 17 minutes. v1 stores eight bytes whatever the time is, v0 none.

# %%
along(plain, "timestamp_spread_ms").pivot_table(index="timestamp_spread_ms", columns="format", values="overhead").round(2)

# %% [markdown]
# ## Two axes together
# Overhead of `FORMAT`: batch size and spread. The header's share falls as batches grow, that of the deltas does not.

# %%
one = plain[plain["format"] == FORMAT]
one[one["key_bytes"] == KEY].pivot_table(index="batch_size", columns="timestamp_spread_ms", values="overhead").round(1)

# %% [markdown]
# Batch size and key size.

# %%
one[one["timestamp_spread_ms"] == SPREAD].pivot_table(index="batch_size", columns="key_bytes", values="overhead").round(1)

# %% [markdown]
# ## Under a codec
# All bytes relative to v2 with the same codec and level: the difference that is left once repetition is gone.

# %%
packed = rows[(rows["grid"] == "compressed-key-spread") & (rows["codec"] == CODEC) & (rows["level"] == LEVEL)]
packed = packed.astype(dict.fromkeys(AXES, int)).assign(size=packed["size_bytes"] / packed["records"])
sizes = along(packed, "batch_size").pivot_table(index="batch_size", columns="format", values="size")
sizes.div(sizes["v2"], axis=0).round(3)

# %% [markdown]
# What the spread costs `FORMAT`: bytes per record more than with equal timestamps.

# %%
one = packed[(packed["format"] == FORMAT) & (packed["key_bytes"] == KEY)]
spread = one.pivot_table(index="batch_size", columns="timestamp_spread_ms", values="size").dropna()
spread.sub(spread[0], axis=0).round(2)
