"""Other implementations of Kafka's formats, timed together with ours on the same records (`make peers`).

Each module in this folder is a peer. It defines `start`, a context manager that yields a `base.arm.Peer`. It raises
`Absent` if the peer is not installed. New files are found automatically.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from kfbench.report.topics.peers import LIMIT, OURS
from tools.peers.base.arm import Start

FIRST = (OURS, LIMIT)  # these columns of a table come first


def discover() -> Mapping[str, Start]:
    """Return `start` of every peer, by the name of its module. Ours and the limit come first."""
    names = [module.name for module in iter_modules(__path__) if not module.ispkg and module.name != "__main__"]
    names.sort(key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return {name: import_module(f"{__name__}.{name}").start for name in names}
