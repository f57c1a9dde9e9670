"""The parts of a run's measurements: Parquet files that all have the same schema."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.errors import RunError
from kfbench.measure.schema import ADDED, SCHEMA, SCHEMA_VERSION

MEASUREMENTS: Final = "measurements"
PART, PASSING = "part-", "passing-"


class SoundParts(NamedTuple):
    rows: pa.Table
    damaged: list[Path]  # the files that cannot be read


def parts_of(run: Path) -> list[Path]:
    """Return the Parquet files of a run, sorted by name. In a report it is one file, `measurements.parquet`."""
    one = run / f"{MEASUREMENTS}.parquet"
    return [one] if one.is_file() else sorted((run / MEASUREMENTS).glob("*.parquet"))


def read_parts(parts: Sequence[Path]) -> pa.Table:
    """Return the rows of all these files in one table. Raises RunError."""
    return pa.concat_tables([_read(part) for part in parts])


def sound_rows(run: Path) -> pa.Table:
    """Return the readable rows of an unfinished run, which `resume_run` would keep. No file is changed."""
    return sound_parts(run).rows


def sound_parts(run: Path) -> SoundParts:
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
    rows, damaged = sound_parts(run)
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
