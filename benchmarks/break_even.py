"""From how many records a batch a format is smaller than another one, uncompressed; nan: never.

Key 16 bytes, value 100 bytes of template payload, equal timestamps in a batch. Exact.
"""

import pandas as pd

from benchmarks.formats import sample
from kfbench.formats import FORMATS

try:
    from kfbench.report.break_even import first_smaller
except ImportError:  # its place before: asv asks older commits, too
    from kfbench.report.tables import first_smaller

FORMAT_NAMES = (
    "v2", "v3", "v3-attributes-only", "v3-header-only", "v3-unsigned", "v3-headers-first", "v3-tagged",
    "v3-batch-headers", "v3-full", "kip98", "columnar",
)  # fmt: skip
OTHER_NAMES = ("v0", "v1", "v2")
BATCH_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 20, 30, 50, 100, 200, 500, 1000)


class BreakEven:
    """Of the batch sizes that are tried, the first from which it is smaller at all of them."""

    version = "1"
    unit = "records/batch"
    params = (FORMAT_NAMES, OTHER_NAMES)
    param_names = ("format", "other")

    def setup(self, name, other):
        if name == other:
            raise NotImplementedError(f"{name} is {other}")

    def track_records_a_batch(self, name, other):
        made = [sample(batch_size=size) for size in BATCH_SIZES]
        sizes = {
            each: [int(FORMATS[each].size(some.records, some.bounds).sum()) for some in made] for each in (name, other)
        }
        _, first = first_smaller(pd.DataFrame(sizes, index=BATCH_SIZES), name, other)
        return float("nan") if first is None else float(first)
