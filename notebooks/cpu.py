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
# Time to encode and to decode, checksums included, as a ratio to v2: round by round, every format timed once in each round, in random
# order, in one process. The number is the median over the rounds, with a 95 % interval.
#
# *How to read it*: first the noise, then the ratios. v2 was timed a second time as if it were another format (A/A); what its ratios
# do is what chance does. A ratio inside the grey band is a tie, however narrow its interval.
#
# *What would change the answer*: another implementation (these are kfbench's kernels; the report compares Kafka's Java and two
# Python clients), data that no cache holds (the run's cold cells), a codec (which costs many times what a format does), batches
# sent one by one.

# %% tags=["parameters"]
RUN = None  # a report or a run, such as "../reports/2026-11-24.1"; None: the newest report
AXIS = "batch_size"  # or key_bytes, value_bytes, headers
FORMATS = ["v0", "v1", "v3", "v3-headers-first"]  # as far as the run has them
FORMAT, OPERATION = "v3", "encode"  # of the raw samples

# %%
from pathlib import Path

import pandas as pd
from IPython.display import SVG, Markdown

from kfbench.report.topics import control, cpu
from kfbench.report.data import noise
from kfbench.report.render import plots
from kfbench.report.publish import newest
from kfbench.report.data.results import Results, per_call
from kfbench.store import open_run

run = open_run(RUN or newest(Path("../reports")))
results = Results(run.measurements())
Markdown(f"{run.path.name}: profile `{run.manifest['profile']}`, `{run.manifest['command']}`")

# %% [markdown]
# ## Noise

# %%
Markdown(f"{noise.head(run.manifest.get('noise'))} {control.aa_sentence(results)}")

# %% [markdown]
# ## Ratios to v2

# %%
part = cpu.along(results, AXIS)
timed = part.rows[part.rows["ratio"].notna() & part.rows["format"].isin([*FORMATS, "v2"])]
timed = timed.assign(**{name: [getattr(each, name) for each in timed["ratio"]] for name in ("median", "low", "high")})
drawn = timed[timed["format"] != "v2"].sort_values(AXIS)
drawn = drawn.assign(label=[f"{AXIS} {at:,}" for at in drawn[AXIS]])
panels = {operation: drawn[drawn["operation"] == operation] for operation in ("encode", "decode")}
SVG(plots.ratios(panels, "CPU time relative to v2", results.noise))

# %%
Markdown(f"Median ratio to v2 ({part.setting}):")

# %%
timed.pivot(index=["operation", AXIS], columns="format", values="median").round(3)

# %% [markdown]
# Is it told apart from 1? True where the whole interval lies outside what the A/A arm reads. NaN: not measured there.

# %%
low, high = results.noise
apart = (timed["high"] < low) | (timed["low"] > high)
timed.assign(apart=apart).pivot(index=["operation", AXIS], columns="format", values="apart").drop(columns="v2")

# %% [markdown]
# ## Nanoseconds a record
# They are of one host on one day: ratios carry over, these hardly do.

# %%
timed.pivot(index=["operation", AXIS], columns="format", values="ns_per_record").round(1)

# %% [markdown]
# ## The raw samples
# A run stores every sample, so another statistic is a line. Here: the rounds of one cell, `FORMAT` against v2 and v2 against itself, by
# four statistics. Where they disagree, look at the samples before you believe any of them.

# %%
cell = results.nearest(results.cpu[(results.cpu["codec"] == "none") & (results.cpu["operation"] == OPERATION)])
samples = pd.DataFrame(
    {
        f"{row.format} A/A" if row.arm == "aa" else row.format: per_call(row) / row.records
        for row in cell.itertuples()
        if row.format in (FORMAT, "v2")
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
