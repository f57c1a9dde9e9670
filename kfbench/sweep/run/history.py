"""The sessions of a run: it may be interrupted and resumed, on another day and by another cluster.

Hosts that a session meets are in the manifest before their rows are stored, because it may be killed. A stage is there
when it ends, or is interrupted by what can be heard: one that was killed in it has left its rows alone.
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

# What times depend on of a host's facts; its libraries are those of the run.
MACHINE: Final = (*HARDWARE, "governor", "system", "kernel_features")

Hosts = Mapping[str, Mapping[str, Any]]


class History:
    """Of the run that is being written. met: the hosts of this session, which may become more.

    hosts: facts of all that measured or might have; of one that has timed cells, what it was then, though this session
    met another machine of its name. stages: of all sessions; now: of this one.
    """

    def __init__(self, writer: RunWriter, met: Hosts) -> None:
        self._writer = writer
        self.session = len(writer.manifest.get("resumed", []))
        self.now: list[dict[str, Any]] = []
        self._met = met
        before = writer.manifest.get("host_facts", {})
        self._hosts_before = before
        self._timed = {name: before[name] for name in _that_timed(writer.found) if name in before}
        self._stages_before = writer.manifest.get("stages", [])
        self._noted: set[str] = set()
        self._note_hosts()

    @property
    def hosts(self) -> dict[str, Mapping[str, Any]]:
        return {**self._hosts_before, **self._met, **self._timed}

    @property
    def stages(self) -> list[dict[str, Any]]:
        return [*self._stages_before, *self.now]

    @property
    def failed_rows(self) -> int:
        return self._writer.counts["error"]

    def add_rows(self, rows: pa.Table, *, passing: bool = False) -> None:
        """As RunWriter.add; what their host is, is on disk before they are. Raises RunError."""
        self._note_hosts()
        self._writer.add(rows, passing=passing)

    def add_stage(self, facts: Mapping[str, Any]) -> None:
        self.now.append({"session": self.session, **facts})
        with suppress(RunError):  # a disk that is full is what interrupted it, and the next rows or the end say so
            self._writer.note({"stages": self.stages})

    def complete(self, cells: int) -> Run:
        """End the run of so many cells, with what is known of all its sessions. Raises RunError."""
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
        if self._met.keys() - self._noted:
            self._noted = set(self._met)
            self._writer.note({"host_facts": self.hosts})


def timed_on(run: Path, found: pa.Table, profile: Profile, before: Hosts, here: Hosts) -> str | None:
    """The host that has timed cells of an interrupted run, where some are left to time; None: any may.

    found: its rows; before: the facts of its hosts; here: of those that there are now. Raises RunError where the host
    is not there or is another machine now: times of two share no table.
    """
    hosts = _that_timed(found)
    if not hosts or not any(cell.kind in TIMED_KINDS for cell in left(profile.cells, found)):
        return None
    host: str = hosts[0]
    then = before.get(host, {})
    if len(hosts) > 1 or host not in here:
        cpu = f" ({then['cpu']})" if then.get("cpu") else ""
        raise RunError(
            f"{run}: cells were timed on {' and '.join(hosts)}{cpu}, and here is {', '.join(sorted(here))}: "
            "times of two hosts share no table; resume it there, or begin another run"
        )
    for name in MACHINE:
        if name in then and then[name] != here[host].get(name):
            raise RunError(
                f"{run}: {host} has timed cells, and is another machine now: {name}: {then[name]} then, "
                f"{here[host].get(name)} now; begin another run"
            )
    return host


def _that_timed(found: pa.Table) -> list[str]:
    timed = pc.and_(pc.equal(found["status"], "ok"), pc.is_in(found["kind"], pa.array(TIMED_KINDS)))
    return sorted(set(found.filter(timed)["host"].to_pylist()))
