"""asv plugin: `asv run` works without a terminal, and stores no name of the machine.

asv asks for the machine's name and hardware the first time, and fails where nobody can answer. This plugin takes asv's
own guess, with the kernel's version as kfbench's runs show it. The machine's name is a hash of the host's name and of
the processor. A virtual machine keeps its name when it moves to another processor, but its times are then another
machine's.
"""

import socket

from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]

from kfbench.measure.environment import cpu_model, host, kernel


def setup() -> None:
    """Store this machine unless asv knows it. asv calls this before any command."""
    found = Machine.get_defaults()
    found["cpu"] = ", ".join(filter(None, (found["cpu"], cpu_model())))
    Machine.hardcoded_machine_name = name = host(f"{socket.gethostname()} {found['cpu']}")
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, found | {"machine": name, "os": kernel()})
