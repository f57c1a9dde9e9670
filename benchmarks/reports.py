"""What a report costs: CPU and memory to render one of a small stored run, of one block of the profile `smoke` each.

asv compares one machine's commits with one another; a report of the default profile takes some twenty times as long.
"""

import time
from pathlib import Path

from kfbench.measure.schema import table
from kfbench.report.publish import render
from kfbench.store import create_run, open_run
from kfbench.sweep.cell import measure_cell
from kfbench.sweep.filter import filtered
from kfbench.sweep.grid import load_profile
from kfbench.sweep.plan import CELL_BUDGET_S
from kfbench.sweep.runner import sweep_facts

PROFILE = "smoke"
BLOCKS = ("batch-value", "ablation", "workloads")


class Render:
    """Page, tables, figures and data of a run, read from disk every time."""

    version = "1"
    timer = time.process_time
    params = (BLOCKS,)
    param_names = ("block",)

    def setup_cache(self):
        return {block: str(stored(block)) for block in BLOCKS}

    def time_render(self, runs, block):
        rendered(runs[block])

    def peakmem_render(self, runs, block):
        rendered(runs[block])


def stored(block):
    """The block's cells measured, as a run in the folder that asv gives to a benchmark."""
    profile = filtered(load_profile(PROFILE), [f"grid={block}"])
    facts = sweep_facts(profile, "none: one process", "asv run", CELL_BUDGET_S)
    with create_run(Path.cwd(), facts) as writer:
        writer.add(table(row for cell in profile.cells for row in measure_cell(cell)))
        return writer.complete({}).path


def rendered(path):
    for _ in render(open_run(path)):
        pass
