"""A complete benchmark run, opened for reading."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kfbench.errors import RunError
from kfbench.measure.noise import spreads, timed_kind
from kfbench.measure.schema import IDENTITY
from kfbench.store.manifest import MANIFEST, read_complete
from kfbench.store.parts import parts_of, read_parts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Run:
    """A complete run, or its copy in a published report. path: its folder. manifest: the content of `manifest.json`."""

    path: Path
    manifest: Mapping[str, Any]

    @cached_property
    def table(self) -> pa.Table:
        """All rows, with the columns of kfbench.measure.schema.SCHEMA, sorted by the columns of IDENTITY."""
        table = read_parts(parts_of(self.path))
        if len(table) != self.manifest["rows"]:
            raise RunError(f"{self.path}: measurements: {len(table)} rows, but {MANIFEST} has {self.manifest['rows']}")
        return table.sort_by([(name, "ascending") for name in IDENTITY])

    def measurements(self) -> "pd.DataFrame":
        """Return all rows as a pandas frame. The column level is Int32; other integers with nulls are float64.

        Added column: spread, that of the row's kind (`kfbench.measure.noise.spreads`). It belongs to each interval of
        the row's CPU time.
        """
        frame: pd.DataFrame = self.table.to_pandas()
        of_kind = spreads(self.table)
        kinds = map(timed_kind, frame["kind"], frame["cache"])
        return frame.astype({"level": "Int32"}).assign(spread=[of_kind.get(kind, 0.0) for kind in kinds])


def open_run(path: str | Path) -> Run:
    """Open a run, or its copy in a report. Raises RunError if it is incomplete or has another schema version."""
    path = Path(path)
    manifest = read_complete(path)
    if not parts_of(path):
        raise RunError(f"{path}: measurements: missing")
    return Run(path=path, manifest=manifest)
