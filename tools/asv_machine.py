"""A plugin of asv, so that `asv run` works without a terminal and does not store the machine's name.

The first time on a machine, asv asks the user for the machine's name and hardware, which needs a terminal. This plugin
stores the values that asv would suggest, with the kernel's version in the form of kfbench's runs. The stored name is a
hash of the host's name and the processor. So a virtual machine that moves to another processor counts as another
machine.
"""

import socket

from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]

from kfbench.measure.environment import cpu_model, host, kernel


def setup() -> None:
    """Set the name of this machine in asv, and store its facts if missing. asv calls this before any command."""
    found = Machine.get_defaults()
    found["cpu"] = ", ".join(filter(None, (found["cpu"], cpu_model())))
    Machine.hardcoded_machine_name = name = host(f"{socket.gethostname()} {found['cpu']}")
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, found | {"machine": name, "os": kernel()})
