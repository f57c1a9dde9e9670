"""Rivals: existing container formats, each in the place of v2's records, compared with Kafka's formats.

`RIVALS` has the arms whose library is installed, and `missing` names the others. Importing this package imports the
libraries, so only code that measures rivals does it.
"""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from kfbench.rivals.base import Rival

_ARMS: Final = {
    "parquet": "parquet.Parquet",
    "parquet-best": "parquet.ParquetBest",
    "arrow-ipc": "arrow_ipc.ArrowIpc",
    "arrow-ipc-bare": "arrow_ipc.ArrowIpcBare",
    "avro": "avro.Avro",
    "avro-best": "avro.AvroBest",
    "vortex": "vortex.Vortex",
    "vortex-best": "vortex.VortexBest",
    "lance": "lance.Lance",
    "lance-best": "lance.LanceBest",
}
"""Module and class per arm, so that the arms of a library that is missing have names, too."""

_rivals: Final[dict[str, Rival]] = {}
_missing: Final[dict[str, str]] = {}


def _find() -> None:
    for name, place in _ARMS.items():
        module, class_name = place.split(".")
        try:
            _rivals[name] = getattr(import_module(f"kfbench.rivals.{module}"), class_name)()
        except Exception as error:  # a library may fail in any way at its import
            _missing[name] = f"{type(error).__name__}: {error}"


_find()
RIVALS: Final[Mapping[str, Rival]] = MappingProxyType(_rivals)


def missing() -> dict[str, str]:
    """Return, per arm that cannot be measured here, the error of its library's import."""
    return dict(_missing)


__all__ = ["RIVALS", "Rival", "missing"]
