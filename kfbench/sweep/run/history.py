"""Record the sessions of a run in its manifest: the facts of the hosts and of the stages.

A run may be interrupted and resumed, on another day and by another cluster. Each part is a session. A session may be
killed at any time. So the facts of a host (processor, libraries) are written before its rows. The facts of a stage
(times, number of measured cells) are written when it ends or is interrupted. If a session is killed in a stage, only
the rows of this stage are stored.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from kfbench.errors import RunError
from kfbench.measure.environment import HARDWARE
from kfbench.measure.kinds import kind_of
from kfbench.measure.noise import is_timed, noise_facts
from kfbench.store import Run, RunWriter, sound_rows
from kfbench.sweep.definition.profile import Profile
from kfbench.sweep.run.plan import cells_left

# The facts of a host that times depend on, apart from its libraries.
MACHINE: Final = (*HARDWARE, "governor", "system", "kernel_features")

Hosts = Mapping[str, Mapping[str, Any]]


class RunHistory:
    """The sessions of a run that is being written.

    Args:
        writer: the writer of the run.
        session_hosts: the facts of the hosts of this session, by name. The caller may add hosts to it later.
    """

    def __init__(self, writer: RunWriter, session_hosts: Hosts) -> None:
        self._writer = writer
        self.session = len(writer.manifest.get("resumed", []))
        self._session_hosts = session_hosts
        before = writer.manifest.get("host_facts", {})
        self._hosts_before = before
        self._timed = {name: before[name] for name in _timing_hosts(writer.found) if name in before}
        self._noted: set[str] = set()
        self._note_hosts()

    @property
    def hosts(self) -> dict[str, Mapping[str, Any]]:
        """The facts of all hosts of all sessions, by name.

        If a host timed cells in an earlier session, the facts are those of that session.
        """
        return {**self._hosts_before, **self._session_hosts, **self._timed}

    @property
    def stages(self) -> list[dict[str, Any]]:
        return list(self._writer.manifest.get("stages", []))

    @property
    def failed_rows(self) -> int:
        return self._writer.counts["error"]

    def add_rows(self, rows: pa.Table, *, passing: bool = False) -> None:
        """Store the facts of new hosts, then the rows. Raises RunError.

        passing: True if the rows are errors of a busy host. Resuming the run deletes them and measures again.
        """
        self._note_hosts()
        self._writer.add(rows, passing=passing)

    def add_stage(self, facts: Mapping[str, Any]) -> None:
        with suppress(RunError):  # a full disk may have interrupted the stage, and the next write reports it
            self._writer.note({"stages": [*self.stages, {"session": self.session, **facts}]})

    def complete(self, cells: int) -> Run:
        """Finish the run: write the facts of all its sessions into the manifest. Raises RunError.

        cells: the number of cells in its profile.
        """
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
    """Return the name of the host that must time the rest of an interrupted run; None if any host may.

    Times of two machines must not share a table. So the host that timed the first cells must time the
    others too.

    Args:
        run: the folder of the run.
        found: the rows that the run has stored.
        before: the facts of the run's hosts, from its manifest.
        here: the facts of the hosts of this session.

    Raises RunError if this host is not present, if its hardware or system has changed, or if two hosts timed cells.
    """
    hosts = _timing_hosts(found)
    if not hosts or not any(kind_of(cell).is_timed for cell in cells_left(profile.cells, found)):
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
    return sorted(set(found.filter(is_timed(found))["host"].to_pylist()))
