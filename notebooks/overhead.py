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
# The overhead table of the newest published run. It is read, not measured: `make report` makes a new run.

# %%
from pathlib import Path

from IPython.display import HTML, SVG, Markdown

from kfbench.report import plots, tables
from kfbench.report.publish import newest
from kfbench.report.results import Results
from kfbench.store import open_run

root = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "reports").is_dir())
run = open_run(newest(root / "reports"))
results = Results(run.measurements())
Markdown(f"{run.path.name}: profile `{run.manifest['profile']}`, `{run.manifest['command']}`")

# %% [markdown]
# Overhead is what a format adds to keys, values and headers. One line a format; both axes are logarithmic.

# %%
part = results.along(results.uncompressed, "batch_size")
SVG(plots.overhead(part.pivot("overhead_per_record")))

# %%
HTML(tables.axis_table(part, "overhead_per_record", name="overhead", caption="Overhead, bytes a record").to_html())

# %% [markdown]
# Where the lines cross: from how many records a batch a format is smaller than another.

# %%
HTML(tables.break_even(results).to_html())

# %%
Markdown(tables.break_even_sentence(results))
