"""asv plugin: KFBENCH_ASV=full measures every format, codec and workload of this checkout.

The benchmarks get the names in the environment. asv numbers parameter sets once for all commits, so each commit must
have the same lists.
"""

import json
import os

from asv.util import UserError  # type: ignore[import-untyped]


def setup() -> None:
    """Set KFBENCH_ASV_NAMES. asv calls this before any command. Raises UserError for an unknown KFBENCH_ASV."""
    os.environ.pop("KFBENCH_ASV_NAMES", None)
    mode = os.environ.get("KFBENCH_ASV", "")
    if mode not in ("", "full"):
        raise UserError(f"KFBENCH_ASV={mode!r}: it must be 'full', or unset for the default selection")
    if mode:
        from kfbench import CODECS, FORMATS, WORKLOADS

        names = {"formats": list(FORMATS), "codecs": list(CODECS), "workloads": sorted(set(WORKLOADS) - {"grid"})}
        os.environ["KFBENCH_ASV_NAMES"] = json.dumps(names)
