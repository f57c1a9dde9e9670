"""The sessions of a run. A run may be interrupted and resumed, on another day and by another cluster.

A session may be killed at any time. So the facts of a host are in the manifest before its rows are stored. The facts of
a stage are added when it ends or is interrupted. A session that was killed in a stage leaves only its rows.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kfbench.errors import RunError
from kfbench.measure.environment import HARDWARE
from kfbench.measure.noise import TIMED_KINDS, noise_facts
from kfbench.store import Run, RunWriter, sound_rows
from kfbench.sweep.definition.profile import Profile
from kfbench.sweep.run.plan import left

# The facts of a host, besides its libraries, that times depend on.
MACHINE: Final = (*HARDWARE, "governor", "system", "kernel_features")

Hosts = Mapping[str, Mapping[str, Any]]


class History:
    """The history of a run that is being written. session_hosts: may get more hosts later."""

    def __init__(self, writer: RunWriter, session_hosts: Hosts) -> None:
        self._writer = writer
        self.session = len(writer.manifest.get("resumed", []))
        self.session_stages: list[dict[str, Any]] = []
        self._session_hosts = session_hosts
        before = writer.manifest.get("host_facts", {})
        self._hosts_before = before
        self._timed = {name: before[name] for name in _timing_hosts(writer.found) if name in before}
        self._stages_before = writer.manifest.get("stages", [])
        self._noted: set[str] = set()
        self._note_hosts()

    @property
    def hosts(self) -> dict[str, Mapping[str, Any]]:
        """The facts of all hosts. A host that timed cells in an earlier session keeps the facts from then."""
        return {**self._hosts_before, **self._session_hosts, **self._timed}

    @property
    def stages(self) -> list[dict[str, Any]]:
        return [*self._stages_before, *self.session_stages]

    @property
    def failed_rows(self) -> int:
        return self._writer.counts["error"]

    def add_rows(self, rows: pa.Table, *, passing: bool = False) -> None:
        """Store the facts of new hosts, then the rows (see RunWriter.add). Raises RunError."""
        self._note_hosts()
        self._writer.add(rows, passing=passing)

    def add_stage(self, facts: Mapping[str, Any]) -> None:
        self.session_stages.append({"session": self.session, **facts})
        with suppress(RunError):  # a full disk may have interrupted the stage, and the next write reports it
            self._writer.note({"stages": self.stages})

    def complete(self, cells: int) -> Run:
        """End the run with the facts of all its sessions. cells: the cells of its profile. Raises RunError."""
        statuses = {status: self._writer.counts[status] for status in ("ok", "skipped", "error")}
        facts = {
            "counts": {"cells": cells, **statuses},
            "hosts": sorted(self._writer.hosts),
            "host_facts": {name: facts for name, facts in sorted(self.hosts.items()) if name in self._writer.hosts},
            "noise": noise_facts(sound_rows(self._writer.path)),
            "stages": self.stages,
        }
        return self._writer.complete(facts)

    def _note_hosts(self) -> None:
        if self._session_hosts.keys() - self._noted:
            self._noted = set(self._session_hosts)
            self._writer.note({"host_facts": self.hosts})


def timed_on(run: Path, found: pa.Table, profile: Profile, before: Hosts, here: Hosts) -> str | None:
    """Return the host that must time the rest of an interrupted run; None if any host may.

    Args:
        found: the rows of the run.
        before: the facts of its hosts, from its manifest.
        here: the facts of the present hosts.

    Raises RunError if that host is missing, or is another machine now. Times of two machines must not share a table.
    """
    hosts = _timing_hosts(found)
    if not hosts or not any(cell.kind in TIMED_KINDS for cell in left(profile.cells, found)):
        return None
    host: str = hosts[0]
    then = before.get(host, {})
    if len(hosts) > 1 or host not in here:
        cpu = f" ({then['cpu']})" if then.get("cpu") else ""
        raise RunError(
            f"{run}: cells were timed on {' and '.join(hosts)}{cpu}, but this is {', '.join(sorted(here))}: "
            "times of two hosts must not share a table; resume the run there, or begin another run"
        )
    for name in MACHINE:
        if name in then and then[name] != here[host].get(name):
            raise RunError(
                f"{run}: {host} has timed cells, and is another machine now: {name}: {then[name]} then, "
                f"{here[host].get(name)} now; begin another run"
            )
    return host


def _timing_hosts(found: pa.Table) -> list[str]:
    timed = pc.and_(pc.equal(found["status"], "ok"), pc.is_in(found["kind"], pa.array(TIMED_KINDS)))
    return sorted(set(found.filter(timed)["host"].to_pylist()))
