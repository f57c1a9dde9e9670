"""The command line `kfbench`, with one module per group of commands.

Commands import slow modules when they run, so that `kfbench --help` is quick.
"""

from importlib import import_module

from kfbench.cli.app import app, main, run

__all__ = ["app", "main", "run"]

for _group in (
    "sweeps",
    "reports",
    "what_if",
    "fingerprint",
    "migrate",
    "dictionaries",
    "checks",
    "lists",
):  # the order of the commands in --help
    import_module(f"kfbench.cli.{_group}")
