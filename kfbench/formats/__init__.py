"""All record formats by name. A scan of this folder finds each module here, which defines FORMATS.

The folder `base` has the code that formats share.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

from kfbench.formats.base.appending import Appending, BrokerFields, BrokerTimes, Offsets
from kfbench.formats.base.batched import BatchedFormat
from kfbench.formats.base.capabilities import Capabilities
from kfbench.formats.base.damage import OnError
from kfbench.formats.base.entries import Entries
from kfbench.formats.base.format import Format
from kfbench.formats.base.reading import BatchColumns

FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        fmt.name: fmt
        for module in sorted(info.name for info in iter_modules(__path__) if info.name != "base")
        for fmt in import_module(f"{__name__}.{module}").FORMATS
    }
)


# Per magic, the first format that its magic identifies. A dict keeps the last value of a key, so go through in reverse.
_FIRST_OF_MAGIC: Final = {fmt.magic: fmt for fmt in reversed(list(FORMATS.values())) if fmt.is_told_by_magic}
BY_MAGIC: Final[Mapping[int, Format]] = MappingProxyType(dict(sorted(_FIRST_OF_MAGIC.items())))
BASE_FORMAT: Final = "v2"  # Kafka writes it today; all ratios compare with it
SHIPPED: Final = frozenset(name for name, fmt in FORMATS.items() if fmt.origin == "shipped")
PROPOSED: Final = frozenset(name for name, fmt in FORMATS.items() if fmt.origin == "proposed")
RESEARCH: Final = frozenset(name for name, fmt in FORMATS.items() if fmt.origin == "research")


def format_of(magic: int, features: int = 0) -> Format:
    """Return the format of a batch by its magic and, in v3, its features (attribute bits such as headers first).

    If no format has exactly these features, return an unnamed v3 format with them.
    """
    if magic != 3:
        return BY_MAGIC[magic]
    named = (fmt for fmt in FORMATS.values() if fmt.magic == 3 and fmt.features == features)
    return next(named, None) or BatchedFormat(name="v3", magic=3, summary="unnamed", features=features)


__all__ = [
    "BASE_FORMAT",
    "BY_MAGIC",
    "FORMATS",
    "PROPOSED",
    "RESEARCH",
    "SHIPPED",
    "Appending",
    "BatchColumns",
    "BrokerFields",
    "BrokerTimes",
    "Capabilities",
    "Entries",
    "Format",
    "Offsets",
    "OnError",
    "format_of",
]
