"""The settings of a topic and its broker that decide how `append` works."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.broker.source import find
from kfbench.codecs import find as find_codec
from kfbench.errors import InvalidConfig
from kfbench.formats import Format
from kfbench.layouts import CODEC_MASK, CONTROL_BIT, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP

Origin = Literal["client", "coordinator"]
ORIGINS: Final = ("client", "coordinator")
TIMESTAMP_TYPES: Final = ("create", "append")
LAST_INT32, FIRST_INT64, LAST_INT64 = 2**31 - 1, -(2**63), 2**63 - 1


class TopicSettings:
    """The options of `append`, after they were checked.

    Attributes:
        to: the log's format; None: each request keeps its format.
        codec: the number of the log's codec; None: each request keeps its codec.
        level: the codec's level.
        is_append: True: the topic stores append times. False: create times.
        now_ms: the broker's clock.
        epoch: the partition leader epoch.
        from_client: the sender is a client, which may not write control records.
        from_zero: the offsets of a request must begin at 0.
        earliest_ms, latest_ms: the first and the last create time that is accepted.
        is_keyed: the topic is compacted, so each record needs a key.
    """

    def __init__(
        self,
        *,
        to: Format | str | None,
        codec: str | None,
        level: int | None,
        timestamp_type: str,
        now_ms: int | None,
        partition_leader_epoch: int,
        origin: str,
        before_max_ms: int | None,
        after_max_ms: int | None,
        compacted: bool,
        from_zero: bool,
        lossy: bool,
    ) -> None:
        """Check the options of `append`. Raise InvalidConfig, IllegalCombination."""
        self.is_append = _one_of("timestamp_type", timestamp_type, TIMESTAMP_TYPES) == "append"
        if now_ms is None and (self.is_append or before_max_ms is not None or after_max_ms is not None):
            raise InvalidConfig("now_ms: append time and limits of create time need the broker's clock")
        self.now_ms = NO_TIMESTAMP if now_ms is None else whole_number("now_ms", now_ms)
        self.earliest_ms, self.latest_ms = FIRST_INT64, LAST_INT64
        if before_max_ms is not None:
            self.earliest_ms = self.now_ms - whole_number("before_max_ms", before_max_ms)
        if after_max_ms is not None:
            self.latest_ms = min(self.now_ms + whole_number("after_max_ms", after_max_ms), LAST_INT64)
        self.to = None if to is None else find(to)
        self.codec = None if codec is None else find_codec(codec, level).id
        self.epoch = whole_number(
            "partition_leader_epoch", partition_leader_epoch, NO_PARTITION_LEADER_EPOCH, LAST_INT32
        )
        self.from_client = _one_of("origin", origin, ORIGINS) == "client"
        self.level, self.from_zero, self.is_keyed, self.lossy = level, from_zero, compacted, lossy

    def is_plain_marker(self, traits: Int64) -> NDArray[np.bool_]:
        """Return for each request True if it is a control batch without a codec.

        The topic's codec is not applied to it. If the topic has no codec, all items are False. traits: see `Requests`.
        """
        found: NDArray[np.bool_] = (traits & (CODEC_MASK | CONTROL_BIT) == CONTROL_BIT) & bool(self.codec)
        return found

    def codecs(self, traits: Int64) -> Int64:
        """Return the number of the codec that each request gets in the log. traits: attribute bits, see `Requests`."""
        if self.codec is None:
            return traits & CODEC_MASK
        return np.where(self.is_plain_marker(traits), 0, self.codec)


def _one_of(name: str, value: str, choices: Sequence[str]) -> str:
    if value not in choices:
        raise InvalidConfig(f"{name}: {' or '.join(choices)} is wanted, not {value!r}")
    return value


def whole_number(name: str, value: int | np.integer[Any], least: int = 0, most: int = LAST_INT64) -> int:
    """Return an option as an int. Raise InvalidConfig unless it is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InvalidConfig(f"{name}: a whole number from {least} to {most} is wanted, not {value!r}")
    return int(value)
