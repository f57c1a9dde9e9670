"""The command line `kfbench`, with one module per group of commands.

Commands import slow modules when they run, so that `kfbench --help` is quick.
"""

import sys
from importlib import import_module

from kfbench.cli.app import add_commands, app, main, run, show_warnings
from kfbench.cli.output import complain
from kfbench.plugins import PluginClash

__all__ = ["app", "main", "run"]

show_warnings()
try:
    for _group in ("sweeps", "logs", "reference"):  # the order of the commands in docs/cli.md
        import_module(f"kfbench.cli.{_group}")
    add_commands()
except PluginClash as _clash:
    complain(str(_clash))
    sys.exit(1)
