"""asv plugin: `asv run` works without a terminal. Unless this machine is known already, asv's own guess is taken.

asv asks for the machine's name and hardware the first time, and fails where nobody can answer.
"""

from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]


def setup() -> None:
    """Called by asv before any command."""
    try:
        MachineCollection.load(Machine.get_unique_machine_name())
    except UserError:
        MachineCollection.save(Machine.get_unique_machine_name(), Machine.get_defaults())
