"""What a format has no room for, in the words of a report, and which formats nobody but this project has proposed."""

from collections.abc import Iterable, Mapping
from typing import Final

from kfbench.formats import FORMATS, PROPOSED, SHIPPED
from kfbench.report.render.tables import listed

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
    """Of `capabilities.missing`, and of what a row has lost: each word once."""
    return tuple(dict.fromkeys(WORDS.get(name, name.replace("_", " ")) for name in names))


def lacking(name: str, than: str) -> tuple[str, ...]:
    """What the other format can carry and this one cannot, codecs last; nothing of a format that is not known here."""
    if name not in FORMATS:
        return ()
    own, other = FORMATS[name].capabilities, FORMATS[than].capabilities
    missing = [each for each in own.missing if each not in other.missing]
    return (*in_words(missing), *(codec for codec in other.codecs if codec not in own.codecs))


def limits(name: str, than: str) -> str:
    """What stands beside a winner that has no room for all that the other format has; nothing of one that has."""
    what = lacking(name, than)
    return f"{name} has no {listed(what)}. It wins for records that need none of it; a real topic may." if what else ""


def is_our_own(name: str) -> bool:
    """Whether nobody but this project has proposed it. Half of a proposal is none."""
    return name in FORMATS and name not in SHIPPED | PROPOSED
