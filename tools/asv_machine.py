"""A plugin of asv, so that `asv run` works without a terminal and does not store the machine's name.

The first time on a machine, asv asks the user for the machine's name and hardware, which needs a terminal. This plugin
stores the values that asv would suggest, with the kernel's version in the form of kfbench's runs. The stored name is a
hash of the host's name and the processor. So a virtual machine that moves to another processor counts as another
machine.
"""

import os
import socket
import tempfile

from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]

from kfbench.measure.environment import cpu_model, host, kernel

SOCKET_BYTES = 64  # asv listens at a path in the temporary folder. A system takes about 100 bytes, 32 of them asv's.


def setup() -> None:
    """Set the name of this machine in asv, and store its facts if missing. asv calls this before any command."""
    _shorten_temporary_folder()
    found = Machine.get_defaults()
    found["cpu"] = ", ".join(filter(None, (found["cpu"], cpu_model())))
    Machine.hardcoded_machine_name = name = host(f"{socket.gethostname()} {found['cpu']}")
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, found | {"machine": name, "os": kernel()})


def _shorten_temporary_folder() -> None:
    """Raise UserError if asv's processes could not listen in the temporary folder, and there is no other."""
    if len(os.fsencode(tempfile.gettempdir())) > SOCKET_BYTES:
        if not os.access("/tmp", os.W_OK):
            raise UserError(f"TMPDIR={tempfile.gettempdir()}: sockets need a path of {SOCKET_BYTES} bytes at most")
        os.environ["TMPDIR"] = tempfile.tempdir = "/tmp"
