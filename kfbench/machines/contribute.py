"""Write the file of a machine from a stored run (`kfbench contribute`). Only what is named here gets into the file."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kfbench.codecs import CODECS
from kfbench.errors import RunError
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.kernels.instructions import INTERPRETED
from kfbench.machines import file
from kfbench.machines.file import (
    Crc,
    Instructions,
    Machine,
    MachineFile,
    NoiseVerdict,
    Operation,
    Ratio,
    Sizes,
    Vectors,
)
from kfbench.measure.cpu import READINGS, paired_ratio
from kfbench.measure.environment import PACKAGES
from kfbench.measure.noise import checks, spreads
from kfbench.measure.schema import ARM, ROUNDS, StoredRow, stored_rows
from kfbench.shipped import DATASETS
from kfbench.store import Run
from kfbench.workloads.catalogue import DEFAULT
from kfbench.workloads.fingerprinted.model import NAME_PREFIX
from kfbench.workloads.grid import GridPoint

_KINDS: Final = ("cpu", *READINGS, "broker")
_OPERATIONS: Final = get_args(Operation)
_DEFAULTS: Final = {axis.name: getattr(GridPoint(), axis.name) for axis in fields(GridPoint) if axis.name != "name"}
_COLD: Final = "cold"
DIGITS: Final = 4  # decimals of a ratio


def machine_file(run: Run) -> MachineFile:
    """Return the content of the file of the machine that measured a run.

    Workloads of fingerprints are left out, because they are of the user's topics.

    Raises RunError if the run has no CPU ratios to v2, was timed on several machines, or with kernels in plain Python.
    """
    is_private = pc.fill_null(pc.starts_with(run.table["workload"], NAME_PREFIX), False)
    table = run.table.filter(pc.invert(is_private))
    timed = [row for row in _timed(table) if row.arm != "aa"]
    ratios = sorted(_ratios(timed, spreads(run.table)), key=_order)
    if not ratios:
        raise RunError(
            f"{run.path}: no CPU time of a format beside {BASE_FORMAT}'s ({', '.join(_OPERATIONS)}, in caches; "
            "fingerprints do not count); "
            "measure: kfbench sweep machine"
        )
    hosts = sorted({str(row.host) for row in timed})
    if len(hosts) > 1:
        raise RunError(f"{run.path}: CPU times of {len(hosts)} hosts; a file is of one machine")
    manifest = run.manifest
    environment = manifest.get("host_facts", {}).get(hosts[0]) or manifest["environment"]
    if environment.get("kernel_features", {}).get("vectors") == INTERPRETED:
        raise RunError(
            f"{run.path}: its kernels ran as plain Python (NUMBA_DISABLE_JIT); measure with compiled kernels"
        )
    return MachineFile(
        schema=file.SCHEMA,
        kfbench=_version(environment.get("packages", {}).get("kfbench")) or "0",
        revision=_matching(file.REVISION, environment.get("git_revision")),
        code=_matching(file.CODE, manifest.get("code")),
        profile=_profile(str(manifest["profile"])),
        date=str(manifest["started"])[:10],
        contains=file.CONTAINS,
        never_contains=file.NEVER,
        machine=_machine(environment),
        noise=_noise(run.table.filter(pc.equal(run.table["host"], hosts[0]))),
        sizes=_sizes(table),
        ratios=ratios,
    )


def _timed(table: pa.Table) -> list[StoredRow]:
    """Return the timed rows of all operations in caches, each measurement once."""
    kept = pc.and_(pc.is_in(table["kind"], pa.array(_KINDS)), pc.is_in(table["operation"], pa.array(_OPERATIONS)))
    kept = pc.and_(kept, pc.equal(table["status"], "ok"))
    kept = pc.and_(kept, pc.is_valid(table["cpu_ns"]))
    kept = pc.and_(kept, pc.fill_null(pc.not_equal(table["cache"], _COLD), True))
    rows = {tuple(getattr(row, name) for name in ARM): row for row in stored_rows(table.filter(kept))}
    return list(rows.values())


def _ratios(timed: Iterable[StoredRow], of_kind: Mapping[str, float]) -> Iterator[Ratio]:
    """Yield the ratio of each format to v2. The rounds of all seeds of a cell are taken together.

    of_kind: the spread between arms of each kind.
    """
    arms = {(*_rounds(row), row.format): row for row in timed if _is_shown(row)}
    pairs: dict[tuple[object, ...], list[tuple[StoredRow, StoredRow]]] = defaultdict(list)
    for row in arms.values():
        base = arms.get((*_rounds(row), BASE_FORMAT))
        if base is not None and row.format != BASE_FORMAT:
            of_all_seeds = tuple(getattr(row, name) for name in ARM if name != "seed")
            pairs[of_all_seeds].append((row, base))
    for of_seeds in pairs.values():
        row = of_seeds[0][0]
        ns, base_ns = (np.concatenate([_ns(pair[side]) for pair in of_seeds]) for side in (0, 1))
        found = paired_ratio(ns, base_ns).widened(of_kind.get(row.kind, 0.0))
        is_default = row.variant in (None, DEFAULT)
        yield Ratio(
            operation=row.operation,  # type: ignore[arg-type]  # _timed took only these
            format=row.format,
            codec=row.codec,
            level=row.level,
            workload=row.workload if is_default else f"{row.workload}/{row.variant}",
            batch_size=row.batch_size,
            cell=row.cell_id,
            records=row.records or 0,
            median=round(found.median, DIGITS),
            low=round(found.low, DIGITS),
            high=round(found.high, DIGITS),
        )


def _order(ratio: Ratio) -> tuple[object, ...]:
    at = ratio.operation, ratio.workload, ratio.codec, ratio.level or 0
    return *at, ratio.batch_size or 0, ratio.format, ratio.cell


def _rounds(row: StoredRow) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in ROUNDS)


def _ns(row: StoredRow) -> np.ndarray[Any, np.dtype[np.float64]]:
    assert row.cpu_ns is not None and row.inner_loops
    return np.array(row.cpu_ns, np.float64) / row.inner_loops


def _is_shown(row: StoredRow) -> bool:
    """Return True for named workloads, and for the grid's slice along the batch size."""
    if row.format not in FORMATS or row.to_format is not None:
        return False
    if row.workload != GridPoint.name:
        return True
    return all(getattr(row, axis) == value for axis, value in _DEFAULTS.items() if axis != "batch_size")


