"""The documents whose published figures are checked, one module each.

Every real figure is computed when it is needed, by `encode` or `size`. The bytes of the encoders decide whether a claim
holds.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from kfbench.claims.claim import ClaimsTable
from kfbench.claims.enriched import enriched
from kfbench.claims.kip31 import kip31
from kfbench.claims.kip98 import kip98
from kfbench.claims.kip931 import kip931
from kfbench.errors import InvalidConfig

CLAIMS: Final[Mapping[str, Callable[[], ClaimsTable]]] = MappingProxyType(
    {"kip98": kip98, "kip931": kip931, "kip31": kip31, "enriched": enriched}
)


def table(name: str) -> ClaimsTable:
    """Check the figures of one document, and return their table. Raise InvalidConfig for an unknown name."""
    if name not in CLAIMS:
        raise InvalidConfig(f"table {name!r}: no such table; there are {', '.join(CLAIMS)}")
    return CLAIMS[name]()
