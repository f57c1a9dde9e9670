"""The documents whose published figures are checked, one module each.

Every real figure is computed when it is needed, by `encode` or `size`. The bytes of the encoders decide whether a claim
holds.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from kfbench.claims import enriched, kip31, kip98, kip931
from kfbench.claims.claim import ClaimsTable
from kfbench.errors import InvalidConfig

DOCUMENTS: Final[Mapping[str, Callable[[], ClaimsTable]]] = MappingProxyType(
    {
        "kip98": kip98.claims_table,
        "kip931": kip931.claims_table,
        "kip31": kip31.claims_table,
        "enriched": enriched.claims_table,
    }
)


def table(name: str) -> ClaimsTable:
    """Check the figures of one document, and return their table. Raise InvalidConfig for an unknown name."""
    if name not in DOCUMENTS:
        raise InvalidConfig(f"table {name!r}: no such table; there are {', '.join(DOCUMENTS)}")
    return DOCUMENTS[name]()
