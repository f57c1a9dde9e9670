"""Optional dependencies (extras): a test whether an extra is installed, and an error if it is missing."""

from importlib.util import find_spec
from typing import Final

from kfbench.errors import MissingExtra

MODULE_OF_EXTRA: Final = {
    "sweep": "pyspark",
    "peers": "kafka",
}  # per extra, a module that only it installs


def has_extra(name: str) -> bool:
    return find_spec(MODULE_OF_EXTRA[name]) is not None


def require_extra(name: str) -> None:
    """Raise MissingExtra unless the extra is installed."""
    if not has_extra(name):
        raise MissingExtra(name)
