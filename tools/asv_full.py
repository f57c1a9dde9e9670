"""asv plugin: KFBENCH_ASV=full measures every format, codec and workload of this checkout.

The benchmarks get the names in the environment, because asv numbers parameter sets once for all commits: a list taken
from an installed commit could give a number another meaning.
"""

import json
import os

from asv.util import UserError  # type: ignore[import-untyped]


def setup() -> None:
    """Set KFBENCH_ASV_NAMES. asv calls this before any command. Raises UserError for an unknown KFBENCH_ASV."""
    os.environ.pop("KFBENCH_ASV_NAMES", None)
    asked = os.environ.get("KFBENCH_ASV", "")
    if asked not in ("", "full"):
        raise UserError(f"KFBENCH_ASV={asked!r}: it is 'full', or not set for what is measured by default")
    if asked:
        from kfbench import CODECS, FORMATS, WORKLOADS

        names = {"formats": list(FORMATS), "codecs": list(CODECS), "workloads": sorted(set(WORKLOADS) - {"grid"})}
        os.environ["KFBENCH_ASV_NAMES"] = json.dumps(names)
