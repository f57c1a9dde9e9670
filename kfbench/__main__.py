"""Run the command `kfbench` as `python -m kfbench`."""

import sys

# Python searches the working folder first, which may hold files that are called like modules.
if not sys.flags.safe_path and not __file__.startswith(sys.path[0]):
    del sys.path[0]

from kfbench.cli import run

run()
