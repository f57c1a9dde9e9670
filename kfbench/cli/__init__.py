"""The command line, one module per group of commands.

Modules with slow imports are imported inside the commands, so that `kfbench --help` stays quick.
"""

from importlib import import_module

from kfbench.cli.app import app, main

__all__ = ["app", "main"]

for _group in ("sweeps", "reports", "what_if", "migrate", "checks", "lists"):  # the order of the commands in --help
    import_module(f"kfbench.cli.{_group}")
