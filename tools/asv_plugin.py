"""A plugin of asv: it needs no terminal, stores no host name, and knows KFBENCH_ASV=full.

The first time on a machine, asv asks the user for the machine's name and hardware, which needs a terminal. This plugin
stores the values that asv would suggest, with the kernel's version in the form of kfbench's runs. The stored name is a
hash of the host's name and the processor. So a virtual machine that moves to another processor counts as another
machine.

With KFBENCH_ASV=full, the benchmarks measure every format, codec and workload of this checkout. The plugin passes the
names to the benchmarks in the environment variable KFBENCH_ASV_NAMES. asv numbers the parameter sets once for all
commits, so each commit must use the same lists of names.
"""

import json
import os
import socket
import tempfile

from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]

from kfbench.measure.environment import cpu_model, host, kernel

SOCKET_BYTES = 64  # asv listens at a path in the temporary folder. A system takes about 100 bytes, 32 of them asv's.


def setup() -> None:
    """Prepare the temporary folder, the lists of names and the machine. asv calls this before any command.

    Raises UserError if there is no temporary folder with a short path, or KFBENCH_ASV has a value other than "full".
    """
    if len(os.fsencode(tempfile.gettempdir())) > SOCKET_BYTES:
        if not os.access("/tmp", os.W_OK):
            raise UserError(f"TMPDIR={tempfile.gettempdir()}: sockets need a path of {SOCKET_BYTES} bytes at most")
        os.environ["TMPDIR"] = tempfile.tempdir = "/tmp"
    set_names()
    found = Machine.get_defaults()
    found["cpu"] = ", ".join(filter(None, (found["cpu"], cpu_model())))
    Machine.hardcoded_machine_name = name = host(f"{socket.gethostname()} {found['cpu']}")
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, found | {"machine": name, "os": kernel()})


def set_names() -> None:
    """Set or remove KFBENCH_ASV_NAMES. Raises UserError if KFBENCH_ASV has a value other than "full"."""
    os.environ.pop("KFBENCH_ASV_NAMES", None)
    mode = os.environ.get("KFBENCH_ASV", "")
    if mode not in ("", "full"):
        raise UserError(f"KFBENCH_ASV={mode!r}: it must be 'full', or unset for the default selection")
    if mode:
        from kfbench import CODECS, FORMATS, WORKLOADS

        names = {"formats": list(FORMATS), "codecs": list(CODECS), "workloads": sorted(set(WORKLOADS) - {"grid"})}
        os.environ["KFBENCH_ASV_NAMES"] = json.dumps(names)
