"""Rivals: existing container formats, each in the place of v2's records, compared with Kafka's formats.

`RIVALS` has the rivals whose library is installed. `missing` names the others. Importing this package imports their
libraries, so only code that measures rivals does it.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from kfbench.rivals.base import Rival

_CLASSES: Final = {
    "parquet": ("Parquet", "ParquetBest"),
    "arrow_ipc": ("ArrowIpc", "ArrowIpcBare"),
}  # per module of this package

_missing: dict[str, str] = {}


def _installed() -> dict[str, Rival]:
    rivals: dict[str, Rival] = {}
    for module, classes in _CLASSES.items():
        try:
            found = import_module(f"kfbench.rivals.{module}")
        except Exception as error:  # a library that cannot be imported is a reason, not a crash
            _missing[module] = f"{type(error).__name__}: {error}"
            continue
        rivals |= {rival.name: rival for rival in (getattr(found, name)() for name in classes)}
    return rivals


RIVALS: Final[Mapping[str, Rival]] = MappingProxyType(_installed())


def missing() -> dict[str, str]:
    """Return the reason per module whose library cannot be imported."""
    return dict(_missing)
