"""Compare the output of peers with ours, on the timed records and on rare records."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from kfbench.formats import BASE_FORMAT
from kfbench.layouts import V2_HEADER, position
from kfbench.present.stored_times import LIMIT, OURS
from kfbench.records import Records
from tools.peers.base.arm import Arm, Differs, Peer, Task, logs

LENGTH_END: Final = position(V2_HEADER, "partition_leader_epoch")
FOLLOWS: Final = ("length", "crc")  # fields that differ wherever another byte does

# Records that Kafka's producer accepts and the timed cells do not have, three in one batch.
KEYS, VALUES = [b"a", b"b", b"c"], [b"x", b"y", b"z"]
RARE: Final[Mapping[str, Records]] = {
    "null keys and values": Records.from_lists(
        timestamps_ms=[5, 6, 7], keys=[None, b"b", None], values=[b"x", None, None]
    ),
    "empty keys and values": Records.from_lists(
        timestamps_ms=[5, 6, 7], keys=[b"", b"b", b""], values=[b"x", b"", b""]
    ),
    "times that go back": Records.from_lists(timestamps_ms=[1000, 900, 1100], keys=KEYS, values=VALUES),
    "time 0": Records.from_lists(timestamps_ms=[0, 0, 5], keys=KEYS, values=VALUES),
    "times after the year 2262": Records.from_lists(timestamps_ms=[1 << 60] * 3, keys=KEYS, values=VALUES),
}


class Difference(NamedTuple):
    """A peer's output that differs from ours. records: a description of the records; difference: a sentence."""

    peer: str
    records: str
    difference: str


def equal_arms(peers: Sequence[Peer], task: Task, records: str) -> tuple[dict[str, list[Arm]], list[Difference]]:
    """Return the arms of each peer whose output equals ours, and the differences of all others.

    records: a description of the task's records. Raises Differs if our own output or the limit's differs, and
    PeerEnded.
    """
    arms: dict[str, list[Arm]] = {}
    found: list[Difference] = []
    for peer in peers:
        try:
            arms[peer.name] = list(peer.arms(task))
        except Differs as error:
            if peer.name in (OURS, LIMIT):
                raise
            found.append(Difference(peer.name, records, str(error)))
    return arms, found


def rare_differences(peers: Sequence[Peer], name: str) -> list[Difference]:
    """Return the differences on rare records, which are not timed. name: a key of RARE.

    Raises Differs if our own output differs, and PeerEnded.
    """
    return equal_arms(peers, Task(records=RARE[name], batch_size=3, logs=logs(RARE[name], 3)), name)[1]


def unequal_bytes(name: str, theirs: bytes, ours: bytes) -> str:
    """Say where two logs differ: fields of the first unequal header, or the first unequal byte. name: the format."""
    common = min(len(theirs), len(ours))
    unequal = np.flatnonzero(np.frombuffer(theirs, np.uint8, common) != np.frombuffer(ours, np.uint8, common))
    at = int(unequal[0]) if len(unequal) else common
    fields = _unequal_fields(theirs, ours, at) if name == BASE_FORMAT else []
    return ", ".join(fields) or f"{len(theirs)} instead of {len(ours)} bytes, unequal from byte {at} on"


def _unequal_fields(theirs: bytes, ours: bytes, at: int) -> list[str]:
    """Describe the unequal header fields of the batch with byte `at`."""
    start, size = 0, V2_HEADER.itemsize
    while start + size <= min(len(theirs), len(ours)):
        their_header, our_header = (np.frombuffer(log, V2_HEADER, 1, start)[0] for log in (theirs, ours))
        if at < (end := start + LENGTH_END + int(our_header["length"])):
            return [
                f"{field} is {their_header[field]} instead of {our_header[field]}"
                for field in V2_HEADER.names or ()
                if field not in FOLLOWS and their_header[field] != our_header[field]
            ]
        start = end
    return []
