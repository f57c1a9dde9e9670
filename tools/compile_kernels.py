"""Compile the kernels that the cells (measurements) of a profile and the command `kfbench what-if` need, on all cores.

usage: compile_kernels.py [PROFILE]     default: the profile "default"
       compile_kernels.py --costs       what compiling each kernel of what-if takes, as a table of docs/sweeps.md
"""

import os
import sys
import tempfile

from rich.console import Console


def main(profile: str = "default") -> None:
    if profile == "--costs":
        print_costs()
        return
    from kfbench.formats import FORMATS
    from kfbench.sweep.definition.profile import load_profile
    from kfbench.sweep.host.compiling import compile_for_cells
    from kfbench.whatif.compiling import compiling_behind

    console = Console(stderr=True)
    compile_for_cells(load_profile(profile).cells, console)
    for has_headers in (False, True):
        with compiling_behind(FORMATS, console, has_headers=has_headers):
            pass


def print_costs() -> None:
    """Compile in an empty cache. The first kernel that calls a helper pays for compiling it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"KFBENCH_CACHE_DIR": folder, "KFBENCH_COMPILE": "1"}
        from numba.core import event

        from kfbench.whatif.ask import MAIN_FORMATS, OTHER_FORMAT
        from kfbench.whatif.compiling import calls_for

        depth, rows = 0, []
        with event.install_recorder("numba:compile") as recorded:
            for function, asked in calls_for((*MAIN_FORMATS, OTHER_FORMAT)):
                function(asked)
        for at_s, each in recorded.buffer:
            if each.is_start and depth == 0:
                since_s, helpers = at_s, -1
            depth += 1 if each.is_start else -1
            helpers += each.is_start
            if depth == 0:
                function = each.data["dispatcher"].py_func
                folder, _, module = function.__module__.rpartition(".")
                rows.append((at_s - since_s, helpers, f"{module}.{function.__qualname__.rpartition('.')[2]}"))
    print("| kernel | seconds | new helpers |\n|---|---:|---:|")
    for seconds, helpers, name in sorted(rows, reverse=True):
        print(f"| `{name}` | {seconds:.2f} | {helpers} |")
    print(f"| all {len(rows)} | {sum(row[0] for row in rows):.1f} | {sum(row[1] for row in rows)} |")


if __name__ == "__main__":
    main(*sys.argv[1:2])
