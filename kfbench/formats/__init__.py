"""Record formats by name. Each module here defines FORMATS and is found by itself; `base` has what they share."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

from kfbench.formats.base.entries import Entries
from kfbench.formats.base.format import Capabilities, Format

FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        found.name: found
        for module in sorted(info.name for info in iter_modules(__path__) if info.name != "base")
        for found in import_module(f"{__name__}.{module}").FORMATS
    }
)

BY_MAGIC: Final[Mapping[int, Format]] = MappingProxyType(
    {FORMATS[name].magic: FORMATS[name] for name in ("v0", "v1", "v2", "v3", "columnar")}
)

BASE_FORMAT: Final = "v2"  # the one that Kafka writes today: every ratio is to it
SHIPPED: Final = frozenset({"v0", "v1", "v2"})  # by some Kafka; v2 alone by those of today
PROPOSED: Final = frozenset(
    {"v3", "kip98", "enriched", "enriched-ms"}
)  # laid out by a text of others; the rest are ours

__all__ = ["BASE_FORMAT", "BY_MAGIC", "FORMATS", "PROPOSED", "SHIPPED", "Capabilities", "Entries", "Format"]
