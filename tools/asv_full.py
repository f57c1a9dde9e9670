"""A plugin of asv. With KFBENCH_ASV=full, the benchmarks measure every format, codec and workload of this checkout.

The plugin passes the names to the benchmarks in the environment variable KFBENCH_ASV_NAMES. asv numbers the parameter
sets once for all commits, so each commit must use the same lists of names.
"""

import json
import os

from asv.util import UserError  # type: ignore[import-untyped]


def setup() -> None:
    """Set or remove KFBENCH_ASV_NAMES. asv calls this before any command.

    Raises UserError if KFBENCH_ASV has a value other than "full".
    """
    os.environ.pop("KFBENCH_ASV_NAMES", None)
    mode = os.environ.get("KFBENCH_ASV", "")
    if mode not in ("", "full"):
        raise UserError(f"KFBENCH_ASV={mode!r}: it must be 'full', or unset for the default selection")
    if mode:
        from kfbench import CODECS, FORMATS, WORKLOADS

        names = {"formats": list(FORMATS), "codecs": list(CODECS), "workloads": sorted(set(WORKLOADS) - {"grid"})}
        os.environ["KFBENCH_ASV_NAMES"] = json.dumps(names)
