"""Compute the numbers of a report's tables from its stored rows a second time: by SQL, with no code of the report.

second_path.toml declares the tables, by docs/terms.md. second_path_times.py makes intervals of the raw rounds.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb

from tests.report.second_path_claims import HOLDS, enriched, kip31, kip98, kip931
from tests.report.second_path_files import (
    client_cells,
    clients,
    java_codecs,
    measured_runs,
    peer_differences,
    peers,
    second_opinion,
)
from tests.report.second_path_migration import assumptions, break_even, curve, migration, savings
from tests.report.second_path_times import Numbers, add_fronts, interval, least_that_hold, numbers, spreads

DATASETS: Final = Path(__file__).parents[2] / "datasets"
JOINED: Final = DATASETS / "joined"
WORKLOADS: Final = DATASETS / "workloads"
MACROS: Final = """
CREATE MACRO median_of(rounds) AS list_aggregate(rounds, 'median');
CREATE MACRO mean_of(ratios) AS exp(avg(ln(ratios)));
CREATE MACRO codec_of(codec) AS if(codec = 'none', 'no codec', codec);
CREATE MACRO batches_of(size) AS CASE coalesce(size, 0) WHEN 0 THEN 'own batches' WHEN 1 THEN 'one record per batch'
    ELSE size || ' records per batch' END;
CREATE MACRO data_of(workload) AS CASE WHEN workload LIKE 'lines-%' THEN 'recorded log lines'
    WHEN workload LIKE 'public-%' THEN 'public data' WHEN workload LIKE 'recorded-%' THEN 'recorded segments'
    ELSE 'named workloads' END;
CREATE MACRO words_of(value, is_number) AS if(is_number, printf('%.3f', value), printf('%.1f %%', 100 * value));
CREATE MACRO listed(words) AS
    if(len(words) > 1, array_to_string(words[:-2], ', ') || ' and ' || words[-1], array_to_string(words, ''));
CREATE MACRO work_of(untouched, in_place, shifted, rewritten, dropped) AS array_to_string(list_transform(
    list_filter(
        [('untouched', untouched), ('in place', in_place), ('shifted', shifted), ('rewritten', rewritten),
         ('dropped', dropped)], lambda each: each[2] > 0
    ), lambda each: each[1] || if(each[2] = untouched + in_place + shifted + rewritten + dropped, '',
        printf(' %.0f %%', 100 * each[2] / (untouched + in_place + shifted + rewritten + dropped)))
), ', ');
"""
IDENTITY: Final = "kind, cell_id, codec, level, operation, to_format, format, arm, cache, context"
SUMMED: Final = (
    "records, batches, size_bytes, overhead_bytes, payload_bytes, source_bytes, read_bytes, written_bytes, "
    "decompressed_bytes, recompressed_bytes, batches_untouched, batches_in_place, batches_shifted, batches_rewritten, "
    "batches_dropped"
)
# Blocks of a sweep have copies of a row. A measurement with several seeds has sums of bytes, and its rounds in a row.
ARMS: Final = f"""
CREATE TABLE every AS
SELECT DISTINCT ON ({IDENTITY}, seed, status = 'ok') * REPLACE (coalesce(variant, 'default') AS variant),
    list("grid") OVER (PARTITION BY {IDENTITY}, seed, status = 'ok') AS grids,
    codec || coalesce(' ' || level, '') AS with_codec,
    kind || if(cache = 'cold', ', cold', '') AS timed_kind,
    if(coalesce(variant, 'default') = 'default', workload, workload || '/' || variant) AS label,
    list_filter([
        if(batch_size <> 100, 'batch_size', ''), if(key_bytes <> 16, 'key_bytes', ''),
        if(value_bytes <> 100, 'value_bytes', ''), if(timestamp_spread_ms <> 0, 'timestamp_spread_ms', ''),
        if(headers <> 0, 'headers', ''), if(payload <> 'template', 'payload', ''),
        if(null_share <> 0, 'null_share', ''), if(header_key_bytes <> 12, 'header_key_bytes', ''),
        if(header_value_bytes <> 20, 'header_value_bytes', ''), if(offset_stride <> 1, 'offset_stride', ''),
        if(base_timestamp_ms <> 1767225600000, 'base_timestamp_ms', ''), if(producer, 'producer', ''),
        if(append_time, 'append_time', '')
    ], lambda axis: axis <> '' AND workload = 'grid') AS axes_moved
