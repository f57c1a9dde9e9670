"""Time other implementations of Kafka's formats (peers) together with ours on the same records (`make peers`).

Each module in this folder is a peer. It defines `start`, a context manager that yields a `base.arm.Peer`. `start`
raises `Absent` if the peer is not installed. A new module is found without registration.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules

from kfbench.present.stored_times import LIMIT, OURS
from tools.peers.base.arm import Start

FIRST = (OURS, LIMIT)  # the peers that are the first columns of a table


def discover() -> Mapping[str, Start]:
    """Import all peer modules. Return their functions `start` by module name: ours first, then the limit."""
    names = [module.name for module in iter_modules(__path__) if not module.ispkg and module.name != "__main__"]
    names.sort(key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return {name: import_module(f"{__name__}.{name}").start for name in names}
