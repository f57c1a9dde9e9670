"""asv plugin: `asv run` works without a terminal, and what it stores does not say whose machine this is.

asv asks for the machine's name and hardware the first time, and fails where nobody can answer. Here its own guess is
taken, of whose kernel kfbench's runs do not say the build either. The name is made as they make a host's, but of the
processor too: a virtual machine keeps its name where it gets another, which may be called like the one before, and its
times are then another machine's.
"""

import socket

from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]

from kfbench.measure.environment import cpu_model, host, kernel


def setup() -> None:
    """Called by asv before any command."""
    found = Machine.get_defaults()
    found["cpu"] = ", ".join(filter(None, (found["cpu"], cpu_model())))
    Machine.hardcoded_machine_name = name = host(f"{socket.gethostname()} {found['cpu']}")
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, found | {"machine": name, "os": kernel()})
