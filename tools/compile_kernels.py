"""Compile the kernels that tests call, on two cores; `make test` does so before pytest.

Two workers of pytest would compile the same kernels at the same time, and each wait for its own.
"""

import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from kfbench.sweep.compiling import are_compiled, compilations, note_compiled
from kfbench.sweep.grid import load_profile

PROFILE = "default"
CORES = 2


def main() -> int:
    if are_compiled():
        return 0
    print("compiling kernels, once", file=sys.stderr)
    began = time.monotonic()
    with ProcessPoolExecutor(CORES, multiprocessing.get_context("spawn")) as pool:
        calls = compilations(load_profile(PROFILE).cells)
        for compiled in [pool.submit(function, argument) for function, argument in calls]:
            compiled.result()
    note_compiled()
    print(f"compiled kernels in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
