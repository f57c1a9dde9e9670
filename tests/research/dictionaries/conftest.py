"""The command-line fixtures, for the command `dictionary train`."""

from tests.cli.conftest import damaged, kfbench, segment

__all__ = ["damaged", "kfbench", "segment"]
