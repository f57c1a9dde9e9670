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
# # What would a log of one's own take in another format?
#
# `kfbench what-if` from Python, on a segment that a Kafka broker wrote (`datasets/recorded`): its bytes in every format and codec, in
# batches that other settings of a producer would make, and field by field. Set `LOGS` to segments, topic-partition folders or a broker's
# data dir of yours.
#
# *How to read it*: savings are of the bytes as they lie now. Without a codec bytes are exact; under a codec they are those of our codecs at
# their default levels, from a sample of about 16 MiB of a large log (of a small one, everything).
#
# *What would change the answer*: how many records a producer packs into a batch, far more than the format; a codec where there is
# none; whether what a format leaves out (v0: timestamps, v0 and v1: headers) is needed.

# %% tags=["parameters"]
LOGS = ["../datasets/recorded/activity-lz4.log"]
FORMATS = ["v0", "v1", "v2", "v3"]
CODECS = ["none", "lz4", "zstd"]
BATCHINGS = [(5, 16 << 10), (20, 64 << 10), (100, 256 << 10)]  # linger.ms and batch.size in bytes

# %%
import pandas as pd
from IPython.display import SVG, Markdown

from kfbench.whatif.rebatch import Batching
from kfbench.report.render import plots
from kfbench.whatif.ask import what_if

found = what_if(LOGS, FORMATS, CODECS, batchings=[Batching(linger_ms, size) for linger_ms, size in BATCHINGS])
batches = sum(source.batches for source in found.sources)
Markdown(f"{found.records:,} records in {batches:,} batches, {found.now_bytes:,} bytes now.")

# %% [markdown]
# ## The same batches in another format and codec

# %%
arms = pd.DataFrame(vars(arm) for arm in found.arms).astype({"size_bytes": "Int64"})
sizes = arms.pivot(index="format", columns="codec", values="size_bytes")[CODECS]
sizes

# %% [markdown]
# Per cent saved of the bytes now; below 0 it takes more. v0 and v1 have no zstd.

# %%
(100 - 100 * sizes.div(found.base_bytes)).round(1)

# %% [markdown]
# What a format cannot carry of these records, and so leaves out: a saving that it is not.

# %%
pd.DataFrame.from_dict(found.losses, orient="index").reindex(sizes.index).fillna(0).astype(int)

# %% [markdown]
# ## The same records in other batches
# What producers with these settings would have sent. Compare the rows with one another before the columns: a larger batch usually
# saves more than any format.

# %%
other = pd.DataFrame(vars(arm) for arm in found.rebatched)
other["linger.ms"] = [each.linger_ms for each in other["batching"]]
other["batch.size"] = [each.batch_size_bytes for each in other["batching"]]
batched = other[other["format"].isin(["v2", "v3"])]  # v0 and v1 have no batches without a codec
batched = batched.assign(records_a_batch=(found.sent_records / batched["batches"]).round(1))
batched.pivot(index=["linger.ms", "batch.size", "records_a_batch"], columns=["codec", "format"], values="size_bytes")

# %% [markdown]
# ## Records a batch, without a codec
# Bytes a record beside the payload, if all batches had so many of these records.

# %%
overhead = pd.DataFrame.from_dict(found.overhead, orient="index")[FORMATS]
SVG(plots.overhead(overhead))

# %% [markdown]
# ## Where each byte goes
# Without a codec, batches as they are.

# %%
fields = pd.DataFrame(found.breakdown)[FORMATS]
fields[fields.any(axis=1)].astype("Int64")

# %%
groups = (fields / found.records).groupby([plots.group_of(field) for field in fields.index]).sum().T
SVG(plots.stacked({"batches as they are": groups}))