FROM own;
CREATE VIEW seeds AS FROM every WHERE status = 'ok';

CREATE TABLE arms AS
SELECT {IDENTITY}, any_value(COLUMNS(* EXCLUDE ({IDENTITY}, seed, {SUMMED}, cpu_ns, wall_ns))),
    sum(COLUMNS([{", ".join(f"'{name.strip()}'" for name in SUMMED.split(","))}])),
    flatten(list(list_transform(cpu_ns, lambda ns: ns / inner_loops / records) ORDER BY seed)) AS ns,
    sum(size_bytes) / sum(records) AS size, sum(overhead_bytes) / sum(records) AS overhead,
    coalesce(bool_or(contains(losses, ':')), false) AS is_lossy
FROM seeds GROUP BY {IDENTITY};
"""
AGAIN: Final = """
CREATE TABLE again AS
SELECT a.timed_kind, list_transform(list_zip(a.cpu_ns, b.cpu_ns), lambda ns: ns[1] / ns[2]) AS rounds
FROM seeds a JOIN seeds b USING (kind, cell_id, seed, format)
WHERE list_min(a.cpu_ns || b.cpu_ns) > 0 AND a.arm = 'aa' AND b.arm IN ('measure', 'each')
    AND (a.codec, a.level, a.operation, a.to_format, a.cache, a.context)
    IS NOT DISTINCT FROM (b.codec, b.level, b.operation, b.to_format, b.cache, b.context)
"""
# Rounds of an arm, divided by those of its base in the same rounds. ratio: [median, low, high].
RATIOS: Final = """
CREATE TABLE ratios AS
SELECT a.*, b.format AS base, list_transform(list_zip(a.ns, b.ns), lambda ns: ns[1] / ns[2]) AS rounds,
    [median_of(rounds)] || ends_of(rounds, coalesce(spread, 0)) AS ratio, median_of(rounds) AS middle
FROM arms a JOIN arms b USING (kind, cell_id) LEFT JOIN spreads ON spreads.timed_kind = a.timed_kind
WHERE b.arm = 'measure' AND (a.format, a.arm) <> (b.format, b.arm) AND len(a.ns) = len(b.ns) AND len(a.ns) > 0
    AND (b.format = 'v2' OR a.format = 'columnar' OR (a.format, b.format) = ('v1', 'v0')
        OR a.arm = 'aa' AND a.format = b.format)
    AND (a.codec, a.level, a.operation, a.to_format, a.cache, a.context)
    IS NOT DISTINCT FROM (b.codec, b.level, b.operation, b.to_format, b.cache, b.context)
