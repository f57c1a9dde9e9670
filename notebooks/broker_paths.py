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
# # What does a format cost the broker?
#
# A broker hands batches on as they are, sets a few fields where they stand, or takes a batch apart and builds it anew. Which of the
# three a format allows on a path decides most of its cost there; the layout decides the rest.
#
# *How to read it*: what became of the batches, and how many bytes a codec had to take apart or make, are counted and exact.
# CPU ratios between formats of one path are paired, with an interval. Two paths were timed apart: between them only medians
# are compared.
#
# *What would change the answer*: disk, page cache and network, which are not measured and are most of what zero-copy saves; a JVM's
# codecs; the share of clients that need converting, which is `kfbench migrate`'s question.

# %% tags=["parameters"]
RUN = None  # a report or a run, such as "../reports/2026-11-24.1"; None: the newest report
CODEC, FORMATS = "lz4", ["v0", "v1", "v2", "v3", "v3-headers-first"]  # of the tables

# %%
from pathlib import Path

import pandas as pd
from IPython.display import SVG, Markdown

from kfbench.report.topics import broker_paths
from kfbench.report.render import plots
from kfbench.report.publish import newest
from kfbench.report.data.results import Results
from kfbench.store import open_run

run = open_run(RUN or newest(Path("../reports")))
paths = broker_paths.Paths(Results(run.measurements()))
assert CODEC in set(paths.rows["codec"]), f"{run.path.name} has no broker paths under {CODEC}: choose another RUN or CODEC"
Markdown(f"{run.path.name}: profile `{run.manifest['profile']}`, `{run.manifest['command']}`. {broker_paths.noise_sentence(paths)}")

# %% [markdown]
# ## All paths beside v2's append
# CPU time a record, by codec, relative to what v2's append takes under the same codec. Paths that touch nothing have no place on a
# logarithmic axis.

# %%
SVG(plots.paths(broker_paths.pictured(paths), "CPU time relative to v2's append with the same codec"))

# %% [markdown]
# ## What becomes of the batches
# *untouched*: handed on. *in place*: header fields were set where they stand. *shifted*: set, but what follows has moved. *rewritten*: built
# anew. *dropped*: left out.

# %%
measured = pd.DataFrame(
    [
        {
            "path": row.operation + (f" to {row.to}" if row.to else ""),
            "format": row.format,
            "batches": broker_paths.done(row),
            "decompressed": row.decompressed_bytes / row.source_bytes,
            "recompressed": row.recompressed_bytes / row.source_bytes,
            "cpu_s_per_gib": broker_paths.s_per_gib(row),
            "ratio": paths.ratio(row),
        }
        for operation in paths.operations
        for row in paths.shown(operation)
        if row.status == "ok" and row.codec == CODEC and row.format in FORMATS
    ]
)
order = list(dict.fromkeys(measured["path"]))
measured.pivot(index="path", columns="format", values="batches").loc[order].fillna("–")

# %% [markdown]
# ## What the codec has to do
# Plain bytes that were decompressed, then those that were compressed again, for each byte that came in. KIP-31 is about the second of them on
# append, KIP-931 about the first. NaN: no such path in that format, or none in this run.

# %%
measured.pivot(index="path", columns="format", values="decompressed").loc[order].round(2)

# %%
measured.pivot(index="path", columns="format", values="recompressed").loc[order].round(2)

# %% [markdown]
# ## CPU
# Seconds of CPU for each GiB that comes in. Seeks, fetches and expiry look one thing up or hand on what they were given: their
# call costs the same whatever the size, so read theirs as "next to nothing".

# %%
measured.pivot(index="path", columns="format", values="cpu_s_per_gib").loc[order].round(3)

# %% [markdown]
# Against v2 on the same path, in the same rounds: median and 95 % interval.

# %%
ratios = measured[measured["ratio"].notna() & (measured["format"] != "v2")]
words = [f"{each.median:.2f} ({each.low:.2f}–{each.high:.2f})" for each in ratios["ratio"]]
against = ratios.assign(ratio=words).pivot(index="path", columns="format", values="ratio").fillna("–")
against.loc[[path for path in order if path in against.index]]
