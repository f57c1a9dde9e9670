"""Run the command `kfbench` as `python -m kfbench`."""

import os
import sys

# Python searches the working folder first, which may hold files that are called like modules.
if not sys.flags.safe_path and __file__ != f"{sys.path[0]}{os.sep}kfbench{os.sep}__main__.py":
    del sys.path[0]

from kfbench.cli import run

run()
