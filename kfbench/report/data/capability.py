"""Describe the limits of formats in words. Recognize formats that only this project has proposed."""

from collections.abc import Iterable, Mapping
from typing import Final

from kfbench.formats import FORMATS, PROPOSED, SHIPPED
from kfbench.tables import listed

WORDS: Final[Mapping[str, str]] = {
    "timestamps": "times",
    "producer_id": "producer ids",
    "producer_epoch": "producer ids",
    "base_sequence": "producer ids",
    "partition_leader_epoch": "leader epochs",
    "append_time_ms": "append times",
    "timestamp_type": "append times",
    "delete_horizon_ms": "delete horizons",
    "is_transactional": "transactions",
    "is_control": "control batches",
}


def in_words(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of fields in words, each word once.

    names: fields of `capabilities.missing`, or of the losses of a row.
    """
    return tuple(dict.fromkeys(WORDS.get(name, name.replace("_", " ")) for name in names))


def lacking(name: str, than: str) -> tuple[str, ...]:
    """Return the fields and codecs that format `than` can carry and format `name` cannot, codecs last.

    The result is empty if `name` is unknown.
    """
    if name not in FORMATS:
        return ()
    own, other = FORMATS[name].capabilities, FORMATS[than].capabilities
    missing = [field for field in own.missing if field not in other.missing]
    return (*in_words(missing), *(codec for codec in other.codecs if codec not in own.codecs))


def limits(name: str, than: str) -> str:
    """Return a sentence about the limits of a winning (smallest) format `name`.

    It is empty if the format can carry everything that format `than` can.
    """
    missing = lacking(name, than)
    if not missing:
        return ""
    return f"{name} has no {listed(missing)}. It wins for records that need none of it; a real topic may."


def is_our_own(name: str) -> bool:
    """Return True for a format that only this project has proposed, or that has only a part of a proposal."""
    return name in FORMATS and name not in SHIPPED | PROPOSED
