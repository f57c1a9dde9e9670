"""A benchmark run, opened for reading. Its parts are Parquet files that all have the same schema."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.errors import RunError
from kfbench.measure.noise import spreads, timed_kind
from kfbench.measure.schema import ADDED, IDENTITY, SCHEMA, SCHEMA_VERSION
from kfbench.store.manifest import MANIFEST, read_complete

if TYPE_CHECKING:
    import pandas as pd

MEASUREMENTS: Final = "measurements"
PART, PASSING = "part-", "passing-"
JOINED: Final = "joined"  # the folder of joined runs, among the datasets and in a report
SAMPLES: Final = ("cpu_ns", "wall_ns")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A complete run, or its copy in a published report. path: its folder. manifest: the content of `manifest.json`."""

    path: Path
    manifest: Mapping[str, Any]

    @cached_property
    def table(self) -> pa.Table:
        """All rows, with the columns of kfbench.measure.schema.SCHEMA, sorted by the columns of IDENTITY."""
        table = pa.concat_tables([_read(part) for part in parts_of(self.path)])
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


def parts_of(run: Path) -> list[Path]:
    """Return the Parquet files of a run, sorted by name. In a report it is one file, `measurements.parquet`."""
    one = run / f"{MEASUREMENTS}.parquet"
    return [one] if one.is_file() else sorted((run / MEASUREMENTS).glob("*.parquet"))


class SoundParts(NamedTuple):
    rows: pa.Table
    damaged: list[Path]  # the files that cannot be read


def sound_rows(run: Path) -> pa.Table:
    """Return the readable rows of an unfinished run, which `resume_run` would keep. No file is changed."""
    return _sound_parts(run).rows


def _sound_parts(run: Path) -> SoundParts:
    tables, damaged = [SCHEMA.empty_table()], []
    for part in sorted((run / MEASUREMENTS).glob(f"{PART}*.parquet")):
        try:
            tables.append(_read(part))
        except RunError:
            damaged.append(part)
    return SoundParts(pa.concat_tables(tables), damaged)


def set_damaged_aside(run: Path) -> SoundParts:
    """Rename damaged parts to `*.damaged`. Delete half-written files and rows about errors of a busy host.

    Return the rows that can be read, and the new names.
    """
    rows, damaged = _sound_parts(run)
    renamed = [part.rename(part.with_suffix(".damaged")) for part in damaged]
    measurements = run / MEASUREMENTS
    for each in (*run.glob("*.tmp"), *measurements.glob("*.tmp"), *measurements.glob(f"{PASSING}*.parquet")):
        each.unlink()
    return SoundParts(rows, renamed)


def _read(part: Path) -> pa.Table:
    """Read one Parquet file. Columns that it lacks and may lack are null.

    Raises RunError if its columns are not those of SCHEMA, or a value is damaged.
    """
    try:
        _check_columns(part, pq.read_schema(part))
        return pq.read_table(part, schema=SCHEMA, page_checksum_verification=True)
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: a damaged name
        raise RunError(f"{part}: cannot be read: {' '.join(str(error).split())}") from None


def _check_columns(part: Path, schema: pa.Schema) -> None:
    for field in schema:
        at = SCHEMA.get_field_index(field.name)
        if at < 0 or not field.equals(SCHEMA.field(at)):
            raise RunError(f"{part}: column {field.name}: not of schema {SCHEMA_VERSION}")
    if missing := [name for name in SCHEMA.names if name not in schema.names and name not in ADDED]:
        raise RunError(
            f"{part}: no column {', '.join(missing)}: the run is too old for this kfbench; measure again, or use the "
            "kfbench that wrote it"
        )


def joined_parquet(run: Run) -> bytes:
    """Return the rows of a joined run as one Parquet file, as small as possible. The wall times are left out."""
    at = run.table.schema.get_field_index("wall_ns")
    field = run.table.schema.field(at)
    rows = run.table.set_column(at, field, pa.nulls(run.table.num_rows, field.type))
    others = [name for name in rows.column_names if name not in SAMPLES]
    encodings = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in SAMPLES}
    sink = io.BytesIO()
    pq.write_table(
        rows, sink, compression="zstd", compression_level=19, use_dictionary=others, column_encoding=encodings
    )
    return sink.getvalue()
