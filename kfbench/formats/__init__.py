"""All record formats by name: those of the modules in this folder, which define FORMATS, and those of plug-ins.

The folder `base` has the code that formats share.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, Final

from kfbench.errors import CorruptLog
from kfbench.formats.base.appending import Appending, BrokerFields
from kfbench.formats.base.batched import BatchedFormat
from kfbench.formats.base.capabilities import Capabilities
from kfbench.formats.base.damage import OnError
from kfbench.formats.base.format import Format
from kfbench.formats.base.reading import Entries, Reading
from kfbench.plugins import Registry


def _ours() -> list[Format]:
    names = sorted(info.name for info in iter_modules(__path__) if info.name != "base")
    return [fmt for name in names for fmt in import_module(f"{__name__}.{name}").FORMATS]


FORMATS: Final[Registry[Format]] = Registry("formats", "FORMATS", Format, _ours)
BASE_FORMAT: Final = "v2"  # Kafka writes it today; all ratios compare with it

# These are computed when they are first imported, because a plug-in with a format imports this module.
BY_MAGIC: Mapping[int, Format]
SHIPPED: frozenset[str]
PROPOSED: frozenset[str]
RESEARCH: frozenset[str]


@cache
def _by_magic() -> Mapping[int, Format]:
    """Return, per magic, the first format that its magic identifies."""
    # A dict keeps the last value of a key, so go through in reverse.
    first = {fmt.magic: fmt for fmt in reversed(list(FORMATS.values())) if fmt.is_told_by_magic}
    return MappingProxyType(dict(sorted(first.items())))


def __getattr__(name: str) -> Any:
    if name == "BY_MAGIC":
        return _by_magic()
    if name in ("SHIPPED", "PROPOSED", "RESEARCH"):
        return frozenset(each for each, fmt in FORMATS.items() if fmt.origin == name.lower())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def unknown_magic(magic: int, position: int) -> CorruptLog:
    """Return the error of a batch whose magic is not in BY_MAGIC. position: the byte at which the batch starts."""
    known = ", ".join(map(str, _by_magic()))
    retired = {number: why for fmt in FORMATS.values() for number, why in fmt.retired_magics.items()}
    return CorruptLog(position, "magic", retired.get(magic, f"{magic} is none of {known}"))


def format_of(magic: int, features: int = 0) -> Format:
    """Return the format of a batch by its magic and, in v3, its features (attribute bits such as headers first).

    If no format has exactly these features, return an unnamed v3 format with them.
    """
    if magic != 3:
        return _by_magic()[magic]
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
    "BrokerFields",
    "Capabilities",
    "Entries",
    "Format",
    "OnError",
    "Reading",
    "format_of",
    "unknown_magic",
]