def _sizes(table: pa.Table) -> list[Sizes]:
    """Return hashes of all exact sizes, per codec."""
    names = ("cell_id", "seed", "format", "level", "records", "batches")
    kept = pc.and_(pc.equal(table["kind"], "bytes"), pc.equal(table["status"], "ok"))
    by_codec: dict[str, dict[str, int]] = defaultdict(dict)
    for row in stored_rows(table.filter(kept)):
        by_codec[row.codec][json.dumps([getattr(row, name) for name in names])] = row.size_bytes or 0
    return [
        Sizes(
            codec=codec,
            rows=len(sizes),
            cells=_hash(sorted(sizes)),
            sizes=_hash(f"{cell} {sizes[cell]}" for cell in sorted(sizes)),
        )
        for codec, sizes in sorted(by_codec.items())
        if codec in CODECS
    ]


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _noise(rows: pa.Table) -> NoiseVerdict:
    made = {check.name: check for check in checks(rows)}
    share, width = made.get("A/A intervals that hold 1.0"), made.get("A/A half-width")
    return NoiseVerdict(
        checks=len(made),
        failed=[name for name, check in made.items() if not check.passed],
        aa_share=round(share.seen, DIGITS) if share else None,
        aa_half_width=round(width.seen, DIGITS) if width else None,
    )


def _machine(facts: Mapping[str, Any]) -> Machine:
    caches = {
        name: size
        for name, size in (facts.get("cache") or {}).items()
        if _matching(file.CACHE_NAME, name) and _matching(file.CACHE_SIZE, size)
    }
    packages = facts.get("packages") or {}
    codecs = facts.get("codecs") or {}
    return Machine(
        cpu=_matching(file.CPU, str(facts.get("cpu")).replace("w/ ", "with ")) or file.UNKNOWN,
        cpu_model=_matching(file.CPU_MODEL, facts.get("cpu_model")),
        architecture=facts["machine"] if facts.get("machine") in file.ARCHITECTURES else file.UNKNOWN,
        cores=_count(facts.get("cores")),
        physical_cores=_count(facts.get("physical_cores")),
        logical_cores=_count(facts.get("logical_cores")),
        caches=caches,
        is_virtual=facts["virtual"] if isinstance(facts.get("virtual"), bool) else None,
        instructions=_instructions(facts.get("kernel_features") or {}),
        python=_version(facts.get("python")),
        packages={name: found for name in PACKAGES if (found := _version(packages.get(name)))},
        codecs={name: found for name in CODECS if (found := _matching(file.CODEC_VERSION, codecs.get(name)))},
    )


def _instructions(features: Mapping[str, Any]) -> Instructions:
    """Return the kernels' instructions. Older runs tell only those of the checksums: AVX-512's need AVX-512."""
    is_wide, known = features.get("wide_crc") is True, get_args(Vectors)
    crc: Crc = "AVX-512" if is_wide else "SSE4.2" if features.get("fast_crc") is True else "tables"
    pdep = features.get("fast_deposit")
    vectors: Vectors = "AVX-512" if is_wide else "unknown"
    return Instructions(
        vectors=features["vectors"] if features.get("vectors") in known else vectors,
        host_vectors=features["host_vectors"] if features.get("host_vectors") in known else None,
        crc=crc,
        pdep=pdep if isinstance(pdep, bool) else None,
    )


def _profile(name: str) -> str:
    """Return the name of a shipped sweep. The name of any other one is private."""
    return name if name in {path.stem for path in (DATASETS / "sweeps").glob("*.toml")} else file.OWN_PROFILE


def _matching(pattern: str, text: object) -> str | None:
    return text if isinstance(text, str) and re.fullmatch(pattern, text) else None


def _version(text: object) -> str | None:
    """Return a version without its local part, such as "+cu118" or the name of who built it."""
    found = re.match(file.VERSION, text) if isinstance(text, str) else None
    return found[0] if found else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