"""
NOISE: Final = """
SELECT least(1, quantile_cont(middle, 0.025)) FROM ratios
WHERE kind = 'cpu' AND workload = 'grid' AND cache = 'resident' AND arm = 'aa' AND (format, base) = ('v2', 'v2')
"""
# The rows of tables with one axis or codec: see second_path.toml.
TABLE: Final = """
WITH chosen AS (
    SELECT *, max(size) FILTER (format = 'v2') OVER (PARTITION BY kind, cell_id, with_codec) AS v2_size
    FROM {source} WHERE {where} AND list_has_all([{axes}], axes_moved)
)
SELECT {rows}, {columns} AS column, {value} AS value FROM chosen
"""


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    """Open the rows of a report and of the runs that it joins."""
    database = duckdb.connect()
    database.execute("SET threads = 1")
    database.execute(MACROS)
    database.create_function(
        "ends_of", lambda ratios, spread: interval(ratios, spread)[1:], ["DOUBLE[]", "DOUBLE"], "DOUBLE[]"
    )
    database.create_function("least_of", least_that_hold, ["BIGINT"], "DOUBLE")
    database.read_parquet(str(folder / "measurements.parquet")).create_view("stored")
    # Rows of older runs have no contexts.
    database.execute("CREATE VIEW own AS FROM stored UNION ALL BY NAME SELECT NULL::VARCHAR AS context WHERE false")
    for name in ("dictionary", "rivals"):
        at = folder / "joined" / name
        database.read_parquet(str((at if at.exists() else JOINED / name) / "measurements.parquet")).create_view(name)
    found = [(path.stem, tomllib.loads(path.read_text(encoding="utf-8"))["class"]) for path in WORKLOADS.glob("*.toml")]
    database.execute("CREATE TABLE classes (workload VARCHAR, class VARCHAR)")
    database.executemany("INSERT INTO classes VALUES (?, ?)", found)
    database.execute(ARMS)
    database.execute(AGAIN)
    of_kind = spreads(database.execute("FROM again").fetchall())
    database.execute("CREATE TABLE spreads (timed_kind VARCHAR, spread DOUBLE)")
    database.executemany("INSERT INTO spreads VALUES (?, ?)", list(of_kind.items()))
    database.execute(RATIOS)
    return database


def declared() -> Iterator[dict[str, Any]]:
    """Yield the declaration of each table."""
    for table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["table"]:
        for values in table.pop("each", [{}]):
            yield {key: _filled(text, values) for key, text in table.items()}


def _filled(text: str, values: dict[str, str]) -> str:
    """Replace {...} by a value of its name. Other braces stay."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def recomputed(folder: Path, peers_file: Path = DATASETS / "peers" / "cpu.json") -> dict[str, Numbers]:
    """Compute the numbers of each table: its name -> the key cells of each row -> column -> number."""
    databases = {"own": connect(folder)} | {name: connect(JOINED / name) for name in ("instructions", "codec-cpu")}
    found: dict[str, Numbers] = {}
    for table in declared():
        _add(found.setdefault(table["name"], {}), databases[table.get("run", "own")], table)
    add_fronts(found["pareto"], databases["own"].execute(NOISE).fetchall()[0][0])
    claims = {"kip98": kip98(), "kip931": kip931(), "kip31": kip31(), "enriched": enriched()}
    found |= claims
    found["claims-count"] = {
        (name,): {"differ": sum(row[HOLDS] == "NO" for row in own.values()), "published": len(own)}
        for name, own in claims.items()
    }
    for source in (peers, clients, client_cells, peer_differences):
        found[source.__name__.replace("_", "-")] = source(peers_file)
    java = DATASETS / "second-opinion" / "jmh.json"
    found |= {"second-opinion": second_opinion(java), "java-codecs": java_codecs(java)}
    found["runs"] = measured_runs(folder, JOINED, java, peers_file)
    found["broker-migrate-v3"] = migration(databases["own"])
    found["broker-migrate-v3-break-even"] = break_even(databases["own"])
    found["migration-curve"] = curve(databases["own"])
    found["broker-migrate-assumed"] = assumptions()
    pays = [min(saved) >= 0 for saved in savings(databases["own"]).values()]
    claim = "The benefits of the space savings outweigh the cost incurred for message conversion"
    verdict = "yes" if all(pays) else f"in {sum(pays)} of {len(pays)} cases" if any(pays) else "NO"
    found["broker-claims"]["KIP-931, why it was discarded", claim] = {"holds": verdict}
    return found


def text_of(cell: str | float) -> str:
    """Return a key cell as text: 1000, 1000.0 and "1,000" are equal."""
    return re.sub(r"(?<=\d),(?=\d)", "", cell) if isinstance(cell, str) else f"{cell:.15g}"


def _add(found: Numbers, database: duckdb.DuckDBPyConnection, table: dict[str, Any]) -> None:
    sql = table.get("sql")
    if sql is None:
        axes = ", ".join(f"'{axis}'" for axis in table["rows"].split(", "))
        sql = TABLE.format(**{"columns": "format", "source": "arms", **table}, axes=axes)
    answer = database.execute(sql)
    names = [each[0] for each in answer.description]
    keys = names.index("column") if "column" in names else int(table["keys"])
    for row in answer.fetchall():
        key, cells = row[:keys], [row[keys:]] if "column" in names else zip(names[keys:], row[keys:], strict=True)
        for column, value in cells:
            made = numbers(column, value)
            at = found.setdefault(tuple(map(text_of, key)), {})
            assert not at.keys() & made.keys(), (table["name"], key, column)
            at |= made
