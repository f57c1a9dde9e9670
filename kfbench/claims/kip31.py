"""Check KIP-31: relative offsets in compressed sets, read from three messages with the offsets 1000 to 1002."""

from typing import Final

from kfbench.claims.claim import Claim, ClaimsTable
from kfbench.claims.example import (
    compressed_set,
    encoded_overhead_bytes,
    only_offset_changes,
    relative_offsets,
    stored_offset,
)
from kfbench.layouts import LEGACY_FIXED_BYTES


def _wrapper_value() -> bytes:
    """Return the compressed bytes in a v1 wrapper. The key is null, so they start after the fixed fields."""
    return compressed_set("v1")[LEGACY_FIXED_BYTES[1] :]


CLAIMS: Final = (
    relative_offsets("inner messages carry relative offsets", _wrapper_value),
    Claim(
        claim="offset of the wrapper (Proposed Changes)",
        published="that of the last inner message",
        fields=lambda: {"v1": stored_offset(compressed_set("v1"))},
        real="{v1}",
        holds=lambda values: values["v1"] == 1002,
        because="another message's offset is stored",
    ),
    Claim(
        claim="offset of the wrapper (Public Interfaces)",
        published="base offset",
        fields=lambda: {"v1": stored_offset(compressed_set("v1"))},
        real="{v1}, first is 1000",
        holds=lambda values: values["v1"] == 1000,
        because="the interface section calls it the base offset. The last inner message's offset is stored",
    ),
    only_offset_changes("to assign offsets the broker rewrites the wrapper's offset only", "v1"),
    Claim(
        claim="overhead of a message (layout with an 8-byte timestamp)",
        published="34 bytes",
        fields=lambda: {"v1": encoded_overhead_bytes("v1", 1, step_ms=1)},
        real="{v1} bytes",
        because="v1 writes something else",
    ),
)


def claims_table() -> ClaimsTable:
    """Compare the figures of KIP-31 with the real ones."""
    rows = tuple(each.check() for each in CLAIMS)
    return ClaimsTable(name="kip31", source="KIP-31, Public Interfaces and Proposed Changes", rows=rows)
