"""Compile the kernels that the cells (measurements) of a profile and the command `kfbench what-if` need, on all cores.

usage: compile_kernels.py [PROFILE]     default: the profile "default"
"""

import sys

from rich.console import Console

from kfbench.formats import FORMATS
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.host.compiling import compile_for_cells
from kfbench.whatif.compiling import compile_for_what_if


def main(profile: str = "default") -> None:
    console = Console(stderr=True)
    compile_for_cells(load_profile(profile).cells, console)
    compile_for_what_if(tuple(FORMATS), console)


if __name__ == "__main__":
    main(*sys.argv[1:2])
