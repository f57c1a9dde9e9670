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
# # What does a format cost in CPU, and can this run tell?
#
# Time to encode and to decode, checksums included, as a ratio to v2. Every format is timed once in each round, in random order, in one
# process. The number is the median of the ratios over the rounds.
#
# *How to read it*: first the noise, then the ratios. v2 was timed a second time as if it were another format (A/A): its ratios are what
# chance does. A ratio within their middle 95 % is a tie.
#
# *What would change the answer*: another implementation (these are kfbench's kernels; the report compares Kafka's Java and two Python
# clients), data that no cache holds (the run's cold cells), a codec (which costs many times what a format does).

# %% tags=["parameters"]
RUN = None  # a report or a run, such as "../reports/2026-11-24.1"; None: the newest report
FORMATS = ["v0", "v1", "v3"]
FORMAT, OPERATION, BATCH = "v3", "encode", 100  # of the raw samples

# %%
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import Markdown

from kfbench.report.publish import newest
from kfbench.store import open_run

run = open_run(RUN or newest(Path("../reports")))
rows = run.measurements()
rows = rows[(rows["kind"] == "cpu") & (rows["status"] == "ok") & (rows["grid"] == "cpu-batch-key-spread")]
rows = rows.astype({"batch_size": int})
timed = rows[(rows["arm"] == "measure") & rows["format"].isin([*FORMATS, "v2"])]
SAME = ["operation", "cell_id", "seed"]  # arms with the same of these were timed in the same rounds
base = timed[timed["format"] == "v2"].set_index(SAME)["cpu_ns"]


def with_ratios(arms):
    """The arms with the median of their ratios to v2, round by round."""
    arms = arms.join(base.rename("base_ns"), on=SAME)
    return arms.assign(ratio=(arms["cpu_ns"] / arms["base_ns"]).map(np.median))


Markdown(f"{run.path.name}: profile `{run.manifest['profile']}`, `{run.manifest['command']}`")

# %% [markdown]
# ## Noise
# Median ratios of v2 to itself, over the cells of the block. The run judges its own noise by more than this.

# %%
noise = with_ratios(rows[rows["arm"] == "aa"]).groupby("operation")["ratio"].describe(percentiles=[0.025, 0.5, 0.975])
noise.drop(columns="std").round(3)

# %%
judged = run.manifest["noise"]
Markdown(f"Noisy: {'; '.join(judged['seen'])}." if judged["noisy"] else "The run found itself quiet.")

# %% [markdown]
# ## Ratios to v2
# 16-byte keys, 100-byte values, equal timestamps.

# %%
ratios = with_ratios(timed)
ratios = ratios[(ratios["key_bytes"] == 16) & (ratios["timestamp_spread_ms"] == 0)]
shown = ratios[ratios["format"] != "v2"]
shown.pivot(index=["operation", "batch_size"], columns="format", values="ratio").round(3)

# %% [markdown]
# Which of them are no tie: the median lies outside the middle 95 % of the A/A arm.

# %%
low, high = (shown["operation"].map(noise[share]) for share in ("2.5%", "97.5%"))
is_apart = (shown["ratio"] < low) | (shown["ratio"] > high)
shown.assign(is_apart=is_apart).pivot(index=["operation", "batch_size"], columns="format", values="is_apart")

# %% [markdown]
# ## Nanoseconds per record
# They are of one host on one day: ratios carry over, these hardly do.

# %%
per_call = ratios["cpu_ns"].map(np.median) / ratios["inner_loops"]
ratios.assign(ns=per_call / ratios["records"]).pivot(index=["operation", "batch_size"], columns="format", values="ns").round(1)

# %% [markdown]
# ## The raw samples
# A run stores every sample. Here: ns per record of one cell, `FORMAT` against v2 and v2 against itself, by four statistics. Where they
# disagree, look at the samples before you believe any of them.

# %%
cell = ratios.loc[(ratios["operation"] == OPERATION) & (ratios["batch_size"] == BATCH), "cell_id"].iloc[0]
arms = rows[(rows["cell_id"] == cell) & (rows["operation"] == OPERATION) & rows["format"].isin([FORMAT, "v2"])]
samples = pd.DataFrame(
    {
        f"{arm.format} A/A" if arm.arm == "aa" else arm.format: arm.cpu_ns / arm.inner_loops / arm.records
        for arm in arms.itertuples()
    }
)
samples.describe().round(2)

# %%
others = samples.columns.drop("v2")
pd.DataFrame(
    {
        "median of ratios": samples[others].div(samples["v2"], axis=0).median(),
        "ratio of medians": samples[others].median() / samples["v2"].median(),
        "ratio of means": samples[others].mean() / samples["v2"].mean(),
        "ratio of minima": samples[others].min() / samples["v2"].min(),
    }
).round(3)
