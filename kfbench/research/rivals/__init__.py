"""Rivals: existing container formats, each in the place of v2's records, compared with Kafka's formats.

The names of all arms are known without their libraries. `rivals` imports the libraries.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final, NamedTuple

from kfbench.research.rivals.base import Rival

_ARMS: Final = {
    "parquet": "parquet.Parquet",
    "parquet-best": "parquet.ParquetBest",
    "arrow-ipc": "arrow_ipc.ArrowIpc",
    "arrow-ipc-bare": "arrow_ipc.ArrowIpcBare",
    "avro": "avro.Avro",
    "avro-best": "avro.AvroBest",
    "vortex": "vortex.Vortex",
    "vortex-best": "vortex.VortexBest",
}
"""Module and class per arm, so that the arms of a library that is missing have names, too."""

NAMES: Final = tuple(_ARMS)


class _RivalImports(NamedTuple):
    found: Mapping[str, Rival]
    missing: Mapping[str, str]


@cache
def _import_rivals() -> _RivalImports:
    found, missing = dict[str, Rival](), dict[str, str]()
    for name, place in _ARMS.items():
        module, class_name = place.split(".")
        try:
            found[name] = getattr(import_module(f"kfbench.research.rivals.{module}"), class_name)()
        except Exception as error:  # a library may fail in any way at its import
            missing[name] = f"{type(error).__name__}: {error}"
    return _RivalImports(MappingProxyType(found), MappingProxyType(missing))


def rivals() -> Mapping[str, Rival]:
    """Return the arms whose library is installed, by name. The first call imports the libraries."""
    return _import_rivals().found


def missing() -> Mapping[str, str]:
    """Return, per arm that cannot be measured here, the error of its library's import."""
    return _import_rivals().missing


__all__ = ["NAMES", "Rival", "missing", "rivals"]
